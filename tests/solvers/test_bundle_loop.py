"""The bundle loop against other solvers: the optimum lies between its bounds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.result import Status
from cutplane.solvers import AdaptivePosition, BundleSolver, FixedPosition, StopRule

STEPS = {"CPA": None, "OCAS": FixedPosition(0.1), "adaptive": AdaptivePosition()}
TWO_STEPS = ["CPA", "OCAS"]
# Risks that other solvers have.
OTHERS = ("hinge", "squared_hinge", "logistic", "crammer_singer", "multinomial")


def solve(problem, C, step="OCAS", relative=1e-7, observer=None, oracle=None, run=None, **rules):
    rules = {"max_iter": 5000, **rules}
    oracle = oracle or problem.oracle(block_numbers=100)
    solver = BundleSolver(oracle, C, StopRule(relative=relative, **rules), STEPS[step], observer)
    return solver.run(**(run or {}))


def smooth_optimum(problem, C):
    """(w, bias) by a quasi-Newton method on the formula in numpy, with slopes by differences.

    For smooth risks that no other solver here offers. However rough the slopes are, the objective
    at its answer is not below the optimum.
    """
    share = C * problem.weights / problem.weights.sum()
    columns = [problem.X]
    if problem.constant:
        columns.append(np.full((len(problem.X), 1), problem.constant))
    if problem.free_bias:
        columns.append(np.ones((len(problem.X), 1)))
    X = np.hstack(columns)
    penalty = np.ones(X.shape[1])
    penalty[-1] = 0.0 if problem.free_bias else 1.0

    def losses(scores):
        return problem.case.losses(scores, problem.labels)

    def value_and_gradient(z):
        scores, h = X @ z, 1e-6
        slopes = (losses(scores + h) - losses(scores - h)) / (2.0 * h)
        value = 0.5 * np.sum(penalty * z * z) + share @ losses(scores)
        return value, penalty * z + X.T @ (share * slopes)

    z = np.zeros(X.shape[1])
    for _ in range(3):
        options = {"maxiter": 10_000, "ftol": 1e-16, "gtol": 1e-12}
        z = minimize(value_and_gradient, z, jac=True, method="L-BFGS-B", options=options).x
    return (z[:-1], float(z[-1])) if problem.free_bias else (z, 0.0)


def other_solver(problem, C):
    """(w, bias) by libsvm, liblinear, scikit-learn's Newton method or cvxpy."""
    name, free = problem.case.name, problem.free_bias
    if problem.case.regression:
        return problem.minimiser(C)
    if name not in OTHERS or (name == "squared_hinge" and free):
        return smooth_optimum(problem, C)
    X, y, weights = problem.X, problem.labels, problem.weights
    if problem.constant:
        X = np.hstack([X, np.full((len(X), 1), problem.constant)])
    C = C / weights.sum()
    settings = {"C": C, "tol": 1e-12, "max_iter": 100_000, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in ("logistic", "multinomial"):
            model = LogisticRegression(solver="newton-cholesky", fit_intercept=free, **settings)
        elif name == "hinge" and free:
            model = SVC(kernel="linear", C=C, tol=1e-10)
        elif name == "crammer_singer":
            model = LinearSVC(multi_class="crammer_singer", fit_intercept=False, **settings)
        else:
            model = LinearSVC(loss=name, dual=name == "hinge", fit_intercept=False, **settings)
        model.fit(X, y, sample_weight=weights)
    w = model.coef_.T if problem.case.classes else model.coef_[0]
    return w, float(model.intercept_[0]) if free else 0.0


def assert_brackets(problem, C, result, relative):
    """dual ≤ optimum ≤ primal, the primal is that of the point, and the gap is as asked for."""
    w, bias = other_solver(problem, C)
    other = problem.objective(w, bias, C)
    certificate = result.certificate
    assert certificate.dual <= other * (1.0 + 1e-11)
    assert certificate.primal <= other * (1.0 + 2.0 * relative)
    assert other <= certificate.primal * (1.0 + 1e-5)  # or the other solver has failed
    recomputed = problem.objective(result.w, result.bias, C)
    assert certificate.primal == pytest.approx(recomputed, rel=1e-11)
    if result.status is Status.CONVERGED:
        assert certificate.gap <= relative * certificate.primal


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
def test_every_risk(case, make_problem, step, C):
    problem = make_problem(case, seed=1)
    result = solve(problem, C, step)
    assert result.status is Status.CONVERGED
    assert_brackets(problem, C, result, 1e-7)


@pytest.mark.parametrize("step", TWO_STEPS)
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_constant_feature_and_weights(case, make_problem, step, C):
    weighted = case.name != "crammer_singer"  # liblinear takes no weights there
    problem = make_problem(case, seed=2, constant=2.0, weighted=weighted)
    result = solve(problem, C, step)
    assert result.status is Status.CONVERGED
    assert_brackets(problem, C, result, 1e-7)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("C", [0.5, 20.0, 500.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_free_bias(binary_case, make_problem, step, C, weighted):
    problem = make_problem(binary_case, seed=3, free_bias=True, weighted=weighted)
    result = solve(problem, C, step, relative=1e-6)
    assert result.status is Status.CONVERGED
    assert_brackets(problem, C, result, 1e-6)


@pytest.mark.parametrize("C", [1e2, 1e4, 1e6])
def test_separable_data(case, make_problem, C):
    problem = make_problem(case, seed=4, separable=True)
    result = solve(problem, C, relative=1e-6)
    assert result.status is Status.CONVERGED
    recomputed = problem.objective(result.w, result.bias, C)
    assert result.certificate.primal == pytest.approx(recomputed, rel=1e-9)
    w, bias = other_solver(problem, C)
    assert result.certificate.dual <= problem.objective(w, bias, C) * (1.0 + 1e-9)


# -- along the way --------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_bounds_only_improve(case, make_problem, step, C):
    problem = make_problem(case, seed=5)
    result = solve(problem, C, step, relative=1e-9, max_iter=300)
    primal, dual = result.column("primal"), result.column("dual")
    assert np.all(np.diff(primal) <= 1e-13 * primal[:-1])
    assert np.all(np.diff(dual) >= 0.0)
    assert np.all(dual >= 0.0)
    assert np.all(dual <= primal * (1.0 + 1e-13))
    # What was proved at the end includes what rounding may have done.
    assert result.certificate.primal == pytest.approx(primal[-1], rel=1e-9)
    assert np.all(result.column("trial") >= primal * (1.0 - 1e-12))  # no better than the best
    assert result.n_iter == len(result.trace) == result.trace[-1].number


@pytest.mark.parametrize("step", TWO_STEPS)
@pytest.mark.parametrize("free_bias", [False, True])
def test_the_same_bits_for_any_number_of_threads(case, make_problem, step, free_bias):
    if free_bias and case.classes:
        pytest.skip("this risk has no bias")
    problem = make_problem(case, seed=6, rows=300, free_bias=free_bias, weighted=True)
    found = []
    for executor in (SerialExecutor(), ThreadExecutor(2), ThreadExecutor(8)):
        with executor:
            oracle = problem.oracle(executor, block_numbers=64)
            assert len(oracle.matrix.blocks) > 20
            result = solve(problem, 10.0, step, relative=1e-4, oracle=oracle)
        found.append((result.n_iter, result.certificate, result.bias, result.w.tobytes()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("block_numbers", [7, 10_000])
def test_layout_and_blocks_do_not_matter(case, make_problem, sparse, block_numbers):
    problem = make_problem(case, seed=7)
    oracle = problem.oracle(sparse=sparse, block_numbers=block_numbers)
    result = solve(problem, 5.0, oracle=oracle)
    expected = solve(problem, 5.0)
    assert result.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-7)


def test_dropping_cuts_changes_no_answer(case, make_problem, monkeypatch):
    problem = make_problem(case, seed=8)
    expected = solve(problem, 200.0, relative=1e-6)
    monkeypatch.setattr("cutplane.solvers.reduced.IDLE_SOLUTIONS", 3)
    result = solve(problem, 200.0, relative=1e-6)
    assert result.status is Status.CONVERGED
    assert result.column("cuts").max() <= expected.column("cuts").max()
    assert result.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-6)


# -- starts ---------------------------------------------------------------------------


@pytest.mark.parametrize("step", TWO_STEPS)
def test_start_from_a_point(case, make_problem, step):
    problem = make_problem(case, seed=9)
    cold = solve(problem, 20.0, step)
    start = cold.w.copy()
    warm = solve(problem, 20.0, step, run={"start": start})
    assert warm.trace[0].primal <= cold.certificate.primal * (1.0 + 1e-12)
    assert warm.status is Status.CONVERGED
    np.testing.assert_array_equal(start, cold.w)  # not written to
    assert not np.shares_memory(warm.w, start)  # and the answer is our own


def test_start_from_a_bad_point(case, make_problem):
    problem = make_problem(case, seed=10)
    start = problem.random_w(np.random.default_rng(0), 1e3)
    result = solve(problem, 5.0, run={"start": start})
    assert result.status is Status.CONVERGED
    assert_brackets(problem, 5.0, result, 1e-7)


@pytest.mark.parametrize("step", TWO_STEPS)
@pytest.mark.parametrize("free_bias", [False, True])
def test_start_from_cuts(case, make_problem, step, free_bias):
    """The cuts of a finished run carry its bound; they are valid for any C."""
    if free_bias and case.classes:
        pytest.skip("this risk has no bias")
    problem = make_problem(case, seed=11, free_bias=free_bias)
    rule = StopRule(relative=1e-6, max_iter=5000)
    solver = BundleSolver(problem.oracle(), 20.0, rule, STEPS[step])
    first = solver.run()
    cuts = solver.active_cuts()
    assert 0 < len(cuts) <= first.trace[-1].cuts
    again = solve(problem, 20.0, step, relative=1e-6, run={"start": first.w, "cuts": cuts})
    assert again.trace[0].dual >= first.certificate.dual * (1.0 - 1e-9)
    assert again.n_iter <= 3
    other = solve(problem, 30.0, step, relative=1e-6, run={"cuts": cuts})
    assert_brackets(problem, 30.0, other, 1e-6)


def test_start_from_a_dual_point(binary_case, make_problem):
    """Cuts from arbitrary dual points do no harm."""
    problem = make_problem(binary_case, seed=12)
    rng = np.random.default_rng(0)
    oracle = problem.oracle()
    cuts = tuple(oracle.dual_cut(binary_case.dual_point(rng, oracle.targets)) for _ in range(10))
    result = solve(problem, 5.0, oracle=oracle, run={"cuts": cuts})
    assert result.status is Status.CONVERGED
    assert_brackets(problem, 5.0, result, 1e-7)
