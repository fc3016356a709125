"""Hinge loss: mean of max(0, 1 − y s)."""

from __future__ import annotations

import numpy as np

from ..loops import hinge as loops
from ..loops.bounded import FEW, MANY, ROUNDING
from .base import Risk, Scores, Targets


class HingeRisk(Risk):
    """The soft-margin SVM's risk, an upper bound on the error rate.

    It is piecewise linear, so minima along a line and over the bias are found
    exactly among its kinks: ``line_steps`` and ``bias_steps`` list them.
    """

    def value(self, scores: Scores, targets: Targets) -> float:
        return loops.value(scores.values, scores.bias, targets.labels, targets.weights)

    def upper(
        self, high: np.ndarray, low: np.ndarray | float, error: np.ndarray, targets: Targets
    ) -> float:
        loss = margin_losses(high, low, error, targets.labels)
        return float(np.sum(targets.weights * loss)) * (1.0 + MANY * ROUNDING)

    def coefficients(self, scores: Scores, targets: Targets, out: np.ndarray) -> None:
        self.split_coefficients(scores, targets, 1.0, 1.0, out)

    def split_coefficients(
        self, scores: Scores, targets: Targets, positive: float, negative: float, out: np.ndarray
    ) -> None:
        """Coefficients where rows at the kink count only in part, by class."""
        loops.coefficients(
            scores.values, scores.bias, targets.labels, targets.weights, positive, negative, out
        )

    def offset(self, coef: np.ndarray, targets: Targets) -> float:
        return loops.offset(coef)

    def line(self, start: Scores, end: Scores, k: float, targets: Targets) -> tuple[float, float]:
        return loops.line_value(
            start.values, start.bias, end.values, end.bias, k, targets.labels, targets.weights
        )

    def line_steps(
        self,
        start: Scores,
        end: Scores,
        targets: Targets,
        high: float,
        positions: np.ndarray,
        jumps: np.ndarray,
    ) -> tuple[int, float]:
        """Where below ``high`` and by how much the derivative along a line jumps.

        Returns the number of jumps and the derivative at 0+.
        """
        return loops.line_steps(
            start.values,
            start.bias,
            end.values,
            end.bias,
            targets.labels,
            targets.weights,
            high,
            positions,
            jumps,
        )

    def line_profile(
        self, start: Scores, end: Scores, targets: Targets, first: int, bins: np.ndarray
    ) -> float:
        """Add up by how much the derivative along a line jumps in bins; see the loop.

        Returns the derivative at 0+.
        """
        return loops.line_profile(
            start.values,
            start.bias,
            end.values,
            end.bias,
            targets.labels,
            targets.weights,
            first,
            bins,
        )

    def bias_steps(
        self,
        scores: Scores,
        targets: Targets,
        low: float,
        high: float,
        positions: np.ndarray,
        jumps: np.ndarray,
    ) -> tuple[int, float]:
        """Where in [low, high) and by how much the derivative in the bias jumps.

        Returns the number of jumps and the derivative just below ``low``.
        """
        return loops.bias_steps(
            scores.values, targets.labels, targets.weights, low, high, positions, jumps
        )

    def bias_profile(
        self, scores: np.ndarray, targets: Targets, low: float, scale: float, profile: np.ndarray
    ) -> None:
        """Add up weights and weighted kinks of both classes in bins; see the loop."""
        loops.bias_profile(scores, targets.labels, targets.weights, low, scale, profile)

    def band_coefficients(
        self,
        scores: np.ndarray,
        targets: Targets,
        bins: tuple[float, float, int, int],
        positive: float,
        negative: float,
        out: np.ndarray,
    ) -> None:
        """Coefficients where rows with their kink in a bin count in part, by class.

        ``bins`` are where these begin, how many there are per unit and in all, and the bin.
        """
        loops.band_coefficients(
            scores, targets.labels, targets.weights, *bins, positive, negative, out
        )

    def active_weights(self, scores: Scores, targets: Targets) -> np.ndarray:
        """Weights of the rows inside the margin (+, −) and at the kink (+, −)."""
        sums = np.zeros(4)
        loops.active_weights(scores.values, scores.bias, targets.labels, targets.weights, sums)
        return sums


def margin_losses(
    high: np.ndarray, low: np.ndarray | float, error: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """At least max(0, 1 − y·s) of scores s = high + low, off by ``error`` at most.

    Near the margin 1 − y·high is exact, so that the digits in ``low`` count.
    """
    loss = (1.0 - labels * high) - labels * low
    return np.maximum(0.0, loss + (error + FEW * ROUNDING * np.abs(loss)))
