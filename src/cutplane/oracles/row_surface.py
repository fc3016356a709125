"""Risks that are sums over rows, with an unregularised bias if wanted.

    R(s) = min_b (1/W) Σ_i weight_i·loss(s_i + b, y_i)

With the bias a plane is one below R only if Σ coef_i = 0: at the minimising b
such coefficients exist, and where rounding leaves a remainder the heavier class
is scaled down, which keeps the cut valid and costs that much of its height.
"""

from __future__ import annotations

import math

import numpy as np

from ..exec import Executor, SerialExecutor
from ..risks import HingeRisk, Risk, Scores, SmoothRisk, Targets
from .line import newton
from .point import Line, Point
from .selection import FAR, ZeroFinder
from .surface import Surface

# How far the best bias is expected from the last one.
BIAS_REACH = 0.25


class RowSurface(Surface):
    """Surface of a sum of losses over rows.

    Parameters
    ----------
    targets : Targets
    risk : Risk
    executor : Executor
    free_bias : bool, default=False
        Minimise over an unregularised bias.
    """

    def __init__(
        self, targets: Targets, risk: Risk, executor: Executor, *, free_bias: bool = False
    ) -> None:
        if free_bias and not risk.has_bias:
            raise ValueError(f"{type(risk).__name__} has no exact unregularised bias")
        rows = len(targets.weights)
        super().__init__(rows, risk.outputs, targets.total, executor, risk.work)
        self.targets = targets
        self.risk = risk
        self.free_bias = free_bias
        self._coef = np.empty(self.shape)
        if isinstance(risk, HingeRisk):
            self._finder = ZeroFinder(self.slices, SerialExecutor() if self.light else executor)

    def settle(self, point: Point) -> None:
        if self.free_bias:
            point.bias = self._best_bias(point)
        view = point.view()
        values = self.run(lambda rows: self.risk.value(view[rows], self.targets[rows]))
        point.risk = sum(values) / self.total

    # -- planes ---------------------------------------------------------------

    def between(self, start: Point, end: Point, k: float) -> Point:
        point = super().between(start, end, k)
        if self.free_bias:
            point.bias = self._best_bias(point)
        return point

    def coefficients(self, point: Point) -> tuple[np.ndarray, float]:
        self._fill_coefficients(point)
        # The hinge's coefficients are shared out at the kink and balance already.
        if self.free_bias and not isinstance(self.risk, HingeRisk):
            self._balance()
        return self._coef, self._offset()

    def dual_plane(self, coef: np.ndarray) -> tuple[np.ndarray, float]:
        """The plane of any coefficients in the domain of the loss's conjugate, as ``coefficients``.

        With a free bias they are balanced first.
        """
        self._coef[...] = coef
        if self.free_bias:
            self._balance()
        return self._coef, self._offset()

    def _offset(self) -> float:
        return sum(self.run(lambda rows: self.risk.offset(self._coef[rows], self.targets[rows])))

    def _fill_coefficients(self, point: Point) -> None:
        view = point.view()
        risk = self.risk
        if not (isinstance(risk, HingeRisk) and self.free_bias):
            self.run(
                lambda rows: risk.coefficients(view[rows], self.targets[rows], self._coef[rows])
            )
            return
        # Share out the rows at the kink so that both classes weigh the same.
        positive, negative, tied_positive, tied_negative = sum(
            self.run(lambda rows: risk.active_weights(view[rows], self.targets[rows]))
        )
        lack = positive - negative
        part_positive = min(1.0, -lack / tied_positive) if lack < 0 < tied_positive else 0.0
        part_negative = min(1.0, lack / tied_negative) if lack > 0 < tied_negative else 0.0
        self.run(
            lambda rows: risk.split_coefficients(
                view[rows], self.targets[rows], part_positive, part_negative, self._coef[rows]
            )
        )

    def _balance(self) -> None:
        """Scale the heavier class down until the coefficients sum to zero."""

        def weigh(rows: slice) -> np.ndarray:
            coef = self._coef[rows]
            negative = np.minimum(coef, 0.0).sum()
            return np.array([coef.sum() - negative, -negative])

        above, below = sum(self.run(weigh))
        if above == below:
            return
        heavier, factor = (1.0, below / above) if above > below else (-1.0, above / below)

        def scale(rows: slice) -> None:
            coef = self._coef[rows]
            coef[coef * heavier > 0.0] *= factor

        self.run(scale)

    # -- the bias -------------------------------------------------------------

    def _best_bias(self, point: Point) -> float:
        if isinstance(self.risk, HingeRisk):
            return self._bias_by_selection(point, self.risk)
        assert isinstance(self.risk, SmoothRisk)
        return self._bias_by_newton(point, self.risk)

    def _bias_by_selection(self, point: Point, risk: HingeRisk) -> float:
        view = point.view()

        def steps(
            rows: slice, low: float, high: float, at: np.ndarray, by: np.ndarray
        ) -> tuple[int, float]:
            return risk.bias_steps(view[rows], self.targets[rows], low, high, at, by)

        reach = max(BIAS_REACH, 1e-3 * abs(point.bias))
        return self._finder.zero(steps, 0.0, 0.0, point.bias - reach, point.bias + reach, -FAR)

    def _bias_by_newton(self, point: Point, risk: SmoothRisk) -> float:
        def derivatives(bias: float) -> tuple[float, float]:
            at = Scores(point.scores, bias)
            slope, curvature = sum(
                self.run(lambda rows: np.array(risk.bias_derivatives(at[rows], self.targets[rows])))
            )
            return float(slope), float(curvature)

        start = point.bias if math.isfinite(point.bias) else 0.0
        return newton(derivatives, start, 1e-14 * self.total)

    # -- lines ----------------------------------------------------------------

    def descend(self, line: Line) -> float:
        """Move the start of a line to the minimum on it; returns its k.

        The hinge's minimum is exact without a bias; others stop within the tolerance of it.
        """
        if isinstance(self.risk, HingeRisk):
            k = self._line_by_selection(line, self.risk)
        else:
            k = self._line_by_search(line)
        if self.free_bias:
            return self._descend_with_bias(line, k)
        if k > 0.0:
            self._step_guess = k
            self.blend(line.start, line.end, k, line.start)
        return k

    def _descend_with_bias(self, line: Line, k: float) -> float:
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
                self.blend(start, end, k, point)
                at = k
            return point.risk

        def evaluate(k: float) -> tuple[float, float]:
            return risk(k), self._derivative(point, start, end)

        # In the bent valleys of smooth losses the straight line costs many iterations; along
        # the hinge's kinks it is nearly always as good, and the other one dear.
        enough = (0.04 if isinstance(self.risk, HingeRisk) else 4.0) * line.tolerance
        if k == 0.0 or start.risk - line.height(k, risk(k), 0.0).value < enough:
            k = self._search(line, evaluate, k or self._step_guess)
        if k > 0.0:
            risk(k)
            start.take(point)
            self._step_guess = k
        return k

    def _derivative(self, point: Point, start: Point, end: Point) -> float:
        """Derivative of min_b R at a point between start and end, in that direction."""
        self._fill_coefficients(point)

        def part(rows: slice) -> float:
            return float(
                np.einsum("i,i->", self._coef[rows], end.scores[rows] - start.scores[rows])
            )

        return sum(self.run(part)) / self.total

    def _line_by_selection(self, line: Line, risk: HingeRisk) -> float:
        a, b = line.start.view(), line.end.view()

        def steps(
            rows: slice, low: float, high: float, at: np.ndarray, by: np.ndarray
        ) -> tuple[int, float]:
            return risk.line_steps(a[rows], b[rows], self.targets[rows], high, at, by)

        total = self.total
        likely = 2.0 * self._step_guess
        k = self._finder.zero(steps, total * line.curvature, total * line.slope, 0.0, likely, 0.0)
        return min(k, line.longest)

    def _line_by_search(self, line: Line) -> float:
        a, b = line.start.view(), line.end.view()

        def evaluate(k: float) -> tuple[float, float]:
            def part(rows: slice) -> np.ndarray:
                return np.array(self.risk.line(a[rows], b[rows], k, self.targets[rows]))

            risk, derivative = map(float, sum(self.run(part)) / self.total)
            return risk, derivative

        return self._search(line, evaluate, self._step_guess)
