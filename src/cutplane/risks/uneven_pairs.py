"""Counts the violated pairs of two levels, of few and of many rows: rare positives, as a rule.

Only the few are sorted, so that an evaluation takes O(rows + few·log few): see
``loops.uneven_pairs``. What is computed is that of ``PairCounter``, with the same comparisons.
"""

from __future__ import annotations

import numpy as np

from ..exec import Executor
from ..loops import uneven_pairs as loops
from ..loops.pairs import reference_of
from .order import ScoreOrder
from .pair_counter import PairLayout, parts_of

# Many times more rows of one level than of the other make it worth while.
UNEVEN = 6
# Cells of the table per key.
_CELLS = 16
# Rows that make one piece of work.
_PIECE = 1 << 14


class UnevenPairs:
    """Finds the violated pairs of two levels in one query.

    Parameters
    ----------
    layout : PairLayout
        For which ``fits``.
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
        self._keys = np.full(count + 2, np.nan)  # two that no score is above
        self._table = np.zeros(_CELLS * count + 1, np.int32)
        self._places = np.empty(len(self._many_rows), np.int32)
        self._parts = parts_of(0, len(self._many_rows), max(_PIECE, 2 * count))
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
        # A pair is violated if s_high − margin < s_low: the margin is with the high rows.
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
        reference = float(reference_of(few, 0, len(few))) + few_shift
        ties = not self._few_are_high

        # High rows are pushed up, coefficient −; low rows down.
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
        """As ``PairCounter.masses``: of two levels a row has pairs above it or below it only."""
        return np.abs(slopes[self.layout.rows])
