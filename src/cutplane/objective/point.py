"""What solvers ask of an oracle, and what they pass to one another: points, cuts, lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..exec import Executor
from ..loops.bounded import MANY, ROUNDING
from ..risks import Scores
from .search import Bracket, LineValue


@dataclass(frozen=True)
class Cut:
    """R(v) ≥ <a, v> + offset for all v."""

    a: np.ndarray
    offset: float


@dataclass(frozen=True)
class Proof:
    """What has been proved of a point.

    Attributes
    ----------
    risk : float
        The risk in exact arithmetic is no larger.
    squared_norm : float
        Nor is |w|².
    """

    risk: float
    squared_norm: float


def squared_norm(w: np.ndarray) -> float:
    """At least |w|² in exact arithmetic; numpy adds up in pairs."""
    return float(np.sum(np.square(w))) * (1.0 + MANY * ROUNDING)


@dataclass
class Point:
    """A point with all that was computed there. Its buffers are reused.

    ``scores`` are without the bias b, which is kept apart. ``coef`` and ``offset`` are
    the plane that touches a risk of all scores at once there; sums over rows leave
    them empty, because theirs is as cheap to compute as to keep. A ``coef`` of integers is a
    labelling of the rows, by columns of the scores. ``tolerance`` is how far above the
    minimum over a free bias the risk may be, and ``bracket`` where the bias was found.
    ``error`` is what rounding may have taken off the risk, where inference says so.
    """

    w: np.ndarray
    scores: np.ndarray
    bias: float = 0.0
    risk: float = np.inf
    coef: np.ndarray = field(default_factory=partial(np.empty, 0))
    offset: float = 0.0
    tolerance: float = 0.0
    bracket: Bracket | None = None
    error: float = 0.0

    def view(self) -> Scores:
        """The scores with the bias."""
        return Scores(self.scores, self.bias)

    def mixture(self) -> tuple[float, float, float]:
        """Two biases, and the share of the second in the coefficients of a plane."""
        if self.bracket is None:
            return self.bias, self.bias, 0.0
        return self.bracket.low, self.bracket.high, self.bracket.part

    def copy(self, other: Point) -> None:
        """Become the other point, in buffers of its own."""
        self.scores[...] = other.scores
        self.coef[...] = other.coef
        self.w, self.bias, self.risk = other.w, other.bias, other.risk
        self.offset, self.bracket, self.error = other.offset, other.bracket, other.error

    def take(self, other: Point) -> None:
        """Become the other point, which gets this one's buffers and becomes useless."""
        self.scores, other.scores = other.scores, self.scores
        self.coef, other.coef = other.coef, self.coef
        self.w, self.bias, self.risk = other.w, other.bias, other.risk
        self.offset, self.bracket, self.error = other.offset, other.bracket, other.error


@dataclass(frozen=True)
class Line:
    """The line from one point to another, and what to minimise on it:

        ½·curvature·k² + slope·k + R(start + k(end − start))   over 0 ≤ k ≤ longest,

    to within ``tolerance`` of the minimum. With ``straight`` a free bias moves along with w;
    otherwise every point of the line may have the best one.
    """

    start: Point
    end: Point
    curvature: float
    slope: float
    tolerance: float
    longest: float = np.inf
    straight: bool = False

    def value(self, k: float, risk: float) -> float:
        """The function at k, from the risk there."""
        return risk + k * (self.slope + 0.5 * self.curvature * k)

    def at(self, k: float, risk: float, derivative: float) -> LineValue:
        """The function at k, from the risk there and its derivative in k."""
        return LineValue(k, self.value(k, risk), derivative + self.slope + self.curvature * k)


class Oracle(Protocol):
    """Turns points into cuts of the risk, and lines into their minimum.

    Attributes
    ----------
    executor : Executor
        Shared with the bundle's own work.
    """

    executor: Executor

    @property
    def dimension(self) -> int:
        """Length of w as a flat vector."""
        ...

    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""
        ...

    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w and evaluate the risk there."""
        ...

    def prove(self, w: np.ndarray, into: Point, tolerance: float) -> Proof:
        """Move ``into`` to w, from the data alone, and prove upper bounds there.

        Where rounding may have done more than ``tolerance`` to the risk, more digits are computed
        if that is possible.
        """
        ...

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move ``into`` to start + k(end − start) and evaluate the risk there."""
        ...

    def descend(self, line: Line) -> float:
        """Move the start of a line to the minimum on it; returns its k."""
        ...

    def cut(self, start: Point, end: Point | None = None, k: float = 0.0) -> Cut:
        """The cut at start, or at start + k(end − start)."""
        ...

    def refresh(self, point: Point) -> None:
        """Compute a point anew from its w, if moving it has added rounding to it.

        What comes after depends on nothing else that was before.
        """
        ...

    def forget_cuts(self) -> None:
        """Compute the next cut from all rows, whatever was computed before."""
        ...

    def regularised(self, w: np.ndarray) -> np.ndarray:
        """The part of w whose square counts in the objective, flat."""
        ...

    def slack(self, primal: float, C: float) -> float:
        """What a lower bound must be taken down by to hold for the user's problem."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """An oracle whose state can be written, so that a run goes on from it to the same bits."""

    def refresh_scores(self, point: Point) -> None:
        """Compute the scores of a point from its w; bias and risk are known."""
        ...

    def state(self) -> dict[str, Any]:
        """What answers depend on besides the question, such as guesses from earlier ones."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        ...
