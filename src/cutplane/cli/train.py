"""Train a model on the rows of DATA and write it to MODEL. DATA is svmlight text (also
.gz, .bz2, .xz), a NumPy archive (.npz) or a data set on disk (.cut); cost: in a line
is the weight of that row. The last line of the report is the certificate: the most
that the model's objective can be above the optimum.

examples:
  cutplane train train.svm model                      two or more classes, linear
  cutplane train --C 10 --loss logistic train.svm model
  cutplane train --calibrate sigmoid train.svm model
  cutplane train --measure roc_auc train.svm model    trained for the ROC area
  cutplane train --ranking --C 0.1 train.svm model    queries by qid:
  cutplane train --ordinal train.svm model            grades, ratings
  cutplane train --kernel rbf --gamma 0.05 train.svm model
  cutplane train --regression --quantile 0.1,0.5,0.9 train.svm model
  cutplane train --multilabel train.svm model         several labels per row: 1,5,7 1:0.3
  cutplane train --chain train.svm model              tags of tokens, sentences by qid:
  cutplane train --chain --template words.template train.txt model   CoNLL columns
  cutplane train --time-limit 600 --checkpoint state train.svm model
  cutplane train --checkpoint state --resume train.svm model
  cutplane train --scheduler tcp://host:8786 train.cut model
  cutplane train --cv 5 train.svm model               cross-validate first
  cutplane train --report fit.html train.svm model    a page to look at
  cutplane train --json train.svm model               for programs
  zcat train.svm.gz | cutplane train - model
  cutplane train --ranking --help                     the parameters of another kind

Ctrl-C stops the fit and writes the best model so far; the exit code is 130. At
--max-iter or --time-limit the model is written as well, and the exit code is 3.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _interrupts
from ..reporting.line import format_percent, format_seconds, plural
from ..reporting.text import RUN_PARAMETERS, describe_certificate, print_facts, print_json
from ..result import SolveResult, Status
from . import inputs
from .conventions import conventions
from .errors import CommandError, ExitCode, UsageError
from .kinds import DEFAULT, Kind, Task, chosen
from .labels import classes_of, fit_labels
from .outputs import check_own_file, check_target, report_stream, save
from .parameters import (
    CALIBRATE_HELP,
    CALIBRATIONS,
    add_model_flags,
    defaults_of,
    has_parameter,
    parameters_given,
)
from .parser import JSON, Argument, Parser, add_arguments, count, positive_number

logger = logging.getLogger("cutplane")

FEW_ROWS_PER_QUERY = 1.5
CALIBRATION_FOLDS = 5  # the default of the estimators
LONGEST_VALUE = 60  # a report shows at most so many characters of a parameter


FLAGS = {
    "": (
        Argument("DATA", "File to train on; - is standard input."),
        Argument("MODEL", "File to write the model to; - is standard output."),
        Argument("--quiet", "Show no progress and no report."),
        Argument("--cv FOLDS", "First cross-validate with so many parts of the data, and show the "
                 "mean and the standard deviation of the measure over them.", count),
        Argument("--report FILE", "Also write an HTML page with the certificate, the convergence, "
                 "and the quality on DATA."),
        JSON,
    ),
    "checkpoints, to go on after a crash": (
        Argument("--checkpoint FILE", "Write the state of the fit to this file, repeatedly."),
        Argument("--checkpoint-every SECONDS", "Time between two checkpoints. (default: 60)",
                 positive_number, 60.0),
        Argument("--resume", "Go on from the checkpoint, if there is one."),
    ),
    "training on a Dask cluster": (
        Argument("--scheduler ADDRESS", "Train on the workers of this Dask scheduler, such as "
                 "tcp://host:8786. They must be able to read DATA.cut under the same path; rows of "
                 "other files are sent to them."),
        Argument("--scheduler-timeout SECONDS", "How long to wait for a worker or the scheduler. "
                 "(default: 60)", positive_number, 60.0),
    ),
    **inputs.READER_WITH_WIDTH,
}  # fmt: skip


def add_flags(parser: Parser, words: Sequence[str]) -> None:
    """Add the flags of the kind of model that the words ask for."""
    parser.usage = "%(prog)s [kind] [parameters] DATA MODEL"
    add_model_flags(parser, words)
    if chosen(words) is DEFAULT:  # for SVC it is a parameter
        add_arguments(parser, Argument("--calibrate", CALIBRATE_HELP, choices=CALIBRATIONS))


def run(args: argparse.Namespace) -> int:
    """Train; returns the exit code."""
    kind: Kind = args.kind
    parameters = _parameters(args, kind)
    inputs.check_reader_flags(args, args.data)
    check_target(args.model, args.data, binary=True)
    check_own_file("--report", args.report, args.data, args.model, args.checkpoint)
    check_own_file("--checkpoint", args.checkpoint, args.data, args.model)
    if args.report is not None and kind.task is Task.LABELS:
        raise UsageError("there is no --report on several labels per row; evaluate has measures")
    started = time.perf_counter()
    table = inputs.training_rows(args.data, args, kind.task)
    read_seconds = time.perf_counter() - started
    stream = report_stream(args.model)
    shown = not (args.quiet or args.json)
    if shown:
        print_facts(data_facts(table, kind), stream)
    note_queries(table, kind)
    validated = None
    if args.cv is not None:
        from .cross_validation import cross_validated

        plain = parameters | {"checkpoint": None} if "checkpoint" in parameters else parameters
        validated = cross_validated(make_model(kind, plain), kind, table, args.cv)
        if shown:
            print_facts({"folds": str(validated)}, stream)
    calibrate = getattr(args, "calibrate", parameters.get("calibrate"))
    if calibrate is not None:
        _check_calibration(table)
    done = fit(make_model(kind, parameters), kind, table, getattr(args, "calibrate", None))
    save(done.model.set_params(verbose=0), args.model)
    if args.report is not None:
        _write_report(done.model, kind, table, args.report)
    if args.json:
        print_json(
            {
                "command": "train",
                "kind": kind.name,
                "estimator": kind.estimator,
                "model": args.model,
                "data": {
                    "name": table.name,
                    "rows": table.rows,
                    "features": table.features,
                    "read_seconds": read_seconds,
                },
                "parameters": plain_parameters(done.model),
                "C": conventions(done.model, table),
                "cv": None if validated is None else validated.as_dict(),
                **done.as_dict(),
                "exit_code": int(done.code),
            },
            stream,
        )
    elif shown:
        print_facts(model_facts(done, kind, table, args.model), stream)
    return stream.code(done.tell("train"))


def _write_report(model: Any, kind: Kind, table: inputs.Table, target: str) -> None:
    """Write a page about the model and the rows that it was trained on."""
    from ..reporting.fit_report import answers_of, write_report

    rows = table if kind.on_disk else inputs.in_memory(table)
    numbers = kind.task in (Task.VALUES, Task.RANKING, Task.NOVELTY)
    y = rows.y if numbers else inputs.whole_labels(rows.y)
    weights = None if kind.task is Task.RANKING else rows.cost
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        answers = answers_of(model, model, rows.X, y, rows.qid, weights)
    write_report(
        model,
        answers,
        target,
        title=f"{kind.estimator} trained on {table.name}",
        note="These are the rows that the model was trained on: expect less on others.",
    )


def _parameters(args: argparse.Namespace, kind: Kind) -> dict[str, Any]:
    """The parameters of the estimator: those given, progress, checkpoint and cluster."""
    parameters = parameters_given(args) | {"verbose": 0 if args.quiet else 1}
    for flag in ("checkpoint", "scheduler"):
        if getattr(args, flag) is not None and getattr(args, "calibrate", None) is not None:
            raise UsageError(f"--calibrate fits parts of the data, without --{flag}: leave one out")
    if args.resume and args.checkpoint is None:
        raise UsageError("--resume needs --checkpoint FILE, from which to go on")
    for flag, parameter in (("checkpoint", "checkpoint"), ("scheduler", "executor")):
        if getattr(args, flag) is not None and not has_parameter(kind, parameter):
            raise UsageError(f"--{flag} is not available for {kind.estimator}")
    if args.checkpoint is not None:
        from .. import Checkpoint

        parameters["checkpoint"] = Checkpoint(
            args.checkpoint, every=args.checkpoint_every, resume=args.resume
        )
    if args.scheduler is not None:
        from .. import DaskCluster

        parameters["executor"] = DaskCluster(args.scheduler, timeout=args.scheduler_timeout)
    return parameters


def _check_calibration(table: inputs.Table) -> None:
    rows = int(np.unique(table.y, return_counts=True)[1].max())
    if rows < CALIBRATION_FOLDS:
        raise CommandError(
            f"{table.name}: --calibrate leaves out a fifth of every class in turn, for which no "
            f"class has enough rows: the largest has {rows}, and needs {CALIBRATION_FOLDS}"
        )


# -- fitting ------------------------------------------------------------------

# If problems end differently, the first of these endings counts.
GRAVEST_FIRST = (
    Status.INTERRUPTED,
    Status.TIME_LIMIT,
    Status.MAX_ITER,
    Status.NUMERICALLY_LIMITED,
    Status.STOPPED,
    Status.CONVERGED,
)


@dataclass(frozen=True)
class Fit:
    """A fitted model, the results of its problems, and the seconds that the fit took."""

    model: Any
    results: tuple[SolveResult, ...]
    seconds: float

    @property
    def status(self) -> Status:
        """How the fit ended."""
        found = {result.status for result in self.results}
        return next(status for status in GRAVEST_FIRST if status in found)

    @property
    def worst(self) -> SolveResult:
        """The problem with the largest relative gap among those that decide the status."""
        same = [result for result in self.results if result.status is self.status]
        return max(same, key=lambda result: result.certificate.relative_gap)

    def as_dict(self) -> dict[str, Any]:
        """Status and certificates in JSON's types."""
        certificate = self.worst.certificate
        names = ("primal", "dual", "gap", "relative_gap", "kind")
        return {
            "status": self.status.value,
            "n_iter": max(result.n_iter for result in self.results),
            "certificate": {name: getattr(certificate, name) for name in names},
            "problems": [result.as_dict() for result in self.results],
            "fit_seconds": self.seconds,
        }

    def tell(self, command: str) -> ExitCode:
        """Print a message on stderr if the tolerance was missed; returns the exit code."""
        gap = self.worst.certificate.relative_gap
        if self.status is not Status.CONVERGED:
            where = "without a certificate"
            if math.isfinite(gap):
                where = f"at a gap of {format_percent(gap)}"
                if getattr(self.model, "stopping", None) == "relative":
                    where += f", above the {format_percent(float(self.model.tol))} asked for"
            ended = f"the solver {self.status.reason} {where}; the model is the best so far"
            print(f"cutplane {command}: {ended}", file=sys.stderr)
        return self.code

    @property
    def code(self) -> ExitCode:
        """The exit code of the status."""
        codes = {Status.CONVERGED: ExitCode.OK, Status.INTERRUPTED: ExitCode.INTERRUPTED}
        return codes.get(self.status, ExitCode.ABOVE_TOLERANCE)


