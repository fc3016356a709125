"""The table of measures. Where scikit-learn has a measure, too, the values are the same.

The common ones are computed here, because importing scikit-learn takes longer than most files take
to be judged. A measure that the data leave undefined, such as the ROC area of a single class, is
None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from .errors import UsageError
from .inputs import label_text
from .kinds import Task
from .labels import classes_of, indicator
from .predict import Answers

# -- rows ---------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """Rows with their true labels and the predictions for them; see ``judge``.

    Measures are computed from the properties, the columns. A column that does not exist is None.
    """

    task: Task
    truth: np.ndarray
    labels: np.ndarray | None
    scores: np.ndarray | None
    classes: np.ndarray
    qid: np.ndarray | None = None
    k: float | None = None  # an integer is a number of rows, a float multiplies the positive rows
    max_fpr: float | None = None
    beta: float | None = None
    quantiles: tuple[float, ...] = ()  # if columns of scores are predicted quantiles, these

    @property
    def comparable(self) -> np.ndarray | None:
        """The true labels, if predictions can be compared with them."""
        known = self.task is not Task.NOVELTY or np.isin(self.truth, self.classes).all()
        return self.truth if known else None

    @cached_property
    def positive(self) -> np.ndarray | None:
        """Which rows are of the positive class, the second of two."""
        two = len(self.classes) == 2 and self.comparable is not None
        return self.truth == self.classes[1] if two else None

    @cached_property
    def guess(self) -> np.ndarray | None:
        """Which rows are predicted to be of the positive class."""
        return self.labels == self.classes[1] if len(self.classes) == 2 else None

    @cached_property
    def f1_by_class(self) -> dict[Any, float | None] | None:
        """F1 of each of more than two classes against the others, or of each label."""
        if self.indicators is not None:
            each = _sklearn("f1_score", average=None, zero_division=0.0)(*self.indicators)
            return dict(enumerate(each.tolist()))
        if self.task is not Task.CLASSES or len(self.classes) == 2:
            return None
        f1 = MEASURES["f1"].of
        return {
            label_text(label): _sayable(f1(self.truth == label, self.labels == label))
            for label in self.classes.tolist()
        }

    @cached_property
    def indicators(self) -> tuple[Any, Any] | None:
        """True and predicted labels as indicator matrices, where a row has several."""
        if self.task is not Task.LABELS or self.labels is None:
            return None
        every = classes_of(np.concatenate([self.truth, self.labels]))
        return indicator(self.truth, every), indicator(self.labels, every)

    @property
    def quantile_columns(self) -> np.ndarray | None:
        """The predicted quantiles, one column each."""
        if not self.quantiles or self.scores is None:
            return None
        return self.scores.reshape(len(self.truth), len(self.quantiles))

    def _by_quantile(self, of: Callable[[np.ndarray, float], Any]) -> dict[str, float] | None:
        """A number for each predicted quantile, from the residuals and the quantile."""
        columns = self.quantile_columns
        if columns is None:
            return None
        both = zip(self.quantiles, columns.T, strict=True)
        return {f"{quantile:g}": float(of(self.truth - c, quantile)) for quantile, c in both}

    @cached_property
    def pinball_by_quantile(self) -> dict[str, float] | None:
        """The pinball loss of each predicted quantile."""
        return self._by_quantile(_pinball)

    @property
    def coverage_by_quantile(self) -> dict[str, float] | None:
        """The share of rows that are not above each predicted quantile."""
        return self._by_quantile(lambda residuals, quantile: np.mean(residuals <= 0.0))

    @property
    def interval(self) -> np.ndarray | None:
        """The lowest and the highest of several predicted quantiles, a row each."""
        columns = self.quantile_columns
        if columns is None or len(self.quantiles) < 2:
            return None
        return columns.T[[np.argmin(self.quantiles), np.argmax(self.quantiles)]]

    @property
    def first_rows(self) -> int | None:
        """How many rows of highest score count."""
        if self.k is None or self.positive is None:
            return None
        factor = not isinstance(self.k, Integral)
        rows = max(1, round(self.k * self.positive.sum())) if factor else int(self.k)
        return min(rows, len(self.truth))

    @cached_property
    def chunks(self) -> dict[str, tuple[int, int, int]] | None:
        """Right, true and predicted chunks of each type, counted, if all tags stand for chunks."""
        if self.task is not Task.SEQUENCES or self.labels is None or self.qid is None:
            return None
        from ..metrics import chunk_counts, scheme_of

        scheme = scheme_of(np.concatenate([self.truth, self.labels]))
        if scheme is None:
            return None
        _, sequence = np.unique(self.qid, return_inverse=True)
        order = np.argsort(sequence, kind="stable")
        lengths = np.bincount(sequence)
        return chunk_counts(self.truth[order], self.labels[order], scheme, lengths)

    @property
    def queries(self) -> np.ndarray:
        """The query of each row. Without queries, all rows are one query."""
        if self.task is Task.RANKING and self.qid is not None:
            return self.qid
        return np.zeros(len(self.truth), dtype=np.int64)

    def measures(self) -> dict[str, float | None]:
        """All measures for which there are columns."""
        found = {}
        for name in names_of(self.task):
            columns = [getattr(self, column) for column in MEASURES[name].columns]
            if all(column is not None for column in columns):
                found[name] = _sayable(MEASURES[name].of(*columns))
        return found

    def facts(self) -> dict[str, Any]:
        """Further facts about the rows: classes, queries, sequences."""
        found: dict[str, Any] = {
            "pinball_by_quantile": self.pinball_by_quantile,
            "coverage_by_quantile": self.coverage_by_quantile,
        }
        if self.task in BINARY and self.positive is not None:
            found["positive"] = label_text(self.classes[1].item())
        if self.task is Task.CLASSES:
            found["f1_by_class"] = self.f1_by_class
            unknown = np.count_nonzero(~np.isin(self.truth, self.classes))
            found["rows_of_unknown_classes"] = int(unknown) or None
        if self.task is Task.RANKING:
            found["queries"] = len(np.unique(self.queries))
        if self.task is Task.SEQUENCES and self.qid is not None:
            found["sequences"] = len(np.unique(self.qid))
        if self.chunks is not None:
            f1 = _of_chunks("f1")
            found["chunk_f1_by_type"] = {k: f1({k: three}) for k, three in self.chunks.items()}
        return {name: fact for name, fact in found.items() if fact is not None}


def judge(
    task: Task,
    truth: np.ndarray,
    answers: Answers,
    *,
    classes: np.ndarray | None = None,
    quantiles: tuple[float, ...] = (),
    **given: Any,
) -> Judged:
    """Combine predictions and truth. ``given`` are other fields of ``Judged``.

    ``classes`` are those of the model, by default those of the data. The second of two classes is
    the positive one. With several ``quantiles`` the prediction of a row is the median, if it is one
    of them.
    """
    labels, scores = answers.labels, answers.scores
    if task is Task.NOVELTY:
        classes = np.array([-1, 1])
    elif classes is None:
        classes = classes_of(truth) if task is Task.LABELS else np.unique(truth)
    if task is Task.SEQUENCES and given.get("qid") is None:
        raise UsageError("sequences need a qid: in every line, and the data have none")
    if task is Task.VALUES:
        labels = scores
        if scores is not None and scores.ndim == 2:
            labels = scores[:, quantiles.index(0.5)] if 0.5 in quantiles else None
    elif labels is None and task in BINARY:
        if len(classes) != 2:
            raise UsageError(
                f"scores tell two classes apart, but there are {len(classes)}; give labels instead"
            )
        assert scores is not None
        labels = classes[(scores > 0.0).astype(np.intp)]
    return Judged(task, truth, labels, scores, classes, quantiles=quantiles, **given)


# -- measures -----------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A measure."""

    title: str  # the name for people; a measure without one is in the JSON only
    tasks: tuple[Task, ...]  # the tasks that have the measure
    columns: tuple[str, ...]  # the columns of Judged from which it is computed
    of: Callable[..., Any]  # computes the measure from these columns
    per_cent: bool = True  # whether people see it in per cent
    smaller_is_better: bool = False


