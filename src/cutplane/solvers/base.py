"""What every iterative solver shares: stopping, the best point, trace, timings, interrupts.

A solver writes ``_iterate``: it calls ``_keep`` for every point that may be the best, ``_raise``
for every lower bound that it can prove, and ``_end_iteration`` once per iteration, until that
returns a status.

While a solver runs, rounding errors accumulate in objective and bound, because scores move along
many lines and w changes row by row. At every end ``verify`` computes both anew and replaces them.
The objective becomes an upper bound for the returned w and bias in exact arithmetic, as far as the
oracle can prove it (see ``Oracle.prove``). The lower bound becomes the best one that cuts of all
rows, or combinations of them, give. A run has converged only if the proven numbers meet the
stopping rule. If they do not, the run continues within its limits. After a few proofs without
progress it is numerically limited.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..loops import vectors
from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as UNIT
from ..objective import Cut, Line, Oracle, Point
from ..result import Certificate, Iteration, SolveResult, Status

# Without progress beyond rounding in this many iterations there will be none.
STALLED_ITERATIONS = 20
# The part of the gap that this many iterations must close: at a slower pace a thousand million of
# them would not halve it. So it is where rounding makes steps that look like progress.
CREEPING = 1e-8
# Relative to the objective, what rounding may do to it.
ROUNDING = 1e-14
# Proofs in a row that may fail, and by how much one must bring the gap down to count anew.
MOST_FAILURES = 3
CLOSER = 0.5
# Relative to the objective, what rounding may add to it before it is computed in more digits.
ROUNDING_PART = 1e-9
# How far above the minimum on a line a point may stay, in units of the gap. Less than the
# smallest λ of a cut's position: the reduced problem's value at the cut is below
# F(w_b) − λ·gap, so that F there is larger, and the cut is a new one.
LINE_TOLERANCE = 0.0025
# The same as a part of the λ in use, where that is larger: 10 to 20 % fewer evaluations of
# risks of all scores, and no more iterations.
LINE_PART = 0.25
# A step multiplies the rounding errors of the scores at its end by its length. That is
# harmless unless the end is, in relation to both, as near to the start as this.
NEARBY = 1e-6
LONGEST_FROM_NEARBY = 1e5
# If the gap has to be less than this part of the objective, digits of the model count.
TIGHT = 1e-5

logger = logging.getLogger("cutplane")

Observer = Callable[[Iteration], bool | None]
Recorder = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class StopRule:
    """When to stop: as soon as one of these holds.

    Attributes
    ----------
    relative : float
        Gap at most this part of the primal.
    absolute : float
        Gap at most this.
    epsilon : float
        Gap at most C times this: SVM-perf's rule, in units of the risk.
    max_iter : int or None
        None for no limit.
    time_limit : float
        Seconds.
    """

    relative: float = 0.0
    absolute: float = 0.0
    epsilon: float = 0.0
    max_iter: int | None = None
    time_limit: float = np.inf

    def converged(self, primal: float, dual: float, C: float) -> bool:
        """Whether the gap is small enough."""
        return np.isfinite(primal) and primal - dual <= self.enough(primal, C)

    def enough(self, primal: float, C: float) -> float:
        """The gap that is small enough."""
        return max(self.relative * primal, self.absolute, self.epsilon * C)


@dataclass(frozen=True)
class Best:
    """The best point so far, complete in itself so that an interrupt cannot split it."""

    w: np.ndarray
    bias: float
    primal: float
    proved: bool = False  # whether the objective is an upper bound in exact arithmetic


@dataclass
class Stopwatch:
    """Seconds per phase; ``before`` are those of an earlier part of the run."""

    seconds: dict[str, float] = field(default_factory=dict)
    before: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin

    def elapsed(self) -> float:
        return self.before + time.perf_counter() - self.started


class IterativeSolver(ABC):
    """One run of a solver for min F(w) = ½|w|² + C·R(w).

    Parameters
    ----------
    oracle : Oracle
    C : float
        Multiplies the mean risk.
    stop : StopRule
    observer : callable, optional
        Gets every Iteration; a true answer stops the run.

    Attributes
    ----------
    begun : float
        Iterations until the one from which on the run is expected to make progress.
    creeping : float
        The part of the gap that ``STALLED_ITERATIONS`` must close, or the run ends.
    start_point : Point or None
        The start with its scores and its risk, if they are known, and if it is better than 0.
    watched : bool
        Whether the observer may look at the best point, or stop the run, after every iteration.
        If not, several iterations may be one call.
    """

    def __init__(
        self, oracle: Oracle, C: float, stop: StopRule, observer: Observer | None = None
    ) -> None:
        self.oracle = oracle
        self.C = C
        self.stop = stop
        self.observer = observer
        self.watched = observer is not None
        self.begun = 0.0
        self.creeping = CREEPING
        self.line_tolerance = LINE_TOLERANCE
        self.watch = Stopwatch()
        self.trace: list[Iteration] = []
        self.dual = 0.0  # R ≥ 0
        self.proved = 0.0  # the part of it that has been proved, before ``oracle.slack``
        self._best: Best | None = None
        self._cut: Cut | None = None  # the one that has raised the bound alone, if one has
        self._failures = 0  # proofs that have failed in a row
        self._failed_gap = np.inf  # the gap that the last of them has left
        self.point: Any = None  # the best Point with its scores, in solvers that keep one
        self.start_point: Point | None = None

    @property
    def best(self) -> Best:
        """The best point so far; there is none before the first evaluation."""
        assert self._best is not None
        return self._best

    @abstractmethod
    def active_cuts(self) -> tuple[Cut, ...]:
        """The cuts that support the lower bound."""

    def dual_point(self) -> Any:
        """A dual point per row, divided by C per unit of weight, from solvers that keep one."""
        return None

    def best_point(self) -> Point | None:
        """The best point with its scores, if they are at hand; good until the solver goes on."""
        return self.point if self.point is not None and self.point.w is self.best.w else None

    @abstractmethod
    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status: ...

    def run(self, start: np.ndarray | None = None, cuts: tuple[Cut, ...] = ()) -> SolveResult:
        """Minimise, from ``start`` (default 0) and any cuts known beforehand.

        After an interrupt there is one more pass over the data, for the proof. Another interrupt
        ends that, too, and there is no result.
        """
        try:
            status = self._iterate(start, cuts)
            self.verify()
            return self._result(status)
        except KeyboardInterrupt:
            if self._best is None:  # not even the first point is known
                raise
            self.verify()
            return self._result(Status.INTERRUPTED)

    def verify(self) -> None:
        """Prove objective and bound, and replace them by what has been proved."""
        if not self.best.proved:
            with self.watch.phase("certificate"):
                self._best = self.prove(self.best)
                self.oracle.forget_cuts()  # the next one is computed from all rows
        self.dual = max(0.0, self.proved - self.oracle.slack(self.best.primal, self.C))

    def prove(self, best: Best, *norms: np.ndarray) -> Best:
        """The point with an objective that has been proved.

        Norms of the rows say that ``point`` has just been evaluated at this w and bias; then a
        ``LinearOracle`` needs no product with the data.
        """
        if self.point is None:
            self.point = self.oracle.new_point()
        if not norms:
            self.point.bias = best.bias
            self.point.tolerance = 0.0 if self._wants_best_bias() else np.inf
        # Rounding may add so much to the risk before it is computed in more digits.
        rounding = ROUNDING_PART * self.best.primal / self.C
        proof = self.oracle.prove(best.w, self.point, rounding, *norms)
        primal = (0.5 * proof.squared_norm + self.C * proof.risk) * (1.0 + MANY * UNIT)
        return replace(best, w=self.point.w, bias=self.point.bias, primal=primal, proved=True)

    def _wants_best_bias(self) -> bool:
        """Whether a proof takes the best bias of w to the last digit, which takes many passes."""
        return self.stop.enough(self.best.primal, self.C) < TIGHT * self.best.primal

    def _verified(self) -> bool:
        """Whether what has been proved meets the rule; counts the proofs that do not."""
        primal = self.best.primal
        if self.stop.converged(primal, self.dual, self.C):
            return True
        gap = primal - self.dual
        closer = np.isfinite(gap) and gap <= CLOSER * self._failed_gap
        self._failures = 1 if closer else self._failures + 1
        self._failed_gap = gap
        return False

    def _raise(self, bound: float) -> None:
        """Raise the lower bound to one that has been proved."""
        self.proved = max(self.proved, bound)
        slack = self.oracle.slack(self.best.primal, self.C)
        self.dual = max(self.dual, self.proved - slack)

    def _bound(self, cut: Cut) -> float:
        """Raise the lower bound to what a cut alone gives; returns that.

        It is C·offset − ½C²|a|², less what rounding may have added here.
        """
        height = self.C * cut.offset
        squared = 0.5 * self.C * self.C * float(np.einsum("i,i->", cut.a, cut.a))
        bound = height - squared - MANY * UNIT * (abs(height) + squared)
        if bound > self.proved:
            self._cut = cut
        self._raise(bound)
        return bound

    def _result(self, status: Status) -> SolveResult:
        best = self.best
        # Rounding may lift the bound above the objective when both are equal.
        certificate = Certificate(best.primal, min(self.dual, best.primal))
        if not np.isfinite([certificate.primal, certificate.dual]).all():
            primal = best.primal if np.isfinite(best.primal) else np.inf
            certificate = Certificate(primal, -np.inf, "withheld")
            status = Status.NUMERICALLY_LIMITED
        return SolveResult(
            w=best.w,
            bias=best.bias,
            status=status,
            certificate=certificate,
            n_iter=len(self.trace),
            trace=tuple(self.trace),
            timings={**self.watch.seconds, "total": self.watch.elapsed()},
        )

    def _objective(self, point: Point) -> float:
        w = point.w.reshape(-1)[self.oracle.penalised]
        return 0.5 * float(np.einsum("i,i->", w, w)) + self.C * point.risk

    def _begin_at(self, start: np.ndarray | None, point: Point, spare: Point) -> None:
        """Move a point to 0, or to a start that is better, and keep it."""
        if self.start_point is not None:
            point.copy(self.start_point)
            self._keep(point)
            return
        with self.watch.phase("scores"):
            self.oracle.evaluate(np.zeros_like(point.w), point)
            self._keep(point)
            if start is not None:
                self.oracle.evaluate(start.copy(), spare)
                if self._objective(spare) < self.best.primal:
                    point.take(spare)
                    self._keep(point)

    def _keep(self, point: Point) -> None:
        """Make this the best point."""
        self._best = Best(point.w, point.bias, self._objective(point))

    def _line(self, point: Point, trial: Point, trial_squared_norm: float) -> Line:
        """The line from a point to a trial point, and F on it."""
        start, end = point.w.reshape(-1), trial.w.reshape(-1)
        start_squared, mixed, squared = vectors.line_products(start, end)
        reach = start_squared + trial_squared_norm
        longest = np.inf if squared > NEARBY**2 * reach else LONGEST_FROM_NEARBY
        return Line(
            point,
            trial,
            curvature=squared / self.C,
            slope=mixed / self.C,
            tolerance=self.line_tolerance * max(0.0, self.best.primal - self.dual) / self.C,
            longest=longest,
        )

    def _keep_if_better(self, point: Point, step: float) -> float:
        """Make a point that has moved by a step the best one; returns the step taken."""
        objective = self._objective(point)
        if step > 0.0 and np.isfinite(objective):
            # Rounding is no reason to leave a point: a fit that starts at its end stays there.
            if objective < self.best.primal * (1.0 - ROUNDING):
                self._keep(point)
            return step
        if step > 0.0:  # overflow: numbers near the end of the range
            self.oracle.forget_cuts()
            self.oracle.evaluate(self.best.w, point)
        return 0.0

    def _stalled(self) -> bool:
        """Whether the last iterations have brought nothing."""
        if len(self.trace) <= self.begun + STALLED_ITERATIONS:
            return False
        before, now = self.trace[-1 - STALLED_ITERATIONS], self.trace[-1]
        closed = before.gap - now.gap
        # What is not a number is no progress either.
        return not closed > max(ROUNDING * now.primal, self.creeping * now.gap)

    def _end_iteration(self, trial: float, step: float, cuts: int) -> Status | None:
        """Record an iteration and ask whether it was the last; see ``Iteration`` for the arguments.

        Returns how the run ended, or None if it goes on.
        """
        record = Iteration(
            number=len(self.trace) + 1,
            primal=self.best.primal,
            dual=self.dual,
            trial=trial,
            step=step,
            cuts=cuts,
            seconds=self.watch.elapsed(),
        )
        self.trace.append(record)
        if logger.isEnabledFor(logging.DEBUG):  # what is asked of the record takes longer
            logger.debug(
                "iteration %d: primal %.8g, dual %.8g, relative gap %.2e",
                record.number,
                record.primal,
                record.dual,
                record.relative_gap,
            )
        stopped = self.observer is not None and bool(self.observer(record))
        if self._converged():
            self.verify()
            if self._verified():
                return Status.CONVERGED
        if stopped:
            return Status.STOPPED
        limit = self._limit()
        if limit is None and (self._failures >= MOST_FAILURES or self._stalled()):
            return Status.NUMERICALLY_LIMITED
        return limit

    def _converged(self) -> bool:
        """Whether the gap after the last iteration is small enough, before it is proved."""
        return self.stop.converged(self.best.primal, self.dual, self.C)

    def _limit(self) -> Status | None:
        """The limit that the run has reached, if any."""
        if self.stop.max_iter is not None and len(self.trace) >= self.stop.max_iter:
            return Status.MAX_ITER
        if self.watch.elapsed() - self.watch.before >= self.stop.time_limit:
            return Status.TIME_LIMIT
        return None
