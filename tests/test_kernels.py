"""Kernel values against their formulas, in every layout, chunking and precision."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import pairwise

from cutplane import kernels
from cutplane._blas import single_threaded_blas
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.kernels import (
    CallableMatrix,
    Kernel,
    PrecomputedMatrix,
    ProductMatrix,
    call_kernel,
    check_precomputed,
    prediction_points,
    training_points,
)
from cutplane.kernels.points import DensePoints, SparsePoints, points_of
from cutplane.kernels.rough import MANY_FEATURES, rough_sum, rough_sums

FORMULAS = {
    "linear": lambda A, B, k: pairwise.linear_kernel(A, B),
    "poly": lambda A, B, k: (k.gamma * (A @ B.T) + k.coef0) ** k.degree,
    "rbf": lambda A, B, k: pairwise.rbf_kernel(A, B, k.gamma),
    "sigmoid": lambda A, B, k: pairwise.sigmoid_kernel(A, B, k.gamma, k.coef0),
}
CASES = [
    Kernel("linear"),
    Kernel("poly", 0.3, 1.0, 0),
    Kernel("poly", 0.3, 1.0, 1),
    Kernel("poly", 0.3, 1.0, 2),
    Kernel("poly", 0.3, 1.0, 3),
    Kernel("poly", 0.3, -0.5, 5),
    Kernel("rbf", 0.4),
    Kernel("rbf", 0.0),
    Kernel("sigmoid", 0.2, -0.3),
]


def random_rows(rows: int, features: int = 7, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.5)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", CASES, ids=str)
def test_values(kernel, dtype, sparse, monkeypatch):
    """Several chunks, the last one short; several blocks of sparse rows, too."""
    monkeypatch.setattr(kernels.points, "CHUNK", 30)
    monkeypatch.setattr(kernels.points, "SPARSE_ROWS", 7)
    X = random_rows(100)
    points = points_of(scipy.sparse.csr_matrix(X) if sparse else X, dtype, dense=not sparse)
    assert isinstance(points, SparsePoints if sparse else DensePoints)
    matrix = ProductMatrix(kernel, points, None, SerialExecutor())
    which = np.array([3, 99, 0, *range(20, 60)])
    expected = FORMULAS[kernel.name](X[which], X, kernel)
    tolerance = 1e-12 if dtype == np.float64 else 3e-6
    np.testing.assert_allclose(
        matrix.rows(which), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
    )
    assert matrix.rows(which).dtype == dtype
    columns = np.array([1, 5, 6, 98])
    np.testing.assert_allclose(
        matrix.rows(which, columns), matrix.rows(which)[:, columns], rtol=1e-5, atol=1e-6
    )
    everything = FORMULAS[kernel.name](X, X, kernel)
    np.testing.assert_allclose(matrix.diagonal, everything.diagonal(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponential_over_its_whole_range(dtype):
    """From 1 to the smallest numbers; beyond that it stays tiny."""
    x = np.concatenate([[0.0, 1e-9, 1e-4], np.linspace(0.01, 80, 5000), [100.0, 1e4, 1e30]])
    matrix = ProductMatrix(
        Kernel("rbf", 1.0),
        DensePoints(np.zeros((1, 1), dtype), np.zeros(1)),
        DensePoints(np.zeros((len(x), 1), dtype), x),
        SerialExecutor(),
    )
    got = matrix.rows(np.array([0]))[0]
    rounding = np.finfo(dtype).eps * (4 + x[:-3])
    assert np.all(np.abs(got[:-3] / np.exp(-x[:-3]) - 1) <= rounding)
    assert np.all((got[-3:] >= 0) & (got[-3:] <= 2e-38))
    assert got[0] == 1.0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_threads_do_not_change_a_bit(sparse, monkeypatch):
    monkeypatch.setattr(kernels.points, "CHUNK", 64)
    monkeypatch.setattr(kernels.points, "SPARSE_ROWS", 7)
    X = random_rows(500, 20)
    points = points_of(scipy.sparse.csr_matrix(X) if sparse else X, np.float32, dense=not sparse)
    which = np.arange(0, 500, 3)
    kernel = Kernel("rbf", 0.1)
    one = ProductMatrix(kernel, points, None, SerialExecutor()).rows(which)
    for threads in (2, 8):
        with ThreadExecutor(threads) as executor:
            many = ProductMatrix(kernel, points, None, executor).rows(which)
        np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_whole_matrix_in_blocks(name, sparse, monkeypatch):
    X = np.random.default_rng(5).normal(size=(23, 3))
    kernel = Kernel(name, 0.3, 1.0, 2)
    points = points_of(scipy.sparse.csr_array(X) if sparse else X, dense=not sparse)
    monkeypatch.setattr("cutplane.kernels.SQUARE", 5)
    with ThreadExecutor(2) as executor:
        matrix = ProductMatrix(kernel, points, None, executor)
        values = matrix.whole()
        np.testing.assert_allclose(values, matrix.rows(np.arange(23)), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(values, values.T)


def test_rows_go_to_their_slots():
    X = random_rows(10)
    matrix = ProductMatrix(Kernel("linear"), points_of(X), None, SerialExecutor())
    out = np.full((4, 10), -7.0)
    matrix.fill(np.array([2, 5]), np.array([3, 1]), out)
    np.testing.assert_allclose(out[[3, 1]], X[[2, 5]] @ X.T)
    assert np.all(out[[0, 2]] == -7.0)


# -- precision --------------------------------------------------------------------------


def exact_rbf(X: np.ndarray, gamma: float) -> np.ndarray:
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_rbf_far_from_the_origin(offset, scale):
    """A common offset costs no digits, whatever precision is chosen."""
    X = random_rows(40, 3) * scale
    gamma = 0.5 / scale**2
    kernel = Kernel("rbf", gamma)
    points = training_points(kernel, X + offset, single=True)
    got = ProductMatrix(kernel, points, None, SerialExecutor()).rows(np.arange(40))
    lost = 4 * np.finfo(float).eps * offset / scale  # when X + offset was rounded
    np.testing.assert_allclose(got, exact_rbf(X, gamma), atol=2e-5 + 10 * lost)


def test_single_precision_only_where_it_is_enough():
    X = random_rows(50)
    single = training_points(Kernel("rbf", 0.5), X, single=True)
    assert single.x.dtype == np.float32
    assert training_points(Kernel("rbf", 0.5), X, single=False).x.dtype == np.float64
    assert training_points(Kernel("rbf", 1e3), X, single=True).x.dtype == np.float64
    assert training_points(Kernel("linear"), X, single=True).x.dtype == np.float64
    linear = training_points(Kernel("linear"), X.astype(np.float32), single=True)
    assert linear.x.dtype == np.float32


def test_huge_gamma_by_differences():
    """exp(−1e10·|x − z|²): equal rows must give 1, and close ones their value."""
    X = 100.0 + random_rows(30)
    X[7] = X[3]
    X[8] = X[3] + 1e-6
    kernel = Kernel("rbf", 1e10)
    points = training_points(kernel, X, single=True)
    K = ProductMatrix(kernel, points, None, SerialExecutor()).rows(np.arange(30))
    np.testing.assert_allclose(K, exact_rbf(X, 1e10), atol=1e-4)
    assert K[3, 7] == K[3, 3] == 1.0
    left, right = prediction_points(kernel, X[:5], X)
    assert ProductMatrix(kernel, left, right, SerialExecutor()).rows(np.arange(5))[3, 7] == 1.0


@pytest.mark.parametrize("train", ["dense", "sparse"])
@pytest.mark.parametrize("test", ["dense", "sparse"])
@pytest.mark.parametrize("features", [4, 2000])
def test_prediction_points_of_any_kind(train, test, features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, features)) * (rng.random((30, features)) < 20 / features)
    Z = rng.normal(size=(11, features)) * (rng.random((11, features)) < 20 / features)
    forms = {"dense": np.asarray, "sparse": scipy.sparse.csr_matrix}
    kernel = Kernel("rbf", 0.2)
    left, right = prediction_points(kernel, forms[test](Z), forms[train](X))
    got = ProductMatrix(kernel, left, right, SerialExecutor()).rows(np.arange(11))
    np.testing.assert_allclose(got, pairwise.rbf_kernel(Z, X, 0.2), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.2), Kernel("poly", 0.3, 1.0, 2)])
@pytest.mark.parametrize("kept", [0, 3, 10, 11])
def test_features_that_only_new_rows_have(kernel, kept):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(30, 12)), rng.normal(size=(9, 12))
    X[:, kept:] = 0.0
    left, right = prediction_points(kernel, Z, X)
    assert right.x.shape[1] == (12 if kept == 11 else kept)
    got = ProductMatrix(kernel, left, right, SerialExecutor()).rows(np.arange(9))
    names = {"rbf": pairwise.rbf_kernel(Z, X, 0.2), "poly": (0.3 * Z @ X.T + 1.0) ** 2}
    np.testing.assert_allclose(got, names[kernel.name], rtol=1e-10)


@pytest.mark.parametrize("kernel", [*CASES[:5], *CASES[5:8]], ids=str)
def test_whole_numbers_in_single_precision(kernel):
    """Products of whole numbers are exact, so values are those of double precision."""
    rng = np.random.default_rng(0)
    X, Z = rng.integers(-9, 9, (2, 40, 30)).astype(float)
    left, right = prediction_points(kernel, scipy.sparse.csr_array(Z), X)
    assert left.x.dtype == right.x.dtype == np.float32
    matrix = ProductMatrix(kernel, left, right, SerialExecutor())
    got = matrix.rows(np.arange(40))
    assert got.dtype == matrix.dtype == np.float64
    np.testing.assert_allclose(got, FORMULAS[kernel.name](Z, X, kernel), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("spoil", [0.5, 2.0**12 + 1.0])
@pytest.mark.parametrize("side", [0, 1])
def test_numbers_whose_products_may_be_rounded(side, spoil):
    pair = np.random.default_rng(0).integers(0, 3, (2, 40, 30)).astype(float)
    pair[side, -1, -1] = spoil
    left, right = prediction_points(Kernel("rbf", 1e-6), *pair)
    assert left.x.dtype == right.x.dtype == np.float64


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("features", [3, 20, 300])
@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("kernel", [k for k in CASES if k.name != "sigmoid"], ids=str)
def test_errors_of_single_precision(kernel, scale, features, outputs):
    """No sum is further off than is said, and most are nearer than a thousandth of their terms."""
    rng = np.random.default_rng(0)
    Z, X = scale * (rng.normal(size=(2, 60, features)) + rng.normal(size=features))
    Z[:5] *= [[0.0], [1e-20], [1e-3], [3.0], [1e20]]
    coef = rng.normal(size=(outputs, 60)) * 10.0 ** rng.integers(-45, 3, 60)
    left, right = prediction_points(kernel, Z, X)
    if not isinstance(left, DensePoints) or left.direct:
        left, right = prediction_points(kernel, Z[:4], X)
    found = _rough(kernel, left, right, coef)
    if found is None:
        assert features < MANY_FEATURES and (outputs > 1 or kernel.name != "rbf")
        return
    every = np.arange(len(left))
    exact = ProductMatrix(kernel, left, right, SerialExecutor()).rows(every)
    with np.errstate(over="ignore", invalid="ignore"):
        sums, errors = found(every)
        off, sizes = np.abs(sums - exact @ coef.T), np.abs(exact) @ np.abs(coef.T)
    assert sums.shape == errors.shape == (len(every), outputs)
    fine = np.isfinite(sums)
    assert np.all(off[fine] <= errors[fine] + 1e-15 * sizes[fine])
    if scale == 1e-2 and kernel.degree > 0 and kernel.gamma > 0.0:
        assert np.median(errors) <= 1e-3 * np.median(sizes)


def _rough(kernel, left, right, coef):
    """Sums in single precision of one output or several, as a model takes them."""
    if len(coef) == 1 and kernel.name == "rbf":
        return rough_sum(kernel, left, right, coef[0])
    sums, sizes = (lambda values, c=c: values @ c.T for c in (coef, np.abs(coef)))
    return rough_sums(kernel, left, right, sums, sizes, SerialExecutor())


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_errors_of_sums_by_row(sparse):
    """Sums in single precision are off by no more than the rows' amplifications say."""
    rng = np.random.default_rng(0)
    part = rng.random((200, 1)) / 5
    X = np.abs(rng.normal(size=(200, 400))) * (rng.random((200, 400)) < part)
    points = points_of(X) if not sparse else points_of(scipy.sparse.csr_array(X), dense=False)
    kernel, coef = Kernel("rbf", 0.1), rng.normal(size=200)
    exact, rough = (
        ProductMatrix(kernel, points.astype(dtype), None, SerialExecutor()).whole().astype(float)
        for dtype in (np.float64, np.float32)
    )
    matrix = ProductMatrix(kernel, points.astype(np.float32), None, SerialExecutor())
    each, most = matrix.amplifications, matrix.amplification
    assert np.max(each) <= most * (1.0 + 1e-12) and (np.min(each) < 0.9 * most) == sparse
    assert np.all(np.abs((rough - exact) @ coef) <= 2.0**-53 * each * (exact @ np.abs(coef)))


