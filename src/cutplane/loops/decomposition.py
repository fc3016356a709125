"""Loops of the decomposition solver: steps of pairs, sums of rows, the gap, and what is certain.

The problem is min ½βᵀKβ + cᵀβ with Σβ = const and lower ≤ β ≤ upper; g = Kβ + c is its
gradient. A pair (i, j) moves by β_i += δ, β_j −= δ, which lowers the objective if
g_i < g_j, β_i < upper_i and β_j > lower_j.

Rows of K lie in ``slots``, an array of (rows, width), in float32 or float64; sums are in float64.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import jit
from .kernel_values import _rbf_64, power_values

RBF, POWER = 1, 2  # forms of kernels
FLAT = 1e-12  # replaces a curvature of zero or less, as in libsvm

# Columns updated at a time, so that the sums stay in the first-level cache.
TILE = 1024
SOME = 16  # so many rows are added up before their sum is added to the others
UNIT = 2.0**-53  # the unit of rounding


# Searches for extremes compare doubles as integers that have the same order. The compiler
# vectorises the minimum of integers, but not of floating point numbers, because of NaN.
MOST = np.int64(0x7FFFFFFFFFFFFFFF)


@jit
def _copy_row(source, columns, out):
    for t in range(columns.shape[0]):
        out[t] = source[np.uint64(columns[t])]  # unsigned: no wrap-around check


@jit
def _extremes(g, may_grow, may_fall):
    """Keys of two extremes: the least g of what may grow, and the largest g of what may fall.

    A function of its own, because within ``pairwise_steps`` the compiler does not vectorise it.
    """
    lowest = MOST
    highest = -MOST
    for t in range(g.shape[0]):
        bits = np.float64(g[t]).view(np.int64)
        key = bits ^ ((bits >> 63) & MOST)
        lowest = min(lowest, key if may_grow[t] else MOST)
        highest = max(highest, key if may_fall[t] else -MOST)
    return lowest, highest


@jit(reassociate=True)
def add_rows(slots, which, coef, first, last, out):
    """out[j] += Σ_k coef[k]·slots[which[k], j] for first ≤ j < last, four rows at a time."""
    count = which.shape[0]
    for start in range(first, last, TILE):
        stop = min(start + TILE, last)
        tile = out[start:stop]
        k = 0
        while k + 4 <= count:
            a = slots[which[k], start:stop]
            b = slots[which[k + 1], start:stop]
            c = slots[which[k + 2], start:stop]
            d = slots[which[k + 3], start:stop]
            ca = coef[k]
            cb = coef[k + 1]
            cc = coef[k + 2]
            cd = coef[k + 3]
            for j in range(tile.shape[0]):
                tile[j] += (ca * a[j] + cb * b[j]) + (cc * c[j] + cd * d[j])
            k += 4
        while k < count:
            a = slots[which[k], start:stop]
            ca = coef[k]
            for j in range(tile.shape[0]):
                tile[j] += ca * a[j]
            k += 1


@jit
def _kernel_row(t, form, x, features, norms, scale, offset, degree, room, slots, K):
    """Write the kernel values of row t of x to K[slots[0]]; ``room`` is for its products."""
    room[:] = 0.0
    add_rows(features, np.arange(x.shape[1]), x[t], 0, x.shape[0], room[0])
    if form == RBF:
        _rbf_64(room, norms[t : t + 1], norms, scale, slots, 0, K)
    else:
        power_values(room, norms, norms, scale, offset, degree, slots, 0, K)


@jit
def _bring(t, line, source, rows, columns, K, points, room, slots):
    """Write the values of row t to K[line]: copied from ``source``, or computed from ``points``."""
    if points is None:
        _copy_row(source[rows[t]], columns, K[line])
    else:
        slots[0] = line
        _kernel_row(t, *points, room, slots, K)


@jit
def pairwise_steps(
    source, rows, columns, points, K, place, diagonal, g, beta, lower, upper, tol, max_steps,
    may_grow, may_fall, gains,
):  # fmt: skip
    """Minimise over all of β by steps of pairs, chosen by second order (Fan, Chen, Lin 2005).

    The kernel value of a and b is K[place[a], b]. If ``place[a]`` is negative, K does not hold
    row a yet. When a step needs this row, it is copied from source[rows[a], columns] behind the
    other rows. If ``points`` is not None, the row is computed instead: ``points`` are the arguments
    of ``_kernel_row`` from ``form`` to ``degree``. g and beta are changed. The steps end when the
    maximum of g_j − g_i over pairs is at most ``tol``, after ``max_steps``, or when K has no room
    for both rows of a step. ``may_grow``, ``may_fall`` and ``gains`` are buffers with a number per
    variable, int64 because this is as wide as g.

    Returns the number of steps, the remaining violation, and the least curvature of a step,
    relative to the diagonal.
    """
    q = g.shape[0]
    held = 0
    room = np.empty((1, q))
    slots = np.zeros(1, dtype=np.int64)
    most = K.shape[0] + (2 if K.shape[0] >= q else 0)  # all rows need no more room
    for t in range(q):
        may_grow[t] = beta[t] < upper[t]
        may_fall[t] = beta[t] > lower[t]
        held += place[t] >= 0
    steps = 0
    least = np.inf
    violation = 0.0
    while True:
        lowest, highest = _extremes(g, may_grow, may_fall)
        low = np.int64(lowest ^ ((lowest >> 63) & MOST)).view(np.float64)
        high = np.int64(highest ^ ((highest >> 63) & MOST)).view(np.float64)
        violation = 0.0
        if lowest < MOST and highest > -MOST:
            violation = max(0.0, high - low)
        if not violation > tol or steps >= max_steps or held + 2 > most:
            break
        i = 0
        while g[i] != low or not may_grow[i]:
            i += 1
        if place[i] < 0:
            place[i] = held
            held += 1
            _bring(i, place[i], source, rows, columns, K, points, room, slots)
        own, row = diagonal[i], K[place[i]]
        # The partner that decreases the objective most. Gains are compared by their bits.
        best = np.int64(0)
        for t in range(q):
            gain = max(g[t] - low, 0.0)
            gain *= gain / max(own + diagonal[t] - 2.0 * np.float64(row[t]), FLAT)
            gains[t] = np.float64(gain if may_fall[t] else 0.0).view(np.int64)
        for t in range(q):
            best = max(best, gains[t])
        if best == 0:
            break
        j = 0
        while gains[j] != best:
            j += 1
        if place[j] < 0:
            place[j] = held
            held += 1
            _bring(j, place[j], source, rows, columns, K, points, room, slots)
        other = K[place[j]]
        scale = own + diagonal[j]
        curvature = scale - 2.0 * row[j]
        least = min(least, curvature / scale if scale > 0.0 else curvature)
        step = (g[j] - low) / max(curvature, FLAT)
        room_i = upper[i] - beta[i]
        room_j = beta[j] - lower[j]
        step = min(step, room_i, room_j)
        beta[i] = upper[i] if step == room_i else min(beta[i] + step, upper[i])
        beta[j] = lower[j] if step == room_j else max(beta[j] - step, lower[j])
        may_grow[i], may_fall[i] = beta[i] < upper[i], beta[i] > lower[i]
        may_grow[j], may_fall[j] = beta[j] < upper[j], beta[j] > lower[j]
        for t in range(q):
            g[t] += step * (np.float64(row[t]) - np.float64(other[t]))
        steps += 1
    return steps, violation, least


@jit
def sums_with_sizes(K, place, beta, s, sizes, part, part_size):
    """s[t] += Σ_j beta[j]·K[place[j], t], and sizes[t] the same of absolute values.

    SOME terms are added first, then these sums. So a term goes through at most SOME + q / SOME
    additions, which keeps rounding errors small. ``part`` and ``part_size`` are buffers of zeros.
    """
    for first in range(0, beta.shape[0], SOME):
        used = False
        for j in range(first, min(first + SOME, beta.shape[0])):
            coef = beta[j]
            if coef != 0.0:
                used = True
                row = K[place[j]]
                for t in range(s.shape[0]):
                    term = coef * row[t]
                    part[t] += term
                    part_size[t] += abs(term)
        for t in range(s.shape[0] if used else 0):
            s[t] += part[t]
            sizes[t] += part_size[t]
            part[t] = part_size[t] = 0.0


@jit
def compact_rows(flat, slots, width, keep):
    """Keep rows ``slots`` and columns ``keep``, both ascending, of rows of ``width`` numbers.

    In place: the k-th of the rows moves from ``flat[slots[k]·width:]`` to ``flat[k·len(keep):]``.
    """
    kept = keep.shape[0]
    for k in range(slots.shape[0]):
        source = np.uint64(slots[k] * width)
        target = np.uint64(k * kept)
        for t in range(kept):
            flat[target + np.uint64(t)] = flat[source + np.uint64(keep[t])]


@jit
def assess(g, beta, lower, upper, search):
    """The violation of a point, a bias, and primal − dual with this bias.

    The violation is max g of the variables that may fall − min g of those that may grow, or 0. With
    r = g + bias,

        primal − dual = Σ (β − lower)·max(0, r) + (upper − β)·max(0, −r).

    This is convex in the bias and bends at every −g_i. It is least at the first of these points
    behind which its slope is not negative; where the slope is 0, up to the next point, and the bias
    is the middle. That is between −max g and −min g of the above, and found by bisection. Without
    ``search`` the bias is the middle of these two.
    """
    low, high, width = np.inf, -np.inf, 0.0
    for t in range(g.shape[0]):
        if beta[t] < upper[t] and g[t] < low:
            low = g[t]
        if beta[t] > lower[t] and g[t] > high:
            high = g[t]
        width += upper[t] - lower[t]
    left, right = -high, -low
    if low == np.inf:
        right = left if high > -np.inf else 0.0
    if high == -np.inf:
        left = right
    bias = 0.5 * left + 0.5 * right
    while search and left <= right:
        middle = 0.5 * left + 0.5 * right
        if not left <= middle < right:
            middle = left
        before, behind, slope = -np.inf, np.inf, 0.0
        for t in range(g.shape[0]):
            if upper[t] > lower[t]:
                point = -g[t]
                inside = point <= middle
                slope += beta[t] - (lower[t] if inside else upper[t])
                before = max(before, point if inside else -np.inf)
                behind = min(behind, np.inf if inside else point)
        if left == right:
            flat = slope <= 1e-10 * width and behind < np.inf
            bias = 0.5 * middle + 0.5 * behind if flat else middle
            break
        if slope < -1e-10 * width:
            left = behind
        else:
            right = before
    gap = 0.0
    for t in range(g.shape[0]):
        r = g[t] + bias
        gap += (beta[t] - (lower[t] if r > 0.0 else upper[t])) * r
    return max(0.0, high - low), bias, gap


# -- what is certain of a point: see ``solvers.decomposition.problem`` --------------------------


@jit
def balance(beta, lower, upper, total):
    """Move one free variable so that Σβ is as near to the total as possible.

    It moves the smallest free variable, whose last digit is the finest. It does this twice, because
    the first change is rounded. Sums are in twice the precision (Knuth's TwoSum).
    Returns a bound on |Σβ − total|.
    """
    turn = 0
    while True:
        high, low, size = -total, 0.0, abs(total)
        for t in range(beta.shape[0]):
            added = high + beta[t]
            part = added - high
            low += (high - (added - part)) + (beta[t] - part)
            high = added
            size += abs(beta[t])
        excess = high + low
        most = abs(excess)
        best, smallest = -1, np.inf
        for t in range(beta.shape[0]):
            room = beta[t] - lower[t] if excess > 0.0 else upper[t] - beta[t]
            if 0.0 < abs(beta[t]) < smallest and room > 2.0 * most:
                best, smallest = t, abs(beta[t])
        if turn == 2 or best < 0:
            off = UNIT * (beta.shape[0] + 2.0)
            return most + 2.0 * UNIT * most + off * off * size
        beta[best] -= excess
        turn += 1


@jit
def certify(
    s, error, beta, net, bias, lack, linear, lower, upper, total, linear_error, lift, largest_root,
    shift, shift_error, reach,
):  # fmt: skip
    """Bounds on both sides of the optimum, from β and a bias.

    A row may have two variables, which may be large and cancel. So ``net`` has the sum of a row's
    variables at one of them, and 0 at the other. s = Kβ of every variable is off by ``error``, c by
    ``linear_error``·|c|, Σβ by ``lack``. K + εI is positive semidefinite for an ε that adds
    ``lift`` to βᵀKβ. ``largest_root`` is the largest √K_ii. ``shift``, ``shift_error`` and
    ``reach`` are those of ``KernelMatrix.moved``.

    Returns the bias for the original rows (before they were moved), primal, dual, the part of the
    gap that comes from rounding, and the largest error of r = s + c + bias.
    """
    count = UNIT * (beta.shape[0] + 8.0)
    offset = 0.0
    more = 0.0  # error of every score besides
    for t in range(shift.shape[0]):
        offset += net[t] * shift[t]
        more += abs(net[t]) * (shift_error[t] + count * abs(shift[t]))
    if shift.shape[0]:
        more = 1.01 * (more + lack * reach) + UNIT * abs(bias - offset)
    gap = 0.0
    losses = 0.0
    slope = 0.0
    slope_size = 0.0
    steepest = 0.0
    doubt = 0.0
    half = 0.0
    half_error = 0.0
    for t in range(s.shape[0]):
        a, c = s[t], linear[t]
        g = a + c
        r = g + bias
        off = error[t] + more + UNIT * (abs(g) + abs(r)) + linear_error * abs(c)
        gap += (beta[t] - (lower[t] if r > 0.0 else upper[t])) * r
        if not r >= off:  # true for NaN, too, so that NaN reaches the sums
            losses += upper[t] * (off - r)
        if not -r >= off:
            losses -= lower[t] * (off + r)
        slope += c * beta[t]
        slope_size += abs(c * beta[t])
        steepest = max(steepest, abs(c))
        if not off <= doubt:
            doubt = off
        half += 0.5 * net[t] * a
        half_error += abs(net[t]) * (0.5 * (error[t] + more) + count * abs(a))
    constant = bias * total
    primal = half + half_error + losses * (1.0 + count) + constant
    primal += 4.0 * UNIT * (abs(half) + abs(constant))
    # The best bias is at most max|c| + |w*|·max √K_ii, and |w*|² at most twice the primal.
    longest = math.sqrt(2.02 * max(0.0, primal if total == 0.0 else half + half_error))
    farthest = steepest + longest * largest_root
    # The dual of K + εI is below the dual of K. It is a bound even if K is not semidefinite.
    half_error += 0.5 * lift * (1.0 + count)
    dual = -half - slope - half_error - (count + linear_error) * slope_size - lack * farthest
    dual -= 4.0 * UNIT * (abs(half) + abs(slope))
    return bias - offset, primal, dual, max(0.0, primal - dual - max(0.0, gap)), doubt


@jit
def count_positive(g, beta, lower, upper, bias, history):
    """history[t] += 1 where a variable at a bound has a positive multiplier estimate, else 0."""
    for t in range(g.shape[0]):
        r = g[t] + bias
        if (r > 0.0 and beta[t] <= lower[t]) or (r < 0.0 and beta[t] >= upper[t]):
            history[t] += 1
        else:
            history[t] = 0
