"""How a run ends: every status, interrupts at any moment, extreme and degenerate problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cutplane.exec import SerialExecutor
from cutplane.result import Status
from cutplane.solvers import BundleSolver, FixedPosition, StopRule

STEPS = {"CPA": None, "OCAS": FixedPosition(0.1)}


def solve(problem, C, step="OCAS", observer=None, executor=None, **rules):
    rules = {"max_iter": 2000, **rules}
    oracle = problem.oracle(executor, block_numbers=100)
    return BundleSolver(oracle, C, StopRule(**rules), STEPS[step], observer).run()


def assert_honest(problem, C, result):
    """The primal is that of the point, and the bound is below every objective we know."""
    certificate = result.certificate
    assert np.isfinite([certificate.primal, certificate.dual]).all()
    assert certificate.gap >= 0.0
    assert certificate.dual >= 0.0
    recomputed = problem.objective(result.w, result.bias, C)
    # C times the rounding of the scores, and of logarithms of sums: 2e-4 at C = 1e12
    rounding = 2e-15 * C * (1.0 + np.abs(problem.scores(result.w)).max())
    assert certificate.primal == pytest.approx(recomputed, rel=1e-12, abs=rounding)
    at_zero = problem.objective(np.zeros_like(result.w), result.bias, C)
    assert certificate.dual <= min(recomputed, at_zero) * (1.0 + 1e-12) + rounding


# -- statuses -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule", [{"relative": 1e-3}, {"absolute": 1e-2}, {"epsilon": 1e-3}], ids=lambda r: next(iter(r))
)
@pytest.mark.parametrize("step", STEPS)
def test_converged(case, make_problem, step, rule):
    problem, C = make_problem(case, seed=1), 20.0
    result = solve(problem, C, step, **rule)
    assert result.status is Status.CONVERGED
    allowed = {
        "relative": 1e-3 * result.certificate.primal,
        "absolute": 1e-2,
        "epsilon": 1e-3 * C,
    }[next(iter(rule))]
    assert result.certificate.gap <= allowed
    if result.n_iter > 1:
        assert result.trace[-2].gap > allowed  # and not an iteration too late
    assert_honest(problem, C, result)


@pytest.mark.parametrize("max_iter", [1, 2, 5])
@pytest.mark.parametrize("step", STEPS)
def test_max_iter(case, make_problem, step, max_iter):
    problem = make_problem(case, seed=1)
    result = solve(problem, 500.0, step, max_iter=max_iter)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == max_iter
    assert_honest(problem, 500.0, result)


def test_time_limit(case, make_problem):
    problem = make_problem(case, seed=1)
    result = solve(problem, 500.0, time_limit=0.0)
    assert result.status is Status.TIME_LIMIT
    assert result.n_iter == 1
    assert_honest(problem, 500.0, result)


def test_stopped_by_the_observer(case, make_problem):
    problem = make_problem(case, seed=1)
    seen = []

    def observer(record):
        seen.append(record)
        return len(seen) == 3

    result = solve(problem, 500.0, observer=observer)
    assert result.status is Status.STOPPED
    assert tuple(seen) == result.trace
    assert [record.number for record in seen] == [1, 2, 3]
    assert_honest(problem, 500.0, result)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
def test_without_a_tolerance_it_ends_at_the_limit_of_precision(case, make_problem, step, C):
    problem = make_problem(case, seed=2)
    result = solve(problem, C, step, max_iter=5000)
    assert result.status in (Status.NUMERICALLY_LIMITED, Status.CONVERGED)
    assert result.certificate.relative_gap <= 1e-8
    assert_honest(problem, C, result)


def test_numerically_limited_is_reached(case, make_problem, monkeypatch):
    """A run ends so if nothing moves any more. Most runs reach a gap of exactly 0 before."""
    monkeypatch.setattr("cutplane.solvers.base.STALLED_ITERATIONS", 1)
    monkeypatch.setattr("cutplane.solvers.base.ROUNDING", 1e3)
    result = solve(make_problem(case, seed=1), 500.0, max_iter=5000)
    assert result.status is Status.NUMERICALLY_LIMITED
    assert_honest(make_problem(case, seed=1), 500.0, result)


# -- interrupts -----------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_interrupt_in_the_observer_keeps_the_best(case, make_problem, step):
    problem = make_problem(case, seed=3)

    def observer(record):
        if record.number == 4:
            raise KeyboardInterrupt

    result = solve(problem, 500.0, step, observer=observer)
    assert result.status is Status.INTERRUPTED
    assert result.n_iter == 4
    assert result.certificate.primal == pytest.approx(result.trace[-1].primal, rel=1e-9)
    assert_honest(problem, 500.0, result)


class Interrupting(SerialExecutor):
    """Raises once, after so many calls of blocks."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def run(self, function, count):
        def counted(k):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return function(k)

        return super().run(counted, count)

    def map(self, function, *sequences):
        return self.run(lambda k: function(*(values[k] for values in sequences)), len(sequences[0]))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("free_bias", [False, True])
def test_interrupt_at_any_moment_keeps_the_best(binary_case, make_problem, step, free_bias):
    """Half a blend, half a cut, half an evaluation: point and objective stay together."""
    problem = make_problem(binary_case, seed=3, free_bias=free_bias)
    optimum = solve(problem, 50.0, relative=1e-7).certificate
    interrupted = 0
    for calls in (*range(1, 60, 3), *range(60, 400, 17)):
        try:
            result = solve(problem, 50.0, step, executor=Interrupting(calls), relative=1e-7)
        except KeyboardInterrupt:
            assert interrupted == 0  # only before the first point is known
            continue
        if result.status is Status.INTERRUPTED:
            interrupted += 1
        assert_honest(problem, 50.0, result)
        assert result.certificate.dual <= optimum.primal * (1.0 + 1e-12)
        assert result.certificate.primal >= optimum.dual * (1.0 - 1e-12)
    assert interrupted > 5


