"""Coordinates for points of which only the products are known.

The coordinates of point j are row j of the Cholesky factor of the Gram matrix: this row
has the same products with earlier rows as point j has with earlier points.
"""

from __future__ import annotations

import math

from .._jit import jit

# Before a Gram matrix of t points is factored, this part of its diagonal is added to the diagonal:
# JITTER·(1 + JITTER_GROWTH·t). Otherwise the pivots of dependent points would consist of rounding
# errors, and numbers divided by them would grow from row to row.
JITTER = 1e-14
JITTER_GROWTH = 0.02


@jit(reassociate=True)
def _dot(points, i, j):
    """Product of rows i < j over the first i coordinates."""
    s = 0.0
    for c in range(i):
        s += points[i, c] * points[j, c]
    return s


@jit
def embed(gram, points, j):
    """Coordinates of point j from its products with the points before it.

    They are row j of the Cholesky factor of the Gram matrix.
    """
    jitter = JITTER * (1.0 + JITTER_GROWTH * j) * gram[j, j]
    rest = gram[j, j] + jitter
    for r in range(j):
        s = gram[j, r] - _dot(points, r, j)
        s = s / points[r, r] if points[r, r] > 0.0 else 0.0
        points[j, r] = s
        rest -= s * s
    points[j, j] = math.sqrt(max(rest, 0.5 * jitter))
    if rest < 0.0:  # the jitter was not enough, so at least scale the row to the right length
        shrink = math.sqrt(gram[j, j] / (gram[j, j] - rest))
        for r in range(j + 1):
            points[j, r] *= shrink


@jit
def forget(points, t, place, basis, size, cosines, sines):
    """Remove a point from coordinates made by ``embed``, and rotate the basis accordingly."""
    for k in range(place, t - 1):
        for c in range(k + 2):
            points[k, c] = points[k + 1, c]
        _turn(points, k, place, k, cosines, sines)
        h = math.hypot(points[k, k], points[k, k + 1])
        cosines[k] = points[k, k] / h if h > 0.0 else 1.0
        sines[k] = points[k, k + 1] / h if h > 0.0 else 0.0
        points[k, k] = h
        points[k, k + 1] = 0.0
    for c in range(t):
        points[t - 1, c] = 0.0
    for r in range(size):
        _turn(basis, r, place, t - 1, cosines, sines)
        basis[r, t - 1] = 0.0  # only rounding errors are left here


@jit
def _turn(rows, k, first, last, cosines, sines):
    """Rotate the columns first..last of row k, each with the next."""
    for r in range(first, last):
        u = rows[k, r]
        v = rows[k, r + 1]
        rows[k, r] = cosines[r] * u + sines[r] * v
        rows[k, r + 1] = cosines[r] * v - sines[r] * u
