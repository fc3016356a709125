"""The decomposition solver against other solvers, over all its settings."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
from sklearn import svm

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.kernels import CallableMatrix, Kernel, PrecomputedMatrix, ProductMatrix, points_of
from cutplane.loops import decomposition as loops
from cutplane.result import Status
from cutplane.solvers.decomposition.problem import DualProblem, DualSettings
from cutplane.solvers.decomposition.solver import DualSolver, solve_small


@dataclass(frozen=True)
class Case:
    """A problem with its kernel matrix and, by libsvm, the optimal value of the negated dual."""

    X: np.ndarray
    K: np.ndarray
    kernel: Kernel
    problem: DualProblem
    optimum: float

    def solver(self, executor=None, dtype=np.float64, **settings) -> DualSolver:
        executor = executor or SerialExecutor()
        exact = ProductMatrix(self.kernel, points_of(self.X), None, executor)
        matrix = ProductMatrix(self.kernel, points_of(self.X, dtype), None, executor)
        return DualSolver(
            matrix, self.problem, DualSettings(**settings), executor, definite=True, exact=exact
        )

    def value(self, beta: np.ndarray) -> float:
        rows = np.bincount(self.problem.rows, beta)
        return 0.5 * rows @ self.K @ rows + self.problem.linear @ beta

    def primal(self, beta: np.ndarray, bias: float) -> float:
        rows = np.bincount(self.problem.rows, beta)
        residual = (self.K @ rows)[self.problem.rows] + self.problem.linear + bias
        losses = self.problem.upper * np.maximum(0, -residual)
        losses -= self.problem.lower * np.maximum(0, residual)
        return 0.5 * rows @ self.K @ rows + bias * self.problem.total + losses.sum()


def overlapping(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(rows) < 0.4, 1.0, -1.0)
    return rng.normal(size=(rows, 4)) + 0.6 * y[:, None], y


def value_of(K: np.ndarray, c: np.ndarray, model, rows: int) -> float:
    beta = np.zeros(rows)
    beta[model.support_] = model.dual_coef_[0]
    return 0.5 * beta @ K @ beta + c @ beta


def classification(kernel: Kernel, C: float, *, unbalanced: bool = False, rows: int = 120) -> Case:
    X, y = overlapping(rows)
    points = points_of(X)
    K = ProductMatrix(kernel, points, None, SerialExecutor()).rows(np.arange(rows))
    bounds = C * np.where(y > 0, 5.0, 0.5) if unbalanced else np.full(rows, C)
    weight = {1.0: 5.0, -1.0: 0.5} if unbalanced else None
    model = svm.SVC(C=C, kernel="precomputed", tol=1e-8, class_weight=weight).fit(K, y)
    problem = DualProblem(-y, np.where(y > 0, 0, -bounds), np.where(y > 0, bounds, 0.0))
    return Case(X, K, kernel, problem, value_of(K, -y, model, rows))


def regression(C: float, epsilon: float) -> Case:
    X, _ = overlapping(80, 1)
    z = np.sin(X[:, 0]) + 0.2 * X[:, 1]
    kernel = Kernel("rbf", 0.3)
    K = ProductMatrix(kernel, points_of(X), None, SerialExecutor()).rows(np.arange(80))
    model = svm.SVR(C=C, epsilon=epsilon, kernel="precomputed", tol=1e-8).fit(K, z)
    value = value_of(K, -z, model, 80) + epsilon * np.abs(model.dual_coef_).sum()
    zero = np.zeros(80)
    problem = DualProblem(
        np.concatenate([epsilon - z, -epsilon - z]),
        np.concatenate([zero, zero - C]),
        np.concatenate([zero + C, zero]),
        row_of=np.tile(np.arange(80), 2),
    )
    return Case(X, K, kernel, problem, value)


def one_class(nu: float) -> Case:
    X, _ = overlapping(100, 2)
    kernel = Kernel("rbf", 0.3)
    K = ProductMatrix(kernel, points_of(X), None, SerialExecutor()).rows(np.arange(100))
    zero = np.zeros(100)
    if nu == 1.0:  # libsvm fails here; there is one feasible point only
        return Case(X, K, kernel, DualProblem(zero, zero, zero + 1.0, 100.0), 0.5 * K.sum())
    model = svm.OneClassSVM(nu=nu, kernel="precomputed", tol=1e-8).fit(K)
    problem = DualProblem(zero, zero, zero + 1.0, total=nu * 100)
    return Case(X, K, kernel, problem, value_of(K, zero, model, 100))


MAKERS = {
    "rbf": lambda: classification(Kernel("rbf", 0.5), 3.0),
    "rbf large C": lambda: classification(Kernel("rbf", 0.5), 1e2),
    "poly": lambda: classification(Kernel("poly", 0.2, 1.0, 3), 0.1),
    "linear": lambda: classification(Kernel("linear"), 1.0),
    "unbalanced": lambda: classification(Kernel("rbf", 0.5), 1.0, unbalanced=True),
    "poly unbalanced": lambda: classification(Kernel("poly", 0.2, 1.0, 2), 0.1, unbalanced=True),
    "regression": lambda: regression(2.0, 0.05),
    "exact regression": lambda: regression(1.0, 0.0),
    "one class": lambda: one_class(0.2),
    "one class, all": lambda: one_class(1.0),
}
_made: dict[str, Case] = {}


@pytest.fixture(params=MAKERS)
def case(request) -> Case:
    if request.param not in _made:
        _made[request.param] = MAKERS[request.param]()
    return _made[request.param]


ROW = 120 * 8  # bytes of a row, about
SETTINGS = {
    "default": {},
    "SMO": {"working_set_size": 2},
    "SMO without shrinking": {"working_set_size": 2, "shrinking": False},
    "four": {"working_set_size": 4},
    "ten": {"working_set_size": 10},
    "ten, quick to shrink": {"working_set_size": 10, "history": 3},
    "64": {"working_set_size": 64, "history": 2},
    "64 without shrinking": {"working_set_size": 64, "shrinking": False},
    "100 kept": {"working_set_size": 70, "history": 1},
    "cache of two rows": {"cache_bytes": 1.0, "history": 10},
    "cache of thirty rows": {"working_set_size": 20, "cache_bytes": 30 * ROW},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_same_optimum_as_libsvm(case, name):
    result = case.solver(tol=1e-6, **SETTINGS[name]).run()
    assert result.status is Status.CONVERGED
    beta, problem = result.w, case.problem
    assert np.all(beta >= problem.lower) and np.all(beta <= problem.upper)
    assert beta.sum() == pytest.approx(problem.total, abs=1e-9 * max(1, np.abs(beta).sum()))
    scale = abs(case.optimum)
    assert case.value(beta) == pytest.approx(case.optimum, abs=1e-6 * scale)
    certificate = result.certificate
    assert certificate.kind == "exact"
    assert certificate.primal == pytest.approx(case.primal(beta, result.bias), rel=1e-9)
    assert certificate.dual == pytest.approx(-case.value(beta), rel=1e-9)
    rounding = 1e-9 * scale
    assert certificate.dual <= -case.optimum + rounding
    assert -case.optimum <= certificate.primal + rounding
    assert 0 <= certificate.gap <= 1e-5 * scale


@pytest.mark.parametrize("max_iter", [1, 2, 5, 20])
@pytest.mark.parametrize("shrinking", [True, False])
def test_bounds_hold_at_every_stop(case, max_iter, shrinking):
    """dual ≤ optimum ≤ primal, wherever the solver stops, shrunk or not."""
    solver = case.solver(
        tol=1e-7, working_set_size=10, max_iter=max_iter, history=1, shrinking=shrinking
    )
    result = solver.run()
    assert result.status in (Status.MAX_ITER, Status.CONVERGED)
    rounding = 1e-9 * abs(case.optimum)
    assert result.certificate.dual <= -case.optimum + rounding
    assert -case.optimum <= result.certificate.primal + rounding
    assert result.certificate.primal == pytest.approx(case.primal(result.w, result.bias), rel=1e-9)


def test_single_precision_is_close(case):
    """Rows in float32, sums in float64."""
    solver = case.solver(dtype=np.float32, tol=1e-3, working_set_size=64)
    result = solver.run()
    assert result.status is Status.CONVERGED
    scale = abs(case.optimum)
    assert case.value(result.w) == pytest.approx(case.optimum, abs=1e-3 * scale)
    exact = case.primal(result.w, result.bias)
    assert result.certificate.primal == pytest.approx(exact, abs=1e-4 * scale)


@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_single_precision_is_verified_in_double_where_it_matters(tol, monkeypatch):
    """Rows that are certainly without a loss are left in single precision; the bounds hold."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(800) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(800, 3)) + 1.5 * y[:, None]
    kernel, executor = Kernel("rbf", 0.5), SerialExecutor()
    exact = ProductMatrix(kernel, points_of(X), None, executor)
    asked, combine = [], ProductMatrix.combine

    def counted(self, which, coef, columns=None):
        asked.append(len(coef) * (800 if columns is None else len(columns)))
        return combine(self, which, coef, columns)

    monkeypatch.setattr(ProductMatrix, "combine", counted)
    problem = DualProblem(-y, np.where(y > 0, 0.0, -2.0), np.where(y > 0, 2.0, 0.0))
    matrix = ProductMatrix(kernel, points_of(X, np.float32), None, executor)
    result = DualSolver(
        matrix, problem, DualSettings(tol=tol), executor, definite=True, exact=exact
    ).run()
    assert result.status is Status.CONVERGED
    beta = result.w.astype(np.longdouble)
    assert sum(asked) < 0.7 * 800 * np.count_nonzero(beta)
    apart = ((X[:, None].astype(np.longdouble) - X[None]) ** 2).sum(axis=2)
    s = np.exp(-apart / 2) @ beta
    primal = beta @ s / 2 + 2 * np.maximum(0, 1 - y * (s + result.bias)).sum()
    dual = y @ beta - beta @ s / 2
    certificate = result.certificate
    assert certificate.kind == "exact"
    assert dual - 1e-8 * abs(dual) <= certificate.dual <= dual
    assert primal <= certificate.primal <= primal * (1 + 1e-8)


