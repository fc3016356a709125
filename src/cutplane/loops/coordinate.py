"""Dual coordinate descent for a linear SVM, one row at a time (Hsieh et al., ICML 2008).

    min_α  ½|w|² + Σ_i (½ridge_i·α_i² − α_i·(1 − y_i·b)),   0 ≤ α_i ≤ upper_i,

with w = Σ_i α_i y_i x_i and a fixed b. ``ridge`` is 0 for the hinge, where ``upper_i`` = C_i; for
the squared hinge upper is infinite and ridge_i = 1/(2C_i). Row i's own minimum is

    α_i ← clip(α_i − G/(|x_i|² + ridge_i), 0, upper_i),   G = y_i(<w, x_i> + b) − 1 + ridge_i·α_i.

A constant feature of value ``constant`` is the last entry of w. Rows are flat: row i is
``values[starts[i]:starts[i + 1]]``, at the columns ``indices``, or at all columns where
``indices`` is None, for dense rows.
"""

from __future__ import annotations

import numpy as np

from .._jit import CAN_YIELD, count_up, counted, give_way, jit

# Looks at a counter before the core is left to others.
LOOKS = 4096
# Numbers of 8 bytes in a line of the cache: counters do not share one.
CACHE_LINE = 8


@jit
def _sparse_dot(values, indices, first, stop, w):
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    p = first
    one = np.uint64(1)
    two = np.uint64(2)
    three = np.uint64(3)
    four = np.uint64(4)
    while p + four <= stop:
        s0 += values[p] * w[indices[p]]
        s1 += values[p + one] * w[indices[p + one]]
        s2 += values[p + two] * w[indices[p + two]]
        s3 += values[p + three] * w[indices[p + three]]
        p += four
    while p < stop:
        s0 += values[p] * w[indices[p]]
        p += one
    return (s0 + s1) + (s2 + s3)


@jit
def _sparse_add(values, indices, first, stop, factor, w):
    for p in range(first, stop):
        w[indices[p]] += factor * values[p]


@jit
def _equal_dot(value, indices, first, stop, w):
    """As ``_sparse_dot``, in the same order, for a row whose values are all equal; it has some.

    Such rows are often short and of any length: a branch on what is left over would be guessed
    wrong half of the time, which takes longer than to read a weight that does not count.
    """
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    p = first
    one = np.uint64(1)
    two = np.uint64(2)
    three = np.uint64(3)
    four = np.uint64(4)
    while p + four <= stop:
        s0 += value * w[indices[p]]
        s1 += value * w[indices[p + one]]
        s2 += value * w[indices[p + two]]
        s3 += value * w[indices[p + three]]
        p += four
    last = stop - one
    t0 = value * w[indices[min(p, last)]]
    t1 = value * w[indices[min(p + one, last)]]
    t2 = value * w[indices[min(p + two, last)]]
    s0 += t0 if p < stop else 0.0
    s0 += t1 if p + one < stop else 0.0
    s0 += t2 if p + two < stop else 0.0
    return (s0 + s1) + (s2 + s3)


@jit
def _equal_add(indices, first, stop, step, w):
    for p in range(first, stop):
        w[indices[p]] += step


@jit(reassociate=True)
def _dense_dot(values, first, stop, w):
    s = 0.0
    for j in range(stop - first):
        s += values[first + j] * w[j]
    return s


@jit
def _dense_add(values, first, stop, factor, w):
    for j in range(stop - first):
        w[j] += factor * values[first + j]


@jit
def squared_norms(values, starts, constant, out):
    """out[i] = |x_i|² with the constant feature."""
    one = np.uint64(1)
    two = np.uint64(2)
    for i in range(out.shape[0]):
        s0 = 0.0
        s1 = 0.0
        p = np.uint64(starts[i])
        stop = np.uint64(starts[i + 1])
        while p + two <= stop:
            s0 += np.float64(values[p]) * values[p]
            s1 += np.float64(values[p + one]) * values[p + one]
            p += two
        if p < stop:
            s0 += np.float64(values[p]) * values[p]
        out[i] = (s0 + s1) + constant * constant


