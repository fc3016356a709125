"""Dual coordinate descent with conjugate-gradient steps, measured by the same certificate.

The problem, with c_i = C·weight_i/Σ weight, z_i = y_i(<w, x_i> + b), and its dual:

    min ½|w|² + Σ c_i·ℓ(z_i),    max D(u) = −Σ c_i·ℓ*(u_i) − ½|w|²  with  w = −Σ c_i·u_i·y_i·x_i.

**A step** on row i replaces u_i by the maximiser of D over it, ``dual_step`` with
h = c_i·|x_i|²; a pass takes one on every active row. A row whose u_i would stay though its score
moved by δ, the root mean square violation of the last pass, is idle: it is left out until a
certificate, which knows all scores, finds otherwise. Until the first certificate δ is twice that of
the pass so far, if this is less.

**The order** of the rows is random, because convergence suffers if neighbours are alike, as in
files sorted by class or by time. But reading memory is fast only in long pieces. So the solver
draws tiles of a few neighbours at random. From many tiles at a time it takes a row of each in turn.

**A free bias** requires τ = −Σ c_i·u_i·y_i = 0. The passes maximise the augmented Lagrangian
D(u) − b·τ − ½s²τ², which adds b + s²τ to all scores and s² to every |x_i|². After a pass b moves to
b + s²τ. For a regularised bias b stays 0, and s is the value of the constant feature.

**Conjugate gradients** help if many rows have u inside the domain and depend on one another, as on
hard margins. On these rows D is quadratic if ℓ* is, at least between kinks. Conjugate gradients
approach its maximiser. They end when clipping to the domain, or to the kinks, would cost more than
a little; the last direction is then followed as far as that allows. They also end when a quarter as
many iterations as there were passes have gained less per work than passes do. The solver takes the
best part of the clipped step. If clipping ended them, rows at a bound stay there, and conjugate
gradients begin anew on the others, until all this took as much work as a quarter of the passes
before. If it gained more per work than passes do, half as many passes come before the next
conjugate gradients, otherwise twice as many.

**The gap** is Σ_i c_i·(ℓ(z_i) + ℓ*(u_i) − u_i·z_i), and a pass sees every term just before it takes
the row's step. Its sum tells when a certificate is worth its cost.

**A certificate** looks at a copy of u, of which the heavier class is scaled down until τ = 0: its D
is the bound; its w, scaled by the best factor unless it is good enough as it is, is where the best
point moves to on a line. It never changes u or w of the passes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..data import BlockedMatrix
from ..data.blocks import Block, FlatRows, read_only
from ..exec import SerialExecutor
from ..loops import dual_rows as loops
from ..losses import direction
from ..objective import Cut, Line, Point, RowOracle
from ..result import Status
from . import constants
from .base import Best, IterativeSolver, Observer, StopRule
from .curvature import dot

# Work of a certificate, in passes; between two of them there is at least as much.
CERTIFICATE = 1.0
# One is tried where the gap to expect is this part of what is enough. It should be the last one,
# because it costs more than a pass over the rows that are still active. With half or double of it a
# fit takes 2 % more time on average, up to a third more on single data sets.
SAFELY = 0.5
# Passes at most where no limit is given.
MOST_PASSES = 5000.0
# Passes between two certificates, at most: limits are looked at with each.
MOST_BETWEEN = 100.0

# What the machine wants: rows in a tile, and tiles dealt out together; numbers for which memory is
# asked for ahead, which fit the second cache; numbers in a compiled call, some 20 ms.
TILE, TOGETHER = 8, 64
NUMBERS_AHEAD = 1 << 14
NUMBERS_PER_CALL = 1 << 23


class CoordinateSolver(IterativeSolver):
    """State of one run. An iteration is some passes and a certificate.

    Parameters
    ----------
    oracle : RowOracle
        Rows that lie in several pieces, or on disk, are copied into one.
    C, observer
        As for every solver.
    stop : StopRule
        Without ``max_iter`` there are ``most_passes`` at most.
    rng : numpy.random.Generator
        Draws the order of the rows.
    dual_point : ndarray, optional
        Where to start: a dual point per row divided by C per unit of weight, within its bounds.

    Attributes
    ----------
    most_passes : float
        Of a run without ``max_iter``.
    """

    oracle: RowOracle
    most_passes = MOST_PASSES

    def __init__(
        self,
        oracle: RowOracle,
        C: float,
        stop: StopRule,
        rng: np.random.Generator,
        observer: Observer | None = None,
        dual_point: np.ndarray | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, observer)
        matrix, targets = oracle.matrix, oracle.targets
        self.loss = oracle.risk.loss
        self._curvature = self.loss.conjugate_curvature
        self._rng = rng
        self._rows = flat_rows(matrix)
        self._labels = targets.labels
        self._signs = direction(self.loss, targets.labels) * np.ones(len(matrix))  # dz/ds
        self._costs = C * targets.weights / targets.total
        self._squares = matrix.squared_norms(SerialExecutor())
        square, self._unit = oracle.constant**2, 0.0
        if oracle.free_bias:
            self._unit = oracle.risk.dual_unit(targets, True)
            least = 4.0 * self._unit / C
            square = max(constants.BIAS_SQUARE * float(np.mean(self._squares)), least)
        self._bias = np.array([square, 0.0, 0.0])  # s², τ, b
        self._w = np.zeros(matrix.shape[1])
        self._u = np.zeros(len(matrix))
        self._active = np.flatnonzero(self._costs > 0.0)
        self._idle = (self._costs <= 0.0).astype(np.uint8)
        self._reach = np.inf  # δ
        self._last_reach = 0.0  # the same of all rows at the last certificate
        self._row_work = matrix.n_stored / max(1, len(matrix)) + 1.0  # numbers read per row, about
        self._work = 0.0
        self._wait = constants.FIRST_WAIT
        self._known = np.zeros(len(matrix)), Cut(np.zeros(oracle.dimension), 0.0)
        self.point, self.trial, self._scaled = (oracle.new_point() for _ in range(3))
        self._origin = oracle.new_point()
        oracle.score_risk.evaluate(self._origin)
        self._evaluated: np.ndarray | None = None  # the best w, if its scores come from the data
        self._warm = dual_point is not None
        if dual_point is not None:
            self._go_to(dual_point)

    @property
    def passes(self) -> float:
        """Work done until now, in passes over all rows, each read once and changed once.

        With the gap that the observer gets this tells whether to go on.
        """
        return self._work / (2.0 * self._row_work * max(1, len(self._u)))

    def dual_point(self) -> np.ndarray:
        """The one of the bound."""
        return self._known[0]

    def active_cuts(self) -> tuple[Cut, ...]:
        return (self._known[1],) if self.trace else ()

    # -- the loop -------------------------------------------------------------

    def _begin_at(self, start: np.ndarray | None, point: Point, spare: Point) -> None:
        """As every solver, but the best bias of w = 0 is found when it is needed."""
        if start is None and self.start_point is None and not self._needs_bias:
            point.copy(self._origin)
            self._keep(point)
        else:
            super()._begin_at(start, point, spare)

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        # The best bias for w = 0 is far from 0 where targets are large. That of the hinge is ±1
        # however little uneven the classes are, and that of smooth losses showed no gain.
        self._needs_bias = self._warm or self.loss.regression
        self._begin_at(start, self.point, self.trial)
        for cut in cuts:
            self._bound(cut)
        status = None
        since, dual = 0, 0.0  # passes since the last conjugate gradients; D, about
        if self._needs_bias:
            self._bias[2] = self.point.bias
        if self._warm:
            _, offset = self.oracle.score_risk.dual_plane(self._coef())
            dual = self.C * offset / self.oracle.targets.total - 0.5 * dot(self._w, self._w)
        due = self.passes + CERTIFICATE
        last, most = 0.0, np.inf  # the gap that rows have seen: last, and at most for a certificate
        ratio = 1.0  # of the gap that a certificate has found to the gap to expect
        while status is None:
            before = self._work
            count, gain, seen = self._pass()
            dual += gain
            since += 1
            if self._curvature is not None and since >= self._wait:
                better = self._conjugate_gradients(gain / max(1.0, self._work - before))
                self._wait = max(2, self._wait // 2) if better else 2 * self._wait
                since = 0
            left, last = self._left(seen, last), seen
            parts = ratio * left / max(self.stop.enough(dual, self.C), loops.TINY)
            close = parts <= SAFELY and seen <= most
            settled = count == 0 or self._reach <= constants.LITTLE * self._last_reach
            # The first one costs as much as the others and is seldom the last: if the end is near,
            # it waits for another pass.
            near = not self.trace and constants.LITTLE**2 * parts <= 1.0
            late = self.passes >= due + (CERTIFICATE if near else 0.0)
            if late or close or settled or self._out_of_time():
                status = self._certify()
                between = min((constants.GROWTH - 1.0) * self.passes, MOST_BETWEEN)
                due, most = self.passes + between + CERTIFICATE, SAFELY * seen
                ratio = (self.best.primal - self.dual) / left if left > 0.0 else 1.0
        return status

    def _left(self, seen: float, before: float) -> float:
        """The gap to expect, from the gaps that rows have seen in this pass and the one before.

        It goes on to shrink at the same pace. Scaling the heavier class until τ = 0 costs about |τ|
        times the loss of its rows.
        """
        pace = min(1.0, max(seen / before, constants.LITTLE)) if before > 0.0 else 1.0
        return seen * pace + self._unit * abs(float(self._bias[1]))

    def _pass(self) -> tuple[int, float, float]:
        """Steps on all active rows.

        Returns how many were not zero, what D has gained, and the gap that the rows have seen.
        """
        active = self._active
        size = max(1, min(TILE, len(active) // (4 * TOGETHER)))
        order = np.empty(len(active), np.int64)
        tiles = self._rng.permutation(-(-len(active) // size))
        loops.deal(active, tiles, size, TOGETHER, order)
        squared, count, gain, seen = 0.0, 0, 0.0, 0.0
        with self.watch.phase("passes"):
            for part in self._parts(order):
                found = loops.visit(
                    self.loss,
                    self._curvature,
                    *self._rows,
                    order[part],
                    max(1, int(NUMBERS_AHEAD / self._row_work)),
                    self._labels,
                    self._costs,
                    self._squares,
                    self._bias,
                    self._reach,
                    not self.trace,
                    self._w,
                    self._u,
                    self._idle,
                )
                squared, count = squared + found[0], count + found[1]
                gain, seen = gain + found[2], seen + found[3]
                if self._out_of_time():
                    break
        self._work += self._row_work * count  # rows whose step is not zero are read twice
        self._move_bias()
        self._reach = float(np.sqrt(squared / max(1, count)))
        self._active = active.compress(self._idle.take(active) == 0)
        return count, gain, seen

    def _parts(self, rows: np.ndarray) -> list[slice]:
        """Parts of a list of rows for one compiled call each; reading all is counted as work."""
        self._work += self._row_work * len(rows)
        size = max(1, int(NUMBERS_PER_CALL / self._row_work))
        return [slice(k, k + size) for k in range(0, len(rows), size)]

    def _move_bias(self) -> None:
        if self.oracle.free_bias:
            self._bias[2] += self._bias[0] * self._bias[1]

    def _out_of_time(self) -> bool:
        return self.watch.elapsed() >= self.stop.time_limit

    # -- conjugate gradients --------------------------------------------------

    def _conjugate_gradients(self, rate: float) -> bool:
        """Raise D over all u inside the domain, off kinks of ℓ*.

        Returns whether that gained more per work than ``rate``.

        In the variables a_i = c_i·u_i the gradient of D is z_i − ℓ*'(u_i), and the matrix of its
        quadratic part is −K, K = diag(ℓ*''/c) + (y_i·y_j(<x_i, x_j> + s²)).
        """
        ends = np.array([self.loss.domain[0], *self.loss.conjugate_kinks, self.loss.domain[1]])
        inside = self._u[self._active]
        piece = np.searchsorted(ends[1:-1], inside)  # of the domain, on which ℓ* is smooth
        low, high = ends[piece], ends[piece + 1]
        strictly = (low < inside) & (inside < high)
        free, low, high = self._active[strictly], low[strictly], high[strictly]
        costs, u, began = self._costs[free], self._u[free], self._work
        ridge = (self._curvature or 0.0) / costs
        diagonal = np.maximum(self._squares[free] + self._bias[0] + ridge, loops.TINY)
        gradient, moved = self._gradient(free), np.zeros_like(self._w)
        gained, tau, patience = 0.0, 0.0, self._wait // 4 + 1
        worth = rate * 2.0 * self._row_work * len(free) * patience
        most = began + 2.0 * self._row_work * len(free) * patience

        def clipped(x: np.ndarray) -> np.ndarray:
            return costs * (np.clip(u + x / costs, low, high) - u)

        def fits(x: np.ndarray) -> bool:
            return dot(gradient, clipped(x)) >= (1.0 - constants.LITTLE) * dot(gradient, x)

        def product(x: np.ndarray, way: np.ndarray, tau: float) -> np.ndarray:
            """K·x, of which w and τ change by ``way`` and ``tau``."""
            return ridge * x - self._changes(free, way, tau)

        blocked = True
        while blocked and not self._out_of_time():
            blocked = False
            movable = (low < u) & (u < high)
            gradient = gradient * movable
            x, residual = np.zeros(len(free)), gradient
            direction = residual / diagonal
            size = dot(residual, direction)
            gains: list[float] = []
            while size > 0.0 and not self._out_of_time():
                change = movable * product(direction, *self._ways(free, direction))
                bend = dot(direction, change)
                if not bend > 0.0:
                    break
                k = size / bend
                new = x + k * direction
                if not fits(new):
                    while k > 0.0 and not fits(x + k * direction):
                        k *= 0.5
                    x, blocked = x + k * direction, self._work < most
                    break
                x, residual = new, residual - k * change
                gains.append(0.5 * k * size)
                if len(gains) >= patience and sum(gains[-patience:]) < worth:
                    break
                before, size = size, dot(residual, residual / diagonal)
                direction = residual / diagonal + (size / before) * direction
            step = clipped(x)
            slope = dot(gradient, step)
            if not slope > 0.0:
                break
            way, way_tau = self._ways(free, step)
            bend = dot(ridge * step, step) + dot(way, way) + self._bias[0] * way_tau * way_tau
            part = min(1.0, slope / bend) if bend > 0.0 else 1.0
            u = np.clip(u + part * step / costs, low, high)
            moved, tau = moved + part * way, tau + part * way_tau
            gained += part * (slope - 0.5 * part * bend)
            if blocked:
                gradient = gradient - part * product(step, way, way_tau)
        self._u[free] = u
        self._w += moved
        self._bias[1] += tau
        self._move_bias()
        return gained > rate * (self._work - began)

    def _gradient(self, rows: np.ndarray) -> np.ndarray:
        out = np.empty(len(rows))
        own = (self._labels, self._bias, self._w, self._u)
        for part in self._parts(rows):
            loops.pulls(self.loss, *self._rows, rows[part], *own, out[part])
        return out

    def _ways(self, rows: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, float]:
        """By what w and τ change if the a of some rows change by a step."""
        coef = -step * self._signs[rows]
        way = np.zeros_like(self._w)
        for part in self._parts(rows):
            loops.add_rows(*self._rows, rows[part], coef[part], way)
        return way, float(coef.sum())

    def _changes(self, rows: np.ndarray, way: np.ndarray, tau: float) -> np.ndarray:
        """By what the z of some rows change if w and τ change."""
        out = np.empty(len(rows))
        for part in self._parts(rows):
            loops.products(*self._rows, rows[part], way, out[part])
        return self._signs[rows] * (out + self._bias[0] * tau)

    # -- certificates ---------------------------------------------------------

    def _go_to(self, dual_point: np.ndarray) -> None:
        """Let the passes begin at a dual point."""
        rows = self._active
        low, high = self.loss.domain
        self._u[rows] = np.clip(-dual_point[rows] / self.oracle.targets.weights[rows], low, high)
        self._w, self._bias[1] = self._ways(rows, self._costs[rows] * self._u[rows])

    def _coef(self) -> np.ndarray:
        """u as the oracle takes it."""
        return self._u * self._signs * self.oracle.targets.weights

    def _certify(self) -> Status | None:
        """Renew bound and best point; says whether that is the end."""
        oracle, trial = self.oracle, self.trial
        with self.watch.phase("certificate"):
            coef = self._coef()
            cut = oracle.dual_cut(coef)
            before = self.proved
            if self._bound(cut) > before or not self.trace:
                self._known = -self._u * oracle.targets.weights, cut
            gap = max(0.0, self.best.primal - self.dual)
            little = constants.LITTLE * self.stop.enough(self.dual, self.C)
            trial.tolerance = (little or self.line_tolerance * gap) / self.C
            if oracle.free_bias:  # where the search for the best one begins
                trial.bias = float(self._bias[2] + self._bias[0] * self._bias[1])
            oracle.evaluate(-self.C * cut.a, trial)
            step = self._move(trial)
            self._work += CERTIFICATE * 2.0 * self._row_work * len(self._u)
        status = self._end_iteration(self._objective(trial), step, 1)
        if status is None:
            self._judge(trial)
        if status is None and self.stop.max_iter is None and self.passes >= self.most_passes:
            status = Status.MAX_ITER
        return status

    def _move(self, trial: Point) -> float:
        """Move the best point towards another one; returns the step.

        Or to it, if that is the end: most runs with few passes end there.
        """
        objective = self._objective(trial)
        if objective < self.best.primal and self.stop.converged(objective, self.dual, self.C):
            self.point.copy(trial)
            self._keep(self.point)
            self._evaluated = trial.w
            return 1.0
        towards = trial
        if not np.any(self.point.w):
            if self.oracle.free_bias and self.point.mixture is None:
                self.oracle.evaluate(self.point.w, self.point)
                self._keep(self.point)
        else:  # of w = 0 the line is the same
            towards = self._scaled
            towards.copy(self._origin)
            self.oracle.descend(self._line(towards, trial, dot(trial.w, trial.w)))
        line = self._line(self.point, towards, dot(towards.w, towards.w))
        return self._keep_if_better(self.point, self.oracle.descend(line))

    def prove(self, best: Best, *norms: np.ndarray) -> Best:
        """As every solver, but without a product where the scores have just been computed."""
        if best.w is self._evaluated is self.point.w and not self._wants_best_bias():
            norms = (np.sqrt(self._squares + self.oracle.constant**2),)
        return super().prove(best, *norms)

    def _line(self, point: Point, trial: Point, trial_squared_norm: float) -> Line:
        # Trial points have the best bias, and get better whatever a line finds.
        return replace(super()._line(point, trial, trial_squared_norm), straight=True)

    def _judge(self, at: Point) -> None:
        """Find the active rows by the scores of a point."""
        square, tau, shift = self._bias
        squared, count = loops.judge(
            self.loss,
            at.scores,
            shift + square * tau if self.oracle.free_bias else 0.0,
            self._labels,
            self._costs,
            self._squares,
            square,
            self._reach,
            self._u,
            self._idle,
        )
        self._last_reach = float(np.sqrt(squared / max(1, count)))
        self._active = np.flatnonzero(self._idle == 0)


def flat_rows(matrix: BlockedMatrix) -> FlatRows:
    """Values, columns and starts of all rows."""
    if matrix.whole is not None:
        return matrix.whole.flat()

    def copied(k: int, block: Block) -> FlatRows:
        values, indices, starts = block.flat()
        return values.copy(), None if indices is None else indices.copy(), starts.copy()

    parts = matrix.run(copied, SerialExecutor())
    values, lists, starts = zip(*parts, strict=True)
    ends = np.cumsum([0, *(len(part) for part in values)])
    joined = [begin + part[:-1] for begin, part in zip(ends[:-1], starts, strict=True)]
    return (
        read_only(np.concatenate(values)),
        None if lists[0] is None else read_only(np.concatenate(lists)),
        np.concatenate([*joined, ends[-1:]]),
    )
