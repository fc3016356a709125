"""Counts the violated pairs of rows at given scores: what the risks in ``risks.pairs`` need."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..exec import Executor
from ..loops import pairs as loops
from .order import ScoreOrder

# In a query of at most so many rows, every row is compared with every other row.
_SMALL = 400
# The same for a leaf of the tree that divides a larger query.
_LEAF = 128
# A piece of work has at least so many rows, and fewer than twice as many. Pieces depend on the data
# alone.
_PIECE = 1 << 16
# Two levels are uneven if one has at least so many times the rows of the other. Then the scores of
# the few rows go into a table with _CELLS cells per score, and a piece of work has at least
# _MANY_PIECE of the many rows.
UNEVEN = 6
_CELLS = 16
_MANY_PIECE = 1 << 14


class PairLayout:
    """The rows that are in pairs, sorted by query and target, small queries first.

    The position of a row in this order is its place. A level is a run of places of one query and
    target.

    Attributes
    ----------
    weighted : bool
        Whether weights differ from 1. If not, pairs are counted in integers.
    ids : ndarray, shape (all queries,)
        The numbers of all queries, ascending.
    rows : ndarray of uint32, shape (places,)
        The row at each place.
    weights : ndarray of float64, shape (places,)
    levels : ndarray of int64, shape (levels + 1,)
        The first place of each level.
    after : ndarray of int64, shape (places,)
        For each place the first one behind its level.
    starts : ndarray of int64, shape (queries + 1,)
        The first place of each query that has a pair.
    members : ndarray of int64, shape (queries,)
        The positions of these queries in ``ids``.
    small : int
        How many of these queries are small; they come first.
    """

    def __init__(
        self, targets: np.ndarray, queries: np.ndarray | None, weights: np.ndarray | None
    ) -> None:
        if weights is not None and np.all(weights == 1.0):
            weights = None
        self.weighted = weights is not None
        self.ids, number = np.zeros(1, np.int64), np.zeros(len(targets), np.int64)
        if queries is not None:
            self.ids, number = np.unique(queries, return_inverse=True)
        rows = np.arange(len(targets)) if weights is None else np.flatnonzero(weights)
        rows = rows[np.lexsort((targets[rows], number[rows]))]
        # Queries whose smallest and largest target differ, small ones first.
        sizes = np.bincount(number[rows], minlength=len(self.ids))
        paired = sizes > 1
        ends = np.cumsum(sizes)[paired]
        first, last = rows[ends - sizes[paired]], rows[ends - 1]
        paired[paired] = targets[first] < targets[last]
        rows = rows[paired[number[rows]]]
        rows = rows[np.argsort(sizes[number[rows]] > _SMALL, kind="stable")]
        self.members = np.flatnonzero(paired)
        self.members = self.members[np.argsort(sizes[self.members] > _SMALL, kind="stable")]
        self.small = int(np.sum(sizes[self.members] <= _SMALL))
        self.starts = np.concatenate([[0], np.cumsum(sizes[self.members])]).astype(np.int64)
        self.rows = rows.astype(np.uint32)
        self.weights = np.ones(len(rows)) if weights is None else weights[rows]
        new, y, q = np.ones(len(rows), bool), targets[rows], number[rows]
        new[1:] = (y[1:] != y[:-1]) | (q[1:] != q[:-1])
        self.levels = np.append(np.flatnonzero(new), len(rows))
        self.after = np.repeat(self.levels[1:], np.diff(self.levels))

    def pairs(self) -> np.ndarray:
        """Number of pairs in each query."""
        level = np.repeat(self.levels[:-1], np.diff(self.levels))
        below = level - np.repeat(self.starts[:-1], np.diff(self.starts))
        return np.add.reduceat(below, self.starts[:-1]) if len(below) else below

    def pair_weights(self) -> np.ndarray:
        """Σ w_i·w_j over the pairs of each query."""
        if not self.weighted:
            return self.pairs().astype(float)
        totals = np.empty(len(self.members))
        loops.pair_weights(self.weights, self.after, self.starts, totals)
        return totals


class _Tree:
    """How the large queries are split: nodes (start, mid, stop, side), parents before children.

    Several threads work on one node of ``wide``. All other nodes are in ``nodes``. ``tasks`` are
    ranges of these, each of entire subtrees with about ``_PIECE`` rows together.
    """

    def __init__(self, layout: PairLayout) -> None:
        nodes = np.empty((len(layout.levels), 4), np.int64)
        nodes = nodes[: loops.plant(layout.levels, layout.starts[layout.small :], _LEAF, nodes)]
        size = nodes[:, 2] - nodes[:, 0]
        parent = np.append(nodes[1:, 0] < nodes[:-1, 2], False)  # the next node is its child
        wide = size >= np.where(parent, 1, 2) * _PIECE
        self.wide = [(a, b, c, d) for a, b, c, d in nodes[wide].tolist()]
        self.nodes = nodes[~wide]
        edges, rows, end = [0], 0, 0
        for k, (start, _, stop, _) in enumerate(self.nodes.tolist()):
            if start >= end:  # the root of a subtree
                if rows + stop - start > _PIECE and k > edges[-1]:
                    edges.append(k)
                    rows = 0
                rows += stop - start
                end = stop
        self.tasks = list(pairwise([*edges, len(self.nodes)])) if len(self.nodes) else []


class PairCounter:
    """Counts the violated pairs at any scores. It keeps its buffers from call to call.

    Parameters
    ----------
    layout : PairLayout
        The rows by query and target.
    """

    def __init__(self, layout: PairLayout) -> None:
        self.layout = layout
        starts, places = layout.starts, len(layout.rows)
        self._local, self._reach = np.empty(places), np.empty(places)
        self._counts = np.empty(2 * places)
        self._small = _ranges(starts[: layout.small + 1])
        self._base = int(starts[layout.small])
        if places > self._base:
            self._tree = _Tree(layout)
            self._order = ScoreOrder(places - self._base)
            self._keys = np.empty((2, places))
            self._ids = np.empty((2, places), np.uint32)
            self._sums, self._values = np.empty(places), np.empty(places)
            sizes = np.diff(starts[layout.small :])
            self._query_of = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
            # (query, start, stop): the places whose coefficients one task computes.
            self._pieces = [
                (query, *part)
                for query in range(layout.small, len(layout.members))
                for part in parts_of(int(starts[query]), int(starts[query + 1]), _PIECE)
            ]

    def count(
        self,
        scores: np.ndarray,
        margin: float,
        factors: np.ndarray,
        coef: np.ndarray,
        executor: Executor,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Count the pairs with s_i − margin < s_j of each query, where target i is above target j.

        Parameters
        ----------
        scores : ndarray of float64, shape (rows,)
        margin : float
        factors : ndarray of float64, shape (queries with a pair,)
        coef : ndarray of float64, shape (rows,)
            Gets factor·w_i (c⁻_i − c⁺_i) for rows that are in a pair; see ``risks.pairs``.
        executor : Executor

        Returns
        -------
        products, pluses : ndarray of float64, shape (queries with a pair,)
            Σ w_i (c⁻_i − c⁺_i) s_i and Σ w_i c⁺_i.
        """
        layout = self.layout
        sums = np.zeros((2, len(factors)))
        given = (layout.rows, layout.weights, layout.after, layout.starts, factors)
        found = (self._local, self._reach, self._counts, coef, *sums)

        def small(task: int) -> None:
            loops.small_queries(scores, *given, *self._small[task], margin, *found)

        executor.run(small, len(self._small))
        if self._base < len(layout.rows):
            self._sort(scores, margin, executor)
            self._count_large(margin, executor)
            self._finish_large(factors, coef, sums, executor)
        return sums[0], sums[1]

    def masses(self, slopes: np.ndarray) -> np.ndarray:
        """w(c⁻ + c⁺) by place, of the last count. ``slopes`` are its coefficients for factors 1."""
        down, up = self._counts.reshape(2, -1)
        return self.layout.weights * (down + up)

    def _sort(self, scores: np.ndarray, margin: float, executor: Executor) -> None:
        """Write the rows of each large query, in order of score, to line 0 of keys and ids."""
        layout, base = self.layout, self._base
        parts = parts_of(base, len(layout.rows), _PIECE)
        found = (self._local, self._reach, self._counts)

        def load(part: int) -> None:
            loops.load(scores, layout.rows, *parts[part], margin, *found)

        def fetch(part: int) -> None:
            start, stop = parts[part]
            places = order[start - base : stop - base] + np.uint32(base)
            self._ids[0, start:stop] = places
            np.take(self._local, places, out=self._keys[0, start:stop], mode="clip")

        executor.run(load, len(parts))
        order = self._order.sort(self._local[base:], executor)
        if len(layout.members) - layout.small > 1:
            ends = layout.starts[layout.small :].astype(np.uint64)
            loops.distribute(order, self._local, base, self._query_of, ends, self._keys, self._ids)
        else:
            executor.run(fetch, len(parts))

    def _count_large(self, margin: float, executor: Executor) -> None:
        """Count the pairs in the large queries."""
        layout, tree = self.layout, self._tree
        given = (layout.weights, layout.weighted, layout.after, margin, self._local, self._reach)
        found = (self._keys, self._ids, self._sums, self._values, self._counts)

        def subtrees(task: int) -> None:
            loops.subtrees(tree.nodes, *tree.tasks[task], *given, *found)

        for node in tree.wide:
            self._count_wide(*node, margin, executor)
        executor.run(subtrees, len(tree.tasks))

    def _count_wide(
        self, start: int, mid: int, stop: int, side: int, margin: float, executor: Executor
    ) -> None:
        """Split a node in pieces, and count the pairs of its low rows with its high rows."""
        keys, ids, sums = self._keys, self._ids, self._sums
        weights = (self.layout.weights, self.layout.weighted)
        found = (sums, self._values, self._counts)
        parts = parts_of(start, stop, _PIECE)
        other = 1 - side

        def count_low(part: int) -> int:
            return int(np.count_nonzero(ids[side, slice(*parts[part])] < mid))

        def split(part: int) -> None:
            low = start + lows[part]
            high = mid + parts[part][0] - low
            loops.split(keys, ids, side, *parts[part], mid, low, high)

        def sum_up(task: int) -> float:
            if task == 0:
                return loops.high_sums(ids, other, *weights, mid, stop, sums)
            loops.low_sums(ids, other, *weights, start, mid, sums)
            return 0.0

        def merge(part: int) -> None:
            (low, high), (low_stop, high_stop) = cuts[part], cuts[part + 1]
            rest = sums[low_stop] if low_stop < mid else 0.0
            before = sums[high_stop] if high_stop < stop else total
            ends = (low, low_stop, high, high_stop, rest, before)
            loops.merge(keys, ids, other, *ends, margin, *found)

        lows = np.concatenate([[0], np.cumsum(executor.run(count_low, len(parts)))])
        executor.run(split, len(parts))
        total = executor.run(sum_up, 2)[0]
        cuts = [(start, mid)]
        for a, b in parts:
            low, high = cuts[-1]
            lows_here = loops.cut(keys, other, low, mid, high, stop, margin, b - a)
            cuts.append((low + lows_here, high + b - a - lows_here))
        executor.run(merge, len(parts))

    def _finish_large(
        self, factors: np.ndarray, coef: np.ndarray, sums: np.ndarray, executor: Executor
    ) -> None:
        """Compute coefficients, products and pluses of the large queries from the counts."""
        layout = self.layout
        given = (self._local, layout.weights, layout.rows, self._counts)

        def finish(piece: int) -> tuple[float, float]:
            query, start, stop = self._pieces[piece]
            ends = layout.starts[query], layout.starts[query + 1]
            reference = loops.reference_of(self._local, *ends)
            return loops.spread(*given, start, stop, reference, factors[query], coef)

        results = executor.run(finish, len(self._pieces))
        for (query, _, _), result in zip(self._pieces, results, strict=True):
            sums[:, query] += result


