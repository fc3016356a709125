"""Plots of a path of C.

The upper panel shows the score of the held-out rows against C, with every fold and their mean,
or the iterations where there are no scores. The lower panel shows the relative gap
that was left at each C, the worst of all folds and classes, on a logarithmic axis: scores
that lie closer together than the gaps allow need not mean anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .plots import BLUE, GREY, ORANGE, SIZE, _plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SMALL = (6.0, 4.0)  # inches

# A gap of zero has no place on a logarithmic axis.
SMALLEST_GAP = 1e-16


def plot_path(path: Any, *, scores: Any = None, ax: Axes | None = None) -> Axes:
    """Plot score and gap along a path of C.

    Parameters
    ----------
    path : LinearSVCCV or LinearSVCPath
        A fitted search, or a path.
    scores : array-like, shape (n_Cs,) or (n_folds, n_Cs), optional
        Of the models of a path, from data of your own; a search has its own.
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
    Cs, gaps, iterations = Cs[order], gaps[order], iterations[order]
    lower = None
    if ax is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=SIZE, layout="constrained")
        ax, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    if folds is None:
        ax.plot(Cs, iterations, color=BLUE, marker="o", markersize=4)
        ax.set_ylabel("iterations")
        ax.set_ylim(bottom=0)
    else:
        _draw_scores(ax, Cs, folds[:, order], getattr(path, "C_", None))
    for panel in (ax,) if lower is None else (ax, lower):
        panel.set_xscale("log")
        _plain(panel)
    if lower is None:
        ax.set_xlabel("C")
        return ax
    lower.plot(Cs, np.maximum(gaps, SMALLEST_GAP), color=ORANGE, marker="o", markersize=4)
    lower.set_yscale("log")
    lower.set_ylabel("largest relative gap")
    lower.set_xlabel("C")
    return ax


def _curves(path: Any, scores: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
    """Values of C, scores by fold, largest gaps and iterations."""
    if hasattr(path, "scores_"):
        if scores is not None:
            raise ValueError("scores belong to a path without any; this search has its own")
        gaps = [
            [max(c.relative_gap for c in fits) for fits in fold] for fold in path.fold_certificates_
        ]
        return path.Cs_, path.scores_, np.max(gaps, axis=0), path.n_iters_.sum(axis=0)
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
    mean = folds.mean(axis=0)
    several = len(folds) > 1
    if several:
        ax.plot(Cs, folds.T, color=GREY, linewidth=0.7, alpha=0.5)
        ax.plot([], [], color=GREY, linewidth=0.7, alpha=0.5, label=f"each of {len(folds)} folds")
    ax.plot(Cs, mean, color=BLUE, marker="o", markersize=4, label="mean" if several else None)
    if chosen is not None:
        ax.axvline(chosen, color=ORANGE, linewidth=1.0, linestyle="--", label=f"C = {chosen:.3g}")
    if several or chosen is not None:
        ax.legend(frameon=False)
    ax.set_ylabel("score of held-out rows")


def path_figure(C: Sequence[float], values: Sequence[float], best: float, name: str) -> Figure:
    """A figure that pyplot does not know.

    Parameters
    ----------
    C, values : sequences of float
        The points; a value may be NaN.
    best : float
        The C that is marked.
    name : str
        Of the measure.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=SMALL, layout="constrained")
    ax = figure.add_subplot()
    ax.plot(C, values, "o-", color=BLUE)
    chosen = list(C).index(best)
    ax.plot(best, values[chosen], "o", color=ORANGE, markersize=9, label=f"best: C = {best:g}")
    ax.set_xscale("log")
    ax.set_xlabel("C")
    ax.set_ylabel(f"{name} on the validation data")
    ax.legend(frameon=False)
    _plain(ax)
    return figure
