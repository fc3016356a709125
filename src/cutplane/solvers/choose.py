"""How ``solver='auto'`` chooses between coordinate descent, Newton's method and cutting planes.

The choice compares costs in products (one multiplication and one addition). They follow from the
shape of the data, never from the clock, so the result is the same on any machine. With N stored
numbers, d features and rows of L numbers, a pass of descent reads each number and changes w by it,
which takes 2N products. Newton's method takes about

    STEPS·(3N + ½·sample·L² + d³/3),    sample = SAMPLE·max(d, rows/L) rows, or all if that is less,

and half as many steps for a smooth loss. A step has three passes, for scores, a line and a cut, and
a direction: a matrix that is a sum over a sample of rows, and its factor. A product of dense
matrices counts an eighth, because it is about eight times as fast. ``newton_cost`` is this cost in
passes of descent.

Small data are first given to Newton's method in one compiled call, unless its steps are long, few
passes of descent are expected (3 below), and the tolerance is not small. Other data, and what that
call leaves unsolved, go through this list. The first entry that applies begins:

1. Cutting planes, if the risk is not a sum of losses of one score.
2. Newton's method, if the data are in memory and the loss is smooth, but not piecewise quadratic,
   like the logistic loss. Conjugate gradients can then replace the factor, and a step of descent
   would need many evaluations of the loss.
3. Descent, if the data are in memory, the loss has kinks and C is small. When the slope of row i
   changes by 1, its score changes by c_i·|x_i|² through its own part of w. If this is less than the
   distance of scores over which the slope of the loss changes by 1 (``dual_unit``), most steps end
   at a bound and stay there, and few passes are enough.
4. Newton's method, if it costs at most 4·STEPS passes.
5. Descent, if the data are in memory.
6. Cutting planes.

While descent runs, the solver measures its pace. If the gap was P, the objective, and is G after
the work W, log(gap) falls by log(P/G)/W per pass. If it fell faster in the second half of the work,
that pace counts, because descent speeds up once it knows which rows are at a bound. Newton's method
takes over if the remaining log(gap/tolerance) takes longer at this pace than Newton's method. The
first passes tell little, so the solver waits for LITTLE of the cost of Newton's method. That
method then starts without the point of descent, which would not speed it up. STEPS are for an
objective about as large as at w = 0. A smaller objective needs a smaller width in the end, and so
more steps. Cutting planes on disk are judged in the same way: an iteration computes the scores and
a cut, and counts as a pass.

Cutting planes are also the last resort, if rounding has stopped the other solvers. They do not
follow descent where Newton's method is too large: then descent has no limit.

Every solver has the same kind of certificate, so the run keeps its best point and its bound when it
changes the solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeGuard

import numpy as np

from ..exec import SerialExecutor
from ..objective import Cut, Oracle, Point, RowOracle
from ..result import Iteration, Status
from . import constants
from .base import Best, IterativeSolver, Observer, StopRule
from .coordinate import CoordinateSolver
from .curvature import needs_no_factor
from .newton import NewtonSolver, expected_cost
from .small import SmallNewtonSolver

# Stored numbers of small data, and products in a step there: some milliseconds. On data of about so
# many numbers the compiled call took half the time that steps from Python take.
SMALL, SMALL_STEP = 1 << 18, 1 << 25
# With fewer products in a step, or a smaller relative gap to reach, the compiled call takes less
# than descent's calls from Python, even if few passes are expected.
SHORT_STEP, ROUGH = 1 << 22, 1e-4
# Numbers in a matrix of Newton's method for data on disk, unless that method is cheap. With the
# parts of its sum, about eleven such matrices are in memory, 370 MB.
MOST_ON_DISK = 1 << 22


class AutoSolver(IterativeSolver):
    """State of one run, which goes through one stage or several.

    Parameters
    ----------
    oracle, C, stop, observer
        As for every solver.
    rng : numpy.random.Generator, optional
        Draws the order of the rows; by default one that draws the same in every run.
    dual_point : ndarray, optional
        Where descent or Newton's method starts, as for ``CoordinateSolver``.
    """

    def __init__(
        self,
        oracle: Oracle,
        C: float,
        stop: StopRule,
        rng: np.random.Generator | None = None,
        observer: Observer | None = None,
        dual_point: np.ndarray | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, observer)
        self._given_rng = rng
        self._dual_point = dual_point
        self._stage: IterativeSolver | None = None
        self._before: Best | None = None  # of the stages before
        self._gave_up = False
        # Of the first stage: its work, and what was left.
        self._course: list[tuple[float, float]] = []

    def active_cuts(self) -> tuple[Cut, ...]:
        return () if self._stage is None else self._stage.active_cuts()

    def dual_point(self) -> np.ndarray | None:
        return None if self._stage is None else self._stage.dual_point()

    def best_point(self) -> Point | None:
        point = None if self._stage is None else self._stage.best_point()
        return point if point is not None and point.w is self.best.w else None

    def verify(self) -> None:
        """Prove what the stage has reached; what those before it have reached is proved.

        Only proved objectives are compared with one another, after an interrupt as well: where
        rounding is as large as the difference the model is the same however a run ends.
        """
        if self._stage is not None and self._stage._best is not None:
            self._stage.verify()
            self._take(self._stage)

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        for stage in self._stages(cuts):
            if self._stage is not None and (limit := self._limit()) is not None:
                return limit
            stage.start_point = self.start_point if self._stage is None else self.best_point()
            stage.watch, stage.watched = self.watch, self.watched
            stage.dual, stage.proved = self.dual, self.proved
            if self.stop.max_iter is not None:
                stage.stop = replace(self.stop, max_iter=self.stop.max_iter - len(self.trace))
            self._stage, self._before, self._gave_up = stage, self._best, False
            try:
                status = stage._iterate(start, cuts)
                stage.verify()  # the next one begins with what has been proved
            finally:
                self._take(stage)
                stage.observer = None  # it is this solver: the two would outlive the fit together
            most = math.inf if self.stop.max_iter is None else self.stop.max_iter
            own_limit = status is Status.MAX_ITER and len(self.trace) < most
            if not (self._gave_up or own_limit or status is Status.NUMERICALLY_LIMITED):
                break
            start, cuts = stage.best.w, (*cuts, *stage.active_cuts())
        return status

    def _stages(self, cuts: tuple[Cut, ...]) -> Iterator[IterativeSolver]:
        """The solvers, in the order in which they have their turn, with cuts known beforehand."""
        oracle, C, stop, warm = self.oracle, self.C, self.stop, self._dual_point
        if _is_sum_of_losses(oracle):
            in_memory = oracle.matrix.whole is not None
            cost = newton_cost(oracle, C)
            rows, features = oracle.matrix.shape
            step = (rows + features) * (features + 1) ** 2
            small = rows * features <= SMALL and step <= SMALL_STEP
            short = step <= SHORT_STEP or stop.relative < ROUGH
            if small and (short or not _is_easy(oracle, C)):
                yield SmallNewtonSolver(oracle, C, stop, self._observe, warm)
            cheap = _is_cheap(oracle, C, cost)
            if not (in_memory or cheap) and (features + 1) ** 2 > MOST_ON_DISK:
                cost = math.inf
            if in_memory and not cheap:
                descent = CoordinateSolver(oracle, C, stop, self._rng, dual_point=warm)
                descent.observer = partial(self._observe_first, oracle, lambda: descent.passes)
                if cost == math.inf:  # cutting planes in as many dimensions would take longer
                    descent.most_passes = math.inf
                yield descent
                warm = None
            elif cost < math.inf and not cheap:
                planes = self._cutting_planes()
                planes.observer = partial(self._observe_first, oracle, lambda: len(planes.trace))
                yield planes
            if cheap or cost < math.inf:
                yield NewtonSolver(oracle, C, stop, self._observe, warm)
        yield self._cutting_planes()

    def _cutting_planes(self) -> IterativeSolver:
        from .cutting_plane import AdaptivePosition, BundleSolver  # few runs need them

        return BundleSolver(self.oracle, self.C, self.stop, AdaptivePosition(), self._observe)

    @property
    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(0) if self._given_rng is None else self._given_rng

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
        """Count on from the stage before, with its bound.

        What its proof has added to the objective, a rounding, does not show in the trace.
        """
        assert self._stage is not None
        self._take(self._stage)
        if self._before is not None:
            primal = min([self.best.primal, *(last.primal for last in self.trace[-1:])])
            record = replace(record, number=len(self.trace) + 1, primal=primal, dual=self.dual)
        self.trace.append(record)
        return self.observer is not None and bool(self.observer(record))

    def _observe_first(
        self, oracle: RowOracle, work: Callable[[], float], record: Iteration
    ) -> bool:
        """Stop the first solver where Newton's method will be done before it; work is in passes."""
        if self._observe(record):
            return True
        now, done = self.trace[-1], work()
        enough = self.stop.enough(now.primal, self.C)
        if now.gap <= enough or enough <= 0.0:
            return False
        left = math.log(now.gap / enough)
        pace = (math.log(now.primal / enough) - left) / done
        recent = [known for known in self._course if known[0] <= 0.5 * done]
        if recent:
            then, left_then = recent[-1]
            pace = max(pace, (left_then - left) / (done - then))
        self._course.append((done, left))
        cost = newton_cost(oracle, self.C, now.primal)
        to_come = left / pace if pace > 0.0 else math.inf
        self._gave_up = done >= constants.LITTLE * cost and to_come > cost
        return self._gave_up


