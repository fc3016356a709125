"""The order of scores, which risks of whole rankings need at every point."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..exec import Executor
from ..loops import sorting as loops

# Below this many rows numpy's sort is faster than several calls.
_FEW = 1500
# Rows a thread must have for a round of pool tasks to pay off.
_ROWS_PER_PART = 1 << 15
# Moves of the insertion sort per row before the keys count as badly spread.
_MOVES = 4


class ScoreOrder:
    """Sorts the same number of scores again and again, in buffers it keeps.

    Parameters
    ----------
    rows : int
        Number of scores, below 2³².
    """

    def __init__(self, rows: int) -> None:
        if not 0 <= rows < 1 << 32:
            raise ValueError(f"can order fewer than 2**32 rows, not {rows}")
        self.rows = rows
        self._index_bits = max(1, (rows - 1).bit_length())
        self._order = np.arange(rows, dtype=np.uint32)
        self._slices = [slice(0, rows)]
        if rows > _FEW:
            self._packed = np.empty(rows, np.uint64)
            self._spare = np.empty(rows, np.uint64)
            # Buckets of about 128 rows, but not more than the cache can write to at once.
            self._lead = min(11, max(1, self._index_bits - 7))

    def sort(self, scores: np.ndarray, executor: Executor) -> np.ndarray:
        """Row numbers in ascending order of score, equal scores in row order.

        Parameters
        ----------
        scores : ndarray of float64, shape (rows,)
            Contiguous. What is not a number may end up anywhere.
        executor : Executor

        Returns
        -------
        order : ndarray of uint32, shape (rows,)
            Reused by the next call.
        """
        if self.rows <= _FEW:
            self._order[:] = np.argsort(scores, kind="stable")
            return self._order
        parts = min(executor.threads, max(1, self.rows // _ROWS_PER_PART))
        edges = [self.rows * part // parts for part in range(parts + 1)]
        self._slices = [slice(a, b) for a, b in pairwise(edges)]
        if not (self._on_a_line(scores, executor) or self._by_bits(scores, executor)):
            self._order[:] = np.argsort(scores, kind="stable")
        return self._order

    def _on_a_line(self, scores: np.ndarray, executor: Executor) -> bool:
        """Sort by keys that are even steps between the extremes, if that spreads them well."""
        bounds = self._run(lambda rows: (scores[rows].min(), scores[rows].max()), executor)
        # numpy's minimum, unlike Python's, is NaN if anything is.
        low, high = float(np.min(bounds)), float(np.max(bounds))
        if low == high:
            self._order[:] = np.arange(self.rows, dtype=np.uint32)
            return True
        bits = min(64 - self._index_bits, 53)
        scale = math.ldexp(1.0 - 1e-9, bits) / (high - low)  # 0 or NaN if they are not finite
        if not 0.0 < scale < math.inf:
            return False
        shift = np.uint64(bits - self._lead)
        counts = np.zeros((len(self._slices), 1 << self._lead), np.int64)

        def count(part: int) -> None:
            loops.count_line(scores[self._slices[part]], low, scale, shift, counts[part])

        def scatter(part: int) -> None:
            rows = self._slices[part]
            loops.scatter_line(
                scores[rows],
                rows.start,
                low,
                scale,
                shift,
                np.uint64(self._index_bits),
                counts[part],
                self._packed,
            )

        executor.run(count, len(self._slices))
        # As if the scores were even inside a bucket, once the table has split it.
        sizes = counts.sum(axis=0).astype(float)
        entries = np.minimum(sizes, float(1 << loops.TABLE_BITS))
        if np.sum(sizes * sizes / np.maximum(entries, 1.0)) > 4.0 * _MOVES * self.rows:
            return False
        return self._scatter_and_finish(scores, counts, shift, scatter, executor)

    def _by_bits(self, scores: np.ndarray, executor: Executor) -> bool:
        """Sort by keys from the bit patterns: for scores of very different size."""
        bits = scores.view(np.uint64)
        bounds = self._run(lambda rows: loops.bit_bounds(bits[rows]), executor)
        low, high = min(int(b[0]) for b in bounds), max(int(b[1]) for b in bounds)
        length = (high - low).bit_length()
        drop = np.uint64(max(0, length - (64 - self._index_bits)))
        shift = np.uint64(max(0, length - int(drop) - self._lead))
        counts = np.zeros((len(self._slices), 1 << self._lead), np.int64)

        def count(part: int) -> None:
            loops.count_bits(bits[self._slices[part]], np.uint64(low), drop, shift, counts[part])

        def scatter(part: int) -> None:
            rows = self._slices[part]
            loops.scatter_bits(
                bits[rows],
                rows.start,
                np.uint64(low),
                drop,
                shift,
                np.uint64(self._index_bits),
                counts[part],
                self._packed,
            )

        executor.run(count, len(self._slices))
        return self._scatter_and_finish(scores, counts, shift, scatter, executor)

    def _scatter_and_finish(
        self,
        scores: np.ndarray,
        counts: np.ndarray,
        shift: np.uint64,
        scatter: Callable[[int], None],
        executor: Executor,
    ) -> bool:
        starts = np.empty(counts.shape[1] + 1, np.int64)
        loops.places_of(counts, starts)
        parts = len(self._slices)
        executor.run(scatter, parts)
        targets = [self.rows * part // parts for part in range(parts + 1)]
        edges = np.searchsorted(starts, targets)

        def finish(part: int) -> bool:
            return loops.finish(
                self._packed,
                scores,
                starts,
                edges[part],
                edges[part + 1],
                shift,
                np.uint64(self._index_bits),
                _MOVES * self.rows,
                self._spare,
                self._order,
            )

        return all(executor.run(finish, parts))

    def _run(
        self, function: Callable[[slice], tuple[Any, Any]], executor: Executor
    ) -> list[tuple[Any, Any]]:
        """The function's results for each part of the rows."""
        return executor.run(lambda part: function(self._slices[part]), len(self._slices))
