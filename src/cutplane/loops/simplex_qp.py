"""The reduced problem: min ½C·|v|² − bᵀβ with v = Σ β_j p_j, over the simplex β ≥ 0, Σβ = 1.

Point 0 is the origin, with b = 0.

A primal active-set method: Wolfe's nearest-point algorithm with a linear term. It works on
the points p_j and an orthogonal factor, never on products of points, because the differences
that decide may be far below the rounding errors of C·|p|².

The support S holds affinely independent points. Its shortest one is the base r, and
the differences d_j = p_j − p_r of the others are factored, D = L·U (one row per point, L
lower triangular, U orthonormal). The minimiser over the affine hull of S is

    v = (p_r − UᵀU p_r) + Uᵀq,    L q = (b_S − b_r)/C,    Lᵀβ_S = q − U p_r,

and β_r = 1 − the sum of the others. Nothing large cancels: the part of p_r orthogonal to the
hull comes from orthogonalisation, and the part of v along the hull from b alone. So v is
precise even if the rounded weights no longer determine it. If the origin is in the support,
it is the base. Then weights far below 1 keep their relative precision, which large C needs.
The base is the shortest point, so a difference has hardly larger rounding errors than its
point.

Each round

1. goes to this minimiser, or as far as all weights stay positive. If a weight becomes zero,
   its point leaves the support, and the round tries the next minimiser;
2. computes the gradient C·<p_j, v> − b_j, and the point with the lowest gradient enters. If
   this point depends on the support, it gives a direction without curvature, and the move
   along it ends when a weight becomes zero.

U grows by Gram–Schmidt, repeated until it is orthogonal to rounding, and shrinks by
rotations. The number of rounds is small with a warm start, and nothing here depends on a step
size or a penalty. The Frank–Wolfe gap βᵀg − min_j g_j bounds the error.

Arrays that all functions share:

points, lengths : (t, width), (t,)
    The points, one per row (only the first ``width`` columns count), and their norms.
basis, factor : (s, width), (s, s)
    U and L. The row of ``basis`` after the last holds the vector at work: a difference on
    its way into U, or v.
support : (s + 1,)
    The base, then the points of the factor's rows. ``size`` counts these, without the base.
target, coef : (s,)
    Scratch.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import jit

# Most Gram–Schmidt passes. Two are enough, unless only rounding errors are left of the vector.
PASSES = 4

# After so many rounds without a gain the method stops.
FRUITLESS = 10


# The point that leaves the support: its position there, or one of these values.
_BASE = -1
_NOBODY = -2


@jit(reassociate=True)
def _dot(x, i, y, j, width):
    s = 0.0
    for c in range(width):
        s += x[i, c] * y[j, c]
    return s


@jit
def solve(
    points, lengths, offsets, C, width, dependent, beta, gradient, basis, factor, support, target,
    coef, size, rounds,
):  # fmt: skip
    """Minimise from the feasible ``beta``, in place; returns (rounds used, gap, size).

    A turn of the loop adds a point to the support, removes a point, or moves to the minimiser over
    the hull. All is in one function, because calls would double the time of compilation.

    Parameters
    ----------
    points, lengths, offsets, C, width
        The problem.
    dependent : float
        A point is dependent if its distance from the support's hull is at most this part of its
        length.
    beta : (t,) array
        A feasible start; on return the minimiser.
    gradient : (t,) array
        On return the gradient at the minimiser.
    basis, factor, support, target, coef : work arrays
        For ``s`` points in the support, ``s`` one more than can be independent. On return
        v is in the row of ``basis`` after the last.
    size : int
        Points in the factor left by the last call, if it still fits ``beta``; else −1.
    rounds : int
        Most points that may enter.
    """
    t = beta.shape[0]
    entering = _NOBODY
    leaving = _BASE if size < 0 else _NOBODY
    j = end = t  # of the points from j to end, those with weight and the entering one shall come in
    best = -np.inf
    fruitless = 0
    used = 0
    while True:
        if leaving == _BASE:  # factor all points anew
            base = _NOBODY
            for i in range(t):
                if (beta[i] > 0.0 or i == entering) and (base < 0 or lengths[i] < lengths[base]):
                    base = i
            support[0] = base
            size = 0
            j = 0
            end = t
        elif leaving != _NOBODY:  # take this point out of the support and the factor
            for r in range(leaving, size - 1):
                support[r + 1] = support[r + 2]
                for c in range(r + 2):
                    factor[r, c] = factor[r + 1, c]
            for r in range(leaving, size - 1):  # rotate the superdiagonal away
                h = math.hypot(factor[r, r], factor[r, r + 1])
                cosine = factor[r, r] / h
                sine = factor[r, r + 1] / h
                factor[r, r] = h
                for k in range(r + 1, size - 1):
                    u = factor[k, r]
                    v = factor[k, r + 1]
                    factor[k, r] = cosine * u + sine * v
                    factor[k, r + 1] = cosine * v - sine * u
                for c in range(width):
                    u = basis[r, c]
                    v = basis[r + 1, c]
                    basis[r, c] = cosine * u + sine * v
                    basis[r + 1, c] = cosine * v - sine * u
            size -= 1
        leaving = _NOBODY
        base = support[0]
        while j < end and (j == base or not (beta[j] > 0.0 or j == entering)):
            j += 1
        takes = j < end
        # The vector at work is the difference that comes in, or the base. It is made orthogonal to
        # the basis. ``coef`` are its coordinates there, ``left`` is the norm of the rest.
        for c in range(width):
            basis[size, c] = points[j, c] - points[base, c] if takes else points[base, c]
        for k in range(size):
            coef[k] = 0.0
        left = math.sqrt(_dot(basis, size, basis, size, width))
        for _ in range(PASSES):
            if left == 0.0:
                break
            for k in range(size):
                s = _dot(basis, k, basis, size, width)
                coef[k] += s
                for c in range(width):
                    basis[size, c] -= s * basis[k, c]
            before = left
            left = math.sqrt(_dot(basis, size, basis, size, width))
            if left > 0.5 * before:
                break
        if takes:
            for k in range(size):  # the factor's next row, and x if point j depends on the support
                factor[size, k] = target[k] = coef[k]
            if left > dependent * (lengths[j] + lengths[base]) and size < width:
                for c in range(width):
                    basis[size, c] /= left
                factor[size, size] = left
                size += 1
                support[size] = j
                j += 1
                continue
        else:  # the minimiser over the affine hull: v, and the weights to target
            for r in range(size):
                s = (offsets[support[r + 1]] - offsets[base]) / C
                for c in range(r):
                    s -= factor[r, c] * target[c]
                s /= factor[r, r]
                target[r] = s
                for c in range(width):
                    basis[size, c] += s * basis[r, c]
            for r in range(size):
                target[r] -= coef[r]
        rest = 1.0
        for r in range(size - 1, -1, -1):
            target[r] /= factor[r, r]
            rest -= target[r]
            for c in range(r):
                target[c] -= factor[r, c] * target[r]
        if takes:
            # A move of weight along e_j − x leaves Σβ and, up to rounding, v as they are. It only
            # changes bᵀβ, which must not fall. Move until some point, or j itself, has no weight.
            gain = offsets[j] - offsets[base]
            for r in range(size):
                gain -= target[r] * (offsets[support[r + 1]] - offsets[base])
            sign = 1.0 if gain >= 0.0 else -1.0
            length = np.inf if gain >= 0.0 else beta[j]
            for r in range(-1, size):
                loss = sign * (rest if r < 0 else target[r])
                if loss > 0.0 and beta[support[r + 1]] < length * loss:
                    length = beta[support[r + 1]] / loss
                    leaving = r
            if 0.0 < length < np.inf:
                for r in range(-1, size):
                    i = support[r + 1]
                    beta[i] = max(0.0, beta[i] - length * sign * (rest if r < 0 else target[r]))
                beta[j] = max(0.0, beta[j] + sign * length)
                beta[j if leaving == _NOBODY else support[leaving + 1]] = 0.0
            if leaving == _BASE:
                entering = _NOBODY
            elif leaving == _NOBODY:
                j += 1
            continue
        # Move to the target weights, or as far as all stay positive.
        entering = _NOBODY
        length = 1.0
        for r in range(-1, size):
            old = beta[support[r + 1]]
            new = rest if r < 0 else target[r]
            if new <= 0.0:
                ratio = old / (old - new) if old > 0.0 else 0.0
                if leaving == _NOBODY or ratio < length:
                    length = ratio
                    leaving = r
        for r in range(-1, size):
            i = support[r + 1]
            new = rest if r < 0 else target[r]
            beta[i] = new if length == 1.0 else max(0.0, beta[i] + length * (new - beta[i]))
        if leaving != _NOBODY:
            beta[support[leaving + 1]] = 0.0
            continue
        value = -0.5 * C * _dot(basis, size, basis, size, width)
        mean = 0.0
        lowest = np.inf
        for i in range(t):
            gradient[i] = C * _dot(points, i, basis, size, width) - offsets[i]
            value += beta[i] * offsets[i]
            mean += beta[i] * gradient[i]
            if gradient[i] < lowest:
                lowest = gradient[i]
                entering = i
        gap = mean - lowest
        # If a round gains almost nothing compared with the gap, this is rounding, or a detour over
        # a dependent point. Some such rounds are allowed.
        fruitless = fruitless + 1 if value - best <= 1e-9 * gap else 0
        best = max(best, value)
        inside = False
        for r in range(size + 1):
            inside = inside or support[r] == entering
        if not gap > 0.0 or fruitless > FRUITLESS or inside or used == rounds:
            return used, gap, size
        used += 1
        if lengths[entering] < 0.25 * lengths[support[0]]:
            leaving = _BASE  # the entering point must become the base, because it is far shorter
        else:
            j = entering
            end = entering + 1
