"""The risk as a function of the scores of a point, and its minimum along a line.

A ``ScoreRisk`` knows scores and the risk, but neither data nor w. There are two kinds.

**Sums over rows**, with an unregularised bias if wanted:

    R(s) = min_b (1/W) Σ_i weight_i·loss(s_i + b, y_i)

With the bias, a plane is below R only if Σ coef_i = 0. A search for the bias ends with two biases
between which the best one lies, and with the derivatives g₋ ≤ 0 ≤ g₊ of the sum at them. If we mix
the coefficients at both in the proportion g₊ : −g₋, they sum to zero, and a mixture of planes below
the risk is a plane below the risk. The wider the bracket, the lower the mixture, by at most the
excess that the search knows. The rows may be in this process or on workers: the ``RowPasses`` of
both have the same methods.

**Risks of all scores at once**: pairs of rows, measures of a ranking, structured outputs. An
evaluation sorts the scores or runs inference. This costs far more than a product with a few numbers
per row, so no point is evaluated twice: every point keeps the plane that touches the risk there.
From this plane a search along a line gets the derivative at no cost. Its second point is w_t, which
the loop evaluates anyway. A cut is the plane of its point.

A pass over the scores does little work, so the overhead of Python must be small. Passes run over
chunks of rows, which are coarser than the blocks of the data and depend only on the data. Every
chunk lies within one part of the data, so a worker that holds the rows of a part can compute its
chunks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from ..exec import Executor, SerialExecutor
from ..loops import vectors
from ..loops.bounded import MANY, ROUNDING
from ..risks import ListwiseRisk, Risk, Targets
from .point import Line, Point
from .search import LineValue, find_bracket, minimise

# A pass over this many scores takes several times as long as the call from Python.
CHUNK_NUMBERS = 1 << 13
# So many chunks are enough to balance threads.
MOST_CHUNKS = 32
# With less work, the calling thread would be done before the others have started.
WORTH_THREADS = 1 << 16
# The first points of a search: k in units of the last step, and distances from the last bias.
STEPS = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0])
BIASES = np.array([-4.0, -1.0, -0.25, 0.0, 0.25, 1.0, 4.0])
BIAS_REACH = 0.1
# A point on a line may exceed its minimum over the bias by this part of the line's tolerance.
BIAS_PART = 0.1
# If a step along the straight line of w and bias gains less than this part of the line's tolerance,
# the line of min_b R is searched.
ENOUGH = 0.04


class ScoreRisk(ABC):
    """A risk over scores.

    Attributes
    ----------
    shape : tuple of int
        Shape of the scores.
    outputs : int or None
        Scores per row; None for one number.
    total : float
        Sums of coefficients, offsets and losses are divided by it.
    light : bool
        Whether a pass over the scores is so short that one thread does it.
    runner : Executor
        Runs the passes over the scores.
    passes : RowPasses
        The passes over the scores; of rows on workers those of the workers.
    free_bias : bool
        Whether the risk is minimised over an unregularised bias.

    Parameters
    ----------
    rows, outputs, total, executor
        See the attributes.
    work : float, default=1
        Cost of a score in a pass, in units of a comparison and a few additions.
    edges : sequence of int, optional
        Rows at which parts of the data begin, and the end.
    targets : Targets, optional
        Of all rows, if functions of single rows need them.
    """

    free_bias = False

    def __init__(
        self,
        rows: int,
        outputs: int | None,
        total: float,
        executor: Executor,
        work: float = 1.0,
        edges: Sequence[int] | None = None,
        targets: Targets | None = None,
    ) -> None:
        self.outputs = outputs
        self.shape = (rows,) if outputs is None else (rows, outputs)
        self.total = total
        self.executor = executor
        self.slices: list[slice] = []  # the chunks
        count = min(MOST_CHUNKS, max(1, rows * (outputs or 1) // CHUNK_NUMBERS))
        for a, b in pairwise((0, rows) if edges is None else edges):
            pieces = max(1, count * (b - a) // max(1, rows))
            inner = [a + (b - a) * k // pieces for k in range(pieces + 1)]
            self.slices += [slice(low, high) for low, high in pairwise(inner)]
        self.light = bool(work * np.prod(self.shape) < WORTH_THREADS)
        self.runner: Executor = SerialExecutor() if self.light else executor
        self.passes = RowPasses(targets, self.shape, self.slices, self.runner)
        self._step_guess = 1.0

    def new_point(self, w: np.ndarray) -> Point:
        """A point with buffers of its own, not evaluated."""
        return Point(w, self.passes.new_scores())

    def find_bias(self, point: Point) -> None:  # noqa: B027 (most risks have no free bias)
        """Set a point's bias to the best one for its scores, within the point's tolerance."""

    @abstractmethod
    def evaluate(self, point: Point) -> None:
        """Evaluate the risk at the scores and the bias of a point."""

    def upper(self, point: Point, low: Any, errors: Any) -> float:
        """An upper bound on the risk at the scores of a point, which are off by at most ``errors``.

        ``low`` are further digits of the scores, if there are any; then the point has not been
        evaluated. Here the bound is the risk as evaluated, plus the rounding error of a sum.
        """
        return point.risk * (1.0 + MANY * ROUNDING)

    @abstractmethod
    def coefficients(self, point: Point) -> tuple[Any, float]:
        """The plane Σ coef·s + offset that touches ``total`` times the risk at a point.

        The next call overwrites the array.
        """

    @abstractmethod
    def descend(self, line: Line) -> float:
        """Move the start of a line to the minimum on it, within the tolerance; returns its k."""

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move ``into`` to start + k(end − start), without reading the data."""
        self._move(start, end, k, into)
        self.find_bias(into)
        self.evaluate(into)

    def _move(self, start: Point, end: Point, k: float, into: Point) -> None:
        """As ``blend``, but the bias moves in proportion to k, and the risk is not computed."""
        w = np.empty(start.w.shape)
        vectors.blend(start.w.reshape(-1), end.w.reshape(-1), k, w.reshape(-1))
        into.w = w
        into.bias = start.bias + k * (end.bias - start.bias)
        into.mixture = None
        self.passes.change(blend, (start.scores, end.scores, into.scores), k)

    def between(self, start: Point, end: Point, k: float) -> Point:
        """The point start + k(end − start) in a buffer of its own."""
        point = self.spare
        point.tolerance = end.tolerance
        self._move(start, end, k, point)
        return point

    @cached_property
    def spare(self) -> Point:
        """A spare point for intermediate results."""
        return self.new_point(np.empty(0))

    def state(self) -> dict[str, Any]:
        """The guess with which the next search on a line begins."""
        return {"step": self._step_guess}

    def restore(self, state: dict[str, Any]) -> None:
        """Take a state that ``state`` has returned."""
        self._step_guess = float(state["step"])

    def run(self, function: Callable[[slice], Any]) -> list[Any]:
        """Run a function over the chunks."""
        return self.runner.map(function, self.slices)


