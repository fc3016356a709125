"""Chains: the labelling of highest score, loss-augmented or not, over ragged sequences.

Sequences lie one after the other: ``starts`` (sequences + 1, int64) says where each begins among
the tokens. ``scores`` (tokens, K) are the emissions s_t, ``transitions`` (K, K) has T[j, k] for
label k after j, ``begin`` and ``finish`` (K,) are added at a sequence's first and last token:

    score(z) = begin[z_1] + Σ_t s_t[z_t] + Σ_t T[z_{t−1}, z_t] + Σ_t S[z_{t−2}, z_{t−1}, z_t]
               + finish[z_L]

``second`` holds S, (K, K, K), with the middle label first: second[j, i, k] = S[i, j, k]; it is
empty for chains of first order. ``alpha`` has the best prefixes by token: of first order
(longest, 1, K) by their last label, of second order (longest, K, K) by their last label and the
one before.

The forward pass keeps maxima only, so that its inner loop is one addition and one comparison per
pair of labels and vectorises; the way back looks for the label that gave the maximum along the best
path alone. Ties go to the label that comes first.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit


@jit
def path_score(scores, first, last, second, transitions, begin, finish, path):
    """Score of the labelling ``path`` of the tokens first..last."""
    total = begin[path[first]] + scores[first, path[first]]
    for t in range(first + 1, last):
        total += transitions[path[t - 1], path[t]] + scores[t, path[t]]
    total += finish[path[last - 1]]
    return total + seconds(first, last, second, path)


@jit
def seconds(first, last, second, path):
    """Σ_t S[z_{t−2}, z_{t−1}, z_t] of the labelling ``path`` of the tokens first..last."""
    total = 0.0
    if second.shape[0] > 0:
        for t in range(first + 2, last):
            total += second[path[t - 1], path[t - 2], path[t]]
    return total


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
def best_last(alpha, finish):
    """The last label of the best prefix, and the one before, as k·(width of alpha) + j.

    ``alpha`` is (K, K), or (1, K) for chains of first order, where it is the last label itself.
    """
    rows, columns = alpha.shape
    best = 0
    highest = -np.inf
    for i in range(rows):
        for j in range(columns):
            here = alpha[i, j] + finish[i if rows > 1 else j]
            if here > highest:
                best = i * columns + j
                highest = here
    return best


@jit
def best_label(scores, a, begin, finish, cost, free, without):
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
def forward(scores, a, b, transitions, begin, truth, cost, alpha):
    """The best prefixes of the tokens a..b; ``cost`` is added for every label but the true one."""
    labels = scores.shape[1]
    for k in range(labels):
        alpha[0, 0, k] = begin[k] + scores[a, k] + cost
    alpha[0, 0, truth[a]] -= cost
    for t in range(a + 1, b):
        here = alpha[t - a, 0]
        advance(transitions, alpha[t - 1 - a, 0], here)
        for k in range(labels):
            here[k] += scores[t, k] + cost
        here[truth[t]] -= cost


@jit
def forward2(scores, a, b, second, transitions, begin, truth, cost, work, alpha):
    """The same of second order, for two tokens at least."""
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
def best_path(scores, a, b, second, transitions, begin, finish, truth, cost, work, alpha, path):
    """path = the best labelling of the tokens a..b, with a cost for every wrong token."""
    labels = scores.shape[1]
    if second.shape[0] == 0:
        forward(scores, a, b, transitions, begin, truth, cost, alpha)
        path[b - 1] = best_last(alpha[b - 1 - a], finish)
        for t in range(b - 1, a, -1):
            path[t - 1] = best_before(transitions, alpha[t - 1 - a, 0], path[t])
    elif b == a + 1:
        path[a] = best_label(scores, a, begin, finish, cost, truth[a], -1)
    else:
        forward2(scores, a, b, second, transitions, begin, truth, cost, work, alpha)
        best = best_last(alpha[b - 1 - a], finish)
        path[b - 1] = best // labels
        path[b - 2] = best % labels
        for t in range(b - 1, a + 1, -1):
            j = path[t - 1]
            path[t - 2] = best_before(second[j], alpha[t - 1 - a, j], path[t])


@jit
def forward_off(scores, a, b, transitions, begin, truth, same, alpha):
    """The best prefixes that differ from the truth; ``same`` gets the score of the truth's.

    They extend one that differs, or leave the truth here.
    """
    labels = scores.shape[1]
    for k in range(labels):
        alpha[0, 0, k] = begin[k] + scores[a, k]
    same[0] = alpha[0, 0, truth[a]]
    alpha[0, 0, truth[a]] = -np.inf
    for t in range(a + 1, b):
        here = alpha[t - a, 0]
        advance(transitions, alpha[t - 1 - a, 0], here)
        for k in range(labels):
            leave = same[t - 1 - a] + transitions[truth[t - 1], k]
            if k != truth[t] and leave > here[k]:
                here[k] = leave
            here[k] += scores[t, k]
        step = transitions[truth[t - 1], truth[t]] + scores[t, truth[t]]
        same[t - a] = same[t - 1 - a] + step


@jit
def forward2_off(scores, a, b, second, transitions, begin, truth, work, same, alpha):
    """The same of second order, for two tokens at least."""
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
def best_other_path(
    scores, a, b, second, transitions, begin, finish, truth, work, same, alpha, path
):
    """path = the best labelling of the tokens a..b but the truth."""
    labels = scores.shape[1]
    left = False  # whether the way back has met the truth
    if second.shape[0] == 0:
        forward_off(scores, a, b, transitions, begin, truth, same, alpha)
        path[b - 1] = best_last(alpha[b - 1 - a], finish)
        for t in range(b - 1, a, -1):
            if not left:
                k = path[t]
                before = best_before(transitions, alpha[t - 1 - a, 0], k)
                path[t - 1] = before
                if k != truth[t]:
                    leave = same[t - 1 - a] + transitions[truth[t - 1], k]
                    left = leave > alpha[t - 1 - a, 0, before] + transitions[before, k]
            if left:
                path[t - 1] = truth[t - 1]
    elif b == a + 1:
        path[a] = best_label(scores, a, begin, finish, 0.0, 0, truth[a])
    else:
        forward2_off(scores, a, b, second, transitions, begin, truth, work, same, alpha)
        best = best_last(alpha[b - 1 - a], finish)
        path[b - 1] = best // labels
        path[b - 2] = best % labels
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


@jit
def decode(scores, starts, first, last, second, transitions, begin, finish, alpha, path):
    """path = the labelling of highest score, for the sequences first..last."""
    work = np.empty(scores.shape[1])
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        path[a:b] = 0  # stands for the truth, which does not matter without a cost
        if a < b:
            best_path(
                scores, a, b, second, transitions, begin, finish, path, 0.0, work, alpha, path
            )


@jit
def most_violated(
    scores,
    starts,
    first,
    last,
    second,
    transitions,
    begin,
    finish,
    truth,
    weights,
    per_token,
    alpha,
    path,
):
    """path = argmax_z loss(z) + score(z) − score(truth), for the sequences first..last.

    The loss is the number of wrong tokens if ``per_token``, else 1 for every labelling but the
    truth. Returns the sum of the maxima and of the losses, both times the sequences' weights.
    """
    work = np.empty(scores.shape[1])
    same = np.empty(max(2, alpha.shape[0]))
    total = 0.0
    losses = 0.0
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        if a == b:
            continue
        loss = 1.0
        if per_token:
            best_path(
                scores, a, b, second, transitions, begin, finish, truth, 1.0, work, alpha, path
            )
            loss = 0.0
            for t in range(a, b):
                loss += path[t] != truth[t]
        else:
            best_other_path(
                scores, a, b, second, transitions, begin, finish, truth, work, same, alpha, path
            )
        value = loss + (
            path_score(scores, a, b, second, transitions, begin, finish, path)
            - path_score(scores, a, b, second, transitions, begin, finish, truth)
        )
        if value <= 0.0:  # a tie with the truth, but for rounding
            for t in range(a, b):
                path[t] = truth[t]
        else:
            total += weights[s] * value
            losses += weights[s] * loss
    return total, losses


@jit
def slope(
    start, end, starts, first, last, second, transitions, begin, finish, truth, weights, path
):
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
        difference += seconds(a, b, second, path) - seconds(a, b, second, truth)
        total += weights[s] * difference
    return total


@jit
def add_counts(starts, first, last, truth, weights, path, second, transitions, begin, finish):
    """Add weight·(counts of path − counts of truth) to second, transitions, begin and finish."""
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        weight = weights[s]
        for t in range(a + 1, b):
            if path[t - 1] != truth[t - 1] or path[t] != truth[t]:
                transitions[path[t - 1], path[t]] += weight
                transitions[truth[t - 1], truth[t]] -= weight
        if second.shape[0] > 0:
            for t in range(a + 2, b):
                second[path[t - 1], path[t - 2], path[t]] += weight
                second[truth[t - 1], truth[t - 2], truth[t]] -= weight
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
