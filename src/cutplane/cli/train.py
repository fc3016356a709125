"""``cutplane train``: fit a model to a file, write it, and say how far it is from the optimum."""

from __future__ import annotations

import argparse
import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..report.text import print_facts, print_json
from .answers import label_text
from .common import UsageError, add_json, add_verbose, positive_number
from .conventions import conventions
from .fitting import Fit, certificate_line, check_numbers, fit, make_model, tell_ending
from .flags import add_model_flags, default_of, elsewhere, parameters_given
from .inputs import Table, add_reader_flags, check_reader_flags, read_table
from .kinds import Kind, Task
from .parser import Parser
from .signatures import parameters_of
from .streams import check_target, report_stream, save

logger = logging.getLogger("cutplane")

MOST_CLASSES = 8  # listed by name
FEW_ROWS_PER_QUERY = 1.5

DESCRIPTION = """\
Train a model on svmlight text (also .gz, .bz2, .xz), a NumPy archive (.npz) or a
data set on disk (.cut), and write it to a file. By default a linear SVM for the
classes in the file; cost: in a line is a factor on C. The last line is the
certificate: how far from the optimum the model is, at most.
"""

EPILOG = """\
examples:
  cutplane train train.svm model                      two or more classes, linear
  cutplane train --C 10 --loss logistic train.svm model
  cutplane train --measure roc_auc train.svm model    trained for the ROC area
  cutplane train --ranking --C 100 train.svm model    queries by qid:
  cutplane train --ordinal train.svm model            grades, ratings
  cutplane train --kernel rbf --gamma 0.05 train.svm model
  cutplane train --chain train.svm model              tags of tokens, sentences by qid:
  cutplane train --time-limit 600 --checkpoint state train.svm model
  cutplane train --checkpoint state --resume train.svm model
  cutplane train --scheduler tcp://host:8786 train.cut model
  cutplane train --json train.svm model               for programs
  zcat train.svm.gz | cutplane train - model
  cutplane train --ranking --help                     the parameters of another kind

Ctrl-C stops the fit and keeps the best model so far (exit code 130). At max-iter
or time-limit the model is written as well, and the exit code is 3.
"""


def add_parser(subparsers: Any) -> None:
    """Offer the command to argparse."""
    parser = subparsers.add_parser(
        "train",
        help="fit a model to a file",
        description=DESCRIPTION,
        epilog=EPILOG,
        prepare=_add_flags,
        hint=elsewhere,
        usage="%(prog)s [kind] [parameters] DATA MODEL",
    )
    parser.add_argument("data", metavar="DATA", help="file to train on; - is standard input")
    parser.add_argument("model", metavar="MODEL", help="file for the model; - is standard output")
    parser.add_argument("--quiet", action="store_true", help="no progress, no report")
    add_json(parser)
    add_verbose(parser)
    parser.set_defaults(run=run)


def _add_flags(parser: Parser, arguments: list[str]) -> None:
    """What depends on the kind, and what the help shows behind it."""
    add_model_flags(parser, arguments)
    group = parser.add_argument_group("checkpoints")
    group.add_argument("--checkpoint", metavar="FILE", help="keep the state of the fit here")
    group.add_argument(
        "--checkpoint-every",
        metavar="SECONDS",
        type=positive_number,
        default=60.0,
        help="how often to write it (default: 60)",
    )
    group.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint, if there is one"
    )
    group = parser.add_argument_group("a Dask cluster")
    group.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="train on the workers of this Dask scheduler, such as tcp://host:8786; DATA.cut must "
        "be readable by them under the same path, rows from other files are sent to them",
    )
    group.add_argument(
        "--scheduler-timeout",
        metavar="SECONDS",
        type=positive_number,
        default=60.0,
        help="how long to wait for a worker or the scheduler (default: 60)",
    )
    add_reader_flags(parser, width=True)


def run(args: argparse.Namespace) -> int:
    """Train; returns the exit code."""
    kind: Kind = args.kind
    parameters = fit_parameters(args, kind)
    check_reader_flags(args, args.data)
    check_target(args.model, args.data, binary=True)
    started = time.perf_counter()
    table = read_table(args.data, args)
    read_seconds = time.perf_counter() - started
    check_numbers(table, kind)
    stream = report_stream(args.model)
    shown = not (args.quiet or args.json)
    if shown:
        print_facts(data_facts(table, kind), stream)
    note_queries(table, kind)
    done = fit(make_model(kind, parameters), kind, table)
    with uninterrupted():  # what has been won is not lost to impatience
        save(done.model.set_params(verbose=0), args.model)
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
                **done.as_dict(),
                "exit_code": int(done.code),
            },
            stream,
        )
    elif shown:
        print_facts(model_facts(done, kind, table, args.model), stream)
    return stream.code(tell(args.command, done, kind, "the model is the best so far"))