def _sklearn(name: str, **options: Any) -> Callable[..., Any]:
    def compute(*columns: Any, **others: Any) -> Any:
        import sklearn.metrics

        return getattr(sklearn.metrics, name)(*columns, **options, **others)

    return compute


def _ours(name: str, **options: Any) -> Callable[..., Any]:
    def compute(*columns: Any) -> Any:
        from .. import metrics

        try:
            return getattr(metrics, name)(*columns, **options)
        except ValueError:  # no pair to compare, no positive row
            return None

    return compute


def _of_two_classes(compute: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(positive: np.ndarray, *others: Any) -> Any:
        return compute(positive, *others) if 0 < positive.sum() < len(positive) else None

    return guarded


def _recall_at_fpr(positive: np.ndarray, scores: np.ndarray, max_fpr: float) -> Any:
    """The largest recall of a threshold whose false positive rate is at most max_fpr."""
    rates, recalls, _ = _sklearn("roc_curve")(positive, scores)
    return recalls[rates <= max_fpr].max()


def _roc_auc(positive: np.ndarray, scores: np.ndarray) -> Any:
    """The share of pairs in the right order; a tie counts half."""
    _, level, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - 0.5 * (sizes - 1))[level]  # tied rows share the mean of theirs
    good = int(positive.sum())
    return (ranks[positive].sum() - 0.5 * good * (good + 1)) / (good * (len(positive) - good))


