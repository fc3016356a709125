"""The reduced problem: min ½ βᵀHβ − bᵀβ over the simplex β ≥ 0, Σβ = 1.

Point 0 is the origin: its row of H and its entry of b are zero.

A primal active-set method (Wolfe's nearest-point algorithm with a linear
term). The support S holds affinely independent points. Their affine hull's
minimiser solves

- with the origin in the support, Hβ = b over the other points; the origin takes
  the rest of the weight. Weights far below 1 keep their relative precision, which
  large C needs;
- without it, (H + σ11ᵀ)β = b + ν1, Σβ = 1.

Both matrices are positive definite and kept as a Cholesky factor that grows and
shrinks with S. Each round

1. moves to that minimiser, or towards it until a weight becomes zero and its
   point leaves the support;
2. lets the point with the most negative multiplier enter. One that depends on
   the support gives a direction without curvature: the move along it ends where
   a weight becomes zero.

The number of rounds is small with a warm start, and nothing here depends on a
step size or a penalty: the answer is as exact as H allows. The Frank–Wolfe gap
βᵀ(Hβ − b) − min_j (Hβ − b)_j bounds the error.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import jit

# A pivot below this part of its diagonal entry is rounding, not information.
DEPENDENT = 1e-13

# Typed, because a literal would have the helpers compiled once for it and once for integers.
_NOBODY = np.int64(-1)
_ORIGIN = np.int64(-2)


@jit
def _append(hessian, shift, support, size, factor, j):
    """Extend the factor by point j; returns False, changing nothing, if j is dependent."""
    total = hessian[j, j] + shift
    rest = total
    for r in range(size):
        s = hessian[support[r], j] + shift
        for c in range(r):
            s -= factor[r, c] * factor[size, c]
        s /= factor[r, r]
        factor[size, r] = s
        rest -= s * s
    if rest <= DEPENDENT * total:
        return False
    factor[size, size] = math.sqrt(rest)
    support[size] = j
    return True


@jit
def _remove(support, size, factor, place):
    """Take the point at ``place`` out of the support and the factor."""
    for r in range(place, size - 1):
        support[r] = support[r + 1]
        for c in range(r + 2):
            factor[r, c] = factor[r + 1, c]
    for r in range(place, size - 1):  # rotate the superdiagonal away
        a = factor[r, r]
        b = factor[r, r + 1]
        h = math.hypot(a, b)
        cosine = a / h
        sine = b / h
        factor[r, r] = h
        for k in range(r + 1, size - 1):
            u = factor[k, r]
            v = factor[k, r + 1]
            factor[k, r] = cosine * u + sine * v
            factor[k, r + 1] = cosine * v - sine * u


@jit
def _solve_lower(factor, size, x):
    for r in range(size):
        s = x[r]
        for c in range(r):
            s -= factor[r, c] * x[c]
        x[r] = s / factor[r, r]


@jit
def _solve_upper(factor, size, x):
    for r in range(size - 1, -1, -1):
        x[r] /= factor[r, r]
        for c in range(r):
            x[c] -= factor[r, c] * x[r]


@jit
def _hull_minimiser(linear, shift, support, size, factor, x, ones):
    """x = the minimiser over the affine hull of the support; returns the origin's weight."""
    for r in range(size):
        x[r] = linear[support[r]]
    _solve_lower(factor, size, x)
    if shift > 0.0:
        for r in range(size):
            ones[r] = 1.0
        _solve_lower(factor, size, ones)
        xo = 0.0
        oo = 0.0
        for r in range(size):
            xo += x[r] * ones[r]
            oo += ones[r] * ones[r]
        nu = (1.0 - xo) / oo
        for r in range(size):
            x[r] += nu * ones[r]
    _solve_upper(factor, size, x)
    rest = 1.0
    for r in range(size):
        rest -= x[r]
    return 0.0 if shift > 0.0 else rest


@jit
def _settle(hessian, linear, shift, sigma, beta, support, size, factor, x, ones):
    """Move towards the minimiser of the hull until no weight is negative.

    Returns the size and the shift: σ without the origin in the support, else 0.
    """
    while True:
        origin = _hull_minimiser(linear, shift, support, size, factor, x, ones)
        step = 1.0
        leaving = _NOBODY
        for r in range(size):
            if x[r] <= 0.0:
                old = beta[support[r]]
                ratio = old / (old - x[r]) if old > x[r] else 0.0
                if leaving < 0 or ratio < step:
                    step = ratio
                    leaving = r
        origin_leaves = False
        if shift == 0.0 and origin <= 0.0:
            ratio = beta[0] / (beta[0] - origin) if beta[0] > origin else 0.0
            if leaving < 0 or ratio < step:
                step = ratio
                origin_leaves = True
        if leaving < 0 and not origin_leaves:
            beta[0] = origin
            for r in range(size):
                beta[support[r]] = x[r]
            return size, shift
        for r in range(size):
            j = support[r]
            beta[j] = max(0.0, beta[j] + step * (x[r] - beta[j]))
        if shift == 0.0:
            beta[0] = max(0.0, beta[0] + step * (origin - beta[0]))
        if origin_leaves:
            beta[0] = 0.0
            shift = sigma
            size = _refactor(hessian, linear, shift, beta, support, size, factor, x)
        else:
            beta[support[leaving]] = 0.0
            _remove(support, size, factor, leaving)
            size -= 1


