"""Labellings of highest score for linear chains, with or without a loss, by Viterbi's algorithm.

The tokens of all sequences lie one after the other. ``starts`` (sequences + 1, int64) says where
each sequence begins. ``scores`` (tokens, K) are the emissions s_t. ``transitions`` (K, K) has
T[j, k] for label k after label j. ``begin`` and ``finish`` (K,) count at the first and the last
token of a sequence:

    score(z) = begin[z_1] + Σ_t s_t[z_t] + Σ_t T[z_{t−1}, z_t] + Σ_t S[z_{t−2}, z_{t−1}, z_t]
               + finish[z_L]

``second`` (K, K, K) holds S with the middle label first: second[j, i, k] = S[i, j, k]. It is empty
for chains of first order. ``alpha`` has the scores of the best prefixes up to each token. For first
order its shape is (longest, 1, K), by the last label; for second order (longest, K, K), by the last
label and the label before it.

The forward pass stores maxima only. So its inner loop takes one addition and one comparison per
pair of labels, and the compiler vectorises it. The backward pass looks for the labels that gave the
maxima, on the best path only. Among equal scores the first label wins.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit


@jit
def path_score(scores, first, last, second, transitions, begin, finish, path):
    """Score of the labelling ``path`` of the tokens first, …, last − 1."""
    total = begin[path[first]] + scores[first, path[first]]
    for t in range(first + 1, last):
        total += transitions[path[t - 1], path[t]] + scores[t, path[t]]
    total += finish[path[last - 1]]
    if second.shape[0] > 0:
        for t in range(first + 2, last):
            total += second[path[t - 1], path[t - 2], path[t]]
    return total


@jit
def advance(transitions, before, here):
    """here[k] = max_j before[j] + T[j, k], for four labels k at a time."""
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
    """The state in which the best labelling ends: a position in ``alpha``, read row by row.

    With shape (1, K) a state is the last label; with (K, K) the last label and the label before.
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
def forward(scores, a, b, second, transitions, begin, truth, cost, work, alpha):
    """Write the best prefixes of the tokens a, …, b − 1. Every wrong label adds ``cost``."""
    labels = scores.shape[1]
    # In this order of additions, equal labels stay equal in spite of rounding errors.
    if second.shape[0] == 0:
        for t in range(a, b):
            here = alpha[t - a, 0]
            if t == a:
                here[:] = begin
            else:
                advance(transitions, alpha[t - 1 - a, 0], here)
            for k in range(labels):
                here[k] += scores[t, k] + cost
            here[truth[t]] -= cost
        return
    alpha[0] = -np.inf  # there is no label before the first token
    for t in range(a, b):
        before = alpha[t - 1 - a]
        for j in range(labels if t > a else 1):  # the label before
            if t == a:
                work[:] = begin
            elif t == a + 1:
                work[:] = before[j, 0] + transitions[j]
            else:
                advance(second[j], before[j], work)
                work += transitions[j]
            for k in range(labels):
                alpha[t - a, k, j] = work[k] + (scores[t, k] + cost)
            alpha[t - a, truth[t], j] -= cost


@jit
def trace_back(second, transitions, alpha, a, last, state, path):
    """Write to ``path`` the best prefix of the tokens a, …, ``last`` that ends in ``state``."""
    if second.shape[0] == 0:
        path[last] = state
        for t in range(last, a, -1):
            path[t - 1] = best_before(transitions, alpha[t - 1 - a, 0], path[t])
        return
    labels = second.shape[0]
    path[last] = state // labels
    if last > a:
        path[last - 1] = state % labels
    for t in range(last, a + 1, -1):
        j = path[t - 1]
        path[t - 2] = best_before(second[j], alpha[t - 1 - a, j], path[t])


@jit
def best_path(scores, a, b, second, transitions, begin, finish, truth, cost, work, alpha, path):
    """Write to ``path`` the best labelling of a, …, b − 1, where a wrong token adds ``cost``."""
    forward(scores, a, b, second, transitions, begin, truth, cost, work, alpha)
    trace_back(second, transitions, alpha, a, b - 1, best_last(alpha[b - 1 - a], finish), path)


