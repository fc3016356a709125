"""Row blocks: the unit of work of every pass over the data.

A design matrix is cut into consecutive blocks of rows. Where a block ends
depends on the data alone, never on the number of threads, and partial sums
are added in block order: results are the same to the last bit however the
blocks are executed.

A block is read-only and offers two products, ``scores`` (X·w) and
``add_gradient`` (gradient += Xᵀ·coef). Values are never copied: float32 and
float64 arrays are used as they are, in CSR, row-major or column-major layout.
Sparse indices that fit into 16 bits are copied into 16 bits, unless the copy would take
more memory than it is worth. All other indices of 32 bits are viewed as unsigned, without a copy,
and indices of 64 bits are copied into 32 bits. Row starts become int64.
"""

from __future__ import annotations

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse

from ..loops import products
from .memory import check_weights
from .sums import part_edges

if TYPE_CHECKING:
    from ..exec import Executor

# A block should be long enough to be worth a task: a quarter of a million numbers take
# about 0.3 ms. Each block also has a partial gradient of n numbers, and the partial gradients
# are added up. So a block should hold many more numbers than that. With 8 numbers per weight, the
# additions took a third of the time of Xᵀ·c on film reviews; with 24, these data are two blocks.
BLOCK_NUMBERS = 1 << 18
BLOCK_NUMBERS_PER_WEIGHT = 24
# The largest copy of indices in 16 bits. With many features the limit is smaller: such data are
# mostly fitted by a few passes of descent, not by a hundred passes of cutting planes, so a copy
# saves less time.
COMPACT_BYTES = 1 << 29
FEW_PASSES_BYTES, MANY_FEATURES = 1 << 25, 4096
# A model with more weights than this may not fit into memory, so it is checked.
MANY_WEIGHTS = 1 << 22
# So many numbers per task, when several threads share a copy.
SHARED_COPY = 1 << 20
# Rows that are tested first for equal values; most data fail here, without a look at all rows.
ROWS_AT_FIRST = 64

Result = TypeVar("Result")

# Values, columns and starts of some rows. There are no columns where every row has all of them.
FlatRows = tuple[np.ndarray, np.ndarray | None, np.ndarray]


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view. Numba compiles a kernel anew for writeable arrays, so none are passed."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True)
class CSRBlock:
    """Sparse rows: row i has the values and indices at ``starts[i]`` to ``starts[i + 1]``.

    ``equal`` says that all values of a row are equal. Then the products read one value per row, and
    give the same bits.
    """

    values: np.ndarray
    indices: np.ndarray
    starts: np.ndarray
    equal: bool = False

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.values, self.indices, self.starts

    def flat(self) -> FlatRows:
        return self.values, self.indices, self.starts

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        kernel = products.csr_scores_equal if self.equal else products.csr_scores
        if w.ndim > 1:
            kernel = products.csr_scores_multi
        kernel(self.values, self.indices, self.starts, w, out)

    def add_gradient(self, coef: np.ndarray, out: np.ndarray) -> None:
        kernel = products.csr_add_gradient_equal if self.equal else products.csr_add_gradient
        if coef.ndim > 1:
            kernel = products.csr_add_gradient_multi
        kernel(self.values, self.indices, self.starts, coef, out)

    def squared_norms(self, out: np.ndarray) -> None:
        products.csr_squared_norms(self.values, self.starts, out)


@dataclass(frozen=True)
class RowMajorBlock:
    """Dense rows, each contiguous."""

    x: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.x)

    def arrays(self) -> tuple[np.ndarray, ...]:
        return (self.x,)

    def flat(self) -> FlatRows:
        return self.x.reshape(-1), None, np.arange(len(self.x) + 1) * self.x.shape[1]

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        one, many = products.dense_scores, products.dense_scores_multi
        (one if w.ndim == 1 else many)(self.x, w, out)

    def add_gradient(self, coef: np.ndarray, out: np.ndarray) -> None:
        one, many = products.dense_add_gradient, products.dense_add_gradient_multi
        (one if coef.ndim == 1 else many)(self.x, coef, out)

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

    def flat(self) -> FlatRows:
        x = read_only(np.ascontiguousarray(self.xt[:, self.first :].T[: self.rows]))
        return RowMajorBlock(x).flat()

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        one, many = products.column_scores, products.column_scores_multi
        (one if w.ndim == 1 else many)(self.xt, self.first, w, out)

    def add_gradient(self, coef: np.ndarray, out: np.ndarray) -> None:
        one, many = products.column_add_gradient, products.column_add_gradient_multi
        (one if coef.ndim == 1 else many)(self.xt, self.first, coef, out)

    def squared_norms(self, out: np.ndarray) -> None:
        xt = self.xt[:, self.first : self.first + self.rows]
        np.einsum("ji,ji->i", xt, xt, out=out, dtype=np.float64)


