"""Crammer–Singer multiclass hinge: mean of max_c (1[c ≠ y] + s_c − s_y)."""

from __future__ import annotations

import numpy as np

from ..loops import multiclass as loops
from .base import Risk, Scores, Targets


class CrammerSingerRisk(Risk):
    """One score per class; a row's loss is that of its most violating class."""

    has_bias = False

    def __init__(self, classes: int) -> None:
        self.outputs = classes

    def value(self, scores: Scores, targets: Targets) -> float:
        return loops.value(scores.values, targets.labels, targets.weights)

    def coefficients(self, scores: Scores, targets: Targets, out: np.ndarray) -> None:
        loops.coefficients(scores.values, targets.labels, targets.weights, out)

    def offset(self, coef: np.ndarray, targets: Targets) -> float:
        return loops.offset(coef, targets.labels)

    def line(self, start: Scores, end: Scores, k: float, targets: Targets) -> tuple[float, float]:
        return loops.line_value(start.values, end.values, k, targets.labels, targets.weights)