def make_model(kind: Kind, parameters: dict[str, Any]) -> Any:
    """The estimator of a kind."""
    import cutplane

    return getattr(cutplane, kind.estimator)(**parameters)


def fit(model: Any, kind: Kind, table: inputs.Table, calibrate: str | None = None) -> Fit:
    """Fit a model to a table. Warnings become messages. The result tells of a missed tolerance.

    ``calibrate`` is the way in which a LinearSVC gets probabilities.
    """
    from sklearn.exceptions import ConvergenceWarning

    _interrupts.check()  # reading the data has loaded compiled code
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if calibrate is None:
            _fit(model, kind.task, table if kind.on_disk else inputs.in_memory(table))
        else:
            model = _calibrated(model, table, calibrate)
    if table.names is not None:  # rows in memory have no names
        model.feature_names_in_ = np.array(table.names, dtype=object)
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning | DeprecationWarning):
            logger.warning("%s", warning.message)
    return Fit(model, tuple(model.results_), time.perf_counter() - started)


def _calibrated(model: Any, table: inputs.Table, calibrate: str) -> Any:
    """A LinearSVC with these parameters and probabilities."""
    from .. import LinearSVCCV

    given = model.get_params(deep=False)
    names = LinearSVCCV().get_params(deep=False)
    shared = {name: value for name, value in given.items() if name in names}
    search = LinearSVCCV(Cs=[model.C], calibrate=calibrate, **shared)
    rows = inputs.in_memory(table)
    search.fit(rows.X, inputs.whole_labels(rows.y), sample_weight=rows.cost)
    return search.best_estimator_


