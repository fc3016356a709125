"""Ascent in the dual of a support vector machine without bias, on blocks of rows.

    max_α  D(α) = Σα − ½·Σ_ij α_i·α_j·y_i·y_j·K_ij,    0 ≤ α_i ≤ upper_i

With s_i = Σ_j α_j·y_j·K_ij the slope of D in α_i is r_i = 1 − y_i·s_i, and the best value of α_i
alone is α_i + r_i / K_ii, clipped to its bounds.
"""

from __future__ import annotations

from .._jit import jit


@jit(inline=True)
def _best_value(alpha, slope, curvature, upper):
    """The best value of one α, if the others stay."""
    if curvature > 0.0:
        return min(max(0.0, alpha + slope / curvature), upper)
    return upper if slope > 0.0 else 0.0


@jit
def gains_of_rows(y, upper, diagonal, alpha, scores, gains):
    """gains = by how much D grows if a row's α alone takes its best value.

    Returns Σ upper·max(0, r), Σα and Σ_i α_i·y_i·s_i, of which primal and D are made.
    """
    losses = total = square = 0.0
    for i in range(len(y)):
        slope = 1.0 - y[i] * scores[i]
        losses += upper[i] * max(0.0, slope)
        total += alpha[i]
        square += alpha[i] * (1.0 - slope)
        d = _best_value(alpha[i], slope, diagonal[i], upper[i]) - alpha[i]
        gains[i] = d * (slope - 0.5 * diagonal[i] * d)
    return losses, total, square


@jit
def ascend_block(K, y, upper, part, most, alpha, scores):
    """Raise D in the α of a block of rows; the other α stay.

    ``K`` are the kernel values of the block, ``scores`` the s of its rows. There are at most
    ``most`` sweeps, and none after one that gains less than ``part`` of what the first one does.
    """
    n = len(y)
    first = 0.0
    for sweep in range(most):
        gained = 0.0
        for i in range(n):
            slope = 1.0 - y[i] * scores[i]
            d = _best_value(alpha[i], slope, K[i, i], upper[i]) - alpha[i]
            if d != 0.0:
                gained += d * (slope - 0.5 * K[i, i] * d)
                alpha[i] = _best_value(alpha[i], slope, K[i, i], upper[i])
                change = d * y[i]
                for j in range(n):
                    scores[j] += change * K[i, j]
        if sweep == 0:
            first = gained
        if gained <= part * first:
            break
