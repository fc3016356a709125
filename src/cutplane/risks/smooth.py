"""Squared hinge and logistic loss."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from ..loops import logistic, squared_hinge
from ..loops.bounded import MANY, ROUNDING
from .base import Scores, SmoothRisk, Targets
from .hinge import margin_losses


class _KernelRisk(SmoothRisk):
    """A smooth risk whose kernels are the functions of one module of ``loops``."""

    loops: ModuleType

    def value(self, scores: Scores, targets: Targets) -> float:
        return self.loops.value(scores.values, scores.bias, targets.labels, targets.weights)

    def coefficients(self, scores: Scores, targets: Targets, out: np.ndarray) -> None:
        self.loops.coefficients(scores.values, scores.bias, targets.labels, targets.weights, out)

    def bias_derivatives(self, scores: Scores, targets: Targets) -> tuple[float, float]:
        return self.loops.bias_derivatives(
            scores.values, scores.bias, targets.labels, targets.weights
        )

    def line(self, start: Scores, end: Scores, k: float, targets: Targets) -> tuple[float, float]:
        return self.loops.line_value(
            start.values, start.bias, end.values, end.bias, k, targets.labels, targets.weights
        )

    def line_and_bias(
        self,
        start: np.ndarray,
        end: np.ndarray,
        points: Sequence[tuple[float, float]],
        targets: Targets,
    ) -> np.ndarray:
        steps, biases = np.array(points).T.copy()
        sums = np.empty((len(points), 7))
        self.loops.line_and_bias(start, end, steps, biases, targets.labels, targets.weights, sums)
        return sums

    def offset(self, coef: np.ndarray, targets: Targets) -> float:
        return self.loops.offset(coef, targets.weights)


class SquaredHingeRisk(_KernelRisk):
    """Mean of max(0, 1 − y s)²."""

    loops = squared_hinge

    def upper(
        self, high: np.ndarray, low: np.ndarray | float, error: np.ndarray, targets: Targets
    ) -> float:
        loss = np.square(margin_losses(high, low, error, targets.labels))
        return float(np.sum(targets.weights * loss)) * (1.0 + MANY * ROUNDING)

    def clip_dual(self, u: np.ndarray, targets: Targets) -> np.ndarray:
        return np.where(targets.weights > 0.0, np.maximum(u, 0.0), 0.0)


class LogisticRisk(_KernelRisk):
    """Mean of log(1 + exp(−y s))."""

    loops = logistic
    work = 10.0
