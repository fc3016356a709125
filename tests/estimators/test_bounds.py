"""Bounds on coefficients: every estimator and loss against Clarabel, and what every fit can do."""

from __future__ import annotations

import itertools
import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from cutplane import (
    SVC,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    MeasureSVC,
    OrdinalSVC,
    RankSVM,
    linear_svc_path,
    load_model,
    open_dataset,
    save_model,
    write_dataset,
)
from cutplane.losses import LOSSES

cp = pytest.importorskip("cvxpy")

FEATURES = 6
BOXES = {
    "positive": (np.zeros(FEATURES), np.full(FEATURES, np.inf)),
    "narrow": (np.full(FEATURES, -0.2), np.full(FEATURES, 0.1)),
    "some fixed, without 0": (
        np.array([-1.0, 0.3, 0.2, -np.inf, -0.1, -2.0]),
        np.array([-0.2, 0.3, np.inf, 0.0, 0.1, -0.5]),
    ),
}
REGRESSION = [name for name, loss in LOSSES.items() if loss.regression]
CLASSIFICATION = [name for name, loss in LOSSES.items() if not loss.regression]


def data(rows=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, FEATURES)) * (rng.random((rows, FEATURES)) < 0.8)
    values = X @ np.array([2.0, -1.0, 0.5, 1.0, -0.1, 0.0]) + rng.normal(size=rows) + 0.5
    return X, values, rng.choice([0.0, 0.5, 1.0, 3.0], rows)


def least(goal, w, low, high, **options):
    """The least value of cvxpy's goal where w, one row per feature, is in the box."""
    has_low, has_high = np.isfinite(low), np.isfinite(high)
    walls = [w[has_low] >= low[has_low]] if has_low.any() else []
    walls += [w[has_high] <= high[has_high]] if has_high.any() else []
    return cp.Problem(cp.Minimize(goal), walls).solve(solver=cp.CLARABEL, **options)


def assert_optimal(model, optimum, low, high, tol=1e-6):
    proof = model.certificate_
    assert proof.kind == "exact"
    assert proof.gap <= tol * proof.primal
    assert proof.dual <= optimum * (1.0 + 1e-6)
    assert proof.primal >= optimum * (1.0 - 1e-6)
    coef = np.atleast_2d(model.coef_)
    assert np.all((low <= coef) & (coef <= high))  # to the last bit


# -- the optimum -----------------------------------------------------------------------------


@pytest.mark.parametrize("bias", ["free", "none", "constant"])
@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_reaches_the_optimum(loss, box, bias, formulas):
    X, values, weights = data()
    low, high = BOXES[box]
    regression = loss in REGRESSION
    y = values if regression else np.where(values > 0.0, 1.0, -1.0)
    options = {"free": {}, "none": {"fit_intercept": False}, "constant": {"intercept_scaling": 2.0}}
    kind, own = (LinearSVR, {"epsilon": LOSSES[loss]()[0]}) if regression else (LinearSVC, {})
    for C, solver in ((0.05, "cpa"), (5.0, "auto")):
        model = kind(C, loss=loss, bounds=(low, high), tol=1e-6, solver=solver, **own)
        model.set_params(**options[bias]).fit(X, y, sample_weight=weights)
        w, b = cp.Variable(FEATURES), cp.Variable()
        s = X @ w + (0.0 if bias == "none" else b)
        losses = formulas[loss](s - y if regression else cp.multiply(y, s), cp)
        goal = 0.5 * cp.sum_squares(w) + C * cp.sum(cp.multiply(weights, losses))
        goal += 0.5 * cp.square(b / 2.0) if bias == "constant" else 0.0
        assert_optimal(model, least(goal, w, low, high), low, high)
        # The objective is the one of the coefficients that are returned.
        s = X @ model.coef_.reshape(-1) + model.intercept_[0]
        z = cp.Constant(s - y if regression else y * s)
        own_value = 0.5 * np.sum(model.coef_**2) + C * weights @ formulas[loss](z, cp).value
        own_value += 0.125 * model.intercept_[0] ** 2 if bias == "constant" else 0.0
        assert own_value == pytest.approx(model.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "multinomial", "ovr"])
