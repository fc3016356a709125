"""MeasureSVC, RankSVM and OrdinalSVC among scikit-learn's tools: copies, files, searches."""

from __future__ import annotations

import copy
import inspect
import pickle

import joblib
import numpy as np
import pytest
from ranking_reference import CASES, MEASURE_CASES, ORDINAL_CASES, Data, case_name, make_data
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cutplane
from cutplane import MeasureSVC, OrdinalSVC, RankSVM

DATA = make_data()
CLASSIFIERS = [*MEASURE_CASES, *ORDINAL_CASES]


@pytest.fixture(params=CASES, ids=case_name)
def case(request):
    return request.param


def state(model) -> dict:
    """What a fit has stored, comparable by value."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(model).items()
        if name.endswith("_") and name != "results_"
    }


# -- copies ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [MeasureSVC, RankSVM, OrdinalSVC])
def test_clone_keeps_every_parameter(kind):
    names = list(inspect.signature(kind).parameters)
    values = {name: f"<{name}>" for name in names}
    model = kind(**values)
    assert model.get_params() == values
    assert clone(model).get_params() == values
    assert repr(model).startswith(kind.__name__)


def test_only_the_first_parameter_may_be_given_by_position():
    assert (MeasureSVC("f1").measure, RankSVM(3.0).C, OrdinalSVC(3.0).C) == ("f1", 3.0, 3.0)
    for kind in (MeasureSVC, RankSVM, OrdinalSVC):
        with pytest.raises(TypeError):
            kind(1.0, 2.0)


def test_the_estimators_are_exported():
    for name in ("MeasureSVC", "RankSVM", "OrdinalSVC"):
        assert name in cutplane.__all__
        assert name in dir(cutplane)
    assert is_classifier(MeasureSVC())
    assert is_classifier(OrdinalSVC())
    assert not is_classifier(RankSVM())


def test_clone_forgets_the_fit(case):
    model = case.fit(DATA, warm_start=True)
    again = clone(model)
    with pytest.raises(NotFittedError):
        again.predict(DATA.X)
    assert again.fit(DATA.X, case.y(DATA), **case.extra(DATA)).n_iter_ == model.n_iter_


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickle(case, protocol):
    model = case.fit(DATA, C=30.0, warm_start=True)
    again = pickle.loads(pickle.dumps(model, protocol))
    assert state(again) == state(model)
    assert again.get_params() == model.get_params()
    assert again.results_[0].trace == model.results_[0].trace
    np.testing.assert_array_equal(again.predict(DATA.X), model.predict(DATA.X))


def test_joblib_files(case, tmp_path):
    model = case.fit(DATA)
    path = tmp_path / "ein Modell ü.joblib"
    joblib.dump(model, path)
    mapped = joblib.load(path, mmap_mode="r")  # read-only arrays
    assert state(mapped) == state(model)
    np.testing.assert_array_equal(mapped.predict(DATA.X), model.predict(DATA.X))


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
def test_copies(case, copier):
    model = case.fit(DATA, warm_start=True)
    other = copier(model)
    assert state(other) == state(model)
    before = state(model)
    other.set_params(C=0.005).fit(DATA.X, case.y(DATA), **case.extra(DATA))
    case.assert_certified(other, DATA)
    assert state(model) == before


def test_fitting_again_does_not_disturb_what_was_handed_out(case):
    model = case.fit(DATA, warm_start=True)
    coef, result = model.coef_, model.results_[0]
    before = coef.copy(), result.w.copy()
    model.set_params(C=5e-5).fit(DATA.X, case.y(DATA), **case.extra(DATA))
    np.testing.assert_array_equal(coef, before[0])
    np.testing.assert_array_equal(result.w, before[1])


# -- searches and pipelines -----------------------------------------------------------


@pytest.mark.parametrize("case", CLASSIFIERS, ids=case_name)
def test_grid_search(case):
    """By the training measure's own scorer where scikit-learn has one."""
    scoring = {"roc_auc": "roc_auc", "f1": "f1"}.get(case.name, "accuracy")
    folds = StratifiedKFold(3)
    y = case.y(DATA)
    search = GridSearchCV(case.make(), {"C": [1e-4, 0.1, 10.0]}, scoring=scoring, cv=folds)
    search.fit(DATA.X, y)
    scores = [
        cross_val_score(case.make(C=C), DATA.X, y, scoring=scoring, cv=folds).mean()
        for C in (1e-4, 0.1, 10.0)
    ]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], scores)
    assert search.best_score_ == max(scores)
    case.assert_certified(search.best_estimator_, DATA)


@pytest.mark.slow  # starts processes
def test_search_over_measures_in_two_processes():
    grid = {"measure": ["roc_auc", "f1", "prbep"], "C": [0.05, 5.0]}
    searches = [
        GridSearchCV(MeasureSVC(), grid, scoring="f1", cv=3, n_jobs=jobs).fit(DATA.X, DATA.labels)
        for jobs in (1, 2)
    ]
    for name in ("mean_test_score", "rank_test_score"):
        np.testing.assert_array_equal(*(search.cv_results_[name] for search in searches))


def test_ranking_without_queries_in_a_search():
    """``score`` is the default: no routing is needed where there are no queries."""
    search = GridSearchCV(RankSVM(), {"C": [1e-5, 0.05]}, cv=3).fit(DATA.X, DATA.values)
    scores = [cross_val_score(RankSVM(C), DATA.X, DATA.values, cv=3).mean() for C in (1e-5, 0.05)]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], scores)


@pytest.mark.parametrize("weighted", [False, True])
def test_pipeline(case, weighted):
    raw = 5.0 * DATA.X + 100.0
    pipeline = make_pipeline(StandardScaler(), case.make(C=0.5))
    last = pipeline.steps[-1][0]
    given = {**case.extra(DATA)}
    weights = np.arange(200) % 3 if weighted else None
    if weighted:
        given["sample_weight"] = weights
    pipeline.fit(raw, case.y(DATA), **{f"{last}__{name}": v for name, v in given.items()})
    scaled = pipeline[0].transform(raw)
    data = Data(scaled, DATA.labels, DATA.levels, DATA.values, DATA.qid)
    case.assert_certified(pipeline[-1], data, weights=weights)
    np.testing.assert_array_equal(pipeline.predict(raw), pipeline[-1].predict(scaled))


def test_calibration():
    model = CalibratedClassifierCV(MeasureSVC("roc_auc", C=0.05), cv=3).fit(DATA.X, DATA.labels)
    probabilities = model.predict_proba(DATA.X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    scores = MeasureSVC("roc_auc", C=0.05).fit(DATA.X, DATA.labels).decision_function(DATA.X)
    assert np.corrcoef(probabilities[:, 1], scores)[0, 1] > 0.8


def test_one_measure_per_class():
    """What the error for more than two classes advises."""
    model = OneVsRestClassifier(MeasureSVC("roc_auc", C=0.05)).fit(DATA.X, DATA.levels)
    assert len(model.estimators_) == 5
    for level, estimator in enumerate(model.estimators_):
        MEASURE_CASES[0].assert_certified(
            estimator, Data(DATA.X, (DATA.levels == level).astype(int), *[DATA.levels] * 3)
        )
