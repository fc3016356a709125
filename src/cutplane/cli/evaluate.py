"""``cutplane evaluate``: how good a model, or a file of predictions, is on data with labels."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ..report.text import print_facts, print_json
from .answers import FORMS, Answers, check_form, default_form, model_kind, read_predictions
from .common import CommandError, ExitCode, UsageError, add_json, add_verbose
from .fitting import check_numbers
from .flags import rows_or_share
from .inputs import (
    Table,
    add_column_flags,
    add_reader_flags,
    check_reader_flags,
    format_of,
    read_table,
    whole_labels,
)
from .kinds import DEFAULT, KINDS, Kind, Task
from .measures import Measured, format_measure, measure
from .predict import Alignment, add_threads, applied, load_for, parts_of

# One name per task: those who measure predictions need not know how they were trained.
KIND_NAMES = tuple(kind.name for kind in KINDS if not kind.choice)

TITLES = {
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "macro_f1": "mean F1",
    "roc_auc": "ROC area",
    "average_precision": "av. prec.",
    "prbep": "PRBEP",
    "precision_at_k": "prec. at k",
    "recall_at_k": "recall at k",
    "mae": "mean error",
    "rmse": "RMS error",
    "r2": "R^2",
    "ndcg": "NDCG",
    "ndcg@10": "NDCG@10",
    "swapped_pairs": "swapped",
    "somers_d": "Somers' D",
    "token_accuracy": "tokens",
    "sequence_accuracy": "sequences",
    "inside": "inside",
}

DESCRIPTION = """\
Measure a model on data with labels: accuracy, precision, recall, F1 and ROC area for
classes; NDCG and swapped pairs for rankings; the mean error for grades and numbers;
tokens and whole sequences for tags.
"""

EPILOG = """\
examples:
  cutplane evaluate test.svm model
  cutplane evaluate --json test.svm model
  cutplane evaluate test.svm --predictions out.txt
  cutplane evaluate test.svm --predictions scores.txt --kind ranking
  cutplane evaluate --label price houses.csv model
"""


def add_parser(subparsers: Any) -> None:
    """Offer the command to argparse."""
    parser = subparsers.add_parser(
        "evaluate",
        help="measure a model, or predictions, on data with labels",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("data", metavar="DATA", help="file with rows and labels; - is stdin")
    parser.add_argument("model", metavar="MODEL", nargs="?", help="file of the model")
    parser.add_argument(
        "--predictions",
        metavar="FILE",
        help="measure these instead: one number per line, or one label",
    )
    parser.add_argument(
        "--kind", choices=KIND_NAMES, help="what the predictions are (default: classification)"
    )
    parser.add_argument(
        "--output",
        choices=FORMS,
        help="whether the predictions are labels or scores (default: as predict writes them)",
    )
    parser.add_argument(
        "--k",
        metavar="K",
        type=rows_or_share,
        help="precision and recall of the k rows of highest score: a number of rows, or if it has "
        "a point so many times the positive ones",
    )
    add_threads(parser)
    add_column_flags(parser)
    add_reader_flags(parser)
    add_json(parser)
    add_verbose(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure; returns the exit code."""
    if (args.model is None) == (args.predictions is None):
        raise UsageError("give either a MODEL or --predictions FILE")
    if args.model is not None and (args.kind or args.output):
        raise UsageError("--kind and --output go with --predictions; a model knows what it is")
    check_reader_flags(args, args.data)
    if format_of(args.data) == "table" and args.label is None:
        raise UsageError(f"{args.data} is a table; name the column of its labels with --label")
    left_out = 0
    if args.model is not None:
        model = load_for(args)
        kind = model_kind(model, args.model)
        table, answers, left_out = applied(
            model, kind, parts_of(args.data, args, kind, Alignment(model).names)
        )
        measured = measure_model(model, kind, table, answers, args.k)
    else:
        kind = next((kind for kind in KINDS if kind.name == args.kind), DEFAULT)
        table = read_table(args.data, args)
        check_numbers(table, kind)
        truth = whole_labels(table.y) if kind.task is not Task.VALUES else table.y
        answers = _answers(args, kind, table, truth)
        measured = measure(kind.task, truth, answers, qid=table.qid, k=args.k)
    if args.json:
        print_json(
            {
                "command": "evaluate",
                "kind": kind.name,
                "data": {"name": table.name, "rows": len(table.y)},
                "measures": measured.values,
                **(measured.facts or {}),
                "values_left_out": left_out,
            }
        )
    else:
        print_facts(evaluation_facts(measured))
    return ExitCode.OK


def measure_model(
    model: Any, kind: Kind, table: Table, answers: Answers, k: float | None = None
) -> Measured:
    """Measure the answers of a model; precision and recall at k also if it was trained for them."""
    if k is None and getattr(model, "measure", "") in ("precision_at_k", "recall_at_k"):
        from ..estimators.measure_svc import DEFAULT_K

        k = DEFAULT_K[model.measure] if model.k is None else model.k
    truth = table.y if kind.task is Task.VALUES else whole_labels(table.y)
    classes = getattr(model, "classes_", None)
    return measure(kind.task, truth, answers, qid=table.qid, classes=classes, k=k)


def _answers(args: argparse.Namespace, kind: Kind, table: Table, truth: np.ndarray) -> Answers:
    classes = np.unique(truth)
    form = args.output or default_form(kind, len(classes))
    check_form(kind, form)
    text = truth.dtype.kind not in "fiub"
    values = read_predictions(args.predictions, text=text)
    if text and (form == "labels" or (args.output is None and np.isin(values, classes).all())):
        form = "labels"
    elif text:
        values = read_predictions(args.predictions)
    if len(values) != len(table.y):
        raise CommandError(
            f"{args.predictions} has {len(values):,} predictions, {table.name} has "
            f"{len(table.y):,} rows"
        )
    return Answers(values, None) if form == "labels" else Answers(None, values)


def evaluation_facts(measured: Measured) -> dict[str, str]:
    """Measures for people."""
    facts: dict[str, str] = {}
    for name, value in measured.values.items():
        if name not in TITLES:
            continue
        text = format_measure(name, value)
        if name in ("accuracy", "token_accuracy") and measured.total:
            wrong = measured.total - measured.correct
            text += (
                f" ({measured.correct:,} correct, {wrong:,} incorrect, {measured.total:,} total)"
            )
        elif name == "precision" and measured.facts and "positive" in measured.facts:
            text += f" (of the class {measured.facts['positive']})"
        elif name in ("sequence_accuracy", "ndcg@10") and measured.facts:
            what = "sequences" if name == "sequence_accuracy" else "queries"
            text += f" ({measured.facts[what]:,} {what})"
        facts[TITLES[name]] = text
    others = measured.facts or {}
    if "f1_by_class" in others:
        facts["F1 by class"] = ", ".join(
            f"{label} {format_measure('f1', f1)}" for label, f1 in others["f1_by_class"].items()
        )
    if "rows_of_unknown_classes" in others:
        facts["unknown"] = f"{others['rows_of_unknown_classes']:,} rows of classes not trained on"
    return facts
