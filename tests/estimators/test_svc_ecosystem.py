"""LinearSVC among scikit-learn's tools: copies, files, searches, pipelines, labels of any kind."""

from __future__ import annotations

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score, learning_curve
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from svc_reference import assert_certified

from cutplane import Checkpoint, LinearSVC

PARAMETERS = {
    "C": 0.3,
    "loss": "logistic",
    "penalty": "l2",
    "solver": "cpa",
    "dual": False,
    "tol": 1e-2,
    "stopping": "absolute",
    "fit_intercept": False,
    "intercept_scaling": 2.0,
    "positive": False,
    "bounds": None,
    "coef_threshold": None,
    "class_weight": {0: 2.0},
    "multi_class": "crammer_singer",
    "max_iter": 77,
    "time_limit": 9.0,
    "n_jobs": 2,
    "executor": None,
    "warm_start": True,
    "random_state": 5,
    "verbose": 1,
    "callback": print,
    "checkpoint": Checkpoint("fit.checkpoint", every=5.0),
}


def assert_same_fit(a: LinearSVC, b: LinearSVC) -> None:
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    np.testing.assert_array_equal(a.classes_, b.classes_)
    assert a.certificate_ == b.certificate_
    assert a.n_iter_ == b.n_iter_


# -- copies ---------------------------------------------------------------------------


def test_clone_keeps_every_parameter():
    model = LinearSVC(**PARAMETERS)
    assert model.get_params() == PARAMETERS  # and there are no others
    assert clone(model).get_params() == PARAMETERS


def test_clone_forgets_the_fit(cancer):
    model = LinearSVC(warm_start=True).fit(*cancer)
    copy_ = clone(model)
    with pytest.raises(NotFittedError):
        copy_.predict(cancer[0])
    assert copy_.fit(*cancer).n_iter_ == model.n_iter_


@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(iris, fitted, protocol):
    model = LinearSVC(C=0.5, warm_start=True)
    if not fitted:
        again = pickle.loads(pickle.dumps(model, protocol))
        assert again.get_params() == model.get_params()
        return
    model.fit(*iris)
    again = pickle.loads(pickle.dumps(model, protocol))
    assert_same_fit(again, model)
    assert [r.status for r in again.results_] == [r.status for r in model.results_]
    assert again.results_[0].trace == model.results_[0].trace
    np.testing.assert_array_equal(again.predict(iris[0]), model.predict(iris[0]))


def test_joblib_files(tmp_path, cancer):
    model = LinearSVC().fit(*cancer)
    path = tmp_path / "ein Modell ü.joblib"
    joblib.dump(model, path)
    assert_same_fit(joblib.load(path), model)
    mapped = joblib.load(path, mmap_mode="r")  # read-only arrays
    np.testing.assert_array_equal(mapped.predict(cancer[0]), model.predict(cancer[0]))


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
def test_copies(cancer, copier):
    model = LinearSVC(warm_start=True).fit(*cancer)
    assert_same_fit(copier(model), model)
    assert_certified(copier(model).set_params(C=0.1).fit(*cancer), *cancer)


def test_fitting_again_does_not_disturb_what_was_handed_out(cancer, noisy):
    model = LinearSVC(warm_start=True).fit(*cancer)
    coef, result = model.coef_, model.results_[0]
    before = coef.copy(), result.w.copy()
    model.set_params(C=0.01).fit(*cancer).fit(*noisy)
    np.testing.assert_array_equal(coef, before[0])
    np.testing.assert_array_equal(result.w, before[1])


# -- searches and pipelines -----------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
def test_grid_search(cancer, jobs):
    X, y = cancer
    search = GridSearchCV(LinearSVC(), {"C": [1e-3, 0.1], "loss": ["hinge", "logistic"]}, cv=3)
    search.set_params(n_jobs=jobs).fit(X, y)
    scores = [
        cross_val_score(LinearSVC(**parameters), X, y, cv=3).mean()
        for parameters in search.cv_results_["params"]
    ]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], scores)
    assert_certified(search.best_estimator_, X, y)


