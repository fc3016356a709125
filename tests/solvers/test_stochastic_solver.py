"""SGD and Pegasos against the bundle solver's optimum, and how their runs end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from cutplane.data import as_blocks
from cutplane.estimators.linear_svc import LOSSES_OF
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.objective import RowOracle
from cutplane.result import Status
from cutplane.solvers import BundleSolver, FixedPosition, StopRule
from cutplane.solvers.stochastic import StochasticSolver, default_epochs

BIASES = {"none": {}, "constant": {"constant": 2.0}, "free": {"free_bias": True}}
ROWS = 400
C = 40.0  # times the mean risk: 0.1 per row


def solve(oracle, method, *, C=C, seed=0, observer=None, epochs=30, run=None, **rules):
    stop = StopRule(max_iter=epochs, **rules)
    rng = np.random.default_rng(seed)
    solver = StochasticSolver(oracle, C, stop, method, rng, observer)
    return solver.run(**(run or {}))


def optimum(oracle, C=C):
    return BundleSolver(oracle, C, StopRule(relative=1e-6), FixedPosition(0.1)).run().certificate


def assert_honest(problem, result, best, C=C):
    """The primal is that of the point; bound ≤ optimum ≤ primal, in every epoch."""
    recomputed = problem.objective(result.w, result.bias, C)
    assert result.certificate.primal == pytest.approx(recomputed, rel=1e-10)
    for record in (*result.trace, result.certificate):
        assert 0.0 <= record.dual <= best.primal * (1.0 + 1e-12)
        assert record.primal >= best.dual * (1.0 - 1e-12)


@pytest.fixture(scope="session", params=["sgd", "pegasos"])
def method(request):
    return request.param


@pytest.fixture(scope="session", params=LOSSES_OF["sgd"])
def binary_case(request, all_cases):
    """All risks that have stochastic steps."""
    return all_cases[request.param]


@pytest.fixture
def problem(binary_case, make_problem):
    return make_problem(binary_case, seed=1, rows=ROWS)


# -- how good -------------------------------------------------------------------------


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_close_to_the_optimum(binary_case, make_problem, method, bias, weighted):
    problem = make_problem(binary_case, seed=2, rows=ROWS, weighted=weighted, **BIASES[bias])
    best = optimum(problem.oracle())
    result = solve(problem.oracle(block_numbers=500), method)
    assert_honest(problem, result, best)
    assert result.certificate.primal <= 1.02 * best.primal
    assert result.certificate.dual >= 0.97 * best.primal


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e5])
@pytest.mark.parametrize("bias", BIASES)
def test_honest_at_any_c(binary_case, make_problem, method, bias, C):
    """At C = 1e5 ten epochs lead nowhere near the optimum: the certificate says so."""
    problem = make_problem(binary_case, seed=3, rows=ROWS, weighted=True, **BIASES[bias])
    best = optimum(problem.oracle(), C)
    result = solve(problem.oracle(block_numbers=500), method, C=C, epochs=10)
    assert_honest(problem, result, best, C)
    start = problem.oracle().new_point()
    problem.oracle().evaluate(start.w, start)
    assert result.certificate.primal <= C * start.risk * (1.0 + 1e-12)  # never worse than w = 0


def test_features_on_different_scales(problem, method):
    """Rows of any length: the squared hinge must not diverge."""
    problem = replace(problem, X=problem.X * np.logspace(-2, 3, ROWS)[:, None])
    best = optimum(problem.oracle())
    result = solve(problem.oracle(), method)
    assert result.status is Status.MAX_ITER
    assert np.isfinite(result.column("trial")).all()
    assert_honest(problem, result, best)


def test_sorted_labels_do_no_harm(problem, method):
    """Blocks of one class each, as in files that list the classes in turn."""
    order = np.argsort(problem.labels, kind="stable")
    fields = {name: getattr(problem, name)[order] for name in ("X", "labels", "weights")}
    oracle = replace(problem, **fields).oracle(block_numbers=200)
    assert len(oracle.matrix.blocks) > 5
    result = solve(oracle, method)
    assert result.certificate.primal <= 1.02 * optimum(problem.oracle()).primal


def test_all_zero_data(problem, method):
    result = solve(replace(problem, X=np.zeros_like(problem.X)).oracle(), method, relative=1e-9)
    assert result.status is Status.CONVERGED
    np.testing.assert_array_equal(result.w, 0.0)


def test_more_epochs_tighten_the_bound(problem, method):
    result = solve(problem.oracle(), method)
    duals, primals = result.column("dual"), result.column("primal")
    assert (np.diff(duals) >= 0.0).all()
    assert (np.diff(primals) <= 0.0).all()
    assert primals[-1] == min(result.column("trial"))
    assert result.trace[-1].gap < 0.3 * result.trace[0].gap


# -- what the answer depends on -------------------------------------------------------


def test_reproducible_for_a_seed(problem, method):
    one, two, other = (solve(problem.oracle(), method, seed=s, epochs=5) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_array_equal(one.column("dual"), two.column("dual"))
    assert one.trace[-1].trial != other.trace[-1].trial


def test_same_bits_for_any_number_of_threads(problem, method):
    with ThreadExecutor(3) as threads:
        threaded = solve(problem.oracle(threads, block_numbers=200), method, epochs=5)
    serial = solve(problem.oracle(SerialExecutor(), block_numbers=200), method, epochs=5)
    np.testing.assert_array_equal(threaded.w, serial.w)
    assert threaded.certificate == serial.certificate


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bias", BIASES)
def test_layouts_agree(binary_case, make_problem, method, bias, dtype):
    problem = make_problem(binary_case, seed=4, rows=ROWS, weighted=True, **BIASES[bias])
    X = problem.X.astype(dtype)
    X[np.abs(X) < 0.3] = 0.0
    results = []
    for layout in (X, np.asfortranarray(X), scipy.sparse.csr_array(X)):
        plain = problem.oracle()
        oracle = RowOracle(
            as_blocks(layout, block_numbers=10_000),  # one block, whatever the layout
            plain.targets,
            plain.risk,
            plain.executor,
            **BIASES[bias],
        )
        assert len(oracle.matrix.blocks) == 1
        results.append(solve(oracle, method, epochs=3))
    for other in results[1:]:
        np.testing.assert_allclose(other.w, results[0].w, rtol=1e-8, atol=1e-10)
        assert other.certificate.dual == pytest.approx(results[0].certificate.dual, rel=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_weight_zero_are_ignored(binary_case, make_problem, method, sparse):
    """Their content does not matter: the steps are those without these rows, to the last bit."""
    problem = make_problem(binary_case, seed=5, rows=ROWS, weighted=True)
    kept = problem.weights > 0.0
    assert 0 < kept.sum() < ROWS
    fields = {name: getattr(problem, name)[kept] for name in ("X", "labels", "weights")}
    without = replace(problem, **fields)
    problem = replace(problem, X=np.where(kept[:, None], problem.X, 1e6))
    one, two = (solve(p.oracle(sparse=sparse), method, epochs=5) for p in (problem, without))
    np.testing.assert_array_equal(one.w, two.w)
    assert one.certificate.dual == pytest.approx(two.certificate.dual, rel=1e-12)


def test_a_common_factor_of_the_weights_cancels(problem, method):
    """Twice the weights at the same mean risk: the same walk."""
    doubled = replace(problem, weights=2.0 * problem.weights)
    one, two = (solve(p.oracle(), method, epochs=5) for p in (problem, doubled))
    np.testing.assert_array_equal(one.w, two.w)


# -- how it ends ----------------------------------------------------------------------


def test_max_iter_counts_epochs(problem, method):
    result = solve(problem.oracle(), method, epochs=3)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == len(result.trace) == 3
    assert [record.number for record in result.trace] == [1, 2, 3]
    assert set(result.timings) == {"sgd", "certificate", "total"}
    assert result.timings["sgd"] + result.timings["certificate"] <= result.timings["total"]


def test_default_epochs(problem):
    assert solve(problem.oracle(), "sgd", epochs=None).n_iter == 10
    assert solve(problem.oracle(), "pegasos", epochs=None).n_iter == 100 * C / ROWS == 10
    assert default_epochs("pegasos", 1e-3, 1000) == 1
    assert default_epochs("pegasos", 12.0, 1000) == 2  # 1200 steps
    assert default_epochs("pegasos", 1e9, 1000) == 100


def test_converged(problem, method):
    result = solve(problem.oracle(), method, epochs=1000, relative=0.05)
    assert result.status is Status.CONVERGED
    assert result.certificate.relative_gap <= 0.05
    assert all(record.relative_gap > 0.05 for record in result.trace[:-1])


def test_stopped_by_the_observer(problem, method):
    seen = []
    result = solve(
        problem.oracle(), method, observer=lambda record: seen.append(record) or len(seen) == 2
    )
    assert result.status is Status.STOPPED
    assert result.trace == tuple(seen)
    assert len(seen) == 2


def test_time_limit(problem, method):
    """Without time there are still the steps of one block."""
    oracle = problem.oracle(block_numbers=200)
    result = solve(oracle, method, time_limit=0.0)
    assert result.status is Status.TIME_LIMIT
    assert result.n_iter == 1
    assert_honest(problem, result, optimum(problem.oracle()))
    whole = solve(oracle, method, epochs=1)
    assert whole.status is Status.MAX_ITER
    assert whole.trace[0].trial != result.trace[0].trial


def test_interrupt_in_the_observer_keeps_the_model(problem, method):
    def observer(record):
        if record.number == 3:
            raise KeyboardInterrupt

    result = solve(problem.oracle(), method, observer=observer)
    assert result.status is Status.INTERRUPTED
    assert result.n_iter == 3
    assert_honest(problem, result, optimum(problem.oracle()))


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


def test_interrupt_at_any_moment_keeps_the_model(problem, method):
    best = optimum(problem.oracle())
    interrupted = 0
    for calls in range(1, 120, 7):
        executor = Interrupting(calls)
        try:
            result = solve(problem.oracle(executor, block_numbers=500), method, epochs=4)
        except KeyboardInterrupt:
            assert interrupted == 0  # only before the first point is known
            continue
        interrupted += result.status is Status.INTERRUPTED
        assert_honest(problem, result, best)
    assert interrupted > 5


def test_interrupt_during_the_walk_keeps_the_model(problem, method, monkeypatch):
    from cutplane.solvers.stochastic import Steps

    visits = 0
    visit = Steps.visit

    def interrupted(self, *args):
        nonlocal visits
        visits += 1
        if visits == 40:
            raise KeyboardInterrupt
        visit(self, *args)

    monkeypatch.setattr(Steps, "visit", interrupted)
    result = solve(problem.oracle(block_numbers=200), method)
    assert result.status is Status.INTERRUPTED
    assert_honest(problem, result, optimum(problem.oracle()))


# -- what is known beforehand ---------------------------------------------------------


def test_a_known_optimum_certifies_at_once(problem, method):
    """Cuts and a point from elsewhere count, but the steps begin at 0."""
    oracle = problem.oracle()
    bundle = BundleSolver(oracle, C, StopRule(relative=1e-6), FixedPosition(0.1))
    best = bundle.run()
    known = {"start": best.w, "cuts": bundle.active_cuts()}
    result = solve(oracle, method, relative=1e-5, run=known)
    assert result.status is Status.CONVERGED
    assert result.n_iter == 1
    assert result.certificate.primal <= best.certificate.primal * (1.0 + 1e-12)
    assert result.trace[0].trial == solve(oracle, method, epochs=1).trace[0].trial


def test_active_cuts_hold_the_bound(problem, method):
    """Any solver can go on from them."""
    oracle = problem.oracle()
    solver = StochasticSolver(oracle, C, StopRule(max_iter=10), method, np.random.default_rng(0))
    result = solver.run()
    bundle = BundleSolver(oracle, C, StopRule(max_iter=1), FixedPosition(0.1))
    again = bundle.run(start=result.w, cuts=solver.active_cuts())
    assert again.certificate.dual >= result.certificate.dual * (1.0 - 1e-9)


def test_other_risks_are_refused(case, make_problem, method):
    if case.classes is None:
        return
    oracle = make_problem(case).oracle()
    with pytest.raises(TypeError, match=r"Risk\(\d\) has no stochastic steps"):
        StochasticSolver(oracle, C, StopRule(), method, np.random.default_rng(0))
