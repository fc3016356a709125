"""Counts of violated pairs: rows in the wrong order, or in the right order by less than a margin.

Rows are sorted by query, then by target. The position of a row in this order is its place. These
arrays have an entry per place: ``local`` has the scores s, ``reach`` is s − margin, ``weights`` are
w > 0, and ``after[j]`` is the first place behind the rows with j's target. A pair of i and j in one
query with y_i > y_j is violated if reach_i < s_j. All functions make this same comparison of two
stored numbers. ``counts`` (2·places,) gets

    counts[j]          = Σ w_i over the violated pairs of j with rows i of larger target    (c⁻_j)
    counts[places + i] = Σ w_j over the violated pairs of i with rows j of smaller target   (c⁺_i)

If there are few rows, every row is compared with every other row, by vector instructions. Many rows
are split at some target into low and high rows, both in order of score. Then s of the low rows is
merged with reach of the high rows. In this order a low row violates its pairs with the high rows
before it, and a high row its pairs with the low rows behind it. ``sums`` has the weights of these:
for a high row of all high rows before it, for a low row of all low rows from it on. Then the low
rows and the high rows are split further, which makes a tree. With two targets there is one split;
with as many targets as rows there are about log₂(rows / 64) levels.

``keys`` and ``ids`` (2, places) have the scores and the places of the rows of a node of this tree,
at [start, stop) of line ``side``, in order of score. A split writes to the other line.

If a query has two levels, one of few and one of many rows, only the few rows are sorted: ``keys``
(few,) are their scores, ascending. A row of the many needs its place among the keys, the number of
keys below its score. A table of even cells over the range of the keys finds it: ``table[c]`` is the
first key in cell c or beyond, and only the keys of the score's own cell are compared. The row is in
violated pairs with all few rows on one side of this place. So the sums of the weights before each
place, ``before`` (few + 1,), give the counts of the many rows, and a histogram of the places gives
the counts of the few rows.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit
from .bounded import ABOVE, FEW, ROUNDING, add_product

_ONE = np.uint64(1)


@jit
def pair_weights(weights, after, starts, totals):
    """totals[q] = Σ w_i·w_j over the pairs of query q."""
    for q in range(starts.shape[0] - 1):
        start = starts[q]
        below = 0.0  # weight of the rows with a smaller target
        level = 0.0  # weight of the rows so far with the same target
        total = 0.0
        for p in range(start, starts[q + 1]):
            if p > start and after[p - 1] == p:
                below += level
                level = 0.0
            level += weights[p]
            total += weights[p] * below
        totals[q] = total


@jit
def plant(levels, starts, leaf, nodes):
    """Write the nodes of the tree, lines (start, mid, stop, side), and return their number.

    A node is split where its targets change, as near to its middle as possible. A node of at most
    ``leaf`` rows is not split and has mid = stop. A node with one target is left out. ``levels``
    are the first places of all runs of one target, then the number of places.
    """
    count = 0
    stack = np.empty((256, 3), np.int64)  # no node is deeper than 2·log₂(rows)
    for query in range(starts.shape[0] - 1):
        stack[0] = (starts[query], starts[query + 1], 0)
        waiting = 1
        while waiting > 0:
            waiting -= 1
            start, stop, side = stack[waiting]
            above = np.searchsorted(levels, (start + stop) // 2)
            mid = levels[above]
            if above > 0 and start + stop - 2 * levels[above - 1] <= 2 * mid - start - stop:
                mid = levels[above - 1]
            if mid <= start or mid >= stop:
                continue
            nodes[count] = (start, mid if stop - start > leaf else stop, stop, side)
            count += 1
            if stop - start > leaf:
                for half, end in ((mid, stop), (start, mid)):
                    stack[waiting] = (half, end, 1 - side)
                    waiting += 1
    return count


@jit(inline=True)
def load(scores, rows, start, stop, margin, local, reach, counts):
    """Copy the scores of the places start, …, stop − 1, and set their counts to 0."""
    places = np.uint64(local.shape[0])
    for p in range(np.uint64(start), np.uint64(stop)):
        score = scores[rows[p]]
        local[p] = score
        reach[p] = score - margin
        counts[p] = 0.0
        counts[places + p] = 0.0


@jit(reassociate=True)
def _all_pairs(local, reach, weights, after, start, stop, counts):
    """Count by comparing every row with all rows of larger target."""
    places = np.uint64(local.shape[0])
    for j in range(np.uint64(start), np.uint64(stop)):
        score = local[j]
        weight = weights[j]
        above = 0.0
        for i in range(np.uint64(after[j]), np.uint64(stop)):
            violated = reach[i] < score
            above += weights[i] if violated else 0.0
            counts[places + i] += weight if violated else 0.0
        counts[j] += above


@jit(inline=True)
def reference_of(local, start, stop):
    """A typical score of a query: the median of three scores."""
    a = local[start]
    b = local[(start + stop) // 2]
    c = local[stop - 1]
    return max(min(a, b), min(max(a, b), c))


@jit(inline=True)
def spread(local, weights, rows, counts, start, stop, reference, factor, coef):
    """Write the coefficients of the places start, …, stop − 1.

    Returns Σ w(c⁻ − c⁺)(s − reference) and Σ w·c⁺, from which value and offset follow. For all
    places of a query the first sum does not depend on the reference. A reference near the scores
    keeps digits that a large common part of the scores would take.
    """
    places = np.uint64(local.shape[0])
    product = 0.0
    plus = 0.0
    for p in range(np.uint64(start), np.uint64(stop)):
        down = weights[p] * counts[places + p]
        slope = weights[p] * counts[p] - down
        plus += down
        product += slope * (local[p] - reference)
        coef[rows[p]] = factor * slope
    return product, plus


@jit
def small_queries(
    scores,
    rows,
    weights,
    after,
    starts,
    factors,
    first,
    last,
    margin,
    local,
    reach,
    counts,
    coef,
    products,
    pluses,
):
    """Count pairs and compute coefficients of the queries first, …, last − 1."""
    load(scores, rows, starts[first], starts[last], margin, local, reach, counts)
    for q in range(first, last):
        start = starts[q]
        stop = starts[q + 1]
        _all_pairs(local, reach, weights, after, start, stop, counts)
        reference = reference_of(local, start, stop)
        products[q], pluses[q] = spread(
            local, weights, rows, counts, start, stop, reference, factors[q], coef
        )


@jit
def distribute(order, local, base, query_of, ends, keys, ids):
    """Sort the scores and places of all rows by query. Within a query their order stays.

    The places begin at ``base``. ``ends``[q] is the first place of query q and moves to its end.
    """
    for k in range(np.uint64(order.shape[0])):
        p = np.uint64(order[k])
        q = query_of[p]
        p += np.uint64(base)
        place = ends[q]
        ends[q] = place + _ONE
        keys[0, place] = local[p]
        ids[0, place] = p


@jit
def split(keys, ids, side, start, stop, mid, low, high):
    """Write a part of a line to the other line: low rows from ``low`` on, others from ``high``."""
    source = np.uint64(side)
    other = _ONE - source
    boundary = np.uint64(mid)
    low_place = np.uint64(low)
    high_place = np.uint64(high)
    for k in range(np.uint64(start), np.uint64(stop)):
        p = ids[source, k]
        is_high = np.uint64(p >= boundary)
        place = high_place if is_high else low_place
        keys[other, place] = keys[source, k]
        ids[other, place] = p
        high_place += is_high
        low_place += _ONE - is_high


@jit
def low_sums(ids, side, weights, weighted, start, mid, sums):
    """sums[k] = weight of the low rows from k on, in order of score."""
    total = 0.0
    for k in range(mid - 1, start - 1, -1):
        total += weights[ids[side, k]] if weighted else 1.0
        sums[k] = total


@jit
def high_sums(ids, side, weights, weighted, mid, stop, sums):
    """sums[k] = weight of the high rows before k, in order of score. Returns their total weight."""
    total = 0.0
    for k in range(np.uint64(mid), np.uint64(stop)):
        sums[k] = total
        total += weights[ids[side, k]] if weighted else 1.0
    return total


@jit
def _step(keys, line, k, q, margin, sums, values):
    """Pass the low row at k or the high row at q, whichever comes first.

    Both get a value. The row that is not passed gets another value later. So the code needs no
    branch, which the processor could not predict.
    """
    is_high = np.uint64(keys[line, q] - margin < keys[line, k])
    values[k] = sums[q]
    values[q] = sums[k]
    return k + _ONE - is_high, q + is_high


@jit
def _merge_to_end(keys, line, k, k_stop, q, q_stop, low_rest, high_all, margin, sums, values):
    while k < k_stop and q < q_stop:
        k, q = _step(keys, line, k, q, margin, sums, values)
    while k < k_stop:
        values[k] = high_all
        k += _ONE
    while q < q_stop:
        values[q] = low_rest
        q += _ONE


@jit
def cut(keys, line, low, mid, high, stop, margin, length):
    """The number of low rows among the first ``length`` rows of a merge."""
    few = max(0, length - (stop - high))
    many = min(length, mid - low)
    while few < many:
        guess = (few + many) // 2
        if keys[line, high + length - guess - 1] - margin < keys[line, low + guess]:
            many = guess
        else:
            few = guess + 1
    return few


@jit
def merge(
    keys,
    ids,
    line,
    low,
    low_stop,
    high,
    high_stop,
    low_rest,
    high_all,
    margin,
    sums,
    values,
    counts,
):
    """Add to counts the violated pairs of low and high rows, for a part of both lists.

    ``low_rest`` is the weight of the low rows from low_stop on, ``high_all`` that of the high rows
    before high_stop. Each step waits for the step before it, so two halves of the merge run side by
    side.
    """
    length = (low_stop - low + high_stop - high) // 2
    lows = cut(keys, line, low, low_stop, high, high_stop, margin, length)
    k, k_stop = np.uint64(low + lows), np.uint64(low_stop)
    q, q_stop = np.uint64(high + length - lows), np.uint64(high_stop)
    j, j_stop = np.uint64(low), k
    i, i_stop = np.uint64(high), q
    line = np.uint64(line)
    rest = sums[k] if k < k_stop else low_rest
    all_before = sums[q] if q < q_stop else high_all
    while j < j_stop and i < i_stop and k < k_stop and q < q_stop:
        j, i = _step(keys, line, j, i, margin, sums, values)
        k, q = _step(keys, line, k, q, margin, sums, values)
    _merge_to_end(keys, line, j, j_stop, i, i_stop, rest, all_before, margin, sums, values)
    _merge_to_end(keys, line, k, k_stop, q, q_stop, low_rest, high_all, margin, sums, values)
    for k in range(np.uint64(low), np.uint64(low_stop)):
        counts[ids[line, k]] += values[k]
    places = np.uint64(ids.shape[1])
    for q in range(np.uint64(high), np.uint64(high_stop)):
        counts[places + np.uint64(ids[line, q])] += values[q]


@jit
def subtrees(
    nodes,
    first,
    last,
    weights,
    weighted,
    after,
    margin,
    local,
    reach,
    keys,
    ids,
    sums,
    values,
    counts,
):
    """Count in the nodes first, …, last − 1, each (start, mid, stop, side), parents first.

    A node with mid = stop has few rows, which are compared with one another.
    """
    for node in range(first, last):
        start, mid, stop, side = nodes[node]
        if mid == stop:
            _all_pairs(local, reach, weights, after, start, stop, counts)
        else:
            split(keys, ids, side, start, stop, mid, start, mid)
            other = 1 - side
            low_sums(ids, other, weights, weighted, start, mid, sums)
            total = high_sums(ids, other, weights, weighted, mid, stop, sums)
            ends = (start, mid, mid, stop, 0.0, total)
            merge(keys, ids, other, *ends, margin, sums, values, counts)


@jit
def find_exposed(scores, errors, rows, levels, starts, exposed):
    """Mark the rows that may be in a violated pair if all scores move by up to their errors.

    Such a row is not always 1 above all rows of its query with a smaller target, or not always 1
    below all rows with a larger target. ``levels`` are the places where rows of another target
    begin, and the end.
    """
    level = 0
    for query in range(starts.shape[0] - 1):
        first = level
        highest = -np.inf
        while levels[level] < starts[query + 1]:
            for place in range(levels[level], levels[level + 1]):
                i = rows[place]
                exposed[i] = not scores[i] - 2.0 * errors[i] - 1.0 > highest
            for place in range(levels[level], levels[level + 1]):
                i = rows[place]
                highest = max(highest, scores[i] + 2.0 * errors[i])
            level += 1
        lowest = np.inf
        for above in range(level - 1, first - 1, -1):
            for place in range(levels[above], levels[above + 1]):
                i = rows[place]
                if not scores[i] + 2.0 * errors[i] < lowest - 1.0:
                    exposed[i] = True
            for place in range(levels[above], levels[above + 1]):
                i = rows[place]
                lowest = min(lowest, scores[i] - 2.0 * errors[i])


@jit
def plane_values(high, low, errors, rows, weighted, starts, slopes, masses, pluses, values):
    """For each query an upper bound on Σ w(c⁻ − c⁺)·s + Σ w·c⁺, at scores s = high + low ± errors.

    From a count, ``slopes`` are w(c⁻ − c⁺) by row, ``masses`` are w(c⁻ + c⁺) by place, and
    ``pluses`` are Σ w·c⁺. Without weights all of these are integers, and the slopes of a query add
    up to 0. Then the sum keeps all digits. Sums of weights have some rounding errors per row,
    relative to the masses.
    """
    for query in range(starts.shape[0] - 1):
        start = starts[query]
        stop = starts[query + 1]
        lost = 2.0 * ROUNDING * (np.float64(stop - start) + FEW)
        reference = 0.0
        if weighted:
            for place in range(start, stop):
                if masses[place] > 0.0:
                    reference = high[rows[place]]
                    break
        total = pluses[query]
        rest = 0.0
        size = total
        error = lost * total if weighted else 0.0
        for place in range(start, stop):
            if masses[place] == 0.0:
                continue
            i = rows[place]
            score = high[i] - reference
            total, rest, part = add_product(total, rest, slopes[i], score)
            rest += slopes[i] * low[i]
            size += part
            error += abs(slopes[i]) * errors[i]
            if weighted:
                error += lost * masses[place] * (abs(score) + abs(low[i]))
        value = total + rest
        values[query] = value + FEW * ROUNDING * abs(value) + ABOVE * (error + lost * lost * size)


@jit
def locate(
    scores, rows, weights, first, last, shift, ties, keys, low, scale, table, places, histogram
):
    """Find the places of the rows first, …, last − 1 of the many; add up their weights by place.

    A row's place is the number of keys below score − shift; with ``ties`` also keys equal to it
    count. Two more keys at the end are NaN, so that no score is above them.
    """
    one = np.uint32(1)
    last_cell = float(table.shape[0] - 2)
    for p in range(first, last):
        x = scores[rows[p]] - shift
        position = (x - low) * scale
        position = position if position > 0.0 else 0.0
        position = position if position < last_cell else last_cell
        cell = np.uint32(np.int32(position))
        start = table[cell]
        stop = table[cell + one]
        k = np.uint32(start)
        place = start
        if stop - start <= 2:  # this is nearly always so; a key beyond the cell is above x
            place += 1 if (keys[k] < x) | (ties & (keys[k] == x)) else 0
            place += 1 if (keys[k + one] < x) | (ties & (keys[k + one] == x)) else 0
        else:
            while place < stop:
                middle = (place + stop) // 2
                if keys[middle] < x or (ties and keys[middle] == x):
                    place = middle + 1
                else:
                    stop = middle
        places[p] = place
    for p in range(first, last):
        histogram[places[p]] += weights[p]


@jit
def spread_many(scores, rows, weights, first, last, places, before, sign, reference, factor, coef):
    """Write the coefficients of the rows first, …, last − 1 of the many.

    The count of a row is before[place], or with sign < 0 the total less before[place]. Returns
    Σ w·count and Σ ±w·count·(score − reference).
    """
    total = before[before.shape[0] - 1]
    mass = 0.0
    product = 0.0
    for p in range(first, last):
        below = before[places[p]]
        count = weights[p] * (below if sign > 0.0 else total - below)
        mass += count
        product += sign * count * (scores[rows[p]] - reference)
        coef[rows[p]] = factor * sign * count
    return mass, product


@jit
def spread_few(scores, rows, weights, order, histogram, sign, reference, factor, coef):
    """Write the coefficients of the few, as ``spread_many``. ``order`` leads from keys to rows.

    With sign < 0 the count of a row is the weight of the many with a place behind the row's key,
    otherwise of the many with a place up to its key.
    """
    mass = 0.0
    product = 0.0
    count = 0.0
    few = order.shape[0]
    for step in range(few):
        k = few - 1 - step if sign < 0.0 else step
        count += histogram[k + 1] if sign < 0.0 else histogram[k]
        p = order[k]
        weighted = weights[p] * count
        mass += weighted
        product += sign * weighted * (scores[rows[p]] - reference)
        coef[rows[p]] = factor * sign * weighted
    return mass, product
