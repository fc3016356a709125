"""Risks of all scores at once: pairs of rows, measures of a whole ranking.

An evaluation sorts the scores, which costs far more than a product with a few
numbers per row, so nothing is evaluated twice: every point keeps the plane that
touches the risk there. Along a line the plane gives the derivative for nothing,
the plane at w_t (which the loop evaluates anyway) is the second point of
the search, and the cut is the plane where it is wanted.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from ..exec import Executor
from ..risks import WholeRisk
from .point import Line, Point
from .surface import Surface


class PlaneSurface(Surface):
    """Surface whose points keep the plane that touches the risk there."""

    _second: Point | None = None

    @abstractmethod
    def slopes(self, line: Line) -> Callable[[Point], float]:
        """What gives the derivative along a line of the plane at a point."""

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        if k == 1.0:  # known
            into.copy(end)
        else:
            super().blend(start, end, k, into)

    def between(self, start: Point, end: Point, k: float) -> Point:
        point = super().between(start, end, k)
        self.settle(point)
        return point

    def coefficients(self, point: Point) -> tuple[np.ndarray, float]:
        return point.coef, point.offset

    def descend(self, line: Line) -> float:
        """Move the start of a line to the minimum on it; returns its k.

        Both ends must have been settled.
        """
        start, end = line.start, line.end
        derivative = self.slopes(line)
        self._second = self._second or self.new_point(np.empty(0))
        best, best_height, last = self._second, math.inf, self.spare()
        best_k = -1.0

        def evaluate(k: float) -> tuple[float, float]:
            nonlocal best, best_height, best_k, last
            if k == 0.0:
                return start.risk, derivative(start)
            self.blend(start, end, k, last)
            at = last
            height = line.height(k, at.risk, 0.0).value
            if height < best_height:  # keep it: by convexity the answer is the best one
                best_height, best_k = height, k
                best, last = last, best
            return at.risk, derivative(at)

        known = line.height(1.0, end.risk, derivative(end))
        k = self._search(line, evaluate, self._step_guess, known)[1].k
        if k == 0.0:
            return k
        if k == best_k:
            start.take(best)
        else:  # the end itself
            self.blend(start, end, k, start)
        self._step_guess = k
        return k


class WholeSurface(PlaneSurface):
    """Surface of a risk of all scores at once.

    Attributes
    ----------
    evaluations : int
        How often the risk was evaluated.

    Parameters
    ----------
    risk : WholeRisk
    executor : Executor
    """

    def __init__(self, risk: WholeRisk, executor: Executor) -> None:
        super().__init__(risk.rows, None, 1.0, executor)
        self.risk = risk
        self.evaluations = 0

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(self.shape), coef=np.zeros(self.shape))

    def settle(self, point: Point) -> None:
        self.evaluations += 1
        point.risk, point.offset = self.risk.evaluate(point.scores, point.coef, self.executor)

    def upper(self, point: Point, low: np.ndarray | None, errors: np.ndarray) -> float:
        return self.risk.upper(point.scores, low, errors, self.executor)

    def slopes(self, line: Line) -> Callable[[Point], float]:
        way = line.end.scores - line.start.scores
        return lambda point: float(np.einsum("i,i->", point.coef, way))
