"""Squared hinge loss max(0, 1 − y(s + b))² on a block of rows.

Symbols as in ``hinge.py``. The conjugate at −u·y is u²/4 − u for u ≥ 0.
"""

from __future__ import annotations

from .._jit import jit


@jit
def value(scores, bias, labels, weights):
    """Σ weight·loss."""
    total = 0.0
    for i in range(scores.shape[0]):
        margin = 1.0 - labels[i] * (scores[i] + bias)
        if margin > 0.0:
            total += weights[i] * margin * margin
    return total


@jit
def coefficients(scores, bias, labels, weights, coef):
    """coef = weight·d loss/d score."""
    for i in range(scores.shape[0]):
        margin = 1.0 - labels[i] * (scores[i] + bias)
        coef[i] = -2.0 * labels[i] * weights[i] * margin if margin > 0.0 else 0.0


@jit
def bias_derivatives(scores, bias, labels, weights):
    """First and second derivative of Σ weight·loss in the bias."""
    slope = 0.0
    curvature = 0.0
    for i in range(scores.shape[0]):
        margin = 1.0 - labels[i] * (scores[i] + bias)
        if margin > 0.0:
            slope -= 2.0 * weights[i] * labels[i] * margin
            curvature += 2.0 * weights[i]
    return slope, curvature


@jit
def line_value(start, start_bias, end, end_bias, k, labels, weights):
    """Value and derivative at start + k(end − start)."""
    total = 0.0
    slope = 0.0
    for i in range(start.shape[0]):
        here = start[i] + start_bias
        change = end[i] + end_bias - here
        margin = 1.0 - labels[i] * (here + k * change)
        if margin > 0.0:
            total += weights[i] * margin * margin
            slope -= 2.0 * weights[i] * labels[i] * margin * change
    return total, slope


@jit
def line_and_bias(start, end, steps, biases, labels, weights, sums):
    """sums[j] = value at (steps[j], biases[j]), derivatives in k and the bias, second ones: k,
    k and bias, bias; and Σ |d loss/d score|."""
    for j in range(steps.shape[0]):
        k = steps[j]
        bias = biases[j]
        total = 0.0
        by_k = 0.0
        by_bias = 0.0
        by_k_k = 0.0
        by_k_bias = 0.0
        by_bias_bias = 0.0
        size = 0.0
        for i in range(start.shape[0]):
            change = end[i] - start[i]
            margin = 1.0 - labels[i] * (start[i] + k * change + bias)
            if margin > 0.0:
                curvature = 2.0 * weights[i]
                u = curvature * margin
                slope = labels[i] * u
                total += weights[i] * margin * margin
                by_k -= slope * change
                by_bias -= slope
                by_k_k += curvature * change * change
                by_k_bias += curvature * change
                by_bias_bias += curvature
                size += u
        sums[j, 0], sums[j, 1], sums[j, 2] = total, by_k, by_bias
        sums[j, 3], sums[j, 4], sums[j, 5] = by_k_k, by_k_bias, by_bias_bias
        sums[j, 6] = size


@jit
def offset(coef, weights):
    """Σ −weight·conjugate(coef/weight)."""
    total = 0.0
    for i in range(coef.shape[0]):
        if coef[i] != 0.0:
            u = abs(coef[i])
            total += u - 0.25 * u * u / weights[i]
    return total
