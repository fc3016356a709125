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
MOST_ROUNDS = 10_000


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
        self._work = np.zeros((3, capacity + 1))

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
        x, ones, gradient = self._work
        simplex_qp.solve(
            C * self._gram[:t, :t],
            self._offsets[:t],
            self._beta[:t],
            self._factor,
            self._support,
            x,
            ones,
            gradient,
            MOST_ROUNDS,
        )
        beta = self._beta[:t]
        w = self._space.combine(-C * beta[1:])
        squared_norm = self._space.dot(w, w)
        dual = C * float(self._offsets[:t] @ beta) - 0.5 * squared_norm
        self._idle[:t] = np.where(beta > 0.0, 0, self._idle[:t] + 1)
        return ReducedSolution(w, squared_norm, dual)

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
