"""Newton's method, interior point steps and the compiled call against cvxpy; how runs end."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

from cutplane.data import as_blocks
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.loops import smoothed as loops
from cutplane.losses import LOSSES
from cutplane.objective import RowOracle
from cutplane.result import Status
from cutplane.risks import LossRisk, Targets
from cutplane.solvers import NewtonSolver, SmallNewtonSolver, StopRule, constants, curvature
from cutplane.solvers import newton as module

BIASES = {"none": {}, "constant": {"constant": 2.0}, "free": {"free_bias": True}}
LAYOUTS = {
    "dense": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "columns": np.asfortranarray,
    "csr": scipy.sparse.csr_matrix,
    "shuffled": lambda X: shuffled(X),
}
ROWS, FEATURES = 120, 6


def shuffled(X):
    """Sparse rows whose columns are in no order."""
    csr = scipy.sparse.csr_matrix(X)
    for i in range(len(X)):
        part = slice(csr.indptr[i], csr.indptr[i + 1])
        csr.indices[part] = csr.indices[part][::-1]
        csr.data[part] = csr.data[part][::-1]
    csr.has_sorted_indices = False
    return csr


def problem(seed=0, rows=ROWS, features=FEATURES, loss="hinge"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.7)
    X = X.astype(np.float32).astype(float)  # the same numbers in every layout
    y = np.where(X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=rows) > 0.3, 1.0, -1.0)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], rows)
    if LOSSES[loss].regression:
        y = 20.0 + 3.0 * (X[:, 0] - X[:, 1]) + y + rng.normal(size=rows)
    return X, y, weights


def make_oracle(X, y, weights=None, loss="hinge", bias="free", threads=1, **blocks):
    executor = SerialExecutor() if threads == 1 else ThreadExecutor(threads)
    matrix = as_blocks(X, **blocks)
    return RowOracle(
        matrix, Targets.make(y, weights), LossRisk(LOSSES[loss]()), executor, **BIASES[bias]
    )


def objective(X, y, weights, case, bias, C, w, b):
    X = X.toarray() if scipy.sparse.issparse(X) else X
    scores = X @ w[: X.shape[1]] + b
    if bias == "constant":
        scores = scores + 2.0 * w[-1]
    return 0.5 * w @ w + C * case.risk(scores, y, weights)


@pytest.fixture(scope="module")
def optima(optimum):
    known = {}

    def find(loss, bias, C):
        if (loss, bias, C) not in known:
            known[loss, bias, C] = optimum(*problem(loss=loss), loss, bias, C)
        return known[loss, bias, C]

    return find


def run(solver, oracle, C, **rules):
    return solver(oracle, C, StopRule(**{"relative": 1e-6, **rules})).run()


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", [NewtonSolver, SmallNewtonSolver])
def test_reaches_the_optimum(all_cases, solver, loss, bias, C, optima):
    X, y, weights = problem(loss=loss)
    result = run(solver, make_oracle(X, y, weights, loss, bias, block_numbers=100), C)
    best = optima(loss, bias, C)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal == pytest.approx(best, rel=2e-6)
    assert result.certificate.dual <= best * (1.0 + 1e-7)
    own = objective(X, y, weights, all_cases[loss], bias, C, result.w, result.bias)
    assert result.certificate.primal == pytest.approx(own, rel=1e-10)
    assert np.all(np.diff(result.column("primal")) <= 0.0)
    assert np.all(np.diff(result.column("dual")) >= 0.0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", [NewtonSolver, SmallNewtonSolver])
def test_every_layout(solver, layout, optima):
    X, y, weights = problem()
    result = run(solver, make_oracle(LAYOUTS[layout](X), y, weights), 10.0)
    assert result.n_iter <= 20
    assert result.certificate.primal == pytest.approx(optima("hinge", "free", 10.0), rel=2e-6)


@pytest.mark.parametrize("C", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "huberised_hinge", "quantile", "huber"])
def test_interior_point_steps(monkeypatch, optimum, loss, bias, C):
    X, y, weights = problem(seed=3, loss=loss)
    solver = NewtonSolver(make_oracle(X, y, weights, loss, bias), C, StopRule(relative=1e-4))
    monkeypatch.setattr(module, "MOST_INSIDE", 40)
    solver._begin_at(None, solver.trial, solver.oracle.new_point())
    assert solver._go_inside() is Status.CONVERGED
    assert len(solver.trace) <= 40
    assert solver.best.primal == pytest.approx(optimum(X, y, weights, loss, bias, C), rel=2e-4)


def test_hard_margin():
    """Rows on the margin block Newton's steps; interior point steps get there at any C."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 20))
    y = np.where(X @ rng.normal(size=20) > 0.0, 1.0, -1.0)
    results = [run(NewtonSolver, make_oracle(X, y), C, relative=1e-4) for C in (1e6, 1e9, 1e12)]
    assert all(result.status is Status.CONVERGED for result in results)
    primals = [result.certificate.primal for result in results]
    assert primals == pytest.approx([primals[0]] * 3, rel=3e-4)


