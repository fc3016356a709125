"""Ctrl-C: the fit stops within a second and the best model so far is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from svc_reference import assert_certified, quiet_fit, results

from cutplane import LinearSVC, Status
from cutplane.oracles import LinearOracle

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
    assert model.result_.status is Status.INTERRUPTED
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
    assert results(model)[-1].status is Status.INTERRUPTED
    assert all(result.n_iter == 1 for result in results(model)[1:])
    assert model.score(X, y) > 0.5


def test_classes_solved_before_the_interrupt_stay_converged(iris):
    X, y = iris
    first = LinearSVC(tol=1e-6).fit(X, y).result_[0]
    model = fit(LinearSVC(tol=1e-6, callback=Interrupt(first.n_iter + 1)), X, y)
    assert [result.status for result in model.result_] == [
        Status.CONVERGED,
        Status.INTERRUPTED,
        Status.INTERRUPTED,
    ]
    np.testing.assert_array_equal(model.coef_[0], first.w)


class InterruptAtCall:
    """Interrupts at the n-th call of a function of the solver, wherever that is.

    Ctrl-C comes in the middle of a step, not only between two.
    """

    WHERE = tuple(f"cutplane{os.sep}{part}" for part in ("bundle", "oracles", "risks", "exec"))

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
        LinearSVC().fit(*cancer)


def test_a_warm_start_goes_on_after_an_interrupt(cancer):
    X, y = cancer
    model = LinearSVC(tol=1e-6, warm_start=True, callback=Interrupt(20))
    fit(model, X, y)
    rest = model.set_params(callback=None).fit(X, y)
    assert_certified(rest, X, y)
    assert rest.result_.status is Status.CONVERGED


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
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
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
    answer, _ = process.communicate(timeout=30)
    assert process.returncode == 0, answer
    stopped, first, last, rows, finite, honest = answer.split()
    assert float(stopped) - sent < 1.0
    assert last == "interrupted"
    assert first == "interrupted" or classes > 2
    assert int(rows) == (1 if classes == 2 else classes)
    assert (finite, honest) == ("True", "True")
