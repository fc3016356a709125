"""The reliability plot, against scikit-learn's calibration curve."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import brier_score_loss
from sklearn.preprocessing import StandardScaler

from cutplane import SVC, LinearSVC, plot_calibration

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_two_classes(cancer):
    X, y = cancer
    model = LinearSVC(0.001, loss="logistic").fit(X, y)
    ax = plot_calibration(model, X, y, n_bins=5, label="logistic")
    again = plot_calibration(model, X, y, n_bins=3, ax=ax)
    assert again is ax
    x, share = ax.containers[0].lines[0].get_data()
    expected = calibration_curve(y, model.predict_proba(X)[:, 1], n_bins=5, strategy="quantile")
    np.testing.assert_allclose(x, expected[1], atol=0.01)
    np.testing.assert_allclose(share, expected[0], atol=0.01)
    brier = brier_score_loss(y, model.predict_proba(X)[:, 1])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        f"logistic: Brier score {brier:.3g}",
        f"Brier score {brier:.3g}",
    ]
    plt.close(ax.figure)


def test_more_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    ax = plot_calibration(LinearSVC(loss="logistic").fit(X, names), X, names)
    labels = [t.get_text().split(":")[0] for t in ax.get_legend().get_texts()]
    assert labels == ["class a", "class b", "class c"]
    plt.close(ax.figure)


def test_errors(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match="this SVC has no probabilities; fit it with calibrate="):
        plot_calibration(SVC().fit(X, y), X, y)
    model = LinearSVC(loss="logistic").fit(X, y)
    with pytest.raises(ValueError, match="y must hold 569 labels"):
        plot_calibration(model, X, y[:5])
    with pytest.raises(ValueError, match="n_bins must be an integer"):
        plot_calibration(model, X, y, n_bins=0)
