"""Cutting planes with bounds on the weights: min F(w) over low ≤ w ≤ high.

The reduced problem of cuts (a_j, b_j) and of the zero cut, for w in the box, is

    min_w ½|w|² + C·max_j (<a_j, w> + b_j).

Its dual has the weights β of the cuts on the simplex. The inner minimum separates by feature:

    D(β) = min_w ½|w|² + C·Σ β_j (<a_j, w> + b_j) = C·bᵀβ + Σ_i (½w_i² − u_i·w_i),
    u = −C Σ β_j a_j,    w(β) = clip(u, low, high),    dD/dβ_j = C(<a_j, w> + b_j).

D(β) is a lower bound on F over the box for every β on the simplex, so a certificate is as exact as
without bounds. D is concave. It is quadratic as long as the same features are free, that is not
clipped: its second derivative is −C²·A_F·A_Fᵀ over the free features. So Newton's method maximises
D. A round maximises the quadratic model over the simplex exactly, with the solver for problems
without bounds, and moves towards this maximum as far as D increases. If features become free on the
way and make the step short, the next models count them as free, too. Too much curvature makes a
model cautious: if it counts all features as free, it is nowhere above D. The first model with the
free features of the optimum is the last.

If C is so large that few features are free, the models are nearly linear, and rounds move from
corner to corner. Then an interior point method (``box_interior``) finds the free features.

The solver of the model needs points with the geometry of A_F. As without bounds (see ``reduced``),
short vectors are points themselves, and for others a Cholesky factor of their products
gives coordinates. These products are kept from round to round; only features that change sides are
added and taken away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._blas import single_threaded_blas
from ..loops import gram_points, simplex_qp
from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as UNIT
from ..objective import Line, Oracle, Point
from .base import Best, Observer, StopRule
from .box_interior import interior_weights
from .cutting_plane import BundleSolver, CutPosition
from .newton import line_step
from .reduced import (
    AFFORDABLE,
    DEPENDENT,
    GRAM_ERROR,
    IDLE_SOLUTIONS,
    SHORT,
    ReducedSolution,
    VectorSpace,
    fill,
)

# The most rounds of Newton's method before the interior point method, and as many after it; and the
# most rounds if that method is too expensive. Two or three rounds are usual. If the rounds are not
# enough, the bound stays as it is, and another cut helps more.
FEW_ROUNDS, MOST_ROUNDS = 20, 50
# If a step of the interior point method takes more products, about 20 ms, it is too expensive.
LARGE = 1 << 28
# A gain of this part of the terms of D counts as rounding.
NOTHING = 1e-15
# A gap of the reduced problem of this part counts as closed if a step gains nothing any more. If
# the gap is larger then, rounding errors of the model prevent progress.
NEARLY = 1e-9
# The gap of the reduced problem that is small enough, as a part of the run's gap. So the bound
# loses at most this part. A tenth of this took three times as long on text in a small box. On data
# with few features it saved up to a quarter of the iterations, but hardly any time.
ENOUGH = 0.1
# After so many solutions the products over free features are computed anew, so that rounding errors
# do not add up.
ANEW = 20
# Products copy so many columns at a time.
COLUMNS = 1 << 13
_PER_CUT = ("offsets", "beta", "idle")


class BoundedBundle:
    """Cuts and the reduced problem over a box, warm-started from solve to solve.

    It answers as ``Bundle`` does.

    Parameters
    ----------
    space : VectorSpace
    low, high : ndarray, shape (dimension,)
        The box; may be infinite.
    idle_solutions : int, optional
        Cuts whose weight was zero in more solutions in a row than this are dropped.

    Attributes
    ----------
    enough : float
        The gap of the reduced problem at which it counts as solved.
    """

    def __init__(
        self,
        space: VectorSpace,
        low: np.ndarray,
        high: np.ndarray,
        idle_solutions: int = IDLE_SOLUTIONS,
    ) -> None:
        self._space = space
        self._low, self._high = low, high
        self._idle_solutions = idle_solutions
        # Element 0 belongs to the zero cut.
        self._offsets, self._beta = np.zeros(1), np.ones(1)
        self._idle = np.zeros(1, np.int64)
        self._gram = np.zeros((1, 1))  # over all features
        self._free = np.ones(space.dimension, bool)
        self._free_gram = np.zeros((1, 1))  # over the free ones
        self._age = 0
        self.enough = 0.0

    def __len__(self) -> int:
        """Cuts kept, not counting the zero cut."""
        return len(self._offsets) - 1

    def add(self, a: np.ndarray, offset: float) -> None:
        """Add the cut <a, w> + offset."""
        column = self._space.append(a)
        free = column if self._free.all() else self._space.products(np.where(self._free, a, 0.0))
        self._gram = _bordered(self._gram, column)
        self._free_gram = _bordered(self._free_gram, free)
        self._offsets = np.append(self._offsets, offset)
        self._beta = np.append(self._beta, 0.0)
        self._idle = np.append(self._idle, 0)

    def solve(self, C: float) -> ReducedSolution:
        """Solve the reduced problem for this C."""
        with single_threaded_blas():
            self._age = self._age + 1 if self._age < ANEW else 0
            if self._age == 0:
                self._set_free(self._free, anew=True)
            u = self._maximise(C)
        self._idle = np.where(self._beta > 0.0, 0, self._idle + 1)
        return self._at(C, self._beta, u)

    def _maximise(self, C: float) -> np.ndarray:
        """Maximise D from the present weights; returns u."""
        u = self._combine(C, self._beta)
        affordable = len(self._offsets) ** 2 * len(u) <= LARGE
        u, done = self._newton(C, u, FEW_ROUNDS if affordable else MOST_ROUNDS)
        if done or not affordable:
            return u
        inner = np.flatnonzero(self._low < self._high)
        w = self._clip(u)
        fixed = w.copy()
        fixed[inner] = 0.0
        beta = interior_weights(
            self._columns(inner),
            self._offsets + np.append(0.0, self._space.products(fixed)),
            C,
            self._low[inner],
            self._high[inner],
            self._beta,
            w[inner],
        )
        there = self._combine(C, beta)
        if self._at(C, beta, there).dual > self._at(C, self._beta, u).dual:
            self._beta, u = beta, there
        return self._newton(C, u, FEW_ROUNDS)[0]

    def _newton(self, C: float, u: np.ndarray, rounds: int) -> tuple[np.ndarray, bool]:
        """Newton's method from the present weights; returns u, and whether it is at the maximum."""
        also_free = np.zeros(len(u), bool)
        for _ in range(rounds):
            w = self._clip(u)
            heights = np.append(0.0, self._space.products(w)) + self._offsets
            size = C * float(np.abs(self._offsets) @ self._beta) + float(np.abs(u) @ np.abs(w))
            gap = C * float(heights.max() - heights @ self._beta)
            if gap <= max(self.enough, NOTHING * size):
                return u, True
            free = (self._low < u) & (u < self._high)
            target = self._newton_point(C, free | also_free, u, w, heights)
            ahead = self._combine(C, target)
            change = ahead - u
            rise = C * float(self._offsets @ (target - self._beta))
            step = self._step(u, change, rise, NOTHING * size)
            if step == 0.0:
                return u, gap <= NEARLY * size
            if step == 1.0:
                self._beta, u = target, ahead
                also_free[:] = False
            else:
                also_free |= w != self._clip(ahead)
                beta = np.maximum(0.0, self._beta + step * (target - self._beta))
                self._beta = beta / beta.sum()
                u = self._combine(C, self._beta)
        return u, False

    def _step(self, u: np.ndarray, change: np.ndarray, rise: float, least: float) -> float:
        """How far to go from u along a change of it; 0 if D gains no more than ``least``.

        ``rise`` is what the term linear in β gains along the whole change.
        """

        def slope(k: float) -> float:  # of −D
            return float(change @ self._clip(u + k * change)) - rise

        first = slope(0.0)
        # The step need not be the best one, because the next model begins at its end.
        return line_step(slope, first) if first < -least else 0.0

    # -- the quadratic model ------------------------------------------------------------------

    def _newton_point(
        self, C: float, free: np.ndarray, u: np.ndarray, w: np.ndarray, heights: np.ndarray
    ) -> np.ndarray:
        """The weights that maximise the model of D at u with these free features."""
        squares = self._gram.diagonal()
        weighted = (self._beta * squares).max()
        jitter = gram_points.JITTER * (1.0 + gram_points.JITTER_GROWTH * len(squares))
        error = C * max(2.0 * UNIT * squares.max(), jitter * weighted)
        short = self._space.dimension <= SHORT
        if short or (error >= GRAM_ERROR and np.count_nonzero(free) <= AFFORDABLE):
            points, dependent = self._columns(np.flatnonzero(free)), DEPENDENT
            outside = self._space.products(w - np.where(free, u, 0.0))
            offsets = self._offsets + np.append(0.0, outside)
        else:
            self._set_free(free)
            points, dependent = np.zeros_like(self._gram), 2.0 * np.sqrt(jitter)
            for j in range(1, len(points)):
                gram_points.embed(self._free_gram, points, j)
            # With these offsets the points have the gradient at β that the vectors have.
            offsets = heights + C * (points @ (self._beta @ points))
        return _simplex_maximum(points, offsets, C, dependent, self._beta)

    def _set_free(self, free: np.ndarray, anew: bool = False) -> None:
        """Bring the products to these free features."""
        change = np.flatnonzero(free != self._free)
        others = np.flatnonzero(~free)
        inside = np.flatnonzero(free)
        if not anew and len(change) <= min(len(others), len(inside)):
            came = free[change]
            self._free_gram = (
                self._free_gram + self._products(change[came]) - self._products(change[~came])
            )
        elif len(inside) <= len(others):
            self._free_gram = self._products(inside)
        else:
            self._free_gram = self._gram - self._products(others)
        self._free = free

    def _products(self, features: np.ndarray) -> np.ndarray:
        """Products of all cuts over these features."""
        total = np.zeros_like(self._gram)
        for first in range(0, len(features), COLUMNS):
            part = self._columns(features[first : first + COLUMNS])
            total += part @ part.T
        return total

    def _columns(self, features: np.ndarray) -> np.ndarray:
        """These features of all cuts, one cut per row."""
        part = np.zeros((len(self._offsets), len(features)))
        for j in range(1, len(part)):
            np.take(self._space.vectors[j - 1], features, out=part[j])
        return part

    def _combine(self, C: float, beta: np.ndarray) -> np.ndarray:
        return self._space.combine(-C * beta[1:])

    def _clip(self, u: np.ndarray) -> np.ndarray:
        return np.minimum(np.maximum(u, self._low), self._high)

    # -- what others see ----------------------------------------------------------------------

    def _at(self, C: float, beta: np.ndarray, u: np.ndarray) -> ReducedSolution:
        """The point and the bound of weights, of which u is the combination."""
        w, count = self._clip(u), len(beta) + MANY
        terms = float(np.sum((0.5 * w - u) * w))
        height = C * float(self._offsets @ beta)
        squared_norm = float(np.sum(w * w))
        # u is off by at most this, and a term by that times |w| there: its derivative is −w.
        lost = count * UNIT * C * float(np.sqrt(self._gram.diagonal()) @ beta)
        lost = lost * (float(np.sqrt(squared_norm)) + lost)
        # What rounding may have done to the terms, to their sum, and to Σβ = 1.
        sizes = float(np.sum((0.5 * np.abs(w) + np.abs(u)) * np.abs(w)))
        lost += count * UNIT * (C * float(np.abs(self._offsets) @ beta) + sizes)
        return ReducedSolution(w, squared_norm, height + terms - lost)

    def active(self) -> list[tuple[np.ndarray, float]]:
        """The cuts (a, offset) that carry weight in the last solution."""
        return [
            (self._space.vectors[j - 1].copy(), float(self._offsets[j]))
            for j in range(1, len(self._beta))
            if self._beta[j] > 0.0
        ]

    def drop_idle(self) -> None:
        """Forget cuts that have not mattered for long; the last solution stays feasible."""
        idle = self._idle > self._idle_solutions
        idle[0] = False
        if not idle.any():
            return
        kept = np.flatnonzero(~idle)
        for name in _PER_CUT:
            setattr(self, f"_{name}", getattr(self, f"_{name}")[kept])
        self._gram = self._gram[np.ix_(kept, kept)]
        self._free_gram = self._free_gram[np.ix_(kept, kept)]
        self._space.keep(kept[1:] - 1)

    def state(self) -> dict[str, Any]:
        """All that further solutions depend on, to the last bit.

        Vectors are not copied; they stay as they are up to the next ``drop_idle`` and ``add``.
        """
        return {
            **{name: getattr(self, f"_{name}") for name in _PER_CUT},
            "gram": self._gram,
            "free_gram": self._free_gram,
            "free": self._free.astype(np.int8),
            "age": self._age,
            "enough": float(self.enough),
            "space": self._space.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        self._space.restore(state["space"])
        t = len(state["space"]["slots"]) + 1
        free = np.zeros(self._space.dimension, np.int8)
        fill(free, state["free"])
        self._free = free.astype(bool)
        self._offsets, self._beta = np.zeros((2, t))
        self._idle = np.zeros(t, np.int64)
        self._gram, self._free_gram = np.zeros((2, t, t))
        for name in (*_PER_CUT, "gram", "free_gram"):
            fill(getattr(self, f"_{name}"), state[name])
        self._age, self.enough = int(state["age"]), float(state["enough"])


class BoundedBundleSolver(BundleSolver):
    """The bundle loop over a box.

    Parameters
    ----------
    oracle, C, stop, position, observer
        As for the loop without bounds.
    low, high : ndarray, shape (oracle.dimension,)
        The box; may be infinite.
    """

    def __init__(
        self,
        oracle: Oracle,
        C: float,
        stop: StopRule,
        position: CutPosition | None,
        low: np.ndarray,
        high: np.ndarray,
        observer: Observer | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, position, observer)
        self._low, self._high = low, high
        self.bundle: BoundedBundle = BoundedBundle(self.space, low, high)  # type: ignore[assignment]

    def _inside(self, w: np.ndarray) -> np.ndarray:
        """The point of the box that is nearest to w."""
        return np.clip(w.reshape(-1), self._low, self._high).reshape(w.shape)

    def _begin(self, start: np.ndarray | None) -> None:
        origin = np.zeros_like(self.point.w)
        with self.watch.phase("scores"):
            self.oracle.evaluate(self._inside(origin if start is None else start), self.point)
            if not np.isfinite(self._objective(self.point)):
                self.oracle.evaluate(self._inside(origin), self.point)
        self._keep(self.point)

    def _solve_reduced(self) -> ReducedSolution:
        self.bundle.enough = ENOUGH * max(0.0, self.best.primal - self.dual)
        return super()._solve_reduced()

    def _line(self, point: Point, trial: Point, trial_squared_norm: float) -> Line:
        """The line as far as it stays inside of the box: at least to the trial point."""
        line = super()._line(point, trial, trial_squared_norm)
        start, end = point.w.reshape(-1), trial.w.reshape(-1)
        moving = np.flatnonzero(end != start)
        start, change = start[moving], (end - start)[moving]
        room = np.where(change > 0.0, self._high[moving], self._low[moving]) - start
        inside = max(1.0, float(np.min(room / change, initial=np.inf)))
        return replace(line, longest=min(line.longest, inside))

    def prove(self, best: Best, *norms: np.ndarray) -> Best:
        """Steps round: what is proved is a point of the box."""
        return super().prove(replace(best, w=self._inside(best.w)), *norms)


def _bordered(gram: np.ndarray, column: np.ndarray) -> np.ndarray:
    """A Gram matrix with the products of one more vector; row and column 0 stay 0."""
    t = len(gram)
    larger = np.zeros((t + 1, t + 1))
    larger[:t, :t] = gram
    larger[t, 1:] = larger[1:, t] = column
    return larger


def _simplex_maximum(
    points: np.ndarray, offsets: np.ndarray, C: float, dependent: float, beta: np.ndarray
) -> np.ndarray:
    """The β of the simplex that maximises offsetsᵀβ − ½C·|Σ β_j p_j|², from a feasible one."""
    t, width = points.shape
    most = min(t, width) + 1
    target = beta.copy()
    simplex_qp.solve(
        points,
        np.sqrt(np.einsum("ij,ij->i", points, points)),
        offsets,
        C,
        width,
        dependent,
        target,
        np.zeros(t),
        np.zeros((most, width)),
        np.zeros((most, most)),
        np.zeros(most + 1, dtype=np.int64),
        np.zeros(max(most, t)),
        np.zeros(max(most, t)),
        -1,
        100 + 10 * t,
    )
    return target / target.sum()
