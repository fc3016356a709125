"""Apply a model to the rows of DATA and write one line per row. It is a score, with eight
digits, for two classes, rankings, numbers and novelties; it is a label for more classes,
grades and tags. With a model that has a template (CoNLL) the lines of DATA are written
again, with the tag as one more column. Columns that have names (tables, .cut) are matched
with those of the model. Columns without names are taken in order; features that the model
has not seen are left out, and a message counts them.

examples:
  cutplane predict test.svm model               scores to standard output
  cutplane predict test.svm model out.txt       scores to a file
  cutplane predict --output labels test.svm model out.txt
  cutplane predict --output probabilities test.svm model out.txt
  cutplane predict houses.csv model             a table: .csv, .parquet, .arrow
  cutplane predict --label price houses.csv model out.txt
  cutplane predict test.txt tagger tagged.txt   CoNLL columns, with --template trained
  zcat test.svm.gz | cutplane predict - model | head
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..reporting.line import plural
from . import inputs
from .errors import CommandError, ExitCode, UsageError
from .kinds import KINDS, Kind, Task, kind_of
from .labels import labels_text, predicted_labels, read_labels
from .outputs import check_target, output_file
from .parameters import defaults_of
from .parser import Argument, threads

logger = logging.getLogger("cutplane")

FORMS = ("labels", "scores")
PROBABILITIES = "probabilities"


THREADS = Argument("--threads N", "How many threads to use. (default: all cores)", threads)
FLAGS = {
    "": (
        Argument("DATA", "File with the rows; - is standard input."),
        Argument("MODEL", "File with the model."),
        Argument("OUT?", "File to write to. (default: standard output)", default="-"),
        Argument("--output", "Write labels, scores, or probabilities of the classes. Scores of "
                 "more than two classes, and probabilities, are one column per class, in the order "
                 "of the labels. Probabilities are for models trained with --calibrate, or with "
                 "--loss logistic. (default: see above)", choices=(*FORMS, PROBABILITIES)),
        THREADS,
    ),
    **inputs.COLUMNS,
    **inputs.READER,
}  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Predict; returns the exit code."""
    inputs.check_reader_flags(args, args.data)
    check_target(args.out, args.data, args.model)
    model, kind = light_model(args) or load_for(args)
    form = args.output or default_form(kind.task, len(getattr(model, "classes_", ())))
    check_form(kind.task, form)
    if form == PROBABILITIES and not hasattr(model, "predict_proba"):
        raise UsageError(
            f"{args.model} holds a {type(model).__name__} without probabilities; train it with "
            "--calibrate sigmoid, or with --loss logistic"
        )
    if getattr(model, "template", None) is not None:
        _write_tagged(args.data, model, args.out, tags_only=args.output is not None)
        return ExitCode.OK
    alignment = Alignment(model)
    with output_file(args.out) as file:
        for table in parts_of(args.data, args, kind, model):
            rows = alignment.apply(table)
            values = answer(model, kind, rows, form).get(form)
            assert values is not None
            file.write("".join(f"{line}\n" for line in answer_lines(values, form)).encode())
    alignment.tell(args.data)
    return ExitCode.OK


def _write_tagged(name: str, model: Any, target: str, *, tags_only: bool = False) -> None:
    """Write a file with one more column, the tags that a model predicts, or only the tags."""
    from ..structured.conll import read_sentences
    from ..structured.named import Template

    found = read_sentences(name)
    needed = Template(model.template).columns
    found.check_columns(needed, f"the template of the model needs {needed}")
    tags = model.predict(found.tokens)
    lines = [str(tag) for some in tags for tag in some] if tags_only else found.tagged(tags)
    with output_file(target) as file:
        file.write("\n".join(lines).rstrip("\n").encode() + b"\n")


def light_model(args: argparse.Namespace) -> tuple[Any, Kind] | None:
    """A linear model without its estimator, which loads faster; None if the estimator is needed."""
    plain = (
        getattr(args, "output", None) != PROBABILITIES and inputs.format_of(args.data) == "svmlight"
    )
    if not plain or args.model == "-" or _is_svmlight_model(args.model):
        return None
    from ..models.scorer import read_scorer

    scorer = read_scorer(args.model, defaults_of)
    if scorer is None:
        return None
    scorer.n_jobs = args.threads
    tasks = (Task.CLASSES, Task.VALUES, Task.RANKING)
    kinds = (kind for kind in KINDS if kind.estimator == scorer.estimator and kind.task in tasks)
    return scorer, next(kinds)


def load_for(args: argparse.Namespace) -> tuple[Any, Kind]:
    """The model of a command, for as many threads as it asks for, and its kind."""
    if args.data == args.model == "-":
        raise UsageError("either the data or the model can come from standard input, not both")
    try:
        model, kind = load_any(args.model)
    except ValueError:
        if args.model != "-" and inputs.is_model(args.data) and not inputs.is_model(args.model):
            raise UsageError(
                f"{args.data} is a model, and {args.model} is not: the data come first, then the "
                "model"
            ) from None
        raise
    if "n_jobs" in model.get_params(deep=False):
        model.set_params(n_jobs=args.threads)
    return model, kind


def load_any(name: str) -> tuple[Any, Kind]:
    """A model, ours or one in SVM-light's text, and its kind."""
    from .. import load_model
    from ..models import load_svmlight_model

    model = load_svmlight_model(name) if _is_svmlight_model(name) else load_model(name)
    kind = kind_of(model)
    if kind is None:
        raise UsageError(
            f"{name} holds a {type(model).__name__}, with which this command cannot do anything; "
            "load it in Python with cutplane.load_model"
        )
    return model, kind


