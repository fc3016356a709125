"""The risk as the oracle meets it: a surface over the scores of points.

A surface knows scores and risk, neither data nor w. Passes over the scores are
light, and Python's part in each of them must be small: they run over chunks of
rows that are coarser than the blocks of the data, and depend only on the data. No chunk goes
across the end of a part of the data, so that whoever holds a part's rows can do its chunks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..exec import Executor
from ..loops import vectors
from ..loops.bounded import MANY, ROUNDING
from .line import Height, minimise_convex
from .point import Line, Point

# A pass over this many scores costs several times its call from Python.
CHUNK_NUMBERS = 1 << 13
# Enough to balance threads.
MOST_CHUNKS = 32
# Below this much work the calling thread is done before the others have started.
WORTH_THREADS = 1 << 16


def chunks(edges: Sequence[int], width: int) -> list[list[slice]]:
    """Rows in chunks, by part.

    Parameters
    ----------
    edges : sequence of int
        Rows at which parts of the data begin, and the end.
    width : int
        Numbers per row.
    """
    rows = edges[-1]
    count = min(MOST_CHUNKS, max(1, rows * width // CHUNK_NUMBERS))
    parts = []
    for a, b in pairwise(edges):
        pieces = max(1, count * (b - a) // max(1, rows))
        inner = [a + (b - a) * k // pieces for k in range(pieces + 1)]
        parts.append([slice(low, high) for low, high in pairwise(inner)])
    return parts


class Surface(ABC):
    """A risk over scores.

    Attributes
    ----------
    shape : tuple of int
        Of the scores.
    outputs : int or None
        Scores per row; None for one number.
    total : float
        Sums of coefficients, offsets and losses are divided by it.
    light : bool
        Whether a pass over the scores is not worth more than one thread.

    Parameters
    ----------
    rows, outputs, total, executor
        The same.
    work : float, default=1
        What a score costs in a pass, where a comparison and a few additions cost 1.
    edges : sequence of int, optional
        Rows at which parts of the data begin, and the end.
    """

    def __init__(
        self,
        rows: int,
        outputs: int | None,
        total: float,
        executor: Executor,
        work: float = 1.0,
        edges: Sequence[int] | None = None,
    ) -> None:
        self.outputs = outputs
        self.shape = (rows,) if outputs is None else (rows, outputs)
        self.total = total
        self.executor = executor
        parts = chunks((0, rows) if edges is None else edges, outputs or 1)
        self.slices = [rows for part in parts for rows in part]
        self.light = bool(work * np.prod(self.shape) < WORTH_THREADS)
        self._step_guess = 1.0
        self._spare: Point | None = None

    def new_point(self, w: np.ndarray) -> Point:
        """A point with buffers of its own, not evaluated."""
        return Point(w, np.zeros(self.shape))

    @abstractmethod
    def settle(self, point: Point) -> None:
        """Minimise over the bias and evaluate the risk at the scores of a point."""

    def settle_again(self, point: Point) -> None:
        """Evaluate the risk where scores have changed by no more than rounding."""
        self.settle(point)

    def upper(self, point: Point, low: Any, errors: Any) -> float:
        """At least the risk at the scores of a point, which are off by ``errors`` at most.

        ``low`` are further digits of the scores, if there are any; the point has not been settled
        then. Here the risk is taken as it was found, but for the rounding of a sum.
        """
        return point.risk * (1.0 + MANY * ROUNDING)

    @abstractmethod
    def coefficients(self, point: Point) -> tuple[np.ndarray, float]:
        """The plane that touches the risk at a point: Σ coef·s + offset, both not yet divided.

        The array is good until the next call.
        """

    @abstractmethod
    def descend(self, line: Line) -> float:
        """Move the start of a line to the minimum on it; returns its k."""

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move ``into`` to start + k(end − start), without reading the data."""
        self._move(start, end, k, into)
        self.settle(into)

    def _move(self, start: Point, end: Point, k: float, into: Point) -> None:
        """As ``blend``, but the risk is not computed."""
        w = np.empty(start.w.shape)
        vectors.blend(start.w.reshape(-1), end.w.reshape(-1), k, w.reshape(-1))
        into.w = w
        self._blend_scores(start, end, k, into)

    def between(self, start: Point, end: Point, k: float) -> Point:
        """The point start + k(end − start) in a buffer of its own; w and risk are not computed."""
        point = self.spare()
        point.tolerance = end.tolerance
        self._blend_scores(start, end, k, point)
        return point

    def spare(self) -> Point:
        """A point for what is needed briefly."""
        if self._spare is None:
            self._spare = self.new_point(np.empty(0))
        return self._spare

    def state(self) -> dict[str, Any]:
        """Where the next search on a line begins."""
        return {"step": self._step_guess}

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        self._step_guess = float(state["step"])

    def run(self, function: Callable[[slice], Any]) -> list[Any]:
        """Run a function over the chunks."""
        return self.run_numbers(lambda k: function(self.slices[k]))

    def run_numbers(self, function: Callable[[int], Any]) -> list[Any]:
        """Run a function over the chunks, which get their number."""
        if self.light:
            return [function(k) for k in range(len(self.slices))]
        return self.executor.run(function, len(self.slices))

    def _blend_scores(self, start: Point, end: Point, k: float, into: Point) -> None:
        into.bias = start.bias + k * (end.bias - start.bias)
        self.run(
            lambda rows: vectors.blend(
                start.scores[rows].reshape(-1),
                end.scores[rows].reshape(-1),
                k,
                into.scores[rows].reshape(-1),
            )
        )

    def _search(
        self,
        line: Line,
        evaluate: Callable[[float], tuple[float, float]],
        guess: float,
        known: Height | None = None,
    ) -> tuple[Height, Height]:
        """The start of a line and the minimum on it.

        ``evaluate`` gives the risk and its derivative at k.
        """

        def height(k: float) -> Height:
            risk, derivative = evaluate(k)
            return line.height(k, risk, derivative)

        first = height(0.0)
        return first, minimise_convex(
            height,
            first,
            guess,
            line.tolerance,
            longest=line.longest,
            curvature=line.curvature,
            known=known,
        )
