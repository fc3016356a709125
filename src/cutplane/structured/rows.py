"""Features of several examples: a sparse matrix with a row per example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from .._checks import check_sparse

Rows = Any  # scipy.sparse.csr_array of float64


def numbers_of(value: Any, demand: str, where: str) -> np.ndarray:
    """The value as an array of numbers; otherwise an error that says what is wanted, and where."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{demand}: {error}, for {where}") from error


def stack(vectors: Any, numbers: Sequence[int], dimension: int | None, name: str) -> Rows:
    """A sparse matrix from a matrix or from vectors, checked.

    Parameters
    ----------
    vectors : matrix, or list of arrays or sparse vectors
    numbers : sequence of int
        Numbers of the examples, for messages.
    dimension : int or None
        Length that vectors must have; None takes the length of the first.
    name : str
        Name of the method that returned the vectors, for messages.
    """
    if scipy.sparse.issparse(vectors):
        check_sparse(vectors, name)
        matrix = scipy.sparse.csr_array(vectors, dtype=np.float64)
        matrix.sum_duplicates()
    elif isinstance(vectors, np.ndarray) and vectors.ndim == 2:
        matrix = scipy.sparse.csr_array(np.asarray(vectors, dtype=np.float64))
    else:
        found = [_row(v, numbers[i], name) for i, v in enumerate(vectors)]
        for i, row in enumerate(found):
            _check_length(row.shape[1], numbers[i], found[0].shape[1], name)
        matrix = scipy.sparse.csr_array(scipy.sparse.vstack(found, "csr"))
    if dimension is not None:
        _check_length(matrix.shape[1], numbers[0], dimension, name)
    if not np.all(np.isfinite(matrix.data)):
        bad = int(np.argmin(np.isfinite(matrix.sum(axis=1))))
        raise ValueError(f"{name} has a value that is not finite, for example {numbers[bad]}")
    return matrix


def _check_length(length: int, example: int, dimension: int, name: str) -> None:
    if length != dimension:
        raise ValueError(
            f"{name} must always have the same length: it has {length} for example {example}, "
            f"{dimension} for others"
        )


def _row(value: Any, example: int, name: str) -> Rows:
    """Features as a sparse row."""
    if not scipy.sparse.issparse(value):
        demand = f"{name} must give an array or a sparse vector of numbers"
        value = numbers_of(value, demand, f"example {example}")
        if value.ndim != 1:
            raise ValueError(
                f"{name} must give a vector, got {value.ndim} dimensions for example {example}"
            )
    row = scipy.sparse.csr_array(value.reshape(1, -1), dtype=np.float64)
    row.sum_duplicates()
    return row


def part_scores(parts: Rows, weights: np.ndarray) -> np.ndarray:
    """<W_k, u_p> of every part and function, (parts, K).

    This does not use BLAS, because its threads would compete with ours.
    """
    if scipy.sparse.issparse(parts):
        return parts @ weights.T
    return np.einsum("ij,kj->ik", parts, weights)


def joint_rows(parts: Rows, coef: np.ndarray, counts: np.ndarray, plain: Rows) -> Rows:
    """Joint features of linear functions of parts: Σ_p a_pk·u_p for all k, then plain features.

    Parameters
    ----------
    parts : matrix, shape (parts, width)
    coef : ndarray, shape (parts, K)
    counts : ndarray
        Number of parts of each example.
    plain : matrix, shape (examples, plain features)
    """
    if coef.shape[1] == 0:
        return plain
    width = parts.shape[1]
    part, output = np.nonzero(coef)
    # Repeat a part for each of its coefficients, and shift its features to those of the function.
    some = scipy.sparse.csr_array(parts)[part]
    lengths = np.diff(some.indptr)
    values = some.data * np.repeat(coef[part, output], lengths)
    indices = some.indices + np.repeat(output * width, lengths)
    ends = np.searchsorted(part, np.concatenate([[0], np.cumsum(counts)]))
    shape = (len(counts), coef.shape[1] * width)
    own = scipy.sparse.csr_array((values, indices, some.indptr[ends]), shape=shape)
    own.sum_duplicates()
    if plain.shape[1] == 0:
        return own
    return scipy.sparse.csr_array(scipy.sparse.hstack([own, plain], "csr"))


def sizes(matrix: Rows) -> np.ndarray:
    """|row| of every row."""
    return np.sqrt(np.asarray(matrix.power(2).sum(axis=1)).reshape(-1))


def scaled(matrix: Rows, factors: np.ndarray) -> Rows:
    """Every row times its factor."""
    return scipy.sparse.csr_array(scipy.sparse.diags_array(factors) @ matrix)
