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

A certificate has all rounding taken off. Solvers follow s = Kβ by small corrections, perhaps in
single precision; for a certificate s is computed from β anew, and each value of s is off by at most
``KernelMatrix.sum_errors``. The primal takes every loss as high as these errors allow, the dual the
quadratic form. Where Σβ misses its total by some rounding δ, β is not feasible, and the dual is a
bound only after |δ|·|b*| has been taken off. The best bias b* is −g_i of some i for the best w, so
it is at most max|c| + |w*|·max √K_ii.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...kernels import KernelMatrix
from ...loops import decomposition as loops
from ...result import Certificate, DualIteration

# The least part of a violation to aim at in one go: the gap does not fall in proportion to it.
LEAST_PART = 1e-3
PAIRWISE = 1024  # rows in a piece of a sum; within a piece products are added by pairs


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


# Gets an iteration; a true answer stops the run.
Observer = Callable[[DualIteration], bool | None]


def certificate_of(primal: float, dual: float, kind: str) -> Certificate:
    """A certificate; what is not finite is none."""
    if kind == "withheld" or not np.isfinite(primal - dual):
        return Certificate(primal if np.isfinite(primal) else np.inf, -np.inf, "withheld")
    return Certificate(primal, dual, kind)


# -- what is certain of a point ----------------------------------------------------------------


@dataclass(frozen=True)
class Verified:
    """What is certain of a point.

    Attributes
    ----------
    bias : float
        The best one for this point.
    primal, dual, gap : float
        An upper bound on the model's objective, a lower bound on that of any model, and how far
        they are apart.
    violation : float
        Of the optimality conditions.
    slack : float
        The part of the gap that is rounding.
    doubt : float
        How far a margin may be off: the violation and the largest error of a score.
    """

    bias: float
    primal: float
    dual: float
    gap: float
    violation: float
    slack: float
    doubt: float

    def lost(self, settings: DualSettings, mass: float) -> bool:
        """Whether the tolerance is out of reach: what is left of the gap is rounding."""
        if settings.stopping == "kkt":
            return False
        enough = settings.enough(self.primal, mass)
        return self.slack > 0.9 * enough and self.gap - self.slack <= max(enough, 0.1 * self.slack)


def stretched(problem: DualProblem, beta: np.ndarray, found: Verified) -> np.ndarray | None:
    """The point made a little longer, by what margins may be off; None if a bound forbids it.

    Where C is so large that rounding of margins, times C, is most of the objective, the
    longer model has no losses at all.
    """
    if problem.total != 0.0 or not 0.0 < found.doubt < 1e-2:
        return None
    longer = beta * (1.0 + 2.0 * found.doubt)
    if np.any((longer < problem.lower) | (longer > problem.upper)):
        return None
    loops.balance(longer, problem.lower, problem.upper, problem.total)
    return longer


def linear_sums(x: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ_k coef_k·<x_k, x_j> for all j, and how far each sum is off at most.

    The sums go through w = Σ_k coef_k·x_k, not through values, which are rounded before they are
    added.
    """
    used = np.flatnonzero(coef)
    w, sizes = np.zeros((2, x.shape[1]))
    pieces = [used[k : k + PAIRWISE] for k in range(0, len(used), PAIRWISE)]
    for piece in pieces:
        terms = np.ascontiguousarray((x[piece] * coef[piece, None]).T)
        w += terms.sum(axis=1)
        sizes += np.abs(terms).sum(axis=1)
    s, error = np.empty((2, len(x)))
    for first in range(0, len(x), PAIRWISE):
        rows = slice(first, first + PAIRWISE)
        s[rows] = (x[rows] * w).sum(axis=1)
        error[rows] = np.abs(x[rows]) @ sizes
    # numpy adds 128 numbers by eights, and these sums by pairs.
    depth = 2.0 * 19.0 + np.log2(PAIRWISE) + np.log2(len(w) + 1.0) + len(pieces) + 8.0
    return s, 0.51 * np.finfo(np.float64).eps * depth * error


def verify(
    matrix: KernelMatrix,
    rows: np.ndarray,
    problem: DualProblem,
    beta: np.ndarray,
    lack: float,
    s: np.ndarray,
    error: np.ndarray,
    lift: float = 0.0,
) -> Verified:
    """Bounds on both sides of the optimum.

    Parameters
    ----------
    matrix : KernelMatrix
        In double precision.
    rows : ndarray of int
        The row of the matrix of every variable.
    problem : DualProblem
    beta : ndarray
        Within its bounds.
    lack : float
        How far Σβ is off its total, at most.
    s, error : ndarray
        Kβ of every variable, and how far each value is off at most.
    lift : float
        K + lift·I is known to be positive semidefinite.
    """
    shift, shift_error, reach = matrix.moved
    if len(shift):
        shift, shift_error = shift[rows], shift_error[rows]
    net = beta
    if problem.row_of is not None:  # rows may have several variables
        some, first = np.unique(rows, return_index=True)
        net = np.zeros_like(beta)
        net[first] = np.bincount(rows, beta)[some]
    if lift:
        lift *= float(net @ net)
    c, lower, upper = problem.linear, problem.lower, problem.upper
    violation, bias, _ = loops.assess(s + c, beta, lower, upper, True)
    sums = problem.total, loops.UNIT if problem.rounded else 0.0
    longest = np.sqrt(np.abs(matrix.diagonal[rows]).max(initial=0.0))
    of_kernel = lift, longest, shift, shift_error, reach
    bias, primal, dual, slack, doubt = loops.certify(
        s, error, beta, net, bias, lack, c, lower, upper, *sums, *of_kernel
    )
    return Verified(bias, primal, dual, primal - dual, violation, slack, violation + doubt)
