"""The solver that chooses: coordinate descent, Newton's method, cutting planes, or a sequence.

All have the same certificate, so that a run can change from one to the other and keep
its best point, its bound, and the cut behind the bound. The choice depends on the data and on
the course of the gap, never on the clock: the result is the same on any machine and for
any number of threads.

Descent goes first in two cases.

- Columns are short: with few rows per feature, as in text, the bundle must learn the features
  one cut at a time, while rows hardly disturb one another.
- C is small: κ = mean C_i·|x_i|² is about the change of a row's own margin between α_i = 0 and
  α_i = C_i. If it is at most 1 or so, most rows reach the bound on which they stay in
  the first passes, and few passes are enough. Not with a free bias, which takes descent
  several rounds.

Descent gives way when, at the pace of the last certificates, the gap will not be closed within a
number of them, or after the first one where Newton's steps are cheap. Then, or at once, Newton's
method has its turn where features are few, and cutting planes where they are not, or where Newton
does not get there. If rows are long, Newton's steps are dear, and cutting planes may be done in a
few iterations: they begin, and give way if the gap is still large after some.

Between descent and cutting planes κ and the length of the columns pointed to the faster one in 17
of 19 problems of six data sets (covtype, MNIST 8 against the rest, film reviews, a9a, w8a, splice
sites), and to one not much slower in the others.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from ..bundle import AdaptivePosition, Best, BundleSolver, IterativeSolver, Observer, StopRule
from ..data.blocks import CSRBlock
from ..losses import Hinge, SquaredHinge
from ..oracles import Cut, Oracle, Point, RowOracle
from ..result import Iteration, Status
from .curvature import row_length
from .newton import NewtonSolver
from .passes import squared_norms
from .solver import CoordinateSolver, Expected

# Stored numbers below which cutting planes take no time worth saving.
SMALL = 1 << 17
# Mean number of rows in which a feature occurs.
SHORT_COLUMN = 1500
SMALL_PENALTY = 2.0
# Certificates after which the pace is known, that it is taken over, and that may be still to come:
# short columns leave no better choice, elsewhere cutting planes soon are.
KNOWN, PACE = 4, 3
TO_COME_SHORT, TO_COME_LONG = 60, 6
# Newton's method is for vectors of so many features, and where a factorisation costs no more than a
# few passes over the data: its cube at most so many times the stored numbers.
MOST_FEATURES = 1000
FACTOR_WORK = 150
# Where so many steps are not enough, cutting planes go on.
MOST_STEPS = 100
# With so many numbers per element of its matrix it needs no descent before it, however small C is.
CHEAP_FACTOR = 64
# Where a factorisation costs as much as a pass, its cube being so many times the stored numbers,
# descent goes before it at larger C, too, and with long rows at any C. It is left at a first gap
# that is larger than this, relative to the objective. Where steps cost less, it is left after the
# first certificate: its passes save Newton's method the steps with most rows inside.
DEAR_FACTOR, DEAR_PENALTY = 16, 30.0
SMALL_GAP = 0.15
# Rows of so many numbers are long, each weighted by its length. Cutting planes then have a look
# first, of so many iterations, and go on if the gap is no more than this, relative to the
# objective: features that have little to do with one another take few cuts. A gap that is larger
# than the second number after fewer iterations has not come down in time in any of 60 problems.
LONG_ROW, LONG_DENSE_ROW = 64, 128
LOOK, LOOK_GAP = 6, 0.8
GLANCE, GLANCE_GAP = 3, 0.99


class AutoSolver(IterativeSolver):
    """State of one run, which goes through one stage or several.

    Parameters
    ----------
    oracle, C, stop, observer
        As for every solver.
    rng : numpy.random.Generator
        Draws the order of the rows.
    dual_point : ndarray, optional
        Where descent or Newton's method starts, as for ``CoordinateSolver``.
    expected : callable, optional
        As for ``CoordinateSolver``.
    """

    def __init__(
        self,
        oracle: Oracle,
        C: float,
        stop: StopRule,
        rng: np.random.Generator,
        observer: Observer | None = None,
        dual_point: np.ndarray | None = None,
        expected: Expected | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, observer)
        self._rng = rng
        self._dual_point = dual_point
        self._expected = expected
        self._squares: np.ndarray | None = None
        self._newton_next = self._dear = False
        self._to_come = self._certificates_to_come()
        self._look = dual_point is None and self._needs_look()
        self._stage: IterativeSolver | None = None
        self._before: Best | None = None  # of the stages before
        self._gave_up = False

    def active_cuts(self) -> tuple[Cut, ...]:
        return () if self._stage is None else self._stage.active_cuts()

    def dual_point(self) -> np.ndarray | None:
        return None if self._stage is None else self._stage.dual_point()

    def best_point(self) -> Point | None:
        own = super().best_point()
        point = own if own is not None or self._stage is None else self._stage.best_point()
        return point if point is not None and point.w is self.best.w else None

    def _support(self) -> None:
        if self._stage is not None:
            self._stage._support()
            self.proved = max(self.proved, self._stage.proved)

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        dual_point = self._dual_point
        if self._look:
            bundle = self._bundle(self._observe_look)
            status = self._run_stage(bundle, start, cuts)
            if not self._gave_up:
                return status
            if (limit := self._limit()) is not None:
                return limit
            self._gave_up = False
            start, cuts = bundle.best.w, (*cuts, *bundle.active_cuts())
        if self._to_come:
            assert isinstance(self.oracle, RowOracle)
            most = self._iterations_left() or 10**9  # else it has a limit of its own
            descent = CoordinateSolver(
                self.oracle,
                self.C,
                replace(self.stop, max_iter=most),
                self._rng,
                self._observe_descent,
                dual_point,
                self._squares,
                self._expected,
            )
            status = self._run_stage(descent, start, cuts)
            if not self._gave_up and status is not Status.NUMERICALLY_LIMITED:
                return status
            if (limit := self._limit()) is not None:
                return limit
            start, cuts = descent.best.w, (*cuts, *descent.active_cuts())
            dual_point = descent.dual_point()
        if _suits_newton(self.oracle):
            left = self._iterations_left()
            newton = NewtonSolver(
                self.oracle,
                self.C,
                replace(self.stop, max_iter=min(left or MOST_STEPS, MOST_STEPS)),
                self._observe,
                dual_point,
            )
            status = self._run_stage(newton, start, cuts)
            limited = status is Status.MAX_ITER and (left is None or left > MOST_STEPS)
            if status is not Status.NUMERICALLY_LIMITED and not limited:
                return status
            if (limit := self._limit()) is not None:
                return limit
            start, cuts = newton.best.w, (*cuts, *newton.active_cuts())
        return self._run_stage(self._bundle(self._observe), start, cuts)

    def _bundle(self, observer: Observer) -> BundleSolver:
        stop = replace(self.stop, max_iter=self._iterations_left())
        return BundleSolver(self.oracle, self.C, stop, AdaptivePosition(), observer)

    def _iterations_left(self) -> int | None:
        return None if self.stop.max_iter is None else self.stop.max_iter - len(self.trace)

    def _run_stage(
        self, stage: IterativeSolver, start: np.ndarray | None, cuts: tuple[Cut, ...]
    ) -> Status:
        stage.start_point = self.start_point if self._stage is None else self.best_point()
        self._before = self._best
        stage.watch = self.watch
        stage.dual, stage.proved = self.dual, self.proved
        self._stage = stage
        try:
            status = stage._iterate(start, cuts)
            stage.verify()  # the next one begins with what has been proved
            return status
        finally:
            self._take(stage)

    def _take(self, stage: IterativeSolver) -> None:
        """Take over what a stage has reached so far.

        Its own word counts, also if it corrects an objective upwards that rounding had made
        too low.
        """
        self.dual, self.proved = stage.dual, stage.proved
        before, now = self._before, stage._best
        if now is None or (before is not None and before.primal < now.primal):
            now = before
        self._best = now

    def _observe(self, record: Iteration) -> bool:
        """Count on from the stage before, with its bound."""
        assert self._stage is not None
        self._take(self._stage)
        record = replace(
            record, number=len(self.trace) + 1, primal=self.best.primal, dual=self.dual
        )
        self.trace.append(record)
        return self.observer is not None and bool(self.observer(record))

    def _observe_look(self, record: Iteration) -> bool:
        if self._observe(record):
            return True
        now = self.trace[-1]
        limit = self.stop.max_iter
        most = {GLANCE: GLANCE_GAP, LOOK: LOOK_GAP}.get(now.number, math.inf)
        too_much = max(most * now.primal, self.stop.enough(now.primal, self.C))
        self._gave_up = now.gap > too_much and (limit is None or now.number < limit)
        return self._gave_up

    def _observe_descent(self, record: Iteration) -> bool:
        if self._observe(record):
            return True
        limit = self.stop.max_iter
        now = self.trace[-1]
        self._gave_up = not self._promising() and (limit is None or now.number < limit)
        return self._gave_up

    def _promising(self) -> bool:
        """Whether descent will close the gap soon, at its pace."""
        now = self.trace[-1]
        enough = self.stop.enough(now.primal, self.C)
        if now.gap <= enough:
            return True
        if self._newton_next and (not self._dear or now.gap > SMALL_GAP * now.primal):
            return False
        if len(self.trace) < KNOWN:
            return True
        before = self.trace[-1 - PACE]
        # From a good start the dual point's own w takes a while to get ahead of the best point.
        pace = max(
            _ratio(before.gap, now.gap),
            _ratio(before.trial - before.dual, now.trial - now.dual),
        )
        if enough == 0.0 or pace <= 1.0:
            return False
        return PACE * math.log(now.gap / enough) <= self._to_come * math.log(pace)

    def _certificates_to_come(self) -> int:
        """How many certificates descent may still have before it; 0 if it is not to be tried."""
        oracle = self.oracle
        if not _has_dual_steps(oracle) or oracle.matrix.whole is None:
            return 0  # on disk rows in random order cost a seek each
        matrix = oracle.matrix
        if matrix.numbers <= SHORT_COLUMN * matrix.shape[1]:
            return TO_COME_SHORT
        if oracle.free_bias:  # descent must approach it, the others have it exactly
            return 0
        most = SMALL_PENALTY
        self._newton_next = _suits_newton(oracle)
        if self._newton_next:
            features = matrix.shape[1]
            long = _long_rows(oracle)
            smooth = isinstance(oracle.risk.loss, SquaredHinge)  # it takes a few steps only
            if smooth or (matrix.numbers >= CHEAP_FACTOR * features**2 and not long):
                return 0
            self._dear = long or features**3 >= DEAR_FACTOR * matrix.numbers
            if self._dear:
                most = math.inf if long else DEAR_PENALTY
            elif self._dual_point is not None:
                return 0  # what descent does before Newton's method has been done at another C
        return TO_COME_LONG if self._penalty(oracle) <= most else 0

    def _penalty(self, oracle: RowOracle) -> float:
        """κ, the mean of C_i·|x_i|²."""
        if self._squares is None:
            self._squares = squared_norms(oracle)
        targets = oracle.targets
        return self.C / targets.total * float(np.mean(targets.weights * self._squares))

    def _needs_look(self) -> bool:
        """Whether cutting planes go first, for a few iterations, to see how hard the problem is."""
        oracle = self.oracle
        if not _suits_newton(oracle) or not isinstance(oracle.risk.loss, Hinge):
            return False
        if not _long_rows(oracle):
            return False
        return not self._to_come or self._penalty(oracle) > SMALL_PENALTY


def _ratio(before: float, now: float) -> float:
    return before / now if now > 0.0 else math.inf


def _has_dual_steps(oracle: Oracle) -> TypeGuard[RowOracle]:
    """Whether rows have dual variables that descent and Newton's method know."""
    if not isinstance(oracle, RowOracle) or oracle.slack(1.0, 1.0) != 0.0:
        return False
    hinge = isinstance(getattr(oracle.risk, "loss", None), Hinge | SquaredHinge)
    return hinge and oracle.matrix.numbers >= SMALL


def _long_rows(oracle: RowOracle) -> bool:
    sparse = isinstance(oracle.matrix.blocks[0], CSRBlock)
    return row_length(oracle) > (LONG_ROW if sparse else LONG_DENSE_ROW)


def _suits_newton(oracle: Oracle) -> TypeGuard[RowOracle]:
    """Whether features are few enough for products of all pairs of them."""
    if not _has_dual_steps(oracle):
        return False
    features = oracle.matrix.shape[1]
    return features <= MOST_FEATURES and features**3 <= FACTOR_WORK * oracle.matrix.numbers
