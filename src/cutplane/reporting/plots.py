"""Plots of a solver's trace.

The upper panel shows the objective falling and the lower bound rising until
they meet, zoomed to where they do: the first iterations are often orders of
magnitude away. The lower panel shows the relative gap on a logarithmic axis.
Several runs share the panels; each objective is then divided by its final
value, so that all of them meet at 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..result import SolveResult
from .line import format_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito's colours, told apart by colour-blind readers.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#555555"
FEW_COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
SIZE = (7.0, 5.4)  # inches
SKIPPED = 0.25  # part of the iterations that need not fit into the upper panel
MOST_MARKED = 15  # iterations; longer runs are drawn without a mark for each
MOST_SHADED = 3  # runs
MOST_NAMES = 16
MARGIN = 0.15  # of the upper panel above and below, where words may stand


@dataclass(frozen=True)
class Run:
    """One curve of each kind."""

    label: str
    x: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    gap: np.ndarray

    def scaled(self, factor: float) -> Run:
        """With objectives times ``factor``."""
        return Run(self.label, self.x, factor * self.primal, factor * self.dual, self.gap)


def plot_convergence(
    results: Any,
    *,
    x: str = "iteration",
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
) -> Axes:
    """Plot objective, lower bound and gap of one or more fits.

    Parameters
    ----------
    results : SolveResult, fitted estimator, or a list or dict of these
        A dict's keys are the labels. A multi-class estimator counts as one run
        per class.
    x : {'iteration', 'seconds'}, default='iteration'
        The horizontal axis.
    ax : matplotlib Axes, optional
        Where to draw objective and lower bound. Without it a new pyplot figure
        gets two panels, the second with the relative gap.
    labels : sequence of str, optional
        One per run, instead of those found.

    Returns
    -------
    ax : matplotlib Axes
        The panel with objective and lower bound. In a new figure the panel with the
        gap is ``ax.figure.axes[1]``.

    Examples
    --------
    >>> ax = plot_convergence(LinearSVC().fit(X, y))  # doctest: +SKIP
    >>> ax.figure.savefig("convergence.png")  # doctest: +SKIP
    """
    runs = _runs(results, x, labels)
    if ax is not None:
        _draw_objectives(ax, runs)
        _finish_x(ax, runs, x)
        if len(runs) > 1 and _fit_in_a_row(runs):
            _name_in_a_row(ax, runs, [1.0] * len(runs))
        elif len(runs) > 1:
            _name_in_legend(ax, runs, loc="best")
        return ax
    import matplotlib.pyplot as plt

    return _draw_panels(plt.figure(figsize=SIZE, layout="constrained"), runs, x)


def convergence_figure(
    results: Any, *, x: str = "iteration", labels: Sequence[str] | None = None
) -> Figure:
    """The two panels of :func:`plot_convergence` in a figure that pyplot does not know.

    For programs: it opens no window, needs no display and need not be closed.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    _draw_panels(figure, _runs(results, x, labels), x)
    return figure


# -- from results to runs -----------------------------------------------------


def _runs(results: Any, x: str, labels: Sequence[str] | None) -> list[Run]:
    attributes = {"iteration": "number", "seconds": "seconds"}
    if x not in attributes:
        raise ValueError(f"x must be 'iteration' or 'seconds', got {x!r}")
    pairs = _labelled(results, "")
    if not pairs:
        raise ValueError("there is no result to plot: the list is empty")
    if labels is not None:
        if isinstance(labels, str) or len(labels) != len(pairs):
            raise ValueError(f"labels must hold one name for each of {len(pairs)} runs")
        pairs = [(str(label), result) for label, (_, result) in zip(labels, pairs, strict=True)]
    for label, result in pairs:
        if not result.trace:
            raise ValueError(f"{label or 'the result'} holds no iterations to plot")
    return [
        Run(
            label,
            result.column(attributes[x]),
            result.column("primal"),
            result.column("dual"),
            result.column("relative_gap"),
        )
        for label, result in pairs
    ]


def _labelled(results: Any, prefix: str) -> list[tuple[str, SolveResult]]:
    """Flatten what the user gave into labelled results."""
    if isinstance(results, SolveResult):
        return [(prefix, results)]
    if isinstance(results, Mapping):
        items = [(str(key), value) for key, value in results.items()]
    elif isinstance(results, list | tuple):
        items = [(str(k + 1), value) for k, value in enumerate(results)]
    elif hasattr(results, "results_"):
        inner = results.results_
        if len(inner) == 1:
            return [(prefix, inner[0])]
        classes = getattr(results, "classes_", ())
        names = classes if len(classes) == len(inner) else range(1, len(inner) + 1)
        items = [(str(name), result) for name, result in zip(names, inner, strict=True)]
    elif hasattr(results, "fit"):
        raise ValueError(f"this {type(results).__name__} is not fitted yet: call fit first")
    else:
        raise TypeError(
            "plot_convergence takes a fitted estimator, a SolveResult, or a list or dict of "
            f"these, got {type(results).__name__}"
        )
    return [
        pair
        for name, value in items
        for pair in _labelled(value, f"{prefix} {name}" if prefix else name)
    ]