def test_kernels_without_rough_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 100))
    sparse = scipy.sparse.random_array((20, 5000), density=0.01, rng=rng, format="csr")
    for kernel, rows in (
        (Kernel("sigmoid", 0.1), X),
        (Kernel("poly", 0.1, 1.0, 50), X),
        (Kernel("rbf", 0.1), X[:, :10]),
        (Kernel("rbf", 0.1), np.rint(X)),
        (Kernel("rbf", 0.1), sparse),
    ):
        pair = prediction_points(kernel, rows, rows)
        assert _rough(kernel, *pair, rng.normal(size=(2, 20))) is None
        if kernel.name != "rbf" or rows is sparse:
            assert rough_sum(kernel, *pair, rng.normal(size=20)) is None


# -- stored and called ------------------------------------------------------------------


def test_precomputed_matrix():
    values = random_rows(20, 20)
    values = values + values.T
    matrix = PrecomputedMatrix(values)
    np.testing.assert_array_equal(matrix.rows(np.array([3, 1])), values[[3, 1]])
    some = np.array([2, 5, 11])
    np.testing.assert_array_equal(matrix.rows(np.array([3]), some), values[[3]][:, some])
    np.testing.assert_array_equal(
        matrix.restricted(some).restricted(np.array([0, 2])).rows(np.array([4])),
        values[[4]][:, [2, 11]],
    )


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_callable_matrix(form):
    X = random_rows(150)
    matrix = CallableMatrix(lambda A, B: A @ B.T, form(X))
    np.testing.assert_allclose(matrix.rows(np.array([4, 9])), X[[4, 9]] @ X.T)
    np.testing.assert_allclose(matrix.diagonal, (X * X).sum(1))
    some = np.array([2, 5])
    np.testing.assert_allclose(matrix.rows(np.array([4]), some), X[[4]] @ X[some].T)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: np.ones((len(A), len(B) + 1)), r"of shape \(3, 5\), got \(3, 6\)"),
        (lambda A, B: np.ones(len(A)), r"of shape \(3, 5\), got \(3,\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "returned nan for rows 0 and 0"),
        (lambda A, B: np.full((len(A), len(B)), np.inf), "returned inf"),
        (lambda A, B: [["a"] * len(B)] * len(A), "array of numbers"),
        (lambda A, B: None, "shape|numbers"),
    ],
)
def test_bad_callables(function, message):
    X = random_rows(5)
    with pytest.raises(ValueError, match=message):
        call_kernel(function, X[:3], X)


