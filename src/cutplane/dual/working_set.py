"""Which variables to optimise next.

Steepest feasible direction (Joachims 1998, Zoutendijk 1970): the q/2 variables with the least g
that may grow and the q/2 with the largest g that may fall. Of large sets half is kept from the
set before, the newest half, lest variables come and go (Wen et al. 2018, ThunderSVM): their
rows are at hand anyway.
"""

from __future__ import annotations

import numpy as np

KEEP_FROM = 64  # smaller sets are chosen afresh every time


def steepest(
    g: np.ndarray,
    beta: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    size: int,
    previous: np.ndarray,
) -> np.ndarray:
    """The working set, numbers of distinct variables, the newest last.

    Parameters
    ----------
    g, beta, lower, upper : ndarray
        Gradient, point and bounds.
    size : int
        Even.
    previous : ndarray
        The set before; variables that are still there.
    """
    if size >= len(g):
        return np.arange(len(g))
    growing = np.where(beta < upper, g, np.inf)
    falling = np.where(beta > lower, g, -np.inf)
    least, most = growing.min(), falling.max()
    kept = previous[len(previous) - size // 2 :] if size >= KEEP_FROM else previous[:0]
    growing[kept] = np.inf
    falling[kept] = -np.inf
    half = (size - len(kept)) // 2
    first = np.argpartition(growing, half)[:half]
    first = first[growing[first] < most]
    falling[first] = -np.inf  # a free variable may be on both sides
    second = np.argpartition(falling, len(falling) - half)[len(falling) - half :]
    second = second[falling[second] > least]
    return np.concatenate([kept, first, second])
