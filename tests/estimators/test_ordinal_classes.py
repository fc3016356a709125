"""OrdinalSVC: exact thresholds in order, classes of any kind, weights, and what it refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ranking_reference import assert_certified, make_data
from sklearn.metrics import accuracy_score, mean_absolute_error
from svc_reference import quiet_fit

from cutplane import OrdinalSVC, RankSVM

DATA = make_data()
CRITERIA = ["absolute", "zero_one"]


def error_of(predicted, ranks, weights, criterion) -> float:
    off = np.abs(predicted - ranks)
    return float(np.sum(weights * (off if criterion == "absolute" else off > 0)))


def least_error(scores, ranks, weights, n_ranks, criterion) -> float:
    """By trying all thresholds in order, between any two neighbouring scores."""
    levels = np.unique(scores)
    places = [-np.inf, *(0.5 * (levels[1:] + levels[:-1])), np.inf]
    return min(
        error_of(np.searchsorted(cuts, scores, side="left"), ranks, weights, criterion)
        for cuts in itertools.combinations_with_replacement(places, n_ranks - 1)
    )


# -- thresholds -----------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weighted", [False, True])
def test_thresholds_are_exact(criterion, seed, weighted):
    """No thresholds in order make a smaller error on the training scores."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(18, 2)), 1)
    ranks = np.append([0, 1, 2, 3], rng.integers(0, 4, 14))
    weights = rng.integers(0, 4, 18).astype(float) if weighted else np.ones(18)
    weights[:4] = 1.0
    model = OrdinalSVC(0.025, criterion=criterion, tol=1e-8)
    model.fit(X, ranks, sample_weight=weights if weighted else None)
    assert model.thresholds_.shape == (3,)
    assert np.isfinite(model.thresholds_).all()
    assert np.all(np.diff(model.thresholds_) >= 0.0)
    found = error_of(model.predict(X), ranks, weights, criterion)
    scores = np.round(X @ model.coef_[0], 9)  # what differs by rounding is equal
    least = least_error(scores[weights > 0], ranks[weights > 0], weights[weights > 0], 4, criterion)
    assert found == pytest.approx(least, abs=1e-9)


def test_each_criterion_is_best_by_its_own_error():
    data = make_data(noise=3.0)
    models = [OrdinalSVC(0.05, criterion=name).fit(data.X, data.levels) for name in CRITERIA]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    predicted = [model.predict(data.X) for model in models]
    assert mean_absolute_error(data.levels, predicted[0]) < mean_absolute_error(
        data.levels, predicted[1]
    )
    assert accuracy_score(data.levels, predicted[0]) < accuracy_score(data.levels, predicted[1])


