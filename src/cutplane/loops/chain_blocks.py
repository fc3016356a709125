"""Chains: ascent in the dual, one sequence after the other.

The dual point of a sequence i is a mixture of labellings a with shares α_a ≥ 0, Σ_a α_a = 1, which
begins as the truth alone. With c for the cost of a sequence and Ψ for joint features,

    w = c·Σ_i [Ψ(x_i, y_i) − Σ_a α_a·Ψ(x_i, a)],    D = c·Σ_i Σ_a α_a·loss(a) − ½|w|².

A visit raises D over the shares of one sequence. With u_a = loss(a) + <w, Ψ(x_i, a)> it moves share
from the labelling b of least u among those that have one to the labelling a of largest u, by

    min(α_b, (u_a − u_b) / (c·|Ψ(a) − Ψ(b)|²)),

again and again, for which it needs the products <Ψ(a), Ψ(b)> alone; then it brings w up to date at
the features of this sequence. These are pairwise steps of block-coordinate Frank–Wolfe
(Lacoste-Julien et al. 2013; Osokin et al. 2016). ``explore`` first finds the most violated
labelling there is by inference; ``revisit`` takes those that are known, whose scores cost a part of
all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import jit
from .viterbi import best_other_path, best_path, path_score

# Shares of a sequence are moved until u differs by this part of what it did at first. With 0.01
# the same number of passes, each a little dearer; with 0.5 a fifth more passes.
LEVEL = 0.1
# Moves of share per labelling at most, where rounding is in the way.
MOVES = 16


class Tokens(NamedTuple):
    """The rows of all tokens; ``indices`` are not looked at if they are dense."""

    values: np.ndarray
    indices: np.ndarray
    starts: np.ndarray
    dense: bool


class Sequences(NamedTuple):
    """What is known of all sequences.

    ``gram`` holds <x_t, x_t'> for all pairs of tokens of a sequence, one square after the other;
    they begin at ``gram_starts``. ``alpha`` is room for the forward pass over the longest.
    """

    starts: np.ndarray
    truth: np.ndarray
    cost: float
    per_token: bool
    boundaries: bool
    gram_starts: np.ndarray
    gram: np.ndarray
    alpha: np.ndarray


class Weights(NamedTuple):
    """w: W (features, K), T (K, K), begin and finish (K,)."""

    emissions: np.ndarray
    transitions: np.ndarray
    begin: np.ndarray
    finish: np.ndarray


class Mixtures(NamedTuple):
    """The labellings that are known of every sequence, in slots, and their shares.

    Sequence s has ``counts[s]`` labellings, the truth first, and room for ``slots[s]``. Slot m of
    it is at ``first[s] + m`` in ``shares`` and ``losses``; its labelling begins at
    ``paths_at[s] + m·length`` in ``paths``, and its products at ``products_at[s] + m·slots[s]``
    in ``products``.
    """

    counts: np.ndarray
    slots: np.ndarray
    first: np.ndarray
    paths_at: np.ndarray
    products_at: np.ndarray
    shares: np.ndarray
    losses: np.ndarray
    paths: np.ndarray
    products: np.ndarray


@jit
def token_products(tokens, starts, gram_starts, features, gram):
    """gram = <x_t, x_t'> for all pairs of tokens of every sequence."""
    row = np.zeros(features)
    for s in range(starts.shape[0] - 1):
        a = starts[s]
        length = starts[s + 1] - a
        for t in range(length):
            begin = tokens.starts[a + t]
            end = tokens.starts[a + t + 1]
            for p in range(begin, end):
                feature = p - begin if tokens.dense else tokens.indices[p]
                row[feature] = tokens.values[p]
            for other in range(length):
                total = 0.0
                first = tokens.starts[a + other]
                for p in range(first, tokens.starts[a + other + 1]):
                    feature = p - first if tokens.dense else tokens.indices[p]
                    total += tokens.values[p] * row[feature]
                gram[gram_starts[s] + t * length + other] = total
            for p in range(begin, end):
                row[p - begin if tokens.dense else tokens.indices[p]] = 0.0


