"""Reliability plots: how often a class occurs among rows whose probability is about p.

Rows are sorted by the probability of the class and cut into bins of as many rows each; a bin is a
point at its mean probability and the share of its rows that are of the class. Points of a
calibrated model lie on the diagonal, up to chance: the bars are two standard errors of the share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import check_integer
from .plots import FEW_COLOURS, GREY, _plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SQUARE = (5.0, 5.0)  # inches


def plot_calibration(
    model: Any, X: Any, y: Any, *, n_bins: int = 10, label: str = "", ax: Axes | None = None
) -> Axes:
    """Plot observed frequencies of classes against their predicted probabilities.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``
    X : array-like or sparse matrix, shape (n_samples, n_features)
        Rows that the model was not fitted to.
    y : array-like, shape (n_samples,)
        Their classes.
    n_bins : int, default=10
        Bins of as many rows each.
    label : str, optional
        Of the model, before the name of the class and the Brier score (the mean squared
        error of its probabilities).
    ax : matplotlib Axes, optional
        Where to draw, also over the curves of another model. Without it a new pyplot figure.

    Returns
    -------
    ax : matplotlib Axes
        One curve for two classes, that of the second; otherwise one per class.

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
        mean, share, error = _bins(known, own, n_bins)
        brier = f"Brier score {np.mean((known - own) ** 2):.3g}"
        name = " ".join([label] * bool(label) + [f"class {model.classes_[k]}"] * several)
        colour = FEW_COLOURS[(len(ax.containers)) % len(FEW_COLOURS)]
        ax.errorbar(
            mean,
            share,
            yerr=2.0 * error,
            color=colour,
            marker="o",
            markersize=4,
            elinewidth=0.7,
            label=f"{name}: {brier}" if name else brier,
        )
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("observed frequency")
    ax.set_aspect("equal")
    ax.legend(frameon=False, loc="upper left")
    _plain(ax)
    return ax


def _bins(
    probabilities: np.ndarray, own: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By bin: mean probability, share of rows of the class, and its standard error."""
    order = np.argsort(probabilities, kind="stable")
    bins = np.array_split(order, min(count, len(order)))
    mean = np.array([probabilities[rows].mean() for rows in bins])
    share = np.array([own[rows].mean() for rows in bins])
    sizes = np.array([len(rows) for rows in bins])
    return mean, share, np.sqrt(share * (1.0 - share) / sizes)
