"""Minimising a smooth convex function of a step k and a bias b together, by guarded Newton steps.

    F(k, b) = ½A k² + B k + R(k, b)   over 0 < k ≤ longest.

With the second derivatives of R, which come with its value in one pass, few passes are needed: a
search along the line and one for the bias in turns would need several times as many. Newton's
decrement ½ gᵀH⁻¹g is about how far F is above its minimum; once it is within the tolerance
the last step is taken without looking again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .point import Line

MOST_EVALUATIONS = 8
# Part of the tolerance that the decrement may be when the last step is taken.
ENOUGH = 0.25
# By how much k may change at a time: far out second derivatives say little.
SHRINK, GROW = 0.2, 5.0
# A Hessian is as good as singular if its determinant is so small a part of its diagonal.
SINGULAR = 1e-10


@dataclass(frozen=True)
class Joint:
    """F at (k, b): its value, and where Newton's step leads.

    Attributes
    ----------
    k, bias, value : float
    decrement : float
        How far F is above its minimum, if it is nearly quadratic; infinite if that cannot be said.
    to_k, to_bias : float
        Newton's step.
    """

    k: float
    bias: float
    value: float
    decrement: float
    to_k: float
    to_bias: float

    @classmethod
    def make(cls, line: Line, k: float, bias: float, risk: np.ndarray) -> Joint:
        """From the value and the derivatives of R."""
        value, by_k, by_bias, by_k_k, by_k_bias, by_bias_bias = risk.tolist()
        height = line.height(k, value, by_k)
        a, b, c = by_k_k + line.curvature, by_k_bias, by_bias_bias
        determinant = a * c - b * b
        if not determinant > SINGULAR * a * c:
            return cls(k, bias, height.value, np.inf, 0.0, 0.0)
        to_k = -(c * height.slope - b * by_bias) / determinant
        to_bias = -(a * by_bias - b * height.slope) / determinant
        decrement = -0.5 * (height.slope * to_k + by_bias * to_bias)
        return cls(k, bias, height.value, decrement, to_k, to_bias)

    def ahead(self, part: float, longest: float) -> tuple[float, float]:
        """The point after a part of Newton's step, within what k may be."""
        k = self.k + part * self.to_k
        allowed = min(max(k, SHRINK * self.k), GROW * self.k, longest)
        if self.to_k:  # all of it is shortened
            part *= (allowed - self.k) / (k - self.k) if k != self.k else 1.0
        return allowed, self.bias + part * self.to_bias


def minimise_jointly(
    line: Line, evaluate: Callable[[float, float], np.ndarray], k: float, bias: float
) -> tuple[float, float] | None:
    """The step and the bias of the minimum, within the tolerance; None if they are not found.

    Parameters
    ----------
    line : Line
    evaluate : callable
        (k, b) → value of R and its derivatives in k, b, then the second ones: kk, kb, bb.
    k, bias : float
        Where to begin, k > 0.
    """
    best: Joint | None = None
    part = 1.0
    k = min(k, line.longest)
    for _ in range(MOST_EVALUATIONS):
        here = Joint.make(line, k, bias, evaluate(k, bias))
        if not np.isfinite(here.value + here.decrement):
            return None
        if best is None or here.value <= best.value:
            best, part = here, 1.0
        else:
            part *= 0.25
        k, bias = best.ahead(part, line.longest)
        if best.decrement <= ENOUGH * line.tolerance and part == 1.0:
            return k, bias
        if k == best.k == line.longest:
            return None  # the minimum is at the end of the line, or beyond
    return None
