"""The structured oracle, 1-slack: one cut for the most violated outputs of all examples.

    R(w) = (1/N) Σ_i max_z [Δ(y_i, z) + <w, Ψ(x_i, z) − Ψ(x_i, y_i)>]

(Joachims, Finley & Yu 2009; algorithms.md §4). Any choice of outputs z_i gives a plane below R,

    a = (1/N) Σ_i Ψ(x_i, z_i) − Ψ(x_i, y_i),    offset = (1/N) Σ_i Δ(y_i, z_i),

and the most violated ones give the plane that touches R at w. So a lower bound
needs no exact inference, but the value of R, and with it the upper bound, does.

The oracle sees a ``JointModel``: all examples with the inference for them. Every
evaluation is a pass of inference, so points keep their plane: the search on a line has
derivatives for nothing, and a cut is the plane of a point. What the inference needs and
is linear in w (the emissions of chains) is kept as the scores of a point: between two
points it costs no product with the data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..exec import Executor
from .point import Cut, Line, Point, Proof, squared_norm
from .whole_surface import PlaneSurface


class Inferring(Protocol):
    """All examples of a structured problem, and the inference for them.

    Attributes
    ----------
    rows : int
    outputs : int or None
        Shape of the scores of a point: (rows, outputs), or (rows,) if None; 0 rows for none.
    """

    rows: int
    outputs: int | None

    def new_point(self, w: np.ndarray) -> Point:
        """A point with buffers of its own, not evaluated."""
        ...

    def infer(self, point: Point, executor: Executor) -> None:
        """Find the most violated outputs at a point, from w and its scores.

        Sets the risk, the offset of the plane, and ``coef``, from which ``slopes`` and ``plane``
        know the outputs.
        """
        ...

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        """What gives the derivative along a line of the plane at a point."""
        ...


class JointModel(Inferring, Protocol):
    """The same, where w is a vector.

    Attributes
    ----------
    dimension : int
        Length of w.
    count : int
        Number of examples.
    """

    dimension: int
    count: int

    def score(self, w: np.ndarray, scores: np.ndarray, executor: Executor) -> None:
        """scores = what the inference needs of w and the data together, linear in w."""
        ...

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        """The vector a of the plane at a point."""
        ...

    def upper(self, point: Point, executor: Executor) -> float:
        """At least the risk at a point, whose scores have just been computed from its w.

        Scores, and sums of them, are taken to be off by as much as rounding can make them.
        """
        ...

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """The highest cut at w from outputs of earlier passes; None if there are none."""
        ...

    def state(self) -> dict[str, Any]:
        """What is to be known after an interruption."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        ...


@runtime_checkable
class Elsewhere(Protocol):
    """A model whose scores and outputs are on other machines, by number of the point."""

    def blend_scores(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Scores at start + k(end − start)."""
        ...

    def copy_scores(self, point: Point, into: Point) -> None:
        """Scores and outputs of another point."""
        ...

    def begin_anew(self) -> None:
        """No point before matters any more."""
        ...


class JointSurface(PlaneSurface):
    """The risk of a structured problem, in whose points w counts besides the scores.

    Attributes
    ----------
    passes : int
        How often inference ran over all examples.
    """

    def __init__(self, model: Inferring, executor: Executor) -> None:
        super().__init__(model.rows, model.outputs, 1.0, executor)
        self.model = model
        self.passes = 0

    def new_point(self, w: np.ndarray) -> Point:
        return self.model.new_point(w)

    def settle(self, point: Point) -> None:
        self.passes += 1
        self.model.infer(point, self.executor)

    def slopes(self, line: Line) -> Callable[[Point], float]:
        return self.model.slopes(line, self.executor)

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move ``into`` to start + k(end − start); at the end itself everything is known."""
        if k == 1.0:
            self._copy(end, into)
        else:
            super().blend(start, end, k, into)

    def between(self, start: Point, end: Point, k: float) -> Point:
        point = self.spare()
        self.blend(start, end, k, point)
        return point

    def _blend_scores(self, start: Point, end: Point, k: float, into: Point) -> None:
        if isinstance(self.model, Elsewhere):
            self.model.blend_scores(start, end, k, into)
        else:
            super()._blend_scores(start, end, k, into)

    def _copy(self, point: Point, into: Point) -> None:
        into.w, into.risk, into.offset = point.w, point.risk, point.offset
        into.error = point.error
        if isinstance(self.model, Elsewhere):
            self.model.copy_scores(point, into)
        else:
            into.scores[...] = point.scores
            into.coef[...] = point.coef


class StructuredOracle:
    """Cuts and lines of a structured problem.

    Parameters
    ----------
    model : JointModel
    executor : Executor
    """

    def __init__(self, model: JointModel, executor: Executor) -> None:
        self.model = model
        self.executor = executor
        self.surface = JointSurface(model, executor)

    @property
    def dimension(self) -> int:
        """Length of w."""
        return self.model.dimension

    def regularised(self, w: np.ndarray) -> np.ndarray:
        """All of w."""
        return w

    def slack(self, primal: float, C: float) -> float:
        """None."""
        return 0.0

    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""
        return self.surface.new_point(np.zeros(self.dimension))

    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w: one pass of inference, unless it is there already."""
        if not self._has_scores(into) and np.isfinite(into.risk) and np.array_equal(into.w, w):
            into.w = w
            return
        into.w = w
        self.model.score(w, into.scores, self.executor)
        self.surface.settle(into)

    def prove(self, w: np.ndarray, into: Point, tolerance: float) -> Proof:
        """Move ``into`` to w and prove upper bounds there: one pass of inference."""
        self.evaluate(w, into)
        return Proof(self.model.upper(into, self.executor), squared_norm(into.w))

    @staticmethod
    def _has_scores(point: Point) -> bool:
        """Whether there are scores, to which blending adds rounding, here or elsewhere."""
        return not isinstance(point.scores, np.ndarray) or point.scores.size > 0

    def refresh(self, point: Point) -> None:
        """Compute the scores of a point anew from its w, and depend on nothing before."""
        if self._has_scores(point):
            self.place(point)

    def place(self, point: Point) -> None:
        """Compute a point anew from its w."""
        if isinstance(self.model, Elsewhere):
            self.model.begin_anew()
        self.model.score(point.w, point.scores, self.executor)
        self.surface.settle(point)

    def forget_cuts(self) -> None:
        """Nothing to do: every cut is computed from all examples."""

    def state(self) -> dict[str, Any]:
        """Guesses of the surface, and what is known of the inference."""
        return {**self.surface.state(), "model": self.model.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        self.surface.restore(state)
        self.model.restore(state["model"])

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move ``into`` to start + k(end − start): one pass of inference."""
        self.surface.blend(start, end, k, into)

    def descend(self, line: Line) -> float:
        """Move the start of a line to the minimum on it; returns its k."""
        return self.surface.descend(line)

    def cut(self, start: Point, end: Point | None = None, k: float = 0.0) -> Cut:
        """The cut at start, or at start + k(end − start): inference if it is between."""
        point = start if end is None else self.surface.between(start, end, k)
        return Cut(self.model.plane(point, self.executor), point.offset)

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """The highest cut at w from outputs of earlier passes; None if there are none."""
        return self.model.cheap_cut(w)
