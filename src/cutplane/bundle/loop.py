"""The one loop: cutting planes for min F(w) = ½|w|² + C·R(w).

Every iteration solves the reduced problem of the cuts so far, which gives a
point w_t and a lower bound, moves the best point w_b, and adds a cut.

- CPA (SVM-perf, BMRM): the best point is the best w_t seen; the cut is at w_t.
- OCAS (Franc & Sonnenburg 2008, Algorithm 2): w_b moves to the minimum of F on
  the line from w_b through w_t; the cut is at w_b + λ(w_t − w_b).

Scores are linear in w, so the line search and the point between cost no pass
over the data: one product X·w and one product Xᵀ·coef per iteration.
"""

from __future__ import annotations

import numpy as np

from ..oracles import Cut, Oracle
from ..result import Status
from .reduced import Bundle, ReducedSolution
from .solver import IterativeSolver, Observer, StopRule
from .space import VectorSpace
from .step import CutPosition

# Rounding that scores may pick up before the objective is taken from w again.
DRIFT = 1e-12


class BundleSolver(IterativeSolver):
    """State of one run of the loop.

    Parameters
    ----------
    oracle, C, stop, observer
        As for every solver.
    position : CutPosition or None
        Where OCAS places the cut; None for the plain cutting plane step.
    """

    def __init__(
        self,
        oracle: Oracle,
        C: float,
        stop: StopRule,
        position: CutPosition | None,
        observer: Observer | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, observer)
        self.position = position
        self.space = VectorSpace(oracle.dimension, oracle.executor)
        self.bundle = Bundle(self.space)
        self.solution: ReducedSolution | None = None
        self.point = oracle.new_point()
        self.trial = oracle.new_point()

    def active_cuts(self) -> tuple[Cut, ...]:
        return tuple(Cut(a, offset) for a, offset in self.bundle.active())

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        self._begin(start)
        for cut in cuts:
            self.bundle.add(cut.a, cut.offset)
        self._add_cut()
        while True:
            with self.watch.phase("qp"):
                solution = self.solution = self.bundle.solve(self.C)
            slack = self.oracle.slack(self.best.primal, self.C)
            self.dual = max(self.dual, solution.dual - slack)
            with self.watch.phase("scores"):
                self.oracle.evaluate(solution.w, self.trial)
            with self.watch.phase("line_search"):
                step = self._move_best(solution.squared_norm)
            trial = 0.5 * solution.squared_norm + self.C * self.trial.risk
            status = self._end_iteration(trial, step, len(self.bundle))
            if status is None and self._stalled():
                status = Status.NUMERICALLY_LIMITED
            if status is not None and self._verified(status):
                return status
            self._add_cut()
            self._drop_cuts()

    def _begin(self, start: np.ndarray | None) -> None:
        """Evaluate the start; one so far out that its objective overflows is no start."""
        with self.watch.phase("scores"):
            if start is not None:
                self.oracle.evaluate(start.copy(), self.point)
            if start is None or not np.isfinite(self._objective(self.point)):
                self.oracle.evaluate(np.zeros_like(self.point.w), self.point)
        self._keep(self.point)

    def _verified(self, status: Status) -> bool:
        """Check the best point's objective, which its scores may have lost by rounding.

        False if the point turns out not to be good enough, and the run goes on from there.
        """
        with self.watch.phase("scores"):
            self.oracle.evaluate(self.best.w, self.point)
        best = self.best
        if abs(self._objective(self.point) - best.primal) <= DRIFT * best.primal and abs(
            self.point.bias - best.bias
        ) <= DRIFT * abs(best.bias):
            return True
        self._keep(self.point)
        converged = self.stop.converged(self.best.primal, self.dual, self.C)
        return status is not Status.CONVERGED or converged

    def _move_best(self, trial_squared_norm: float) -> float:
        """Move the best point towards the trial point; returns the step."""
        if self.position is None:
            step = float(self._objective(self.trial) < self.best.primal)
            if step:
                self.oracle.blend(self.point, self.trial, step, self.point)
        else:
            step = self._descend(self.point, self.trial, trial_squared_norm)
        return self._keep_if_better(self.point, step)

    def _add_cut(self) -> None:
        """Add a cut, unless it is the zero cut, which the bundle has from the start."""
        with self.watch.phase("cut"):
            cut = self._next_cut()
        with self.watch.phase("gram"):
            if cut.offset != 0.0 or np.any(cut.a):
                self.bundle.add(cut.a, cut.offset)

    def _next_cut(self) -> Cut:
        """The cut at the start, at the trial point, or on the way to it."""
        if not self.trace:
            return self.oracle.cut(self.point)
        if self.position is None:
            return self.oracle.cut(self.trial)
        position = self.position.next(self.trace[-1], self.trace)
        return self.oracle.cut(self.point, self.trial, position)

    def _drop_cuts(self) -> None:
        """Forget cuts that have not mattered for long."""
        self.bundle.drop_idle()
