"""Chains: steps in the dual, one sequence after the other.

The dual point of a sequence i is a mixture of labellings a with shares α_a ≥ 0, Σ_a α_a = 1, which
begins as the truth alone. With c for the cost of a sequence and Ψ for joint features,

    w = c·Σ_i [Ψ(x_i, y_i) − Σ_a α_a·Ψ(x_i, a)],    D = c·Σ_i Σ_a α_a·loss(a) − ½|w|².

A visit raises D over the shares of one sequence: along the exchange of share from the labelling of
least u_a = loss(a) + <w, Ψ(x_i, a)> among those that have one to that of largest u_a, by

    min(α_b, (u_a − u_b) / (c·|Ψ(a) − Ψ(b)|²)),

again and again, from the products <Ψ(a), Ψ(b)> alone; then w is brought up to date at the features
of this sequence. ``explore`` first adds the most violated labelling there is, found by inference;
``revisit`` takes those that are known, whose scores cost a fraction of all.

Labellings are kept in slots, (slots, tokens) in ``paths``; the truth is in slot 0. ``counts``
(sequences,) says how many slots are in use; ``shares`` and ``losses`` are (sequences, slots),
``products`` (sequences, slots, slots). ``gram`` holds <x_t, x_t'> for all pairs of tokens of a
sequence, one square after the other, which begin at ``gram_starts``.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit
from .viterbi import best_other_path, best_path, path_score

# An exchange of share ends when u is as level as this part of what it was.
LEVEL = 0.1


@jit
def token_products(values, indices, row_starts, starts, gram_starts, features, gram):
    """gram = <x_t, x_t'> for all pairs of tokens of every sequence."""
    row = np.zeros(features)
    for s in range(starts.shape[0] - 1):
        a = starts[s]
        length = starts[s + 1] - a
        for t in range(length):
            begin = row_starts[a + t]
            for p in range(begin, row_starts[a + t + 1]):
                row[p - begin if indices is None else indices[p]] = values[p]
            for other in range(length):
                total = 0.0
                first = row_starts[a + other]
                for p in range(first, row_starts[a + other + 1]):
                    total += values[p] * row[p - first if indices is None else indices[p]]
                gram[gram_starts[s] + t * length + other] = total
            for p in range(begin, row_starts[a + t + 1]):
                row[p - begin if indices is None else indices[p]] = 0.0


@jit
def path_product(gram, first, length, boundaries, one, other):
    """<Ψ(one), Ψ(other)> of two labellings of a sequence."""
    total = 0.0
    for t in range(length):
        for r in range(length):
            if one[t] == other[r]:
                total += gram[first + t * length + r]
                if t > 0 and r > 0 and one[t - 1] == other[r - 1]:
                    total += 1.0
    if boundaries:
        total += (one[0] == other[0]) + (one[length - 1] == other[length - 1])
    return total


@jit
def add_row(values, indices, row_starts, row, amounts, weights):
    """weights += x ⊗ amounts."""
    begin = row_starts[row]
    for p in range(begin, row_starts[row + 1]):
        feature = p - begin if indices is None else indices[p]
        x = values[p]
        for k in range(amounts.shape[0]):
            weights[feature, k] += x * amounts[k]


@jit
def exchange(cost, count, u, shares, products):
    """Level u by exchanges of shares; returns by how much the dual grows.

    u and shares are those of the labellings of a sequence.
    """
    grown = 0.0
    target = -1.0
    for _ in range(16 * count):
        high = 0
        low = -1
        for a in range(count):
            if u[a] > u[high]:
                high = a
            if shares[a] > 0.0 and (low < 0 or u[a] < u[low]):
                low = a
        uneven = u[high] - u[low]
        if target < 0.0:
            target = LEVEL * uneven
        if uneven <= target:
            break
        bend = cost * (products[high, high] + products[low, low] - 2.0 * products[high, low])
        step = shares[low]
        if uneven < bend * step:
            step = uneven / bend
            shares[low] -= step
        else:
            shares[low] = 0.0
        shares[high] += step
        grown += cost * step * (uneven - 0.5 * step * bend)
        for a in range(count):
            u[a] -= cost * step * (products[a, high] - products[a, low])
    return grown


