"""Chains: ascent in the dual, one sequence after the other.

The dual point of a sequence i is a mixture of labellings a with shares α_a ≥ 0, Σ_a α_a = 1, which
begins as the truth alone. With c for the cost of a sequence and Ψ for joint features,

    w = c·Σ_i [Ψ(x_i, y_i) − Σ_a α_a·Ψ(x_i, a)],    D = c·Σ_i Σ_a α_a·loss(a) − ½|w|².

A visit raises D over the shares of one sequence. With u_a = loss(a) + <w, Ψ(x_i, a)> it moves share
from the labelling b of least u among those that have one to the labelling a of largest u, by

    min(α_b, (u_a − u_b) / (c·|Ψ(a) − Ψ(b)|²)),

again and again. For these moves it needs only the products <Ψ(a), Ψ(b)>. Then it updates w at
the features of this sequence. These are pairwise steps of block-coordinate Frank–Wolfe
(Lacoste-Julien et al. 2013; Osokin et al. 2016). A visit with inference first finds the most
violated of all labellings. A visit without inference uses only the known labellings. Tokens on
which all of these agree add the same to every u, so the visit reads only the other tokens.
``weights`` is w in its parts, a ``ChainWeights``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import jit
from .viterbi import worst_path

# A visit moves shares until the largest difference of the u is this part of what it was at first.
# With 0.01 a fit takes as many passes, and each costs a little more; with 0.5 it takes a fifth more
# passes.
LEVEL = 0.1
# A visit makes at most so many moves per labelling, in case rounding keeps it from the level.
MOVES = 16


class Tokens(NamedTuple):
    """The rows of all tokens. ``indices`` are not used if the rows are dense."""

    values: np.ndarray
    indices: np.ndarray
    starts: np.ndarray
    dense: bool


class Sequences(NamedTuple):
    """All sequences, with the products of their tokens.

    ``gram`` holds <x_t, x_t'> for all pairs of tokens of a sequence: one square per sequence, which
    begins at its entry of ``gram_starts``. ``alpha`` is a buffer for the forward pass over the
    longest sequence.
    """

    starts: np.ndarray
    truth: np.ndarray
    cost: float
    per_token: bool
    boundaries: bool
    gram_starts: np.ndarray
    gram: np.ndarray
    alpha: np.ndarray


class Mixtures(NamedTuple):
    """The known labellings of every sequence.

    Sequence s has ``counts[s]`` labellings, the truth first, and room for ``slots[s]``. Their data
    begin at ``at[s]`` in ``store``; ``region`` returns views of them.
    """

    counts: np.ndarray
    slots: np.ndarray
    at: np.ndarray
    store: np.ndarray


def region_size(slots, length):
    """Numbers that the labellings of a sequence take."""
    return slots * (2 + slots + length)


@jit
def region(mixtures, s, length):
    """Shares, losses, products of features (slots, slots), and labels (slots, length)."""
    slots = mixtures.slots[s]
    losses = mixtures.at[s] + slots
    products = losses + slots
    labels = products + slots * slots
    return (
        mixtures.store[losses - slots : losses],
        mixtures.store[losses:products],
        mixtures.store[products:labels].reshape((slots, slots)),
        mixtures.store[labels : labels + slots * length].reshape((slots, length)),
    )


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
                row[p - begin if tokens.dense else tokens.indices[p]] = tokens.values[p]
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
def drop_unused(mixtures, s, length):
    """Free the slots of labellings without a share. The truth keeps its slot."""
    shares, losses, products, paths = region(mixtures, s, length)
    count = mixtures.counts[s]
    n = 1
    for m in range(1, count):
        if shares[m] > 0.0:
            paths[n] = paths[m]
            shares[n] = shares[m]
            losses[n] = losses[m]
            products[n, :count] = products[m, :count]
            products[:count, n] = products[:count, m]
            n += 1
    mixtures.counts[s] = n


@jit
def add_path(sequences, mixtures, s, path, loss):
    """Add a labelling with share 0. There must be a free slot."""
    length = sequences.starts[s + 1] - sequences.starts[s]
    shares, losses, products, paths = region(mixtures, s, length)
    m = mixtures.counts[s]
    paths[m] = path[:length]
    shares[m] = 0.0
    losses[m] = loss
    gram = sequences.gram[sequences.gram_starts[s] : sequences.gram_starts[s + 1]]
    for n in range(m + 1):
        products[m, n] = path_product(gram, length, sequences.boundaries, path, paths[n])
        products[n, m] = products[m, n]
    mixtures.counts[s] = m + 1


@jit
def begin_with_truth(sequences, mixtures):
    """Make the truth the only labelling of every sequence that has a token."""
    for s in range(mixtures.counts.shape[0]):
        begin, end = sequences.starts[s], sequences.starts[s + 1]
        if begin < end:
            add_path(sequences, mixtures, s, sequences.truth[begin:end], 0.0)
            mixtures.store[mixtures.at[s]] = 1.0  # its share


@jit
def move_shares(u, shares, products, cost):
    """Move shares between the outputs of an example; returns the growth of the dual.

    ``u`` holds u_a of the outputs and is updated. ``products`` holds <Ψ(a), Ψ(b)>.
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
def differing(paths, where, steps):
    """Find where the labellings of a sequence differ.

    ``where`` gets the tokens on which the labellings differ. ``steps`` gets, without the first
    token, the tokens on which they differ and the tokens after these. Returns both numbers.
    """
    count, length = paths.shape
    n = 0
    n_steps = 0
    before = False
    for t in range(length):
        here = False
        for m in range(1, count):
            here |= paths[m, t] != paths[0, t]
        if here:
            where[n] = t
            n += 1
        if t > 0 and (here or before):
            steps[n_steps] = t
            n_steps += 1
        before = here
    return n, n_steps


