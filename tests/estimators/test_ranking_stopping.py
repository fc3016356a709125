"""When a fit of MeasureSVC, RankSVM or OrdinalSVC stops, what it says, and what it keeps."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
from ranking_reference import CASES, FEW_CASES, case_name, make_data
from sklearn.exceptions import ConvergenceWarning
from svc_reference import quiet_fit

from cutplane import MeasureSVC, Status

DATA = make_data()


@pytest.fixture(params=CASES, ids=case_name)
def case(request):
    return request.param


def fit_quietly(case, **parameters):
    parameters["C"] = parameters.get("C", 200.0) / len(DATA.X)
    return quiet_fit(case.make(**parameters), DATA.X, case.y(DATA), **case.extra(DATA))


# -- gaps, iterations, time -----------------------------------------------------------


@pytest.mark.parametrize("rule", ["relative", "absolute", "epsilon"])
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_stops_at_the_first_iteration_within_the_gap(case, rule, tol):
    model = case.fit(DATA, C=30.0, stopping=rule, tol=tol)
    case.assert_certified(model, DATA)
    assert model.results_[0].status is Status.CONVERGED
    limits = {"relative": lambda r: tol * r.primal, "absolute": lambda _: tol}
    limit = limits.get(rule, lambda _: 30.0 * tol)
    *before, last = model.results_[0].trace
    assert last.gap <= limit(last)
    for record in before:
        assert record.gap > limit(record)


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_one_iteration_gives_a_usable_model_and_states_its_gap(case, solver):
    model = case.make(max_iter=1, tol=1e-9, C=30.0 / len(DATA.X), solver=solver)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(DATA.X, case.y(DATA), **case.extra(DATA))
    assert len(caught) == 1
    assert caught[0].filename == __file__  # blames the caller's line
    message = str(caught[0].message)
    proof = model.certificate_
    for part in (type(model).__name__, "max_iter", f"{proof.primal:.6g}", f"{proof.gap:.3g}"):
        assert part in message
    assert model.n_iter_ == model.results_[0].n_iter == 1
    assert model.results_[0].status is Status.MAX_ITER
    case.assert_certified(model, DATA)
    assert proof.primal <= 30.0 * (1 + 1e-12)  # not worse than w = 0
    assert np.isfinite(model.intercept_).all()
    assert len(model.predict(DATA.X)) == 200


def test_no_warning_when_converged(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        case.fit(DATA)


@pytest.mark.parametrize("case", FEW_CASES, ids=case_name)
def test_time_limit(case):
    model = case.make(tol=0.0, C=50.0, time_limit=0.1, callback=lambda record: time.sleep(0.02))
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(DATA.X, case.y(DATA), **case.extra(DATA))
    assert time.perf_counter() - begin < 30.0
    assert model.results_[0].status is Status.TIME_LIMIT
    assert 1 <= model.n_iter_ <= 7
    case.assert_certified(model, DATA)


def test_zero_tolerance_ends_at_the_limit_of_precision(case):
    model = fit_quietly(case, tol=0.0, C=10.0)
    assert model.results_[0].status in (Status.CONVERGED, Status.NUMERICALLY_LIMITED)
    case.assert_certified(model, DATA)
    assert model.certificate_.relative_gap <= 1e-9


# -- bad parameters -------------------------------------------------------------------

BAD = {
    "C": [0, -1.0, np.nan, np.inf, "a", None, True],
    "tol": [-1e-9, np.nan, "a", None],
    "max_iter": [0, 1.5, "a"],
    "time_limit": [0, np.nan, "a"],
    "solver": ["sgd", "pegasos", "", None],
    "stopping": ["primal", None],
    "n_jobs": [0, 1.5, "a"],
    "warm_start": ["no", None],
    "verbose": ["loud", -1],
    "callback": [1, "print"],
}
WRONG = [(name, value) for name, values in BAD.items() for value in values]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=[f"{n}={v!r}" for n, v in WRONG])
@pytest.mark.parametrize("case", [CASES[0], CASES[6], CASES[9]], ids=case_name)
def test_bad_values_are_named(case, name, value):
    with pytest.raises(ValueError, match=rf"\b{name}\b") as error:
        case.make(**{name: value}).fit(DATA.X, case.y(DATA), **case.extra(DATA))
    assert repr(value) in str(error.value)


@pytest.mark.parametrize(
    ("case", "name", "value"),
    [
        (CASES[0], "measure", "auc"),
        (CASES[0], "measure", None),
        (CASES[0], "fit_intercept", "no"),
        (CASES[1], "intercept_scaling", 0.0),
        (CASES[1], "intercept_scaling", np.nan),
        (CASES[6], "weighting", "rows"),
        (CASES[9], "criterion", "squared"),
        (CASES[9], "class_weight", "heavy"),
    ],
    ids=str,
)
def test_bad_values_of_their_own_parameters(case, name, value):
    model = case.make().set_params(**{name: value})
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        model.fit(DATA.X, case.y(DATA), **case.extra(DATA))


# -- callbacks and output -------------------------------------------------------------


def label_of(case) -> str:
    if case.name.startswith("rank"):
        return "ranking"
    return "ordinal" if case.name.startswith("ordinal") else case.name


def test_the_callback_gets_every_iteration_with_its_problem(case):
    seen = []
    model = case.fit(DATA, callback=seen.append)
    assert {record.problem for record in seen} == {label_of(case)}
    assert [(r.number, r.primal, r.dual) for r in seen] == [
        (r.number, r.primal, r.dual) for r in model.results_[0].trace
    ]
    np.testing.assert_array_equal(model.coef_, case.fit(DATA).coef_)


def test_the_callback_can_stop_the_fit(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who stops a fit knows that it has not converged
        model = case.fit(DATA, tol=1e-9, callback=lambda record: record.number == 3)
    assert model.results_[0].status is Status.STOPPED
    assert model.n_iter_ == 3
    case.assert_certified(model, DATA)
    assert len(model.predict(DATA.X)) == 200


def test_an_error_in_the_callback_comes_through(case):
    with pytest.raises(ZeroDivisionError):
        case.fit(DATA, callback=lambda record: 1 / 0)


@pytest.mark.parametrize("verbose", [0, 1])
def test_progress_carries_the_label(case, caplog, capfd, monkeypatch, verbose):
    progress = importlib.import_module("cutplane.reporting.progress")
    monkeypatch.setattr(progress, "FIRST_RECORD", 0.0)
    with caplog.at_level(logging.INFO, logger="cutplane"):
        model = case.fit(DATA, verbose=verbose, tol=1e-6)
    messages = [r.getMessage() for r in caplog.records if label_of(case) in r.getMessage()]
    assert messages[-1].startswith(f"{label_of(case)}: converged after {model.n_iter_} iterations")
    assert (len(messages) > 1) == bool(verbose)
    assert capfd.readouterr() == ("", "")


# -- interrupts -----------------------------------------------------------------------


class Interrupt:
    """Raises KeyboardInterrupt at a certain call."""

    def __init__(self, at: int) -> None:
        self.at, self.calls = at, 0

    def __call__(self, record) -> None:
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt


def test_an_interrupt_keeps_the_best_model(case):
    model = case.make(tol=1e-9, callback=Interrupt(5))
    try:
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model.fit(DATA.X, case.y(DATA), **case.extra(DATA))
    except KeyboardInterrupt:  # would end pytest, not the test
        pytest.fail("the interrupt threw the model away")
    assert model.results_[0].status is Status.INTERRUPTED
    assert model.n_iter_ == 5
    case.assert_certified(model, DATA)
    same = fit_quietly(case, tol=1e-9, max_iter=5)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    np.testing.assert_allclose(model.intercept_, same.intercept_, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(DATA.X), same.predict(DATA.X))


class InterruptAtCall:
    """Interrupts at the n-th call of a function of the solver, wherever that is."""

    WHERE = tuple(f"cutplane{os.sep}{part}" for part in ("solvers", "objective", "risks", "exec"))

    def __init__(self, at: float) -> None:
        self.at = at
        self.calls = 0
        self.records: list[int] = []

    def __call__(self, frame, event, argument) -> None:
        if event == "call" and any(part in frame.f_code.co_filename for part in self.WHERE):
            self.calls += 1
            if self.calls >= self.at:
                sys.setprofile(None)
                raise KeyboardInterrupt

    def fit(self, case):
        before = sys.getprofile()
        sys.setprofile(self)
        try:
            note = lambda record: self.records.append(self.calls)  # noqa: E731
            return fit_quietly(case, C=100.0, n_jobs=1, callback=note)
        finally:
            sys.setprofile(before)


@pytest.mark.parametrize("case", FEW_CASES, ids=case_name)
def test_an_interrupt_anywhere_leaves_a_consistent_model(case):
    """Ctrl-C comes in the middle of a line search, not only between two steps."""
    counter = InterruptAtCall(np.inf)
    whole = counter.fit(case)
    lost = []
    for at in range(counter.records[0] + 1, counter.records[-1], 131):
        try:
            model = InterruptAtCall(at).fit(case)
        except KeyboardInterrupt:
            lost.append(at)
            continue
        case.assert_certified(model, DATA)
        assert model.results_[0].status is Status.INTERRUPTED
        assert model.certificate_.dual <= whole.certificate_.primal * (1 + 1e-9)
    assert not lost, f"models lost of interrupts at calls {lost} of {counter.calls}"


SCRIPT = """
    import time, warnings
    import numpy as np
    from cutplane import MeasureSVC
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 20))
    y = rng.integers(0, 2, len(X))
    MeasureSVC(max_iter=2).fit(X[:500], y[:500])  # compile
    first = True

    def callback(record):
        global first
        if first:
            print("go", flush=True)
            first = False

    model = MeasureSVC(C=1e6, tol=0.0, n_jobs=2, callback=callback)
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        print("lost")
        raise SystemExit(1)
    status = model.results_[0].status.value
    print(time.time(), status, np.isfinite(model.decision_function(X)).all())
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_a_real_signal():
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().strip() == "go"
    time.sleep(0.2)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    answer, _ = process.communicate(timeout=60)
    assert process.returncode == 0, answer
    stopped, status, finite = answer.split()
    assert float(stopped) - sent < 20.0
    assert (status, finite) == ("interrupted", "True")


def test_an_interrupt_before_the_first_point_is_raised(monkeypatch):
    """There is no model yet: the interrupt is the user's, not ours to swallow."""

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("cutplane.objective.LinearOracle.evaluate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        MeasureSVC().fit(DATA.X, DATA.labels)