@jit
def visit(
    values,
    indices,
    starts,
    equal,
    order,
    labels,
    squares,
    upper,
    ridge,
    bias,
    constant,
    idle_above,
    w,
    alpha,
    idle,
):
    """Minimise over α_i for each row in ``order``; ``equal`` if the values of a row all are.

    Rows at a bound whose gradient holds them there by more than ``idle_above`` are
    skipped; ``idle`` says for every row visited whether it was. Returns the number of the others,
    the largest violation of optimality that was met, and what the objective has gone down by.
    """
    last = w.shape[0] - 1
    count = 0
    worst = 0.0
    gain = 0.0
    for at in range(order.shape[0]):
        i = order[at]
        first = np.uint64(starts[i])
        stop = np.uint64(starts[i + 1])
        y = labels[i]
        a = alpha[i]
        if indices is None:  # decided when compiled
            score = _dense_dot(values, first, stop, w)
        elif equal and first < stop:
            score = _equal_dot(np.float64(values[first]), indices, first, stop, w)
        else:
            score = _sparse_dot(values, indices, first, stop, w)
        if constant != 0.0:
            score += constant * w[last]
        gradient = y * (score + bias) - 1.0 + ridge[i] * a
        if (a == 0.0 and gradient > idle_above) or (a == upper[i] and gradient < -idle_above):
            idle[i] = 1
            continue
        idle[i] = 0
        count += 1
        if (a == 0.0 and gradient >= 0.0) or (a == upper[i] and gradient <= 0.0):
            continue
        worst = max(worst, abs(gradient))
        curvature = squares[i] + ridge[i]
        new = a - gradient / curvature if curvature > 0.0 else (upper[i] if gradient < 0.0 else 0.0)
        new = min(max(new, 0.0), upper[i])
        step = (new - a) * y
        if step == 0.0:
            continue
        alpha[i] = new
        gain -= (gradient + 0.5 * curvature * (new - a)) * (new - a)
        if indices is None:
            _dense_add(values, first, stop, step, w)
        elif equal and first < stop:
            _equal_add(indices, first, stop, step * values[first], w)
        else:
            _sparse_add(values, indices, first, stop, step, w)
        if constant != 0.0:
            w[last] += constant * step
    return count, worst, gain


@jit(reassociate=True)
def _join(one, other, first, last, w):
    """w ← one + other − w over the columns first..last, where both have started from w.

    Returns the product of the two changes, and the square of their sum.
    """
    mixed = 0.0
    squared = 0.0
    for j in range(first, last):
        here = one[j] - w[j]
        there = other[j] - w[j]
        mixed += here * there
        squared += (here + there) * (here + there)
        w[j] += here + there
    return mixed, squared


@jit
def _shorten(one, other, part, first, last, w):
    """After ``_join``: keep a part only of both changes, over the columns first..last."""
    for j in range(first, last):
        w[j] += (part - 1.0) * (2.0 * w[j] - one[j] - other[j])


@jit
def _take(counters, step):
    """The number of a step's next task, which is the caller's from here on, if there is one."""
    return count_up(counters, 2 * CACHE_LINE * step)


@jit
def _finish(counters, step):
    """A task of a step has been done."""
    count_up(counters, 2 * CACHE_LINE * step + CACHE_LINE)


@jit
def _wait(counters, step, tasks):
    """Until all of a step's tasks have been done."""
    looks = 0
    while counted(counters, 2 * CACHE_LINE * step + CACHE_LINE) < tasks:
        looks += 1
        if CAN_YIELD and looks > LOOKS:
            give_way()


