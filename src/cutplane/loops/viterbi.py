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
    """The state in which the best labelling ends, as a number of ``alpha`` read row by row.

    ``alpha`` is (1, K): a state is the last label; or (K, K): the last label, then the one before.
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
    """The best prefixes of the tokens a..b; ``cost`` is added for every label but the true one."""
    pairs = second.shape[0] > 0
    labels = scores.shape[1]
    alpha[0] = -np.inf  # of second order: the first token has no label before
    for t in range(a, b):
        before = alpha[t - 1 - a]
        for j in range(labels if pairs and t > a else 1):  # the label before, of second order
            if t == a:
                work[:] = begin
            elif not pairs:
                advance(transitions, before[0], work)
            elif t == a + 1:
                work[:] = before[j, 0] + transitions[j]
            else:
                advance(second[j], before[j], work)
                work += transitions[j]
            for k in range(labels):
                # In this order labels stay tied where the last digit of their scores is off.
                best = work[k] + (scores[t, k] + cost)
                best -= cost if k == truth[t] else 0.0
                if pairs:
                    alpha[t - a, k, j] = best
                else:
                    alpha[t - a, 0, k] = best


@jit
def trace_back(second, transitions, alpha, a, last, state, path):
    """path[a..last] = the best prefix that ends in a state at the token ``last``."""
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
    """path = the best labelling of the tokens a..b, with a cost for every wrong token."""
    forward(scores, a, b, second, transitions, begin, truth, cost, work, alpha)
    trace_back(second, transitions, alpha, a, b - 1, best_last(alpha[b - 1 - a], finish), path)


@jit
def best_other_path(scores, a, b, second, transitions, begin, finish, truth, work, alpha, path):
    """path = the best labelling of the tokens a..b but the truth.

    If t is the last token that it has wrong, then it is the best prefix that ends in a wrong label
    there, and after it the truth.
    """
    forward(scores, a, b, second, transitions, begin, truth, 0.0, work, alpha)
    pairs = second.shape[0] > 0
    labels = scores.shape[1]
    highest = -np.inf
    last = state = 0
    rest = 0.0  # what the truth scores behind t, except what depends on the label there
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
def worst_path(
    scores, a, b, second, transitions, begin, finish, truth, per_token, work, alpha, path
):
    """path = argmax_z loss(z) + score(z) for the tokens a..b; returns its loss.

    The loss is the number of wrong tokens if ``per_token``, else 1: then z is not the truth.
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
    """path = argmax_z loss(z) + score(z) − score(truth), for the sequences first..last.

    The loss is the number of wrong tokens if ``per_token``, else 1 for every labelling but the
    truth. Returns the sums of the maxima and of the losses, times the weight.
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
def slope(start, end, truth, path):
    """Σ_t of the emission of the labelling less that of the truth, where emissions are end − start.

    Tokens whose label is true add nothing.
    """
    total = 0.0
    for t in range(path.shape[0]):
        z = path[t]
        y = truth[t]
        if z != y:
            total += (end[t, z] - start[t, z]) - (end[t, y] - start[t, y])
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
