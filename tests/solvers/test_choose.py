"""The solver that chooses: certified whatever it chooses, and the same everywhere."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from cutplane import LinearSVC, linear_svc_path
from cutplane.exec import SerialExecutor
from cutplane.losses import CLASSIFICATION, LOSSES
from cutplane.objective import RowOracle
from cutplane.result import Iteration, Status
from cutplane.solvers import (
    AdaptivePosition,
    AutoSolver,
    BundleSolver,
    CoordinateSolver,
    NewtonSolver,
    SmallNewtonSolver,
    StopRule,
    choose,
    constants,
    newton,
)

BIASES = {"none": {}, "constant": {"constant": 2.0}, "free": {"free_bias": True}}
ROWS, C = 300, 4000.0
SMALL, DESCENT, NEWTON, PLANES = SmallNewtonSolver, CoordinateSolver, NewtonSolver, BundleSolver
# What makes small data go through these stages, the first ones giving up.
STAGES = {
    (SMALL,): {},
    (NEWTON,): {"cost": 1.0, "cheap": True},
    (DESCENT,): {"cost": math.inf, "cheap": False},
    (DESCENT, NEWTON): {"cost": 1e-9, "cheap": False},
    (DESCENT, NEWTON, PLANES): {"cost": 1e-9, "cheap": False, "tired": True},
    (PLANES,): {"cost": math.inf, "cheap": False, "on_disk": True},
    (PLANES, NEWTON): {"cost": 1e-9, "cheap": False, "on_disk": True},
}
NAMES = ["-".join(stage.__name__.removesuffix("Solver") for stage in stages) for stages in STAGES]
every_way = pytest.mark.parametrize("stages", STAGES, ids=NAMES)


class Tired(NewtonSolver):
    """Newton's method that rounding stops after a step."""

    def _end_iteration(self, trial, step, cuts):
        status = super()._end_iteration(trial, step, cuts)
        ended = status not in (None, Status.CONVERGED)
        return status if ended else Status.NUMERICALLY_LIMITED


@pytest.fixture
def go(monkeypatch):
    """Let the run go through certain stages."""

    def patch(stages, oracle):
        wanted = STAGES[stages]
        if wanted.get("tired"):
            monkeypatch.setattr(choose, "NewtonSolver", Tired)
        if "cost" in wanted:
            monkeypatch.setattr(choose, "SMALL", 0)
            monkeypatch.setattr(choose, "newton_cost", lambda *_: wanted["cost"])
            monkeypatch.setattr(choose, "_is_cheap", lambda oracle, C, cost: wanted["cheap"])
        return on_disk(oracle) if wanted.get("on_disk") else oracle

    return patch


def on_disk(oracle):
    """The same rows, but not in one piece of memory."""
    matrix = replace(oracle.matrix, whole=None)
    bias = {"constant": oracle.constant, "free_bias": oracle.free_bias}
    return RowOracle(matrix, oracle.targets, oracle.risk, SerialExecutor(), **bias)


class Noting(AutoSolver):
    """Notes the stages."""

    def _stages(self, cuts):
        self.stages = ()
        for stage in super()._stages(cuts):
            self.stages = (*self.stages, type(stage))
            yield stage


def solve(oracle, C=C, *, observer=None, start=None, dual_point=None, **rules):
    rng = np.random.default_rng(0)
    solver = Noting(oracle, C, StopRule(**rules), rng, observer, dual_point)
    return solver, solver.run(start)


def is_way(solver, stages):
    return len(solver.stages) == len(stages) and all(map(issubclass, solver.stages, stages))


def first_stage(oracle, C=1.0):
    stages = AutoSolver(oracle, C, StopRule(relative=1e-3), np.random.default_rng(0))._stages(())
    return type(next(stages))


# -- bounds ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def optima(all_cases, make_problem):
    """Bounds of the optimum by cutting planes."""
    known = {}

    def find(loss, bias, weighted):
        key = loss, bias, weighted
        if key not in known:
            problem = make_problem(
                all_cases[loss], seed=2, rows=ROWS, weighted=weighted, **BIASES[bias]
            )
            rule = StopRule(relative=1e-7)
            bundle = BundleSolver(problem.oracle(), C, rule, AdaptivePosition())
            known[key] = problem, bundle.run().certificate
        return known[key]

    return find


