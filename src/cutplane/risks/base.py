"""A risk is a function of scores. It never sees the data, and never w.

Most risks are sums over rows, ``Risk``: R(s) = (1/W) Σ_i weight_i·loss(s_i, y_i), W = Σ weight_i.
They get some rows at a time and return sums over these rows. The objective adds the sums and
divides by W. A ``ListwiseRisk`` needs all scores at once, for pairs of rows or for a measure of a
ranking.

Every loss of a row here is convex, so its conjugate gives a lower bound from *any*
coefficients in the conjugate's domain:

    loss(s) ≥ u·s − conjugate(u),

and Σ_i coef_i·s_i + offset(coef) ≤ Σ_i weight_i·loss(s_i) is a cut, whether coef
is the derivative at some point, an average of derivatives, or the dual point of
another solver.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exec import Executor
from ..loops import rows as loops
from ..loops.bounded import MANY, ROUNDING
from ..losses import direction

Array = np.ndarray
# Those of the two ends of a line.
Biases = tuple[float, float]
# Two biases, and the share of the second one in a mixture of the coefficients at both.
Mixture = tuple[float, float, float]


@dataclass(frozen=True)
class Targets:
    """Labels and weights of all rows.

    Attributes
    ----------
    labels : ndarray, shape (rows,)
        ±1 or the targets of a regression in float64, class numbers in int64 for multiclass.
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


class Risk(ABC):
    """A sum of losses over rows. Methods take the targets of the same rows as the scores."""

    #: Scores per row: None for one number, else the number of outputs.
    outputs: int | None = None
    #: Whether an unregularised bias can be minimised exactly.
    has_bias: bool = True
    #: Whether the loss has a continuous derivative.
    smooth: bool = False
    #: Cost of a pass per score, in units of the hinge's cost.
    work: float = 1.0
    #: The loss, from ``cutplane.losses``, if the risk is a sum of losses of one score.
    loss: Any = None

    @abstractmethod
    def value(self, scores: np.ndarray, bias: float, targets: Targets) -> float:
        """Σ weight·loss at scores + bias."""

    @abstractmethod
    def upper(
        self, high: Array, low: Array | None, error: Array, bias: float, targets: Targets
    ) -> float:
        """An upper bound on Σ weight·loss at high + low + bias; high + low is off by ``error``.

        ``low`` are further digits of the scores, if there are any; then the bias is 0. The bound
        covers the rounding errors of the losses and of their sum.
        """

    @abstractmethod
    def coefficients(
        self, scores: np.ndarray, out: np.ndarray, mixture: Mixture, targets: Targets
    ) -> None:
        """out = weight·(a subgradient of the loss in the score), mixed of those at two biases."""

    @abstractmethod
    def offset(self, coef: np.ndarray, targets: Targets) -> float:
        """Σ −weight·conjugate(coef/weight)."""

    @abstractmethod
    def line_slopes(
        self, start: Array, end: Array, biases: Biases, steps: Array, targets: Targets
    ) -> Array:
        """Derivatives in k of Σ weight·loss at start + k(end − start), for several k.

        ``biases`` are those of start and end.
        """

    def bias_slopes(self, scores: np.ndarray, biases: np.ndarray, targets: Targets) -> np.ndarray:
        """Derivatives of Σ weight·loss in the bias, at several; with ``has_bias``."""
        raise TypeError(f"{self!r} has no exact unregularised bias")

    def dual_coef(self, dual_point: np.ndarray, targets: Targets) -> np.ndarray:
        """Coefficients of a dual point a = −weight·u, u of the loss's conjugate.

        For two classes a is from 0 to the weight, at most, and for regression w = C·Σ a_i·x_i.
        """
        raise TypeError(f"{self!r} has no dual point of one number per row")

    def clip_dual(self, dual_point: np.ndarray, targets: Targets) -> np.ndarray:
        """The nearest dual point with all u in the domain of the conjugate."""
        raise TypeError(f"{self!r} has no dual point of one number per row")

    def carried_dual(self, dual_point: np.ndarray, factor: float, targets: Targets) -> np.ndarray:
        """A guess of the dual point for another C. ``factor`` is (old C)/(new C)."""
        raise TypeError(f"{self!r} has no dual point of one number per row")

    def dual_unit(self, targets: Targets, free_bias: bool) -> float:
        """The approximate change of a score over which the slope of the loss changes by 1.

        Solvers use it as the unit for scores.
        """
        return 1.0


