"""Logistic loss log(1 + exp(−y(s + b))) on a block of rows.

Symbols as in ``hinge.py``. The conjugate at −u·y is u·log u + (1−u)·log(1−u),
0 ≤ u ≤ 1.
"""

from __future__ import annotations

import math

from .._jit import jit


@jit
def _loss(z):
    """log(1 + exp(−z)) without overflow."""
    return math.log1p(math.exp(-z)) if z > 0.0 else math.log1p(math.exp(z)) - z


@jit
def _weight(z):
    """1/(1 + exp(z)), minus the derivative of the loss."""
    if z > 0.0:
        e = math.exp(-z)
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(z))


@jit
def value(scores, bias, labels, weights):
    """Σ weight·loss."""
    total = 0.0
    for i in range(scores.shape[0]):
        total += weights[i] * _loss(labels[i] * (scores[i] + bias))
    return total


@jit
def coefficients(scores, bias, labels, weights, coef):
    """coef = weight·d loss/d score."""
    for i in range(scores.shape[0]):
        coef[i] = -labels[i] * weights[i] * _weight(labels[i] * (scores[i] + bias))


@jit
def bias_derivatives(scores, bias, labels, weights):
    """First and second derivative of Σ weight·loss in the bias."""
    slope = 0.0
    curvature = 0.0
    for i in range(scores.shape[0]):
        u = _weight(labels[i] * (scores[i] + bias))
        slope -= weights[i] * labels[i] * u
        curvature += weights[i] * u * (1.0 - u)
    return slope, curvature


@jit
def line_value(start, start_bias, end, end_bias, k, labels, weights):
    """Value and derivative at start + k(end − start)."""
    total = 0.0
    slope = 0.0
    for i in range(start.shape[0]):
        here = start[i] + start_bias
        change = end[i] + end_bias - here
        z = labels[i] * (here + k * change)
        e = math.exp(-abs(z))
        total += weights[i] * (math.log1p(e) + (0.0 if z > 0.0 else -z))
        u = e / (1.0 + e) if z > 0.0 else 1.0 / (1.0 + e)
        slope -= weights[i] * labels[i] * u * change
    return total, slope


@jit
def line_and_bias(start, end, k, bias, labels, weights, sums):
    """sums = value, derivatives in k and the bias, and second ones: k, k and bias, bias."""
    total = 0.0
    by_k = 0.0
    by_bias = 0.0
    by_k_k = 0.0
    by_k_bias = 0.0
    by_bias_bias = 0.0
    for i in range(start.shape[0]):
        change = end[i] - start[i]
        z = labels[i] * (start[i] + k * change + bias)
        e = math.exp(-abs(z))
        total += weights[i] * (math.log1p(e) + (0.0 if z > 0.0 else -z))
        u = e / (1.0 + e) if z > 0.0 else 1.0 / (1.0 + e)
        slope = weights[i] * labels[i] * u
        curvature = weights[i] * u * (1.0 - u)
        by_k -= slope * change
        by_bias -= slope
        by_k_k += curvature * change * change
        by_k_bias += curvature * change
        by_bias_bias += curvature
    sums[0], sums[1], sums[2] = total, by_k, by_bias
    sums[3], sums[4], sums[5] = by_k_k, by_k_bias, by_bias_bias


@jit
def offset(coef, weights):
    """Σ −weight·conjugate(coef/weight)."""
    total = 0.0
    for i in range(coef.shape[0]):
        if weights[i] > 0.0:
            u = abs(coef[i]) / weights[i]
            if 0.0 < u < 1.0:
                total -= weights[i] * (u * math.log(u) + (1.0 - u) * math.log1p(-u))
    return total