@every_way
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
def test_the_bounds_hold_in_every_stage(go, optima, loss, bias, stages):
    problem, best = optima(loss, bias, bias == "free")
    oracle = go(stages, problem.oracle(block_numbers=300))
    solver, result = solve(oracle, relative=1e-5)
    assert is_way(solver, stages)
    assert result.status is Status.CONVERGED
    assert result.certificate.relative_gap <= 1e-5
    recomputed = problem.objective(result.w, result.bias, C)
    assert result.certificate.primal == pytest.approx(recomputed, rel=1e-10)
    for record in (*result.trace, result.certificate):
        assert record.dual <= best.primal * (1.0 + 1e-12)
        assert record.primal >= best.dual * (1.0 - 1e-12)
    assert [record.number for record in result.trace] == list(range(1, result.n_iter + 1))
    for column in (-result.column("primal"), result.column("dual"), result.column("seconds")):
        assert np.all(np.diff(column) >= 0.0)


def test_descent_that_has_used_up_its_passes_gives_way(go, monkeypatch, all_cases, make_problem):
    """There is no limit without the user's; descent goes on if only cutting planes could follow."""
    monkeypatch.setattr(DESCENT, "most_passes", 3.0)
    problem = make_problem(all_cases["hinge"], seed=2, rows=ROWS)
    for stages, cost in (((DESCENT,), math.inf), ((DESCENT, NEWTON), 1e9)):
        oracle = go((DESCENT,), problem.oracle())
        monkeypatch.setattr(choose, "newton_cost", lambda *_, cost=cost: cost)
        solver, result = solve(oracle, relative=1e-6)
        assert is_way(solver, stages)
        assert result.status is Status.CONVERGED


# -- the choice -----------------------------------------------------------------------


def oracle_of(X, y=None, loss="hinge", **bias):
    from cutplane.data import as_blocks
    from cutplane.risks import LossRisk, Targets

    y = np.where(np.arange(X.shape[0]) % 2, 1.0, -1.0) if y is None else y
    risk = LossRisk(LOSSES[loss]())
    return RowOracle(as_blocks(X), Targets.make(y, None), risk, SerialExecutor(), **bias)


