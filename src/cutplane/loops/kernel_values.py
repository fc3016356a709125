"""Kernel values from inner products, inner products of sparse rows, and squared distances.

Each ``*_values`` function reads a block of inner products, ``products`` (q, width), and writes the
kernel values of row k into ``out[slots[k], first:first + width]``. ``out`` is float32 or float64,
and ``products`` has its type. ``left`` and ``right`` are the squared norms of the rows and of the
columns, in float64. All these functions take the same arguments, whichever of them they need.

The loops contain the exponential function themselves, because the compiler does not vectorise a
loop that calls ``math.exp``: x = n·ln 2 + r with |r| ≤ ½ ln 2, exp(r) is a polynomial or a ratio of
polynomials (Cephes), and n becomes the exponent's bits.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit

# ln 2 in two parts, the first with few bits, so that n·LN2_HIGH is exact.
LN2_HIGH_32 = np.float32(0.693359375)
LN2_LOW_32 = np.float32(-2.12194440e-4)
LN2_HIGH_64 = 6.93145751953125e-1
LN2_LOW_64 = 1.42860682030941723212e-6
LOG2_E = 1.4426950408889634


@jit
def rbf_values_32(products, left, right, gamma, coef0, degree, slots, first, out):
    """exp(−gamma·|x − z|²) in float32."""
    own = np.empty(left.shape[0], np.float32)
    other = np.empty(right.shape[0], np.float32)
    _scale(left, gamma, own)
    _scale(right, gamma, other)
    _rbf_32(products, own, other, gamma, slots, first, out)


@jit
def rbf_values_64(products, left, right, gamma, coef0, degree, slots, first, out):
    """exp(−gamma·|x − z|²) in float64."""
    own = np.empty(left.shape[0])
    other = np.empty(right.shape[0])
    _scale(left, gamma, own)
    _scale(right, gamma, other)
    _rbf_64(products, own, other, gamma, slots, first, out)


@jit
def power_values(products, left, right, gamma, coef0, degree, slots, first, out):
    """(gamma·products + coef0)^degree for an integer degree ≥ 0."""
    for k in range(products.shape[0]):
        source = products[k]
        target = out[slots[k], first : first + products.shape[1]]
        target[:] = 1.0
        for _ in range(degree):
            for j in range(source.shape[0]):
                target[j] *= gamma * source[j] + coef0


@jit
def _scale(norms, gamma, out):
    """out = gamma·norms."""
    for k in range(norms.shape[0]):
        out[k] = gamma * norms[k]


@jit(reassociate=True)
def _rbf_32(products, left, right, scale, slots, first, out):
    """exp(2·scale·products − left − right) in float32. left and right are scale·|row|²."""
    zero = np.float32(0.0)
    lowest = np.float32(-87.0)
    double = np.float32(2.0 * scale)
    for k in range(products.shape[0]):
        own = left[k]
        source = products[k]
        target = out[slots[k], first : first + products.shape[1]]
        for j in range(source.shape[0]):
            x = max(min(double * source[j] - own - right[j], zero), lowest)
            n = np.floor(x * np.float32(LOG2_E) + np.float32(0.5))
            r = (x - n * LN2_HIGH_32) - n * LN2_LOW_32
            p = np.float32(1.9875691500e-4)
            p = p * r + np.float32(1.3981999507e-3)
            p = p * r + np.float32(8.3334519073e-3)
            p = p * r + np.float32(4.1665795894e-2)
            p = p * r + np.float32(1.6666665459e-1)
            p = p * r + np.float32(5.0000001201e-1)
            p = p * r * r + r + np.float32(1.0)
            bits = np.int32((np.int32(n) + np.int32(127)) << np.int32(23))
            target[j] = p * bits.view(np.float32)


@jit(reassociate=True)
def _rbf_64(products, left, right, scale, slots, first, out):
    """As ``_rbf_32``, in float64."""
    for k in range(products.shape[0]):
        own = left[k]
        source = products[k]
        target = out[slots[k], first : first + products.shape[1]]
        for j in range(source.shape[0]):
            x = max(min(2.0 * scale * source[j] - own - right[j], 0.0), -708.0)
            n = np.floor(x * LOG2_E + 0.5)
            r = (x - n * LN2_HIGH_64) - n * LN2_LOW_64
            # exp(r) = 1 + 2·rP(r²) / (Q(r²) − rP(r²))
            rr = r * r
            top = 1.26177193074810590878e-4
            top = top * rr + 3.02994407707441961300e-2
            top = (top * rr + 9.99999999999999999910e-1) * r
            low = 3.00198505138664455042e-6
            low = low * rr + 2.52448340349684104192e-3
            low = low * rr + 2.27265548208155028766e-1
            low = low * rr + 2.00000000000000000005e0
            p = 1.0 + 2.0 * top / (low - top)
            bits = np.int64((np.int64(np.int32(n)) + np.int64(1023)) << np.int64(52))
            target[j] = p * bits.view(np.float64)


@jit
def sparse_products(values, indices, starts, right, right_rows, right_starts, products):
    """products[k, j] += <row k, row j of the right side>. The right side is stored by feature."""
    for k in range(products.shape[0]):
        line = products[k]
        for p in range(starts[k], starts[k + 1]):
            v = values[p]
            feature = indices[p]
            for r in range(right_starts[feature], right_starts[feature + 1]):
                line[np.uint64(right_rows[r])] += v * right[r]  # unsigned: no wrap-around check


@jit
def squared_distances(left, right, first, products):
    """products[k, j] = |left_k − right_(first + j)|² from differences, without cancellation."""
    for k in range(products.shape[0]):
        for j in range(products.shape[1]):
            total = 0.0
            for f in range(left.shape[1]):
                d = left[k, f] - right[first + j, f]
                total += d * d
            products[k, j] = total
