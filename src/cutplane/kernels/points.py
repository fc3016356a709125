"""Rows with their squared norms, for inner products of all pairs of rows.

``left.products(rows, right, first, last, out)`` writes <left_k, right_j> for k in a slice of rows
and first ≤ j < last. For dense rows this is one product of matrices. Sparse rows have two parts:
frequent features are multiplied as dense matrices, and each other non-zero of a row is multiplied
only with the rows that have the same feature (Gustavson 1978). All j are computed then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from ..loops import kernel_values as loops

# Sparse rows are stored densely if this takes at most so many numbers per non-zero, because then
# dense products are as fast, and at most so much memory.
DENSE_PER_NONZERO = 12
DENSE_BYTES = 1 << 28
# Columns of a block of products. No power of two: its rows should not fall on the same cache lines.
CHUNK = 2000
SPARSE_ROWS = 32  # rows of a block of products of sparse rows
ALL = 1 << 62
# A feature of sparse rows is stored densely if more than this part of the rows have it. Of n rows f
# have it: a product of matrices takes n² multiplications, which are some 30 times as fast as the f²
# scattered ones. In two sets of text a hundred features make 86 % of all scattered ones.
OFTEN = 1 / 6
EXACT_PRODUCTS = 2.0**24  # up to here all whole numbers are numbers of single precision
SOME = 16  # rows that are looked at first


@dataclass(frozen=True)
class DensePoints:
    """Rows of a dense matrix with their squared norms in float64.

    With ``direct`` products are −½|x − z|² and the norms 0: rbf without cancellation. ``origin`` is
    what was taken off the rows, if anything was. With ``whole`` the rows are whole numbers, and so
    small that their products are exact in single precision, which takes half the time: x is in
    single precision then, and kernel values in double precision. ``block`` are rows and columns
    of products that are computed at a time.
    """

    x: np.ndarray
    norms: np.ndarray
    direct: bool = False
    origin: np.ndarray | None = None
    whole: bool = False
    block: ClassVar[tuple[int, int]] = ALL, CHUNK

    def __len__(self) -> int:
        return len(self.x)

    @property
    def terms(self) -> int:
        """Terms of an inner product, at most."""
        return self.x.shape[1]

    def astype(self, dtype: Any) -> DensePoints:
        return replace(self, x=self.x.astype(dtype))

    def is_whole(self) -> bool:
        """Whether the numbers are whole, and products of two rows exact in single precision.

        All partial sums of <x, z> are at most |x|·|z|.
        """
        if not self.norms.max(initial=0.0) <= EXACT_PRODUCTS:
            return False
        some = self.x[:SOME]
        return bool(np.all(some == np.rint(some)) and np.all(self.x == np.rint(self.x)))

    def as_whole(self) -> DensePoints:
        return replace(self, x=self.x.astype(np.float32), whole=True)

    def as_direct(self) -> DensePoints:
        return DensePoints(self.x, np.zeros(len(self)), direct=True)

    def take(self, rows: np.ndarray) -> DensePoints:
        return replace(self, x=self.x[rows], norms=self.norms[rows])

    def weights(self, coef: np.ndarray) -> np.ndarray:
        """w = Σ coef_k·x_k."""
        return self.x.T @ coef

    def scores(self, w: np.ndarray) -> np.ndarray:
        """<w, x_k> of every row."""
        return self.x @ w

    def products(
        self, rows: slice, right: DensePoints, first: int, last: int, out: np.ndarray
    ) -> None:
        if self.direct:
            loops.squared_distances(self.x[rows], right.x, first, out)
            out *= -0.5
        else:
            np.dot(self.x[rows], right.x[first:last].T, out=out)


@dataclass(frozen=True)
class SparsePoints:
    """Rows of a CSR matrix with their squared norms in float64.

    ``often`` are the features that are stored densely, in ``dense``; ``x`` has the others.
    """

    x: Any
    dense: np.ndarray
    often: np.ndarray
    norms: np.ndarray
    block: ClassVar[tuple[int, int]] = SPARSE_ROWS, ALL

    @staticmethod
    def make(x: Any, norms: np.ndarray, often: np.ndarray | None) -> SparsePoints:
        """Rows with these features stored densely; by default those that many rows have."""
        if often is None:
            counts = np.bincount(x.indices, minlength=x.shape[1])
            often = np.flatnonzero(counts > OFTEN * x.shape[0])
        dense = x[:, often].toarray()
        rare = np.isin(x.indices, often, invert=True)
        starts = np.concatenate([[0], np.cumsum(rare)])[x.indptr].astype(x.indptr.dtype)
        x = scipy.sparse.csr_array((x.data[rare], x.indices[rare], starts), shape=x.shape)
        return SparsePoints(x, dense, often, norms)

    def __len__(self) -> int:
        return self.x.shape[0]

    @property
    def terms(self) -> np.ndarray:
        """Terms of an inner product of every row, at most."""
        return len(self.often) + np.diff(self.x.indptr)

    @cached_property
    def by_feature(self) -> Any:
        """The rows without the frequent features as a CSC matrix."""
        return self.x.tocsc()

    def astype(self, dtype: Any) -> SparsePoints:
        return replace(self, x=self.x.astype(dtype), dense=self.dense.astype(dtype))

    def take(self, rows: np.ndarray) -> SparsePoints:
        return replace(self, x=self.x[rows], dense=self.dense[rows], norms=self.norms[rows])

    def weights(self, coef: np.ndarray) -> np.ndarray:
        w = self.x.T @ coef
        w[self.often] = self.dense.T @ coef
        return w

    def scores(self, w: np.ndarray) -> np.ndarray:
        return self.x @ w + self.dense @ w[self.often]

    def products(
        self, rows: slice, right: SparsePoints, first: int, last: int, out: np.ndarray
    ) -> None:
        x, z = self.x, right.by_feature
        starts = x.indptr[rows.start : rows.stop + 1]
        np.dot(self.dense[rows], right.dense.T, out=out)
        loops.sparse_products(x.data, x.indices, starts, z.data, z.indices, z.indptr, out)


Points = DensePoints | SparsePoints


def squared_norms(X: Any) -> np.ndarray:
    """|x|² of every row, in float64."""
    if scipy.sparse.issparse(X):
        values = X.data.astype(np.float64)
        square = scipy.sparse.csr_array((values * values, X.indices, X.indptr), shape=X.shape)
        return np.asarray(square.sum(axis=1), dtype=np.float64).reshape(-1)
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def points_of(
    X: Any,
    dtype: Any = np.float64,
    *,
    dense: bool | None = None,
    often: np.ndarray | None = None,
    origin: np.ndarray | None = None,
) -> Points:
    """Rows as points of a kernel, as they are or moved.

    Parameters
    ----------
    X : ndarray or CSR matrix
    dtype : float32 or float64
    dense : bool, optional
        Whether they are stored densely; by default as the number of non-zeros suggests.
    often : ndarray of int, optional
        Features that are stored densely if the rows are not: those of the points that products will
        be computed with.
    origin : ndarray, optional
        What is taken off dense rows.
    """
    X = X if origin is None else X - origin
    norms = squared_norms(X)
    if scipy.sparse.issparse(X):
        if dense is None:
            size = X.shape[0] * X.shape[1]
            small = size * np.dtype(dtype).itemsize <= DENSE_BYTES
            dense = small and size <= DENSE_PER_NONZERO * max(X.nnz, X.shape[0])
        if not dense:
            return SparsePoints.make(scipy.sparse.csr_array(X, dtype=dtype), norms, often)
        X = X.toarray()
    return DensePoints(np.ascontiguousarray(X, dtype=dtype), norms, origin=origin)
