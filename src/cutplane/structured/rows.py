"""Features of several examples: a dense matrix or a sparse one, a row per example."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ..data.sparse import check_sparse

Rows = Any  # ndarray of float64, or scipy.sparse.csr_array


class Numbers:
    """Numbers of examples that need not follow one another, for messages about them.

    In the place of the number of the first one: ``numbers + i`` is that of the i-th.
    """

    def __init__(self, which: np.ndarray) -> None:
        self._which = which

    def __add__(self, i: int) -> int:
        return int(self._which[i])

    def __str__(self) -> str:
        return str(self + 0)


First = int | Numbers


def numbers_of(value: Any, demand: str, where: str) -> np.ndarray:
    """An array of numbers, or an error that begins with the demand and ends with where."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{demand}: {error}, for {where}") from error


def stack(vectors: Any, first: First, dimension: int | None, name: str) -> Rows:
    """A matrix from a matrix or from vectors, checked.

    Parameters
    ----------
    vectors : matrix, or list of arrays or sparse vectors
    first : int or Numbers
        Number of the first example, or those of all.
    dimension : int or None
        Length that vectors must have; None for that of the first.
    name : str
        Of the method that gave them.
    """
    if scipy.sparse.issparse(vectors):
        check_sparse(vectors, name)
        matrix = scipy.sparse.csr_array(vectors, dtype=np.float64)
    elif isinstance(vectors, np.ndarray) and vectors.ndim == 2:
        matrix = np.asarray(vectors, dtype=np.float64)
    else:
        matrix = _stacked([_vector(v, first + i, name) for i, v in enumerate(vectors)], first, name)
    if dimension is not None and matrix.shape[1] != dimension:
        raise ValueError(_wrong_length(matrix.shape[1], first + 0, dimension, name))
    if not np.all(np.isfinite(matrix.data if scipy.sparse.issparse(matrix) else matrix)):
        bad = int(np.argmin(np.isfinite(products(matrix, np.ones(matrix.shape[1])))))
        raise ValueError(f"{name} has a value that is not finite, for example {first + bad}")
    return matrix


def _wrong_length(length: int, example: int, dimension: int, name: str) -> str:
    return (
        f"{name} must always have the same length: it has {length} for example {example}, "
        f"{dimension} for others"
    )


def _vector(value: Any, example: int, name: str) -> Any:
    """Features as a 1-D array, or as a sparse row."""
    if scipy.sparse.issparse(value):
        row = scipy.sparse.csr_array(value.reshape(1, -1), dtype=np.float64)
        row.sum_duplicates()
        return row
    demand = f"{name} must give an array or a sparse vector of numbers"
    vector = numbers_of(value, demand, f"example {example}")
    if vector.ndim != 1:
        raise ValueError(
            f"{name} must give a vector, got {vector.ndim} dimensions for example {example}"
        )
    return vector


def _stacked(vectors: list[Any], first: First, name: str) -> Rows:
    expected = vectors[0].shape[-1]
    for i, vector in enumerate(vectors):
        if vector.shape[-1] != expected:
            raise ValueError(_wrong_length(vector.shape[-1], first + i, expected, name))
    if any(scipy.sparse.issparse(vector) for vector in vectors):
        found = [scipy.sparse.csr_array(v.reshape(1, -1)) for v in vectors]
        return scipy.sparse.csr_array(scipy.sparse.vstack(found, "csr"))
    return np.stack(vectors)


def part_scores(parts: Rows, weights: np.ndarray) -> np.ndarray:
    """<W_k, u_p> of every part and function, (parts, K).

    Not by BLAS, whose threads would stand in the way of ours.
    """
    if scipy.sparse.issparse(parts):
        return parts @ weights.T
    return np.einsum("ij,kj->ik", parts, weights)


def joint_rows(parts: Rows, coef: np.ndarray, counts: np.ndarray, plain: Rows) -> Rows:
    """Joint features of linear functions of parts: Σ_p a_pk·u_p for all k, then the plain ones.

    Parameters
    ----------
    parts : matrix, shape (parts, width)
    coef : ndarray, shape (parts, K)
    counts : ndarray
        Parts of each example.
    plain : matrix, shape (examples, plain features)
    """
    if coef.shape[1] == 0:
        return plain
    width = parts.shape[1]
    part, output = np.nonzero(coef)
    # A part as often as it has a coefficient, each time moved to the place of its function.
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
    return scipy.sparse.csr_array(scipy.sparse.hstack([own, scipy.sparse.csr_array(plain)], "csr"))


def products(matrix: Rows, w: np.ndarray) -> np.ndarray:
    """<row, w> of every row."""
    if scipy.sparse.issparse(matrix):
        return matrix @ w
    return np.einsum("ij,j->i", matrix, w)


def sizes(matrix: Rows) -> np.ndarray:
    """|row| of every row."""
    if scipy.sparse.issparse(matrix):
        squares = scipy.sparse.csr_array(
            (matrix.data**2, matrix.indices, matrix.indptr), shape=matrix.shape
        )
        return np.sqrt(np.asarray(squares.sum(axis=1)).reshape(-1))
    return np.sqrt(np.einsum("ij,ij->i", matrix, matrix))


def scaled(matrix: Rows, factors: np.ndarray) -> Rows:
    """Every row times its factor."""
    if scipy.sparse.issparse(matrix):
        return scipy.sparse.csr_array(scipy.sparse.diags_array(factors) @ matrix)
    return factors[:, None] * matrix


def total(matrix: Rows, chosen: np.ndarray) -> np.ndarray:
    """Sum of the chosen rows."""
    if scipy.sparse.issparse(matrix):
        return matrix.T @ chosen.astype(np.float64)
    return np.einsum("ij,i->j", matrix, chosen.astype(np.float64))


def n_stored(matrix: Rows) -> int:
    """Values stored."""
    return int(matrix.nnz if scipy.sparse.issparse(matrix) else matrix.size)
