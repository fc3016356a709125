"""Write svmlight files, with the shortest digits that read back to the same float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from ..._checks import check_column, int64_queries
from ..files import output
from ..rows import canonical, first_not_finite

_VALUES = 1 << 16  # values that are formatted at a time


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
    X = _checked_features(X)
    count = X.shape[0]
    if not count:
        raise ValueError("X has no rows; a file needs at least one")
    labels = check_column("y", y, count)
    queries = None if qid is None else int64_queries(qid, count)
    costs = None if cost is None else check_column("cost", cost, count, at_least=0.0)
    head = _head(comment)
    with output(path_or_file) as file:
        file.write(head)
        for block in _lines(X, labels, queries, costs, 0 if zero_based else 1):
            file.write(block)


def _checked_features(X: Any) -> Any:
    """A CSR matrix or a dense array of finite numbers. The argument is not changed."""
    X = canonical(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    if X.dtype.kind not in "fiub" or X.dtype.itemsize > 8:
        raise ValueError(f"X must hold real numbers of at most 64 bits, got {X.dtype}")
    if (bad := first_not_finite(X)) is not None:
        row, column, value = bad
        raise ValueError(f"X must hold finite numbers, got {value} in row {row}, column {column}")
    return X


def _head(comment: str | None) -> bytes:
    if comment is None:
        return b""
    if "\0" in comment:
        raise ValueError("comment holds a NUL byte")
    lines = comment.splitlines() or [""]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines).encode()


def _texts(values: np.ndarray) -> list[str]:
    """The shortest text of each number."""
    if values.dtype.kind != "f":
        return list(map(str, (values.astype(int) if values.dtype == bool else values).tolist()))
    return [
        text[:-2] if text.endswith(".0") and text != "-0.0" else text
        for text in map(repr, values.astype(np.float64, copy=False).tolist())
    ]


def _lines(
    X: Any, labels: np.ndarray, queries: np.ndarray | None, costs: np.ndarray | None, first: int
) -> Iterator[bytes]:
    """The text of the file, some rows at a time, with about ``_VALUES`` values each."""
    count, features = X.shape
    stored = X.nnz if scipy.sparse.issparse(X) else count * features
    step = max(1, count * _VALUES // max(stored, count))
    for start in range(0, count, step):
        stop = start + step
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