class RowPasses:
    """Passes over rows in this process.

    Rows on workers have a class with the same methods. Arguments and answers are small, except for
    the scores themselves, which callers only pass on and never read.

    Parameters
    ----------
    targets : Targets or None
    shape : tuple of int
        Shape of the scores.
    slices : sequence of slice
        The rows, in chunks.
    executor : Executor
        Runs the chunks.

    Attributes
    ----------
    coef : Any
        The coefficients, if there are targets: an array, or a slot that names arrays on workers.
    """

    coef: Any

    def __init__(
        self,
        targets: Targets | None,
        shape: tuple[int, ...],
        slices: Sequence[slice],
        executor: Executor,
    ) -> None:
        self._slices = slices
        self._targets = [None if targets is None else targets[rows] for rows in slices]
        self._executor = executor
        self._shape = shape
        self.coef = np.empty(shape if targets is not None else 0)

    def new_scores(self) -> Any:
        """Room for the scores of a point."""
        return np.zeros(self._shape)

    def set_coef(self, coef: np.ndarray) -> None:
        """Set the coefficients to the given ones."""
        self.coef[...] = coef

    def run(self, function: Callable[..., Any], arrays: Sequence[Any], *others: Any) -> list[Any]:
        """For every chunk of rows, call function(its rows of ``arrays``, *others, its targets).

        Returns the answers in the order of the chunks, and callers add them in this order. An array
        may be None.
        """
        if len(self._slices) == 1:
            return [function(*arrays, *others, self._targets[0])]

        def chunk(rows: slice, targets: Targets | None) -> Any:
            own = (None if array is None else array[rows] for array in arrays)
            return function(*own, *others, targets)

        return self._executor.map(chunk, self._slices, self._targets)

    change = run  # for functions that only write: on workers there is no answer to wait for


