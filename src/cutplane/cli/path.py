"""Train with several values of C, from the smallest to the largest, each fit from where
the one before ended. Measure every model on the rows of --validation, and write the
one that does best to MODEL.

examples:
  cutplane path --C 0.01,0.1,1,10 --validation dev.svm train.svm model
  cutplane path --C 0.1,1,10 --validation dev.svm --select f1 train.svm model
  cutplane path --ranking --C 0.001,0.01,0.1,1 --validation dev.svm train.svm model
  cutplane path --measure roc_auc --C 0.1,1,10 --validation dev.svm train.svm model
  cutplane path --C 0.1,1,10 --validation dev.svm --plot path.png train.svm model
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import _interrupts
from ..reporting.line import format_percent, format_seconds
from ..reporting.text import print_facts, print_json, print_table
from ..result import Status
from . import inputs, train
from .errors import CommandError, UsageError
from .evaluate import judge_model, measure_for
from .kinds import Kind
from .measures import MEASURES, format_measure, names_of
from .outputs import check_own_file, check_target, output_file, report_stream, save, uninterrupted
from .parameters import add_model_flags, has_parameter, parameters_given
from .parser import JSON, Argument, Parser, several_numbers
from .predict import applied
from .train import fit

PLOTS = (".png", ".pdf", ".svg")

FLAGS = {
    "": (
        Argument("DATA", "File to train on; - is standard input."),
        Argument("MODEL", "File to write the best model to; - is standard output."),
        Argument("--C C1,C2,...", "Values of C, separated by commas.", several_numbers,
                 required=True),
        Argument("--validation FILE", "Data on which the models are measured.", required=True),
        Argument("--select MEASURE", "The measure that decides, such as accuracy, f1, roc_auc, "
                 "ndcg@10, swapped_pairs or mae. (default: that of --measure, pinball for "
                 "quantiles, or the first that evaluate shows)"),
        Argument("--plot FILE", "Draw the measure over C: .png, .pdf or .svg."),
        Argument("--quiet", "Show no progress and no report."),
        JSON,
    ),
    **inputs.READER_WITH_WIDTH,
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One C of a path, and the measures of its model on the validation data."""

    C: float
    fit: train.Fit
    value: float | None  # the value of the measure that decides
    measures: dict[str, float | None]  # the values of all measures


def add_flags(parser: Parser, words: Sequence[str]) -> None:
    """Add the flags of the kind of model that the words ask for."""
    parser.usage = "%(prog)s [kind] --C C1,C2,... --validation FILE [parameters] DATA MODEL"
    add_model_flags(parser, words, without="C")


def run(args: argparse.Namespace) -> int:
    """Follow the path; returns the exit code."""
    kind: Kind = args.kind
    name = _criterion(args, kind)
    inputs.check_reader_flags(args, args.data, args.validation)
    check_target(args.model, args.data, args.validation, binary=True)
    if args.plot is not None and Path(args.plot).suffix.lower() not in PLOTS:
        raise UsageError(f"--plot {args.plot}: the name must end in {', '.join(PLOTS)}")
    check_own_file("--plot", args.plot, args.data, args.validation, args.model)
    table = inputs.training_rows(args.data, args, kind.task)
    validation = inputs.in_memory(inputs.read_rows(args.validation, args, kind.task))
    stream = report_stream(args.model)
    shown = not (args.quiet or args.json)
    if shown:
        facts = train.data_facts(table, kind)
        facts["validation"] = f"{validation.name}: {validation.rows:,} rows"
        print_facts(facts, stream)
    train.note_queries(table, kind)
    steps = follow(args, kind, table, validation, name)
    best = pick(steps, name)
    with uninterrupted():
        save(best.fit.model, args.model)
        if args.plot is not None:
            _draw(args.plot, steps, best, name)
    if args.json:
        print_json(_json(args, kind, steps, best, name), stream)
    elif shown:
        _print_steps(steps, best, name, stream)
        facts = {"best": f"C = {best.C:g}, {name} {format_measure(name, best.value)}"}
        if args.model != "-":
            facts["written"] = args.model
        facts["certificate"] = train.certificate_line(best.fit)
        print_facts(facts, stream)
    ended = steps[-1].fit if steps[-1].fit.status is Status.INTERRUPTED else best.fit
    return stream.code(ended.tell("path"))


