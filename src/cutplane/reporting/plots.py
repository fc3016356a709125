"""Plots for users: the convergence of fits, a path of C, and the calibration of probabilities.

Every plot draws into axes that are given, or into a new pyplot figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import check_integer
from ..result import SolveResult
from .line import format_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito's colours, told apart by colour-blind readers.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#555555"
FEW_COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
SIZE = (7.0, 5.4)  # inches
SQUARE = (5.0, 5.0)
SKIPPED = 0.25  # this part of the iterations need not fit into the upper panel
MOST_MARKED = 15  # runs of more iterations are drawn without a mark for each
MOST_SHADED = 3  # with more runs the space between objective and bound is not shaded
MOST_NAMES, SLOWEST = 16, 5  # with more runs than MOST_NAMES the legend names the slowest only
SMALLEST_GAP = 1e-16  # drawn for smaller gaps, because a logarithmic axis has no 0


def plain(ax: Axes) -> None:
    """The style of all figures: a faint grid, and no frame at the top and the right."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)


# -- convergence --------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """The curves of one fit."""

    label: str
    x: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    gap: np.ndarray


def plot_convergence(
    results: Any,
    *,
    x: str = "iteration",
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
) -> Axes:
    """Plot objective, lower bound and gap of one or more fits.

    The upper panel shows how the objective falls and the lower bound rises until they meet. It is
    zoomed to the place where they meet, because the first iterations are often orders of magnitude
    away. The lower panel shows the relative gap on a logarithmic axis. The last point of a curve is
    the certificate of the fit. Several runs share the panels. Then each objective is divided by its
    final value, so that all of them meet at 1.

    Parameters
    ----------
    results : SolveResult, fitted estimator, or a list or dict of these
        A dict's keys are the labels. An estimator with several problems counts as one run per
        problem.
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
    return [_run(label, result, attributes[x]) for label, result in pairs]


def _run(label: str, result: SolveResult, x: str) -> Run:
    """The curves of a fit. They end with its certificate, not with its last iteration.

    The two differ in the last digits, because the solver computes the objective and the bound of
    the certificate anew from the data.
    """
    run = Run(label, *map(result.column, (x, "primal", "dual", "relative_gap")))
    proved = result.certificate
    if np.isfinite(proved.gap):
        run.primal[-1], run.dual[-1], run.gap[-1] = proved.primal, proved.dual, proved.relative_gap
    return run


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


def _draw_panels(figure: Figure, runs: list[Run], x: str) -> Axes:
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02)} if len(runs) > 1 else {}
    _draw_objectives(upper, runs, **beside)
    _draw_gaps(lower, runs)
    _finish_x(lower, runs, x)
    upper.set_title(_headline(runs, x), loc="left", fontsize="medium")
    return upper


def _headline(runs: list[Run], x: str) -> str:
    what = "Gap of" if len(runs) == 1 else "Gaps of at most"
    worst = format_percent(max(float(run.gap[-1]) for run in runs))
    few, many = (
        f"{end:.2g}" if isinstance(end, float | np.floating) else str(end)
        for end in (function(run.x[-1] for run in runs) for function in (min, max))
    )
    spent = few if few == many else f"{few} to {many}"
    unit = x if x == "seconds" or spent == "1" else "iterations"
    return f"{what} {worst} after {spent} {unit}"


def _draw_objectives(ax: Axes, runs: list[Run], **place: Any) -> None:
    """Draw objectives and bounds, of several runs relative to the end. ``place``: of the legend."""
    several = len(runs) > 1
    ends = [run.primal[-1] if several and run.primal[-1] > 0.0 else 1.0 for run in runs]
    low, high = _window(runs, ends)
    lines = []
    for run, end, colour in zip(runs, ends, _colours(runs), strict=True):
        primal, dual, style = run.primal / end, run.dual / end, _style(run, several)
        above, below = (colour, colour) if several else (BLUE, ORANGE)
        if len(runs) <= MOST_SHADED:
            shade = colour if several else GREY
            ax.fill_between(run.x, dual, primal, color=shade, alpha=0.15, linewidth=0)
        start = f" (from {primal[0]:.4g})" if primal[0] > high else ""
        name = run.label if several else f"objective{start}"
        lines += ax.plot(run.x, primal, color=above, label=name, **style)
        bound = ax.plot(run.x, dual, color=below, label="" if several else "lower bound", **style)
        if not several:
            lines += bound
        if len(run.x) == 1:
            ax.vlines(run.x, dual, primal, color=GREY, alpha=0.4, linewidth=1)
    ax.set(ylim=(low, high), ylabel="objective / final objective" if several else "objective")
    title = None
    if len(runs) > MOST_NAMES:
        slow = sorted(range(len(runs)), key=lambda k: float(runs[k].x[-1]))[-SLOWEST:]
        lines, title = [lines[k] for k in slow], "the slowest"
    ax.legend(handles=lines, title=title, frameon=False, fontsize="small", **place)
    plain(ax)


def _window(runs: list[Run], ends: Sequence[float]) -> tuple[float, float]:
    """Limits of the axis that show where the curves meet, and also where they begin if it fits."""
    lows, highs = [], []
    for run, end in zip(runs, ends, strict=True):
        first, middle = int(SKIPPED * len(run.x)), len(run.x) // 2
        final, low = run.primal[-1] / end, run.dual[first] / end
        lows.append(low)
        start = min(run.primal[first] / end, 2.5 * final - 1.5 * low)
        highs.append(max(run.primal[middle] / end, start))
    low, high = float(np.median(lows)), float(np.median(highs))
    margin = 0.15 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _draw_gaps(ax: Axes, runs: list[Run]) -> None:
    several = len(runs) > 1
    positive = np.concatenate([run.gap[run.gap > 0] for run in runs])
    floor = positive.min() / 10 if len(positive) else 1e-4  # stands for a gap of 0
    for run, colour in zip(runs, _colours(runs), strict=True):
        shade, gap = colour if several else GREY, np.maximum(run.gap, floor)
        ax.plot(run.x, gap, color=shade, label=run.label, **_style(run, several))
        ax.plot(run.x[-1], gap[-1], "o", color=shade, markersize=4)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda value, _: format_percent(value))
    ax.yaxis.set_minor_formatter(lambda value, _: "")
    ax.set_ylabel("relative gap")
    plain(ax)


def _colours(runs: list[Run]) -> list[Any]:
    """A colour per run: distinct ones for few runs, a scale in the order of the ends for many."""
    if len(runs) <= len(FEW_COLOURS):
        return list(FEW_COLOURS[: len(runs)])
    import matplotlib

    ranks = np.argsort(np.argsort([run.x[-1] for run in runs], kind="stable"))
    return list(matplotlib.colormaps["viridis"](0.85 * ranks / (len(runs) - 1)))


def _style(run: Run, several: bool) -> dict[str, Any]:
    marks = {"marker": "o", "markersize": 4} if len(run.x) <= MOST_MARKED else {}
    return {"linewidth": 1.2 if several else 1.8, **marks}


def _finish_x(ax: Axes, runs: list[Run], x: str) -> None:
    first = min(float(run.x[0]) for run in runs)
    last = max(float(run.x[-1]) for run in runs)
    margin = 0.04 * (last - first) or 0.5 * (last or 1.0)
    ax.set(xlim=(first - margin, last + margin), xlabel=x)
    if x == "iteration":
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


# -- a path of C --------------------------------------------------------------


def plot_path(path: Any, *, scores: Any = None, ax: Axes | None = None) -> Axes:
    """Plot score and gap along a path of C.

    The upper panel shows the score of the held-out rows against C, for every fold and for their
    mean. Without scores it shows the iterations. The lower panel shows the relative gap at each C,
    the largest of all folds and classes, on a logarithmic axis. If the gaps are large, small
    differences between scores may come from unfinished fits.

    Parameters
    ----------
    path : LinearSVCCV or LinearSVCPath
        A fitted search, or a path.
    scores : array-like, shape (n_Cs,) or (n_folds, n_Cs), optional
        Scores of the models of a path, on data of your own. A search has its own scores.
    ax : matplotlib Axes, optional
        Where to draw the scores, or the iterations if there are none. Without it a new pyplot
        figure gets two panels, the second with the relative gap.

    Returns
    -------
    ax : matplotlib Axes
        The panel with the scores. In a new figure the panel with the gap is
        ``ax.figure.axes[1]``.

    Examples
    --------
    >>> ax = plot_path(LinearSVCCV().fit(X, y))  # doctest: +SKIP
    >>> ax.figure.savefig("path.png")  # doctest: +SKIP
    """
    Cs, folds, gaps, iterations = _curves(path, scores)
    order = np.argsort(Cs, kind="stable")
    Cs = Cs[order]
    panels: list[Any] = [ax]
    if ax is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=SIZE, layout="constrained")
        panels = list(figure.subplots(2, 1, sharex=True, height_ratios=[3, 2]))
        panels[1].plot(Cs, np.maximum(gaps[order], SMALLEST_GAP), "o-", color=ORANGE, markersize=4)
        panels[1].set(yscale="log", ylabel="largest relative gap")
    upper = panels[0]
    if folds is None:
        upper.plot(Cs, iterations[order], "o-", color=BLUE, markersize=4)
        upper.set_ylabel("iterations")
        upper.set_ylim(bottom=0)
    else:
        _draw_scores(upper, Cs, folds[:, order], getattr(path, "C_", None))
    for panel in panels:
        panel.set_xscale("log")
        plain(panel)
    panels[-1].set_xlabel("C")
    return upper


def worst_gaps(search: Any) -> np.ndarray:
    """For each C of a search, the largest relative gap of all folds and problems."""
    return np.max(
        [
            [max(c.relative_gap for c in fits) for fits in fold]
            for fold in search.fold_certificates_
        ],
        axis=0,
    )


def _curves(path: Any, scores: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Values of C, scores by fold if there are any, largest gaps, and iterations."""
    if hasattr(path, "scores_"):
        if scores is not None:
            raise ValueError("scores belong to a path without any; this search has its own")
        return path.Cs_, path.scores_, worst_gaps(path), path.n_iters_.sum(axis=0)
    if not hasattr(path, "relative_gaps"):
        raise ValueError(
            f"plot_path takes a fitted LinearSVCCV or a LinearSVCPath, got {type(path).__name__}"
        )
    folds = None
    if scores is not None:
        folds = np.atleast_2d(np.asarray(scores, dtype=np.float64))
        if folds.ndim != 2 or folds.shape[1] != len(path):
            raise ValueError(
                f"scores must hold one number for each of {len(path)} values of C, "
                f"got shape {np.shape(scores)}"
            )
    return path.Cs, folds, path.relative_gaps, path.n_iters


