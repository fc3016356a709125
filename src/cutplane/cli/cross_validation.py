"""Cross-validation: each part of the rows is predicted by a model trained on the other parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .errors import UsageError
from .evaluate import judge_model, measure_for
from .inputs import Table, in_memory, whole_labels
from .kinds import Kind, Task
from .measures import format_measure
from .predict import applied
from .train import fit


@dataclass(frozen=True)
class CrossValidated:
    """The result of a cross-validation."""

    measure: str
    values: list[float]  # values of the measure, one per fold
    predictions: np.ndarray  # labels or numbers for all rows

    def as_dict(self) -> dict[str, Any]:
        """The values in JSON's types."""
        return {
            "folds": len(self.values),
            "measure": self.measure,
            "mean": float(np.mean(self.values)),
            "std": float(np.std(self.values)),
            "values": self.values,
        }

    def __str__(self) -> str:
        both = (format_measure(self.measure, float(f(self.values))) for f in (np.mean, np.std))
        return f"{self.measure} {' +- '.join(both)} ({len(self.values)} folds)"


def cross_validated(model: Any, kind: Kind, table: Table, folds: int) -> CrossValidated:
    """Cross-validate a model that is not fitted yet.

    The parts have the same share of every class; queries and sequences are not split. The rows
    are drawn at random, the same ones every time.
    """
    from sklearn.base import clone

    table = in_memory(table)
    name = measure_for(kind, model.get_params(deep=False))
    values: list[float] = []
    predictions: Any = None
    for train, test in _split(kind, table, folds):
        done = fit(clone(model).set_params(verbose=0), kind, _rows(table, train))
        columns, answers, _ = applied(done.model, kind, [_rows(table, test)])
        value = judge_model(done.model, kind.task, columns, answers).measures().get(name)
        if value is None:
            raise UsageError(f"{table.name}: {name} is not defined on a fold; take fewer folds")
        values.append(value)
        part = np.asarray(answers.scores if answers.labels is None else answers.labels)
        if predictions is None:
            predictions = np.empty((table.rows, *part.shape[1:]), part.dtype)
        predictions[test] = part
    return CrossValidated(name, values, predictions)


def _split(kind: Kind, table: Table, folds: int) -> Any:
    """For every fold the rows to train on and the rows to predict."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    if kind.task in (Task.RANKING, Task.SEQUENCES) and table.qid is not None:
        _need(folds, len(np.unique(table.qid)), "queries or sequences", table)
        return GroupKFold(folds, shuffle=True, random_state=0).split(table.y, groups=table.qid)
    if kind.task is Task.CLASSES:
        labels = whole_labels(table.y)
        smallest = int(np.unique(labels, return_counts=True)[1].min())
        _need(folds, smallest, "rows of the rarest class", table)
        return StratifiedKFold(folds, shuffle=True, random_state=0).split(labels, labels)
    _need(folds, table.rows, "rows", table)
    return KFold(folds, shuffle=True, random_state=0).split(table.y)


def _need(folds: int, there: int, what: str, table: Table) -> None:
    if not 2 <= folds <= there:
        raise UsageError(
            f"{table.name} has {there:,} {what}: the number of folds must be from 2 to that, got "
            f"{folds}"
        )


def _rows(table: Table, rows: np.ndarray) -> Table:
    """Some rows of a table in memory."""
    X = table.X.tocsr()[rows] if hasattr(table.X, "tocsr") else table.X[rows]
    qid = None if table.qid is None else table.qid[rows]
    cost = None if table.cost is None else table.cost[rows]
    return replace(table, X=X, y=table.y[rows], qid=qid, cost=cost)
