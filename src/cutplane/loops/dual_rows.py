"""Dual coordinate steps on rows: the compiled half of ``solvers.coordinate``, which has the maths.

Rows are flat: row i is ``values[starts[i]:starts[i + 1]]`` at the columns ``indices``, or at all
columns where ``indices`` is None, for dense rows. The score of row i is

    <w, x_i> + bias,   bias = shift + square·tau,   tau = −Σ_i c_i·u_i·dz_i/ds_i,

which is a free bias held by an augmented Lagrangian, or (shift = 0) a constant feature whose value
squared is ``square``. ``bias`` arrays are [square, tau, shift].
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import jit, prefetch
from ..losses import argument, conjugate, direction, dual_step, value
from .flat_rows import add, dot

# With this slope a step crosses every domain, so it shows how far a row's score is from its target.
STEEP = 65536.0
TINY = 1e-300
# Bytes in a line of the cache.
CACHE_LINE = 64


@jit
def _pull(loss, u, z):
    """z minus the nearest slope of ℓ* at u. It is 0 if u is optimal."""
    return STEEP * (dual_step(loss, u, z, STEEP) - u)


@jit
def _idle(loss, u, z, h, reach):
    """Whether u would stay the same if z moved by ``reach``."""
    return dual_step(loss, u, z - reach, h) == u and dual_step(loss, u, z + reach, h) == u


@jit
def _ask_for(values, indices, starts, rows, labels, costs, squares, u):
    """Have the processor fetch some rows into the cache ahead of their visits."""
    one = np.uint64(1)
    for k in range(rows.shape[0]):
        i = np.uint64(rows[k])
        prefetch(labels, i)
        prefetch(costs, i)
        prefetch(squares, i)
        prefetch(u, i)
        first = np.uint64(starts[i])
        stop = np.uint64(starts[i + one])
        for p in range(first, stop, np.uint64(CACHE_LINE // values.itemsize)):
            prefetch(values, p)
        if indices is not None:
            for p in range(first, stop, np.uint64(CACHE_LINE // indices.itemsize)):
                prefetch(indices, p)


@jit(reassociate=True)
def visit(
    loss,
    curvature,
    values,
    indices,
    starts,
    order,
    ahead,
    labels,
    costs,
    squares,
    bias,
    reach,
    shrinking,
    w,
    u,
    idle,
):
    """Maximise D over u_i for each row in ``order``; ``idle`` gets which rows may be skipped later.

    If ``shrinking``, ``reach`` becomes twice the root mean square violation of this pass so far, if
    that is less.

    Rows are fetched ``ahead`` rows at a time. Returns the sum of squared violations, their number,
    the gain in D, and the gap: the sum of the rows' parts c·(ℓ(z) + ℓ*(u) − u·z), each as it was
    before its step. If ``curvature`` is None, the third number is a lower bound on the gain, and
    the fourth is the same.
    """
    square = bias[0]
    tau = bias[1]
    shift = bias[2]
    squared = 0.0
    count = 0
    gain = 0.0
    gap = 0.0
    for k in range(order.shape[0]):
        if k % ahead == 0:
            soon = order[k : k + ahead]
            _ask_for(values, indices, starts, soon, labels, costs, squares, u)
            if shrinking and count > 0:
                reach = min(reach, 2.0 * math.sqrt(squared / count))
        i = order[k]
        first = np.uint64(starts[i])
        stop = np.uint64(starts[i + 1])
        y = labels[i]
        c = costs[i]
        a = u[i]
        z = argument(loss, dot(values, indices, first, stop, w) + shift + square * tau, y)
        h = max(c * (squares[i] + square), TINY)
        v = dual_step(loss, a, z, h)
        if curvature is not None:  # decided when compiled
            gap += c * (value(loss, z) + conjugate(loss, a) - a * z)
        if v == a:
            idle[i] = _idle(loss, a, z, h, reach)
            continue
        change = v - a
        if curvature is None:
            violation = h * abs(change)
            gain += 0.5 * c * h * change * change
        else:
            violation = abs(_pull(loss, a, z))
            gain += c * (conjugate(loss, a) - conjugate(loss, v) + change * (z - 0.5 * h * change))
        squared += violation * violation
        count += 1
        u[i] = v
        step = -c * change * direction(loss, y)
        tau += step
        add(values, indices, first, stop, step, w)
    bias[1] = tau
    return squared, count, gain, gap if curvature is not None else gain


@jit
def judge(loss, scores, offset, labels, costs, squares, square, reach, u, idle):
    """From the scores of all rows, find which rows are idle.

    Returns the sum of squared violations and their number.
    """
    squared = 0.0
    count = 0
    for i in range(scores.shape[0]):
        idle[i] = 1
        if costs[i] <= 0.0:
            continue
        a = u[i]
        z = argument(loss, scores[i] + offset, labels[i])
        h = max(costs[i] * (squares[i] + square), TINY)
        if dual_step(loss, a, z, h) == a:
            idle[i] = _idle(loss, a, z, h, reach)
            continue
        idle[i] = 0
        violation = abs(_pull(loss, a, z))
        squared += violation * violation
        count += 1
    return squared, count


@jit(reassociate=True)
def pulls(loss, values, indices, starts, rows, labels, bias, w, u, out):
    """out[k] = z − ℓ*'(u) of row rows[k]. Its u must be inside the domain and at no kink."""
    offset = bias[2] + bias[0] * bias[1]
    for k in range(rows.shape[0]):
        i = rows[k]
        score = dot(values, indices, np.uint64(starts[i]), np.uint64(starts[i + 1]), w)
        out[k] = _pull(loss, u[i], argument(loss, score + offset, labels[i]))


@jit(reassociate=True)
def add_rows(values, indices, starts, rows, coef, w):
    """w += Σ_k coef[k]·x_rows[k]."""
    for k in range(rows.shape[0]):
        i = rows[k]
        if coef[k] != 0.0:
            add(values, indices, np.uint64(starts[i]), np.uint64(starts[i + 1]), coef[k], w)


@jit(reassociate=True)
def products(values, indices, starts, rows, w, out):
    """out[k] = <w, x_rows[k]>."""
    for k in range(rows.shape[0]):
        i = rows[k]
        out[k] = dot(values, indices, np.uint64(starts[i]), np.uint64(starts[i + 1]), w)


@jit
def deal(rows, tiles, size, together, out):
    """out = an order of the rows, in tiles of ``size`` neighbours.

    ``tiles`` is the order of the tiles. A row of each of ``together`` tiles comes in turn.
    """
    count = 0
    for t in range(0, tiles.shape[0], together):
        for k in range(size):
            for tile in tiles[t : t + together]:
                at = tile * size + k
                if at < rows.shape[0]:
                    out[count] = rows[at]
                    count += 1
