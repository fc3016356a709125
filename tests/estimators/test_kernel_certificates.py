"""Certificates of kernel machines against independent answers in extended precision.

An upper bound on the optimum is the objective of any model: here of one that another solver
(Clarabel, or a fit to a far smaller tolerance) found, evaluated in extended precision.
"""

from __future__ import annotations

import warnings

import cvxpy
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cutplane import SVC, SVR, Checkpoint, OneClassSVM, SampledCutSVC, plot_convergence
from cutplane.kernels import definite
from cutplane.result import Certificate, Iteration, Status
from cutplane.solvers.decomposition import interior

LONG = np.longdouble


def kernel_values(model, A, B):
    """In extended precision, of the numbers as they are."""
    A, B = np.asarray(A, LONG), np.asarray(B, LONG)
    if model.kernel == "rbf":
        return np.exp(-LONG(model._gamma) * ((A[:, None] - B[None]) ** 2).sum(-1))
    products = A @ B.T
    if model.kernel == "poly":
        return (LONG(model._gamma) * products + LONG(model.coef0)) ** int(model.degree)
    return products


def objective(model, X, y):
    """Of a fitted machine with one problem, from its public attributes."""
    coef = np.asarray(model.dual_coef_[0], LONG)
    vectors = model.support_vectors_
    squared = coef @ kernel_values(model, vectors, vectors) @ coef
    scores = kernel_values(model, X, vectors) @ coef + LONG(model.intercept_[0])
    if isinstance(model, SVR):
        losses = np.maximum(0, np.abs(np.asarray(y, LONG) - scores) - LONG(model.epsilon))
    else:
        losses = np.maximum(0, 1 - y * scores)
    return squared / 2 + LONG(model.C) * losses.sum()


def linear_optimum(X, y, C):
    """At most this: the objective of Clarabel's model, in extended precision."""
    centre = X.mean(axis=0, dtype=np.float64)
    moved = X.astype(np.float64) - centre  # the bias makes up for it
    w, b = cvxpy.Variable(X.shape[1]), cvxpy.Variable()
    losses = cvxpy.sum(cvxpy.pos(1 - cvxpy.multiply(y, moved @ w + b)))
    cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + C * losses)).solve(
        solver=cvxpy.CLARABEL
    )
    w, b = w.value.astype(LONG), LONG(b.value)
    scores = (X.astype(LONG) - centre.astype(LONG)) @ w + b
    return w @ w / 2 + LONG(C) * np.maximum(0, 1 - y * scores).sum()


def halves(rows, features, seed, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    return X, np.where(X[:, 0] + noise * rng.normal(size=rows) > 0, 1, -1)


def fitted(model, X, y=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


# -- rounding ---------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4, 1e5])
@pytest.mark.parametrize("rows", [60, 700])
def test_single_precision_and_an_offset(offset, rows):
    """Was 'exact, between 1370 and 1370' where a model with 11.44 exists."""
    X, y = halves(rows, 5, 0)
    X = (X + offset).astype(np.float32)
    model = SVC(kernel="linear").fit(X, y)
    assert model.certificate_.kind == "exact" and model.fit_status_ == 0
    assert model.certificate_.relative_gap <= 1e-3
    best = linear_optimum(X, y, 1.0)
    assert model.certificate_.dual <= best
    assert model.certificate_.primal <= 1.0011 * float(best)
    assert model.certificate_.primal >= objective(model, X, y)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize(
    ("rows", "dtype", "seed"),
    [(40, float, seed) for seed in range(6)]
    + [(560, dtype, seed) for dtype in (np.float32, float) for seed in range(2)],
)
def test_bounds_hold_in_extended_precision(kernel, rows, dtype, seed):
    X, y = halves(rows, 3, seed)
    X = X.astype(dtype)
    settings = {"kernel": kernel, "C": [0.1, 1.0, 50.0][seed % 3], "coef0": 1.0, "degree": 2}
    model = fitted(SVC(**settings), X, y)
    best = fitted(SVC(**settings, tol=1e-7, time_limit=20.0), X, y)
    certificate = model.certificate_
    assert certificate.kind == "exact"
    assert certificate.dual <= objective(best, X, y)
    assert certificate.primal >= objective(model, X, y)
    assert model.results_[0].status is Status.CONVERGED and certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_bounds_of_regression_hold(kernel):
    X, _ = halves(50, 3, 1)
    y = X[:, 0] + np.sin(X[:, 1])
    model = SVR(kernel=kernel, C=3.0).fit(X + 100.0, y)
    best = SVR(kernel=kernel, C=3.0, tol=1e-8).fit(X + 100.0, y)
    assert model.certificate_.dual <= objective(best, X + 100.0, y)
    assert model.certificate_.primal >= objective(model, X + 100.0, y)


@pytest.mark.parametrize("size", [None, 10])
@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"max_iter": 2}, {"time_limit": 1e-6}])
def test_every_ending_is_verified(size, limit):
    """The gradient of small problems was never computed anew: the primal was too low."""
    X, y = halves(200, 4, 2)
    best = SVC(C=30.0, tol=1e-7).fit(X, y)
    model = fitted(SVC(C=30.0, tol=1e-7, working_set_size=size, **limit), X, y)
    assert model.results_[0].status is not Status.CONVERGED
    exact = objective(model, X, y)
    assert exact <= model.certificate_.primal <= float(exact) * (1 + 1e-9)
    assert model.certificate_.dual <= objective(best, X, y)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])
