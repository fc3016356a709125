"""Measures of a whole labelling: the contingency table that violates its margin most.

``positives`` (p,) and ``negatives`` (n,) hold the scores of the two classes from
high to low, m = p + n. A table of a true and b false positives stands for the
labelling that predicts the a first positives and the b first negatives. Ties
between tables go to the one with more true positives.

Sums run over up to m scores of any sign. They are kept as two numbers, high + low,
so that what is lost is a rounding of the result and not of every addition.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit
from .bounded import add_product


@jit
def _add(high, low, term):
    """(high + low) + term, with the rounding error of the first kept in the second."""
    total = high + term
    part = total - high
    return total, low + ((high - (total - part)) + (term - part))


@jit
def split(order, copies, scores, positives, ranked, ranked_scores):
    """Rows and scores of the positives, then of the negatives, each from high to low.

    ``order`` lists the rows by ascending score. ``copies`` is how often a row
    counts, with the sign of its label; ``positives`` is p.
    """
    positive = 0
    negative = positives
    for place in range(order.shape[0] - 1, -1, -1):
        row = order[place]
        count = copies[row]
        score = scores[row]
        for _ in range(count):
            ranked[positive] = row
            ranked_scores[positive] = score
            positive += 1
        for _ in range(-count):
            ranked[negative] = row
            ranked_scores[negative] = score
            negative += 1


@jit
def worst_f1_table(positives, negatives):
    """The a and b with the largest 1 − 2a/(p + a + b) + (1/m)(Σ of the predicted scores).

    For a given a, one more false positive gains s/m + 2a/(c(c + 1)), where s is
    the score of the next negative and c = p + a + b. Both terms fall with b, so
    the best b is the first without a gain. It never moves back as a grows: the
    second term grows with a as long as a² ≤ (p + b)(p + b + 1), and a ≤ p.
    One walk over both classes therefore meets the best b of every a.
    """
    p = positives.shape[0]
    n = negatives.shape[0]
    m = float(p + n)
    high = 0.0
    low = 0.0
    b = 0
    best = -np.inf
    best_a = 0
    best_b = 0
    for a in range(p + 1):
        if a > 0:
            high, low = _add(high, low, positives[a - 1])
        c = float(p + a + b)
        while b < n and negatives[b] * c * (c + 1.0) + 2.0 * a * m > 0.0:
            high, low = _add(high, low, negatives[b])
            b += 1
            c += 1.0
        value = (high + low) / m - 2.0 * a / c
        if value >= best:
            best = value
            best_a = a
            best_b = b
    return best_a, best_b


@jit
def worst_top_table(positives, negatives, k, loss_per_miss):
    """The a with the largest loss_per_miss·e + (e/m)(mean of the false positives' scores
    − mean of the false negatives'), where b = k − a and e = min(k, p) − a.
    """
    p = positives.shape[0]
    n = negatives.shape[0]
    m = float(p + n)
    most = min(k, p)
    alarms = 0.0  # Σ scores of the false positives
    alarms_low = 0.0
    for j in range(k - most):
        alarms, alarms_low = _add(alarms, alarms_low, negatives[j])
    misses = 0.0  # Σ scores of the false negatives
    misses_low = 0.0
    for i in range(most, p):
        misses, misses_low = _add(misses, misses_low, positives[i])
    best = 0.0
    best_a = most
    for a in range(most - 1, max(0, k - n) - 1, -1):
        alarms, alarms_low = _add(alarms, alarms_low, negatives[k - a - 1])
        misses, misses_low = _add(misses, misses_low, positives[a])
        errors = float(most - a)
        apart = (alarms + alarms_low) / (k - a) - (misses + misses_low) / (p - a)
        value = errors * loss_per_miss + errors / m * apart
        if value > best:
            best = value
            best_a = a
    return best_a


@jit
def f1_maximum(positives, positives_low, negatives, negatives_low):
    """The largest 1 − 2a/(p + a + b) + (1/m)(Σ false positives − Σ false negatives), to all digits.

    The walk of ``worst_f1_table`` over scores that are two numbers, of which the products and
    sums are two numbers as well.
    """
    p = positives.shape[0]
    n = negatives.shape[0]
    m = float(p + n)
    high = 0.0
    low = 0.0
    for i in range(p):
        high, low = _add(high, low, -positives[i])
        low -= positives_low[i]
    b = 0
    best = 0.0
    for a in range(p + 1):
        if a > 0:
            high, low = _add(high, low, positives[a - 1])
            low += positives_low[a - 1]
        c = float(p + a + b)
        while b < n:
            steps = c * (c + 1.0)
            gain, rest, _ = add_product(2.0 * a * m, negatives_low[b] * steps, negatives[b], steps)
            if not gain + rest > 0.0:
                break
            high, low = _add(high, low, negatives[b])
            low += negatives_low[b]
            b += 1
            c += 1.0
        value, rest, _ = add_product(m * (c - 2.0 * a), c * low, c, high)
        best = max(best, (value + rest) / (m * c))
    return best


@jit
def top_maximum(positives, positives_low, negatives, negatives_low, k, size):
    """The largest e/size + (e/m)(mean of the false positives − mean of the false negatives).

    To all digits; see ``worst_top_table``. With b and f false positives and negatives it is

        e/(m·b·f·size)·(m·b·f + size·(f·Σ false positives − b·Σ false negatives)).
    """
    p = positives.shape[0]
    n = negatives.shape[0]
    m = float(p + n)
    most = min(k, p)
    alarms = 0.0
    alarms_low = 0.0
    for j in range(k - most):
        alarms, alarms_low = _add(alarms, alarms_low, negatives[j])
        alarms_low += negatives_low[j]
    misses = 0.0
    misses_low = 0.0
    for i in range(most, p):
        misses, misses_low = _add(misses, misses_low, positives[i])
        misses_low += positives_low[i]
    best = 0.0
    for a in range(most - 1, max(0, k - n) - 1, -1):
        alarms, alarms_low = _add(alarms, alarms_low, negatives[k - a - 1])
        alarms_low += negatives_low[k - a - 1]
        misses, misses_low = _add(misses, misses_low, positives[a])
        misses_low += positives_low[a]
        b = float(k - a)
        f = float(p - a)
        apart, rest, _ = add_product(0.0, f * alarms_low - b * misses_low, f, alarms)
        apart, rest, _ = add_product(apart, rest, -b, misses)
        value, rest, _ = add_product(0.0, size * rest, size, apart)
        value, rest, _ = add_product(value, rest, m * b, f)
        best = max(best, (value + rest) * ((most - a) / (m * b * f * size)))
    return best


@jit
def _ties(ranked_scores, first, cut, last):
    """Start and end of the equal scores on both sides of ``cut``, where a part of
    first..last is cut in two; twice ``cut`` if it lies between different scores."""
    start = cut
    end = cut
    if first < cut < last and ranked_scores[cut - 1] == ranked_scores[cut]:
        while start > first and ranked_scores[start - 1] == ranked_scores[cut]:
            start -= 1
        while end < last and ranked_scores[end] == ranked_scores[cut]:
            end += 1
    return start, end


@jit
def coefficients(
    ranked,
    ranked_scores,
    positives,
    true_positives,
    false_positives,
    per_alarm,
    per_miss,
    scores,
    coef,
):
    """coef = per_alarm for a false positive, −per_miss for a false negative, times copies.

    Equal scores of a class, of which some count and some do not, share what there is: the
    order of the rows does not matter. Returns Σ coef·score.
    """
    coef[:] = 0.0
    total = ranked.shape[0]
    start, end = _ties(ranked_scores, 0, true_positives, positives)
    for i in range(start, end):
        coef[ranked[i]] -= (end - true_positives) / (end - start)
    for i in range(end, positives):
        coef[ranked[i]] -= 1.0
    cut = positives + false_positives
    start, end = _ties(ranked_scores, positives, cut, total)
    for i in range(positives, start):
        coef[ranked[i]] += 1.0
    for i in range(start, end):
        coef[ranked[i]] += (cut - start) / (end - start)
    high = 0.0
    low = 0.0
    for row in range(coef.shape[0]):
        coef[row] *= per_alarm if coef[row] > 0.0 else per_miss
        high, low = _add(high, low, coef[row] * scores[row])
    return high + low
