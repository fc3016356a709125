"""Coordinate descent against the bundle solver's optimum, and how its runs end."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from cutplane import LinearSVC
from cutplane.bundle import AdaptivePosition, BundleSolver, StopRule
from cutplane.data import as_blocks, blocks
from cutplane.descent import CoordinateSolver, passes
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.oracles import RowOracle
from cutplane.result import Status
from cutplane.risks import Targets

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
    with pytest.raises(TypeError, match="has no coordinate steps"):
        solve(oracle, 1.0, max_iter=1)


# -- the order of the rows, and threads beside the passes -----------------------------


def alike(rows=3_000, features=60, seed=0):
    """Sparse rows in 30 groups, each around a row of its own, one group after the other."""
    rng = np.random.default_rng(seed)
    centres = rng.random((30, features)) < 0.3
    X = (centres[np.arange(rows) * 30 // rows] ^ (rng.random((rows, features)) < 0.03)) * 1.0
    labels = np.sign(X @ rng.normal(size=features) + rng.normal(size=rows))
    return scipy.sparse.csr_matrix(X), labels


def make_oracle(X, labels, risk, executor=None, weights=None, **bias):
    targets = Targets.make(labels, weights)
    return RowOracle(
        as_blocks(X, block_numbers=5_000), targets, risk, executor or SerialExecutor(), **bias
    )


@pytest.mark.parametrize("copied", [False, True])
def test_rows_are_dealt_out_where_neighbours_are_alike(dual_case, copied, monkeypatch):
    monkeypatch.setattr(passes, "CACHED_NUMBERS", 0 if copied else 1 << 20)
    X, labels = alike()
    mixed = np.random.default_rng(1).permutation(len(labels))
    rng = np.random.default_rng(0)
    dealt = passes.Passes(make_oracle(X, labels, dual_case.make()), 1.0, rng)
    assert (dealt._order is not None) == copied
    expected = np.arange(len(labels)) if copied else passes._dealt(len(labels))
    np.testing.assert_array_equal(dealt._parts[0].rows, expected)
    oracle = make_oracle(X[mixed], labels[mixed], dual_case.make())
    plain = passes.Passes(oracle, 1.0, rng)
    assert plain._order is None
    np.testing.assert_array_equal(plain._parts[0].rows, np.arange(len(labels)))


@pytest.mark.parametrize("rows", [1, 5, 63, 64, 65, 1000])
def test_dealing_is_a_permutation(rows):
    order = passes._dealt(rows)
    np.testing.assert_array_equal(np.sort(order), np.arange(rows))
    if rows == 1000:  # neighbours come from far apart
        assert np.median(np.abs(np.diff(order))) == 16


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("bias", BIASES)
def test_dealt_rows_keep_their_dual_variables(dual_case, bias, copied, monkeypatch):
    """w is Σ α y x of the rows as they were, weights and all, also after a start from there."""
    monkeypatch.setattr(passes, "CACHED_NUMBERS", 0 if copied else 1 << 20)
    X, labels = alike()
    weights = np.random.default_rng(2).integers(0, 3, len(labels)).astype(float)
    oracle = make_oracle(X, labels, dual_case.make(), weights=weights, **BIASES[bias])
    C = 300.0
    run = passes.Passes(oracle, C, np.random.default_rng(0))
    assert (run._order is not None) == copied
    for _ in range(3):
        assert run.run(lambda: False)
    taken = run.snapshot()
    assert np.all(taken.coef[weights == 0.0] == 0.0) and taken.coef.max() > 0.0
    w = X.T @ (C / weights.sum() * taken.coef * labels)
    np.testing.assert_allclose(taken.w[: X.shape[1]], w, atol=1e-9)
    again = passes.Passes(oracle, C, np.random.default_rng(0))
    again.start(taken.coef, taken.w[: oracle.dimension])
    if bias != "free":
        assert again.dual == pytest.approx(run.dual, rel=1e-9)
    np.testing.assert_allclose(again.w, taken.w, atol=1e-9)
    np.testing.assert_allclose(again.snapshot().coef, taken.coef, rtol=1e-12)


def test_dealt_rows_get_to_the_optimum_sooner(monkeypatch, all_cases):
    X, labels = alike()
    oracle = make_oracle(X, labels, all_cases["hinge"].make())
    best = optimum(oracle, 300.0).dual

    def distance():
        run = passes.Passes(oracle, 300.0, np.random.default_rng(0))
        for _ in range(10):
            run.run(lambda: False)
        return best - (run.alpha.sum() - 0.5 * run.w @ run.w)

    dealt = distance()
    monkeypatch.setattr(passes, "ALIKE", np.inf)
    assert 0.0 < dealt < 0.5 * distance()


@pytest.mark.parametrize("bias", BIASES)
def test_dealt_rows_reach_the_optimum(all_cases, bias):
    X, labels = alike()
    oracle = make_oracle(X, labels, all_cases["hinge"].make(), **BIASES[bias])
    best = optimum(oracle, 300.0)
    result = solve(oracle, 300.0, relative=1e-4, max_iter=500)
    assert result.status is Status.CONVERGED
    assert result.certificate.dual <= best.primal * (1 + 1e-12)
    assert result.certificate.primal >= best.dual * (1 - 1e-12)


@pytest.mark.parametrize("bias", BIASES)
def test_passes_beside_the_certificate_change_nothing(dual_case, bias):
    X, labels = alike()
    runs = []
    for executor in (SerialExecutor(), ThreadExecutor(2), ThreadExecutor(4)):
        with executor:
            oracle = make_oracle(X, labels, dual_case.make(), executor, **BIASES[bias])
            solver = CoordinateSolver(
                oracle, 30.0, StopRule(relative=1e-3, max_iter=40), np.random.default_rng(0)
            )
            runs.append((solver.run(), solver.dual_point(), solver.active_cuts()[0]))
    for result, dual_point, cut in runs[1:]:
        np.testing.assert_array_equal(result.w, runs[0][0].w)
        np.testing.assert_array_equal(dual_point, runs[0][1])
        np.testing.assert_array_equal(cut.a, runs[0][2].a)
        for name in ("primal", "dual", "trial", "step"):
            np.testing.assert_array_equal(result.column(name), runs[0][0].column(name))


def test_the_last_bound_is_exact(dual_case, all_cases):
    """It is that of the dual point, from a pass over all rows, though others are estimates."""
    X, labels = alike()
    oracle = make_oracle(X, labels, dual_case.make())
    solver = CoordinateSolver(oracle, 30.0, StopRule(relative=1e-4), np.random.default_rng(0))
    result = solver.run()
    assert result.status is Status.CONVERGED
    cut = oracle.dual_cut(-labels * solver.dual_point())
    exact = 30.0 * cut.offset - 0.5 * 30.0**2 * float(cut.a @ cut.a)
    assert result.certificate.dual == pytest.approx(exact, rel=1e-14)
    for record in result.trace[:-1]:
        assert record.dual <= exact


@pytest.mark.parametrize("at", [1, 3])
def test_an_interrupt_stops_the_passes_as_well(all_cases, at):
    X, labels = alike()

    def interrupt(record):
        if record.number == at:
            raise KeyboardInterrupt

    with ThreadExecutor(2) as executor:
        oracle = make_oracle(X, labels, all_cases["hinge"].make(), executor)
        result = solve(oracle, 300.0, relative=1e-9, observer=interrupt)
        assert result.status is Status.INTERRUPTED and result.n_iter == at
        assert executor.run(lambda k: k, 4) == [0, 1, 2, 3]  # nobody is busy


@pytest.mark.parametrize("bias", ["none", "constant"])
def test_a_start_from_a_dual_point_begins_with_its_certificate(dual_case, bias):
    """At the optimum it is the end; elsewhere rows that it finds held are left out at once."""
    X, labels = alike()
    oracle = make_oracle(X, labels, dual_case.make(), **BIASES[bias])
    rules, rng = StopRule(relative=1e-3), np.random.default_rng(0)
    first = CoordinateSolver(oracle, 30.0, rules, rng)
    w = first.run().w
    again = CoordinateSolver(oracle, 30.0, rules, rng, dual_point=first.dual_point())
    result = again.run(w)
    assert result.status is Status.CONVERGED and result.n_iter == 1
    assert "passes" not in result.timings
    other = CoordinateSolver(oracle, 60.0, rules, rng, dual_point=first.dual_point())
    assert other.run(w).status is Status.CONVERGED
    assert optimum(oracle, 60.0).primal >= other.dual * (1 - 1e-9)


def test_a_verdict_at_once_leaves_out_rows_that_are_held(all_cases):
    X, labels = alike()
    oracle = make_oracle(X, labels, all_cases["hinge"].make())
    run, again = (passes.Passes(oracle, 30.0, np.random.default_rng(0)) for _ in range(2))
    for _ in range(20):
        run.run(lambda: False)
    taken = run.snapshot()
    again.start(taken.coef, taken.w)
    verdict = again.judge(again.snapshot(), X @ taken.w)
    again.settle(verdict, None)
    assert len(again._parts[0].active) == len(labels)  # they may have been visited since
    again.settle(verdict, None, passes.AT_ONCE)
    left_out = np.setdiff1d(np.arange(len(labels)), again._parts[0].active)
    held = verdict.violation < -passes.AT_ONCE * verdict.worst
    np.testing.assert_array_equal(left_out, np.flatnonzero(held))
    assert len(left_out) > 0


def test_norms_are_computed_once_for_a_matrix(all_cases):
    X, labels = alike()
    oracle = make_oracle(X, labels, all_cases["hinge"].make())
    squares = passes.squared_norms(oracle)
    np.testing.assert_allclose(squares, np.asarray(X.multiply(X).sum(axis=1)).ravel(), rtol=1e-12)
    again = passes.squared_norms(oracle)
    assert np.shares_memory(squares, again)


@pytest.mark.parametrize("solver", ["auto", "dcd"])
@pytest.mark.parametrize("C", [0.02, 0.2])
def test_values_that_are_equal_in_rows_are_read_once(monkeypatch, solver, C):
    rng = np.random.default_rng(5)
    X = scipy.sparse.csr_array((rng.random((4000, 90)) < 0.5).astype(np.float32))
    labels = np.sign(X @ rng.normal(size=90) + rng.normal(size=4000))
    settings = {"C": C, "solver": solver, "fit_intercept": False, "random_state": 0}
    model = LinearSVC(**settings).fit(X, labels)
    monkeypatch.setattr(blocks, "equal_in_rows", lambda *_: False)
    other = LinearSVC(**settings).fit(X, labels)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.certificate_ == other.certificate_


@pytest.mark.parametrize("bias", BIASES)
def test_w_stays_that_of_the_dual_point(dual_case, bias):
    """What balances a cut for a free bias is no rounding of w: it once moved w by some percent."""
    rng = np.random.default_rng(4)
    X, labels = rng.normal(size=(80, 12)), rng.choice([-1.0, 1.0], 80)
    labels[:55] = 1.0
    oracle = make_oracle(X, labels, dual_case.make(), **BIASES[bias])
    off = []

    def observer(record):
        taken = solver._snapshot
        exact = X.T @ (labels * taken.alpha)
        off.append(np.abs(taken.w[:12] - exact).max() / (np.abs(X).T @ taken.alpha).max())

    stop = StopRule(relative=1e-6, max_iter=20)
    solver = CoordinateSolver(oracle, 5.0, stop, np.random.default_rng(0), observer)
    solver.run()
    assert len(off) >= 2
    assert max(off) <= 1e-12
