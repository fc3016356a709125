"""Newton's method on small data in one compiled call, with its certificate.

The method is that of ``newton``; rows are dense and in float64, so that there is one compiled
version per loss. Python's part is a copy of the data, the certificate, and the trace.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from ..data.blocks import Block, read_only
from ..exec import SerialExecutor
from ..loops import smoothed as loops
from ..losses import direction
from ..objective import Cut, RowOracle
from ..result import Status
from . import constants
from .base import Best, IterativeSolver, Observer, StopRule

# Products in a compiled call, about a fifth of a second. After a call the solver checks the time.
CALL_WORK = 1 << 28
# The most steps if the user sets no limit. If so many are not enough, rounding prevents progress.
MOST_STEPS = 200


class SmallNewtonSolver(IterativeSolver):
    """State of one run.

    Parameters
    ----------
    oracle : RowOracle
        With the risk of a loss, and data in memory of which a dense copy may be made.
    C, stop, observer
        As for every solver. Unless the run is ``watched``, the observer learns of all steps of a
        call after it.
    dual_point : ndarray, optional
        As ``dual_point()`` of a solver gives it. It only gives a bound: a fit from w = 0 takes no
        longer than a fit from this point.
    """

    oracle: RowOracle

    def __init__(
        self,
        oracle: RowOracle,
        C: float,
        stop: StopRule,
        observer: Observer | None = None,
        dual_point: np.ndarray | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, observer)
        self._loss = oracle.risk.loss
        self._x = _dense(oracle)
        self._coef = np.zeros(len(oracle.matrix))
        if dual_point is not None:
            self._coef[:] = -dual_point * direction(self._loss, oracle.targets.labels)
        self._supported = False  # whether the bound of the dual point has been proved

    def dual_point(self) -> np.ndarray:
        return -self._coef * direction(self._loss, self.oracle.targets.labels)

    def active_cuts(self) -> tuple[Cut, ...]:
        return () if self._cut is None else (self._cut,)

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        status = self._look(start, cuts)
        self._begin()
        # Beyond the time limit there is one step, as in every solver.
        one_by_one = self.watched or self._limit() is not None
        most = 1 if one_by_one else len(self._history)
        limit = self.stop.max_iter or MOST_STEPS
        while status is None:
            before = len(self.trace)
            steps = self._call(min(most, limit - before))
            status = self._tell(max(1, steps))
            if status is None and len(self.trace) >= limit:
                status = Status.NUMERICALLY_LIMITED
        self._try_zero()
        return status

    def _try_zero(self) -> None:
        """Take w = 0 if it is as good. If it is the optimum, steps only come close to it."""
        w = self.best.w.reshape(-1)
        if 0.5 * float(w @ w) <= self.stop.enough(self.best.primal, self.C) and np.any(w):
            zero = self.oracle.new_point()
            self.oracle.evaluate(np.zeros_like(self.best.w), zero)
            if self._objective(zero) <= self.best.primal:
                self._keep(zero)

    def _look(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status | None:
        """Find the best point before the first step, which may be good enough to end the run."""
        if start is None and not cuts and self.start_point is None:
            self._first = self._best = Best(np.zeros(self.oracle.dimension), 0.0, np.inf)
            return None
        self._begin_at(start, self.oracle.new_point(), self.oracle.new_point())
        for cut in cuts:
            self._bound(cut)
        if self._cut is not None:  # if its dual point is good, w = −C·a is good, too
            other = self.oracle.new_point()
            self.oracle.evaluate(-self.C * self._cut.a, other)
            if self._objective(other) < self.best.primal:
                self._keep(other)
        self._first = self.best
        if not self.stop.converged(self.best.primal, self.dual, self.C):
            return None
        return self._end_iteration(self.best.primal, 0.0, 1)

    def _begin(self) -> None:
        """Set the state to w = 0."""
        x = self._x
        rows, features = x.shape
        work = (rows + features) * (features + 1) ** 2
        most = min(self.stop.max_iter or MOST_STEPS, MOST_STEPS, max(1, CALL_WORK // work))
        self._history = np.zeros((most, 4))
        unit = self.oracle.risk.dual_unit(self.oracle.targets, self.oracle.free_bias)
        width = constants.WIDTH * unit
        self._state = np.array([width, 0.0, np.inf, 0.0, 0.0, 0.0])
        w, best_w = np.zeros(features), np.zeros(features)
        scores, shift, coef = np.zeros(rows), np.zeros(rows), np.zeros(rows)
        self._points = w, scores, shift, best_w, coef
        self._space = loops.small_space(rows, features, self.oracle.free_bias)

    def _call(self, most: int) -> int:
        """Make steps, and store them in the history; returns how many."""
        targets = self.oracle.targets
        unit = self.C / targets.total
        with self.watch.phase("newton"):
            steps: int = loops.small_newton(
                self._loss,
                self._x,
                targets.labels,
                unit * targets.weights,
                self.oracle.free_bias,
                self.stop.relative,
                max(self.stop.absolute, self.stop.epsilon * self.C),
                constants.NARROWER,
                constants.LITTLE,
                most,
                self._state,
                *self._points,
                self._history,
                self._space,
            )
        np.divide(self._points[-1], unit, out=self._coef)
        self._supported = False
        if steps == 0:  # the start is good enough
            self._history[0] = self._state[2], self._state[4], self._state[2], 0.0
        return steps

    def _tell(self, steps: int) -> Status | None:
        """Record the iterations of the last call."""
        status = None
        for primal, dual, trial, step in self._history[:steps].tolist():
            self._best = self._better(primal)
            self.dual = max(self.dual, dual)
            status = self._end_iteration(trial, step, 1)
            if status is Status.STOPPED:
                break
        return status

    def _better(self, primal: float) -> Best:
        """The best point of the calls, if its objective is better than that of the first point."""
        own = Best(self._points[3], float(self._state[3]), primal)
        return own if primal < self._first.primal else self._first

    def verify(self) -> None:
        """Prove the bound of the last call's dual point. The rest is as in every solver."""
        if not self._supported:
            with self.watch.phase("cut"):
                self._bound(self.oracle.dual_cut(self._coef))
            self._supported = True
        super().verify()


def _dense(oracle: RowOracle) -> np.ndarray:
    """The rows in float64, with the constant feature behind a regularised bias."""
    matrix, (rows, features) = oracle.matrix, oracle.matrix.shape
    x = np.empty((rows, features + (oracle.constant != 0.0)))

    def copy(k: int, block: Block) -> None:
        out = x[matrix.slice(k), :features]
        values, indices, starts = block.flat()
        if indices is None:
            out[...] = values.reshape(out.shape)
        else:
            csr = (values, indices.astype(np.int32), starts)
            out[...] = scipy.sparse.csr_array(csr, shape=out.shape).toarray()

    matrix.run(copy, SerialExecutor())
    if oracle.constant:
        x[:, features] = oracle.constant
    return read_only(x)  # as blocks are: their products are compiled already
