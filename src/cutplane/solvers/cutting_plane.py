"""The one loop: cutting planes for min F(w) = ½|w|² + C·R(w).

Every iteration solves the reduced problem of the cuts so far, which gives a
point w_t and a lower bound, moves the best point w_b, and adds a cut.

- CPA (SVM-perf, BMRM): the best point is the best w_t seen; the cut is at w_t.
- OCAS (Franc & Sonnenburg 2008, Algorithm 2): w_b moves to the minimum of F on
  the line from w_b through w_t; the cut is at w_b + λ(w_t − w_b).

Scores are linear in w, so the line search and the point between cost no pass
over the data: one product X·w and one product Xᵀ·coef per iteration.

The paper takes λ = 0.1. The best fixed λ lies between 0.01 and 0.3, depending on
the data and on C; ``AdaptivePosition`` finds it from the trace of the run.

If a cut takes a pass of slow inference, the loop first tries cuts without inference: it chooses
anew among the outputs of earlier inference (Joachims, Finley & Yu 2009, §3.3). As long as such a
cut is above the model by a good part of the gap, the loop adds it and solves the reduced problem
again. Only then it runs inference. Such cuts are valid, so the lower bound is valid. Upper bounds
come from full passes of inference alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ..objective import Cut, Oracle, Point, Resumable
from ..result import Iteration, Status
from .base import LINE_PART, LINE_TOLERANCE, Best, IterativeSolver, Observer, Recorder, StopRule
from .reduced import Bundle, ReducedSolution, VectorSpace, fill

# Iterations after which the scores of the best point are computed anew. Rounding does not ask for
# it so soon; but what is lost elsewhere with rows can be made again from what came since.
REFRESH = 64
# How far above the minimum over a free bias the risk at w_t may be, and that at a cut, as a part
# of the gap.
TRIAL_PART = 2.5e-4
# Part of the gap by which a cheap cut must rise above the reduced problem.
WORTH_ADDING = 0.1
MOST_CHEAP_CUTS = 50
# Weight of an iteration relative to the one after it: a memory of about five.
MEMORY = 0.8
# Iterations looked back at; older ones would weigh less than MEMORY**40 = 1e-4.
WINDOW = 40
# λ where only the primal makes progress and F is no higher than the gap at w_t.
# Not sensitive: 0.35 to 0.5 gave the same counts within 2 % on average.
SCALE = 0.5
# The range tried. A floor of 0.002 or 0.003 was no better overall, 0.01 a little worse
# at large C; no fixed λ above 0.3 was tried, and 0.3 was never better than 0.2.
SMALLEST, LARGEST = 0.005, 0.3

CheapCut = Callable[[np.ndarray], Cut | None]


class CutPosition(Protocol):
    """Chooses λ for the cut after an iteration."""

    def next(self, trace: Sequence[Iteration]) -> float:
        """λ for the cut after the last iteration of a trace."""
        ...


class FixedPosition:
    """The same λ always."""

    def __init__(self, position: float) -> None:
        self.position = position

    def next(self, trace: Sequence[Iteration]) -> float:
        return self.position


class AdaptivePosition:
    """λ from which side closes the gap, and from how far F rises towards w_t.

    λ = SCALE · share^(2/3) · level^(1/3), kept in [SMALLEST, LARGEST].

    ``share`` is the primal's part in the recent closing of the gap. Where the
    lower bound does the work (dense data, large C), w_b is already good and the
    bundle must learn the kinks of F around it: cuts close to w_b, small λ.
    Where the primal does the work (text), w_t is the better informed point and
    cuts towards it bring w_b along: large λ. The share hardly depends on
    the λ in use, so following it feeds back little. Progress is measured in log F
    and log of the bound: before the bound means anything (it starts at 0, so its
    log rises fast) the share is small, although the primal falls fast then.

    ``level`` = gap / (F(w_t) − F(w_b)), at most 1: by convexity F at
    w_b + level·(w_t − w_b) exceeds F(w_b) by no more than the gap, so it says how
    far along the line F stays within a gap of the best. It answers at once when
    w_t jumps far away, which the smoothed share does not. But it feeds back (small
    λ, wild w_t, small level), hence the smaller exponent.

    Stateless: depends only on the last WINDOW records of the trace.
    """

    def next(self, trace: Sequence[Iteration]) -> float:
        now = trace[-1]
        distance = now.gap
        if distance <= 0.0:
            return SMALLEST
        falls = rises = 0.0  # what primal and dual have closed of the gap
        for before, after in pairwise(trace[-WINDOW - 1 :]):
            primal, dual = before.primal, before.dual
            gap = primal - dual
            if gap <= 0.0:  # closed by rounding; the run went on from a better sum
                continue
            # Decrease of log primal : increase of log dual, times dual/gap.
            fall = (primal - after.primal) * dual / primal
            rise = after.dual - dual
            falls = MEMORY * falls + fall / gap
            rises = MEMORY * rises + rise / gap
        total = falls + rises
        share = max(0.0, falls / total) if total > 0.0 else 0.0
        level = distance / max(distance, now.trial - now.primal)
        position = SCALE * share ** (2 / 3) * level ** (1 / 3)
        return min(max(position, SMALLEST), LARGEST)


class BundleSolver(IterativeSolver):
    """State of one run of the loop.

    Parameters
    ----------
    oracle, C, stop, observer
        As for every solver.
    position : CutPosition or None
        Where OCAS takes the cut; None for the plain cutting plane step.
    cheap_cut : callable, optional
        The best cheap cut at a point, or None.

    Attributes
    ----------
    recorder : callable or None
        Gets the state at the beginning of every iteration.
    due : callable or None
        Whether the recorder wants the state now, where it takes a pass over the data to give it.
    """

    def __init__(
        self,
        oracle: Oracle,
        C: float,
        stop: StopRule,
        position: CutPosition | None,
        observer: Observer | None = None,
        cheap_cut: CheapCut | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, observer)
        self.position = position
        self.cheap_cut = cheap_cut
        self.space = VectorSpace(oracle.dimension, oracle.executor)
        self.bundle = Bundle(self.space)
        self.solution: ReducedSolution | None = None
        self.point: Point = oracle.new_point()
        self.trial = oracle.new_point()
        self.recorder: Recorder | None = None
        self.due: Callable[[], bool] | None = None

    def active_cuts(self) -> tuple[Cut, ...]:
        return tuple(Cut(a, offset) for a, offset in self.bundle.active())

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        oracle = self.oracle
        oracle.forget_cuts()  # an earlier run may have ended with one that it did not use
        goes_on = self._best is not None  # from an earlier run, which has added its cut
        if not goes_on:
            self._begin(start)
            for known in cuts:
                self.bundle.add(known.a, known.offset)
        while True:
            if not goes_on:
                with self.watch.phase("cut"):
                    where = self._cut_at()
                    cut = None if where is None else oracle.cut(*where)
                with self.watch.phase("gram"):
                    # The bundle has the zero cut from the start.
                    if cut is not None and (cut.offset != 0.0 or np.any(cut.a)):
                        self.bundle.add(cut.a, cut.offset)
                self.bundle.drop_idle()
            goes_on = False
            if self.recorder is not None and (self.due is None or self.due()):
                self.recorder(self.state())
            if self.trace and len(self.trace) % REFRESH == 0:
                with self.watch.phase("scores"):
                    oracle.refresh(self.point)
            with self.watch.phase("qp"):
                solution = self.solution = self._solve_reduced()
            self._raise(solution.dual)
            with self.watch.phase("scores"):
                self.trial.tolerance = TRIAL_PART * max(0.0, self.best.primal - self.dual) / self.C
                oracle.evaluate(solution.w, self.trial)
            with self.watch.phase("line_search"):
                if self.position is None:
                    step = self._take_trial()
                else:
                    if self.trace:
                        part = LINE_PART * self.position.next(self.trace)
                        self.line_tolerance = max(LINE_TOLERANCE, part)
                    line = self._line(self.point, self.trial, solution.squared_norm)
                    step = self._keep_if_better(self.point, oracle.descend(line))
            trial = 0.5 * solution.squared_norm + self.C * self.trial.risk
            status = self._end_iteration(trial, step, len(self.bundle))
            if status is not None:
                return status

    def _solve_reduced(self) -> ReducedSolution:
        """The solution of the reduced problem, after cheap cuts that it lies well below."""
        solution = self.bundle.solve(self.C)
        if self.cheap_cut is None:
            return solution
        for _ in range(MOST_CHEAP_CUTS):
            cut = self.cheap_cut(solution.w)
            if cut is None:
                break
            height = float(np.einsum("i,i->", cut.a, solution.w)) + cut.offset
            reduced = (solution.dual - 0.5 * solution.squared_norm) / self.C
            if height - reduced <= WORTH_ADDING * (self.best.primal - solution.dual) / self.C:
                break
            self.bundle.add(cut.a, cut.offset)
            solution = self.bundle.solve(self.C)
        return solution

    def state(self) -> dict[str, Any]:
        """Where the run is: what an iteration that begins now depends on, to the last bit.

        Good until the end of the iteration, even if that is not reached. Scores that are elsewhere
        are not part of it: they are computed anew from w, here as in a run that goes on from it.
        """
        best, point = self.best, self.point
        assert isinstance(self.oracle, Resumable)
        if not isinstance(point.scores, np.ndarray):
            with self.watch.phase("scores"):
                self.oracle.refresh(point)
        return {
            "best": {"w": best.w, "bias": float(best.bias), "primal": float(best.primal)},
            "dual": float(self.dual),
            "point": {
                "w": point.w,
                "scores": np.array(point.scores)
                if isinstance(point.scores, np.ndarray)
                else np.empty(0),
                "coef": point.coef.copy(),
                **{name: float(getattr(point, name)) for name in ("bias", "risk", "offset")},
            },
            "trial_bias": float(self.trial.bias),  # where the search for the next one starts
            "bundle": self.bundle.state(),
            "oracle": self.oracle.state(),
            "trace": tuple(self.trace),
            "seconds": self.watch.elapsed(),
            "timings": dict(self.watch.seconds),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of another run of the same problem."""
        point, best = state["point"], state["best"]
        finite = [best["primal"], point["risk"], state["dual"], state["seconds"]]
        others = [best["bias"], point["bias"], point["offset"], state["trial_bias"]]
        for record in state["trace"]:
            others += [getattr(record, name) for name in ("primal", "dual", "trial", "seconds")]
        if not all(isinstance(number, float) for number in finite + others):
            raise ValueError("what should be numbers is something else")
        if not np.all(np.isfinite(finite)):
            raise ValueError("the point or the bound is not finite")
        shape = self.point.w.shape
        timings = state["timings"]
        if not all(type(name) is str and type(timings[name]) is float for name in timings):
            raise ValueError("the timings are something else")
        for w in (point["w"], best["w"]):
            if w.size != self.point.w.size or w.dtype != np.float64 or not np.isfinite(w).all():
                raise ValueError("the weights of the point are not as they were written")
        self.bundle.restore(state["bundle"])
        assert isinstance(self.oracle, Resumable)
        self.oracle.restore(state["oracle"])
        self.point.w = point["w"].reshape(shape)
        own = self.point.scores
        scores_here = isinstance(own, np.ndarray) and (point["scores"].size or not own.size)
        if not scores_here:  # the run was, or is, one whose scores are elsewhere
            self.oracle.refresh_scores(self.point)
        for name in ("scores", "coef") if scores_here else ():
            mine = getattr(self.point, name)
            fill(mine, point[name])
            labels = mine.dtype.kind == "i"  # of rows, which compiled loops take for places
            if labels and np.any((mine < 0) | (mine >= own.shape[-1])):
                raise ValueError(f"the {name} of the point are out of range")
        for name in ("bias", "risk", "offset"):
            setattr(self.point, name, point[name])
        self.point.blended = True  # a proof does not trust scores from a file
        self.trial.bias = state["trial_bias"]
        self.dual = state["dual"]
        self.proved = self.dual + self.oracle.slack(best["primal"], self.C)
        self.trace = list(state["trace"])
        self.watch.before = state["seconds"]
        self.watch.seconds = dict(state["timings"])
        self._best = Best(best["w"].reshape(shape), best["bias"], best["primal"])

    def _begin(self, start: np.ndarray | None) -> None:
        """Evaluate the start; one so far out that its objective overflows is no start."""
        with self.watch.phase("scores"):
            if self.start_point is not None:
                self.point.copy(self.start_point)
            elif start is not None:
                self.oracle.evaluate(start.copy(), self.point)
            if start is None or not np.isfinite(self._objective(self.point)):
                self.oracle.evaluate(np.zeros_like(self.point.w), self.point)
        self._keep(self.point)

    def _take_trial(self) -> float:
        """Make the trial point the best one if it is better; returns the step, 1 or 0."""
        step = float(self._objective(self.trial) < self.best.primal)
        if step:
            self.oracle.blend(self.point, self.trial, step, self.point)
        return self._keep_if_better(self.point, step)

    def _cut_at(self) -> tuple[Any, ...] | None:
        """Where the next cut is taken, as arguments of ``Oracle.cut``; None for no cut."""
        if not self.trace:
            return (self.point,)
        if self.position is None:
            return (self.trial,)
        before, now = self.trace[-2:] if len(self.trace) > 1 else (None, self.trace[-1])
        if before is not None and (now.primal, now.dual) == (before.primal, before.dual):
            # The last iteration has changed nothing, and the same cut would change nothing again:
            # so it is where no row near the best point has a loss. A cut at the trial point always
            # raises the model there.
            self.oracle.forget_cuts()
            return (self.trial,)
        return self.point, self.trial, self.position.next(self.trace)
