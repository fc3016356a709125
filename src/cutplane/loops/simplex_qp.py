"""The reduced problem: min ½ βᵀHβ − bᵀβ over the simplex β ≥ 0, Σβ = 1.

A primal active-set method (Wolfe's nearest-point algorithm with a linear
term). The support S holds affinely independent points; on its affine hull the
minimiser solves (H + σ11ᵀ)β = b + ν1, Σβ = 1, whose matrix is positive definite
and is kept as a Cholesky factor that grows and shrinks with S. Each round

1. moves to that minimiser, or towards it until a weight becomes zero and its
   point leaves the support;
2. lets the point with the most negative multiplier enter. One that depends on
   the support gives a direction without curvature: the move along it ends where
   a weight becomes zero.

The number of rounds is small with a warm start, and the answer is as exact as H,
however close to singular H is: nothing here depends on a step size or a penalty.
The Frank–Wolfe gap βᵀ(Hβ − b) − min_j (Hβ − b)_j bounds the error.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import jit

# A pivot below this part of its diagonal entry is rounding, not information.
DEPENDENT = 1e-13


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
def _hull_minimiser(linear, support, size, factor, x, ones):
    """x = the minimiser over the affine hull of the support."""
    for r in range(size):
        x[r] = linear[support[r]]
        ones[r] = 1.0
    _solve_lower(factor, size, x)
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


@jit
def _slide_in(hessian, linear, shift, beta, support, size, factor, j, x):
    """Let the dependent point j enter by sliding along the flat direction.

    x solves (H + σ11ᵀ) x = column j, so e_j − x changes neither Σβ nor (to rounding)
    Hβ. Returns the new size.
    """
    slope = linear[j]
    for r in range(size):
        x[r] = factor[size, r]
    _solve_upper(factor, size, x)
    for r in range(size):
        slope -= x[r] * linear[support[r]]
    sign = 1.0
    longest = np.inf
    leaving = -1
    if beta[j] > 0.0 and slope < 0.0:  # j may also leave (warm start only)
        sign = -1.0
        longest = beta[j]
    for r in range(size):
        if sign * x[r] > 0.0 and beta[support[r]] < longest * sign * x[r]:
            longest = beta[support[r]] / (sign * x[r])
            leaving = r
    for r in range(size):
        beta[support[r]] = max(0.0, beta[support[r]] - sign * longest * x[r])
    beta[j] += sign * longest
    if leaving < 0:
        beta[j] = 0.0
        return size
    beta[support[leaving]] = 0.0
    _remove(support, size, factor, leaving)
    if _append(hessian, shift, support, size - 1, factor, j):
        return size
    beta[j] = 0.0  # rounding: leave it out, the weights are normalised at the end
    return size - 1


@jit
def _to_hull_minimiser(linear, beta, support, size, factor, x, ones):
    """Move towards the minimiser of the hull until all weights are positive."""
    while True:
        _hull_minimiser(linear, support, size, factor, x, ones)
        step = 1.0
        leaving = -1
        for r in range(size):
            if x[r] <= 0.0:
                old = beta[support[r]]
                ratio = old / (old - x[r]) if old > x[r] else 0.0
                if leaving < 0 or ratio < step:
                    step = ratio
                    leaving = r
        if leaving < 0:
            for r in range(size):
                beta[support[r]] = x[r]
            return size
        for r in range(size):
            j = support[r]
            beta[j] = max(0.0, beta[j] + step * (x[r] - beta[j]))
        beta[support[leaving]] = 0.0
        _remove(support, size, factor, leaving)
        size -= 1


@jit
def solve(hessian, linear, beta, factor, support, x, ones, gradient, rounds):
    """Minimise from the feasible ``beta``, in place; returns (rounds used, gap).

    Parameters
    ----------
    hessian : (t, t) array
        Positive semidefinite.
    linear : (t,) array
        b.
    beta : (t,) array
        A feasible start; on return the minimiser.
    factor, support, x, ones, gradient : work arrays
        (t + 1, t + 1) and (t + 1,) each; ``support`` of integers.
    rounds : int
        Most points that may enter.
    """
    t = linear.shape[0]
    shift = 0.0
    for j in range(t):
        shift = max(shift, hessian[j, j])
    if shift == 0.0:
        shift = 1.0
    size = 0
    for j in range(t):
        if beta[j] > 0.0:
            if _append(hessian, shift, support, size, factor, j):
                size += 1
            else:
                size = _slide_in(hessian, linear, shift, beta, support, size, factor, j, x)
    best = np.inf
    gap = np.inf
    for used in range(rounds):
        size = _to_hull_minimiser(linear, beta, support, size, factor, x, ones)
        total = 0.0
        for r in range(size):
            total += beta[support[r]]
        for r in range(size):
            beta[support[r]] /= total
        mean = 0.0
        linear_part = 0.0
        magnitude = 0.0
        lowest = np.inf
        entering = 0
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
        if _append(hessian, shift, support, size, factor, entering):
            size += 1
        else:
            size = _slide_in(hessian, linear, shift, beta, support, size, factor, entering, x)
    return rounds, gap
