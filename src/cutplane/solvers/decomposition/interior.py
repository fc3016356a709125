"""Interior point steps, for problems on which steps of pairs creep.

Where features are on large or unlike scales, or C is large, the pairs that move depend on one
another so strongly that millions of steps bring little. With K = F·Fᵀ and w = Fᵀβ the optimum has

    F·w + c + b − p + q = 0,   Fᵀβ = w,   Σβ = total,
    p_i(β_i − lower_i) = 0,   q_i(upper_i − β_i) = 0,   p_i, q_i ≥ 0.

The products are set to μ > 0 instead, which goes to 0, and Newton's method solves these equations
with all of β, p, q inside. The unknowns are w and b: the matrix is I + Fᵀ·D·F with D the inverse of
p/(β − lower) + q/(upper − β), so that a linear kernel of few features takes rows·features²
multiplications a step. A step is one of Mehrotra (1992): a direction towards μ = 0 says how far μ
may be lowered, and a second one with the same matrix takes that into account. Some 10 to 20 steps
are enough whatever the scales and C are (Ferris & Munson 2002); β starts in the middle of its box.
"""

from __future__ import annotations

import math
import time

import numpy as np
import scipy.linalg

from ..._blas import single_threaded_blas
from ...kernels import KernelMatrix
from ...loops import decomposition as loops
from .problem import DualProblem

# Steps at most; 30 were the most seen in thousands of problems that were solved at all.
MOST_STEPS = 60
# How far to go to where the first variable would leave the inside.
REACH = 0.99
# Steps shorter than this lead nowhere: rounding is in the way.
SHORTEST = 1e-6
# The sum of all products at which there is nothing left to gain, as a part of the objective.
ENOUGH = 1e-15


def factor_of(matrix: KernelMatrix, budget: float) -> np.ndarray | None:
    """F with K = F·Fᵀ up to rounding; None if it takes more than ``budget`` bytes."""
    rows = matrix.columns
    x = matrix.linear_rows
    if x is not None and x.shape[1] <= rows:
        return x
    if 8 * rows * rows > budget:
        return None
    values = np.array(matrix.whole(), dtype=np.float64)
    triangle, order, rank, _ = scipy.linalg.lapack.dpstrf(values, lower=1)
    factor = np.zeros((rows, rank))
    factor[order - 1] = np.tril(triangle)[:, :rank]
    return factor


def factor_columns(matrix: KernelMatrix) -> int:
    """Columns of F, at most."""
    x = matrix.linear_rows
    return matrix.columns if x is None else min(matrix.columns, x.shape[1])