def _is_svmlight_model(name: str) -> bool:
    if name == "-" or not Path(name).is_file():
        return False
    with open(name, "rb") as file:
        return file.read(4) == b"SVM-"


def answer_lines(values: np.ndarray, form: str) -> Iterable[str]:
    """One line per row: labels as in training, scores with eight digits."""
    if form == "labels" and len(values) and isinstance(values[0], tuple):
        return map(labels_text, values)
    if form == "labels":
        return map(inputs.label_text, values.tolist())
    rows = values.reshape(len(values), -1).tolist()
    return (" ".join(f"{value:.8g}" for value in row) for row in rows)


# -- answers ------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """The answers of a model for some rows."""

    labels: np.ndarray | None = None  # of shape (rows,)
    scores: np.ndarray | None = None  # of shape (rows,) or (rows, classes)

    def get(self, form: str) -> np.ndarray | None:
        """The labels or the scores."""
        return self.labels if form == "labels" else self.scores


def default_form(task: Task, classes: int) -> str:
    """The form without --output: labels or scores, one value per row."""
    if task in (Task.SEQUENCES, Task.GRADES, Task.LABELS) or (task is Task.CLASSES and classes > 2):
        return "labels"
    return "scores"


def check_form(task: Task, form: str) -> None:
    """Refuse a form of answers that this kind of model does not have."""
    without = {Task.SEQUENCES: "scores", Task.RANKING: "labels", Task.VALUES: "labels"}
    if without.get(task) == form:
        raise UsageError(f"a model for {task.value} has no {form}")


def answer(model: Any, kind: Kind, table: inputs.Table, form: str = "labels") -> Answers:
    """The answers of a model for a table with the model's columns.

    ``form`` is the form that the caller needs; the answers may have another one, too. Probabilities
    are in the place of scores. Scores of many labels per row are large, so they are computed only
    if they are needed.
    """
    with warnings.catch_warnings():
        # The columns have been compared with the names of the features, and messages were printed.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        match kind.task:
            case _ if form == PROBABILITIES:
                return Answers(scores=model.predict_proba(table.X))
            case Task.SEQUENCES:
                # Tokens may have been sorted by sequence; this restores the order of the rows.
                sequences = inputs.chain_rows(table, np.arange(table.rows))
                tags = model.predict(sequences.X, lengths=sequences.lengths)
                labels = np.empty_like(tags)
                labels[sequences.y] = tags
                return Answers(labels=labels)
            case Task.LABELS if form == "labels":
                return Answers(labels=predicted_labels(model, table.X))
            case Task.LABELS:
                return Answers(scores=model.decision_function(table.X))
            case Task.RANKING | Task.VALUES:
                return Answers(scores=model.predict(table.X))
            case Task.GRADES:
                return Answers(model.predict(table.X), model.score_samples(table.X))
            case _:
                return Answers(model.predict(table.X), model.decision_function(table.X))


def parts_of(name: str, args: argparse.Namespace, kind: Kind, model: Any) -> Iterable[inputs.Table]:
    """A file in the parts in which a model can be applied to it."""
    features = Alignment(model).names
    if getattr(model, "template", None) is not None:
        return [inputs.read_tagged(name, model.template, features=features)]
    if kind.task is Task.LABELS and inputs.format_of(name) == "svmlight":
        return [read_labels(name, args)]
    parts = inputs.read_chunks(name, args, features)
    # A sequence may be spread over the file. Other rows can be predicted part by part.
    return [inputs.joined(parts)] if kind.task is Task.SEQUENCES else parts


def applied(
    model: Any, kind: Kind, tables: Iterable[inputs.Table]
) -> tuple[inputs.Table, Answers, int]:
    """The answers of a model for all parts of a file.

    Returns a table of the labels and queries without the features, the answers, and how many values
    of features that the model does not have were left out.
    """
    alignment = Alignment(model)
    parts, answers = [], []
    for table in tables:
        inputs.check_numbers(inputs.labelled(table), kind.task)
        answers.append(answer(model, kind, alignment.apply(table)))
        parts.append(replace(table, X=None, cost=None))
    alignment.tell(parts[-1].name)
    together = Answers(*(inputs.stacked([part.get(form) for part in answers]) for form in FORMS))
    return inputs.joined(parts), together, alignment.left_out


# -- columns ------------------------------------------------------------------


class Alignment:
    """Gives tables the columns of a model: by name, where both have names, otherwise in order.

    Parameters
    ----------
    model : estimator
    """

    def __init__(self, model: Any) -> None:
        self.features = int(model.n_features_in_)
        names = getattr(model, "feature_names_in_", None)
        self.names = None if names is None else tuple(map(str, names))
        self.left_out = 0  # number of values of features that the model does not have
        self.widest = 0  # largest number of columns in the data

    def apply(self, table: inputs.Table) -> inputs.Table:
        """The table with the model's columns."""
        if table.names is not None and self.names is not None:
            order = inputs.match_names(table.names, self.names, table.name)
            table = inputs.in_memory(table)
            if order != list(range(self.features)):
                table = replace(table, X=table.X[:, order], names=self.names)
        elif table.names is not None and table.features != self.features:
            raise CommandError(
                f"{table.name} has {table.features:,} columns of features, "
                f"{inputs.some_names(table.names)}, but the model {self.features:,}"
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
        """Report values that were left out, and columns that were added."""
        if self.left_out:
            logger.warning(
                "%s: %s of features beyond the model's %d %s left out",
                "<stdin>" if name == "-" else name,
                plural(self.left_out, "value"),
                self.features,
                "is" if self.left_out == 1 else "are",
            )
        elif self.widest < self.features:
            logger.info(
                "%s has %d features, the model %d: the others are 0",
                name,
                self.widest,
                self.features,
            )
