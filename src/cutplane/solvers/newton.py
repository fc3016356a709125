"""Newton's method on smooth and smoothed losses.

    min_w,b  ½|w|² + Σ_i C_i·ℓ(z_i),    z_i = y_i(<w, x_i> + b),   C_i = C·weight_i/W

Given a dual point, ``shift``, the method replaces a loss with kinks by the smooth

    ℓ̃(z) = max_u  u·z − ℓ*(u) − ½·width·(u − shift_i)².

The maximisers u_i are its slopes, and they are a dual point, hence a cut and a bound. With
v = −Σ C_i u_i y_i x_i the gap between the objective at w and the bound of u is

    ½|w − v|²  +  Σ_i C_i(ℓ(z_i) − u_i z_i + ℓ*(u_i)):

half the squared gradient, plus the cost of smoothing. Newton's steps reduce the first term. Once
the second term is larger, u becomes the shift, the width becomes smaller, and Newton's method
continues. This is the method of multipliers (Yan & Li, "An efficient augmented Lagrangian method
for support vector machine", 2020). For a smooth loss the second term is 0.

    repeat
        u, bends ← slopes and second derivatives at z; b ← where Σ C_i u_i y_i = 0
        keep the point and the bound of u; stop if the gap is small enough
        if ½|w − v|² ≤ what smoothing costs:  shift ← u, width ← NARROWER·width; u, bends anew
        d ← −(I + Σ bend_i x_i x_iᵀ)⁻¹ (w − v)
        if a smooth loss can hardly fall:  keep the bound of u + bend·(change of z by d), too,
            clipped to the domain; rows that still have room make up for what clipping changes
        w ← w + t·d, t about the minimum along d, at most 1, or 4 for the logistic loss

The matrix and its factor, and conjugate gradients in place of it, are in ``curvature``.

On hard margins rows block the steps, and interior point steps take over: at once, if they are less
work by what the objective of the start says; once Newton's steps have taken as much work as they
would; or where rounding stops Newton's steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._blas import single_threaded_blas
from ..loops import smoothed as loops
from ..losses import direction
from ..objective import Cut, RowOracle
from ..objective.search import newton
from ..result import Status
from . import constants
from .base import IterativeSolver, Observer, StopRule
from .curvature import (
    ConjugateGradients,
    Factor,
    dot,
    factor_cost,
    is_piecewise_quadratic,
    make_directions,
)
from .interior import InteriorPoint, interior_cost

# Interior point steps at most. If there are so many, rounding is in the way.
MOST_INSIDE = 8 * constants.STEPS
# The part of the gap that twenty steps on a loss without kinks must close. Good steps close a tenth
# each. Where a huge C makes the matrix singular in double precision, directions are wrong, and
# thousands of steps of 1e-6 would follow.
CREEPING = 1e-3
# A step of the logistic loss at most. Far from the minimum its curvature falls along a step, and a
# step of 1 is too short.
LONGEST = 4.0


def expected_cost(oracle: RowOracle, C: float, primal: float = math.inf) -> float:
    """Products that Newton's steps are expected to take, given an objective that is reached.

    There are STEPS to the tolerance of the objective at w = 0, and half as many for a loss without
    kinks. Where the objective is far below that there are more: a width costs C times its size,
    about, and must cost little of the objective.
    """
    direction = 3.0 * max(1.0, oracle.matrix.n_stored) + factor_cost(oracle)
    if oracle.risk.loss.curvature is not None:
        return 0.5 * constants.STEPS * direction
    highest = C * oracle.risk.dual_unit(oracle.targets, oracle.free_bias)
    more = math.log(max(1.0, highest / primal)) / -math.log(constants.NARROWER)
    return (constants.STEPS + more) * direction


class NewtonSolver(IterativeSolver):
    """State of one run. An iteration is a Newton step and a certificate.

    Parameters
    ----------
    oracle : RowOracle
        With the risk of a loss.
    C, stop, observer
        As for every solver.
    dual_point : ndarray, optional
        Where to start, as ``dual_point()`` of a solver gives it.
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
        super().__init__(oracle, C, stop, observer)
        rows = len(oracle.targets.labels)
        self._loss = oracle.risk.loss
        self._smooth = self._loss.curvature is not None
        if self._smooth:
            self.creeping = CREEPING
        self._unit = oracle.risk.dual_unit(oracle.targets, oracle.free_bias)
        self._width = constants.WIDTH * self._unit
        self._shift = np.zeros(rows)
        self._coef = np.zeros(rows)
        self._warm = dual_point is not None
        if dual_point is not None:
            self._coef[:] = -dual_point * direction(self._loss, oracle.targets.labels)
            self._shift_to_coef()
        self.trial = oracle.new_point()
        self._bias = 0.0
        self._ways = np.zeros(rows)
        self._bends = np.zeros(rows)
        self._aim = np.zeros(rows)
        self._aims, self._next_aim = 0, 0  # bounds of clipped aims, and the step of the next one
        self._slack = 0.0  # what smoothing costs
        self._gradient = np.zeros(0)
        self._best_coef = np.zeros(rows)  # behind the bound

    def dual_point(self) -> np.ndarray:
        return -self._best_coef * direction(self._loss, self.oracle.targets.labels)

    def active_cuts(self) -> tuple[Cut, ...]:
        return () if self._cut is None else (self._cut,)

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        if start is not None or self.start_point is not None or not self._begin_at_zero():
            self._begin_at(start, self.trial, self.oracle.new_point())
        self._bias = self.trial.bias
        for cut in cuts:
            self._bound(cut)
        if self._warm:
            self._bound_of(self._coef)
            # The gap is of second order in the distance from the best dual point.
            gap = (self.best.primal - self.dual) / self.best.primal
            self._width = self._unit * min(1.0, max(gap, 1e-6)) ** 0.5
        with single_threaded_blas():
            directions = make_directions(self.oracle, self._out_of_time)
            factor = directions if isinstance(directions, Factor) else None
            inside = interior_cost(self.oracle) if factor is not None else math.inf
            if inside < math.inf:
                # The steps may not get below the start for long. Their work alone ends them.
                self.begun = math.inf
            if inside < math.inf and not self._warm:
                # In a step of Newton's method a third of the rows it is expected to add have
                # changed, about.
                expected = expected_cost(self.oracle, self.C, self.best.primal)
                if interior_cost(self.oracle, sums=3) < expected:
                    return self._go_inside()
            objective = self._settle()
            self._certify(objective)
            while True:
                if self._squared_gradient() <= 2.0 * self._slack:
                    self._narrow()
                    self._certify(self._settle())
                with self.watch.phase("newton"):
                    directions = directions.prepare(self._bends, sample=True)
                    enough = constants.LITTLE * self.stop.enough(self.best.primal, self.C)
                    way = directions.solve(self._full_gradient(), enough)
                step, fall = self._step(way, directions)
                ended = self._converged()  # without a step
                if not ended:
                    objective = self._settle()
                    enough = self.stop.enough(objective, self.C)
                    # No end is missed where smoothing alone costs too much.
                    if step == 1.0 and fall <= self._slack > enough:
                        self._narrow()
                        objective = self._settle()
                    self._certify(objective)
                    # The part of the gap that more steps of about a tenth would have to close.
                    far = 0.5 * constants.LITTLE**2 * self._squared_gradient()
                    directions.judge(step, self._smooth and fall <= enough < far)
                status = self._end_iteration(objective, step, 1)
                if step == 0.0 and not ended and self._squared_gradient() > 2.0 * self._slack:
                    status = status or Status.NUMERICALLY_LIMITED
                if factor is not None and status in (None, Status.NUMERICALLY_LIMITED):
                    work = factor.work + 3.0 * self.oracle.matrix.n_stored * len(self.trace)
                    if work >= inside or (status is not None and inside < math.inf):
                        return self._go_inside()
                if status is not None:
                    return status

    def _begin_at_zero(self) -> bool:
        """Be at w = 0 with the best bias, if that takes no pass: of two classes each is one row."""
        targets, loss, point = self.oracle.targets, self._loss, self.trial
        if not (self._smooth and self.oracle.free_bias) or loss.regression:
            return False
        labels, scores, nothing = np.array([-1.0, 1.0]), np.zeros(2), np.zeros(2)
        above = targets.labels > 0.0
        weights = np.array([targets.weights[~above].sum(), targets.weights[above].sum()])
        if not weights.min() > 0.0:  # the best bias is infinite
            return False
        sums: tuple[float, ...] = ()

        def look(bias: float) -> tuple[float, float]:
            nonlocal sums
            point.bias, out = bias, (np.empty(2), np.empty(2))
            sums = loops.look(loss, 1.0, scores, bias, labels, weights, nothing, *out)
            return sums[2], sums[3]

        newton(look, 0.0, 0.0)
        point.risk = sums[0] / targets.total
        self._keep(point)
        return True

    def _go_inside(self) -> Status:
        """Begin anew with interior point steps; the best point and bound are kept."""
        inside = InteriorPoint(self.oracle, self.C, self._loss)
        before = len(self.trace)
        self.begun = before + 2 * constants.STEPS  # until then they may be behind what is known
        while True:
            with self.watch.phase("interior"):
                step = inside.step()
            objective = self._objective(inside.point)
            if objective < self.best.primal:
                self._keep(inside.point)
            self._bound_of(inside.coef)
            status = self._end_iteration(objective, step, 1)
            if status is not None:
                return status
            if len(self.trace) - before >= MOST_INSIDE or step == 0.0:
                return Status.NUMERICALLY_LIMITED

    def _out_of_time(self) -> bool:
        return self.watch.elapsed() >= self.stop.time_limit

    # -- the smoothed risk --------------------------------------------------------------

    def _settle(self) -> float:
        """Coefficients and bends at the scores, with the best bias; returns the objective.

        At the best bias coefficients sum to zero. Where they sum to S, their bound is worse by
        C/W·|bias·S|, which is kept far below the gap that is asked for.
        """
        targets = self.oracle.targets
        sums = np.zeros(4)

        def look(bias: float) -> tuple[float, float]:
            nonlocal sums

            def part(rows: slice) -> np.ndarray:
                own, out = self._smoothed(rows), (self._coef[rows], self._bends[rows])
                scores = self.trial.scores[rows]
                return np.array(loops.look(self._loss, self._width, scores, bias, *own, *out))

            self._bias = bias
            sums = sum(self.oracle.score_risk.run(part))
            return float(sums[2]), float(sums[3])

        if self.oracle.free_bias:
            little = constants.LITTLE**3 * self.stop.enough(self.best.primal, self.C) / self.C
            newton(look, self._bias, targets.total * max(little / max(1.0, abs(self._bias)), 1e-14))
        else:
            look(0.0)
        risk, slack = sums[:2] / targets.total
        self._slack = self.C * float(slack)
        self._bends *= self.C / targets.total
        self.trial.bias, self.trial.risk = self._bias, float(risk)
        return self._objective(self.trial)

    def _smoothed(self, rows: slice) -> tuple[np.ndarray, ...]:
        """What the smoothed loss of some rows depends on besides their scores."""
        targets = self.oracle.targets
        return targets.labels[rows], targets.weights[rows], self._shift[rows]

    def _narrow(self) -> None:
        """Shift by the present dual point and smooth less."""
        self._shift_to_coef()
        self._width *= constants.NARROWER

    def _shift_to_coef(self) -> None:
        def part(rows: slice) -> None:
            loops.shift_to(self._loss, self._coef[rows], *self._smoothed(rows))

        self.oracle.score_risk.run(part)

    # -- certificates -------------------------------------------------------------------

    def _certify(self, objective: float) -> None:
        """Renew gradient, bound and best point."""
        self._gradient = self.trial.w + self.C * self._bound_of(self._coef)[0].a
        if objective < self.best.primal:
            self._keep(self.trial)

    def _bound_of(self, coef: np.ndarray) -> tuple[Cut, float]:
        """The cut of a dual point, and its bound; the best one is kept."""
        before = self.proved
        with self.watch.phase("cut"):
            cut = self.oracle.dual_cut(coef)
        bound = self._bound(cut)
        if bound > before:
            self._best_coef[:] = coef
        return cut, bound

    def _bound_of_full_step(
        self, way: np.ndarray, fall: float, directions: Factor | ConjugateGradients
    ) -> None:
        """The bound of the dual point that Newton's step aims at.

        It solves the equation v = w + way but for clipping. Where C is huge that changes v by far
        too much. For a smooth loss the rows that are not clipped then make up for it. A round of
        that takes about as much work as a step, so it ends if the gap hardly becomes smaller, and
        after n bounds in vain n steps are made without one.
        """
        enough = self.stop.enough(self.best.primal, self.C)
        clipped = self._step_duals(self._coef, self._bends, self._ways)
        if self._smooth and clipped:
            # A round of conjugate gradients is no cheaper than a step, and less exact.
            early = fall > constants.LITTLE**2 * enough and not isinstance(directions, Factor)
            if early or len(self.trace) < self._next_aim:
                return
            self._aims += 1
            self._next_aim = len(self.trace) + 1 + self._aims
        cut, bound = self._bound_of(self._aim)
        if not self._smooth:
            return
        goal, gap, before = self.trial.w + way, self.best.primal - bound, math.inf
        while clipped and math.isfinite(gap) and enough < gap <= constants.LITTLE * before:
            clipped, more = self._make_up(goal + self.C * cut.a, directions)
            goal = goal + more
            cut, bound = self._bound_of(self._aim)
            before, gap = gap, self.best.primal - bound

    def _make_up(
        self, rest: np.ndarray, directions: Factor | ConjugateGradients
    ) -> tuple[int, np.ndarray]:
        """Aim at a dual point whose v is nearer to a goal, by what is missing.

        Rows at an end of the domain, or so near that they would be clipped again, count less, or
        not at all. Returns how many rows are clipped nevertheless, and by what the goal moves.
        """
        # The coefficients of the last cut have the sum 0.
        coef, bends, free = self.oracle.score_risk.passes.coef, self._bends, self.oracle.free_bias
        missing = np.append(rest, 0.0) if free else rest
        ways = np.empty_like(self._ways)

        def solve() -> np.ndarray:
            more = directions.solve(missing)
            directions.score(more, ways)
            return more[: len(rest)]

        more = solve()
        weighed = np.empty_like(bends)
        if self._over_rows(loops.weigh_by_room, coef, bends, ways, weighed):
            bends = weighed
            directions = directions.prepare(bends, near=True)
            more = solve()
        return self._step_duals(coef, bends, ways), more

    def _step_duals(self, coef: np.ndarray, bends: np.ndarray, ways: np.ndarray) -> int:
        """Aim at coefficients after a step along the ways; returns how many rows are clipped."""
        return self._over_rows(loops.step_duals, coef, bends, ways, self._aim)

    def _over_rows(
        self,
        loop: Callable[..., int],
        coef: np.ndarray,
        bends: np.ndarray,
        ways: np.ndarray,
        out: np.ndarray,
    ) -> int:
        """Call a loop that moves coefficients along the ways; returns the rows that it counts."""
        targets = self.oracle.targets
        low, high = self._loss.domain
        unit = targets.total / self.C

        def part(rows: slice) -> int:
            own = coef[rows], bends[rows], ways[rows], *self._smoothed(rows)[:2]
            return loop(self._loss, unit, *own, low, high, out[rows])

        return sum(self.oracle.score_risk.run(part))

    def _squared_gradient(self) -> float:
        return dot(self._gradient, self._gradient)

    def _full_gradient(self) -> np.ndarray:
        """With that of a free bias."""
        return np.append(self._gradient, 0.0) if self.oracle.free_bias else self._gradient

    # -- steps --------------------------------------------------------------------------

    def _step(
        self, way: np.ndarray, directions: Factor | ConjugateGradients
    ) -> tuple[float, float]:
        """Move to about the minimum along a direction, unless its bound is good enough.

        Returns the step, and by how much the smoothed objective would fall if it were quadratic.
        """
        with self.watch.phase("scores"):
            directions.score(way, self._ways)
        bias_way = 0.0
        if self.oracle.free_bias:
            way, bias_way = way[:-1], float(way[-1])
        fall = -0.5 * dot(self._gradient, way)
        enough = self.stop.enough(self.best.primal, self.C)
        if self._smooth and directions.exact and fall <= enough:
            self._bound_of_full_step(way, fall, directions)
            if self._converged():
                return 0.0, fall
        with self.watch.phase("line_search"):
            step = self._search(way)
            # A bound cannot end the run while smoothing costs far more than the gap that is asked.
            if step < 1.0 and not self._smooth and constants.LITTLE * self._slack <= enough:
                self._bound_of_full_step(way, fall, directions)
            self._ways -= bias_way
            self.trial.w = self.trial.w + step * way
            self.trial.scores += step * self._ways
            self._bias += step * bias_way
        return step, fall

    def _search(self, way: np.ndarray) -> float:
        """Where the derivative along the direction is small."""
        mixed, squared = dot(self.trial.w, way), dot(way, way)

        def slope(step: float) -> float:
            def part(rows: slice) -> float:
                line = self.trial.scores[rows], self._ways[rows], step, self._bias
                return loops.slope_along(self._loss, self._width, *line, *self._smoothed(rows))

            risk = sum(self.oracle.score_risk.run(part)) / self.oracle.targets.total
            return self.C * risk + mixed + step * squared

        # Where a loss is quadratic, a longer step than Newton's leads to the next kink only.
        longest = 1.0 if is_piecewise_quadratic(self._loss) else LONGEST
        return line_step(slope, dot(self._gradient, way), longest)


def line_step(slope: Callable[[float], float], first: float, longest: float = 1.0) -> float:
    """The step at which a slope that rises is little of ``first``, that at 0.

    If the slope falls at 1, that is the step; with a ``longest`` it is where straight lines through
    the slopes are zero, as long as the slope falls there. Otherwise by false position, where an end
    that stays counts half (Illinois). A step beyond the minimum is 1, or the last of eleven tries:
    after a kink, or where curvature vanishes, a small slope may lead uphill far. 0 if ``first`` is
    no descent.
    """
    if not first < 0.0:
        return 0.0
    little = constants.LITTLE * -first
    low, at_low = 0.0, first
    step, here = 1.0, slope(1.0)
    if here <= little and (here >= -little or longest == 1.0):
        return step
    while here < -little and step < longest:
        low, at_low = step, here
        step = min(step * max(first / (first - here), 1.5), longest)
        here = slope(step)
    if here <= 0.0:
        return step
    high, at_high = step, here
    for _ in range(11):
        step = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
        here = slope(step)
        if -little <= here <= 0.0:
            return step
        if here < 0.0:
            low, at_low = step, here
            at_high *= 0.5
        else:
            high, at_high = step, here
            at_low *= 0.5
    return step