def _draw_scores(ax: Axes, Cs: np.ndarray, folds: np.ndarray, chosen: float | None) -> None:
    several = len(folds) > 1
    if several:
        lines = ax.plot(Cs, folds.T, color=GREY, linewidth=0.7, alpha=0.5)
        lines[0].set_label(f"each of {len(folds)} folds")
    mean = "mean" if several else None
    ax.plot(Cs, folds.mean(axis=0), color=BLUE, marker="o", markersize=4, label=mean)
    if chosen is not None:
        ax.axvline(chosen, color=ORANGE, linewidth=1.0, linestyle="--", label=f"C = {chosen:.3g}")
    if several or chosen is not None:
        ax.legend(frameon=False)
    ax.set_ylabel("score of held-out rows")


# -- calibration --------------------------------------------------------------


def plot_calibration(
    model: Any, X: Any, y: Any, *, n_bins: int = 10, label: str = "", ax: Axes | None = None
) -> Axes:
    """Plot observed frequencies of classes against their predicted probabilities.

    The rows are sorted by the probability of the class and divided into bins of equally many rows.
    A bin is a point at its mean probability and at the share of its rows that are of the class. The
    points of a calibrated model lie near the diagonal. The bars of two standard errors show how
    near, up to chance.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``
    X : array-like or sparse matrix, shape (n_samples, n_features)
        Rows that the model was not fitted to.
    y : array-like, shape (n_samples,)
        The classes of the rows.
    n_bins : int, default=10
        Number of bins.
    label : str, optional
        A name of the model for the legend. The name of the class and the Brier score, the mean
        squared error of the probabilities, follow it.
    ax : matplotlib Axes, optional
        Where to draw. It may have the curves of other models. Without it a new pyplot figure is
        made.

    Returns
    -------
    ax : matplotlib Axes
        With one curve per class; for two classes with the curve of the second only.

    Examples
    --------
    >>> model = LinearSVCCV(calibrate="sigmoid").fit(X, y)  # doctest: +SKIP
    >>> ax = plot_calibration(model, X_test, y_test)  # doctest: +SKIP
    """
    check_integer("n_bins", n_bins, at_least=1)
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"this {type(model).__name__} has no probabilities; fit it with calibrate='sigmoid', "
            "or wrap it in sklearn.calibration.CalibratedClassifierCV"
        )
    probabilities, labels = model.predict_proba(X), np.asarray(y)
    if labels.shape != (len(probabilities),):
        raise ValueError(f"y must hold {len(probabilities)} labels, got shape {labels.shape}")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=SQUARE, layout="constrained").add_subplot()
    if not ax.lines:
        ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=1.0, linestyle="--")
    several = len(model.classes_) > 2
    for k in range(0 if several else 1, len(model.classes_)):
        own, known = labels == model.classes_[k], probabilities[:, k]
        mean, share, rows = calibration_bins(known, own, n_bins)
        error = np.sqrt(share * (1.0 - share) / rows)
        names = [label] * bool(label) + [f"class {model.classes_[k]}"] * several
        brier = f"Brier score {np.mean((known - own) ** 2):.3g}"
        ax.errorbar(
            mean,
            share,
            yerr=2.0 * error,
            fmt="o-",
            color=FEW_COLOURS[len(ax.containers) % len(FEW_COLOURS)],
            markersize=4,
            elinewidth=0.7,
            label=": ".join([" ".join(names), brier] if names else [brier]),
        )
    ax.set(xlabel="predicted probability", ylabel="observed frequency", aspect="equal")
    ax.legend(frameon=False, loc="upper left")
    plain(ax)
    return ax


def calibration_bins(
    values: np.ndarray, own: np.ndarray, count: int, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide rows into ``count`` bins of equally many rows, by rising value.

    Returns for every bin the mean value, the share of rows with ``own`` true, and the number of
    rows. Bins without weight are left out.
    """
    order = np.argsort(values, kind="stable")
    bins = []
    for rows in np.array_split(order, min(count, len(order))):
        weight = np.ones(len(rows)) if weights is None else weights[rows]
        if weight.sum() > 0.0:
            mean, share = (np.average(column[rows], weights=weight) for column in (values, own))
            bins.append((mean, share, len(rows)))
    mean, share, sizes = np.array(bins).T
    return mean, share, sizes
