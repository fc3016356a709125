"""``cutplane path``: several C, each from where the one before ended; the best is kept."""

from __future__ import annotations

import argparse
import copy
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import _interrupts
from ..report import print_table
from ..report.line import format_percent, format_seconds
from ..report.text import print_facts, print_json
from ..result import Status
from .common import CommandError, UsageError, add_json, add_verbose, positive_number, replacing
from .evaluate import measure_model
from .fitting import Fit, certificate_line, check_numbers, fit, make_model
from .flags import add_model_flags, elsewhere, parameters_given
from .inputs import Table, add_reader_flags, check_reader_flags, in_memory, read_table
from .kinds import Kind, Task
from .measures import FIRST_CHOICE, NAMES, better, check_name, format_measure
from .parser import Parser
from .predict import applied
from .signatures import parameters_of
from .streams import check_target, report_stream, save
from .train import data_facts, note_queries, plain_parameters, tell, uninterrupted

DESCRIPTION = """\
Train with several C, from the smallest to the largest, each from where the one before
ended; measure every model on the validation file, and write the one that does best.
"""

EPILOG = """\
examples:
  cutplane path --C 0.01,0.1,1,10 --validation dev.svm train.svm model
  cutplane path --C 1,10,100 --validation dev.svm --select f1 train.svm model
  cutplane path --ranking --C 1,10,100,1000 --validation dev.svm train.svm model
  cutplane path --measure roc_auc --C 10,1000 --validation dev.svm train.svm model
  cutplane path --C 0.1,1,10 --validation dev.svm --plot path.png train.svm model
"""


@dataclass(frozen=True)
class Step:
    """One C of a path.

    Attributes
    ----------
    C : float
    fit : Fit
    value : float or None
        The measure on the validation data.
    measures : dict of str to float or None
        All of them.
    """

    C: float
    fit: Fit
    value: float | None
    measures: dict[str, float | None]


def several_numbers(text: str) -> list[float]:
    """For argparse: numbers above 0, separated by commas; sorted, each once."""
    return sorted({positive_number(part) for part in text.split(",")})


