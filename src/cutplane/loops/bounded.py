"""Products X·w of a block of rows with bounds on their rounding error.

With u = 2⁻⁵³ a sum of k products of numbers in float64, in any order, is off by at most

    (k + 2)·u·Σ_p |x_p·w_p|,

as long as k·u is small. The loops named ``precise`` keep the rounding errors of all products and
sums and add them up, too (Ogita, Rump & Oishi 2005, "Accurate sum and dot product", Dot2): the
result is high + low, off by at most 2((k + 3)·u)²·Σ_p |x_p·w_p|.

``w`` is (n, K) and results are (rows, K) for K outputs; ``start`` (K,) is added to every row.
``errors`` gets the bounds.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit

ROUNDING = 2.0**-53
# Rounding errors of a few operations, and of a sum that numpy takes in pairs, generously.
FEW, MANY = 8, 64
# A little more than what is lost by computing the bounds themselves in float64.
ABOVE = 1.0 + 2.0**-20
# Splits a number of 53 bits into two of 26.
SPLITTER = 134217729.0


@jit(reassociate=True)
def csr_scores(values, indices, starts, w, start, scores, errors):
    """scores[i] = start + Σ_p values[p]·w[indices[p]] over the non-zeros p of row i."""
    for i in range(scores.shape[0]):
        first = np.uint64(starts[i])
        last = np.uint64(starts[i + 1])
        terms = np.float64(last - first) + 3.0
        for c in range(w.shape[1]):
            total = start[c]
            size = abs(start[c])
            for p in range(first, last):
                product = values[p] * w[indices[p], c]
                total += product
                size += abs(product)
            scores[i, c] = total
            errors[i, c] = ABOVE * ROUNDING * terms * size


@jit(reassociate=True)
def dense_scores(x, w, start, scores, errors):
    """The same for dense rows."""
    terms = np.float64(x.shape[1]) + 3.0
    for i in range(scores.shape[0]):
        for c in range(w.shape[1]):
            total = start[c]
            size = abs(start[c])
            for j in range(x.shape[1]):
                product = x[i, j] * w[j, c]
                total += product
                size += abs(product)
            scores[i, c] = total
            errors[i, c] = ABOVE * ROUNDING * terms * size


@jit
def column_scores(xt, first, w, start, scores, errors):
    """The same for the rows from ``first`` on of a column-major array, held as its transpose."""
    terms = np.float64(xt.shape[0]) + 3.0
    for c in range(w.shape[1]):
        for i in range(scores.shape[0]):
            scores[i, c] = start[c]
            errors[i, c] = abs(start[c])
        for j in range(xt.shape[0]):
            weight = w[j, c]
            for i in range(scores.shape[0]):
                product = xt[j, first + i] * weight
                scores[i, c] += product
                errors[i, c] += abs(product)
        for i in range(scores.shape[0]):
            errors[i, c] *= ABOVE * ROUNDING * terms


@jit
def add_product(high, low, x, w):
    """high + low + x·w, exactly but for the last sum, of what is small."""
    product = x * w
    t = SPLITTER * x
    x_high = t - (t - x)
    x_low = x - x_high
    t = SPLITTER * w
    w_high = t - (t - w)
    w_low = w - w_high
    lost = x_low * w_low - (((product - x_high * w_high) - x_low * w_high) - x_high * w_low)
    total = high + product
    t = total - high
    lost += (high - (total - t)) + (product - t)
    return total, low + lost, abs(product)


@jit
def _finish(total, lost, size, terms):
    """A sum and its small part so that the first is the nearest number, and the bound."""
    high = total + lost
    low = (total - high) + lost
    rest = ROUNDING * terms
    return high, low, ABOVE * 2.0 * rest * rest * size


@jit
def precise_csr_scores(values, indices, starts, w, start, high, low, errors):
    """high + low = the scores of ``csr_scores``, to twice the digits."""
    for i in range(high.shape[0]):
        first = np.uint64(starts[i])
        last = np.uint64(starts[i + 1])
        terms = np.float64(last - first) + 4.0
        for c in range(w.shape[1]):
            total = start[c]
            lost = 0.0
            size = abs(total)
            for p in range(first, last):
                total, lost, part = add_product(
                    total, lost, np.float64(values[p]), w[indices[p], c]
                )
                size += part
            high[i, c], low[i, c], errors[i, c] = _finish(total, lost, size, terms)


@jit
def precise_dense_scores(x, w, start, high, low, errors):
    """The same for dense rows."""
    terms = np.float64(x.shape[1]) + 4.0
    for i in range(high.shape[0]):
        for c in range(w.shape[1]):
            total = start[c]
            lost = 0.0
            size = abs(total)
            for j in range(x.shape[1]):
                total, lost, part = add_product(total, lost, np.float64(x[i, j]), w[j, c])
                size += part
            high[i, c], low[i, c], errors[i, c] = _finish(total, lost, size, terms)


@jit
def precise_column_scores(xt, first, w, start, high, low, errors):
    """The same for the rows from ``first`` on of a column-major array."""
    terms = np.float64(xt.shape[0]) + 4.0
    for c in range(w.shape[1]):
        for i in range(high.shape[0]):
            high[i, c] = start[c]
            low[i, c] = 0.0
            errors[i, c] = abs(start[c])
        for j in range(xt.shape[0]):
            weight = w[j, c]
            for i in range(high.shape[0]):
                high[i, c], low[i, c], part = add_product(
                    high[i, c], low[i, c], np.float64(xt[j, first + i]), weight
                )
                errors[i, c] += part
        for i in range(high.shape[0]):
            high[i, c], low[i, c], errors[i, c] = _finish(
                high[i, c], low[i, c], errors[i, c], terms
            )
