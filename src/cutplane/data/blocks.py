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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ..loops import products

# A block should be long enough to be worth a task (a quarter of a million
# numbers take about 0.3 ms) and long against the n-vector that its partial
# gradient fills, so that adding these up costs little.
BLOCK_NUMBERS = 1 << 18
BLOCK_NUMBERS_PER_WEIGHT = 8


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


Block = CSRBlock | RowMajorBlock | ColumnMajorBlock


@dataclass(frozen=True)
class BlockedMatrix:
    """A design matrix as a sequence of row blocks.

    Attributes
    ----------
    blocks : sequence of blocks
        In row order.
    bounds : ndarray of int64, shape (len(blocks) + 1,)
        Block k holds rows ``bounds[k]`` to ``bounds[k + 1]``.
    shape : tuple of int
        Rows and features.
    numbers : int
        Stored values: non-zeros, or rows times features.
    whole : block or None
        All rows as one block, where they lie in one piece of memory.
    """

    blocks: Sequence[Block]
    bounds: np.ndarray
    shape: tuple[int, int]
    numbers: int
    whole: Block | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def slice(self, k: int) -> slice:
        """The rows of block k."""
        return slice(self.bounds[k], self.bounds[k + 1])

    def digest(self) -> bytes:
        """A fingerprint of the stored numbers and their layout."""
        digest = hashlib.blake2b(repr(self.shape).encode(), digest_size=16)
        for block in self.blocks:
            for array in block.arrays():
                digest.update(array.dtype.str.encode())
                digest.update(array.data)
        return digest.digest()


def _bounds(starts: np.ndarray, width: int, block_numbers: int | None) -> np.ndarray:
    """Row numbers at which blocks begin, for rows that begin at ``starts``.

    ``width`` is the length of a gradient.
    """
    size = block_numbers or max(BLOCK_NUMBERS, BLOCK_NUMBERS_PER_WEIGHT * width)
    rows = len(starts) - 1
    total = int(starts[-1] - starts[0])
    count = max(1, -(-total // size))
    targets = starts[0] + (np.arange(1, count) * total) // count
    inner = np.searchsorted(starts, targets)
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
    bounds = _bounds(starts, X.shape[1] * outputs, block_numbers)
    blocks = []
    for first, last in itertools.pairwise(bounds):
        numbers = slice(starts[first], starts[last])
        relative = starts[first : last + 1] - starts[first]
        blocks.append(CSRBlock(values[numbers], indices[numbers], _read_only(relative)))
    numbers = slice(starts[0], starts[-1])
    whole = CSRBlock(values[numbers], indices[numbers], _read_only(starts - starts[0]))
    return BlockedMatrix(tuple(blocks), bounds, X.shape, int(starts[-1] - starts[0]), whole)


def _dense_matrix(X: np.ndarray, outputs: int, block_numbers: int | None) -> BlockedMatrix:
    rows, features = X.shape
    starts = np.arange(rows + 1, dtype=np.int64) * features
    bounds = _bounds(starts, features * outputs, block_numbers)
    pairs = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    blocks: tuple[Block, ...]
    whole: Block
    if X.flags.c_contiguous or not X.flags.f_contiguous:
        x = _read_only(np.ascontiguousarray(X))
        blocks = tuple(RowMajorBlock(x[first:last]) for first, last in pairs)
        whole = RowMajorBlock(x)
    else:
        xt = _read_only(X.T)
        blocks = tuple(ColumnMajorBlock(xt, first, last - first) for first, last in pairs)
        whole = ColumnMajorBlock(xt, 0, rows)
    return BlockedMatrix(blocks, bounds, X.shape, rows * features, whole)


def as_blocks(X: Any, *, outputs: int = 1, block_numbers: int | None = None) -> BlockedMatrix:
    """Cut a design matrix into row blocks without copying its values.

    Parameters
    ----------
    X : ndarray or scipy.sparse CSR matrix or array, shape (rows, features)
        float32 or float64. A dense array that is neither row-major nor
        column-major (a strided view) is copied into row-major order.
    outputs : int, default=1
        Scores per row of the model to be fitted.
    block_numbers : int, optional
        Stored numbers per block; chosen from the shape of the data if None.
    """
    if scipy.sparse.issparse(X):
        return _csr_matrix(X, outputs, block_numbers)
    return _dense_matrix(X, outputs, block_numbers)
