"""The zero of an increasing function of one variable: the minimum of a convex one.

``slopes`` is the derivative of a convex function φ. Every search here, along a line or for the
bias, for every loss, asks for it at a few points at a time: a pass over the rows costs little
more for several points than for one. In a bracket low < high with slopes g₋ ≤ 0 ≤ g₊ the point
where the chord of the slopes is zero is above the minimum by no more than

    excess = (high − low)·|g₋|·g₊ / (|g₋| + g₊),

so the search knows when it is good enough without ever asking for a value of φ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Points per pass inside a bracket, beside the chord's zero.
INNER = 6
MOST_PASSES = 60
# How much farther to look at a time outside a bracket; then the square of it, and so on.
GROWTH = 16.0
# Beyond this no kink of finite data lies.
FAR = 1e300

Slopes = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Bracket:
    """Where the minimum is: between two points with slopes of opposite sign.

    Attributes
    ----------
    low, high : float
    low_slope, high_slope : float
        At most 0 and at least 0; both 0, and low = high, where a minimum was met.
    """

    low: float
    high: float
    low_slope: float
    high_slope: float

    @property
    def part(self) -> float:
        """How far along the bracket the chord of the slopes is zero, from 0 to 1."""
        rise = self.high_slope - self.low_slope
        return -self.low_slope / rise if rise > 0.0 else 0.0

    @property
    def point(self) -> float:
        """Where the chord of the slopes is zero."""
        return self.low + self.part * (self.high - self.low)

    @property
    def excess(self) -> float:
        """How far above the minimum that point is, at most."""
        return (self.high - self.low) * self.part * self.high_slope


def find_minimum(
    slopes: Slopes,
    first: np.ndarray,
    tolerance: float,
    *,
    lowest: float = -math.inf,
    highest: float = math.inf,
    at_once: int = INNER,
) -> Bracket:
    """A bracket whose ``point`` is within ``tolerance`` of the minimum of a convex function.

    Parameters
    ----------
    slopes : callable
        Derivatives at some increasing points.
    first : ndarray
        Where to look first, increasing, within the limits.
    tolerance : float
        0 for the last digit, and for the least of several minima.
    lowest, highest : float
        Limits. Where the function still falls at the highest (or rises at the lowest), that is
        the answer, as both ends of the bracket.
    at_once : int, optional
        Points per pass inside a bracket; 1 where each costs as much as a pass.
    """
    low: tuple[float, float] | None = None  # (point, slope)
    high: tuple[float, float] | None = None
    flat: float | None = None  # where the slope was zero
    points = first
    reach, growth = float(first[-1] - first[0]) or 1.0, GROWTH
    bracket = Bracket(float(first[0]), float(first[0]), 0.0, 0.0)
    same_end = 0  # passes in a row that have moved one end of the bracket only
    for _ in range(MOST_PASSES):
        before = low, high
        for point, slope in zip(points.tolist(), slopes(points).tolist(), strict=True):
            if math.isnan(slope):
                return Bracket(point, point, 0.0, 0.0)
            flat = point if slope == 0.0 and flat is None else flat
            if slope < 0.0:
                low = point, slope
            else:
                high = point, slope
                break
        if low is None or high is None:  # the minimum is outside
            end, limit = (high[0], lowest) if high is not None else (points[-1], highest)
            if end == limit or abs(end) >= FAR:
                end = end if flat is None or end == limit else flat
                return Bracket(end, end, 0.0, 0.0)
            points = np.array([max(end - reach, limit) if low is None else min(end + reach, limit)])
            reach, growth = min(reach * growth, FAR), min(growth * growth, FAR)
            continue
        bracket = Bracket(low[0], high[0], low[1], high[1])
        same_end = same_end + 1 if low == before[0] or high == before[1] else 0
        points = _inside(bracket, at_once if same_end < 2 else INNER)
        if not len(points) or bracket.excess <= tolerance > 0.0:
            break
    return bracket


def _inside(bracket: Bracket, count: int) -> np.ndarray:
    """Points between the ends: the chord's zero and others evenly apart."""
    width = bracket.high - bracket.low
    points = [bracket.point]
    if count > 1:
        points += [bracket.low + width * (k + 1) / (count + 1) for k in range(count)]
    inside = sorted({p for p in points if bracket.low < p < bracket.high})
    return np.array(inside)
