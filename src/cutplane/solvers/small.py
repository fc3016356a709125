"""Newton's method on small data in one compiled call, with its certificate.

The method is that of ``newton``; rows are dense and in float64, so that there is one compiled
version per loss. Python's part is a copy of the data, the certificate, and the trace.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from ..bundle import Best, IterativeSolver, Observer, StopRule
from ..data.blocks import ColumnMajorBlock, CSRBlock
from ..loops import smoothed as loops
from ..oracles import Cut, RowOracle
from ..result import Status
from .newton import NARROWER, WIDTH

# Products in a compiled call, about a fifth of a second: then the clock is looked at.
CALL_WORK = 1 << 28
# Steps without a limit by the user: where so many are not enough, rounding is in the way.
MOST_STEPS = 200


class SmallNewtonSolver(IterativeSolver):
    """State of one run.

    Parameters
    ----------
    oracle : RowOracle
        With the risk of a loss, and data in memory of which a dense copy may be made.
    C, stop, observer
        As for every solver. The observer learns of steps once they have been made.
    dual_point : ndarray, optional
        Not used: to begin anew takes no longer.
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
        self._coef = np.zeros(len(oracle.matrix))
        self._cut: Cut | None = None
        self._supported = False  # whether the bound of the dual point has been proved

    def dual_point(self) -> np.ndarray:
        return np.abs(self._coef)

    def active_cuts(self) -> tuple[Cut, ...]:
        return () if self._cut is None else (self._cut,)

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        oracle, targets = self.oracle, self.oracle.targets
        x = _dense(oracle)
        rows, features = x.shape
        weights = self.C / targets.total * targets.weights
        state = np.array([WIDTH, 0.0, np.inf, 0.0, 0.0])
        w, best_w = np.zeros(features), np.zeros(features)
        scores, shift, coef = np.zeros(rows), np.zeros(rows), np.zeros(rows)
        absolute = max(self.stop.absolute, self.stop.epsilon * self.C)
        limit = self.stop.max_iter or MOST_STEPS
        work = (rows + features) * (features + 1) ** 2
        history = np.zeros((min(limit, MOST_STEPS, max(1, CALL_WORK // work)), 4))
        status: Status | None = None
        while status is None:
            with self.watch.phase("newton"):
                steps = loops.small_newton(
                    self._loss,
                    x,
                    targets.labels,
                    weights,
                    oracle.free_bias,
                    self.stop.relative,
                    absolute,
                    NARROWER,
                    min(len(history), limit - len(self.trace)),
                    state,
                    w,
                    scores,
                    shift,
                    best_w,
                    coef,
                    history,
                )
            np.divide(coef, self.C / targets.total, out=self._coef)
            self._supported = False
            if steps == 0:  # the start is good enough
                history[0] = state[2], state[4], state[2], 0.0
            for primal, dual, trial, step in history[: max(1, steps)].tolist():
                self._best = Best(best_w, float(state[3]), primal)
                self.dual = max(self.dual, dual)
                status = self._end_iteration(trial, step, 1)
                if status is Status.STOPPED:
                    break
            if status is None and len(self.trace) >= MOST_STEPS:
                status = Status.NUMERICALLY_LIMITED
        for cut in cuts:
            self._bound(cut)
        if start is not None:
            other = oracle.new_point()
            oracle.evaluate(start.copy(), other)
            if self._objective(other) < self.best.primal:
                self._keep(other)
        return status

    def _support(self) -> None:
        """Prove the bound of the dual point of the last call."""
        if not self._supported:
            with self.watch.phase("cut"):
                self._bound(self.oracle.dual_cut(self._coef))
            self._supported = True

    def _bound(self, cut: Cut) -> float:
        before = self.proved
        bound = super()._bound(cut)
        if bound > before:
            self._cut = cut
        return bound


def _dense(oracle: RowOracle) -> np.ndarray:
    """The rows in float64, with the constant feature behind a regularised bias."""
    block, (rows, features) = oracle.matrix.whole, oracle.matrix.shape
    x = np.empty((rows, features + (oracle.constant != 0.0)))
    if isinstance(block, CSRBlock):
        csr = (block.values, block.indices.astype(np.int32), block.starts)
        x[:, :features] = scipy.sparse.csr_array(csr, shape=(rows, features)).toarray()
    else:
        x[:, :features] = block.xt.T if isinstance(block, ColumnMajorBlock) else block.x
    if oracle.constant:
        x[:, features] = oracle.constant
    return x