def test_bad_precomputed_values():
    with pytest.raises(ValueError, match="square"):
        check_precomputed(np.ones((3, 4)))
    values = np.eye(600)
    check_precomputed(values)
    values[550, 3] = 0.1
    with pytest.raises(ValueError, match=r"symmetric.*X\[(550, 3|3, 550)\]"):
        check_precomputed(values)
    values[550, 3] = 1e-12  # rounding
    check_precomputed(values)


def test_definiteness_as_far_as_it_is_known():
    assert Kernel("rbf").definite and Kernel("linear").definite
    assert Kernel("poly", coef0=1.0).definite
    assert Kernel("poly", coef0=-1.0).definite is False
    assert Kernel("sigmoid").definite is False
    assert Kernel("precomputed").definite is None


# -- BLAS -------------------------------------------------------------------------------


def test_blas_limit_is_restored_when_fits_overlap():
    from threadpoolctl import threadpool_info

    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with single_threaded_blas():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with single_threaded_blas():
        thread.start()
        inside.wait(10)
        assert set(threads()) <= {1}
    assert set(threads()) <= {1}
    leave.set()
    thread.join()
    assert threads() == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_by_group(dtype, monkeypatch):
    """Groups that end within a piece of rows, go beyond it, or are empty."""
    monkeypatch.setattr(kernels, "SUM_ROWS", 16)
    X = random_rows(90)
    kernel = Kernel("rbf", 0.4)
    rng = np.random.default_rng(3)
    which = rng.permutation(90)[:70]
    coef = rng.normal(size=70)
    groups = np.sort(rng.choice([0, 1, 3], 70, p=[0.1, 0.6, 0.3]))
    values = FORMULAS["rbf"](X[which], X, kernel)
    expected = np.stack([values[groups == g].T @ coef[groups == g] for g in range(5)])
    matrices = [
        ProductMatrix(kernel, points_of(X, dtype), None, SerialExecutor()),
        PrecomputedMatrix(FORMULAS["rbf"](X, X, kernel)),
    ]
    tolerance = 1e-11 if dtype == np.float64 else 1e-5
    for matrix in matrices:
        found = matrix.grouped(which, coef, groups, 5)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_rows_that_come_twice(dtype, outputs, monkeypatch):
    """There are more equal rows than rows in a piece."""
    monkeypatch.setattr(kernels, "SUM_ROWS", 16)
    X = random_rows(90)
    kernel = Kernel("rbf", 0.4)
    rng = np.random.default_rng(3)
    which = rng.integers(0, 90, 70)
    coef = rng.normal(size=70 if outputs is None else (70, outputs))
    expected = FORMULAS["rbf"](X[which], X, kernel).T @ coef
    columns = np.array([5, 80, 5, 0])
    matrices = [
        ProductMatrix(kernel, points_of(X, dtype), None, SerialExecutor()),
        PrecomputedMatrix(FORMULAS["rbf"](X, X, kernel)),
    ]
    tolerance = 1e-11 if dtype == np.float64 else 1e-5
    for matrix in matrices:
        found = matrix.combine(which, coef)
        np.testing.assert_allclose(found, expected, atol=tolerance)
        assert found.dtype == np.float64
        some = matrix.restricted(columns).combine(which, coef)
        np.testing.assert_allclose(some, expected[columns], atol=tolerance)


