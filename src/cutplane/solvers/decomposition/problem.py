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
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...result import Certificate, Iteration

# The least part of a violation to aim at in one go: the gap does not fall in proportion to it.
LEAST_PART = 1e-3


@dataclass
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
    rows : ndarray of int64
        The row of K of each variable, given or not.
    mass : float
        The sum of the widths of all boxes.
    """

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    total: float = 0.0
    row_of: np.ndarray | None = None
    rounded: bool = False
    rows: np.ndarray = field(init=False)
    mass: float = field(init=False)

    def __post_init__(self) -> None:
        self.rows = np.arange(len(self.linear)) if self.row_of is None else self.row_of
        self.mass = float((self.upper - self.lower).sum())

    def row_sums(self, beta: np.ndarray, rows: int) -> np.ndarray:
        """β summed over the variables of each of so many rows."""
        return beta if self.row_of is None else np.bincount(self.row_of, beta, minlength=rows)

    def digest(self) -> bytes:
        """A fingerprint of the problem without the kernel."""
        digest = hashlib.blake2b(repr((len(self.linear), self.total)).encode(), digest_size=16)
        for array in (self.linear, self.lower, self.upper, self.rows):
            digest.update(np.ascontiguousarray(array).data)
        return digest.digest()

    def start(self, near: np.ndarray | None = None) -> np.ndarray:
        """A feasible point: ``near``, clipped to the bounds and brought back to the right sum.

        Without it: zero, or the first variables at their upper bounds.
        """
        if near is None and self.total == 0.0:
            return np.zeros(len(self.linear))
        if near is None:
            filled = np.minimum(np.cumsum(self.upper), self.total)
            return np.diff(filled, prepend=0.0)
        beta = np.clip(near, self.lower, self.upper)
        excess = float(beta.sum()) - self.total
        if abs(excess) <= 1e-12 * float(np.abs(beta).sum()):  # rounding
            return beta
        bound = self.lower if excess > 0.0 else self.upper
        room = np.abs(beta - bound)
        available = float(room.sum())
        if available > 0.0:
            beta = beta + (bound - beta) * min(1.0, abs(excess) / available)
        return np.clip(beta, self.lower, self.upper)


# -- what the solver is told and what it tells ------------------------------------------------


@dataclass(frozen=True)
class DualSettings:
    """How to solve.

    Attributes
    ----------
    tol : float
        Where to stop, in the unit of ``stopping``.
    stopping : {'relative', 'absolute', 'epsilon', 'kkt'}
        What must be small: the gap against tol·|primal|, against tol, or against tol times the sum
        of the widths of all boxes; or the violation of the optimality conditions, max g − min g
        over the pairs that may move.
    working_set_size : int or None
        Even; 2 is SMO with second-order selection. None chooses: all variables of small
        problems, otherwise as many as are worth a product of matrices.
    shrinking : bool
        Whether variables that will probably stay at a bound leave the problem for a while.
    history : int or None
        Iterations that a multiplier must have been positive before. None: 100 as in the
        paper for small working sets, fewer for large ones.
    cache_bytes : float
        For rows of the kernel matrix.
    max_iter : int or None
        Working sets, at most.
    time_limit : float
        Seconds.
    """

    tol: float = 1e-3
    stopping: str = "relative"
    working_set_size: int | None = None
    shrinking: bool = True
    history: int | None = None
    cache_bytes: float = 2e8
    max_iter: int | None = None
    time_limit: float = np.inf

    def enough(self, primal: float, mass: float) -> float:
        """The gap that is small enough; ``mass`` is the sum of the widths of all boxes."""
        return self.tol * {"relative": abs(primal), "epsilon": mass}.get(self.stopping, 1.0)

    def reached(
        self, violation: float, gap: float, primal: float, mass: float, part: float = 1.0
    ) -> bool:
        """Whether a part of the tolerance is kept."""
        if not math.isfinite(gap):
            return False
        if self.stopping == "kkt":
            return violation <= part * self.tol
        return gap <= part * self.enough(primal, mass)

    def goal(
        self, violation: float, gap: float, primal: float, mass: float, part: float = 1.0
    ) -> float:
        """The violation at which a part of the tolerance is probably kept."""
        if self.stopping == "kkt":
            return self.tol
        return violation * min(1.0, max(LEAST_PART, part * self.enough(primal, mass) / gap))


@dataclass(frozen=True)
class DualIteration(Iteration):
    """An iteration of the decomposition solver.

    ``cuts`` is the size of the working set, ``trial`` the primal of this iterate as far as
    it is known, ``step`` the largest change of a variable.

    Attributes
    ----------
    violation : float
        Of the optimality conditions, before the iteration, among the active variables.
    active : int
        Variables that take part.
    """

    violation: float = np.inf
    active: int = 0


# Gets an iteration; a true answer stops the run.
Observer = Callable[[DualIteration], bool | None]


@dataclass(frozen=True)
class DualCertificate(Certificate):
    """A certificate whose objective may be negative, as that of the one-class machine is.

    kind is 'conditional' where nothing proves that the kernel is positive semidefinite, and
    'withheld' where it is not, or after an interrupt, where it would have taken more than an
    instant to compute: ``dual`` is −inf and ``gap`` inf then.
    """

    __repr__ = Certificate.__repr__
    __str__ = Certificate.__str__


def certificate_of(primal: float, dual: float, kind: str) -> DualCertificate:
    """A certificate; what is not finite is none."""
    if kind == "withheld" or not np.isfinite(primal - dual):
        return DualCertificate(primal if np.isfinite(primal) else np.inf, -np.inf, "withheld")
    return DualCertificate(primal, dual, kind)