@pytest.mark.parametrize("cost", [0.0, 1.0, 1e12])
def test_when_interior_point_steps_begin(monkeypatch, optima, cost):
    """At once where they are less work, after a step of as much work, or not at all."""
    monkeypatch.setattr(module, "interior_cost", lambda oracle, sums=0: cost)
    monkeypatch.setattr(module, "expected_cost", lambda *_: 0.5)
    X, y, weights = problem()
    solver = NewtonSolver(make_oracle(X, y, weights), 10.0, StopRule(relative=1e-6))
    result = solver.run()
    assert result.status is Status.CONVERGED
    assert result.certificate.primal == pytest.approx(optima("hinge", "free", 10.0), rel=2e-6)
    assert ("newton" in result.timings) == (cost > 0.0)
    assert ("interior" in result.timings) == (cost < 2.0)


def test_newtons_steps_go_on_from_a_good_point(monkeypatch):
    """At first they do not get below the start. Only their work may end them."""
    monkeypatch.setattr("cutplane.solvers.base.STALLED_ITERATIONS", 1)
    monkeypatch.setattr(module, "interior_cost", lambda oracle, sums=0: 1e12)
    X, y, weights = problem()
    known = run(NewtonSolver, make_oracle(X, y, weights), 1e4, relative=1e-4)
    solver = NewtonSolver(make_oracle(X, y, weights), 1e4, StopRule(relative=1e-6))
    result = solver.run(start=known.w)
    assert result.status is Status.CONVERGED
    assert "interior" not in result.timings
    first, later = result.trace[2], result.trace[5]
    assert (first.primal, first.dual) == (later.primal, later.dual)