# -- drawing ------------------------------------------------------------------


def _draw_panels(figure: Figure, runs: list[Run], x: str) -> Axes:
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    _draw_objectives(upper, runs)
    _draw_gaps(lower, runs)
    if len(runs) > 1 and not _fit_in_a_row(runs):
        _name_in_legend(upper, runs, loc="upper left", bbox_to_anchor=(1.0, 1.02))
    _finish_x(lower, runs, x)
    upper.set_title(_headline(runs, x), loc="left", fontsize="medium")
    return upper


def _headline(runs: list[Run], x: str) -> str:
    what = "Gap of" if len(runs) == 1 else "Gaps of at most"
    worst = format_percent(max(float(run.gap[-1]) for run in runs))
    ends = [_amount(end) for end in sorted(run.x[-1] for run in runs)]
    spent = ends[0] if ends[0] == ends[-1] else f"{ends[0]} to {ends[-1]}"
    unit = x if x == "seconds" or spent == "1" else "iterations"
    return f"{what} {worst} after {spent} {unit}"


def _amount(value: Any) -> str:
    return f"{value:.2g}" if isinstance(value, float | np.floating) else str(value)


def _draw_objectives(ax: Axes, runs: list[Run]) -> None:
    several = len(runs) > 1
    if several:
        runs = [run.scaled(1.0 / run.primal[-1]) if run.primal[-1] > 0 else run for run in runs]
    for run, colour in zip(runs, _colours(runs), strict=True):
        style = _style(run, several)
        above, below = (colour, colour) if several else (BLUE, ORANGE)
        if len(runs) <= MOST_SHADED:
            shade = colour if several else GREY
            ax.fill_between(run.x, run.dual, run.primal, color=shade, alpha=0.15, linewidth=0)
        ax.plot(run.x, run.primal, color=above, label=run.label or "objective", **style)
        ax.plot(run.x, run.dual, color=below, **style)
        if len(run.x) == 1:
            ax.vlines(run.x, run.dual, run.primal, color=GREY, alpha=0.4, linewidth=1)
    low, high = _window(runs)
    ax.set_ylim(low, high)
    ax.set_ylabel("objective / final objective" if several else "objective")
    _name_curves(ax, runs, low, high)
    _plain(ax)