@jit
def move(
    values,
    indices,
    row_starts,
    a,
    length,
    cost,
    count,
    changes,
    paths,
    boundaries,
    amounts,
    weights,
    transitions,
    begin,
    finish,
):
    """w −= c·Σ_a changes_a·Ψ(a), for the labellings of the sequence whose tokens begin at a."""
    labels = weights.shape[1]
    for t in range(a, a + length):
        for k in range(labels):
            amounts[k] = 0.0
        differs = False
        for m in range(count):
            amounts[paths[m, t]] -= cost * changes[m]
            differs |= changes[m] != 0.0 and paths[m, t] != paths[0, t]
        if differs:
            add_row(values, indices, row_starts, t, amounts, weights)
    for m in range(count):
        if changes[m] != 0.0:
            amount = cost * changes[m]
            for t in range(a + 1, a + length):
                transitions[paths[m, t - 1], paths[m, t]] -= amount
            if boundaries:
                begin[paths[m, a]] -= amount
                finish[paths[m, a + length - 1]] -= amount


@jit
def forget(count, keep, u, a, length, paths, shares, losses, products):
    """Free the slots of labellings without a share, but the truth's, if all are in use.

    Returns how many are in use.
    """
    if count < keep:
        return count
    n = 1
    for m in range(1, count):
        if shares[m] > 0.0:
            if n < m:
                paths[n, a : a + length] = paths[m, a : a + length]
                shares[n] = shares[m]
                losses[n] = losses[m]
                u[n] = u[m]
                for b in range(count):
                    products[n, b] = products[m, b]
                for b in range(count):
                    products[b, n] = products[b, m]
            n += 1
    for m in range(n, count):
        shares[m] = 0.0
    return n


@jit
def explore(
    values,
    indices,
    row_starts,
    order,
    starts,
    truth,
    cost,
    per_token,
    boundaries,
    gram_starts,
    gram,
    weights,
    transitions,
    begin,
    finish,
    counts,
    paths,
    shares,
    losses,
    products,
    gaps,
    alpha,
):
    """Visit the sequences in ``order``, with inference.

    ``gaps`` (sequences,) gets c·(largest u − Σ_a α_a·u_a), the sequence's part of the duality gap
    before its step. Returns by how much the dual has grown, and how many sequences of ``order``
    were visited: fewer than all if a slot is missing.
    """
    labels = weights.shape[1]
    slots = paths.shape[0]
    longest = alpha.shape[0]
    scores = np.empty((longest, labels))
    path = np.empty(longest, np.int64)
    work = np.empty(labels)
    same = np.empty(max(2, longest))
    amounts = np.empty(labels)
    u = np.empty(slots)
    changes = np.empty(slots)
    second = np.empty((0, 0, 0))
    grown = 0.0
    for number in range(order.shape[0]):
        s = order[number]
        a = starts[s]
        length = starts[s + 1] - a
        gaps[s] = 0.0
        if length == 0:
            continue
        own = truth[a : a + length]
        for t in range(length):
            here = scores[t]
            for k in range(labels):
                here[k] = 0.0
            first = row_starts[a + t]
            for p in range(first, row_starts[a + t + 1]):
                feature = p - first if indices is None else indices[p]
                x = values[p]
                for k in range(labels):
                    here[k] += x * weights[feature, k]
        args = (scores, 0, length, second, transitions, begin, finish)
        loss = 1.0
        if per_token:
            best_path(*args, own, 1.0, work, alpha, path)
            loss = 0.0
            for t in range(length):
                loss += path[t] != own[t]
        else:
            best_other_path(*args, own, work, same, alpha, path)
        highest = loss + path_score(*args, path)
        count = counts[s]
        mean = 0.0
        known = -1
        best = -np.inf
        for m in range(count):
            u[m] = losses[s, m] + path_score(*args, paths[m, a : a + length])
            mean += shares[s, m] * u[m]
            if u[m] > best:
                best = u[m]
                known = m
        if highest > best:
            for m in range(count):  # rounding may make a known one look new
                if known >= 0:
                    alike = True
                    for t in range(length):
                        alike &= paths[m, a + t] == path[t]
                    if alike:
                        known = -2
            if known >= 0:
                count = forget(count, slots, u, a, length, paths, shares[s], losses[s], products[s])
                counts[s] = count
                if count == slots:
                    return grown, number
                for t in range(length):
                    paths[count, a + t] = path[t]
                shares[s, count] = 0.0
                losses[s, count] = loss
                u[count] = highest
                for m in range(count + 1):
                    product = path_product(
                        gram,
                        gram_starts[s],
                        length,
                        boundaries,
                        paths[count, a : a + length],
                        paths[m, a : a + length],
                    )
                    products[s, count, m] = product
                    products[s, m, count] = product
                count += 1
                counts[s] = count
                best = highest
        if best > mean:
            gaps[s] = cost * (best - mean)
        for m in range(count):
            changes[m] = -shares[s, m]
        grown += exchange(cost, count, u, shares[s], products[s])
        for m in range(count):
            changes[m] += shares[s, m]
        move(
            values,
            indices,
            row_starts,
            a,
            length,
            cost,
            count,
            changes,
            paths,
            boundaries,
            amounts,
            weights,
            transitions,
            begin,
            finish,
        )
    return grown, order.shape[0]


