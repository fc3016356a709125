"""The risks of pairs and measures in plain numpy. Every model is judged by them.

Written from the formulas, apart from the library: no numba, no kept order, all tables
of F1 instead of a search. Symbols: scores f, p positives among m rows.

    pairs    mean over y_i > y_j of the same query of max(0, 1 − (f_i − f_j))
    F1       max over a, b of 1 − 2a/(p + a + b) + (Σ_FP f − Σ_FN f)/m
    top k    max over a of 1 − a/size + (e/m)(mean_FP f − mean_FN f),  e = min(k, p) − a,
             size = k for precision, p for recall and the break-even point (k = p)

For a true and b false positives, the false positives are the b highest negatives and the
false negatives the p − a lowest positives.
"""

from __future__ import annotations

import numpy as np

LEAF = 256  # among so many rows, every row is compared with every other


def count_pairs(y: np.ndarray, qid: np.ndarray | None = None) -> int:
    """Pairs of rows of one query whose targets differ."""
    if qid is None:
        return _unequal(y)
    order = np.argsort(qid, kind="stable")
    starts = np.flatnonzero(np.diff(qid[order])) + 1
    return sum(_unequal(part) for part in np.split(y[order], starts))


def _unequal(y: np.ndarray) -> int:
    counts = np.unique(y, return_counts=True)[1].astype(object)  # exact for any number of rows
    return int((len(y) ** 2 - (counts**2).sum()) // 2)


def pair_risk(scores: np.ndarray, y: np.ndarray, qid: np.ndarray | None = None) -> float:
    """Mean over pairs of max(0, 1 − (f_i − f_j))."""
    if qid is None:
        return _pair_sum(scores, y) / count_pairs(y)
    order = np.argsort(qid, kind="stable")
    starts = np.flatnonzero(np.diff(qid[order])) + 1
    parts = zip(np.split(scores[order], starts), np.split(y[order], starts), strict=True)
    return sum(_pair_sum(f, targets) for f, targets in parts) / count_pairs(y, qid)


def _pair_sum(scores: np.ndarray, y: np.ndarray) -> float:
    """Split rows by target into an upper and a lower half; sum over pairs across, then inside."""
    order = np.argsort(y, kind="stable")
    f, level = scores[order], np.unique(y[order], return_inverse=True)[1]
    total, ranges = 0.0, [(0, len(f))]
    while ranges:
        low, high = ranges.pop()
        if level[low] == level[high - 1]:
            continue
        if high - low <= LEAF:
            part = f[low:high]
            above = level[low:high, None] > level[None, low:high]
            violations = np.maximum(0.0, 1.0 - part[:, None] + part[None, :])
            total += float(violations[above].sum())
            continue
        # The end of a level that is nearest to the middle.
        middle = level[(low + high) // 2]
        begin, end = np.searchsorted(level, [middle, middle + 1])
        mid = end if end < high and (begin <= low or end + begin < low + high) else begin
        total += _between(np.sort(f[low:mid]), f[mid:high])
        ranges += [(low, mid), (mid, high)]
    return total


def _between(lower: np.ndarray, upper: np.ndarray) -> float:
    """Σ max(0, 1 − f_i + f_j) over i of the upper and j of the lower rows, both sorted."""
    center = lower[len(lower) // 2]  # keeps the digits of scores far from 0
    lower, upper = lower - center, upper - center
    first = np.searchsorted(lower, upper - 1.0, side="right")
    suffix = np.concatenate([np.cumsum(lower[::-1])[::-1], [0.0]])
    return float(np.sum((len(lower) - first) * (1.0 - upper) + suffix[first]))


def f1_risk(scores: np.ndarray, y: np.ndarray) -> float:
    """The risk of F1, from all (p + 1)(m − p + 1) tables."""
    positives, negatives = np.sort(scores[y > 0]), np.sort(scores[y <= 0])[::-1]
    p, m = len(positives), len(scores)
    lowest = np.concatenate([[0.0], np.cumsum(positives)])  # Σ of the lowest
    highest = np.concatenate([[0.0], np.cumsum(negatives)]) / m
    b = np.arange(len(negatives) + 1)
    return max(
        float(np.max(1.0 - 2.0 * a / (p + a + b) + highest)) - lowest[p - a] / m
        for a in range(p + 1)
    )


def top_risk(scores: np.ndarray, y: np.ndarray, k: int, *, recall: bool = False) -> float:
    """The risk of precision or recall among the k highest rows."""
    positives, negatives = np.sort(scores[y > 0]), np.sort(scores[y <= 0])[::-1]
    p, m = len(positives), len(scores)
    best = min(k, p)
    a = np.arange(max(0, k - len(negatives)), best + 1)
    e = best - a
    lowest = np.concatenate([[0.0], np.cumsum(positives)])[p - a]
    highest = np.concatenate([[0.0], np.cumsum(negatives)])[k - a]
    means = highest / np.maximum(k - a, 1) - lowest / np.maximum(p - a, 1)
    return float(np.max(1.0 - a / (p if recall else k) + e / m * means))
