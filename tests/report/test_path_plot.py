from __future__ import annotations

import io
import warnings

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

from cutplane import LinearSVC, LinearSVCCV, linear_svc_path, plot_path

CS = [1.0, 0.01, 0.1]  # not in order: the plot sorts


@pytest.fixture(scope="module")
def data():
    return load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def draw(figure):
    """As on screen: matplotlib's warnings about glyphs, limits or layout are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(io.BytesIO(), format="png")


def test_a_search_shows_folds_mean_choice_and_gaps(data):
    search = LinearSVCCV(CS, cv=3).fit(*data)
    ax = plot_path(search)
    lower = ax.figure.axes[1]
    order = np.argsort(CS)
    *folds, mean, choice = [line for line in ax.lines if len(line.get_xdata())]
    np.testing.assert_array_equal(mean.get_xdata(), np.sort(CS))
    np.testing.assert_allclose(mean.get_ydata(), search.scores_.mean(axis=0)[order])
    for line, scores in zip(folds, search.scores_, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), scores[order])
    np.testing.assert_array_equal(choice.get_xdata(), [search.C_] * 2)
    gaps = [
        max(c.relative_gap for fold in search.fold_certificates_ for c in fold[k]) for k in order
    ]
    np.testing.assert_allclose(lower.lines[0].get_ydata(), np.maximum(gaps, 1e-16))
    assert lower.get_yscale() == ax.get_xscale() == "log"
    draw(ax.figure)


def test_a_path_shows_its_scores_or_iterations(data):
    path = linear_svc_path(*data, CS)
    ax = plot_path(path)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), path.n_iters[np.argsort(CS)])
    draw(ax.figure)
    ax = plot_path(path, scores=[0.3, 0.1, 0.2])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [0.1, 0.2, 0.3])
    draw(ax.figure)


def test_axes_of_the_user(data):
    own = Figure().subplots()
    assert plot_path(linear_svc_path(*data, CS), ax=own) is own
    assert own.get_xlabel() == "C"
    assert len(own.figure.axes) == 1


def test_what_cannot_be_plotted(data):
    with pytest.raises(ValueError, match="LinearSVCPath, got LinearSVC"):
        plot_path(LinearSVC().fit(*data))
    with pytest.raises(ValueError, match="one number for each of 3"):
        plot_path(linear_svc_path(*data, CS), scores=[1.0])
    with pytest.raises(ValueError, match="has its own"):
        plot_path(LinearSVCCV(CS, cv=2).fit(*data), scores=[1.0] * 3)
