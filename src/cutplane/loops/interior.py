"""Rows of the interior point method; see ``solvers.interior`` for its equations.

A row has u strictly inside the domain (low, high) of the conjugate, p > 0 with p·(high − u) → 0 and
q > 0 with q·(u − low) → 0. If the domain has no lower end (low = −∞), q is 0 and has no effect.
``curvature`` is ℓ*''. ``moves`` are, for each row, the changes of u, p and q in the last direction.
"""

from __future__ import annotations

import math

from .._jit import jit
from ..losses import argument, conjugate_slope, direction, value

# p and q in the beginning, in units of z. With 1 steps on hard margins are shorter.
START = 3.0


@jit
def _linear(loss, curvature, z, u, p, q, du, dp, dq, low, high, target):
    """D and e of Δu = D(Δz − e), and the parts of Δp and Δq that do not depend on Δu.

    The equation is (p + Δp)(high − u − Δu) = target, in which the product Δp·Δu is taken from the
    given moves; likewise for q.
    """
    above = high - u
    p_own = (target - p * above + dp * du) / above
    ratio = p / above
    q_own = 0.0
    if low > -math.inf:
        below = u - low
        q_own = (target - q * below - dq * du) / below
        ratio += q / below
    rest = z - conjugate_slope(loss, u) - p + q
    return 1.0 / (curvature + ratio), p_own - q_own - rest, p_own, q_own


@jit
def begin(loss, low, high, u, p, q):
    """Start in the middle of the domain, at the point for which z = 0 solves the equation.

    Far from the ends of p and q first steps are longer: p is as large as margins are on the way.
    """
    for i in range(u.shape[0]):
        u[i] = 0.5 * (low + high) if low > -math.inf else high - 0.5
        p[i] = START
        q[i] = 0.0
        if low > -math.inf:
            q[i] = max(START, p[i] + conjugate_slope(loss, u[i]))


@jit
def terms(
    loss, curvature, scores, bias, labels, u, p, q, moves, low, high, target, weights, bends, coef
):  # fmt: skip
    """bends = weight·D, and coef = weight·D·e·dz/ds."""
    for i in range(scores.shape[0]):
        y = labels[i]
        z = argument(loss, scores[i] + bias, y)
        d, e, _, _ = _linear(
            loss, curvature, z, u[i], p[i], q[i], moves[i, 0], moves[i, 1], moves[i, 2],
            low, high, target,
        )  # fmt: skip
        bends[i] = weights[i] * d
        coef[i] = weights[i] * d * e * direction(loss, y)


@jit
def move(loss, curvature, scores, bias, labels, u, p, q, moves, low, high, target, ways):
    """Fill in the moves for changes of the scores by ``ways``.

    Returns the longest step, at most 1, at which all stay inside, and Σ p(high − u) + q(u − low)
    after a step t as the coefficients of 1, t and t².
    """
    longest = 1.0
    now = 0.0
    first = 0.0
    second = 0.0
    for i in range(scores.shape[0]):
        y = labels[i]
        z = argument(loss, scores[i] + bias, y)
        d, e, p_own, q_own = _linear(
            loss, curvature, z, u[i], p[i], q[i], moves[i, 0], moves[i, 1], moves[i, 2],
            low, high, target,
        )  # fmt: skip
        du = d * (direction(loss, y) * ways[i] - e)
        above = high - u[i]
        dp = p_own + p[i] / above * du
        if du > 0.0:
            longest = min(longest, above / du)
        if dp < 0.0:
            longest = min(longest, -p[i] / dp)
        now += p[i] * above
        first += dp * above - p[i] * du
        second -= dp * du
        dq = 0.0
        if low > -math.inf:
            below = u[i] - low
            dq = q_own - q[i] / below * du
            if du < 0.0:
                longest = min(longest, -below / du)
            if dq < 0.0:
                longest = min(longest, -q[i] / dq)
            now += q[i] * below
            first += dq * below + q[i] * du
            second += dq * du
        moves[i, 0] = du
        moves[i, 1] = dp
        moves[i, 2] = dq
    return longest, now, first, second


@jit
def take(loss, scores, ways, bias, step, labels, weights, u, p, q, moves, coef):
    """Make a step; coef = weight·u·dz/ds. Returns Σ weight·ℓ(z) there."""
    total = 0.0
    for i in range(scores.shape[0]):
        scores[i] += step * ways[i]
        u[i] += step * moves[i, 0]
        p[i] += step * moves[i, 1]
        q[i] += step * moves[i, 2]
        coef[i] = weights[i] * u[i] * direction(loss, labels[i])
        total += weights[i] * value(loss, argument(loss, scores[i] + bias, labels[i]))
    return total
