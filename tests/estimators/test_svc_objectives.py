"""The optimum of every loss, against other solvers' optima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from svc_reference import (
    LOSSES,
    assert_certified,
    best_bias,
    binary_objective,
    certificates,
    joint_objective,
    liblinear,
    libsvm,
    results,
    signs_of,
    smooth_optimum,
)

from cutplane import LinearSVC, Status

TIGHT = 1e-9
SOLVERS = ["ocas", "cpa"]


# -- hinge ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("tol", [1e-2, 1e-3, TIGHT])
def test_hinge_with_a_bias_reaches_libsvm(cancer, C, tol, solver):
    X, y = cancer
    signs = signs_of(y, 1)
    known = libsvm(X, signs, C)
    model = LinearSVC(C=C, tol=tol, solver=solver).fit(X, y)
    assert_certified(model, X, y, references=[known.upper])
    proof = model.certificate_
    assert model.results_[0].status is Status.CONVERGED
    assert proof.relative_gap <= tol
    assert proof.primal >= known.lower * (1 - 1e-9)  # as libsvm's dual proves
    assert proof.primal <= known.upper * (1 + tol)


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_hinge_with_a_bias_predicts_like_libsvm(noisy, C):
    """The optimal w is unique: scores differ by less than the tolerances allow."""
    from sklearn.svm import SVC

    X, y = noisy
    theirs = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)
    ours = LinearSVC(C=C, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)
    at_ours = np.maximum(0, 1 - y * (X @ ours.coef_[0] + ours.intercept_)).sum()
    at_best = np.maximum(
        0, 1 - y * (X @ ours.coef_[0] + best_bias(X @ ours.coef_[0], 1.0 * y))
    ).sum()
    assert at_ours <= at_best * (1 + 1e-12)


@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0])
def test_hinge_without_a_bias_reaches_liblinear(cancer, C):
    X, y = cancer
    theirs = liblinear(X, y, C, loss="hinge", fit_intercept=False)
    reference = binary_objective(theirs.coef_[0], 0.0, X, signs_of(y, 1), C)
    model = LinearSVC(C=C, tol=TIGHT, fit_intercept=False).fit(X, y)
    assert_certified(model, X, y, references=[reference])
    assert model.intercept_.tolist() == [0.0]
    assert reference <= model.certificate_.primal * (1 + 1e-6)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-3, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(2, 40),
    features=st.integers(1, 8),
    exponent=st.floats(-4, 4, allow_subnormal=False),
    shared=st.floats(0, 1, allow_subnormal=False),
)
def test_hinge_on_random_problems(seed, rows, features, exponent, shared):
    """libsvm's bounds and ours must overlap on any problem."""
    rng = np.random.default_rng(seed)
    C = 10.0**exponent
    y = rng.integers(0, 2, rows)
    y[:2] = 0, 1
    X = rng.integers(-2, 3, (rows, features)) + shared * y[:, None]  # many ties
    signs = signs_of(y, 1)
    w = np.zeros(features)
    upper = binary_objective(w, best_bias(X @ w, signs), X, signs, C)
    model = LinearSVC(C=C, tol=1e-6).fit(X, y)
    assert_certified(model, X, y, references=[upper])
    known = libsvm(X, signs, C, tol=1e-6)
    assert model.certificate_.dual <= known.upper * (1 + 1e-9)
    assert model.certificate_.primal >= known.lower * (1 - 1e-5)
    assert model.certificate_.relative_gap <= 1e-6


# -- smooth losses --------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scaling", [0.3, 1.0, 10.0])
def test_squared_hinge_with_a_regularised_bias_reaches_liblinear(cancer, scaling, solver):
    X, y = cancer
    theirs = liblinear(X, y, 0.1, loss="squared_hinge", intercept_scaling=scaling)
    reference = binary_objective(
        theirs.coef_[0],
        theirs.intercept_[0],
        X,
        signs_of(y, 1),
        0.1,
        "squared_hinge",
        scaling=scaling,
    )
    model = LinearSVC(
        C=0.1, tol=1e-8, loss="squared_hinge", intercept_scaling=scaling, solver=solver
    ).fit(X, y)
    assert_certified(model, X, y, references=[reference])
    assert reference <= model.certificate_.primal * (1 + 1e-6)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("scaling", [0.3, 1.0, 10.0])
