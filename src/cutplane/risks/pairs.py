"""Pairs of rows of one query whose targets differ: ranking, ordinal targets, ROC area.

    R(s) = Σ_q factor_q Σ_{i,j in q, y_i > y_j} w_i w_j max(0, 1 − (s_i − s_j))

factor_q is 1/Σ w_i w_j over all pairs, or 1/Σ w_i w_j over the pairs of q, divided by the number
of queries that have a pair. Let c⁺_i = Σ w_j over the j of smaller target with s_j > s_i − 1, and
c⁻_j = Σ w_i over the i of larger target with s_i − 1 < s_j. The plane that touches R at s is

    coef_i = factor·w_i (c⁻_i − c⁺_i),    offset = Σ factor·w_i c⁺_i

(Joachims, KDD 2006, for ordinal regression). His algorithm makes a pass per rank. Here a tree of
splits takes O(m log m) for any number of distinct targets; see ``loops.pairs``. In every query
Σ_i (c⁻_i − c⁺_i) w_i = 0, so R = offset + Σ coef_i (s_i − reference_q) for any reference. The code
takes a score of the query as its reference, because this loses no digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..exec import Executor, SerialExecutor
from ..loops import pairs
from ..loops.bounded import ABOVE, FEW, MANY, ROUNDING
from .base import ListwiseRisk, digest_of
from .pair_counter import PairCounter, PairLayout, UnevenPairs


@dataclass(frozen=True)
class PairStatistics:
    """Pairs y_i > y_j by query, each counted w_i·w_j times.

    Attributes
    ----------
    queries : ndarray, shape (queries,)
        The queries' numbers, ascending.
    comparable, swapped, tied : ndarray of int64, or of float64 with weights, shape (queries,)
        How many pairs there are, how many of them have s_i < s_j, and how many have s_i = s_j.
    """

    queries: np.ndarray
    comparable: np.ndarray
    swapped: np.ndarray
    tied: np.ndarray


class PairRisk(ListwiseRisk):
    """Mean margin violation over pairs of rows whose targets differ.

    Parameters
    ----------
    targets : ndarray, shape (rows,)
        Any real numbers. Rows with larger targets should get larger scores.
    queries : ndarray of integers, shape (rows,), optional
        The query of each row, in any order. Only rows of the same query are compared.
    weights : ndarray, shape (rows,), optional
        A pair counts w_i·w_j times.
    weighting : {"pairs", "queries"}, default="pairs"
        Whether all pairs count the same, or all queries with a pair.

    Attributes
    ----------
    rows : int
    pairs : int
        Pairs of rows of positive weight with different targets.
    queries : int
        Number of queries, with or without such a pair.
    idle_queries : int
        Number of queries without such a pair.
    ranked_rows : ndarray of integers
        The rows of positive weight of all other queries, in any order.
    """

    def __init__(
        self,
        targets: np.ndarray,
        *,
        queries: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        weighting: str = "pairs",
    ) -> None:
        layout = PairLayout(targets, queries, weights)
        self.rows = len(targets)
        self.pairs = int(layout.pairs().sum())
        self.queries = len(layout.ids)
        self.idle_queries = self.queries - len(layout.members)
        self.ranked_rows = layout.rows
        if self.pairs == 0:
            where = "" if queries is None else " in the same query"
            raise ValueError(
                f"there is no pair to rank: no two rows{where} with positive weight "
                "have different targets; check the targets, and the queries if there are any"
            )
        totals = layout.pair_weights()
        if weighting == "pairs":
            self._factors = np.full(len(totals), 1.0 / np.sum(totals))
        else:
            self._factors = 1.0 / (len(totals) * totals)
        self._counter = UnevenPairs(layout) if UnevenPairs.fits(layout) else PairCounter(layout)

    def evaluate(
        self, scores: np.ndarray, coef: np.ndarray, executor: Executor
    ) -> tuple[float, float]:
        if len(self._counter.layout.rows) < self.rows:
            coef.fill(0.0)
        products, pluses = self._counter.count(scores, 1.0, self._factors, coef, executor)
        value = float(np.sum(self._factors * (products + pluses)))
        value = 0.0 if value < 0.0 else value  # rounding; NaN stays NaN
        return value, float(np.sum(self._factors * pluses))

    def upper(
        self, high: np.ndarray, low: np.ndarray | None, errors: np.ndarray, executor: Executor
    ) -> float:
        """As for every risk. Scores of rows in no violated pair do not make the bound worse.

        The bound starts from the plane that touches at ``high``, evaluated at the scores. That
        plane has wrong pairs only where a pair misses the margin by no more than the scores move.
        Each such pair adds at most that much.
        """
        layout = self._counter.layout
        low = np.zeros(self.rows) if low is None else low
        # How much a score moves, and the rounding error of s − 1, which the count compares.
        reach = high - 1.0
        back = reach - high
        moves = errors + np.abs(low) + np.abs((high - (reach - back)) - (1.0 + back))
        # A window of this size finds every pair that the moves can change. The search for these
        # pairs makes comparisons as well, whose rounding errors the second term covers.
        wide = moves + FEW * ROUNDING * (1.0 + np.abs(high))
        ones, slopes = np.ones(len(self._factors)), np.zeros(self.rows)
        exposed = np.zeros(self.rows, np.bool_)
        exposed[layout.rows] = True
        # The first look takes the largest move of any row. If no pair is that near to the margin,
        # it suffices. The closer look takes only the moves of rows that have a pair near it.
        for closer_look in (False, True):
            if closer_look:
                pairs.find_exposed(high, wide, layout.rows, layout.levels, layout.starts, exposed)
            move, window = (
                2.0 * ABOVE * float(np.max(part, initial=0.0, where=exposed))
                for part in (moves, wide)
            )
            if np.isfinite(window):
                most = self._counter.count(high, 1.0 + window, ones, slopes, executor)[1]
                least = self._counter.count(high, 1.0 - window, ones, slopes, executor)[1]
                if np.array_equal(most, least):
                    break
        if not np.isfinite(window):
            return float("inf")
        pluses = self._counter.count(high, 1.0, ones, slopes, executor)[1]
        values = np.empty(len(self._factors))
        plane = (slopes, self._counter.masses(slopes), pluses)
        given = (layout.rows, layout.weighted, layout.starts)
        pairs.plane_values(high, low, errors, *given, *plane, values)
        rounding = ((len(layout.rows) if layout.weighted else 0) + MANY) * ROUNDING
        values += move * (most - least + rounding * most)
        return float(np.sum(self._factors * np.maximum(0.0, values))) * (1.0 + 2.0 * rounding)

    def digest(self) -> bytes:
        layout = self._counter.layout
        arrays = (layout.rows, layout.after, layout.starts, layout.weights, self._factors)
        return digest_of(("pairs", self.rows), *arrays)


def pair_statistics(
    targets: np.ndarray,
    scores: np.ndarray,
    queries: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> PairStatistics:
    """Comparable, swapped and tied pairs of each query.

    Parameters
    ----------
    targets, scores : ndarray, shape (rows,)
    queries : ndarray of integers, shape (rows,), optional
        Only rows of the same query are compared.
    weights : ndarray, shape (rows,), optional
        A pair counts w_i·w_j times. Rows of weight 0 do not count.
    """
    layout = PairLayout(targets, queries, weights)
    # Only the order matters. Ranks are integers, so a margin of ½ also counts ties, and 0 does not.
    steps = np.unique(scores, return_inverse=True)[1].astype(np.float64)
    counter = PairCounter(layout)
    rest = (np.ones(len(layout.members)), np.empty(len(scores)), SerialExecutor())
    swapped = counter.count(steps, 0.0, *rest)[1]
    tied = np.maximum(counter.count(steps, 0.5, *rest)[1] - swapped, 0.0)
    comparable = layout.pair_weights() if layout.weighted else layout.pairs()

    def by_query(numbers: np.ndarray) -> np.ndarray:
        out = np.zeros(len(layout.ids), np.float64 if layout.weighted else np.int64)
        out[layout.members] = numbers
        return out

    return PairStatistics(layout.ids, by_query(comparable), by_query(swapped), by_query(tied))
