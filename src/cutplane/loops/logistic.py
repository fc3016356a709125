"""Logistic loss log(1 + exp(−y(s + b))) on a block of rows.

Symbols as in ``hinge.py``. The conjugate at −u·y is u·log u + (1−u)·log(1−u),
0 ≤ u ≤ 1.
"""

from __future__ import annotations

import math

from .._jit import jit

# Up to where the series of log(1 + e) is short, and products of 1 + e that do not overflow.
SMALL = 2.0**-10
LARGE = 1e300


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
        # Logarithms cost more than all the rest: one is taken of a product for rows of equal
        # weight, and where 1 + e would lose digits of e its series is added up.
        product = 1.0
        shared = weights[0] if start.shape[0] > 0 else 0.0
        for i in range(start.shape[0]):
            change = end[i] - start[i]
            z = labels[i] * (start[i] + k * change + bias)
            e = math.exp(-abs(z))
            weight = weights[i]
            if e < SMALL:
                total += weight * (e * (1.0 - e * (0.5 - e * (1.0 / 3.0 - 0.25 * e))))
            else:
                if weight != shared or product > LARGE:
                    total += shared * math.log(product)
                    product = 1.0
                    shared = weight
                product *= 1.0 + e
            u = 1.0 / (1.0 + e)
            if z > 0.0:
                u *= e
            else:
                total -= weight * z
            curvature = weight * u * (1.0 - u)
            u *= weight
            slope = labels[i] * u
            by_k -= slope * change
            by_bias -= slope
            by_k_k += curvature * change * change
            by_k_bias += curvature * change
            by_bias_bias += curvature
            size += u
        total += shared * math.log(product)
        sums[j, 0], sums[j, 1], sums[j, 2] = total, by_k, by_bias
        sums[j, 3], sums[j, 4], sums[j, 5] = by_k_k, by_k_bias, by_bias_bias
        sums[j, 6] = size


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