def add_parser(subparsers: Any) -> None:
    """Offer the command to argparse."""
    parser = subparsers.add_parser(
        "path",
        help="fit with several C, and keep the best by a validation file",
        description=DESCRIPTION,
        epilog=EPILOG,
        prepare=_add_flags,
        hint=elsewhere,
        usage="%(prog)s [kind] --C C1,C2,... --validation FILE [parameters] DATA MODEL",
    )
    parser.add_argument("data", metavar="DATA", help="file to train on; - is standard input")
    parser.add_argument("model", metavar="MODEL", help="file for the best model; - is stdout")
    parser.add_argument(
        "--C",
        metavar="C1,C2,...",
        dest="several_C",
        type=several_numbers,
        required=True,
        help="values of C, separated by commas",
    )
    parser.add_argument(
        "--validation", metavar="FILE", required=True, help="data that decide which one is best"
    )
    parser.add_argument(
        "--select",
        metavar="MEASURE",
        help="by what: accuracy, f1, roc_auc, ndcg@10, swapped_pairs, mae, ...; any measure that "
        "evaluate shows (default: that of --measure, or the first that evaluate shows)",
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the path: .png, .pdf or .svg")
    parser.add_argument("--quiet", action="store_true", help="no progress, no report")
    add_json(parser)
    add_verbose(parser)
    parser.set_defaults(run=run)


def _add_flags(parser: Parser, arguments: list[str]) -> None:
    add_model_flags(parser, arguments, path=True)
    add_reader_flags(parser, width=True)


def run(args: argparse.Namespace) -> int:
    """Follow the path; returns the exit code."""
    kind: Kind = args.kind
    name = _criterion(args, kind)
    check_reader_flags(args, args.data, args.validation)
    check_target(args.model, args.data, args.validation, binary=True)
    if args.plot is not None:
        check_target(args.plot, args.data, args.validation)
    table = read_table(args.data, args)
    check_numbers(table, kind)
    validation = in_memory(read_table(args.validation, args))
    stream = report_stream(args.model)
    shown = not (args.quiet or args.json)
    if shown:
        facts = data_facts(table, kind)
        facts["validation"] = f"{validation.name}: {validation.rows:,} rows"
        print_facts(facts, stream)
    note_queries(table, kind)
    steps = follow(args, kind, table, validation, name)
    best = pick(steps, name)
    with uninterrupted():
        save(best.fit.model, args.model)
        if args.plot is not None:
            draw(args.plot, steps, best, name)
    if args.json:
        print_json(_json(args, kind, steps, best, name), stream)
    elif shown:
        _print_steps(steps, best, name, stream)
        facts = {"best": f"C = {best.C:g}, {name} {format_measure(name, best.value)}"}
        if args.model != "-":
            facts["written"] = args.model
        facts["certificate"] = certificate_line(best.fit)
        print_facts(facts, stream)
    ended = steps[-1].fit if steps[-1].fit.status is Status.INTERRUPTED else best.fit
    return stream.code(tell(args.command, ended, kind, "the model is the best so far"))


def _criterion(args: argparse.Namespace, kind: Kind) -> str:
    if "C" not in {p.name for p in parameters_of(kind.estimator)}:
        raise UsageError(f"{kind.estimator} has no C, and so no path")
    if args.select is not None:
        return check_name(kind.task, args.select)
    measure = parameters_given(args).get("measure")
    if kind.task is Task.CLASSES and measure is not None:
        if measure not in NAMES[kind.task]:
            names = ", ".join(NAMES[kind.task])
            raise UsageError(f"a path cannot choose by {measure}; give --select, one of {names}")
        return str(measure)
    return FIRST_CHOICE[kind.task]


def follow(
    args: argparse.Namespace, kind: Kind, table: Table, validation: Table, name: str
) -> list[Step]:
    """Fit with one C after the other; an interrupt ends the path early."""
    parameters = parameters_given(args)
    if "warm_start" in {p.name for p in parameters_of(kind.estimator)}:
        parameters["warm_start"] = True
    parameters["verbose"] = 0 if args.quiet else 1
    model = make_model(kind, parameters)
    steps: list[Step] = []
    for C in args.several_C:
        try:
            done = fit(model.set_params(C=C), kind, table)
        except KeyboardInterrupt:  # outside the solver: what is done is kept
            if not steps:
                raise
            _interrupts.settled()
            last = steps[-1]
            print(f"cutplane path: interrupted before C = {C:g}", file=sys.stderr)
            steps[-1] = Step(last.C, _as_interrupted(last.fit), last.value, last.measures)
            return steps
        kept = Fit(_snapshot(model), done.results, done.seconds)
        columns, answers, _ = applied(kept.model, kind, [validation])
        values = measure_model(kept.model, kind, columns, answers).values
        if name not in values:
            raise CommandError(f"{validation.name}: {name} is not defined for these labels")
        steps.append(Step(C, kept, values[name], values))
        if done.status is Status.INTERRUPTED:
            break
    return steps


def _snapshot(model: Any) -> Any:
    """The model as it is now: the next fit replaces its attributes, it does not change them."""
    kept = copy.copy(model)
    for memory in ("_memories", "_memory"):  # large, and bound to the data
        kept.__dict__.pop(memory, None)
    kept.verbose = 0
    if hasattr(kept, "warm_start"):
        kept.warm_start = False
    return kept


def _as_interrupted(done: Fit) -> Fit:
    results = tuple(replace(result, status=Status.INTERRUPTED) for result in done.results)
    return replace(done, results=results)


def pick(steps: list[Step], name: str) -> Step:
    """The best step; of equals the one with the smallest C."""
    best = None
    for step in steps:
        if step.value is not None and (
            best is None or better(name, step.value, best.value)  # type: ignore[arg-type]
        ):
            best = step
    if best is None:
        raise CommandError(f"{name} is not defined on the validation data")
    return best


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
        "parameters": plain_parameters(best.fit.model),
        "path": [{"C": s.C, "measures": s.measures, **s.fit.as_dict()} for s in steps],
    }


def draw(target: str, steps: list[Step], best: Step, name: str) -> None:
    """Plot the measure over C."""
    from ..report.path_plot import path_figure

    suffix = Path(target).suffix.lstrip(".").lower() or "png"
    values = [float("nan") if step.value is None else step.value for step in steps]
    figure = path_figure([step.C for step in steps], values, best.C, name)
    try:
        with replacing(Path(target)) as file:
            figure.savefig(file, format=suffix, dpi=150)
    except OSError as error:
        raise CommandError(f"cannot write {target}: {error.strerror or error}") from None