def _window(runs: list[Run]) -> tuple[float, float]:
    """Limits that show where the curves meet, and, if there is room, where they begin."""
    lows, highs = [], []
    for run in runs:
        first, middle = int(SKIPPED * len(run.x)), len(run.x) // 2
        final, low = run.primal[-1], run.dual[first]
        lows.append(low)
        highs.append(max(run.primal[middle], min(run.primal[first], 2.5 * final - 1.5 * low)))
    low, high = float(np.median(lows)), float(np.median(highs))
    margin = MARGIN * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _name_curves(ax: Axes, runs: list[Run], low: float, high: float) -> None:
    """Write 'objective' above and 'lower bound' below the curves, where these are apart."""
    several = len(runs) > 1
    x = max((run.x for run in runs), key=lambda values: float(values[-1]))
    above = np.max([np.interp(x, run.x, run.primal) for run in runs], axis=0)
    below = np.min([np.interp(x, run.x, run.dual) for run in runs], axis=0)
    start = f" (from {above[0]:.4g})" if above[0] > high and not several else ""
    inset = 0.9 * MARGIN / (1.0 + 2.0 * MARGIN) * (high - low)
    for values, name, up, colour in (
        (above, f"objective{start}", True, BLUE),
        (below, "lower bound", False, ORANGE),
    ):
        seen = np.flatnonzero((values <= high - inset) & (values >= low + inset))
        at = seen[len(seen) // 20] if len(seen) else len(values) - 1
        ax.annotate(
            name + "s" * several,
            (x[at], values[at]),
            xytext=(7, 5 if up else -5),
            textcoords="offset points",
            va="bottom" if up else "top",
            color=GREY if several else colour,
        )


def _draw_gaps(ax: Axes, runs: list[Run]) -> None:
    several = len(runs) > 1
    positive = np.concatenate([run.gap[run.gap > 0] for run in runs])
    floor = positive.min() / 10 if len(positive) else 1e-4  # stands for a gap of 0
    ends = [max(float(run.gap[-1]), floor) for run in runs]
    for run, end, colour in zip(runs, ends, _colours(runs), strict=True):
        shade = colour if several else GREY
        style = _style(run, several)
        ax.plot(run.x, np.maximum(run.gap, floor), color=shade, label=run.label, **style)
        ax.plot(run.x[-1], end, "o", color=shade, markersize=4)
    ax.set_yscale("log")
    room = 30.0 if several else 5.0  # below the ends, for words
    ax.set_ylim(min(ends) / room, 2.0 * max(positive.max(initial=floor), floor))
    ax.yaxis.set_major_formatter(lambda value, _: format_percent(value))
    ax.yaxis.set_minor_formatter(lambda value, _: "")
    ax.set_ylabel("relative gap")
    if not several:
        final = runs[0].gap[-1]
        ax.annotate(
            format_percent(final) if final > 0 else "0: the optimum",
            (runs[0].x[-1], ends[0]),
            xytext=(0, -7),
            textcoords="offset points",
            ha="right",
            va="top",
            color=GREY,
        )
    elif _fit_in_a_row(runs):
        _name_in_a_row(ax, runs, ends)
    _plain(ax)


# -- names of runs ------------------------------------------------------------


def _named(runs: list[Run]) -> list[int]:
    """The runs that get a name, in the order of their ends: all, or the slowest few."""
    order = sorted(range(len(runs)), key=lambda k: float(runs[k].x[-1]))
    return order if len(order) <= MOST_NAMES else order[-5:]


def _fit_in_a_row(runs: list[Run]) -> bool:
    return sum(_width(runs[k]) for k in _named(runs)) < 0.7


def _width(run: Run) -> float:
    """Of the run's name, roughly, as a part of the panel."""
    return 0.02 + 0.012 * len(run.label)


def _name_in_legend(ax: Axes, runs: list[Run], **place: Any) -> None:
    """List the names; for those too long to stand at the ends."""
    named = _named(runs)
    legend = ax.legend(
        [ax.lines[2 * k] for k in named],
        [runs[k].label for k in named],
        title="the slowest" if len(named) < len(runs) else None,
        frameon=False,
        fontsize="small",
        **place,
    )
    colours = _colours(runs)
    for k, text in zip(named, legend.get_texts(), strict=True):
        text.set_color(colours[k])


def _name_in_a_row(ax: Axes, runs: list[Run], ends: list[float]) -> None:
    """Write the names in a row below the ends, each tied to its own."""
    named = _named(runs)
    colours = _colours(runs)
    left, right = _x_limits(runs)
    wanted = [(float(runs[k].x[-1]) - left) / (right - left) for k in named]
    places = _spread(wanted, [_width(runs[k]) for k in named])
    for k, place in zip(named, places, strict=True):
        ax.annotate(
            runs[k].label,
            (runs[k].x[-1], ends[k]),
            xytext=(place, 0.05),
            textcoords="axes fraction",
            ha="center",
            va="bottom",
            color=colours[k],
            fontsize="small",
            arrowprops={"arrowstyle": "-", "color": colours[k], "linewidth": 0.6, "alpha": 0.6},
        )


def _spread(wanted: Sequence[float], widths: Sequence[float]) -> np.ndarray:
    """Centres near the wanted ones, increasing, that keep names of these widths apart."""
    centres = np.array(wanted)
    pushed_right, pushed_left = centres.copy(), centres.copy()
    apart = (np.array(widths[1:]) + np.array(widths[:-1])) / 2
    for k in range(1, len(centres)):
        pushed_right[k] = max(centres[k], pushed_right[k - 1] + apart[k - 1])
        pushed_left[-k - 1] = min(centres[-k - 1], pushed_left[-k] - apart[-k])
    places = (pushed_right + pushed_left) / 2  # both keep the distance, so does their mean
    places[-1] = min(places[-1], 1.0 - widths[-1] / 2)
    for k in range(2, len(places) + 1):
        places[-k] = min(places[-k], places[-k + 1] - apart[-k + 1])
    return places


# -- style --------------------------------------------------------------------


def _colours(runs: list[Run]) -> list[Any]:
    """One per run: few well apart, many in the order of their ends."""
    if len(runs) <= len(FEW_COLOURS):
        return list(FEW_COLOURS[: len(runs)])
    import matplotlib

    ranks = np.argsort(np.argsort([run.x[-1] for run in runs], kind="stable"))
    return list(matplotlib.colormaps["viridis"](0.85 * ranks / (len(runs) - 1)))


def _style(run: Run, several: bool) -> dict[str, Any]:
    marks = {"marker": "o", "markersize": 4} if len(run.x) <= MOST_MARKED else {}
    return {"linewidth": 1.2 if several else 1.8, **marks}


def _x_limits(runs: list[Run]) -> tuple[float, float]:
    first = min(float(run.x[0]) for run in runs)
    last = max(float(run.x[-1]) for run in runs)
    margin = 0.04 * (last - first) or 0.5 * (last or 1.0)
    return first - margin, last + margin


def _finish_x(ax: Axes, runs: list[Run], x: str) -> None:
    ax.set_xlabel(x)
    ax.set_xlim(*_x_limits(runs))
    if x == "iteration":
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
