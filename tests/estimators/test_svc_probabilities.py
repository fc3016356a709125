"""Probabilities of the logistic loss, against scikit-learn's logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from cutplane import LinearSVC


def test_two_classes(cancer):
    X, y = cancer
    ours = LinearSVC(0.1, loss="logistic", tol=1e-9).fit(X, y)
    theirs = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    likely = ours.classes_[ours.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(likely, ours.predict(X))


def test_more_classes(iris):
    X, y = iris
    ours = LinearSVC(1.0, loss="logistic", tol=1e-9).fit(X, y)
    theirs = OneVsRestClassifier(LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_multinomial(iris, C):
    X, y = iris
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y))
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, y, weights)
    labels = np.array(["a", "b", "c"])[y]
    ours = LinearSVC(C, loss="logistic", multi_class="multinomial", tol=1e-7)
    ours.fit(X, labels, weights)
    certificate = ours.certificate_
    assert certificate.relative_gap <= 1e-7

    def objective(model):
        own = model.predict_log_proba(X)[np.arange(len(y)), y]
        return 0.5 * np.sum(model.coef_**2) - C * weights @ own

    assert certificate.primal == pytest.approx(objective(ours), rel=1e-9)
    assert certificate.dual <= objective(theirs) <= certificate.primal * (1.0 + 1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)
    threads = LinearSVC(C, loss="logistic", multi_class="multinomial", tol=1e-7, n_jobs=2)
    np.testing.assert_array_equal(threads.fit(X, labels, weights).coef_, ours.coef_)


def test_multinomial_takes_its_own_loss_and_weights(iris):
    X, y = iris
    model = LinearSVC(multi_class="multinomial")
    with pytest.raises(ValueError, match=r"'multinomial' takes loss='logistic'.*got loss='hinge'"):
        model.fit(X, y)
    with pytest.raises(ValueError, match=r"no row of class .*2.* positive weight"):
        model.set_params(loss="logistic").fit(X, y, np.where(y == 2, 0.0, 1.0))


def test_logarithms_far_out(iris):
    """Where probabilities are 0 their logarithms still tell them apart."""
    X, y = iris
    model = LinearSVC(1.0, loss="logistic").fit(X, y)
    far = -1e5 * np.abs(X[:5])
    logarithms = model.predict_log_proba(far)
    assert np.isfinite(logarithms).all()
    np.testing.assert_allclose(np.exp(logarithms).sum(axis=1), 1.0)
    two = LinearSVC(1.0, loss="logistic").fit(X, y == 0)
    np.testing.assert_allclose(
        two.predict_log_proba(far)[:, 1], np.minimum(0.0, two.decision_function(far)), rtol=1e-12
    )


def test_other_losses_have_none(cancer):
    model = LinearSVC().fit(*cancer)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as error:
        model.predict_proba(cancer[0])
    assert "loss='logistic', got loss='hinge'" in str(error.value.__cause__)