def text_like(rows=2000, features=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return scipy.sparse.random(rows, features, 0.004, "csr", rng=rng, dtype=np.float32)


def table_like(rows=20_000, features=30, seed=1):
    return np.random.default_rng(seed).normal(size=(rows, features)).astype(np.float32)


@pytest.mark.parametrize("loss", LOSSES)
def test_who_goes_first(loss):
    assert first_stage(oracle_of(table_like(500, 10), loss=loss)) is SMALL
    assert first_stage(oracle_of(table_like(), loss=loss), C=1e4) is NEWTON
    made = LOSSES[loss]()
    gradients = made.curvature is not None and made.conjugate_curvature is None  # conjugate ones
    assert first_stage(oracle_of(text_like(), loss=loss)) is (NEWTON if gradients else DESCENT)
    assert first_stage(on_disk(oracle_of(table_like(), loss=loss))) is NEWTON
    assert first_stage(on_disk(oracle_of(text_like(), loss=loss))) is PLANES


def test_newtons_method_after_cutting_planes_on_disk(monkeypatch):
    """Cutting planes take 245 iterations here. Newton's method is less work than most of them."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(5000, 200, 0.05, "csr", rng=rng)
    scores = X @ rng.normal(size=200)
    y = np.where(scores + 0.3 * scores.std() * rng.normal(size=5000) > 0.0, 1.0, -1.0)
    solver, result = solve(on_disk(oracle_of(X, y)), 1e6, relative=1e-3)
    assert result.status is Status.CONVERGED
    assert solver.stages == (PLANES, NEWTON)
    assert result.n_iter <= 60
    monkeypatch.setattr(choose, "MOST_ON_DISK", 200**2)
    solver, _ = solve(on_disk(oracle_of(X, y)), 1e6, relative=1e-3)
    assert solver.stages == (PLANES,)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_descent_where_rows_hardly_move_their_own_scores(scale):
    """c_i·|x_i|² is C·30/20,000 here, and the same if x is longer and C smaller."""
    few, many = 300.0 / scale**2, 1500.0 / scale**2
    X = scale * table_like()
    assert first_stage(oracle_of(X), few) is DESCENT
    assert first_stage(oracle_of(X), many) is NEWTON
    assert first_stage(oracle_of(X, loss="squared_hinge"), few) is NEWTON  # no bound to stay at
    assert first_stage(on_disk(oracle_of(X)), few) is NEWTON


def test_cutting_planes_for_other_risks(all_cases, make_problem):
    others = [case for case in all_cases.values() if case.name not in LOSSES]
    assert others
    for case in others:
        assert first_stage(make_problem(case, seed=2).oracle()) is PLANES
    # A constant feature that stands for a free bias is on another scale than the rows.
    slack = oracle_of(table_like(), constant=1e4, slack=lambda primal, C: 1e-6 * primal)
    assert first_stage(slack) is PLANES


def test_the_cost_of_newtons_method():
    """In passes of descent: its own passes, the matrix, and its factor."""
    few = choose.newton_cost(oracle_of(table_like(20_000, 5)), 1.0)
    assert 1.5 * constants.STEPS <= few <= 4.0 * constants.STEPS
    rows = [choose.newton_cost(oracle_of(table_like(n, 200)), 1.0) for n in (500, 5000, 20_000)]
    assert rows[0] > rows[1] > rows[2]  # a factor is shared by more numbers
    assert choose.newton_cost(oracle_of(text_like()), 1.0) == math.inf  # a matrix of 3.2 GB
    wide = choose.newton_cost(oracle_of(text_like(2000, 5000)), 1.0)
    assert 4.0 * constants.STEPS < wide < math.inf
    assert first_stage(oracle_of(text_like(), loss="logistic")) is NEWTON


def test_steps_of_newtons_method_by_the_objective():
    """One more for every time that the objective leaves room for the next smaller width only."""
    for loss, more in (("hinge", 1.0), ("squared_hinge", 0.0)):
        oracle = oracle_of(table_like(), loss=loss)
        usual = newton.expected_cost(oracle, 100.0)
        assert newton.expected_cost(oracle, 100.0, 100.0) == usual
        three = newton.expected_cost(oracle, 100.0, 100.0 * constants.NARROWER**3)
        assert three / usual == pytest.approx(1.0 + 3.0 * more / constants.STEPS)


def gives_up(monkeypatch, course, cost):
    """Whether the first solver ends in a course of (work, relative gap)."""
    oracle = oracle_of(text_like())
    solver = AutoSolver(oracle, 1.0, StopRule(relative=1e-3))
    monkeypatch.setattr(choose, "newton_cost", lambda *_: cost)
    monkeypatch.setattr(solver, "_observe", solver.trace.append)
    for work, gap in course:
        record = Iteration(len(solver.trace) + 1, 1.0, 1.0 - gap, 1.0, 1.0, 1, 0.0)
        if solver._observe_first(oracle, lambda work=work: work, record):
            return True
    return False


def test_descent_gives_up_by_its_pace(monkeypatch):
    """From 0.5 after 100 passes it takes 900 more; from 0.35 560, or 430 at the last pace."""
    steady, faster = [(50, 0.7), (100, 0.5)], [(25, 0.97), (100, 0.35)]
    assert not gives_up(monkeypatch, steady, 1000.0)
    assert gives_up(monkeypatch, steady, 800.0)
    assert not gives_up(monkeypatch, faster, 500.0)
    assert gives_up(monkeypatch, faster, 400.0)
    assert not gives_up(monkeypatch, [(9, 0.999)], 100.0)  # the first passes tell little


# -- how runs end ---------------------------------------------------------------------


@pytest.fixture
def three(go, all_cases, make_problem):
    """A problem that goes through three stages, the last beginning after some ten iterations."""
    problem = make_problem(all_cases["hinge"], seed=2, rows=ROWS)
    return problem, go((DESCENT, NEWTON, PLANES), problem.oracle())


def ends_of_stages(oracle):
    """The last iteration of descent, one of Newton's method and one of cutting planes."""
    solver, result = solve(oracle, relative=1e-9)
    assert is_way(solver, (DESCENT, NEWTON, PLANES))
    last = next(k for k, record in enumerate(result.trace) if record.cuts > 1)
    return 1, last, last + 2


def test_iterations_of_all_stages_count(three):
    _, oracle = three
    for limit in ends_of_stages(oracle):
        _, result = solve(oracle, relative=1e-12, max_iter=limit)
        assert (result.status, result.n_iter) == (Status.MAX_ITER, limit)


def test_a_stop_or_an_interrupt_in_any_stage(three):
    problem, oracle = three
    for last in ends_of_stages(oracle):
        stop = {"relative": 1e-12, "observer": lambda r, n=last: r.number >= n}
        _, stopped = solve(problem.oracle(), **stop)  # an oracle remembers its last step
        assert (stopped.status, stopped.n_iter) == (Status.STOPPED, last)

        def interrupt(record, last=last):
            if record.number == last:
                raise KeyboardInterrupt

        _, result = solve(problem.oracle(), relative=1e-12, observer=interrupt)
        assert (result.status, result.n_iter) == (Status.INTERRUPTED, last)
        for end in (stopped, result):
            recomputed = problem.objective(end.w, end.bias, C)
            assert end.certificate.primal == pytest.approx(recomputed, rel=1e-10)
            assert end.certificate.primal <= end.trace[-1].primal * (1.0 + 1e-9)
        np.testing.assert_array_equal(stopped.w, result.w)
        assert stopped.certificate == result.certificate


def test_a_stop_and_an_interrupt_give_the_same_model_where_rounding_decides():
    """The last stage begins at the optimum, and finds points that are better by rounding alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 125))
    y = X @ rng.normal(size=125) + 0.5 * rng.normal(size=1300) > 0
    settings = {"loss": "squared_hinge", "tol": 1e-12, "max_iter": 400}
    with pytest.warns(UserWarning, match="precision"):
        last = LinearSVC(**settings).fit(X, y).n_iter_

    def ended(number, interrupt):
        def callback(record):
            if record.number == number and interrupt:
                raise KeyboardInterrupt
            return record.number == number

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return LinearSVC(**settings, callback=callback).fit(X, y)

    for number in range(last - 3, last):
        stopped, interrupted = ended(number, False), ended(number, True)
        assert stopped.results_[0].status is Status.STOPPED
        assert interrupted.results_[0].status is Status.INTERRUPTED
        np.testing.assert_array_equal(stopped.coef_, interrupted.coef_)
        assert stopped.certificate_ == interrupted.certificate_


@every_way
def test_the_time_limit_ends_the_run(go, all_cases, make_problem, stages):
    problem = make_problem(all_cases["hinge"], seed=2, rows=ROWS)
    oracle = go(stages, problem.oracle())
    _, result = solve(oracle, relative=1e-12, time_limit=0.0)
    assert (result.status, result.n_iter) == (Status.TIME_LIMIT, 1)


@pytest.mark.parametrize("stages", [(SMALL,), (NEWTON,), (DESCENT,), (DESCENT, NEWTON), (PLANES,)])
def test_a_start_at_the_end_is_the_end(go, all_cases, make_problem, stages):
    problem = make_problem(all_cases["hinge"], seed=2, rows=ROWS)
    oracle = go(stages, problem.oracle())
    solver, result = solve(oracle, relative=1e-6)
    rng = np.random.default_rng(0)
    point = solver.dual_point()
    again = AutoSolver(oracle, C, StopRule(relative=1e-5), rng, None, point)
    second = again.run(result.w, solver.active_cuts())
    assert second.status is Status.CONVERGED
    assert second.n_iter == 1
    assert second.certificate.primal <= result.certificate.primal * (1.0 + 1e-12)


# -- through the estimator ------------------------------------------------------------


@pytest.fixture(scope="module")
def text():
    """Text-like, with enough numbers for two threads."""
    X = scipy.sparse.random(
        4000, 12_000, 0.025, "csr", rng=np.random.default_rng(0), dtype=np.float32
    )
    rng = np.random.default_rng(1)
    scores = X @ rng.normal(size=X.shape[1])
    return X, scores + 0.5 * scores.std() * rng.normal(size=len(scores)) > 0


@pytest.fixture(scope="module")
def table():
    """The same for few features."""
    X = table_like(40_000, 30)
    return X, X[:, 0] + 0.7 * np.random.default_rng(1).normal(size=len(X)) > 0


@pytest.mark.parametrize("settings", [{}, {"loss": "squared_hinge"}, {"loss": "logistic"}])
def test_threads_change_nothing(text, table, settings):
    for X, y in (text, table):
        runs = [LinearSVC(C=0.1, n_jobs=n, **settings).fit(X, y) for n in (1, 2, 1)]
        for other in runs[1:]:
            np.testing.assert_array_equal(runs[0].coef_, other.coef_)
            np.testing.assert_array_equal(runs[0].intercept_, other.intercept_)
            assert runs[0].certificate_ == other.certificate_


def test_the_default_agrees_with_ocas(text, table):
    for X, y in (text, table):
        weights = np.random.default_rng(2).integers(0, 3, size=len(y))
        ours, ocas = (
            LinearSVC(C=0.1, solver=solver, tol=1e-2).fit(X, y, sample_weight=weights)
            for solver in ("auto", "ocas")
        )
        assert ours.certificate_.dual <= ocas.certificate_.primal * (1 + 1e-12)
        assert ocas.certificate_.dual <= ours.certificate_.primal * (1 + 1e-12)
    assert "passes" in LinearSVC(C=0.1).fit(*text).results_[0].timings
    assert "newton" in LinearSVC(C=0.1).fit(*table).results_[0].timings


def test_small_data_take_descent_where_few_passes_are_expected():
    """If Newton's steps are long, C is small, and the tolerance is not."""
    X = table_like(3000, 60)
    y = X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=len(X)) > 0

    def phase(rows, **parameters):
        model = LinearSVC(**parameters).fit(X[:rows], y[:rows])
        assert model.certificate_.relative_gap <= parameters.get("tol", 1e-3)
        return {"passes", "newton"} & set(model.results_[0].timings)

    assert phase(3000, C=1e-3) == {"passes"}
    assert phase(3000, C=1e-3, tol=1e-5) == {"newton"}
    assert phase(3000, C=10.0) == {"newton"}
    assert phase(300, C=1e-3) == {"newton"}


