"""Products of a block of rows with vectors: X·w and Xᵀ·coef.

Shapes: a block has ``rows`` rows and ``n`` features. ``w`` is ``(n,)`` for one
output, ``(n, K)`` in row-major order for K outputs; scores and coefficients
are ``(rows,)`` and ``(rows, K)`` likewise. CSR blocks come as ``values``,
unsigned ``indices`` and ``starts`` (int64, ``rows + 1``): unsigned indices
spare the wrap-around check that signed ones pay on every access.

Sums run in float64 whatever the type of the data. The loops over sparse rows
are unrolled by hand, because vectorised gathers lose on short rows.

Indicators have rows whose values are all equal, often in all rows. The loops named
``equal`` read one value of such a row, and give the same bits as those that read all.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit


@jit
def csr_scores(values, indices, starts, w, scores):
    """scores[i] = Σ_p values[p]·w[indices[p]] over the non-zeros p of row i."""
    one = np.uint64(1)
    two = np.uint64(2)
    three = np.uint64(3)
    four = np.uint64(4)
    for i in range(scores.shape[0]):
        p = np.uint64(starts[i])
        stop = np.uint64(starts[i + 1])
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        while p + four <= stop:
            s0 += values[p] * w[indices[p]]
            s1 += values[p + one] * w[indices[p + one]]
            s2 += values[p + two] * w[indices[p + two]]
            s3 += values[p + three] * w[indices[p + three]]
            p += four
        if p + two <= stop:
            s0 += values[p] * w[indices[p]]
            s1 += values[p + one] * w[indices[p + one]]
            p += two
        if p < stop:
            s2 += values[p] * w[indices[p]]
        scores[i] = (s0 + s1) + (s2 + s3)


@jit
def csr_add_gradient(values, indices, starts, coef, gradient):
    """gradient += Σ_i coef[i]·x_i; rows with a zero coefficient are not read."""
    one = np.uint64(1)
    two = np.uint64(2)
    for i in range(coef.shape[0]):
        c = coef[i]
        if c != 0.0:
            p = np.uint64(starts[i])
            stop = np.uint64(starts[i + 1])
            while p + two <= stop:
                gradient[indices[p]] += c * values[p]
                gradient[indices[p + one]] += c * values[p + one]
                p += two
            if p < stop:
                gradient[indices[p]] += c * values[p]


@jit(reassociate=True)
def csr_squared_norms(values, starts, out):
    """out[i] = |x_i|²."""
    for i in range(out.shape[0]):
        total = 0.0
        for p in range(np.uint64(starts[i]), np.uint64(starts[i + 1])):
            value = np.float64(values[p])
            total += value * value
        out[i] = total


@jit
def csr_scores_equal(values, indices, starts, w, scores):
    """As ``csr_scores`` for rows of equal values.

    The last numbers of a row, fewer than a full step, are added without a branch.
    """
    one = np.uint64(1)
    two = np.uint64(2)
    three = np.uint64(3)
    four = np.uint64(4)
    for i in range(scores.shape[0]):
        p = np.uint64(starts[i])
        stop = np.uint64(starts[i + 1])
        if p == stop:
            scores[i] = 0.0
            continue
        value = np.float64(values[p])
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        while p + four <= stop:
            s0 += value * w[indices[p]]
            s1 += value * w[indices[p + one]]
            s2 += value * w[indices[p + two]]
            s3 += value * w[indices[p + three]]
            p += four
        last = stop - one
        t0 = value * w[indices[min(p, last)]]
        t1 = value * w[indices[min(p + one, last)]]
        t2 = value * w[indices[last]]
        s0 += t0 if p + one < stop else 0.0
        s1 += t1 if p + one < stop else 0.0
        s2 += t2 if (stop - p) & one else 0.0
        scores[i] = (s0 + s1) + (s2 + s3)


@jit
def csr_add_gradient_equal(values, indices, starts, coef, gradient):
    """As ``csr_add_gradient`` for rows of equal values."""
    one = np.uint64(1)
    two = np.uint64(2)
    three = np.uint64(3)
    four = np.uint64(4)
    for i in range(coef.shape[0]):
        c = coef[i]
        p = np.uint64(starts[i])
        stop = np.uint64(starts[i + 1])
        if c != 0.0 and p < stop:
            step = c * values[p]
            while p + four <= stop:
                gradient[indices[p]] += step
                gradient[indices[p + one]] += step
                gradient[indices[p + two]] += step
                gradient[indices[p + three]] += step
                p += four
            last = stop - one
            pair = step if p + one < stop else 0.0
            gradient[indices[min(p, last)]] += pair
            gradient[indices[min(p + one, last)]] += pair
            gradient[indices[last]] += step if (stop - p) & one else 0.0


@jit(reassociate=True)
def csr_scores_multi(values, indices, starts, w, scores):
    """scores[i, :] = Σ_p values[p]·w[indices[p], :], four outputs at a time in registers."""
    outputs = scores.shape[1]
    for i in range(scores.shape[0]):
        first = np.uint64(starts[i])
        last = np.uint64(starts[i + 1])
        c = 0
        while c + 4 <= outputs:
            s0 = 0.0
            s1 = 0.0
            s2 = 0.0
            s3 = 0.0
            for p in range(first, last):
                v = np.float64(values[p])
                j = indices[p]
                s0 += v * w[j, c]
                s1 += v * w[j, c + 1]
                s2 += v * w[j, c + 2]
                s3 += v * w[j, c + 3]
            scores[i, c] = s0
            scores[i, c + 1] = s1
            scores[i, c + 2] = s2
            scores[i, c + 3] = s3
            c += 4
        while c < outputs:
            s0 = 0.0
            for p in range(first, last):
                s0 += values[p] * w[indices[p], c]
            scores[i, c] = s0
            c += 1


@jit
def csr_add_gradient_multi(values, indices, starts, coef, gradient):
    """gradient[:, c] += Σ_i coef[i, c]·x_i; zero coefficients are skipped."""
    outputs = coef.shape[1]
    for i in range(coef.shape[0]):
        for c in range(outputs):
            k = coef[i, c]
            if k != 0.0:
                for p in range(np.uint64(starts[i]), np.uint64(starts[i + 1])):
                    gradient[indices[p], c] += k * values[p]


@jit(reassociate=True)
def dense_scores(x, w, scores):
    """scores[i] = <x[i], w> for a row-major block."""
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * w[j]
        scores[i] = s


@jit
def dense_add_gradient(x, coef, gradient):
    """gradient += Σ_i coef[i]·x[i] for a row-major block."""
    for i in range(x.shape[0]):
        c = coef[i]
        if c != 0.0:
            for j in range(x.shape[1]):
                gradient[j] += c * x[i, j]


@jit(reassociate=True)
def dense_scores_multi(x, w, scores):
    """scores[i, :] = x[i]·w for a row-major block, four outputs at a time in registers."""
    outputs = scores.shape[1]
    for i in range(x.shape[0]):
        c = 0
        while c + 4 <= outputs:
            s0 = 0.0
            s1 = 0.0
            s2 = 0.0
            s3 = 0.0
            for j in range(x.shape[1]):
                v = np.float64(x[i, j])
                s0 += v * w[j, c]
                s1 += v * w[j, c + 1]
                s2 += v * w[j, c + 2]
                s3 += v * w[j, c + 3]
            scores[i, c] = s0
            scores[i, c + 1] = s1
            scores[i, c + 2] = s2
            scores[i, c + 3] = s3
            c += 4
        while c < outputs:
            s0 = 0.0
            for j in range(x.shape[1]):
                s0 += x[i, j] * w[j, c]
            scores[i, c] = s0
            c += 1


@jit
def dense_add_gradient_multi(x, coef, gradient):
    """gradient[:, c] += Σ_i coef[i, c]·x[i] for a row-major block."""
    outputs = coef.shape[1]
    for i in range(x.shape[0]):
        for c in range(outputs):
            k = coef[i, c]
            if k != 0.0:
                for j in range(x.shape[1]):
                    gradient[j, c] += k * x[i, j]


@jit
def column_scores(xt, first, w, scores):
    """As ``dense_scores`` for rows first.. of a column-major array, given as its transpose."""
    rows = scores.shape[0]
    for i in range(rows):
        scores[i] = 0.0
    for j in range(xt.shape[0]):
        v = w[j]
        if v != 0.0:
            for i in range(rows):
                scores[i] += v * xt[j, first + i]


@jit(reassociate=True)
def column_add_gradient(xt, first, coef, gradient):
    """As ``dense_add_gradient`` for rows first.. of a column-major array."""
    for j in range(xt.shape[0]):
        s = 0.0
        for i in range(coef.shape[0]):
            s += coef[i] * xt[j, first + i]
        gradient[j] += s


@jit
def column_scores_multi(xt, first, w, scores):
    """As ``dense_scores_multi`` for rows first.. of a column-major array."""
    outputs = scores.shape[1]
    for i in range(scores.shape[0]):
        for c in range(outputs):
            scores[i, c] = 0.0
    for j in range(xt.shape[0]):
        for i in range(scores.shape[0]):
            v = np.float64(xt[j, first + i])
            for c in range(outputs):
                scores[i, c] += v * w[j, c]


@jit
def column_add_gradient_multi(xt, first, coef, gradient):
    """As ``dense_add_gradient_multi`` for rows first.. of a column-major array."""
    outputs = coef.shape[1]
    for j in range(xt.shape[0]):
        for i in range(coef.shape[0]):
            v = np.float64(xt[j, first + i])
            if v != 0.0:
                for c in range(outputs):
                    gradient[j, c] += coef[i, c] * v
