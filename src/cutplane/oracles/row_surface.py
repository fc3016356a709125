"""Risks that are sums over rows, with an unregularised bias if wanted.

    R(s) = min_b (1/W) Σ_i weight_i·loss(s_i + b, y_i)

With the bias a plane is one below R only if Σ coef_i = 0. A search for the bias ends with two
biases between which the best one lies, and with the derivatives g₋ ≤ 0 ≤ g₊ of the sum there: the
coefficients at both, mixed in the proportion g₊ : −g₋, sum to zero, and a mixture of planes is a
plane below the risk. It is as low as the bracket is wide, which the search knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..exec import Executor, SerialExecutor
from ..loops.bounded import MANY, ROUNDING
from ..risks import Risk, Targets
from .point import Line, Point
from .row_passes import Passes, RowPasses, in_order
from .search import INNER, Bracket, find_minimum
from .surface import Surface

# Where to look first: k in units of the last step, and how far from the last bias.
STEPS = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0])
BIASES = np.array([-4.0, -1.0, -0.25, 0.0, 0.25, 1.0, 4.0])
BIAS_REACH = 0.1
# How far above the minimum over the bias a point on a line may be, as a part of the line's
# tolerance.
BIAS_PART = 0.1
# A step along the straight line of w and bias must bring this much in units of the line's
# tolerance; else the line of min_b R is searched.
ENOUGH = 0.04


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
        If the rows are elsewhere: (chunks of rows, ``light``) → Passes of those who hold them.
    """

    def __init__(
        self,
        targets: Targets,
        risk: Risk,
        executor: Executor,
        *,
        free_bias: bool = False,
        edges: Sequence[int] | None = None,
        passes: Callable[[list[slice], bool], Passes] | None = None,
    ) -> None:
        if free_bias and not risk.has_bias:
            raise ValueError(f"{risk!r} has no exact unregularised bias")
        rows = len(targets.weights)
        super().__init__(rows, risk.outputs, targets.total, executor, risk.work, edges)
        self.targets = targets
        self.risk = risk
        self.free_bias = free_bias
        self.passes: Passes
        if passes is None:
            runner = SerialExecutor() if self.light else executor
            self.passes = RowPasses(targets, risk, self.slices, runner)
        else:
            self.passes = passes(self.slices, self.light)

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, self.passes.new_scores())

    def settle(self, point: Point) -> None:
        if self.free_bias:
            point.bracket = self._find_bias(point)
            point.bias = point.bracket.point
        self.settle_again(point)

    def settle_again(self, point: Point) -> None:
        # With the same bias, so that runs that do this more often go the same way.
        point.risk = sum(self.passes.value(point.view())) / self.total

    def upper(self, point: Point, low: Any, errors: Any) -> float:
        value = sum(self.passes.upper(point.view(), low, errors))
        return value / self.total * (1.0 + (MANY + len(self.slices)) * ROUNDING)

    def _blend_scores(self, start: Point, end: Point, k: float, into: Point) -> None:
        into.bias = start.bias + k * (end.bias - start.bias)
        into.bracket = None
        self.passes.blend(start.scores, end.scores, k, into.scores)

    def _find_bias(self, point: Point) -> Bracket:
        """The best bias of a point, near its present one, within the point's tolerance."""

        def slopes(biases: np.ndarray) -> np.ndarray:
            return in_order(self.passes.bias_slopes(point.scores, biases))

        guess = point.bias if np.isfinite(point.bias) else 0.0
        return find_minimum(
            slopes,
            guess + max(BIAS_REACH, 1e-3 * abs(guess)) * BIASES,
            self.total * point.tolerance,
        )

    # -- planes ---------------------------------------------------------------

    def coefficients(self, point: Point) -> tuple[Any, float]:
        self._fill(point)
        return self.passes.coef, sum(self.passes.offset())

    def dual_plane(self, coef: np.ndarray) -> tuple[Any, float]:
        """The plane of any coefficients in the domain of the loss's conjugate, as ``coefficients``.

        With a free bias they are balanced first: the heavier class is scaled down.
        """
        self.passes.set_coef(coef)
        if self.free_bias:
            above, below = in_order(self.passes.weigh()).tolist()
            if above != below:
                sign = 1.0 if above > below else -1.0
                self.passes.scale(sign, min(above, below) / max(above, below))
        return self.passes.coef, sum(self.passes.offset())

    def _fill(self, point: Point) -> None:
        """Fill in the coefficients of a plane that touches the risk at a point, or nearly so."""
        if not self.free_bias:
            self.passes.fill(point.scores, point.bias, point.bias, 0.0)
            return
        if point.bracket is None:
            point.bracket = self._find_bias(point)
        bracket = point.bracket
        self.passes.fill(point.scores, bracket.low, bracket.high, bracket.part)

    # -- lines ----------------------------------------------------------------

    def descend(self, line: Line) -> float:
        """Move the start of a line to the minimum on it, within the tolerance; returns its k."""
        start, end = line.start, line.end
        k = self._minimum_on(line)
        if not self.free_bias:
            if k > 0.0:
                self._move(start, end, k, start)
                self.settle_again(start)
        else:
            k = self._descend_with_bias(line, k)
        if line.value(1.0, end.risk) < line.value(k, start.risk):  # the search has a tolerance
            k = 1.0
            self._move(start, end, k, start)
            start.bias, start.risk, start.bracket = end.bias, end.risk, end.bracket
        if k > 0.0:
            self._step_guess = k
        return k

    def _minimum_on(self, line: Line) -> float:
        """The k of the minimum on the line on which w and the bias move together."""
        a, b = line.start.view(), line.end.view()

        def slopes(steps: np.ndarray) -> np.ndarray:
            sums = in_order(self.passes.line_slopes(a, b, steps)) / self.total
            return sums + line.slope + line.curvature * steps

        return self._step_where(slopes, line, STEPS, INNER)

    def _step_where(
        self,
        slopes: Callable[[np.ndarray], np.ndarray],
        line: Line,
        first: np.ndarray,
        at_once: int,
    ) -> float:
        """The k at which an increasing derivative along a line is zero."""
        bracket = find_minimum(
            slopes,
            np.unique(np.minimum(self._step_guess * first, line.longest)),
            line.tolerance,
            lowest=0.0,
            highest=line.longest,
            at_once=at_once,
        )
        return bracket.point

    def _descend_with_bias(self, line: Line, k: float) -> float:
        """Mend the minimum k along the line on which w and the bias move together.

        Most of the time minimising over the bias once there is as good as minimising
        over both. But where kinks meet, or in a bent valley, neither w nor the bias
        can go far without the other. If k brings too little, the line of min_b R is searched.
        """
        start, end = line.start, line.end
        point = self.spare()

        def go_to(k: float) -> None:
            self._move(start, end, k, point)
            point.tolerance = BIAS_PART * line.tolerance
            self.settle(point)

        def slopes(steps: np.ndarray) -> np.ndarray:
            found = []
            for k in steps.tolist():
                go_to(k)
                self._fill(point)
                plane = sum(self.passes.slope(start.scores, end.scores)) / self.total
                found.append(plane + line.slope + line.curvature * k)
            return np.array(found)

        if k > 0.0:
            go_to(k)
        if k == 0.0 or start.risk - line.value(k, point.risk) < ENOUGH * line.tolerance:
            k = self._step_where(slopes, line, STEPS[[0, 3]], 1)
            if k > 0.0:
                go_to(k)
        if k > 0.0:
            start.take(point)
        return k