@pytest.mark.parametrize("criterion", CRITERIA)
def test_classes_that_can_be_told_apart(criterion):
    """The thresholds are half way between the classes."""
    X, y = np.array([[0.0], [1.0], [4.0], [5.0], [9.0]]), np.array([0, 0, 1, 1, 2])
    model = OrdinalSVC(1e6, criterion=criterion, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    np.testing.assert_allclose(model.thresholds_ / model.coef_[0, 0], [2.5, 7.0], rtol=1e-6)
    np.testing.assert_array_equal(model.predict([[-1e9], [1e9]]), [0, 2])


def test_the_coef_is_that_of_the_ranking():
    ordinal = OrdinalSVC(0.1).fit(DATA.X, DATA.levels)
    ranking = RankSVM(0.1).fit(DATA.X, DATA.levels)
    np.testing.assert_array_equal(ordinal.coef_, ranking.coef_)
    assert ordinal.n_pairs_ == ranking.n_pairs_
    assert ordinal.certificate_ == ranking.certificate_


# -- prediction -----------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_the_largest_decision_value_is_predicted(criterion, noise):
    data = make_data(noise=noise)
    model = OrdinalSVC(0.05, criterion=criterion).fit(data.X, data.levels)
    other = np.random.default_rng(0).normal(size=(500, 6)) * 3.0
    scores = model.score_samples(other)
    values = model.decision_function(other)
    np.testing.assert_allclose(scores, other @ model.coef_[0], rtol=1e-9, atol=1e-12)
    assert values.shape == (500, 5)
    np.testing.assert_array_equal(values.argmax(axis=1), model.predict(other))
    above = (scores[:, None] > model.thresholds_).sum(axis=1)
    np.testing.assert_array_equal(model.predict(other), above)
    for k in range(5):
        expected = (scores[:, None] - model.thresholds_[:k]).sum(axis=1)
        np.testing.assert_allclose(values[:, k], expected, rtol=1e-9, atol=1e-9)


def test_a_score_at_a_threshold_is_not_above_it():
    model = OrdinalSVC(0.05).fit(DATA.X, DATA.levels)
    order = np.argsort(model.score_samples(DATA.X))[[20, 60, 90, 150]]
    model.thresholds_ = model.score_samples(DATA.X)[order]
    assert model.predict(DATA.X)[order].tolist() == [0, 1, 2, 3]
    assert OrdinalSVC(0.05).fit([[0.0], [1.0]], [0, 1]).predict([[0.5]]).tolist() == [0]


def test_score_samples_are_in_the_order_of_the_predictions():
    model = OrdinalSVC(0.05).fit(DATA.X, DATA.levels)
    order = np.argsort(model.score_samples(DATA.X))
    assert np.all(np.diff(model.predict(DATA.X)[order]) >= 0)
    assert model.score(DATA.X, DATA.levels) == accuracy_score(DATA.levels, model.predict(DATA.X))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_two_classes(criterion):
    model = OrdinalSVC(0.05, criterion=criterion).fit(DATA.X, DATA.labels)
    values = model.decision_function(DATA.X)
    assert values.shape == (200,)
    assert model.thresholds_.shape == (1,)
    np.testing.assert_array_equal(model.predict(DATA.X), (values > 0.0).astype(int))
    scores = model.score_samples(DATA.X)
    np.testing.assert_allclose(values, scores - model.thresholds_[0], atol=1e-12)
    errors = np.sum(model.predict(DATA.X) != DATA.labels)
    assert errors == least_error(scores, DATA.labels, np.ones(200), 2, criterion)


# -- classes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ["1 bad", "2 poor", "3 fair", "4 good", "5 best"],
        [-7, 0, 3, 10**12, 10**15],
        [0.0, 1.0, 2.0, 5.0, 9.0],
        np.array(list("aбcde"), dtype=object),
    ],
    ids=["text", "integers", "whole floats", "objects"],
)
def test_labels_of_any_kind_in_sorted_order(names):
    order = np.sort(np.asarray(names))
    labels = order[DATA.levels]
    plain = OrdinalSVC(0.05).fit(DATA.X, DATA.levels)
    model = OrdinalSVC(0.05).fit(DATA.X, labels)
    np.testing.assert_array_equal(model.classes_, order)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.thresholds_, plain.thresholds_)
    predicted = model.predict(DATA.X)
    assert predicted.dtype == labels.dtype
    np.testing.assert_array_equal(predicted, order[plain.predict(DATA.X)])


@pytest.mark.filterwarnings("ignore:The number of unique classes")  # scikit-learn's doubt
def test_as_many_classes_as_rows():
    ranks = np.argsort(np.argsort(DATA.values))
    model = quiet_fit(OrdinalSVC(5.0), DATA.X, ranks)
    assert_certified(model, DATA.X, ranks)
    assert model.thresholds_.shape == (199,)
    assert np.all(np.diff(model.thresholds_) >= 0.0)
    errors = np.abs(model.predict(DATA.X) - ranks)
    assert errors.mean() < np.abs(np.median(ranks) - ranks).mean()


def test_a_class_without_weight_is_not_predicted():
    weights = (DATA.levels != 2).astype(float)
    model = OrdinalSVC(0.05).fit(DATA.X, DATA.levels, sample_weight=weights)
    assert 2 not in model.predict(DATA.X)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    assert model.thresholds_.shape == (4,)
    assert_certified(model, DATA.X, DATA.levels, weights=weights)


