"""``cutplane predict``: what a model says about the rows of a file, one line each."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .answers import FORMS, Answers, answer, as_lines, check_form, default_form, model_kind
from .common import CommandError, ExitCode, UsageError, add_verbose
from .fitting import check_numbers
from .flags import threads
from .inputs import (
    Table,
    add_column_flags,
    add_reader_flags,
    check_reader_flags,
    in_memory,
    joined,
    labelled,
    match_names,
    read_chunks,
    some_names,
)
from .kinds import Kind, Task
from .streams import check_target, text_output

logger = logging.getLogger("cutplane")

DESCRIPTION = """\
Apply a model to the rows of a file and write one line per row: a score, with eight
digits, for two classes, rankings, numbers and novelties; a label for more classes,
grades and tags. Columns with names (tables, .cut) are matched with those of the model;
of columns without names those that the model has not seen are left out, and counted.
"""

EPILOG = """\
examples:
  cutplane predict test.svm model               scores to standard output
  cutplane predict test.svm model out.txt       ... or to a file
  cutplane predict --output labels test.svm model out.txt
  cutplane predict houses.csv model             a table: .csv, .parquet, .arrow
  cutplane predict --label price houses.csv model out.txt
  zcat test.svm.gz | cutplane predict - model | head
"""


def add_parser(subparsers: Any) -> None:
    """Offer the command to argparse."""
    parser = subparsers.add_parser(
        "predict",
        help="apply a model to a file",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("data", metavar="DATA", help="file with the rows; - is standard input")
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    parser.add_argument(
        "out", metavar="OUT", nargs="?", default="-", help="file to write (default: stdout)"
    )
    parser.add_argument(
        "--output",
        choices=FORMS,
        help="labels, or scores: one per row, or one per class and row where there are more than "
        "two classes",
    )
    add_threads(parser)
    add_column_flags(parser)
    add_reader_flags(parser)
    add_verbose(parser)
    parser.set_defaults(run=run)


def add_threads(parser: Any) -> None:
    """Offer a number of threads to a command that applies a model."""
    parser.add_argument("--threads", metavar="N", type=threads, help="threads (default: all cores)")


def run(args: argparse.Namespace) -> int:
    """Predict; returns the exit code."""
    check_reader_flags(args, args.data)
    check_target(args.out, args.data, args.model)
    model = load_for(args)
    kind = model_kind(model, args.model)
    form = args.output or default_form(kind, len(getattr(model, "classes_", ())))
    check_form(kind, form)
    alignment = Alignment(model)
    with text_output(args.out) as file:
        for table in parts_of(args.data, args, kind, alignment.names):
            values = answer(model, kind, alignment.apply(table)).get(form)
            assert values is not None
            file.write("".join(f"{line}\n" for line in as_lines(values, form)).encode())
    alignment.tell(args.data)
    return ExitCode.OK


def load_for(args: argparse.Namespace) -> Any:
    """The model of a command, for as many threads as it asks for."""
    from .. import load_model

    if args.data == args.model == "-":
        raise UsageError("either the data or the model can come from standard input, not both")
    model = load_model(args.model)
    if "n_jobs" in model.get_params(deep=False):
        model.set_params(n_jobs=args.threads)
    return model


class Alignment:
    """Gives tables the columns of a model: by name, where both have names, otherwise in order.

    Parameters
    ----------
    model : estimator

    Attributes
    ----------
    left_out : int
        Values of features that the model does not have.
    features : int
    names : tuple of str or None
        Of the model's features.
    widest : int
        Columns of the data.
    """

    def __init__(self, model: Any) -> None:
        self.features = int(model.n_features_in_)
        names = getattr(model, "feature_names_in_", None)
        self.names = None if names is None else tuple(map(str, names))
        self.left_out = 0
        self.widest = 0

    def apply(self, table: Table) -> Table:
        """The table with the model's columns."""
        if table.names is not None and self.names is not None:
            order = match_names(table.names, self.names, table.name)
            table = in_memory(table)
            if order != list(range(self.features)):
                table = replace(table, X=table.X[:, order], names=self.names)
        elif table.names is not None and table.features != self.features:
            raise CommandError(
                f"{table.name} has {table.features:,} columns of features, "
                f"{some_names(table.names)}, but the model {self.features:,}"
            )
        elif self.names is not None and not self.widest:
            logger.warning(
                "%s has no names of features; its columns are taken in the order of the model's",
                table.name,
            )
        self.widest = max(self.widest, table.features)
        table, left_out = table.aligned(self.features)
        self.left_out += left_out
        return table

    def tell(self, name: str) -> None:
        """Say what was left out, or filled up."""
        if self.left_out:
            logger.warning(
                "%s: %d values of features beyond the model's %d are left out",
                "<stdin>" if name == "-" else name,
                self.left_out,
                self.features,
            )
        elif self.widest < self.features:
            logger.info(
                "%s has %d features, the model %d: the others are 0",
                name,
                self.widest,
                self.features,
            )


def applied(model: Any, kind: Kind, tables: Iterable[Table]) -> tuple[Table, Answers, int]:
    """The answers of a model for all parts of a file.

    Returns
    -------
    columns : Table
        Labels and queries of all rows, without the features.
    answers : Answers
    left_out : int
        Values of features that the model does not have.
    """
    alignment = Alignment(model)
    parts, answers = [], []
    for table in tables:
        check_numbers(labelled(table), kind)
        answers.append(answer(model, kind, alignment.apply(table)))
        parts.append(replace(table, X=None))
    alignment.tell(parts[-1].name)
    columns = replace(
        parts[-1],
        y=np.concatenate([part.y for part in parts]),
        qid=_joined([part.qid for part in parts]),
    )
    together = Answers(
        _joined([part.labels for part in answers]), _joined([part.scores for part in answers])
    )
    return columns, together, alignment.left_out


def _joined(parts: list[np.ndarray | None]) -> np.ndarray | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if len(present) == len(parts) else None


def parts_of(
    name: str, args: argparse.Namespace, kind: Kind, features: Sequence[str] | None
) -> Iterable[Table]:
    """A file in the parts in which a model, with such names of features, can be applied to it."""
    parts = read_chunks(name, args, features)
    # A sequence may be spread over the file; other rows stand for themselves.
    return [joined(parts)] if kind.task is Task.SEQUENCES else parts
