"""The structured oracle, 1-slack: one cut for the most violated outputs of all examples.

    R(w) = (1/N) Σ_i max_z [Δ(y_i, z) + <w, Ψ(x_i, z) − Ψ(x_i, y_i)>]

(Joachims, Finley & Yu 2009). Any choice of outputs z_i gives a plane below R,

    a = (1/N) Σ_i Ψ(x_i, z_i) − Ψ(x_i, y_i),    offset = (1/N) Σ_i Δ(y_i, z_i),

and the most violated outputs give the plane that touches R at w. So a lower bound does
not need exact inference, but the value of R needs it, and with it the upper bound.

The oracle sees a ``JointModel``: all examples with their inference. Every evaluation is
a pass of inference, so points keep their plane. From the planes a search on a line gets
derivatives at no cost, and a cut is the plane of a point. The emissions of chains are
linear in w, and the inference needs them. They are the scores of a point: between two
points they are interpolated, without a product with the data. A proof computes the scores of
such a point anew; other points were computed from the data alone already.
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

# Scores that a thread moves at a time. This takes several times as long as starting the task.
MOVED_SCORES = 1 << 16


class JointModel(ABC):
    """All examples of a structured problem, and the inference for them.

    This class blends and copies scores that are arrays of this process. A model whose scores are on
    workers overrides these methods.

    Attributes
    ----------
    dimension : int
        Length of w.
    count : int
        Number of examples.
    numbers : int
        Work of a pass, in units of reading one stored value of a data matrix.
    has_scores : bool
        Whether points have scores. Blending adds rounding errors to them.
    """

    dimension: int
    count: int
    numbers: int = 0
    has_scores = True

    @abstractmethod
    def digest(self) -> bytes:
        """A fingerprint of the data, the outputs and the loss."""

    @abstractmethod
    def new_point(self, w: np.ndarray) -> Point:
        """A point with buffers of its own, not evaluated."""

    @abstractmethod
    def score(self, w: np.ndarray, scores: np.ndarray, executor: Executor) -> None:
        """Compute the scores: products of w and the data that inference needs, linear in w."""

    @abstractmethod
    def infer(self, point: Point, executor: Executor) -> None:
        """Find the most violated outputs at a point, from w and its scores.

        Sets the risk, the offset of the plane, and ``coef``, which describes the outputs for
        ``slopes`` and ``plane``.
        """

    @abstractmethod
    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        """What gives the derivative along a line of the plane at a point."""

    @abstractmethod
    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        """The vector a of the plane at a point."""

    @abstractmethod
    def upper(self, point: Point, executor: Executor) -> float:
        """An upper bound on the risk at a point whose scores were computed from its w.

        The bound covers the largest possible rounding errors of the scores and of their sums.
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
        """Earlier points are no longer needed."""

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """The highest cut at w from outputs of earlier passes; None if there are none."""
        return None

    def state(self) -> dict[str, Any]:
        """What a resumed run must know besides points."""
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

    penalised = slice(None)  # all of w

    def __init__(self, model: JointModel, executor: Executor) -> None:
        self.model = model
        self.executor = executor
        self.dimension = model.dimension
        self.passes = 0
        self._step_guess = 1.0
        self.kept = self.new_point(), self.new_point()  # spare points for intermediate results

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
        """Move ``into`` to w, by one pass of inference, unless ``into`` is there already."""
        known = np.isfinite(into.risk) and np.array_equal(into.w, w)
        if known and not (into.blended and self.model.has_scores):
            into.w = w
            return
        into.risk = np.inf  # first of all: an interrupt may come before it is known
        into.w, into.blended = w, False
        self.model.score(w, into.scores, self.executor)
        self._infer(into)

    def prove(self, w: np.ndarray, into: Point, tolerance: float) -> Proof:
        """Move ``into`` to w and prove upper bounds there, from the data alone."""
        self.evaluate(w, into)
        return Proof(self.model.upper(into, self.executor), squared_norm(into.w))

    def refresh(self, point: Point) -> None:
        """Compute the scores of a point anew from its w, and depend on no earlier results."""
        if self.model.has_scores:
            self.refresh_scores(point)

    def refresh_scores(self, point: Point) -> None:
        """Compute a point anew from its w."""
        self.model.begin_anew()
        self.model.score(point.w, point.scores, self.executor)
        self._infer(point)
        point.blended = False

    def forget_cuts(self) -> None:
        """Does nothing, because every cut is computed from all examples."""

    def state(self) -> dict[str, Any]:
        """The guess with which the next search on a line begins, and the model's state."""
        return {"step": self._step_guess, "model": self.model.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        self._step_guess = float(state["step"])
        self.model.restore(state["model"])

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move ``into`` to start + k(end − start): one pass of inference, none at the end."""
        if k == 1.0:  # the end has been evaluated
            into.w, into.risk, into.offset, into.error = end.w, end.risk, end.offset, end.error
            into.blended = end.blended
            self.model.copy_scores(end, into)
            return
        w = np.empty(self.dimension)
        vectors.blend(start.w, end.w, k, w)
        into.w, into.blended = w, True
        self.model.blend_scores(start, end, k, into, self.executor)
        self._infer(into)

    def slopes(self, line: Line) -> Callable[[Point], float]:
        """What gives the derivative along a line of the plane at a point."""
        return self.model.slopes(line, self.executor)

    def cut(self, start: Point, end: Point | None = None, k: float = 0.0) -> Cut:
        """The cut at start, or at start + k(end − start), which takes inference."""
        point = start
        if end is not None:
            point = self.kept[0]
            self.blend(start, end, k, point)
        return Cut(self.model.plane(point, self.executor), point.offset)

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """The highest cut at w from outputs of earlier passes; None if there are none."""
        return self.model.cheap_cut(w)
