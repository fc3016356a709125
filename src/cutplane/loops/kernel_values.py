"""From inner products to kernel values, and inner products of sparse rows.

Each ``*_values`` kernel reads a block of inner products ``products`` (q, width) and writes the
kernel values of row k into ``out[slots[k], first:first + width]``. ``out`` is float32 or float64;
products have its type.

exp is written out, because a loop around ``math.exp`` is not vectorised: x = n·ln 2 + r with
|r| ≤ ½ ln 2, then a polynomial in r (Cephes), then n goes into the exponent's bits.
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
PANEL = 16  # rows of a panel of sparse rows
TILE = 16  # rows and columns of a block that is turned over


@jit(reassociate=True)
def rbf_values_32(products, left, right, scale, slots, first, out):
    """exp(2·scale·products − left − right), float32; the norms come times ``scale``."""
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
def rbf_values_64(products, left, right, scale, slots, first, out):
    """The same in float64."""
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
def power_values(products, scale, offset, degree, slots, first, out):
    """(scale·products + offset)^degree for an integer degree ≥ 0."""
    for k in range(products.shape[0]):
        source = products[k]
        target = out[slots[k], first : first + products.shape[1]]
        if degree == 2:
            for j in range(source.shape[0]):
                base = scale * source[j] + offset
                target[j] = base * base
        elif degree == 3:
            for j in range(source.shape[0]):
                base = scale * source[j] + offset
                target[j] = base * base * base
        else:
            for j in range(source.shape[0]):
                base = scale * source[j] + offset
                value = 1.0
                for _ in range(degree):
                    value *= base
                target[j] = value


@jit
def tanh_values(products, scale, offset, slots, first, out):
    """tanh(scale·products + offset)."""
    for k in range(products.shape[0]):
        source = products[k]
        target = out[slots[k], first : first + products.shape[1]]
        for j in range(source.shape[0]):
            target[j] = np.tanh(scale * source[j] + offset)


@jit
def copy_values(products, slots, first, out):
    """The products themselves."""
    for k in range(products.shape[0]):
        out[slots[k], first : first + products.shape[1]] = products[k]


@jit
def fill_panel(values, indices, starts, rows, panel):
    """panel[f, k] = value of feature f in row ``rows[k]``, for up to PANEL rows; panel is zero."""
    for k in range(rows.shape[0]):
        for p in range(starts[rows[k]], starts[rows[k] + 1]):
            panel[indices[p], k] += values[p]


@jit
def clear_panel(indices, starts, rows, panel):
    """Make the panel zero again."""
    for k in range(rows.shape[0]):
        for p in range(starts[rows[k]], starts[rows[k] + 1]):
            panel[indices[p], k] = 0.0


@jit(reassociate=True)
def panel_products(values, indices, starts, panel, first, count, products):
    """products[k, j] = <panel[:, k], row first + j> for the first ``count`` rows of the panel.

    The sums are named one by one, so that they stay in registers as vectors.
    """
    sums = np.empty(PANEL, dtype=panel.dtype)
    zero = panel.dtype.type(0.0)
    for j in range(products.shape[1]):
        s0 = zero
        s1 = zero
        s2 = zero
        s3 = zero
        s4 = zero
        s5 = zero
        s6 = zero
        s7 = zero
        s8 = zero
        s9 = zero
        s10 = zero
        s11 = zero
        s12 = zero
        s13 = zero
        s14 = zero
        s15 = zero
        for p in range(np.uint64(starts[first + j]), np.uint64(starts[first + j + 1])):
            v = values[p]
            line = panel[indices[p]]
            s0 += v * line[0]
            s1 += v * line[1]
            s2 += v * line[2]
            s3 += v * line[3]
            s4 += v * line[4]
            s5 += v * line[5]
            s6 += v * line[6]
            s7 += v * line[7]
            s8 += v * line[8]
            s9 += v * line[9]
            s10 += v * line[10]
            s11 += v * line[11]
            s12 += v * line[12]
            s13 += v * line[13]
            s14 += v * line[14]
            s15 += v * line[15]
        sums[0] = s0
        sums[1] = s1
        sums[2] = s2
        sums[3] = s3
        sums[4] = s4
        sums[5] = s5
        sums[6] = s6
        sums[7] = s7
        sums[8] = s8
        sums[9] = s9
        sums[10] = s10
        sums[11] = s11
        sums[12] = s12
        sums[13] = s13
        sums[14] = s14
        sums[15] = s15
        for k in range(count):
            products[k, j] = sums[k]


@jit
def squared_distances(left, right, first, products):
    """products[k, j] = |left_k − right_(first + j)|², term by term: no cancellation."""
    for k in range(products.shape[0]):
        for j in range(products.shape[1]):
            total = 0.0
            for f in range(left.shape[1]):
                d = left[k, f] - right[first + j, f]
                total += d * d
            products[k, j] = total


@jit
def mirror(matrix, first_row, rows, first_column, columns):
    """Copy a block of a square matrix to the other side of the diagonal, by small tiles."""
    for top in range(first_row, first_row + rows, TILE):
        bottom = min(top + TILE, first_row + rows)
        for left in range(first_column, first_column + columns, TILE):
            right = min(left + TILE, first_column + columns)
            for j in range(left, right):
                for i in range(top, bottom):
                    matrix[j, i] = matrix[i, j]


@jit
def square_of(matrix, rows, out):
    """out[a, b] = matrix[rows[a], rows[b]]; unsigned indices spare the wrap-around check."""
    for a in range(rows.shape[0]):
        source = matrix[rows[a]]
        target = out[a]
        for b in range(rows.shape[0]):
            target[b] = source[np.uint64(rows[b])]
