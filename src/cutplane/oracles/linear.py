"""The linear oracle: turns a point w into a cut of the risk, and a line into its minimum.

    R(w) = min_b (1/W) Σ_i weight_i·loss(<w, x_i> + c·w_0 + b, y_i)

over blocks of rows. c·w_0 is the regularised bias of the papers (a constant
feature that is never stored), b the unregularised one; either may be absent.

A cut of R at w is (a, offset) with a = (1/W) Σ coef_i·x_i and offset from the
conjugate of the loss (see ``risks.base``). With an unregularised bias it is a
cut only if Σ coef_i = 0: at the minimising b such coefficients exist, and
where rounding leaves a remainder the heavier class is scaled down, which
keeps the cut valid and costs that much of its height.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import BlockedMatrix
from ..exec import Executor
from ..loops import vectors
from ..risks import HingeRisk, Risk, Scores, SmoothRisk, Targets
from .line import minimise_convex, newton
from .selection import FAR, ZeroFinder

# How far the best bias is expected from the last one.
BIAS_REACH = 0.25


def _nothing(block: int) -> None:
    """Fill nothing: the buffer is up to date."""


@dataclass(frozen=True)
class Cut:
    """R(v) ≥ <a, v> + offset for all v."""

    a: np.ndarray
    offset: float


@dataclass
class Point:
    """A point with all that was computed there. Its buffers are reused.

    ``scores`` are without the bias b, which is kept apart.
    """

    w: np.ndarray
    scores: np.ndarray
    bias: float = 0.0
    risk: float = np.inf

    def view(self) -> Scores:
        """The scores with the bias."""
        return Scores(self.scores, self.bias)

    def take(self, other: Point) -> None:
        """Become the other point, which gets this one's buffer and becomes useless."""
        self.scores, other.scores = other.scores, self.scores
        self.w, self.bias, self.risk = other.w, other.bias, other.risk


@dataclass(frozen=True)
class _Line:
    """A line search; see ``LinearOracle.descend``."""

    start: Point
    end: Point
    curvature: float
    slope: float
    tolerance: float
    longest: float

    def quadratic(self, k: float) -> float:
        return 0.5 * self.curvature * k * k + self.slope * k

    def quadratic_slope(self, k: float) -> float:
        return self.curvature * k + self.slope


