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
def line_slopes(start, end, steps, labels, weights, slopes):
    """slopes[j] = d/dk Σ weight·loss at start + k(end − start), for k = steps[j]."""
    for j in range(steps.shape[0]):
        k = steps[j]
        total = 0.0
        for i in range(start.shape[0]):
            y = labels[i]
            highest = start[i, y] + k * (end[i, y] - start[i, y])
            worst = y
            for c in range(start.shape[1]):
                s = start[i, c] + k * (end[i, c] - start[i, c]) + 1.0
                if c != y and s > highest:
                    highest = s
                    worst = c
            change = end[i, worst] - start[i, worst] - end[i, y] + start[i, y]
            total += weights[i] * change
        slopes[j] = total
