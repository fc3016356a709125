"""Rows of svmlight pieces put together: growing columns, then a sparse matrix.

A column grows in place (``realloc`` moves pages, not numbers, on Linux), by an eighth of its
length or to the length that the part of the file read so far predicts. So the peak of the memory
is the result, at most an eighth more, and a few pieces.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from .svmlight_limits import Limits
from .svmlight_pieces import Piece

_SHORTEST = 1 << 10
_MARGIN = 1.02  # of a predicted length


class Column:
    """Numbers of one type, to which more can be added."""

    def __init__(self, dtype: np.dtype | type) -> None:
        self._numbers = np.empty(0, dtype)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def add(self, part: np.ndarray) -> None:
        end = self._used + len(part)
        if end > len(self._numbers):
            self._numbers.resize(max(end + (end >> 3), _SHORTEST), refcheck=False)
        self._numbers[self._used : end] = part
        self._used = end

    def expect(self, length: int) -> None:
        """Make room before it is needed. Memory that is not used yet is not taken yet."""
        if length > len(self._numbers):
            with contextlib.suppress(MemoryError):  # a guess must not be a reason to fail
                larger = np.empty(length, self._numbers.dtype)
                larger[: self._used] = self._numbers[: self._used]
                self._numbers = larger

    def take(self) -> np.ndarray:
        """All numbers. Nothing can be added afterwards."""
        self._numbers.resize(self._used, refcheck=False)
        return self._numbers


@dataclass(frozen=True)
class Wanted:
    """What is to be kept besides features and labels."""

    qid: bool
    cost: bool
    comments: bool


class Rows:
    """Rows so far."""

    def __init__(self, limits: Limits, wanted: Wanted, name: str) -> None:
        self._limits = limits
        self._wanted = wanted
        self._name = name
        self._values = Column(limits.dtype)
        self._indices = Column(np.int32)
        self._ends = Column(np.int64)
        self._labels = Column(np.float64)
        self._qids = Column(np.int64)
        self._costs = Column(np.float64)
        self._late: list[tuple[int, int]] = []
        self.comments: list[str] = []

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, piece: Piece, first: int, last: int) -> None:
        """Add rows ``first`` to ``last`` of a piece."""
        if first == last:
            return
        ends = piece.row_ends
        begin = int(ends[first - 1]) if first else 0
        if first == 0 and piece.late_row:
            self._late.append((len(self), piece.line))
        self._ends.add(ends[first:last] + (len(self._values) - begin))
        self._add_numbers(piece, begin, int(ends[last - 1]))
        self._labels.add(piece.labels[first:last])
        if self._wanted.qid:
            self._qids.add(piece.qids[first:last])
        if self._wanted.cost:
            self._costs.add(piece.costs[first:last])
        if self._wanted.comments:
            self.comments += piece.comments(first, last)

    def add_open(self, piece: Piece) -> None:
        """Add the numbers of the row that a piece leaves open."""
        self._add_numbers(piece, int(piece.row_ends[-1]) if piece.rows else 0, piece.numbers)

    def _add_numbers(self, piece: Piece, begin: int, end: int) -> None:
        self._values.add(piece.values[begin:end])
        self._indices.add(piece.indices[begin:end])

    def expect(self, times: float) -> None:
        """Make room for so many times what there is."""
        columns = [self._values, self._indices, self._ends, self._labels]
        columns += [self._qids] * self._wanted.qid + [self._costs] * self._wanted.cost
        for column in columns:
            column.expect(int(len(column) * times * _MARGIN))

    # -- the result ---------------------------------------------------------------

    def matrix(self, first_index: int, features: int) -> scipy.sparse.csr_matrix:
        """The features as a matrix; the numbers are handed over."""
        values, indices = self._values.take(), self._indices.take()
        self._sort_late_rows(values, indices)
        if first_index:
            indices -= first_index
        wide = len(values) > np.iinfo(np.int32).max
        starts = np.zeros(len(self) + 1, np.int64 if wide else np.int32)
        starts[1:] = self._ends.take()
        X = scipy.sparse.csr_matrix((values, indices, starts), shape=(len(self), features))
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    def _sort_late_rows(self, values: np.ndarray, indices: np.ndarray) -> None:
        """Rows that were longer than a piece."""
        ends = self._ends.take() if self._late else None
        for row, line in self._late:
            numbers = slice(ends[row - 1] if row else 0, ends[row])  # type: ignore[index]
            order = np.argsort(indices[numbers], kind="stable")
            indices[numbers] = indices[numbers][order]
            values[numbers] = values[numbers][order]
            repeats = np.flatnonzero(np.diff(indices[numbers]) == 0)
            if len(repeats):
                index = indices[numbers][repeats[0]]
                where = f"{self._name}:{line}:1"
                raise ValueError(f"{where}: index {index} occurs twice in this row; keep one")

    def labels(self) -> np.ndarray:
        return self._labels.take()

    def qids(self) -> np.ndarray:
        return self._qids.take()

    def costs(self) -> np.ndarray:
        return self._costs.take()
