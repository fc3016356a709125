"""Blocks of rows in memory-mapped files, for data larger than memory.

A pass goes through the files from the beginning to the end. What comes next is asked of the system
in windows of some MiB, while the blocks before are computed with. If the data exceed their budget
of memory, the blocks within it stay and those beyond are dropped as soon as they were used: the
first part of every pass then comes from memory, where a cache of the last used pages would have
dropped exactly what comes next.

Compiled loops do not look where an index points. So where rows begin is checked when a data set is
opened, and indices and values of a block when the block is read for the first time in a process,
whatever the manifest says: somebody may have signed it again.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import scipy.sparse

from .array_file import MappedArray, damaged
from .blocks import (
    Block,
    BlockedMatrix,
    BlockSource,
    CSRBlock,
    RowMajorBlock,
    RowsInBlocks,
    csr_bounds,
    dense_bounds,
)

WINDOW = 1 << 24  # bytes that are asked for, and given back, at a time
# The system gives whole groups of pages back: one that two windows share goes with the second.
STRADDLE = 1 << 22


@dataclass(frozen=True)
class MappedRows:
    """All rows of a data set.

    Attributes
    ----------
    values : MappedArray
        One-dimensional for sparse rows, two-dimensional for dense ones.
    indices, starts : MappedArray or None
        Of sparse rows.
    features : int
    checked : set of (int, int)
        First and last row of the blocks that were found to be sound.
    """

    values: MappedArray
    indices: MappedArray | None
    starts: MappedArray | None
    features: int
    checked: set[tuple[int, int]] = field(default_factory=set, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse sparse rows that do not follow one another through all numbers."""
        if self.starts is None:
            return
        starts, name = self.starts.array, self.starts.name
        if starts[0] != 0 or starts[-1] != len(self.values.array):
            raise damaged(
                f"{name}: rows go from number {starts[0]} to {starts[-1]}, but there are "
                f"{len(self.values.array)} numbers"
            )
        for first in range(0, len(starts) - 1, WINDOW // starts.itemsize):
            piece = starts[first : first + WINDOW // starts.itemsize + 1]
            if np.any(piece[1:] < piece[:-1]):
                row = first + int(np.argmax(piece[1:] < piece[:-1]))
                raise damaged(f"{name}: row {row} ends before it begins")

    def block(self, first: int, last: int, room: np.ndarray | None = None) -> Block:
        """Rows ``first`` to ``last``, checked when they are read for the first time.

        ``room`` is for where rows begin, which then is good until the room is used again.
        """
        block = self._unchecked(first, last, room)
        if (first, last) not in self.checked:
            self._check(block, first)
            self.checked.add((first, last))
        return block

    def _unchecked(self, first: int, last: int, room: np.ndarray | None) -> Block:
        if self.indices is None or self.starts is None:
            return RowMajorBlock(self.values.array[first:last])
        starts = self.starts.array[first : last + 1]
        begin, end = int(starts[0]), int(starts[-1])
        relative = np.subtract(starts, begin, out=None if room is None else room[: len(starts)])
        relative.flags.writeable = False
        return CSRBlock(self.values.array[begin:end], self.indices.array[begin:end], relative)

    def rows(self, first: int, last: int, features: int) -> Any:
        """Rows in memory, for anybody."""
        self.check_sizes()
        block = self._unchecked(first, last, None)
        self._check(block, first)
        if isinstance(block, RowMajorBlock):
            return _floats(block.x)
        assert isinstance(block, CSRBlock)
        wide = len(block.values) > np.iinfo(np.int32).max
        kind = np.int64 if wide else np.int32
        X = scipy.sparse.csr_matrix(
            (_floats(block.values), block.indices.astype(kind), block.starts.astype(kind)),
            shape=(last - first, features),
        )
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    def check_sizes(self) -> None:
        """Refuse files that have become shorter."""
        for array in (self.values, self.indices, self.starts):
            if array is not None:
                array.check_size()

    def _check(self, block: Block, first: int) -> None:
        """Refuse rows that compiled loops must not see, for these trust what they are given."""
        values = block.arrays()[0].reshape(-1)
        if isinstance(block, CSRBlock):
            self._check_indices(block, first)
        finite = np.isfinite(values)
        if not finite.all():
            bad = int(finite.argmin())
            row = (
                _row_of(block.starts, bad) if isinstance(block, CSRBlock) else bad // self.features
            )
            raise damaged(f"{self.values.name}: row {first + row} holds {values[bad]}")

    def _check_indices(self, block: CSRBlock, first: int) -> None:
        assert self.indices is not None and self.starts is not None
        values, indices, starts = block.arrays()
        if np.any(starts[1:] < starts[:-1]) or not starts[-1] == len(values) == len(indices):
            raise damaged(f"{self.starts.name}: rows from {first} on do not fit together")
        if indices.max(initial=0) >= self.features:
            row = first + _row_of(starts, int(indices.argmax()))
            raise damaged(
                f"{self.indices.name}: row {row} points beyond the {self.features} features"
            )
        rising = indices[1:] > indices[:-1]
        ends = starts[1:-1]
        rising[ends[(ends > 0) & (ends < len(indices))] - 1] = True  # from one row to the next
        if not rising.all():
            row = first + _row_of(starts, int(rising.argmin()))
            raise damaged(f"{self.indices.name}: the features of row {row} are not in order")

    def extent(self, first: int, last: int) -> list[tuple[MappedArray, int, int]]:
        """The bytes of rows in each file."""
        size = self.values.array.itemsize
        if self.indices is None or self.starts is None:
            width = self.features * size
            return [(self.values, first * width, last * width)]
        begin, end = int(self.starts.array[first]), int(self.starts.array[last])
        short = self.indices.array.itemsize
        return [
            (self.values, begin * size, end * size),
            (self.indices, begin * short, end * short),
        ]


def _row_of(starts: np.ndarray, number: int) -> int:
    """The row that a stored number belongs to."""
    return int(np.searchsorted(starts, number, "right")) - 1


def _floats(values: np.ndarray) -> np.ndarray:
    """A copy that everybody can compute with: integers of 8 or 16 bits are exact in float32."""
    return values.astype(np.float32 if values.dtype.kind in "iu" else values.dtype)


class MappedBlocks(BlockSource):
    """Blocks of mapped rows, made when they are asked for.

    Parameters
    ----------
    rows : MappedRows
    bounds : ndarray of int64
        Rows at which blocks begin, and the end.
    budget : int
        Bytes that may stay in memory between two passes.
    digest : bytes
        Of the data.
    origin : tuple
        The data set, the number of outputs and which blocks: what is pickled instead of the
        blocks, so that a block can be had in any process that sees the folder, by its number.
    """

    def __init__(
        self,
        rows: MappedRows,
        bounds: np.ndarray,
        budget: int,
        digest: bytes,
        origin: tuple[RowsInBlocks, int, range | None],
    ) -> None:
        self._rows = rows
        self._origin = origin
        self._bounds = bounds.tolist()
        self._digest = digest
        self._first_dropped = len(self)
        self._edges = [0, len(self)]  # of windows of blocks
        self._plan(budget)
        self._window_of = np.repeat(np.arange(len(self._edges) - 1), np.diff(self._edges)).tolist()
        self._left: list[int] = []  # blocks of each window that are still to be dropped
        self._lock = threading.Lock()
        self._own = threading.local()

    def _plan(self, budget: int) -> None:
        ends = np.array([self._bytes_before(row) for row in self._bounds])
        ends -= ends[0]
        if ends[-1] > budget:
            self._first_dropped = int(np.searchsorted(ends[1:], budget, "right"))
        turns = np.unique(np.searchsorted(ends, np.arange(0, ends[-1] + WINDOW, WINDOW)))
        self._edges = [*(k for k in turns.tolist() if k < len(self)), len(self)]

    def _bytes_before(self, row: int) -> int:
        return sum(end for _, _, end in self._rows.extent(0, row))

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, k: int) -> Block: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Block]: ...
    def __getitem__(self, k: int | slice) -> Block | Sequence[Block]:
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(len(self)))]
        return self._block(range(len(self))[k])

    def _block(self, k: int, room: np.ndarray | None = None) -> Block:
        return self._rows.block(self._bounds[k], self._bounds[k + 1], room)

    def __reduce__(self) -> Any:
        return _blocks_of, self._origin

    def digest(self) -> bytes:
        return self._digest

    def begin(self) -> None:
        """Refuse files that were cut off, and ask for the first window."""
        self._rows.check_sizes()
        low = self._first_dropped
        self._left = [max(0, b - max(a, low)) for a, b in itertools.pairwise(self._edges)]
        self._will_need(0)

    def take(self, k: int) -> Block:
        """Block k; the first one of a window asks for the next window."""
        window = self._window_of[k]
        if k == self._edges[window]:
            self._will_need(window + 1)
        return self._block(k, None if self._rows.starts is None else self._room())

    def _room(self) -> np.ndarray:
        """Of this thread, for the longest block: new memory in every pass costs more than it."""
        if not hasattr(self._own, "room"):
            self._own.room = np.empty(1 + int(np.diff(self._bounds).max()), np.int64)
        room: np.ndarray = self._own.room
        return room

    def release(self, k: int) -> None:
        """The last block of a window gives all of the window back, up to the budget."""
        if k < self._first_dropped:
            return
        window = self._window_of[k]
        with self._lock:
            self._left[window] -= 1
            if self._left[window]:
                return
            before_is_done = window > 0 and not self._left[window - 1]
        low = self._extent(self._first_dropped, len(self))
        first = max(self._edges[window], self._first_dropped)
        here = self._extent(first, self._edges[window + 1])
        for (file, begin, end), (_, lowest, _) in zip(here, low, strict=True):
            file.drop(max(lowest, begin - STRADDLE * before_is_done), end)

    def _will_need(self, window: int) -> None:
        if window + 1 < len(self._edges):
            for file, begin, end in self._extent(self._edges[window], self._edges[window + 1]):
                file.will_need(begin, end)

    def _extent(self, first: int, last: int) -> list[tuple[MappedArray, int, int]]:
        """The bytes of blocks ``first`` to ``last`` in each file."""
        return self._rows.extent(self._bounds[first], self._bounds[last])


