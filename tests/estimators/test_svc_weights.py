"""Sample weights and class weights: the same as repeating rows, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC
from svc_reference import (
    assert_certified,
    certificates,
    libsvm,
    objectives,
    quiet_fit,
    run_script,
    signs_of,
)

from cutplane import LinearSVC

VARIANTS = {
    "hinge": {},
    "no bias": {"fit_intercept": False},
    "regularised bias": {"intercept_scaling": 0.5},
    "cpa": {"solver": "cpa"},
    "squared_hinge": {"loss": "squared_hinge"},
    "logistic": {"loss": "logistic"},
    "crammer_singer": {"multi_class": "crammer_singer"},
}
TIGHT = 1e-11  # where rounding may stop a fit first: see ``tight``


def tight(*data, **parameters) -> LinearSVC:
    """Fit as exactly as can be."""
    weights = parameters.pop("sample_weight", None)
    return quiet_fit(LinearSVC(tol=TIGHT, **parameters), *data, sample_weight=weights)


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS)
def variant(request):
    return request.param


@pytest.fixture(scope="module")
def counts(iris):
    return np.random.default_rng(3).integers(0, 4, len(iris[1]))


def assert_same_model(a: LinearSVC, b: LinearSVC, X, tol: float = 1e-6) -> None:
    scale = max(1.0, np.abs(b.decision_function(X)).max())
    np.testing.assert_allclose(a.coef_, b.coef_, atol=tol * scale)
    for ours, theirs in zip(certificates(a), certificates(b), strict=True):
        assert ours.primal == pytest.approx(theirs.primal, rel=1e-9)


# -- sample weights -------------------------------------------------------------------


def test_weights_are_repetitions(variant, iris, counts):
    X, y = iris
    weighted = tight(X, y, sample_weight=counts, **variant)
    repeated = tight(np.repeat(X, counts, axis=0), y.repeat(counts), **variant)
    assert_certified(weighted, X, y, counts)
    assert_same_model(weighted, repeated, X)
    # The hinge's bias need not be unique: compare what it costs instead.
    np.testing.assert_allclose(
        objectives(weighted, X, y, counts), objectives(repeated, X, y, counts), rtol=1e-9
    )


def test_rows_of_weight_zero_do_not_count(variant, iris, counts):
    X, y = iris[0].copy(), iris[1]
    X[counts == 0] = 1e6
    kept = counts > 0
    weighted = tight(X, y, sample_weight=counts, **variant)
    without = tight(X[kept], y[kept], sample_weight=counts[kept], **variant)
    assert_same_model(weighted, without, X[kept])


def test_weights_scale_the_losses(variant, iris):
    X, y = iris
    model = tight(X, y, C=0.3, **variant)
    scaled = tight(X, y, C=0.1, sample_weight=np.full(len(y), 3.0), **variant)
    assert_same_model(model, scaled, X)


def test_unit_weights_are_no_weights(variant, iris):
    X, y = iris
    plain = LinearSVC(**variant).fit(X, y)
    for weights in (np.ones(len(y)), 1, 1.0, [1] * len(y), np.ones(len(y), np.float32)):
        model = LinearSVC(**variant).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(model.coef_, plain.coef_)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_fractional_weights_against_libsvm(noisy, scale):
    X, y = noisy
    weights = scale * np.random.default_rng(0).random(len(y))
    known = libsvm(X, 1.0 * y, 1.0 / scale, weights)
    model = LinearSVC(C=1.0 / scale, tol=1e-9).fit(X, y, sample_weight=weights)
    assert_certified(model, X, y, weights, references=[known.upper])
    assert known.lower * (1 - 1e-7) <= model.certificate_.primal <= known.upper * (1 + 1e-8)


def test_weights_over_twenty_orders_of_magnitude(noisy):
    X, y = noisy
    weights = 10.0 ** np.random.default_rng(0).uniform(-18, 2, len(y))
    model = LinearSVC(tol=1e-6).fit(X, y, sample_weight=weights)
    heavy = weights > 1e-9
    known = libsvm(X[heavy], 1.0 * y[heavy], 1.0, weights[heavy])
    assert_certified(model, X, y, weights)
    assert model.certificate_.primal == pytest.approx(known.upper, rel=1e-5)


def test_a_class_of_weight_zero_among_three(variant, iris):
    X, y = iris
    weights = (y != 1).astype(float)
    model = quiet_fit(LinearSVC(tol=1e-6, **variant), X, y, sample_weight=weights)
    assert_certified(model, X, y, weights)
    assert model.coef_.shape == (3, 4)
    assert np.isfinite(model.decision_function(X)).all()
    assert set(model.predict(X[y != 1])) == {0, 2}
    assert model.score(X[y != 1], y[y != 1]) == 1.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_the_problem_of_a_class_of_weight_zero_costs_nothing(iris, loss):
    """All rows that count are of one class: w = 0 and a bias beyond the margin fit them."""
    X, y = iris
    model = quiet_fit(LinearSVC(loss=loss), X, y, sample_weight=1.0 * (y != 1))
    assert model.certificates_[1].primal <= 1e-9
    assert model.certificates_[1].gap <= 1e-9
    np.testing.assert_allclose(model.coef_[1], 0.0, atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (np.zeros(200), "zero"),
        (-np.ones(200), "negative"),
        (np.r_[-1e-9, np.ones(199)], "negative"),
        (np.r_[np.nan, np.ones(199)], "NaN"),
        (np.r_[np.inf, np.ones(199)], "infinity"),
        (np.ones(199), "shape"),
        (np.ones((200, 2)), "1D"),
    ],
    ids=["zero", "negative", "one negative", "nan", "inf", "short", "two columns"],
)
def test_bad_weights_are_named(noisy, weights, reason):
    with pytest.raises(ValueError, match=r"(?i)sample.weight") as error:
        LinearSVC().fit(*noisy, sample_weight=weights)
    assert reason in str(error.value)


def test_weights_that_leave_one_class(noisy):
    X, y = noisy
    with pytest.raises(ValueError, match=r"one class.*weight"):
        LinearSVC().fit(X, y, sample_weight=(y > 0).astype(float))


# -- class weights --------------------------------------------------------------------


def test_class_weights_are_sample_weights(variant, iris):
    X, y = iris
    factors = np.array([0.5, 1.0, 4.0])
    by_class = LinearSVC(class_weight=dict(enumerate(factors)), **variant).fit(X, y)
    by_row = LinearSVC(**variant).fit(X, y, sample_weight=factors[y])
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)
    assert_certified(by_class, X, y, factors[y])


def test_class_weights_multiply_sample_weights(iris, counts):
    X, y = iris
    factors = np.array([0.5, 1.0, 4.0])
    both = LinearSVC(class_weight=dict(enumerate(factors))).fit(X, y, sample_weight=counts)
    by_row = LinearSVC().fit(X, y, sample_weight=factors[y] * counts)
    np.testing.assert_array_equal(both.coef_, by_row.coef_)


def test_balanced_against_libsvm(noisy):
    X, y = noisy
    theirs = SVC(kernel="linear", class_weight="balanced", tol=1e-10).fit(X, y)
    ours = LinearSVC(class_weight="balanced", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-5)
    factors = len(y) / (2.0 * np.array([np.sum(y < 0), np.sum(y > 0)]))
    assert_certified(ours, X, y, factors[(y > 0).astype(int)])


def test_balanced_counts_weights_like_repetitions(iris, counts):
    X, y = iris
    weighted = tight(X, y, sample_weight=counts, class_weight="balanced")
    repeated = tight(np.repeat(X, counts, axis=0), y.repeat(counts), class_weight="balanced")
    assert_same_model(weighted, repeated, X)


def test_balanced_with_a_class_of_weight_zero(iris):
    X, y = iris
    model = LinearSVC(class_weight="balanced", tol=1e-6).fit(X, y, sample_weight=1.0 * (y != 1))
    assert model.score(X[y != 1], y[y != 1]) == 1.0


def test_class_weights_of_text_labels(noisy):
    X, y = noisy
    names = np.where(y > 0, "yes", "no")
    model = LinearSVC(class_weight={"yes": 3.0}).fit(X, names)
    by_row = LinearSVC().fit(X, names, sample_weight=np.where(y > 0, 3.0, 1.0))
    np.testing.assert_array_equal(model.coef_, by_row.coef_)


def test_a_class_weight_of_zero_leaves_the_class_out(iris):
    X, y = iris
    model = quiet_fit(LinearSVC(class_weight={1: 0.0}), X, y)
    assert_certified(model, X, y, 1.0 * (y != 1))
    by_row = quiet_fit(LinearSVC(), X, y, sample_weight=1.0 * (y != 1))
    np.testing.assert_array_equal(model.coef_, by_row.coef_)


@pytest.mark.parametrize(
    "weights", [{0: "a"}, "heavy", 3.0, [1, 2], {7: 1.0}], ids=["text", "name", "3", "list", "7"]
)
def test_bad_class_weights_are_named(cancer, weights):
    with pytest.raises(ValueError, match=r"(?i)class.weight"):
        LinearSVC(class_weight=weights).fit(*cancer)


def test_impossible_class_weights_are_named():
    """In a process of its own: what gets past the check can corrupt memory."""
    script = """
        import warnings
        import numpy as np
        from cutplane import LinearSVC
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
        for bias in (False, True):
            for weight in (-1.0, np.nan, np.inf):
                model = LinearSVC(class_weight={0: weight}, max_iter=20, fit_intercept=bias)
                try:
                    model.fit(X, y)
                except ValueError as error:
                    assert "class_weight" in str(error), error
                else:
                    print(weight, bias, "taken", model.certificate_)
    """
    assert run_script(script).stdout == ""


def test_class_weights_that_leave_one_class(cancer):
    with pytest.raises(ValueError, match=r"one class.*weight"):
        LinearSVC(class_weight={0: 0.0}).fit(*cancer)


def test_weights_of_the_user_are_not_changed(iris):
    X, y = iris
    weights = signs_of(y, 1) + 2.0
    before = weights.copy()
    LinearSVC(class_weight="balanced").fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(weights, before)
