"""Chains of second order: as ``viterbi``, with a weight for every three labels in a row.

    score(z) = begin[z_1] + Σ_t s_t[z_t] + Σ_t T[z_{t−1}, z_t]
               + Σ_t S[z_{t−2}, z_{t−1}, z_t] + finish[z_L]

``second`` (K, K, K) holds S with the middle label first, second[j, i, k] = S[i, j, k], and
``alpha`` (longest sequence, K, K) the best prefixes by their last label and the one before: both so
that the inner loop of the forward pass, over i and k for a given j, runs along the memory.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit
from . import viterbi as first_order
from .viterbi import advance, best_before, count_wrong, path_score


@jit
def _seconds(first, last, second, path):
    """Σ_t S[z_{t−2}, z_{t−1}, z_t] of the labelling ``path`` of the tokens first..last."""
    total = 0.0
    for t in range(first + 2, last):
        total += second[path[t - 1], path[t - 2], path[t]]
    return total


@jit
def _path_score(scores, first, last, second, transitions, begin, finish, path):
    """Score of the labelling ``path`` of the tokens first..last."""
    score = path_score(scores, first, last, transitions, begin, finish, path)
    return score + _seconds(first, last, second, path)


@jit
def _best_last(alpha, finish):
    """The last label and the one before of the best prefix, as k·K + j."""
    labels = finish.shape[0]
    best = 0
    for k in range(labels):
        for j in range(labels):
            here = alpha[k, j] + finish[k]
            if here > alpha[best // labels, best % labels] + finish[best // labels]:
                best = k * labels + j
    return best


@jit
def _forward(scores, a, b, second, transitions, begin, truth, cost, work, alpha):
    """The best prefixes of the tokens a..b, of which there are two at least.

    ``cost`` is added for every label but the true one.
    """
    labels = scores.shape[1]
    for j in range(labels):
        before = begin[j] + scores[a, j] + (cost if j != truth[a] else 0.0)
        for k in range(labels):
            own = scores[a + 1, k] + (cost if k != truth[a + 1] else 0.0)
            alpha[1, k, j] = before + transitions[j, k] + own
    for t in range(a + 2, b):
        for j in range(labels):
            advance(second[j], alpha[t - 1 - a, j], work)
            for k in range(labels):
                own = scores[t, k] + (cost if k != truth[t] else 0.0)
                alpha[t - a, k, j] = work[k] + transitions[j, k] + own


@jit
def _back(a, b, second, finish, alpha, path):
    """path = the best labelling of the tokens a..b, from the best prefixes."""
    labels = finish.shape[0]
    best = _best_last(alpha[b - 1 - a], finish)
    path[b - 1] = best // labels
    path[b - 2] = best % labels
    for t in range(b - 1, a + 1, -1):
        j = path[t - 1]
        path[t - 2] = best_before(second[j], alpha[t - 1 - a, j], path[t])


@jit
def _single(scores, a, begin, finish, cost, free, without):
    """The best label of a sequence of one token, with a cost for all but one, and without one."""
    best = -1
    highest = -np.inf
    for k in range(scores.shape[1]):
        here = begin[k] + scores[a, k] + finish[k] + (cost if k != free else 0.0)
        if k != without and here > highest:
            best = k
            highest = here
    return best


@jit
def decode(scores, starts, first, last, second, transitions, begin, finish, alpha, path):
    """path = the labelling of highest score, for the sequences first..last."""
    work = np.empty(scores.shape[1])
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        if b == a + 1:
            path[a] = _single(scores, a, begin, finish, 0.0, 0, -1)
        elif b > a:
            _forward(scores, a, b, second, transitions, begin, path, 0.0, work, alpha)
            _back(a, b, second, finish, alpha, path)


@jit
def most_violated(
    scores, starts, first, last, second, transitions, begin, finish, truth, weights, alpha, path
):
    """path = argmax_z (number of wrong tokens of z) + score(z) − score(truth).

    Returns the sum of the maxima and of the losses, both times the sequences' weights.
    """
    work = np.empty(scores.shape[1])
    total = 0.0
    losses = 0.0
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        if a == b:
            continue
        if b == a + 1:
            path[a] = _single(scores, a, begin, finish, 1.0, truth[a], -1)
        else:
            _forward(scores, a, b, second, transitions, begin, truth, 1.0, work, alpha)
            _back(a, b, second, finish, alpha, path)
        wrong = count_wrong(a, b, truth, path)
        value = wrong + (
            _path_score(scores, a, b, second, transitions, begin, finish, path)
            - _path_score(scores, a, b, second, transitions, begin, finish, truth)
        )
        if value <= 0.0:  # a tie with the truth, but for rounding
            for t in range(a, b):
                path[t] = truth[t]
        else:
            total += weights[s] * value
            losses += weights[s] * wrong
    return total, losses


@jit
def _forward_off(scores, a, b, second, transitions, begin, truth, work, same, alpha):
    """The best prefixes that differ from the truth; ``same`` gets the score of the truth's."""
    labels = scores.shape[1]
    same[0] = begin[truth[a]] + scores[a, truth[a]]
    for j in range(labels):
        for k in range(labels):
            before = begin[j] + scores[a, j]
            alpha[1, k, j] = before + transitions[j, k] + scores[a + 1, k]
    same[1] = alpha[1, truth[a + 1], truth[a]]
    alpha[1, truth[a + 1], truth[a]] = -np.inf
    for t in range(a + 2, b):
        y = truth[t - 1]
        for j in range(labels):
            advance(second[j], alpha[t - 1 - a, j], work)
            for k in range(labels):
                if j == y and k != truth[t]:
                    leave = same[t - 1 - a] + second[j, truth[t - 2], k]
                    work[k] = leave if leave > work[k] else work[k]
                alpha[t - a, k, j] = work[k] + transitions[j, k] + scores[t, k]
        step = second[y, truth[t - 2], truth[t]] + transitions[y, truth[t]] + scores[t, truth[t]]
        same[t - a] = same[t - 1 - a] + step


