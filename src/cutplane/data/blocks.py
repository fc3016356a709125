"""Row blocks: the unit of work of every pass over the data.

A design matrix is cut into consecutive blocks of rows. Where a block ends
depends on the data alone, never on the number of threads, and partial sums
are added in block order: results are the same to the last bit however the
blocks are executed.

A block is read-only and offers two products, ``scores`` (X·w) and
``add_gradient`` (gradient += Xᵀ·coef). Values are never copied: float32 and
float64 arrays are used as they are, in CSR, row-major or column-major layout.
Sparse indices are viewed as unsigned where they are 32 bits wide and copied
into 16 or 32 bits where they are 64 bits wide; row starts become int64.
"""

from __future__ import annotations

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, overload

import numpy as np
import scipy.sparse

from ..loops import products

# A block should be long enough to be worth a task (a quarter of a million
# numbers take about 0.3 ms) and long against the n-vector that its partial
# gradient fills, so that adding these up costs little.
BLOCK_NUMBERS = 1 << 18
BLOCK_NUMBERS_PER_WEIGHT = 8


# Partial gradients that are held at a time: many enough for the threads, in so many numbers.
PARTIAL_NUMBERS = 1 << 22
LEAST_PARTIALS = 8

Result = TypeVar("Result")


class Runner(Protocol):
    """What a pass needs of an executor."""

    threads: int

    def run(self, function: Callable[[int], Result], count: int) -> list[Result]:
        """function(k) for every k in range(count), in that order."""
        ...


def _read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view. One constness means one compiled kernel, not two."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True)
class CSRBlock:
    """Sparse rows: ``values`` and ``indices`` of the rows, ``starts`` relative to them."""

    values: np.ndarray
    indices: np.ndarray
    starts: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.values, self.indices, self.starts

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        kernel = products.csr_scores if w.ndim == 1 else products.csr_scores_multi
        kernel(self.values, self.indices, self.starts, w, out)

    def add_gradient(self, coef: np.ndarray, out: np.ndarray) -> None:
        kernel = products.csr_add_gradient if coef.ndim == 1 else products.csr_add_gradient_multi
        kernel(self.values, self.indices, self.starts, coef, out)

    def squared_norms(self, out: np.ndarray) -> None:
        row_of = np.repeat(np.arange(self.rows), np.diff(self.starts))
        values = self.values.astype(np.float64)
        out[:] = np.bincount(row_of, values * values, minlength=self.rows)


@dataclass(frozen=True)
class RowMajorBlock:
    """Dense rows, each contiguous."""

    x: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.x)

    def arrays(self) -> tuple[np.ndarray, ...]:
        return (self.x,)

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        kernel = products.dense_scores if w.ndim == 1 else products.dense_scores_multi
        kernel(self.x, w, out)

    def add_gradient(self, coef: np.ndarray, out: np.ndarray) -> None:
        kernel = (
            products.dense_add_gradient if coef.ndim == 1 else products.dense_add_gradient_multi
        )
        kernel(self.x, coef, out)

    def squared_norms(self, out: np.ndarray) -> None:
        np.einsum("ij,ij->i", self.x, self.x, out=out, dtype=np.float64)


@dataclass(frozen=True)
class ColumnMajorBlock:
    """Rows ``first`` to ``first + rows`` of a column-major array, held as its transpose."""

    xt: np.ndarray
    first: int
    rows: int

    def arrays(self) -> tuple[np.ndarray, ...]:
        return (self.xt,) if self.first == 0 else ()  # the blocks share one array

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        kernel = products.column_scores if w.ndim == 1 else products.column_scores_multi
        kernel(self.xt, self.first, w, out)

    def add_gradient(self, coef: np.ndarray, out: np.ndarray) -> None:
        kernel = (
            products.column_add_gradient if coef.ndim == 1 else products.column_add_gradient_multi
        )
        kernel(self.xt, self.first, coef, out)

    def squared_norms(self, out: np.ndarray) -> None:
        xt = self.xt[:, self.first : self.first + self.rows]
        np.einsum("ji,ji->i", xt, xt, out=out, dtype=np.float64)


Block = CSRBlock | RowMajorBlock | ColumnMajorBlock