def test_whole_rows_of_variables_that_moved_only(monkeypatch):
    """Of the others nothing but the values among a working set is computed, if they are many."""
    X, y = overlapping(3000)
    X += 1.5 * y[:, None]
    problem = DualProblem(-y, np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0))
    kernel, executor = Kernel("rbf", 0.5), SerialExecutor()
    matrix = ProductMatrix(kernel, points_of(X), None, executor)
    fill, filled, sets = ProductMatrix.fill, [], []

    def counted(self, which, slots, out):
        filled.extend(which if self.columns > 600 else ())
        fill(self, which, slots, out)

    monkeypatch.setattr(ProductMatrix, "fill", counted)
    settings = DualSettings(tol=1e-6, shrinking=False)
    solver = DualSolver(matrix, problem, settings, executor, definite=True)
    optimise = solver._optimise

    def watched(chosen, g, beta, violation, goal):
        state = optimise(chosen, g, beta, violation, goal)
        sets.append((set(chosen), set(np.flatnonzero(state.beta != beta)), set(filled)))
        return state

    solver._optimise = watched
    assert solver.run().status is Status.CONVERGED
    chosen, moved, computed = sets[0]
    assert computed == moved and 2 * len(moved) < len(chosen)
    assert len(filled) == len(set(filled))
    assert 2 * len(filled) < len(set().union(*(chosen for chosen, _, _ in sets)))


