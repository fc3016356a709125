"""A user's problem in its kernel form: parts, their coefficients, and the scores inference gets.

    <w, Ψ(x, z)> = Σ_p Σ_k a_pk(x, z)·f_k(u_p(x)) + <v, plain(x, z)>

``parts(x)`` gives the u_p, ``part_coefficients(x, z)`` the a, ``plain_feature(x, z)``, if there is
one, the plain terms. What inference needs of the model are the numbers f_k(u_p), one row
per part, and v.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from . import rows
from .problem import (
    RESCALINGS,
    Trial,
    call,
    check_truth,
    count_of,
    features_of,
    has,
    has_batch,
    losses_of,
    take,
    tried,
)


class PartScore:
    """What inference is told of a model with a kernel, for one input.

    ``score(z)`` is the score of an output.

    Attributes
    ----------
    parts : ndarray, shape (parts of the input, K)
        Scores of the parts: f_k of part p at [p, k]. Not to be changed.
    w : ndarray, shape (dimension of the plain features,)
        Weights of the plain features. Not to be changed.
    """

    def __init__(self, problem: Any, x: Any, parts: np.ndarray, w: np.ndarray) -> None:
        self._problem, self._x = problem, x
        self.parts = parts
        self.w = w

    def __call__(self, z: Any) -> float:
        """The score of an output."""
        X, Z, counts = [self._x], [z], np.array([len(self.parts)])
        coef = coefficients_of(self._problem, 0, X, Z, counts, self.parts.shape[1])
        plain = plain_of(self._problem, 0, X, Z, len(self.w))
        return float(np.einsum("ij,ij->", coef, self.parts) + rows.products(plain, self.w)[0])


class PartScores:
    """The same for several inputs: what batch forms get. ``scores[i]`` is that of the i-th.

    Attributes
    ----------
    parts : ndarray, shape (parts of all inputs, K)
    starts : ndarray, shape (inputs + 1,)
        Where the parts of each input begin.
    w : ndarray
    """

    def __init__(
        self, problem: Any, X: Sequence[Any], parts: np.ndarray, starts: np.ndarray, w: np.ndarray
    ) -> None:
        self._problem, self._X = problem, X
        self.parts, self.w = parts.view(), w.view()
        self.parts.flags.writeable = self.w.flags.writeable = False
        self.starts = starts

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> PartScore:
        own = self.parts[self.starts[i] : self.starts[i + 1]]
        return PartScore(self._problem, self._X[i], own, self.w)


def parts_of(problem: Any, first: int, X: Sequence[Any]) -> tuple[Any, np.ndarray]:
    """The parts of some inputs, one below the other, and how many each input has."""
    count = count_of(X)
    if has_batch(problem, "parts"):
        matrix, counts = call_parts_batch(problem, X)
        if counts.shape != (count,) or counts.min(initial=0) < 0:
            raise ValueError(
                f"parts_batch must give one number of parts for each of {count} inputs"
            )
        if counts.sum() != matrix.shape[0]:
            raise ValueError(
                f"parts_batch gave {matrix.shape[0]} parts, but the inputs have {counts.sum()}"
            )
        return matrix, counts
    found = [_part_matrix(p, first + i) for i, p in enumerate(call(problem, "parts", first, (X,)))]
    width = found[0].shape[1] if found else 0
    for i, matrix in enumerate(found):
        if matrix.shape[1] != width:
            raise ValueError(
                f"parts must always have the same width: it is {matrix.shape[1]} for example "
                f"{first + i}, {width} for others"
            )
    counts = np.array([matrix.shape[0] for matrix in found], dtype=np.int64)
    if any(scipy.sparse.issparse(matrix) for matrix in found):
        return scipy.sparse.csr_array(scipy.sparse.vstack(found, "csr")), counts
    return (np.concatenate(found) if found else np.zeros((0, 0))), counts


def call_parts_batch(problem: Any, X: Sequence[Any]) -> tuple[Any, np.ndarray]:
    """What ``parts_batch`` gives: a matrix, and numbers of parts."""
    answer = problem.parts_batch(X)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise ValueError(
            "parts_batch must give a matrix with the parts of all inputs, and how many each has"
        )
    matrix = answer[0] if scipy.sparse.issparse(answer[0]) else np.asarray(answer[0])
    if matrix.ndim != 2:
        raise ValueError(f"parts_batch must give a matrix, got {matrix.ndim} dimensions")
    return matrix, np.asarray(answer[1], dtype=np.int64)


def _part_matrix(value: Any, example: int) -> Any:
    if scipy.sparse.issparse(value):
        return scipy.sparse.csr_array(value)
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"parts must give a matrix of numbers: {error}, for example {example}"
        ) from error
    if matrix.ndim != 2:
        raise ValueError(
            f"parts must give a matrix with a row per part, got {matrix.ndim} dimensions for "
            f"example {example}"
        )
    return matrix


def coefficients_of(
    problem: Any,
    first: rows.First,
    X: Sequence[Any],
    Y: Sequence[Any],
    counts: np.ndarray,
    outputs: int | None,
) -> np.ndarray:
    """The coefficients of the parts of some examples, one below the other.

    Parameters
    ----------
    first : int or Numbers
        Number of the first example, or those of all.
    counts : ndarray
        Parts of each example.
    outputs : int or None
        K; None for that of the first.
    """
    if has_batch(problem, "part_coefficients"):
        answer = problem.part_coefficients_batch(X, Y)
        coef = _dense(answer, "part_coefficients_batch", f"examples from {first} on")
        _check_shape(coef, (int(counts.sum()), outputs), f"examples from {first} on")
        return coef
    found = []
    for i, value in enumerate(call(problem, "part_coefficients", first, (X, Y))):
        where = f"example {first + i}"
        coef = _dense(value, "part_coefficients", where)
        outputs = coef.shape[1] if outputs is None and coef.ndim == 2 else outputs
        _check_shape(coef, (int(counts[i]), outputs), where)
        found.append(coef)
    return np.concatenate(found) if found else np.zeros((0, outputs or 1))


def _dense(value: Any, name: str, where: str) -> np.ndarray:
    value = value.toarray() if scipy.sparse.issparse(value) else value
    try:
        coef = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must give a matrix of numbers: {error}, for {where}") from error
    if not np.all(np.isfinite(coef)):
        raise ValueError(f"{name} has a value that is not finite, for {where}")
    return coef


def _check_shape(coef: np.ndarray, shape: tuple[int, int | None], where: str) -> None:
    rows, columns = shape
    good = coef.ndim == 2 and coef.shape[0] == rows and columns in (None, coef.shape[1])
    if not good or coef.shape[1] == 0:
        raise ValueError(
            "part_coefficients must give a matrix with a row per part and always the same "
            f"columns, ({rows}, {'K' if columns is None else columns}), got {coef.shape} for "
            f"{where}"
        )


def plain_of(
    problem: Any, first: rows.First, X: Sequence[Any], Y: Sequence[Any], dimension: int | None
) -> rows.Rows:
    """Plain features of some examples; of length 0 if the problem has none."""
    if not has(problem, "plain_feature"):
        return np.zeros((count_of(X), 0))
    return features_of(problem, first, X, Y, dimension, "plain_feature")


def try_parts(
    problem: Any, X: Sequence[Any], Y: Sequence[Any], counts: np.ndarray, rescaling: str
) -> tuple[int, int]:
    """Try the kernel form of a problem on a few examples; returns K and the plain dimension.

    As for the linear form, at scores 0 and at random ones.
    """
    outputs: int | None = None
    dimension: int | None = None
    for i in tried(count_of(X)):
        x, y = take(X, [i]), take(Y, [i])
        outputs = coefficients_of(problem, i, x, y, counts[i : i + 1], outputs).shape[1]
        dimension = plain_of(problem, i, x, y, dimension).shape[1]
        check_truth(problem, i, y)
        rng = np.random.default_rng(i)
        for size in (0.0, 1.0):
            table = size * rng.normal(size=(int(counts[i]), outputs))
            w = size * rng.normal(size=dimension)
            scores = PartScores(problem, x, table, np.array([0, counts[i]]), w)
            _try_at(problem, i, x, y, scores, rescaling)
    assert outputs is not None and dimension is not None
    return outputs, dimension


def _try_at(problem: Any, i: int, x: Any, y: Any, scores: PartScores, rescaling: str) -> None:
    worst = call(problem, RESCALINGS[rescaling], i, (x, y, scores))
    loss = float(losses_of(problem, i, y, worst)[0])
    guess = call(problem, "predict", i, (x, scores))
    found = (scores[0](outputs[0]) for outputs in (y, worst, guess))
    Trial(loss, *found).check(problem, i, rescaling)
