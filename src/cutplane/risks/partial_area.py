"""The part of the ROC curve at small false positive rates: partial ROC area.

With p positive and n negative rows, of which only the k = ⌈β·n⌉ of highest score count,

    R(s) = (1/pk) Σ_{i positive} Σ_{j among the k highest negatives} max(0, 1 − (s_i − s_j)).

The k highest negatives are the set of k with the largest sum, because every term grows with s_j. So
R is a maximum of convex functions over all sets of k negatives. It is convex, and its subgradient
is that of the pairs with the k highest negatives. 1 − R is a lower bound on the area under the
curve up to the false positive rate k/n, divided by that rate. k = n gives the ROC area. k = 1 wants
positives above all negatives: accuracy at the top.
"""

from __future__ import annotations

import math

import numpy as np

from ..exec import Executor
from ..loops.bounded import FEW, ROUNDING
from .base import ListwiseRisk, digest_of
from .pairs import PairRisk


class PartialAreaRisk(ListwiseRisk):
    """Mean margin violation of the pairs of a positive row and one of the highest negatives.

    Parameters
    ----------
    labels : ndarray of float64, shape (rows,)
        −1 or +1. Both must occur among the rows of positive multiplicity.
    max_fpr : float
        β, above 0 and up to 1.
    multiplicity : ndarray of integers, shape (rows,), default=None
        How often each row counts. None means once.

    Attributes
    ----------
    rows : int
    k : int
        How many negatives count.
    """

    def __init__(
        self, labels: np.ndarray, max_fpr: float, *, multiplicity: np.ndarray | None = None
    ) -> None:
        self.rows = len(labels)
        counts = np.ones(self.rows, np.int64) if multiplicity is None else multiplicity
        self._positives, self._negatives = (
            np.repeat(rows, counts[rows])
            for rows in (np.flatnonzero(labels > 0.0), np.flatnonzero(labels < 0.0))
        )
        if not len(self._positives) or not len(self._negatives):
            raise ValueError("the partial ROC area needs rows of both labels that count")
        # Rounding makes 0.07·100 more than 7; k must be 7 and not 8.
        self.k = math.ceil(max_fpr * len(self._negatives) * (1.0 - FEW * ROUNDING))
        p = len(self._positives)
        self._pairs = PairRisk(np.repeat([1.0, 0.0], [p, self.k]))

    def evaluate(
        self, scores: np.ndarray, coef: np.ndarray, executor: Executor
    ) -> tuple[float, float]:
        rows = np.concatenate([self._positives, self._negatives[self._highest(scores)[1]]])
        own = np.empty(len(rows))
        value, offset = self._pairs.evaluate(scores[rows], own, executor)
        coef[:] = np.bincount(rows, own, minlength=self.rows)
        return value, offset

    def upper(
        self, high: np.ndarray, low: np.ndarray | None, errors: np.ndarray, executor: Executor
    ) -> float:
        """As for every risk. It takes the k negatives that can have the highest scores."""
        most = high + errors if low is None else high + (low + errors)
        others, top = self._highest(most)
        rows = np.concatenate([self._positives, self._negatives[top]])
        slack = errors[rows]
        if len(others):
            # ``most`` is rounded, so a negative left out may be above one taken by this much.
            size = FEW * ROUNDING
            taken, left = most[self._negatives[top]], most[self._negatives[others]].max()
            miss = (left + size * abs(left)) - (taken - size * np.abs(taken))
            slack[len(self._positives) :] += np.maximum(0.0, miss)
        return self._pairs.upper(high[rows], None if low is None else low[rows], slack, executor)

    def _highest(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the negatives that do not count, and of those that do, in order of rows."""
        split = len(self._negatives) - self.k
        places = np.argpartition(scores[self._negatives], split)
        return places[:split], np.sort(places[split:])

    def digest(self) -> bytes:
        return digest_of(("partial", self.rows, self.k), self._positives, self._negatives)
