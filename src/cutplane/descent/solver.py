"""Coordinate descent with a certificate after every few passes.

The dual point of the passes is a cut, so it bounds the optimum from below. Its w is a
poor primal point for a long time; the minimum of F on the line from the best point to it is
a far better one, and costs one product.

A certificate is about a snapshot. Where passes are in lanes, all threads compute it, and the next
passes begin with what it says of the rows. Elsewhere a second thread goes on with the passes
meanwhile, and what the certificate says reaches the passes after these; with one thread, too, so
that the result is the same. The bound needs w of the dual point: the passes' own w is that but for
rounding, so a product Xᵀ·α is left out, but for one in a few and for the one that ends the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..bundle import IterativeSolver, Observer, StopRule
from ..exec import ThreadExecutor
from ..oracles import Cut, RowOracle
from ..result import Status
from .passes import AT_ONCE, Passes, Snapshot, Verdict

# Passes before each certificate, the last number for all that follow, unless they are due sooner.
# A certificate costs about as much as a pass.
PASSES = (8, 5, 5, 5)
# The first certificates are due once the passes to come, at their pace, will add no more to the
# dual objective than this part of the gap asked for; the very first also if that is no more than
# this part of the objective. Later it is the primal point that must get better.
REST, FIRST_REST = 0.2, 1e-4
# Where they visit few rows, passes go on up to so many, or until they have visited this part of
# what as many passes over all rows would.
MANY_PASSES, VISITED_PART = 16, 0.5
# While they have visited less than this part of the rows they cost nothing beside a certificate: it
# is not due yet, and there are up to so many.
FEW_PART, MOST_PASSES = 0.25, 32
# Certificates of which one has an exact bound; what the others' bounds are lowered by, relative
# to |w|².
EXACT_EVERY = 8
DRIFT = 1e-11
# Where so many iterations, 1000 passes, are not enough, cutting planes are the better method.
MOST_ITERATIONS = 200

Expected = Callable[[], np.ndarray | None]


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
    squares : ndarray, optional
        ``squared_norms`` of the rows, if known.
    expected : callable, optional
        Gives the scores to be expected at the solution, or None. With these, a dual point and
        ``start_point`` it is known which rows matter: the first certificate is one after passes.
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
        squares: np.ndarray | None = None,
        expected: Expected | None = None,
    ) -> None:
        if stop.max_iter is None:
            stop = replace(stop, max_iter=MOST_ITERATIONS)
        super().__init__(oracle, C, stop, observer)
        self.passes = Passes(oracle, C, rng, squares)
        self.point = oracle.new_point()
        self.trial = oracle.new_point()
        self._ended = False
        self._in_time = True
        self._known: tuple[Snapshot, Cut] | None = None
        self._warm = dual_point is not None
        self._expected = None if oracle.free_bias else expected
        if dual_point is not None:
            cut = oracle.dual_cut(-oracle.targets.labels * dual_point)
            self.passes.start(dual_point, -C * cut.a)
        self._snapshot = self.passes.snapshot()
        if dual_point is not None:
            self._known = self._snapshot, cut

    def dual_point(self) -> np.ndarray:
        return self._snapshot.coef

    def active_cuts(self) -> tuple[Cut, ...]:
        """The dual point's cut, from a pass over the data: it is given to others."""
        return (self._exact_cut(),) if self.trace else ()

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        self._begin_at(start, self.point, self.trial)
        for cut in cuts:
            self._bound(cut)
        self._ended = False
        expected = None
        if self._warm and self._expected is not None and self.start_point is not None:
            expected = self._expected()
        if expected is not None:
            self.passes.expect(self._snapshot, self.point.scores, expected)
        elif self._warm:  # which rows matter is known before the passes
            status, judged = self._certify(True)
            if status is not None:
                return status
            self.passes.settle(judged.verdict, judged.correction, AT_ONCE)
        self._in_time = self._run_passes(0)
        while True:
            self._snapshot = self.passes.snapshot()
            try:
                if self.passes.in_lanes:
                    status, judged = self._certify(self._in_time)
                else:
                    status, judged = self._certify_and_go_on()
            except BaseException:
                self._ended = True  # the passes' thread need not finish
                raise
            if status is not None:
                return status
            self.passes.settle(judged.verdict, judged.correction)
            if self.passes.in_lanes:
                self._in_time = self._run_passes(len(self.trace))

    def _certify_and_go_on(self) -> tuple[Status | None, _Judged]:
        """A certificate of the snapshot, and the passes after it, unless it ends the run."""
        in_time, number = self._in_time, len(self.trace) + 1

        def go_on() -> None:
            self._in_time = in_time and self._run_passes(number)

        executor = self.oracle.executor
        if isinstance(executor, ThreadExecutor):
            return executor.beside(go_on, lambda: self._certify(in_time))
        answer = self._certify(in_time)
        go_on()
        return answer

    def _run_passes(self, number: int) -> bool:
        """The passes before a certificate; False if time ran out on the way."""
        passes, rows = self.passes, len(self.oracle.matrix)
        least = PASSES[min(number, len(PASSES) - 1)]
        before = np.inf
        with self.watch.phase("passes"):
            for done in range(MOST_PASSES):
                enough = passes.visited >= VISITED_PART * least * rows
                rest = self._rest(before)
                due = number < len(PASSES) - 1 and rest <= self._due(0.0)
                if due or done >= MANY_PASSES:
                    enough |= passes.visited >= FEW_PART * rows
                if done >= least and enough:
                    break
                if number == 0 and done > 1 and rest <= self._due(FIRST_REST):
                    break
                before = passes.gain
                if self._ended or not passes.run(self._out_of_time):
                    return False
        return True

    def _due(self, part: float) -> float:
        """What the dual objective may still gain when a certificate is due."""
        dual = self.passes.dual
        return max(REST * self.stop.enough(dual, self.C), part * dual)

    def _rest(self, before: float) -> float:
        """What gains come to that go on like the last one, after the one before it."""
        gain = self.passes.gain
        return gain * gain / (before - gain) if before > gain else np.inf

    def _certify(self, in_time: bool) -> tuple[Status | None, _Judged]:
        """Renew bound and best point by the snapshot; says whether that is the end."""
        try:
            with self.watch.phase("certificate"):
                trial, step, judged = self._judge()
            status = self._end_iteration(trial, step, 1)
        except BaseException:
            self._ended = True
            raise
        if status is None and not in_time:
            status = Status.TIME_LIMIT
        self._ended = status is not None
        return status, judged

    def _judge(self) -> tuple[float, float, _Judged]:
        """F of the snapshot's w, the step from the best point towards it, and more."""
        snapshot, oracle = self._snapshot, self.oracle
        w, correction = snapshot.w, None
        if oracle.free_bias or len(self.trace) % EXACT_EVERY == EXACT_EVERY - 1:
            cut = self._exact_cut()
            w = -self.C * cut.a
            if not oracle.free_bias:  # else it is that of another dual point, which is balanced
                correction = w - snapshot.w[: len(w)]
            squared_norm = float(np.einsum("i,i->", w, w))
            self._bound(cut)
        else:
            _, offset = oracle.surface.dual_plane(-oracle.targets.labels * snapshot.coef)
            squared_norm = float(np.einsum("i,i->", w, w))
            dual = self.C * offset / oracle.targets.total - (0.5 + DRIFT) * squared_norm
            self.dual = max(self.dual, dual)
        oracle.evaluate(w, self.trial)
        verdict = self.passes.judge(snapshot, self.trial.scores)
        step = self._descend(self.point, self.trial, squared_norm)
        step = self._keep_if_better(self.point, step)
        return self._objective(self.trial), step, _Judged(verdict, correction)

    def _exact_cut(self) -> Cut:
        """The cut of the snapshot's dual point, from a pass over the data."""
        snapshot = self._snapshot
        if self._known is None or self._known[0] is not snapshot:
            cut = self.oracle.dual_cut(-self.oracle.targets.labels * snapshot.coef)
            self._known = snapshot, cut
        return self._known[1]

    def _support(self) -> None:
        if self.trace:
            self._bound(self._exact_cut())

    def _out_of_time(self) -> bool:
        return self._ended or self.watch.elapsed() >= self.stop.time_limit


@dataclass(frozen=True)
class _Judged:
    """What a certificate tells the passes."""

    verdict: Verdict
    correction: np.ndarray | None
