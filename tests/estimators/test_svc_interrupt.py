"""Ctrl-C: the fit stops within a second and the best model so far is kept."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from svc_reference import assert_certified, quiet_fit, results

from cutplane import (
    SVC,
    LinearSVC,
    MeasureSVC,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    SampledCutSVC,
    Status,
)
from cutplane.estimators import linear_svc
from cutplane.loops import smoothed
from cutplane.objective import LinearOracle

VARIANTS = {
    "hinge": {},
    "cpa": {"solver": "cpa"},
    "squared_hinge": {"loss": "squared_hinge"},
    "logistic": {"loss": "logistic"},
    "crammer_singer": {"multi_class": "crammer_singer"},
    "no bias": {"fit_intercept": False},
}


class Interrupt:
    """Raises KeyboardInterrupt at a certain call."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.calls = 0

    def __call__(self, *arguments) -> None:
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt


def fit(model: LinearSVC, X, y) -> LinearSVC:
    """An interrupt that gets out would end pytest, not the test."""
    try:
        return quiet_fit(model, X, y)
    except KeyboardInterrupt:
        pytest.fail("the interrupt threw the model away")


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_the_best_model_is_kept(variant, cancer, iris):
    X, y = iris if variant.get("multi_class") else cancer
    model = LinearSVC(tol=1e-9, callback=Interrupt(5), **variant)
    with pytest.warns(ConvergenceWarning, match="interrupted") as caught:
        model.fit(X, y)
    assert model.results_[0].status is Status.INTERRUPTED
    assert model.n_iter_ == 5
    assert_certified(model, X, y)
    assert f"{model.certificate_.gap:.3g}" in str(caught[0].message)
    same = fit(LinearSVC(tol=1e-9, max_iter=5, **variant), X, y)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    np.testing.assert_allclose(model.intercept_, same.intercept_, rtol=1e-12)


@pytest.mark.parametrize("at", [1, 8, 30])
def test_one_vs_rest_is_complete(digits, at):
    X, y = digits
    model = fit(LinearSVC(tol=1e-9, callback=Interrupt(at)), X, y)
    assert model.coef_.shape == (10, 64)
    assert_certified(model, X, y)
    statuses = [result.status for result in results(model)]
    ended = statuses.index(Status.INTERRUPTED)
    assert statuses == [Status.CONVERGED] * ended + [Status.INTERRUPTED] * (10 - ended)
    assert all(result.n_iter == 1 for result in results(model)[ended + 1 :])
    assert model.score(X, y) > 0.5


def test_classes_solved_before_the_interrupt_stay_converged(iris):
    X, y = iris
    first = LinearSVC(tol=1e-6).fit(X, y).results_[0]
    model = fit(LinearSVC(tol=1e-6, callback=Interrupt(first.n_iter + 1)), X, y)
    assert [result.status for result in model.results_] == [
        Status.CONVERGED,
        Status.INTERRUPTED,
        Status.INTERRUPTED,
    ]
    np.testing.assert_array_equal(model.coef_[0], first.w)


