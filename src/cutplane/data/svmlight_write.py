"""Write svmlight files, with the shortest digits that read back to the same float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from .files import output

_NUMBERS = 1 << 16  # formatted at once


def dump_svmlight(
    X: Any,
    y: Any,
    path_or_file: Any,
    *,
    qid: Any = None,
    cost: Any = None,
    zero_based: bool = False,
    comment: str | None = None,
) -> None:
    """Write features and labels to an svmlight file.

    Parameters
    ----------
    X : array or sparse matrix, shape (rows, features)
        Finite numbers. Zeros of an array are not written; stored zeros of a sparse matrix are.
    y : array, shape (rows,)
        Finite numbers.
    path_or_file : path, '-' or binary file
        A path appears when everything is written, and is not touched before. A name that ends in
        .gz, .bz2 or .xz is compressed; '-' is standard output.
    qid : array of int, shape (rows,), optional
        Query numbers, ≥ 0.
    cost : array, shape (rows,), optional
        Factors on C, finite and ≥ 0.
    zero_based : bool, default=False
        Count indices from 0. The usual is to count from 1.
    comment : str, optional
        Text for the head of the file, each line behind a ``#``.

    Notes
    -----
    :func:`load_svmlight` gives the same numbers back, to the last bit. It needs ``n_features`` if
    the last columns are empty, and ``zero_based`` if nothing is stored in the first one. float32
    is written with the digits that its value needs as a float64.
    """
    X = _rows(X)
    count = X.shape[0]
    if not count:
        raise ValueError("X has no rows; a file needs at least one")
    labels = _vector("y", y, count)
    queries = None if qid is None else _queries(qid, count)
    costs = None if cost is None else _vector("cost", cost, count)
    if costs is not None and (costs < 0).any():
        raise ValueError(f"cost of row {int(np.argmax(costs < 0))} is negative; it must be ≥ 0")
    head = _head(comment)
    _check_finite(X)
    with output(path_or_file) as file:
        file.write(head)
        for block in _lines(X, labels, queries, costs, 0 if zero_based else 1):
            file.write(block)


# -- what is to be written ----------------------------------------------------


def _rows(X: Any) -> Any:
    """A CSR matrix or a dense array; neither is changed."""
    if scipy.sparse.issparse(X):
        given = X
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy() if X is given else X
            X.sum_duplicates()  # also sorts
        return X
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    return X


def _vector(name: str, values: Any, count: int) -> np.ndarray:
    values = np.asarray(values)
    if values.shape != (count,):
        raise ValueError(f"{name} must have shape ({count},), one per row, got {values.shape}")
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold numbers, got {values.dtype}")
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name} of row {row} is {values[row]}; it must be finite")
    return values


def _queries(qid: Any, count: int) -> np.ndarray:
    qid = _vector("qid", qid, count)
    whole = qid.astype(np.int64) if qid.dtype.kind != "f" else np.trunc(qid).astype(np.int64)
    bad = (whole != qid) | (whole < 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"qid of row {row} is {qid[row]}; it must be a whole number from 0")
    return whole


def _check_finite(X: Any) -> None:
    values = X.data if scipy.sparse.issparse(X) else X
    if values.dtype.kind not in "fiub" or values.dtype.itemsize > 8:
        raise ValueError(f"X must hold real numbers of at most 64 bits, got {values.dtype}")
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    coo = scipy.sparse.coo_array(X)
    place = int(np.argmax(~np.isfinite(coo.data)))
    row, column = coo.coords[0][place], coo.coords[1][place]
    raise ValueError(f"X[{row}, {column}] is {coo.data[place]}; it must be finite")


def _head(comment: str | None) -> bytes:
    if comment is None:
        return b""
    if "\0" in comment:
        raise ValueError("comment holds a NUL byte")
    lines = comment.splitlines() or [""]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines).encode()


# -- text ---------------------------------------------------------------------


def _texts(values: np.ndarray) -> list[str]:
    """The shortest text of each number."""
    if values.dtype.kind != "f":
        return list(
            map(str, values.astype(int).tolist() if values.dtype == bool else values.tolist())
        )
    return [
        text[:-2] if text.endswith(".0") and text != "-0.0" else text
        for text in map(repr, values.astype(np.float64, copy=False).tolist())
    ]


def _lines(
    X: Any, labels: np.ndarray, queries: np.ndarray | None, costs: np.ndarray | None, first: int
) -> Iterator[bytes]:
    """The file, a block of rows at a time."""
    for start, stop in _blocks(X):
        block = X[start:stop]
        if not scipy.sparse.issparse(block):
            kind = np.float64 if block.dtype.kind == "f" else block.dtype.newbyteorder("=")
            block = scipy.sparse.csr_array(block.astype(kind, copy=False))
        indices = (block.indices.astype(np.int64) + first).tolist()
        pairs = [f"{j}:{v}" for j, v in zip(indices, _texts(block.data), strict=True)]
        heads = _texts(labels[start:stop])
        if queries is not None:
            heads = [
                f"{h} qid:{q}" for h, q in zip(heads, queries[start:stop].tolist(), strict=True)
            ]
        if costs is not None:
            factors = _texts(costs[start:stop])
            heads = [f"{h} cost:{c}" for h, c in zip(heads, factors, strict=True)]
        ends = block.indptr.tolist()
        rows = zip(heads, ends[:-1], ends[1:], strict=True)
        text = "\n".join(" ".join([head, *pairs[a:b]]) for head, a, b in rows)
        yield f"{text}\n".encode()


def _blocks(X: Any) -> Iterator[tuple[int, int]]:
    """Ranges of rows of about equally many numbers."""
    rows, features = X.shape
    numbers = X.nnz if scipy.sparse.issparse(X) else rows * features
    step = max(1, rows * _NUMBERS // max(numbers, rows))
    for start in range(0, rows, step):
        yield start, min(start + step, rows)