@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_weights_are_rows_repeated(text, table, loss):
    for X, y in (text, table, (table[0][:500], table[1][:500])):
        few = slice(0, 1500)
        X, y = X[few], y[few]
        times = np.random.default_rng(3).integers(0, 3, len(y))
        rows = np.repeat(np.arange(len(y)), times)
        weighted = LinearSVC(C=0.1, loss=loss).fit(X, y, sample_weight=times).certificate_
        repeated = LinearSVC(C=0.1, loss=loss).fit(X[rows], y[rows]).certificate_
        assert weighted.dual <= repeated.primal * (1 + 1e-12)
        assert repeated.dual <= weighted.primal * (1 + 1e-12)


@pytest.mark.parametrize("which", ["text", "table", "small"])
def test_a_path_gives_the_same_optima(text, table, which):
    X, y = {"text": text, "table": table}.get(which, (table[0][:500], table[1][:500]))
    Cs = np.geomspace(0.01, 1.0, 4)
    path = linear_svc_path(X, y, Cs)
    cold = [LinearSVC(C=C).fit(X, y) for C in Cs]
    assert path.converged.all()
    if which == "text":  # the dual point is carried along
        assert path.n_iters.sum() < sum(model.n_iter_ for model in cold)
    for certificates, model in zip(path.certificates, cold, strict=True):
        assert certificates[0].dual <= model.certificate_.primal * (1 + 1e-12)
        assert model.certificate_.dual <= certificates[0].primal * (1 + 1e-12)
