"""RankSVM with scikit-learn's metadata routing: every fold gets the queries of its own rows."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from ranking_reference import Data, assert_certified, make_data
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cutplane import RankSVM
from cutplane.metrics import ndcg_score, ndcg_scorer, swapped_pairs, swapped_pairs_scorer

FOLDS = GroupKFold(4)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def data() -> Data:
    return make_data(300, queries=30)


def splits(data):
    return FOLDS.split(data.X, data.levels, groups=data.qid)


def by_hand(data, C, metric, **parameters) -> list[float]:
    """Fit and measure every fold without any tool."""
    scores = []
    for train, test in splits(data):
        model = RankSVM(C, **parameters)
        model.fit(data.X[train], data.levels[train], qid=data.qid[train])
        scores.append(metric(data.levels[test], model.predict(data.X[test]), qid=data.qid[test]))
    return scores


@pytest.mark.parametrize(
    ("scorer", "metric"),
    [
        (lambda: ndcg_scorer(k=5), lambda *a, **q: ndcg_score(*a, k=5, **q)),
        (
            lambda: swapped_pairs_scorer(average="queries"),
            lambda *a, **q: -swapped_pairs(*a, average="queries", **q),
        ),
        (swapped_pairs_scorer, lambda *a, **q: -swapped_pairs(*a, **q)),
    ],
    ids=["ndcg@5", "swapped by query", "swapped"],
)
def test_cross_validation(routing, data, scorer, metric):
    found = cross_val_score(
        RankSVM(0.05).set_fit_request(qid=True),
        data.X,
        data.levels,
        cv=FOLDS,
        scoring=scorer(),
        params={"qid": data.qid, "groups": data.qid},
    )
    np.testing.assert_allclose(found, by_hand(data, 0.05, metric), rtol=1e-12)


@pytest.mark.parametrize("weighting", ["pairs", "queries"])
def test_the_score_of_the_estimator_itself(routing, data, weighting):
    model = RankSVM(0.05, weighting=weighting)
    model.set_fit_request(qid=True).set_score_request(qid=True)
    params = {"qid": data.qid, "groups": data.qid}
    found = cross_val_score(model, data.X, data.levels, cv=FOLDS, params=params)
    expected = by_hand(
        data,
        0.05,
        lambda *a, **q: 1.0 - swapped_pairs(*a, average=weighting, **q),
        weighting=weighting,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_grid_over_c(routing, data):
    grid = [1e-4, 1.0, 100.0]
    search = GridSearchCV(
        RankSVM().set_fit_request(qid=True), {"C": grid}, cv=FOLDS, scoring=ndcg_scorer(k=10)
    )
    search.fit(data.X, data.levels, qid=data.qid, groups=data.qid)
    means = [np.mean(by_hand(data, C, lambda *a, **q: ndcg_score(*a, k=10, **q))) for C in grid]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means, rtol=1e-12)
    assert search.best_params_["C"] == grid[int(np.argmax(means))]
    assert_certified(search.best_estimator_, data.X, data.levels, data.qid)
    assert search.best_estimator_.n_queries_ == len(np.unique(data.qid))


def test_weights_are_routed_too(routing, data):
    weights = np.random.default_rng(0).random(len(data.X))
    found = cross_validate(
        RankSVM(0.05).set_fit_request(qid=True, sample_weight=True),
        data.X,
        data.levels,
        cv=FOLDS,
        scoring=ndcg_scorer(),
        params={"qid": data.qid, "groups": data.qid, "sample_weight": weights},
        return_estimator=True,
    )
    for model, (train, _) in zip(found["estimator"], splits(data), strict=True):
        assert_certified(model, data.X[train], data.levels[train], data.qid[train], weights[train])


def test_a_pipeline(routing, data):
    raw = 3.0 * data.X + 7.0
    pipeline = make_pipeline(
        StandardScaler(), RankSVM(0.05).set_fit_request(qid=True).set_score_request(qid=True)
    )
    pipeline.fit(raw, data.levels, qid=data.qid)
    scaled = StandardScaler().fit_transform(raw)
    plain = RankSVM(0.05).fit(scaled, data.levels, qid=data.qid)
    np.testing.assert_array_equal(pipeline[-1].coef_, plain.coef_)
    score = pipeline.score(raw, data.levels, qid=data.qid)
    assert score == plain.score(scaled, data.levels, qid=data.qid)
    assert score != plain.score(scaled, data.levels)
    search = GridSearchCV(
        pipeline, {"ranksvm__C": [0.1, 10.0]}, cv=FOLDS, scoring=swapped_pairs_scorer()
    )
    search.fit(raw, data.levels, qid=data.qid, groups=data.qid)
    best = search.best_estimator_
    assert_certified(best[-1], best[0].transform(raw), data.levels, data.qid)


def test_queries_that_nobody_asked_for_are_refused(routing, data):
    """Silently without queries the answer would look right and be wrong."""
    with pytest.raises(UnsetMetadataPassedError, match="qid"):
        cross_val_score(
            RankSVM(),
            data.X,
            data.levels,
            cv=FOLDS,
            scoring=ndcg_scorer(),
            params={"qid": data.qid, "groups": data.qid},
        )


def test_requests_survive_a_clone(routing):
    model = clone(RankSVM().set_fit_request(qid=True).set_score_request(qid="query"))
    requests = model.get_metadata_routing()
    assert requests.fit.requests["qid"] is True
    assert requests.score.requests["qid"] == "query"


def test_without_routing_a_pipeline_takes_the_name_of_its_step(data):
    pipeline = make_pipeline(StandardScaler(), RankSVM(0.05))
    pipeline.fit(data.X, data.levels, ranksvm__qid=data.qid)
    assert pipeline[-1].n_queries_ == len(np.unique(data.qid))