def blend(start: np.ndarray, end: np.ndarray, into: np.ndarray, k: float, targets: Any) -> None:
    """into = start + k(end − start), for the scores of some rows."""
    vectors.blend(start.reshape(-1), end.reshape(-1), k, into.reshape(-1))


# -- sums over rows -----------------------------------------------------------


def weigh(coef: np.ndarray, targets: Targets) -> np.ndarray:
    """Sums of the positive and of minus the negative coefficients of some rows."""
    negative = np.minimum(coef, 0.0).sum()
    return np.array([coef.sum() - negative, -negative])


def scale(coef: np.ndarray, sign: float, factor: float, targets: Targets) -> None:
    """Multiply the coefficients of one sign."""
    coef *= np.where(coef * sign > 0.0, factor, 1.0)


def slope(coef: np.ndarray, start: np.ndarray, end: np.ndarray, targets: Targets) -> float:
    """Derivative of the plane with these coefficients, in the direction from start to end."""
    return float(np.einsum("i,i->", coef, end - start))


class RowScoreRisk(ScoreRisk):
    """ScoreRisk of a sum of losses over rows.

    Parameters
    ----------
    targets : Targets
    risk : Risk
    executor : Executor
    free_bias : bool, default=False
        Minimise over an unregularised bias.
    edges : sequence of int, optional
        Rows at which parts of the data begin, and the end.
    """

    def __init__(
        self,
        targets: Targets,
        risk: Risk,
        executor: Executor,
        *,
        free_bias: bool = False,
        edges: Sequence[int] | None = None,
    ) -> None:
        if free_bias and not risk.has_bias:
            raise ValueError(f"{risk!r} has no exact unregularised bias")
        rows = len(targets.weights)
        super().__init__(rows, risk.outputs, targets.total, executor, risk.work, edges, targets)
        self.targets = targets
        self.risk = risk
        self.free_bias = free_bias

    def find_bias(self, point: Point) -> None:
        """Search for the best bias, beginning near the present one."""
        if not self.free_bias:
            return
        guess = point.bias if np.isfinite(point.bias) else 0.0
        first = guess + max(BIAS_REACH, 1e-3 * abs(guess)) * BIASES
        slopes = partial(self._sum, self.risk.bias_slopes, (point.scores,))
        of_classes = self.risk.loss is not None and not self.risk.loss.regression
        if of_classes and not np.any(point.w):  # all rows of a class are alike, so take one of each
            labels, weights = self.targets.labels, self.targets.weights
            surplus = float(np.einsum("i,i->", labels, weights))  # of the positive class
            sizes = 0.5 * (self.total + np.array([-surplus, surplus]))
            classes = Targets(np.array([-1.0, 1.0]), sizes, self.total)
            slopes = partial(self.risk.bias_slopes, np.zeros(2), targets=classes)
        enough = self.total * point.tolerance
        bracket = find_bracket(slopes, first, enough, smooth=self.risk.smooth)
        point.bias, point.mixture = bracket.point, (bracket.low, bracket.high, bracket.part)

    def evaluate(self, point: Point) -> None:
        point.risk = self._sum(self.risk.value, (point.scores,), point.bias) / self.total

    def upper(self, point: Point, low: Any, errors: Any) -> float:
        value = self._sum(self.risk.upper, (point.scores, low, errors), point.bias)
        return value / self.total * (1.0 + (MANY + len(self.slices)) * ROUNDING)

    def _sum(self, function: Callable[..., Any], arrays: Sequence[Any], *others: Any) -> Any:
        """The sum of a function over the chunks, in their order; see ``RowPasses.run``."""
        return reduce(add, self.passes.run(function, arrays, *others))

    # -- planes ---------------------------------------------------------------

    def coefficients(self, point: Point) -> tuple[Any, float]:
        """As for every ``ScoreRisk``. With a free bias the point must have its best bias."""
        coef, mixture = self.passes.coef, point.mixture or (point.bias, point.bias, 0.0)
        self.passes.change(self.risk.coefficients, (point.scores, coef), mixture)
        return coef, self._sum(self.risk.offset, (coef,))

    def dual_plane(self, coef: np.ndarray) -> tuple[Any, float]:
        """The plane of any coefficients in the domain of the loss's conjugate, as ``coefficients``.

        With a free bias the coefficients must sum to 0, so those of the heavier class are scaled
        down first.
        """
        self.passes.set_coef(coef)
        own = (self.passes.coef,)
        if self.free_bias:
            above, below = self._sum(weigh, own).tolist()
            if above != below:
                sign = 1.0 if above > below else -1.0
                self.passes.change(scale, own, sign, min(above, below) / max(above, below))
        return *own, self._sum(self.risk.offset, own)

    # -- lines ----------------------------------------------------------------

    def descend(self, line: Line) -> float:
        """As for every ``ScoreRisk``.

        With a free bias the search first moves w and the bias together along a straight line, and
        then finds the best bias at the minimum. Most of the time this is as good as the minimum
        over both. But where kinks meet, or in a bent valley, the straight line gains too little;
        then the search follows min_b R along the line of w.
        """
        start, end = line.start, line.end
        scores, biases = (start.scores, end.scores), (start.bias, end.bias)

        def slopes(steps: np.ndarray) -> np.ndarray:
            """Derivatives where w and the bias move together."""
            sums = self._sum(self.risk.line_slopes, scores, biases, steps) / self.total
            return np.asarray(sums + line.slope + line.curvature * steps)

        search = partial(find_bracket, tolerance=line.tolerance, lowest=0.0, highest=line.longest)
        first = np.unique(np.minimum(self._step_guess * STEPS, line.longest))
        k = search(slopes, first, smooth=self.risk.smooth).point
        point = self.spare if self.free_bias else start
        point.tolerance = BIAS_PART * line.tolerance
        if k > 0.0:
            self.blend(start, end, k, point)
        if self.free_bias:
            won = start.risk - line.value(k, point.risk) if k > 0.0 else 0.0
            if not line.straight and (k == 0.0 or won < ENOUGH * line.tolerance):
                first = np.unique(np.minimum(self._step_guess * STEPS[[0, 3]], line.longest))
                k = search(partial(self._slopes_at, line, point), first, at_once=1).point
                if k > 0.0:
                    self.blend(start, end, k, point)
            if k > 0.0:
                start.take(point)
        # The search is exact only up to its tolerance, so the end may be better.
        if line.value(1.0, end.risk) < line.value(k, start.risk):
            k = 1.0
            self._move(start, end, k, start)
            start.bias, start.risk, start.mixture = end.bias, end.risk, end.mixture
        if k > 0.0:
            self._step_guess = k
        return k

    def _slopes_at(self, line: Line, point: Point, steps: np.ndarray) -> np.ndarray:
        """The derivatives at some k of the minimum over the bias. Moves ``point`` there."""
        start, end, coef = line.start, line.end, self.passes.coef
        slopes = []
        for k in steps.tolist():
            self._move(start, end, k, point)
            self.find_bias(point)
            self.passes.change(self.risk.coefficients, (point.scores, coef), point.mixture)
            plane = self._sum(slope, (coef, start.scores, end.scores)) / self.total
            slopes.append(plane + line.slope + line.curvature * k)
        return np.array(slopes)


