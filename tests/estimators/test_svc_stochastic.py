"""solver='sgd' and 'pegasos': rough, but reproducible and measured by the same certificate."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from svc_reference import (
    LOSSES,
    assert_certified,
    libsvm,
    quiet_fit,
    results,
    signs_of,
    smooth_optimum,
)

import cutplane.data.blocks
import cutplane.exec
from cutplane import LinearSVC, Status


@pytest.fixture(params=["sgd", "pegasos"])
def solver(request):
    return request.param


@pytest.fixture(params=LOSSES)
def loss(request):
    return request.param


BIASES = [{}, {"fit_intercept": False}, {"intercept_scaling": 1.0}]


@pytest.mark.parametrize("bias", BIASES, ids=["free", "none", "regularised"])
@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0])
def test_the_certificate_is_true(cancer, solver, loss, bias, C):
    X, y = cancer
    exact = LinearSVC(C=C, loss=loss, tol=1e-6, **bias).fit(X, y)
    model = LinearSVC(C=C, loss=loss, solver=solver, random_state=0, **bias)
    quiet_fit(model, X, y)
    assert_certified(model, X, y, references=[exact.certificate_.primal])
    assert model.certificate_.primal >= exact.certificate_.dual * (1 - 1e-9)
    # Better than w = 0 by most of what there is to gain.
    nothing = quiet_fit(LinearSVC(C=C, loss=loss, max_iter=1, **bias), X, y).certificate_.primal
    gain = (nothing - model.certificate_.primal) / max(nothing - exact.certificate_.dual, 1e-300)
    assert gain > 0.5 or model.certificate_.primal <= 1.1 * exact.certificate_.primal


def test_against_other_solvers(noisy, solver, loss):
    X, y = noisy
    optimum = (
        libsvm(X, 1.0 * y, 0.1).upper if loss == "hinge" else smooth_optimum(X, 1.0 * y, 0.1, loss)
    )
    model = quiet_fit(
        LinearSVC(C=0.1, loss=loss, solver=solver, random_state=0, max_iter=200), X, y
    )
    assert_certified(model, X, y, references=[optimum])
    assert model.certificate_.primal <= 1.05 * optimum


def test_more_epochs_are_better(cancer, solver):
    X, y = cancer
    few, many = (
        quiet_fit(
            LinearSVC(C=0.01, solver=solver, max_iter=epochs, tol=0.0, random_state=0), X, y
        ).certificate_
        for epochs in (1, 50)
    )
    assert many.primal <= few.primal
    assert many.gap <= few.gap


def test_epochs_are_counted_and_stopped(cancer, solver):
    X, y = cancer
    model = LinearSVC(solver=solver, max_iter=3, tol=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, y)
    assert model.n_iter_ == len(model.results_[0].trace) == 3
    assert model.results_[0].status is Status.MAX_ITER
    trace = model.results_[0]
    assert np.all(np.diff(trace.column("primal")) <= 0)
    assert np.all(np.diff(trace.column("dual")) >= 0)


def test_convergence_is_noticed(cancer, solver):
    model = LinearSVC(C=1e-4, solver=solver, tol=0.3, max_iter=1000, random_state=0).fit(*cancer)
    assert model.results_[0].status is Status.CONVERGED
    assert model.certificate_.relative_gap <= 0.3
    assert model.n_iter_ < 1000


# -- chance ---------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits(iris, solver, loss):
    X, y = iris

    def fit(seed) -> np.ndarray:
        model = LinearSVC(solver=solver, loss=loss, random_state=seed, max_iter=5)
        return quiet_fit(model, X, y).coef_

    np.testing.assert_array_equal(fit(3), fit(3))
    np.testing.assert_array_equal(fit(3), fit(np.random.RandomState(3)))
    assert np.any(fit(3) != fit(4))
    assert np.any(fit(None) != fit(None))


def test_the_number_of_threads_does_not_matter(monkeypatch, cancer, solver):
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS", 1000)
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS_PER_WEIGHT", 1)
    monkeypatch.setattr(cutplane.exec, "NUMBERS_PER_THREAD", 1)
    models = [
        quiet_fit(LinearSVC(solver=solver, n_jobs=jobs, random_state=0), *cancer)
        for jobs in (1, 2, 8)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert model.certificate_ == models[0].certificate_


@pytest.mark.parametrize(
    "layout", [scipy.sparse.csr_array, scipy.sparse.coo_matrix, np.asfortranarray]
)
def test_layouts(digits, solver, layout):
    X, y = digits[0], digits[1] % 2
    dense = quiet_fit(LinearSVC(C=0.01, solver=solver, random_state=0), X, y)
    model = quiet_fit(LinearSVC(C=0.01, solver=solver, random_state=0), layout(X), y)
    assert_certified(model, X, y)
    assert model.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-2)


# -- weights, classes, stopping -------------------------------------------------------


def test_weights(cancer, solver, loss):
    X, y = cancer
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    exact = LinearSVC(C=0.01, loss=loss, tol=1e-6).fit(X, y, sample_weight=weights)
    model = LinearSVC(C=0.01, loss=loss, solver=solver, random_state=0, max_iter=100)
    quiet_fit(model, X, y, sample_weight=weights)
    assert_certified(model, X, y, weights, references=[exact.certificate_.primal])
    assert model.certificate_.primal <= 1.1 * exact.certificate_.primal


def test_weights_over_many_orders_of_magnitude(noisy, solver):
    X, y = noisy
    weights = 10.0 ** np.random.default_rng(0).uniform(-6, 3, len(y))
    model = quiet_fit(LinearSVC(solver=solver, random_state=0), X, y, sample_weight=weights)
    exact = LinearSVC(tol=1e-6).fit(X, y, sample_weight=weights)
    assert_certified(model, X, y, weights, references=[exact.certificate_.primal])


def test_several_classes(iris, solver):
    X, y = iris
    model = quiet_fit(LinearSVC(solver=solver, random_state=0), X, y)
    assert len(model.certificates_) == 3
    optima = [libsvm(X, signs_of(y, k), 1.0).upper for k in range(3)]
    assert_certified(model, X, y, references=optima)


def test_crammer_singer_is_refused(iris, solver):
    with pytest.raises(ValueError, match="crammer_singer"):
        LinearSVC(solver=solver, multi_class="crammer_singer").fit(*iris)


@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_extreme_penalties(noisy, solver, loss, C):
    X, y = noisy
    exact = quiet_fit(LinearSVC(C=C, loss=loss, solver="cpa", max_iter=300), X, y)
    model = quiet_fit(LinearSVC(C=C, loss=loss, solver=solver, random_state=0), X, y)
    assert_certified(model, X, y, references=[exact.certificate_.primal])


def test_badly_scaled_features(cancer, solver, loss):
    """Steps may be too long for a feature: the model stays finite and the gap true."""
    X, y = cancer[0] * 10.0 ** np.linspace(-4, 6, 30), cancer[1]
    model = quiet_fit(LinearSVC(solver=solver, loss=loss, random_state=0), X, y)
    assert np.isfinite(model.coef_).all()
    assert_certified(model, X, y)
    assert model.certificate_.primal <= 569.0  # w = 0


def test_all_zero_data(solver, loss):
    X, y = np.zeros((10, 2)), np.arange(10) % 2
    model = quiet_fit(LinearSVC(solver=solver, loss=loss, random_state=0), X, y)
    assert np.all(model.coef_ == 0.0)
    assert model.certificate_.gap <= 1e-9


def test_callback_interrupt_and_time_limit(iris, solver):
    X, y = iris
    seen = []
    model = LinearSVC(solver=solver, callback=lambda r: seen.append(r) or len(seen) == 2)
    quiet_fit(model, X, y)
    assert_certified(model, X, y)
    assert model.results_[0].status is Status.STOPPED

    def interrupt(record) -> None:
        raise KeyboardInterrupt

    model = quiet_fit(LinearSVC(solver=solver, callback=interrupt), X, y)
    assert_certified(model, X, y)
    assert results(model)[-1].status is Status.INTERRUPTED
    model = LinearSVC(solver=solver, tol=0.0, max_iter=10**9, time_limit=0.2)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(X, y)
    assert_certified(model, X, y)


def test_warm_start_is_no_worse(cancer, solver):
    X, y = cancer
    model = LinearSVC(C=0.01, solver=solver, warm_start=True, random_state=0, max_iter=5)
    first = quiet_fit(model, X, y).certificate_
    again = quiet_fit(model, X, y).certificate_
    assert again.primal <= first.primal * (1 + 1e-14)  # both are rounded up
    assert_certified(model, X, y)
    other = quiet_fit(model, -X, y)
    assert_certified(other, -X, y, references=[first.primal])


def test_copies(cancer, solver):
    model = quiet_fit(LinearSVC(solver=solver, random_state=0), *cancer)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(quiet_fit(clone(model), *cancer).coef_, model.coef_)