# -- small problems: the working set is all of them -----------------------------------


def test_small_problems_are_one_working_set(case):
    result = case.solver(tol=1e-8).run()
    assert result.status is Status.CONVERGED
    assert all(record.cuts == len(case.problem.linear) for record in result.trace)
    assert result.n_iter <= 20
    again = case.solver(tol=1e-7).run(result.w)
    assert again.n_iter == 1
    assert again.certificate.gap <= result.certificate.gap * (1 + 1e-6) + 1e-9


def test_values_of_a_larger_matrix(case):
    """Rows in another order, stored by somebody else."""
    K = case.K[np.ix_(case.problem.rows, case.problem.rows)]
    problem = dataclasses.replace(case.problem, row_of=None)
    size = len(problem.linear)
    rows = np.random.default_rng(0).permutation(size + 5)[:size]
    values = np.full((size + 5, size + 5), np.nan)
    values[np.ix_(rows, rows)] = K
    beta, room = problem.start(), np.empty((size, size))
    matrix, settings = PrecomputedMatrix(values), DualSettings(tol=1e-8)
    for _ in range(10):  # it makes so many steps, and may be called again
        _, found = solve_small(matrix, rows, None, room, problem, settings, beta)
    assert found.gap <= 1e-8 * abs(found.primal)
    assert case.value(beta) == pytest.approx(case.optimum, rel=1e-7, abs=1e-9)
    assert found.dual == pytest.approx(-case.value(beta), rel=1e-9, abs=1e-12)
    assert found.primal == pytest.approx(case.primal(beta, found.bias), rel=1e-9)


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("poly", 0.5, 1.0), Kernel("rbf", 0.3)])
@pytest.mark.parametrize("height", [2, 30, 122])
@pytest.mark.parametrize("started", [False, True])
def test_rows_that_are_computed_when_a_step_needs_them(kernel, height, started, monkeypatch):
    """Whatever fits into the room, the end is the same; all values are computed if too few do."""
    case, size = classification(kernel, 0.3), 120
    matrix = ProductMatrix(kernel, points_of(case.X), None, SerialExecutor())
    calls, whole = [], ProductMatrix.whole
    monkeypatch.setattr(ProductMatrix, "whole", lambda self: calls.append(1) or whole(self))
    problem, settings = case.problem, DualSettings(tol=1e-8)
    beta = 0.1 * (problem.lower + problem.upper) if started else problem.start()
    beta = problem.start(beta)
    arguments = matrix, np.arange(size), matrix.compiled(), np.empty((height, size))
    _, found = solve_small(*arguments, problem, settings, beta)
    assert len(calls) == (height < 122)  # more than 30 rows are support vectors
    assert found.gap <= 1e-8 * abs(found.primal)
    assert case.value(beta) == pytest.approx(case.optimum, rel=1e-7, abs=1e-9)
    assert found.dual == pytest.approx(-case.value(beta), rel=1e-9, abs=1e-12)
    assert found.primal == pytest.approx(case.primal(beta, found.bias), rel=1e-9)