class LossRisk(Risk):
    """The mean of a loss of one score per row."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss
        self.smooth = loss.curvature is not None
        self.work = 4.0 if loss.transcendental else 1.0

    def __repr__(self) -> str:
        return f"LossRisk(loss={self.loss!r})"

    def value(self, scores: np.ndarray, bias: float, targets: Targets) -> float:
        return loops.value(self.loss, scores, bias, targets.labels, targets.weights)

    def upper(
        self, high: Array, low: Array | None, error: Array, bias: float, targets: Targets
    ) -> float:
        if bias:
            high = high + bias
            error = error + ROUNDING * np.abs(high)
        low = np.zeros(len(high)) if low is None else low
        losses = np.empty(len(high))
        loops.highest(self.loss, high, low, error, targets.labels, losses)
        return float(np.sum(targets.weights * losses)) * (1.0 + MANY * ROUNDING)

    def coefficients(
        self, scores: np.ndarray, out: np.ndarray, mixture: Mixture, targets: Targets
    ) -> None:
        loops.coefficients(self.loss, scores, *mixture, targets.labels, targets.weights, out)

    def offset(self, coef: np.ndarray, targets: Targets) -> float:
        return loops.offset(self.loss, coef, targets.labels, targets.weights)

    def line_slopes(
        self, start: Array, end: Array, biases: Biases, steps: Array, targets: Targets
    ) -> Array:
        slopes = np.empty(len(steps))
        ends = (start, biases[0], end, biases[1])
        loops.line_slopes(self.loss, *ends, steps, targets.labels, targets.weights, slopes)
        return slopes

    def bias_slopes(self, scores: np.ndarray, biases: np.ndarray, targets: Targets) -> np.ndarray:
        slopes = np.empty(len(biases))
        loops.bias_slopes(self.loss, scores, biases, targets.labels, targets.weights, slopes)
        return slopes

    def dual_coef(self, dual_point: np.ndarray, targets: Targets) -> np.ndarray:
        return -direction(self.loss, targets.labels) * dual_point

    def clip_dual(self, dual_point: np.ndarray, targets: Targets) -> np.ndarray:
        return np.clip(dual_point, *self._dual_ends(targets))

    def carried_dual(self, dual_point: np.ndarray, factor: float, targets: Targets) -> np.ndarray:
        """As for every risk.

        Rows of a loss with kinks stay at their bound. Where the others are on a kink their α
        hardly depends on C, so that α/C changes by the factor.
        """
        if self.smooth:
            return dual_point
        low, high = self._dual_ends(targets)
        held = (dual_point <= low * (1.0 - 1e-12)) | (dual_point >= high * (1.0 - 1e-12))
        return np.where(held, dual_point, np.clip(dual_point * factor, low, high))

    def _dual_ends(self, targets: Targets) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest dual point."""
        low, high = self.loss.domain
        rows = np.zeros((2, len(targets.weights)))
        counting = targets.weights > 0.0
        rows[0, counting] = -high * targets.weights[counting]
        rows[1, counting] = -low * targets.weights[counting]
        return rows[0], rows[1]

    def dual_unit(self, targets: Targets, free_bias: bool) -> float:
        """As for every risk: labels ±1 make it 1, targets of regression have their own size."""
        if not self.loss.regression:
            return 1.0
        y, weights = targets.labels, targets.weights
        center = np.average(y, weights=weights) if free_bias else 0.0
        spread = float(np.average(np.abs(y - center), weights=weights))
        low, high = self.loss.domain
        return max(spread / (high - low), self.loss.conjugate_curvature or 0.0) or 1.0


def digest_of(name: object, *arrays: np.ndarray) -> bytes:
    """A fingerprint of a name and some arrays."""
    digest = hashlib.blake2b(repr(name).encode(), digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


class ListwiseRisk(ABC):
    """A convex risk of all scores at once, piecewise linear and ≥ 0, with its own targets.

    It does not depend on how the work is divided, to the last bit.
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

    @abstractmethod
    def upper(
        self, high: np.ndarray, low: np.ndarray | None, errors: np.ndarray, executor: Executor
    ) -> float:
        """An upper bound on the risk at the scores high + low, which are off by ``errors``.

        The bound covers all rounding errors. If ``low`` is given, ``high`` is the number nearest to
        the sum, and the bound is as precise as the digits of the sum allow.
        """

    @abstractmethod
    def digest(self) -> bytes:
        """A fingerprint of the risk with its targets. Kept cuts are only used for the same one."""