@jit
def visit_in_lanes(
    values,
    indices,
    starts,
    equal,
    order,
    meetings,
    labels,
    squares,
    upper,
    ridge,
    bias,
    constant,
    idle_above,
    nearly_all,
    columns,
    w,
    alpha,
    idle,
    own,
    before,
    counters,
    sums,
    found,
    gains,
):
    """``visit`` in two lanes, which meet at ``meetings[s]``, the first and last of which are ends.

    Any number of threads may call this at the same time, with the same arguments. Every step
    consists of tasks, each of which is done by who comes first; nobody goes on to the next step
    before all of them have been done. So who calls does not matter for the result, and nobody is
    waited for who has not begun.

    ``own`` (2, n), ``before`` (as ``order``) and ``sums`` (stretches, tasks, 2) are for what passes
    between steps, ``counters`` (stretches · 6 · CACHE_LINE) begins with zeros.
    ``found`` (stretches, 2, 4) is what ``visit`` returns by lane, and Σ ridge·δ²; ``gains`` is what
    the objective has gone down by in a stretch.
    """
    size = w.shape[0]
    tasks = sums.shape[1]
    for s in range(meetings.shape[0] - 1):
        middle = (meetings[s] + meetings[s + 1]) // 2
        step = 3 * s
        lane = _take(counters, step)
        while lane < 2:
            first = meetings[s] if lane == 0 else middle
            last = middle if lane == 0 else meetings[s + 1]
            mine = own[lane]
            mine[:] = w
            for k in range(first, last):
                before[k] = alpha[order[k]]
            count, worst, gain = visit(
                values,
                indices,
                starts,
                equal,
                order[first:last],
                labels,
                squares,
                upper,
                ridge,
                bias,
                constant,
                idle_above,
                mine,
                alpha,
                idle,
            )
            moves = 0.0
            for k in range(first, last):
                moves += ridge[order[k]] * (alpha[order[k]] - before[k]) ** 2
            found[s, lane, 0] = count
            found[s, lane, 1] = worst
            found[s, lane, 2] = gain
            found[s, lane, 3] = moves
            _finish(counters, step)
            lane = _take(counters, step)
        _wait(counters, step, 2)
        step += 1
        task = _take(counters, step)
        while task < tasks:
            first = task * columns
            mixed, squared = _join(own[0], own[1], first, min(first + columns, size), w)
            sums[s, task, 0] = mixed
            sums[s, task, 1] = squared
            _finish(counters, step)
            task = _take(counters, step)
        _wait(counters, step, tasks)
        gain = found[s, 0, 2] + found[s, 1, 2]
        squared = found[s, 0, 3] + found[s, 1, 3]
        for k in range(tasks):
            gain -= sums[s, k, 0]
            squared += sums[s, k, 1]
        if gain < (nearly_all - 0.5) * squared:
            part = max(0.0, 0.5 + gain / squared)
            gain = 0.5 * part * part * squared
            step += 1
            task = _take(counters, step)
            while task < tasks + 1:
                if task < tasks:
                    first = task * columns
                    _shorten(own[0], own[1], part, first, min(first + columns, size), w)
                else:
                    for k in range(meetings[s], meetings[s + 1]):
                        i = order[k]
                        alpha[i] = before[k] + part * (alpha[i] - before[k])
                _finish(counters, step)
                task = _take(counters, step)
            _wait(counters, step, tasks + 1)
        gains[s] = gain  # all write the same


@jit
def lay_tiles(rows, tiles, tile_rows, out):
    """out = the rows of each tile, one tile after the other; returns their number."""
    count = 0
    for t in range(tiles.shape[0]):
        first = tiles[t] * tile_rows
        for at in range(first, min(first + tile_rows, rows.shape[0])):
            out[count] = rows[at]
            count += 1
    return count


@jit
def gather_rows(values, indices, starts, order, out_values, out_indices, out_starts):
    """Copy sparse rows in another order; ``out_starts`` begins with 0."""
    at = np.uint64(0)
    one = np.uint64(1)
    for k in range(order.shape[0]):
        row = np.uint64(order[k])
        p = np.uint64(starts[row])
        stop = np.uint64(starts[row + one])
        while p < stop:
            out_values[at] = values[p]
            out_indices[at] = indices[p]
            at += one
            p += one
        out_starts[k + 1] = at


@jit
def pair_products(values, indices, starts, first, second, row, out):
    """out[k] = <x_first[k], x_second[k]> for sparse rows; ``row`` is a vector of zeros."""
    for k in range(first.shape[0]):
        for p in range(starts[first[k]], starts[first[k] + 1]):
            row[indices[p]] += values[p]
        total = 0.0
        for p in range(starts[second[k]], starts[second[k] + 1]):
            total += values[p] * row[indices[p]]
        for p in range(starts[first[k]], starts[first[k] + 1]):
            row[indices[p]] = 0.0
        out[k] = total


@jit
def violations(scores, bias, labels, alpha, upper, ridge, out):
    """How far each row is from optimal, as in ``visit``; below 0 how firmly a bound holds it.

    Returns the largest.
    """
    worst = 0.0
    for i in range(scores.shape[0]):  # no branch that is hard to predict
        a = alpha[i]
        gradient = labels[i] * (scores[i] + bias) - 1.0 + ridge[i] * a
        violation = gradient if a == upper[i] else abs(gradient)
        violation = -gradient if a == 0.0 else violation
        counting = violation if upper[i] > 0.0 else 0.0
        worst = counting if counting > worst else worst
        out[i] = violation
    return worst
