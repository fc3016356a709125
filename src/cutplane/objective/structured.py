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

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..exec import Executor
from ..loops import vectors
from .point import Cut, Line, Point, Proof, squared_norm
from .score_risk import Planes

# Scores that a thread moves at a time: several times what handing them out costs.
MOVED_SCORES = 1 << 16


class JointModel(ABC):
    """All examples of a structured problem, and the inference for them.

    Scores that are arrays here can be blended and copied here; a model whose scores are on other
    machines does that in its own way.

    Attributes
    ----------
    dimension : int
        Length of w.
    count : int
        Number of examples.
    numbers : int
        Work of a pass, in stored values of a data matrix that is read once.
    has_scores : bool
        Whether points have scores, to which blending adds rounding.
    """

    dimension: int
    count: int
    numbers: int = 0
    has_scores = True

    @abstractmethod
    def digest(self) -> bytes:
        """Identifies the data, the outputs and the loss."""

    @abstractmethod
    def new_point(self, w: np.ndarray) -> Point:
        """A point with buffers of its own, not evaluated."""

    @abstractmethod
    def score(self, w: np.ndarray, scores: np.ndarray, executor: Executor) -> None:
        """scores = what the inference needs of w and the data together, linear in w."""

    @abstractmethod
    def infer(self, point: Point, executor: Executor) -> None:
        """Find the most violated outputs at a point, from w and its scores.

        Sets the risk, the offset of the plane, and ``coef``, from which ``slopes`` and ``plane``
        know the outputs.
        """

    @abstractmethod
    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        """What gives the derivative along a line of the plane at a point."""

    @abstractmethod
    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        """The vector a of the plane at a point."""

    @abstractmethod
    def upper(self, point: Point, executor: Executor) -> float:
        """At least the risk at a point, whose scores have just been computed from its w.

        Scores, and sums of them, are taken to be off by as much as rounding can make them.
        """

    def blend_scores(
        self, start: Point, end: Point, k: float, into: Point, executor: Executor
    ) -> None:
        """Scores at start + k(end − start)."""
        a, b, out = (point.scores.reshape(-1) for point in (start, end, into))

        def move(number: int) -> None:
            some = slice(number * MOVED_SCORES, (number + 1) * MOVED_SCORES)
            vectors.blend(a[some], b[some], k, out[some])

        executor.run(move, -(-len(a) // MOVED_SCORES))

    def copy_scores(self, point: Point, into: Point) -> None:
        """Scores and outputs of another point."""
        into.scores[...], into.coef[...] = point.scores, point.coef

    def begin_anew(self) -> None:  # noqa: B027 (nothing to forget where scores are arrays)
        """No point before matters any more."""

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """The highest cut at w from outputs of earlier passes; None if there are none."""
        return None

    def state(self) -> dict[str, Any]:
        """What is to be known after an interruption, besides points."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027 (few have a state)
        """Return to a state."""


class StructuredOracle(Planes):
    """Cuts and lines of a structured problem.

    Attributes
    ----------
    passes : int
        How often inference ran over all examples.
    dimension : int
        Length of w.

    Parameters
    ----------
    model : JointModel
    executor : Executor
    """

    def __init__(self, model: JointModel, executor: Executor) -> None:
        self.model = model
        self.executor = executor
        self.dimension = model.dimension
        self.passes = 0
        self._step_guess = 1.0
        self._kept = self.new_point(), self.new_point()  # for what is needed briefly

    def regularised(self, w: np.ndarray) -> np.ndarray:
        """All of w."""
        return w

    def slack(self, primal: float, C: float) -> float:
        """None."""
        return 0.0

    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""
        return self.model.new_point(np.zeros(self.dimension))

    def _infer(self, point: Point) -> None:
        self.passes += 1
        self.model.infer(point, self.executor)

    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w: one pass of inference, unless it is there already."""
        known = not self.model.has_scores and np.isfinite(into.risk)
        known = known and np.array_equal(into.w, w)
        into.w = w
        if not known:
            self.model.score(w, into.scores, self.executor)
            self._infer(into)

    def prove(self, w: np.ndarray, into: Point, tolerance: float) -> Proof:
        """Move ``into`` to w and prove upper bounds there: one pass of inference."""
        self.evaluate(w, into)
        return Proof(self.model.upper(into, self.executor), squared_norm(into.w))

    def refresh(self, point: Point) -> None:
        """Compute the scores of a point anew from its w, and depend on nothing before."""
        if self.model.has_scores:
            self.refresh_scores(point)

    def refresh_scores(self, point: Point) -> None:
        """Compute a point anew from its w."""
        self.model.begin_anew()
        self.model.score(point.w, point.scores, self.executor)
        self._infer(point)

    def forget_cuts(self) -> None:
        """Nothing to do: every cut is computed from all examples."""

    def state(self) -> dict[str, Any]:
        """Where the next search on a line begins, and what is known of the inference."""
        return {"step": self._step_guess, "model": self.model.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        self._step_guess = float(state["step"])
        self.model.restore(state["model"])

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move ``into`` to start + k(end − start): one pass of inference, none at the end."""
        if k == 1.0:  # everything is known
            into.w, into.risk, into.offset, into.error = end.w, end.risk, end.offset, end.error
            self.model.copy_scores(end, into)
            return
        w = np.empty(self.dimension)
        vectors.blend(start.w, end.w, k, w)
        into.w = w
        self.model.blend_scores(start, end, k, into, self.executor)
        self._infer(into)

    def slopes(self, line: Line) -> Callable[[Point], float]:
        """What gives the derivative along a line of the plane at a point."""
        return self.model.slopes(line, self.executor)

    def kept_points(self) -> tuple[Point, Point]:
        """Two points for what a search has seen."""
        return self._kept

    def cut(self, start: Point, end: Point | None = None, k: float = 0.0) -> Cut:
        """The cut at start, or at start + k(end − start): inference if it is between."""
        point = start
        if end is not None:
            point = self._kept[0]
            self.blend(start, end, k, point)
        return Cut(self.model.plane(point, self.executor), point.offset)

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """The highest cut at w from outputs of earlier passes; None if there are none."""
        return self.model.cheap_cut(w)
