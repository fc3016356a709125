"""Kernels, and blocks of their values as matrix products.

    linear       <x, z>
    poly         (gamma·<x, z> + coef0)^degree
    rbf          exp(−gamma·|x − z|²)
    sigmoid      tanh(gamma·<x, z> + coef0)
    precomputed  X is the matrix of values
    callable     function(A, B) gives the values of rows A against rows B

A :class:`KernelMatrix` stands for K(rows, columns) but does not store it. ``fill`` computes q rows
at once, in chunks of columns, which the threads share. A chunk takes one product of matrices, and
one pass that converts products into kernel values. Chunks depend on the data alone, and BLAS uses
one thread within a chunk, so the bits do not depend on the number of threads.

rbf uses |x − z|² = |x|² + |z|² − 2<x, z>, which cancels for large gamma·|x|². So training data are
first centred at their mean. Single precision is used only if it is precise enough, and if double
precision is not, distances are summed term by term. For the linear kernel, centred data give the
same model if the bias is free: then Σβ = 0, and scores change by a constant. So these data are
centred, too, because a large mean would cost many digits.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from .._blas import single_threaded_blas
from ..loops import decomposition
from ..loops import kernel_values as loops
from . import rbf_sums
from .points import DensePoints, Points, SparsePoints, points_of, squared_norms

if TYPE_CHECKING:
    from ..exec import Executor

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")

SQUARE = 300  # rows and columns of a block of a whole matrix
# Largest error of gamma·|x − z|² with which single precision is used, because it is faster.
SINGLE_ERROR = 1e-5
DOUBLE_ERROR = 1e-10
# Rows and columns of a block whose values are summed at once and not kept, so that the block stays
# in a core's cache.
SUM_ROWS, SUM_COLUMNS = 256, 256
WORTH_A_COPY = 0.9  # unused features are dropped if at most this part of the features is left
FEW_FEATURES = 64  # with at most so many, kernel values may be computed one row at a time
# Mirrored values may differ by this part of the largest value, because of rounding.
SYMMETRY = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}


@dataclass(frozen=True)
class Kernel:
    """A kernel and its parameters.

    Attributes
    ----------
    name : str
        One of KERNELS, or 'callable'.
    gamma, coef0 : float
    degree : int
    function : callable or None
        Of a callable kernel: (A, B) to an array of shape (rows of A, rows of B).
    """

    name: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    function: Callable[[Any, Any], Any] | None = None

    @property
    def definite(self) -> bool | None:
        """Whether the kernel is positive semidefinite on all data; None if this is not known."""
        if self.name in ("linear", "rbf"):
            return True
        if self.name == "poly":
            return self.gamma >= 0.0 and self.coef0 >= 0.0
        return False if self.name == "sigmoid" else None

    def diagonal(self, norms: np.ndarray) -> np.ndarray:
        """k(x, x) from |x|²."""
        if self.name == "rbf":
            return np.ones_like(norms)
        if self.name == "linear":
            return norms.copy()
        base = self.gamma * norms + self.coef0
        return base**self.degree if self.name == "poly" else np.tanh(base)


def _linear_values(products: np.ndarray, *rest: Any) -> None:
    slots, first, out = rest[-3:]
    out[slots, first : first + products.shape[1]] = products


def _tanh_values(products: np.ndarray, *rest: Any) -> None:
    _, _, gamma, coef0, _, slots, first, out = rest
    values = np.tanh(gamma * products.astype(out.dtype, copy=False) + coef0)
    out[slots, first : first + products.shape[1]] = values


# What turns inner products into values of a kernel of this name. All of these functions take the
# same arguments: see ``loops.kernel_values``.
VALUES: dict[str, Callable[..., None]] = {
    "linear": _linear_values,
    "poly": loops.power_values,
    "rbf": loops.rbf_values_64,
    "sigmoid": _tanh_values,
}


# -- points -----------------------------------------------------------------------------


def training_points(
    kernel: Kernel, X: Any, *, single: bool, sums: bool = False, centre: bool = False
) -> Points:
    """Rows as points, prepared so that the kernel's values lose no precision that matters.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix, float32 or float64
    single : bool
        Whether single precision would do for the solver.
    sums : bool
        Whether what is wanted are sums of values: see ``kernels.rbf_sums``.
    centre : bool
        Whether the bias is free, so that a linear kernel may be moved to the mean.
    """
    points = points_of(X, np.float64)
    largest = float(points.norms.max(initial=0.0))
    if not np.isfinite(largest) or not np.all(np.isfinite(kernel.diagonal(points.norms))):
        raise ValueError(
            "X is too large: values of the kernel overflow; scale the features, for example with "
            "sklearn.preprocessing.StandardScaler"
        )
    single &= 1.0 / rbf_sums.MODERATE <= largest <= rbf_sums.MODERATE
    if kernel.name != "rbf":  # products may be large against their differences
        if kernel.name == "linear" and centre and isinstance(points, DensePoints):
            points = points_of(points.x, origin=points.x.mean(axis=0))
        if not single or X.dtype != np.float32:
            return points
        return points.astype(np.float32)
    single &= 1.0 / rbf_sums.MODERATE <= kernel.gamma <= rbf_sums.MODERATE
    if isinstance(points, DensePoints):
        origin = rbf_sums.origin_of(kernel.gamma, points.x) if single and sums else None
        if origin is not None:
            return rbf_sums.sum_points(points.x, origin)
        points = points_of(points.x, origin=points.x.mean(axis=0))
    reach = kernel.gamma * float(points.norms.max(initial=0.0))
    if single and reach * np.finfo(np.float32).eps <= SINGLE_ERROR:
        return points.astype(np.float32)
    if reach * np.finfo(np.float64).eps > DOUBLE_ERROR and isinstance(points, DensePoints):
        return points.as_direct()
    return points


def prediction_points(kernel: Kernel, X: Any, vectors: Any) -> tuple[Points, Points]:
    """New rows and support vectors as points of the same kind, for values in float64.

    Whole numbers are not moved, because then their products are exact. Features that are 0 in all
    support vectors, once these are moved to their mean, have no part in products.
    """
    right: Any = points_of(vectors)
    if isinstance(right, SparsePoints):
        return points_of(scipy.sparse.csr_array(X), dense=False, often=right.often), right
    left: Any = points_of(X, dense=True)
    reach = kernel.gamma * max(left.norms.max(initial=0.0), right.norms.max(initial=0.0))
    precise = kernel.name != "rbf" or reach * np.finfo(np.float64).eps <= DOUBLE_ERROR
    if precise and right.is_whole() and left.is_whole():
        left, right = left.as_whole(), right.as_whole()
    elif kernel.name == "rbf":
        centre = right.x.mean(axis=0)
        left, right = points_of(left.x, origin=centre), points_of(right.x, origin=centre)
        reach = kernel.gamma * max(left.norms.max(), right.norms.max())
        if not reach * np.finfo(np.float64).eps <= DOUBLE_ERROR:  # squares of new rows may overflow
            return left.as_direct(), right.as_direct()
    used = np.flatnonzero(np.any(right.x, axis=0))
    if len(used) < WORTH_A_COPY * right.x.shape[1]:
        return replace(left, x=left.x[:, used]), replace(right, x=right.x[:, used])
    return left, right


# -- matrices ---------------------------------------------------------------------------


class KernelMatrix(ABC):
    """K(rows, columns), computed where asked for.

    Attributes
    ----------
    dtype : dtype
        Of the values.
    diagonal : ndarray of float64
        k(x, x) of every row.
    columns : int
    values : ndarray or None
        The whole matrix, if it is stored.
    amplification : float
        A value is off by at most so many units of rounding in double precision of
        √k(x, x)·√k(z, z), if the kernel is positive semidefinite.
    relative : bool
        Whether so many units of rounding of the value itself.
    amplifications : float or ndarray
        The same for the values of every row, where it may be less.
    linear_rows : ndarray or None
        x with K = x·xᵀ in double precision, of linear kernels of dense rows.
    moved : tuple (shift, error, reach)
        Of a kernel of rows that were moved by −o. Σ_k coef_k·K(k, j) is short of the score of
        every row j by Σ_k coef_k·shift_k, if the coefficients sum to 0; shift_k is off by at most
        error_k. Each unit that the sum is off by changes that by at most ``reach``. Empty arrays if
        the rows were not moved.
    """

    dtype: np.dtype
    diagonal: np.ndarray
    columns: int
    values: np.ndarray | None = None
    amplification: float = 0.0
    relative: bool = False
    linear_rows: np.ndarray | None = None
    moved: tuple[np.ndarray, np.ndarray, float] = (np.empty(0), np.empty(0), 0.0)

    @property
    def amplifications(self) -> float | np.ndarray:
        """``amplification`` of the values of every row."""
        return self.amplification

    def compiled(self) -> tuple[Any, ...] | None:
        """The rows in the form from which compiled loops compute values; None if they cannot."""
        return None

    @abstractmethod
    def fill(self, which: np.ndarray, slots: np.ndarray, out: np.ndarray) -> None:
        """Write the values of row ``which[k]`` to ``out[slots[k], :columns]``."""

    @abstractmethod
    def restricted(self, columns: np.ndarray) -> KernelMatrix:
        """The matrix with only these of its columns."""

    def sum_errors(
        self,
        coef: np.ndarray,
        depth: int,
        sizes: np.ndarray | None = None,
        rows: np.ndarray | None = None,
    ) -> np.ndarray:
        """How far Σ_k coef_k·K(k, i) may be off, for every row i, if it is added in float64.

        With u the unit of rounding it is at most u·(depth + 8 + amplification)·Σ_k |coef_k·K(k, i)|
        if the values' own errors are relative. No |K(k, i)| is larger than √K(k, k)·√K(i, i), which
        takes its place where it is not known.

        Parameters
        ----------
        coef : ndarray
            A coefficient for every row.
        depth : int
            Additions that a term goes through, at most.
        sizes : ndarray, optional
            Σ_k |coef_k|·|K(k, i)|, if that is known.
        rows : ndarray of int, optional
            The rows that k and i count, which may be repeated; by default all.
        """
        if sizes is not None and self.relative:
            return (decomposition.UNIT * (depth + 8.0 + self.amplification)) * sizes
        roots = np.sqrt(np.abs(self.diagonal if rows is None else self.diagonal[rows]))
        most = roots * float(np.abs(coef) @ roots)
        size = most if sizes is None else sizes
        return decomposition.UNIT * ((depth + 8.0) * size + self.amplification * most)

    def values_of(self, which: np.ndarray) -> int:
        """How many values sums over these rows take."""
        return len(which) * self.columns

    def whole(self) -> np.ndarray:
        """All values, as stored or as a new array."""
        return self.rows(np.arange(len(self.diagonal))) if self.values is None else self.values

    def rows(self, which: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """The values of some rows as a new array."""
        matrix = self if columns is None else self.restricted(columns)
        out = np.empty((len(which), matrix.columns), dtype=self.dtype)
        matrix.fill(np.asarray(which), np.arange(len(which)), out)
        return out

    def combine(
        self, which: np.ndarray, coef: np.ndarray, columns: np.ndarray | None = None
    ) -> np.ndarray:
        """Σ_k coef[k]·K(which[k], j) for all columns j, or some of them; no value is stored.

        Parameters
        ----------
        which : ndarray of int, shape (q,)
        coef : ndarray of float64, shape (q,) or (q, outputs)
        columns : ndarray of int, optional

        Returns
        -------
        sums : ndarray of float64, shape (columns,) or (columns, outputs)
        """
        matrix = self if columns is None else self.restricted(columns)
        out = np.zeros((matrix.columns, *coef.shape[1:]))
        for first in range(0, len(which), SUM_ROWS):
            piece = slice(first, first + SUM_ROWS)
            out += matrix.rows(which[piece]).T @ coef[piece]
        return out

    def grouped(
        self, which: np.ndarray, coef: np.ndarray, groups: np.ndarray, count: int
    ) -> np.ndarray:
        """Sums as from ``combine``, for several groups of terms at once.

        Most groups are short. So several groups are joined into a piece, for which the sums are one
        product of matrices: the coefficients of a piece are a matrix with a column per group.

        Parameters
        ----------
        which, coef
            Terms, as for ``combine``, with one coefficient each.
        groups : ndarray of int64, shape (q,)
            The group of each term, ascending, below ``count``.
        count : int

        Returns
        -------
        sums : ndarray of float64, shape (count, columns)
        """
        out = np.zeros((count, self.columns))
        for first in range(0, len(which), SUM_ROWS):
            piece = slice(first, first + SUM_ROWS)
            number = groups[piece] - groups[first]
            spread = np.zeros((len(number), number[-1] + 1))
            spread[np.arange(len(number)), number] = coef[piece]
            sums = self.combine(which[piece], spread).T
            out[groups[first] : groups[first] + len(sums)] += sums
        return out


class ProductMatrix(KernelMatrix):
    """A kernel that is a function of inner products."""

    def __init__(
        self, kernel: Kernel, left: Points, right: Points | None, executor: Executor
    ) -> None:
        self._kernel = kernel
        self._left = left
        self._right: Points = left if right is None else right
        self._executor = executor
        self.dtype, self.columns = left.x.dtype, len(self._right)
        if right is None:  # predictions do without
            self.diagonal = kernel.diagonal(left.norms)
        self._parameters = kernel.gamma, kernel.coef0, int(kernel.degree)
        self._write = VALUES[kernel.name]
        self.relative, self._sums_fast = kernel.name == "rbf", False
        if isinstance(left, DensePoints):
            self.dtype = np.dtype(np.float64) if left.whole else left.x.dtype
            self._sums_fast = self.relative and self.dtype == np.float32
            self.relative = self.relative and not left.direct
            if kernel.name == "linear":
                self.linear_rows = left.x if left.x.dtype == np.float64 else None
                if left.origin is not None:
                    self.moved = _moved(left, left.origin)
        if kernel.name == "rbf" and self.dtype == np.float32:
            self._write = loops.rbf_values_32

    @cached_property
    def amplification(self) -> float:  # type: ignore[override]
        return float(np.max(self.amplifications))

    @cached_property
    def amplifications(self) -> float | np.ndarray:
        """By the kernel's form: products of d terms, then a power or an exponential."""
        ratio = float(np.finfo(self.dtype).eps / np.finfo(np.float64).eps)
        terms = self._left.terms + 6.0
        if self._kernel.name == "linear":
            return ratio * terms
        if self._kernel.name != "rbf":
            return ratio * (self._kernel.degree * terms + 4.0)
        direct = isinstance(self._left, DensePoints) and self._left.direct
        norms = squared_norms(self._left.x) if direct else self._left.norms
        reach = self._kernel.gamma * float(norms.max(initial=0.0))
        if direct:  # t·exp(−t) and √t·exp(−t) are below ½
            return ratio * (terms + 4.0 * float(np.sqrt(reach)))
        if self.dtype == np.float32:  # norms are in double precision
            return ratio * (reach * (2.0 * terms + 20.0) + 8.0)
        # (|x| + |z|)² is at most four times the largest |x|²
        return ratio * (4.0 * reach * terms + 8.0)

    def compiled(self) -> tuple[Any, ...] | None:
        kernel, points = self._kernel, self._left
        if isinstance(points, SparsePoints) or points.direct or points.x.dtype != np.float64:
            return None
        if points.x.shape[1] > FEW_FEATURES or kernel.name == "sigmoid":
            return None
        rows = np.ascontiguousarray(points.x), np.ascontiguousarray(points.x.T)
        if kernel.name == "rbf":
            return decomposition.RBF, *rows, kernel.gamma * points.norms, kernel.gamma, 0.0, 0
        if kernel.name == "linear":
            return decomposition.POWER, *rows, points.norms, 1.0, 0.0, 1
        power = kernel.gamma, kernel.coef0, int(kernel.degree)
        return decomposition.POWER, *rows, points.norms, *power

    def among(self, rows: np.ndarray) -> ProductMatrix:
        """The values of some rows among themselves."""
        return ProductMatrix(self._kernel, self._left.take(rows), None, self._executor)

    def restricted(self, columns: np.ndarray) -> ProductMatrix:
        other = copy.copy(self)
        other._right = self._right.take(columns)
        other.columns = len(other._right)
        return other

    def fill(self, which: np.ndarray, slots: np.ndarray, out: np.ndarray) -> None:
        left, right = self._left.take(which), self._right
        height, width = left.block
        pieces = [
            (slice(top, min(top + height, len(left))), first, min(first + width, self.columns))
            for top in range(0, len(left), height)
            for first in range(0, self.columns, width)
        ]

        def piece(k: int) -> None:
            rows, first, last = pieces[k]
            products = np.empty((rows.stop - rows.start, last - first), dtype=left.x.dtype)
            left.products(rows, right, first, last, products)  # type: ignore[arg-type]
            norms = left.norms[rows], right.norms[first:last]
            self._write(products, *norms, *self._parameters, slots[rows], first, out)

        with single_threaded_blas():
            self._executor.run(piece, len(pieces))

    def whole(self) -> np.ndarray:
        """All values of rows among themselves. Only one of two mirrored blocks is computed."""
        count = -(-len(self._left) // SQUARE)
        places = [np.arange(k * SQUARE, min((k + 1) * SQUARE, self.columns)) for k in range(count)]
        parts = [self._left.take(place) for place in places]
        pairs = [(a, b) for a in range(count) for b in range(a, count)]
        out = np.empty((len(self._left), self.columns), dtype=self.dtype)

        def block(k: int) -> None:
            a, b = pairs[k]
            left, right, first = parts[a], parts[b], b * SQUARE
            products = np.empty((len(left), len(right)), dtype=self.dtype)
            rows, columns = slice(0, len(left)), (0, len(right))
            left.products(rows, right, *columns, products)  # type: ignore[arg-type]
            norms = left.norms, right.norms
            self._write(products, *norms, *self._parameters, places[a], first, out)
            if a < b:
                own = slice(a * SQUARE, a * SQUARE + len(left))
                other = slice(first, first + len(right))
                out[other, own] = out[own, other].T

        with single_threaded_blas():
            self._executor.run(block, len(pairs))
        return out

    def combine(
        self, which: np.ndarray, coef: np.ndarray, columns: np.ndarray | None = None
    ) -> np.ndarray:
        right = self._right if columns is None else self._right.take(columns)
        if coef.ndim == 1 and self._sums_fast:
            return self._fast_sums(right, which, coef, np.zeros(len(which), np.int64), 1)[0]
        if self._kernel.name == "linear":
            with single_threaded_blas():
                w = self._left.take(which).weights(coef)
                return np.asarray(right.scores(w), dtype=np.float64)
        if isinstance(right, SparsePoints):
            return super().combine(which, coef, columns)
        count = len(right)
        out = np.zeros((count, *coef.shape[1:]))
        pieces = [slice(a, a + SUM_ROWS) for a in range(0, len(which), SUM_ROWS)]
        lefts = [self._left.take(which[piece]) for piece in pieces]

        def chunk(k: int) -> None:
            first, last = k * SUM_COLUMNS, min((k + 1) * SUM_COLUMNS, count)
            room = np.empty((2, SUM_ROWS, last - first), dtype=self.dtype)
            for piece, left in zip(pieces, lefts, strict=True):
                # Two arrays: in place the loop over the values would not be vectorised.
                products, values = room[:, : len(left)]
                every = slice(0, len(left))
                left.products(every, right, first, last, products)  # type: ignore[arg-type]
                norms = left.norms, right.norms[first:last]
                self._write(products, *norms, *self._parameters, np.arange(len(left)), 0, values)
                out[first:last] += values.T @ coef[piece].astype(self.dtype, copy=False)

        with single_threaded_blas():
            self._executor.run(chunk, -(-count // SUM_COLUMNS))
        return out

    def grouped(
        self, which: np.ndarray, coef: np.ndarray, groups: np.ndarray, count: int
    ) -> np.ndarray:
        if self._sums_fast:
            return self._fast_sums(self._right, which, coef, groups, count)
        return super().grouped(which, coef, groups, count)

    def _fast_sums(
        self, right: Any, which: np.ndarray, coef: np.ndarray, groups: np.ndarray, count: int
    ) -> np.ndarray:
        left: Any = self._left.take(which)
        terms = rbf_sums.RbfTerms.make(left, self._kernel.gamma, coef, groups)
        with single_threaded_blas():
            return terms.sums(right, count, self._executor)


def _moved(points: DensePoints, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """``KernelMatrix.moved`` of a linear kernel of rows that were moved by −origin."""
    size, lengths = float(np.linalg.norm(origin)), np.sqrt(points.norms)
    unit = 0.5 * np.finfo(np.float64).eps * (len(origin) + 8.0)
    reach = size * (size + float(lengths.max(initial=0.0)))
    return points.x @ origin, unit * size * lengths, reach


class PrecomputedMatrix(KernelMatrix):
    """Values that are stored: the user's, or those of another matrix, which says how exact."""

    def __init__(
        self,
        values: np.ndarray,
        columns: np.ndarray | None = None,
        source: KernelMatrix | None = None,
    ) -> None:
        if source is not None:
            self.amplification, self.relative = source.amplification, source.relative
            self.moved = source.moved
        self._values = values
        self._columns = columns
        self.dtype = values.dtype
        self.columns = values.shape[1] if columns is None else len(columns)
        self.values = values if columns is None else None

    @cached_property
    def diagonal(self) -> np.ndarray:  # type: ignore[override]
        """k(x, x) of every row."""
        return self._values.diagonal().astype(np.float64)

    def among(self, rows: np.ndarray) -> PrecomputedMatrix:
        """The values of some rows among themselves."""
        return PrecomputedMatrix(self._values[np.ix_(rows, rows)], source=self)

    def restricted(self, columns: np.ndarray) -> PrecomputedMatrix:
        chosen = columns if self._columns is None else self._columns[columns]
        return PrecomputedMatrix(self._values, chosen, self)

    def fill(self, which: np.ndarray, slots: np.ndarray, out: np.ndarray) -> None:
        columns = slice(None) if self._columns is None else self._columns
        rows = which if self._columns is None else which[:, None]
        out[slots, : self.columns] = self._values[rows, columns]


class CallableMatrix(KernelMatrix):
    """Values of the user's function, asked for in blocks of rows."""

    def __init__(self, function: Callable[[Any, Any], Any], left: Any, right: Any = None) -> None:
        self._function = function
        self._left = left
        self._right = left if right is None else right
        self.dtype = np.dtype(np.float64)
        self.columns = self._right.shape[0]

    @cached_property
    def diagonal(self) -> np.ndarray:  # type: ignore[override]
        """k(x, x), from square blocks."""
        size, step = self._left.shape[0], 64
        blocks = []
        for first in range(0, size, step):
            rows = self._left[first : first + step]
            blocks.append(call_kernel(self._function, rows, rows).diagonal())
        return np.concatenate(blocks)

    def among(self, rows: np.ndarray) -> CallableMatrix:
        """The values of some rows among themselves."""
        return CallableMatrix(self._function, self._left[rows])

    def restricted(self, columns: np.ndarray) -> CallableMatrix:
        return CallableMatrix(self._function, self._left, self._right[columns])

    def fill(self, which: np.ndarray, slots: np.ndarray, out: np.ndarray) -> None:
        values = call_kernel(self._function, self._left[which], self._right)
        out[slots, : self.columns] = values


TrainingMatrix = ProductMatrix | PrecomputedMatrix | CallableMatrix


def kernel_matrix(
    kernel: Kernel,
    X: Any,
    executor: Executor,
    *,
    single: bool,
    sums: bool = False,
    centre: bool = False,
) -> TrainingMatrix:
    """The kernel's values of all pairs of rows, not computed yet; see ``training_points``."""
    if kernel.name == "precomputed":
        return PrecomputedMatrix(X)
    if kernel.function is not None:
        return CallableMatrix(kernel.function, X)
    points = training_points(kernel, X, single=single, sums=sums, centre=centre)
    return ProductMatrix(kernel, points, None, executor)


# -- values that users give --------------------------------------------------------------


def call_kernel(function: Callable[[Any, Any], Any], left: Any, right: Any) -> np.ndarray:
    """Call the user's function for two sets of rows, and check its result."""
    shape = (left.shape[0], right.shape[0])
    values = function(left, right)
    if scipy.sparse.issparse(values):
        values = values.toarray()
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"kernel: the function must return an array of numbers: {error}") from None
    if values.shape != shape:
        raise ValueError(
            f"kernel: the function got {shape[0]} and {shape[1]} rows and must return an array "
            f"of shape {shape}, got {values.shape}"
        )
    if not np.all(np.isfinite(values)):
        a, b = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"kernel: the function returned {values[a, b]} for rows {a} and {b} of its arguments"
        )
    return values


def check_precomputed(values: np.ndarray) -> None:
    """Check that a precomputed kernel of the training data is square and symmetric."""
    rows, columns = values.shape
    if rows != columns:
        raise ValueError(
            "Precomputed matrix must be a square matrix: kernel='precomputed' takes the kernel "
            f"values of all pairs of training rows, got {rows} × {columns}"
        )
    scale = float(np.max(np.abs(values), initial=0.0))
    for first in range(0, rows, 512):
        block = values[first : first + 512]
        apart = np.abs(block - values[:, first : first + 512].T)
        if np.max(apart) > SYMMETRY[values.dtype] * scale:
            a, b = np.unravel_index(np.argmax(apart), apart.shape)
            raise ValueError(
                f"kernel='precomputed' takes a symmetric matrix, but X[{first + a}, {b}] = "
                f"{block[a, b]:g} and X[{b}, {first + a}] = {values[b, first + a]:g}"
            )