def test_hinge_with_a_regularised_bias_reaches_liblinear(cancer, scaling):
    X, y = cancer
    theirs = liblinear(X, y, 0.1, loss="hinge", intercept_scaling=scaling)
    reference = binary_objective(
        theirs.coef_[0], theirs.intercept_[0], X, signs_of(y, 1), 0.1, scaling=scaling
    )
    model = LinearSVC(C=0.1, tol=TIGHT, intercept_scaling=scaling).fit(X, y)
    assert_certified(model, X, y, references=[reference])
    assert reference <= model.certificate_.primal * (1 + 1e-6)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [1e-3, 0.1, 3.0])
def test_logistic_reaches_logistic_regression(cancer, C, solver):
    X, y = cancer
    theirs = LogisticRegression(C=C, tol=1e-12, solver="newton-cholesky", max_iter=1000).fit(X, y)
    reference = binary_objective(
        theirs.coef_[0], theirs.intercept_[0], X, signs_of(y, 1), C, "logistic"
    )
    model = LinearSVC(C=C, tol=1e-8, loss="logistic", solver=solver).fit(X, y)
    assert_certified(model, X, y, references=[reference])
    assert reference <= model.certificate_.primal * (1 + 1e-10)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 100.0])
def test_smooth_losses_reach_newton(noisy, loss, bias, C):
    X, y = noisy
    optimum = smooth_optimum(X, y, C, loss, bias=bias)
    model = LinearSVC(C=C, tol=1e-8, loss=loss, fit_intercept=bias).fit(X, y)
    assert_certified(model, X, y, references=[optimum])
    assert optimum <= model.certificate_.primal * (1 + 1e-10)
    assert model.results_[0].status is Status.CONVERGED


# -- several classes ------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_one_certificate_per_class(iris, loss):
    X, y = iris
    model = LinearSVC(tol=1e-6, loss=loss).fit(X, y)
    assert len(certificates(model)) == len(results(model)) == len(model.classes_) == 3
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert model.n_iter_ == max(result.n_iter for result in model.results_)
    optima = [
        libsvm(X, signs_of(y, k), 1.0).upper
        if loss == "hinge"
        else smooth_optimum(X, signs_of(y, k), 1.0, loss)
        for k in range(3)
    ]
    assert_certified(model, X, y, references=optima)
    for proof, optimum in zip(model.certificates_, optima, strict=True):
        assert proof.relative_gap <= 1e-6
        assert optimum <= proof.primal * (1 + 1e-6)


def test_one_vs_rest_is_every_class_by_itself(iris):
    X, y = iris
    model = LinearSVC(tol=1e-6).fit(X, y)
    for k in range(3):
        alone = LinearSVC(tol=1e-6).fit(X, y == k)
        np.testing.assert_array_equal(alone.coef_[0], model.coef_[k])
        assert alone.intercept_[0] == model.intercept_[k]
        assert alone.certificate_ == model.certificates_[k]
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.01, 0.3])
@pytest.mark.parametrize("scaling", [0.0, 1.0, 3.0])
def test_crammer_singer_reaches_liblinear(iris, C, scaling, solver):
    """scaling 0 stands for no bias."""
    X, y = iris
    intercept = {"fit_intercept": False} if scaling == 0.0 else {"intercept_scaling": scaling}
    wanted = scaling or None
    theirs = liblinear(
        X,
        y,
        C,
        multi_class="crammer_singer",
        fit_intercept=scaling != 0.0,
        intercept_scaling=wanted or 1.0,
    )
    bias = np.zeros(3) if scaling == 0.0 else theirs.intercept_
    reference = joint_objective(theirs.coef_, bias, X, y, C, scaling=wanted)
    model = LinearSVC(C=C, tol=1e-8, multi_class="crammer_singer", solver=solver, **intercept)
    model.fit(X, y)
    assert_certified(model, X, y, references=[reference])
    assert reference <= model.certificate_.primal * (1 + 1e-5)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-2, atol=5e-3)


def test_crammer_singer_on_ten_classes(digits):
    X, y = digits
    theirs = liblinear(X, y, 0.1, multi_class="crammer_singer", fit_intercept=False)
    reference = joint_objective(theirs.coef_, np.zeros(10), X, y, 0.1)
    model = LinearSVC(C=0.1, tol=1e-5, multi_class="crammer_singer", fit_intercept=False)
    model.fit(X, y)
    assert_certified(model, X, y, references=[reference])
    assert model.certificate_.relative_gap <= 1e-5
    assert reference <= model.certificate_.primal * (1 + 1e-5)


