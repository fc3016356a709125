"""Minimising convex functions of one variable: ½A k² + B k + R(k) over k ≥ 0, and the bias.

``minimise_convex`` serves every risk from values and derivatives; the hinge's
exact search by selection is in ``linear.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

MOST_EVALUATIONS = 30
# Relative to where it is, a Newton step that is the last one.
SMALL_STEP = 1e-13


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
            return x + step
        new = x + min(max(step, -reach), reach)
        x = new if low < new < high else 0.5 * (low + high)
        reach *= 4.0
    return x