@jit
def move_weights(tokens, boundaries, weights, a, paths, where, steps, changes, amounts):
    """w += Σ_m changes_m·Ψ(paths_m), for changes that sum to 0, of the sequence at token a."""
    count, length = paths.shape
    for t in where:
        amounts[:] = 0.0
        for m in range(count):
            amounts[int(paths[m, t])] += changes[m]
        begin = tokens.starts[a + t]
        for p in range(begin, tokens.starts[a + t + 1]):
            here = weights.emissions[p - begin if tokens.dense else tokens.indices[p]]
            x = tokens.values[p]
            for k in range(amounts.shape[0]):
                here[k] += x * amounts[k]
    for m in range(count):
        if changes[m] != 0.0:
            for t in steps:
                weights.transitions[int(paths[m, t - 1]), int(paths[m, t])] += changes[m]
            if boundaries:
                weights.begin[int(paths[m, 0])] += changes[m]
                weights.finish[int(paths[m, length - 1])] += changes[m]


@jit
def score_tokens(tokens, emissions, a, length, scores):
    """Scores of all labels of the tokens from a on."""
    for t in range(length):
        here = scores[t]
        here[:] = 0.0
        begin = tokens.starts[a + t]
        for p in range(begin, tokens.starts[a + t + 1]):
            feature = p - begin if tokens.dense else tokens.indices[p]
            x = tokens.values[p]
            for k in range(here.shape[0]):
                here[k] += x * emissions[feature, k]


@jit
def score_labels(tokens, emissions, a, paths, where, scores):
    """Scores of the labels that labellings have for some tokens of the sequence at token a.

    Returns how many numbers were read one by one.
    """
    count = paths.shape[0]
    read = 0
    for t in where:
        here = scores[t]
        begin = tokens.starts[a + t]
        end = tokens.starts[a + t + 1]
        for m in range(count):
            here[int(paths[m, t])] = 0.0
        for m in range(count):
            k = int(paths[m, t])
            if here[k] == 0.0:  # not computed yet, or the score is 0
                for p in range(begin, end):
                    feature = p - begin if tokens.dense else tokens.indices[p]
                    here[k] += tokens.values[p] * emissions[feature, k]
                read += end - begin
    return read


@jit
def is_known(paths, path):
    """Whether a labelling is among the known ones."""
    for m in range(paths.shape[0]):
        alike = True
        for t in range(paths.shape[1]):
            alike &= path[t] == paths[m, t]
        if alike:
            return True
    return False


