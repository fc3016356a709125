"""LinearSVR: its optimum against cvxpy and scikit-learn, quantiles, and what every fit can do."""

from __future__ import annotations

import warnings

import cvxpy
import numpy as np
import pytest
import scipy.sparse
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from cutplane import SVR, Checkpoint, LinearSVR, RankSVM, open_dataset, write_dataset
from cutplane.result import Status

# Parameters, and the loss of a residual for numpy and for cvxpy.
LOSSES = {
    "epsilon_insensitive": {"epsilon": 0.3},
    "squared_epsilon_insensitive": {"epsilon": 0.3},
    "quantile": {"quantile": 0.2},
    "huber": {"epsilon": 0.5},
}
BIASES = {"free": {}, "none": {"fit_intercept": False}, "regularised": {"intercept_scaling": 2.0}}
SOLVERS = ("auto", "ocas", "cpa", "dcd")


def losses_of(loss, r):
    """Of residuals, by numpy."""
    size = np.abs(r)
    return {
        "epsilon_insensitive": np.maximum(0.0, size - 0.3),
        "squared_epsilon_insensitive": np.maximum(0.0, size - 0.3) ** 2,
        "quantile": np.where(r > 0.0, 0.8 * r, -0.2 * r),
        "huber": np.where(size <= 0.5, 0.5 * r**2, 0.5 * size - 0.125),
    }[loss]


def optimum(X, y, weights, loss, bias, C):
    """The least objective, by an interior point method."""
    w, b = cvxpy.Variable(X.shape[1]), cvxpy.Variable()
    r = X @ w - y + (0.0 if bias == "none" else b)
    losses = {
        "epsilon_insensitive": lambda: cvxpy.pos(cvxpy.abs(r) - 0.3),
        "squared_epsilon_insensitive": lambda: cvxpy.pos(cvxpy.abs(r) - 0.3) ** 2,
        "quantile": lambda: cvxpy.maximum(0.8 * r, -0.2 * r),
        "huber": lambda: 0.5 * cvxpy.huber(r, 0.5),
    }[loss]()
    goal = 0.5 * cvxpy.sum_squares(w) + C * cvxpy.sum(cvxpy.multiply(weights, losses))
    if bias == "regularised":
        goal += 0.5 * cvxpy.square(b / 2.0)
    return cvxpy.Problem(cvxpy.Minimize(goal)).solve(solver=cvxpy.CLARABEL)


def data(rows=120, features=5, seed=0, shift=20.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.8)
    y = shift + 2.0 * X @ rng.normal(size=features) + rng.standard_t(3, size=rows)
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], rows)


@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_solver_reaches_the_optimum(loss, bias, C):
    X, y, weights = data()
    best = optimum(X, y, weights, loss, bias, C)
    for solver in SOLVERS:
        model = LinearSVR(C, loss=loss, solver=solver, tol=1e-5, random_state=0)
        model.set_params(**LOSSES[loss], **BIASES[bias], max_iter=20_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of dcd at a large C
            model.fit(X, y, sample_weight=weights)
        found = model.certificate_
        assert found.dual <= best * (1.0 + 1e-7)
        assert found.primal >= best * (1.0 - 1e-7)
        assert model.coef_.shape == (5,) and model.intercept_.shape == (1,)
        own = 0.5 * model.coef_ @ model.coef_
        own += C * weights @ losses_of(loss, model.predict(X) - y)
        own += 0.125 * model.intercept_[0] ** 2 if bias == "regularised" else 0.0
        assert found.primal == pytest.approx(own, rel=1e-9)
        if solver != "dcd" or C <= 1.0:
            assert model.results_[0].status is Status.CONVERGED
            assert found.primal == pytest.approx(best, rel=2e-5)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_scikit_learns_linear_svr(loss, fit_intercept):
    """With its bias, whose weight is regularised."""
    X, y, weights = data(shift=1.0)
    settings = {"loss": loss, "C": 0.2, "epsilon": 0.1, "intercept_scaling": 1.0}
    theirs = sklearn.svm.LinearSVR(
        **settings, fit_intercept=fit_intercept, tol=1e-10, max_iter=1_000_000, random_state=0
    ).fit(X, y, weights)
    ours = LinearSVR(**settings, fit_intercept=fit_intercept, tol=1e-9).fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=5e-3)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_scikit_learns_quantile_regressor(quantile):
    """Without a regulariser its linear program bounds our losses from below."""
    X, y, weights = data(rows=200)
    theirs = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y, weights)
    ours = LinearSVR(1e4, loss="quantile", quantile=quantile, tol=1e-7).fit(X, y, weights)

    def lost(model):
        r = y - model.predict(X)
        return weights @ np.maximum(quantile * r, (quantile - 1.0) * r)

    assert lost(theirs) * (1.0 - 1e-9) <= lost(ours) <= lost(theirs) * (1.0 + 1e-5)