class InterruptAtCall:
    """Interrupts at the n-th call of a function of the solver, wherever that is.

    Ctrl-C comes in the middle of a step, not only between two.
    """

    WHERE = tuple(f"cutplane{os.sep}{part}" for part in ("solvers", "objective", "risks", "exec"))

    def __init__(self, at: float) -> None:
        self.at = at
        self.calls = 0

    def __call__(self, frame, event, argument) -> None:
        if event == "call" and any(part in frame.f_code.co_filename for part in self.WHERE):
            self.calls += 1
            if self.calls >= self.at:
                sys.setprofile(None)
                raise KeyboardInterrupt

    def fit(self, X, y, tol: float) -> LinearSVC:
        self.records: list[int] = []  # calls made until each iteration's end
        self.between: list[int] = []  # some calls between two classes
        model = LinearSVC(tol=tol, n_jobs=1, callback=self.note)
        before = sys.getprofile()
        sys.setprofile(self)
        try:
            return quiet_fit(model, X, y)
        finally:
            sys.setprofile(before)

    def note(self, record) -> None:
        if record.number == 1 and self.records:
            last = self.records[-1]  # of the class before
            self.between += range(last + 5, self.calls, 17)
        self.records.append(self.calls)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("tol", "stride"), [(1e-9, 311), pytest.param(0.5, 1, marks=pytest.mark.slow)]
)
def test_an_interrupt_anywhere_leaves_a_consistent_model(iris, classes, tol, stride):
    """Also between two classes: what was done before must not be lost."""
    X, y = iris[0], np.minimum(iris[1], classes - 1)
    counter = InterruptAtCall(np.inf)
    whole = counter.fit(X, y, tol)
    lost = []
    steady = range(counter.records[0] + 1, counter.records[-1], stride)
    for at in sorted({*steady, *counter.between}):
        try:
            model = InterruptAtCall(at).fit(X, y, tol)
        except KeyboardInterrupt:
            lost.append(at)
            continue
        assert_certified(model, X, y)
        assert model.coef_.shape == whole.coef_.shape
        assert results(model)[-1].status is Status.INTERRUPTED
        for result, known in zip(results(model), results(whole), strict=True):
            assert result.certificate.dual <= known.certificate.primal * (1 + 1e-9)
    assert not lost, f"models lost of interrupts at calls {lost} of {counter.calls}"


def test_an_interrupt_before_the_first_point_is_raised(monkeypatch, cancer):
    """There is no model yet: the interrupt is the user's, not ours to swallow."""
    interrupt = Interrupt(1)
    monkeypatch.setattr(LinearOracle, "evaluate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        LinearSVC(solver="ocas").fit(*cancer)


def test_an_interrupt_in_the_call_for_small_data(monkeypatch, iris):
    """Most of a fit of small data is one compiled call per class: classes before it are kept."""
    X, y = iris
    whole = LinearSVC().fit(X, y)
    compiled, interrupt = smoothed.small_newton, Interrupt(2)

    def small_newton(*arguments):
        interrupt()
        return compiled(*arguments)

    monkeypatch.setattr(smoothed, "small_newton", small_newton)
    model = fit(LinearSVC(), X, y)
    assert [result.status for result in model.results_] == [
        Status.CONVERGED,
        Status.INTERRUPTED,
        Status.INTERRUPTED,
    ]
    np.testing.assert_array_equal(model.coef_[0], whole.coef_[0])
    assert not model.coef_[1].any()
    assert_certified(model, X, y)


def test_a_warm_start_goes_on_after_an_interrupt(cancer):
    X, y = cancer
    model = LinearSVC(tol=1e-6, warm_start=True, callback=Interrupt(20))
    fit(model, X, y)
    rest = model.set_params(callback=None).fit(X, y)
    assert_certified(rest, X, y)
    assert rest.results_[0].status is Status.CONVERGED


# -- interrupts that somebody drops -----------------------------------------------


def drop_an_interrupt(*arguments) -> None:
    """Ctrl-C in a callback that C calls, as LLVM does while compiled code loads."""
    ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()


class DropAt(Interrupt):
    def __call__(self, *arguments) -> None:
        self.calls += 1
        if self.calls == self.at:
            drop_an_interrupt()


dropped = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(
        threading.current_thread() is not threading.main_thread(), reason="signals go elsewhere"
    ),
]


def marked(test):
    for mark in dropped:
        test = mark(test)
    return test


@marked
@pytest.mark.parametrize(
    "make",
    [
        LinearSVC,
        lambda **options: LinearSVC(solver="ocas", **options),
        lambda **options: LinearSVC(solver="sgd", **options),
        MeasureSVC,
        RankSVM,
        OrdinalSVC,
        lambda **options: SVC(tol=1e-9, C=100.0, **options),
        OneClassSVM,
        SampledCutSVC,
    ],
)
def test_a_dropped_interrupt_ends_the_fit(cancer, make):
    X, y = cancer
    before = signal.getsignal(signal.SIGINT)
    model = make(callback=DropAt(1))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    assert model.results_[0].status is Status.INTERRUPTED
    assert model.n_iter_ <= 2
    assert signal.getsignal(signal.SIGINT) is before
    assert quiet_fit(make(max_iter=1), X, y).results_[0].status is not Status.INTERRUPTED


