"""Data sets on disk, open for reading: rows in memory-mapped files, which may exceed the memory.

The rows are cut into the same blocks as the rows of a matrix in memory, so a fit gives the same
bits. A block is read when a pass comes to it. A pass reads the files from the beginning to the end.
While it computes with some blocks, the system already reads the next window of some MiB.

If the data exceed the memory limit, the first blocks stay in memory, up to the limit, and the pass
drops each later block as soon as it has used it. So the first part of every pass comes from memory.
The system's own rule, which drops the pages that were not used for the longest time, would always
drop the pages that the pass reads next.

Compiled loops do not check indices, so a wrong index would read foreign memory. Therefore the row
starts are checked when a data set is opened, and the indices and values of a block when a process
reads the block for the first time. The digests are not enough: somebody may have changed the files
and written new digests.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from ..._checks import check_flag, check_integer
from ..blocks import (
    Block,
    BlockedMatrix,
    CSRBlock,
    Result,
    RowMajorBlock,
    RowsInBlocks,
    block_bounds,
)
from ..memory import data_budget
from ..rows import MOST_FEATURES, Rows, row_of
from .arrays import MappedArray, damaged
from .manifest import Manifest, is_label, label_array

if TYPE_CHECKING:
    from ...exec import Executor

CHUNK = 1 << 24  # bytes of values per chunk
WINDOW = 1 << 24  # bytes that the system is told to read, or to free, at a time
# The system frees groups of pages at once. If two windows share a group, it is freed with the
# second window, so advice to free begins this many bytes before the window.
STRADDLE = 1 << 22


class Dataset(RowsInBlocks):
    """A data set on disk, open for reading.

    Estimators take it in place of X: ``LinearSVC().fit(dataset)``. Labels, queries and costs come
    from the data set, unless you give them. A data set can be pickled; the pickle holds the path,
    not the rows.

    Use :func:`open_dataset` to make one.

    Attributes
    ----------
    path : Path
    shape : tuple of int
        Rows and features.
    n_rows, n_features : int
        Number of rows, and number of features.
    dtype : dtype
        Type of the values on disk.
    sparse : bool
        Whether rows are stored without their zeros.
    n_stored : int
        Stored values: non-zeros, or rows times features.
    nbytes : int
        Size of all arrays in bytes.
    feature_names : tuple of str or None
        Names of the columns, if they have any.
    memory_limit : int
        Bytes of the features that may stay in memory between two passes.
    given_memory_limit : int or None
        The limit that was given; None if the limit follows from the available memory.
    """

    def __init__(
        self,
        path: Any,
        *,
        n_features: int | None = None,
        memory_limit: int | None = None,
        verify: bool = False,
    ) -> None:
        self.path = Path(path)
        self.given_memory_limit, self._given_features = memory_limit, n_features
        manifest = self._manifest = Manifest.read(self.path)
        self._files = {
            name: MappedArray(self.path / f"{name}.npy", record)
            for name, record in manifest.arrays.items()
        }
        self.sparse, self.n_stored, self.nbytes = (
            manifest.sparse,
            manifest.n_stored,
            manifest.nbytes,
        )
        self.dtype = self._files["values"].array.dtype
        self.n_rows, self.n_features = manifest.rows, self._width(n_features)
        self.shape = (self.n_rows, self.n_features)
        widened = self.n_features != manifest.features
        self.feature_names = None if widened else manifest.feature_names
        self._mapped = MappedRows(self._files, self.n_features)
        limit = data_budget() if memory_limit is None else memory_limit
        self.memory_limit = check_integer("memory_limit", limit, at_least=0, at_most=2**62)
        if check_flag("verify", verify):
            self.verify()

    def _width(self, n_features: int | None) -> int:
        there = self._manifest.features
        if n_features is None:
            return there
        wanted = check_integer("n_features", n_features, at_least=1, at_most=MOST_FEATURES)
        if wanted < there or (wanted > there and not self.sparse):
            remedy = "it can only be opened with more" if self.sparse else "a dense one is fixed"
            raise ValueError(f"{self.path} has {there} features, not {wanted}; {remedy}")
        return wanted

    # -- what there is ------------------------------------------------------------

    def __len__(self) -> int:
        return self.n_rows

    @property
    def feature_bytes(self) -> int:
        """Bytes that a pass over the rows reads."""
        records = self._manifest.arrays
        return sum(records[name].nbytes for name in ("values", "indices") if name in records)

    @property
    def label_counts(self) -> dict[Any, int] | None:
        """How many rows have each label; None without labels or with more than 65536 of them."""
        labels, counts = self._manifest.labels, self._manifest.label_counts
        if labels is None or counts is None:
            return None
        return dict(zip(labels, counts, strict=True))

    @cached_property
    def y(self) -> np.ndarray | None:
        """Labels as they were given: float64, int64 or text; None if there are none."""
        stored = self._column("y", "is no label", lambda y: is_label(self._manifest, y))
        return None if stored is None else label_array(self._manifest, stored)

    @cached_property
    def qid(self) -> np.ndarray | None:
        """Query of each row, int64; None if there are none."""
        return self._column("qid", "is no query", lambda qid: qid >= 0)

    @cached_property
    def cost(self) -> np.ndarray | None:
        """Factor on C of each row, float64; None if there are none."""
        return self._column("cost", "is no cost", lambda cost: np.isfinite(cost) & (cost >= 0.0))

    def _column(
        self, name: str, fault: str, fits: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray | None:
        """A column; an error if a number in it does not pass ``fits``."""
        if name not in self._files:
            return None
        file = self._files[name]
        file.check_size()
        good = fits(file.array)
        if not good.all():
            row = int(good.argmin())
            raise damaged(f"{file.name}: {file.array[row]} in row {row} {fault}")
        return file.array

    def digest(self) -> bytes:
        """A fingerprint of everything in the data set, from the digests in the manifest."""
        return self._manifest.digest()

    def __repr__(self) -> str:
        rows, features = self.shape
        kind = "sparse" if self.sparse else "dense"
        return (
            f"<Dataset {str(self.path)!r}: {rows} rows, {features} features, {kind} {self.dtype}>"
        )

    # -- rows ---------------------------------------------------------------------

    def rows(self, first: int = 0, last: int | None = None) -> Any:
        """Rows ``first`` to ``last`` in memory.

        Parameters
        ----------
        first, last : int
            As in a slice; by default all rows.

        Returns
        -------
        X : ndarray or scipy.sparse.csr_matrix
        """
        first, last, _ = slice(first, last).indices(self.n_rows)
        return self._mapped.rows(first, max(first, last))

    def chunks(self, rows: int | None = None) -> Iterator[Rows]:
        """All rows in consecutive chunks, as :func:`write_dataset` takes them.

        Parameters
        ----------
        rows : int, optional
            Rows per chunk; by default as many as take about 16 MiB.

        Yields
        ------
        chunk : Rows
            ``X``, ``y``, ``qid`` and ``weight``, with None for what is not there. Unpacks in that
            order.
        """
        if rows is None:
            rows = max(1, CHUNK // max(1, self.nbytes // self.n_rows))
        rows = check_integer("rows", rows, at_least=1, at_most=2**62)
        columns = Rows(None, self.y, self.cost, self.qid, self.feature_names)
        for first in range(0, self.n_rows, rows):
            last = min(first + rows, self.n_rows)
            yield replace(columns.part(first, last), X=self.rows(first, last))

    def blocks(self, outputs: int = 1, only: range | None = None) -> BlockedMatrix:
        """The rows in the blocks that the same matrix in memory would be cut into.

        Parameters
        ----------
        outputs : int, default=1
            Scores per row of the model.
        only : range, optional
            Numbers of consecutive blocks. The result then is a matrix of these blocks alone.
        """
        rows, width = self._mapped, self.n_features * outputs
        stored = self.n_features if rows.starts is None else rows.starts.array
        bounds = block_bounds(self.n_rows, stored, width)
        if only is not None:
            bounds = bounds[only.start : only.stop + 1]
        first, last = int(bounds[0]), int(bounds[-1])
        begin, end = rows.stored(first, last)
        source = MappedBlocks(self, rows, bounds)
        return MappedMatrix(source, bounds - first, (last - first, self.n_features), end - begin)

    # -- the files ----------------------------------------------------------------

    def verify(self) -> None:
        """Read everything and compare the digests; ValueError if something was changed."""
        for file in self._files.values():
            file.verify()

    def close(self) -> None:
        """Close the files. Arrays that were handed out stay valid."""
        for file in self._files.values():
            file.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        given = (self._given_features, self.given_memory_limit)
        return _reopen, (str(self.path.absolute()), self.digest(), *given)


def _reopen(path: str, digest: bytes, n_features: int | None, memory_limit: int | None) -> Dataset:
    dataset = Dataset(path, n_features=n_features, memory_limit=memory_limit)
    if dataset.digest() != digest:
        raise ValueError(f"{path} is another data set than the one that was pickled")
    return dataset


def open_dataset(
    path: Any,
    *,
    n_features: int | None = None,
    memory_limit: int | None = None,
    verify: bool = False,
) -> Dataset:
    """Open a data set on disk.

    Parameters
    ----------
    path : path
        A folder that :func:`write_dataset` or :func:`convert_dataset` made.
    n_features : int, optional
        More columns than there are, for sparse test data without the last features of the
        training data.
    memory_limit : int, optional
        Bytes of the features that may stay in memory between two passes; the rest is read from
        the disk in every pass. By default half of the memory that is available now, in this
        container if it is one.
    verify : bool, default=False
        Read everything and compare the digests first.

    Returns
    -------
    dataset : Dataset

    Raises
    ------
    ValueError
        If the folder is not a data set, was changed or cut off, or is of a newer format.
    """
    return Dataset(path, n_features=n_features, memory_limit=memory_limit, verify=verify)


# -- rows and blocks in the files ---------------------------------------------------


class MappedRows:
    """The features of a data set: dense values, or sparse values with indices and row starts."""

    def __init__(self, files: dict[str, MappedArray], features: int) -> None:
        self.values = files["values"]
        self.indices, self.starts = files.get("indices"), files.get("starts")
        self.features = features
        self._sound: set[tuple[int, int]] = set()  # first and last row of blocks that were checked
        if self.starts is not None:
            self._check_starts(self.starts.array, self.starts.name)

    def _check_starts(self, starts: np.ndarray, name: str) -> None:
        """Check that row starts begin at 0, never decrease, and end at the number of values."""
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

        The row starts of the block are written into ``room``, if it is given. The next block with
        the same ``room`` overwrites them.
        """
        block = self._unchecked(first, last, room)
        if (first, last) not in self._sound:
            self._check(block, first)
            self._sound.add((first, last))
        return block

    def _unchecked(self, first: int, last: int, room: np.ndarray | None) -> Block:
        if self.indices is None or self.starts is None:
            return RowMajorBlock(self.values.array[first:last])
        starts = self.starts.array[first : last + 1]
        begin, end = int(starts[0]), int(starts[-1])
        relative = np.subtract(starts, begin, out=None if room is None else room[: len(starts)])
        relative.flags.writeable = False
        return CSRBlock(self.values.array[begin:end], self.indices.array[begin:end], relative)

    def rows(self, first: int, last: int) -> Any:
        """A copy of rows ``first`` to ``last`` in memory, as an array or a CSR matrix."""
        self.check_sizes()
        block = self._unchecked(first, last, None)
        self._check(block, first)
        if isinstance(block, RowMajorBlock):
            return _floats(block.x)
        assert isinstance(block, CSRBlock)
        parts = (_floats(block.values), block.indices, block.starts.copy())
        X = scipy.sparse.csr_matrix(parts, (last - first, self.features))
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    def check_sizes(self) -> None:
        """Refuse files that have become shorter."""
        for array in (self.values, self.indices, self.starts):
            if array is not None:
                array.check_size()

    def _check(self, block: Block, first: int) -> None:
        """Refuse wrong indices and values that are not finite: compiled loops do not check them."""
        values = block.arrays()[0].reshape(-1)
        if isinstance(block, CSRBlock):
            self._check_indices(block, first)
        finite = np.isfinite(values)
        if not finite.all():
            bad = int(finite.argmin())
            row = bad // self.features
            if isinstance(block, CSRBlock):
                row = row_of(block.starts, bad)
            raise damaged(f"{self.values.name}: row {first + row} holds {values[bad]}")

    def _check_indices(self, block: CSRBlock, first: int) -> None:
        assert self.indices is not None and self.starts is not None
        values, indices, starts = block.arrays()
        if np.any(starts[1:] < starts[:-1]) or not starts[-1] == len(values) == len(indices):
            raise damaged(f"{self.starts.name}: rows from {first} on do not fit together")
        if indices.max(initial=0) >= self.features:
            row = first + row_of(starts, int(indices.argmax()))
            raise damaged(
                f"{self.indices.name}: row {row} points beyond the {self.features} features"
            )
        rising = indices[1:] > indices[:-1]
        ends = starts[1:-1]
        # From the end of one row to the beginning of the next, the index may fall.
        rising[ends[(ends > 0) & (ends < len(indices))] - 1] = True
        if not rising.all():
            row = first + row_of(starts, int(rising.argmin()))
            raise damaged(f"{self.indices.name}: the features of row {row} are not in order")

    def stored(self, first: int, last: int) -> tuple[int, int]:
        """Where the stored values of rows ``first`` to ``last`` begin and end."""
        if self.starts is None:
            return first * self.features, last * self.features
        return int(self.starts.array[first]), int(self.starts.array[last])

    def extent(self, first: int, last: int) -> list[tuple[MappedArray, int, int]]:
        """For each file, the range of bytes that rows ``first`` to ``last`` take."""
        begin, end = self.stored(first, last)
        files = [file for file in (self.values, self.indices) if file is not None]
        return [(file, begin * file.array.itemsize, end * file.array.itemsize) for file in files]