def interior_point(
    factor: np.ndarray, problem: DualProblem, deadline: float = np.inf
) -> np.ndarray | None:
    """β near the optimum, with those at their bounds that belong there.

    Parameters
    ----------
    factor : ndarray
        F, one row per row of K.
    problem : DualProblem
    deadline : float
        Of ``time.perf_counter``: None is returned after it.
    """
    free = problem.upper > problem.lower
    F = factor if problem.row_of is None else factor[problem.row_of]
    start = np.clip(0.0, problem.lower, problem.upper)
    moved = np.where(free, 0.0, start)  # those that cannot move
    F, fixed = F[free], F.T @ moved
    c = problem.linear[free] + F @ fixed
    total = problem.total - float(moved.sum())
    size = float(np.einsum("ij,ij->i", F, F).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return None
    slope = float(np.abs(c).max()) or size * abs(total) / len(c)
    if not 0.0 < slope < np.inf:
        return None
    unit = slope / size  # of β: from here on K and c are at most 1
    lower, upper = problem.lower[free] / unit, problem.upper[free] / unit
    with single_threaded_blas(), np.errstate(all="ignore"):
        run = _Run(F / np.sqrt(size), c / slope, lower, upper, total / unit)
        for _ in range(MOST_STEPS):
            if time.perf_counter() > deadline:
                return None
            if not run.step():
                break
        found = run.rounded() * unit
    if not np.all(np.isfinite(found)):
        return None
    moved[free] = np.clip(found, problem.lower[free], problem.upper[free])
    # What the sum lacks goes to one variable inside: spread over all it would take many off bounds.
    loops.balance(moved, problem.lower, problem.upper, problem.total)
    return problem.start(moved)


class _Run:
    """β, w, b, p and q of problems whose K and c are at most 1."""

    def __init__(
        self, F: np.ndarray, c: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float
    ) -> None:
        self._F = np.column_stack([F, np.ones(len(c))])  # the last column is that of the bias
        self._c, self._lower, self._upper, self._total = c, lower, upper, total
        self._beta = 0.5 * (lower + upper)
        self._w = np.zeros(F.shape[1] + 1)  # the last is the bias
        self._p, self._q = np.ones(len(c)), np.ones(len(c))
        self._falls = np.zeros((2, len(c)), dtype=bool)  # whether β goes to lower, or to upper

    def step(self) -> bool:
        """One step; False if it is of no use."""
        F, p, q, w = self._F, self._p, self._q, self._w
        below, above = self._beta - self._lower, self._upper - self._beta
        products = float(p @ below + q @ above)
        objective = 0.5 * float(w[:-1] @ w[:-1]) + float(self._c @ self._beta)
        if not products > ENOUGH * abs(objective):
            return False
        target = products / (2 * len(p))
        bends = 1.0 / (p / below + q / above)
        rest = F @ w + self._c - p + q
        missing = F.T @ self._beta
        missing[:-1] -= w[:-1]
        missing[-1] -= self._total
        matrix = F.T @ (F * bends[:, None])
        matrix[np.diag_indices(len(w) - 1)] += 1.0
        scales = 1.0 / np.sqrt(np.diagonal(matrix))
        matrix *= scales[:, None] * scales
        try:
            triangle = scipy.linalg.cho_factor(matrix, check_finite=True)
        except (scipy.linalg.LinAlgError, ValueError):
            return False

        def direction(to_p: np.ndarray, to_q: np.ndarray) -> tuple[np.ndarray, ...]:
            """Changes that bring p·below and q·above up by so much, to first order."""
            right = to_p / below - to_q / above - rest
            change = F.T @ (bends * right) + missing
            change = scales * scipy.linalg.cho_solve(triangle, scales * change)
            of_beta = bends * (right - F @ change)
            return change, of_beta, (to_p - p * of_beta) / below, (to_q + q * of_beta) / above

        def longest(of_beta: np.ndarray, of_p: np.ndarray, of_q: np.ndarray) -> float:
            sides = ((below, of_beta), (above, -of_beta), (p, of_p), (q, of_q))
            ends = [float(np.min(-v[d < 0] / d[d < 0], initial=np.inf)) for v, d in sides]
            return min(ends)

        _, of_beta, of_p, of_q = direction(-p * below, -q * above)
        reach = min(1.0, longest(of_beta, of_p, of_q))
        then = (p + reach * of_p) @ (below + reach * of_beta)
        then += (q + reach * of_q) @ (above - reach * of_beta)
        target *= (max(0.0, float(then)) / products) ** 3
        to_p, to_q = target - p * below - of_p * of_beta, target - q * above + of_q * of_beta
        change, of_beta, of_p, of_q = direction(to_p, to_q)
        reach = min(1.0, REACH * longest(of_beta, of_p, of_q))
        if not reach > SHORTEST:
            return False
        # What goes to 0 falls, and what does not stays: β − lower or p, upper − β or q.
        self._falls[0] = reach * of_beta / below < reach * of_p / p
        self._falls[1] = -reach * of_beta / above < reach * of_q / q
        self._beta = np.clip(self._beta + reach * of_beta, self._lower, self._upper)
        self._w = w + reach * change
        self._p, self._q = p + reach * of_p, q + reach * of_q
        return bool(np.all(self._beta > self._lower) and np.all(self._beta < self._upper))

    def rounded(self) -> np.ndarray:
        """β, with those that go to a bound there; the others change so that w and Σβ stay."""
        beta = np.where(self._falls[0], self._lower, self._beta)
        beta = np.where(self._falls[1], self._upper, beta)
        room = np.minimum(beta - self._lower, self._upper - beta)
        missing = np.append(self._w[:-1], self._total) - self._F.T @ beta
        columns = (self._F * room[:, None])[room > 0.0].T
        parts = scipy.linalg.lstsq(columns, missing, check_finite=False)[0]
        if not np.all(np.abs(parts) < 1.0):
            return self._beta
        beta[room > 0.0] += room[room > 0.0] * parts
        return beta


# -- when it has its turn ---------------------------------------------------------------------

# Steps of pairs for each variable after which a run is called slow: most runs are done by then. At
# half of it the interior point method begins a little too early now and then, at twice of it
# later, at most twice the work.
SLOW = 30
# Multiplications of the interior point method in the time of one, for a step of a pair, per
# variable: its products of matrices run that much faster.
FASTER = 2.0
# Steps of pairs after which no run is expected to go on without progress, as in libsvm; at least
# so many for each variable.
MANY_STEPS = 10_000_000
STEPS_PER_VARIABLE = 100
# Times the steps before the interior point method, after which it is the same if that has not
# helped: rounding is in the way of both.
AFTERWARDS = 4


class Pace:
    """Compares gaps with steps of pairs, once a run has taken SLOW of them for each variable.

    The run is slow once it has also taken as much work as the interior point method takes: that has
    its turn then, once. After MANY_STEPS, or AFTERWARDS times the steps up to then if it could be
    tried, twice as many steps must halve the gap.

    Parameters
    ----------
    variables : int
    columns : int
        Of the factor that the interior point method works with.
    max_iter : int or None
        A run whose user has said where it ends goes on till then.
    """

    def __init__(self, variables: int, columns: int, max_iter: int | None) -> None:
        # A dozen steps with a matrix of columns² numbers, each a sum over all variables.
        self._interior = 12.0 * (columns**2 + columns**3 / (3.0 * max(1, variables))) / FASTER
        first = max(MANY_STEPS, STEPS_PER_VARIABLE * variables) // 2
        self._next: float = first if max_iter is None else math.inf
        self._before = math.inf

    def slow(self, work: int) -> bool:
        """Whether it is time for the interior point method, after so much work; true once."""
        if work < self._interior:
            return False
        self._interior = math.inf
        return True

    def tried(self, steps: int) -> None:
        """The interior point method has had its turn after so many steps."""
        if self._next < math.inf:
            self._next = min(self._next, AFTERWARDS * steps)

    def hopeless(self, steps: int, gap: float) -> bool:
        """Whether the gap has hardly fallen during the latter half of so many steps."""
        if steps < self._next:
            return False
        slow = not gap <= 0.5 * self._before
        first = self._before == math.inf
        self._next, self._before = 2 * steps, gap
        return slow and not first
