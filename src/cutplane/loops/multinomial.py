"""Multinomial logistic loss log Σ_c exp(s_c) − s_y on a block of rows.

``scores`` (rows, K), ``labels`` y ∈ {0..K−1} (int64), ``weights`` (rows,). With the probabilities
p_c = exp(s_c)/Σ exp(s) the coefficients are weight·(p − e_y). Any p on the simplex gives a valid
cut, whose offset is weight times the entropy of p.
"""

from __future__ import annotations

import math

from .._jit import jit


@jit
def value(scores, labels, weights):
    """Σ weight·loss."""
    total = 0.0
    for i in range(scores.shape[0]):
        top = scores[i].max()
        mass = 0.0
        for c in range(scores.shape[1]):
            mass += math.exp(scores[i, c] - top)
        total += weights[i] * (math.log(mass) + (top - scores[i, labels[i]]))
    return total


@jit
def coefficients(scores, labels, weights, coef):
    """coef = weight·(p − e_y)."""
    for i in range(scores.shape[0]):
        y = labels[i]
        top = scores[i].max()
        mass = 0.0
        for c in range(scores.shape[1]):
            coef[i, c] = math.exp(scores[i, c] - top)
            mass += coef[i, c]
        others = 0.0
        for c in range(scores.shape[1]):
            coef[i, c] *= weights[i] / mass
            others += coef[i, c] if c != y else 0.0
        coef[i, y] = -others  # to the last digit the sum of the row is 0


@jit
def line_slopes(start, end, steps, labels, weights, slopes):
    """slopes[j] = d/dk Σ weight·loss at start + k(end − start), for k = steps[j]."""
    for j in range(steps.shape[0]):
        k = steps[j]
        total = 0.0
        for i in range(start.shape[0]):
            top = -math.inf
            for c in range(start.shape[1]):
                top = max(top, start[i, c] + k * (end[i, c] - start[i, c]))
            mass = 0.0
            mean = 0.0  # change, by the probabilities
            for c in range(start.shape[1]):
                change = end[i, c] - start[i, c]
                part = math.exp(start[i, c] + k * change - top)
                mass += part
                mean += part * change
            y = labels[i]
            total += weights[i] * (mean / mass - (end[i, y] - start[i, y]))
        slopes[j] = total