def test_rows_that_compiled_loops_do_not_compute():
    X, executor = np.random.default_rng(0).normal(size=(20, 3)), SerialExecutor()
    wide, direct = np.hstack([X] * 40), dataclasses.replace(points_of(X), direct=True)
    for points in (points_of(wide), points_of(X, np.float32), direct):
        assert ProductMatrix(Kernel("rbf"), points, None, executor).compiled() is None
    assert ProductMatrix(Kernel("sigmoid"), points_of(X), None, executor).compiled() is None


def test_small_problem_stops_when_told(monkeypatch):
    case = classification(Kernel("linear"), 1e3, rows=300)
    monkeypatch.setattr("cutplane.solvers.decomposition.solver.STEPS_PER_VARIABLE", 1)
    few = case.solver(tol=1e-9, max_iter=2).run()
    assert few.status is Status.MAX_ITER and few.n_iter == 2
    assert case.solver(tol=1e-9, time_limit=1e-9).run().status is Status.TIME_LIMIT
    exact = case.solver(tol=0.0).run()  # ends where the gap is nothing but rounding
    assert exact.status in (Status.CONVERGED, Status.NUMERICALLY_LIMITED)
    left = case.primal(exact.w, exact.bias) + case.value(exact.w)
    assert abs(left) <= 1e-9 * case.primal(exact.w, exact.bias)
    # What is certain is less: sums of 300 terms of that size are rounded, times C for each loss.
    assert left <= exact.certificate.gap <= 1e-8 * exact.certificate.primal
    solver = case.solver(tol=1e-9)
    solver._observer = lambda record: record.number == 3
    stopped = solver.run()
    assert stopped.status is Status.STOPPED and stopped.n_iter == 3

    def interrupt(record) -> bool:
        raise KeyboardInterrupt

    solver = case.solver(tol=1e-9)
    solver._observer = interrupt
    kept = solver.run()
    assert kept.status is Status.INTERRUPTED
    for result in (few, stopped, kept):
        certificate = result.certificate
        assert certificate.dual <= exact.certificate.primal <= certificate.primal
        assert certificate.primal == pytest.approx(case.primal(result.w, result.bias), rel=1e-9)


