"""Comparing methods by a measure: C by validation rows, the value on test rows, an interval.

Every method is trained on the same training rows for every value of its grid. For each measure, the
value that is best on the validation rows is taken, and that model is judged on the test rows. The
interval of a difference is the 95 % interval of a paired bootstrap: test rows (or queries)
are drawn anew within every split, and the differences averaged over the splits. It tells how
much the test rows leave open, not how much another training set would change.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ..datasets import SEED, DataSet


@dataclass(frozen=True)
class Split:
    """Training rows, validation rows to choose C, and test rows."""

    train: DataSet
    vali: DataSet
    test: DataSet


@dataclass(frozen=True)
class Answer:
    """The scores that a model gives to rows, and the labels that it predicts."""

    scores: np.ndarray
    labels: np.ndarray

    def take(self, rows: np.ndarray) -> Answer:
        return Answer(self.scores[rows], self.labels[rows])


Predictor = Callable[[sp.csr_matrix], Answer]


@dataclass(frozen=True)
class Method:
    """A method that trains models.

    Attributes
    ----------
    grid : tuple of float
        The values of its parameter.
    fit : callable
        (training rows, validation rows, value) → predictors by name: one, or several that differ
        in what is done after training.
    """

    grid: tuple[float, ...]
    fit: Callable[[DataSet, DataSet, float], dict[str, Predictor]]


@dataclass(frozen=True)
class Measure:
    """A measure of an answer: (targets, queries or None, answer) → value."""

    name: str
    value: Callable[[np.ndarray, np.ndarray | None, Answer], float]
    larger_is_better: bool = True

    def of(self, data: DataSet, answer: Answer) -> float:
        return self.value(data.y, data.qid, answer)

    def better(self, one: float, other: float) -> float:
        """By how much the first value is better than the second."""
        return one - other if self.larger_is_better else other - one


@dataclass(frozen=True)
class Chosen:
    """The model of a split that was chosen for a measure.

    Attributes
    ----------
    at_edge : bool
        Whether the parameter is the smallest or the largest of the grid.
    stopped : bool
        Whether training ended before it reached its tolerance.
    """

    parameter: float
    at_edge: bool
    stopped: bool
    vali: float
    test: float
    answer: Answer


Choices = dict[tuple[str, str], list[Chosen]]  # for a measure and a method, one per split


def folds(data: DataSet, count: int = 5, *, contiguous: bool = False) -> list[Split]:
    """Splits in which every part has the test rows once, and the validation rows once.

    Rows whose neighbours overlap need ``contiguous`` parts.
    """
    order = np.arange(len(data.y))
    if not contiguous:
        order = np.random.default_rng(SEED).permutation(len(order))
    parts = [np.sort(part) for part in np.array_split(order, count)]
    splits = []
    for k in range(count):
        following = (k + 1) % count
        rest = [parts[j] for j in range(count) if j not in (k, following)]
        train = np.sort(np.concatenate(rest))
        splits.append(Split(data.take(train), data.take(parts[following]), data.take(parts[k])))
    return splits


def choose(
    splits: Sequence[Split],
    methods: Sequence[Method],
    measures: Sequence[Measure],
    say: Callable[[str], None],
) -> Choices:
    """Train all methods with all parameters, and choose models by the validation rows."""
    choices: Choices = {}
    for number, split in enumerate(splits, 1):
        tried: dict[str, list[tuple[float, bool, Predictor]]] = {}
        edges: dict[str, tuple[float, float]] = {}
        begin = time.perf_counter()
        for method in methods:
            for parameter in method.grid:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always", ConvergenceWarning)
                    found = method.fit(split.train, split.vali, parameter)
                stopped = any(issubclass(w.category, ConvergenceWarning) for w in caught)
                for name, predictor in found.items():
                    tried.setdefault(name, []).append((parameter, stopped, predictor))
                    edges[name] = (min(method.grid), max(method.grid))
        for name, models in tried.items():
            answers = [predict(split.vali.X) for *_, predict in models]
            for measure in measures:
                values = [measure.of(split.vali, answer) for answer in answers]
                best = int(np.argmax(values) if measure.larger_is_better else np.argmin(values))
                parameter, stopped, predict = models[best]
                answer = predict(split.test.X)
                value = measure.of(split.test, answer)
                at_edge = parameter in edges[name]
                chosen = Chosen(parameter, at_edge, stopped, values[best], value, answer)
                choices.setdefault((measure.name, name), []).append(chosen)
        say(f"split {number} of {len(splits)}: {time.perf_counter() - begin:.1f} s")
    return choices


def compare(
    splits: Sequence[Split],
    choices: Choices,
    measure: Measure,
    ours: str,
    rivals: Sequence[str],
    resamples: int,
) -> dict[str, Any]:
    """The case of a measure: all methods' test values, and ours compared with each rival's."""
    records = []
    for name in (ours, *rivals):
        chosen = choices[measure.name, name]
        record: dict[str, Any] = {
            "method": name,
            "test": float(np.mean([c.test for c in chosen])),
            "tests": [c.test for c in chosen],
            "vali": float(np.mean([c.vali for c in chosen])),
            "parameters": [c.parameter for c in chosen],
            "at_edge": sum(c.at_edge for c in chosen),
            "stopped": sum(c.stopped for c in chosen),
        }
        if name != ours:
            record.update(_difference(splits, choices, measure, ours, name, resamples))
        records.append(record)
    return {
        "measure": measure.name,
        "larger_is_better": measure.larger_is_better,
        "ours": ours,
        "splits": len(splits),
        "resamples": resamples,
        "methods": records,
    }


def _difference(
    splits: Sequence[Split],
    choices: Choices,
    measure: Measure,
    ours: str,
    name: str,
    resamples: int,
) -> dict[str, Any]:
    """By how much our value is better than a rival's, with an interval."""
    rng = np.random.default_rng(SEED)
    pairs = list(zip(choices[measure.name, ours], choices[measure.name, name], strict=True))
    drawn = np.zeros(resamples)
    for split, (mine, other) in zip(splits, pairs, strict=True):
        for k in range(resamples):
            rows, qid = _draw(split.test, rng)
            y = split.test.y[rows]
            values = (measure.value(y, qid, c.answer.take(rows)) for c in (mine, other))
            drawn[k] += measure.better(*values) / len(splits)
    low, high = np.quantile(drawn, [0.025, 0.975])
    each = [measure.better(mine.test, other.test) for mine, other in pairs]
    verdict = "better" if low > 0.0 else "worse" if high < 0.0 else "open"
    return {
        "better_by": float(np.mean(each)),
        "interval": [float(low), float(high)],
        "wins": sum(e > 0.0 for e in each),
        "verdict": verdict,
    }


def _draw(test: DataSet, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
    """Draw rows with replacement, or queries with all their rows and new numbers."""
    if test.qid is None:
        while True:  # a draw of few rows may lack a class
            rows = rng.integers(0, len(test.y), len(test.y))
            if np.ptp(test.y[rows]) > 0:
                return rows, None
    order = np.argsort(test.qid, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(test.qid[order])) + 1)
    drawn = [groups[k] for k in rng.integers(0, len(groups), len(groups))]
    return np.concatenate(drawn), np.repeat(np.arange(len(drawn)), [len(g) for g in drawn])
