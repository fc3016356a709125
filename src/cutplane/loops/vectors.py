"""Dense vectors of the bundle: products with many rows, combinations, blends.

``rows`` is (t, n); the functions work on columns first..last so that wide
vectors can be shared among threads.
"""

from __future__ import annotations

from .._jit import jit

STRIP = 2048


@jit(reassociate=True)
def add_dots(rows, vector, first, last, out):
    """out[j] += <rows[j], vector> over the columns first..last."""
    for j in range(rows.shape[0]):
        s = 0.0
        for i in range(first, last):
            s += rows[j, i] * vector[i]
        out[j] += s


@jit
def add_tree(rows, begins, merges, top, first, last, stack):
    """Add rows one after the other to sums on a stack, over the columns first..last.

    A row with ``begins`` starts a new sum; other rows are added to the topmost sum. Then the two
    topmost sums are added, ``merges`` times. ``top`` is the number of sums before; the function
    returns their number after.
    """
    for j in range(rows.shape[0]):
        left = merges[j]
        if begins[j] and (left == 0 or top == 0):
            for i in range(first, last):
                stack[top, i] = rows[j, i]
            top += 1
        else:
            for i in range(first, last):
                stack[top - 1, i] += rows[j, i]
            left -= begins[j]  # a sum of its own, which is added up at once
        for _ in range(left):
            top -= 1
            for i in range(first, last):
                stack[top - 1, i] += stack[top, i]
    return top


@jit
def combine_strips(rows, coef, out):
    """out = Σ_j coef[j]·rows[j] in strips of columns, whose sums stay in the first cache."""
    count, size = rows.shape
    whole = count - count % 4
    for first in range(0, size, STRIP):
        last = min(first + STRIP, size)
        for i in range(first, last):
            out[i] = 0.0
        for j in range(0, whole, 4):
            c0, c1, c2, c3 = coef[j], coef[j + 1], coef[j + 2], coef[j + 3]
            for i in range(first, last):
                near = c0 * rows[j, i] + c1 * rows[j + 1, i]
                out[i] += near + (c2 * rows[j + 2, i] + c3 * rows[j + 3, i])
        for j in range(whole, count):
            c0 = coef[j]
            for i in range(first, last):
                out[i] += c0 * rows[j, i]


@jit(reassociate=True)
def line_products(start, end):
    """|start|², <start, way> and |way|² of the way from start to end, for flat arrays."""
    squared = 0.0
    mixed = 0.0
    way_squared = 0.0
    for i in range(start.shape[0]):
        way = end[i] - start[i]
        squared += start[i] * start[i]
        mixed += start[i] * way
        way_squared += way * way
    return squared, mixed, way_squared


@jit
def blend(start, end, k, out):
    """out = start + k(end − start), for flat arrays; out may be one of them."""
    for i in range(start.shape[0]):
        out[i] = start[i] + k * (end[i] - start[i])


@jit
def take_changes(coef, last, changes):
    """changes = coef − last, last = coef; returns how many are not zero, and how many of coef."""
    changed = 0
    active = 0
    for i in range(coef.shape[0]):
        change = coef[i] - last[i]
        changes[i] = change
        last[i] = coef[i]
        changed += 1 if change != 0.0 else 0
        active += 1 if coef[i] != 0.0 else 0
    return changed, active