def _average_precision(positive: np.ndarray, scores: np.ndarray) -> Any:
    """The mean of the precision over the steps of the recall, at thresholds between the scores."""
    _, level = np.unique(-scores, return_inverse=True)
    rows, hits = np.bincount(level), np.bincount(level, positive)
    return np.sum(hits * np.cumsum(hits) / np.cumsum(rows)) / positive.sum()


def _of_counts(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A measure of true positives, false positives, false negatives and true negatives."""

    def compute(positive: np.ndarray, guess: np.ndarray, *others: float) -> Any:
        hits, guessed, there = (
            float(np.count_nonzero(rows)) for rows in (positive & guess, guess, positive)
        )
        counts = hits, guessed - hits, there - hits, len(positive) - guessed - there + hits
        try:
            return formula(*counts, *others)
        except ZeroDivisionError:
            return None

    return compute


def _fbeta(hits: float, false: float, missed: float, right: float, beta: float = 1.0) -> float:
    both = (1.0 + beta**2) * hits
    return both / (both + beta**2 * missed + false)


def _matthews(hits: float, false: float, missed: float, right: float) -> float:
    square = (hits + false) * (hits + missed) * (right + false) * (right + missed)
    return (hits * right - false * missed) / (math.sqrt(square) or 1.0)


def _mean_error(truth: np.ndarray, values: np.ndarray) -> Any:
    return np.mean(np.abs(np.asarray(truth, dtype=np.float64) - values))


def _r2(truth: np.ndarray, values: np.ndarray) -> Any:
    if not np.ptp(truth) > 0.0:
        return None
    return 1.0 - np.sum((truth - values) ** 2) / np.sum((truth - truth.mean()) ** 2)


def _pinball(residuals: np.ndarray, quantile: float) -> Any:
    return np.mean(np.maximum(quantile * residuals, (quantile - 1.0) * residuals))


def _mean_f1(by_class: dict[Any, float | None]) -> Any:
    defined = [f1 for f1 in by_class.values() if f1 is not None]
    return np.mean(defined) if defined else None


def _ndcg(k: int | None) -> Callable[..., Any]:
    def compute(truth: np.ndarray, scores: np.ndarray, queries: np.ndarray) -> Any:
        gains = "exponential" if truth.max() <= 1000.0 else "linear"  # 2^1024 is not finite
        return _ours("ndcg_score", k=k, gains=gains, qid=queries)(truth, scores)

    return compute


def _swapped(truth: np.ndarray, scores: np.ndarray, queries: np.ndarray) -> Any:
    return _ours("swapped_pairs", qid=queries)(truth, scores)


def _somers_d(truth: np.ndarray, scores: np.ndarray, queries: np.ndarray) -> Any:
    swapped = _swapped(truth, scores, queries)
    return None if swapped is None else 1.0 - 2.0 * swapped


def _of_labels(name: str, **options: Any) -> Callable[..., Any]:
    """A measure of scikit-learn for two indicator matrices; None if they have no column."""

    def compute(both: tuple[Any, Any]) -> Any:
        return _sklearn(name, **options)(*both) if both[0].shape[1] else None

    return compute


def _of_chunks(name: str) -> Callable[..., Any]:
    """A measure of the chunks that tags stand for."""

    def compute(counts: dict[str, tuple[int, int, int]]) -> Any:
        from ..metrics import CHUNK_SHARES, all_chunks

        return CHUNK_SHARES[name](*all_chunks(counts))

    return compute


def _sequences_right(truth: np.ndarray, labels: np.ndarray, qid: np.ndarray) -> Any:
    _, sequence = np.unique(qid, return_inverse=True)
    return np.mean(np.bincount(sequence, labels != truth) == 0.0)


def _same(truth: np.ndarray, labels: np.ndarray) -> Any:
    return np.mean(labels == truth)


CLASSES, GRADES, RANKING = (Task.CLASSES,), (Task.GRADES,), (Task.RANKING,)
VALUES, NOVELTY, SEQUENCES = (Task.VALUES,), (Task.NOVELTY,), (Task.SEQUENCES,)
SEVERAL, BOTH = (Task.LABELS,), ("indicators",)
BINARY = (*CLASSES, *NOVELTY)
LABELS, GUESS, SCORES = ("truth", "labels"), ("positive", "guess"), ("positive", "scores")
TOP, RATE = (*SCORES, "first_rows"), (*SCORES, "max_fpr")
ORDER = ("truth", "scores", "queries")
NAN = {"zero_division": np.nan}

# A new measure is one entry. Reports have this order. A path chooses by the first one of its task.
MEASURES = {
    "inside": Measure("inside", NOVELTY, ("labels",), lambda labels: np.mean(labels == 1)),
    "mae": Measure("mean error", GRADES + VALUES, LABELS, _mean_error,
                   per_cent=False, smaller_is_better=True),
    "accuracy": Measure("accuracy", BINARY + GRADES, ("comparable", "labels"), _same),
    "error_rate": Measure("", CLASSES, LABELS, lambda truth, labels: np.mean(labels != truth),
                          smaller_is_better=True),
    "precision": Measure("precision", BINARY, GUESS,
                         _of_counts(lambda hits, false, missed, right: hits / (hits + false))),
    "recall": Measure("recall", BINARY, GUESS,
                      _of_counts(lambda hits, false, missed, right: hits / (hits + missed))),
    "f1": Measure("F1", BINARY, GUESS, _of_counts(_fbeta)),
    "roc_auc": Measure("ROC area", BINARY, SCORES, _of_two_classes(_roc_auc),
                       per_cent=False),
    "average_precision": Measure("av. prec.", BINARY, SCORES, _of_two_classes(_average_precision),
                                 per_cent=False),
    "prbep": Measure("PRBEP", BINARY, SCORES, _of_two_classes(_ours("prbep"))),
    "precision_at_k": Measure("prec. at k", CLASSES, TOP, _ours("precision_at_k")),
    "recall_at_k": Measure("recall at k", CLASSES, TOP, _ours("recall_at_k")),
    "partial_roc_auc": Measure("partial ROC", CLASSES, RATE, _of_two_classes(
        lambda positive, scores, rate: _sklearn("roc_auc_score", max_fpr=rate)(positive, scores)),
        per_cent=False),
    "recall_at_fpr": Measure("recall@FPR", CLASSES, RATE, _of_two_classes(_recall_at_fpr)),
    "fbeta": Measure("F-beta", CLASSES, (*GUESS, "beta"), _of_counts(_fbeta)),
    "jaccard": Measure("", CLASSES, GUESS, _of_counts(
        lambda hits, false, missed, right: hits / (hits + false + missed))),
    "g_mean": Measure("", CLASSES, GUESS, _of_counts(
        lambda hits, false, missed, right: math.sqrt(
            hits / (hits + missed) * right / (right + false)))),
    "balanced_error": Measure("", CLASSES, GUESS, _of_counts(
        lambda hits, false, missed, right: 0.5 * (
            missed / (hits + missed) + false / (right + false))), smaller_is_better=True),
    "matthews": Measure("", CLASSES, GUESS, _of_counts(_matthews), per_cent=False),
    "micro_f1": Measure("micro F1", SEVERAL, BOTH, _of_labels("f1_score", average="micro", **NAN)),
    "macro_f1": Measure("mean F1", CLASSES + SEVERAL, ("f1_by_class",), _mean_f1),
    "hamming_loss": Measure("Hamming", SEVERAL, BOTH, _of_labels("hamming_loss"),
                            smaller_is_better=True),
    "subset_accuracy": Measure("all right", SEVERAL, BOTH, _of_labels("accuracy_score")),
    "rmse": Measure("RMS error", VALUES, LABELS,
                    lambda truth, values: np.mean((truth - values) ** 2) ** 0.5,
                    per_cent=False, smaller_is_better=True),
    "r2": Measure("R^2", VALUES, LABELS, _r2, per_cent=False),
    "pinball": Measure("pinball", VALUES, ("pinball_by_quantile",),
                       lambda losses: np.mean(list(losses.values())),
                       per_cent=False, smaller_is_better=True),
    "coverage": Measure("coverage", VALUES, ("truth", "interval"), lambda truth, ends: np.mean(
        (ends[0] <= truth) & (truth <= ends[1]))),
    "ndcg@10": Measure("NDCG@10", RANKING, ORDER, _ndcg(10), per_cent=False),
    "ndcg": Measure("NDCG", RANKING, ORDER, _ndcg(None), per_cent=False),
    "swapped_pairs": Measure("swapped", GRADES + RANKING, ORDER, _swapped, smaller_is_better=True),
    "somers_d": Measure("Somers' D", RANKING, ORDER, _somers_d, per_cent=False),
    "token_accuracy": Measure("tokens", SEQUENCES, LABELS, _same),
    "sequence_accuracy": Measure("sequences", SEQUENCES, (*LABELS, "qid"), _sequences_right),
    "chunk_precision": Measure("precision", SEQUENCES, ("chunks",), _of_chunks("precision")),
    "chunk_recall": Measure("recall", SEQUENCES, ("chunks",), _of_chunks("recall")),
    "chunk_f1": Measure("F1", SEQUENCES, ("chunks",), _of_chunks("f1")),
}  # fmt: skip


def _sayable(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def names_of(task: Task) -> list[str]:
    """The measures of a task."""
    return [name for name, measure in MEASURES.items() if task in measure.tasks]


def format_measure(name: str, value: float | None) -> str:
    """The value of a measure as text for people."""
    if value is None:
        return "undefined"
    return f"{100.0 * value:.2f} %" if MEASURES[name].per_cent else f"{value:.4f}"