# -- parts ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_inner_problem_against_a_generic_solver(seed):
    """Box and one equality; the matrix may be singular."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    root = rng.normal(size=(size, int(rng.integers(1, size + 1))))
    K = root @ root.T
    lower = -rng.random(size) * (rng.random(size) < 0.7)
    upper = rng.random(size) + 0.1
    beta = np.clip(0.2 * rng.normal(size=size), lower, upper)
    c = rng.normal(size=size)
    total = beta.sum()
    g, point = K @ beta + c, beta.copy()
    # The block of K is somewhere in a larger array.
    rows, columns = rng.permutation(size + 2)[:size], rng.permutation(size + 3)[:size]
    source = np.full((size + 2, size + 3), np.nan)
    source[np.ix_(rows, columns)] = K
    block, marks = (np.empty((size, size)), np.full(size, -1)), np.empty((3, size), np.int64)
    box = K.diagonal().copy(), g, point, lower, upper
    steps = loops.pairwise_steps(source, rows, columns, None, *block, *box, 1e-10, 10**6, *marks)
    reference = scipy.optimize.minimize(
        lambda b: 0.5 * b @ K @ b + c @ b,
        beta,
        jac=lambda b: K @ b + c,
        bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": lambda b: b.sum() - total, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert point.sum() == pytest.approx(total, abs=1e-12)
    assert np.all((point >= lower) & (point <= upper))
    assert 0.5 * point @ K @ point + c @ point <= reference.fun + 1e-9
    np.testing.assert_allclose(g, K @ point + c, atol=1e-9)
    assert steps[1] <= 1e-10


@pytest.mark.parametrize("seed", range(8))
def test_best_bias_against_all_breakpoints(seed):
    rng = np.random.default_rng(seed)
    size = 30
    lower, upper = -rng.integers(0, 3, size).astype(float), rng.integers(0, 3, size).astype(float)
    beta = lower + (upper - lower) * np.clip(np.round(rng.normal(0.5, 0.7, size), 1), 0.0, 1.0)
    g = np.round(rng.normal(size=size), 1)  # with ties

    def gap_at(b: float) -> float:
        r = g + b
        return ((beta - lower) * np.maximum(0, r) + (upper - beta) * np.maximum(0, -r)).sum()

    violation, bias, gap = loops.assess(g, beta, lower, upper, True)
    assert gap == pytest.approx(gap_at(bias), abs=1e-12)
    assert gap == pytest.approx(min(gap_at(b) for b in -g), abs=1e-9)
    assert violation == max(0.0, g[beta > lower].max() - g[beta < upper].min())
    assert loops.assess(g, beta, lower, upper, False)[2] >= gap - 1e-12


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_bias_is_in_the_middle_of_what_is_best(side):
    """Two variables at bounds leave an interval, one leaves half a line, and none all of it."""
    lower, upper = np.array([0.0, -1.0]), np.array([1.0, 0.0])
    g, beta = side * np.array([3.0, 1.0]), np.array([1.0, -1.0])
    wrong = 2.0 if side > 0 else 0.0
    assert loops.assess(g, beta, lower, upper, True) == (wrong, -side * 2.0, wrong)
    one = np.zeros(1)
    assert loops.assess(one + 5.0, one, one, one + 1.0, True) == (0.0, -5.0, 0.0)
    assert loops.assess(one + 5.0, one, one, one, True) == (0.0, 0.0, 0.0)


def test_start_and_repair_are_feasible():
    rng = np.random.default_rng(0)
    for total in (0.0, 3.3, 10.0):
        lower = np.zeros(20) if total else -rng.random(20)
        problem = DualProblem(np.zeros(20), lower, np.ones(20), total)
        for beta in (problem.start(), problem.start(5 * rng.normal(size=20))):
            assert np.all((beta >= lower) & (beta <= 1.0))
            assert beta.sum() == pytest.approx(total)
    # nothing to repair
    problem = DualProblem(np.zeros(4), -np.ones(4), np.ones(4))
    beta = np.array([0.5, -0.5, 0.25, -0.25])
    np.testing.assert_array_equal(problem.start(beta), beta)


# -- stopping ---------------------------------------------------------------------------


@pytest.fixture
def some() -> Case:
    return classification(Kernel("rbf", 0.5), 100.0)


def test_threads_do_not_change_a_bit(some, monkeypatch):
    from cutplane import kernels
    from cutplane.solvers.decomposition import solver

    monkeypatch.setattr(kernels.points, "CHUNK", 37)
    monkeypatch.setattr(solver, "CHUNK", 50)
    settings = {"working_set_size": 20, "history": 5, "cache_bytes": 60 * ROW, "tol": 1e-5}
    one = some.solver(**settings).run()
    for threads in (2, 8):
        with ThreadExecutor(threads) as executor:
            many = some.solver(executor, **settings).run()
        np.testing.assert_array_equal(one.w, many.w)
        assert one.bias == many.bias and one.n_iter == many.n_iter


def test_warm_start_at_the_optimum_stays(some):
    first = some.solver(tol=1e-6, working_set_size=20).run()
    second = some.solver(tol=1e-5, working_set_size=20).run(first.w)
    np.testing.assert_array_equal(first.w, second.w)
    assert len(second.trace) == 1


def test_time_limit(some):
    result = some.solver(tol=1e-9, working_set_size=2, time_limit=0.0).run()
    assert result.status is Status.TIME_LIMIT and result.n_iter == 1
    assert np.isfinite(result.certificate.gap)


def test_observer_sees_the_violation_and_stops(some):
    seen = []

    def observer(record) -> bool:
        seen.append(record)
        return len(seen) == 3

    solver = DualSolver(
        ProductMatrix(some.kernel, points_of(some.X), None, SerialExecutor()),
        some.problem,
        DualSettings(working_set_size=64, tol=1e-8, history=1),
        SerialExecutor(),
        observer,
    )
    result = solver.run()
    assert result.status is Status.STOPPED and result.trace == tuple(seen)
    assert all(record.violation > 1e-8 for record in seen)
    assert seen[0].active == 120 and seen[-1].active <= 120
    assert [record.number for record in seen] == [1, 2, 3]
    assert np.all(np.diff([record.dual for record in seen]) > 0)


@pytest.mark.parametrize("calls", [1, 2, 7, 20])
@pytest.mark.parametrize("where", ["fill", "add_rows"])
def test_interrupt_anywhere_leaves_a_consistent_model(some, calls, where, monkeypatch):
    """Ctrl-C within a product or an update: the last complete iteration counts."""
    from cutplane.kernels import ProductMatrix

    owner = ProductMatrix if where == "fill" else loops
    original, count = getattr(owner, where), 0

    def interrupted(*arguments):
        nonlocal count
        count += 1
        if count == calls:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(owner, where, interrupted)
    result = some.solver(tol=1e-8, working_set_size=10, history=3).run()
    assert result.status is Status.INTERRUPTED
    assert result.certificate.primal == pytest.approx(some.primal(result.w, result.bias), rel=1e-9)
    assert result.certificate.dual == pytest.approx(-some.value(result.w), rel=1e-9, abs=1e-9)


def test_interrupt_does_not_wait_for_all_variables(some, monkeypatch):
    """Where it would take long to verify, nothing is said of the model's objective."""
    optimum = some.optimum
    for hurry, known in ((-1.0, False), (1e9, True)):
        monkeypatch.setattr("cutplane.solvers.decomposition.solver.HURRY", hurry)
        solver = some.solver(working_set_size=10, history=5, tol=1e-9)

        def interrupt(record, solver=solver) -> bool:
            if solver._state.absent:
                raise KeyboardInterrupt
            return False

        solver._observer = interrupt
        result = solver.run()
        assert result.status is Status.INTERRUPTED
        certificate = result.certificate
        assert np.isfinite(certificate.primal) == known == np.isfinite(certificate.relative_gap)
        assert certificate.kind == ("exact" if known else "withheld")
        if known:
            assert certificate.dual <= -optimum
            assert certificate.dual == pytest.approx(-some.value(result.w), rel=1e-9)