@jit
def visit(tokens, sequences, mixtures, weights, order, gaps, gains, inference):
    """Visit the sequences in ``order``, with inference or with the known labellings only.

    With inference ``gaps`` (sequences,) gets c·(largest u − Σ_a α_a·u_a), the sequence's part of
    the duality gap before its step. ``gains`` (sequences,) gets what its step has gained. Returns
    the growth of the dual, the number of visited sequences, and how many numbers were read one by
    one without inference. If not all were visited,
    the next sequence of ``order`` needs a slot and has none.
    """
    labels = weights.emissions.shape[1]
    longest = sequences.alpha.shape[0]
    scores = np.empty((longest, labels))
    path = np.empty(longest, np.int64)
    work = np.empty(labels)
    amounts = np.empty(labels)
    room = np.max(mixtures.slots)
    tokens_that_differ = np.empty(longest, np.int64)
    steps_that_differ = np.empty(longest, np.int64)
    values = np.empty(room)
    before = np.empty(room)
    grown = 0.0
    read = 0
    plain = (weights.second, weights.transitions, weights.begin, weights.finish)
    for number in range(order.shape[0]):
        s = order[number]
        a = sequences.starts[s]
        length = sequences.starts[s + 1] - a
        if length == 0:
            continue
        shares, losses, products, paths = region(mixtures, s, length)
        count = mixtures.counts[s]
        if inference:
            score_tokens(tokens, weights.emissions, a, length, scores)
            own = sequences.truth[a : a + length]
            chain = (scores, 0, length, *plain, own, sequences.per_token)
            loss = worst_path(*chain, work, sequences.alpha, path)
            if not is_known(paths[:count], path):
                if count == mixtures.slots[s]:
                    drop_unused(mixtures, s, length)
                if mixtures.counts[s] == mixtures.slots[s]:
                    return grown, number, read
                add_path(sequences, mixtures, s, path, loss)
                count = mixtures.counts[s]
        n, n_steps = differing(paths[:count], tokens_that_differ, steps_that_differ)
        where, steps = tokens_that_differ[:n], steps_that_differ[:n_steps]
        if not inference:
            read += count * (length + n_steps)
            read += score_labels(tokens, weights.emissions, a, paths[:count], where, scores)
        # u without a term that is the same for all labellings.
        u = values[:count]
        mean = 0.0
        for m in range(count):
            u[m] = losses[m]
            u[m] += weights.begin[int(paths[m, 0])] + weights.finish[int(paths[m, length - 1])]
            for t in where:
                u[m] += scores[t, int(paths[m, t])]
            for t in steps:
                u[m] += weights.transitions[int(paths[m, t - 1]), int(paths[m, t])]
            mean += shares[m] * u[m]
        if inference:
            gaps[s] = max(0.0, sequences.cost * (np.max(u) - mean))
        changes = before[:count]
        changes[:] = shares[:count]
        more = move_shares(u, shares[:count], products, sequences.cost)
        gains[s] = more
        if more > 0.0:
            for m in range(count):
                changes[m] = sequences.cost * (changes[m] - shares[m])
            known = paths[:count], where, steps, changes
            move_weights(tokens, sequences.boundaries, weights, a, *known, amounts)
            grown += more
    return grown, order.shape[0], read


@jit
def copy_shares(starts, mixtures, out):
    """out = the shares of all labellings, sequence by sequence; returns Σ_i Σ_a α_a·loss(a)."""
    n = 0
    total = 0.0
    for s in range(mixtures.counts.shape[0]):
        shares, losses, _, _ = region(mixtures, s, starts[s + 1] - starts[s])
        for m in range(mixtures.counts[s]):
            out[n] = shares[m]
            total += shares[m] * losses[m]
            n += 1
    return total


@jit
def as_shares(target):
    """Set negative shares of an example to 0 and scale the other shares so that their sum is 1."""
    total = 0.0
    for m in range(target.shape[0]):
        target[m] = max(0.0, target[m])
        total += target[m]
    target /= total


@jit
def set_shares(tokens, sequences, mixtures, weights, target):
    """Set the shares of all labellings to feasible ones near ``target``, and update w."""
    longest = sequences.alpha.shape[0]
    amounts = np.empty(weights.emissions.shape[1])
    tokens_that_differ = np.empty(longest, np.int64)
    steps_that_differ = np.empty(longest, np.int64)
    n = 0
    for s in range(mixtures.counts.shape[0]):
        count = mixtures.counts[s]
        changes = target[n : n + count]
        n += count
        if count < 2:
            continue
        a = sequences.starts[s]
        shares, _, _, paths = region(mixtures, s, sequences.starts[s + 1] - a)
        as_shares(changes)
        for m in range(count):
            new = changes[m]
            changes[m] = sequences.cost * (shares[m] - new)
            shares[m] = new
        if np.any(changes != 0.0):
            found, found_steps = differing(paths[:count], tokens_that_differ, steps_that_differ)
            where, steps = tokens_that_differ[:found], steps_that_differ[:found_steps]
            known = paths[:count], where, steps, changes
            move_weights(tokens, sequences.boundaries, weights, a, *known, amounts)


@jit
def differences(sequences, mixtures, shares, transitions, begin, finish):
    """The features of all mixtures less those of the truth; returns the sum of their losses.

    ``shares`` (tokens, K) gets the part of the features in the emissions: shares of the labels of
    each token. The counts of transitions, first labels and last labels are added to the other
    arrays. All is computed from the shares of the labellings other than the truth. If rounding has
    made the sum of these shares more than 1, they are scaled, so that the result belongs to a
    mixture.
    """
    shares[...] = 0.0
    total = 0.0
    for s in range(mixtures.counts.shape[0]):
        a = sequences.starts[s]
        length = sequences.starts[s + 1] - a
        own, losses, _, paths = region(mixtures, s, length)
        count = mixtures.counts[s]
        others = np.sum(own[1:count])
        if count < 2 or others == 0.0:
            continue
        own[1:count] *= 1.0 / max(1.0, others)
        own[0] = max(0.0, 1.0 - others)
        for m in range(1, count):
            total += own[m] * losses[m]
            # The features of the truth count with minus the sum of the other shares.
            for share, path in ((own[m], paths[m]), (-own[m], paths[0])):
                for t in range(length):
                    k = int(path[t])
                    shares[a + t, k] += share
                    if t > 0:
                        transitions[int(path[t - 1]), k] += share
                begin[int(path[0])] += share
                finish[int(path[length - 1])] += share
    return total
