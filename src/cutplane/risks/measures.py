"""Measures of a whole labelling: F1 and the like, precision and recall at k, break-even point.

With p positives among m rows, scores s and labels y ∈ {−1, +1}, a labelling ȳ has a
true and b false positives, and a loss Δ(a, b) ∈ [0, 1]. The risk is the worst
labelling by loss and score together (Joachims, ICML 2005):

    R(s) = max_ȳ  Δ(ȳ) + (1/2m) Σ_i (ȳ_i − y_i)·s_i
         = max_ȳ  Δ(a, b) + (1/m)(Σ_{false positives} s_j − Σ_{false negatives} s_i).

A maximum of linear functions is convex. For a given table (a, b) the worst
labelling predicts the a highest positives and the b highest negatives. So after a sort,
the search runs over tables, with running sums of the sorted scores.
(With the error rate as Δ this is the mean hinge loss, which a ``LossRisk`` finds without a sort.)

**Any loss of the table**, over all labellings: ``risks.contingency`` has the losses and the
search. ȳ = y gives R ≥ 0. The prediction ŷ = sign(s) has Σ (ŷ_i − y_i)s_i ≥ 0, so R(s) ≥ Δ(ŷ).

**The k highest rows.** Δ = 1 − a/k (precision) or 1 − a/p (recall), over labellings
with a + b = k. For k = p, the break-even point of precision and recall, the formula
above is right. For k ≠ p it is not: y is not one of the labellings, and a constant t added
to all scores changes the risk by t(k − p)/m. So a bias can make the risk arbitrarily small,
whatever the ranking, and the risk is no bound on the loss of the k highest rows. Instead we
compare ȳ with the best labellings of its own size, which have min(k, p) true positives. The
nearest of them to ȳ exchange e = min(k, p) − a false positives for as many false negatives.
On average over them

    R(s) = max_ȳ  Δ(a) + (e/m)·(mean_{false positives} s_j − mean_{false negatives} s_i).

This is linear in s for every ȳ, hence R is convex; a constant added to all scores
changes nothing; ȳ with e = 0 gives R ≥ the least possible Δ ≥ 0; and if ŷ are the k
highest rows, none of the rows it left out scores above one it took, so R(s) ≥ Δ(ŷ).
For k = p all p − a false positives are exchanged, and this is the formula above. Kar, Narasimhan
and Jain (ICML 2015) average over correct labellings in this way for precision at k. If k ≠ p, you
cannot compare objective values with those of the formula with y. If the least Δ is above 0
(precision for k > p, recall for k < p), it is part of the risk.

Rows may count several times (``multiplicity``): every sum above then runs over the
copies, and m, p and k count copies.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ..exec import Executor
from ..loops import measures as loops
from ..loops.bounded import FEW, MANY, ROUNDING
from .base import ListwiseRisk, digest_of
from .contingency import TABLES, Loss, Ranked, Worst, table_measure
from .order import ScoreOrder
from .thresholds import between


class MeasureRisk(ListwiseRisk):
    """The risk of a measure that depends on the contingency table only.

    Parameters
    ----------
    labels : ndarray of float64, shape (rows,)
        −1 or +1, both among the rows that count.
    multiplicity : ndarray of integers, shape (rows,), default=None
        How often each row counts, 0 for not at all. None means once.

    Attributes
    ----------
    total : int
        m, the rows that count, with their copies.
    positives, negatives : int
        p and m − p.
    """

    def __init__(self, labels: np.ndarray, *, multiplicity: np.ndarray | None = None) -> None:
        self.rows = len(labels)
        counts = np.ones(self.rows, np.int64) if multiplicity is None else multiplicity
        self.positives = int(counts[labels > 0.0].sum())
        self.negatives = int(counts[labels < 0.0].sum())
        self.total = self.positives + self.negatives
        for name, count in (("positive", self.positives), ("negative", self.negatives)):
            if count == 0:
                raise ValueError(
                    f"no {name} rows: a measure needs rows of both labels; "
                    "check which label is taken as +1, and that no weight or split drops a class"
                )
        self._copies = np.where(labels > 0.0, counts, -counts).astype(np.int32)
        self._order = ScoreOrder(self.rows)
        self._ranked = np.empty(self.total, np.uint32)
        self._ranked_scores = np.empty(self.total)
        self._nothing = np.zeros(self.total)  # the second numbers of these scores

    @abstractmethod
    def loss(self, true_positives: int, false_positives: int) -> float:
        """Δ of a table."""

    @abstractmethod
    def worst(self, scores: Ranked, rounding: float) -> Worst:
        """The table where the maximum is attained, and the maximum.

        Parameters
        ----------
        scores : Ranked
        rounding : float
            0, or a bound on the relative rounding errors of sums and losses. With the latter the
            value is at least the maximum in exact arithmetic, up to a factor 1 + a few roundings.
        """

    def rates(self, table: Worst) -> tuple[float, float]:
        """Slopes of the table's plane in the score of a false positive and of a false negative."""
        return 1.0 / self.total, 1.0 / self.total

    def evaluate(
        self, scores: np.ndarray, coef: np.ndarray, executor: Executor
    ) -> tuple[float, float]:
        order = self._order.sort(scores, executor)
        p = self.positives
        loops.split(order, self._copies, scores, p, self._ranked, self._ranked_scores)
        table = self.worst(Ranked(self._ranked_scores, self._nothing), 0.0)
        _, a, b = table
        ranked = (self._ranked, self._ranked_scores, p)
        change = loops.coefficients(*ranked, a, b, *self.rates(table), scores, coef)
        offset = self.loss(a, b)
        value = offset + change
        return (0.0 if value < 0.0 else value), offset  # rounding; NaN stays NaN

    def upper(
        self, high: np.ndarray, low: np.ndarray | None, errors: np.ndarray, executor: Executor
    ) -> float:
        """As for every risk. No coefficient of a plane is larger than 1/m."""
        low = np.zeros(self.rows) if low is None else low
        copies = np.abs(self._copies) / self.total
        order = np.lexsort((low, high))[::-1]
        ranked = np.repeat(order, np.abs(self._copies[order]))
        positive = self._copies[ranked] > 0
        ranked = np.concatenate([ranked[positive], ranked[~positive]])
        value = self.worst(Ranked(high[ranked], low[ranked]), FEW * ROUNDING).value
        # The sums collect the rounding errors of m additions. Only the rounding of these collected
        # errors is lost.
        lost = FEW * (2.0 * self.total * ROUNDING) ** 2
        value += float(np.sum(copies * (errors + lost * np.abs(high))))
        value = 0.0 if value < 0.0 else value
        return value * (1.0 + MANY * ROUNDING)

    def running_sums(
        self, scores: Ranked, most: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """For every a the sum of all positives' scores but the a highest, and for every b the sum
        of the b highest negatives' scores: shapes (p + 1,) and (n + 1,), or (most + 1,).
        """
        p, (high, low) = self.positives, scores
        last = self.total if most is None else p + most
        missed, alarms = np.empty(p + 1), np.empty(last - p + 1)
        loops.running_sums(high[:p], low[:p], high[p:last], low[p:last], missed, alarms)
        return missed, alarms

    def digest(self) -> bytes:
        return digest_of(self._name(), self._copies)

    def _name(self) -> tuple[object, ...]:
        return (type(self).__name__, self.rows)


class TableRisk(MeasureRisk):
    """The risk of any loss of the contingency table. It bounds the loss of the prediction s > 0.

    Parameters
    ----------
    labels, multiplicity
        As for ``MeasureRisk``.
    measure : str or callable
        A name of ``contingency.TABLE_MEASURES``, or ``loss(tp, fp, fn, tn)`` of arrays.
    beta : float, default=1
        For 'fbeta' and 'q_beta'.
    """

    def __init__(
        self,
        labels: np.ndarray,
        measure: str | Loss,
        *,
        beta: float = 1.0,
        multiplicity: np.ndarray | None = None,
    ) -> None:
        super().__init__(labels, multiplicity=multiplicity)
        known = table_measure(measure, beta)
        self.tables = TABLES[known.search](known, self.positives, self.negatives)

    def loss(self, true_positives: int, false_positives: int) -> float:
        return float(self.tables.losses(np.array(true_positives), np.array(false_positives)))

    def worst(self, scores: Ranked, rounding: float) -> Worst:
        g, h = self.running_sums(scores)
        if not (np.isfinite(g[0]) and np.isfinite(h[-1])):
            return Worst(np.inf, self.positives, 0)  # the sums of such scores may be NaN
        g /= -self.total
        h /= self.total
        if rounding > 0.0:
            g += rounding * np.abs(g)
            h += rounding * np.abs(h)
        return self.tables.worst(g, h, scores, rounding)

    def _name(self) -> tuple[object, ...]:
        return (*super()._name(), self.tables.digest())


class TopRisk(MeasureRisk):
    """The risk of the k highest rows: Δ = 1 − a/k for precision, or 1 − a/p for recall.

    With k = p precision equals recall (PRBEP).

    Parameters
    ----------
    labels, multiplicity
        As for ``MeasureRisk``.
    k : int, default=None
        Rows predicted positive, from 1 to m. None means p.
    recall : bool, default=False
        Whether the loss is a share of the p positives, not of the k rows.
    """

    def __init__(
        self,
        labels: np.ndarray,
        k: int | None = None,
        *,
        recall: bool = False,
        multiplicity: np.ndarray | None = None,
    ) -> None:
        super().__init__(labels, multiplicity=multiplicity)
        self.k = self.positives if k is None else k
        self.recall = recall
        self._most, fewest = min(self.k, self.positives), max(0, self.k - self.negatives)
        # For every number a of true positives, from the largest one down: what the exchanged rows
        # add to the loss, and 1/m times the share of the false positives, and of the false
        # negatives, that they are. Where there are no such rows, none are exchanged.
        a = np.arange(self._most, fewest - 1, -1)
        exchanged = self._most - a
        self._losses = exchanged / self._size
        self._alarm_share = exchanged / (np.maximum(self.k - a, 1) * self.total)
        self._miss_share = exchanged / (np.maximum(self.positives - a, 1) * self.total)

    def loss(self, true_positives: int, false_positives: int) -> float:
        return 1.0 - true_positives / self._size

    def worst(self, scores: Ranked, rounding: float) -> Worst:
        count, first = len(self._losses), self.k - self._most
        missed, alarms = self.running_sums(scores, first + count - 1)
        false_positives = alarms[first:] * self._alarm_share
        false_negatives = missed[: self._most + 1][::-1][:count] * self._miss_share
        values = self._losses + false_positives - false_negatives
        if rounding > 0.0:
            sizes = np.abs(values) + np.abs(false_positives) + np.abs(false_negatives)
            values += rounding * sizes
        best = int(np.argmax(values))
        least = (self._size - self._most) / self._size
        return Worst(least + float(values[best]), self._most - best, first + best)

    def rates(self, table: Worst) -> tuple[float, float]:
        alarms, missed = table.false_positives, self.positives - table.true_positives
        exchanged = min(alarms, missed)
        if exchanged == 0:
            return 0.0, 0.0
        return exchanged / (alarms * self.total), exchanged / (missed * self.total)

    @property
    def _size(self) -> int:
        return self.positives if self.recall else self.k

    def _name(self) -> tuple[object, ...]:
        return (*super()._name(), self.k, self._size)


def best_threshold(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, k: float | None = None
) -> float:
    """The t for which predicting ``score > t`` as positive is best on these rows.

    The function tries every cut between two different scores. It never parts rows of equal score.
    Among equally good cuts, the one with the fewest rows above it wins. O(rows·log rows).

    Parameters
    ----------
    scores : ndarray, shape (rows,)
        Finite numbers.
    labels : ndarray, shape (rows,)
        −1 or +1.
    weights : ndarray, shape (rows,)
        At least 0, and not all 0. Rows of weight 0 are left out.
    k : float, default=None
        None minimises the weight of wrongly predicted rows. With k, rows of total weight k are
        predicted positive, or of the largest weight below k if ties allow no better. If the rows of
        the highest score alone weigh more than k, these are predicted positive.

    Returns
    -------
    float
        Midway between the scores on both sides of the cut. A cut below or above all scores is half
        the distance of the two outermost scores away.
    """
    kept = weights > 0.0
    levels, level_of = np.unique(-scores[kept], return_inverse=True)  # from high to low
    # Entry j belongs to the cut below the j highest levels.
    gain, predicted = (
        np.concatenate([[0.0], np.cumsum(np.bincount(level_of, mass[kept], len(levels)))])
        for mass in (weights * labels, weights)
    )
    if k is not None:
        gain = np.where(predicted <= k, predicted, -predicted)
        gain[0] = -np.inf  # nothing predicted
    rising = -levels[::-1]
    steps = 0.5 * np.diff(rising) if len(rising) > 1 else np.array([0.5])
    cut = np.array([len(rising) - np.argmax(gain)])
    return float(between(rising, cut, steps[0], steps[-1])[0])
