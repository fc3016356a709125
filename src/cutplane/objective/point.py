"""The interface of oracles, and the objects that solvers share: points, cuts, lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..exec import Executor
from ..loops.bounded import MANY, ROUNDING
from .search import LineValue


@dataclass(frozen=True)
class Cut:
    """R(v) ≥ <a, v> + offset for all v."""

    a: np.ndarray
    offset: float


@dataclass(frozen=True)
class Proof:
    """Proved upper bounds at a point.

    Attributes
    ----------
    risk : float
        At least the risk in exact arithmetic.
    squared_norm : float
        At least |w|² in exact arithmetic.
    """

    risk: float
    squared_norm: float


def squared_norm(w: np.ndarray) -> float:
    """At least |w|² in exact arithmetic; numpy adds up in pairs."""
    return float(np.sum(np.square(w))) * (1.0 + MANY * ROUNDING)


@dataclass
class Point:
    """A point w with its bias, and all that was computed there. Its buffers are reused.

    ``scores`` do not contain the bias. For a risk of all scores at once, ``coef`` and
    ``offset`` are the plane that touches the risk at the point. For sums over rows they
    are empty, because computing this plane costs no more than keeping it. If ``coef`` has
    integers, it is a labelling: for each row the number of a column of the scores.
    ``tolerance`` is how much the risk may exceed its minimum over a free bias. ``mixture``
    is what the search for the bias has found: two biases, and the share of the second in the
    coefficients of a plane. ``error`` bounds how much rounding errors have reduced the risk, if the
    inference knows it.
    """

    w: np.ndarray
    scores: np.ndarray
    bias: float = 0.0
    risk: float = np.inf
    coef: np.ndarray = field(default_factory=partial(np.empty, 0))
    offset: float = 0.0
    tolerance: float = 0.0
    mixture: tuple[float, float, float] | None = None
    error: float = 0.0
    blended: bool = False  # whether the scores come from those of two other points

    def copy(self, other: Point) -> None:
        """Copy the other point into the own buffers."""
        self.risk = np.inf  # first of all: an interrupt may come before the rest
        self.blended = other.blended
        self.scores[...] = other.scores
        self.coef[...] = other.coef
        self.w, self.bias, self.risk = other.w, other.bias, other.risk
        self.offset, self.mixture, self.error = other.offset, other.mixture, other.error

    def take(self, other: Point) -> None:
        """Take over the other point's buffers. The other point gets the buffers of this one."""
        self.risk = np.inf  # as in ``copy``
        self.blended = other.blended
        self.scores, other.scores = other.scores, self.scores
        self.coef, other.coef = other.coef, self.coef
        self.w, self.bias, self.risk = other.w, other.bias, other.risk
        self.offset, self.mixture, self.error = other.offset, other.mixture, other.error


@dataclass(frozen=True)
class Line:
    """The line from one point to another, and what to minimise on it:

        ½·curvature·k² + slope·k + R(start + k(end − start))   over 0 ≤ k ≤ longest,

    to within ``tolerance`` of the minimum. With ``straight`` a free bias moves in proportion to k,
    as w does; otherwise every point of the line may have the best bias.
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
        The bundle uses it, too.
    penalised : slice
        The part of a flat w whose square counts in the objective.
    """

    executor: Executor
    penalised: slice

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
        """Move ``into`` to w, from the data alone, and prove upper bounds there, at its bias.

        If rounding may have changed the risk by more than ``tolerance``, compute more digits, as
        far as the oracle can.
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
        """Compute a point anew from its w, if moves have added rounding errors to it.

        Later results depend only on this point, not on earlier ones.
        """
        ...

    def forget_cuts(self) -> None:
        """Compute the next cut from all rows, not by an update of earlier sums."""
        ...

    def slack(self, primal: float, C: float) -> float:
        """How much to subtract from a lower bound, so that it holds for the user's problem."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """An oracle whose state can be stored, so that a resumed run gives the same bits."""

    def refresh_scores(self, point: Point) -> None:
        """Compute the scores of a point from its w; bias and risk are known."""
        ...

    def state(self) -> dict[str, Any]:
        """All on which answers depend besides their arguments, such as guesses for searches."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take a state that ``state`` has returned."""
        ...