class LinearOracle:
    """Cuts and lines for a linear model.

    Parameters
    ----------
    matrix : BlockedMatrix
    targets : Targets
    risk : Risk
    executor : Executor
    constant : float, default=0
        Value of the constant feature behind the regularised bias; 0 for none.
    free_bias : bool, default=False
        Minimise over an unregularised bias.
    """

    def __init__(
        self,
        matrix: BlockedMatrix,
        targets: Targets,
        risk: Risk,
        executor: Executor,
        *,
        constant: float = 0.0,
        free_bias: bool = False,
    ) -> None:
        if free_bias and not risk.has_bias:
            raise ValueError(f"{type(risk).__name__} has no exact unregularised bias")
        self.matrix = matrix
        self.targets = targets
        self.risk = risk
        self.executor = executor
        self.constant = constant
        self.free_bias = free_bias
        rows, features = matrix.shape
        tail = () if risk.outputs is None else (risk.outputs,)
        self._w_shape = (features + (constant != 0.0), *tail)
        self._scores_shape = (rows, *tail)
        self._slices = [matrix.slice(k) for k in range(len(matrix.blocks))]
        self._targets = [
            Targets(targets.labels[s], targets.weights[s], targets.total) for s in self._slices
        ]
        self._coef = np.empty(self._scores_shape)
        self._partials = np.empty((len(matrix.blocks), *self._w_shape))
        if isinstance(risk, HingeRisk):
            self._finder = ZeroFinder(self._slices, executor)
        self._step_guess = 1.0
        self._centre: Point | None = None

    @property
    def dimension(self) -> int:
        """Length of w as a flat vector."""
        return int(np.prod(self._w_shape))

    # -- points ---------------------------------------------------------------

    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""
        return Point(np.zeros(self._w_shape), np.zeros(self._scores_shape))

    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w: one product X·w."""
        shaped = w.reshape(self._w_shape)
        into.w = shaped

        def scores(k: int) -> None:
            out = into.scores[self._slices[k]]
            self.matrix.blocks[k].scores(shaped, out)
            if self.constant:
                out += self.constant * shaped[-1]

        self._settle(into, scores)

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move ``into`` to start + k(end − start), without reading the data."""
        into.w = start.w + k * (end.w - start.w)
        into.bias = start.bias + k * (end.bias - start.bias)
        self._settle(into, self._blending(start, end, k, into))

    def _blending(self, start: Point, end: Point, k: float, into: Point) -> Callable[[int], None]:
        """A function that blends the scores of a block."""

        def block(b: int) -> None:
            rows = self._slices[b]
            vectors.blend(
                start.scores[rows].reshape(-1),
                end.scores[rows].reshape(-1),
                k,
                into.scores[rows].reshape(-1),
            )

        return block

    def _settle(self, point: Point, fill: Callable[[int], None]) -> None:
        """Fill the scores of a point, minimise over the bias, evaluate the risk."""
        if self.free_bias:
            self._run(fill)
            fill = _nothing
            point.bias = self._best_bias(point)
        view = point.view()

        def block(k: int) -> float:  # one round, while the block's scores are in cache
            fill(k)
            return self.risk.value(view[self._slices[k]], self._targets[k])

        point.risk = sum(self._run(block)) / self.targets.total

    # -- cuts -----------------------------------------------------------------

    def cut(self, start: Point, end: Point | None = None, k: float = 0.0) -> Cut:
        """The cut at start, or at start + k(end − start): one product Xᵀ·coef."""
        point = start if end is None else self._between(start, end, k)
        coefficients = self._coefficients_at(point)
        # The hinge's coefficients are shared out at the kink and balance already.
        balanced = not self.free_bias or isinstance(self.risk, HingeRisk)
        return self._cut_from_buffer(
            lambda b: coefficients(b, self._coef[self._slices[b]]), balanced
        )

    def _between(self, start: Point, end: Point, k: float) -> Point:
        """The point start + k(end − start) in a buffer of its own; its risk is not computed."""
        point = self._centre = self._centre or self.new_point()
        point.bias = start.bias + k * (end.bias - start.bias)
        self._run(self._blending(start, end, k, point))
        if self.free_bias:
            point.bias = self._best_bias(point)
        return point

    def dual_cut(self, coef: np.ndarray) -> Cut:
        """The cut from any dual point.

        Parameters
        ----------
        coef : ndarray, shape of the scores
            Per row, weight times a number in the domain of the loss's
            conjugate; for the hinge −y·weight·π with 0 ≤ π ≤ 1.
        """
        self._coef[...] = coef
        return self._cut_from_buffer(_nothing, not self.free_bias)

    def _coefficients_at(self, point: Point) -> Callable[[int, np.ndarray], None]:
        view = point.view()
        risk = self.risk
        if isinstance(risk, HingeRisk) and self.free_bias:
            # Share out the rows at the kink so that both classes weigh the same.
            positive, negative, tied_positive, tied_negative = sum(
                self._run(lambda k: risk.active_weights(view[self._slices[k]], self._targets[k]))
            )
            lack = positive - negative
            part_positive = min(1.0, -lack / tied_positive) if lack < 0 < tied_positive else 0.0
            part_negative = min(1.0, lack / tied_negative) if lack > 0 < tied_negative else 0.0
            return lambda k, out: risk.split_coefficients(
                view[self._slices[k]], self._targets[k], part_positive, part_negative, out
            )
        return lambda k, out: risk.coefficients(view[self._slices[k]], self._targets[k], out)

    def _cut_from_buffer(self, fill: Callable[[int], None], balanced: bool) -> Cut:
        """The cut of the coefficients in ``self._coef``, which ``fill`` writes."""
        if not balanced:
            self._run(fill)
            fill = _nothing
            self._balance()

        def block(k: int) -> float:
            fill(k)
            coef = self._coef[self._slices[k]]
            partial = self._partials[k]
            partial[...] = 0.0
            self.matrix.blocks[k].add_gradient(coef, partial)
            if self.constant:
                partial[-1] = self.constant * coef.sum(axis=0)
            return self.risk.offset(coef, self._targets[k])

        offset = sum(self._run(block))
        gradient = self._partials.sum(axis=0)
        return Cut(gradient.reshape(-1) / self.targets.total, offset / self.targets.total)

    def _balance(self) -> None:
        """Scale the heavier class down until the coefficients sum to zero."""

        def weigh(k: int) -> np.ndarray:
            coef = self._coef[self._slices[k]]
            negative = np.minimum(coef, 0.0).sum()
            return np.array([coef.sum() - negative, -negative])

        above, below = sum(self._run(weigh))
        if above == below:
            return
        heavier, factor = (1.0, below / above) if above > below else (-1.0, above / below)

        def scale(k: int) -> None:
            coef = self._coef[self._slices[k]]
            coef[coef * heavier > 0.0] *= factor

        self._run(scale)

    # -- the bias -------------------------------------------------------------

    def _best_bias(self, point: Point) -> float:
        if isinstance(self.risk, HingeRisk):
            return self._bias_by_selection(point, self.risk)
        assert isinstance(self.risk, SmoothRisk)
        return self._bias_by_newton(point, self.risk)

    def _bias_by_selection(self, point: Point, risk: HingeRisk) -> float:
        view = point.view()

        def steps(
            k: int, low: float, high: float, at: np.ndarray, by: np.ndarray
        ) -> tuple[int, float]:
            rows = self._slices[k]
            return risk.bias_steps(view[rows], self._targets[k], low, high, at, by)

        reach = max(BIAS_REACH, 1e-3 * abs(point.bias))
        return self._finder.zero(steps, 0.0, 0.0, point.bias - reach, point.bias + reach, -FAR)

    def _bias_by_newton(self, point: Point, risk: SmoothRisk) -> float:
        def derivatives(bias: float) -> tuple[float, float]:
            at = Scores(point.scores, bias)

            def block(k: int) -> np.ndarray:
                return np.array(risk.bias_derivatives(at[self._slices[k]], self._targets[k]))

            slope, curvature = sum(self._run(block))
            return float(slope), float(curvature)

        start = point.bias if math.isfinite(point.bias) else 0.0
        return newton(derivatives, start, 1e-14 * self.targets.total)

    # -- lines ----------------------------------------------------------------

    def descend(
        self,
        start: Point,
        end: Point,
        curvature: float,
        slope: float,
        tolerance: float,
        longest: float = np.inf,
    ) -> float:
        """Move ``start`` along the line to ``end`` to the minimum of

            ½·curvature·k² + slope·k + R(start + k(end − start))   over 0 ≤ k ≤ longest

        and return k. The hinge's minimum is exact; others stop within ``tolerance`` of it.
        """
        line = _Line(start, end, curvature, slope, tolerance, longest)
        if isinstance(self.risk, HingeRisk):
            k = self._line_by_selection(line, self.risk)
        else:
            k = self._line_by_search(line)
        if self.free_bias:
            return self._descend_with_bias(line, k)
        if k > 0.0:
            self._step_guess = k
            self.blend(start, end, k, start)
        return k

    def _descend_with_bias(self, line: _Line, k: float) -> float:
        """Mend the minimum k along the line on which w and the bias move together.

        Most of the time minimising over the bias once there is as good as minimising
        over both. But where kinks meet, or in a bent valley, neither w nor the bias
        can go far without the other. If k brings too little, the line of min_b R is
        searched, whose values and derivatives are exact.
        """
        start, end = line.start, line.end
        point = self._centre = self._centre or self.new_point()
        at = -1.0  # the k of ``point``

        def value(k: float) -> float:
            nonlocal at
            if k != at:
                self.blend(start, end, k, point)
                at = k
            return line.quadratic(k) + point.risk

        def evaluate(k: float) -> tuple[float, float]:
            height = value(k)
            return height, line.quadratic_slope(k) + self._derivative(point, start, end)

        # In the bent valleys of smooth losses the straight line costs many iterations; along
        # the hinge's kinks it is nearly always as good, and the other one dear.
        enough = (0.01 if isinstance(self.risk, HingeRisk) else 1.0) * line.tolerance
        if k == 0.0 or start.risk - value(k) < enough:
            k = self._search(line, evaluate, k or self._step_guess)
        if k > 0.0:
            value(k)
            start.take(point)
            self._step_guess = k
        return k

    def _search(
        self, line: _Line, evaluate: Callable[[float], tuple[float, float]], guess: float
    ) -> float:
        return minimise_convex(evaluate, evaluate(0.0), guess, line.tolerance, line.longest)

    def _derivative(self, point: Point, start: Point, end: Point) -> float:
        """Derivative of min_b R at a point between start and end, in that direction."""
        coefficients = self._coefficients_at(point)

        def block(b: int) -> float:
            rows = self._slices[b]
            coef = self._coef[rows]
            coefficients(b, coef)
            return float(np.einsum("i,i->", coef, end.scores[rows] - start.scores[rows]))

        return sum(self._run(block)) / self.targets.total

    def _line_by_selection(self, line: _Line, risk: HingeRisk) -> float:
        a, b = line.start.view(), line.end.view()

        def steps(
            k: int, low: float, high: float, at: np.ndarray, by: np.ndarray
        ) -> tuple[int, float]:
            rows = self._slices[k]
            return risk.line_steps(a[rows], b[rows], self._targets[k], high, at, by)

        total = self.targets.total
        likely = 2.0 * self._step_guess
        k = self._finder.zero(steps, total * line.curvature, total * line.slope, 0.0, likely, 0.0)
        return min(k, line.longest)

    def _line_by_search(self, line: _Line) -> float:
        a, b = line.start.view(), line.end.view()

        def evaluate(k: float) -> tuple[float, float]:
            def block(i: int) -> np.ndarray:
                rows = self._slices[i]
                return np.array(self.risk.line(a[rows], b[rows], k, self._targets[i]))

            value, derivative = map(float, sum(self._run(block)) / self.targets.total)
            return line.quadratic(k) + value, line.quadratic_slope(k) + derivative

        return self._search(line, evaluate, self._step_guess)

    # -- helpers --------------------------------------------------------------

    def _run(self, function: Callable[[int], Any]) -> list[Any]:
        return self.executor.run(function, len(self._slices))
