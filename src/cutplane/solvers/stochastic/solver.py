"""Stochastic solvers for min F(w) = ½|w|² + C·R(w), with the bundle's certificate.

In the methods' own terms they minimise λ/2·|w|² + R(w), λ = 1/C: the same
problem, F divided by C. After every epoch F is evaluated and the lower bound
renewed; neither steers the walk, and their time is kept apart ("certificate"
beside "sgd"). With an unregularised bias the walk moves a bias of its own, and
the oracle settles the exact one for each epoch's w.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...objective import Cut, RowOracle
from ...result import Status
from ..base import IterativeSolver, Observer, StopRule
from .bound import LowerBound
from .epochs import Epochs
from .schedules import Schedule
from .steps import Steps


class StochasticSolver(IterativeSolver):
    """State of one run. An iteration is an epoch, the answer the best end of an epoch.

    ``run`` takes a start only to compare with, so that the answer is no worse:
    the walk itself begins at 0.

    Parameters
    ----------
    oracle : RowOracle
        With hinge, squared hinge or logistic risk.
    C, observer
        As for every solver.
    stop : StopRule
        Without ``max_iter`` the schedule's default number of epochs is run.
    schedule : Schedule
        ``SGD()`` or ``Pegasos()``.
    rng : numpy.random.Generator
        Draws the order of the rows.
    """

    oracle: RowOracle

    def __init__(
        self,
        oracle: RowOracle,
        C: float,
        stop: StopRule,
        schedule: Schedule,
        rng: np.random.Generator,
        observer: Observer | None = None,
    ) -> None:
        if stop.max_iter is None:
            stop = replace(stop, max_iter=schedule.default_epochs(C, len(oracle.matrix)))
        super().__init__(oracle, C, stop, observer)
        self.schedule = schedule
        self.steps = Steps.make(oracle, C, schedule)
        self.rng = rng
        self.bound = LowerBound(oracle, C)
        self.point = oracle.new_point()

    def active_cuts(self) -> tuple[Cut, ...]:
        return self.bound.active_cuts()

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        with self.watch.phase("certificate"):
            self.bound.add(*cuts)
            self._certify(self.point.w if start is None else start.copy())
        with self.watch.phase("sgd"):
            epochs = Epochs(self.oracle, self.steps, self.schedule.calibrated, self.rng)
        while True:
            with self.watch.phase("sgd"):
                finished = epochs.run(self._out_of_time)
            w = epochs.w
            if not np.isfinite(w).all():
                return Status.NUMERICALLY_LIMITED  # the steps were too long
            with self.watch.phase("certificate"):
                self.bound.add_epoch(epochs.coef)
                trial = self._certify(w)
            status = self._end_iteration(trial, 1.0, len(self.bound))
            if status is Status.MAX_ITER and not finished:
                status = Status.TIME_LIMIT
            if status is not None:
                return status

    def _certify(self, w: np.ndarray) -> float:
        """Evaluate F at w, keep it if it is the best, renew the bound; returns F."""
        self.oracle.evaluate(w, self.point)
        objective = self._objective(self.point)
        if self._best is None or objective < self._best.primal:
            self._keep(self.point)
        self.bound.add_point(self.point)
        self._raise(self.bound.value())
        return objective

    def _stalled(self) -> bool:
        return False  # chance may bring more after many epochs

    def _out_of_time(self) -> bool:
        return self.watch.elapsed() >= self.stop.time_limit