class UnevenPairs:
    """Counts the violated pairs of one query with two levels, one of few and one of many rows.

    It sorts only the few rows, so that a count takes O(rows + few·log few). It makes the same
    comparisons as ``PairCounter`` and has the same methods.

    Parameters
    ----------
    layout : PairLayout
        One for which ``fits`` is true.
    """

    def __init__(self, layout: PairLayout) -> None:
        self.layout = layout
        mid, rows = int(layout.levels[1]), len(layout.rows)
        self._few_are_high = rows - mid < mid
        low, high = slice(0, mid), slice(mid, rows)
        few, many = (high, low) if self._few_are_high else (low, high)
        self._few_rows, self._few_weights = layout.rows[few], layout.weights[few]
        self._many_rows, self._many_weights = layout.rows[many], layout.weights[many]
        count = len(self._few_rows)
        self._order = ScoreOrder(count)
        self._keys = np.full(count + 2, np.nan)  # no score is above the last two, which stay NaN
        self._table = np.zeros(_CELLS * count + 1, np.int32)
        self._places = np.empty(len(self._many_rows), np.int32)
        self._parts = parts_of(0, len(self._many_rows), max(_MANY_PIECE, 2 * count))
        self._histograms = np.empty((len(self._parts), count + 1))

    @staticmethod
    def fits(layout: PairLayout) -> bool:
        """Whether the layout has one large query with two levels of very different size."""
        if len(layout.members) != 1 or layout.small or len(layout.levels) != 3:
            return False
        mid, rows = int(layout.levels[1]), len(layout.rows)
        return min(mid, rows - mid) * UNEVEN <= max(mid, rows - mid)

    def count(
        self,
        scores: np.ndarray,
        margin: float,
        factors: np.ndarray,
        coef: np.ndarray,
        executor: Executor,
    ) -> tuple[np.ndarray, np.ndarray]:
        """As ``PairCounter.count``."""
        # A pair is violated if s_high − margin < s_low. So the margin is subtracted from high rows.
        few_shift, many_shift = (margin, 0.0) if self._few_are_high else (0.0, margin)
        few = scores[self._few_rows] - few_shift
        order = self._order.sort(few, executor)
        keys = self._keys
        np.take(few, order, out=keys[:-2])
        low, cells = float(keys[0]), len(self._table) - 1
        width = float(keys[-3]) - low
        scale = cells / width if 0.0 < width < np.inf else 0.0
        scale = scale if np.isfinite(scale) else 0.0
        with np.errstate(invalid="ignore", over="ignore"):  # scores that are no numbers
            places = np.fmin(np.fmax((keys[:-2] - low) * scale, 0.0), cells - 1.0)
        self._table[1:] = np.cumsum(np.bincount(places.astype(np.int64), minlength=cells))
        before = np.concatenate([[0.0], np.cumsum(self._few_weights[order])])
        rows, weights = self._many_rows, self._many_weights
        reference = float(loops.reference_of(few, 0, len(few))) + few_shift
        ties = not self._few_are_high

        # Coefficients of high rows are negative, those of low rows positive.
        few_sign = -1.0 if self._few_are_high else 1.0

        def serve_many(part: int) -> tuple[float, float]:
            histogram = self._histograms[part]
            histogram[:] = 0.0
            found = (keys, low, scale, self._table, self._places, histogram)
            loops.locate(scores, rows, weights, *self._parts[part], many_shift, ties, *found)
            given = (self._places, before, -few_sign, reference, factors[0], coef)
            return loops.spread_many(scores, rows, weights, *self._parts[part], *given)

        many = np.sum(executor.run(serve_many, len(self._parts)), axis=0)
        given = (self._few_rows, self._few_weights, order, self._histograms.sum(axis=0))
        mass, product = loops.spread_few(scores, *given, few_sign, reference, factors[0], coef)
        pluses = mass if self._few_are_high else float(many[0])
        return np.array([product + float(many[1])]), np.array([pluses])

    def masses(self, slopes: np.ndarray) -> np.ndarray:
        """As ``PairCounter.masses``. With two levels, one of c⁻ and c⁺ is 0 for every row."""
        return np.abs(slopes[self.layout.rows])


def parts_of(start: int, stop: int, least: int) -> list[tuple[int, int]]:
    """Divide the range from start to stop into even pieces, each of ``least`` places or more."""
    count = max(1, (stop - start) // least)
    edges = [start + (stop - start) * k // count for k in range(count + 1)]
    return list(pairwise(edges))


def _ranges(starts: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of small queries, each a piece of work. They have fewer rows, as a row costs more."""
    if len(starts) == 1:
        return []
    edges = np.searchsorted(
        starts, [stop for _, stop in parts_of(0, int(starts[-1]), max(1, _PIECE // 4))]
    )
    return list(pairwise(np.unique(np.append(0, edges)).tolist()))