@jit
def revisit(
    values,
    indices,
    row_starts,
    order,
    starts,
    cost,
    boundaries,
    weights,
    transitions,
    begin,
    finish,
    counts,
    paths,
    shares,
    losses,
    products,
):
    """Visit the sequences in ``order``, with the labellings that are known.

    Returns by how much the dual has grown, and how many scores of a token and a label were needed
    (times the features of the token).
    """
    labels = weights.shape[1]
    slots = paths.shape[0]
    amounts = np.empty(labels)
    score = np.empty(labels)
    stamp = np.full(labels, -1, np.int64)
    u = np.empty(slots)
    changes = np.empty(slots)
    grown = 0.0
    work = 0
    for s in order:
        a = starts[s]
        length = starts[s + 1] - a
        count = counts[s]
        if count < 2:
            continue
        for m in range(count):
            u[m] = losses[s, m] + begin[paths[m, a]] + finish[paths[m, a + length - 1]]
        for t in range(a, a + length):
            first = row_starts[t]
            last = row_starts[t + 1]
            for m in range(count):
                k = paths[m, t]
                if stamp[k] != t:
                    stamp[k] = t
                    total = 0.0
                    for p in range(first, last):
                        feature = p - first if indices is None else indices[p]
                        total += values[p] * weights[feature, k]
                    score[k] = total
                    work += last - first
                u[m] += score[k]
                if t > a:
                    u[m] += transitions[paths[m, t - 1], k]
        for m in range(count):
            changes[m] = -shares[s, m]
        grown += exchange(cost, count, u, shares[s], products[s])
        for m in range(count):
            changes[m] += shares[s, m]
        move(
            values,
            indices,
            row_starts,
            a,
            length,
            cost,
            count,
            changes,
            paths,
            boundaries,
            amounts,
            weights,
            transitions,
            begin,
            finish,
        )
    return grown, work


@jit
def mixtures(starts, counts, paths, shares, tokens, pairs, begin, finish):
    """What scores see of the dual point: the shares of labels by token (tokens, K), and sums.

    ``pairs`` (K, K), ``begin`` and ``finish`` (K,) get the sums of mean counts over all sequences.
    """
    tokens[...] = 0.0
    for s in range(starts.shape[0] - 1):
        a = starts[s]
        b = starts[s + 1]
        if a == b:
            continue
        for m in range(counts[s]):
            share = shares[s, m]
            if share > 0.0:
                begin[paths[m, a]] += share
                finish[paths[m, b - 1]] += share
                for t in range(a, b):
                    tokens[t, paths[m, t]] += share
                    if t > a:
                        pairs[paths[m, t - 1], paths[m, t]] += share