def crammer_singer_by_slsqp(X, y, C):
    """Least ½|W|² + C·Σ slack with free biases, by a general solver on the explicit problem."""
    rows, features = X.shape
    classes = int(y.max()) + 1
    others = [(i, c) for i in range(rows) for c in range(classes) if c != y[i]]
    constraints = np.zeros((len(others), classes * (features + 1) + rows))
    for line, (i, c) in zip(constraints, others, strict=True):  # s_y − s_c + slack ≥ 1
        padded = np.append(X[i], 1.0)
        line[y[i] * (features + 1) : (y[i] + 1) * (features + 1)] = padded
        line[c * (features + 1) : (c + 1) * (features + 1)] = -padded
        line[classes * (features + 1) + i] = 1.0
    squared = np.tile(np.append(np.ones(features), 0.0), classes)
    squared = np.append(squared, np.zeros(rows))
    linear = np.append(np.zeros(classes * (features + 1)), np.full(rows, C))
    start = np.append(np.zeros(classes * (features + 1)), np.ones(rows))
    answer = minimize(
        lambda v: 0.5 * squared @ (v * v) + linear @ v,
        start,
        jac=lambda v: squared * v + linear,
        bounds=[(None, None)] * (classes * (features + 1)) + [(0.0, None)] * rows,
        constraints={
            "type": "ineq",
            "fun": lambda v: constraints @ v - 1.0,
            "jac": lambda v: constraints,
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert answer.status in (0, 8)  # 8: rounding ends the search
    return answer.fun


@pytest.mark.parametrize("C", [0.02, 1.0, 20.0])
def test_crammer_singer_has_a_free_bias(iris, C):
    X, y = iris
    X, y = X[::5] + np.array([3.0, 0.0, 0.0, -1.0]), y[::5]
    reference = crammer_singer_by_slsqp(X, y, C)
    model = LinearSVC(C=C, tol=1e-7, multi_class="crammer_singer").fit(X, y)
    assert_certified(model, X, y, references=[reference * (1.0 + 1e-9)])
    assert model.certificate_.relative_gap <= 1e-7
    assert reference <= model.certificate_.primal * (1.0 + 1e-7)
    regularised = LinearSVC(C=C, tol=1e-7, multi_class="crammer_singer", intercept_scaling=1.0)
    assert model.certificate_.primal < regularised.fit(X, y).certificate_.dual


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_crammer_singer_does_not_mind_where_the_origin_is(iris, scale):
    X, y = iris
    objectives = [
        LinearSVC(C=0.5 / scale**2, tol=1e-6, multi_class="crammer_singer")
        .fit(scale * (X + shift), y)
        .certificate_
        for shift in (0.0, 5.0)
    ]
    assert objectives[0].dual <= objectives[1].primal
    assert objectives[1].dual <= objectives[0].primal
    assert max(proof.relative_gap for proof in objectives) <= 1e-6


def test_crammer_singer_where_a_class_has_no_weight(iris):
    """Its bias is as low as needed: the objective is that without the class."""
    X, y = iris
    weights = np.where(y == 1, 0.0, 1.0 + np.arange(len(y)) % 3)
    model = LinearSVC(tol=1e-6, multi_class="crammer_singer").fit(X, y, sample_weight=weights)
    kept = y != 1
    alone = LinearSVC(C=1.0, tol=1e-7).fit(X[kept], y[kept], sample_weight=weights[kept])
    # Two classes with w and −w: half of |w|², and scores that are twice as far apart.
    X2, y2 = X[kept] / np.sqrt(2.0), y[kept]
    half = LinearSVC(C=1.0, tol=1e-7).fit(np.sqrt(4.0) * X2, y2, sample_weight=weights[kept])
    assert model.certificate_.relative_gap <= 1e-6
    assert half.certificate_.dual <= model.certificate_.primal * (1 + 1e-9)
    assert model.certificate_.dual <= half.certificate_.primal * (1 + 1e-9)
    assert alone.certificate_.dual > half.certificate_.primal
    assert not np.any(model.predict(X[kept]) == 1)


def test_crammer_singer_with_two_classes_is_the_binary_problem(cancer):
    X, y = cancer
    joint = LinearSVC(multi_class="crammer_singer").fit(X, y)
    binary = LinearSVC().fit(X, y)
    np.testing.assert_array_equal(joint.coef_, binary.coef_)
    assert joint.certificate_ == binary.certificate_
