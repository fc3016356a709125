"""Coordinate descent against an interior point method, and how its runs go and end."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse

from cutplane.data import as_blocks
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.losses import LOSSES, argument
from cutplane.objective import RowOracle
from cutplane.result import Status
from cutplane.risks import LossRisk, Targets
from cutplane.solvers import StopRule, constants, coordinate
from cutplane.solvers.coordinate import CoordinateSolver

BIASES = {"none": {}, "constant": {"constant": 2.0}, "free": {"free_bias": True}}
FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "sparse": scipy.sparse.csr_array,
}


def rows_of(seed, rows, features, noise=0.3, loss="hinge"):
    """Sparse rows with a zero row, a duplicate and an unbalanced label, some of them wrong.

    For regression the targets are scores with noise, far from 0.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.5)
    scores = X @ rng.normal(size=features) - 0.7
    y = np.where(scores + noise * rng.normal(size=rows) > 0.0, 1.0, -1.0)
    X[0], X[1], y[:2] = 0.0, X[2], (1.0, -y[2])
    if LOSSES[loss].regression:
        y = 20.0 + 3.0 * scores + y
    return X, y


def make_oracle(X, y, loss="hinge", bias="free", weights=None, executor=None, **blocks):
    targets = Targets.make(y, weights)
    risk = LossRisk(LOSSES[loss]())
    runner = executor or SerialExecutor()
    return RowOracle(as_blocks(X, **blocks), targets, risk, runner, **BIASES[bias])


def solve(oracle, C, *, seed=0, observer=None, dual_point=None, start=None, **rules):
    rng = np.random.default_rng(seed)
    solver = CoordinateSolver(oracle, C, StopRule(**rules), rng, observer, dual_point)
    return solver.run(start), solver


