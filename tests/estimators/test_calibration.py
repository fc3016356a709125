"""Probabilities from held-out scores, against scikit-learn's calibration of fits of their own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, _sigmoid_calibration
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from cutplane import SVC, LinearSVC, LinearSVCCV, load_model, save_model
from cutplane.estimators._calibration import Calibration

METHODS = ("sigmoid", "isotonic")
TIGHT = {"tol": 1e-9}


@parametrize_with_checks(
    [
        LinearSVCCV(Cs=[1.0], cv=2, calibrate="sigmoid"),
        SVC(calibrate="sigmoid", cv=2, gamma=0.1, tol=1e-10),
    ],
    expected_failed_checks=lambda estimator: {
        "check_classifiers_train": "predict follows the scores, as in scikit-learn's SVC; the "
        "most probable class may be another one"
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- the curves -------------------------------------------------------------------------------


def scored(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=rows)
    own = rng.random(rows) < expit(2.0 * scores - 1.0)
    return scores, own.astype(np.int64), rng.choice([0.0, 0.5, 1.0, 3.0], rows)


@pytest.mark.parametrize("scale, shift", [(1.0, 0.0), (1e-3, 5.0), (1e4, -2e4)])
def test_the_sigmoid_is_platts(scale, shift):
    scores, own, weights = scored()
    scores = scale * scores + shift
    calibration = Calibration.of("sigmoid", np.array([0, 1]), [(scores, own, weights)])
    a, b = calibration.curves[0][:, 0]
    at = np.linspace(scores.min(), scores.max(), 50)
    if shift == 0.0:  # scikit-learn's own fit does not centre
        expected = _sigmoid_calibration(scores, own, weights)
        np.testing.assert_allclose([a, b], expected, rtol=1e-5)
    positive, negative = weights @ own, weights @ (1 - own)
    targets = np.where(own, (positive + 1) / (positive + 2), 1 / (negative + 2))
    error = weights * (expit(-(a * scores + b)) - targets)
    scale_of = weights.sum() * np.array([scores.std(), 1.0])  # the gradient is 0 at the optimum
    centred = [error @ (scores - scores.mean()), error.sum()]
    assert np.max(np.abs(centred / scale_of)) < 1e-9
    np.testing.assert_allclose(calibration.probabilities(at)[:, 1], expit(-(a * at + b)))


def test_scores_that_say_nothing_or_everything():
    own, ones = np.array([0, 0, 0, 1]), np.ones(4)
    same = Calibration.of("sigmoid", np.array([0, 1]), [(np.ones(4), own, ones)])
    # With a slope of 0 the probability is the mean of Platt's targets, 1/5 thrice and 2/3.
    np.testing.assert_allclose(same.probabilities(np.ones(1)), [[1 - 19 / 60, 19 / 60]])
    apart = Calibration.of("sigmoid", np.array([0, 1]), [(own * 1e6, own, ones)])
    np.testing.assert_allclose(apart.probabilities(np.array([0.0, 1e6]))[:, 1], [1 / 5, 2 / 3])


def test_isotonic_is_scikit_learns():
    scores, own, weights = scored()
    folds = [(scores[:100], own[:100], weights[:100]), (scores[100:], own[100:], weights[100:])]
    calibration = Calibration.of("isotonic", np.array([0, 1]), folds)
    at = np.linspace(-5.0, 5.0, 200)
    reference = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    expected = reference.fit(scores, own, weights).predict(at)
    np.testing.assert_allclose(calibration.probabilities(at)[:, 1], expected, atol=1e-15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert calibration.log_probabilities(at).min() == -np.inf


# -- estimators -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["cancer", "iris"])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_search(request, data, method, weighted):
    X, y = request.getfixturevalue(data)
    names = np.array(["a", "b", "c"])[y]
    weights = np.random.default_rng(1).choice([0.2, 1.0, 2.0], len(y)) if weighted else None
    search = LinearSVCCV([0.01, 0.1, 1.0], calibrate=method, class_weight="balanced", **TIGHT)
    search.fit(X, names, weights)
    plain = LinearSVC(search.C_, class_weight="balanced", **TIGHT)
    theirs = CalibratedClassifierCV(plain, method=method, cv=5, ensemble=False)
    theirs.fit(X, names, weights)
    np.testing.assert_allclose(search.predict_proba(X), theirs.predict_proba(X), atol=2e-5)
    np.testing.assert_array_equal(search.predict_proba(X), search.best_estimator_.predict_proba(X))
    logarithms = search.predict_log_proba(X)
    np.testing.assert_allclose(np.exp(logarithms), search.predict_proba(X), atol=1e-15)
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "data, settings",
    [
        ("cancer", {}),
        ("cancer", {"class_weight": {0: 3.0}}),
        ("iris", {}),
        ("iris", {"multi_class": "ovr"}),
    ],
)
def test_kernel_machine(request, data, settings, method):
    X, y = request.getfixturevalue(data)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], len(y))
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    plain = SVC(gamma=0.1, C=2.0, **settings, **TIGHT)
    theirs = CalibratedClassifierCV(plain, method=method, cv=folds, ensemble=False)
    theirs.fit(X, y, weights)
    ours = clone(plain).set_params(calibrate=method, cv=folds).fit(X, y, weights)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-5)
    plain.fit(X, y, weights)
    np.testing.assert_allclose(ours.decision_function(X), plain.decision_function(X), atol=1e-3)
    pairs = clone(ours).set_params(decision_function_shape="ovo").fit(X, y, weights)
    np.testing.assert_array_equal(pairs.predict_proba(X), ours.predict_proba(X))


def test_all_kernels_and_layouts(cancer):
    X, y = cancer
    K = rbf_kernel(X, gamma=0.05)
    settings = {"calibrate": "sigmoid", "cv": 3, "tol": 1e-8}
    expected = SVC(gamma=0.05, **settings).fit(X, y).predict_proba(X)
    known = SVC(kernel="precomputed", **settings).fit(K, y).predict_proba(K)
    np.testing.assert_allclose(known, expected, atol=1e-5)
    sparse = scipy.sparse.csr_matrix(X)
    known = SVC(gamma=0.05, **settings).fit(sparse, y).predict_proba(sparse)
    np.testing.assert_allclose(known, expected, atol=1e-5)

    def kernel(A, B):
        return rbf_kernel(A, B, gamma=0.05)

    known = SVC(kernel=kernel, **settings).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(known, expected, atol=1e-5)


def test_repeated_folds_count_again(iris):
    X, y = iris
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    held_out = []
    for train, test in folds.split(X, y):
        model = SVC(gamma=0.5, tol=1e-9).fit(X[train], y[train])
        held_out.append((model.decision_function(X[test]), y[test], np.ones(len(test))))
    expected = Calibration.of("sigmoid", np.arange(3), held_out)
    model = SVC(gamma=0.5, calibrate="sigmoid", cv=folds, tol=1e-9).fit(X, y)
    found = model.calibration_.probabilities(model.decision_function(X))
    np.testing.assert_allclose(found, expected.probabilities(model.decision_function(X)), atol=1e-5)


def test_a_logistic_search_has_probabilities_of_its_own(cancer):
    X, y = cancer
    search = LinearSVCCV([0.1], cv=2, loss="logistic").fit(X, y)
    np.testing.assert_array_equal(search.predict_proba(X), search.best_estimator_.predict_proba(X))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["cancer", "iris"])
def test_model_files(request, tmp_path, data, method):
    X, y = request.getfixturevalue(data)
    search = LinearSVCCV([0.1], cv=2, calibrate=method).fit(X, y)
    kernel = SVC(calibrate=method, cv=StratifiedKFold(2)).fit(X, y)
    for model in (search.best_estimator_, kernel):
        save_model(model, tmp_path / "model")
        loaded = load_model(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        model.calibration_ = Calibration(method, [np.zeros((2, 0))])
        save_model(model, tmp_path / "model")
        with pytest.raises(ValueError, match=r"does not fit together \(calibration_ must hold"):
            load_model(tmp_path / "model")


# -- what is wrong ----------------------------------------------------------------------------


def test_errors(iris):
    X, y = iris
    for model in (SVC(calibrate="platt"), LinearSVCCV([1.0], calibrate="platt")):
        with pytest.raises(ValueError, match="calibrate must be one of 'sigmoid', 'isotonic', got"):
            model.fit(X, y)
    with pytest.raises(ValueError, match="refit=False leaves no model to calibrate"):
        LinearSVCCV([1.0], calibrate="sigmoid", refit=False).fit(X, y)
    first = [(np.arange(60, 150), np.arange(60))]
    for model in (SVC(calibrate="sigmoid", cv=first), LinearSVCCV([1.0], calibrate="sigmoid")):
        model.set_params(cv=first)
        with pytest.raises(ValueError, match=r"held-out rows of every class, .* class .*2"):
            model.fit(X, y)
    with pytest.raises(ValueError, match="fold 0 of cv: only one class"):
        SVC(calibrate="sigmoid", cv=[(np.arange(20), np.arange(150))]).fit(X, y)
    with pytest.raises(ValueError, match=r"probability must be False, got True; .*calibrate="):
        SVC(probability=True).fit(X, y)


def test_without_calibration_there_are_none(iris):
    X, y = iris
    assert not hasattr(SVC(), "predict_proba")
    assert not hasattr(LinearSVCCV(), "predict_log_proba")
    model = SVC().fit(X, y).set_params(calibrate="sigmoid")
    with pytest.raises(NotFittedError, match="fitted without calibrate"):
        model.predict_proba(X)
    model.fit(X, y).predict_proba(X)
    search = LinearSVCCV([1.0], cv=2, calibrate="sigmoid").fit(X, y)
    again = search.best_estimator_
    assert hasattr(again, "predict_proba")
    assert not hasattr(again.fit(X, y), "predict_proba")  # the model is another one


def test_a_fold_that_does_not_converge_is_told(cancer):
    with (
        pytest.warns(ConvergenceWarning, match="SVC reached max_iter"),
        pytest.warns(ConvergenceWarning, match="for a fold of cv, reached max_iter"),
    ):
        SVC(calibrate="sigmoid", cv=2, max_iter=1, working_set_size=2, tol=1e-9).fit(*cancer)


def test_more_rows_than_one_matrix_is_kept_of():
    X, y = make_moons(2600, noise=0.3, random_state=0)
    plain = SVC(gamma=1.0, tol=1e-6)
    theirs = CalibratedClassifierCV(plain, ensemble=False, cv=2).fit(X, y)
    ours = SVC(gamma=1.0, tol=1e-6, calibrate="sigmoid", cv=2).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_a_checkpoint_is_of_the_last_fit(cancer, tmp_path):
    X, y = cancer
    settings = {"calibrate": "sigmoid", "cv": StratifiedKFold(2), "checkpoint": tmp_path / "fit"}
    once = SVC(**settings).fit(X, y)
    again = SVC(**settings).fit(X, y)
    np.testing.assert_array_equal(once.predict_proba(X), again.predict_proba(X))
