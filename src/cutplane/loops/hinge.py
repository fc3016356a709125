"""Hinge loss max(0, 1 − y(s + b)) on a block of rows.

``scores`` s, ``labels`` y ∈ {−1, +1}, ``weights`` ≥ 0, all (rows,); ``bias`` b
is one number. A row is active for y = +1 while b < y − s and for y = −1 while
b > y − s: that form makes "exactly at the kink" an equality of two numbers
that were computed the same way wherever it is tested.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit

# Bits of a floating point number that do not count for its bin: 2^(52 − this) bins per octave.
OCTAVE_SHIFT = 46


@jit(reassociate=True)
def value(scores, bias, labels, weights):
    """Σ weight·loss."""
    total = 0.0
    for i in range(scores.shape[0]):
        loss = 1.0 - labels[i] * (scores[i] + bias)
        total += weights[i] * loss if loss > 0.0 else 0.0
    return total


@jit
def coefficients(scores, bias, labels, weights, tied_positive, tied_negative, coef):
    """coef = weight·(a subgradient of the loss); rows at the kink get a part of it."""
    for i in range(scores.shape[0]):
        y = labels[i]
        kink = y - scores[i]
        part = 0.0
        if kink == bias:
            part = tied_positive if y > 0.0 else tied_negative
        elif (kink > bias) == (y > 0.0):
            part = 1.0
        coef[i] = -y * part * weights[i]


@jit(reassociate=True)
def active_weights(scores, bias, labels, weights, sums):
    """Add to sums: active +, active −, at the kink +, at the kink −."""
    positive = 0.0
    negative = 0.0
    tied_positive = 0.0
    tied_negative = 0.0
    for i in range(scores.shape[0]):  # sums of selected terms: no branch to mispredict
        y = labels[i]
        weight = weights[i]
        kink = y - scores[i]
        positive += weight if y > 0.0 and kink > bias else 0.0
        negative += weight if y < 0.0 and kink < bias else 0.0
        tied_positive += weight if y > 0.0 and kink == bias else 0.0
        tied_negative += weight if y < 0.0 and kink == bias else 0.0
    sums[0] += positive
    sums[1] += negative
    sums[2] += tied_positive
    sums[3] += tied_negative


@jit
def bias_steps(scores, labels, weights, low, high, positions, jumps):
    """Steps of d/db Σ weight·loss for low ≤ b < high.

    Returns their number and the derivative just below ``low``.
    """
    count = 0
    slope = 0.0
    for i in range(scores.shape[0]):
        y = labels[i]
        weight = weights[i]
        kink = y - scores[i]
        slope += (weight if kink < low else 0.0) - (weight if y > 0.0 else 0.0)
        positions[count] = kink
        jumps[count] = weight
        count += 1 if low <= kink < high else 0
    return count, slope


@jit
def _place(kink, low, scale, inner):
    """Bin of a kink, of ``inner`` ones from ``low`` on; 0 is below, inner + 1 beyond."""
    place = (kink - low) * scale
    place = place if place >= 0.0 else -1.0  # also what is not a number
    place = place if place < inner else inner
    return int(place) + 1


@jit
def bias_profile(scores, labels, weights, low, scale, profile):
    """By bin of a row's kink add its weight and weight·kink: columns +, −, +, −."""
    inner = profile.shape[0] - 2
    for i in range(scores.shape[0]):
        y = labels[i]
        weight = weights[i]
        kink = y - scores[i]
        place = _place(kink, low, scale, inner)
        column = 0 if y > 0.0 else 1
        profile[place, column] += weight
        profile[place, column + 2] += weight * kink


@jit
def band_coefficients(scores, labels, weights, low, scale, inner, number, positive, negative, coef):
    """As ``coefficients``, where the rows with their kink in one bin get a part."""
    for i in range(scores.shape[0]):
        y = labels[i]
        place = _place(y - scores[i], low, scale, inner)
        active = 1.0 if (place > number) == (y > 0.0) else 0.0
        tied = positive if y > 0.0 else negative
        coef[i] = -y * (tied if place == number else active) * weights[i]


@jit
def _along(start, end, y, weight):
    """A row on the line from one score to another: d/dk of its loss at 0+, kink k, step there.

    A fall that is tiny or zero has no kink at 0 < k < ∞.
    """
    loss = 1.0 - y * start
    fall = y * (end - start)  # how fast the loss falls with k
    rate = weight * fall
    slope = -rate if loss > 0.0 or (loss == 0.0 and fall < 0.0) else 0.0
    return slope, loss / fall, abs(rate)


@jit
def line_steps(start, start_bias, end, end_bias, labels, weights, high, positions, jumps):
    """Steps of d/dk Σ weight·loss at start + k(end − start), for 0 < k < high.

    Returns the number of steps and the derivative at 0+.
    """
    count = 0
    slope = 0.0
    for i in range(start.shape[0]):
        here = start[i] + start_bias
        own, k, jump = _along(here, end[i] + end_bias, labels[i], weights[i])
        slope += own
        # Write always and count if it was a step: cheaper than a branch that is
        # hard to predict.
        positions[count] = k
        jumps[count] = jump
        count += 1 if 0.0 < k < high else 0
    return count, slope


@jit
def line_profile(start, start_bias, end, end_bias, labels, weights, first, bins):
    """bins[b] += jumps of d/dk Σ weight·loss at start + k(end − start), k > 0 in bin b.

    A bin's number is the leading bits of k from ``first`` on; the first and the last bin take
    what lies below and beyond. Returns the derivative at 0+.
    """
    last = bins.shape[0] - 1
    slope = 0.0
    for i in range(start.shape[0]):
        here = start[i] + start_bias
        own, k, jump = _along(here, end[i] + end_bias, labels[i], weights[i])
        slope += own
        place = (np.float64(k).view(np.int64) >> OCTAVE_SHIFT) - first + 1
        place = place if place > 0 else 0
        place = place if place < last else last
        bins[place] += jump if k > 0.0 else 0.0  # no branch that is hard to predict
    return slope


@jit
def line_value(start, start_bias, end, end_bias, k, labels, weights):
    """Value and derivative at start + k(end − start)."""
    total = 0.0
    slope = 0.0
    for i in range(start.shape[0]):
        here = start[i] + start_bias
        change = end[i] + end_bias - here
        loss = 1.0 - labels[i] * (here + k * change)
        if loss > 0.0:
            total += weights[i] * loss
            slope -= weights[i] * labels[i] * change
    return total, slope


@jit
def carry(dual_point, weights, factor, out):
    """out = a dual point divided by C, for another C: rows at their bound stay there."""
    for i in range(dual_point.shape[0]):
        weight = weights[i]
        point = dual_point[i]
        held = point >= weight * (1.0 - 1e-12)
        out[i] = weight if held else min(point * factor, weight)


@jit(reassociate=True)
def offset(coef):
    """Σ −weight·(conjugate of the loss) for coefficients in its domain: Σ |coef|."""
    total = 0.0
    for i in range(coef.shape[0]):
        total += abs(coef[i])
    return total