def _floats(values: np.ndarray) -> np.ndarray:
    """A copy as floating point numbers. float32 holds integers of 8 or 16 bits exactly."""
    return values.astype(np.float32 if values.dtype.kind in "iu" else values.dtype)


class MappedBlocks(Sequence[Block]):
    """Blocks of mapped rows, which begin at the rows ``bounds`` and are made when needed."""

    def __init__(self, dataset: Dataset, rows: MappedRows, bounds: np.ndarray) -> None:
        self.digest = dataset.digest
        self._rows = rows
        self._bounds = bounds.tolist()
        ends = np.array([sum(end for _, _, end in rows.extent(0, row)) for row in self._bounds])
        ends -= ends[0]
        self._first_dropped = len(self)
        if ends[-1] > dataset.memory_limit:
            self._first_dropped = int(np.searchsorted(ends[1:], dataset.memory_limit, "right"))
        turns = np.unique(np.searchsorted(ends, np.arange(0, ends[-1] + WINDOW, WINDOW)))
        # Blocks at which windows begin, and the end.
        self._edges = [*(k for k in turns.tolist() if k < len(self)), len(self)]
        self._window_of = np.repeat(np.arange(len(self._edges) - 1), np.diff(self._edges)).tolist()
        self._left: list[int] = []  # for each window, the number of blocks still to be dropped
        self._lock = threading.Lock()
        self._own = threading.local()

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __getitem__(self, k: Any) -> Any:
        return self._block(range(len(self))[k])

    def _block(self, k: int, room: np.ndarray | None = None) -> Block:
        return self._rows.block(self._bounds[k], self._bounds[k + 1], room)

    def begin(self) -> None:
        """Begin a pass: refuse files that have changed, and have the first window read ahead."""
        self._rows.check_sizes()
        low = self._first_dropped
        self._left = [max(0, b - max(a, low)) for a, b in itertools.pairwise(self._edges)]
        self._will_need(0)

    def take(self, k: int) -> Block:
        """Block k. If it is the first block of a window, the next window is read ahead."""
        window = self._window_of[k]
        if k == self._edges[window]:
            self._will_need(window + 1)
        return self._block(k, None if self._rows.starts is None else self._room())

    def _room(self) -> np.ndarray:
        """This thread's array for row starts, as long as the longest block needs.

        Allocating such an array for every block would take longer than filling it.
        """
        if not hasattr(self._own, "room"):
            self._own.room = np.empty(1 + int(np.diff(self._bounds).max()), np.int64)
        room: np.ndarray = self._own.room
        return room

    def release(self, k: int) -> None:
        """Block k was used. If it was the last of its window, free the window's memory.

        Blocks within the memory limit stay in memory.
        """
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
        """For each file, the range of bytes that blocks ``first`` to ``last`` take."""
        return self._rows.extent(self._bounds[first], self._bounds[last])


@dataclass(frozen=True)
class MappedMatrix(BlockedMatrix):
    """Blocks that a pass reads when it comes to them, and may drop when it has used them."""

    blocks: MappedBlocks

    def _content(self) -> bytes:
        return self.blocks.digest()

    def run(
        self,
        function: Callable[[int, Block], Result],
        executor: Executor,
        some: range | None = None,
    ) -> list[Result]:
        source = self.blocks
        which = range(len(source)) if some is None else some
        if which.start == 0:
            source.begin()

        def visit(i: int) -> Result:
            block = source.take(which[i])
            try:
                return function(which[i], block)
            finally:
                source.release(which[i])

        return executor.run(visit, len(which))
