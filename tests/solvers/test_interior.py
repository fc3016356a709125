"""The interior point method, against an outside solver, and the problems that it is for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from cutplane import SVC, SVR, OneClassSVM
from cutplane.kernels import PrecomputedMatrix
from cutplane.result import Status
from cutplane.solvers.decomposition.interior import (
    AFTERWARDS,
    SLOW,
    Pace,
    factor_columns,
    factor_of,
    interior_point,
)
from cutplane.solvers.decomposition.problem import DualProblem

ROWS = 40


def problem_of(kind, rng, C):
    y = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    cost = C * rng.uniform(0.0, 2.0, ROWS)
    cost[:5] = 0.0  # variables that cannot move
    if kind == "one class":
        return DualProblem(np.zeros(ROWS), np.zeros(ROWS), cost, 0.3 * float(cost.sum()))
    if kind == "classification":
        return DualProblem(-y, np.where(y > 0, 0.0, -cost), np.where(y > 0, cost, 0.0))
    z, zeros = rng.normal(size=ROWS), np.zeros(ROWS)
    linear, row_of = np.concatenate([0.1 - z, -0.1 - z]), np.tile(np.arange(ROWS), 2)
    lower, upper = np.concatenate([zeros, -cost]), np.concatenate([cost, zeros])
    return DualProblem(linear, lower, upper, row_of=row_of)


def value_of(F, problem, beta):
    w = F[problem.rows].T @ beta
    return 0.5 * float(w @ w) + float(problem.linear @ beta)


def best_value(F, problem):
    """By Clarabel."""
    cvxpy = pytest.importorskip("cvxpy")
    pytest.importorskip("clarabel")
    beta = cvxpy.Variable(len(problem.linear))
    objective = 0.5 * cvxpy.sum_squares(F[problem.rows].T @ beta) + problem.linear @ beta
    box = [beta >= problem.lower, beta <= problem.upper, cvxpy.sum(beta) == problem.total]
    exact = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    cvxpy.Problem(cvxpy.Minimize(objective), box).solve(solver="CLARABEL", **exact)
    return value_of(F, problem, problem.start(beta.value))


@pytest.mark.parametrize("kind", ["classification", "regression", "one class"])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 30.0])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
def test_the_optimum_of_an_outside_solver(kind, scale, C):
    rng = np.random.default_rng(3)
    F = scale * (rng.normal(size=(ROWS, 4)) + 2.0 * (kind == "one class"))
    problem = problem_of(kind, rng, C)
    beta = interior_point(F, problem)
    assert np.all((beta >= problem.lower) & (beta <= problem.upper))
    assert beta.sum() == pytest.approx(problem.total, abs=1e-9 * np.abs(beta).sum())
    found, best = value_of(F, problem, beta), best_value(F, problem)
    assert found <= best + 1e-7 * abs(best)
    # No more variables lie inside than equations ask for: the others are at their bounds.
    assert np.count_nonzero((beta > problem.lower) & (beta < problem.upper)) <= 5 + 4


def test_the_factor_of_a_kernel():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 6))
    matrix = PrecomputedMatrix(x @ x.T)
    assert factor_columns(matrix) == 30
    factor = factor_of(matrix, 1e6)
    assert factor.shape == (30, 6)
    np.testing.assert_allclose(factor @ factor.T, x @ x.T, atol=1e-12)
    assert factor_of(matrix, 8 * 30 * 30 - 1) is None


def test_nothing_to_do():
    zeros = np.zeros(4)
    assert interior_point(zeros[:, None], DualProblem(-np.ones(4), zeros, np.ones(4))) is None
    F = np.ones((4, 1))
    assert interior_point(F, DualProblem(np.ones(4), zeros, np.ones(4)), deadline=0.0) is None


# -- when it has its turn -------------------------------------------------------------


def test_once_after_as_much_work():
    pace = Pace(1000, 1000, None)
    assert not pace.slow(1000 * SLOW)
    assert pace.slow(10_000_000) and not pace.slow(20_000_000)


def test_afterwards_the_gap_must_fall():
    pace, steps = Pace(100, 3, None), 100 * SLOW
    assert pace.slow(steps)
    pace.tried(steps)
    assert not pace.hopeless(AFTERWARDS * steps, 1.0)
    assert not pace.hopeless(2 * AFTERWARDS * steps, 0.4)
    assert pace.hopeless(4 * AFTERWARDS * steps, 0.3)


def test_a_limit_of_iterations_is_kept():
    pace = Pace(100, 3, 50)
    assert pace.slow(10**9)
    pace.tried(10**9)
    assert not any(pace.hopeless(10**9, 1.0) for _ in range(5))


# -- what it is for -------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=60) > 0
    return X, y, X[:, 0] + 0.1 * rng.normal(size=60)


def test_large_features_are_solved(rows):
    X, y, z = rows
    for model, target in ((SVC(kernel="linear"), y), (SVR(kernel="linear"), z)):
        model.fit(1e3 * X, target)
        assert model.results_[0].status is Status.CONVERGED
        # The same as a much larger C on the rows as they are, where w costs next to nothing.
        usual = model.certificate_.primal
        again = type(model)(kernel="linear", C=1e6, stopping="relative").fit(X, target)
        assert usual == pytest.approx(again.certificate_.primal / 1e6, rel=2e-3)


@pytest.mark.parametrize("estimator", [SVC, SVR])
def test_unlike_features_end_soon_and_are_named(rows, estimator):
    X, y, z = rows
    X = X * [1.0, 1e8, 1.0]
    with pytest.warns(UserWarning, match=r"feature 1 \(range .*scale the features"):
        model = estimator(kernel="linear").fit(X, y if estimator is SVC else z)
    assert model.results_[0].status is Status.NUMERICALLY_LIMITED
    assert np.max(model.n_iter_) < 200


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_a_large_cost(kernel):
    """Pairs alone took a minute."""
    X, z = load_diabetes(return_X_y=True)
    X, z = StandardScaler().fit_transform(X)[:200], z[:200] / 100
    model = SVR(kernel=kernel, C=1e4).fit(X, z)
    assert model.results_[0].status is Status.CONVERGED
    assert model.n_iter_ < 2000


def test_one_class(rows):
    X, _, _ = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        large = OneClassSVM(kernel="linear", nu=0.3, tol=1e-6).fit(1e4 * (X + 3.0))
    usual = OneClassSVM(kernel="linear", nu=0.3, tol=1e-6).fit(X + 3.0)
    assert large.certificate_.primal == pytest.approx(1e8 * usual.certificate_.primal, rel=1e-5)
