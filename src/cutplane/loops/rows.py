"""Sums of losses over rows: values, slopes along a line and in the bias, planes below.

One set of passes for every loss of ``cutplane.losses``. Row i has score s_i + b, label or target
y_i, and a weight; z_i is the loss's argument. Coefficients are weight_i·dℓ/ds_i.
"""

from __future__ import annotations

from .. import losses
from .._jit import jit


@jit(reassociate=True)
def value(loss, scores, bias, labels, weights):
    """Σ weight·loss."""
    total = 0.0
    for i in range(scores.shape[0]):
        total += weights[i] * losses.value(loss, losses.argument(loss, scores[i] + bias, labels[i]))
    return total


@jit
def highest(loss, high, low, errors, labels, out):
    """out[i] = an upper bound on the loss at the score high + low, which is off by ``errors``."""
    for i in range(high.shape[0]):
        y = labels[i]
        change = losses.direction(loss, y)
        z = losses.argument(loss, high[i], y)
        out[i] = losses.highest(loss, z, change * low[i], abs(change) * errors[i])


@jit(reassociate=True)
def line_slopes(loss, start, start_bias, end, end_bias, steps, labels, weights, slopes):
    """slopes[j] = d/dk Σ weight·loss at start + k(end − start), for k = steps[j]."""
    for j in range(steps.shape[0]):
        k = steps[j]
        total = 0.0
        for i in range(start.shape[0]):
            here = start[i] + start_bias
            change = end[i] + end_bias - here
            y = labels[i]
            slope = losses.slope(loss, losses.argument(loss, here + k * change, y))
            total += weights[i] * losses.direction(loss, y) * change * slope
        slopes[j] = total


@jit(reassociate=True)
def bias_slopes(loss, scores, biases, labels, weights, slopes):
    """slopes[j] = d/db Σ weight·loss at the bias b = biases[j]."""
    for j in range(biases.shape[0]):
        bias = biases[j]
        total = 0.0
        for i in range(scores.shape[0]):
            y = labels[i]
            slope = losses.slope(loss, losses.argument(loss, scores[i] + bias, y))
            total += weights[i] * losses.direction(loss, y) * slope
        slopes[j] = total


@jit
def coefficients(loss, scores, low, high, part, labels, weights, coef):
    """coef = (1 − part)·(coefficients at the bias ``low``) + part·(those at ``high``)."""
    for i in range(scores.shape[0]):
        y = labels[i]
        slope = losses.slope(loss, losses.argument(loss, scores[i] + low, y))
        if part > 0.0:
            other = losses.slope(loss, losses.argument(loss, scores[i] + high, y))
            slope = (1.0 - part) * slope + part * other
        coef[i] = weights[i] * losses.direction(loss, y) * slope


@jit(reassociate=True)
def offset(loss, coef, labels, weights):
    """Σ −weight·conjugate(coef/weight): the height of the plane with these coefficients at 0."""
    total = 0.0
    for i in range(coef.shape[0]):  # without a branch, so that the compiler vectorises the loop
        y = labels[i]
        weight = weights[i]
        counts = weight > 0.0
        u = losses.direction(loss, y) * (coef[i] if counts else 0.0) / (weight if counts else 1.0)
        # Zero for classification, where the score does not enter the argument's offset.
        here = losses.conjugate(loss, u) - u * losses.argument(loss, 0.0, y)
        total -= weight * here if counts else 0.0
    return total
