"""The reduced problem: min ½ βᵀHβ − bᵀβ over the simplex β ≥ 0, Σβ = 1.

Point 0 is the origin: its row of H and its entry of b are zero.

A primal active-set method (Wolfe's nearest-point algorithm with a linear
term) in incremental form: the state is β with its gradient g = Hβ − b, and a
change δ of β changes g by Hδ. The caller supplies g, which it may know far more
precisely than H: then errors of H enter through δ only and shrink with it.

The support S holds affinely independent points. The step to the minimiser over
their affine hull solves

- with the origin in the support, Hδ = −g over the other points; the origin takes
  the rest of the weight. Weights far below 1 keep their relative precision, which
  large C needs;
- without it, (H + σ11ᵀ)δ = −g − ν1 with Σδ = 0.

Both matrices are positive definite and kept as a Cholesky factor that grows and
shrinks with S. Each round

1. takes that step, or as much of it as leaves all weights positive: where one
   becomes zero its point leaves the support;
2. lets the point with the most negative multiplier enter. One that depends on
   the support gives a direction without curvature: the move along it ends where
   a weight becomes zero.

The number of rounds is small with a warm start, and nothing here depends on a
step size or a penalty. The Frank–Wolfe gap βᵀg − min_j g_j bounds the error.

Where H is so close to singular that a pivot is rounding and no slide helps, a point
keeps its weight but stays out of the support: β and g remain consistent.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import jit

# A pivot below this part of its diagonal entry, per point of the support, is rounding.
DEPENDENT = 1e-15

# Rounds without a gain after which no more is expected.
FRUITLESS = 10

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
    if rest <= DEPENDENT * (size + 2) * total:
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
def _hull_step(beta, gradient, shift, support, size, factor, step, ones):
    """step = the way to the minimiser over the affine hull; returns the origin's part."""
    for r in range(size):
        step[r] = -gradient[support[r]]
    _solve_lower(factor, size, step)
    if shift > 0.0:
        for r in range(size):
            ones[r] = 1.0
        _solve_lower(factor, size, ones)
        so = 0.0
        oo = 0.0
        for r in range(size):
            so += step[r] * ones[r]
            oo += ones[r] * ones[r]
        for r in range(size):
            step[r] -= so / oo * ones[r]
    _solve_upper(factor, size, step)
    rest = _leftover(step, size)
    if shift > 0.0:
        _spread(beta, support, size, step, rest)
        return 0.0
    return rest


@jit
def _leftover(step, size):
    """−Σ step."""
    rest = 0.0
    for r in range(size):
        rest -= step[r]
    return rest


@jit
def _spread(beta, support, size, step, rest):
    """Add to the steps what rounding left of their sum, in proportion to the weights."""
    total = 0.0
    for r in range(size):
        total += beta[support[r]]
    if total > 0.0:
        for r in range(size):
            step[r] += rest * beta[support[r]] / total


@jit
def _move(hessian, beta, gradient, support, size, step, length):
    """Change the weights of the support by length·step, and the gradient accordingly."""
    for r in range(size):
        j = support[r]
        beta[j] = max(0.0, beta[j] + length * step[r])
    for j in range(1, gradient.shape[0]):
        s = 0.0
        for r in range(size):
            s += hessian[j, support[r]] * step[r]
        gradient[j] += length * s


@jit
def _settle(hessian, shift, sigma, beta, gradient, support, size, factor, step, ones):
    """Step towards the minimiser of the hull until no weight is negative.

    Returns the size, the shift (σ without the origin in the support, else 0) and the
    decrease of the objective.
    """
    gained = 0.0
    while True:
        origin = _hull_step(beta, gradient, shift, support, size, factor, step, ones)
        length = 1.0
        leaving = _NOBODY
        for r in range(size):
            old = beta[support[r]]
            if old + step[r] <= 0.0:
                ratio = -old / step[r] if step[r] < 0.0 else 0.0
                if leaving == _NOBODY or ratio < length:
                    length = ratio
                    leaving = np.int64(r)
        if shift == 0.0 and beta[0] + origin <= 0.0:
            ratio = -beta[0] / origin if origin < 0.0 else 0.0
            if leaving == _NOBODY or ratio < length:
                length = ratio
                leaving = _ORIGIN
        slope = 0.0
        for r in range(size):
            slope += gradient[support[r]] * step[r]
        gained -= length * (1.0 - 0.5 * length) * slope  # curvature is minus the slope here
        _move(hessian, beta, gradient, support, size, step, length)
        if shift == 0.0:
            beta[0] = max(0.0, beta[0] + length * origin)
        if leaving == _NOBODY:
            return size, shift, gained
        if leaving == _ORIGIN:
            beta[0] = 0.0
            shift = sigma
            size = _refactor(hessian, shift, beta, gradient, support, size, factor, step)
        else:
            beta[support[leaving]] = 0.0
            _remove(support, size, factor, leaving)
            size -= 1


