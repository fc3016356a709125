"""The solver that chooses: certified whatever it chooses, and the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from cutplane import LinearSVC, linear_svc_path
from cutplane.bundle import AdaptivePosition, BundleSolver, StopRule
from cutplane.exec import SerialExecutor
from cutplane.oracles import RowOracle
from cutplane.result import Status
from cutplane.solvers import AutoSolver
from cutplane.solvers import choose as auto

BIASES = {"none": {}, "constant": {"constant": 2.0}, "free": {"free_bias": True}}
ROWS = 300


@pytest.fixture
def choose(monkeypatch):
    """Let small problems count as large, and set what the choice depends on."""

    def patch(**constants):
        monkeypatch.setattr(auto, "SMALL", 0)
        monkeypatch.setattr(auto, "MOST_FEATURES", 0)  # no Newton, which has tests of its own
        for name, value in constants.items():
            monkeypatch.setattr(auto, name, value)

    return patch


def solve(oracle, C, *, observer=None, run=None, dual_point=None, **rules):
    rng = np.random.default_rng(0)
    solver = AutoSolver(oracle, C, StopRule(**rules), rng, observer, dual_point)
    return solver, solver.run(**(run or {}))


def optimum(oracle, C):
    return BundleSolver(oracle, C, StopRule(relative=1e-8), AdaptivePosition()).run().certificate


@pytest.fixture(scope="module", params=["hinge", "squared_hinge"])
def dual_case(request, all_cases):
    return all_cases[request.param]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.4, 40.0, 4000.0])
@pytest.mark.parametrize("to_come", [60, 0], ids=["patient", "impatient"])
def test_the_bounds_hold_in_every_stage(
    choose, dual_case, make_problem, bias, weighted, C, to_come
):
    choose(SHORT_COLUMN=1e9, TO_COME_SHORT=to_come or 1, KNOWN=4)
    problem = make_problem(dual_case, seed=2, rows=ROWS, weighted=weighted, **BIASES[bias])
    oracle = problem.oracle(block_numbers=300)
    best = optimum(oracle, C)
    _, result = solve(oracle, C, relative=1e-6)
    assert result.status is Status.CONVERGED
    assert result.certificate.relative_gap <= 1e-6
    recomputed = problem.objective(result.w, result.bias, C)
    assert result.certificate.primal == pytest.approx(recomputed, rel=1e-10)
    for record in (*result.trace, result.certificate):
        assert record.dual <= best.primal * (1.0 + 1e-12)
        assert record.primal >= best.dual * (1.0 - 1e-12)
    assert [record.number for record in result.trace] == list(range(1, result.n_iter + 1))
    assert np.all(np.diff(result.column("primal")) <= 0.0)
    assert np.all(np.diff(result.column("dual")) >= 0.0)
    assert np.all(np.diff(result.column("seconds")) >= 0.0)


def test_descent_gives_way_and_hands_over(choose, all_cases, make_problem):
    choose(SHORT_COLUMN=1e9, TO_COME_SHORT=1)
    problem = make_problem(all_cases["hinge"], seed=2, rows=ROWS)
    solver, result = solve(problem.oracle(), 4000.0, relative=1e-6)
    assert isinstance(solver._stage, BundleSolver)
    assert {"passes", "qp"} <= set(result.timings)
    # What descent has reached is where the bundle starts.
    change = next(k for k, record in enumerate(result.trace) if record.cuts > 1)
    assert change >= auto.KNOWN
    assert result.trace[change].primal <= result.trace[change - 1].primal
    assert result.trace[change].dual >= result.trace[change - 1].dual
    assert solver.active_cuts() and solver.dual_point() is None


@pytest.mark.parametrize(
    ("constants", "C", "first"),
    [
        ({"SHORT_COLUMN": 1e9}, 4000.0, "passes"),
        ({"SHORT_COLUMN": 0}, 1e-3, "passes"),
        ({"SHORT_COLUMN": 0}, 1e6, "qp"),
    ],
    ids=["short columns", "small C", "neither"],
)
def test_who_goes_first(choose, all_cases, make_problem, constants, C, first):
    choose(**constants)
    problem = make_problem(all_cases["hinge"], seed=3, rows=ROWS)
    _, result = solve(problem.oracle(), C, relative=1e-2, max_iter=1)
    assert first in result.timings
    assert len({"passes", "qp"} & set(result.timings)) == 1


def test_the_choice_weighs_rows_by_their_penalty(choose, all_cases, make_problem):
    """κ counts C_i·|x_i|²: heavier rows and longer ones are harder alike."""
    choose(SHORT_COLUMN=0)
    problem = make_problem(all_cases["hinge"], seed=3, rows=ROWS)
    plain = problem.oracle()
    squares = np.sum(np.asarray(problem.X, dtype=float) ** 2, axis=1)
    C = auto.SMALL_PENALTY / squares.mean() * ROWS

    def to_come(C):
        return AutoSolver(plain, C, StopRule(), np.random.default_rng(0))._to_come

    assert to_come(0.99 * C) == auto.TO_COME_LONG
    assert to_come(C / 0.99) == 0


@pytest.mark.parametrize("limit", [1, 3, 6, 9])
def test_iterations_of_both_stages_count(choose, all_cases, make_problem, limit):
    choose(SHORT_COLUMN=1e9, TO_COME_SHORT=1)
    problem = make_problem(all_cases["hinge"], seed=2, rows=ROWS)
    _, result = solve(problem.oracle(), 4000.0, relative=1e-12, max_iter=limit)
    assert result.n_iter == limit
    assert result.status is Status.MAX_ITER


def test_an_observer_stops_either_stage(choose, all_cases, make_problem):
    choose(SHORT_COLUMN=1e9, TO_COME_SHORT=1)
    problem = make_problem(all_cases["hinge"], seed=2, rows=ROWS)
    for last in (2, 8):
        _, result = solve(
            problem.oracle(), 4000.0, relative=1e-12, observer=lambda r, n=last: r.number >= n
        )
        assert result.status is Status.STOPPED
        assert result.n_iter == last


@pytest.mark.parametrize("at", [2, 8])
def test_an_interrupt_keeps_the_best_point(choose, all_cases, make_problem, at):
    choose(SHORT_COLUMN=1e9, TO_COME_SHORT=1)
    problem = make_problem(all_cases["hinge"], seed=2, rows=ROWS)

    def interrupt(record):
        if record.number == at:
            raise KeyboardInterrupt

    _, result = solve(problem.oracle(), 4000.0, relative=1e-12, observer=interrupt)
    assert result.status is Status.INTERRUPTED
    assert result.n_iter == at
    recomputed = problem.objective(result.w, result.bias, 4000.0)
    assert result.certificate.primal == pytest.approx(recomputed, rel=1e-10)


def test_what_descent_cannot_do_is_left_to_the_bundle(choose, all_cases, make_problem):
    choose(SHORT_COLUMN=1e9)
    problem = make_problem(all_cases["logistic"], seed=2, rows=ROWS)
    _, ours = solve(problem.oracle(), 40.0, relative=1e-4)
    bundle = BundleSolver(problem.oracle(), 40.0, StopRule(relative=1e-4), AdaptivePosition())
    np.testing.assert_array_equal(ours.w, bundle.run().w)


# -- through the estimator ------------------------------------------------------------


@pytest.fixture(scope="module")
def text():
    """Enough numbers for eight threads, in short columns."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(6_000, 12_000, 0.015, "csr", rng=rng, dtype=np.float32)
    rule = rng.normal(size=X.shape[1])
    scores = X @ rule
    return X, scores + 0.5 * scores.std() * rng.normal(size=len(scores)) > 0