def test_bounds_hold_for_every_class(multi_class):
    X, values, _ = data(60)
    y = np.digitize(values, [-1.0, 1.0])
    low, high = BOXES["some fixed, without 0"]
    loss = "logistic" if multi_class == "multinomial" else "hinge"
    model = LinearSVC(0.5, multi_class=multi_class, loss=loss, bounds=(low, high), tol=1e-6)
    model.fit(X, y)
    W, b = cp.Variable((FEATURES, 3)), cp.Variable(3)
    scores = X @ W + np.ones((60, 1)) @ cp.reshape(b, (1, 3), order="C")
    true = cp.sum(cp.multiply(np.eye(3)[y], scores), axis=1)
    if multi_class == "ovr":
        risk = cp.sum(cp.pos(1.0 - cp.multiply(2.0 * np.eye(3)[y] - 1.0, scores)))
    elif multi_class == "multinomial":
        risk = cp.sum(cp.log_sum_exp(scores, axis=1) - true)
    else:
        risk = cp.sum(cp.max(scores + 1.0 - np.eye(3)[y], axis=1) - true)
    box = [np.repeat(side[:, None], 3, axis=1) for side in (low, high)]
    optimum = least(0.5 * cp.sum_squares(W) + 0.5 * risk, W, *box)
    assert_optimal(model, optimum, low, high)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("estimator", ["roc_auc", "ordinal", "ranking", "f1", "error_rate"])
def test_measures_and_rankings(estimator, box):
    X, values, _ = data(10, seed=4)
    low, high = BOXES[box]
    labels = (values > np.quantile(values, 0.6)).astype(int)
    levels = np.digitize(values, np.quantile(values, [0.3, 0.7]))
    w, b = cp.Variable(FEATURES), cp.Variable()
    s = X @ w
    common = {"C": 20.0, "bounds": (low, high), "tol": 1e-7}
    regulariser = 0.5 * cp.sum_squares(w)

    def pairs(y):
        both = [(i, j) for i, j in itertools.product(range(10), repeat=2) if y[i] > y[j]]
        return cp.sum(cp.hstack([cp.pos(1.0 - s[i] + s[j]) for i, j in both])) / len(both)

    if estimator == "roc_auc":
        model, risk = MeasureSVC("roc_auc", **common).fit(X, labels), pairs(labels)
    elif estimator == "ordinal":
        model, risk = OrdinalSVC(**common).fit(X, levels), pairs(levels)
    elif estimator == "ranking":
        model = RankSVM(**common).fit(X, values, qid=np.zeros(10, int))
        risk = pairs(values)
    elif estimator == "error_rate":
        model = MeasureSVC("error_rate", **common).fit(X, labels)
        risk = cp.sum(cp.pos(1.0 - cp.multiply(2.0 * labels - 1.0, s + b))) / 10
    else:
        model = MeasureSVC("f1", **common).fit(X, labels)
        every = np.array(list(itertools.product([0, 1], repeat=10)))
        true = every @ labels
        losses = 1.0 - 2.0 * true / (every.sum(axis=1) + labels.sum())
        risk = cp.max(losses + (every - labels) / 10 @ (s + b))
        regulariser += 0.5 * cp.square(b)
    optimum = least(regulariser + 20.0 * 10 * risk, w, low, high)
    assert_optimal(model, optimum, low, high)


