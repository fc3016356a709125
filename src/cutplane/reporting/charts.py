"""Figures of a report: curves, histograms and clouds of points, with few enough points to draw.

Every function returns a matplotlib figure that pyplot does not know. Names of the user's stand in
them with their dollar signs escaped, which would otherwise begin a formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .html import shortened
from .plots import BLUE, GREY, ORANGE, _plain, convergence_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (5.6, 4.0)  # inches
MOST_ON_CURVE = 1000
MOST_DOTS = 2000
BARS = 50
GROUPS = 10  # of a calibration curve
OUTLIERS = 0.001  # part of the scores at either end that need not fit into a histogram


def panel(x: str, y: str, height: float = SIZE[1]) -> tuple[Figure, Axes]:
    """An empty figure with one panel, and the names of its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE[0], height), layout="constrained")
    ax = figure.add_subplot(xlabel=x, ylabel=y)
    _plain(ax)
    return figure, ax


def convergence(results: Any, x: str = "iteration") -> Figure:
    """Objective, lower bound and gap, as wide as the other figures of a report."""
    figure = convergence_figure(results, x=x)
    figure.set_size_inches(SIZE[0], 1.15 * SIZE[1])  # two panels need some more room
    figure.axes[-1].locator_params(axis="x", nbins=5)  # numbers of seconds may be long
    return figure


def label(name: Any) -> str:
    """A name of the user's for a figure."""
    return shortened(name, 30).replace("$", r"\$")


def thinned(length: int, most: int) -> np.ndarray:
    """At most so many positions, evenly spread from the first to the last."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).astype(np.intp))


def _dots(rows: int) -> np.ndarray:
    """All rows, or a sample of them, the same in every run."""
    if rows <= MOST_DOTS:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, MOST_DOTS, replace=False))


def _bars(values: np.ndarray, *points: float) -> tuple[np.ndarray, np.ndarray]:
    """The edges of bars for these values and points, and the values without outliers."""
    ends = [*np.quantile(values, [OUTLIERS, 1.0 - OUTLIERS]), *points]
    low, high = min(ends), max(ends)
    edges = np.linspace(low, high, BARS + 1) if high > low else np.array([low - 0.5, low + 0.5])
    return edges, np.clip(values, edges[0], edges[-1])


# -- two classes --------------------------------------------------------------


def roc(false: np.ndarray, true: np.ndarray, point: tuple[float, float]) -> Figure:
    """The ROC curve, and the point of the model's own threshold on it."""
    figure, ax = panel("false positive rate", "true positive rate (recall)")
    kept = thinned(len(false), MOST_ON_CURVE)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--")
    ax.plot(false[kept], true[kept], color=BLUE, linewidth=1.8)
    ax.plot(*point, "o", color=ORANGE, label="the model's threshold")
    ax.legend(frameon=False, loc="lower right")
    return figure


def precision_recall(
    precision: np.ndarray, recall: np.ndarray, point: tuple[float, float], share: float
) -> Figure:
    """Precision against recall; ``share`` is that of the positive rows, the precision of chance."""
    figure, ax = panel("recall", "precision")
    kept = thinned(len(recall), MOST_ON_CURVE)
    ax.axhline(share, color=GREY, linewidth=0.8, linestyle="--")
    ax.plot(recall[kept], precision[kept], color=BLUE, linewidth=1.8, drawstyle="steps-post")
    ax.plot(*point, "o", color=ORANGE, label="the model's threshold")
    ax.set_ylim(-0.03, 1.03)
    ax.legend(frameon=False, loc="lower left")
    return figure


def calibration_groups(
    positive: np.ndarray, values: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean value and share of positives in groups of equally many rows, by rising value."""
    order = np.argsort(values, kind="stable")
    means, shares = [], []
    for group in np.array_split(order, min(GROUPS, len(order))):
        weight = None if weights is None else weights[group]
        if weight is None or weight.sum() > 0.0:
            means.append(np.average(values[group], weights=weight))
            shares.append(np.average(positive[group], weights=weight))
    return np.array(means), np.array(shares)


def calibration(means: np.ndarray, shares: np.ndarray, *, probabilities: bool) -> Figure:
    """The share of positives among rows of similar score or probability."""
    what = "predicted probability" if probabilities else "score"
    figure, ax = panel(what, "share of positive rows")
    if probabilities:
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--")
    ax.plot(means, shares, "o-", color=BLUE, markersize=4)
    ax.set_ylim(-0.03, 1.03)
    return figure


def score_histogram(
    scores: np.ndarray,
    groups: Sequence[tuple[str, np.ndarray | None]],
    threshold: float = 0.0,
    weights: np.ndarray | None = None,
) -> Figure:
    """How many rows have which score, by group: a name and which rows belong to it."""
    figure, ax = panel("score", "rows")
    edges, shown = _bars(scores, threshold)
    for (name, rows), colour in zip(groups, (GREY, BLUE), strict=False):
        chosen = slice(None) if rows is None else rows
        heights, _ = np.histogram(
            shown[chosen], edges, weights=None if weights is None else weights[chosen]
        )
        ax.stairs(heights, edges, fill=True, alpha=0.45, color=colour, label=label(name))
    ax.axvline(threshold, color=ORANGE, linewidth=1.4, label="the threshold")
    ax.legend(frameon=False)
    return figure


# -- numbers ------------------------------------------------------------------


def against_truth(truth: np.ndarray, predicted: np.ndarray) -> Figure:
    """Predictions against true values."""
    figure, ax = panel("true value", "predicted value")
    kept = _dots(len(truth))
    ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
    ax.plot(ends, ends, color=GREY, linewidth=0.8, linestyle="--")
    ax.scatter(truth[kept], predicted[kept], s=9, color=BLUE, alpha=0.45, linewidths=0)
    return figure


def residuals(truth: np.ndarray, predicted: np.ndarray) -> Figure:
    """Residuals against predictions."""
    figure, ax = panel("predicted value", "true − predicted")
    kept = _dots(len(truth))
    ax.axhline(0.0, color=GREY, linewidth=0.8, linestyle="--")
    rest = truth[kept] - predicted[kept]
    ax.scatter(predicted[kept], rest, s=9, color=BLUE, alpha=0.45, linewidths=0)
    return figure


def histogram(values: np.ndarray, name: str, of: str = "rows") -> Figure:
    """How often values occur."""
    figure, ax = panel(name, of)
    edges, shown = _bars(values)
    heights, _ = np.histogram(shown, edges)
    ax.stairs(heights, edges, fill=True, color=BLUE, alpha=0.6)
    return figure


# -- weights ------------------------------------------------------------------


def weights_figure(names: Sequence[Any], values: np.ndarray) -> Figure:
    """Weights of features, from the largest down to the most negative."""
    figure, ax = panel("weight", "", 0.8 + 0.22 * len(values))
    places = np.arange(len(values))
    ax.barh(places, values, color=[BLUE if value > 0.0 else ORANGE for value in values])
    ax.set_yticks(places, [label(name) for name in names], fontsize="small")
    ax.invert_yaxis()
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    return figure