@jit
def path_product(gram, length, boundaries, one, other):
    """<Ψ(one), Ψ(other)> of two labellings of a sequence, from the products of its tokens."""
    total = 0.0
    for t in range(length):
        for r in range(length):
            if one[t] == other[r]:
                total += gram[t * length + r]
                if t > 0 and r > 0 and one[t - 1] == other[r - 1]:
                    total += 1.0
    if boundaries:
        total += (one[0] == other[0]) + (one[length - 1] == other[length - 1])
    return total


@jit
def path_of(mixtures, s, m, length):
    """The labelling in slot m of a sequence."""
    begin = mixtures.paths_at[s] + m * length
    return mixtures.paths[begin : begin + length]


@jit
def begin_with_truth(sequences, mixtures):
    """Let the truth be the only labelling of every sequence."""
    for s in range(mixtures.counts.shape[0]):
        a = sequences.starts[s]
        length = sequences.starts[s + 1] - a
        path = path_of(mixtures, s, 0, length)
        for t in range(length):
            path[t] = sequences.truth[a + t]
        mixtures.counts[s] = 1
        mixtures.shares[mixtures.first[s]] = 1.0
        mixtures.losses[mixtures.first[s]] = 0.0
        if length > 0:
            gram = sequences.gram[sequences.gram_starts[s] : sequences.gram_starts[s + 1]]
            mixtures.products[mixtures.products_at[s]] = path_product(
                gram, length, sequences.boundaries, path, path
            )


@jit
def drop_unused(mixtures, s, length):
    """Free the slots of labellings that have no share, but not the truth's."""
    first = mixtures.first[s]
    slots = mixtures.slots[s]
    at = mixtures.products_at[s]
    products = mixtures.products[at : at + slots * slots].reshape((slots, slots))
    count = mixtures.counts[s]
    n = 1
    for m in range(1, count):
        if mixtures.shares[first + m] > 0.0:
            if n < m:
                path_of(mixtures, s, n, length)[:] = path_of(mixtures, s, m, length)
                mixtures.shares[first + n] = mixtures.shares[first + m]
                mixtures.losses[first + n] = mixtures.losses[first + m]
                products[n, :count] = products[m, :count]
                products[:count, n] = products[:count, m]
            n += 1
    mixtures.counts[s] = n


@jit
def add_path(sequences, mixtures, s, path, loss):
    """Give a labelling a slot, without a share. There must be a free one."""
    length = sequences.starts[s + 1] - sequences.starts[s]
    slots = mixtures.slots[s]
    m = mixtures.counts[s]
    path_of(mixtures, s, m, length)[:] = path[:length]
    mixtures.shares[mixtures.first[s] + m] = 0.0
    mixtures.losses[mixtures.first[s] + m] = loss
    gram = sequences.gram[sequences.gram_starts[s] : sequences.gram_starts[s + 1]]
    at = mixtures.products_at[s]
    for n in range(m + 1):
        product = path_product(
            gram, length, sequences.boundaries, path, path_of(mixtures, s, n, length)
        )
        mixtures.products[at + m * slots + n] = product
        mixtures.products[at + n * slots + m] = product
    mixtures.counts[s] = m + 1


@jit
def move_shares(u, shares, products, cost):
    """Move shares between the outputs of an example; returns by how much the dual has grown.

    ``u`` holds u_a of its outputs, and follows; ``products`` holds <Ψ(a), Ψ(b)>.
    """
    count = u.shape[0]
    grown = 0.0
    enough = -1.0
    for _ in range(MOVES * count):
        high = 0
        low = -1
        for m in range(count):
            if u[m] > u[high]:
                high = m
            if shares[m] > 0.0 and (low < 0 or u[m] < u[low]):
                low = m
        uneven = u[high] - u[low]
        if enough < 0.0:
            enough = LEVEL * uneven
        if uneven <= enough:
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
        for m in range(count):
            u[m] -= cost * step * (products[m, high] - products[m, low])
    return grown


