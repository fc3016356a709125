"""Violated pairs of two levels, one of few rows and one of many, which need no sort.

The few are sorted: ``keys``, (few,), ascending. A row of the many finds its place among
them, the number of keys below it, through a table of even cells over their range:
``table``[c] is the first key in cell c or beyond, and only keys of its own cell are
compared. All rows behind or before the place are violated pairs, so that sums of
weights by place, ``before``, (few + 1,), serve the many, and a histogram of the
places of the many serves the few.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit


@jit
def locate(
    scores, rows, weights, first, last, shift, ties, keys, low, scale, table, places, histogram
):
    """Places of rows first … last − 1 of the many, and their weights by place.

    A row's place is the number of keys below score − shift; with ``ties`` of keys up to it.
    ``keys`` has two more at the end, which are not numbers, so that no score is above them.
    """
    one = np.uint32(1)
    last_cell = float(table.shape[0] - 2)
    for p in range(first, last):
        x = scores[rows[p]] - shift
        position = (x - low) * scale
        position = position if position > 0.0 else 0.0
        position = position if position < last_cell else last_cell
        cell = np.uint32(np.int32(position))
        start = table[cell]
        stop = table[cell + one]
        k = np.uint32(start)
        place = start
        if stop - start <= 2:  # nearly always; a key beyond the cell is above x
            place += 1 if (keys[k] < x) | (ties & (keys[k] == x)) else 0
            place += 1 if (keys[k + one] < x) | (ties & (keys[k + one] == x)) else 0
        else:
            while place < stop:
                middle = (place + stop) // 2
                if keys[middle] < x or (ties and keys[middle] == x):
                    place = middle + 1
                else:
                    stop = middle
        places[p] = place
    for p in range(first, last):
        histogram[places[p]] += weights[p]


@jit
def spread_many(scores, rows, weights, first, last, places, before, sign, reference, factor, coef):
    """Coefficients of rows first … last − 1 of the many.

    Their counts are before[place], all that remains if sign < 0. Returns Σ w·count and
    Σ ±w·count·(score − reference).
    """
    total = before[before.shape[0] - 1]
    mass = 0.0
    product = 0.0
    for p in range(first, last):
        below = before[places[p]]
        count = weights[p] * (below if sign > 0.0 else total - below)
        mass += count
        product += sign * count * (scores[rows[p]] - reference)
        coef[rows[p]] = factor * sign * count
    return mass, product


@jit
def spread_few(scores, rows, weights, order, histogram, sign, reference, factor, coef):
    """Coefficients of the few, as ``spread_many``: with ``order`` from key to row.

    sign < 0: their counts are the many of a place behind theirs, else up to theirs.
    """
    mass = 0.0
    product = 0.0
    count = 0.0
    few = order.shape[0]
    for step in range(few):
        k = few - 1 - step if sign < 0.0 else step
        count += histogram[k + 1] if sign < 0.0 else histogram[k]
        p = order[k]
        weighted = weights[p] * count
        mass += weighted
        product += sign * weighted * (scores[rows[p]] - reference)
        coef[rows[p]] = factor * sign * weighted
    return mass, product
