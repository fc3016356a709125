"""The most violated ranking of relevant and other rows, for average precision and NDCG.

``ups`` (p,) and ``downs`` (n,) are the scores of the relevant rows and of the other rows, from high
to low. A constant is subtracted from both, so that differences keep their digits. In the most
violated ranking both kinds of rows stay in this order. So either of two arrays describes it:

    above[j]     the number of relevant rows above the j-th other row; it does not fall with j
    before[i]    the number of other rows above the i-th relevant row; it does not fall with i

For NDCG a relevant row at position r = 1, 2, … is worth ``worth[r]``, and ``ideal`` is the sum for
the best ranking. For average precision, ``ideal`` is 0, and the i-th relevant row is worth i/(r·p).
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import jit
from .measures import add_term


@jit
def _gain(i, j, ups, downs, rate, worth, ideal):
    """How much the risk grows if the j-th other row moves above the i-th relevant row; from 1."""
    if ideal > 0.0:
        loss = (worth[i + j - 1] - worth[i + j]) / ideal
    else:
        loss = i / ((i + j - 1.0) * (i + j)) / ups.shape[0]
    return loss - rate * (ups[i - 1] - downs[j - 1])


@jit
def merge_by_halves(ups, downs, rate, worth, ideal, above):
    """Write the most violated ranking to ``above``: for a convex worth, or average precision.

    The risk is the sum of the gains of all swapped pairs. If k relevant rows are above the j-th
    other row, this row gains f_j(k) = Σ_{i > k} gain(i, j). No gain grows with j. Therefore
    f_j(k) − f_j(k') = Σ_{k < i ≤ k'} gain(i, j) does not grow with j for k < k', and the best k of
    a row is no smaller than the best k of the row before. So each row can be put where it gains
    most (Yue et al. 2007). The best k of the middle row divides the search for the other rows
    (Mohapatra et al. 2016), which makes O(n + p log n). Returns the number of computed gains.
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
    """Write the most violated ranking to ``above`` if only the first ``top`` positions count.

    Let t relevant rows be in the first positions. The numbers of other rows above them are
    c_1 ≤ … ≤ c_t ≤ top − t. A table over i and c finds the best ones. Every later relevant row has
    at least top − t other rows above it, and all other rows of higher score, because only the
    scores matter behind ``top``. O(top² + top·p + n).
    """
    p = ups.shape[0]
    n = downs.shape[0]
    first = min(p, top)
    wide = min(top, n) + 1
    sums = np.zeros(n + 1)  # sums[j]: the sum of the scores of the first j other rows
    for j in range(n):
        sums[j + 1] = sums[j] + downs[j]
    higher = np.empty(p, np.int64)  # number of other rows that score higher than the relevant row
    rest = np.zeros(p + 1)  # what the relevant rows from the i-th on add if ordered by score
    j = 0
    for i in range(p):
        while j < n and downs[j] > ups[i]:
            j += 1
        higher[i] = j
    for i in range(p - 1, -1, -1):
        rest[i] = rest[i + 1] + rate * (sums[higher[i]] - higher[i] * ups[i])
    lost = np.zeros(p + 1)  # the loss if no relevant row from the i-th on is at the top
    for i in range(first - 1, -1, -1):
        lost[i] = lost[i + 1] + worth[i + 1] / ideal
    table = np.zeros(wide)  # table[c]: the best value of the first i relevant rows with c_i ≤ c
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
    """The risk of some queries at the scores, and its subgradient.

    Query q has the rows ``rows[starts[q]:starts[q + 1]]``, and ``levels`` has their levels. The
    query has the tasks ``tasks[q]:tasks[q + 1]``. Its t-th task takes the rows of level > t as
    relevant, and has an entry of ``shares``, the weight of the task, and of ``ideals``. ``coef``
    gets the subgradient. ``sums`` (2, queries) gets <coef, scores> and the offset, whose sum is the
    risk.
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
    """worth[r] of the positions r = 1, …, ``size``: 1/log₂(1 + r), and 0 for r > ``top``."""
    worth = np.zeros(size + 1)
    for position in range(1, min(size, top) + 1):
        worth[position] = 1.0 / math.log2(1.0 + position)
    return worth