def test_pipeline_with_weights(cancer):
    X, y = cancer
    raw = 5.0 * X + 100.0
    weights = np.random.default_rng(0).random(len(y))
    pipeline = make_pipeline(StandardScaler(), LinearSVC())
    pipeline.fit(raw, y, linearsvc__sample_weight=weights)
    assert_certified(pipeline[-1], pipeline[0].transform(raw), y, weights)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration(iris, method):
    X, y = iris
    model = CalibratedClassifierCV(LinearSVC(), method=method, cv=3).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    plain = LinearSVC().fit(X, y)
    agreement = np.mean(model.predict(X) == y), np.mean(plain.predict(X) == y)
    assert agreement[0] >= agreement[1] - 0.05


def test_other_tools(iris):
    X, y = iris
    pairs = OneVsOneClassifier(LinearSVC(tol=1e-6)).fit(X, y)
    for estimator in pairs.estimators_:
        assert estimator.certificate_.relative_gap <= 1e-6
    assert SelectFromModel(LinearSVC()).fit(X, y).transform(X).shape[1] < 4
    assert RFE(LinearSVC(), n_features_to_select=2).fit(X, y).support_.sum() == 2
    sizes, *_ = learning_curve(LinearSVC(), X, y, cv=3, shuffle=True, random_state=0)
    assert len(sizes) == 5


def test_metadata_routing(iris):
    import sklearn

    X, y = iris
    weights = np.random.default_rng(0).random(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = LinearSVC().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(model).fit(X, y, sample_weight=weights)
    assert_certified(pipeline[-1], X, y, weights)


# -- labels ---------------------------------------------------------------------------

PAIRS = {
    "0 1": (0, 1),
    "-1 1": (-1, 1),
    "1 2": (1, 2),
    "a b": ("a", "b"),
    "objects": np.array(["no", "yes"], dtype=object),
    "bool": (False, True),
    "floats": (0.0, 1.0),
    "huge": (-(2**62), 2**62),
    "nearly equal": (10**17, 10**17 + 1),
    "unsigned": np.array([0, 2**63 + 5], dtype=np.uint64),
    "one character and a long text": ("", "x" * 1000),
    "int8": np.array([-128, 127], dtype=np.int8),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_two_labels_of_any_kind(cancer, pair):
    X, y = cancer
    labels = np.asarray(pair)[y]
    model = LinearSVC().fit(X, labels)
    plain = LinearSVC().fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.coef_.shape == (1, 30)
    assert model.intercept_.shape == (1,)
    assert model.decision_function(X).shape == (569,)
    assert model.classes_.tolist() == list(np.asarray(pair).tolist())
    assert model.classes_.dtype == labels.dtype
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    np.testing.assert_array_equal(predicted, np.asarray(pair)[plain.predict(X)])


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("names", [["c", "a", "b"], [10**15, -3, 7], [2.0, 1.0, 0.0]], ids=str)
def test_three_labels_of_any_kind(iris, multi_class, names):
    X, y = iris
    labels = np.array(names)[y]
    model = LinearSVC(multi_class=multi_class, tol=1e-6).fit(X, labels)
    assert model.classes_.tolist() == sorted(names)
    assert_certified(model, X, labels)
    plain = LinearSVC(multi_class=multi_class, tol=1e-6).fit(X, y)
    assert np.mean(model.predict(X) == np.array(names)[plain.predict(X)]) > 0.99


def test_swapping_the_labels_swaps_the_signs(cancer):
    X, y = cancer
    model, swapped = LinearSVC(tol=1e-9).fit(X, y), LinearSVC(tol=1e-9).fit(X, 1 - y)
    assert model.certificate_.primal == pytest.approx(swapped.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(model.coef_, -swapped.coef_, atol=1e-4)


def test_continuous_targets_are_refused(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match="continuous"):
        LinearSVC().fit(X, y + 0.5 * np.arange(len(y)) / len(y))
    with pytest.raises(ValueError, match="0 and 1"):  # of several labels
        LinearSVC().fit(X, np.stack([y, y + 1], axis=1))


def test_a_failed_fit_keeps_the_fitted_attributes_together(cancer, iris):
    """Whatever is left of an earlier fit must not be mixed with the new data's."""
    model = LinearSVC().fit(*cancer)
    with pytest.raises(ValueError, match="one class"):
        model.fit(iris[0], np.zeros(150))
    try:
        scores = model.decision_function(cancer[0])
    except (ValueError, NotFittedError):
        return  # refusing is fine; a wrong answer is not
    assert scores.shape == (569,)
    assert len(model.classes_) == 2
