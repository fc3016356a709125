"""Coordinate descent with a certificate after every few passes.

The dual point of the passes is a cut, so it bounds the optimum from below. Its w is a
poor primal point for a long time; the minimum of F on the line from the best point to it is
a far better one, and costs one product.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..bundle import IterativeSolver, Observer, StopRule
from ..oracles import Cut, RowOracle
from ..result import Status
from .passes import Passes

# Passes before each certificate, the last number for all that follow. A certificate costs
# about as much as a pass; easy problems need few of them, others must not pay for many.
PASSES = (2, 2, 3, 5)
# Where so many iterations, 1000 passes, are not enough, cutting planes are the better method.
MOST_ITERATIONS = 200


class CoordinateSolver(IterativeSolver):
    """State of one run. An iteration is a few passes and a certificate.

    Parameters
    ----------
    oracle : RowOracle
        With hinge or squared hinge risk.
    C, observer
        As for every solver.
    stop : StopRule
        Without ``max_iter`` MOST_ITERATIONS are run at most.
    rng : numpy.random.Generator
        Draws the order of the rows.
    dual_point : ndarray, optional
        Where to start: a dual point per row divided by C per unit of weight, within its bounds.
    """

    oracle: RowOracle

    def __init__(
        self,
        oracle: RowOracle,
        C: float,
        stop: StopRule,
        rng: np.random.Generator,
        observer: Observer | None = None,
        dual_point: np.ndarray | None = None,
    ) -> None:
        if stop.max_iter is None:
            stop = replace(stop, max_iter=MOST_ITERATIONS)
        super().__init__(oracle, C, stop, observer)
        self.passes = Passes(oracle, C, rng)
        self.point = oracle.new_point()
        self.trial = oracle.new_point()
        self._cut: Cut | None = None
        if dual_point is not None:
            self.passes.start(dual_point)

    def dual_point(self) -> np.ndarray:
        return self.passes.coef()

    def active_cuts(self) -> tuple[Cut, ...]:
        return () if self._cut is None else (self._cut,)

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        with self.watch.phase("scores"):
            self.oracle.evaluate(np.zeros_like(self.point.w), self.point)
            self._keep(self.point)
            if start is not None:
                self.oracle.evaluate(start.copy(), self.trial)
                if self._objective(self.trial) < self.best.primal:
                    self.point.take(self.trial)
                    self._keep(self.point)
        for cut in cuts:
            self._bound(cut)
        while True:
            finished = True
            with self.watch.phase("passes"):
                for _ in range(PASSES[min(len(self.trace), len(PASSES) - 1)]):
                    finished = finished and self.passes.run(self._out_of_time)
            with self.watch.phase("certificate"):
                trial, step = self._certify()
            status = self._end_iteration(trial, step, 1)
            if status is None and not finished:
                status = Status.TIME_LIMIT
            if status is None and self._stalled():
                status = Status.NUMERICALLY_LIMITED
            if status is not None:
                return status

    def _certify(self) -> tuple[float, float]:
        """Renew bound and best point; returns F of the dual point's w, and the step."""
        cut = self.oracle.dual_cut(-self.oracle.targets.labels * self.passes.coef())
        w = -self.C * cut.a
        squared_norm = self._bound(cut)
        self.oracle.evaluate(w, self.trial)
        self.passes.settle(w, self.trial.scores)
        step = self._descend(self.point, self.trial, squared_norm)
        step = self._keep_if_better(self.point, step)
        return self._objective(self.trial), step

    def _bound(self, cut: Cut) -> float:
        """Raise the lower bound by what a cut alone gives; returns |C·a|²."""
        squared = self.C * self.C * float(np.einsum("i,i->", cut.a, cut.a))
        dual = self.C * cut.offset - 0.5 * squared
        if dual > self.dual:
            self.dual, self._cut = dual, cut
        return squared

    def _out_of_time(self) -> bool:
        return self.watch.elapsed() >= self.stop.time_limit
