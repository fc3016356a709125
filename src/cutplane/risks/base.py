"""A risk is a function of scores. It never sees the data, and never w.

Most are sums over rows, ``Risk``: R(s) = (1/W) Σ_i weight_i·loss(s_i, y_i), W = Σ weight_i.
They see some rows at a time and return sums over these; the oracle adds the
sums up and divides by W. A ``WholeRisk`` needs all scores at once: pairs of
rows, or a measure of the whole ranking.

Every loss of a row here is convex, so its conjugate gives a lower bound from *any*
coefficients in the conjugate's domain:

    loss(s) ≥ u·s − conjugate(u),

and Σ_i coef_i·s_i + offset(coef) ≤ Σ_i weight_i·loss(s_i) is a cut, whether coef
is the derivative at some point, an average of derivatives, or the dual point of
another solver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..exec import Executor
from ..loops.bounded import MANY, ROUNDING


@dataclass(frozen=True)
class Targets:
    """Labels and weights of all rows.

    Attributes
    ----------
    labels : ndarray, shape (rows,)
        ±1 in float64 for binary risks, class numbers in int64 for multiclass.
    weights : ndarray of float64, shape (rows,)
    total : float
        Sum of the weights.
    """

    labels: np.ndarray
    weights: np.ndarray
    total: float

    @classmethod
    def make(cls, labels: np.ndarray, weights: np.ndarray | None = None) -> Targets:
        """Targets with unit weights unless given."""
        if weights is None:
            weights = np.ones(len(labels))
        return cls(labels, weights, float(np.sum(weights)))

    def __getitem__(self, rows: slice) -> Targets:
        return Targets(self.labels[rows], self.weights[rows], self.total)


@dataclass(frozen=True)
class Scores:
    """Scores of some rows at a point: ``values + bias``."""

    values: np.ndarray
    bias: float

    def __getitem__(self, rows: slice) -> Scores:
        return Scores(self.values[rows], self.bias)


class Risk(ABC):
    """A sum of losses over rows. Methods take the targets of the same rows as the scores."""

    #: Scores per row: None for one number, else the number of outputs.
    outputs: int | None = None
    #: Whether an unregularised bias can be minimised exactly.
    has_bias: bool = True
    #: What a pass costs per score, in units of the hinge's.
    work: float = 1.0

    @abstractmethod
    def value(self, scores: Scores, targets: Targets) -> float:
        """Σ weight·loss."""

    def upper(
        self, high: np.ndarray, low: np.ndarray | float, error: np.ndarray, targets: Targets
    ) -> float:
        """At least Σ weight·loss at scores that are high + low, off by ``error`` at most.

        Whatever floating point has done to the loss and to the sum is part of it. Here it is
        bounded for every convex loss of one score per row: up to its ends, no slope inside an
        interval is steeper than at one of them.
        """
        error = error + np.abs(low)
        slopes = np.empty((2, *high.shape))
        self.coefficients(Scores(high - error, 0.0), targets, slopes[0])
        self.coefficients(Scores(high + error, 0.0), targets, slopes[1])
        value = self.value(Scores(high, 0.0), targets)
        value += float(np.sum(error * np.abs(slopes).max(axis=0)))
        return value * (1.0 + (len(high) + MANY) * ROUNDING)

    @abstractmethod
    def coefficients(self, scores: Scores, targets: Targets, out: np.ndarray) -> None:
        """out = weight·(a subgradient of the loss in the score)."""

    @abstractmethod
    def offset(self, coef: np.ndarray, targets: Targets) -> float:
        """Σ −weight·conjugate(coef/weight)."""

    @abstractmethod
    def line(self, start: Scores, end: Scores, k: float, targets: Targets) -> tuple[float, float]:
        """Value and derivative in k of Σ weight·loss at start + k(end − start)."""

    def clip_dual(self, u: np.ndarray, targets: Targets) -> np.ndarray:
        """The nearest u with −y·u in the domain of the conjugate, for binary risks."""
        return np.clip(u, 0.0, targets.weights)


class SmoothRisk(Risk):
    """A risk whose bias can be found by Newton's method."""

    @abstractmethod
    def bias_derivatives(self, scores: Scores, targets: Targets) -> tuple[float, float]:
        """First and second derivative of Σ weight·loss in the bias."""

    @abstractmethod
    def line_and_bias(
        self,
        start: np.ndarray,
        end: np.ndarray,
        points: Sequence[tuple[float, float]],
        targets: Targets,
    ) -> np.ndarray:
        """Σ weight·loss at start + k(end − start) + bias, for several (k, bias), with derivatives.

        Value, first derivatives in k and in the bias, second ones in k, in k and the bias, in the
        bias, and Σ |weight·derivative of the loss in the score|: shape (points, 7). ``start`` and
        ``end`` are scores without bias.
        """


class WholeRisk(ABC):
    """A convex risk of all scores at once, piecewise linear and ≥ 0, with its own targets.

    It does not depend on how the work is divided, to the last bit. If no score changes by more
    than e, it changes by 2e at most: it is a mean over pairs of rows, or less than that.
    """

    #: Number of scores.
    rows: int

    @abstractmethod
    def evaluate(
        self, scores: np.ndarray, coef: np.ndarray, executor: Executor
    ) -> tuple[float, float]:
        """Value of the risk, and a plane below it that touches it there.

        Parameters
        ----------
        scores : ndarray of float64, shape (rows,)
            Not changed.
        coef : ndarray of float64, shape (rows,)
            Gets a subgradient: R(s) ≥ <coef, s> + offset for all s.
        executor : Executor
            Runs independent parts of the work.

        Returns
        -------
        value, offset : float
        """

    def upper(
        self, scores: np.ndarray, coef: np.ndarray, value: float, offset: float, errors: np.ndarray
    ) -> float:
        """At least the risk of scores that are ``errors`` away, in exact arithmetic.

        ``coef``, ``value`` and ``offset`` are what ``evaluate`` has found. Here the offset is in
        [0, 1] and Σ |coef| ≤ 2.
        """
        size = 1.0 + 2.0 * float(np.max(np.abs(scores), initial=0.0))
        rounding = (self.rows + MANY) * ROUNDING * size
        return value + 2.0 * float(np.max(errors, initial=0.0)) + rounding

    @abstractmethod
    def digest(self) -> bytes:
        """Identifies the risk with its targets, so that cuts are kept for the same one only."""
