"""What SampledCutSVC and CholeskyFeatures do with bad input, odd kernels, and early ends."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from cutplane import CholeskyFeatures, SampledCutSVC, Status

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3))
y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": 0.0}, "C must be"),
        ({"C": float("nan")}, "C must be"),
        ({"method": "fast"}, "method must be one of"),
        ({"sample_size": 0}, "sample_size must be an integer ≥ 1"),
        ({"sample_size": 2.5}, "sample_size must be"),
        ({"solver": "dcd"}, "solver must be one of"),
        ({"multi_class": "ovo"}, "multi_class must be one of"),
        ({"stopping": "never"}, "stopping must be one of"),
        ({"passes": 0}, "passes must be"),
        ({"max_basis": 0}, "max_basis must be"),
        ({"max_basis": "few"}, "max_basis must be"),
        ({"start_rows": -1}, "start_rows must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"time_limit": 0.0}, "time_limit must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"random_state": "x"}, "random_state"),
        ({"callback": 3}, "callback must be callable"),
    ],
)
def test_bad_parameters_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        SampledCutSVC(**settings).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components must be"),
        ({"selection": "first"}, "selection must be one of"),
        ({"max_candidates": 0}, "max_candidates must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"kernel": "cosine"}, "kernel must be one of"),
    ],
)
def test_bad_parameters_of_features_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        CholeskyFeatures(**settings).fit(X)


def test_bad_data():
    with pytest.raises(ValueError, match="one class only"):
        SampledCutSVC().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="square matrix"):
        SampledCutSVC("precomputed").fit(X, y)
    with pytest.raises(ValueError, match="symmetric"):
        SampledCutSVC("precomputed").fit(np.triu(np.ones((200, 200))), y)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        SampledCutSVC().fit(X, y, sample_weight=-np.ones(len(X)))
    with pytest.raises(ValueError, match="only one class has rows of positive weight"):
        SampledCutSVC().fit(X, y, sample_weight=(y > 0).astype(float))
    with pytest.raises(ValueError, match="nothing to make features of"):
        CholeskyFeatures("linear").fit(np.zeros((5, 2)))


@pytest.mark.parametrize("method", ["blocks", "linear", "constant", "exact"])
def test_kernel_functions_that_misbehave(method):
    def nan(A, B):
        return np.full((len(A), len(B)), np.nan)

    def narrow(A, B):
        return np.ones((len(A), 1))

    with pytest.raises(ValueError, match="kernel: the function returned nan"):
        SampledCutSVC(nan, method=method).fit(X, y)
    with pytest.raises(ValueError, match="must return an array of shape"):
        SampledCutSVC(narrow, method=method).fit(X, y)
    with pytest.raises(ValueError, match="kernel: the function returned nan"):
        CholeskyFeatures(nan).fit(X)


@pytest.mark.parametrize("method", ["blocks", "linear", "constant", "exact"])
def test_an_indefinite_kernel_gets_a_warning_and_no_certificate(method):
    model = SampledCutSVC("sigmoid", gamma=1.0, coef0=-1.0, method=method, max_iter=20)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model.fit(X, y)
    assert model.certificate_.kind == "withheld"
    assert model.certificate_.gap == np.inf
    assert np.all(np.isfinite(model.decision_function(X)))
    K = -rbf_kernel(X)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        SampledCutSVC("precomputed", method=method, max_iter=3).fit(K, y)


def test_a_fit_that_ends_early_says_so_and_can_be_used():
    with pytest.warns(ConvergenceWarning, match="max_iter.*is estimated to be"):
        model = SampledCutSVC(
            method="linear", start_rows=0, sample_size=20, max_iter=1, random_state=0
        ).fit(X, y)
    assert model.results_[0].status is Status.MAX_ITER
    assert model.predict(X).shape == (200,)
    with pytest.warns(ConvergenceWarning, match="time_limit") as caught:
        SampledCutSVC(start_rows=0, time_limit=1e-9, tol=1e-9).fit(X, y)
    assert caught[0].filename == __file__
    stopped = SampledCutSVC(start_rows=0, callback=lambda record: record.number >= 3, tol=0.0).fit(
        X, y
    )
    assert stopped.results_[0].status is Status.STOPPED
    assert stopped.n_iter_ == 3


def test_ctrl_c_keeps_the_best_model():
    seen = []

    def interrupt(record):
        seen.append(record)
        if record.number == 60:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        model = SampledCutSVC(
            start_rows=0, sample_size=10, gamma=1.0, tol=0.0, random_state=0, callback=interrupt
        ).fit(X, y)
    assert model.results_[0].status is Status.INTERRUPTED
    scores = model.decision_function(X)
    squared = float(model.dual_coef_[0] @ scores[model.support_])
    losses = np.maximum(0.0, 1.0 - y * scores).sum()
    assert 0.5 * squared + losses == pytest.approx(seen[-1].primal, rel=1e-9)


@pytest.mark.parametrize("C", [1e-12, 1e-3, 1e3, 1e12])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_c_of_all_sizes(C):
    model = SampledCutSVC(C=C, gamma=1.0, max_iter=60, stopping="relative").fit(X, y)
    assert model.certificate_.kind == "exact"  # samples of 400 rows: all of them
    assert 0.0 <= model.certificate_.dual <= model.certificate_.primal
    assert np.all(np.isfinite(model.decision_function(X)))
    if C <= 1.0:
        assert model.certificate_.relative_gap <= 1e-3


def test_models_can_be_cloned_and_pickled():
    model = SampledCutSVC(gamma=1.0, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.sampling_bound() == model.sampling_bound()
    assert clone(model).get_params() == model.get_params()
    assert len(pickle.dumps(model)) < 200_000


def test_all_zero_rows():
    model = SampledCutSVC("linear").fit(np.zeros((20, 2)), np.arange(20) % 2)
    assert model.certificate_.gap <= 1e-12 * model.certificate_.primal  # rounding is counted
    assert model.n_basis_ == 0
    assert model.predict(np.zeros((3, 2))).shape == (3,)