Block = CSRBlock | RowMajorBlock | ColumnMajorBlock


@dataclass(frozen=True)
class BlockedMatrix:
    """A design matrix as a sequence of row blocks, in memory; a subclass reads them from files."""

    blocks: Sequence[Block]  # in row order
    bounds: np.ndarray  # block k holds rows bounds[k] to bounds[k + 1]
    shape: tuple[int, int]  # rows and features
    n_stored: int  # stored values: non-zeros, or rows times features
    whole: Block | None = None  # all rows as one block, where they lie in one piece of memory
    # What was computed once from the rows, kept for later problems on the same matrix.
    facts: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def slice(self, k: int) -> slice:
        """The rows of block k."""
        return slice(self.bounds[k], self.bounds[k + 1])

    @property
    def part_rows(self) -> list[int]:
        """Rows at which parts begin, and the end."""
        return self.bounds[part_edges(len(self.blocks), len(self))].tolist()

    def digest(self) -> bytes:
        """A fingerprint of the stored numbers and their layout."""
        if "digest" not in self.facts:
            digest = hashlib.blake2b(repr(self.shape).encode(), digest_size=16)
            digest.update(self._content())
            self.facts["digest"] = digest.digest()
        known: bytes = self.facts["digest"]
        return known

    def _content(self) -> bytes:
        """A fingerprint of the stored values and their layout, without the shape."""
        digest = hashlib.blake2b(digest_size=16)
        for block in self.blocks:
            for array in block.arrays():
                digest.update(array.dtype.str.encode())
                digest.update(array.data)
        return digest.digest()

    def run(
        self,
        function: Callable[[int, Block], Result],
        executor: Executor,
        some: range | None = None,
    ) -> list[Result]:
        """Call a function for every block, or for some of the blocks.

        ``function`` gets the number of a block and the block. It may use the block until it
        returns. The results come in the order of the blocks.
        """
        which = range(len(self.blocks)) if some is None else some
        return executor.map(function, which, self.blocks[which.start : which.stop])

    def scores(self, w: np.ndarray, out: np.ndarray, executor: Executor) -> None:
        """out = X·w, in one pass."""
        self.run(lambda k, block: block.scores(w, out[self.slice(k)]), executor)

    def squared_norms(self, executor: Executor) -> np.ndarray:
        """|x_i|² of every row, in one pass the first time."""
        if "squared norms" not in self.facts:
            out = np.empty(len(self))
            self.run(lambda k, block: block.squared_norms(out[self.slice(k)]), executor)
            self.facts["squared norms"] = read_only(out)
        known: np.ndarray = self.facts["squared norms"]
        return known


class RowsInBlocks(ABC):
    """Data that divide themselves into blocks; ``shape`` is (rows, features)."""

    shape: tuple[int, int]

    @abstractmethod
    def blocks(self, outputs: int = 1, only: range | None = None) -> BlockedMatrix:
        """The rows in blocks, or only some blocks; ``outputs`` is the model's scores per row."""