@jit
def raise_dual(tokens, sequences, mixtures, weights, s, u, changes, amounts):
    """Move shares of a sequence, and w with them; returns by how much the dual has grown.

    ``u`` holds u_a of its labellings; ``changes`` and ``amounts`` are room.
    """
    count = mixtures.counts[s]
    slots = mixtures.slots[s]
    shares = mixtures.shares[mixtures.first[s] : mixtures.first[s] + count]
    at = mixtures.products_at[s]
    products = mixtures.products[at : at + slots * slots].reshape((slots, slots))
    changes[:count] = shares
    grown = move_shares(u[:count], shares, products, sequences.cost)
    for m in range(count):
        changes[m] = sequences.cost * (changes[m] - shares[m])
    if grown > 0.0:
        move_weights(tokens, sequences, mixtures, weights, s, changes, amounts)
    return grown


@jit
def move_weights(tokens, sequences, mixtures, weights, s, changes, amounts):
    """w += Σ_a changes_a·Ψ(a), for changes of the labellings of a sequence that sum to 0."""
    a = sequences.starts[s]
    length = sequences.starts[s + 1] - a
    count = mixtures.counts[s]
    paths = mixtures.paths[mixtures.paths_at[s] : mixtures.paths_at[s] + count * length]
    paths = paths.reshape((count, length))
    labels = amounts.shape[0]
    for t in range(length):
        amounts[:] = 0.0
        differs = False
        for m in range(count):
            amounts[paths[m, t]] += changes[m]
            differs |= changes[m] != 0.0 and paths[m, t] != paths[0, t]
        if differs:
            begin = tokens.starts[a + t]
            for p in range(begin, tokens.starts[a + t + 1]):
                feature = p - begin if tokens.dense else tokens.indices[p]
                x = tokens.values[p]
                for k in range(labels):
                    weights.emissions[feature, k] += x * amounts[k]
    for m in range(count):
        if changes[m] != 0.0:
            for t in range(1, length):
                weights.transitions[paths[m, t - 1], paths[m, t]] += changes[m]
            if sequences.boundaries:
                weights.begin[paths[m, 0]] += changes[m]
                weights.finish[paths[m, length - 1]] += changes[m]


@jit
def explore(tokens, sequences, mixtures, weights, order, gaps):
    """Visit the sequences in ``order``, with inference.

    ``gaps`` (sequences,) gets c·(largest u − Σ_a α_a·u_a), the sequence's part of the duality gap
    before its step. Returns by how much the dual has grown, and how many sequences were visited:
    the next one of ``order``, if there is one, needs a slot and has none.
    """
    labels = weights.emissions.shape[1]
    longest = sequences.alpha.shape[0]
    scores = np.empty((longest, labels))
    path = np.empty(longest, np.int64)
    work = np.empty(labels)
    same = np.empty(max(2, longest))
    amounts = np.empty(labels)
    room = np.max(mixtures.slots)
    u = np.empty(room)
    changes = np.empty(room)
    second = np.empty((0, 0, 0))
    grown = 0.0
    for number in range(order.shape[0]):
        s = order[number]
        a = sequences.starts[s]
        length = sequences.starts[s + 1] - a
        gaps[s] = 0.0
        if length == 0:
            continue
        own = sequences.truth[a : a + length]
        for t in range(length):
            here = scores[t]
            here[:] = 0.0
            begin = tokens.starts[a + t]
            for p in range(begin, tokens.starts[a + t + 1]):
                feature = p - begin if tokens.dense else tokens.indices[p]
                x = tokens.values[p]
                for k in range(labels):
                    here[k] += x * weights.emissions[feature, k]
        chain = (scores, 0, length, second, weights.transitions, weights.begin, weights.finish)
        loss = 1.0
        if sequences.per_token:
            best_path(*chain, own, 1.0, work, sequences.alpha, path)
            loss = 0.0
            for t in range(length):
                loss += path[t] != own[t]
        else:
            best_other_path(*chain, own, work, same, sequences.alpha, path)
        known = False
        for m in range(mixtures.counts[s]):
            other = path_of(mixtures, s, m, length)
            alike = True
            for t in range(length):
                alike &= path[t] == other[t]
            known |= alike
        if not known:
            if mixtures.counts[s] == mixtures.slots[s]:
                drop_unused(mixtures, s, length)
            if mixtures.counts[s] == mixtures.slots[s]:
                return grown, number
            add_path(sequences, mixtures, s, path, loss)
        first = mixtures.first[s]
        mean = 0.0
        highest = -np.inf
        for m in range(mixtures.counts[s]):
            u[m] = mixtures.losses[first + m] + path_score(*chain, path_of(mixtures, s, m, length))
            mean += mixtures.shares[first + m] * u[m]
            highest = max(highest, u[m])
        gaps[s] = max(0.0, sequences.cost * (highest - mean))
        grown += raise_dual(tokens, sequences, mixtures, weights, s, u, changes, amounts)
    return grown, order.shape[0]


