"""What a model says about rows: labels, scores or both, and their form as text."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .common import UsageError
from .fitting import chain_rows
from .inputs import Table
from .kinds import Kind, Task, kind_of

FORMS = ("labels", "scores")


@dataclass(frozen=True)
class Answers:
    """The answers for some rows.

    Attributes
    ----------
    labels : ndarray or None, shape (rows,)
    scores : ndarray or None, shape (rows,) or (rows, classes)
    """

    labels: np.ndarray | None = None
    scores: np.ndarray | None = None

    def get(self, form: str) -> np.ndarray | None:
        """The labels or the scores."""
        return self.labels if form == "labels" else self.scores


def model_kind(model: Any, name: str) -> Kind:
    """The kind of a model that was read from a file."""
    kind = kind_of(model)
    if kind is None:
        raise UsageError(
            f"{name} holds a {type(model).__name__}, with which this command cannot predict; "
            "load it in Python with cutplane.load_model"
        )
    return kind


def default_form(kind: Kind, classes: int) -> str:
    """Whether labels or scores are written, if nothing is said: always one value per row."""
    if kind.task in (Task.SEQUENCES, Task.GRADES) or (kind.task is Task.CLASSES and classes > 2):
        return "labels"
    return "scores"


def check_form(kind: Kind, form: str) -> None:
    """Refuse what a kind of model does not have."""
    without = {Task.SEQUENCES: "scores", Task.RANKING: "labels", Task.VALUES: "labels"}
    if without.get(kind.task) == form:
        raise UsageError(f"a model for {kind.name} has no {form}")


def answer(model: Any, kind: Kind, table: Table) -> Answers:
    """What a model says about the rows of a table with the columns that it knows."""
    with warnings.catch_warnings():
        # Columns and names have been compared, and what there is to say has been said.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return _answer(model, kind, table)


def _answer(model: Any, kind: Kind, table: Table) -> Answers:
    X = table.X
    match kind.task:
        case Task.SEQUENCES:
            # Sequences may have been brought together: the rows go back to their places.
            sequences = chain_rows(table, np.arange(table.rows))
            tags = model.predict(sequences.X, lengths=sequences.lengths)
            labels = np.empty_like(tags)
            labels[sequences.y] = tags
            return Answers(labels=labels)
        case Task.RANKING | Task.VALUES:
            return Answers(scores=model.predict(X))
        case Task.GRADES:
            return Answers(model.predict(X), model.score_samples(X))
        case Task.NOVELTY:
            return Answers(model.predict(X), model.decision_function(X))
    return Answers(model.predict(X), model.decision_function(X))


# -- text ---------------------------------------------------------------------


def as_lines(values: np.ndarray, form: str) -> Iterable[str]:
    """One line per row: labels as they were, scores with eight digits."""
    if form == "labels":
        return map(label_text, values.tolist())
    if values.ndim == 1:
        return (f"{value:.8g}" for value in values.tolist())
    return (" ".join(f"{value:.8g}" for value in row) for row in values.tolist())


def label_text(label: Any) -> str:
    """A label as it was in the file: whole numbers without a point."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def read_predictions(name: str, *, text: bool = False) -> np.ndarray:
    """Predictions from a file with one number per line; with one label per line if ``text``."""
    from ..data.files import opened

    values: list[Any] = []
    with opened(name) as source:
        for number, line in enumerate(_lines(source.file), 1):
            try:
                values.append(line if text else float(line))
            except ValueError:
                raise ValueError(
                    f"{source.name}:{number}:1: {line!r} is not a prediction; one number per line "
                    "is expected, as cutplane predict writes it"
                ) from None
    return np.array(values, dtype=str if text else np.float64)


def _lines(file: Any) -> Iterator[str]:
    for line in file:
        yield line.decode("utf-8", "replace").rstrip("\r\n")