def block_bounds(
    rows: int,
    stored: np.ndarray | int,
    width: int,
    block_numbers: int | None = None,
    edges: Sequence[int] | None = None,
) -> np.ndarray:
    """Row numbers at which blocks begin, and the end: the stored numbers are divided evenly.

    Parameters
    ----------
    rows : int
    stored : ndarray or int
        Where the numbers of each sparse row begin, and the end; or the numbers of a dense row.
    width : int
        Length of a gradient.
    block_numbers, edges : optional
        As for ``as_blocks``.
    """
    size = block_numbers or max(BLOCK_NUMBERS, BLOCK_NUMBERS_PER_WEIGHT * width)
    bounds = [np.zeros(1, np.int64)]
    for a, b in itertools.pairwise((0, rows) if edges is None else edges):
        total = (b - a) * stored if isinstance(stored, int) else int(stored[b] - stored[a])
        count = max(1, -(-total // size))
        count += count > 1 and count % 2  # two threads can share an even number of blocks evenly
        ends = (np.arange(1, count) * total) // count  # of all blocks but the last
        if isinstance(stored, int):
            inner = -(-ends // max(1, stored))
        else:
            inner = np.searchsorted(stored[a : b + 1], stored[a] + ends)
        bounds += [a + inner, np.array([b])]
    return np.unique(np.concatenate(bounds)).astype(np.int64)


def compact_indices(
    indices: np.ndarray, features: int, compact: bool, runner: Executor | None
) -> np.ndarray:
    """Indices in 16 bits if they fit and the copy is worth it, otherwise unsigned in 32 bits."""
    short = features <= 1 << 16
    room = COMPACT_BYTES if features <= MANY_FEATURES else FEW_PASSES_BYTES
    if indices.dtype == np.int32 and not (short and compact and 2 * len(indices) <= room):
        return indices.view(np.uint32)
    dtype = np.uint16 if short else np.uint32
    if runner is None or len(indices) < SHARED_COPY:
        return indices.astype(dtype)
    copy = np.empty(len(indices), dtype)

    def part(k: int) -> None:
        numbers = slice(k * SHARED_COPY, (k + 1) * SHARED_COPY)
        copy[numbers] = indices[numbers]

    runner.run(part, -(-len(indices) // SHARED_COPY))
    return copy


def equal_in_rows(values: np.ndarray, starts: np.ndarray, runner: Executor | None) -> bool:
    """Whether in each row all values are equal, as in indicator data.

    Other data fail the test within the first rows, so the test costs little.
    """
    rows = len(starts) - 1
    some = min(rows, ROWS_AT_FIRST)
    tasks = max(1, int(starts[-1] - starts[0]) // SHARED_COPY)
    edges = some + (rows - some) * np.arange(tasks + 1) // tasks

    def part(k: int) -> bool:
        first, last = (0, some) if k < 0 else (edges[k], edges[k + 1])
        own = values[starts[first] : starts[last]]
        changes = own[1:] != own[:-1]
        ends = starts[first:last] - starts[first]  # a new row begins here, so the value may change
        ends = ends[(ends > 0) & (ends < len(own)) & (np.diff(ends, append=-1) != 0)]
        return np.count_nonzero(changes) == np.count_nonzero(changes[ends - 1])

    if starts[0] == starts[-1] or not part(-1):
        return False
    return all(map(part, range(tasks)) if runner is None else runner.run(part, tasks))


def _csr_matrix(
    X: Any,
    outputs: int,
    block_numbers: int | None,
    compact: bool,
    runner: Executor | None,
    edges: Sequence[int] | None,
) -> BlockedMatrix:
    starts = X.indptr.astype(np.int64)
    indices = read_only(compact_indices(X.indices, X.shape[1], compact, runner))
    values = read_only(X.data)
    bounds = block_bounds(X.shape[0], starts, X.shape[1] * outputs, block_numbers, edges)
    equal = compact and equal_in_rows(values, starts, runner)

    def block(first: int, last: int) -> CSRBlock:
        stored = slice(starts[first], starts[last])
        relative = read_only(starts[first : last + 1] - starts[first])
        return CSRBlock(values[stored], indices[stored], relative, equal)

    blocks = [block(a, b) for a, b in itertools.pairwise(bounds)]
    n_stored = int(starts[-1] - starts[0])
    return BlockedMatrix(blocks, bounds, X.shape, n_stored, block(0, X.shape[0]))


def _dense_matrix(
    X: np.ndarray, outputs: int, block_numbers: int | None, edges: Sequence[int] | None
) -> BlockedMatrix:
    rows, features = X.shape
    bounds = block_bounds(rows, features, features * outputs, block_numbers, edges)
    pairs = [(0, rows), *itertools.pairwise(bounds.tolist())]  # all rows, and the blocks
    blocks: list[Block]
    if X.flags.c_contiguous or not X.flags.f_contiguous:
        x = read_only(np.ascontiguousarray(X))
        blocks = [RowMajorBlock(x[a:b]) for a, b in pairs]
    else:
        xt = read_only(X.T)
        blocks = [ColumnMajorBlock(xt, a, b - a) for a, b in pairs]
    return BlockedMatrix(blocks[1:], bounds, X.shape, rows * features, blocks[0])


def as_blocks(
    X: Any,
    *,
    outputs: int = 1,
    block_numbers: int | None = None,
    compact: bool = True,
    runner: Executor | None = None,
    edges: Sequence[int] | None = None,
) -> BlockedMatrix:
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
    compact : bool, default=True
        Copy indices of 32 bits into 16 bits if they fit. The copy costs as much as one pass over
        the data. When threads share the memory, it makes every pass up to a third faster.
    runner : Executor, optional
        Shares the copying among threads.
    edges : sequence of int, optional
        Increasing row numbers, from 0 to the number of rows. No block contains rows from both
        sides of an edge. ``RowsInBlocks`` ignore it.
    """
    if X.shape[1] * outputs > MANY_WEIGHTS:
        check_weights(X.shape[1], outputs)
    if isinstance(X, RowsInBlocks):
        return X.blocks(outputs)
    if scipy.sparse.issparse(X):
        return _csr_matrix(X, outputs, block_numbers, compact, runner, edges)
    return _dense_matrix(X, outputs, block_numbers, edges)
