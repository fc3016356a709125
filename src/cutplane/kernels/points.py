"""Rows with their squared norms, for inner products of all pairs of rows.

``left.products(right, first, last, out)`` writes <left_k, right_j> for first ≤ j < last: one
product of matrices for dense rows, a pass over the non-zeros for each panel of sparse rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from ..loops import kernel_values as loops

# Sparse rows are stored densely if that takes at most this many numbers per non-zero, where
# a dense product is as fast, and at most so much memory.
DENSE_PER_NONZERO = 12
DENSE_BYTES = 1 << 28


@dataclass(frozen=True)
class DensePoints:
    """Rows of a dense matrix with their squared norms in float64.

    With ``direct`` products are −½|x − z|² and the norms 0: rbf without cancellation. ``origin`` is
    what was taken off the rows, if anything was.
    """

    x: np.ndarray
    norms: np.ndarray
    direct: bool = False
    origin: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.x)

    @property
    def terms(self) -> int:
        """Terms of an inner product, at most."""
        return self.x.shape[1]

    def astype(self, dtype: Any) -> DensePoints:
        return replace(self, x=self.x.astype(dtype))

    def moved(self, origin: np.ndarray) -> DensePoints:
        x = self.x - origin
        return DensePoints(x, squared_norms(x), origin=origin)

    def take(self, rows: np.ndarray) -> DensePoints:
        return replace(self, x=self.x[rows], norms=self.norms[rows])

    def products(self, right: DensePoints, first: int, last: int, out: np.ndarray) -> None:
        if self.direct:
            loops.squared_distances(self.x, right.x, first, out)
            out *= -0.5
        else:
            np.dot(self.x, right.x[first:last].T, out=out)


@dataclass(frozen=True)
class SparsePoints:
    """Rows of a CSR matrix with their squared norms in float64."""

    x: Any
    values: np.ndarray
    indices: np.ndarray
    starts: np.ndarray
    norms: np.ndarray

    @staticmethod
    def make(x: Any, norms: np.ndarray) -> SparsePoints:
        return SparsePoints(
            x, x.data, x.indices.astype(np.uint32), x.indptr.astype(np.int64), norms
        )

    def __len__(self) -> int:
        return self.x.shape[0]

    @property
    def terms(self) -> int:
        """Terms of an inner product, at most."""
        return int(np.diff(self.starts).max(initial=0))

    def astype(self, dtype: Any) -> SparsePoints:
        return SparsePoints.make(self.x.astype(dtype), self.norms)

    def take(self, rows: np.ndarray) -> SparsePoints:
        return SparsePoints.make(self.x[rows], self.norms[rows])

    def products(self, right: SparsePoints, first: int, last: int, out: np.ndarray) -> None:
        panel = np.zeros((self.x.shape[1], loops.PANEL), dtype=out.dtype)
        for begin in range(0, len(self), loops.PANEL):
            rows = np.arange(begin, min(begin + loops.PANEL, len(self)))
            loops.fill_panel(self.values, self.indices, self.starts, rows, panel)
            loops.panel_products(
                right.values,
                right.indices,
                right.starts,
                panel,
                first,
                len(rows),
                out[begin : begin + len(rows)],
            )
            loops.clear_panel(self.indices, self.starts, rows, panel)


Points = DensePoints | SparsePoints


def squared_norms(X: Any) -> np.ndarray:
    """|x|² of every row, in float64."""
    if scipy.sparse.issparse(X):
        values = X.data.astype(np.float64)
        square = scipy.sparse.csr_array((values * values, X.indices, X.indptr), shape=X.shape)
        return np.asarray(square.sum(axis=1), dtype=np.float64).reshape(-1)
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def points_of(X: Any, dtype: Any = np.float64, *, dense: bool | None = None) -> Points:
    """Rows as points of a kernel, as they are.

    Parameters
    ----------
    X : ndarray or CSR matrix
    dtype : float32 or float64
    dense : bool, optional
        Whether they are stored densely; by default as the number of non-zeros suggests.
    """
    norms = squared_norms(X)
    if scipy.sparse.issparse(X):
        if dense is None:
            size = X.shape[0] * X.shape[1]
            small = size * np.dtype(dtype).itemsize <= DENSE_BYTES
            dense = small and size <= DENSE_PER_NONZERO * max(X.nnz, X.shape[0])
        if not dense:
            return SparsePoints.make(scipy.sparse.csr_array(X, dtype=dtype), norms)
        X = X.toarray()
    return DensePoints(np.ascontiguousarray(X, dtype=dtype), norms)
