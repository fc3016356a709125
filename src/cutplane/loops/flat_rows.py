"""The product of a row of a flat matrix with a vector, and adding a row to a vector.

The row is ``values[first:stop]`` at the columns ``indices[first:stop]``, or at all columns where
``indices`` is None, for dense rows. ``first`` and ``stop`` are unsigned, which spares the check for
negative indices.

These functions are inlined into the kernels that call them, because a call would count references
to its arrays, which takes longer than a short row. Sums over dense rows are vectorised if the
kernel allows the compiler to reassociate sums.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit


@jit(inline=True)
def _sparse_dot(values, indices, first, stop, w):
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    p = first
    one = np.uint64(1)
    two = np.uint64(2)
    three = np.uint64(3)
    four = np.uint64(4)
    while p + four <= stop:
        s0 += values[p] * w[indices[p]]
        s1 += values[p + one] * w[indices[p + one]]
        s2 += values[p + two] * w[indices[p + two]]
        s3 += values[p + three] * w[indices[p + three]]
        p += four
    while p < stop:
        s0 += values[p] * w[indices[p]]
        p += one
    return (s0 + s1) + (s2 + s3)


@jit(inline=True)
def _dense_dot(values, first, stop, w):
    s = 0.0
    for j in range(stop - first):
        s += values[first + j] * w[j]
    return s


@jit(inline=True)
def dot(values, indices, first, stop, w):
    """<x, w>."""
    if indices is None:  # numba decides this when it compiles
        return _dense_dot(values, first, stop, w)
    return _sparse_dot(values, indices, first, stop, w)


@jit(inline=True)
def add(values, indices, first, stop, factor, w):
    """w += factor·x."""
    if indices is None:
        for j in range(stop - first):
            w[j] += factor * values[first + j]
    else:
        for p in range(first, stop):
            w[indices[p]] += factor * values[p]
