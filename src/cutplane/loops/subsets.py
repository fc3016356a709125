"""The best subset of L labels, scored by labels and pairs of labels, by looking at all 2^L.

A subset is a number, bit k for label k. ``pairs`` (2^L,) has what the pairs within each subset add,
the same for all rows; what the labels add, Σ_{k in z} unary[k], is built up for a row by
doubling: the subsets with label k as the last one are those before, plus unary[k]. Both passes are
one addition per subset. Ties go to the smallest number.
"""

from __future__ import annotations

from .._jit import jit


@jit
def _sums(unary, sums):
    """sums[z] = Σ_{k in z} unary[k]."""
    sums[0] = 0.0
    for k in range(unary.shape[0]):
        half = 1 << k
        for z in range(half):
            sums[half + z] = sums[z] + unary[k]


@jit
def best(unary, pairs, sums, out):
    """out[i] = argmax_z Σ_{k in z} unary[i, k] + pairs[z]; ``sums`` (2^L,) is room."""
    for i in range(unary.shape[0]):
        _sums(unary[i], sums)
        top = sums[0] + pairs[0]
        place = 0
        for z in range(1, pairs.shape[0]):
            score = sums[z] + pairs[z]
            if score > top:
                top = score
                place = z
        out[i] = place


@jit
def best_rescaled(unary, pairs, truth, sums, out):
    """out[i] = argmax_z Δ(z)·(1 + score(z) − score(truth[i])), Δ the number of wrong labels."""
    labels = unary.shape[1]
    for i in range(unary.shape[0]):
        _sums(unary[i], sums)
        own = sums[truth[i]] + pairs[truth[i]]
        top = 0.0
        place = truth[i]
        for z in range(pairs.shape[0]):
            different = z ^ truth[i]
            wrong = 0
            for k in range(labels):
                wrong += (different >> k) & 1
            score = wrong * (1.0 + sums[z] + pairs[z] - own)
            if score > top:
                top = score
                place = z
        out[i] = place
