"""Risks that are sums over rows, with an unregularised bias if wanted.

    R(s) = min_b (1/W) Σ_i weight_i·loss(s_i + b, y_i)

With the bias a plane is one below R only if Σ coef_i = 0: at the minimising b
such coefficients exist, and where rounding leaves a remainder the heavier class
is scaled down, which keeps the cut valid and costs that much of its height.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..data.parts import ChunkSums
from ..exec import Executor, SerialExecutor
from ..loops.bounded import MANY, ROUNDING
from ..risks import HingeRisk, Risk, Scores, SmoothRisk, Targets
from .bias_bins import Band, BiasBins, tied_parts
from .joint import Balance, Found, JointSearch, Points
from .line import newton
from .octaves import Octaves
from .point import Line, Point
from .row_passes import Passes, Question, RowPasses, in_order
from .selection import FAR, Grid, find_zero
from .surface import Surface

# How far the best bias is expected from where it is guessed.
BIAS_REACH = 0.25
# The same where it is looked for in one pass, on a line and at its end, and how much farther in
# the next pass.
PROFILE_REACH, END_REACH, WIDER = 0.5, 1.0, 16.0
# How far above the minimum over the bias a point on a line may be, as a part of the line's
# tolerance; and the end of the next line, where the bias jumps and matters less.
BIAS_PART, END_PART = 0.1, 10.0
# How far the bias may jump next from one end to another, in jumps; and how slowly that falls.
JUMPS, DECAY = 4.0, 0.5
# Rows below which a pass costs nothing worth saving: lines and biases are exact there.
EXACT_ROWS = 4096
# Passes after which the bias is looked for to the last bit.
MOST_PROFILES = 4
# Where on a line the first cut after one is expected.
CUT_GUESS = 0.3
# Derivative of a smooth risk in the bias at which it is minimised, but for rounding.
BIAS_SLOPE = 1e-14


class RowSurface(Surface):
    """Surface of a sum of losses over rows.

    Parameters
    ----------
    targets : Targets
    risk : Risk
    executor : Executor
    free_bias : bool, default=False
        Minimise over an unregularised bias.
    edges : sequence of int, optional
        Rows at which parts of the data begin, and the end.
    passes : callable, optional
        If the rows are elsewhere: (chunks of rows, how many each part has, ``light``) → Passes of
        those who hold them.
    """

    def __init__(
        self,
        targets: Targets,
        risk: Risk,
        executor: Executor,
        *,
        free_bias: bool = False,
        edges: Sequence[int] | None = None,
        passes: Callable[[list[slice], list[int], bool], Passes] | None = None,
    ) -> None:
        if free_bias and not risk.has_bias:
            raise ValueError(f"{type(risk).__name__} has no exact unregularised bias")
        rows = len(targets.weights)
        super().__init__(rows, risk.outputs, targets.total, executor, risk.work, edges)
        self.targets = targets
        self.risk = risk
        self.free_bias = free_bias
        self._small = rows < EXACT_ROWS
        self.passes: Passes
        if passes is None:
            runner = SerialExecutor() if self.light else executor
            sums = ChunkSums.whole(self.chunk_counts)
            self.passes = RowPasses(targets, risk, self.slices, runner, sums)
        else:
            self.passes = passes(self.slices, self.chunk_counts, self.light)
        self._line_start: Point | None = None  # of the last line
        self._bias_tolerance = 0.0
        self._end_reach = END_REACH
        self._cutting: Point | None = None  # where a cut is made
        self._cut_bias: float | None = None  # about the best one there
        self._band: Band | None = None  # the best one there
        self._cut_guess = CUT_GUESS  # where on a line with a smooth risk
        self._found: Found | None = None  # on the last line, with the next cut
        self._balanced: Balance | None = None  # of the cut to be made
        self._smooth = isinstance(risk, SmoothRisk)

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, self.passes.new_scores())

    def state(self) -> dict[str, Any]:
        own = {"bias_tolerance": self._bias_tolerance, "end_reach": self._end_reach}
        own["cut"] = self._cut_guess
        return {**super().state(), **own}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._bias_tolerance = float(state.get("bias_tolerance", 0.0))
        self._end_reach = float(state.get("end_reach", END_REACH))
        self._cut_guess = float(state.get("cut", CUT_GUESS))

    def settle(self, point: Point) -> None:
        if self._smooth and point.rough and point is not self._spare:
            point.risk = math.inf  # a line to it is next, and looks there, too
            return
        if not (point.rough and self._settle_end(point)):
            self._settle_exactly(point)

    def settle_again(self, point: Point) -> None:
        # With the same bias, so that runs that do this more often go the same way.
        point.risk = sum(self.passes.value(point.view())) / self.total

    def upper(self, point: Point, low: Any, errors: Any) -> float:
        # Scores that are computed anew are others: what was prepared for the next cut is void.
        self._cut_bias = self._band = self._balanced = self._found = None
        value = sum(self.passes.upper(point.view(), low, errors))
        return value / self.total * (1.0 + (MANY + len(self.slices)) * ROUNDING)

    def _settle_end(self, point: Point) -> bool:
        """Evaluate the risk at the end of the next line; as ``_settle_roughly``."""
        reach, before = self._end_reach, point.bias
        if not self._settle_roughly(point, part=END_PART / BIAS_PART, reach=reach):
            return False
        self._end_reach = max(END_REACH, JUMPS * abs(point.bias - before), DECAY * reach)
        return True

    def _settle_roughly(self, point: Point, then: Sequence[Question] = (), **settings: Any) -> bool:
        """Evaluate the risk with a bias that is good enough; False if there is none such."""
        band = self._find_band(point, then, **settings)
        if band is not None:
            point.bias, point.risk = band.bias, band.risk / self.total
        return band is not None

    def _settle_exactly(self, point: Point) -> None:
        if self.free_bias:
            point.bias = self._best_bias(point)
        point.risk = sum(self.passes.value(point.view(), self._ahead(point))) / self.total

    def _ahead(self, point: Point) -> list[Question]:
        """What is asked next if a line to this point comes next."""
        start = self._line_start
        if start is None or point is start or point is self._spare:
            return []
        a, b = start.view(), point.view()
        if isinstance(self.risk, HingeRisk):
            return [("line_profiles", a, b, Octaves.around(self._step_guess))]
        if self._smooth:
            return []
        return [("line", a, b, 0.0), ("line", a, b, self._step_guess)]

    def _blend_scores(self, start: Point, end: Point, k: float, into: Point) -> None:
        into.bias = start.bias + k * (end.bias - start.bias)
        self.passes.blend(start.scores, end.scores, k, into.scores)

    # -- planes ---------------------------------------------------------------

    def between(self, start: Point, end: Point, k: float) -> Point:
        if not self.free_bias:
            return super().between(start, end, k)
        point = self._cut_point()
        self._blend_scores(start, end, k, point)
        found, self._found = self._found, None
        if found is not None and found.balance is not None and found.position == k:
            self._balanced = found.balance
            point.bias = found.balance.bias
            return point
        if self._cut_bias is not None:
            point.bias, self._cut_bias = self._cut_bias, None
        self._band = self._find_band(point)
        if self._band is None:
            point.bias = self._best_bias(point)
        return point

    def _cut_point(self) -> Point:
        """A point of its own: the spare one may be in use when a cut is prepared."""
        self._cutting = self._cutting or self.new_point(np.empty(0))
        return self._cutting

    def coefficients(self, point: Point) -> tuple[Any, float]:
        band, self._band = self._band, None
        if band is not None and point is self._cutting:
            self.passes.fill_band(point.scores, band)
        else:
            self._fill_coefficients(point)
        # The hinge's coefficients are shared out at the kink and balance already.
        balanced, self._balanced = self._balanced, None
        if balanced is not None and point is self._cutting:
            self.passes.scale(balanced.sign, balanced.factor)
        elif self._smooth and self.free_bias:
            self._balance()
        return self.passes.coef, sum(self.passes.offset())

    def dual_plane(self, coef: np.ndarray) -> tuple[Any, float]:
        """The plane of any coefficients in the domain of the loss's conjugate, as ``coefficients``.

        With a free bias they are balanced first.
        """
        self.passes.set_coef(coef)
        if self.free_bias:
            self._balance()
        return self.passes.coef, sum(self.passes.offset())

    def _fill_coefficients(self, point: Point) -> None:
        view = point.view()
        if not (isinstance(self.risk, HingeRisk) and self.free_bias):
            self.passes.fill(view)
            return
        # Share out the rows at the kink so that both classes weigh the same.
        sums = in_order(self.passes.active_weights(view))
        positive, negative, tied_positive, tied_negative = sums.tolist()
        lack = positive - negative
        self.passes.fill(view, *tied_parts(lack, tied_positive, tied_negative))

    def _balance(self) -> None:
        """Scale the heavier class down until the coefficients sum to zero."""
        above, below = in_order(self.passes.weigh()).tolist()
        if above > below:
            self.passes.scale(1.0, below / above)
        elif below > above:
            self.passes.scale(-1.0, above / below)

    # -- the bias -------------------------------------------------------------

    def _best_bias(self, point: Point) -> float:
        if isinstance(self.risk, HingeRisk):
            return self._bias_by_selection(point)
        assert isinstance(self.risk, SmoothRisk)
        return self._bias_by_newton(point)

    def _find_band(
        self,
        point: Point,
        then: Sequence[Question] = (),
        part: float = 1.0,
        reach: float = PROFILE_REACH,
    ) -> Band | None:
        """The hinge's best bias as well as lines need it; None if it must be found exactly."""
        tolerance = part * self._bias_tolerance
        exactly = self._small or not (tolerance > 0.0 and isinstance(self.risk, HingeRisk))
        if exactly or not self.free_bias:
            return None
        bins = BiasBins.around(point.bias, reach)
        for _ in range(MOST_PROFILES):
            if not bins.low < bins.high < FAR:
                return None
            band = bins.band(self.passes.profile_bias(point.scores, bins, then))
            if band is not None and band.loss <= tolerance:
                return band
            bins = bins.wider(WIDER) if band is None else bins.inside(band.number)
            then = ()
        return None

    def _bias_by_selection(self, point: Point) -> float:
        view = point.view()

        def list_steps(first: float, last: float, grid: Grid) -> list[Any]:
            return self.passes.list_bias(view, first, last, grid)

        reach = max(BIAS_REACH, 1e-3 * abs(point.bias))
        low, high = point.bias - reach, point.bias + reach
        return find_zero(list_steps, self.passes, 0.0, 0.0, low, high, -FAR)

    def _bias_by_newton(self, point: Point) -> float:
        def derivatives(bias: float) -> tuple[float, float]:
            sums = in_order(self.passes.bias_derivatives(Scores(point.scores, bias)))
            return float(sums[0]), float(sums[1])

        start = point.bias if math.isfinite(point.bias) else 0.0
        return newton(derivatives, start, BIAS_SLOPE * self.total)

    # -- lines ----------------------------------------------------------------

    def descend(self, line: Line) -> float:
        """Move the start of a line to the minimum on it, within the tolerance; returns its k."""
        self._line_start = line.start
        self._bias_tolerance = BIAS_PART * line.tolerance * self.total
        self._cut_bias = self._found = None
        if self._smooth:
            k = self._descend_jointly(line)
            if k > 0.0:
                return k
        if isinstance(self.risk, HingeRisk):
            k, fall = self._line_by_profile(line)
        else:
            k, fall = self._line_by_search(line)
        if self.free_bias:
            return self._descend_with_bias(line, k, fall)
        if k > 0.0:
            self._step_guess = k
            self._move(line.start, line.end, k, line.start)
            then = self._cut_after(line, k, fall)
            line.start.risk = sum(self.passes.value(line.start.view(), (), then)) / self.total
        return k

    def _cut_after(self, line: Line, k: float, fall: float) -> list[Question]:
        """What the cut after a line asks, if it is known where that will be."""
        if line.position is None:
            return []
        position = line.position(k, fall)
        start, end, point = line.start, line.end, self.spare()
        view = Scores(point.scores, start.bias + position * (end.bias - start.bias))
        return [
            ("blend", start.scores, end.scores, position, point.scores),
            ("fill", view, None, 0.0),
            ("offset",),
            ("gradients", self.passes.coef),
        ]

    def _descend_jointly(self, line: Line) -> float:
        """Move the start of a line to the minimum over the line and the bias; returns its k.

        0, and nothing is moved, if that is not found.
        """
        start, end = line.start, line.end

        def evaluate(points: Points) -> np.ndarray:
            sums = self.passes.line_and_bias(start.scores, end.scores, points)
            return in_order(sums) / self.total

        search = JointSearch(line, evaluate, self.free_bias)
        found = search.find(self._step_guess, self._cut_guess)
        if found is None:
            if end.rough:
                self._settle_exactly(end)
            if self.free_bias:  # a bias that was good enough for the last line may not be for this
                self._settle_exactly(start)
            return 0.0
        if end.rough:
            end.bias, end.risk = found.end.best, found.end.risk
        self._move(start, end, found.k, start)
        start.bias, self._step_guess = found.bias, found.k
        self._cut_guess = found.cut
        if self.free_bias and self._small:
            start.bias = self._bias_by_newton(start)
            start.risk = sum(self.passes.value(start.view())) / self.total
            return found.k
        self._found = found
        point = self._cut_point() if self.free_bias else self.spare()
        then = found.questions(start, end, point, self.passes.coef)
        value = self.passes.value(start.view(), (), then)
        start.risk = sum(value) / self.total
        return found.k

    def _descend_with_bias(self, line: Line, k: float, fall: float) -> float:
        """Mend the minimum k along the line on which w and the bias move together.

        Most of the time minimising over the bias once there is as good as minimising
        over both. But where kinks meet, or in a bent valley, neither w nor the bias
        can go far without the other. If k brings too little, the line of min_b R is
        searched, whose values and derivatives are exact.
        """
        start, end = line.start, line.end
        point = self.spare()
        at = -1.0  # the k of ``point``

        def risk(k: float) -> float:
            nonlocal at
            if k != at:
                self._move(start, end, k, point)
                self._settle_exactly(point)
                at = k
            return point.risk

        def rough_risk() -> float:
            nonlocal at
            self._move(start, end, k, point)
            then = self._cut_bias_after(line, k, fall, point)
            if self._settle_roughly(point, then):
                at = k
            return risk(k)

        def evaluate(k: float) -> tuple[float, float]:
            return risk(k), self._derivative(point, start, end)

        # In the bent valleys of smooth losses the straight line costs many iterations; along
        # the hinge's kinks it is nearly always as good, and the other one dear.
        enough = (0.04 if isinstance(self.risk, HingeRisk) else 4.0) * line.tolerance
        if k == 0.0 or start.risk - line.height(k, rough_risk(), 0.0).value < enough:
            at = -1.0
            k = self._search(line, evaluate, k or self._step_guess)[1].k
        if k > 0.0:
            risk(k)
            start.take(point)
            self._step_guess = k
        return k

    def _cut_bias_after(self, line: Line, k: float, fall: float, moved: Point) -> list[Question]:
        """What the search for the bias of the cut after a line asks, once its start has moved."""
        if line.position is None or not isinstance(self.risk, HingeRisk):
            return []
        position = line.position(k, fall)
        start, end, point = line.start, line.end, self._cut_point()
        bias = start.bias + k * (end.bias - start.bias)
        bias += position * (end.bias - bias)
        self._cut_bias = bias
        return [
            ("blend", moved.scores, end.scores, position, point.scores),
            ("bias_profiles", point.scores, BiasBins.around(bias, PROFILE_REACH)),
        ]

    def _derivative(self, point: Point, start: Point, end: Point) -> float:
        """Derivative of min_b R at a point between start and end, in that direction."""
        self._fill_coefficients(point)
        return sum(self.passes.slope(start.scores, end.scores)) / self.total

    def _line_by_profile(self, line: Line) -> tuple[float, float]:
        """The k of the minimum on a line, and about how much the function falls until there."""
        octaves = Octaves.around(self._step_guess)
        profile = self.passes.profile_line(line.start.view(), line.end.view(), octaves)
        bins, start = profile[:-1], self.total * line.slope + float(profile[-1])
        if start >= 0.0:
            return 0.0, 0.0
        slope = self.total * line.curvature
        bracket = octaves.bracket(bins, slope, start)
        if not self._small and bracket.loss <= self.total * line.tolerance:
            k = bracket.k
        else:
            k = self._line_by_selection(line, bracket.low, bracket.high)
        k = min(k, line.longest)
        return k, octaves.fall(bins, slope, start, k) / self.total

    def _line_by_selection(self, line: Line, low: float, high: float) -> float:
        """The k of the minimum on a line to the last bit, expected in [low, high)."""
        a, b = line.start.view(), line.end.view()

        def list_steps(first: float, last: float, grid: Grid) -> list[Any]:
            return self.passes.list_line(a, b, first, last, grid)

        slope, start = self.total * line.curvature, self.total * line.slope
        return find_zero(list_steps, self.passes, slope, start, low, high, 0.0)

    def _line_by_search(self, line: Line) -> tuple[float, float]:
        """As ``_line_by_profile``, for every risk."""
        a, b = line.start.view(), line.end.view()

        def evaluate(k: float) -> tuple[float, float]:
            sums = in_order(self.passes.line(a, b, k)) / self.total
            return float(sums[0]), float(sums[1])

        first, found = self._search(line, evaluate, self._step_guess)
        return found.k, first.value - found.value
