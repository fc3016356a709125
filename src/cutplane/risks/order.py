"""The order of the scores, which risks of rankings need at every point."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ..exec import Executor
from ..loops import sorting as loops

# Below this many rows numpy's sort is faster than several calls.
_FEW = 1500
# With fewer rows per thread, starting the threads takes longer than they save.
_ROWS_PER_PART = 1 << 15
# If the insertion sort needs more moves per row, the keys count as badly spread.
_MOVES = 4


class ScoreOrder:
    """Sorts scores, always the same number of them. It keeps its buffers from call to call.

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
            Contiguous. NaN may end up anywhere.
        executor : Executor

        Returns
        -------
        order : ndarray of uint32, shape (rows,)
            The next call overwrites it.
        """
        if self.rows <= _FEW:
            self._order[:] = np.argsort(scores, kind="stable")
            return self._order
        parts = min(executor.threads, max(1, self.rows // _ROWS_PER_PART))
        edges = [self.rows * part // parts for part in range(parts + 1)]
        self._slices = [slice(a, b) for a, b in pairwise(edges)]
        bits = scores.view(np.uint64)
        ends = executor.map(lambda rows: (scores[rows].min(), scores[rows].max()), self._slices)
        # numpy's minimum, unlike Python's, is NaN if anything is.
        low, high = float(np.min(ends)), float(np.max(ends))
        if low == high:
            self._order[:] = np.arange(self.rows, dtype=np.uint32)
            return self._order
        # Keys that are even steps between the extremes, if that spreads them well.
        room = 64 - self._index_bits
        length = min(room, 53)
        scale = math.ldexp(1.0 - 1e-9, length) / (high - low)  # 0 or NaN if they are not finite
        line = (False, low, scale, np.uint64(0), np.uint64(0))
        if 0.0 < scale < math.inf and self._sort_by(line, length, scores, bits, executor):
            return self._order
        # Keys from the bit patterns, for scores of very different size.
        least, most = 0, (1 << 64) - 1
        if not math.isnan(low):
            least, most = (int(loops.bit_key(end)) for end in np.array([low, high]).view(np.uint64))
        length = (most - least).bit_length()
        drop = max(0, length - room)
        pattern = (True, 0.0, 0.0, np.uint64(least), np.uint64(drop))
        if not self._sort_by(pattern, length - drop, scores, bits, executor):
            self._order[:] = np.argsort(scores, kind="stable")
        return self._order

    def _sort_by(
        self,
        key: tuple[Any, ...],
        length: int,
        scores: np.ndarray,
        bits: np.ndarray,
        executor: Executor,
    ) -> bool:
        """Sort by keys of a length, see ``loops.sorting``; False if they are badly spread."""
        parts = len(self._slices)
        shift, index_bits = np.uint64(max(0, length - self._lead)), np.uint64(self._index_bits)
        counts = np.zeros((parts, 1 << self._lead), np.int64)

        def count(rows: slice, own: np.ndarray) -> None:
            loops.count(scores[rows], bits[rows], *key, shift, own)

        def scatter(rows: slice, own: np.ndarray) -> None:
            given = (rows.start, index_bits, own, self._packed)
            loops.scatter(scores[rows], bits[rows], *key, shift, *given)

        executor.map(count, self._slices, counts)
        on_a_line = not key[0]
        if on_a_line:
            # As if the scores were even inside a bucket, once the table has split it.
            sizes = counts.sum(axis=0).astype(float)
            entries = np.minimum(sizes, float(1 << loops.TABLE_BITS))
            if np.sum(sizes * sizes / np.maximum(entries, 1.0)) > 4.0 * _MOVES * self.rows:
                return False
        by_bucket = counts.T.reshape(-1)
        places = np.cumsum(by_bucket) - by_bucket  # the first of each part in each bucket
        counts[...] = places.reshape(-1, parts).T
        starts = np.append(places[::parts], self.rows)
        executor.map(scatter, self._slices, counts)
        edges = np.searchsorted(starts, [rows.start for rows in self._slices])
        edges = np.append(edges, counts.shape[1])

        def finish(first: int, last: int) -> bool:
            given = (self._packed, scores, starts, first, last, shift, index_bits)
            return loops.finish(*given, _MOVES * self.rows, self._spare, self._order)

        return all(executor.map(finish, edges[:-1], edges[1:]))