def _blocks_of(dataset: RowsInBlocks, outputs: int, only: range | None) -> BlockSource:
    return dataset.blocks(outputs, only).blocks


def mapped_matrix(
    rows: MappedRows,
    dataset: RowsInBlocks,
    outputs: int,
    budget: int,
    digest: bytes,
    only: range | None = None,
) -> BlockedMatrix:
    """The rows of a data set in the blocks that the same matrix in memory would be cut into.

    With ``only`` a matrix of some consecutive ones of these blocks.
    """
    shape = dataset.shape
    width = shape[1] * outputs
    if rows.starts is None:
        bounds = dense_bounds(shape, width)
        numbers = shape[0] * shape[1]
    else:
        bounds = csr_bounds(rows.starts.array, width)
        numbers = int(rows.starts.array[-1])
    if only is not None:
        bounds = bounds[only.start : only.stop + 1]
        height = int(bounds[-1] - bounds[0])
        numbers = height * shape[1]
        if rows.starts is not None:
            numbers = int(rows.starts.array[bounds[-1]] - rows.starts.array[bounds[0]])
        shape = (height, shape[1])
    blocks = MappedBlocks(rows, bounds, budget, digest, (dataset, outputs, only))
    return BlockedMatrix(blocks, bounds - bounds[0], shape, numbers)