def test_one_feature_in_closed_form():
    """The least of ½w² − C·w up to w = 1 is where the bound is."""
    X, y = np.array([[1.0], [-1.0]]), [1, -1]
    for bound, best in ((0.25, 0.25), (0.6, 0.4), (np.inf, 0.4)):
        model = LinearSVC(0.2, bounds=(-np.inf, bound), fit_intercept=False, tol=1e-9).fit(X, y)
        assert model.coef_[0, 0] == pytest.approx(best, rel=1e-9)
        value = 0.5 * best**2 + 0.4 * (1.0 - best)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-9)
        assert model.certificate_.dual <= value * (1.0 + 1e-15)


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (-50.0, np.full(FEATURES, 40.0))])
def test_bounds_that_never_bind(bounds):
    X, values, _ = data()
    y = values > 0.0
    free = LinearSVC(tol=1e-9).fit(X, y)
    bound = LinearSVC(tol=1e-9, bounds=bounds).fit(X, y)
    assert bound.certificate_.primal == pytest.approx(free.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(bound.coef_, free.coef_, atol=1e-3)


def test_positive_is_a_lower_bound_of_0():
    X, values, _ = data()
    y = values > 0.0
    one, two = LinearSVC(positive=True).fit(X, y), LinearSVC(bounds=(0, np.inf)).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    both = LinearSVC(positive=True, bounds=(-1.0, 0.3)).fit(X, y)
    other = LinearSVC(bounds=(0.0, 0.3)).fit(X, y)
    np.testing.assert_array_equal(both.coef_, other.coef_)
    assert np.any(one.coef_ == 0.0) and np.all(one.coef_ >= 0.0)


def test_constant_feature_of_a_bias_has_no_bounds():
    X, values, _ = data()
    y = np.where(values > -2.0, 1, -1)  # needs a positive bias
    model = LinearSVC(bounds=(-0.1, 0.1), intercept_scaling=1.0).fit(X, y)
    assert model.intercept_[0] > 0.5
    model = LinearSVC(bounds=(-0.1, 0.1)).fit(X, y)
    assert model.intercept_[0] > 0.5


@pytest.mark.parametrize("C", [1.0, 1e4, 1e8])
def test_a_large_weight_of_the_losses_in_a_small_box(C):
    """Nearly a linear program: the reduced problem goes from corner to corner."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30))
    y = np.sign(X @ rng.normal(size=30) + 2.0 * rng.normal(size=300))
    model = LinearSVC(C, bounds=(-0.05, 0.07), tol=1e-7).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-7


# -- data, threads, disk, going on ------------------------------------------------------------


@pytest.mark.parametrize("positive", [True, False])
def test_same_bits_everywhere(tmp_path, positive):
    """Threads, layouts on disk and in memory: the reduced problem sees the same cuts."""
    rng = np.random.default_rng(1)
    X = scipy.sparse.random(3000, 500, 0.05, "csr", random_state=1)
    y = np.where(X @ rng.normal(size=500) > 0.0, 1, -1)
    bounds = None if positive else (-0.3, rng.random(500))
    models = [
        LinearSVC(positive=positive, bounds=bounds, n_jobs=jobs).fit(X, y) for jobs in (1, 2, 3)
    ]
    write_dataset(tmp_path / "rows.cut", [(X, y)])
    with open_dataset(tmp_path / "rows.cut") as rows:
        models.append(LinearSVC(positive=positive, bounds=bounds, n_jobs=2).fit(rows))
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert model.certificate_ == models[0].certificate_
    assert models[0].certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("make", [np.asfortranarray, scipy.sparse.csr_matrix, np.float32])
def test_layouts_and_types(make):
    X, values, _ = data()
    X = X.astype(np.float32)
    y = values > 0.0
    one = LinearSVC(positive=True, tol=1e-8).fit(X.astype(np.float64), y)
    two = LinearSVC(positive=True, tol=1e-8).fit(make(X), y)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-5)
    assert two.certificate_.relative_gap <= 1e-8


def test_warm_start_from_a_point_outside():
    X, values, _ = data()
    y = values > 0.0
    cold = LinearSVC(positive=True, tol=1e-6).fit(X, y)
    model = LinearSVC(warm_start=True, tol=1e-6).fit(X, y)
    assert np.any(model.coef_ < 0.0)
    model.set_params(positive=True).fit(X, y)
    assert np.all(model.coef_ >= 0.0)
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-6)
    again = model.fit(X, y)
    assert again.n_iter_ <= 3  # from the solution and its cuts
    model.set_params(positive=False, bounds=(1.0, 2.0)).fit(X, y)
    assert np.all((model.coef_ >= 1.0) & (model.coef_ <= 2.0))


def test_checkpoint_goes_on_to_the_same_bits(tmp_path):
    X, values, _ = data(200)
    y = values > 0.0
    parameters = {"C": 10.0, "bounds": (-0.3, np.full(FEATURES, 0.5)), "tol": 1e-7}
    straight = LinearSVC(**parameters, checkpoint=tmp_path / "a").fit(X, y)
    assert straight.n_iter_ > 4
    with pytest.warns(match="max_iter"):
        LinearSVC(**parameters, checkpoint=tmp_path / "b", max_iter=4).fit(X, y)
    resumed = LinearSVC(**parameters, checkpoint=tmp_path / "b").fit(X, y)
    np.testing.assert_array_equal(resumed.coef_, straight.coef_)
    assert resumed.n_iter_ == straight.n_iter_


def test_interrupted_models_are_inside():
    X, values, _ = data()
    y = values > 0.0
    model = LinearSVC(positive=True, tol=1e-9, callback=lambda record: record.number == 2)
    model.fit(X, y)
    assert np.all(model.coef_ >= 0.0)
    assert model.certificate_.dual <= model.certificate_.primal


def test_paths_and_cross_validation():
    X, values, _ = data(150)
    y = values > 0.0
    path = linear_svc_path(X, y, [0.01, 0.1, 1.0], positive=True, tol=1e-6)
    for k, C in enumerate(path.Cs):
        alone = LinearSVC(C, positive=True, tol=1e-6).fit(X, y)
        assert np.all(path.coefs[k] >= 0.0)
        primal = path.certificates[k][0].primal
        assert primal == pytest.approx(alone.certificate_.primal, rel=1e-6)
    search = LinearSVCCV([0.01, 1.0], cv=3, bounds=(-0.2, 0.2), calibrate="sigmoid").fit(X, y)
    assert np.all(np.abs(search.coef_) <= 0.2)
    assert search.predict_proba(X).shape == (150, 2)


def test_models_keep_their_bounds(tmp_path):
    X, values, _ = data()
    for bounds in ((0, 1), (np.zeros(FEATURES), np.inf), ([-1.0] * FEATURES, [1.0] * FEATURES)):
        model = LinearSVC(bounds=bounds).fit(X, values > 0.0)
        save_model(model, tmp_path / "m")
        for copy in (load_model(tmp_path / "m"), pickle.loads(pickle.dumps(model)), clone(model)):
            for mine, given in zip(copy.bounds, bounds, strict=True):
                np.testing.assert_array_equal(mine, given)
        np.testing.assert_array_equal(load_model(tmp_path / "m").coef_, model.coef_)


def test_a_start_from_a_dual_point():
    X, values, _ = data()
    model = LinearSVC(0.5, positive=True, tol=1e-7)
    cold = model.fit(X, values > 0.0).certificate_
    warm = model.fit(X, values > 0.0, dual_init=np.full(80, 0.1)).certificate_
    assert warm.primal == pytest.approx(cold.primal, rel=1e-6)


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bounds": (1.0, 0.0)}, "bounds of feature 0 are (1, 0): low must not be above high"),
        (
            {"bounds": (np.array([0, 0, 3, 0, 0, 0]), np.full(6, 2.0))},
            "bounds of feature 2 are (3, 2): low must not be above high",
        ),
        ({"bounds": (np.zeros(5), 1.0)}, "low has 5 numbers, but X has 6 features"),
        ({"bounds": (0.0, np.ones((6, 1)))}, "high must be a number, or one per feature, got sha"),
        ({"bounds": (0.0, np.nan)}, "bounds: high is NaN; for no bound"),
        ({"bounds": ([0, 0, np.nan, 0, 0, 0], 1)}, "bounds: low of feature 2 is NaN"),
        ({"bounds": (None, 1.0)}, "low"),
        ({"bounds": ("a", 1.0)}, "low must be a number, or one per feature; got 'a'"),
        ({"bounds": 1.0}, "bounds must be a pair (low, high), such as (0, np.inf); got 1.0"),
        ({"bounds": (0, 1, 2)}, "bounds must be a pair (low, high)"),
        ({"bounds": (np.inf, np.inf)}, "(inf, inf): there is no number between"),
        ({"bounds": (-1.0, -0.5), "positive": True}, "positive=True leaves nothing"),
        ({"positive": "yes"}, "positive"),
        ({"positive": True, "solver": "dcd"}, "solver='dcd' takes no bounds on the coefficients"),
        ({"bounds": (0, 1), "solver": "sgd"}, "use solver='ocas', which solver='auto' is here"),
    ],
)
def test_bad_bounds(parameters, message):
    X, values, _ = data()
    with pytest.raises(ValueError, match=re.escape(message)):
        LinearSVC(**parameters).fit(X, values > 0.0)


def test_errors_name_the_column():
    pandas = pytest.importorskip("pandas")
    X, values, _ = data()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    with pytest.raises(ValueError, match=r"bounds of feature 3 \('d'\) are \(1, 0\)"):
        LinearSVR(bounds=([0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0])).fit(frame, values)


@pytest.mark.parametrize("kind", [LinearSVR, MeasureSVC, RankSVM, OrdinalSVC, LinearSVCCV])
def test_every_linear_estimator_checks_them(kind):
    X, values, _ = data()
    with pytest.raises(ValueError, match="low must not be above high"):
        query = {"qid": np.zeros(len(X), int)} if kind is RankSVM else {}
        kind(bounds=(1.0, 0.0)).fit(X, (values > 0.0).astype(int), **query)


def test_kernel_machines_have_none():
    assert "bounds" not in SVC().get_params() and "positive" not in SVC().get_params()


# Models of other weights that mean the same agree as far as the tolerance asks.
@parametrize_with_checks([kind(positive=True, tol=1e-8) for kind in (LinearSVC, LinearSVR)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
