"""What measures of all predictions need: sorted classes, running sums, coefficients of a table.

``positives`` (p,) and ``negatives`` (n,) hold the scores of the two classes from high to low,
m = p + n. A table of a true and b false positives stands for the labelling that predicts the first
a positives and the first b negatives.

Sums are over up to m scores of any sign. Each is stored as two numbers, high + low, so that only
the result has a rounding error, and not every addition.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit


@jit
def add_term(high, low, term):
    """(high + low) + term. The low number collects the rounding errors of the high one."""
    total = high + term
    part = total - high
    return total, low + ((high - (total - part)) + (term - part))


@jit
def split(order, copies, scores, positives, ranked, ranked_scores):
    """Write rows and scores of the positives, then those of the negatives, each from high to low.

    ``order`` lists the rows by ascending score. ``copies`` tells how often a row counts, with the
    sign of its label. ``positives`` is p.
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
def running_sums(positives, positives_low, negatives, negatives_low, missed, alarms):
    """missed[a] = Σ of all positives but the first a, alarms[b] = Σ of the first b negatives.

    A score is the sum of two numbers, of which the second is small or 0.
    """
    high = 0.0
    low = 0.0
    missed[positives.shape[0]] = 0.0
    for i in range(positives.shape[0] - 1, -1, -1):
        high, low = add_term(high, low, positives[i])
        low += positives_low[i]
        missed[i] = high + low
    high = 0.0
    low = 0.0
    alarms[0] = 0.0
    for j in range(negatives.shape[0]):
        high, low = add_term(high, low, negatives[j])
        low += negatives_low[j]
        alarms[j + 1] = high + low


@jit(inline=True)
def _gain(weights, wrong, all_of, b, step):
    """A number with the sign of V(b + 1) − V(b).

    The loss at b is (wrong + c·b)/(all_of + (c − t)·b). The number is the gain times the two
    denominators, so nothing is divided.
    """
    alarm = weights[1]
    slope = alarm - weights[3]
    here = all_of + slope * b
    return alarm * all_of - wrong * slope + step * (here * (here + slope))


@jit(inline=True)
def _size(weights, wrong, all_of, b, step):
    """The size of what ``_gain`` sums."""
    alarm = weights[1]
    slope = alarm - weights[3]
    here = all_of + slope * b
    there = here + slope
    losses = (wrong + alarm * b) * there + (wrong + alarm * (b + 1)) * here
    return losses + abs(step) * (here * there)


@jit(inline=True)
def _gains(weights, wrong, all_of, b, step, share):
    """Whether V gains more from b to b + 1 than this share of what it sums."""
    gain = _gain(weights, wrong, all_of, b, step)
    if share == 0.0:
        return gain > 0.0
    return gain > share * _size(weights, wrong, all_of, b, step)


@jit(inline=True)
def _first_below(weights, wrong, all_of, steps, b, share):
    """The first b from which on V gains no more than this share of what it sums; from ``b`` on."""
    while b < steps.shape[0] and _gains(weights, wrong, all_of, b, steps[b], share):
        b += 1
    # This ends at once after a step forward. To ask about that first takes longer: a processor
    # cannot predict the answer.
    while b > 0 and not _gains(weights, wrong, all_of, b - 1, steps[b - 1], share):
        b -= 1
    return b


@jit
def worst_of_ratio(weights, g, h, steps, rounding):
    """The largest V(a, b) = Δ(a, b) + g[a] + h[b], its a and b, and the number of visited tables.

    ``weights`` are the weights of true positives, false positives, false negatives and true
    negatives in a ``Ratio``; see ``risks.contingency``, also for ``rounding``. ``steps`` (n,) are
    the falling steps of h. With ``rounding``, a gain that is larger than its rounding error tells
    on which side the best b is. Between the two places that are found so, no step gains more than
    the first one.
    """
    p = g.shape[0] - 1
    n = h.shape[0] - 1
    best = -np.inf
    best_a = 0
    best_b = 0
    first = 0
    last = 0
    visited = 0
    for a in range(p + 1):
        wrong = weights[2] * (p - a)
        all_of = weights[0] * a + wrong + weights[3] * n
        before = first + last
        first = _first_below(weights, wrong, all_of, steps, first, rounding)
        loss = (wrong + weights[1] * first) / (all_of + (weights[1] - weights[3]) * first)
        value = loss * (1.0 + rounding) + g[a] + h[first]
        if rounding > 0.0 and first < n:
            last = _first_below(weights, wrong, all_of, steps, max(first, last), -rounding)
            gain = _gain(weights, wrong, all_of, first, steps[first])
            gain += rounding * _size(weights, wrong, all_of, first, steps[first])
            here = all_of + (weights[1] - weights[3]) * first
            most = gain / (here * (here + weights[1] - weights[3]))
            value += (last - first) * max(0.0, most)
        visited += 2 + abs(first + last - before)
        if value >= best:  # among equal tables the one with the most true positives wins
            best = value
            best_a = a
            best_b = first
    return best, best_a, best_b, visited


@jit
def _ties(ranked_scores, first, cut, last):
    """Start and end of the run of equal scores around ``cut``, within first, …, last − 1.

    Both are ``cut`` if the scores on its two sides differ.
    """
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

    If only some rows of equal score in a class get a coefficient, all of these rows share it, so
    that the order of the rows does not matter. Returns Σ coef·score.
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
        high, low = add_term(high, low, coef[row] * scores[row])
    return high + low
