"""Measure a model on the rows of DATA, which must have labels: accuracy, precision, recall,
F1 and ROC area for classes; NDCG and swapped pairs for rankings; the mean error for
grades and numbers; right tokens and right sequences for tags, and precision, recall and
F1 of the chunks that tags such as B-NP, I-NP and O stand for. With --predictions
instead of MODEL, measure what another program has predicted.

examples:
  cutplane evaluate test.svm model
  cutplane evaluate --report eval.html test.svm model
  cutplane evaluate --json test.svm model
  cutplane evaluate test.svm --predictions out.txt
  cutplane evaluate test.svm --predictions scores.txt --kind ranking
  cutplane evaluate --label price houses.csv model
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ..reporting.line import plural
from ..reporting.text import print_facts, print_json
from . import inputs, predict
from .errors import CommandError, ExitCode, UsageError
from .kinds import Kind, Task
from .labels import read_predicted
from .measures import MEASURES, Judged, format_measure, judge, names_of
from .outputs import check_own_file
from .parser import JSON, Argument, finite_number, rows_or_share, share

FLAGS = {
    "": (
        Argument("DATA", "File with rows and labels; - is stdin."),
        Argument("MODEL?", "File with the model."),
        Argument("--k K", "Also show precision and recall of the K rows with the highest scores; "
                 "with a point, K is multiplied by the number of positive rows.", rows_or_share),
        Argument("--max-fpr RATE", "Also show the ROC area up to this false positive rate, and the "
                 "recall there.", share),
        Argument("--report FILE", "Also write an HTML page about MODEL and these rows."),
        predict.THREADS,
        JSON,
    ),
    "predictions instead of a model": (
        Argument("--predictions FILE",
                 "Measure the predictions in this file: one score or label per line."),
        Argument("--kind", "What was predicted. (default: classification)",
                 choices=[task.value for task in Task]),
        Argument("--output", "Whether the file holds labels or scores. (default: as predict would "
                 "write them)", choices=predict.FORMS),
    ),
    **inputs.COLUMNS,
    **inputs.READER,
}  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Measure; returns the exit code."""
    if (args.model is None) == (args.predictions is None):
        raise UsageError("give either a MODEL or --predictions FILE")
    if args.model is not None and (args.kind or args.output):
        raise UsageError("--kind and --output go with --predictions; a model knows what it is")
    if args.report is not None and args.model is None:
        raise UsageError("--report is about a MODEL; predictions alone have no certificate")
    check_own_file("--report", args.report, args.data, args.model)
    inputs.check_reader_flags(args, args.data)
    if inputs.format_of(args.data) == "table" and args.label is None:
        raise UsageError(f"{args.data} is a table; name the column of its labels with --label")
    left_out = 0
    if args.model is not None:
        light = predict.light_model(args) if args.report is None else None
        model, kind = light or predict.load_for(args)
        name = kind.name
        parts = predict.parts_of(args.data, args, kind, model)
        table, answers, left_out = predict.applied(model, kind, parts)
        judged = judge_model(model, kind.task, table, answers, args.k, args.max_fpr)
        if args.report is not None and kind.task is Task.LABELS:
            raise UsageError("there is no --report on several labels per row")
        if args.report is not None:
            _write_report(model, table, judged, args.report)
    else:
        name = args.kind or Task.CLASSES.value
        table = inputs.read_rows(args.data, args, Task(name))
        judged = _judge_file(args, Task(name), table)
    if args.json:
        print_json(
            {
                "command": "evaluate",
                "kind": name,
                "data": {"name": table.name, "rows": len(table.y)},
                "measures": judged.measures(),
                **judged.facts(),
                "values_left_out": left_out,
            }
        )
    else:
        print_facts(_facts(judged))
    return ExitCode.OK


def _write_report(model: Any, table: inputs.Table, judged: Judged, target: str) -> None:
    """Write a page about a model and its answers for the rows."""
    from ..reporting import fit_report

    scores = judged.scores
    single = scores is not None and scores.ndim == 1
    answers = fit_report.Answers(
        judged.truth, judged.labels, scores if single else None, judged.qid
    )
    title = f"{type(model).__name__} on {table.name}"
    fit_report.write_report(model, answers, target, title=title)


def judge_model(
    model: Any,
    task: Task,
    table: inputs.Table,
    answers: predict.Answers,
    k: float | None = None,
    max_fpr: float | None = None,
) -> Judged:
    """Compare a model's answers with the truth. k and max_fpr default to those of the model."""
    truth = table.y if task is Task.VALUES else inputs.whole_labels(table.y)
    classes = getattr(model, "classes_", None)
    parameters = model.get_params(deep=False)
    measure = parameters.get("measure", "")
    if k is None and measure in ("precision_at_k", "recall_at_k"):
        from ..estimators.measure_svc import DEFAULT_K

        k = DEFAULT_K[measure] if parameters["k"] is None else parameters["k"]
    if max_fpr is None and measure in ("partial_roc_auc", "recall_at_fpr"):
        from ..estimators.measure_svc import DEFAULT_FPR

        max_fpr = DEFAULT_FPR if parameters["max_fpr"] is None else parameters["max_fpr"]
    beta = None
    if measure == "fbeta":
        beta = 1.0 if parameters["beta"] is None else parameters["beta"]
    found: dict[str, Any] = {
        "k": k,
        "max_fpr": max_fpr,
        "beta": beta,
        "quantiles": quantiles_of(parameters),
    }
    return judge(task, truth, answers, classes=classes, qid=table.qid, **found)


