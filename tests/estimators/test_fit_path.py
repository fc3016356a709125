"""The one fit path, with problems of its own; what is stored; one meaning of C."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cutplane import (
    SVC,
    Iteration,
    LinearSVC,
    MeasureSVC,
    OrdinalSVC,
    RankSVM,
    SampledCutSVC,
    SolveResult,
    Status,
    linear_svc_path,
)
from cutplane.estimators._fit import Memory, Problem, Ready, solve, sum_of
from cutplane.estimators._problems import RowProblem
from cutplane.exec import SerialExecutor
from cutplane.result import Certificate


class Newton:
    """Finds the root of C with Newton's steps; each is an iteration."""

    def __init__(self, C, stop, observe):
        self.C, self.stop, self.observe = C, stop, observe
        self.x = None

    def run(self, start):
        self.x = 1.0 if start is None else float(start[0])
        trace, status = [], Status.CONVERGED
        while abs(self.x**2 - self.C) > 1e-12 * self.C or not trace:
            self.x = 0.5 * (self.x + self.C / self.x)
            trace.append(Iteration(len(trace) + 1, self.x, 0.0, 0.0, 1.0, 0, 0.0))
            if self.observe(trace[-1]):
                status = Status.STOPPED
            elif self.stop.time_limit == 0.0:
                status = Status.TIME_LIMIT
            if status is not Status.CONVERGED:
                break
        w = np.array([self.x])
        proof = Certificate(self.x, 0.0)
        return SolveResult(w, 0.0, status, proof, len(trace), tuple(trace), {"total": 0.0})


@dataclasses.dataclass
class Root(Problem):
    """All that a problem must have: a label and a solver. The rest has defaults."""

    label: str
    fault: BaseException | None = None

    def solver(self, run):
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        return Ready(Newton(run.C, run.stop, run.observe), run.start)

    def memory(self, solver, result, run):
        return Memory(run.C, None)


def settings(C=2.0, **parameters):
    return dataclasses.replace(LinearSVC(C=C, **parameters)._check_common(), warm_start=False)


def test_a_problem_of_ones_own():
    fitted = solve([Root("two")], settings(), SerialExecutor())
    assert fitted.results[0].w[0] == pytest.approx(np.sqrt(2.0))
    assert fitted.results[0].status is Status.CONVERGED


def test_a_path_starts_from_the_solution_before():
    cold = solve([Root("a")], settings(9.0), SerialExecutor()).results[0].n_iter
    path = solve([Root("a"), Root("b")], settings(), SerialExecutor(), Cs=[8.9, 9.0])
    assert [r.w[0] for r in path.results] == pytest.approx(np.sqrt([8.9, 8.9, 9.0, 9.0]))
    assert path.results[2].n_iter < cold


def test_an_interrupt_between_two_fits_of_a_path_completes_it():
    first, second = Root("a"), Root("b")

    def interrupt(record):
        if record.problem == "b":
            first.fault = KeyboardInterrupt()

    path = solve([first, second], settings(callback=interrupt), SerialExecutor(), Cs=[8.0, 9.0])
    statuses = [result.status for result in path.results]
    assert statuses == [Status.CONVERGED, Status.CONVERGED, Status.INTERRUPTED, Status.INTERRUPTED]
    assert [result.n_iter for result in path.results[2:]] == [1, 1]


def test_an_interrupt_before_any_result_is_raised():
    with pytest.raises(KeyboardInterrupt):
        solve([Root("a", KeyboardInterrupt())], settings(), SerialExecutor())


def test_a_stop_leaves_a_complete_model():
    stopping = settings(callback=lambda record: record.problem == "b")
    fitted = solve([Root(name) for name in "abc"], stopping, SerialExecutor())
    statuses = [result.status for result in fitted.results]
    assert statuses == [Status.CONVERGED, Status.STOPPED, Status.STOPPED]
    assert fitted.results[2].n_iter == 1


def test_an_interrupted_path_of_the_estimator_is_complete(cancer, monkeypatch):
    original, calls = RowProblem.solver, 0

    def interrupted(problem, run):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return original(problem, run)

    monkeypatch.setattr(RowProblem, "solver", interrupted)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        path = linear_svc_path(*cancer, [1e-3, 1e-2, 1e-1], solver="ocas", tol=1e-6)
    assert [fits[0].status for fits in path.results] == [
        Status.CONVERGED,
        Status.INTERRUPTED,
        Status.INTERRUPTED,
    ]


# -- what is stored -------------------------------------------------------------------


def test_the_sum_of_certificates_is_of_the_weakest_kind():
    exact, estimated = Certificate(3.0, 2.0), Certificate(5.0, 4.5, "estimated")
    assert sum_of([exact]) is exact
    assert sum_of([exact, estimated]) == Certificate(8.0, 6.5, "estimated")
    assert sum_of([exact, Certificate(1.0, -np.inf, "withheld")]).gap == np.inf


@pytest.mark.parametrize("model", [LinearSVC(), SVC(), SampledCutSVC(random_state=0)], ids=repr)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_same_attributes_for_one_problem_and_many(model, classes, iris):
    X, y = (array[: 50 * classes] for array in iris)
    model.fit(X, y)
    count = 1 if classes == 2 else 3
    assert len(model.results_) == len(model.certificates_) == count
    assert [r.certificate for r in model.results_] == model.certificates_
    assert model.certificate_.primal == pytest.approx(sum(c.primal for c in model.certificates_))
    assert model.certificate_.dual == pytest.approx(sum(c.dual for c in model.certificates_))
    assert model.n_iter_ == max(r.n_iter for r in model.results_)
    assert isinstance(model.n_iter_, int)


# -- C ----------------------------------------------------------------------------------

PER_ROW = [
    LinearSVC(solver="ocas"),
    MeasureSVC("roc_auc"),
    MeasureSVC("f1"),
    MeasureSVC("error_rate"),
    RankSVM(),
    OrdinalSVC(),
]


@pytest.mark.parametrize("model", PER_ROW, ids=repr)
def test_every_row_twice_is_twice_the_penalty(model, noisy):
    """C multiplies a sum: for every estimator, and with the same default."""
    X, y = noisy
    twice = (np.vstack([X, X]), np.concatenate([y, y]))
    extra = [
        {"qid": np.zeros(len(rows), int)} if isinstance(model, RankSVM) else {}
        for rows in (X, twice[0])
    ]
    assert model.C == 1.0
    model.set_params(tol=1e-8)
    one = model.set_params(C=0.02).fit(X, y, **extra[0]).certificate_.primal
    two = model.set_params(C=0.01).fit(*twice, **extra[1]).certificate_.primal
    assert one == pytest.approx(two, rel=1e-6)


def test_threads_are_no_executor(noisy):
    with pytest.raises(ValueError, match="None or a cluster, got 2; for threads give n_jobs=2"):
        LinearSVC(executor=2).fit(*noisy)
