"""Rows visited in two lanes: the dual point, its w, what was gained, and who takes part."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse

from cutplane.bundle import AdaptivePosition, BundleSolver, StopRule
from cutplane.data import as_blocks
from cutplane.descent import CoordinateSolver, lanes, passes
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.loops import coordinate
from cutplane.losses import Hinge, SquaredHinge
from cutplane.oracles import RowOracle
from cutplane.result import Status
from cutplane.risks import LossRisk, Targets

BIASES = {"none": {}, "constant": {"constant": 2.0}, "free": {"free_bias": True}}
RISKS = {"hinge": lambda: LossRisk(Hinge()), "squared_hinge": lambda: LossRisk(SquaredHinge())}


@pytest.fixture
def short_lanes(monkeypatch):
    """Lanes for few numbers, with several meetings in a pass and several tasks at a meeting."""
    monkeypatch.setattr(lanes, "LEAST_NUMBERS", 1)
    monkeypatch.setattr(lanes, "LEAST_PER_WEIGHT", 0)
    monkeypatch.setattr(lanes, "NUMBERS_BETWEEN", 1_000)
    monkeypatch.setattr(lanes, "BETWEEN_PER_WEIGHT", 0)
    monkeypatch.setattr(lanes, "COLUMNS", 16)


def rows_in(layout, rows=900, features=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.3)
    labels = np.sign(X @ rng.normal(size=features) + rng.normal(size=rows))
    weights = rng.integers(0, 3, size=rows).astype(float)
    forms = {"sparse": scipy.sparse.csr_matrix, "rows": np.ascontiguousarray}
    return forms[layout](X), labels, weights


def make_oracle(X, labels, weights, risk, executor=None, **bias):
    targets = Targets.make(labels, weights)
    return RowOracle(as_blocks(X), targets, RISKS[risk](), executor or SerialExecutor(), **bias)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("layout", ["sparse", "rows"])
@pytest.mark.parametrize("bias", ["none", "constant"])
def test_what_passes_leave_behind(short_lanes, risk, layout, bias):
    """w is that of the dual point, which is feasible; its objective is what the gains come to."""
    X, labels, weights = rows_in(layout)
    C = 300.0
    oracle = make_oracle(X, labels, weights, risk, **BIASES[bias])
    run = passes.Passes(oracle, C, np.random.default_rng(0))
    assert run.in_lanes
    per_row = C * weights / weights.sum()
    duals = [0.0]
    for _ in range(6):
        assert run.run(lambda: False)
        duals.append(run.dual)
    signed = run.alpha * labels
    w = np.append(X.T @ signed, signed.sum() * oracle.constant) if oracle.constant else X.T @ signed
    np.testing.assert_allclose(run.w, w, rtol=1e-10, atol=1e-12)
    assert np.all(run.alpha >= 0.0) and np.all(run.alpha[weights == 0.0] == 0.0)
    dual = run.alpha.sum() - 0.5 * w @ w
    if risk == "hinge":
        assert np.all(run.alpha <= per_row)
    else:
        counts = weights > 0.0
        dual -= np.sum(run.alpha[counts] ** 2 / (4.0 * per_row[counts]))
    assert run.dual == pytest.approx(dual, rel=1e-10)
    assert np.all(np.diff(duals) > 0.0)


@pytest.mark.parametrize("risk", RISKS)
def test_lanes_that_do_the_same_step_back(short_lanes, monkeypatch, risk):
    """All rows are one: what both lanes add to w is half too much, and the step finds that."""
    X = scipy.sparse.csr_matrix(np.tile([[1.0, 0.0, 2.0]], (64, 1)))
    labels = np.ones(64)
    gains = []
    visit = coordinate.visit_in_lanes

    def watched(*arguments):
        visit(*arguments)
        gains.append(arguments[-1].sum())

    monkeypatch.setattr(coordinate, "visit_in_lanes", watched)
    oracle = make_oracle(X, labels, np.ones(64), risk)
    run = passes.Passes(oracle, 1e3, np.random.default_rng(0))
    assert run.run(lambda: False)
    # One lane alone solves the problem of all rows; what was gained is what both have kept.
    ridge = 0.0 if risk == "hinge" else 0.5 / (1e3 / 64)
    kept = np.sum(run.alpha) - 0.5 * run.w @ run.w - 0.5 * ridge * np.sum(run.alpha**2)
    assert gains == [pytest.approx(kept, rel=1e-9)]
    np.testing.assert_allclose(run.w, X.T @ run.alpha, rtol=1e-12)
    np.testing.assert_allclose(run.w @ [1.0, 0.0, 2.0], 1.0, rtol=0.02)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("C", [4.0, 400.0])
def test_reaches_the_optimum_with_any_number_of_threads(short_lanes, risk, bias, C):
    X, labels, weights = rows_in("sparse")
    rules = StopRule(relative=1e-4, max_iter=500)
    plain = make_oracle(X, labels, weights, risk, **BIASES[bias])
    best = BundleSolver(plain, C, StopRule(relative=1e-7), AdaptivePosition()).run().certificate
    runs = []
    for executor in (SerialExecutor(), ThreadExecutor(2), ThreadExecutor(3)):
        with executor:
            oracle = make_oracle(X, labels, weights, risk, executor, **BIASES[bias])
            solver = CoordinateSolver(oracle, C, rules, np.random.default_rng(0))
            assert solver.passes.in_lanes
            result = solver.run()
        assert result.status is Status.CONVERGED
        for record in (*result.trace, result.certificate):
            assert record.dual <= best.primal * (1.0 + 1e-12)
            assert record.primal >= best.dual * (1.0 - 1e-12)
        runs.append((result, solver.dual_point()))
    for result, dual_point in runs[1:]:
        np.testing.assert_array_equal(result.w, runs[0][0].w)
        np.testing.assert_array_equal(dual_point, runs[0][1])
        np.testing.assert_array_equal(result.column("dual"), runs[0][0].column("dual"))


def test_a_second_thread_may_come_at_any_time(short_lanes):
    """Whenever others join or leave, the result is the same, and nobody waits for ever."""
    X, labels, weights = rows_in("sparse", rows=2_000)

    class Late(SerialExecutor):
        """Starts others at odd times and does not tell them apart."""

        threads = 2

        def __init__(self, delays):
            self.delays = delays

        def run(self, function, count):
            if count != 2:
                return super().run(function, count)
            others = [threading.Timer(delay, function, args=(1,)) for delay in self.delays]
            for other in others:
                other.start()
            results = [function(0), None]
            for other in others:
                other.join(timeout=60.0)
                assert not other.is_alive()
            return results

    results = []
    for delays in ((), (0.0,), (0.0, 0.0, 0.0), (0.0005,), (0.01, 0.0)):
        oracle = make_oracle(X, labels, weights, "hinge", Late(delays))
        run = passes.Passes(oracle, 300.0, np.random.default_rng(0))
        for _ in range(5):
            assert run.run(lambda: False)
        results.append((run.w.copy(), run.alpha.copy(), run.dual))
    for w, alpha, dual in results[1:]:
        np.testing.assert_array_equal(w, results[0][0])
        np.testing.assert_array_equal(alpha, results[0][1])
        assert dual == results[0][2]


def test_who_has_lanes(monkeypatch):
    assert lanes.worth_lanes(1 << 20, 4096)
    assert not lanes.worth_lanes(1 << 20, 4097)  # text with a large vocabulary and few documents
    assert not lanes.worth_lanes((1 << 20) - 1, 10)
    X, labels, weights = rows_in("sparse")
    oracle = make_oracle(X, labels, weights, "hinge")
    assert not passes.Passes(oracle, 1.0, np.random.default_rng(0)).in_lanes
    monkeypatch.setattr(lanes, "LEAST_PER_WEIGHT", 0)
    monkeypatch.setattr(lanes, "LEAST_NUMBERS", X.nnz)
    run = passes.Passes(oracle, 1.0, np.random.default_rng(0))
    assert run.in_lanes
    order = np.arange(len(labels))
    assert run._lanes.worth(order) and not run._lanes.worth(order[:-1])


def test_an_interrupt_keeps_the_best_point(short_lanes):
    X, labels, weights = rows_in("sparse")

    def interrupt(record):
        if record.number == 2:
            raise KeyboardInterrupt

    with ThreadExecutor(2) as executor:
        oracle = make_oracle(X, labels, weights, "hinge", executor)
        solver = CoordinateSolver(
            oracle, 3e4, StopRule(relative=1e-9), np.random.default_rng(0), interrupt
        )
        result = solver.run()
        assert result.status is Status.INTERRUPTED and result.n_iter == 2
        assert executor.run(lambda k: k, 4) == [0, 1, 2, 3]  # nobody is busy
