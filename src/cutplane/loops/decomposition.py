"""Loops of the decomposition solver: pairwise steps, row updates, choice of a partner.

The problem is min ½βᵀKβ + cᵀβ with Σβ = const and lower ≤ β ≤ upper; g = Kβ + c is its
gradient. A pair (i, j) moves by β_i += δ, β_j −= δ, which lowers the objective if
g_i < g_j, β_i < upper_i and β_j > lower_j.

Rows of K lie in ``slots``, an array of (rows, width), in float32 or float64; sums are in float64.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import jit

FLAT = 1e-12  # curvature that takes the place of zero or less, as in libsvm

# Columns updated at a time, so that the sums stay in the first-level cache.
TILE = 1024
SOME = 16  # rows added before their sum is
UNIT = 2.0**-53  # of rounding
LEAST_PART = 1e-3  # of the violation that an inner problem leaves, at least
STEPS_PER_VARIABLE = 50  # most steps of an inner problem; one that takes more creeps
NEAR = 10.0  # times the gap that is enough: from there on the best bias is worth its sort


# Doubles as integers of the same order: the compiler vectorises the minimum of integers, not
# that of floating point numbers, where NaN would have to be minded.
MOST = np.int64(0x7FFFFFFFFFFFFFFF)


@jit
def _extremes_of_marked(g, may_grow, may_fall, ends):
    """ends = (min g of what may grow, max g of what may fall); infinite if there is none."""
    low = MOST
    high = -MOST
    bits = g.view(np.int64)
    for t in range(bits.shape[0]):
        key = bits[t] ^ ((bits[t] >> 63) & MOST)
        low = min(low, key if may_grow[t] else MOST)
        high = max(high, key if may_fall[t] else -MOST)
    found = ends.view(np.int64)
    found[0] = low ^ ((low >> 63) & MOST)
    found[1] = high ^ ((high >> 63) & MOST)
    if low == MOST:
        ends[0] = np.inf
    if high == -MOST:
        ends[1] = -np.inf


@jit
def partner(g, row, diagonal, low, own, may_fall, gains):
    """The j that decreases the objective most with the variable of gradient ``low``, or −1."""
    for t in range(g.shape[0]):
        diff = max(g[t] - low, 0.0)
        curvature = max(own + diagonal[t] - 2.0 * np.float64(row[t]), FLAT)
        gains[t] = diff * diff / curvature if may_fall[t] else 0.0
    bits = gains.view(np.int64)  # none is negative
    best = np.int64(0)
    for t in range(bits.shape[0]):
        best = max(best, bits[t])
    for t in range(bits.shape[0]):
        if bits[t] == best:
            return t if best > 0 else -1
    return -1


@jit
def _move(g, row, other, step):
    """The gradient after a step of a pair."""
    for t in range(g.shape[0]):
        g[t] += step * (np.float64(row[t]) - np.float64(other[t]))


@jit
def _copy_row(source, columns, out):
    for t in range(columns.shape[0]):
        out[t] = source[np.uint64(columns[t])]  # unsigned: no wrap-around check


@jit
def pairwise_steps(
    source, rows, columns, K, place, held, diagonal, g, beta, lower, upper, tol, max_steps, seen
):
    """Minimise over all of β by steps of pairs, chosen by second order (Fan, Chen, Lin 2005).

    The kernel value of a and b is K[place[a], b]. Where ``held[a]`` is False, row a is copied from
    source[rows[a], columns] when a step needs it. Other parameters: the diagonal; g, beta
    (changed), lower, upper (q,). Stops once
    max over pairs of g_j − g_i is at most ``tol``, or after ``max_steps``.
    ``seen[0]`` becomes the violation left, ``seen[1]`` the least curvature met,
    relative to the diagonal. Returns the number of steps.
    """
    q = g.shape[0]
    may_grow = np.empty(q, np.int64)  # as wide as what they mark
    may_fall = np.empty(q, np.int64)
    for t in range(q):
        may_grow[t] = beta[t] < upper[t]
        may_fall[t] = beta[t] > lower[t]
    gains = np.empty(q)
    ends = np.empty(2)
    steps = 0
    least = np.inf
    violation = 0.0
    while True:
        _extremes_of_marked(g, may_grow, may_fall, ends)
        low = ends[0]
        violation = max(0.0, ends[1] - low)
        if not violation > tol or steps >= max_steps:
            break
        i = 0
        while g[i] != low or not may_grow[i]:
            i += 1
        row = K[place[i]]
        if not held[i]:
            _copy_row(source[rows[i]], columns, row)
            held[i] = True
        own = diagonal[i]
        j = partner(g, row, diagonal, low, own, may_fall, gains)
        if j < 0:
            break
        other = K[place[j]]
        if not held[j]:
            _copy_row(source[rows[j]], columns, other)
            held[j] = True
        scale = own + diagonal[j]
        curvature = scale - 2.0 * row[j]
        if scale > 0.0:
            least = min(least, curvature / scale)
        else:
            least = min(least, curvature)
        step = (g[j] - low) / max(curvature, FLAT)
        room_i = upper[i] - beta[i]
        room_j = beta[j] - lower[j]
        if step >= room_i and room_i <= room_j:
            step = room_i
            beta[i] = upper[i]
            beta[j] = lower[j] if room_i == room_j else max(beta[j] - step, lower[j])
        elif step >= room_j:
            step = room_j
            beta[j] = lower[j]
            beta[i] = min(beta[i] + step, upper[i])
        else:
            beta[i] += step
            beta[j] -= step
        for t in (i, j):
            may_grow[t] = beta[t] < upper[t]
            may_fall[t] = beta[t] > lower[t]
        _move(g, row, other, step)
        steps += 1
    seen[0] = violation
    seen[1] = least
    return steps


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
def sums_with_sizes(K, beta, s, sizes):
    """s[t] = Σ_j beta[j]·K[j, t], and sizes[t] the same of absolute values.

    Terms are added SOME at a time, and then these sums: a term goes through SOME + q / SOME
    additions at most.
    """
    part = np.zeros(s.shape[0])
    part_size = np.zeros(s.shape[0])
    s[:] = 0.0
    sizes[:] = 0.0
    count = 0
    for j in range(beta.shape[0]):
        coef = beta[j]
        if coef == 0.0:
            continue
        row = K[j]
        for t in range(s.shape[0]):
            term = coef * np.float64(row[t])
            part[t] += term
            part_size[t] += abs(term)
        count += 1
        if count % SOME == 0:
            s += part
            sizes += part_size
            part[:] = 0.0
            part_size[:] = 0.0
    s += part
    sizes += part_size


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
def gap_at(g, beta, lower, upper, bias):
    """primal − dual for this bias: Σ β·r + upper·max(0, −r) − lower·max(0, r), r = g + bias."""
    total = 0.0
    for t in range(g.shape[0]):
        r = g[t] + bias
        if r > 0.0:
            total += (beta[t] - lower[t]) * r
        else:
            total += (beta[t] - upper[t]) * r
    return total


@jit
def assess(g, beta, lower, upper):
    """Where a point stands: its violation, a bias that suits it, and the gap with this bias.

    The violation is max g of what may fall − min g of what may grow, or 0. The bias is the mean of
    −g over the free variables; without any it is between the two, one of which may be infinite.
    """
    low = np.inf
    high = -np.inf
    total = 0.0
    free = 0
    for t in range(g.shape[0]):
        v = g[t]
        may_grow = beta[t] < upper[t]
        may_fall = beta[t] > lower[t]
        if may_grow and v < low:
            low = v
        if may_fall and v > high:
            high = v
        if may_grow and may_fall:
            total += v
            free += 1
    if free > 0:
        bias = -total / free
    elif low == np.inf and high == -np.inf:
        bias = 0.0
    elif low == np.inf:
        bias = -high
    elif high == -np.inf:
        bias = -low
    else:
        bias = -0.5 * (low + high)
    return max(0.0, high - low), bias, gap_at(g, beta, lower, upper, bias)


# -- what is certain of a point: see ``solvers.decomposition.verify`` ---------------------------


@jit
def best_bias(g, lower, upper, total):
    """The b that minimises the primal: a weighted quantile of −g, the middle if it is an interval.

    The primal's slope in b is total − Σ upper at the left end and grows by upper_i − lower_i as b
    passes −g_i. Variables that cannot move do not count.
    """
    slope = total
    width = 0.0
    for t in range(g.shape[0]):
        if upper[t] > lower[t]:
            slope -= upper[t]
            width += upper[t] - lower[t]
    tiny = 1e-10 * width
    order = np.argsort(g)
    point = 0.0
    flat = False  # whether an interval of minima begins at the point
    for k in range(g.shape[0] - 1, -1, -1):
        t = order[k]
        if not upper[t] > lower[t]:
            continue
        if flat:
            return 0.5 * (point - g[t])
        point = -g[t]
        slope += upper[t] - lower[t]
        if slope > tiny:
            return point
        flat = slope >= -tiny
    return point


@jit
def excess_of(beta, total):
    """Σβ − total in twice the precision (Knuth's TwoSum), and how far that may be off."""
    high = -total
    low = 0.0
    size = abs(total)
    for t in range(beta.shape[0]):
        added = high + beta[t]
        part = added - high
        low += (high - (added - part)) + (beta[t] - part)
        high = added
        size += abs(beta[t])
    off = UNIT * (beta.shape[0] + 2.0)
    return high + low, 2.0 * UNIT * abs(high + low) + off * off * size


@jit
def balance(beta, lower, upper, total):
    """Bring Σβ as near to the total as one free variable can; the smallest has the finest digits.

    Twice, because the first change is rounded.
    """
    for _ in range(2):
        excess = excess_of(beta, total)[0]
        if excess == 0.0:
            return
        best = -1
        for t in range(beta.shape[0]):
            bound = lower[t] if excess > 0.0 else upper[t]
            if (
                beta[t] != 0.0
                and abs(beta[t] - bound) > 2.0 * abs(excess)
                and (best < 0 or abs(beta[t]) < abs(beta[best]))
            ):
                best = t
        if best < 0:
            return
        beta[best] -= excess


@jit
def rounding(roots, sums, sizes, depth, amplification, relative, error):
    """How far Σ_j sums_j·K_ij may be off for every row i, if it is added in double precision.

    ``roots`` are √K_ii; ``sizes`` Σ_j |sums_j|·|K_ij|, or empty if that is not known; ``depth`` the
    additions that a term goes through at most.
    """
    total = 0.0
    for j in range(sums.shape[0]):
        total += abs(sums[j]) * roots[j]
    for i in range(error.shape[0]):
        most = roots[i] * total
        size = sizes[i] if sizes.shape[0] else most
        off = size if relative else most
        error[i] = UNIT * ((depth + 8.0) * size + amplification * off)


@jit
def certify(
    own, own_error, sums, s, error, beta, linear, lower, upper, total, linear_error, lift, largest,
    shift, shift_error, reach,
):  # fmt: skip
    """Bounds on both sides of the optimum.

    s = Kβ of every row is off by ``error``, and ``own`` of every variable by ``own_error``; β is
    summed by row in ``sums``; c is off by ``linear_error``·|c|, K + lift·I positive semidefinite,
    ``largest`` the largest K_ii. ``shift``, ``shift_error`` and ``reach`` are those of
    ``KernelMatrix.moved``.

    Returns the bias, primal, dual, violation, the part of the gap that is rounding, and the
    largest error of r = s + c + bias; TwoSum finds the rounding of these additions.
    """
    count = UNIT * (beta.shape[0] + 8.0)
    excess, excess_error = excess_of(beta, total)
    lack = abs(excess) + excess_error
    offset = 0.0
    more = 0.0  # error of every score besides
    for i in range(shift.shape[0]):
        offset += sums[i] * shift[i]
        more += abs(sums[i]) * (shift_error[i] + count * abs(shift[i]))
    if shift.shape[0]:
        more = 1.01 * (more + lack * reach)
    violation = assess(own + linear, beta, lower, upper)[0]
    bias = best_bias(own + linear, lower, upper, total)
    if offset != 0.0:
        more += UNIT * abs(bias - offset)
    gap = 0.0
    losses = 0.0
    slope = 0.0
    slope_size = 0.0
    steepest = 0.0
    doubt = 0.0
    for t in range(own.shape[0]):
        a, c = own[t], linear[t]
        g = a + c
        of_c = g - a
        g_error = (a - (g - of_c)) + (c - of_c)
        r = g + bias
        of_bias = r - g
        r_error = (g - (r - of_bias)) + (bias - of_bias)
        size = abs(c)
        off = own_error[t] + more + abs(g_error) + abs(r_error) + linear_error * size
        if r > 0.0:
            gap += (beta[t] - lower[t]) * r
        else:
            gap += (beta[t] - upper[t]) * r
        if not r >= off:  # also if one is no number: then no sum is
            losses += upper[t] * (off - r)
        if not -r >= off:
            losses -= lower[t] * (off + r)
        slope += c * beta[t]
        slope_size += size * abs(beta[t])
        steepest = max(steepest, size)
        if not off <= doubt:
            doubt = off
    half = 0.0
    half_error = 0.0
    squares = 0.0
    for t in range(s.shape[0]):
        coef = abs(sums[t])
        half += 0.5 * sums[t] * s[t]
        half_error += coef * (0.5 * (error[t] + more) + count * abs(s[t]))
        squares += coef * coef
    constant = bias * total
    primal = half + half_error + losses * (1.0 + count) + constant
    primal += 4.0 * UNIT * (abs(half) + abs(constant))
    # The best bias is at most max|c| + |w*|·max √K_ii, and |w*|² at most twice the primal.
    longest = math.sqrt(2.02 * max(0.0, primal if total == 0.0 else half + half_error))
    farthest = steepest + longest * math.sqrt(largest)
    # The dual of K + lift·I is below that of K, and a bound even if K needs the lift.
    half_error += 0.5 * lift * squares * (1.0 + count)
    dual = -half - slope - half_error - (count + linear_error) * slope_size - lack * farthest
    dual -= 4.0 * UNIT * (abs(half) + abs(slope))
    slack = max(0.0, primal - dual - max(0.0, gap))
    return bias - offset, primal, dual, violation, slack, violation + doubt


@jit
def solve_small(
    source, rows, all_rows, relative_tol, absolute_tol, kkt_tol, linear, lower, upper, total,
    linear_error, amplification, relative, shift, shift_error, reach, room, beta,
):  # fmt: skip
    """Minimise over all of β at once, from ``beta``, which is changed, and certify the point.

    The kernel value of variables a and b is source[rows[a], rows[b]]; with ``all_rows`` it is
    source[a, b], and no row is copied to ``room``. The gap is to be at most
    relative_tol·|primal| + absolute_tol, or the violation kkt_tol if that is not negative.

    Returns the number of rounds and what ``certify`` does.
    """
    q = rows.shape[0]
    K = source if all_rows else room[: q * q].reshape((q, q))
    held = np.full(q, all_rows)
    place = np.arange(q)
    diagonal = np.empty(q)
    start = False
    for t in range(q):
        diagonal[t] = source[rows[t], rows[t]]
        start = start or beta[t] != 0.0
    s, sizes, seen = np.zeros(q), np.empty(q), np.empty(2)
    if start:
        _hold(source, rows, K, held, beta)
        sums_with_sizes(K, beta, s, sizes)
    g = s + linear
    rounds = 0
    steps_left = STEPS_PER_VARIABLE * max(q, 64)
    while steps_left > 0:
        violation, _, gap = assess(g, beta, lower, upper)
        value = 0.0
        for t in range(q):
            value += 0.5 * beta[t] * (g[t] + linear[t])
        enough = relative_tol * abs(gap - value) + absolute_tol
        if kkt_tol < 0.0 and enough < gap <= NEAR * enough:
            gap = min(gap, gap_at(g, beta, lower, upper, best_bias(g, lower, upper, total)))
        if not violation > max(kkt_tol, 0.0) or (kkt_tol < 0.0 and not gap > enough):
            break
        goal = kkt_tol
        if kkt_tol < 0.0:
            goal = violation * min(1.0, max(LEAST_PART, enough / gap))
        steps = pairwise_steps(
            source, rows, rows, K, place, held, diagonal, g, beta, lower, upper, 0.5 * goal,
            steps_left, seen,
        )  # fmt: skip
        steps_left -= max(1, steps)
        rounds += 1
    balance(beta, lower, upper, total)
    _hold(source, rows, K, held, beta)
    sums_with_sizes(K, beta, s, sizes)
    error, largest = np.empty(q), 0.0
    for t in range(q):
        largest = max(largest, abs(diagonal[t]))
        diagonal[t] = math.sqrt(abs(diagonal[t]))
    rounding(diagonal, beta, sizes, SOME + q // SOME, amplification, relative, error)
    found = certify(
        s, error, beta, s, error, beta, linear, lower, upper, total, linear_error, 0.0, largest,
        shift, shift_error, reach,
    )  # fmt: skip
    return rounds, found


@jit
def _hold(source, rows, K, held, beta):
    """Copy the rows of all variables that are not 0."""
    for t in range(beta.shape[0]):
        if beta[t] != 0.0 and not held[t]:
            _copy_row(source[rows[t]], rows, K[t])
            held[t] = True


@jit
def count_positive(g, beta, lower, upper, bias, history):
    """history[t] += 1 where a variable at a bound has a positive multiplier estimate, else 0."""
    for t in range(g.shape[0]):
        r = g[t] + bias
        if (r > 0.0 and beta[t] <= lower[t]) or (r < 0.0 and beta[t] >= upper[t]):
            history[t] += 1
        else:
            history[t] = 0