def _criterion(args: argparse.Namespace, kind: Kind) -> str:
    """The measure by which the best model is picked."""
    if not has_parameter(kind, "C"):
        raise UsageError(f"{kind.estimator} has no C, and so no path")
    names = names_of(kind.task)
    if args.select is None:  # the measure that the model is trained for, if evaluate has it
        return measure_for(kind, parameters_given(args))
    if args.select not in names:
        raise UsageError(
            f"{args.select!r} is no measure of this kind of model; it has {', '.join(names)}"
        )
    return str(args.select)


def follow(
    args: argparse.Namespace, kind: Kind, table: inputs.Table, validation: inputs.Table, name: str
) -> list[Step]:
    """Fit with one C after the other; an interrupt ends the path early."""
    parameters = parameters_given(args)
    if has_parameter(kind, "warm_start"):
        parameters["warm_start"] = True
    parameters["verbose"] = 0 if args.quiet else 1
    model = train.make_model(kind, parameters)
    steps: list[Step] = []
    for C in args.C:
        try:
            done = fit(model.set_params(C=C), kind, table)
        except KeyboardInterrupt:  # outside the solver: the finished models are kept
            if not steps:
                raise
            _interrupts.handled()
            last = steps[-1]
            print(f"cutplane path: interrupted before C = {C:g}", file=sys.stderr)
            results = tuple(replace(r, status=Status.INTERRUPTED) for r in last.fit.results)
            steps[-1] = replace(last, fit=replace(last.fit, results=results))
            return steps
        kept = train.Fit(_snapshot(model), done.results, done.seconds)
        columns, answers, _ = applied(kept.model, kind, [validation])
        values = judge_model(kept.model, kind.task, columns, answers).measures()
        if name not in values:
            raise CommandError(f"{validation.name}: {name} is not defined for these labels")
        steps.append(Step(C, kept, values[name], values))
        if done.status is Status.INTERRUPTED:
            break
    return steps


def _snapshot(model: Any) -> Any:
    """A copy of the model as it is now. The next fit replaces attributes and changes none."""
    kept = copy.copy(model)  # without the data of a warm start, which are large
    kept.verbose = 0
    if hasattr(kept, "warm_start"):
        kept.warm_start = False
    return kept


def pick(steps: list[Step], name: str) -> Step:
    """The best step. Among equal ones it is the one with the smallest C."""
    sign = -1.0 if MEASURES[name].smaller_is_better else 1.0
    defined = [step for step in steps if step.value is not None]
    if not defined:
        raise CommandError(f"{name} is not defined on the validation data")
    return max(defined, key=lambda step: sign * (step.value or 0.0))  # the first of equals


# -- what is shown ------------------------------------------------------------


def _print_steps(steps: list[Step], best: Step, name: str, stream: Any) -> None:
    rows = [
        [
            f"{step.C:g}",
            f"{step.fit.worst.certificate.primal:.6g}",
            format_percent(step.fit.worst.certificate.relative_gap),
            f"{max(result.n_iter for result in step.fit.results)}",
            format_seconds(step.fit.seconds),
            format_measure(name, step.value) + (" *" if step is best else "  "),
        ]
        for step in steps
    ]
    print_table(["C", "objective", "gap", "iterations", "time", name + "  "], rows, stream)


def _json(
    args: argparse.Namespace, kind: Kind, steps: list[Step], best: Step, name: str
) -> dict[str, Any]:
    return {
        "command": "path",
        "kind": kind.name,
        "estimator": kind.estimator,
        "model": args.model,
        "select": name,
        "best": {"C": best.C, "value": best.value},
        "parameters": train.plain_parameters(best.fit.model),
        "path": [{"C": s.C, "measures": s.measures, **s.fit.as_dict()} for s in steps],
    }


def _draw(target: str, steps: list[Step], best: Step, name: str) -> None:
    """Plot the measure over C."""
    from ..reporting.charts import panel
    from ..reporting.plots import BLUE, ORANGE

    figure, ax = panel("C", f"{name} on the validation data")
    values = [float("nan") if step.value is None else step.value for step in steps]
    ax.semilogx([step.C for step in steps], values, "o-", color=BLUE)
    mark: dict[str, Any] = {"color": ORANGE, "markersize": 9, "label": f"best: C = {best.C:g}"}
    ax.plot(best.C, best.value or 0.0, "o", **mark)
    ax.legend(frameon=False)
    with output_file(target) as file:
        figure.savefig(file, format=Path(target).suffix.lstrip(".").lower(), dpi=150)
