"""An interior point method for the reduced problem over a box.

    min_w,ξ ½|w|² + C·ξ    with s = ξ − A·w − b ≥ 0,  low ≤ w ≤ high

with a row of A and a number of b per cut. The finite bounds are walls: z = w − low or high − w ≥ 0.
E is the derivative of z by w, with entries ±1. With multipliers α of the cuts and p of the walls
the conditions are

    w + Aᵀα − Eᵀp = 0,    Σα = C,    α·s = p·z = μ,    all ≥ 0,

for μ → 0. It takes Mehrotra's predictor and corrector steps. A step solves one system with a number
per cut,

    (A·Θ⁻¹·Aᵀ + diag(s/α))·Δα + Δξ = …,    Θ = 1 + Eᵀ(p/z)E.

It takes 10 to 25 steps on any problem, even if C is so large that the problem is almost linear and
Newton's method moves from corner to corner.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

MOST_STEPS = 60
# The method ends when the errors of all conditions are this small, relative to the objective and to
# the sizes of their terms. Newton's method does the rest.
PRECISION = 1e-8
# A step goes this part of the way to the nearest wall.
NOT_QUITE = 0.995
# If only a smaller part of a step is possible, the method ends.
LEAST_STEP = 1e-10
# The start is at least this far from the walls, in units of the distance between them, or of the
# mean size of w if that is less.
INSIDE = 0.1


def interior_weights(
    A: np.ndarray,
    b: np.ndarray,
    C: float,
    low: np.ndarray,
    high: np.ndarray,
    beta: np.ndarray,
    w: np.ndarray,
) -> np.ndarray:
    """Weights of the cuts on the simplex that nearly solve the problem.

    Parameters
    ----------
    A : ndarray, shape (cuts, features)
    b : ndarray, shape (cuts,)
    C : float
    low, high : ndarray, shape (features,)
        low < high; may be infinite.
    beta, w : ndarray
        The weights and the point near which the method starts.
    """
    features = np.concatenate([np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))])
    sign = np.where(np.arange(len(features)) < np.isfinite(low).sum(), 1.0, -1.0)

    def at_features(values: np.ndarray) -> np.ndarray:
        """Sums over the walls of each feature."""
        return np.bincount(features, values, len(w))

    size = float(np.sqrt(np.mean(w * w))) if len(w) else 0.0
    room = INSIDE * np.minimum(high - low, size or 1.0)
    w = np.minimum(np.maximum(w, low + room), high - room)
    z = np.concatenate([(w - low)[np.isfinite(low)], (high - w)[np.isfinite(high)]])
    heights = A @ w + b
    xi = heights.max() + INSIDE * (np.ptp(heights) or 1.0)
    s = xi - heights
    alpha = C * ((1.0 - INSIDE) * beta + INSIDE / len(b))
    p = np.mean(alpha * s) / z

    for _ in range(MOST_STEPS):
        total = float(alpha @ s + p @ z)
        off = w + alpha @ A - at_features(sign * p)
        small = PRECISION * np.maximum(np.abs(w), C * np.abs(A).max(axis=0))
        if total <= PRECISION * (0.5 * w @ w + C * abs(xi)) and np.all(np.abs(off) <= small):
            break
        theta = 1.0 + at_features(p / z)
        scaled = A / theta
        try:
            factor = cho_factor(scaled @ A.T + np.diag(s / alpha))
        except (LinAlgError, ValueError):  # rounding: this is how far it gets
            break
        ones = cho_solve(factor, np.ones(len(b)))
        off_s, off_sum = s - xi + A @ w + b, alpha.sum() - C
        c_s, c_z = -alpha * s, -p * z  # what the products shall change by
        for corrected in (False, True):
            g = at_features(sign * c_z / z) - off
            inner = cho_solve(factor, c_s / alpha + scaled @ g + off_s)
            d_xi = (inner.sum() + off_sum) / ones.sum()
            d_alpha = inner - d_xi * ones
            d_w = (g - d_alpha @ A) / theta
            d_z = sign * d_w[features]
            d_s, d_p = (c_s - s * d_alpha) / alpha, (c_z - p * d_z) / z
            k = min(_reach(alpha, d_alpha), _reach(s, d_s), _reach(p, d_p), _reach(z, d_z))
            if not corrected:
                then = float((alpha + k * d_alpha) @ (s + k * d_s) + (p + k * d_p) @ (z + k * d_z))
                aim = (then / total) ** 3 * total / (len(s) + len(z))
                c_s, c_z = c_s + aim - d_alpha * d_s, c_z + aim - d_p * d_z
        if not k > LEAST_STEP:
            break
        w, xi, alpha, p = w + k * d_w, xi + k * d_xi, alpha + k * d_alpha, p + k * d_p
        s, z = s + k * d_s, z + k * d_z
    return alpha / alpha.sum()


def _reach(x: np.ndarray, change: np.ndarray) -> float:
    """How much of a change leaves all of x positive, at most 1."""
    falling = change < 0.0
    return min(1.0, NOT_QUITE * float(np.min(x[falling] / -change[falling], initial=np.inf)))
