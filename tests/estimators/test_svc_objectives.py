"""The optimum of every loss, against other solvers' optima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
    assert model.result_.status is Status.CONVERGED
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
    exponent=st.floats(-4, 4),
    shared=st.floats(0, 1),
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
    assert model.result_.status is Status.CONVERGED


# -- several classes ------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_one_certificate_per_class(iris, loss):
    X, y = iris
    model = LinearSVC(tol=1e-6, loss=loss).fit(X, y)
    assert len(certificates(model)) == len(results(model)) == len(model.classes_) == 3
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert model.n_iter_ == max(result.n_iter for result in model.result_)
    optima = [
        libsvm(X, signs_of(y, k), 1.0).upper
        if loss == "hinge"
        else smooth_optimum(X, signs_of(y, k), 1.0, loss)
        for k in range(3)
    ]
    assert_certified(model, X, y, references=optima)
    for proof, optimum in zip(model.certificate_, optima, strict=True):
        assert proof.relative_gap <= 1e-6
        assert optimum <= proof.primal * (1 + 1e-6)


def test_one_vs_rest_is_every_class_by_itself(iris):
    X, y = iris
    model = LinearSVC(tol=1e-6).fit(X, y)
    for k in range(3):
        alone = LinearSVC(tol=1e-6).fit(X, y == k)
        np.testing.assert_array_equal(alone.coef_[0], model.coef_[k])
        assert alone.intercept_[0] == model.intercept_[k]
        assert alone.certificate_ == model.certificate_[k]
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.01, 0.3])
@pytest.mark.parametrize("scaling", [None, 0.0, 1.0, 3.0])
def test_crammer_singer_reaches_liblinear(iris, C, scaling, solver):
    """scaling 0 stands for no bias; None for the default, which is 1."""
    X, y = iris
    intercept = {"fit_intercept": False} if scaling == 0.0 else {"intercept_scaling": scaling}
    wanted = {0.0: None, None: 1.0}.get(scaling, scaling)
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


def test_crammer_singer_with_two_classes_is_the_binary_problem(cancer):
    X, y = cancer
    joint = LinearSVC(multi_class="crammer_singer").fit(X, y)
    binary = LinearSVC().fit(X, y)
    np.testing.assert_array_equal(joint.coef_, binary.coef_)
    assert joint.certificate_ == binary.certificate_