# -- quantiles ------------------------------------------------------------------------


def test_several_quantiles_are_those_of_one_each():
    X, y, weights = data(rows=300)
    levels = [0.9, 0.1, 0.5]
    model = LinearSVR(loss="quantile", quantile=levels, tol=1e-6).fit(X, y, weights)
    assert model.coef_.shape == (3, 5) and model.intercept_.shape == (3,)
    assert len(model.certificates_) == len(model.results_) == 3
    found = model.predict(X)
    assert found.shape == (300, 3)
    for k, level in enumerate(levels):
        one = LinearSVR(loss="quantile", quantile=level, tol=1e-6).fit(X, y, weights)
        np.testing.assert_array_equal(model.coef_[k], one.coef_)
        np.testing.assert_allclose(found[:, k], one.predict(X), rtol=1e-13)
        # With an exact bias at most so much weight lies below, and so much at least on or below.
        below = weights[y < found[:, k] - 1e-6].sum() / weights.sum()
        above = weights[y > found[:, k] + 1e-6].sum() / weights.sum()
        assert below <= level + 1e-3 and above <= 1.0 - level + 1e-3
    alone = LinearSVR(loss="quantile", quantile=[0.5]).fit(X, y)
    assert alone.coef_.shape == (1, 5) and alone.predict(X).shape == (300, 1)


def test_sorted_quantiles_never_cross():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 8))
    y = (1.0 + X[:, 0]) * rng.normal(size=60)
    levels = [0.5, 0.05, 0.95, 0.3]
    far = 10.0 * rng.normal(size=(500, 8))
    free = LinearSVR(10.0, loss="quantile", quantile=levels).fit(X, y).predict(far)
    model = LinearSVR(10.0, loss="quantile", quantile=levels, crossing="sort").fit(X, y)
    found, order = model.predict(far), np.argsort(levels)
    assert np.any(np.diff(free[:, order], axis=1) < 0.0)
    assert np.all(np.diff(found[:, order], axis=1) >= 0.0)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(free, axis=1))
    with pytest.raises(ValueError, match=r"score is for one output.*mean_pinball_loss"):
        model.score(X, y)


