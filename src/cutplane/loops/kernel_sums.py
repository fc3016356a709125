"""Sums of RBF kernel values that are not stored, in float32.

    out_j = Σ_k coef_k·2^(<a_k, z_j> − own_k − base_j)

With a_k = 2·scale·x_k, own_k = scale·|x_k|², base_j = scale·|z_j|² and scale = gamma·log2(e) this
is Σ_k coef_k·exp(−gamma·|x_k − z_j|²). A term is one k, a column one j. The functions differ in how
they compute the exponents:

- ``add_near_32`` computes them from differences of up to four features, without cancellation;
- ``add_packed_32`` computes them from the non-zeros of the terms. It takes a strip of columns at a
  time, which it has copied feature by feature. If a term has at most LANES non-zeros, its exponents
  stay in registers;
- ``add_products_32`` takes inner products that the caller has computed.

Every term belongs to a group, in ascending order, and ``out`` has a line of sums per group. Up to
FLUSH terms are summed in float32, as in a float32 product of matrices, and these sums in float64.

A strip is always computed to its full width, so that a column's bits do not depend on its
neighbours. 2^x is 2^n·2^f, where n is the integer nearest to x. 2^f is a polynomial (largest
relative error 8e-8), and n is added to the bits of its exponent.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit

# Non-zeros of a term that one pass over a strip handles.
LANES = 4
# Terms that are summed in float32 before their sum is added in float64.
FLUSH = 64
# Smaller exponents are replaced by this one, because their powers would be subnormal numbers or 0.
LOWEST = np.float32(-125.0)
# The polynomial with the least sum of squared relative errors at Chebyshev's nodes in [−½, ½].
P0 = np.float32(1.0000000710296988)
P1 = np.float32(0.6931469491610627)
P2 = np.float32(0.24022121753561543)
P3 = np.float32(0.05550742616001771)
P4 = np.float32(0.009675459745527526)
P5 = np.float32(0.0013266970386660755)


@jit
def count_lanes(x, counts):
    """counts[k] = non-zeros of row k, rounded up to a multiple of LANES, at least LANES."""
    for k in range(x.shape[0]):
        found = 0
        for f in range(x.shape[1]):
            found += 1 if x[k, f] != 0.0 else 0
        counts[k] = LANES * max(1, (found + LANES - 1) // LANES)


@jit
def pack_rows(x, scale, starts, values, indices):
    """Write the non-zeros of row k, times ``scale``, from ``starts[k]`` on, and fill up with 0."""
    for k in range(x.shape[0]):
        at = starts[k]
        for f in range(x.shape[1]):
            if x[k, f] != 0.0:
                values[at] = scale * x[k, f]
                indices[at] = f
                at += 1
        while at < starts[k + 1]:
            values[at] = 0.0
            indices[at] = 0
            at += 1


@jit(reassociate=True)
def _two_to(x):
    """2^x, as the module describes."""
    n = np.rint(x)
    f = x - n
    p = np.float32(((((P5 * f + P4) * f + P3) * f + P2) * f + P1) * f + P0)
    bits = np.int32(p.view(np.int32) + (np.int32(n) << np.int32(23)))
    return bits.view(np.float32)


@jit(reassociate=True)
def _one_pass(panel, o0, o1, o2, o3, a0, a1, a2, a3, base, own, coef, width, sums):
    """sums += coef·2^(a·r − own − base), where r are the panel's four lines at o0, …, o3."""
    for j in range(width):
        x = a0 * panel[o0 + j] + a1 * panel[o1 + j] + a2 * panel[o2 + j] + a3 * panel[o3 + j]
        x = max(x - base[j] - own, LOWEST)
        sums[j] += coef * _two_to(x)


@jit(reassociate=True)
def _first_pass(panel, o0, o1, o2, o3, a0, a1, a2, a3, base, own, width, x):
    """x = a·r − own − base, with the same r, as the first of several passes."""
    for j in range(width):
        r = a0 * panel[o0 + j] + a1 * panel[o1 + j] + a2 * panel[o2 + j] + a3 * panel[o3 + j]
        x[j] = r - base[j] - own


@jit(reassociate=True)
def _next_pass(panel, o0, o1, o2, o3, a0, a1, a2, a3, width, x):
    """x += a·r, with the same r."""
    for j in range(width):
        r = a0 * panel[o0 + j] + a1 * panel[o1 + j] + a2 * panel[o2 + j] + a3 * panel[o3 + j]
        x[j] += r


@jit(reassociate=True)
def _last_pass(panel, o0, o1, o2, o3, a0, a1, a2, a3, start, coef, width, sums):
    """sums += coef·2^(start + a·r), with the same r, as the last of several passes."""
    for j in range(width):
        x = a0 * panel[o0 + j] + a1 * panel[o1 + j] + a2 * panel[o2 + j] + a3 * panel[o3 + j]
        x = max(x + start[j], LOWEST)
        sums[j] += coef * _two_to(x)