def test_interior_point_steps_where_newtons_stall(monkeypatch, optima):
    """And they may be behind what is known for a while."""
    monkeypatch.setattr("cutplane.solvers.base.STALLED_ITERATIONS", 1)
    monkeypatch.setattr(NewtonSolver, "_step", lambda *_: (0.0, 0.0))
    X, y, weights = problem()
    result = run(NewtonSolver, make_oracle(X, y, weights), 10.0)
    assert result.status is Status.CONVERGED
    assert "interior" in result.timings
    assert result.certificate.primal == pytest.approx(optima("hinge", "free", 10.0), rel=2e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_features_in_unlike_units(loss):
    """Rounding in a feature of large numbers does not hide those of small ones."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(1000, 12))
    y = np.where(X @ rng.normal(size=12) + rng.normal(size=1000) > 0.0, 1.0, -1.0)
    oracle = make_oracle(X * np.logspace(-2, 7, 12), y, loss=loss)
    result = run(NewtonSolver, oracle, 1e7, relative=1e-4)
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("bias", BIASES)
def test_rows_with_room_make_up_for_clipped_ones(monkeypatch, bias):
    X, y, weights = problem(rows=1500, features=60)
    oracle = make_oracle(X, y, weights, "squared_hinge", bias)
    best = run(NewtonSolver, oracle, 1e7, relative=1e-9).certificate.primal
    result = run(NewtonSolver, oracle, 1e7, relative=1e-3)
    assert result.status is Status.CONVERGED
    assert result.certificate.dual <= best
    monkeypatch.setattr(
        NewtonSolver, "_make_up", lambda self, rest, directions: (0, np.zeros_like(rest))
    )
    assert result.n_iter < run(NewtonSolver, oracle, 1e7, relative=1e-3).n_iter


def test_rows_near_an_end_of_the_domain_count_less():
    """Squared hinge, u ≤ 0: a step of no more than half the room."""
    loss = LOSSES["squared_hinge"]()
    coef, bends = np.array([-4.0, -4.0, -4.0, 0.0]), np.full(4, 2.0)
    ways, out = np.array([0.5, -2.0, 4.0, 1.0]), np.empty(4)
    labels, weights = np.ones(4), np.ones(4)
    over = loops.weigh_by_room(loss, 1.0, coef, bends, ways, labels, weights, -math.inf, 0.0, out)
    np.testing.assert_allclose(out, [2.0, 1.0, 0.5, 0.0])
    assert over == 2


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bias", BIASES)
def test_directions_solve_the_equation(monkeypatch, bias, layout):
    """A factor and conjugate gradients, against a dense solution."""
    monkeypatch.setattr(constants, "LITTLE", 1e-12)
    X, y, weights = problem()
    oracle = make_oracle(LAYOUTS[layout](X), y, weights, "logistic", bias)
    rng = np.random.default_rng(5)
    bends = rng.random(ROWS) * (rng.random(ROWS) < 0.7)
    last = {"none": 0.0, "constant": 2.0, "free": 1.0}[bias]
    columns = np.column_stack([X, np.full(ROWS, last)]) if last else X
    matrix = columns.T @ (bends[:, None] * columns) + np.eye(columns.shape[1])
    if bias == "free":
        matrix[-1, -1] -= 1.0
    gradient = rng.normal(size=len(matrix))
    found = np.linalg.solve(matrix, -gradient)
    factor = curvature.Factor(oracle)
    gradients = curvature.ConjugateGradients(oracle, lambda: False, 10**6)
    for directions in (factor, gradients):
        directions.prepare(bends)
        direction, scores = directions.solve(gradient), np.empty(ROWS)
        np.testing.assert_allclose(direction, found, rtol=1e-5, atol=1e-7)
        directions.score(direction, scores)
        np.testing.assert_allclose(scores, columns @ direction, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("C", [0.1, 1e4])
def test_conjugate_gradients_instead_of_a_factor(monkeypatch, optimum, bias, C):
    monkeypatch.setattr(curvature, "MATRIX_BYTES", 0)
    X, y, weights = problem(loss="logistic")
    results = []
    for threads in (1, 2):
        oracle = make_oracle(X, y, weights, "logistic", bias, threads=threads)
        results.append(run(NewtonSolver, oracle, C, relative=1e-6))
    expected = optimum(X, y, weights, "logistic", bias, C)
    assert results[0].certificate.primal == pytest.approx(expected, rel=2e-6)
    assert results[0].status is Status.CONVERGED
    assert results[0].w.tobytes() == results[1].w.tobytes()


def test_a_factor_comes_in_place_of_dear_conjugate_gradients(monkeypatch, optimum):
    made = []

    class Noting(curvature.Factor):
        def prepare(self, *arguments, **options):
            made.append(self)
            return super().prepare(*arguments, **options)

    monkeypatch.setattr(curvature, "Factor", Noting)
    monkeypatch.setattr(curvature, "factor_cost", lambda oracle: 4.0 * oracle.matrix.n_stored + 2.0)
    X, y, weights = problem(loss="logistic")
    result = run(NewtonSolver, make_oracle(X, y, weights, "logistic", "free"), 1e4, relative=1e-6)
    assert 1 <= len(made) < result.n_iter
    expected = optimum(X, y, weights, "logistic", "free", 1e4)
    assert result.certificate.primal == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES)
def test_threads_do_not_show(monkeypatch, loss, layout):
    monkeypatch.setattr(curvature, "PART_WORK", 0.1)  # several parts
    monkeypatch.setattr(constants, "SAMPLE", 0.5)
    X, y, weights = problem(rows=40_000, loss=loss)
    ways = []
    for threads in (1, 2):
        oracle = make_oracle(LAYOUTS[layout](X), y, weights, loss, threads=threads)
        ways.append(run(NewtonSolver, oracle, 1e4, relative=1e-5))
    assert ways[0].w.tobytes() == ways[1].w.tobytes()
    assert ways[0].certificate == ways[1].certificate


@pytest.mark.parametrize("solver", [NewtonSolver, SmallNewtonSolver])
def test_weight_two_is_the_row_twice(solver):
    X, y, _ = problem()
    weights = np.where(np.arange(ROWS) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(ROWS), weights.astype(int))
    once = run(solver, make_oracle(X, y, weights), 50.0, relative=1e-9)
    copied = run(solver, make_oracle(X[twice], y[twice]), 50.0, relative=1e-9)
    np.testing.assert_allclose(once.w, copied.w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("solver", [NewtonSolver, SmallNewtonSolver])
@pytest.mark.parametrize("loss", LOSSES)
def test_degenerate_rows(solver, loss):
    X, y, _ = problem(rows=40, loss=loss)
    X[:10] = 0.0
    X[10:20] = X[20:30]
    y[10:20] = -y[20:30]
    one = X[:, :1]
    for data in (X, one, np.zeros_like(X)):
        result = run(solver, make_oracle(data, y, loss=loss), 5.0)
        assert result.status is Status.CONVERGED
        assert result.certificate.gap >= 0.0


@pytest.mark.parametrize("solver", [NewtonSolver, SmallNewtonSolver])
def test_limits(solver):
    X, y, weights = problem()
    result = run(solver, make_oracle(X, y, weights), 1e4, relative=0.0, max_iter=3)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 3
    late = run(solver, make_oracle(X, y), 1e4, time_limit=0.0)
    assert (late.status, late.n_iter) == (Status.TIME_LIMIT, 1)


@pytest.mark.parametrize("last", [1, 4])
@pytest.mark.parametrize("solver", [NewtonSolver, SmallNewtonSolver])
def test_a_stop_is_the_same_as_a_limit(solver, last):
    """The observer may look at every step, so that it is made by itself, to the same bits."""
    X, y, weights = problem()
    oracle = make_oracle(X, y, weights)
    limited = run(solver, oracle, 1e4, relative=1e-9, max_iter=last)
    rule = StopRule(relative=1e-9)
    stopped = solver(oracle, 1e4, rule, lambda record: record.number == last).run()
    assert (stopped.status, stopped.n_iter) == (Status.STOPPED, last)

    def interrupt(record):
        if record.number == last:
            raise KeyboardInterrupt

    interrupted = solver(oracle, 1e4, rule, interrupt).run()
    assert (interrupted.status, interrupted.n_iter) == (Status.INTERRUPTED, last)
    for result in (stopped, interrupted):
        assert result.w.tobytes() == limited.w.tobytes()
        assert result.certificate == limited.certificate


@pytest.mark.parametrize("solver", [NewtonSolver, SmallNewtonSolver])
def test_dual_point_is_behind_the_bound(solver):
    X, y, weights = problem()
    oracle = make_oracle(X, y, weights)
    stage = solver(oracle, 30.0, StopRule(relative=1e-6))
    bound = stage.run().certificate.dual
    coef = oracle.risk.dual_coef(stage.dual_point(), oracle.targets)
    for cut in (oracle.dual_cut(coef), *stage.active_cuts()):
        dual = 30.0 * cut.offset - 0.5 * 900.0 * cut.a @ cut.a
        assert dual == pytest.approx(bound, rel=1e-9)


def test_a_start_near_the_end_is_used():
    X, y, weights = problem()
    oracle = make_oracle(X, y, weights)
    first = NewtonSolver(oracle, 30.0, StopRule(relative=1e-6))
    found = first.run()
    again = NewtonSolver(oracle, 33.0, StopRule(relative=1e-6), dual_point=first.dual_point())
    assert again.run(start=found.w).n_iter <= found.n_iter


def rows_with_rare_features():
    """20,000 rows of ones: 150 features in every fifth row and 150 in about four rows each."""
    rng = np.random.default_rng(0)
    often, rarely = (
        scipy.sparse.random_array((20_000, 150), density=density, rng=rng, format="csr")
        for density in (0.2, 2e-4)
    )
    X = scipy.sparse.hstack([often, rarely], format="csr")
    X.data[:] = 1.0
    return X, X @ rng.normal(size=300), rng


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_rare_features_that_a_sample_of_rows_misses(loss):
    """Directions are far too long in them: 67 and 1348 steps if the samples do not grow."""
    X, scores, rng = rows_with_rare_features()
    y = np.where(scores + rng.logistic(size=len(scores)) > np.median(scores), 1.0, -1.0)
    found = NewtonSolver(
        make_oracle(X, y, np.ones(len(y)), loss, "free"), 1e4 * len(y), StopRule(relative=1e-3)
    ).run()
    assert found.status is Status.CONVERGED
    assert found.n_iter <= 20


def test_short_steps_on_hard_margins_enlarge_the_sample():
    """96 steps, half of them interior point steps, if the sample does not grow."""
    X, scores, _ = rows_with_rare_features()
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    found = NewtonSolver(make_oracle(X, y), 1e6, StopRule(relative=1e-3)).run()
    assert found.status is Status.CONVERGED
    assert "interior" not in found.timings
    assert found.n_iter <= 60


@pytest.mark.parametrize("layout", ["dense", "columns", "csr"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_features_of_unlike_scales(loss, bias, layout):
    """A huge C in some units and a small one in others takes hardly more steps."""
    X, y, weights = problem(rows=400, loss=loss)
    X *= 10.0 ** np.arange(-5, 6, 2)
    C = 1e4 * len(y)
    result = run(
        NewtonSolver, make_oracle(LAYOUTS[layout](X), y, weights, loss, bias), C, relative=1e-3
    )
    assert result.status is Status.CONVERGED
    assert result.n_iter <= (40 if loss == "hinge" else 15)
    constant = BIASES[bias].get("constant", 0.0)
    w = result.w[:FEATURES]
    margins = y * (X @ w + (constant * result.w[-1] if constant else result.bias))
    losses = np.maximum(0.0, 1.0 - margins) ** (2 if loss == "squared_hinge" else 1)
    if loss == "logistic":
        losses = np.logaddexp(0.0, -margins)
    objective = 0.5 * result.w @ result.w + C * weights @ losses / weights.sum()
    assert result.certificate.primal == pytest.approx(objective, rel=1e-6)


def test_the_step_that_is_left_proves_the_point_before_it():
    """The last direction gives a bound; the step itself is not taken."""
    X, y, weights = problem(rows=400, loss="logistic")
    C = 1e7
    oracle = make_oracle(X, y, weights, "logistic")
    solver = NewtonSolver(oracle, C, StopRule(relative=1e-3))
    result = solver.run()
    assert result.status is Status.CONVERGED
    assert solver.trace[-1].step == 0.0
    before = make_oracle(X, y, weights, "logistic")
    limited = run(NewtonSolver, before, C, relative=1e-3, max_iter=result.n_iter - 1)
    assert limited.w.tobytes() == result.w.tobytes()
    assert limited.certificate.relative_gap > 1e-3 >= result.certificate.relative_gap


def slopes(kind, t):
    """Derivatives, which rise, of convex functions of a step."""
    return {
        "exponential": lambda: 0.01 * t - math.exp(-t),
        "quadratic": lambda: t - 1.0,
        "kink": lambda: -1.0 if t < 0.01 else 0.05 + 0.5 * t,
        "far": lambda: -1.0 + 1e-3 * t,
    }[kind]()


@pytest.mark.parametrize("longest", [1.0, module.LONGEST])
@pytest.mark.parametrize("kind", ["exponential", "quadratic", "kink", "far"])
def test_steps_lead_downhill_and_no_farther_than_allowed(kind, longest):
    step = module.line_step(lambda t: slopes(kind, t), slopes(kind, 0.0), longest)
    assert 0.0 < step <= longest
    assert step == 1.0 or slopes(kind, step) <= 0.0 or step == pytest.approx(0.01, rel=0.05)
    if kind in ("exponential", "far"):  # the slope falls at 1
        assert step == 1.0 if longest == 1.0 else step > 1.5


def test_no_step_uphill():
    assert module.line_step(lambda t: 1.0 + t, 1.0) == 0.0