@jit
def _slide(hessian, beta, gradient, support, size, factor, j, step):
    """Move weight to the dependent point j along the flat direction; returns who leaves.

    With x from (H + σ11ᵀ) x = column j (H x = column j if the origin is in the support) the
    direction e_j − x, the origin taking the rest, changes neither Σβ nor, to rounding, Hβ.
    The answer is a place in the support, or _ORIGIN, or _NOBODY if j itself is left without
    weight.
    """
    for r in range(size):
        step[r] = factor[size, r]
    _solve_upper(factor, size, step)
    slope = gradient[j]
    rest = -1.0
    for r in range(size):
        step[r] = -step[r]
        slope += step[r] * gradient[support[r]]
        rest -= step[r]
    with_origin = beta[0] > 0.0 and j != 0
    if not with_origin:
        _spread(beta, support, size, step, rest)
    if slope > 0.0:
        if beta[j] == 0.0:
            return _NOBODY
        for r in range(size):
            step[r] = -step[r]
        rest = -rest
    sign = -1.0 if slope > 0.0 else 1.0
    length = beta[j] if sign < 0.0 else np.inf
    leaving = _NOBODY
    for r in range(size):
        if step[r] < 0.0 and beta[support[r]] < -length * step[r]:
            length = -beta[support[r]] / step[r]
            leaving = np.int64(r)
    if with_origin and rest < 0.0 and beta[0] < -length * rest:
        length = -beta[0] / rest
        leaving = _ORIGIN
    if length == np.inf:  # nothing blocks: rounding only
        return _NOBODY
    _move(hessian, beta, gradient, support, size, step, length)
    for i in range(1, gradient.shape[0]):
        gradient[i] += sign * length * hessian[i, j]
    if with_origin:
        beta[0] = max(0.0, beta[0] + length * rest)
    beta[j] = max(0.0, beta[j] + sign * length)
    if leaving == _NOBODY:
        beta[j] = 0.0
    elif leaving == _ORIGIN:
        beta[0] = 0.0
    else:
        beta[support[leaving]] = 0.0
    return leaving


@jit
def _take(hessian, shift, beta, gradient, support, size, factor, j, step):
    """Take point j into the factor, sliding if it is dependent; returns the size and who left."""
    if _append(hessian, shift, support, size, factor, j):
        return size + 1, _NOBODY
    leaving = _slide(hessian, beta, gradient, support, size, factor, j, step)
    if leaving >= 0:
        _remove(support, size, factor, leaving)
        size -= 1
        if _append(hessian, shift, support, size, factor, j):
            size += 1
    return size, leaving


@jit
def _refactor(hessian, shift, beta, gradient, support, size, factor, step):
    """Factor the support anew; returns the size."""
    kept = np.int64(0)
    for place in range(size):
        j = support[place]
        if beta[j] > 0.0:
            kept, _ = _take(hessian, shift, beta, gradient, support, kept, factor, j, step)
    return kept


@jit
def _enter(hessian, shift, sigma, beta, gradient, support, size, factor, j, step):
    """Take point j into the support; returns the size and the shift."""
    grown, leaving = _take(hessian, shift, beta, gradient, support, size, factor, j, step)
    if j != 0 and leaving != _ORIGIN:
        return grown, shift
    # Where the origin enters or leaves the whole factor changes.
    if j == 0:
        support[size] = 0
    else:
        support[size] = j
        size += 1
    place = 0
    for r in range(size):  # without the origin, and without what has no weight any more
        if support[r] != 0 and beta[support[r]] > 0.0:
            support[place] = support[r]
            place += 1
    shift = 0.0 if j == 0 else sigma
    return _refactor(hessian, shift, beta, gradient, support, np.int64(place), factor, step), shift


@jit
def solve(hessian, beta, gradient, factor, support, step, ones, rounds):
    """Minimise from the feasible ``beta``, in place; returns (rounds used, gap).

    Parameters
    ----------
    hessian : (t, t) array
        Positive semidefinite; row and column 0 are zero.
    beta : (t,) array
        A feasible start; on return the minimiser.
    gradient : (t,) array
        Hβ − b at the start; on return at the minimiser. Its first entry is zero.
    factor, support, step, ones : work arrays
        (t + 1, t + 1) and (t + 1,) each; ``support`` of integers.
    rounds : int
        Most points that may enter.
    """
    t = beta.shape[0]
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
    size = _refactor(hessian, shift, beta, gradient, support, size, factor, step)
    gap = np.inf
    fruitless = 0
    for used in range(rounds):
        size, shift, gained = _settle(
            hessian, shift, sigma, beta, gradient, support, size, factor, step, ones
        )
        mean = 0.0
        lowest = np.inf
        entering = np.int64(0)
        for j in range(t):
            mean += beta[j] * gradient[j]
            if gradient[j] < lowest:
                lowest = gradient[j]
                entering = np.int64(j)
        gap = mean - lowest
        # A step that gains next to nothing against the gap is rounding, or a detour
        # over a dependent point: some are allowed.
        fruitless = fruitless + 1 if gained <= 1e-9 * gap else 0
        inside = entering == 0 and shift == 0.0
        for r in range(size):
            inside = inside or support[r] == entering
        if gap <= 0.0 or fruitless > FRUITLESS or (inside and gained <= 1e-3 * gap):
            return used, gap
        if not inside:
            size, shift = _enter(
                hessian, shift, sigma, beta, gradient, support, size, factor, entering, step
            )
    return rounds, gap