@jit
def _fill_panel(right, norms, scale, begin, width, strip, panel, base):
    """Copy rows to the panel feature by feature, eight rows at a time because caches like it."""
    for j in range(width):
        base[j] = scale * norms[begin + j]
    whole = width - width % 8
    for top in range(0, whole, 8):
        for f in range(right.shape[1]):
            for j in range(top, top + 8):
                panel[f * strip + j] = right[begin + j, f]
    for j in range(whole, width):
        for f in range(right.shape[1]):
            panel[f * strip + j] = right[begin + j, f]


@jit
def _flush(sums, width, line, begin, out):
    for j in range(width):
        out[line, begin + j] += sums[j]
    sums[:] = np.float32(0.0)


@jit
def add_packed_32(
    values, indices, starts, own, coef, groups, right, norms, scale, strip, first, last, out
):
    """out[group of k, j] += coef[k]·2^(...), for the columns first ≤ j < last.

    ``values``, ``indices`` and ``starts`` are the terms as ``pack_rows`` writes them. ``right`` and
    ``norms`` are the rows of the columns and their squared norms. ``strip`` is the number of
    columns that the loop handles at once. The loop over the terms makes no view of an array,
    because counting the view's references would take longer than a pass.
    """
    terms = groups.shape[0]
    panel = np.zeros(right.shape[1] * strip, dtype=np.float32)
    base = np.zeros(strip, dtype=np.float32)
    sums = np.zeros(strip, dtype=np.float32)
    x = np.zeros(strip, dtype=np.float32)
    every, size = np.uint64(strip), np.uint64(strip)
    for begin in range(first, last, strip):
        width = min(strip, last - begin)
        _fill_panel(right, norms, scale, begin, width, strip, panel, base)
        since = 0
        for k in range(terms):
            at, end = starts[k], starts[k + 1]
            for p in range(at, end, LANES):
                a0, a1, a2, a3 = values[p], values[p + 1], values[p + 2], values[p + 3]
                o0 = np.uint64(indices[p]) * size
                o1 = np.uint64(indices[p + 1]) * size
                o2 = np.uint64(indices[p + 2]) * size
                o3 = np.uint64(indices[p + 3]) * size
                if end - at == LANES:
                    _one_pass(
                        panel, o0, o1, o2, o3, a0, a1, a2, a3, base, own[k], coef[k], every, sums
                    )
                elif p == at:
                    _first_pass(panel, o0, o1, o2, o3, a0, a1, a2, a3, base, own[k], every, x)
                elif p + LANES < end:
                    _next_pass(panel, o0, o1, o2, o3, a0, a1, a2, a3, every, x)
                else:
                    _last_pass(panel, o0, o1, o2, o3, a0, a1, a2, a3, x, coef[k], every, sums)
            since += 1
            if since == FLUSH or k == terms - 1 or groups[k + 1] != groups[k]:
                _flush(sums, width, groups[k], begin, out)
                since = 0


@jit(reassociate=True)
def _near_pass(panel, strip, a0, a1, a2, a3, coef, sums):
    """sums += coef·2^−|a − r|², where r are the four lines of the panel."""
    for j in range(strip):
        d0 = a0 - panel[j]
        d1 = a1 - panel[strip + j]
        d2 = a2 - panel[strip + strip + j]
        d3 = a3 - panel[strip + strip + strip + j]
        x = max(-(d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3), LOWEST)
        sums[j] += coef * _two_to(x)


@jit
def add_near_32(left, coef, groups, right, root, strip, first, last, out):
    """out[group of k, j] += coef[k]·2^−|left_k − root·right_j|², for first ≤ j < last.

    ``left`` has four features, ``right`` up to four.
    """
    terms = groups.shape[0]
    panel = np.zeros(LANES * strip, dtype=np.float32)
    sums = np.zeros(strip, dtype=np.float32)
    every = np.uint64(strip)
    for begin in range(first, last, strip):
        width = min(strip, last - begin)
        for j in range(width):
            for f in range(right.shape[1]):
                panel[f * strip + j] = root * right[begin + j, f]
        since = 0
        for k in range(terms):
            a0, a1, a2, a3 = left[k, 0], left[k, 1], left[k, 2], left[k, 3]
            _near_pass(panel, every, a0, a1, a2, a3, coef[k], sums)
            since += 1
            if since == FLUSH or k == terms - 1 or groups[k + 1] != groups[k]:
                _flush(sums, width, groups[k], begin, out)
                since = 0


@jit(reassociate=True)
def _add_powers(products, k, base, own, coef, sums):
    """sums += coef·2^(products[k] − own − base)."""
    for j in range(sums.shape[0]):
        x = max(products[k, j] - base[j] - own, LOWEST)
        sums[j] += coef * _two_to(x)


@jit
def add_products_32(products, own, coef, groups, base, width, out):
    """out[group of k, j] += coef[k]·2^(products[k, j] − own[k] − base[j]) for j < width."""
    terms = groups.shape[0]
    sums = np.zeros(products.shape[1], dtype=np.float32)
    since = 0
    for k in range(terms):
        _add_powers(products, k, base, own[k], coef[k], sums)
        since += 1
        if since == FLUSH or k == terms - 1 or groups[k + 1] != groups[k]:
            _flush(sums, width, groups[k], 0, out)
            since = 0
