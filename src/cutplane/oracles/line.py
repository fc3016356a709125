"""Minimising convex functions of one variable: ½A k² + B k + R(k) over k ≥ 0, and the bias.

``minimise_convex`` serves every risk from values and derivatives; the hinge's
exact search by selection is in ``linear.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

MOST_EVALUATIONS = 30
# Estimates of what is left of a slope were too small by a factor of up to 13.
CAUTION = 64.0
# A slope so much smaller than the one before: Newton's steps converge.
SMALLER = 0.5


@dataclass(frozen=True)
class Height:
    """A convex function of one variable at k: its value and derivative."""

    k: float
    value: float
    slope: float


def minimise_convex(
    evaluate: Callable[[float], Height],
    start: Height,
    guess: float,
    tolerance: float,
    *,
    longest: float = math.inf,
    curvature: float = 0.0,
    known: Height | None = None,
) -> Height:
    """The minimum over k ≥ 0 of a convex function of one variable.

    Keeps a bracket whose ends have derivatives of opposite sign. A parabola through
    each end lies below the function, so the value at which the two meet bounds the
    minimum: the search stops once the better end is within ``tolerance`` of that.

    Parameters
    ----------
    evaluate : callable
        k → Height.
    start : Height
        At 0.
    guess : float
        First k to try, positive.
    tolerance : float
        Acceptable distance to the minimum.
    longest : float, optional
        Where to stop if the function still falls there.
    curvature : float, optional
        The function is at least this much curved everywhere: those parabolas' curvature.
    known : Height, optional
        A second point that has been evaluated already.

    Returns
    -------
    minimum : Height
        One that was evaluated or given.
    """
    if start.slope >= 0.0:
        return start
    low, high = start, None
    k = min(guess, longest)
    if known is not None and known.k <= longest:
        if known.slope < 0.0:
            low, k = known, min(max(guess, 2.0 * known.k), longest)
        else:
            high = known
            k = guess if guess < 0.98 * known.k else _inside(low, high, curvature, 0)
    for growth in range(MOST_EVALUATIONS):  # until the slope turns
        here = evaluate(k)
        if here.slope >= 0.0:
            high = here
        else:
            low = here
            if k == longest:
                return here
        if high is not None:
            break
        k = min(k * 4.0 ** (growth + 1), longest)  # a guess may be orders too small
    if high is None:
        return low
    for evaluation in range(MOST_EVALUATIONS):
        if high.slope == 0.0:
            return high
        better = low if low.value <= high.value else high
        if better.value - _lower_bound(low, high, curvature) <= tolerance:
            return better
        k = _inside(low, high, curvature, evaluation)
        if not low.k < k < high.k:
            return better
        here = evaluate(k)
        if here.slope < 0.0:
            low = here
        else:
            high = here
    return low if low.value <= high.value else high


def _meeting(low: Height, high: Height, curvature: float) -> float:
    """How far above low.k the parabolas through both ends meet."""
    width = high.k - low.k
    bend = 0.5 * curvature * width
    return (low.value - high.value + (high.slope - bend) * width) / (
        high.slope - low.slope - 2.0 * bend
    )


def _lower_bound(low: Height, high: Height, curvature: float) -> float:
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


def _inside(low: Height, high: Height, curvature: float, evaluation: int) -> float:
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
) -> float:
    """The minimiser of a smooth convex function of one variable, by guarded Newton steps.

    From the second step on the derivative is taken for the cubic through the last two
    points, which with both derivatives is of higher order than Newton's tangent and costs nothing;
    by how much the two differ says how far off the new point may be. If that
    is within the tolerance it is not looked at any more.

    Parameters
    ----------
    derivatives : callable
        x → (first, second derivative).
    start : float
    tolerance : float
        First derivative at which to stop.
    """
    low, high = -math.inf, math.inf
    x = start
    reach = 10.0  # far out the curvature says little: steps may grow, but step by step
    before: tuple[float, float, float] | None = None
    for _ in range(100):
        slope, curvature = derivatives(x)
        if not abs(slope) > tolerance:  # also if it is not a number
            break
        if slope < 0.0:
            low = x
        else:
            high = x
        step = -slope / curvature if curvature > 0.0 else math.copysign(math.inf, -slope)
        if abs(step) <= 1e-15 * abs(x):
            break
        error = math.inf
        if before is not None and curvature > 0.0 and abs(slope) < SMALLER * abs(before[1]):
            curved = _inverse_cubic(before, (x, slope, curvature)) - x
            ratio = slope / before[1]
            # What the tangent lacks, and what is left if slopes fall as they did: where the
            # function is quadratic on this side alone the first one is nothing.
            error = max(abs(curvature * (curved - step) * ratio), abs(slope) * ratio * ratio)
            step = curved
        before = (x, slope, curvature) if curvature > 0.0 else None
        new = x + min(max(step, -reach), reach)
        inside = low < new < high
        x = new if inside else 0.5 * (low + high)
        if inside and CAUTION * error <= tolerance:
            break
        reach *= 4.0
    return x


def _inverse_cubic(first: tuple[float, float, float], second: tuple[float, float, float]) -> float:
    """Where a derivative vanishes, from two points with it and the second one.

    x as a cubic of the derivative through both points, Hermite's, at 0.
    """
    (x0, y0, c0), (x1, y1, c1) = first, second
    width = y1 - y0
    t = -y0 / width
    u = 1.0 - t
    return (
        u * u * (1.0 + 2.0 * t) * x0
        + t * t * (3.0 - 2.0 * t) * x1
        + width * t * u * (u / c0 - t / c1)
    )