# -- risks of all scores at once ----------------------------------------------


class Planes(ABC):
    """The search along a line where every point keeps the plane that touches the risk there."""

    _step_guess: float
    kept: tuple[Point, Point]  # for what a search has seen

    @abstractmethod
    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move ``into`` to start + k(end − start) and evaluate it; at k = 1 all is known."""

    @abstractmethod
    def slopes(self, line: Line) -> Callable[[Point], float]:
        """What gives the derivative along a line of the plane at a point."""

    def descend(self, line: Line) -> float:
        """Move the start of a line to the minimum on it; returns its k.

        Both ends must have been evaluated.
        """
        start, end = line.start, line.end
        slope = self.slopes(line)
        best, last = self.kept
        lowest, lowest_k = math.inf, -1.0

        def at(k: float) -> LineValue:
            nonlocal best, last, lowest, lowest_k
            self.blend(start, end, k, last)
            here = line.at(k, last.risk, slope(last))
            if here.value < lowest:  # keep it: by convexity the answer is the best one
                lowest, lowest_k = here.value, k
                best, last = last, best
            return here

        k = minimise(
            at,
            line.at(0.0, start.risk, slope(start)),
            self._step_guess,
            line.tolerance,
            longest=line.longest,
            curvature=line.curvature,
            known=line.at(1.0, end.risk, slope(end)),
        ).k
        if k == 0.0:
            return k
        if k == lowest_k:
            start.take(best)
        else:  # the end itself
            self.blend(start, end, k, start)
        self._step_guess = k
        return k


class PlaneScoreRisk(Planes, ScoreRisk):
    """ScoreRisk whose points keep the plane that touches the risk there."""

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        if k == 1.0:  # the end has been evaluated
            into.copy(end)
        else:
            self._move(start, end, k, into)
            self.evaluate(into)

    def between(self, start: Point, end: Point, k: float) -> Point:
        self.blend(start, end, k, self.spare)
        return self.spare

    def coefficients(self, point: Point) -> tuple[np.ndarray, float]:
        return point.coef, point.offset

    @cached_property
    def kept(self) -> tuple[Point, Point]:  # type: ignore[override]
        return self.new_point(np.empty(0)), self.spare


class ListwiseScoreRisk(PlaneScoreRisk):
    """ScoreRisk of a risk of all scores at once.

    Attributes
    ----------
    evaluations : int
        How often the risk was evaluated.

    Parameters
    ----------
    risk : ListwiseRisk
    executor : Executor
    """

    def __init__(self, risk: ListwiseRisk, executor: Executor) -> None:
        super().__init__(risk.rows, None, 1.0, executor)
        self.risk = risk
        self.evaluations = 0

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(self.shape), coef=np.zeros(self.shape))

    def evaluate(self, point: Point) -> None:
        self.evaluations += 1
        point.risk, point.offset = self.risk.evaluate(point.scores, point.coef, self.executor)

    def upper(self, point: Point, low: np.ndarray | None, errors: np.ndarray) -> float:
        return self.risk.upper(point.scores, low, errors, self.executor)

    def slopes(self, line: Line) -> Callable[[Point], float]:
        direction = line.end.scores - line.start.scores
        return lambda point: float(np.einsum("i,i->", point.coef, direction))
