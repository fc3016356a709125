"""Stochastic subgradient steps on λ/2·|w|² + mean of weight·loss, one row at a time.

Row i, visited as step t with rate η = 1/(λt), moves w by

    w ← (1 − 1/t)·w + η·weight_i·u·y_i·x_i,     u = −loss'(y_i·score_i) ≥ 0,

and then back onto the ball |w|² ≤ ``squared_radius`` (infinite for no ball). A pass stores w as
scale·v, so shrinking and projecting cost one multiplication. At the end of the pass the scale is
multiplied into w.

The slope of the squared hinge has no bound, so its steps diverge if η·weight·|x|² is much larger
than 1/2, the step to the row's own minimum. With ``capped`` no step goes beyond this minimum. The
ball does not limit the bias, so the steps of the bias are capped in this way for every loss.

Rows are flat: row i is ``values[starts[i]:starts[i + 1]]``, at the columns ``indices``, or at all
columns if ``indices`` is None, for dense rows.
"""

from __future__ import annotations

import math

import numpy as np

from .. import losses
from .._jit import jit
from .flat_rows import add, dot

STEP, BIAS = 0, 1
SMALLEST_SCALE = 1e-100
LONGEST_STEP = 0.5  # η·weight·|x|² that leads to the squared hinge's minimum


@jit(reassociate=True)
def _squares(values, first, stop):
    """Σ values² from first to stop."""
    total = 0.0
    for p in range(first, stop):
        total += np.float64(values[p]) * values[p]
    return total


@jit(reassociate=True)
def visit(
    values,
    indices,
    starts,
    order,
    labels,
    weights,
    loss,
    decay,
    constant,
    bias_rate,
    squared_radius,
    capped,
    w,
    state,
    coef,
):
    """Take a step at each row of ``order``.

    ``labels`` are ±1. ``weights`` average 1 over the visited rows. ``decay`` is λ. ``constant`` is
    the value of the constant feature, whose weight is the last entry of w; 0 for no such feature.
    ``bias_rate`` is the rate of the unregularised bias as a part of η; 0 leaves the bias alone.
    ``state`` is (t, bias). ``coef`` gets −y·u, or the part of it that a capped step used, because w
    is a sum of these −coef·x.
    """
    t = state[STEP]
    bias = state[BIAS]
    scale = 1.0
    squared_norm = _squares(w, 0, w.shape[0])
    last = w.shape[0] - 1
    projected = squared_radius < math.inf
    measured = projected or capped
    for i in order:
        first = np.uint64(starts[i])
        stop = np.uint64(starts[i + 1])
        y = labels[i]
        product = dot(values, indices, first, stop, w)
        if constant != 0.0:
            product += constant * w[last]
        score = scale * product
        slope = -losses.slope(loss, y * (score + bias))
        coef[i] = -y * slope
        t += 1.0
        if t > 1.0:  # the first step would shrink by 0, but w is 0 there
            shrink = 1.0 - 1.0 / t
            scale *= shrink
            score *= shrink
            squared_norm *= shrink * shrink
        if slope > 0.0:
            rate = weights[i] / (decay * t)
            bias += min(bias_rate * rate, LONGEST_STEP) * slope * y
            squares = 0.0
            if measured:
                squares = _squares(values, first, stop) + constant * constant
            if capped and rate * squares > LONGEST_STEP:
                coef[i] *= LONGEST_STEP / (rate * squares)
                rate = LONGEST_STEP / squares
            move = rate * slope * y
            add(values, indices, first, stop, move / scale, w)
            if constant != 0.0:
                w[last] += move / scale * constant
            if projected:
                squared_norm += move * (2.0 * score + move * squares)
                if squared_norm > squared_radius:
                    scale *= math.sqrt(squared_radius / squared_norm)
                    squared_norm = squared_radius
        if scale < SMALLEST_SCALE:
            w *= scale
            scale = 1.0
    w *= scale
    state[STEP] = t
    state[BIAS] = bias


@jit
def shuffle_csr(values, indices, starts, places, new_starts, new_values, new_indices):
    """Copy row i to row places[i] of a matrix whose ``new_starts`` are set; −1 drops it."""
    for i in range(places.shape[0]):
        if places[i] >= 0:
            q = new_starts[places[i]]
            for p in range(starts[i], starts[i + 1]):
                new_values[q] = values[p]
                new_indices[q] = indices[p]
                q += 1