@jit
def most_violated_whole(
    scores, starts, first, last, second, transitions, begin, finish, truth, weights, alpha, path
):
    """As ``most_violated`` for the loss 1 of every labelling but the truth."""
    labels = scores.shape[1]
    work = np.empty(labels)
    same = np.empty(max(2, alpha.shape[0]))
    total = 0.0
    losses = 0.0
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        if a == b:
            continue
        if b == a + 1:
            path[a] = _single(scores, a, begin, finish, 0.0, 0, truth[a])
        else:
            _forward_off(scores, a, b, second, transitions, begin, truth, work, same, alpha)
            best = _best_last(alpha[b - 1 - a], finish)
            path[b - 1] = best // labels
            path[b - 2] = best % labels
            left = False  # whether the way back has met the truth
            for t in range(b - 1, a + 1, -1):
                j = path[t - 1]
                k = path[t]
                if not left:
                    before = best_before(second[j], alpha[t - 1 - a, j], k)
                    path[t - 2] = before
                    if j == truth[t - 1] and k != truth[t]:
                        leave = same[t - 1 - a] + second[j, truth[t - 2], k]
                        left = leave > alpha[t - 1 - a, j, before] + second[j, before, k]
                if left:
                    path[t - 2] = truth[t - 2]
        value = 1.0 + (
            _path_score(scores, a, b, second, transitions, begin, finish, path)
            - _path_score(scores, a, b, second, transitions, begin, finish, truth)
        )
        if value <= 0.0:
            for t in range(a, b):
                path[t] = truth[t]
        else:
            total += weights[s] * value
            losses += weights[s]
    return total, losses


@jit
def slope(
    start, end, starts, first, last, second, transitions, begin, finish, truth, weights, path
):
    """Σ weight·(score(path) − score(truth)) of the sequences first..last.

    The emissions are end − start, and the other scores differences already.
    """
    total = first_order.slope(
        start, end, starts, first, last, transitions, begin, finish, truth, weights, path
    )
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        total += weights[s] * (_seconds(a, b, second, path) - _seconds(a, b, second, truth))
    return total


@jit
def add_counts(starts, first, last, truth, weights, path, second, transitions, begin, finish):
    """Add weight·(counts of path − counts of truth) to second, transitions, begin and finish."""
    first_order.add_counts(starts, first, last, truth, weights, path, transitions, begin, finish)
    for s in range(first, last):
        for t in range(starts[s] + 2, starts[s + 1]):
            second[path[t - 1], path[t - 2], path[t]] += weights[s]
            second[truth[t - 1], truth[t - 2], truth[t]] -= weights[s]