@jit
def best_other_path(scores, a, b, second, transitions, begin, finish, truth, work, alpha, path):
    """Write to ``path`` the best labelling of the tokens a, …, b − 1 that differs from the truth.

    Let t be the last wrong token of this labelling. Then the labelling is the best prefix that ends
    with a wrong label at t, and after t it is the truth.
    """
    forward(scores, a, b, second, transitions, begin, truth, 0.0, work, alpha)
    pairs = second.shape[0] > 0
    labels = scores.shape[1]
    highest = -np.inf
    last = state = 0
    rest = 0.0  # the truth's score behind t, without what depends on the label at t
    for t in range(b - 1, a - 1, -1):
        here = alpha[t - a]
        for i in range(here.size):
            k = i // labels if pairs else i
            total = here[i // labels, i % labels] + rest
            if t == b - 1:
                total += finish[k]
            else:
                total += transitions[k, truth[t + 1]]
                if pairs and t > a:
                    total += second[k, i % labels, truth[t + 1]]
                if pairs and t + 2 < b:
                    total += second[truth[t + 1], k, truth[t + 2]]
            if k != truth[t] and total > highest:
                highest = total
                last = t
                state = i
        y = truth[t]
        rest += scores[t, y] + (finish[y] if t == b - 1 else transitions[y, truth[t + 1]])
        if pairs and t + 2 < b:
            rest += second[truth[t + 1], y, truth[t + 2]]
    path[last + 1 : b] = truth[last + 1 : b]
    trace_back(second, transitions, alpha, a, last, state, path)


@jit
def decode(scores, starts, first, last, second, transitions, begin, finish, alpha, path):
    """Write to ``path`` the labellings of highest score of the sequences first, …, last − 1."""
    work = np.empty(scores.shape[1])
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        path[a:b] = 0  # passed as the truth, too, which does not matter if the cost is 0
        if a < b:
            best_path(
                scores, a, b, second, transitions, begin, finish, path, 0.0, work, alpha, path
            )


@jit
def worst_path(
    scores, a, b, second, transitions, begin, finish, truth, per_token, work, alpha, path
):
    """Write argmax_z loss(z) + score(z) for the tokens a, …, b − 1 to ``path``; return its loss.

    With ``per_token`` the loss is the number of wrong tokens. Otherwise it is 1, and the maximum is
    over all labellings but the truth.
    """
    if not per_token:
        best_other_path(scores, a, b, second, transitions, begin, finish, truth, work, alpha, path)
        return 1.0
    best_path(scores, a, b, second, transitions, begin, finish, truth, 1.0, work, alpha, path)
    loss = 0.0
    for t in range(a, b):
        loss += path[t] != truth[t]
    return loss


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
    weight,
    per_token,
    alpha,
    path,
):
    """Write argmax_z loss(z) + score(z) to ``path`` for the sequences first, …, last − 1.

    With ``per_token`` the loss is the number of wrong tokens, otherwise 1 for every labelling but
    the truth. Returns the sum of the maxima of loss(z) + score(z) − score(truth) and the sum of the
    losses, both times ``weight``.
    """
    work = np.empty(scores.shape[1])
    total = 0.0
    losses = 0.0
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        if a == b:
            continue
        chain = (scores, a, b, second, transitions, begin, finish)
        loss = worst_path(*chain, truth, per_token, work, alpha, path)
        value = loss + (path_score(*chain, path) - path_score(*chain, truth))
        if value <= 0.0:  # a tie with the truth, except for rounding
            path[a:b] = truth[a:b]
        else:
            total += weight * value
            losses += weight * loss
    return total, losses


@jit
def slope(start, end, starts, first, last, second, transitions, begin, finish, truth, path):
    """Sum of score(path) − score(truth) of the sequences first, …, last − 1.

    The emissions are end − start: the sum is a slope on the line of two points, if the other
    weights are differences, too.
    """
    total = 0.0
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
        same = True  # the label before is that of the truth
        for t in range(a, b):
            z = path[t]
            y = truth[t]
            if z != y:
                total += (end[t, z] - start[t, z]) - (end[t, y] - start[t, y])
                total += begin[z] - begin[y] if t == a else 0.0
                total += finish[z] - finish[y] if t == b - 1 else 0.0
            if t > a and not (same and z == y):
                total += transitions[path[t - 1], z] - transitions[truth[t - 1], y]
            if second.shape[0] > 0 and t > a + 1:
                total += second[path[t - 1], path[t - 2], z]
                total -= second[truth[t - 1], truth[t - 2], y]
            same = z == y
    return total


@jit
def add_counts(starts, first, last, truth, weight, path, second, transitions, begin, finish):
    """Add weight·(counts of path − counts of truth) to second, transitions, begin and finish."""
    for s in range(first, last):
        a = starts[s]
        b = starts[s + 1]
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
def emission_coefficients(truth, weight, path, coef):
    """coef[t] = weight·(e_path − e_truth)."""
    for t in range(coef.shape[0]):
        for k in range(coef.shape[1]):
            coef[t, k] = 0.0
        if path[t] != truth[t]:
            coef[t, path[t]] = weight
            coef[t, truth[t]] = -weight