class BlockSource(Sequence[Block]):
    """Where blocks live: in memory, or in files from which they are read when they are needed.

    A pass calls ``begin`` once, and ``take`` and ``release`` for every block; any thread may.
    """

    @abstractmethod
    def digest(self) -> bytes:
        """A fingerprint of the stored numbers and their layout."""

    def begin(self) -> None:
        """A pass over the blocks begins."""

    def take(self, k: int) -> Block:
        """Block k, in the order of a pass."""
        return self[k]

    def release(self, k: int) -> None:
        """Block k is not needed any more in this pass."""


class MemoryBlocks(BlockSource):
    """Blocks in memory."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = tuple(blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    @overload
    def __getitem__(self, k: int) -> Block: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Block]: ...
    def __getitem__(self, k: int | slice) -> Block | Sequence[Block]:
        return self._blocks[k]

    def digest(self) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        for block in self._blocks:
            for array in block.arrays():
                digest.update(array.dtype.str.encode())
                digest.update(array.data)
        return digest.digest()


@dataclass(frozen=True)
class BlockedMatrix:
    """A design matrix as a sequence of row blocks.

    Attributes
    ----------
    blocks : BlockSource
        In row order.
    bounds : ndarray of int64, shape (len(blocks) + 1,)
        Block k holds rows ``bounds[k]`` to ``bounds[k + 1]``.
    shape : tuple of int
        Rows and features.
    numbers : int
        Stored values: non-zeros, or rows times features.
    """

    blocks: BlockSource
    bounds: np.ndarray
    shape: tuple[int, int]
    numbers: int

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def slice(self, k: int) -> slice:
        """The rows of block k."""
        return slice(self.bounds[k], self.bounds[k + 1])

    def digest(self) -> bytes:
        """A fingerprint of the stored numbers and their layout."""
        digest = hashlib.blake2b(repr(self.shape).encode(), digest_size=16)
        digest.update(self.blocks.digest())
        return digest.digest()

    def run(
        self,
        function: Callable[[int, Block], Result],
        executor: Runner,
        blocks: range | None = None,
    ) -> list[Result]:
        """A pass over all blocks, or over a range of them in a pass that was begun.

        Parameters
        ----------
        function : callable
            Gets the number of a block and the block, which is good until it returns.
        executor : Executor
        blocks : range, optional

        Returns
        -------
        results : list
            In the order of the blocks.
        """
        source = self.blocks
        if blocks is None:
            source.begin()
            blocks = range(len(source))

        def work(k: int) -> Result:
            block = source.take(blocks[k])
            try:
                return function(blocks[k], block)
            finally:
                source.release(blocks[k])

        return executor.run(work, len(blocks))

    def scores(self, w: np.ndarray, out: np.ndarray, executor: Runner) -> None:
        """out = X·w, in one pass."""
        self.run(lambda k, block: block.scores(w, out[self.slice(k)]), executor)

    def squared_norms(self, executor: Runner) -> np.ndarray:
        """|x_i|² of every row, in one pass."""
        out = np.empty(len(self))
        self.run(lambda k, block: block.squared_norms(out[self.slice(k)]), executor)
        return out


class RowsInBlocks(ABC):
    """Data that know how to come in blocks."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and features."""

    @abstractmethod
    def blocks(self, outputs: int = 1) -> BlockedMatrix:
        """The rows in blocks, for a model with so many scores per row."""


