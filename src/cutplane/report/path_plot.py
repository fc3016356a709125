"""Plot of a path: a measure on validation data over C, the best value marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .plots import BLUE, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (6.0, 4.0)  # inches


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

    figure = Figure(figsize=SIZE, layout="constrained")
    ax = figure.add_subplot()
    ax.plot(C, values, "o-", color=BLUE)
    chosen = list(C).index(best)
    ax.plot(best, values[chosen], "o", color=ORANGE, markersize=9, label=f"best: C = {best:g}")
    ax.set_xscale("log")
    ax.set_xlabel("C")
    ax.set_ylabel(f"{name} on the validation data")
    ax.legend(frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return figure