def test_a_time_limit_leaves_room_for_the_proof(some, monkeypatch):
    solver = some.solver(tol=1e-6, working_set_size=10)
    support = np.count_nonzero(solver.run().w)
    values = support * len(some.X) / solver._cache.computed_values
    assert solver._proof_seconds() == pytest.approx(solver._seconds["rows"] * values)
    monkeypatch.setattr(DualSolver, "_proof_seconds", lambda self: 1e6)
    result = some.solver(tol=1e-6, working_set_size=10, time_limit=1e6).run()
    assert result.status is Status.TIME_LIMIT and result.n_iter == 1
    assert -np.inf < result.certificate.dual <= -some.optimum <= result.certificate.primal


def test_the_time_of_the_proof_is_told_by_all_values_computed(some, monkeypatch):
    """Also by those among a working set, which belong to no row in the cache."""
    now = [0.0]

    def values(A, B):
        now[0] += len(A) * len(B)  # a second each
        return ProductMatrix(some.kernel, points_of(A), points_of(B), SerialExecutor()).rows(
            np.arange(len(A))
        )

    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr("cutplane.solvers.decomposition.solver.time", clock)
    settings = DualSettings(working_set_size=80, max_iter=1)
    matrix = CallableMatrix(values, some.X)
    solver = DualSolver(matrix, some.problem, settings, SerialExecutor())
    support = np.count_nonzero(solver.run().w)
    assert solver._proof_seconds() == pytest.approx(support * len(some.X))


def test_interrupt_before_the_first_point_is_passed_on(some, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(DualSolver, "_first_state", interrupted)
    with pytest.raises(KeyboardInterrupt):
        some.solver().run()


def test_zero_tolerance_ends_at_the_limit_of_precision(some):
    result = some.solver(tol=0.0, working_set_size=64).run()
    assert result.status in (Status.NUMERICALLY_LIMITED, Status.CONVERGED)
    assert some.value(result.w) == pytest.approx(some.optimum, rel=1e-9)