# -- parameters ---------------------------------------------------------------


def fit_parameters(args: argparse.Namespace, kind: Kind) -> dict[str, Any]:
    """The parameters of the estimator: those given, progress, and the checkpoint."""
    parameters = parameters_given(args)
    parameters["verbose"] = 0 if args.quiet else 1
    if args.checkpoint is not None or args.resume:
        parameters["checkpoint"] = _checkpoint(args, kind)
    if args.scheduler is not None:
        parameters["executor"] = _cluster(args, kind)
    return parameters


def _cluster(args: argparse.Namespace, kind: Kind) -> Any:
    if "executor" not in {p.name for p in parameters_of(kind.estimator)}:
        raise UsageError(f"--scheduler is not available for {kind.estimator}")
    from .. import DaskCluster

    return DaskCluster(args.scheduler, timeout=args.scheduler_timeout)


def _checkpoint(args: argparse.Namespace, kind: Kind) -> Any:
    if args.checkpoint is None:
        raise UsageError("--resume needs --checkpoint FILE, from which to go on")
    if "checkpoint" not in {p.name for p in parameters_of(kind.estimator)}:
        raise UsageError(f"--checkpoint is not available for {kind.estimator}")
    from .. import Checkpoint

    check_target(args.checkpoint, args.data, args.model)
    return Checkpoint(args.checkpoint, every=args.checkpoint_every, resume=args.resume)


def plain_parameters(model: Any) -> dict[str, Any]:
    """The parameters of a model in JSON's types."""
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in model.get_params(deep=False).items()
        if name not in ("callback", "verbose", "warm_start", "checkpoint", "executor")
    }


def tell(command: str, done: Fit, kind: Kind, kept: str) -> int:
    """Say that the tolerance was missed, if it was; returns the exit code."""
    stopping = getattr(done.model, "stopping", None)
    asked = float(done.model.tol) if stopping == "relative" else None
    gap = done.worst.certificate.relative_gap
    return tell_ending(command, done.status, gap, asked=asked, kept=kept)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back while the block runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# -- what is said -------------------------------------------------------------


def data_facts(table: Table, kind: Kind) -> dict[str, str]:
    """What is known before the fit."""
    facts = {"data": f"{table.name}: {table.rows:,} rows, {table.features:,} features"}
    if table.cost is not None:
        facts["weights"] = f"cost: from {table.cost.min():g} to {table.cost.max():g}"
    if kind.task in (Task.CLASSES, Task.GRADES, Task.SEQUENCES):
        facts["labels"] = label_counts(table.y)
    elif kind.task is not Task.NOVELTY:
        facts["targets"] = f"from {table.y.min():g} to {table.y.max():g}"
    if kind.task in (Task.RANKING, Task.SEQUENCES) and table.qid is not None:
        name = "queries" if kind.task is Task.RANKING else "sequences"
        facts[name] = f"{len(np.unique(table.qid)):,}"
    return facts


def label_counts(y: np.ndarray) -> str:
    """How often each label occurs; of many the most frequent."""
    labels, counts = np.unique(y, return_counts=True)
    order = np.arange(len(labels))
    if len(labels) > MOST_CLASSES:
        order = np.argsort(-counts, kind="stable")[:MOST_CLASSES]
    named = [f"{label_text(labels[k].item())} ({counts[k]:,})" for k in order]
    rest = len(labels) - len(named)
    return ", ".join(named) + (f" and {rest:,} others" if rest else "")


def note_queries(table: Table, kind: Kind) -> None:
    """Say what is unusual about the queries."""
    if kind.task is not Task.RANKING or table.qid is None:  # the estimator warns of none
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


def model_facts(done: Fit, kind: Kind, table: Table, target: str) -> dict[str, str]:
    """What is known after the fit; the certificate comes last."""
    model = done.model
    given = {
        name: value
        for name, value in plain_parameters(model).items()
        if value is not None and (value != default_of(kind, name) or name == kind.choice)
    }
    settings = ", ".join(f"{name}={_brief(value)}" for name, value in given.items() if name != "C")
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


def _brief(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
