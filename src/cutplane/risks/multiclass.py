"""Losses of one score per class.

Crammer–Singer hinge: mean of max_c (1[c ≠ y] + s_c − s_y). Multinomial logistic: mean of
log Σ_c exp(s_c) − s_y.
"""

from __future__ import annotations

import numpy as np

from ..loops import multiclass as loops
from ..loops import multinomial
from ..loops.bounded import FEW, MANY, ROUNDING
from .base import Risk, Scores, Targets


class CrammerSingerRisk(Risk):
    """One score per class; a row's loss is that of its most violating class."""

    has_bias = False

    def __init__(self, classes: int) -> None:
        self.outputs = classes

    def __repr__(self) -> str:
        return f"CrammerSingerRisk({self.outputs})"

    def value(self, scores: Scores, targets: Targets) -> float:
        return loops.value(scores.values, targets.labels, targets.weights)

    def upper(
        self, high: np.ndarray, low: np.ndarray | float, error: np.ndarray, targets: Targets
    ) -> float:
        rows, labels = np.arange(len(high)), targets.labels
        own = high[rows, labels][:, None]
        low = np.broadcast_to(low, high.shape)
        apart = high - own
        part = apart - high
        rest = (high - (apart - part)) - (own + part)  # apart + rest is exact
        # Near the margin apart + 1 is exact, so that the smaller digits count.
        above = (apart + 1.0) + (rest + (low - low[rows, labels][:, None]))
        above += error + error[rows, labels][:, None] + FEW * ROUNDING * np.abs(above)
        above[rows, labels] = 0.0
        return float(np.sum(targets.weights * above.max(axis=1))) * (1.0 + MANY * ROUNDING)

    def coefficients(
        self,
        scores: np.ndarray,
        low: float,
        high: float,
        part: float,
        targets: Targets,
        out: np.ndarray,
    ) -> None:
        loops.coefficients(scores, targets.labels, targets.weights, out)

    def offset(self, coef: np.ndarray, targets: Targets) -> float:
        return loops.offset(coef, targets.labels)

    def line_slopes(
        self, start: Scores, end: Scores, steps: np.ndarray, targets: Targets
    ) -> np.ndarray:
        slopes = np.empty(len(steps))
        loops.line_slopes(start.values, end.values, steps, targets.labels, targets.weights, slopes)
        return slopes


class MultinomialRisk(Risk):
    """One score per class, whose exponentials are proportional to the classes' probabilities."""

    has_bias = False
    smooth = True
    work = 10.0

    def __init__(self, classes: int) -> None:
        self.outputs = classes

    def __repr__(self) -> str:
        return f"MultinomialRisk({self.outputs})"

    def value(self, scores: Scores, targets: Targets) -> float:
        return multinomial.value(scores.values, targets.labels, targets.weights)

    def upper(
        self, high: np.ndarray, low: np.ndarray | float, error: np.ndarray, targets: Targets
    ) -> float:
        rows, labels = np.arange(len(high)), targets.labels
        # The loss moves by no more than the scores of some class and of the own one.
        error = error + np.abs(low) + FEW * ROUNDING * np.abs(high)
        losses = np.logaddexp.reduce(high - high[rows, labels][:, None], axis=1)
        # Every one of the sums has a rounding error of its own.
        losses *= 1.0 + FEW * high.shape[1] * ROUNDING
        losses += error.max(axis=1) + error[rows, labels] + MANY * ROUNDING * losses
        return float(np.sum(targets.weights * losses)) * (1.0 + MANY * ROUNDING)

    def coefficients(
        self,
        scores: np.ndarray,
        low: float,
        high: float,
        part: float,
        targets: Targets,
        out: np.ndarray,
    ) -> None:
        multinomial.coefficients(scores, targets.labels, targets.weights, out)

    def offset(self, coef: np.ndarray, targets: Targets) -> float:
        return multinomial.offset(coef, targets.labels, targets.weights)

    def line_slopes(
        self, start: Scores, end: Scores, steps: np.ndarray, targets: Targets
    ) -> np.ndarray:
        slopes = np.empty(len(steps))
        multinomial.line_slopes(
            start.values, end.values, steps, targets.labels, targets.weights, slopes
        )
        return slopes