def test_one_class_of_huge_features(scale):
    """Was certified 49.6 where the model's objective was 682,030."""
    X = (np.random.default_rng(0).normal(size=(80, 3)) + 1.0) * scale
    model = fitted(OneClassSVM(kernel="linear", nu=0.3), X)
    coef, rho = np.asarray(model.dual_coef_[0], LONG), LONG(model.offset_[0])
    w = coef @ model.support_vectors_.astype(LONG)
    losses = np.maximum(0, rho - X.astype(LONG) @ w).sum()
    exact = w @ w / 2 - LONG(0.3) * 80 * rho + losses
    # The border is moved by 1e-9 of rho.
    assert model.certificate_.primal >= exact - 1e-9 * abs(rho) * 24
    assert model.certificate_.dual <= exact
    assert model.certificate_.relative_gap <= 1e-3


# -- stopping ---------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
def test_converged_means_the_gap(C):
    """Wide normal data: the optimality conditions hold long before the gap is small."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1500)), np.where(rng.random(300) < 0.5, 1, -1)
    model = SVC(kernel="linear", C=C).fit(X, y)
    assert model.results_[0].status is Status.CONVERGED and model.certificate_.relative_gap <= 1e-3
    with pytest.warns(ConvergenceWarning, match=r"relative gap is .*stopping out"):
        old = SVC(kernel="linear", C=C, stopping="kkt", tol=0.1).fit(X, y)
    assert old.results_[0].status is Status.CONVERGED and old.certificate_.relative_gap > 0.01
    assert old.certificate_.dual <= model.certificate_.primal


@pytest.mark.parametrize("C", [1e8, 1e12, 1e200])
def test_hard_margins_converge(C):
    """Rounding of margins, times C, costs nothing if the model is a little longer."""
    X, y = halves(60, 3, 0)
    model = SVC(C=C).fit(X, y)
    assert model.fit_status_ == 0
    exact = objective(model, X, y)
    assert exact <= model.certificate_.primal <= 1.001 * float(exact)
    np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize("size", [None, 2, 20])
def test_rules_in_their_units(size):
    X, y = halves(150, 4, 3)
    for stopping, enough in (("relative", None), ("absolute", 0.01), ("epsilon", 0.01 * 150 * 2.0)):
        model = SVC(C=2.0, tol=0.01, stopping=stopping, working_set_size=size).fit(X, y)
        most = 0.01 * model.certificate_.primal if enough is None else enough
        assert model.certificate_.gap <= most
    model = SVC(C=2.0, tol=1e-5, stopping="kkt", working_set_size=size, shrinking=False).fit(X, y)
    beta = np.zeros(150)
    beta[model.support_] = model.dual_coef_[0]
    g = y * (model.decision_function(X) - model.intercept_) - 1.0
    low, high = beta * y <= 1e-12, beta * y >= 2.0 - 1e-12
    assert (
        np.max((-y * g)[((y > 0) & ~high) | ((y < 0) & ~low)])
        - np.min((-y * g)[((y > 0) & ~low) | ((y < 0) & ~high)])
        <= 1.1e-5
    )
    with pytest.raises(ValueError, match="stopping must be"):
        SVC(stopping="violation").fit(X, y)


def test_shrinking_and_the_gap():
    """With variables left out the gap is known of the others only; at the end of all."""
    X, y = halves(1200, 4, 4)
    seen = []
    model = SVC(C=20.0, working_set_size=10, callback=lambda r: seen.append(r.active)).fit(X, y)
    assert min(seen) < 1200
    assert model.certificate_.relative_gap <= 1e-3
    assert model.certificate_.primal >= objective(model, X, y)


# -- kernels that may be indefinite -----------------------------------------------------


def nearly_definite(seed, rows=230):
    """One negative eigenvalue, of a direction that a few rows do not show."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.normal(size=(rows, rows)))
    values = rng.random(rows) + 0.01
    values[0] = -(10.0 ** -(1 + seed % 4))
    return (basis * values) @ basis.T


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["precomputed", "callable"])
def test_indefinite_matrices_are_never_certified(seed, kind):
    K = nearly_definite(seed)
    K = 0.5 * (K + K.T)
    y = np.where(np.random.default_rng(seed).random(len(K)) < 0.5, 1, -1)
    if kind == "precomputed":
        model = fitted(SVC(kernel="precomputed"), K, y)
    else:
        numbers = np.arange(len(K), dtype=float)[:, None]
        look = lambda A, B: K[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))]  # noqa: E731
        model = fitted(SVC(kernel=look), numbers, y)
    assert model.certificate_.kind == "withheld" and model.certificate_.gap == np.inf


