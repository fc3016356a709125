"""Every product kernel against numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from cutplane.loops import products

SHAPES = [(7, 5), (1, 9), (6, 1), (5, 0), (40, 23)]
OUTPUTS = [None, 1, 3]
FLOATS = [np.float32, np.float64]


def frozen(array: np.ndarray) -> np.ndarray:
    """Read-only, as row blocks hand their arrays to the kernels."""
    array.flags.writeable = False
    return array


def make(shape, dtype, outputs, seed=0):
    """A matrix with zeros, an empty row and a long row, and vectors for both products."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) * (rng.random(shape) < 0.6)
    if shape[0] > 2:
        X[1] = 0.0
        X[2] = 1.0 + rng.random(shape[1])
    tail = () if outputs is None else (outputs,)
    w = rng.normal(size=(shape[1], *tail))
    coef = rng.normal(size=(shape[0], *tail))
    coef[::3] = 0.0
    return X.astype(dtype), w, coef, rng.normal(size=(shape[1], *tail))


def assert_product(found, matrix, vector, added=0.0):
    """Equal to matrix @ vector + added, to rounding of the terms."""
    matrix = matrix.astype(np.float64)
    terms = np.abs(matrix) @ np.abs(vector) + np.abs(added)
    assert np.all(np.abs(found - (matrix @ vector + added)) <= 1e-14 * terms)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("index", [np.uint16, np.uint32])
def test_csr(shape, outputs, dtype, index):
    X, w, coef, gradient = make(shape, dtype, outputs)
    sparse = scipy.sparse.csr_array(X)
    block = (
        frozen(sparse.data),
        frozen(sparse.indices.astype(index)),
        frozen(sparse.indptr.astype(np.int64)),
    )
    scores = np.full(coef.shape, np.nan)
    before = gradient.copy()
    if outputs is None:
        products.csr_scores(*block, w, scores)
        products.csr_add_gradient(*block, coef, gradient)
    else:
        products.csr_scores_multi(*block, w, scores)
        products.csr_add_gradient_multi(*block, coef, gradient)
    assert_product(scores, X, w)
    assert_product(gradient, X.T, coef, before)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_row_major(shape, outputs, dtype):
    X, w, coef, gradient = make(shape, dtype, outputs)
    frozen(X)
    scores = np.full(coef.shape, np.nan)
    before = gradient.copy()
    if outputs is None:
        products.dense_scores(X, w, scores)
        products.dense_add_gradient(X, coef, gradient)
    else:
        products.dense_scores_multi(X, w, scores)
        products.dense_add_gradient_multi(X, coef, gradient)
    assert_product(scores, X, w)
    assert_product(gradient, X.T, coef, before)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_column_major(shape, outputs, dtype):
    """Rows in the middle of a larger column-major array."""
    X, w, coef, gradient = make(shape, dtype, outputs)
    first = 4
    xt = np.full((shape[1], shape[0] + 9), np.nan, dtype)
    xt[:, first : first + shape[0]] = X.T
    frozen(xt)
    scores = np.full(coef.shape, np.nan)
    before = gradient.copy()
    if outputs is None:
        products.column_scores(xt, first, w, scores)
        products.column_add_gradient(xt, first, coef, gradient)
    else:
        products.column_scores_multi(xt, first, w, scores)
        products.column_add_gradient_multi(xt, first, coef, gradient)
    assert_product(scores, X, w)
    assert_product(gradient, X.T, coef, before)


@pytest.mark.parametrize("layout", ["csr", "row", "column"])
def test_sums_run_in_double_precision(layout):
    """Summing 0.1f 10,000 times in float32 would be off by 1e-4."""
    width = 10_000
    X = np.full((2, width), 0.1, dtype=np.float32)
    exact = width * float(np.float32(0.1))
    scores, gradient = np.zeros(2), np.zeros(1)
    if layout == "csr":
        sparse = scipy.sparse.csr_array(X)
        indices = frozen(sparse.indices.astype(np.uint16))
        starts = frozen(sparse.indptr.astype(np.int64))
        products.csr_scores(frozen(sparse.data), indices, starts, np.ones(width), scores)
        tall = scipy.sparse.csr_array(np.ascontiguousarray(X[:1].T))
        products.csr_add_gradient(
            frozen(tall.data),
            frozen(tall.indices.astype(np.uint16)),
            frozen(tall.indptr.astype(np.int64)),
            np.ones(width),
            gradient,
        )
    elif layout == "row":
        products.dense_scores(frozen(X), np.ones(width), scores)
        tall = frozen(np.ascontiguousarray(X[:1].T))
        products.dense_add_gradient(tall, np.ones(width), gradient)
    else:
        products.column_scores(frozen(np.ascontiguousarray(X.T)), 0, np.ones(width), scores)
        products.column_add_gradient(frozen(X[:1].copy()), 0, np.ones(width), gradient)
    np.testing.assert_allclose(scores, exact, rtol=1e-12)
    np.testing.assert_allclose(gradient, exact, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["csr_add_gradient", "dense_add_gradient"])
def test_rows_with_zero_coefficients_are_not_read(kernel):
    """A row that is not a number does no harm while its coefficient is zero."""
    X = np.array([[1.0, 2.0], [np.nan, np.inf], [3.0, 4.0]])
    coef, gradient = np.array([1.0, 0.0, 2.0]), np.zeros(2)
    if kernel == "csr_add_gradient":
        indices = frozen(np.tile(np.array([0, 1], dtype=np.uint32), 3))
        starts = frozen(np.array([0, 2, 4, 6]))
        products.csr_add_gradient(frozen(X.ravel().copy()), indices, starts, coef, gradient)
    else:
        products.dense_add_gradient(frozen(X), coef, gradient)
    np.testing.assert_array_equal(gradient, [7.0, 10.0])
