"""The smoothed hinge and its second derivatives, for Newton's method on short vectors.

A row's slack is r = 1 − y(s + b). Its dual variable in units of its weight,

    π = clip(shift + r/width, 0, most),

is the derivative of the loss smoothed by its distance from ``shift``: with ``most`` = 1 that of the
hinge, with ``most`` = ∞, shift 0 and width ½ that of the squared hinge, which is smooth already. A
row is ``inside`` if 0 < π < most: there the second derivative in s is weight/width, elsewhere 0.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit


@jit(reassociate=True)
def move(scores, ways, step, bias, labels, shift, slope, most, weights, coef, inside):
    """scores += step·ways, and there coef = −y·weight·π and the rows inside.

    ``slope`` is 1/width. Returns Σ weight·(max(0, r) − π·r): how far the hinge is above the cut of
    the coefficients there.
    """
    slack = 0.0
    for i in range(scores.shape[0]):
        score = scores[i] + step * ways[i]
        scores[i] = score
        y = labels[i]
        r = 1.0 - y * (score + bias)
        part = shift[i] + slope * r
        clipped = min(max(part, 0.0), most)
        coef[i] = -y * weights[i] * clipped
        inside[i] = part > 0.0 and part < most
        slack += weights[i] * (max(r, 0.0) - clipped * r)
    return slack


@jit(reassociate=True)
def derivative(scores, ways, step, bias, labels, shift, slope, most, weights):
    """Σ coef·way at scores + step·ways."""
    total = 0.0
    for i in range(scores.shape[0]):
        y = labels[i]
        part = shift[i] + slope * (1.0 - y * (scores[i] + step * ways[i] + bias))
        total -= y * weights[i] * min(max(part, 0.0), most) * ways[i]
    return total


@jit(reassociate=True)
def bias_derivatives(scores, bias, labels, shift, slope, most, weights):
    """Σ coef at a bias, and the weight of the rows inside."""
    total = 0.0
    within = 0.0
    for i in range(scores.shape[0]):
        y = labels[i]
        part = shift[i] + slope * (1.0 - y * (scores[i] + bias))
        total -= y * weights[i] * min(max(part, 0.0), most)
        within += weights[i] if part > 0.0 and part < most else 0.0
    return total, within


@jit
def dual_parts(coef, weights, most, out):
    """out = π of coefficients or their sizes, weight·π; as it is for rows that do not count."""
    for i in range(coef.shape[0]):  # no branch, for vector instructions
        part = min(abs(coef[i]) / weights[i], most)
        out[i] = part if weights[i] > 0.0 else out[i]


@jit
def count_changes(inside, counted):
    """How many rows are inside, and in how many that is not what ``counted`` says."""
    count = 0
    changed = 0
    for i in range(inside.shape[0]):
        count += inside[i]
        changed += inside[i] != counted[i]
    return count, changed


@jit
def add_squares(values, indices, starts, equal, inside, counted, weights, constant, anew, half):
    """half + halfᵀ += Σ weight·x xᵀ over the rows that have come inside, less those that have gone.

    ``anew`` counts all that are inside. Rows are flat, as for ``coordinate``, and ``equal`` if the
    values of a row all are; a last column stands for a feature of value ``constant``, if that is
    not 0. ``counted`` becomes ``inside``.
    """
    n = half.shape[0]
    last = n - 1
    one = np.uint64(1)
    flat = half.reshape(n * n)
    for i in range(inside.shape[0]):
        sign = np.int64(inside[i]) - (0 if anew else np.int64(counted[i]))
        counted[i] = inside[i]
        if sign == 0:
            continue
        weight = sign * weights[i]
        first = np.uint64(starts[i])
        stop = np.uint64(starts[i + 1])
        if indices is None:  # decided when compiled
            for j in range(stop - first):
                factor = weight * values[first + np.uint64(j)]
                if factor != 0.0:
                    for k in range(j):
                        half[j, k] += factor * values[first + np.uint64(k)]
                    half[j, j] += 0.5 * factor * values[first + np.uint64(j)]
        elif equal and first < stop:
            factor = weight * values[first]
            square = factor * values[first]
            p = first
            while p < stop:
                row = np.uint64(n) * np.uint64(indices[p])
                q = first
                while q < p:
                    flat[row + np.uint64(indices[q])] += square
                    q += one
                flat[row + np.uint64(indices[p])] += 0.5 * square
                p += one
        else:
            p = first
            while p < stop:
                factor = weight * values[p]
                row = np.uint64(n) * np.uint64(indices[p])
                q = first
                while q < p:
                    flat[row + np.uint64(indices[q])] += factor * values[q]
                    q += one
                flat[row + np.uint64(indices[p])] += 0.5 * factor * values[p]
                p += one
        if constant != 0.0:
            factor = weight * constant
            for p in range(first, stop):
                j = p - first if indices is None else np.uint64(indices[p])
                half[last, j] += factor * values[p]
            half[last, last] += 0.5 * factor * constant
