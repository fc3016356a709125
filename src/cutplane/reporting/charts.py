"""Figures of a report: curves, histograms and scatter plots, with a limited number of points.

Every function returns a matplotlib figure that pyplot does not manage. Dollar signs in names from
the user are escaped, because matplotlib would read them as the beginning of a formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .html import shortened
from .plots import BLUE, GREY, ORANGE, convergence_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (5.6, 4.0)  # inches
MOST_ON_CURVE = 1000
MOST_DOTS = 2000
BARS = 50
OUTLIERS = 0.001  # share of the values at each end that a histogram's range may leave out
DASHED: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": "--"}


def panel(x: str, y: str, height: float = SIZE[1]) -> tuple[Figure, Axes]:
    """An empty figure with one panel, whose axes have these names."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE[0], height), layout="constrained")
    ax = figure.add_subplot(xlabel=x, ylabel=y)
    plain(ax)
    return figure, ax


def convergence(results: Any, x: str = "iteration") -> Figure:
    """Objective, lower bound and gap, as wide as the other figures of a report."""
    figure = convergence_figure(results, x=x)
    figure.set_size_inches(SIZE[0], 1.15 * SIZE[1])  # two panels need some more room
    figure.axes[-1].locator_params(axis="x", nbins=5)  # few labels, since seconds may be long
    return figure


def label(name: Any) -> str:
    """A name from the user, short and escaped for a figure."""
    return shortened(name, 30).replace("$", r"\$")


def thinned(length: int, most: int) -> np.ndarray:
    """At most ``most`` positions, evenly spread from 0 to ``length`` − 1."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).astype(np.intp))


def curve(
    names: tuple[str, str],
    x: np.ndarray,
    y: np.ndarray,
    reference: Sequence[float],
    point: tuple[float, float] | None = None,
    **style: Any,
) -> Figure:
    """A curve, a dashed reference line, and the point of the model's threshold."""
    figure, ax = panel(*names)
    kept = thinned(len(x), MOST_ON_CURVE)
    ax.plot(*([0, 1], reference) if len(reference) else ([], []), **DASHED)
    ax.plot(x[kept], y[kept], color=BLUE, **style)
    if point is not None:
        ax.plot(*point, "o", color=ORANGE, label="the model's threshold")
        ax.legend(frameon=False)
    ax.set_ylim(-0.03, 1.03)
    return figure


def dots(names: tuple[str, str], x: np.ndarray, y: np.ndarray, line: Sequence[Any]) -> Figure:
    """A scatter plot and a dashed line. Of many rows it shows a sample, always the same."""
    figure, ax = panel(*names)
    kept = np.arange(len(x))
    if len(x) > MOST_DOTS:
        kept = np.sort(np.random.default_rng(0).choice(len(x), MOST_DOTS, replace=False))
    ax.plot(*line, **DASHED)
    ax.scatter(x[kept], y[kept], s=9, color=BLUE, alpha=0.45, linewidths=0)
    return figure


def histogram(
    values: np.ndarray,
    names: tuple[str, str],
    groups: Sequence[tuple[str, np.ndarray]] = (),
    weights: np.ndarray | None = None,
    threshold: float | None = None,
) -> Figure:
    """A histogram of values, one for each group: a name, and which rows belong to the group."""
    figure, ax = panel(*names)
    ends = np.quantile(values, [OUTLIERS, 1.0 - OUTLIERS])
    low, high = ends if threshold is None else (min(ends[0], threshold), max(ends[1], threshold))
    edges = np.linspace(low, high, BARS + 1) if high > low else np.array([low - 0.5, low + 0.5])
    shown = np.clip(values, edges[0], edges[-1])
    every = np.ones(len(values), dtype=bool)
    colours = (GREY, BLUE) if groups else (BLUE,)
    for (name, rows), colour in zip(groups or [("", every)], colours, strict=False):
        heights, _ = np.histogram(
            shown[rows], edges, weights=None if weights is None else weights[rows]
        )
        ax.stairs(heights, edges, fill=True, alpha=0.5, color=colour, label=label(name))
    if threshold is not None:
        ax.axvline(threshold, color=ORANGE, linewidth=1.4, label="the threshold")
        ax.legend(frameon=False)
    return figure


def weights_figure(names: Sequence[Any], values: np.ndarray) -> Figure:
    """Weights of features, from the largest down to the most negative."""
    figure, ax = panel("weight", "", 0.8 + 0.22 * len(values))
    places = np.arange(len(values))
    ax.barh(places, values, color=[BLUE if value > 0.0 else ORANGE for value in values])
    ax.set_yticks(places, [label(name) for name in names], fontsize="small")
    ax.invert_yaxis()
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    return figure