def _fit(model: Any, task: Task, table: inputs.Table) -> None:
    match task:
        case Task.SEQUENCES:
            sequences = inputs.chain_rows(table, table.y)
            model.fit(sequences.X, inputs.whole_labels(sequences.y), lengths=sequences.lengths)
        case Task.RANKING:
            one_query = np.zeros(table.rows, np.int64)
            qid = one_query if table.qid is None else table.qid
            model.fit(table.X, table.y, qid=qid, sample_weight=table.cost)
        case Task.LABELS:
            fit_labels(model, table)
        case Task.VALUES | Task.NOVELTY:
            model.fit(table.X, table.y, sample_weight=table.cost)
        case _:
            model.fit(table.X, inputs.whole_labels(table.y), sample_weight=table.cost)


# -- how it ended -------------------------------------------------------------


def certificate_line(done: Fit) -> str:
    """The certificate and the ending of a fit in one line."""
    worst = done.worst
    certificate = describe_certificate(worst.certificate)
    ending = f"{worst.status.reason} after {plural(worst.n_iter, 'iteration')}"
    if len(done.results) > 1:
        problems = f"{len(done.results)} problems"
        return (
            f"worst of {problems}: {certificate}; {ending}; all {problems} took "
            f"{format_seconds(done.seconds)}"
        )
    seconds = worst.timings.get("total", done.seconds)
    return f"{certificate}; {ending} and {format_seconds(seconds)}"


