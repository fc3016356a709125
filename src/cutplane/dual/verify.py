"""What is certain of a dual point: primal and bound, with all rounding taken off.

Solvers follow s = Kβ by small corrections, perhaps in single precision. Here s has been computed
from β anew, in double precision. With u the unit of rounding each value of s is off by at most

    error_i = u·(depth + a)·Σ_j |β_j|·|K_ij|

where depth counts the additions that a term goes through, and a says how much a kernel value may
be off (``KernelMatrix.amplification``). K is positive semidefinite, so that |K_ij| is at most
√K_ii·√K_jj, which takes its place where the sum is not known. The primal takes every loss as high
as these errors allow, the dual the quadratic form.

Where Σβ misses its total by some rounding δ, β is not feasible, and the dual is a bound only after
|δ|·|b*| has been taken off. The best bias b* is −g_i of some i for the best w, so it is at
most max|c| + |w*|·max √K_ii.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..kernels import KernelMatrix
from ..loops import decomposition as loops
from .active import row_sums
from .problem import DualProblem
from .records import DualSettings

UNIT = float(np.finfo(np.float64).eps) / 2.0


@dataclass(frozen=True)
class Verified:
    """What is certain of a point.

    Attributes
    ----------
    bias : float
        The best one for this point.
    primal, dual : float
        An upper bound on the model's objective, and a lower bound on that of any model.
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
    violation: float
    slack: float
    doubt: float

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    def good(self, settings: DualSettings, mass: float) -> bool:
        """Whether the tolerance is kept."""
        return settings.reached(self.violation, self.gap, self.primal, mass)

    def lost(self, settings: DualSettings, mass: float) -> bool:
        """Whether the tolerance is out of reach: what is left of the gap is rounding."""
        if settings.stopping == "kkt":
            return False
        enough = settings.enough(self.primal, mass)
        return self.slack > 0.9 * enough and self.gap - self.slack <= max(enough, 0.1 * self.slack)


def balanced(problem: DualProblem, beta: np.ndarray) -> np.ndarray:
    """The point with Σβ as near to the total as one free variable can bring it."""
    for _ in range(2):
        excess = _exact_sum(beta) - problem.total
        if excess == 0.0:
            break
        room = np.where(excess > 0.0, beta - problem.lower, problem.upper - beta)
        free = (beta != 0.0) & (room > 2.0 * abs(excess))
        if not np.any(free):
            break
        # The smallest one has the finest digits.
        k = int(np.argmin(np.where(free, np.abs(beta), np.inf)))
        beta = beta.copy()
        beta[k] -= excess
    return beta


def stretched(problem: DualProblem, beta: np.ndarray, found: Verified) -> np.ndarray | None:
    """The point made a little longer, by what margins may be off; None if a bound forbids it.

    Where C is so large that rounding of margins, times C, is most of the objective, the
    longer model has no losses at all.
    """
    if problem.total != 0.0 or not 0.0 < found.doubt < 1e-2:
        return None
    longer = beta * (1.0 + 2.0 * found.doubt)
    inside = np.all((longer >= problem.lower) & (longer <= problem.upper))
    return balanced(problem, longer) if inside else None


@dataclass(frozen=True)
class Sums:
    """s = Kβ of every row, computed in double precision.

    Attributes
    ----------
    s : ndarray
    depth : int
        Additions that a term goes through, at most.
    sizes : ndarray, optional
        Σ_j |β_j|·|K_ij|, if that is known.
    error : ndarray, optional
        How far s is off at most, if that is known.
    """

    s: np.ndarray
    depth: int
    sizes: np.ndarray | None = None
    error: np.ndarray | None = None


def verify(
    matrix: KernelMatrix, problem: DualProblem, beta: np.ndarray, computed: Sums, lift: float = 0.0
) -> Verified:
    """Bounds on both sides of the optimum.

    Parameters
    ----------
    matrix : KernelMatrix
        In double precision.
    problem : DualProblem
    beta : ndarray
        Within its bounds.
    computed : Sums
        Kβ.
    lift : float
        K + lift·I is known to be positive semidefinite.
    """
    linear, lower, upper, total = problem.linear, problem.lower, problem.upper, problem.total
    s = computed.s
    sums = row_sums(problem, beta, len(s))
    sizes = np.abs(sums)
    root = np.sqrt(np.abs(matrix.diagonal))
    lack = abs(_exact_sum(beta) - total)
    own = s if problem.row_of is None else s[problem.row_of]
    g, g_error = _added(own, linear)
    seen = np.empty(4)
    loops.extremes(g, beta, lower, upper, seen)
    bias = float(loops.best_bias(g, lower, upper, total))
    gap = max(0.0, float(loops.gap_at(g, beta, lower, upper, bias)))
    r, r_error = _added(g, bias)
    offset = matrix.offset(sums, lack)
    with np.errstate(over="ignore", invalid="ignore"):
        most = root * (sizes @ root)
        known = most if computed.sizes is None else computed.sizes
        if computed.error is None:
            error = (computed.depth + 8.0) * known
            error += matrix.amplification * (known if matrix.relative else most)
            error *= UNIT
        else:
            error = computed.error.copy()
        error += offset.error
        if offset.value != 0.0:
            error += UNIT * abs(bias - offset.value)
        mine = error if problem.row_of is None else error[problem.row_of]
        mine = mine + np.abs(g_error) + np.abs(r_error)
        if problem.rounded:
            mine += UNIT * np.abs(linear)
        losses = upper * np.maximum(0.0, mine - r) - lower * np.maximum(0.0, mine + r)
        half = 0.5 * float(sums @ s)
        slope = float(linear @ beta)
        count = UNIT * (len(beta) + 8.0)
        half_error = 0.5 * float(sizes @ error) + count * float(sizes @ np.abs(s))
        slope_error = count * float(np.abs(linear) @ np.abs(beta))
        if problem.rounded:
            slope_error += UNIT * float(np.abs(linear) @ np.abs(beta))
        lost = float(losses.sum()) * (1.0 + count)
        constant = bias * total
        primal = half + half_error + lost + constant + 4.0 * UNIT * (abs(half) + abs(constant))
        longest = math.sqrt(2.02 * max(0.0, primal if total == 0.0 else half + half_error))
        farthest = float(np.max(np.abs(linear), initial=0.0))
        farthest += longest * float(np.max(root, initial=0.0))
        # The dual of K + lift·I is below that of K, and a bound even if K needs the lift.
        half_error += 0.5 * lift * float(sizes @ sizes) * (1.0 + count)
        dual = -half - slope - half_error - slope_error - lack * farthest
        dual -= 4.0 * UNIT * (abs(half) + abs(slope))
    slack = max(0.0, primal - dual - gap)
    violation = max(0.0, float(seen[1] - seen[0]))
    doubt = violation + float(np.max(mine, initial=0.0))
    return Verified(bias - offset.value, primal, dual + 0.0, violation, slack, doubt)


def _exact_sum(beta: np.ndarray) -> float:
    return math.fsum(beta[beta != 0.0].tolist())


def _added(a: np.ndarray, b: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """a + b, and by how much exactly it is off (Knuth's TwoSum)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)
