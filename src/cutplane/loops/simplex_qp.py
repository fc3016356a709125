"""The reduced problem: min ½C·|v|² − bᵀβ with v = Σ β_j p_j, over the simplex β ≥ 0, Σβ = 1.

Point 0 is the origin, with b = 0.

A primal active-set method: Wolfe's nearest-point algorithm with a linear term. It works on
the points p_j and an orthogonal factor, never on their products: what decides may be far
below the rounding of C·|p|².

The support S holds affinely independent points. Its shortest one is the base r, and
the differences d_j = p_j − p_r of the others are factored, D = L·U (one row per point, L
lower triangular, U orthonormal). The minimiser over the affine hull of S is

    v = (p_r − UᵀU p_r) + Uᵀq,    L q = (b_S − b_r)/C,    Lᵀβ_S = q − U p_r,

and β_r is the rest. Nothing large cancels: the part of p_r across the hull is found by
orthogonalising, the part of v along it from b alone. So v is precise where the weights,
rounded, do not determine it any more. With the origin in the support it is the base, and
weights far below 1 keep their relative precision, which large C needs. The base being
short, rounding errors of a difference are those of its point.

Each round

1. goes to that minimiser, or as far as all weights stay positive: where one becomes zero
   its point leaves the support, and the next minimiser is tried;
2. computes the gradient C·<p_j, v> − b_j and lets the point where it is lowest enter. One
   that depends on the support gives a direction without curvature: the move along it ends
   where a weight becomes zero.

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

# Gram–Schmidt passes; the second is enough but where the rest is rounding only.
PASSES = 4

# Rounds without a gain after which no more is expected.
FRUITLESS = 10


# Places in the support. Typed, because a literal would have the helpers compiled once for it
# and once for integers.
_BASE = np.int64(-1)
_NOBODY = np.int64(-2)


@jit(reassociate=True)
def _dot(x, i, y, j, width):
    s = 0.0
    for c in range(width):
        s += x[i, c] * y[j, c]
    return s


@jit
def _orthogonalise(basis, size, width, coef):
    """Make the row after the basis orthogonal to it; returns what is left of its norm.

    ``coef`` becomes its coordinates.
    """
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
    return left


@jit(inline=True)
def _append(points, lengths, width, dependent, basis, factor, support, size, j):
    """Extend the factor by point j; returns False if it depends on the support.

    Its coordinates are in the factor's next row even then.
    """
    base = support[0]
    for c in range(width):
        basis[size, c] = points[j, c] - points[base, c]
    left = _orthogonalise(basis, size, width, factor[size])
    if left <= dependent * (lengths[j] + lengths[base]) or size == width:
        return False
    for c in range(width):
        basis[size, c] /= left
    factor[size, size] = left
    support[size + 1] = j
    return True


@jit
def _remove(basis, width, factor, support, size, place):
    """Take the point at ``place`` out of the support and the factor."""
    for r in range(place, size - 1):
        support[r + 1] = support[r + 2]
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
        for c in range(width):
            u = basis[r, c]
            v = basis[r + 1, c]
            basis[r, c] = cosine * u + sine * v
            basis[r + 1, c] = cosine * v - sine * u


@jit
def _solve_upper(factor, size, x):
    for r in range(size - 1, -1, -1):
        x[r] /= factor[r, r]
        for c in range(r):
            x[c] -= factor[r, c] * x[r]


@jit(inline=True)
def _hull(points, offsets, C, width, basis, factor, support, size, target, coef):
    """Minimise over the affine hull of the support: v after the basis, weights to ``target``.

    Returns the weight of the base.
    """
    base = support[0]
    for c in range(width):
        basis[size, c] = points[base, c]
    _orthogonalise(basis, size, width, coef)
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
    _solve_upper(factor, size, target)
    rest = 1.0
    for r in range(size):
        rest -= target[r]
    return rest


@jit(inline=True)
def _slide(offsets, beta, factor, support, size, j, target):
    """Move weight along the flat direction that the dependent point j gives.

    With x the coordinates of j in the support, e_j − x changes neither Σβ nor, to rounding, v:
    only bᵀβ, which shall not fall. Returns the place of who is left without weight, or _NOBODY
    if that is j itself.
    """
    base = support[0]
    for r in range(size):
        target[r] = factor[size, r]
    _solve_upper(factor, size, target)
    gain = offsets[j] - offsets[base]
    rest = 1.0
    for r in range(size):
        gain -= target[r] * (offsets[support[r + 1]] - offsets[base])
        rest -= target[r]
    sign = 1.0 if gain >= 0.0 else -1.0
    length = np.inf if gain >= 0.0 else beta[j]
    leaving = _NOBODY
    for r in range(-1, size):
        loss = sign * (rest if r < 0 else target[r])
        if loss > 0.0 and beta[support[r + 1]] < length * loss:
            length = beta[support[r + 1]] / loss
            leaving = np.int64(r)
    if length == 0.0 or length == np.inf:
        return leaving
    for r in range(-1, size):
        i = support[r + 1]
        beta[i] = max(0.0, beta[i] - length * sign * (rest if r < 0 else target[r]))
    beta[j] = max(0.0, beta[j] + sign * length)
    if leaving == _NOBODY:
        beta[j] = 0.0
    else:
        beta[support[leaving + 1]] = 0.0
    return leaving


@jit
def _take(
    points, lengths, offsets, width, dependent, beta, basis, factor, support, size, j, target
):
    """Take point j into the support, sliding while it is dependent.

    Returns the size and whether the base has lost its weight: then all is to be factored anew.
    """
    while not _append(points, lengths, width, dependent, basis, factor, support, size, j):
        leaving = _slide(offsets, beta, factor, support, size, j, target)
        if leaving == _NOBODY:
            return size, False
        if leaving == _BASE:
            return size, True
        _remove(basis, width, factor, support, size, leaving)
        size -= 1
    return size + 1, False


@jit(inline=True)
def _refactor(
    points, lengths, offsets, width, dependent, beta, basis, factor, support, extra, target
):
    """Factor all points with weight, and ``extra``, anew; returns the size."""
    while True:
        base = _NOBODY
        for j in range(beta.shape[0]):
            if (beta[j] > 0.0 or j == extra) and (base < 0 or lengths[j] < lengths[base]):
                base = np.int64(j)
        support[0] = base
        size = np.int64(0)
        lost = False
        for j in range(beta.shape[0]):
            if j != base and (beta[j] > 0.0 or j == extra):
                size, lost = _take(
                    points,
                    lengths,
                    offsets,
                    width,
                    dependent,
                    beta,
                    basis,
                    factor,
                    support,
                    size,
                    np.int64(j),
                    target,
                )
                if lost:
                    break
        if not lost:
            return size
        extra = _NOBODY


@jit(inline=True)
def _step(beta, support, size, target, rest):
    """Move to the target weights, or as far as all stay positive; returns who becomes zero."""
    length = 1.0
    leaving = _NOBODY
    for r in range(-1, size):
        old = beta[support[r + 1]]
        new = rest if r < 0 else target[r]
        if new <= 0.0:
            ratio = old / (old - new) if old > 0.0 else 0.0
            if leaving == _NOBODY or ratio < length:
                length = ratio
                leaving = np.int64(r)
    for r in range(-1, size):
        j = support[r + 1]
        new = rest if r < 0 else target[r]
        beta[j] = new if length == 1.0 else max(0.0, beta[j] + length * (new - beta[j]))
    if leaving != _NOBODY:
        beta[support[leaving + 1]] = 0.0
    return leaving


@jit
def solve(
    points,
    lengths,
    offsets,
    C,
    width,
    dependent,
    beta,
    gradient,
    basis,
    factor,
    support,
    target,
    coef,
    size,
    rounds,
):
    """Minimise from the feasible ``beta``, in place; returns (rounds used, gap, size).

    Parameters
    ----------
    points, lengths, offsets, C, width
        The problem.
    dependent : float
        A point is dependent if this part of its length, or less, is left of it.
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
    anew = size < 0
    best = -np.inf
    fruitless = 0
    gap = np.inf
    used = 0
    while True:
        while True:
            if anew:
                size = _refactor(
                    points,
                    lengths,
                    offsets,
                    width,
                    dependent,
                    beta,
                    basis,
                    factor,
                    support,
                    entering,
                    target,
                )
                entering = _NOBODY
                anew = False
            rest = _hull(points, offsets, C, width, basis, factor, support, size, target, coef)
            leaving = _step(beta, support, size, target, rest)
            if leaving == _NOBODY:
                break
            if leaving == _BASE:
                anew = True
            else:
                _remove(basis, width, factor, support, size, leaving)
                size -= 1
        value = -0.5 * C * _dot(basis, size, basis, size, width)
        mean = 0.0
        lowest = np.inf
        entering = _NOBODY
        for j in range(t):
            gradient[j] = C * _dot(points, np.int64(j), basis, size, width) - offsets[j]
            value += beta[j] * offsets[j]
            mean += beta[j] * gradient[j]
            if gradient[j] < lowest:
                lowest = gradient[j]
                entering = np.int64(j)
        gap = mean - lowest
        # A round that gains next to nothing against the gap is rounding, or a detour over
        # a dependent point: some are allowed.
        fruitless = fruitless + 1 if value - best <= 1e-9 * gap else 0
        best = max(best, value)
        inside = False
        for r in range(size + 1):
            inside = inside or support[r] == entering
        if not gap > 0.0 or fruitless > FRUITLESS or inside or used == rounds:
            return used, gap, size
        used += 1
        if lengths[entering] < 0.25 * lengths[support[0]]:
            anew = True  # it has to be the base
        else:
            size, anew = _take(
                points,
                lengths,
                offsets,
                width,
                dependent,
                beta,
                basis,
                factor,
                support,
                size,
                entering,
                target,
            )
            entering = _NOBODY
