"""Risks of rows that have one score per class: means of the losses

max_c (1[c ≠ y] + s_c − s_y)    of Crammer and Singer,
log Σ_c exp(s_c) − s_y          multinomial logistic.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from ..loops import multiclass, multinomial
from ..loops.bounded import FEW, MANY, ROUNDING
from .base import Array, Biases, Mixture, Risk, Targets


class ClassScoresRisk(Risk):
    """Base of these risks. ``_loops`` has the value, the coefficients and the slopes of a loss."""

    has_bias = False
    _loops: ModuleType

    def __init__(self, classes: int) -> None:
        self.outputs = classes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.outputs})"

    def value(self, scores: np.ndarray, bias: float, targets: Targets) -> float:
        return self._loops.value(scores, targets.labels, targets.weights)

    def coefficients(
        self, scores: np.ndarray, out: np.ndarray, mixture: Mixture, targets: Targets
    ) -> None:
        self._loops.coefficients(scores, targets.labels, targets.weights, out)

    def line_slopes(
        self, start: Array, end: Array, biases: Biases, steps: Array, targets: Targets
    ) -> Array:
        slopes = np.empty(len(steps))
        self._loops.line_slopes(start, end, steps, targets.labels, targets.weights, slopes)
        return slopes


class CrammerSingerRisk(ClassScoresRisk):
    """The hinge of Crammer and Singer: the class that violates the margin most decides."""

    _loops = multiclass

    def upper(
        self, high: Array, low: Array | None, error: Array, bias: float, targets: Targets
    ) -> float:
        low = np.zeros(high.shape) if low is None else low
        rows, labels = np.arange(len(high)), targets.labels
        own = high[rows, labels][:, None]
        apart = high - own
        part = apart - high
        rest = (high - (apart - part)) - (own + part)  # apart + rest is exact
        # Near the margin apart + 1 is exact, so the bound keeps the digits of ``rest``.
        above = (apart + 1.0) + (rest + (low - low[rows, labels][:, None]))
        above += error + error[rows, labels][:, None] + FEW * ROUNDING * np.abs(above)
        above[rows, labels] = 0.0
        return float(np.sum(targets.weights * above.max(axis=1))) * (1.0 + MANY * ROUNDING)

    def offset(self, coef: np.ndarray, targets: Targets) -> float:
        return -float(np.sum(coef[np.arange(len(coef)), targets.labels]))


class MultinomialRisk(ClassScoresRisk):
    """The multinomial logistic loss. Probabilities of classes are proportional to exp(s_c)."""

    smooth = True
    work = 10.0
    _loops = multinomial

    def upper(
        self, high: Array, low: Array | None, error: Array, bias: float, targets: Targets
    ) -> float:
        low = np.zeros(high.shape) if low is None else low
        rows, labels = np.arange(len(high)), targets.labels
        # The loss moves by no more than the scores of the row's own class and of one other class.
        error = error + np.abs(low) + FEW * ROUNDING * np.abs(high)
        losses = np.logaddexp.reduce(high - high[rows, labels][:, None], axis=1)
        # Each addition in the sum over classes has a rounding error.
        losses *= 1.0 + FEW * high.shape[1] * ROUNDING
        losses += error.max(axis=1) + error[rows, labels] + MANY * ROUNDING * losses
        return float(np.sum(targets.weights * losses)) * (1.0 + MANY * ROUNDING)

    def offset(self, coef: np.ndarray, targets: Targets) -> float:
        from scipy.special import entr  # −p·log p

        counting = targets.weights > 0.0
        weights = targets.weights[counting, None]
        p = coef[counting] / weights
        p[np.arange(len(p)), targets.labels[counting]] += 1.0
        return float(np.sum(weights * entr(np.maximum(p, 0.0))))
