"""The dual of every kernel machine, and its certificate.

    min ½βᵀKβ + cᵀβ    with    Σβ = total,  lower ≤ β ≤ upper            (dual, negated)

In the usual variables β_i = y_i·α_i, so K needs no labels. Several variables may share a row of
K: variable i has row ``row_of[i]``.

    SVC         c = −y,              β_i ∈ [0, C_i] or [−C_i, 0],  total 0
    SVR         c = ε − z and −ε − z, two variables per row,       total 0
    one class   c = 0,               β_i ∈ [0, C_i],               total ν·ΣC

With s = Kβ, g = s + c, and r_i = g_i + b, the primal for bias b is

    ½|w|² + b·total + Σ_i (upper_i·max(0, −r_i) − lower_i·max(0, r_i))

and primal − dual = Σ_i (β_i·r_i + upper_i·max(0, −r_i) − lower_i·max(0, r_i)): a sum
of terms none of which is negative.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DualProblem:
    """A problem in β.

    Attributes
    ----------
    linear, lower, upper : ndarray of float64
        c and the bounds.
    total : float
        What β sums to.
    row_of : ndarray of int64, optional
        The row of K of each variable; None if variable i has row i.
    rounded : bool
        Whether c was computed, and so is off by half a unit in the last place.
    """

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    total: float = 0.0
    row_of: np.ndarray | None = None
    rounded: bool = False

    def __len__(self) -> int:
        """Number of variables."""
        return len(self.linear)

    @property
    def mass(self) -> float:
        """The sum of the widths of all boxes."""
        return float((self.upper - self.lower).sum())

    @property
    def rows(self) -> np.ndarray:
        """The row of each variable."""
        return np.arange(len(self)) if self.row_of is None else self.row_of

    def digest(self) -> bytes:
        """A fingerprint of the problem but for the kernel."""
        digest = hashlib.blake2b(repr((len(self), self.total)).encode(), digest_size=16)
        for array in (self.linear, self.lower, self.upper, self.rows):
            digest.update(np.ascontiguousarray(array).data)
        return digest.digest()

    def start(self) -> np.ndarray:
        """A feasible point: zero, or the first variables at their upper bounds."""
        if self.total == 0.0:
            return np.zeros(len(self))
        filled = np.minimum(np.cumsum(self.upper), self.total)
        return np.diff(filled, prepend=0.0)

    def repaired(self, beta: np.ndarray) -> np.ndarray:
        """The point, clipped to the bounds and brought back to the right sum."""
        beta = np.clip(beta, self.lower, self.upper)
        excess = float(beta.sum()) - self.total
        if abs(excess) <= 1e-12 * float(np.abs(beta).sum()):  # rounding
            return beta
        bound = self.lower if excess > 0.0 else self.upper
        room = np.abs(beta - bound)
        available = float(room.sum())
        if available > 0.0:
            beta = beta + (bound - beta) * min(1.0, abs(excess) / available)
        return np.clip(beta, self.lower, self.upper)
