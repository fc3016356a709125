"""Minima of convex functions of one variable: steps along a line, and the bias.

A search is a generator. It says where it wants to look next and is told what was found there; it
calls nobody. The caller closes it at the end, because Python loses an interrupt that arrives while
it discards a generator.

``find_bracket`` needs derivatives only. For sums over rows a pass costs little more for several
points than for one, so it asks for a few at a time. In a bracket low < high with slopes
g₋ ≤ 0 ≤ g₊ the point where the chord of the slopes is zero is above the minimum by no more than

    excess = (high − low)·|g₋|·g₊ / (|g₋| + g₊),

so the search knows when it is good enough without ever asking for a value.

``minimise`` needs a value and a derivative at one point at a time. It is for risks of all
scores at once, where each point is expensive. ``newton`` needs two derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# Points per pass inside a bracket, beside the chord's zero.
INNER = 6
# With smooth slopes the points lie around the chord's zero. These are their distances from it, as
# parts of the bracket's width.
AROUND = np.array([-1e-1, -1e-3, -1e-6, 0.0, 1e-6, 1e-3, 1e-1])
MOST_PASSES = 60
# How much farther to look at a time outside a bracket; then the square of it, and so on.
GROWTH = 16.0
# Beyond this no kink of finite data lies.
FAR = 1e300
# Evaluations until the slope turns, and as many inside the bracket.
MOST_EVALUATIONS = 30
# Relative to where it is, a Newton step that is the last one.
SMALL_STEP = 1e-13


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


def find_bracket(
    first: np.ndarray,
    tolerance: float,
    *,
    lowest: float = -math.inf,
    highest: float = math.inf,
    at_once: int = INNER,
    smooth: bool = False,
) -> Generator[tuple[np.ndarray, Bracket], np.ndarray, None]:
    """A bracket whose ``point`` is within ``tolerance`` of the minimum of a convex function.

    Yields where to look next, increasing, and what has been found so far; gets the derivatives at
    these points. There are no points when the search has ended.

    Parameters
    ----------
    first : ndarray
        Where to look first, increasing, within the limits.
    tolerance : float
        0 for the last digit, and for the least of several minima.
    lowest, highest : float
        Limits. Where the function still falls at the highest (or rises at the lowest), that is
        the answer, as both ends of the bracket.
    at_once : int, optional
        Points per pass inside a bracket; 1 where each costs as much as a pass.
    smooth : bool, default=False
        Whether the derivative has no jumps. The chord's zero comes close to the minimum then, the
        more so the narrower the bracket is, and the points lie around it.
    """
    low: tuple[float, float] | None = None  # (point, slope)
    high: tuple[float, float] | None = None
    flat: float | None = None  # where the slope was zero
    reach, growth = float(first[-1] - first[0]) or 1.0, GROWTH
    same_end = 0  # passes in a row that have moved one end of the bracket only
    points, bracket = first, Bracket(float(first[0]), float(first[0]), 0.0, 0.0)
    for _ in range(MOST_PASSES):
        before = low, high
        slopes = yield points, bracket
        for point, slope in zip(points.tolist(), slopes.tolist(), strict=True):
            if math.isnan(slope):
                yield np.empty(0), Bracket(point, point, 0.0, 0.0)
                return
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
                bracket = Bracket(end, end, 0.0, 0.0)
                break
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
    yield np.empty(0), bracket


class LineValue(NamedTuple):
    """A convex function of one variable at k: its value and derivative."""

    k: float
    value: float
    slope: float


def minimise(
    start: LineValue,
    guess: float,
    tolerance: float,
    *,
    longest: float = math.inf,
    curvature: float = 0.0,
    known: LineValue | None = None,
) -> Generator[tuple[float | None, LineValue], LineValue, None]:
    """The minimum over k ≥ 0 of a convex function of one variable.

    Yields the k to look at next, and the best one so far; gets the function at k. There is no k
    when the search has ended.

    Keeps a bracket whose ends have derivatives of opposite sign. A parabola through
    each end lies below the function, so the value at which the two meet bounds the
    minimum: the search ends once the better end is within ``tolerance`` of that.

    Parameters
    ----------
    start : LineValue
        At 0.
    guess : float
        First k to try, positive.
    tolerance : float
        Acceptable distance to the minimum.
    longest : float, optional
        Where to stop if the function still falls there.
    curvature : float, optional
        The function is at least this much curved everywhere: those parabolas' curvature.
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
        here = yield k, best
        # What is not a number moves the low end before the slope has turned, then the high one.
        if here.slope >= 0.0 or (within and not here.slope < 0.0):
            high = here
        else:
            low = here
        if high is None:  # until the slope turns
            best = low
            outside += 1
            done = here.k == longest or outside == MOST_EVALUATIONS
            k = min(here.k * 4.0**outside, longest)  # a guess may be orders too small
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
    yield None, best


def _meeting(low: LineValue, high: LineValue, curvature: float) -> float:
    """How far above low.k the parabolas through both ends meet."""
    width = high.k - low.k
    bend = 0.5 * curvature * width
    return (low.value - high.value + (high.slope - bend) * width) / (
        high.slope - low.slope - 2.0 * bend
    )


def _lower_bound(low: LineValue, high: LineValue, curvature: float) -> float:
    """The least value of the higher one of the parabolas through both ends."""
    width = high.k - low.k
    if high.slope - low.slope <= curvature * width * (1.0 + 1e-12):  # just one parabola
        return low.value - 0.5 * low.slope * low.slope / curvature
    meet = min(max(_meeting(low, high, curvature), 0.0), width)
    if -low.slope < curvature * meet:  # the one through low turns before
        return low.value - 0.5 * low.slope * low.slope / curvature
    if high.slope < curvature * (width - meet):
        return high.value - 0.5 * high.slope * high.slope / curvature
    return low.value + meet * (low.slope + 0.5 * curvature * meet)


def _inside(low: LineValue, high: LineValue, curvature: float, evaluation: int) -> float:
    """Where to look next between the ends.

    The derivative's secant is right for smooth functions, the meeting point for
    kinks: they take turns, and halving comes in if the bracket stays wide.
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
    reach = 10.0  # far out the curvature says little: steps may grow, but step by step
    for _ in range(100):
        slope, curvature = derivatives(x)
        if not abs(slope) > tolerance:  # also if it is not a number
            break
        if slope < 0.0:
            low = x
        else:
            high = x
        step = -slope / curvature if curvature > 0.0 else math.copysign(math.inf, -slope)
        if abs(step) <= SMALL_STEP * max(1.0, abs(x)):  # rounding may keep the slope larger
            break
        new = x + min(max(step, -reach), reach)
        x = new if low < new < high else 0.5 * (low + high)
        reach *= 4.0
