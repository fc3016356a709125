"""The ranking of two classes that violates its margin most: average precision and NDCG.

``ups`` (p,) and ``downs`` (n,) are the scores of the relevant and of the other rows, from high to
low, less a constant that keeps the digits. In the worst ranking both stay in this order; it is
known from ``above``[j], the relevant rows above the j-th other one, which never fall, or from
``before``[i], the other rows above the i-th relevant one. A relevant row at position r is worth
``worth``[r], r = 1, 2, …; for average precision it is worth i/r over p, if it is the i-th.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import jit
from .measures import add_term


@jit
def _gain(i, j, ups, downs, rate, worth, ideal):
    """What the j-th other row above the i-th relevant one adds to the risk, i, j = 1, 2, …"""
    if ideal > 0.0:
        loss = (worth[i + j - 1] - worth[i + j]) / ideal
    else:
        loss = i / ((i + j - 1.0) * (i + j)) / ups.shape[0]
    return loss - rate * (ups[i - 1] - downs[j - 1])


@jit
def merge_by_halves(ups, downs, rate, worth, ideal, above):
    """The worst ranking if worth is convex, or for average precision (``ideal`` = 0).

    The risk is the sum of the gains of all pairs that are swapped. With k relevant rows above it
    the j-th other row gains f_j(k) = Σ_{i > k} gain(i, j). No gain grows with j, so that f_j(k) −
    f_j(k') = Σ_{k < i ≤ k'} gain(i, j) falls with j for k < k': the best k of a row is no smaller
    than that of the row before. The rows can be placed one by one, each where it gains most (Yue
    et al. 2007), and the middle one's place divides the search for the others (as Mohapatra et al.
    2016 do): O(n + p log n). Returns the number of gains that were computed.
    """
    p = ups.shape[0]
    stack = np.empty((128, 4), np.int64)  # two entries per halving of at most 2⁶³ rows
    stack[0] = (0, downs.shape[0], 0, p)
    size = 1
    work = 0
    while size > 0:
        size -= 1
        first, last, least, most = stack[size]
        if first >= last:
            continue
        middle = (first + last) // 2
        high = 0.0
        low = 0.0
        best = 0.0
        best_k = most
        for k in range(most - 1, least - 1, -1):
            term = _gain(k + 1, middle + 1, ups, downs, rate, worth, ideal)
            high, low = add_term(high, low, term)
            if high + low > best:
                best = high + low
                best_k = k
        work += most - least + 1
        above[middle] = best_k
        stack[size] = (first, middle, least, best_k)
        stack[size + 1] = (middle + 1, last, best_k, most)
        size += 2
    return work


@jit
def merge_top(ups, downs, rate, worth, ideal, top, above):
    """The worst ranking if only the ``top`` first positions are worth anything.

    If t relevant rows are among the first, they have c_1 ≤ … ≤ c_t ≤ top − t other rows above them:
    the best such numbers come from a table over i and c. The others have at least top − t above
    them, and besides all that score higher, since nothing but the scores counts there. O(top²
    + top·p + n).
    """
    p = ups.shape[0]
    n = downs.shape[0]
    first = min(p, top)
    wide = min(top, n) + 1
    sums = np.zeros(n + 1)  # of the first other rows' scores
    for j in range(n):
        sums[j + 1] = sums[j] + downs[j]
    higher = np.empty(p, np.int64)  # other rows of higher score than the relevant one
    rest = np.zeros(p + 1)  # what the rows from the i-th on are worth there
    j = 0
    for i in range(p):
        while j < n and downs[j] > ups[i]:
            j += 1
        higher[i] = j
    for i in range(p - 1, -1, -1):
        rest[i] = rest[i + 1] + rate * (sums[higher[i]] - higher[i] * ups[i])
    lost = np.zeros(p + 1)  # the loss if no row from the i-th on is at the top
    for i in range(first - 1, -1, -1):
        lost[i] = lost[i + 1] + worth[i + 1] / ideal
    table = np.zeros(wide)  # best value of the first i rows with c_i ≤ c
    choice = np.zeros((first, wide), np.int64)
    best = -np.inf
    best_t = 0
    for t in range(first + 1):
        if t > 0:
            largest = -np.inf
            chosen = 0
            for c in range(min(wide, top - t + 1)):
                value = table[c] + (worth[t] - worth[t + c]) / ideal
                value += rate * (sums[c] - c * ups[t - 1])
                if value > largest:
                    largest = value
                    chosen = c
                table[c] = largest
                choice[t - 1, c] = chosen
        if t < p and top - t > n:
            continue  # there are not so many other rows
        value = lost[t] + table[min(top - t, n)]
        i = t
        while i < p and higher[i] < top - t:
            value += rate * (sums[top - t] - (top - t) * ups[i])
            i += 1
        value += rest[i]
        if value > best:
            best = value
            best_t = t
    before = np.empty(p, np.int64)
    for i in range(best_t, p):
        before[i] = max(higher[i], top - best_t)
    c = min(top - best_t, n)
    for i in range(best_t - 1, -1, -1):
        c = choice[i, c]
        before[i] = c
    i = 0
    for j in range(n):
        while i < p and before[i] <= j:
            i += 1
        above[j] = i


@jit
def evaluate_queries(
    scores, rows, levels, starts, tasks, shares, ideals, first, last, worth, top, coef, sums
):
    """The risk of some queries, and the plane that touches it.

    Query q has the rows ``rows``[starts[q]:starts[q + 1]] with ``levels`` at the same places. Its
    t-th task, of the entries tasks[q]:tasks[q + 1] of ``shares`` and ``ideals``, takes the rows of
    level > t as relevant. ``sums`` (2, queries) gets the plane's change and offset.
    """
    for q in range(first, last):
        start = starts[q]
        stop = starts[q + 1]
        size = stop - start
        local = np.empty(size)
        for place in range(size):
            local[place] = scores[rows[start + place]]
        order = np.argsort(-local, kind="mergesort")
        reference = local[order[size // 2]]
        own = np.zeros(size)
        offset = 0.0
        ups = np.empty(size)
        downs = np.empty(size)
        above = np.empty(size, np.int64)
        for task in range(tasks[q], tasks[q + 1]):
            p = 0
            n = 0
            for place in order:
                if levels[start + place] > task - tasks[q]:
                    ups[p] = local[place] - reference
                    p += 1
                else:
                    downs[n] = local[place] - reference
                    n += 1
            rate = 2.0 / (np.float64(p) * n)
            ideal = ideals[task]
            if top < size:
                merge_top(ups[:p], downs[:n], rate, worth, ideal, top, above[:n])
            else:
                merge_by_halves(ups[:p], downs[:n], rate, worth, ideal, above[:n])
            share = shares[task]
            i = 0
            j = 0
            for place in order:
                if levels[start + place] > task - tasks[q]:
                    while j < n and above[j] <= i:
                        j += 1
                    own[place] -= share * rate * j
                    i += 1
                    if ideal > 0.0:
                        offset += share * (worth[i] - worth[i + j]) / ideal
                    else:
                        offset += share * (j / (i + np.float64(j))) / p
            j = 0
            for place in order:
                if levels[start + place] <= task - tasks[q]:
                    own[place] += share * rate * (p - above[j])
                    j += 1
        change = 0.0
        for place in range(size):
            coef[rows[start + place]] = own[place]
            change += own[place] * (local[place] - reference)
        sums[0, q] = change
        sums[1, q] = offset


def discounts(size: int, top: int) -> np.ndarray:
    """Worth of the positions 1 to ``size``, at these indices: 1/log₂(1 + r), 0 behind ``top``."""
    worth = np.zeros(size + 1)
    for position in range(1, min(size, top) + 1):
        worth[position] = 1.0 / math.log2(1.0 + position)
    return worth
