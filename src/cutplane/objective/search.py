"""Minima of convex functions of one variable: steps along a line, and the bias.

``find_bracket`` needs only derivatives, at several points at a time, because for sums over rows a
pass at several points costs little more than a pass at one point. Take a bracket low < high with
slopes g₋ ≤ 0 ≤ g₊, and the point where the chord of the slopes is zero. There the function exceeds
its minimum by at most

    excess = (high − low)·|g₋|·g₊ / (|g₋| + g₊),

so the search knows when to stop, without any value of the function.

``minimise`` needs a value and a derivative at one point at a time. It is for risks of all
scores at once, for which each point is expensive. ``newton`` needs two derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# Points per pass inside a bracket, besides the zero of the chord.
INNER = 6
# If the slope is smooth, the points lie around the zero of the chord, at these distances from it,
# in units of the bracket's width.
AROUND = np.array([-1e-1, -1e-3, -1e-6, 0.0, 1e-6, 1e-3, 1e-1])
MOST_PASSES = 60
# While there is no bracket, the distance to the next point grows by this factor, then by its
# square, and so on.
GROWTH = 16.0
# Kinks of finite data lie below this.
FAR = 1e300
# Evaluations until the slope changes its sign, and as many inside the bracket.
MOST_EVALUATIONS = 30
# Newton's method ends with a step that is this small relative to |x|.
SMALL_STEP = 1e-13


class Bracket:
    """Two points with slopes of opposite sign, between which the minimum lies.

    Parameters
    ----------
    low, high : float
    low_slope, high_slope : float, default=0
        low_slope ≤ 0 ≤ high_slope. If the search has met a minimum, both are 0 and low = high.

    Attributes
    ----------
    low, high : float
    part : float
        The zero of the chord of the slopes, from 0 at low to 1 at high.
    point : float
        The same as a point.
    excess : float
        An upper bound on how much the function at ``point`` exceeds its minimum.
    """

    def __init__(
        self, low: float, high: float, low_slope: float = 0.0, high_slope: float = 0.0
    ) -> None:
        rise = high_slope - low_slope
        self.low, self.high = low, high
        self.part = -low_slope / rise if rise > 0.0 else 0.0
        self.point = low + self.part * (high - low)
        self.excess = (high - low) * self.part * high_slope


def find_bracket(
    slopes_at: Callable[[np.ndarray], np.ndarray],
    first: np.ndarray,
    tolerance: float,
    *,
    lowest: float = -math.inf,
    highest: float = math.inf,
    at_once: int = INNER,
    smooth: bool = False,
) -> Bracket:
    """A bracket whose ``point`` is within ``tolerance`` of the minimum of a convex function.

    Parameters
    ----------
    slopes_at : callable
        The derivatives at some points, which increase.
    first : ndarray
        The first points, increasing, within the limits.
    tolerance : float
        0 searches to the last digit, and finds the least of several minima.
    lowest, highest : float
        Limits. If the function still falls at the highest (or rises at the lowest), this limit is
        the answer, as both ends of the bracket.
    at_once : int, optional
        Points per pass inside a bracket; 1 if each point costs as much as a pass.
    smooth : bool, default=False
        Whether the derivative has no jumps. Then the zero of the chord is close to the minimum,
        closer the narrower the bracket is, and the points lie around this zero.
    """
    low: tuple[float, float] | None = None  # (point, slope)
    high: tuple[float, float] | None = None
    flat: float | None = None  # a point at which the slope was zero
    reach, growth = float(first[-1] - first[0]) or 1.0, GROWTH
    same_end = 0  # passes in a row that have moved only one end of the bracket
    points = first
    bracket = Bracket(float(first[0]), float(first[0]))
    for _ in range(MOST_PASSES):
        before = low, high
        for point, slope in zip(points.tolist(), slopes_at(points).tolist(), strict=True):
            if math.isnan(slope):
                return Bracket(point, point)
            if slope == 0.0 and flat is None:
                flat = point
            if slope < 0.0:
                low = point, slope
            else:
                high = point, slope
                break
        if low is None or high is None:  # the minimum is outside
            end, limit = (high[0], lowest) if high is not None else (float(points[-1]), highest)
            if end == limit or abs(end) >= FAR:
                end = end if flat is None or end == limit else flat
                return Bracket(end, end)
            beyond = max(end - reach, limit) if low is None else min(end + reach, limit)
            points = np.array([beyond])
            reach, growth = min(reach * growth, FAR), min(growth * growth, FAR)
            continue
        bracket = Bracket(low[0], high[0], low[1], high[1])
        if bracket.excess <= tolerance > 0.0:
            break
        same_end = 0 if low != before[0] and high != before[1] else same_end + 1
        count = at_once if same_end < 2 else INNER
        inside, width = {bracket.point}, high[0] - low[0]
        if smooth and same_end < 2:
            inside |= set((bracket.point + width * AROUND).tolist())
        elif count > 1:
            inside |= {low[0] + width * (k + 1) / (count + 1) for k in range(count)}
        points = np.array(sorted(p for p in inside if low[0] < p < high[0]))
        if not len(points):
            break
    return bracket


class LineValue(NamedTuple):
    """A convex function of one variable at k: its value and derivative."""

    k: float
    value: float
    slope: float


def minimise(
    at: Callable[[float], LineValue],
    start: LineValue,
    guess: float,
    tolerance: float,
    *,
    longest: float = math.inf,
    curvature: float = 0.0,
    known: LineValue | None = None,
) -> LineValue:
    """The minimum over k ≥ 0 of a convex function of one variable.

    It keeps a bracket whose ends have derivatives of opposite sign. Through each end
    there is a parabola below the function. The value at which the two parabolas meet is
    a lower bound on the minimum. The search ends when the better end is within
    ``tolerance`` of this bound.

    Parameters
    ----------
    at : callable
        The function at k.
    start : LineValue
        At 0.
    guess : float
        First k to try, positive.
    tolerance : float
        Acceptable distance to the minimum.
    longest : float, optional
        The largest k. It is the answer if the function still falls there.
    curvature : float, optional
        Curvature of the parabolas. The function must be at least this much curved everywhere.
    known : LineValue, optional
        A second point that has been evaluated already.
    """
    low, best, k = start, start, min(guess, longest)
    high: LineValue | None = None
    done = start.slope >= 0.0
    if not done and known is not None and known.k <= longest:
        if known.slope < 0.0:
            low, k = known, min(max(guess, 2.0 * known.k), longest)
        else:
            high = known
            k = _inside(start, known, curvature, 0) if guess >= 0.98 * known.k else k
    outside = within = 0  # evaluations
    while not done:
        here = at(k)
        # NaN counts as a negative slope while there is no bracket, and as a positive one inside.
        if here.slope >= 0.0 or (within and not here.slope < 0.0):
            high = here
        else:
            low = here
        if high is None:  # the slope is still negative
            best = low
            outside += 1
            done = here.k == longest or outside == MOST_EVALUATIONS
            k = min(here.k * 4.0**outside, longest)  # the guess may be far too small
            continue
        best = low if high.slope != 0.0 and low.value <= high.value else high
        done = (
            high.slope == 0.0
            or within == MOST_EVALUATIONS
            or best.value - _lower_bound(low, high, curvature) <= tolerance
        )
        if not done:
            k = _inside(low, high, curvature, within)
            within += 1
            done = not low.k < k < high.k
    return best


def _meeting(low: LineValue, high: LineValue, curvature: float) -> float:
    """Where the parabolas through both ends meet, as a distance from low.k."""
    width = high.k - low.k
    bend = 0.5 * curvature * width
    return (low.value - high.value + (high.slope - bend) * width) / (
        high.slope - low.slope - 2.0 * bend
    )


def _lower_bound(low: LineValue, high: LineValue, curvature: float) -> float:
    """The minimum of the maximum of both parabolas."""
    width = high.k - low.k
    if high.slope - low.slope <= curvature * width * (1.0 + 1e-12):  # both parabolas are the same
        return low.value - 0.5 * low.slope * low.slope / curvature
    meet = min(max(_meeting(low, high, curvature), 0.0), width)
    if -low.slope < curvature * meet:  # the parabola through low has its minimum before they meet
        return low.value - 0.5 * low.slope * low.slope / curvature
    if high.slope < curvature * (width - meet):
        return high.value - 0.5 * high.slope * high.slope / curvature
    return low.value + meet * (low.slope + 0.5 * curvature * meet)


def _inside(low: LineValue, high: LineValue, curvature: float, evaluation: int) -> float:
    """The next point between the ends.

    The zero of the derivative's secant suits smooth functions, the point where the
    parabolas meet suits kinks. So the search uses them in turns, and halves the bracket
    at every fifth evaluation, in case it stays wide.
    """
    width = high.k - low.k
    secant = -low.slope / (high.slope - low.slope) * width
    turn = evaluation % 5
    if turn == 4:
        inner = 0.5 * width
    elif turn % 2 and high.slope - low.slope > curvature * width * (1.0 + 1e-12):
        inner = _meeting(low, high, curvature)
    else:
        inner = secant
    return low.k + min(max(inner, 0.02 * width), 0.98 * width)


def newton(
    derivatives: Callable[[float], tuple[float, float]], start: float, tolerance: float
) -> None:
    """Find the minimiser of a smooth convex function of one variable, by guarded Newton steps.

    Parameters
    ----------
    derivatives : callable
        x → (first, second derivative). Its last call is at the minimiser.
    start : float
    tolerance : float
        First derivative at which to stop.
    """
    low, high = -math.inf, math.inf
    x = start
    reach = 10.0  # the longest step; it grows slowly, because far away the curvature may mislead
    for _ in range(100):
        slope, curvature = derivatives(x)
        if not abs(slope) > tolerance:  # true for NaN, too
            break
        if slope < 0.0:
            low = x
        else:
            high = x
        step = -slope / curvature if curvature > 0.0 else math.copysign(math.inf, -slope)
        if abs(step) <= SMALL_STEP * max(1.0, abs(x)):  # rounding errors may keep the slope larger
            break
        new = x + min(max(step, -reach), reach)
        x = new if low < new < high else 0.5 * (low + high)
        reach *= 4.0
