"""Products with bounds on their rounding: the bounds hold in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from cutplane.data import as_blocks
from cutplane.exec import SerialExecutor
from cutplane.objective.linear import RowProducts

LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "sparse": scipy.sparse.csr_array,
}


def exact_scores(X: np.ndarray, w: np.ndarray, constant: float, bias: float) -> np.ndarray:
    """X·w + the intercept of the model as it is stored, in rational numbers."""
    columns = w.reshape(len(w), -1)
    scores = np.empty((len(X), columns.shape[1]), dtype=object)
    for i, row in enumerate(X):
        for c, column in enumerate(columns.T):
            numbers, last = (column[:-1], constant * column[-1]) if constant else (column, 0.0)
            terms = (Fraction(float(x)) * Fraction(v) for x, v in zip(row, numbers, strict=True))
            scores[i, c] = sum(terms, Fraction(last + bias))
    return scores


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_the_bounds_hold(layout, dtype, outputs, constant):
    """Columns on scales from 1e-6 to 1e6, and scores that cancel."""
    rng = np.random.default_rng(7)
    X = (rng.normal(size=(30, 17)) * 10.0 ** rng.uniform(-6, 6, 17)).astype(dtype)
    X[rng.random(X.shape) < 0.3] = 0.0
    shape = (17 + (constant != 0.0), *(() if outputs is None else (outputs,)))
    w = rng.normal(size=shape)
    w[:17] = (w[:17].T / np.abs(X).max(axis=0)).T
    w[0] *= 1e6
    w[1] = -w[0] * 1.0000001
    matrix = as_blocks(LAYOUTS[layout](X), block_numbers=100)
    products = RowProducts(matrix, shape, constant, SerialExecutor(), updates=False)
    rows = (30, *shape[1:])
    scores, errors = np.empty((2, *rows))
    products.bounded(w, scores, errors)
    exact = exact_scores(X, w, constant, 0.0).reshape(rows)
    off = np.abs(scores - exact).astype(float)
    assert np.all(off <= errors)
    assert np.any(off > 1e-3 * errors)  # and they are not far away

    high, low, errors = np.empty((3, *rows))
    products.bounded(w, high, low, errors)
    fractions = np.vectorize(Fraction, otypes=[object])
    exact = exact_scores(X, w, constant, 0.0).reshape(rows)
    off = np.abs(fractions(high) + fractions(low) - exact).astype(float)
    assert np.all(off <= errors)
    assert np.all(np.abs(low) <= 2.0**-52 * np.abs(high))
    size = np.abs(scores).max()
    assert errors.max() <= 1e-25 * size * 1e6


def test_a_bias_is_part_of_the_precise_scores():
    X, w, bias = np.array([[1.0, 1e-9]]), np.array([-1e8, 1.0]), 1e8 + 0.25
    products = RowProducts(as_blocks(X), (2,), 0.0, SerialExecutor(), updates=False)
    high, low, errors = np.empty((3, 1))
    products.bounded(w, high, low, errors, bias=bias)
    assert high[0] == 0.25 + 1e-9
    assert abs(Fraction(high[0]) + Fraction(low[0]) - Fraction(1e-9) - Fraction(1, 4)) <= errors[0]
    assert errors[0] < 1e-21