# -- what every fit can do ------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetitions(loss):
    X, y, weights = data()
    times = np.round(2.0 * weights).astype(int)
    settings = {"loss": loss, "tol": 1e-8, **LOSSES[loss]}
    weighted = LinearSVR(**settings).fit(X, y, times)
    repeated = LinearSVR(**settings).fit(np.repeat(X, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_data_on_disk_and_threads(loss, tmp_path):
    X, y, weights = data(rows=3000)
    folder = tmp_path / "rows.cut"
    write_dataset(folder, [(scipy.sparse.csr_matrix(X), y)])
    for solver in ("auto", "ocas"):
        settings = {"loss": loss, "solver": solver, **LOSSES[loss]}
        stored = LinearSVR(**settings).fit(open_dataset(folder), sample_weight=weights)
        one = LinearSVR(**settings, n_jobs=1).fit(scipy.sparse.csr_matrix(X), y, weights)
        two = LinearSVR(**settings, n_jobs=2).fit(scipy.sparse.csr_matrix(X), y, weights)
        np.testing.assert_array_equal(one.coef_, two.coef_)
        assert stored.certificate_.dual <= one.certificate_.primal * (1.0 + 1e-12)
        assert one.certificate_.dual <= stored.certificate_.primal * (1.0 + 1e-12)
        np.testing.assert_allclose(stored.predict(open_dataset(folder)), stored.predict(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start(loss):
    X, y, _ = data(rows=2000, features=20)
    for solver in ("ocas", "dcd"):
        settings = {"loss": loss, "solver": solver, "random_state": 0, **LOSSES[loss]}
        model = LinearSVR(0.01, warm_start=True, **settings).fit(X, y)
        cold = LinearSVR(0.012, **settings).fit(X, y)
        model.set_params(C=0.012).fit(X, y)
        assert model.n_iter_ <= cold.n_iter_
        assert model.certificate_.dual <= cold.certificate_.primal
        assert model.certificate_.relative_gap <= 1e-3


def test_checkpoint(tmp_path):
    X, y, _ = data(rows=500)
    path = tmp_path / "fit.state"
    settings = {"loss": "quantile", "quantile": [0.1, 0.9], "tol": 1e-6}
    plain = LinearSVR(checkpoint=Checkpoint(tmp_path / "other", every=0.0), **settings).fit(X, y)
    seen = []

    def stop(record):
        seen.append(record)
        if len(seen) == 4:
            raise RuntimeError("out of power")

    model = LinearSVR(checkpoint=Checkpoint(path, every=0.0), callback=stop, **settings)
    with pytest.raises(RuntimeError):
        model.fit(X, y)
    model = LinearSVR(checkpoint=Checkpoint(path, every=0.0), **settings).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_perfect_fits_converge(loss, solver):
    """Where the optimum is 0, or next to nothing but ½|w|²."""
    X, _, _ = data()
    settings = {"loss": loss, "solver": solver, **LOSSES[loss]}
    for y in (np.zeros(120), np.full(120, 0.1), np.full(120, 12345.678)):
        model = LinearSVR(**settings).fit(X, y)
        assert model.results_[0].status is Status.CONVERGED
        assert model.certificate_.primal <= 1e-9
        np.testing.assert_allclose(model.predict(X), y, atol=0.301)


def test_targets_of_any_size():
    """The optimum scales with y if C does not change, for losses that scale."""
    X, y, _ = data()
    base = LinearSVR(1.0, loss="quantile", tol=1e-6).fit(X, y)
    for size in (1e-6, 1e6):
        model = LinearSVR(size, loss="quantile", tol=1e-6).fit(X, size * y)
        assert model.n_iter_ <= 1.5 * base.n_iter_
        primal = size**2 * base.certificate_.primal
        assert model.certificate_.primal == pytest.approx(primal, rel=2e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -0.1}, r"epsilon must be a finite number ≥ 0, got -0.1"),
        ({"loss": "huber"}, r"epsilon must be above 0 for loss='huber'.*1\.35"),
        ({"quantile": 0.0}, r"quantile must lie between 0 and 1, got 0.0; the median is 0.5"),
        ({"quantile": 1.0}, r"quantile must lie between 0 and 1, got 1.0; the median is 0.5"),
        ({"quantile": [0.5, 1.5]}, r"quantile must lie between 0 and 1, got 1.5"),
        ({"quantile": []}, r"quantile must be a number between 0 and 1, or a list"),
        ({"quantile": "half"}, r"quantile must lie between 0 and 1, got 'half'"),
        ({"loss": "hinge"}, r"loss must be one of 'epsilon_insensitive'.*got 'hinge'"),
        ({"crossing": "never"}, r"crossing must be one of 'allow', 'sort', got 'never'"),
        ({"solver": "sgd"}, r"solver must be one of 'auto', 'ocas', 'cpa', 'dcd', got 'sgd'"),
    ],
)
def test_parameters_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        LinearSVR(**{"loss": "quantile", **settings}).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("model", [LinearSVR(), SVR(), RankSVM()])
def test_text_is_no_target(model, tmp_path):
    X, message = np.array([[0.0], [1.0]]), r"y must hold numbers, got 'yes'; LinearSVC and SVC are"
    with pytest.raises(ValueError, match=message):
        model.fit(X, ["1.0", "yes"])
    if not isinstance(model, SVR):
        write_dataset(tmp_path / "rows.cut", [(X, [0.0, 1.0])])
        with pytest.raises(ValueError, match=message):
            model.fit(open_dataset(tmp_path / "rows.cut"), ["1.0", "yes"])


VARIANTS = [
    LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1, solver="ocas"),
    LinearSVR(loss="quantile", quantile=0.3),
    LinearSVR(loss="huber", epsilon=1.0, intercept_scaling=1.0),
]


@parametrize_with_checks(VARIANTS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
