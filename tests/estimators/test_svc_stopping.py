"""When a fit stops: gaps, iterations, time, and the user's own callback."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from svc_reference import assert_certified, libsvm, quiet_fit, results, signs_of

from cutplane import Iteration, LinearSVC, Status

VARIANTS = {
    "hinge": {},
    "cpa": {"solver": "cpa"},
    "squared_hinge": {"loss": "squared_hinge"},
    "logistic": {"loss": "logistic"},
    "crammer_singer": {"multi_class": "crammer_singer"},
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS)
def variant(request):
    return request.param


@pytest.fixture
def data(variant, cancer, iris):
    return iris if variant.get("multi_class") else cancer


def gap_limit(rule: str, tol: float, primal: float, C: float, total: float) -> float:
    return {"relative": tol * primal, "absolute": tol, "epsilon": C * total * tol}[rule]


# -- gaps -----------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["relative", "absolute", "epsilon"])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
def test_stops_at_the_first_iteration_within_the_gap(variant, data, rule, tol):
    X, y = data
    model = LinearSVC(C=0.3, stopping=rule, tol=tol, **variant).fit(X, y)
    assert_certified(model, X, y)
    assert model.results_[0].status is Status.CONVERGED
    *before, last = model.results_[0].trace
    assert last.gap <= gap_limit(rule, tol, last.primal, 0.3, len(X))
    for record in before:
        assert record.gap > gap_limit(rule, tol, record.primal, 0.3, len(X))
    # The bias of the model that is returned is better than those on the way, and its objective
    # includes what rounding may have done to it.
    assert model.certificate_.gap <= last.gap * (1.0 + 1e-9) + 1e-12 * last.primal


def test_epsilon_counts_weights_as_rows(cancer):
    """C·(sum of weights)·tol: tripled weights triple the gap that is allowed."""
    X, y = cancer
    model = LinearSVC(C=0.1, stopping="epsilon", tol=0.05, fit_intercept=False)
    once = model.fit(X, y).results_[0]
    thrice = model.set_params(C=0.1 / 3).fit(X, y, sample_weight=np.full(len(y), 3.0)).results_[0]
    assert once.n_iter == thrice.n_iter
    assert once.certificate.primal == pytest.approx(thrice.certificate.primal, rel=1e-9)


def test_zero_tolerance_ends_at_the_limit_of_precision(noisy):
    X, y = noisy
    known = libsvm(X, signs_of(y, 1), 1.0)
    model = quiet_fit(LinearSVC(tol=0.0), X, y)
    assert model.results_[0].status in (Status.CONVERGED, Status.NUMERICALLY_LIMITED)
    assert_certified(model, X, y, references=[known.upper])
    assert model.certificate_.relative_gap <= 1e-10


def test_the_trace_is_monotone(variant, data):
    X, y = data
    result = LinearSVC(tol=1e-6, **variant).fit(X, y).results_[0]
    assert result.n_iter == len(result.trace)
    assert result.column("number").tolist() == list(range(1, result.n_iter + 1))
    assert np.all(np.diff(result.column("primal")) <= 0)
    assert np.all(np.diff(result.column("dual")) >= 0)
    assert np.all(np.diff(result.column("seconds")) >= 0)
    assert np.all(result.column("primal") >= result.certificate.dual)


# -- iterations and time --------------------------------------------------------------


def test_one_iteration_gives_a_usable_model_and_states_its_gap(variant, data):
    X, y = data
    model = LinearSVC(max_iter=1, tol=1e-9, **variant)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # blames the caller's line
    message = str(caught[0].message)
    proof = model.certificate_
    for part in ("max_iter", f"{proof.primal:.6g}", f"{proof.gap:.3g}"):
        assert part in message
    assert model.n_iter_ == model.results_[0].n_iter == 1
    assert model.results_[0].status is Status.MAX_ITER
    assert_certified(model, X, y)
    assert proof.primal <= len(X) * (1.0 + 1e-12)  # not worse than w = 0
    assert set(model.predict(X)) <= set(model.classes_)
    assert np.isfinite(model.decision_function(X)).all()


def test_the_warning_is_about_the_worst_class(iris):
    X, y = iris
    model = LinearSVC(max_iter=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    worst = max(model.certificates_, key=lambda proof: proof.relative_gap)
    assert f"{worst.gap:.3g}" in str(caught[0].message)
    assert len(caught) == 1


def test_no_warning_when_converged(variant, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearSVC(**variant).fit(*data)


def test_converging_in_the_last_allowed_iteration_is_converging(cancer):
    needed = LinearSVC().fit(*cancer).n_iter_
    assert LinearSVC(max_iter=needed).fit(*cancer).results_[0].status is Status.CONVERGED
    fewer = quiet_fit(LinearSVC(max_iter=needed - 1), *cancer)
    assert fewer.results_[0].status is Status.MAX_ITER


def slow_callback(record: Iteration) -> None:
    time.sleep(0.02)


def test_time_limit(cancer):
    X, y = cancer
    model = LinearSVC(tol=0.0, time_limit=0.2, callback=slow_callback)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(X, y)
    assert time.perf_counter() - begin < 30.0
    assert model.results_[0].status is Status.TIME_LIMIT
    assert 1 <= model.n_iter_ <= 12
    assert_certified(model, X, y)


def test_the_time_limit_is_for_all_classes_together(digits):
    X, y = digits
    model = LinearSVC(tol=0.0, time_limit=0.2, callback=slow_callback)
    begin = time.perf_counter()
    quiet_fit(model, X, y)
    assert time.perf_counter() - begin < 30.0
    assert_certified(model, X, y)
    assert model.coef_.shape == (10, 64)
    assert all(result.n_iter >= 1 for result in results(model))
    assert all(result.n_iter == 1 for result in results(model)[2:])


@pytest.mark.parametrize("limit", [1e-9, np.inf])
def test_extreme_time_limits(cancer, limit):
    model = quiet_fit(LinearSVC(time_limit=limit), *cancer)
    assert_certified(model, *cancer)
    assert model.n_iter_ == 1 or limit == np.inf


# -- the user's callback --------------------------------------------------------------


def essence(record: Iteration) -> tuple:
    """What tells iterations apart."""
    return record.number, record.primal, record.dual, record.step, record.seconds


def test_the_callback_gets_every_iteration(variant, data):
    seen = []
    model = LinearSVC(callback=seen.append, **variant).fit(*data)
    assert list(map(essence, seen)) == list(map(essence, model.results_[0].trace))
    assert all(isinstance(record, Iteration) for record in seen)


def test_the_callback_gets_every_iteration_of_every_class(iris):
    seen = []
    model = LinearSVC(callback=seen.append).fit(*iris)
    trace = [record for result in model.results_ for record in result.trace]
    assert list(map(essence, seen)) == list(map(essence, trace))


def test_the_callback_does_not_change_the_answer(variant, data):
    plain = LinearSVC(**variant).fit(*data)
    watched = LinearSVC(callback=lambda record: False, **variant).fit(*data)
    np.testing.assert_array_equal(plain.coef_, watched.coef_)


def test_the_callback_can_stop_the_fit(variant, data):
    X, y = data
    model = LinearSVC(tol=1e-9, callback=lambda record: record.number == 3, **variant)
    quiet_fit(model, X, y)
    assert model.results_[0].status is Status.STOPPED
    assert model.n_iter_ == 3
    assert_certified(model, X, y)


def test_the_callback_stops_the_fit_not_just_one_class(digits):
    """ "A true answer stops the fit": it must not be asked again for every class."""
    calls = []

    def once(record: Iteration) -> bool:
        calls.append(record)
        return len(calls) == 3

    X, y = digits
    model = quiet_fit(LinearSVC(tol=1e-9, callback=once), X, y)
    assert_certified(model, X, y)
    assert model.coef_.shape == (10, 64)
    assert [result.n_iter for result in model.results_[1:]] == [1] * 9
    assert {result.status for result in model.results_} == {Status.STOPPED}


def test_an_error_in_the_callback_comes_through(cancer):
    def broken(record: Iteration) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        LinearSVC(callback=broken).fit(*cancer)
