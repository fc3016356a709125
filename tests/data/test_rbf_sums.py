"""Sums of Gaussian kernels in float32, against the formula in float64."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.kernels import rbf_sums
from cutplane.kernels.points import DensePoints
from cutplane.kernels.rbf_sums import RbfTerms, origin_of, sum_points
from cutplane.loops import kernel_sums

# Features, non-zeros of a row, gamma: differences, packed rows in one pass or several, products.
SHAPES = [
    (1, 1, 3.0),
    (2, 2, 20.0),
    (4, 4, 0.5),
    (7, 7, 0.2),
    (15, 3, 0.5),
    (30, 9, 0.2),
    (12, 12, 0.1),
]
TERMS, COLUMNS, GROUPS = 300, 700, 5


def rows_of(rng: np.random.Generator, count: int, features: int, nonzeros: int) -> np.ndarray:
    x = rng.normal(size=(count, features))
    x[np.argsort(rng.random(x.shape), axis=1) >= nonzeros] = 0.0
    return x


def problem(features: int, nonzeros: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(features)
    x, z = (rows_of(rng, count, features, nonzeros) for count in (TERMS, COLUMNS))
    x[3] = 0.0  # a row without non-zeros
    z[5] = x[7]
    coef = rng.normal(size=TERMS)
    groups = np.sort(rng.choice([0, 1, 3, 4], TERMS))  # group 2 is empty
    return x, z, coef, groups


def exact_sums(x, z, gamma, coef, groups) -> np.ndarray:
    values = np.exp(-gamma * np.sum((x[:, None] - z) ** 2, axis=2))
    return np.stack([coef[groups == g] @ values[groups == g] for g in range(GROUPS)])


def fast_sums(x, z, gamma, coef, groups, executor=None) -> np.ndarray:
    origin = origin_of(gamma, x)
    assert origin is not None
    terms = RbfTerms.make(sum_points(x, origin), gamma, coef, groups)
    return terms.sums(sum_points(z, origin), GROUPS, executor or SerialExecutor())


@pytest.mark.parametrize(("features", "nonzeros", "gamma"), SHAPES)
def test_sums_are_those_of_the_formula(features, nonzeros, gamma):
    x, z, coef, groups = problem(features, nonzeros)
    expected = exact_sums(x, z, gamma, coef, groups)
    found = fast_sums(x, z, gamma, coef, groups)
    assert found.dtype == np.float64
    assert np.all(found[2] == 0.0)
    np.testing.assert_allclose(found, expected, atol=3e-7 * np.abs(coef).sum())
    # A single term has no sum to hide in.
    one = exact_sums(x[:1], z, gamma, np.ones(1), np.zeros(1, int))[0]
    alone = fast_sums(x[:1], z, gamma, np.ones(1), np.zeros(1, int))[0]
    np.testing.assert_allclose(alone, one, rtol=3e-5, atol=1e-30)


def test_the_shapes_take_every_way():
    taken = set()
    for features, nonzeros, gamma in SHAPES:
        x, _, coef, groups = problem(features, nonzeros)
        points = sum_points(x, origin_of(gamma, x))
        terms = RbfTerms.make(points, gamma, coef, groups)
        taken.add((points.direct, len(terms.starts) > 0))
        if len(terms.starts):
            taken.add(tuple(np.unique(np.diff(terms.starts))))
    assert {(True, False), (False, True), (False, False)} <= taken
    lanes = kernel_sums.LANES
    assert (lanes,) in taken  # one pass
    assert (lanes, 3 * lanes) in taken  # the empty row, and a first, a middle and a last pass


@pytest.mark.parametrize(("features", "nonzeros", "gamma"), SHAPES)
def test_a_column_does_not_depend_on_its_neighbours(features, nonzeros, gamma, monkeypatch):
    x, z, coef, groups = problem(features, nonzeros)
    whole = fast_sums(x, z, gamma, coef, groups)
    some = np.array([0, 5, 6, 255, 256, 699])
    packed_or_near = features != 12  # a product of matrices may round a smaller one differently
    few = fast_sums(x, z[some], gamma, coef, groups)
    if packed_or_near:
        np.testing.assert_array_equal(few, whole[:, some])
    else:
        np.testing.assert_allclose(few, whole[:, some], atol=1e-5)
    with ThreadExecutor(3) as executor:
        np.testing.assert_array_equal(fast_sums(x, z, gamma, coef, groups, executor), whole)


def test_far_rows_have_no_weight():
    """Exponents below the range, and beyond float32, give numbers too small to matter."""
    x = np.zeros((2, 2))
    z = np.array([[50.0, 0.0], [1e25, -1e30], [0.0, 0.0]])
    found = fast_sums(x, z, 1.0, np.array([1.0, -3.0]), np.array([0, 1]))
    assert np.all(np.abs(found[:2, :2]) < 1e-36)
    np.testing.assert_allclose(found[:2, 2], [1.0, -3.0], rtol=1e-6)


def test_where_single_precision_would_not_do():
    rng = np.random.default_rng(0)
    dense = 100.0 + rng.normal(size=(50, 12))
    assert np.allclose(origin_of(0.1, dense), dense.mean(axis=0))
    assert origin_of(100.0, dense) is None  # the mean does not help
    sparse = rows_of(rng, 50, 12, 2)
    assert not np.any(origin_of(0.1, sparse))  # zeros are kept
    sparse[:, 0] += 1e3
    assert np.any(origin_of(0.1, sparse))  # unless they cost precision
    few = 1e6 * rng.normal(size=(50, 3))
    assert isinstance(sum_points(few, origin_of(100.0, few)), DensePoints)
    assert origin_of(0.1, dense, part=1e-9) is None


def test_columns_of_a_thread_are_balanced(monkeypatch):
    """Many columns go in larger pieces; the result is the same."""
    x, z, coef, groups = problem(2, 2)
    few = fast_sums(x, z, 2.0, coef, groups)
    monkeypatch.setattr(rbf_sums, "MANY", 60)
    np.testing.assert_array_equal(fast_sums(x, z, 2.0, coef, groups), few)
