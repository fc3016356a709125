"""What the loop needs of an oracle, whatever the model and the risk are."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..exec import Executor
from .point import Cut, Line, Point, Proof


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
