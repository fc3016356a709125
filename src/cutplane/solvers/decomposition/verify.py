"""What is certain of a dual point: primal and bound, with all rounding taken off.

Solvers follow s = Kβ by small corrections, perhaps in single precision. Here s has been computed
from β anew. With u the unit of rounding each value of s is off by at most

    error_i = u·(depth + a)·Σ_j |β_j|·|K_ij|

where depth counts the additions that a term goes through, and a says how much a kernel value may
be off (``KernelMatrix.amplification``). K is positive semidefinite, so that |K_ij| is at most
√K_ii·√K_jj, which takes its place where the sum is not known. The primal takes every loss as high
as these errors allow, the dual the quadratic form.

Where Σβ misses its total by some rounding δ, β is not feasible, and the dual is a bound only after
|δ|·|b*| has been taken off. The best bias b* is −g_i of some i for the best w, so it is at
most max|c| + |w*|·max √K_ii.

All of this needs a kernel that is positive semidefinite. Of one that does not say so itself few
rows are factorised. Where Cholesky's method gets through on K + shift·I in floating point, with a
shift of at least c = (n + 2)·u·trace, K + (shift + c)·I is positive semidefinite for certain (Rump
2006). Values computed in floating point are not semidefinite to the last digit themselves, so that
such a lift is all that can be proved; certificates take what it may change off. More rows than
PROVABLE are only looked at: some of them, and the pairs that the solver met.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ...kernels import NEGATIVE, KernelMatrix, has_negative_eigenvalue
from ...loops import decomposition as loops
from .problem import DualProblem, DualSettings

SAMPLE = 160  # rows on which a kernel is tested
PROVABLE = 2000  # rows whose values are factorised
PAIRWISE = 1024  # rows in a piece of a sum; within a piece products are added by pairs


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

    def good(self, settings: DualSettings, mass: float) -> bool:
        """Whether the tolerance is kept."""
        return settings.reached(self.violation, self.gap, self.primal, mass)

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


def rounding(
    matrix: KernelMatrix,
    roots: np.ndarray,
    sums: np.ndarray,
    depth: int,
    sizes: np.ndarray | None = None,
) -> np.ndarray:
    """How far Σ_j sums_j·K_ij may be off, for every row i, if it is added in double precision.

    Parameters
    ----------
    matrix : KernelMatrix
        Where the values come from.
    roots, sums : ndarray
        √K_ii and coefficients of the rows.
    depth : int
        Additions that a term goes through, at most.
    sizes : ndarray, optional
        Σ_j |sums_j|·|K_ij|, if that is known.
    """
    if sizes is not None and matrix.relative:
        return (loops.UNIT * (depth + 8.0 + matrix.amplification)) * sizes
    most = roots * float(np.abs(sums) @ roots)
    size = most if sizes is None else sizes
    return loops.UNIT * ((depth + 8.0) * size + matrix.amplification * most)


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
    of_kernel = lift, matrix.roots[rows].max(initial=0.0), shift, shift_error, reach
    bias, primal, dual, slack, doubt = loops.certify(
        s, error, beta, net, bias, lack, c, lower, upper, *sums, *of_kernel
    )
    return Verified(bias, primal, dual, primal - dual, violation, slack, violation + doubt)


# -- whether the kernel is positive semidefinite ----------------------------------------------


@dataclass(frozen=True)
class Definiteness:
    """What is known of a kernel.

    Attributes
    ----------
    kind : {'exact', 'conditional', 'withheld'}
        Of the certificates of its problems.
    lift : float
        If 'exact': K + lift·I is positive semidefinite.
    """

    kind: str
    lift: float = 0.0


def definiteness(matrix: KernelMatrix) -> Definiteness:
    """What a proof on all rows says of a kernel whose form says nothing."""
    if matrix.columns > PROVABLE:
        return Definiteness("conditional")
    values = np.array(matrix.whole(), dtype=np.float64)
    uneven = 0.5 * float(np.abs(values - values.T).sum(axis=1).max(initial=0.0))
    size = len(values)
    trace = float(np.abs(np.diagonal(values)).sum())
    needed = (size + 3.0) * float(np.finfo(np.float64).eps) * trace
    values = 0.5 * (values + values.T)
    values[np.diag_indices(size)] += 2.0 * needed
    try:
        scipy.linalg.cholesky(values, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        if has_negative_eigenvalue(matrix, np.arange(size)):
            return Definiteness("withheld")
        return Definiteness("conditional")
    return Definiteness("exact", 4.0 * needed + uneven)


def looks_indefinite(
    matrix: KernelMatrix, problem: DualProblem, beta: np.ndarray, least_curvature: float
) -> bool:
    """Test a kernel on the pairs that the solver met and on some rows that matter.

    Parameters
    ----------
    matrix : KernelMatrix
    problem : DualProblem
    beta : ndarray
        The solution: its support vectors are tested.
    least_curvature : float
        Of all pairs that were moved, relative to the diagonal.
    """
    if least_curvature < -NEGATIVE:
        return True
    rows = np.unique(problem.rows[beta != 0.0])
    if len(rows) < 2:
        rows = np.arange(matrix.columns)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.int64)]
    return has_negative_eigenvalue(matrix, rows)
