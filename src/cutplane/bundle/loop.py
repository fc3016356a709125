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

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ..oracles import Cut, LinearOracle, Point
from ..result import Certificate, Iteration, SolveResult, Status
from .reduced import Bundle, ReducedSolution
from .space import VectorSpace
from .step import CutPosition

logger = logging.getLogger("cutplane")

Observer = Callable[[Iteration], bool | None]

# Without progress beyond rounding in this many iterations there will be none.
STALLED_ITERATIONS = 20
ROUNDING = 1e-14


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
        enough = max(self.relative * primal, self.absolute, self.epsilon * C)
        return np.isfinite(primal) and primal - dual <= enough


@dataclass(frozen=True)
class Best:
    """The best point so far, complete in itself so that an interrupt cannot split it."""

    w: np.ndarray
    bias: float
    primal: float


class _Stopwatch:
    """Seconds per phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.started = time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin

    def elapsed(self) -> float:
        return time.perf_counter() - self.started


class BundleSolver:
    """State of one run of the loop.

    Parameters
    ----------
    oracle : LinearOracle
    C : float
        Multiplies the mean risk.
    stop : StopRule
    position : CutPosition or None
        Where OCAS places the cut; None for the plain cutting plane step.
    observer : callable, optional
        Gets every Iteration; a true answer stops the run.
    """

    def __init__(
        self,
        oracle: LinearOracle,
        C: float,
        stop: StopRule,
        position: CutPosition | None,
        observer: Observer | None = None,
    ) -> None:
        self.oracle = oracle
        self.C = C
        self.stop = stop
        self.position = position
        self.observer = observer
        self.space = VectorSpace(oracle.dimension, oracle.executor)
        self.bundle = Bundle(self.space)
        self.watch = _Stopwatch()
        self.trace: list[Iteration] = []
        self.dual = 0.0  # R ≥ 0
        self.point = oracle.new_point()
        self.trial = oracle.new_point()
        self._best: Best | None = None

    @property
    def best(self) -> Best:
        """The best point so far; there is none before the first evaluation."""
        assert self._best is not None
        return self._best

    def active_cuts(self) -> tuple[Cut, ...]:
        """The cuts that support the lower bound."""
        return tuple(Cut(a, offset) for a, offset in self.bundle.active())

    def run(self, start: np.ndarray | None = None, cuts: tuple[Cut, ...] = ()) -> SolveResult:
        """Minimise, from ``start`` (default 0) and any cuts known beforehand."""
        try:
            status = self._iterate(start, cuts)
        except KeyboardInterrupt:
            if self._best is None:  # not even the first point is known
                raise
            status = Status.INTERRUPTED
        best = self.best
        # Rounding may lift the bound above the objective when both are equal.
        certificate = Certificate(best.primal, min(self.dual, best.primal))
        return SolveResult(
            w=best.w,
            bias=best.bias,
            status=status,
            certificate=certificate,
            n_iter=len(self.trace),
            trace=tuple(self.trace),
            timings={**self.watch.seconds, "total": self.watch.elapsed()},
        )

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        with self.watch.phase("scores"):
            self.oracle.evaluate(self.point.w if start is None else start.copy(), self.point)
        self._record_best()
        for cut in cuts:
            self.bundle.add(cut.a, cut.offset)
        self._add_cut(None)
        while True:
            with self.watch.phase("qp"):
                solution = self.bundle.solve(self.C)
            self.dual = max(self.dual, solution.dual)
            with self.watch.phase("scores"):
                self.oracle.evaluate(solution.w, self.trial)
            with self.watch.phase("line_search"):
                step = self._move_best(solution)
            record = self._record(step, solution)
            stopped = self.observer is not None and bool(self.observer(record))
            status = self._status(record, stopped)
            if status is not None:
                return status
            self._add_cut(record)
            self.bundle.drop_idle()

    def _move_best(self, solution: ReducedSolution) -> float:
        """Move the best point towards the trial point; returns the step."""
        if self.position is None:
            step = float(self._objective(self.trial) < self.best.primal)
            if step:
                self.oracle.blend(self.point, self.trial, step, self.point)
        else:
            here = self.space.dot(self.point.w, self.point.w)
            across = self.space.dot(self.point.w, self.trial.w)
            curvature = max(0.0, here - 2.0 * across + solution.squared_norm) / self.C
            slope = (across - here) / self.C
            tolerance = 0.01 * max(0.0, self.best.primal - self.dual) / self.C
            step = self.oracle.descend(self.point, self.trial, curvature, slope, tolerance)
        if step > 0.0:
            self._record_best()
        return step

    def _record_best(self) -> None:
        self._best = Best(self.point.w, self.point.bias, self._objective(self.point))

    def _objective(self, point: Point) -> float:
        return 0.5 * self.space.dot(point.w, point.w) + self.C * point.risk

    def _add_cut(self, record: Iteration | None) -> None:
        """Add a cut: at the start, at the trial point, or on the way to it."""
        with self.watch.phase("cut"):
            if record is None:
                cut = self.oracle.cut(self.point)
            elif self.position is None:
                cut = self.oracle.cut(self.trial)
            else:
                position = self.position.next(record, self.trace)
                cut = self.oracle.cut(self.point, self.trial, position)
        with self.watch.phase("gram"):
            self.bundle.add(cut.a, cut.offset)

    def _record(self, step: float, solution: ReducedSolution) -> Iteration:
        record = Iteration(
            number=len(self.trace) + 1,
            primal=self.best.primal,
            dual=self.dual,
            trial=0.5 * solution.squared_norm + self.C * self.trial.risk,
            step=step,
            cuts=len(self.bundle),
            seconds=self.watch.elapsed(),
        )
        self.trace.append(record)
        logger.debug(
            "iteration %d: primal %.8g, dual %.8g, relative gap %.2e",
            record.number,
            record.primal,
            record.dual,
            record.relative_gap,
        )
        return record

    def _status(self, record: Iteration, stopped: bool) -> Status | None:
        if self.stop.converged(record.primal, record.dual, self.C):
            return Status.CONVERGED
        if stopped:
            return Status.STOPPED
        if self.stop.max_iter is not None and record.number >= self.stop.max_iter:
            return Status.MAX_ITER
        if record.seconds >= self.stop.time_limit:
            return Status.TIME_LIMIT
        if record.number > STALLED_ITERATIONS:
            before = self.trace[-1 - STALLED_ITERATIONS]
            if before.gap - record.gap <= ROUNDING * record.primal:
                return Status.NUMERICALLY_LIMITED
        return None