def objective(X, y, weights, case, bias, C, w, b):
    """F, by numpy."""
    scores = X @ w[: X.shape[1]] + b
    if bias == "constant":
        scores = scores + 2.0 * w[-1]
    return 0.5 * w @ w + C * case.risk(scores, y, weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_reaches_the_optimum(all_cases, optimum, loss, bias, weighted):
    X, y = rows_of(1, 120, 8, loss=loss)
    weights = np.ones(len(y))
    if weighted:
        weights = np.random.default_rng(2).integers(0, 4, len(y)).astype(float)
    for C in (0.5, 50.0, 2000.0):
        best = optimum(X, y, weights, loss, bias, C)
        result, _ = solve(make_oracle(X, y, loss, bias, weights), C, relative=1e-6)
        assert result.status is Status.CONVERGED
        assert result.certificate.relative_gap <= 1e-6
        own = objective(X, y, weights, all_cases[loss], bias, C, result.w, result.bias)
        assert result.certificate.primal == pytest.approx(own, rel=1e-9)
        assert result.certificate.dual <= best * (1.0 + 1e-6)
        assert result.certificate.primal >= best * (1.0 - 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_layouts_agree(loss, form, dtype):
    X, y = rows_of(3, 400, 12, loss=loss)
    X = X.astype(dtype)
    plain, _ = solve(make_oracle(X.astype(float), y, loss), 40.0, relative=1e-6)
    result, _ = solve(make_oracle(FORMS[form](X), y, loss), 40.0, relative=1e-6)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_rows_repeated(loss):
    X, y = rows_of(4, 100, 6, loss=loss)
    times = np.random.default_rng(5).integers(0, 4, len(y))
    weighted, _ = solve(make_oracle(X, y, loss, weights=times.astype(float)), 30.0, relative=1e-7)
    repeated, _ = solve(
        make_oracle(np.repeat(X, times, 0), np.repeat(y, times), loss), 30.0, relative=1e-7
    )
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=2e-7)


@pytest.mark.parametrize("form", ["rows", "sparse"])
def test_threads_change_nothing(form):
    X, y = rows_of(6, 3000, 20)
    serial, one = solve(make_oracle(FORMS[form](X), y, block_numbers=4000), 900.0, relative=1e-5)
    with ThreadExecutor(2) as executor:
        oracle = make_oracle(FORMS[form](X), y, executor=executor, block_numbers=4000)
        threaded, two = solve(oracle, 900.0, relative=1e-5)
    np.testing.assert_array_equal(serial.w, threaded.w)
    np.testing.assert_array_equal(one.dual_point(), two.dual_point())
    assert serial.certificate == threaded.certificate


def test_the_seed_decides_the_order():
    X, y = rows_of(7, 300, 10)
    runs = [solve(make_oracle(X, y), 40.0, seed=seed, max_iter=1)[0] for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert np.any(runs[0].w != runs[2].w)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
def test_the_dual_point_gives_the_bound(loss, bias):
    X, y = rows_of(8, 200, 9, loss=loss)
    oracle = make_oracle(X, y, loss, bias)
    result, solver = solve(oracle, 25.0, relative=1e-4)
    cut = oracle.dual_cut(oracle.risk.dual_coef(solver.dual_point(), oracle.targets))
    assert 25.0 * cut.offset - 0.5 * 625.0 * cut.a @ cut.a == pytest.approx(
        result.certificate.dual, rel=1e-12
    )
    (kept,) = solver.active_cuts()
    np.testing.assert_allclose(kept.a, cut.a, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
def test_goes_on_from_a_dual_point(loss, bias):
    X, y = rows_of(9, 1500, 15, loss=loss)
    oracle = make_oracle(X, y, loss, bias)
    cold, first = solve(oracle, 400.0, relative=1e-5)
    known = {"dual_point": first.dual_point(), "start": cold.w}
    again, warm = solve(oracle, 400.0, relative=1e-4, **known)
    assert again.status is Status.CONVERGED
    assert again.n_iter == 1  # the dual point is good enough as it is
    assert warm.passes <= 3.0
    near, _ = solve(oracle, 440.0, relative=1e-5, **known)
    fresh, _ = solve(oracle, 440.0, relative=1e-5)
    assert near.certificate.primal == pytest.approx(fresh.certificate.primal, rel=2e-5)


@pytest.mark.parametrize("bias", ["none", "constant"])
def test_an_easy_problem_takes_one_certificate(bias):
    """The gap that rows see tells that there is no need of one before it is the last."""
    for seed in range(5):
        X, y = rows_of(seed, 2000, 30)
        result, solver = solve(make_oracle(X, y, bias=bias), 2.0, seed=seed, relative=1e-3)
        assert result.status is Status.CONVERGED
        assert result.n_iter == 1
        assert solver.passes <= 4.0


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "logistic"])
def test_a_row_sees_its_part_of_the_gap(loss):
    """c·(ℓ(z) + ℓ*(u) − u·z) is the gap of a problem of one row: that before its step."""
    X, y = rows_of(3, 40, 5, loss=loss)
    oracle = make_oracle(X, y, loss)
    solver = CoordinateSolver(oracle, 3.0, StopRule(max_iter=1), np.random.default_rng(0))
    solver._active = np.array([7])
    for _ in range(2):
        z = argument(solver.loss, X[7] @ solver._w, y[7])
        u = solver._u[7]
        part = solver.loss.value(z) + solver.loss.conjugate(u) - u * z
        assert solver._pass()[2] == pytest.approx(3.0 / 40 * part, rel=1e-9, abs=1e-15)
        solver._active = np.array([7])


def test_certificates_change_nothing_in_the_passes():
    X, y = rows_of(10, 300, 10)
    oracle = make_oracle(X, y)
    solver = CoordinateSolver(oracle, 40.0, StopRule(max_iter=1), np.random.default_rng(0))
    solver.run()
    u, w, bias = solver._u.copy(), solver._w.copy(), solver._bias.copy()
    solver._certify()
    np.testing.assert_array_equal(solver._u, u)
    np.testing.assert_array_equal(solver._w, w)
    np.testing.assert_array_equal(solver._bias, bias)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_hard_margins(optimum, loss, bias):
    """Separable rows with more features than rows, at a C that forbids errors."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(60, 200))
    y = np.where(rng.random(60) < 0.3, 1.0, -1.0)
    result, _ = solve(make_oracle(X, y, loss, bias), 1e8, relative=1e-5)
    assert result.status is Status.CONVERGED
    best = optimum(X, y, np.ones(60), "hinge", bias, 1e4)
    assert result.certificate.primal == pytest.approx(best, rel=1e-4)


def test_conjugate_gradients_help_on_hard_margins(monkeypatch):
    """Rows that are nearly alike, for which passes alone are slow."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(100, 300)) + 3.0 * rng.normal(size=300)
    y = np.where(rng.random(100) < 0.5, 1.0, -1.0)
    _, with_steps = solve(make_oracle(X, y), 1e7, relative=1e-6)
    monkeypatch.setattr(constants, "FIRST_WAIT", 10**9)
    _, without = solve(make_oracle(X, y), 1e7, relative=1e-6)
    assert with_steps.passes < 0.5 * without.passes


def test_rows_sorted_by_class_cost_no_more_passes():
    X, y = rows_of(13, 6000, 15)
    order = np.argsort(y, kind="stable")
    _, mixed = solve(make_oracle(X, y), 6000.0, relative=1e-3)
    _, ordered = solve(make_oracle(X[order], y[order]), 6000.0, relative=1e-3)
    assert ordered.passes < 1.5 * mixed.passes


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
def test_degenerate_rows(optimum, loss, bias):
    """One feature; nothing but zeros; one row."""
    for X, y in (
        (np.array([[1.0], [2.0], [-1.0], [0.5]]), np.array([1.0, 1.0, -1.0, -1.0])),
        (np.zeros((3, 2)), np.array([1.0, 1.0, -1.0])),
        (np.array([[2.0, 0.0]]), np.array([1.0])),
    ):
        best = optimum(X, y, np.ones(len(y)), loss, bias, 3.0)
        result, _ = solve(make_oracle(X, y, loss, bias), 3.0, relative=1e-8, absolute=1e-10)
        assert result.status in (Status.CONVERGED, Status.NUMERICALLY_LIMITED)
        assert result.certificate.primal == pytest.approx(best, rel=1e-6, abs=1e-7)
        assert result.certificate.dual <= best + 1e-6


def test_limits_and_observer():
    X, y = rows_of(14, 2000, 5, noise=2.0)
    oracle = make_oracle(X, y)
    result, _ = solve(oracle, 1e7, relative=1e-12, max_iter=3)
    assert result.status is Status.MAX_ITER and result.n_iter == 3
    began = time.perf_counter()
    result, _ = solve(oracle, 1e9, relative=1e-14, time_limit=0.1)
    assert result.status is Status.TIME_LIMIT
    assert time.perf_counter() - began < 60.0
    result, solver = solve(oracle, 1e9, relative=1e-14)
    assert result.status is Status.MAX_ITER and solver.passes < 1.5 * coordinate.MOST_PASSES
    seen = []

    def watch(record):
        seen.append((solver.passes, record.relative_gap))
        return len(seen) == 4

    rng = np.random.default_rng(0)
    solver = CoordinateSolver(oracle, 1e6, StopRule(relative=1e-12), rng, watch)
    assert solver.run().status is Status.STOPPED
    work = [passes for passes, _ in seen]
    assert work == sorted(work) and 1.0 <= work[0] <= 8.0 and len(seen) == 4


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, scipy.sparse.csr_array])
def test_rows_in_pieces_are_brought_together(layout):
    X, y = rows_of(15, 50, 4)
    apart, together = (make_oracle(layout(X), y, block_numbers=60) for _ in range(2))
    object.__setattr__(apart.matrix, "whole", None)
    found, expected = (solve(oracle, 1.0) for oracle in (apart, together))
    np.testing.assert_array_equal(found[0].w, expected[0].w)
