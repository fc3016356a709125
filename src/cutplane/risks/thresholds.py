"""Thresholds that turn scores into ranks, and a threshold that keeps a false positive rate.

A row of score f is predicted rank ρ = #{k : f > θ_k} for θ_1 ≤ … ≤ θ_{R−1}. The thresholds are
fitted to training scores f_i, ranks r_i in 0, …, R − 1 and weights c_i. They minimise

    absolute   Σ c_i |ρ_i − r_i|
    zero_one   Σ c_i [ρ_i ≠ r_i]

exactly, in O((m + R) log m).

**absolute** separates into one problem per threshold, because |ρ − r| = Σ_k [(f > θ_k) ≠ (r ≥ k)].
Let E_k(p) be the error of threshold k when it lies above the p lowest rows. If one more row is
below the threshold, E_k changes by +c_i if r_i ≥ k, and by −c_i otherwise. This change never grows
with k, so for p < q

    E_{k+1}(p) − E_{k+1}(q) ≥ E_k(p) − E_k(q).

If q is the smallest minimiser of E_k, the right side is positive for all p < q. So no
minimiser of E_{k+1} lies below q, and the smallest minimisers are in order. Together they
are the optimum under θ_1 ≤ … ≤ θ_{R−1}.

If ranks mean real values v_0 < v_1 < …, the error |v_ρ − v_r| only scales the problem of
threshold k by v_k − v_{k−1} > 0, so the same thresholds are optimal.

**zero_one**: the groups of equal scores get ranks that do not fall, such that the rows with the
right rank have the largest weight. This is dynamic programming over the groups, with a tree of
prefix maxima over the ranks.

**A false positive rate.** Take n negative rows that were not used in training, and let t be their
r-th smallest score. With probability at least 1 − P(B ≥ r), where B is binomial with n trials of
probability 1 − β, at most a share β of all negatives has a score above t. Otherwise t is below the
(1 − β)-quantile of the scores, and so are at least r of the rows. The smallest r with
P(B ≥ r) ≤ 1 − confidence keeps the most positives (the umbrella algorithm of Tong, Feng and Li,
2018).
"""

from __future__ import annotations

import math

import numpy as np

from ..loops import thresholds as loops

# The most open ranges at a time: one per halving of a 64-bit range, and one more.
DEEPEST = 64


def fit_thresholds(
    scores: np.ndarray, ranks: np.ndarray, weights: np.ndarray, n_ranks: int, criterion: str
) -> np.ndarray:
    """The thresholds with the least error on the training scores.

    Parameters
    ----------
    scores : ndarray of shape (m,)
        Finite scores. Equal scores are predicted alike.
    ranks : ndarray of shape (m,)
        Integers in 0, …, n_ranks − 1. Not all have to occur.
    weights : ndarray of shape (m,)
        Weights ≥ 0 of the errors, not all 0. Rows of weight 0 are left out.
    n_ranks : int
        R. Time and memory grow with m + R.
    criterion : {'absolute', 'zero_one'}
        The error to minimise; see the module.

    Returns
    -------
    thresholds : ndarray of shape (n_ranks − 1,)
        Non-decreasing and finite. Each is half way between two neighbouring distinct scores, or
        just outside of all scores. If no training row is predicted to have some rank, the
        thresholds on both sides of the rank are equal, or the rank lies outside of all scores. The
        answer does not depend on the order of the rows or the machine, unless the errors of the
        best choices differ by no more than rounding.
    """
    scores = np.asarray(scores, dtype=np.float64)
    ranks = np.asarray(ranks)
    weights = np.asarray(weights, dtype=np.float64)
    kept = weights > 0.0
    scores, weights = scores[kept], weights[kept]
    ranks = ranks[kept].astype(np.int64)
    order = np.lexsort((-ranks, scores))
    scores = scores[order]
    ranks = ranks[order]
    weights = weights[order]
    starts = np.ones(len(scores) + 1, dtype=np.bool_)
    np.not_equal(scores[1:], scores[:-1], out=starts[1:-1])

    cuts = np.empty(n_ranks - 1, dtype=np.int64)
    stack = np.empty((DEEPEST, 4), dtype=np.int64)
    if criterion == "absolute":
        loops.absolute_cuts(ranks, weights, starts, 1, n_ranks, 0, len(ranks), stack, cuts)
    else:
        best = np.empty(n_ranks + 1)
        tail = np.empty(n_ranks + 1, dtype=np.int64)
        previous = np.empty(len(scores), dtype=np.int64)
        loops.zero_one_cuts(ranks, weights, starts, best, tail, previous, stack, cuts)
    # A threshold outside of all scores is half the mean distance of neighbours away, as inside.
    steps = 2.0 * (np.count_nonzero(starts) - 2)
    margin = scores[-1] / steps - scores[0] / steps if steps else 0.5
    return between(scores, cuts, margin, margin)


def least_rows_for_fpr(max_fpr: float, confidence: float) -> int:
    """The fewest negative rows for which a threshold exists: (1 − β)ⁿ ≤ 1 − confidence."""
    if max_fpr >= 1.0:
        return 1
    return max(1, math.ceil(math.log1p(-confidence) / math.log1p(-max_fpr) - 1e-9))


def threshold_for_fpr(scores: np.ndarray, max_fpr: float, confidence: float) -> float:
    """The lowest order statistic above which at most ``max_fpr`` of all negatives score.

    Parameters
    ----------
    scores : ndarray, shape (n,)
        Scores of negative rows that the model has not been trained on. There must be at least
        ``least_rows_for_fpr(max_fpr, confidence)``.
    max_fpr : float
        β, above 0 and up to 1.
    confidence : float
        Probability that the rate holds, over the choice of the rows; below 1.

    Returns
    -------
    float
        One of the scores. A row is predicted positive if its score is higher.
    """
    from scipy.special import bdtrc

    ranked = np.sort(np.asarray(scores, np.float64))
    n = len(ranked)
    misses = bdtrc(np.arange(n), n, 1.0 - max_fpr)  # P(B ≥ r) for r = 1, …, n
    enough = np.flatnonzero(misses <= (1.0 - confidence) * (1.0 + 1e-9))
    if not len(enough):
        raise ValueError(
            f"{n} negative rows are too few for max_fpr={max_fpr:g} with "
            f"confidence={confidence:g}: give at least {least_rows_for_fpr(max_fpr, confidence)}"
        )
    return float(ranked[enough[0]])


def between(scores: np.ndarray, cuts: np.ndarray, below: float, above: float) -> np.ndarray:
    """Thresholds θ_k ≥ the first ``cuts[k]`` of the rising scores, and below the other scores.

    ``below`` and ``above`` are the distances of thresholds outside of all scores from the nearest.
    """
    last = len(scores) - 1
    low, high = scores[np.maximum(cuts - 1, 0)], scores[np.minimum(cuts, last)]
    middle = 0.5 * low + 0.5 * high
    # Two neighbouring floats have no middle. Then θ is the lower one, which is not above θ.
    middle = np.where((low <= middle) & (middle < high), middle, low)
    lowest = min(scores[0] - below, np.nextafter(scores[0], -np.inf))
    limit = np.finfo(np.float64).max
    others = np.where(cuts > last, scores[-1] + above, middle)
    return np.clip(np.where(cuts == 0, lowest, others), -limit, limit)
