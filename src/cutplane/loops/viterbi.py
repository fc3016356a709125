"""Chains: the labelling of highest score, loss-augmented or not, over ragged sequences.

Sequences lie one after the other: ``starts`` (sequences + 1, int64) says where each begins among
the tokens. ``scores`` (tokens, K) are the emissions s_t, ``transitions`` (K, K) has T[j, k] for
label k after j, ``begin`` and ``finish`` (K,) are added at a sequence's first and last token:

    score(z) = begin[z_1] + Σ_t s_t[z_t] + Σ_t T[z_{t−1}, z_t] + finish[z_L].

The forward pass keeps maxima only (``alpha``, (longest sequence, K)), so that its inner loop is one
addition and one comparison per pair of labels and vectorises; the way back looks for the label
that gave the maximum along the best path alone. Ties go to the label that comes first.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit


@jit
def path_score(scores, first, last, transitions, begin, finish, path):
    """Score of the labelling ``path`` of the tokens first..last."""
    total = begin[path[first]] + scores[first, path[first]]
    for t in range(first + 1, last):
        total += transitions[path[t - 1], path[t]] + scores[t, path[t]]
    return total + finish[path[last - 1]]


@jit
def advance(transitions, before, here):
    """here[k] = max_j before[j] + T[j, k], four labels at a time in registers."""
    labels = here.shape[0]
    k = 0
    while k + 4 <= labels:
        h0 = before[0] + transitions[0, k]
        h1 = before[0] + transitions[0, k + 1]
        h2 = before[0] + transitions[0, k + 2]
        h3 = before[0] + transitions[0, k + 3]
        for j in range(1, labels):
            b = before[j]
            v0 = b + transitions[j, k]
            v1 = b + transitions[j, k + 1]
            v2 = b + transitions[j, k + 2]
            v3 = b + transitions[j, k + 3]
            h0 = v0 if v0 > h0 else h0
            h1 = v1 if v1 > h1 else h1
            h2 = v2 if v2 > h2 else h2
            h3 = v3 if v3 > h3 else h3
        here[k] = h0
        here[k + 1] = h1
        here[k + 2] = h2
        here[k + 3] = h3
        k += 4
    while k < labels:
        h0 = before[0] + transitions[0, k]
        for j in range(1, labels):
            v0 = before[j] + transitions[j, k]
            h0 = v0 if v0 > h0 else h0
        here[k] = h0
        k += 1


@jit
def best_before(transitions, before, k):
    """The j of the largest before[j] + T[j, k]."""
    best = 0
    for j in range(1, before.shape[0]):
        if before[j] + transitions[j, k] > before[best] + transitions[best, k]:
            best = j
    return best


@jit
def _best_last(alpha, finish):
    """The k of the largest alpha[k] + finish[k]."""
    best = 0
    for k in range(1, alpha.shape[0]):
        if alpha[k] + finish[k] > alpha[best] + finish[best]:
            best = k
    return best


@jit
def count_wrong(first, last, truth, path):
    """How many of the tokens first..last have another label than the true one."""
    wrong = 0.0
    for t in range(first, last):
        wrong += path[t] != truth[t]
    return wrong


@jit
def decode(scores, starts, first, last, transitions, begin, finish, alpha, path):
    """path = the labelling of highest score, for the sequences first..last."""
    labels = scores.shape[1]
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        if a == b:
            continue
        for k in range(labels):
            alpha[0, k] = begin[k] + scores[a, k]
        for t in range(a + 1, b):
            advance(transitions, alpha[t - 1 - a], alpha[t - a])
            for k in range(labels):
                alpha[t - a, k] += scores[t, k]
        path[b - 1] = _best_last(alpha[b - 1 - a], finish)
        for t in range(b - 1, a, -1):
            path[t - 1] = best_before(transitions, alpha[t - 1 - a], path[t])


@jit
def most_violated(
    scores, starts, first, last, transitions, begin, finish, truth, weights, alpha, path
):
    """path = argmax_z (number of wrong tokens of z) + score(z) − score(truth).

    Returns the sum of the maxima and of the losses, both times the sequences' weights.
    """
    labels = scores.shape[1]
    total = 0.0
    losses = 0.0
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        if a == b:
            continue
        for k in range(labels):
            alpha[0, k] = begin[k] + scores[a, k] + 1.0
        alpha[0, truth[a]] -= 1.0
        for t in range(a + 1, b):
            here = alpha[t - a]
            advance(transitions, alpha[t - 1 - a], here)
            for k in range(labels):
                here[k] += scores[t, k] + 1.0
            here[truth[t]] -= 1.0
        path[b - 1] = _best_last(alpha[b - 1 - a], finish)
        for t in range(b - 1, a, -1):
            path[t - 1] = best_before(transitions, alpha[t - 1 - a], path[t])
        wrong = count_wrong(a, b, truth, path)
        value = wrong + (
            path_score(scores, a, b, transitions, begin, finish, path)
            - path_score(scores, a, b, transitions, begin, finish, truth)
        )
        if value <= 0.0:  # a tie with the truth, but for rounding
            for t in range(a, b):
                path[t] = truth[t]
        else:
            total += weights[s] * value
            losses += weights[s] * wrong
    return total, losses


@jit
def most_violated_whole(
    scores, starts, first, last, transitions, begin, finish, truth, weights, alpha, path
):
    """As ``most_violated`` for the loss 1 of every labelling but the truth.

    ``alpha`` has the best labellings that differ from the truth somewhere up to here: they
    extend one that does, or leave the truth here.
    """
    labels = scores.shape[1]
    same = np.empty(alpha.shape[0])  # score of the truth up to here
    total = 0.0
    losses = 0.0
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        if a == b:
            continue
        for k in range(labels):
            alpha[0, k] = begin[k] + scores[a, k]
        same[0] = alpha[0, truth[a]]
        alpha[0, truth[a]] = -np.inf
        for t in range(a + 1, b):
            here = alpha[t - a]
            advance(transitions, alpha[t - 1 - a], here)
            for k in range(labels):
                leave = same[t - 1 - a] + transitions[truth[t - 1], k]
                if k != truth[t] and leave > here[k]:
                    here[k] = leave
                here[k] += scores[t, k]
            step = transitions[truth[t - 1], truth[t]] + scores[t, truth[t]]
            same[t - a] = same[t - 1 - a] + step
        path[b - 1] = _best_last(alpha[b - 1 - a], finish)
        left = False  # whether the way back has met the truth
        for t in range(b - 1, a, -1):
            if not left:
                k = path[t]
                before = best_before(transitions, alpha[t - 1 - a], k)
                path[t - 1] = before
                if k != truth[t]:
                    leave = same[t - 1 - a] + transitions[truth[t - 1], k]
                    left = leave > alpha[t - 1 - a, before] + transitions[before, k]
            if left:
                path[t - 1] = truth[t - 1]
        value = 1.0 + (
            path_score(scores, a, b, transitions, begin, finish, path)
            - path_score(scores, a, b, transitions, begin, finish, truth)
        )
        if value <= 0.0:
            for t in range(a, b):
                path[t] = truth[t]
        else:
            total += weights[s] * value
            losses += weights[s]
    return total, losses


@jit
def slope(start, end, starts, first, last, transitions, begin, finish, truth, weights, path):
    """Σ weight·(score(path) − score(truth)) of the sequences first..last.

    The emissions are end − start, and the other scores differences already.
    """
    total = 0.0
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        difference = 0.0
        for t in range(a, b):
            z = path[t]
            y = truth[t]
            if z != y:
                difference += (end[t, z] - start[t, z]) - (end[t, y] - start[t, y])
            if t > a:
                difference += transitions[path[t - 1], z] - transitions[truth[t - 1], y]
        if a < b:
            difference += begin[path[a]] - begin[truth[a]]
            difference += finish[path[b - 1]] - finish[truth[b - 1]]
        total += weights[s] * difference
    return total


@jit
def add_counts(starts, first, last, truth, weights, path, transitions, begin, finish):
    """Add weight·(counts of path − counts of truth) to transitions, begin and finish."""
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        weight = weights[s]
        for t in range(a + 1, b):
            if path[t - 1] != truth[t - 1] or path[t] != truth[t]:
                transitions[path[t - 1], path[t]] += weight
                transitions[truth[t - 1], truth[t]] -= weight
        if a < b:
            begin[path[a]] += weight
            begin[truth[a]] -= weight
            finish[path[b - 1]] += weight
            finish[truth[b - 1]] -= weight


@jit
def emission_coefficients(truth, weights, path, coef):
    """coef[t] = weight_t·(e_path − e_truth), with a weight per token."""
    for t in range(coef.shape[0]):
        for k in range(coef.shape[1]):
            coef[t, k] = 0.0
        if path[t] != truth[t]:
            coef[t, path[t]] = weights[t]
            coef[t, truth[t]] = -weights[t]