@pytest.mark.parametrize("make", [SVC, SampledCutSVC])
def test_definite_only_where_it_is_proved(monkeypatch, make):
    X, y = halves(150, 4, 5)
    K = X @ X.T  # singular
    exact = {"method": "exact"} if make is SampledCutSVC else {}
    assert fitted(make(kernel="precomputed", **exact), K, y).certificate_.kind == "exact"
    monkeypatch.setattr(definite, "PROVABLE", 100)
    model = fitted(make(kernel="precomputed", **exact), K, y)
    assert model.certificate_.kind == "conditional"
    assert "exact if the kernel is positive semidefinite" in str(model.certificate_)
    assert fitted(make(kernel="linear", **exact), X, y).certificate_.kind == "exact"


# -- large and badly scaled features ----------------------------------------------------


@pytest.mark.parametrize("scale", [1e19, 1e20, 1e50, 1e150])
@pytest.mark.parametrize("rows", [80, 600])
def test_large_features_change_nothing_of_rbf(scale, rows):
    """Was 109.26 where the optimum was 97.18."""
    X, y = halves(rows, 3, 6)
    near, far = SVC().fit(X, y), SVC().fit(X * scale, y)
    assert far.certificate_.primal == pytest.approx(near.certificate_.primal, rel=2e-3)
    np.testing.assert_allclose(
        far.decision_function(X * scale), near.decision_function(X), atol=0.1
    )
    one = OneClassSVM().fit(X * scale)
    assert np.isfinite(one.certificate_.primal) and one.certificate_.relative_gap <= 1e-3
    assert set(one.predict(X * scale)) == {-1, 1}
    sampled = fitted(SampledCutSVC(random_state=0), X * scale, y)
    assert sampled.certificate_.primal > 1.0
    assert np.all(np.isfinite(sampled.decision_function(X * scale)))


