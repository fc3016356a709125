"""Minimising convex functions of one variable: ½A k² + B k + R(k) over k ≥ 0, and the bias.

``minimise_convex`` serves every risk from values and derivatives; the hinge's
exact search by selection is in ``linear.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

MOST_EVALUATIONS = 30


def minimise_convex(
    evaluate: Callable[[float], tuple[float, float]],
    start: tuple[float, float],
    guess: float,
    tolerance: float,
    longest: float = math.inf,
) -> float:
    """The minimiser over k ≥ 0 of a convex function of one variable.

    Keeps a bracket whose ends have derivatives of opposite sign. Each end's
    tangent lies below the function, so the value at which the two meet bounds
    the minimum: the search stops once the better end is within ``tolerance``
    of that bound.

    Parameters
    ----------
    evaluate : callable
        k → (value, derivative).
    start : (float, float)
        Value and derivative at 0.
    guess : float
        First k to try, positive.
    tolerance : float
        Acceptable distance to the minimum.
    longest : float, optional
        Where to stop if the function still falls there.
    """
    value, slope = start
    if slope >= 0.0:
        return 0.0
    low, low_value, low_slope = 0.0, value, slope
    k = min(guess, longest)
    for growth in range(MOST_EVALUATIONS):  # until the slope turns
        value, slope = evaluate(k)
        if slope >= 0.0:
            break
        low, low_value, low_slope = k, value, slope
        if k == longest:
            return k
        k = min(k * 4.0 ** (growth + 1), longest)  # a guess may be orders too small
    else:
        return low
    high, high_value, high_slope = k, value, slope
    for evaluation in range(MOST_EVALUATIONS):
        if high_slope == 0.0:
            return high
        width = high - low
        meet = (low_value - high_value + high_slope * width) / (high_slope - low_slope)
        bound = low_value + low_slope * min(max(meet, 0.0), width)
        # Not before there is progress: else the next cut may be one that is known.
        progress = low > 0.0 or high_value < low_value
        if progress and min(low_value, high_value) - bound <= tolerance:
            break
        # The derivative's secant is right for smooth functions, the tangents'
        # meeting point for kinks: take turns, and halve if the bracket stays wide.
        secant = -low_slope / (high_slope - low_slope) * width
        inner = (secant, meet, secant, meet, 0.5 * width)[evaluation % 5]
        k = low + min(max(inner, 0.02 * width), 0.98 * width)
        if not low < k < high:
            break
        value, slope = evaluate(k)
        if slope < 0.0:
            low, low_value, low_slope = k, value, slope
        else:
            high, high_value, high_slope = k, value, slope
    return low if low_value <= high_value else high


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
        if abs(step) <= 1e-15 * abs(x):
            break
        new = x + min(max(step, -reach), reach)
        x = new if low < new < high else 0.5 * (low + high)
        reach *= 4.0
    return x
