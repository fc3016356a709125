"""Rows of data: features with labels, queries and weights, and the limits of their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

MOST_FEATURES = 2**31 - 1  # indices are kept in 32 bits

# For each type, the largest float64 that rounds to a finite number of the type.
LARGEST_VALUE: dict[np.dtype, float] = {
    np.dtype(np.float64): float(np.finfo(np.float64).max),
    np.dtype(np.float32): float(np.nextafter(2.0**128 - 2.0**103, 0.0)),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Consecutive rows: features and, for each row, label, weight and query; None if not given.

    Unpacks as ``X, y, qid, weight``.

    Attributes
    ----------
    X : ndarray or sparse matrix, shape (rows, features)
    y : ndarray or None
        Labels.
    weight : ndarray or None
        Factors on C. Files call them cost.
    qid : ndarray or None
        Queries.
    names : tuple of str or None
        Of the features.
    """

    X: Any
    y: Any = None
    weight: Any = None
    qid: Any = None
    names: tuple[str, ...] | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y, self.qid, self.weight))

    def part(self, first: int, last: int) -> Rows:
        """Rows ``first`` to ``last``."""
        X, *columns = (None if column is None else column[first:last] for column in self)
        y, qid, weight = columns
        return Rows(X, y, weight, qid, self.names)


def canonical(X: Any) -> Any:
    """Rows as a dense array, or as CSR with rising indices, each once. X itself stays as it is."""
    if not scipy.sparse.issparse(X):
        return np.asarray(X)
    rows = scipy.sparse.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def column_names(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame, if all names are text."""
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def first_not_finite(X: Any) -> tuple[int, int, float] | None:
    """Row, column and value of the first number of an array or CSR matrix that is not finite."""
    sparse = scipy.sparse.issparse(X)
    values = X.data if sparse else X.reshape(-1)
    finite = np.isfinite(values)
    if finite.all():
        return None
    bad = int(finite.argmin())
    if sparse:
        return row_of(X.indptr, bad), int(X.indices[bad]), values[bad]
    return *divmod(bad, X.shape[1]), values[bad]


def row_of(starts: np.ndarray, position: int) -> int:
    """The sparse row that a stored value belongs to."""
    return int(np.searchsorted(starts, position, "right")) - 1


def joined_column(parts: Sequence[np.ndarray | None], what: str) -> np.ndarray | None:
    """A column of several files as one; None if none of them has it."""
    there = [part is not None for part in parts]
    if not any(there):
        return None
    if not all(there):
        raise ValueError(f"file {there.index(False)} has no {what}, but others have")
    return np.concatenate([part for part in parts if part is not None])