@pytest.mark.parametrize(
    "model",
    [SVC(), SVC(gamma=1.0), SVC(kernel="linear"), SVC(kernel="poly", gamma=1.0), OneClassSVM()],
)
def test_overflow_is_refused_with_the_remedy(model):
    X, y = halves(30, 3, 7)
    with pytest.raises(ValueError, match=r"too large.*StandardScaler"):
        model.fit(X * 1e170, y)


def test_no_nan_leaves_predict():
    X, y = halves(50, 3, 8)
    far = np.vstack([X[:3], [[1e200, 0.0, 0.0]], [[1e308, -1e308, 0.0]]])
    scores = SVC().fit(X, y).decision_function(far)
    assert np.all(np.isfinite(scores)) and scores[3] == scores[4]
    with pytest.raises(ValueError, match="scores overflow, first in row 3"):
        SVC(kernel="poly").fit(X, y).predict(far)


@pytest.mark.parametrize("make", [SVC, SVR])
def test_creeping_runs_end_and_name_the_feature(make, monkeypatch):
    """Did not end, and said nothing."""
    monkeypatch.setattr(interior, "MANY_STEPS", 200_000)
    X, y = halves(60, 3, 0)
    X[:, 1] *= 1e8
    with pytest.warns(ConvergenceWarning) as caught:
        model = make(kernel="linear").fit(X, y)
    messages = [str(warning.message) for warning in caught]
    assert any("feature 1 (range" in m and "StandardScaler" in m for m in messages)
    assert model.results_[0].status is Status.NUMERICALLY_LIMITED
    assert model.certificate_.primal >= objective(model, X, y)
    assert model.certificate_.dual <= model.certificate_.primal


def test_features_of_one_large_scale_are_solved_or_named():
    X, _ = halves(60, 3, 0)
    y = X[:, 0] + 0.1 * X[:, 1] * X[:, 2]
    assert SVR(kernel="linear").fit(X * 1e3, y).certificate_.relative_gap <= 1e-3
    with pytest.warns(ConvergenceWarning, match=r"ranges of about.*StandardScaler"):
        SVR(kernel="linear", tol=1e-9).fit(X * 1e3, y)


# -- what is kept -----------------------------------------------------------------------


def test_another_function_of_the_same_name_gets_its_own_certificate(tmp_path):
    def make(gamma):
        def kernel(A, B):
            return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(-1))

        return kernel

    X, y = halves(60, 3, 9)
    path = Checkpoint(tmp_path / "fit", every=0.0)
    SVC(kernel=make(0.1), checkpoint=path).fit(X, y)
    resumed = SVC(kernel=make(3.0), checkpoint=path).fit(X, y)
    alone = SVC(kernel=make(3.0)).fit(X, y)
    assert resumed.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-3)
    warm = SVC(kernel=make(0.1), warm_start=True).fit(X, y)
    warm.set_params(kernel=make(3.0)).fit(X, y)
    assert warm.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-3)


def test_relative_gaps_of_negative_objectives():
    record = {"number": 1, "trial": 0.0, "step": 0.0, "cuts": 1, "seconds": 0.0}
    for primal, dual, expected in [
        (-2.0, -6.6, 2.3),
        (2.0, 1.0, 0.5),
        (0.0, 0.0, 0.0),
        (0.0, -1.0, np.inf),
        (1.0, -np.inf, np.inf),
        (np.nan, np.nan, np.inf),
        (np.inf, 1.0, np.inf),
    ]:
        assert Iteration(primal=primal, dual=dual, **record).relative_gap == pytest.approx(expected)
        assert Certificate(primal, dual).relative_gap == pytest.approx(expected)
    assert Certificate(np.nan, np.nan).gap == np.inf


def test_plot_of_a_negative_objective_shows_its_gap():
    X, _ = halves(300, 3, 10)
    model = fitted(OneClassSVM(working_set_size=2, max_iter=40, tol=1e-9), X)
    assert model.results_[0].trace[-1].relative_gap > 1e-6
    axes = plot_convergence(model)
    assert "Gap of 0" not in axes.get_title(loc="left")
