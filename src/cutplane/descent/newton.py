"""Newton's method on a smoothed hinge, for vectors short enough to factorise their matrix.

The dual point of the hinge is π_i in [0, 1] per row, in units of its weight. Given one, ``shift``,

    min_w  ½|w|² + C/W Σ_i weight_i·ℓ(r_i),    r_i = 1 − y_i(<w, x_i> + b),
    ℓ(r) = max_{0 ≤ π ≤ 1}  π·r − ½·width·(π − shift_i)²

is smooth, and its maximisers π are a dual point, hence a cut and a bound. The gap between the
bound and the objective is ½|gradient|² plus what smoothing costs. Once the latter is a large part
of it, π becomes the shift, the width is made smaller, and Newton goes on: the method of multipliers
(Yan & Li, "An efficient augmented Lagrangian method for support vector machine", 2020). The squared
hinge is smooth as it is.

The matrix I + C/(W·width)·Σ weight_i x_i x_iᵀ, over the rows with 0 < π < 1, is brought up to
date by the rows that come in or go out. It costs the squares of the rows' lengths; where they are
long and many are inside, as in the first steps, a sample of them is enough for a direction. With
few features a dozen steps do what takes cutting planes a hundred iterations.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.linalg

from ..bundle import IterativeSolver, Observer, StopRule
from ..data.blas import single_threaded_blas
from ..data.blocks import Block
from ..loops import newton as loops
from ..losses import Hinge, SquaredHinge
from ..oracles import Cut, RowOracle
from ..oracles.line import newton
from ..result import Status
from .curvature import Curvature

# The first width: at w = 0 all rows are inside, and the first step is one of least squares.
WIDTH = 4.0
# From a dual point that is close already, and from one that is less so: with a larger gap, relative
# to the objective.
CLOSE_WIDTH, WARM_WIDTH = 0.5, 2.0
CLOSE = 0.05
NARROWER = 0.6
# The gradient's part in the gap at which it is time for a smaller width.
GRADIENT_PART = 0.7
# Rows that have come inside or gone, relative to those inside, where the matrix is still good.
SAME_ROWS = 0.2
# What smoothing costs, relative to the objective, below which the gradient is always asked for.
LEAST_SLACK = 1e-6
# A step is good where the derivative along the line has come down to this part of what it was.
STEP_SLOPE = 0.1
MOST_LINE_STEPS = 10
# Where so many steps are not enough, rounding is in the way.
MOST_ITERATIONS = 100


class NewtonSolver(IterativeSolver):
    """State of one run. An iteration is a Newton step and a certificate.

    Parameters
    ----------
    oracle : RowOracle
        With hinge or squared hinge risk.
    C, observer
        As for every solver.
    stop : StopRule
        Without ``max_iter`` MOST_ITERATIONS are run at most.
    dual_point : ndarray, optional
        Where to start, as for ``CoordinateSolver``.
    """

    oracle: RowOracle

    def __init__(
        self,
        oracle: RowOracle,
        C: float,
        stop: StopRule,
        observer: Observer | None = None,
        dual_point: np.ndarray | None = None,
    ) -> None:
        if stop.max_iter is None:
            stop = replace(stop, max_iter=MOST_ITERATIONS)
        super().__init__(oracle, C, stop, observer)
        targets, risk = oracle.targets, oracle.risk
        if not isinstance(getattr(risk, "loss", None), Hinge | SquaredHinge):
            raise TypeError(f"{risk!r} is not smoothed; the hinges are")
        rows = len(targets.labels)
        self._hinge = isinstance(risk.loss, Hinge)
        self._width, self._most = (WIDTH, 1.0) if self._hinge else (0.5, math.inf)
        self._shift = np.zeros(rows)
        if dual_point is not None and self._hinge:
            self._shift_to(dual_point)
            self._width = CLOSE_WIDTH
        self._warm = dual_point is not None and self._hinge
        self.trial = oracle.new_point()
        self._bias = 0.0
        self._ways = np.zeros(rows)
        self._coef = np.zeros(rows)
        self._inside = np.zeros(rows, np.uint8)
        self._curvature = Curvature(oracle)
        self._cut: Cut | None = None
        self._slack = 0.0  # what smoothing costs, in units of the objective

    def dual_point(self) -> np.ndarray:
        return np.abs(self._coef)

    def active_cuts(self) -> tuple[Cut, ...]:
        return () if self._cut is None else (self._cut,)

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        self._begin_at(start, self.trial, self.oracle.new_point())
        self._bias = self.trial.bias
        for cut in cuts:
            self._bound(cut)
        if self._warm and self.best.primal - self.dual > CLOSE * self.best.primal:
            self._width = WARM_WIDTH
        self._move(0.0)
        gap = self._certify()
        with single_threaded_blas():
            while True:
                if self._hinge and 0.5 * self._gradient_squared() <= GRADIENT_PART * gap:
                    self._narrow()
                    self._differentiate()
                with self.watch.phase("newton"):
                    way, bias_way = self._direction()
                step = self._step(way, bias_way)
                if step == 1.0 and self._settled():
                    self._narrow()
                gap = self._certify()
                status = self._end_iteration(self._objective(self.trial), step, 1)
                stuck = step == 0.0 and self._gradient_squared() > 0.0
                if status is None and stuck:
                    status = Status.NUMERICALLY_LIMITED
                if status is not None:
                    return status

    # -- the smoothed risk --------------------------------------------------------------

    def _move(self, step: float, bias_step: float = 0.0) -> None:
        """Take a step along the ways; coefficients and rows inside are those of the new point."""
        self._bias += bias_step
        surface, targets = self.oracle.surface, self.oracle.targets
        slope = 1.0 / self._width
        if self.oracle.free_bias:
            self._shift_scores(step)
            step = 0.0
            self._bias = self._best_bias()

        def part(rows: slice) -> float:
            return loops.move(
                self.trial.scores[rows],
                self._ways[rows],
                step,
                self._bias,
                targets.labels[rows],
                self._shift[rows],
                slope,
                self._most,
                targets.weights[rows],
                self._coef[rows],
                self._inside[rows],
            )

        self._slack = self.C * sum(surface.run(part)) / targets.total

    def _shift_scores(self, step: float) -> None:
        if step:
            self.trial.scores += step * self._ways

    def _best_bias(self) -> float:
        """The bias at which the coefficients sum to zero, by guarded Newton steps."""
        targets, slope = self.oracle.targets, 1.0 / self._width

        def derivatives(bias: float) -> tuple[float, float]:
            def part(rows: slice) -> np.ndarray:
                return np.array(
                    loops.bias_derivatives(
                        self.trial.scores[rows],
                        bias,
                        targets.labels[rows],
                        self._shift[rows],
                        slope,
                        self._most,
                        targets.weights[rows],
                    )
                )

            total, within = sum(self.oracle.surface.run(part))
            return float(total), float(within) * slope

        return newton(derivatives, self._bias, 1e-14 * targets.total)

    def _derivative(self, step: float) -> float:
        """Of the smoothed risk along the ways, which contain the bias's."""
        targets, slope = self.oracle.targets, 1.0 / self._width

        def part(rows: slice) -> float:
            return loops.derivative(
                self.trial.scores[rows],
                self._ways[rows],
                step,
                self._bias,
                targets.labels[rows],
                self._shift[rows],
                slope,
                self._most,
                targets.weights[rows],
            )

        return sum(self.oracle.surface.run(part)) / targets.total

    # -- certificates -------------------------------------------------------------------

    def _certify(self) -> float:
        """Renew bound and best point; returns the gap of this point."""
        dual = self._differentiate()
        with self.watch.phase("scores"):
            self.oracle.surface.settle(self.trial)
            objective = self._objective(self.trial)
            if objective < self.best.primal:
                self._keep(self.trial)
        return objective - dual

    def _bound(self, cut: Cut) -> float:
        """As for every solver; the cut of the best bound is kept."""
        best = self.proved
        bound = super()._bound(cut)
        if bound > best:
            self._cut = cut
        return bound

    def _gradient_squared(self) -> float:
        return _dot(self._gradient, self._gradient)

    # -- steps --------------------------------------------------------------------------

    def _settled(self) -> bool:
        """Whether it is time for a smaller width without asking for the gradient.

        A full step into a region where nearly the same rows are inside leaves little of it. As long
        as what smoothing costs alone is too much, there is no end to be missed.
        """
        primal = self.best.primal
        if not self._hinge or self._slack <= max(
            self.stop.enough(primal, self.C), LEAST_SLACK * primal
        ):
            return False
        count, changed = self._curvature.changes(self._inside)
        return changed <= SAME_ROWS * count

    def _narrow(self) -> None:
        """Shift by the present dual point and smooth less."""
        self._shift_to(self._coef)
        self._width *= NARROWER
        self._move(0.0)

    def _shift_to(self, coef: np.ndarray) -> None:
        """Shift by the dual point of coefficients."""
        weights = self.oracle.targets.weights

        def part(rows: slice) -> None:
            loops.dual_parts(coef[rows], weights[rows], self._most, self._shift[rows])

        self.oracle.surface.run(part)

    def _differentiate(self) -> float:
        """Renew gradient and bound; returns the bound of this point."""
        with self.watch.phase("cut"):
            cut = self.oracle.dual_cut(self._coef)
            self._gradient = self.trial.w + self.C * cut.a
            return self._bound(cut)

    def _direction(self) -> tuple[np.ndarray, float]:
        """Newton's direction, and that of a free bias."""
        scale = self.C / (self.oracle.targets.total * self._width)
        matrix = self._curvature.matrix(self._inside)
        matrix *= scale
        size = len(self._gradient)
        diagonal = np.einsum("ii->i", matrix)
        diagonal[:size] += 1.0
        gradient = self._gradient
        if self.oracle.free_bias:
            # Where no row is inside, the bias has no curvature: any small one keeps it in place.
            diagonal[-1] += 1e-12 * scale * self.oracle.targets.total
            gradient = np.append(gradient, 0.0)
        factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
        if failed:
            return -self._gradient, 0.0
        way, _ = scipy.linalg.lapack.dpotrs(factor, -gradient, lower=1)
        if not np.all(np.isfinite(way)):
            return np.zeros(size), 0.0
        return way[:size], float(way[size]) if self.oracle.free_bias else 0.0

    def _step(self, way: np.ndarray, bias_way: float) -> float:
        """Move to about the minimum along a direction; returns the step."""
        oracle, matrix = self.oracle, self.oracle.matrix
        with self.watch.phase("scores"):

            def product(k: int, block: Block) -> None:
                out = self._ways[matrix.slice(k)]
                block.scores(way, out)
                constant = oracle.constant * way[-1] if oracle.constant else bias_way
                if constant:
                    out += constant

            matrix.run(product, oracle.executor)
        with self.watch.phase("line_search"):
            step = self._search(way)
            w = self.trial.w + step * way
            self.trial.w = w
            if bias_way:  # the scores are without it
                self._ways -= bias_way
            self._move(step, step * bias_way)
        return step

    def _search(self, way: np.ndarray) -> float:
        """Where the derivative along the direction is small."""
        mixed, squared = _dot(self.trial.w, way), _dot(way, way)

        def slope(step: float) -> float:
            return self.C * self._derivative(step) + mixed + step * squared

        first = _dot(self._gradient, way)
        enough = STEP_SLOPE * abs(first)
        low, high = 0.0, 1.0
        at_low, at_high = first, slope(1.0)
        if not first < 0.0:
            return 0.0
        if at_high <= enough:
            return 1.0
        for turn in range(MOST_LINE_STEPS):
            step = low + (high - low) * max(0.1, min(0.9, at_low / (at_low - at_high)))
            here = slope(step)
            if abs(here) <= enough:
                return step
            if here < 0.0:
                low, at_low = step, here
                at_high *= 0.5 if turn else 1.0
            else:
                high, at_high = step, here
                at_low *= 0.5 if turn else 1.0
        return low or high


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.einsum("i,i->", a, b))
