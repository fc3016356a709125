"""Probabilities from scores s of rows that the model was not trained on.

    sigmoid     P(class | s) = 1 / (1 + exp(a·s + b)), a and b by maximum likelihood
    isotonic    P(class | s) = the increasing function of s with the least squared error

The sigmoid is Platt's (1999), with his targets: (n₊ + 1)/(n₊ + 2) for rows of the class and
1/(n₋ + 2) for the others, where n₊ and n₋ are the sums of their weights. Isotonic regression is
scikit-learn's. With more than two classes each class is calibrated against the rest, and the
probabilities of a row are divided by their sum, as in ``sklearn.calibration``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from .._checks import check_choice

CALIBRATIONS = ("sigmoid", "isotonic")


def check_calibrate(calibrate: Any) -> str | None:
    """None or the name of a calibration."""
    if calibrate is None:
        return None
    try:
        return check_choice("calibrate", calibrate, CALIBRATIONS)
    except ValueError as error:
        raise ValueError(f"{error}; None for no probabilities") from None


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities.

    Attributes
    ----------
    method : {'sigmoid', 'isotonic'}
    curves : list of ndarray of float64, shape (2, n_knots)
        One curve per class; with two classes only the curve of the second. The curve of a sigmoid
        is the column (a, b). The curve of isotonic regression has increasing scores in row 0 and
        their probabilities in row 1. Between two scores the probability is interpolated; beyond the
        first and the last score it is constant.
    """

    method: str
    curves: list[np.ndarray]

    @classmethod
    def of(
        cls,
        method: str,
        classes: np.ndarray,
        held_out: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]],
    ) -> Calibration:
        """Fit a calibration.

        Parameters
        ----------
        method : {'sigmoid', 'isotonic'}
        classes : ndarray, shape (n_classes,)
            Labels of the classes.
        held_out : iterable of (scores, encoded, weights)
            An entry per fold, about the rows that it held out: their scores, shape (rows,) for two
            classes and (rows, n_classes) for more; the numbers of their classes; their weights.
        """
        scores, encoded, weights = (np.concatenate(parts) for parts in zip(*held_out, strict=True))
        mass = np.bincount(encoded, weights, minlength=len(classes))
        if not np.all(mass > 0.0):
            raise ValueError(
                f"calibrate={method!r} needs held-out rows of every class, but none of class "
                f"{classes[mass.argmin()]!r} has a positive weight; change cv, or drop the class"
            )
        curve = _sigmoid if method == "sigmoid" else _isotonic
        if len(classes) == 2:
            return cls(method, [curve(scores, encoded == 1, weights)])
        return cls(
            method, [curve(scores[:, k], encoded == k, weights) for k in range(len(classes))]
        )

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, shape (rows, n_classes), from scores of a model."""
        columns = [
            self._evaluate(curve, column)
            for curve, column in zip(self.curves, np.atleast_2d(scores.T), strict=True)
        ]
        if len(columns) == 1:
            return np.column_stack([1.0 - columns[0], columns[0]])
        each = np.column_stack(columns)
        total = each.sum(axis=1, keepdims=True)
        # All classes of a row may have probability 0; then they get equal ones.
        alike = np.full_like(each, 1.0 / len(columns))
        return np.divide(each, total, out=alike, where=total > 0.0)

    def log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities. They may be −∞ with isotonic regression."""
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities(scores))

    def _evaluate(self, curve: np.ndarray, scores: np.ndarray) -> np.ndarray:
        if self.method == "sigmoid":
            (a,), (b,) = curve
            return expit(-(a * scores + b))
        return np.interp(scores, curve[0], curve[1])


def check_calibration(model: Any, classes: int) -> None:
    """Refuse a model from a file if its calibration cannot come from a fit."""
    calibration = getattr(model, "calibration_", None)
    if calibration is None:
        return
    if not isinstance(calibration, Calibration):
        raise ValueError(f"calibration_ must be a calibration, got {calibration!r:.40}")
    check_choice("calibration_.method", calibration.method, CALIBRATIONS)
    curves, count = calibration.curves, 1 if classes == 2 else classes
    known = isinstance(curves, list) and len(curves) == count
    if not known or not all(_is_curve(curve, calibration.method) for curve in curves):
        raise ValueError(f"calibration_ must hold {count} curves for {classes} classes")


def _is_curve(curve: Any, method: str) -> bool:
    if not isinstance(curve, np.ndarray) or curve.dtype != np.float64 or curve.ndim != 2:
        return False
    if len(curve) != 2 or not curve.size or not np.all(np.isfinite(curve)):
        return False
    if method == "sigmoid":
        return curve.shape[1] == 1
    scores, probabilities = curve
    inside = probabilities[0] >= 0.0 and probabilities[-1] <= 1.0
    return bool(inside and np.all(np.diff(scores) > 0.0) and np.all(np.diff(probabilities) >= 0.0))


def _sigmoid(scores: np.ndarray, own: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """a and b with the largest likelihood, as a column.

    Minimises the mean of log(1 + exp(z)) − target·z over z = −(a·s + b). Scores are first scaled to
    mean 0 and deviation 1, so that both parameters are about 1.
    """
    positive, negative = weights[own].sum(), weights[~own].sum()
    targets = np.where(own, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))
    share = weights / weights.sum()
    centre, deviation = float(scores.mean()), float(scores.std()) or 1.0
    points = np.stack([(scores - centre) / deviation, np.ones(len(scores))])

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        z = parameters @ points
        slope = share * (expit(z) - targets)
        return float(share @ (np.logaddexp(0.0, z) - targets * z)), points @ slope

    def curvature(parameters: np.ndarray) -> np.ndarray:
        probability = expit(parameters @ points)
        return (points * (share * probability * (1.0 - probability))) @ points.T

    start = np.array([0.0, np.log((positive + 1.0) / (negative + 1.0))])
    found = minimize(
        loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-10}
    )
    a, b = -found.x
    return np.array([[a / deviation], [b - a * centre / deviation]])


def _isotonic(scores: np.ndarray, own: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The knots of isotonic regression: scores above probabilities."""
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0).fit(scores, own.astype(np.float64), weights)
    knots = np.stack([fitted.X_thresholds_, fitted.y_thresholds_])
    return np.ascontiguousarray(knots, dtype=np.float64)