@jit
def revisit(tokens, sequences, mixtures, weights, order):
    """Visit the sequences in ``order``, with the labellings that are known.

    Returns by how much the dual has grown, and how many numbers were read one by one for it: for
    each token those of its row for every label that it has, and one for every labelling.
    """
    labels = weights.emissions.shape[1]
    amounts = np.empty(labels)
    score = np.empty(labels)
    scored_at = np.full(labels, -1, np.int64)
    room = np.max(mixtures.slots)
    u = np.empty(room)
    changes = np.empty(room)
    grown = 0.0
    read = 0
    for s in order:
        a = sequences.starts[s]
        length = sequences.starts[s + 1] - a
        count = mixtures.counts[s]
        if count < 2:
            continue
        paths = mixtures.paths[mixtures.paths_at[s] : mixtures.paths_at[s] + count * length]
        paths = paths.reshape((count, length))
        for m in range(count):
            u[m] = mixtures.losses[mixtures.first[s] + m]
            u[m] += weights.begin[paths[m, 0]] + weights.finish[paths[m, length - 1]]
        for t in range(length):
            begin = tokens.starts[a + t]
            end = tokens.starts[a + t + 1]
            read += count
            for m in range(count):
                k = paths[m, t]
                if scored_at[k] != a + t:
                    scored_at[k] = a + t
                    total = 0.0
                    for p in range(begin, end):
                        feature = p - begin if tokens.dense else tokens.indices[p]
                        total += tokens.values[p] * weights.emissions[feature, k]
                    score[k] = total
                    read += end - begin
                u[m] += score[k]
                if t > 0:
                    u[m] += weights.transitions[paths[m, t - 1], k]
        grown += raise_dual(tokens, sequences, mixtures, weights, s, u, changes, amounts)
    return grown, read


@jit
def differences(sequences, mixtures, shares, transitions, begin, finish):
    """The features of all mixtures less those of the truth; returns the sum of their losses.

    ``shares`` (tokens, K) gets those of the labels of each token; the counts of labels in a row, of
    first and of last labels are added to the others. The shares of the labellings but the truth's
    are what this is made of: where rounding has made their sum more than 1 they are scaled, so
    that the result belongs to a mixture.
    """
    shares[...] = 0.0
    total = 0.0
    for s in range(mixtures.counts.shape[0]):
        a = sequences.starts[s]
        length = sequences.starts[s + 1] - a
        if length == 0:
            continue
        first = mixtures.first[s]
        others = 0.0
        for m in range(1, mixtures.counts[s]):
            others += mixtures.shares[first + m]
        scale = 1.0 / others if others > 1.0 else 1.0
        truth = path_of(mixtures, s, 0, length)
        mixtures.shares[first] = max(0.0, 1.0 - others)
        for m in range(1, mixtures.counts[s]):
            mixtures.shares[first + m] *= scale
            share = mixtures.shares[first + m]
            if share == 0.0:
                continue
            total += share * mixtures.losses[first + m]
            path = path_of(mixtures, s, m, length)
            for t in range(length):
                shares[a + t, path[t]] += share
                shares[a + t, truth[t]] -= share
                if t > 0:
                    transitions[path[t - 1], path[t]] += share
                    transitions[truth[t - 1], truth[t]] -= share
            begin[path[0]] += share
            begin[truth[0]] -= share
            finish[path[length - 1]] += share
            finish[truth[length - 1]] -= share
    return total
