"""Newton's method against the bundle solver's optimum and formulas in numpy; how runs end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from cutplane import LinearSVC
from cutplane.bundle import AdaptivePosition, BundleSolver, StopRule
from cutplane.data import as_blocks
from cutplane.descent import AutoSolver, NewtonSolver, auto, curvature
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.loops import newton as loops
from cutplane.oracles import RowOracle
from cutplane.result import Status

BIASES = {"none": {}, "constant": {"constant": 2.0}, "free": {"free_bias": True}}
ROWS = 400


def solve(oracle, C, *, observer=None, dual_point=None, run=None, **rules):
    solver = NewtonSolver(oracle, C, StopRule(**rules), observer, dual_point)
    return solver.run(**(run or {}))


def optimum(oracle, C):
    return BundleSolver(oracle, C, StopRule(relative=1e-9), AdaptivePosition()).run().certificate


@pytest.fixture(scope="module", params=["hinge", "squared_hinge"])
def dual_case(request, all_cases):
    return all_cases[request.param]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [1e-3, 0.4, 40.0, 4000.0])
def test_reaches_the_optimum(dual_case, make_problem, bias, weighted, C):
    problem = make_problem(dual_case, seed=2, rows=ROWS, weighted=weighted, **BIASES[bias])
    oracle = problem.oracle(block_numbers=300)  # several blocks
    best = optimum(oracle, C)
    result = solve(oracle, C, relative=1e-8)
    assert result.status is Status.CONVERGED
    assert result.certificate.relative_gap <= 1e-8
    assert result.n_iter <= 60
    recomputed = problem.objective(result.w, result.bias, C)
    assert result.certificate.primal == pytest.approx(recomputed, rel=1e-10)
    for record in (*result.trace, result.certificate):
        assert record.dual <= best.primal * (1.0 + 1e-12)
        assert record.primal >= best.dual * (1.0 - 1e-12)
    assert np.all(np.diff(result.column("primal")) <= 0.0)
    assert np.all(np.diff(result.column("dual")) >= 0.0)


def test_separable_data(make_problem, all_cases):
    """The hinge vanishes: no row is inside but those that hold the margin."""
    problem = make_problem(all_cases["hinge"], seed=1, rows=ROWS, separable=True, free_bias=True)
    best = optimum(problem.oracle(), 1e4)
    result = solve(problem.oracle(), 1e4, relative=1e-6)
    assert result.status is Status.CONVERGED
    assert result.certificate.dual <= best.primal * (1 + 1e-12)


@pytest.mark.parametrize("layout", ["columns", "sparse", "unsorted"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bias", BIASES)
def test_layouts_agree(make_problem, all_cases, layout, dtype, bias):
    problem = make_problem(all_cases["hinge"], seed=3, rows=ROWS, **BIASES[bias])
    X = problem.X.astype(dtype)
    X[np.abs(X) < 0.3] = 0.0
    sparse = scipy.sparse.csr_matrix(X)
    forms = {"columns": np.asfortranarray(X), "sparse": sparse, "unsorted": _unsorted(sparse)}
    plain = problem.oracle()

    def run(x):
        matrix = as_blocks(x, block_numbers=500)
        oracle = RowOracle(matrix, plain.targets, plain.risk, SerialExecutor(), **BIASES[bias])
        return solve(oracle, 40.0, relative=1e-6)

    one, two = run(X), run(forms[layout])
    assert one.n_iter == two.n_iter
    np.testing.assert_allclose(one.w, two.w, rtol=1e-7, atol=1e-9)


def _unsorted(X):
    """The same rows, each from its last feature to its first."""
    other = X.copy()
    for k in range(X.shape[0]):
        row = slice(X.indptr[k], X.indptr[k + 1])
        other.indices[row], other.data[row] = X.indices[row][::-1], X.data[row][::-1]
    other.has_sorted_indices = False
    return other


def test_threads_change_nothing(dual_case, make_problem):
    problem = make_problem(dual_case, seed=4, rows=ROWS, free_bias=True)
    serial = solve(problem.oracle(block_numbers=200), 40.0, relative=1e-6)
    with ThreadExecutor(3) as executor:
        threaded = solve(problem.oracle(executor, block_numbers=200), 40.0, relative=1e-6)
    np.testing.assert_array_equal(serial.w, threaded.w)
    assert serial.certificate == threaded.certificate and serial.bias == threaded.bias


def test_blocks_on_disk_give_the_same_bits(dual_case, make_problem):
    problem = make_problem(dual_case, seed=4, rows=ROWS, free_bias=True)
    plain = problem.oracle(block_numbers=200)
    matrix = replace(plain.matrix, whole=None)
    other = RowOracle(matrix, plain.targets, plain.risk, SerialExecutor(), free_bias=True)
    one, two = (solve(oracle, 40.0, relative=1e-6) for oracle in (plain, other))
    np.testing.assert_array_equal(one.w, two.w)
    assert one.certificate == two.certificate


def test_weights_are_repeated_rows(make_problem, all_cases):
    problem = make_problem(all_cases["hinge"], seed=5, rows=ROWS, weighted=True)
    times = problem.weights.astype(int)
    repeated = replace(
        problem,
        X=np.repeat(problem.X, times, axis=0),
        labels=np.repeat(problem.labels, times),
        weights=np.ones(times.sum()),
    )
    one, two = (solve(p.oracle(), 40.0, relative=1e-10) for p in (problem, repeated))
    np.testing.assert_allclose(one.w, two.w, rtol=1e-4, atol=1e-5)
    assert one.certificate.primal == pytest.approx(two.certificate.primal, rel=1e-9)


def test_a_dual_point_is_a_start(make_problem, all_cases):
    problem = make_problem(all_cases["hinge"], seed=6, rows=ROWS)
    solver = NewtonSolver(problem.oracle(), 40.0, StopRule(relative=1e-6))
    cold = solver.run()
    warm = solve(
        problem.oracle(),
        40.0,
        relative=1e-6,
        dual_point=solver.dual_point(),
        run={"start": cold.w, "cuts": solver.active_cuts()},
    )
    assert warm.n_iter < 0.5 * cold.n_iter
    assert warm.certificate.relative_gap <= 1e-6


def test_stops(dual_case, make_problem):
    problem = make_problem(dual_case, seed=2, rows=ROWS)
    few = solve(problem.oracle(), 4000.0, max_iter=2)
    assert few.status is Status.MAX_ITER and few.n_iter == 2
    none = solve(problem.oracle(), 4000.0, time_limit=0.0)
    assert none.status is Status.TIME_LIMIT and none.n_iter == 1
    asked = solve(problem.oracle(), 4000.0, observer=lambda record: record.number == 3)
    assert asked.status is Status.STOPPED and asked.n_iter == 3


@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_extreme_penalties_are_honest(dual_case, make_problem, C):
    problem = make_problem(dual_case, seed=2, rows=ROWS, free_bias=True)
    best = optimum(problem.oracle(), C)
    result = solve(problem.oracle(), C, relative=1e-6)
    assert np.all(np.isfinite(result.w))
    assert result.certificate.dual <= best.primal * (1 + 1e-9)
    assert result.certificate.primal >= best.dual * (1 - 1e-9)


def test_rows_of_zeros(make_problem, all_cases):
    problem = make_problem(all_cases["hinge"], seed=1, rows=ROWS)
    result = solve(replace(problem, X=np.zeros_like(problem.X)).oracle(), 40.0, relative=1e-6)
    assert result.status is Status.CONVERGED
    assert not np.any(result.w)


def test_other_risks_are_refused(make_problem, all_cases):
    problem = make_problem(all_cases["logistic"])
    with pytest.raises(TypeError, match="Logistic"):
        solve(problem.oracle(), 1.0)


# -- its parts ------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1.0, np.inf])
def test_the_smoothed_loss(most):
    """Its derivative is π, by differences of max_π π·r − ½width(π − shift)²."""
    rng = np.random.default_rng(0)
    rows, width, bias = 50, 0.7, 0.2
    scores, ways = rng.normal(size=(2, rows)) * 2.0
    labels, weights = np.where(rng.random(rows) < 0.5, 1.0, -1.0), rng.random(rows)
    shift = rng.random(rows)
    grid = np.linspace(0.0, min(most, 20.0), 200_001)

    def risk(step):
        r = 1.0 - labels * (scores + step * ways + bias)
        values = [
            np.max(grid * a - 0.5 * width * (grid - s) ** 2) for a, s in zip(r, shift, strict=True)
        ]
        return float(weights @ values)

    def args(step):
        return step, bias, labels, shift, 1.0 / width, most, weights

    for step in (0.0, 0.4):
        slope = loops.derivative(scores, ways, *args(step))
        assert slope == pytest.approx((risk(step + 1e-3) - risk(step - 1e-3)) / 2e-3, rel=1e-3)
    moved, coef, inside = scores.copy(), np.empty(rows), np.empty(rows, np.uint8)
    slack = loops.move(moved, ways, *args(0.4)[:-1], weights, coef, inside)
    np.testing.assert_allclose(moved, scores + 0.4 * ways)
    assert coef @ ways == pytest.approx(loops.derivative(scores, ways, *args(0.4)))
    part = -labels * coef / weights
    np.testing.assert_array_equal(inside == 1, (part > 0.0) & (part < most))
    r = 1.0 - labels * (moved + bias)
    assert slack == pytest.approx(weights @ (np.maximum(r, 0.0) - part * r))
    sums = loops.bias_derivatives(moved, bias, labels, shift, 1.0 / width, most, weights)
    assert sums == pytest.approx((coef.sum(), weights @ inside))


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_matrix_follows_the_rows(make_problem, all_cases, bias, sparse):
    """Brought up to date or computed anew, it is Σ weight·x xᵀ over the rows inside."""
    problem = make_problem(
        all_cases["hinge"], seed=7, rows=ROWS, features=9, weighted=True, **BIASES[bias]
    )
    X = problem.X.astype(np.float64)
    X[np.abs(X) < 0.8] = 0.0
    matrix = as_blocks(scipy.sparse.csr_array(X) if sparse else X, block_numbers=300)
    plain = problem.oracle()
    oracle = RowOracle(matrix, plain.targets, plain.risk, SerialExecutor(), **BIASES[bias])
    constant = {"none": [], "constant": [2.0], "free": [1.0]}[bias]
    full = np.hstack([X, np.tile(constant, (ROWS, 1))])
    rng = np.random.default_rng(0)
    kept = curvature.Curvature(oracle)
    inside = (rng.random(ROWS) < 0.5).astype(np.uint8)
    for part in (0.0, 0.02, 0.02, 0.9, 0.0, *[0.01] * curvature.MOST_UPDATES):
        flip = rng.random(ROWS) < part
        inside[flip] = 1 - inside[flip]
        expected = (full * (plain.targets.weights * inside)[:, None]).T @ full
        np.testing.assert_allclose(kept.matrix(inside), expected, rtol=1e-12, atol=1e-10)


# -- chosen automatically -------------------------------------------------------------


def test_auto_chooses_it_for_short_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(20_000, 60, 0.15, "csr", rng=rng, dtype=np.float32)
    scores = X @ rng.normal(size=60)
    y = scores + 0.3 * rng.normal(size=len(scores)) > scores.mean()
    for settings in ({}, {"fit_intercept": False}, {"loss": "squared_hinge"}):
        model = LinearSVC(C=1.0, tol=1e-5, **settings).fit(X, y)
        other = LinearSVC(C=1.0, tol=1e-5, solver="ocas", **settings).fit(X, y)
        assert "newton" in model.result_.timings and "qp" not in model.result_.timings
        assert model.certificate_.dual <= other.certificate_.primal
        assert other.certificate_.dual <= model.certificate_.primal
        assert model.n_iter_ < other.n_iter_
        two = LinearSVC(C=1.0, tol=1e-5, n_jobs=2, **settings).fit(X, y)
        np.testing.assert_array_equal(model.coef_, two.coef_)
    monkeypatch.setattr(auto, "MOST_FEATURES", 50)
    assert "newton" not in LinearSVC(C=1.0).fit(X, y).result_.timings


@pytest.fixture
def many_rows_inside(monkeypatch):
    """Let a matrix take few of the rows inside."""
    monkeypatch.setattr(curvature, "WORK", 0)
    monkeypatch.setattr(curvature, "ROWS_PER_FEATURE", 4)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_sample_of_the_rows_stands_for_all(
    many_rows_inside, dual_case, make_problem, bias, sparse
):
    """The matrix is that of a sample; optimum and certificate are those of all rows."""
    problem = make_problem(dual_case, seed=3, rows=4000, features=6, weighted=True, **BIASES[bias])
    matrix = as_blocks(scipy.sparse.csr_array(problem.X) if sparse else problem.X)
    plain = problem.oracle()
    oracle = RowOracle(matrix, plain.targets, plain.risk, SerialExecutor(), **BIASES[bias])
    kept, inside = curvature.Curvature(oracle), np.ones(4000, np.uint8)
    sampled = kept.matrix(inside)
    count, changed = kept.changes(inside)
    assert 4 * 6 <= count <= 400 and changed == 0
    rows = kept._taken(inside) > 0
    constant = {"none": [], "constant": [2.0], "free": [1.0]}[bias]
    full = np.hstack([problem.X, np.tile(constant, (4000, 1))])[rows]
    weights = 2.0**kept._halvings * plain.targets.weights[rows]
    np.testing.assert_allclose(sampled, (full * weights[:, None]).T @ full, rtol=1e-5, atol=1e-3)
    C = 40.0
    best = optimum(oracle, C)
    result = solve(oracle, C, relative=1e-6)
    assert result.status is Status.CONVERGED
    assert result.certificate.dual <= best.primal and best.dual <= result.certificate.primal


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}])
def test_cutting_planes_have_a_look_at_long_rows(monkeypatch, settings):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 150)).astype(np.float32)
    X += 3.0 * rng.normal(size=(3000, 1))  # features have much in common
    y = (X - X.mean(axis=1, keepdims=True)) @ rng.normal(size=150) > 0
    options = {"C": 1.0, "tol": 1e-4, **settings}
    runs = [LinearSVC(n_jobs=n, **options).fit(X, y) for n in (1, 2)]
    timings = runs[0].result_.timings
    assert "newton" in timings and "qp" in timings
    assert ("passes" in timings) == ("fit_intercept" in settings)
    np.testing.assert_array_equal(runs[0].coef_, runs[1].coef_)
    other = LinearSVC(solver="ocas", **options).fit(X, y)
    assert runs[0].certificate_.dual <= other.certificate_.primal
    assert other.certificate_.dual <= runs[0].certificate_.primal
    assert runs[0].n_iter_ < other.n_iter_
    numbers = runs[0].result_.column("number")
    assert list(numbers) == list(range(1, runs[0].n_iter_ + 1))
    assert np.all(np.diff(runs[0].result_.column("dual")) >= 0.0)
    few = LinearSVC(max_iter=auto.GLANCE, **options)
    with pytest.warns(UserWarning, match="gap"):
        assert "newton" not in few.fit(X, y).result_.timings
    cuts = runs[0].result_.column("cuts")
    assert cuts[auto.GLANCE - 1] > 1 and cuts[auto.GLANCE] == 1
    monkeypatch.setattr(auto, "GLANCE_GAP", 1.0)
    model = LinearSVC(**options).fit(X, y)
    cuts = model.result_.column("cuts")
    assert "newton" in model.result_.timings
    assert cuts[auto.LOOK - 1] > 1 and cuts[auto.LOOK] == 1
    monkeypatch.setattr(auto, "LOOK_GAP", 1.0)  # any gap will do
    assert "newton" not in LinearSVC(**options).fit(X, y).result_.timings


@pytest.mark.parametrize("limit", [None, 2, 5, 9])
def test_the_bundle_takes_over_after_many_steps(monkeypatch, make_problem, all_cases, limit):
    monkeypatch.setattr(auto, "SMALL", 0)
    monkeypatch.setattr(auto, "SHORT_COLUMN", 0)
    monkeypatch.setattr(auto, "MOST_STEPS", 3)
    problem = make_problem(all_cases["hinge"], seed=2, rows=ROWS)
    rng = np.random.default_rng(0)
    stop = StopRule(relative=1e-9, max_iter=limit)
    solver = AutoSolver(problem.oracle(), 4000.0, stop, rng)
    result = solver.run()
    assert isinstance(solver._stage, NewtonSolver if limit == 2 else BundleSolver)
    if limit is None:
        assert result.status is Status.CONVERGED
    else:
        assert result.status is Status.MAX_ITER and result.n_iter == limit
    assert [record.number for record in result.trace] == list(range(1, result.n_iter + 1))


def test_the_bundle_takes_over_where_rounding_is_in_the_way(monkeypatch, make_problem, all_cases):
    monkeypatch.setattr(auto, "SMALL", 0)
    monkeypatch.setattr(auto, "SHORT_COLUMN", 0)
    problem = make_problem(all_cases["hinge"], seed=2, rows=ROWS)
    monkeypatch.setattr(NewtonSolver, "_step", lambda self, way, bias_way: 0.0)
    rng = np.random.default_rng(0)
    solver = AutoSolver(problem.oracle(), 4000.0, StopRule(relative=1e-6), rng)
    result = solver.run()
    assert result.status is Status.CONVERGED
    assert isinstance(solver._stage, BundleSolver)
    assert result.trace[0].number == 1 and "newton" in result.timings