@pytest.mark.parametrize("kernel", CASES, ids=str)
def test_sparse_rows_with_frequent_and_rare_features(kernel):
    """Products by features, the frequent ones as a dense matrix, against dense rows."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 40)) * (rng.random((90, 40)) < np.linspace(0.0, 0.5, 40))
    sparse = points_of(scipy.sparse.csr_matrix(X), dense=False)
    assert 0 < len(sparse.often) < 40 and sparse.x.nnz > 0
    executor = SerialExecutor()
    one = ProductMatrix(kernel, sparse, None, executor)
    two = ProductMatrix(kernel, points_of(X), None, executor)
    which, columns, coef = rng.permutation(90)[:50], np.arange(10, 80, 3), rng.normal(size=(50, 2))
    near = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(one.whole(), two.whole(), **near)
    np.testing.assert_allclose(one.rows(which, columns), two.rows(which, columns), **near)
    for sums in (coef, coef[:, 0]):
        pair = (matrix.combine(which, sums, columns) for matrix in (one, two))
        np.testing.assert_allclose(*pair, rtol=1e-11, atol=1e-10)
    new = rng.normal(size=(20, 40)) * (rng.random((20, 40)) < 0.3)
    left, right = prediction_points(
        kernel, scipy.sparse.csr_matrix(new), scipy.sparse.csr_matrix(X)
    )
    values = ProductMatrix(kernel, left, right, executor).rows(np.arange(20))
    expected = ProductMatrix(kernel, points_of(new), points_of(X), executor).rows(np.arange(20))
    np.testing.assert_allclose(values, expected, **near)