@marked
def test_an_interrupt_dropped_after_the_last_iteration_is_raised(cancer, monkeypatch):
    X, y = cancer
    monkeypatch.setattr(linear_svc, "warn_of", drop_an_interrupt)
    model = LinearSVC()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert_certified(model, X, y)  # nothing is lost
    assert model.results_[0].status is Status.CONVERGED
    monkeypatch.undo()
    assert LinearSVC().fit(X, y).results_[0].status is Status.CONVERGED


@marked
def test_an_interrupt_that_was_dealt_with_is_not_raised_again(digits):
    """One vs rest: the signal ends the first problem, the others get an iteration each."""
    X, y = digits
    calls = 0

    def callback(record):
        nonlocal calls
        calls += 1
        if calls == 2:
            signal.raise_signal(signal.SIGINT)

    model = fit(LinearSVC(tol=1e-9, callback=callback), X, y)
    assert [result.status for result in model.results_] == [Status.INTERRUPTED] * 10
    assert model.coef_.shape == (10, 64)


@marked
def test_an_interrupt_in_disguise_is_one(cancer):
    def callback(record):
        class Made:
            name = type("Part", (), {"__set_name__": drop_as_error})()

    def drop_as_error(*arguments):  # Python 3.11 makes a RuntimeError of it
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise RuntimeError from error

    with pytest.raises(KeyboardInterrupt):
        LinearSVC(callback=callback).fit(*cancer)


@marked
def test_handlers_of_others_are_left_alone(cancer):
    X, y = cancer
    seen = []
    before = signal.signal(signal.SIGINT, lambda *arguments: seen.append(1))
    try:
        model = LinearSVC(callback=DropAt(1)).fit(X, y)
        assert model.results_[0].status is Status.CONVERGED
        assert seen == [1]
    finally:
        signal.signal(signal.SIGINT, before)


FRESH = """
    import warnings
    import numpy as np
    import cutplane
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 60))
    y = np.sign(X @ rng.normal(size=60) + 8 * rng.normal(size=4000))
    model = cutplane.LinearSVC(C=1e3, tol=0.0, solver="cpa", time_limit=60)
    print("go", flush=True)
    try:
        model.fit(X, y)
        print(model.results_[0].status.value)
    except KeyboardInterrupt:
        print("raised")
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("times", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_signals_while_compiled_code_loads(times):
    for delay in np.linspace(0.0, 0.9, times):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(FRESH)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline().strip() == "go"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        answer, errors = process.communicate(timeout=120)
        assert answer.strip() in ("raised", "interrupted"), (delay, answer, errors)


SCRIPT = """
    import sys, time, warnings
    import numpy as np
    from cutplane import LinearSVC
    warnings.simplefilter("ignore")
    classes, jobs = int(sys.argv[1]), int(sys.argv[2])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 40))
    y = rng.integers(0, classes, len(X))
    LinearSVC(max_iter=2).fit(X[:500], y[:500])  # compile
    first = True

    def callback(record):
        global first
        if first:
            print("go", flush=True)
            first = False

    model = LinearSVC(C=1e3, tol=0.0, solver="ocas", n_jobs=jobs, callback=callback)
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        print("lost")
        raise SystemExit(1)
    stopped = time.time()
    results = model.results_
    print(stopped, results[0].status.value, results[-1].status.value, model.coef_.shape[0],
          np.isfinite(model.decision_function(X)).all(),
          all(r.certificate.gap >= 0 for r in results))
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize(("classes", "jobs"), [(2, 1), (4, 2)])
def test_a_real_signal(classes, jobs):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(classes), str(jobs)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().strip() == "go"
    time.sleep(0.1)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    answer, _ = process.communicate(timeout=60)
    assert process.returncode == 0, answer
    stopped, first, last, rows, finite, honest = answer.split()
    assert float(stopped) - sent < 20.0
    assert last == "interrupted"
    assert first == "interrupted" or classes > 2
    assert int(rows) == (1 if classes == 2 else classes)
    assert (finite, honest) == ("True", "True")