def measure_for(kind: Kind, parameters: dict[str, Any]) -> str:
    """The measure that chooses a model: the one it is trained for, or the first of its task."""
    names = names_of(kind.task)
    trained_for = parameters.get("measure")
    if parameters.get("loss") == "quantile":
        trained_for = "pinball"
    return trained_for if trained_for in names else names[0]


def quantiles_of(parameters: dict[str, Any]) -> tuple[float, ...]:
    """The quantiles that a model with such parameters predicts, if it predicts any."""
    if parameters.get("loss") != "quantile":
        return ()
    return tuple(np.atleast_1d(parameters["quantile"]).tolist())


def _judge_file(args: argparse.Namespace, task: Task, table: inputs.Table) -> Judged:
    """Compare the predictions in a file with the truth."""
    inputs.check_numbers(table, task)
    truth = table.y if task is Task.VALUES else inputs.whole_labels(table.y)
    if task is Task.LABELS:
        lists = read_predicted(args.predictions)
        _check_count(args, table, lists)
        return judge(task, truth, predict.Answers(labels=lists))
    classes = np.unique(truth)
    form = args.output or predict.default_form(task, len(classes))
    predict.check_form(task, form)
    text = truth.dtype.kind not in "fiub"
    values = read_predictions(args.predictions, text=text)
    if text and (form == "labels" or (args.output is None and np.isin(values, classes).all())):
        form = "labels"
    elif text:
        values = read_predictions(args.predictions)
    _check_count(args, table, values)
    answers = predict.Answers(labels=values) if form == "labels" else predict.Answers(scores=values)
    return judge(task, truth, answers, qid=table.qid, k=args.k, max_fpr=args.max_fpr)


def _check_count(args: argparse.Namespace, table: inputs.Table, values: np.ndarray) -> None:
    if len(values) != len(table.y):
        raise CommandError(
            f"{args.predictions} has {plural(len(values), 'prediction')}, {table.name} has "
            f"{plural(len(table.y), 'row')}"
        )


def read_predictions(name: str, *, text: bool = False) -> np.ndarray:
    """Predictions from a file with one number per line; with one label per line if ``text``."""
    from ..data.files import opened

    values: list[Any] = []
    with opened(name) as source:
        for number, content in enumerate(source.file, 1):
            line = content.decode("utf-8", "replace").rstrip("\r\n")
            try:
                values.append(line if text else finite_number(line))
            except argparse.ArgumentTypeError:
                raise CommandError(
                    f"{source.name}:{number}:1: {line!r} is not a prediction; one number per line "
                    "is expected, as cutplane predict writes it"
                ) from None
    return np.array(values, dtype=str if text else np.float64)


# Measures of parts: their title, the measure, and what stands between a part and its value.
BY_PART = {
    "pinball_by_quantile": ("pinball of", "pinball", ": "),
    "coverage_by_quantile": ("below", "coverage", ": "),
    "f1_by_class": ("F1 by class", "f1", " "),
    "chunk_f1_by_type": ("F1 by type", "chunk_f1", " "),
}


def _facts(judged: Judged) -> dict[str, str]:
    """The measures as text for people."""
    facts: dict[str, str] = {}
    others = judged.facts()
    for name, value in judged.measures().items():
        text = format_measure(name, value)
        match name:
            case "accuracy" | "token_accuracy":
                total = len(judged.truth)
                correct = int(np.count_nonzero(judged.labels == judged.truth))
                text += f" ({correct:,} correct, {total - correct:,} incorrect, {total:,} total)"
            case "precision":
                text += f" (of the class {others['positive']})"
            case "sequence_accuracy":
                text += f" ({plural(others['sequences'], 'sequence')})"
            case "ndcg@10":
                text += f" ({plural(others['queries'], 'query', 'queries')})"
        if MEASURES[name].title:
            facts[MEASURES[name].title] = text
    for key, (title, measure, mark) in BY_PART.items():
        if len(others.get(key, ())) > (key == "pinball_by_quantile"):  # of one it is the pinball
            facts[title] = ", ".join(
                f"{part or 'chunk'}{mark}{format_measure(measure, value)}"
                for part, value in others[key].items()
            )
    if "rows_of_unknown_classes" in others:
        facts["unknown"] = f"{others['rows_of_unknown_classes']:,} rows of classes not trained on"
    return facts
