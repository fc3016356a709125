"""Ragged sequences: rows one after the other, and where each sequence begins.

``starts`` (sequences + 1, int64) is 0, then the running sum of the lengths.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .._checks import check_sparse

logger = logging.getLogger("cutplane")


@dataclass(frozen=True)
class Sequences:
    """Tokens of several sequences, one sequence after the other.

    Attributes
    ----------
    X : ndarray or CSR matrix, shape (tokens, features)
    y : ndarray, shape (tokens,)
        Labels.
    lengths : ndarray of int64, shape (sequences,)
    """

    X: Any
    y: np.ndarray
    lengths: np.ndarray

    def split(self) -> tuple[list[Any], list[np.ndarray]]:
        """X and y as lists with an entry per sequence."""
        starts = starts_of(self.lengths, self.X.shape[0])
        return split(self.X, starts), split(self.y, starts)


def sequences_from(X: Any, y: Any, qid: Any) -> Sequences:
    """Sequences from rows with a sequence number each, as in files of SVM-hmm.

    Parameters
    ----------
    X : ndarray or sparse matrix, shape (tokens, features)
    y : array-like, shape (tokens,)
        Label of each row.
    qid : array-like, shape (tokens,)
        Number of each row's sequence. Within a sequence rows keep their order. Sequences come in
        the order of their first rows.

    Returns
    -------
    sequences : Sequences

    Examples
    --------
    >>> from cutplane.structured import sequences_from
    >>> found = sequences_from([[1.0], [2.0], [3.0]], ["a", "b", "a"], [7, 7, 3])
    >>> found.lengths.tolist(), found.y.tolist()
    ([2, 1], ['a', 'b', 'a'])
    """
    check_sparse(X)
    X = X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)
    labels, numbers = np.asarray(y), np.asarray(qid)
    for name, column in (("y", labels), ("qid", numbers)):
        if column.shape != (X.shape[0],):
            raise ValueError(
                f"{name} must hold one value per row of X, {X.shape[0]}; got shape {column.shape}"
            )
    _, first, code = np.unique(numbers, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))  # by first row
    sequence = place[code]
    lengths = np.bincount(sequence, minlength=len(first)).astype(np.int64)
    if np.all(np.diff(sequence) >= 0):
        return Sequences(X, labels, lengths)
    logger.info("rows of the same qid are not next to each other: they were brought together")
    order = np.argsort(sequence, kind="stable")
    return Sequences(X[order], labels[order], lengths)


def starts_of(lengths: Any, rows: int) -> np.ndarray:
    """The positions at which sequences of these lengths begin, and the end."""
    column = np.asarray(lengths)
    whole = column.ndim == 1 and (np.issubdtype(column.dtype, np.integer) or len(column) == 0)
    if not whole or np.any(column < 0):
        raise ValueError(f"lengths must hold integers ≥ 0, got {lengths!r}")
    starts = np.concatenate([[0], np.cumsum(column)]).astype(np.int64)
    if starts[-1] != rows:
        raise ValueError(f"lengths sum to {starts[-1]}, but X has {rows} rows")
    return starts


def split(values: Any, starts: np.ndarray) -> list[Any]:
    """The parts of rows or labels, one per sequence."""
    return [values[a:b] for a, b in itertools.pairwise(starts)]


def stack_rows(X: Any, width: int | None = None) -> tuple[Any, np.ndarray]:
    """Stack matrices with a row per token; returns one matrix, and where each sequence begins.

    Anything of size 0 is an empty sequence, whatever its shape is.

    Parameters
    ----------
    X : list of array-like or sparse matrix
    width : int, optional
        Number of features; by default that of the first sequence that is not empty.
    """
    if isinstance(X, str) or not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise ValueError(f"X must be a list of sequences, got {type(X).__name__}")
    if scipy.sparse.issparse(X) or getattr(X, "ndim", 3) == 2:
        raise ValueError(
            "X is one matrix: pass lengths=[...] to say how its rows divide into sequences, "
            "or a list with a matrix per sequence"
        )
    parts, lengths = [], []
    for i, entry in enumerate(X):
        part = entry if scipy.sparse.issparse(entry) else np.asarray(entry)
        if scipy.sparse.issparse(part):
            check_sparse(part, f"sequence {i} of X")
        rows = 0 if 0 in part.shape[:1] or (part.size == 0 and part.ndim < 2) else part.shape[0]
        lengths.append(rows)
        if rows == 0:
            continue
        if part.ndim != 2:
            raise ValueError(
                f"sequence {i} of X must be a matrix with a row per token, got {part.ndim} "
                "dimension(s)"
            )
        width = part.shape[1] if width is None else width
        if part.shape[1] != width:
            raise ValueError(f"sequence {i} of X has {part.shape[1]} features, expected {width}")
        parts.append(part)
    starts = np.cumsum([0, *lengths], dtype=np.int64)
    if not parts:
        return np.zeros((0, width or 0)), starts
    if any(scipy.sparse.issparse(part) for part in parts):
        return scipy.sparse.vstack([scipy.sparse.csr_array(part) for part in parts], "csr"), starts
    return np.concatenate(parts), starts


def stack_labels(y: Any, starts: np.ndarray) -> np.ndarray:
    """All labels in one array, from an array or from a list of sequences of labels."""
    sequences = len(starts) - 1
    flat = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype != object
    if flat and len(y) != starts[-1]:
        raise ValueError(f"y has {len(y)} labels, but X has {starts[-1]} tokens")
    if not flat:
        if not isinstance(y, Sequence | np.ndarray) or len(y) != sequences:
            size = f"{len(y)} sequences" if hasattr(y, "__len__") else type(y).__name__
            raise ValueError(f"y must have {sequences} sequences of labels as X has, got {size}")
        parts = [np.asarray(z) for z in y]
        for i, part in enumerate(parts):
            length = starts[i + 1] - starts[i]
            if part.size != length or (length and part.ndim != 1):
                raise ValueError(
                    f"sequence {i} has {length} tokens in X, but labels of shape {part.shape} in y"
                )
        kept = [part for part in parts if part.size] or [np.zeros(0)]
        if len({part.dtype.kind in "US" for part in kept}) > 1:
            raise ValueError("y mixes names and numbers as labels; use one of them")
        y = np.concatenate(kept)
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError("y has a label that is not a finite number")
    return y


def has_names(X: Any, flat: bool) -> bool:
    """Whether tokens have features with names. Otherwise they are rows of numbers.

    Parameters
    ----------
    X : list of sequences of tokens, or list of tokens
    flat : bool
        Whether X is a list of tokens, not of sequences.
    """
    if not is_list(X):
        return False
    for sequence in [X] if flat else X:
        if not is_list(sequence):
            return isinstance(sequence, Mapping | str)
        for token in sequence:
            if not is_list(token):
                return isinstance(token, Mapping | set | frozenset | str)
            if len(token):
                return isinstance(token[0], str)
    return False


def is_list(values: Any) -> bool:
    """Whether the value is a list, a tuple, or an array of text or objects."""
    text = isinstance(values, np.ndarray) and values.ndim > 0 and values.dtype.kind in "OU"
    return text or isinstance(values, list | tuple)
