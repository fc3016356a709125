"""Products X·w of a block of rows with bounds on their rounding error.

With u = 2⁻⁵³ a sum of k products of numbers in float64, in any order, is off by at most

    (k + 2)·u·Σ_p |x_p·w_p|,

as long as k·u is small. ``precise_scores`` keeps the rounding errors of all products and sums and
adds them up, too (Ogita, Rump & Oishi 2005, "Accurate sum and dot product", Dot2): the result is
high + low, off by at most 2((k + 3)·u)²·Σ_p |x_p·w_p|.

Rows are flat, as in ``flat_rows``. ``w`` is (n, K) and results are (rows, K) for K outputs;
``start`` (K,) is added to every row. ``errors`` gets the bounds.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit

ROUNDING = 2.0**-53
# Generous bounds, in units of rounding: for a few operations, and for a sum that numpy adds in
# pairs.
FEW, MANY = 8, 64
# Bounds are multiplied by this, because they are computed in float64 and rounded themselves.
ABOVE = 1.0 + 2.0**-20
# Splits a number of 53 bits into two of 26.
SPLITTER = 134217729.0


@jit(reassociate=True)
def scores(values, indices, starts, w, start, out, errors):
    """out[i] = start + Σ_p values[p]·w[indices[p]] over the stored numbers p of row i."""
    for i in range(out.shape[0]):
        first = np.uint64(starts[i])
        last = np.uint64(starts[i + 1])
        terms = np.float64(last - first) + 3.0
        for c in range(w.shape[1]):
            total = start[c]
            size = abs(start[c])
            for p in range(first, last):
                if indices is None:  # numba decides this when it compiles
                    j = p - first
                else:
                    j = indices[p]
                product = values[p] * w[j, c]
                total += product
                size += abs(product)
            out[i, c] = total
            errors[i, c] = ABOVE * ROUNDING * terms * size


@jit
def add_product(high, low, x, w):
    """high + low + x·w. Only the sum of the small terms has a rounding error."""
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
def precise_scores(values, indices, starts, w, start, high, low, errors):
    """As ``scores``, in twice the digits: the scores are high + low."""
    for i in range(high.shape[0]):
        first = np.uint64(starts[i])
        last = np.uint64(starts[i + 1])
        rest = ROUNDING * (np.float64(last - first) + 4.0)
        for c in range(w.shape[1]):
            total = start[c]
            lost = 0.0
            size = abs(total)
            for p in range(first, last):
                if indices is None:
                    j = p - first
                else:
                    j = indices[p]
                total, lost, part = add_product(total, lost, np.float64(values[p]), w[j, c])
                size += part
            high[i, c] = total + lost  # the nearest number
            low[i, c] = (total - high[i, c]) + lost
            errors[i, c] = ABOVE * 2.0 * rest * rest * size
