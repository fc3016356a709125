"""Small systems of cuts in a kernel's space.

``solve_lower`` and ``solve_upper`` solve in place with a triangular factor, for vectors that are
too short for a library call. ``ascend`` solves the dual of a support vector machine without bias on
a few rows, whose kernel values are stored:

    max_α  Σα − ½·Σ_ij α_i·α_j·y_i·y_j·K_ij,    0 ≤ α_i ≤ upper_i

Each step moves one α to its best value, always the α that gains most. Let s_i = Σ_j α_j·y_j·K_ij,
and let r_i = 1 − y_i·s_i be the slope. Then the best value is α_i + r_i / K_ii, clipped to its
bounds. The gap to the primal point w = Σ_j α_j·y_j·φ(x_j) is
Σ_i (upper_i·max(0, r_i) − α_i·r_i).
"""

from __future__ import annotations

from .._jit import jit


@jit
def solve_lower(factor, rank, x):
    """x[:rank] = L⁻¹ x[:rank]."""
    for i in range(rank):
        s = x[i]
        for j in range(i):
            s -= factor[i, j] * x[j]
        x[i] = s / factor[i, i]


@jit
def solve_upper(factor, rank, x):
    """x[:rank] = L⁻ᵀ x[:rank]."""
    for i in range(rank - 1, -1, -1):
        s = x[i] / factor[i, i]
        x[i] = s
        for j in range(i):
            x[j] -= factor[i, j] * s


@jit
def ascend(K, y, upper, tol, most, alpha, scores):
    """Raise the dual from α = 0 until the gap is ``tol`` times the primal, or ``most`` steps."""
    n = len(y)
    for step in range(most):
        best, most_gain, change = -1, 0.0, 0.0
        gap = square = total = 0.0
        for i in range(n):
            slope = 1.0 - y[i] * scores[i]
            gap += upper[i] * max(0.0, slope) - alpha[i] * slope
            square += alpha[i] * (1.0 - slope)
            total += alpha[i]
            curvature = K[i, i]
            if curvature > 0.0:
                new = min(max(0.0, alpha[i] + slope / curvature), upper[i])
            else:
                new = upper[i] if slope > 0.0 else 0.0
            d = new - alpha[i]
            gain = d * (slope - 0.5 * curvature * d)
            if gain > most_gain:
                best, most_gain, change = i, gain, d
        if best < 0 or gap <= tol * (gap + total - 0.5 * square):
            return step
        alpha[best] += change
        factor = change * y[best]
        for j in range(n):
            scores[j] += factor * K[best, j]
    return most
