"""Incomplete Cholesky and projections against plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from cutplane import CholeskyFeatures, LinearSVC, SampledCutSVC
from cutplane.kernels import PrecomputedMatrix
from cutplane.kernels.lowrank import pivoted_cholesky, projected

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
K = rbf_kernel(X, gamma=0.5)


def residuals(chosen: np.ndarray) -> np.ndarray:
    """Squared distances of all φ(x) from the span of the chosen ones."""
    part = K[np.ix_(chosen, chosen)]
    return K.diagonal() - np.einsum("ij,ij->j", K[chosen], np.linalg.solve(part, K[chosen]))


def test_every_pivot_is_the_farthest_row():
    basis = pivoted_cholesky(PrecomputedMatrix(K), np.arange(80), 12)
    assert len(basis.rows) == 12
    for k in range(1, 12):
        apart = residuals(basis.rows[:k])
        assert apart[basis.rows[k]] == pytest.approx(apart.max(), abs=1e-10)
    square = K[np.ix_(basis.rows, basis.rows)]
    np.testing.assert_allclose(basis.factor @ basis.factor.T, square, atol=1e-12)
    assert basis.residual == pytest.approx(residuals(basis.rows).max(), abs=1e-10)


def test_dependent_rows_are_left_out_and_a_tolerance_stops():
    twice = np.tile(K, (2, 2))
    basis = pivoted_cholesky(PrecomputedMatrix(twice), np.arange(160), 160)
    assert len(basis.rows) <= 80
    assert len(set(basis.rows % 80)) == len(basis.rows)
    short = pivoted_cholesky(PrecomputedMatrix(K), np.arange(80), 80, tol=0.05)
    assert short.residual <= 0.05 < residuals(short.rows[:-1]).max()


def test_projection():
    coef = RNG.standard_normal((60, 2))
    rows = np.sort(RNG.permutation(80)[:60])
    found = projected(PrecomputedMatrix(K), rows, coef, 15)
    part = K[np.ix_(found.rows, found.rows)]
    best = np.linalg.solve(part, K[np.ix_(found.rows, rows)] @ coef)
    np.testing.assert_allclose(found.coef, best, atol=1e-6)
    squares = np.einsum("ij,ij->j", coef, K[np.ix_(rows, rows)] @ coef)
    squares -= np.einsum("ij,ij->j", best, part @ best)
    assert found.error == pytest.approx(np.sqrt(squares.max()), rel=1e-6)


@pytest.mark.parametrize("selection", ["pivoted", "random"])
def test_features_have_the_projected_kernel(selection):
    features = CholeskyFeatures(
        gamma=0.5, n_components=10, selection=selection, random_state=0
    ).fit(X)
    chosen = features.component_indices_
    new = RNG.standard_normal((7, 3))
    cross = rbf_kernel(X[chosen], new, gamma=0.5)
    expected = cross.T @ np.linalg.solve(K[np.ix_(chosen, chosen)], cross)
    Z = features.transform(new)
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-9)
    np.testing.assert_allclose(features.components_, X[chosen])
    assert features.transform(X).shape == (80, 10)


def test_random_bases_differ_by_seed_and_pivoted_ones_use_all_candidates():
    drawn = (CholeskyFeatures(n_components=10, selection="random", random_state=s) for s in (0, 1))
    chosen = [set(features.fit(X).component_indices_) for features in drawn]
    assert chosen[0] != chosen[1]
    one, two = (CholeskyFeatures(n_components=10, random_state=s).fit(X) for s in (0, 1))
    np.testing.assert_array_equal(one.component_indices_, two.component_indices_)


def test_a_linear_svm_on_features_of_full_rank_is_the_kernel_svm():
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    Z = CholeskyFeatures(gamma=0.5, n_components=80).fit_transform(X)
    linear = LinearSVC(C=2.0, fit_intercept=False, tol=1e-6).fit(Z, y)
    kernel = SampledCutSVC(C=2.0, gamma=0.5, method="exact", tol=1e-6, stopping="relative").fit(
        X, y
    )
    assert linear.certificate_.primal == pytest.approx(kernel.certificate_.primal, rel=3e-6)