@pytest.fixture(scope="module")
def table():
    """The same for long columns."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40_000, 30)).astype(np.float32)
    return X, X[:, 0] + 0.7 * rng.normal(size=len(X)) > 0


@pytest.mark.parametrize("settings", [{}, {"loss": "squared_hinge"}, {"fit_intercept": False}])
@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_threads_change_nothing(text, table, settings, C):
    for X, y in (text, table):
        runs = [LinearSVC(C=C, n_jobs=n, **settings).fit(X, y) for n in (1, 2, 8)]
        for other in runs[1:]:
            np.testing.assert_array_equal(runs[0].coef_, other.coef_)
            np.testing.assert_array_equal(runs[0].intercept_, other.intercept_)
            assert runs[0].certificate_ == other.certificate_
        again = LinearSVC(C=C, n_jobs=1, **settings).fit(X, y)
        np.testing.assert_array_equal(runs[0].coef_, again.coef_)


def test_the_default_agrees_with_ocas(text, table):
    for X, y in (text, table):
        weights = np.random.default_rng(2).integers(0, 3, size=len(y))
        ours, ocas = (
            LinearSVC(C=0.1, solver=solver, tol=1e-2).fit(X, y, sample_weight=weights)
            for solver in ("auto", "ocas")
        )
        assert ours.certificate_.dual <= ocas.certificate_.primal * (1 + 1e-12)
        assert ocas.certificate_.dual <= ours.certificate_.primal * (1 + 1e-12)
    assert "passes" in LinearSVC(C=0.1).fit(*text).result_.timings
    assert "passes" not in LinearSVC(C=1.0).fit(*table).result_.timings


def test_small_data_are_left_to_ocas():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.random(200) < 0.5
    models = [LinearSVC(solver=solver).fit(X, y) for solver in ("auto", "ocas")]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_a_path_carries_the_dual_point_along(text):
    X, y = text
    Cs = np.geomspace(0.01, 1.0, 5)
    path = linear_svc_path(X, y, Cs, fit_intercept=False)
    cold = [LinearSVC(C=C, fit_intercept=False).fit(X, y) for C in Cs]
    assert path.converged.all()
    assert path.n_iters.sum() < sum(model.n_iter_ for model in cold)
    for certificates, model in zip(path.certificates, cold, strict=True):
        assert certificates[0].dual <= model.certificate_.primal * (1 + 1e-12)
        assert model.certificate_.dual <= certificates[0].primal * (1 + 1e-12)


def test_blocks_that_do_not_lie_in_one_piece(dual_case, make_problem):
    """Other sources than arrays have no ``whole``: passes go around their blocks."""
    from dataclasses import replace

    from cutplane.solvers import CoordinateSolver

    problem = make_problem(dual_case, seed=2, rows=ROWS)
    plain = problem.oracle(block_numbers=300)
    matrix = replace(plain.matrix, whole=None)
    assert len(matrix.blocks) > 3
    oracle = RowOracle(matrix, plain.targets, plain.risk, SerialExecutor())
    rng = np.random.default_rng(0)
    result = CoordinateSolver(oracle, 40.0, StopRule(relative=1e-4, max_iter=500), rng).run()
    assert result.status is Status.CONVERGED
    best = optimum(plain, 40.0)
    assert result.certificate.dual <= best.primal * (1 + 1e-12)
    assert result.certificate.primal >= best.dual * (1 - 1e-12)