# -- what is said -------------------------------------------------------------


def data_facts(table: inputs.Table, kind: Kind) -> dict[str, str]:
    """Facts about the data, to print before the fit."""
    facts = {"data": f"{table.name}: {table.rows:,} rows, {table.features:,} features"}
    if table.cost is not None:
        facts["weights"] = f"cost: from {table.cost.min():g} to {table.cost.max():g}"
    if kind.task in (Task.CLASSES, Task.GRADES, Task.SEQUENCES):
        facts["labels"] = _labels(table.y)
    elif kind.task is Task.LABELS:
        each = sum(map(len, table.y)) / max(1, table.rows)
        facts["labels"] = f"{len(classes_of(table.y)):,} different ones, {each:.3g} per row"
    elif kind.task is not Task.NOVELTY:
        facts["targets"] = f"from {table.y.min():g} to {table.y.max():g}"
    if kind.task in (Task.RANKING, Task.SEQUENCES) and table.qid is not None:
        name = "queries" if kind.task is Task.RANKING else "sequences"
        facts[name] = f"{len(np.unique(table.qid)):,}"
    return facts


def _labels(y: np.ndarray) -> str:
    """How often each label occurs; if there are many, the most frequent ones."""
    labels, counts = np.unique(y, return_counts=True)
    pairs = list(zip(labels.tolist(), counts.tolist(), strict=True))
    if len(pairs) <= inputs.MOST_CLASSES:
        return inputs.label_counts(pairs)
    often = sorted(pairs, key=lambda pair: -pair[1])[: inputs.MOST_CLASSES]
    return f"{inputs.label_counts(often)} and {len(pairs) - inputs.MOST_CLASSES:,} others"


def note_queries(table: inputs.Table, kind: Kind) -> None:
    """Print a message if the queries are unusual."""
    if kind.task is not Task.RANKING:
        return
    if table.qid is None:
        logger.warning("%s: no line has a qid:, so all rows are ranked as one query", table.name)
        return
    queries = len(np.unique(table.qid))
    if 1 + np.count_nonzero(np.diff(table.qid)) > queries:
        logger.warning(
            "%s: rows of the same qid are not next to each other; they are taken together",
            table.name,
        )
    if table.rows < FEW_ROWS_PER_QUERY * queries:
        logger.warning(
            "%s: most queries have a single row; pairs are formed within queries only", table.name
        )


def plain_parameters(model: Any) -> dict[str, Any]:
    """The parameters of a model in JSON's types."""
    return {
        name: value if isinstance(value, str | int | float | bool | list | None) else str(value)
        for name, value in model.get_params(deep=False).items()
        if name not in RUN_PARAMETERS
    }


def shortened(value: Any) -> str:
    """A value as text in one line. Long ones, such as templates and bounds, are cut."""
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def model_facts(done: Fit, kind: Kind, table: inputs.Table, target: str) -> dict[str, str]:
    """Facts about the model, to print after the fit. The certificate comes last."""
    model, defaults = done.model, defaults_of(kind.estimator)
    settings = ", ".join(
        f"{name}={f'{value:g}' if isinstance(value, float) else shortened(value)}"
        for name, value in plain_parameters(model).items()
        if value is not None and name != "C"
        if value != defaults.get(name) or f"--{name}" in kind.flags
    )
    facts = {"model": f"{kind.estimator}{f' ({settings})' if settings else ''}"}
    if getattr(model, "n_idle_queries_", 0):
        facts["idle"] = f"{model.n_idle_queries_:,} queries have no two rows of different target"
    if hasattr(model, "support_"):
        facts["support"] = f"{len(model.support_):,} support vectors"
    scales = conventions(model, table)
    if scales:
        facts["C"] = ", ".join(f"{value:.6g} ({tool})" for tool, value in scales.items())
    if target != "-":
        facts["written"] = target
    facts["certificate"] = certificate_line(done)
    return facts
