"""The best of all 2^L subsets of L labels, where labels and pairs of labels have scores.

    score(z) = Σ_{k in z} unary[k] + pairs[z]

A subset z is an integer whose bit k stands for label k. ``pairs`` (2^L,) has the sum of the scores
of all pairs within each subset, which is the same for all rows. The first sum takes one addition
per subset: a subset whose highest label is k is a smaller subset plus label k. Among subsets of
equal score the smallest integer wins.
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
    """out[i] = argmax_z Σ_{k in z} unary[i, k] + pairs[z]. ``sums`` (2^L,) is working memory."""
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
    """out[i] = argmax_z Δ(z)·(1 + score(z) − score(truth[i])). Δ is the number of wrong labels.

    truth[i] itself, with Δ = 0, wins if no subset has a positive value.
    """
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
