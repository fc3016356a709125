"""Average precision and NDCG of rankings within queries.

In one query let p rows be relevant and n not. A ranking π swaps a pair (i relevant, j not) if it
puts j above i. The ranking by falling score swaps the pairs with s_i < s_j. The risk is the value
of the worst ranking, by loss and score together (Yue et al. 2007):

    R(s) = max_π  Δ(π) − (2/pn) Σ_{pairs swapped by π} (s_i − s_j).

R is a maximum of linear functions, so it is convex. A ranking without a swapped pair has Δ = 0, so
R ≥ 0. The ranking by score swaps only pairs with s_i ≤ s_j, so R is at least its loss. The order
among relevant rows, and among the others, does not matter.

    average precision   Δ = 1 − (1/p) Σ_i i/r_i         r_i: position of the i-th relevant row
    NDCG@k              Δ = 1 − Σ_{r_i ≤ k} D(r_i)/Σ_{i ≤ k} D(i),    D(r) = 1/log₂(1 + r)

``loops.rankings`` finds the worst ranking exactly: O(m log m) without k, O(m log m + k² + k·p)
with it.

**Grades.** With relevance v_0 < v_1 < … and gain 2^v − 1, the gain of a row is the sum of the
steps up to its grade. So DCG = Σ_t (gain(v_t) − gain(v_{t−1}))·DCG_t, where DCG_t takes the rows of
relevance v_t or higher as relevant. The best ranking is best for every t. So 1 − NDCG is a weighted
mean of the losses of these problems with two classes. With their weights λ_t,

    R(s) = Σ_t λ_t R_t(s)

is convex and at least 1 − NDCG.

The risk of several queries is the mean over the queries with both kinds of rows.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..exec import Executor
from ..loops import rankings as loops
from ..loops.bounded import FEW, ROUNDING
from .base import ListwiseRisk, digest_of
from .pair_counter import parts_of

# Rows that make one piece of work.
_PIECE = 1 << 13


class RankingRisk(ListwiseRisk):
    """The mean over queries of 1 − average precision, or of 1 − NDCG@k, made convex.

    Parameters
    ----------
    relevance : ndarray, shape (rows,)
        For average precision, rows above 0 are relevant. For NDCG the values are at least 0, and
        few should differ: every value but the smallest costs as much as a problem of two classes.
    objective : {'average_precision', 'ndcg'}
    queries : ndarray of integers, shape (rows,), optional
        The query of each row, in any order. Each query is ranked on its own.
    k : int, optional
        For NDCG the number of positions that count. None means all.

    Attributes
    ----------
    rows : int
    pairs : int
        Pairs of rows of one query that differ in relevance.
    queries, idle_queries : int
        Number of queries, and of queries without such a pair.
    ranked_rows : ndarray of integers
        The rows of all other queries.
    """

    def __init__(
        self,
        relevance: np.ndarray,
        objective: str,
        *,
        queries: np.ndarray | None = None,
        k: int | None = None,
    ) -> None:
        relevance = np.asarray(relevance, np.float64)
        if objective == "ndcg" and relevance.min() < 0.0:
            raise ValueError(
                f"relevance must be at least 0 for NDCG, got {relevance.min():g}: add a constant, "
                "so that rows that are not relevant have 0"
            )
        if objective == "ndcg" and relevance.max() > 1000.0:
            raise ValueError(
                f"relevance {relevance.max():g} has a gain of 2^{relevance.max():g} in NDCG, which "
                "is no finite number; give grades such as 0 to 4"
            )
        if objective == "average_precision":
            relevance = (relevance > 0.0).astype(np.float64)
            k = None
        self.rows = len(relevance)
        self._objective, self._k = objective, k
        number = np.zeros(self.rows, np.int64)
        if queries is not None:
            number = np.unique(queries, return_inverse=True)[1].astype(np.int64)
        order = np.lexsort((relevance, number))
        edges = np.append(np.flatnonzero(np.diff(number[order], prepend=-1)), self.rows)
        self.queries = len(edges) - 1
        self._lay_out(relevance, order, edges)
        self.idle_queries = self.queries - (len(self._starts) - 1)

    def _lay_out(self, relevance: np.ndarray, order: np.ndarray, edges: np.ndarray) -> None:
        """Rows, levels and tasks of the queries that have something to rank."""
        longest = int(np.diff(edges).max())
        self._top = longest if self._k is None else int(self._k)
        self._worth = loops.discounts(longest, self._top)
        best = np.cumsum(self._worth)  # best[p]: the DCG of p relevant rows in the first positions
        rows, levels, starts, tasks = [], [], [0], [0]
        shares: list[float] = []
        ideals: list[float] = []
        slopes = np.zeros(self.rows)
        self.pairs = 0
        for start, stop in pairwise(edges.tolist()):
            own = order[start:stop]
            values, level = np.unique(relevance[own], return_inverse=True)
            if len(values) == 1:
                continue
            m = len(own)
            relevant = np.array([np.sum(level > t) for t in range(len(values) - 1)])
            if self._objective == "ndcg":
                gains = np.exp2(values) - 1.0
                ideal = best[relevant]
                parts = np.diff(gains) * ideal
                share = parts / (parts.sum() + gains[0] * best[m])
            else:
                ideal, share = np.zeros(1), np.ones(1)
            # Coefficients are at most 2/p for relevant rows, and 2/n for other rows.
            for t, p in enumerate(relevant):
                slopes[own] += share[t] * np.where(level > t, 2.0 / p, 2.0 / (m - p))
            sizes = np.bincount(level)
            self.pairs += (m * m - int(np.sum(sizes * sizes))) // 2
            rows.append(own)
            levels.append(level)
            starts.append(starts[-1] + m)
            tasks.append(tasks[-1] + len(relevant))
            shares += share.tolist()
            ideals += ideal.tolist()
        active = len(rows)
        if active == 0:
            where = "" if self.queries == 1 else " in the same query"
            raise ValueError(
                f"there is nothing to rank: no two rows{where} differ in relevance; check the "
                "targets, and the queries if there are any"
            )
        self.ranked_rows = np.concatenate(rows).astype(np.int64)
        self._levels = np.concatenate(levels).astype(np.int64)
        self._starts, self._tasks = np.array(starts), np.array(tasks)
        self._shares, self._ideals = np.array(shares) / active, np.array(ideals)
        self._slopes = slopes / active
        count = len(parts_of(0, len(self.ranked_rows), _PIECE))
        targets = [len(self.ranked_rows) * part // count for part in range(count + 1)]
        self._edges = np.unique(np.searchsorted(self._starts, targets))

    def evaluate(
        self, scores: np.ndarray, coef: np.ndarray, executor: Executor
    ) -> tuple[float, float]:
        if len(self.ranked_rows) < self.rows:
            coef.fill(0.0)
        sums = np.zeros((2, len(self._starts) - 1))
        queries = (self.ranked_rows, self._levels, self._starts)
        tasks = (self._tasks, self._shares, self._ideals)

        def some(part: int) -> None:
            ends = self._edges[part : part + 2]
            found = (self._worth, self._top, coef, sums)
            loops.evaluate_queries(scores, *queries, *tasks, *ends, *found)

        executor.run(some, len(self._edges) - 1)
        offset = float(np.sum(sums[1]))
        value = offset + float(np.sum(sums[0]))
        return (0.0 if value < 0.0 else value), offset  # rounding; NaN stays NaN

    def upper(
        self, high: np.ndarray, low: np.ndarray | None, errors: np.ndarray, executor: Executor
    ) -> float:
        """As for every risk. When a score moves, the risk grows by its largest coefficient at most.

        The search for the most violated ranking compares sums of at most m gains. Rounding may
        mislead it once per halving. Each time, the risk of the ranking that it finds is too low by
        no more than the rounding errors of these sums. The gains of a query have a sum of at most
        1 + 4·(largest − smallest score).
        """
        value, _ = self.evaluate(high, np.empty(self.rows), executor)
        moves = errors if low is None else errors + np.abs(low)
        value += float(np.sum(self._slopes * moves))
        local = high[self.ranked_rows]
        spread = np.maximum.reduceat(local, self._starts[:-1])
        spread = spread - np.minimum.reduceat(local, self._starts[:-1])
        m = np.diff(self._starts)
        share = np.add.reduceat(self._shares, self._tasks[:-1])
        rounding = FEW * ROUNDING * m * (2.0 + np.log2(m)) * (1.0 + 4.0 * spread)
        return (value + float(np.sum(share * rounding))) * (1.0 + self.rows * ROUNDING)

    def digest(self) -> bytes:
        arrays = (self.ranked_rows, self._levels, self._starts, self._tasks, self._shares)
        return digest_of((self._objective, self.rows, self._k), *arrays)
