"""MeasureSVC as a classifier: the decision threshold, k, labels, weights, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from ranking_reference import AT_TOP, MEASURES, assert_certified, make_data
from svc_reference import quiet_fit

from cutplane import MeasureSVC


def predicted_positive(model, X) -> int:
    return int(np.sum(model.predict(X) == model.classes_[1]))


# -- the decision threshold -----------------------------------------------------------


@pytest.mark.parametrize("measure", AT_TOP)
@pytest.mark.parametrize("C", [10.0, 1e3, 1e5])
def test_the_k_highest_rows_are_predicted_positive(measure, C):
    """As many as can be without parting rows of equal score, which are there at the optimum."""
    data = make_data()
    model = MeasureSVC(measure, C=C / len(data.X)).fit(data.X, data.labels)
    scores = data.X @ model.coef_[0]
    assert predicted_positive(model, data.X) == model.k_  # none are equal in these
    highest = np.argsort(-scores)[: model.k_]
    np.testing.assert_array_equal(np.flatnonzero(model.predict(data.X)), np.sort(highest))


@pytest.mark.parametrize("k", [1, 7, 50, 199, 200])
@pytest.mark.parametrize("measure", ["precision_at_k", "recall_at_k"])
def test_any_k_rows(measure, k):
    """One row, too: with little noise the mean of the positives can be above all negatives."""
    data = make_data(noise=0.1)
    model = MeasureSVC(measure, k=k, C=1e3 / len(data.X)).fit(data.X, data.labels)
    assert model.k_ == k
    assert predicted_positive(model, data.X) == k
    assert_certified(model, data.X, data.labels)


@pytest.mark.parametrize("measure", AT_TOP)
def test_rows_of_equal_score_are_not_parted(measure):
    """Every row three times: 16 of 17 could be exact only by parting three equal rows."""
    data = make_data(40, share=0.4)
    X, y = np.repeat(data.X, 3, axis=0), np.repeat(data.labels, 3)
    k = 17 if measure != "prbep" else None
    model = MeasureSVC(measure, k=k, C=1e3 / len(X)).fit(X, y)
    assert predicted_positive(model, X) == model.k_ // 3 * 3
    few = MeasureSVC("precision_at_k", k=2, C=1e3 / len(X)).fit(X, y)
    assert predicted_positive(few, X) == 3  # none would be no answer


@pytest.mark.parametrize("measure", AT_TOP)
def test_scores_that_only_rounding_keeps_apart_are_equal(measure):
    """Copies of rows that differ in the last bit are not parted, any more than exact ones."""
    data = make_data(40, share=0.4)
    X, y = np.repeat(data.X, 3, axis=0), np.repeat(data.labels, 3)
    X[1::3] *= 1.0 + 4e-16
    X[2::3] *= 1.0 - 4e-16
    k = 17 if measure != "prbep" else None
    model = MeasureSVC(measure, k=k, C=1e3 / len(X)).fit(X, y)
    chosen = model.predict(X).reshape(-1, 3)
    assert np.all(chosen == chosen[:, :1])
    assert chosen.sum() == model.k_ // 3 * 3


@pytest.mark.parametrize("measure", AT_TOP)
def test_the_threshold_counts_copies(measure):
    data = make_data()
    weights = np.random.default_rng(0).integers(0, 3, 200)
    model = MeasureSVC(measure, C=1e3 / len(data.X)).fit(data.X, data.labels, sample_weight=weights)
    chosen = model.predict(data.X) == 1
    assert model.k_ - 1 <= weights[chosen].sum() <= model.k_


def test_the_threshold_of_the_roc_area_makes_fewest_errors():
    data = make_data(noise=2.0)
    for given in (None, np.where(data.labels == 1, 10.0, 1.0), np.where(data.labels == 1, 0.1, 1)):
        model = MeasureSVC("roc_auc", C=10.0 / len(data.X)).fit(
            data.X, data.labels, sample_weight=given
        )
        scores = data.X @ model.coef_[0]
        cuts = np.sort(scores)
        errors = [
            np.average((scores > t) != data.labels, weights=given)
            for t in [-np.inf, *(0.5 * (cuts[1:] + cuts[:-1])), np.inf]
        ]
        found = np.average(model.predict(data.X) != data.labels, weights=given)
        assert found == pytest.approx(min(errors), abs=1e-12)
        assert -model.intercept_[0] not in scores


def test_the_threshold_of_f1_is_trained():
    """Nothing is fitted afterwards: the prediction is the sign that the risk is about."""
    data = make_data()
    model = MeasureSVC("f1", C=1e3 / len(data.X)).fit(data.X, data.labels)
    assert model.intercept_[0] == model.results_[0].w[-1] != 0.0
    tripled = MeasureSVC("f1", C=1e3 / len(data.X), intercept_scaling=3.0).fit(data.X, data.labels)
    assert tripled.intercept_[0] == 3.0 * tripled.results_[0].w[-1]
    none = MeasureSVC("f1", C=1e3 / len(data.X), fit_intercept=False).fit(data.X, data.labels)
    assert none.intercept_[0] == 0.0
    for other in (tripled, none):
        assert_certified(other, data.X, data.labels)
        np.testing.assert_array_equal(
            other.predict(data.X), data.X @ other.coef_[0] + other.intercept_[0] > 0.0
        )


@pytest.mark.parametrize("measure", ["roc_auc", *AT_TOP])
def test_fit_intercept_does_not_matter_to_rankings(measure):
    data = make_data()
    models = [
        MeasureSVC(measure, C=1e3 / len(data.X), fit_intercept=flag, intercept_scaling=scaling)
        for flag, scaling in ((True, None), (False, None), (True, 5.0))
    ]
    coefs = {model.fit(data.X, data.labels).coef_.tobytes() for model in models}
    assert len(coefs) == 1
    assert len({model.intercept_[0] for model in models}) == 1


@pytest.mark.parametrize("measure", MEASURES)
def test_prediction_is_the_sign_of_the_decision_function(measure):
    data = make_data()
    model = MeasureSVC(measure).fit(data.X, data.labels)
    other = np.random.default_rng(0).normal(size=(500, 6))
    scores = model.decision_function(other)
    np.testing.assert_allclose(scores, other @ model.coef_[0] + model.intercept_[0], rtol=1e-9)
    np.testing.assert_array_equal(model.predict(other), (scores > 0.0).astype(int))


# -- k --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "k", "rows"),
    [
        ("precision_at_k", None, 25),
        ("recall_at_k", None, 100),
        ("precision_at_k", 3, 3),
        ("precision_at_k", np.int64(3), 3),
        ("precision_at_k", 1, 1),
        ("precision_at_k", 1.0, 50),
        ("recall_at_k", 0.5, 25),
        ("recall_at_k", np.float32(1.5), 75),
        ("recall_at_k", 1e-9, 1),
        ("recall_at_k", 200, 200),
        ("recall_at_k", 4.0, 200),
    ],
)
def test_k_in_rows_or_in_units_of_the_positives(measure, k, rows):
    data = make_data()
    assert data.labels.sum() == 50
    model = MeasureSVC(measure, k=k).fit(data.X, data.labels)
    assert model.k_ == rows
    assert isinstance(model.k_, int)


def test_the_default_k_for_recall_is_at_most_all_rows():
    data = make_data(share=0.8)
    assert MeasureSVC("recall_at_k").fit(data.X, data.labels).k_ == 200


def test_the_break_even_point_has_as_many_rows_as_positives():
    data = make_data()
    model = MeasureSVC("prbep", C=1e3 / len(data.X)).fit(data.X, data.labels)
    assert model.k_ == 50
    same = MeasureSVC("precision_at_k", k=50, C=1e3 / len(data.X)).fit(data.X, data.labels)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert model.intercept_ == same.intercept_


@pytest.mark.parametrize("k", [0, 0.0, -1, np.nan, np.inf, "a", True, [3], 201, 4.1])
@pytest.mark.parametrize("measure", ["precision_at_k", "recall_at_k"])
def test_a_bad_k_is_named(measure, k):
    data = make_data()
    with pytest.raises(ValueError, match=r"\bk must\b"):
        MeasureSVC(measure, k=k).fit(data.X, data.labels)


def test_too_large_a_k_says_what_it_counted():
    data = make_data()
    with pytest.raises(ValueError, match=r"200; got 205, 4\.1 times the 50 positive"):
        MeasureSVC("recall_at_k", k=4.1).fit(data.X, data.labels)
    weights = np.arange(200) % 2
    with pytest.raises(ValueError, match="rows that count, 100; got 101"):
        MeasureSVC("recall_at_k", k=101).fit(data.X, data.labels, sample_weight=weights)


@pytest.mark.parametrize("measure", ["roc_auc", "f1", "prbep", "error_rate"])
def test_k_is_refused_where_it_means_nothing(measure):
    data = make_data()
    with pytest.raises(ValueError, match=rf"k has no meaning for measure='{measure}'.*leave it"):
        MeasureSVC(measure, k=3).fit(data.X, data.labels)


def test_an_old_k_does_not_outlive_its_measure():
    data = make_data()
    model = MeasureSVC("prbep").fit(data.X, data.labels)
    model.set_params(measure="f1").fit(data.X, data.labels)
    assert not hasattr(model, "k_")


# -- labels and weights ---------------------------------------------------------------

PAIRS = {
    "-1 1": (-1, 1),
    "text": ("no", "yes"),
    "objects": np.array(["ham", "spam"], dtype=object),
    "bool": (False, True),
    "floats": (0.0, 1.0),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("measure", MEASURES)
def test_two_labels_of_any_kind(measure, pair):
    """The second one in sorted order is the positive class."""
    data = make_data()
    labels = np.asarray(pair)[data.labels]
    plain = MeasureSVC(measure).fit(data.X, data.labels)
    model = MeasureSVC(measure).fit(data.X, labels)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.intercept_, plain.intercept_)
    assert model.classes_.tolist() == list(pair)
    predicted = model.predict(data.X)
    assert predicted.dtype == labels.dtype
    np.testing.assert_array_equal(predicted, np.asarray(pair)[plain.predict(data.X)])


@pytest.mark.parametrize("measure", MEASURES)
def test_more_than_two_classes_are_refused(measure):
    data = make_data()
    with pytest.raises(ValueError, match=r"binary.*5 classes.*LinearSVC"):
        MeasureSVC(measure).fit(data.X, data.levels)


@pytest.mark.parametrize("measure", MEASURES)
def test_one_class_is_refused(measure):
    data = make_data()
    with pytest.raises(ValueError, match=r"one class only \(.*3"):
        MeasureSVC(measure).fit(data.X, np.full(200, 3))
    with pytest.raises(ValueError, match=r"only one class has rows of positive weight"):
        MeasureSVC(measure).fit(data.X, data.labels, sample_weight=data.labels)


def test_continuous_targets_are_refused():
    data = make_data()
    with pytest.raises(ValueError, match="continuous"):
        MeasureSVC().fit(data.X, data.values)


@pytest.mark.parametrize("measure", ["f1", "precision_at_k", "recall_at_k", "prbep"])
def test_weights_that_are_no_counts_are_refused(measure):
    data = make_data()
    weights = np.ones(200)
    weights[17] = 2.5
    with pytest.raises(ValueError, match=r"whole numbers.*number of copies; got 2\.5 in row 17"):
        MeasureSVC(measure).fit(data.X, data.labels, sample_weight=weights)
    weights[17] = 1e10
    with pytest.raises(ValueError, match=r"1e\+10 copies.*divide the weights"):
        MeasureSVC(measure).fit(data.X, data.labels, sample_weight=weights)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("bad", ["negative", "nan", "all zero", "short"])
def test_bad_weights_are_refused(measure, bad):
    data = make_data()
    weights = np.ones(200)
    if bad == "short":
        weights = weights[:199]
    elif bad == "all zero":
        weights[:] = 0.0
    else:
        weights[3] = {"negative": -1.0, "nan": np.nan}[bad]
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        MeasureSVC(measure).fit(data.X, data.labels, sample_weight=weights)


@pytest.mark.parametrize("measure", MEASURES)
def test_rows_without_weight_are_not_there(measure):
    data = make_data()
    weights = (np.arange(200) % 3 > 0).astype(float)
    kept = weights > 0.0
    model = MeasureSVC(measure, tol=1e-7).fit(data.X, data.labels, sample_weight=weights)
    alone = MeasureSVC(measure, tol=1e-7).fit(data.X[kept], data.labels[kept])
    assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-7)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=2e-2 * np.abs(alone.coef_).max())
    assert_certified(model, data.X, data.labels, weights=weights)


@pytest.mark.parametrize("factor", [1e-3, 7.0])
def test_a_factor_on_all_weights_is_one_on_the_penalty(factor):
    data = make_data()
    weights = np.random.default_rng(0).random(200)
    for measure in ("roc_auc", "error_rate"):
        one = MeasureSVC(measure, tol=1e-7).fit(data.X, data.labels, sample_weight=weights)
        two = MeasureSVC(measure, C=1.0 / factor, tol=1e-7)
        two.fit(data.X, data.labels, sample_weight=factor * weights)
        assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=2e-7)


def test_a_single_iteration_still_has_a_threshold():
    data = make_data()
    for measure in MEASURES:
        model = quiet_fit(MeasureSVC(measure, max_iter=1, tol=1e-9), data.X, data.labels)
        assert np.isfinite(model.decision_function(data.X)).all()
        assert set(model.predict(data.X)) <= {0, 1}
