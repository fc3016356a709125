"""Coordinate descent against the bundle solver's optimum, and how its runs end."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from cutplane import LinearSVC
from cutplane.bundle import AdaptivePosition, BundleSolver, StopRule
from cutplane.data import as_blocks
from cutplane.descent import CoordinateSolver
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.oracles import RowOracle
from cutplane.result import Status

BIASES = {"none": {}, "constant": {"constant": 2.0}, "free": {"free_bias": True}}
ROWS = 400


def solve(oracle, C, *, seed=0, observer=None, run=None, **rules):
    solver = CoordinateSolver(oracle, C, StopRule(**rules), np.random.default_rng(seed), observer)
    return solver.run(**(run or {}))


def optimum(oracle, C):
    return BundleSolver(oracle, C, StopRule(relative=1e-7), AdaptivePosition()).run().certificate


@pytest.fixture(scope="module", params=["hinge", "squared_hinge"])
def dual_case(request, all_cases):
    return all_cases[request.param]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.4, 40.0, 4000.0])
def test_reaches_the_optimum(dual_case, make_problem, bias, weighted, C):
    problem = make_problem(dual_case, seed=2, rows=ROWS, weighted=weighted, **BIASES[bias])
    oracle = problem.oracle(block_numbers=300)  # several blocks
    best = optimum(oracle, C)
    result = solve(oracle, C, relative=1e-4, max_iter=2000)
    assert result.status is Status.CONVERGED
    assert result.certificate.relative_gap <= 1e-4
    recomputed = problem.objective(result.w, result.bias, C)
    assert result.certificate.primal == pytest.approx(recomputed, rel=1e-10)
    for record in (*result.trace, result.certificate):
        assert record.dual <= best.primal * (1.0 + 1e-12)
        assert record.primal >= best.dual * (1.0 - 1e-12)


@pytest.mark.parametrize("layout", ["rows", "columns", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts_agree(dual_case, make_problem, layout, dtype):
    problem = make_problem(dual_case, seed=3, rows=ROWS)
    X = problem.X.astype(dtype)
    X[np.abs(X) < 0.3] = 0.0
    forms = {"rows": X, "columns": np.asfortranarray(X), "sparse": scipy.sparse.csr_array(X)}
    plain = problem.oracle()

    def run(x):
        matrix = as_blocks(x, block_numbers=10_000)
        oracle = RowOracle(matrix, plain.targets, plain.risk, SerialExecutor())
        return solve(oracle, 40.0, relative=1e-6, max_iter=500)

    one, two = run(X), run(forms[layout])
    if layout == "sparse":  # shorter rows, so another order of them
        assert one.certificate.dual <= two.certificate.primal
        assert two.certificate.dual <= one.certificate.primal
        return
    assert one.n_iter == two.n_iter
    np.testing.assert_allclose(one.w, two.w, rtol=1e-9, atol=1e-12)


def test_threads_change_nothing(dual_case, make_problem):
    problem = make_problem(dual_case, seed=4, rows=ROWS, free_bias=True)
    serial = solve(problem.oracle(block_numbers=200), 40.0, relative=1e-4, max_iter=300)
    with ThreadExecutor(3) as executor:
        oracle = problem.oracle(executor, block_numbers=200)
        threaded = solve(oracle, 40.0, relative=1e-4, max_iter=300)
    np.testing.assert_array_equal(serial.w, threaded.w)
    assert serial.certificate == threaded.certificate


def test_the_seed_decides(dual_case, make_problem):
    problem = make_problem(dual_case, seed=5, rows=ROWS)
    runs = [solve(problem.oracle(), 40.0, seed=seed, max_iter=3) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert np.any(runs[0].w != runs[2].w)


def test_rows_sorted_by_class_do_no_harm(make_problem, all_cases):
    """Passes go around all blocks, so that one class after the other is no order."""
    problem = make_problem(all_cases["hinge"], seed=6, rows=4000)
    order = np.argsort(problem.labels, kind="stable")

    def iterations(rows):
        matrix = as_blocks(problem.X[rows], block_numbers=2000)
        targets = problem.oracle().targets
        targets = type(targets).make(targets.labels[rows])
        oracle = RowOracle(matrix, targets, problem.case.make(), SerialExecutor())
        return solve(oracle, 400.0, relative=1e-3, max_iter=500).n_iter

    mixed = np.random.default_rng(0).permutation(4000)
    assert iterations(order) <= 2 * iterations(mixed)


def test_start_and_cuts_of_another_solver(dual_case, make_problem):
    oracle = make_problem(dual_case, seed=7, rows=ROWS).oracle()
    bundle = BundleSolver(oracle, 40.0, StopRule(relative=1e-6), AdaptivePosition())
    best = bundle.run()
    result = solve(oracle, 40.0, max_iter=1, run={"start": best.w, "cuts": bundle.active_cuts()})
    assert result.certificate.primal <= best.certificate.primal * (1.0 + 1e-9)
    again = solve(oracle, 40.0, max_iter=1)
    assert again.certificate.primal > best.certificate.primal * (1.0 + 1e-9)


def test_stops(dual_case, make_problem):
    oracle = make_problem(dual_case, seed=8, rows=ROWS).oracle()
    assert solve(oracle, 40.0, max_iter=2).status is Status.MAX_ITER
    assert solve(oracle, 40.0, time_limit=0.0).status is Status.TIME_LIMIT
    assert solve(oracle, 40.0, observer=lambda record: True).status is Status.STOPPED
    limited = solve(oracle, 40.0, relative=0.0)
    assert limited.status in (Status.NUMERICALLY_LIMITED, Status.CONVERGED)
    assert limited.certificate.relative_gap < 1e-9


def test_rows_of_zeros(make_problem, all_cases):
    """They cost 1 each, whatever w is."""
    problem = make_problem(all_cases["hinge"], seed=9, rows=50)
    X = np.vstack([problem.X, np.zeros((5, problem.X.shape[1]))])
    labels = np.append(np.where(problem.X[:, 0] > 0, 1, -1), [1, -1, 1, -1, 1])
    model = LinearSVC(solver="dcd", fit_intercept=False, tol=1e-8).fit(X, labels)
    reference = LinearSVC(fit_intercept=False, tol=1e-8).fit(X, labels)
    assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=1e-7)


def test_estimator(make_problem, all_cases):
    problem = make_problem(all_cases["hinge"], seed=10, rows=300)
    y = problem.labels
    for loss in ("hinge", "squared_hinge"):
        model = LinearSVC(0.3, solver="dcd", loss=loss, tol=1e-6, random_state=0).fit(problem.X, y)
        reference = LinearSVC(0.3, loss=loss, tol=1e-6).fit(problem.X, y)
        assert model.certificate_.relative_gap <= 1e-6
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-2)
    with pytest.raises(ValueError, match="solver='dcd' takes loss"):
        LinearSVC(solver="dcd", loss="logistic").fit(problem.X, y)
    with pytest.raises(ValueError, match="crammer_singer"):
        LinearSVC(solver="dcd", multi_class="crammer_singer").fit(problem.X, np.arange(300) % 3)


def test_other_risks_are_refused(make_problem, all_cases):
    oracle = make_problem(all_cases["logistic"], seed=11, rows=20).oracle()
    with pytest.raises(TypeError, match="LogisticRisk has no coordinate steps"):
        solve(oracle, 1.0, max_iter=1)
