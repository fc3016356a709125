"""The loop with a cache of cuts that cost little: outputs of earlier inference, chosen anew.

Where a cut costs a pass of slow inference, the solution of the reduced problem is first held
against cuts that need none (Joachims, Finley & Yu 2009, §3.3). As long as one of them rises
above the reduced problem by a good part of the gap it is added and the problem solved again;
then the real oracle is asked. Such cuts are valid, so the lower bound is; upper bounds come
from the real oracle alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..oracles import Cut, Oracle
from .loop import BundleSolver
from .reduced import Bundle, ReducedSolution
from .solver import Observer, StopRule
from .space import VectorSpace
from .step import CutPosition

# Part of the gap by which a cheap cut must rise above the reduced problem.
WORTH_ADDING = 0.1
MOST_CHEAP_CUTS = 50

CheapCut = Callable[[np.ndarray], Cut | None]


class CachedBundle(Bundle):
    """A bundle that adds cheap cuts before it hands out its solution.

    Parameters
    ----------
    space : VectorSpace
    cheap_cut : callable
        The best cheap cut at a point, or None.
    primal : callable
        The best objective so far.
    """

    def __init__(
        self, space: VectorSpace, cheap_cut: CheapCut, primal: Callable[[], float]
    ) -> None:
        super().__init__(space)
        self._cheap_cut = cheap_cut
        self._primal = primal

    def solve(self, C: float) -> ReducedSolution:
        """Solve the reduced problem for this C."""
        solution = super().solve(C)
        for _ in range(MOST_CHEAP_CUTS):
            cut = self._cheap_cut(solution.w)
            if cut is None:
                break
            height = self._space.dot(cut.a, solution.w) + cut.offset
            reduced = (solution.dual - 0.5 * solution.squared_norm) / C
            if height - reduced <= WORTH_ADDING * (self._primal() - solution.dual) / C:
                break
            self.add(cut.a, cut.offset)
            solution = super().solve(C)
        return solution


class CachedBundleSolver(BundleSolver):
    """The loop with cheap cuts.

    Parameters
    ----------
    oracle, C, stop, position, observer
        As for the loop without.
    cheap_cut : callable
        The best cheap cut at a point, or None.
    """

    def __init__(
        self,
        oracle: Oracle,
        C: float,
        stop: StopRule,
        position: CutPosition | None,
        observer: Observer | None,
        cheap_cut: CheapCut,
    ) -> None:
        super().__init__(oracle, C, stop, position, observer)
        self.bundle = CachedBundle(self.space, cheap_cut, lambda: self.best.primal)
