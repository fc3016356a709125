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
    smooth: bool = False,
) -> Bracket:
    """A bracket whose ``point`` is within ``tolerance`` of the minimum of a convex function.

    Parameters
    ----------
    slopes : callable
        Derivatives at some increasing points.
    first : ndarray
        Where to look first, increasing, within the limits.
    tolerance : float
    lowest, highest : float
        Limits. Where the function still falls at the highest (or rises at the lowest), that is
        the answer, as both ends of the bracket.
    smooth : bool, default=False
        Whether the derivative is continuous: then the chord's zero alone is looked at inside.
    """
    low, high = (lowest, math.nan), (highest, math.nan)  # (point, slope)
    points = first
    width = float(first[-1] - first[0]) or 1.0
    turns = 0  # times in a row that the same end of the bracket stayed
    for attempt in range(MOST_PASSES):
        found = slopes(points)
        before = low, high
        for point, slope in zip(points.tolist(), found.tolist(), strict=True):
            if slope == 0.0:
                return Bracket(point, point, 0.0, 0.0)
            if slope < 0.0:
                low = point, slope
            else:
                high = point, slope
                break
        if math.isnan(low[1]) or math.isnan(high[1]):  # the minimum is outside
            end = high[0] if math.isnan(low[1]) else low[0]
            away = -1.0 if math.isnan(low[1]) else 1.0
            limit = lowest if away < 0.0 else highest
            if end == limit or abs(end) >= FAR:
                return Bracket(end, end, 0.0, 0.0)
            width *= 16.0
            points = np.array([min(max(end + away * width, lowest), highest)])
            continue
        bracket = Bracket(low[0], high[0], low[1], high[1])
        if bracket.excess <= tolerance:
            return bracket
        turns = turns + 1 if low == before[0] or high == before[1] else 0
        points = _inside(bracket, 1 if smooth and turns < 2 else INNER)
        if not len(points) or attempt == MOST_PASSES - 1:
            return bracket
    raise AssertionError("unreachable")


def _inside(bracket: Bracket, count: int) -> np.ndarray:
    """Points between the ends: the chord's zero and others evenly apart."""
    width = bracket.high - bracket.low
    points = [bracket.point]
    if count > 1:
        points += [bracket.low + width * (k + 1) / (count + 1) for k in range(count)]
    inside = sorted({p for p in points if bracket.low < p < bracket.high})
    return np.array(inside)