def _is_sum_of_losses(oracle: Oracle) -> TypeGuard[RowOracle]:
    """Whether descent and Newton's method can be asked at all."""
    # With a slack the constant feature stands for free biases, on another scale than the rows.
    return (
        isinstance(oracle, RowOracle)
        and oracle.risk.loss is not None
        and (oracle.slack(1.0, 1.0) == 0.0)
    )


def _is_cheap(oracle: RowOracle, C: float, cost: float) -> bool:
    """Whether Newton's method has its turn before all others."""
    return needs_no_factor(oracle) or (cost <= 4.0 * constants.STEPS and not _is_easy(oracle, C))


def _is_easy(oracle: RowOracle, C: float) -> bool:
    """Whether few passes of descent are expected: a row alone hardly moves its own score."""
    matrix, risk = oracle.matrix, oracle.risk
    if matrix.whole is None or risk.loss.curvature is not None:
        return False
    alone = C / max(1, len(matrix)) * float(np.mean(matrix.squared_norms(SerialExecutor())))
    return alone <= risk.dual_unit(oracle.targets, oracle.free_bias)


def newton_cost(oracle: RowOracle, C: float, primal: float = math.inf) -> float:
    """What Newton's method is expected to take, in passes of descent over all rows."""
    return expected_cost(oracle, C, primal) / (2.0 * max(1.0, oracle.matrix.n_stored))