@jit
def _slide(linear, beta, support, size, factor, j, x):
    """Move weight to the dependent point j along the flat direction; returns who leaves.

    x solves (H + σ11ᵀ) x = column j (H x = column j with the origin in the support), so
    e_j − x, and the origin taking the rest, changes neither Σβ nor, to rounding, Hβ. The
    answer is a place in the support, or _ORIGIN, or _NOBODY if j itself is left without weight.
    """
    for r in range(size):
        x[r] = factor[size, r]
    _solve_upper(factor, size, x)
    slope = linear[j]
    rest = 1.0
    for r in range(size):
        slope -= x[r] * linear[support[r]]
        rest -= x[r]
    sign = 1.0
    longest = np.inf
    leaving = _NOBODY
    if beta[j] > 0.0 and slope < 0.0:  # j may also leave (warm start only)
        sign = -1.0
        longest = beta[j]
    for r in range(size):
        if sign * x[r] > 0.0 and beta[support[r]] < longest * sign * x[r]:
            longest = beta[support[r]] / (sign * x[r])
            leaving = r
    if beta[0] > 0.0 and j != 0 and sign * rest > 0.0 and beta[0] < longest * sign * rest:
        longest = beta[0] / (sign * rest)
        leaving = _ORIGIN
    if longest == np.inf:  # nothing blocks: rounding only
        return _NOBODY
    for r in range(size):
        beta[support[r]] = max(0.0, beta[support[r]] - sign * longest * x[r])
    if beta[0] > 0.0 and j != 0:
        beta[0] = max(0.0, beta[0] - sign * longest * rest)
    beta[j] = max(0.0, beta[j] + sign * longest)
    if leaving == _NOBODY:
        beta[j] = 0.0
    elif leaving == _ORIGIN:
        beta[0] = 0.0
    else:
        beta[support[leaving]] = 0.0
    return leaving


@jit
def _refactor(hessian, linear, shift, beta, support, size, factor, x):
    """Factor the support anew, dropping dependent points; returns the size."""
    kept = np.int64(0)
    for place in range(size):
        j = support[place]
        if beta[j] > 0.0 and _append(hessian, shift, support, kept, factor, j):
            kept += 1
        elif beta[j] > 0.0:
            leaving = _slide(linear, beta, support, kept, factor, j, x)
            if leaving >= 0:
                _remove(support, kept, factor, leaving)
                kept -= 1
            if leaving != _NOBODY and _append(hessian, shift, support, kept, factor, j):
                kept += 1
            else:
                beta[j] = 0.0
    return kept


@jit
def _enter(hessian, linear, shift, sigma, beta, support, size, factor, j, x):
    """Take point j, which has no weight, into the support; returns the size and the shift."""
    if _append(hessian, shift, support, size, factor, j):
        if j != 0:
            return size + 1, shift
        leaving = _NOBODY
    else:
        leaving = _slide(linear, beta, support, size, factor, j, x)
    if leaving == _NOBODY and j != 0:
        return size, shift
    # What leaves or enters with the origin changes the whole factor.
    if j == 0:
        shift = 0.0
    elif leaving == _ORIGIN:
        shift = sigma
    elif leaving >= 0:
        _remove(support, size, factor, leaving)
        size -= 1
    if j == 0 or leaving == _ORIGIN:
        size = _refactor(hessian, linear, shift, beta, support, size, factor, x)
    if j != 0:
        if _append(hessian, shift, support, size, factor, j):
            size += 1
        else:
            beta[j] = 0.0
    return size, shift


@jit
def _normalise(shift, beta, support, size):
    """Weights that sum to one: the origin's changes if it has any, else all are scaled."""
    total = 0.0
    for r in range(size):
        total += beta[support[r]]
    if shift == 0.0 and total < 1.0:
        beta[0] = 1.0 - total
        return
    beta[0] = 0.0
    for r in range(size):
        beta[support[r]] /= total


@jit
def solve(hessian, linear, beta, factor, support, x, ones, gradient, rounds):
    """Minimise from the feasible ``beta``, in place; returns (rounds used, gap).

    Parameters
    ----------
    hessian : (t, t) array
        Positive semidefinite; row and column 0 are zero.
    linear : (t,) array
        b; its first entry is zero.
    beta : (t,) array
        A feasible start; on return the minimiser.
    factor, support, x, ones, gradient : work arrays
        (t + 1, t + 1) and (t + 1,) each; ``support`` of integers.
    rounds : int
        Most points that may enter.
    """
    t = linear.shape[0]
    sigma = 0.0
    for j in range(t):
        sigma = max(sigma, hessian[j, j])
    if sigma == 0.0:
        sigma = 1.0
    size = np.int64(0)
    for j in range(1, t):
        if beta[j] > 0.0:
            support[size] = j
            size += 1
    shift = 0.0 if beta[0] > 0.0 or size == 0 else sigma
    size = _refactor(hessian, linear, shift, beta, support, size, factor, x)
    best = np.inf
    gap = np.inf
    for used in range(rounds):
        size, shift = _settle(hessian, linear, shift, sigma, beta, support, size, factor, x, ones)
        _normalise(shift, beta, support, size)
        mean = 0.0
        linear_part = 0.0
        magnitude = 0.0
        lowest = np.inf
        entering = np.int64(0)
        for j in range(t):
            s = -linear[j]
            size_of = abs(s)
            for r in range(size):
                part = hessian[j, support[r]] * beta[support[r]]
                s += part
                size_of += abs(part)
            gradient[j] = s
            magnitude = max(magnitude, size_of)
            mean += beta[j] * s
            linear_part += beta[j] * linear[j]
            if s < lowest:
                lowest = s
                entering = j
        objective = 0.5 * (mean - linear_part)
        if objective >= best:  # rounding has the last word
            return used, gap
        best = objective
        gap = mean - lowest
        if gap <= 1e-15 * magnitude or beta[entering] > 0.0:
            return used, gap
        size, shift = _enter(
            hessian, linear, shift, sigma, beta, support, size, factor, entering, x
        )
    return rounds, gap
