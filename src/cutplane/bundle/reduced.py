"""The bundle of cuts and its reduced problem.

    min_w ½|w|² + C·max(0, max_j <a_j, w> + b_j)

through its dual, with β on the simplex and β_0 the share of the zero cut:

    max_β  C·bᵀβ − ½C²·βᵀGβ,    G_jk = <a_j, a_k>,    w = −C Σ β_j a_j.

Any feasible β gives a lower bound on the master problem. The bound is computed
from w itself, not from G, so that rounding in G cannot lift it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..loops import simplex_qp
from .space import VectorSpace

# Cuts whose weight was zero in this many solutions in a row are dropped.
IDLE_SOLUTIONS = 30
# Error of the reduced gradient, in units of the risk, above which G is not trusted with it.
GRAM_ERROR = 1e-10
MOST_REFINEMENTS = 10


@dataclass(frozen=True)
class ReducedSolution:
    """Solution of the reduced problem.

    Attributes
    ----------
    w : ndarray
        Its point, flat.
    squared_norm : float
        |w|².
    dual : float
        Its value: a lower bound on the master problem.
    """

    w: np.ndarray
    squared_norm: float
    dual: float


class Bundle:
    """Cuts, their Gram matrix and the reduced problem, warm-started from solve to solve."""

    def __init__(self, space: VectorSpace) -> None:
        self._space = space
        self._allocate(32)
        self._count = 1  # the zero cut
        self._beta[0] = 1.0

    def _allocate(self, capacity: int) -> None:
        self._gram = np.zeros((capacity, capacity))
        self._offsets = np.zeros(capacity)
        self._beta = np.zeros(capacity)
        self._idle = np.zeros(capacity, dtype=np.int64)
        self._factor = np.zeros((capacity + 1, capacity + 1))
        self._support = np.zeros(capacity + 1, dtype=np.int64)
        self._work = np.zeros((2, capacity + 1))

    def _grow(self) -> None:
        t = self._count
        old = self._gram, self._offsets, self._beta, self._idle
        self._allocate(2 * t)
        self._gram[:t, :t] = old[0]
        self._offsets[:t], self._beta[:t], self._idle[:t] = old[1:]

    def __len__(self) -> int:
        """Cuts kept, not counting the zero cut."""
        return self._count - 1

    def add(self, a: np.ndarray, offset: float) -> None:
        """Add the cut <a, w> + offset."""
        if self._count == len(self._offsets):
            self._grow()
        new = self._count
        column = self._space.append(a)
        self._gram[new, 1 : new + 1] = column
        self._gram[1 : new + 1, new] = column
        self._offsets[new] = offset
        self._beta[new] = 0.0
        self._idle[new] = 0
        self._count += 1

    def solve(self, C: float) -> ReducedSolution:
        """Solve the reduced problem for this C."""
        t = self._count
        hessian = C * self._gram[:t, :t]
        # The reduced gradient C·Gβ − b, computed from G, is off by C·|a|² times the rounding
        # unit. Where that is too much it is computed from w, which is short where the cuts
        # cancel, and the solution is refined with it.
        precise = np.finfo(float).eps * hessian.diagonal().max() < GRAM_ERROR
        solution = None if precise else self._at(C)
        found: list[tuple[ReducedSolution, np.ndarray]] = []
        gap = np.inf
        for _ in range(1 if precise else MOST_REFINEMENTS):
            beta = self._beta[:t]
            gradient = np.zeros(t)
            if solution is None:
                gradient[1:] = hessian[1:] @ beta
            else:
                gradient[1:] = -self._space.products(solution.w)
            gradient -= self._offsets[:t]
            last, gap = gap, float(beta @ gradient - gradient.min())
            if found and (gap <= 0.0 or gap > 0.5 * last):
                break
            simplex_qp.solve(
                hessian, beta, gradient, self._factor, self._support, *self._work, 100 + 10 * t
            )
            beta /= beta.sum()
            solution = self._at(C)
            found.append((solution, beta.copy()))
        best, self._beta[:t] = max(found, key=lambda pair: pair[0].dual)
        self._idle[:t] = np.where(self._beta[:t] > 0.0, 0, self._idle[:t] + 1)
        return best

    def _at(self, C: float) -> ReducedSolution:
        """The point and the bound of the present weights."""
        beta = self._beta[: self._count]
        w = self._space.combine(-C * beta[1:])
        squared_norm = self._space.dot(w, w)
        return ReducedSolution(
            w, squared_norm, C * float(self._offsets[: self._count] @ beta) - 0.5 * squared_norm
        )

    def active(self) -> list[tuple[np.ndarray, float]]:
        """The cuts (a, offset) that carry weight in the last solution."""
        return [
            (self._space.vector(j - 1).copy(), float(self._offsets[j]))
            for j in range(1, self._count)
            if self._beta[j] > 0.0
        ]

    def drop_idle(self) -> None:
        """Forget cuts that have not mattered for long; the last solution stays feasible."""
        t = self._count
        idle = self._idle[:t] > IDLE_SOLUTIONS
        idle[0] = False
        if not idle.any():
            return
        kept = np.flatnonzero(~idle)
        new = len(kept)
        self._gram[:new, :new] = self._gram[np.ix_(kept, kept)]
        for array in (self._offsets, self._beta, self._idle):
            array[:new] = array[kept]
        self._space.keep(kept[1:] - 1)
        self._count = new