def test_errors_of_the_observer_pass_through(case, make_problem):
    def observer(record):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        solve(make_problem(case), 1.0, observer=observer)


# -- extreme C ------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("free_bias", [False, True])
def test_tiny_c(case, make_problem, step, free_bias):
    """F = C·R(0) to first order, and the second order is known from the first cut."""
    if free_bias and case.classes:
        pytest.skip("this risk has no bias")
    problem, C = make_problem(case, seed=4, free_bias=free_bias), 1e-12
    result = solve(problem, C, step, relative=1e-6)
    assert result.status is Status.CONVERGED
    assert_honest(problem, C, result)
    biases = np.linspace(-3.0, 3.0, 61) if free_bias else [0.0]
    lowest = min(problem.risk(np.zeros_like(result.w), b) for b in biases)
    assert result.certificate.primal <= C * lowest * (1.0 + 1e-6)
    assert np.abs(result.w).max() <= 1e-10


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("C", [1e8, 1e12])
def test_huge_c(case, make_problem, step, separable, C):
    """The status is right whatever the run reaches. Runs with all C give the best known point."""
    problem = make_problem(case, seed=4, separable=separable)
    points = [solve(problem, c, relative=1e-6).w for c in (1e2, 1e4, 1e6)]
    scaled = [k * w for w in points for k in (1.0, 1.0001, 1.01, 1.5)]
    optimum = min(problem.objective(w, 0.0, C) for w in scaled)
    result = solve(problem, C, step, relative=1e-4, max_iter=500)
    assert_honest(problem, C, result)
    assert result.certificate.dual <= optimum * (1.0 + 1e-12) + 1e-15 * C


@pytest.mark.parametrize("C", [1e4, 1e8, 1e12])
def test_huge_c_still_converges(binary_case, make_problem, C):
    """Exact arithmetic in the reduced problem needs 10 to 60 iterations here."""
    problem = make_problem(binary_case, seed=4, separable=True)
    result = solve(problem, C, relative=1e-3)
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("factor", [1e-8, 1e4, 1e8])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_one_feature_on_another_scale(binary_case, make_problem, factor, C):
    """Exact arithmetic in the reduced problem needs 10 to 100 iterations here."""
    problem = make_problem(binary_case, seed=5)
    problem = replace(problem, X=problem.X * np.append(factor, np.ones(4)))
    result = solve(problem, C, relative=1e-3)
    assert_honest(problem, C, result)
    assert result.status is Status.CONVERGED


# -- degenerate problems --------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("free_bias", [False, True])
def test_all_zero_data(case, make_problem, step, free_bias):
    if free_bias and case.classes:
        pytest.skip("this risk has no bias")
    problem = make_problem(case, seed=6, free_bias=free_bias)
    problem = replace(problem, X=np.zeros_like(problem.X))
    result = solve(problem, 10.0, step, relative=1e-9)
    assert result.status is Status.CONVERGED
    assert result.n_iter == 1
    np.testing.assert_array_equal(result.w, 0.0)
    assert np.isfinite(result.bias)
    assert_honest(problem, 10.0, result)


@pytest.mark.parametrize("step", STEPS)
def test_duplicated_rows_and_columns(case, make_problem, step):
    """Twice the rows: the same mean. Twice a column: as if it were √2 times as large."""
    problem = make_problem(case, seed=7)
    rows = replace(
        problem,
        X=np.repeat(problem.X, 2, axis=0),
        labels=np.repeat(problem.labels, 2),
        weights=np.repeat(problem.weights, 2),
    )
    columns = replace(problem, X=np.hstack([problem.X, problem.X]))
    wider = replace(problem, X=np.sqrt(2.0) * problem.X)
    one, two, three, four = (
        solve(p, 10.0, step, relative=1e-8).certificate.primal
        for p in (problem, rows, columns, wider)
    )
    assert two == pytest.approx(one, rel=2e-8)
    assert three == pytest.approx(four, rel=2e-8)


@pytest.mark.parametrize("step", STEPS)
def test_contradictory_labels(binary_case, make_problem, step):
    """Every row with both labels: nothing can be learnt, and w = 0 is optimal."""
    problem = make_problem(binary_case, seed=8)
    problem = replace(
        problem,
        X=np.vstack([problem.X, problem.X]),
        labels=np.concatenate([problem.labels, -problem.labels]),
        weights=np.ones(120),
    )
    result = solve(problem, 100.0, step, relative=1e-6)
    assert result.status is Status.CONVERGED
    lowest = 100.0 * problem.risk(np.zeros(5))
    assert result.certificate.primal == pytest.approx(lowest, rel=2e-6)


def test_one_row(binary_case, make_problem):
    """½|w|² + C·loss(<w, x>): a problem of one variable along x."""
    problem = make_problem(binary_case, seed=9, rows=2)
    problem = replace(problem, X=problem.X[:1], labels=np.ones(1), weights=np.ones(1))
    result = solve(problem, 10.0, relative=1e-9)
    x = problem.X[0]
    line = minimize_scalar(
        lambda k: problem.objective(k * x, 0.0, 10.0), bounds=(0.0, 50.0), options={"xatol": 1e-12}
    )
    best = min(line.fun, problem.objective(x / (x @ x), 0.0, 10.0))  # of a kink at 1 to all digits
    assert result.certificate.dual <= best * (1.0 + 1e-12)
    assert result.certificate.primal == pytest.approx(best, rel=1e-7)
