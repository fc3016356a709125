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

    def __repr__(self) -> str:
        return f"CrammerSingerRisk({self.outputs})"

    def value(self, scores: Scores, targets: Targets) -> float:
        return loops.value(scores.values, targets.labels, targets.weights)

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