class BlockSum:
    """Sums of one array per block, added in the order of the blocks.

    However many partial sums are held at a time, each is added to the sum of all before: the bits
    depend neither on that number nor on the threads.

    Parameters
    ----------
    matrix : BlockedMatrix
    shape : tuple of int
        Of the arrays.
    """

    def __init__(self, matrix: BlockedMatrix, shape: tuple[int, ...]) -> None:
        self._matrix = matrix
        self._shape = shape
        self._partials: np.ndarray | None = None

    def run(
        self, partial: Callable[[int, Block, np.ndarray], None], executor: Runner
    ) -> np.ndarray:
        """One pass.

        Parameters
        ----------
        partial : callable
            Gets the number of a block, the block, and an array of zeros to add to.
        executor : Executor
        """
        matrix = self._matrix
        count = len(matrix.blocks)
        if self._partials is None:
            least = max(LEAST_PARTIALS, executor.threads)
            room = max(least, PARTIAL_NUMBERS // max(1, int(np.prod(self._shape))))
            self._partials = np.empty((min(count, room) + 1, *self._shape))
        partials = self._partials
        room = len(partials) - 1
        matrix.blocks.begin()
        for first in range(0, count, room):
            group = range(first, min(first + room, count))

            def work(k: int, block: Block, first: int = first) -> None:
                out = partials[1 + k - first]
                out[...] = 0.0
                partial(k, block, out)

            matrix.run(work, executor, group)
            begin = 0 if first else 1  # partials[0] is the sum of the groups before
            total = partials[begin : 1 + len(group)].sum(axis=0)
            if group.stop < count:
                partials[0] = total
        return total


def _targets(total: int, width: int, block_numbers: int | None) -> np.ndarray:
    """The numbers after which blocks end, of ``total``; ``width`` is the length of a gradient."""
    size = block_numbers or max(BLOCK_NUMBERS, BLOCK_NUMBERS_PER_WEIGHT * width)
    count = max(1, -(-total // size))
    return (np.arange(1, count) * total) // count


def csr_bounds(starts: np.ndarray, width: int, block_numbers: int | None = None) -> np.ndarray:
    """Row numbers at which blocks begin, and the end, for rows that begin at ``starts``."""
    total = int(starts[-1] - starts[0])
    inner = np.searchsorted(starts, starts[0] + _targets(total, width, block_numbers))
    return np.unique(np.concatenate(([0], inner, [len(starts) - 1]))).astype(np.int64)


def dense_bounds(
    shape: tuple[int, int], width: int, block_numbers: int | None = None
) -> np.ndarray:
    """The same for rows of equal length."""
    rows, features = shape
    inner = -(-_targets(rows * features, width, block_numbers) // max(1, features))
    return np.unique(np.concatenate(([0], inner, [rows]))).astype(np.int64)


def _compact_indices(indices: np.ndarray, features: int) -> np.ndarray:
    if indices.dtype == np.int32:
        return indices.view(np.uint32)
    small = np.uint16 if features <= 1 << 16 else np.uint32
    return indices.astype(small)


def _csr_matrix(X: Any, outputs: int, block_numbers: int | None) -> BlockedMatrix:
    starts = X.indptr.astype(np.int64)
    indices = _read_only(_compact_indices(X.indices, X.shape[1]))
    values = _read_only(X.data)
    bounds = csr_bounds(starts, X.shape[1] * outputs, block_numbers)
    blocks = []
    for first, last in itertools.pairwise(bounds):
        numbers = slice(starts[first], starts[last])
        relative = starts[first : last + 1] - starts[first]
        blocks.append(CSRBlock(values[numbers], indices[numbers], _read_only(relative)))
    return BlockedMatrix(MemoryBlocks(blocks), bounds, X.shape, int(starts[-1] - starts[0]))


def _dense_matrix(X: np.ndarray, outputs: int, block_numbers: int | None) -> BlockedMatrix:
    rows, features = X.shape
    bounds = dense_bounds(X.shape, features * outputs, block_numbers)
    pairs = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    blocks: tuple[Block, ...]
    if X.flags.c_contiguous or not X.flags.f_contiguous:
        x = _read_only(np.ascontiguousarray(X))
        blocks = tuple(RowMajorBlock(x[first:last]) for first, last in pairs)
    else:
        xt = _read_only(X.T)
        blocks = tuple(ColumnMajorBlock(xt, first, last - first) for first, last in pairs)
    return BlockedMatrix(MemoryBlocks(blocks), bounds, X.shape, rows * features)


def as_blocks(X: Any, *, outputs: int = 1, block_numbers: int | None = None) -> BlockedMatrix:
    """Cut a design matrix into row blocks without copying its values.

    Parameters
    ----------
    X : ndarray, scipy.sparse CSR matrix or array, or RowsInBlocks, shape (rows, features)
        float32 or float64. A dense array that is neither row-major nor
        column-major (a strided view) is copied into row-major order.
    outputs : int, default=1
        Scores per row of the model to be fitted.
    block_numbers : int, optional
        Stored numbers per block; chosen from the shape of the data if None.
    """
    if isinstance(X, RowsInBlocks):
        return X.blocks(outputs)
    if scipy.sparse.issparse(X):
        return _csr_matrix(X, outputs, block_numbers)
    return _dense_matrix(X, outputs, block_numbers)