# -- weights --------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_weights_are_repetition(criterion):
    counts = np.random.default_rng(3).integers(0, 4, 200)
    rows = np.repeat(np.arange(200), counts)
    parameters = {"C": 10.0, "tol": 1e-9, "criterion": criterion}
    weighted = OrdinalSVC(**parameters).fit(DATA.X, DATA.levels, sample_weight=counts)
    repeated = OrdinalSVC(**parameters).fit(DATA.X[rows], DATA.levels[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)
    np.testing.assert_allclose(weighted.thresholds_, repeated.thresholds_, atol=1e-4)
    assert_certified(weighted, DATA.X, DATA.levels, weights=counts)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_balanced_classes(criterion):
    """The same as weights by hand, in the pairs and in the thresholds; and it matters."""
    counts = np.bincount(DATA.levels)
    factors = (200 / (5 * counts))[DATA.levels]
    parameters = {"C": 10.0, "criterion": criterion}
    balanced = OrdinalSVC(class_weight="balanced", **parameters).fit(DATA.X, DATA.levels)
    by_hand = OrdinalSVC(**parameters).fit(DATA.X, DATA.levels, sample_weight=factors)
    by_dict = OrdinalSVC(class_weight=dict(enumerate(200 / (5 * counts))), **parameters)
    by_dict.fit(DATA.X, DATA.levels)
    for other in (by_hand, by_dict):
        np.testing.assert_array_equal(balanced.coef_, other.coef_)
        np.testing.assert_array_equal(balanced.thresholds_, other.thresholds_)
    assert_certified(balanced, DATA.X, DATA.levels, weights=factors)
    plain = OrdinalSVC(**parameters).fit(DATA.X, DATA.levels)
    recalls = [
        np.mean([np.mean(m.predict(DATA.X)[DATA.levels == k] == k) for k in range(5)])
        for m in (plain, balanced)
    ]
    assert not np.array_equal(balanced.thresholds_, plain.thresholds_)
    if criterion == "zero_one":
        assert recalls[1] > recalls[0]


# -- refused --------------------------------------------------------------------------


def test_continuous_targets_are_refused():
    with pytest.raises(ValueError, match=r"(?i)unknown label type.*continuous"):
        OrdinalSVC().fit(DATA.X, DATA.values)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match=r"one class only \(.*3.*\); a classifier needs at least"):
        OrdinalSVC().fit(DATA.X, np.full(200, 3))
    with pytest.raises(ValueError, match="only one class has rows of positive weight"):
        OrdinalSVC().fit(DATA.X, DATA.levels, sample_weight=DATA.levels == 1)
    with pytest.raises(ValueError, match="only one class has rows of positive weight"):
        OrdinalSVC(class_weight={0: 0.0}).fit(DATA.X, DATA.labels)


@pytest.mark.parametrize("bad", ["heavy", 3.0, [1, 2], {0: -1.0}, {0: np.nan}], ids=str)
def test_bad_class_weights_are_named(bad):
    with pytest.raises(ValueError, match="class_weight"):
        OrdinalSVC(class_weight=bad).fit(DATA.X, DATA.levels)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_bad_weights_are_refused(bad):
    weights = np.ones(200)
    weights[3] = bad
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        OrdinalSVC().fit(DATA.X, DATA.levels, sample_weight=weights)


def test_one_row_far_out_does_not_melt_the_others():
    """Rounding is relative to a row's own numbers, not to those of the largest row."""
    far = np.zeros(6)
    far[2] = 1e11
    X, y = np.vstack([DATA.X, far]), np.append(DATA.levels, 4)
    model = OrdinalSVC().fit(X, y)
    assert (
        model.score(X, y) >= OrdinalSVC().fit(DATA.X, DATA.levels).score(DATA.X, DATA.levels) - 0.1
    )
