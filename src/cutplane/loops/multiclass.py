"""Crammer–Singer loss max_c (1[c ≠ y] + s_c − s_y) on a block of rows.

``scores`` (rows, K), ``labels`` y ∈ {0..K−1} (int64), ``weights`` (rows,).
Any coefficients weight·(p − e_y) with p on the simplex give a valid cut; its
offset is the weight that p puts on wrong classes.
"""

from __future__ import annotations

from .._jit import jit


@jit
def value(scores, labels, weights):
    """Σ weight·loss."""
    total = 0.0
    for i in range(scores.shape[0]):
        y = labels[i]
        worst = scores[i, y]
        for c in range(scores.shape[1]):
            if c != y and scores[i, c] + 1.0 > worst:
                worst = scores[i, c] + 1.0
        total += weights[i] * (worst - scores[i, y])
    return total


@jit
def coefficients(scores, labels, weights, coef):
    """coef = weight·(e_worst − e_y), zero where the true class wins by the margin."""
    for i in range(scores.shape[0]):
        y = labels[i]
        worst = y
        highest = scores[i, y]
        for c in range(scores.shape[1]):
            coef[i, c] = 0.0
            if c != y and scores[i, c] + 1.0 > highest:
                highest = scores[i, c] + 1.0
                worst = c
        if worst != y:
            coef[i, worst] = weights[i]
            coef[i, y] = -weights[i]


@jit
def line_value(start, end, k, labels, weights):
    """Value and derivative at start + k(end − start)."""
    total = 0.0
    slope = 0.0
    for i in range(start.shape[0]):
        y = labels[i]
        here = start[i, y] + k * (end[i, y] - start[i, y])
        highest = here
        worst = y
        for c in range(start.shape[1]):
            s = start[i, c] + k * (end[i, c] - start[i, c]) + 1.0
            if c != y and s > highest:
                highest = s
                worst = c
        if worst != y:
            total += weights[i] * (highest - here)
            slope += weights[i] * (end[i, worst] - start[i, worst] - end[i, y] + start[i, y])
    return total, slope


@jit
def offset(coef, labels):
    """Σ of the coefficients of wrong classes."""
    total = 0.0
    for i in range(coef.shape[0]):
        total -= coef[i, labels[i]]
    return total
