"""The smoothed loss over rows, its second derivatives, and Newton's method in one call.

A row has a score s, a label or target y, z = ±s or s − y, and a weight. Its slope u(z) is that of
the smoothed loss (see ``losses``): the loss itself where that is smooth, and otherwise

    max_u  u·z − ℓ*(u) − ½·width·(u − shift)².

``coef`` is weight·u·dz/ds, what the row contributes to the gradient in s, and ``bends`` is the
second derivative, weight·du/dz.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import jit
from ..losses import (
    argument,
    direction,
    smoothed_bend,
    smoothed_slope,
    smoothing_cost,
    value,
)
from .products import dense_add_gradient, dense_scores


@jit(reassociate=True)
def look(loss, width, scores, bias, labels, weights, shift, coef, bends):
    """Fill in coef and bends at scores + bias.

    Returns Σ weight·ℓ(z), how much this exceeds the plane of the coefficients, and the sums of
    coef and of bends, which are the derivatives in the bias.
    """
    total = 0.0
    slack = 0.0
    slope = 0.0
    bend = 0.0
    for i in range(scores.shape[0]):
        y = labels[i]
        z = argument(loss, scores[i] + bias, y)
        u = smoothed_slope(loss, shift[i], z, width)
        bends[i] = weights[i] * smoothed_bend(loss, shift[i], z, width, u)
        coef[i] = weights[i] * u * direction(loss, y)
        lost = value(loss, z)
        total += weights[i] * lost
        slack += weights[i] * smoothing_cost(loss, z, u, lost)
        slope += coef[i]
        bend += bends[i]
    return total, slack, slope, bend


@jit(reassociate=True)
def slope_along(loss, width, scores, ways, step, bias, labels, weights, shift):
    """Σ coef·way at scores + step·ways + bias."""
    total = 0.0
    for i in range(scores.shape[0]):
        z = argument(loss, scores[i] + step * ways[i] + bias, labels[i])
        u = smoothed_slope(loss, shift[i], z, width)
        total += weights[i] * u * direction(loss, labels[i]) * ways[i]
    return total


@jit
def shift_to(loss, coef, labels, weights, shift):
    """shift = u of the coefficients; as it is for rows that do not count."""
    for i in range(coef.shape[0]):  # no branch, for vector instructions
        u = coef[i] * direction(loss, labels[i]) / weights[i]
        shift[i] = u if weights[i] > 0.0 else shift[i]


@jit
def step_duals(loss, unit, coef, bends, ways, labels, weights, low, high, out):
    """out = coef after a full step along the ways, if slopes were linear, within low ≤ u ≤ high.

    The slopes of coef change by unit·bends. Returns how many rows the ends of the domain have held.
    """
    held = 0
    for i in range(coef.shape[0]):
        weight = weights[i] * direction(loss, labels[i])
        u = (coef[i] + unit * bends[i] * ways[i]) / weight
        inside = min(max(u, low), high)
        out[i] = weight * inside if weights[i] > 0.0 else 0.0
        held += u != inside
    return held


@jit
def weigh_by_room(loss, unit, coef, bends, ways, labels, weights, low, high, out):
    """out = bends, but so much less that a step along the ways takes half a row's room at most.

    The room of a row is what separates its u from the nearest end of the domain. Returns how many
    rows would be out of the domain after a full step.
    """
    over = 0
    for i in range(coef.shape[0]):
        weight = weights[i] * direction(loss, labels[i])
        u = coef[i] / weight
        step = abs(unit * bends[i] * ways[i] / weight)
        room = max(0.0, min(u - low, high - u))
        out[i] = bends[i] if 2.0 * step <= room else bends[i] * (0.5 * room / step)
        over += step > room
    return over


@jit
def add_squares(values, indices, starts, rows, bends, constant, half):
    """half += Σ bend·x xᵀ over some sparse rows, every pair of columns on one side of the diagonal.

    A last column stands for a feature of value ``constant``, if that is not 0.
    """
    n = np.uint64(half.shape[0])
    flat = half.reshape(half.shape[0] * half.shape[0])
    last = n * (n - np.uint64(1))
    one = np.uint64(1)
    for k in range(rows.shape[0]):
        i = rows[k]
        bend = bends[i]
        first = np.uint64(starts[i])
        stop = np.uint64(starts[i + 1])
        p = first
        while p < stop:
            factor = bend * values[p]
            row = n * np.uint64(indices[p])
            q = first
            while q <= p:
                flat[row + np.uint64(indices[q])] += factor * values[q]
                q += one
            if constant != 0.0:
                flat[last + np.uint64(indices[p])] += factor * constant
            p += one
        if constant != 0.0:
            flat[n * n - one] += bend * constant * constant


@jit
def add_diagonal(values, indices, starts, bends, out):
    """out += the diagonal of Σ bend·x xᵀ over sparse rows."""
    for i in range(bends.shape[0]):
        for p in range(starts[i], starts[i + 1]):
            out[indices[p]] += bends[i] * values[p] * values[p]


# Dense rows are read from memory once, and four at a time read and write the vectors together. The
# last row may come twice, the second time with the factor 0.


@jit
def dense_add_moments(x, bends, first, second):
    """first += Σ bend·x and second += Σ bend·x², by feature."""
    n, d = x.shape
    for i in range(0, n, 4):
        k1, k2, k3 = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        b0 = bends[i]
        b1 = bends[k1] if i + 1 < n else 0.0
        b2 = bends[k2] if i + 2 < n else 0.0
        b3 = bends[k3] if i + 3 < n else 0.0
        for j in range(d):
            t0, t1, t2, t3 = b0 * x[i, j], b1 * x[k1, j], b2 * x[k2, j], b3 * x[k3, j]
            first[j] += (t0 + t1) + (t2 + t3)
            second[j] += (t0 * x[i, j] + t1 * x[k1, j]) + (t2 * x[k2, j] + t3 * x[k3, j])


@jit(reassociate=True)
def dense_add_product(x, direction, offset, bends, ways, out):
    """ways = X·direction + offset, out += Σ bend·way·x."""
    n, d = x.shape
    for i in range(0, n, 4):
        k1, k2, k3 = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        s0 = offset
        s1 = offset
        s2 = offset
        s3 = offset
        for j in range(d):
            v = direction[j]
            s0 += x[i, j] * v
            s1 += x[k1, j] * v
            s2 += x[k2, j] * v
            s3 += x[k3, j] * v
        ways[i], ways[k1], ways[k2], ways[k3] = s0, s1, s2, s3
        s0 *= bends[i]
        s1 *= bends[k1] if i + 1 < n else 0.0
        s2 *= bends[k2] if i + 2 < n else 0.0
        s3 *= bends[k3] if i + 3 < n else 0.0
        for j in range(d):
            out[j] += (s0 * x[i, j] + s1 * x[k1, j]) + (s2 * x[k2, j] + s3 * x[k3, j])


# -- small data ---------------------------------------------------------------------------
# Slices and whole-array operations would take longer to compile than to run.


@jit(reassociate=True)
def _settle(loss, width, scores, bias, free, labels, weights, shift, coef, bends, sums):
    """As ``look``, but first move a free bias so that Σ coef = 0; returns the bias.

    ``sums`` are Σ weight·ℓ(z), its distance from the plane, and Σ weight.
    """
    low = -math.inf
    high = math.inf
    reach = 10.0
    for _ in range(100):
        balance = 0.0
        bend = 0.0
        total = 0.0
        slack = 0.0
        scale = 0.0
        for i in range(scores.shape[0]):
            y = labels[i]
            z = argument(loss, scores[i] + bias, y)
            u = smoothed_slope(loss, shift[i], z, width)
            bends[i] = weights[i] * smoothed_bend(loss, shift[i], z, width, u)
            coef[i] = weights[i] * u * direction(loss, y)
            lost = value(loss, z)
            total += weights[i] * lost
            slack += weights[i] * smoothing_cost(loss, z, u, lost)
            balance += coef[i]
            bend += bends[i]
            scale += weights[i]
        sums[0] = total
        sums[1] = slack
        sums[2] = scale
        if not free or not abs(balance) > 1e-14 * scale:
            break
        if balance < 0.0:
            low = bias
        else:
            high = bias
        step = -balance / bend if bend > 0.0 else -math.copysign(reach, balance)
        if abs(step) <= 1e-15 * max(1.0, abs(bias)):  # bias + step may be the same number
            break
        new = bias + min(max(step, -reach), reach)
        new = new if low < new < high else 0.5 * (low + high)
        if abs(new - bias) <= 1e-15 * max(1.0, abs(bias)):
            break
        bias = new
        reach *= 4.0
    return bias


@jit(reassociate=True)
def _add_dense_squares(x, bends, free, rows, matrix):
    """matrix = the lower triangle of I + Σ bend·x xᵀ, four rows at a time; a free bias is last."""
    n, d = x.shape
    size = matrix.shape[0]
    for p in range(size):
        for q in range(p + 1):
            matrix[p, q] = 1.0 if p == q < d else 0.0
    k = 0
    while k < n:
        for count in range(4):
            while k < n and bends[k] == 0.0:
                k += 1
            i = min(k, n - 1)
            root = math.sqrt(bends[i]) if k < n else 0.0
            for j in range(d):
                rows[count, j] = root * x[i, j]
            if free:
                rows[count, d] = root
            k += 1
        for p in range(size):
            a, b, c, e = rows[0, p], rows[1, p], rows[2, p], rows[3, p]
            for q in range(p + 1):
                matrix[p, q] += a * rows[0, q] + b * rows[1, q] + c * rows[2, q] + e * rows[3, q]


@jit(reassociate=True)
def _solve(matrix, x):
    """Overwrite x by the solution, and the lower triangle by its Cholesky factor."""
    n = matrix.shape[0]
    for j in range(n):
        for k in range(j + 1):
            total = matrix[j, k]
            for q in range(k):
                total -= matrix[j, q] * matrix[k, q]
            if k < j:
                matrix[j, k] = total / matrix[k, k]
            else:
                # If nothing is left, through rounding or because the bias moves no row, take a
                # huge pivot, so that this variable does not move.
                matrix[j, j] = math.sqrt(total) if total > 0.0 else 1e150
        total = x[j]
        for q in range(j):
            total -= matrix[j, q] * x[q]
        x[j] = total / matrix[j, j]
    for j in range(n - 1, -1, -1):
        x[j] /= matrix[j, j]
        for q in range(j):
            x[q] -= matrix[j, q] * x[j]


@jit(reassociate=True)
def _search(loss, width, scores, ways, bias, labels, weights, shift, first, mixed, squared, little):
    """The step at which the derivative along the ways is small against that at 0, at most 1."""
    low = 0.0
    high = 1.0
    at_low = first
    at_high = 0.0
    step = 1.0
    for turn in range(12):
        here = mixed + step * squared
        for i in range(scores.shape[0]):
            z = argument(loss, scores[i] + step * ways[i] + bias, labels[i])
            u = smoothed_slope(loss, shift[i], z, width)
            here += weights[i] * u * direction(loss, labels[i]) * ways[i]
        if abs(here) <= little * abs(first) or (turn == 0 and here < 0.0):
            break
        if here < 0.0:
            low = step
            at_low = here
            at_high *= 0.5
        else:
            high = step
            at_high = here
            at_low *= 0.5 if turn > 0 else 1.0
        step = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
    return step


def small_space(rows, features, free):
    """Work arrays for ``small_newton``. Allocating them there would take long to compile."""
    size = features + 1 if free else features
    by_row = (np.empty(rows) for _ in range(3))
    return (
        *by_row, np.empty(features), np.empty(size), np.empty(3), np.empty((4, size)),
        np.empty((size, size)),
    )  # fmt: skip


@jit(reassociate=True)
def small_newton(
    loss, x, labels, weights, free, relative, absolute, narrower, little, most, state, w, scores,
    shift, best_w, best_coef, history, space,
):  # fmt: skip
    """Newton's method on dense rows; see ``solvers.newton`` for the method.

    Continues from ``state`` until the gap is small enough, or for at most ``most`` steps. Breaks do
    not change the bits.

    Parameters
    ----------
    weights : ndarray
        The costs C_i.
    state : ndarray
        width, bias, primal, bias of the best point, dual, whether the width is a new one.
    w, scores, shift : ndarray
        Where it is; scores are without the bias.
    best_w, best_coef : ndarray
        The points of the primal and of the dual.
    history : ndarray, shape (most, 4)
        By step: primal and dual, objective where it leads, its length.
    space : tuple of ndarray
        As ``small_space`` makes it.

    Returns
    -------
    steps : int
    """
    n, d = x.shape
    coef, bends, ways, gradient, way, sums, rows, matrix = space
    width, bias, step = state[0], state[1], 0.0
    steps = 0
    narrowed = state[5] != 0.0
    moved = state[2] == math.inf  # since the bias was the best one
    while True:
        # The smoothed loss, its slopes as a dual point, and the certificate.
        bias = _settle(
            loss, width, scores, bias, free and moved, labels, weights, shift, coef, bends, sums
        )  # fmt: skip
        for j in range(d):
            gradient[j] = w[j]
        dense_add_gradient(x, coef, gradient)
        squared = 0.0
        apart = 0.0
        for j in range(d):
            squared += w[j] * w[j]
            apart += 0.5 * gradient[j] * gradient[j]
        objective = 0.5 * squared + sums[0]
        dual = objective - apart - sums[1]
        if objective < state[2]:
            state[2] = objective
            state[3] = bias
            for j in range(d):
                best_w[j] = w[j]
        if dual > state[4]:
            state[4] = dual
            for i in range(n):
                best_coef[i] = coef[i]
        if steps > 0:
            history[steps - 1, 0] = state[2]
            history[steps - 1, 1] = state[4]
            history[steps - 1, 2] = objective
            history[steps - 1, 3] = step
        state[0] = width
        state[1] = bias
        state[5] = narrowed
        if state[2] - state[4] <= max(relative * state[2], absolute):
            return steps
        moved = True
        if apart <= sums[1] and not narrowed:
            width *= narrower
            for i in range(n):
                u = coef[i] * direction(loss, labels[i]) / weights[i]
                shift[i] = u if weights[i] > 0.0 else shift[i]
            narrowed = True
            continue
        if steps >= most:
            return steps
        # A step.
        narrowed = False
        steps += 1
        _add_dense_squares(x, bends, free, rows, matrix)
        for j in range(d):
            way[j] = -gradient[j]
        if free:
            way[d] = 0.0
        _solve(matrix, way)
        dense_scores(x, way, ways)
        first = 0.0
        mixed = 0.0
        squared = 0.0
        for j in range(d):
            first += gradient[j] * way[j]
            mixed += w[j] * way[j]
            squared += way[j] * way[j]
        bias_way = way[d] if free else 0.0
        for i in range(n):
            ways[i] += bias_way
        step = _search(
            loss, width, scores, ways, bias, labels, weights, shift, first, mixed, squared, little
        )  # fmt: skip
        for j in range(d):
            w[j] += step * way[j]
        for i in range(n):
            scores[i] += step * (ways[i] - bias_way)
        bias += step * bias_way
