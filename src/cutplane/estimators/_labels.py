"""Several labels per row: the indicator matrix Y, checked and by columns.

Y[i, k] says whether row i has label k. Each label is a problem of its own, its rows against all
others, as in scikit-learn's ``OneVsRestClassifier``. Y may be sparse, and is never made dense
as a whole: a problem makes a column when its turn comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array

# Columns that a message names at most.
MOST_NAMED = 10


def is_indicator(y: Any) -> bool:
    """Whether y is a matrix of labels rather than a column of classes."""
    if scipy.sparse.issparse(y):
        return True
    if isinstance(y, list | tuple):
        return len(y) > 0 and isinstance(y[0], list | tuple | np.ndarray) and len(y[0]) > 1
    shape: tuple[Any, ...] = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] != 1


class Labels:
    """A checked indicator matrix.

    Parameters
    ----------
    Y : array-like or sparse matrix, shape (n_rows, n_labels)
        Of 0 and 1.

    Attributes
    ----------
    sparse : bool
        Whether it came as a sparse matrix.
    """

    def __init__(self, Y: Any) -> None:
        self.sparse = bool(scipy.sparse.issparse(Y))
        checked = check_array(
            Y, accept_sparse="csc", dtype=None, ensure_min_features=1, input_name="Y"
        )
        if checked.dtype.kind not in "biuf":
            raise ValueError(
                f"Y has two dimensions, so it must be an indicator of labels, of 0 and 1; got "
                f"{checked.dtype}. sklearn.preprocessing.MultiLabelBinarizer makes one of lists "
                "of labels; for one class per row give a single column"
            )
        columns = scipy.sparse.csc_matrix(checked)  # of an array: only what is not 0
        if not np.all((columns.data == 0) | (columns.data == 1)):
            wrong = columns.data[(columns.data != 0) & (columns.data != 1)][0]
            raise ValueError(
                f"Y has two dimensions, so it must be an indicator of labels, of 0 and 1, but has "
                f"the value {wrong}. Pass (Y > 0).astype(int) if that is what it means; for one "
                "class per row give a single column"
            )
        if not columns.has_canonical_format or not np.all(columns.data):
            columns = columns.copy()
            columns.sum_duplicates()
            columns.data[:] = columns.data != 0
            columns.eliminate_zeros()
        self._columns = columns

    @property
    def shape(self) -> tuple[int, int]:
        return self._columns.shape

    def rows_of(self, k: int) -> np.ndarray:
        """The rows that have label k."""
        return self._columns.indices[self._columns.indptr[k] : self._columns.indptr[k + 1]]

    def column(self, k: int) -> np.ndarray:
        """0 and 1 for all rows."""
        column = np.zeros(self.shape[0], dtype=np.intp)
        column[self.rows_of(k)] = 1
        return column

    def check(self, weights: np.ndarray) -> None:
        """Every label must have rows, and there must be rows without it, of positive weight."""
        count = np.count_nonzero(weights > 0.0)
        counts = scipy.sparse.csr_matrix(weights > 0.0) @ self._columns.astype(bool).astype(int)
        counts = counts.toarray()[0]
        for bad, what in ((counts == 0, "no row"), (counts == count, "all rows")):
            if np.any(bad):
                which = np.flatnonzero(bad)
                named = ", ".join(map(str, which[:MOST_NAMED]))
                more = f" and {len(which) - MOST_NAMED} more" if len(which) > MOST_NAMED else ""
                plural = len(which) > 1
                raise ValueError(
                    f"Y: {'columns' if plural else 'column'} {named}{more} "
                    f"{'have' if plural else 'has'} {what} of positive weight: there is nothing to "
                    "learn. Leave such columns out; OneVsRestClassifier(LinearSVC()) predicts a "
                    "constant for them"
                )


def positives(
    parts: Iterator[tuple[slice, np.ndarray]], rows: int, labels: int, sparse: bool
) -> Any:
    """The indicator matrix of positive scores, which come for some labels at a time.

    Returns
    -------
    Y : ndarray or csr_matrix of int64, shape (rows, labels)
    """
    if not sparse:
        out = np.zeros((rows, labels), dtype=np.int64)
        for some, scores in parts:
            out[:, some] = scores > 0.0
        return out
    columns, starts = [], [0]
    for _, scores in parts:
        label, row = np.nonzero(scores.T > 0.0)
        columns.append(row.astype(np.int32))
        starts.extend(starts[-1] + np.cumsum(np.bincount(label, minlength=scores.shape[1])))
    indices = np.concatenate(columns)
    ones = np.ones(len(indices), dtype=np.int64)
    return scipy.sparse.csc_matrix((ones, indices, starts), shape=(rows, labels)).tocsr()
