"""All training examples of a user's problem: a ``JointModel``.

Examples lie in chunks that depend on their number alone. The most violated outputs of a chunk are
answered as a matrix with rows Ψ(x_i, z_i) − Ψ(x_i, y_i) and losses Δ(y_i, z_i); with
slack rescaling the rows are multiplied by the losses. Either way the loss of example i is

    offset_i + <row_i, w>,

and 0 for the truth. Answers of the last passes are kept: they give cuts without
inference, and show inference that is not exact, where an answer is below one known already.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exec import Executor
from ..oracles import Cut, Line, Point
from . import rows
from .crew import Crew, bounds
from .problem import (
    RESCALINGS,
    ROUNDING,
    SLACK,
    call,
    count_of,
    features_of,
    losses_of,
    take,
)

# Numbers that the cache may hold.
CACHE_NUMBERS = 1 << 26
# Examples whose predictions are held against the answers of inference in the end.
AUDITED = 200


@dataclass(frozen=True)
class Answers:
    """Outputs of the examples of a chunk: what they add to a plane.

    Attributes
    ----------
    rows : matrix, shape (examples, dimension)
    offsets : ndarray, shape (examples,)
    """

    rows: rows.Rows
    offsets: np.ndarray

    def values(self, w: np.ndarray) -> np.ndarray:
        """Loss of every example at w."""
        return self.offsets + rows.products(self.rows, w)


class Chunk:
    """Some examples, and the inference for them. Sent to other processes as it is."""

    def __init__(
        self, problem: Any, X: Sequence[Any], Y: Sequence[Any], first: int, rescaling: str
    ) -> None:
        self.problem = problem
        self.X, self.Y = X, Y
        self.first = first
        self.rescaling = rescaling
        self.truth: rows.Rows | None = None

    def answer(self, w: np.ndarray) -> Answers:
        """The most violated outputs at w."""
        w = w.view()
        w.flags.writeable = False
        outputs = call(self.problem, RESCALINGS[self.rescaling], self.first, (self.X, self.Y), w)
        return self.answers_of(outputs, len(w))

    def answers_of(self, outputs: Sequence[Any], dimension: int) -> Answers:
        """What these outputs add to a plane."""
        if self.truth is None:
            self.truth = features_of(self.problem, self.first, self.X, self.Y, dimension)
        offsets = losses_of(self.problem, self.first, self.Y, outputs)
        features = features_of(self.problem, self.first, self.X, outputs, dimension)
        difference = features - self.truth
        if self.rescaling == SLACK:
            difference = rows.scaled(difference, offsets)
        return Answers(difference, offsets)


class ProblemExamples:
    """All examples of a problem.

    Attributes
    ----------
    nonmaximal : int or None
        An example for which inference gave less than an output that was known; None so far.

    Parameters
    ----------
    problem : Problem
    X, Y : lists
    dimension : int
        Of the joint features.
    rescaling : {'margin', 'slack'}
    cache_size : int
        Passes whose answers are kept.
    """

    rows = 0
    outputs: int | None = None

    def __init__(
        self,
        problem: Any,
        X: Sequence[Any],
        Y: Sequence[Any],
        dimension: int,
        *,
        rescaling: str,
        cache_size: int,
    ) -> None:
        self.problem = problem
        self.dimension = dimension
        self._examples = count_of(X)
        self.chunks = [
            Chunk(problem, X[a:b], Y[a:b], a, rescaling)
            for a, b in bounds(problem, self._examples, rescaling)
        ]
        self.crew = Crew(self.chunks, problem, rescaling)
        self.nonmaximal: int | None = None
        self._cache_size = cache_size
        self._cache: deque[list[Answers]] = deque()
        self._identity = (problem, X, Y, rescaling)

    # -- who runs the inference -----------------------------------------------

    @property
    def numbers(self) -> int:
        """So many that threads are used wherever they can be."""
        return 1 << 40 if self.crew.threads else self.dimension

    def digest(self) -> bytes:
        """Identifies problem and data; never the same if they cannot be pickled."""
        import joblib

        try:
            return joblib.hash(self._identity).encode()
        except Exception:  # whatever pickling of the user's objects raises
            return os.urandom(16)

    # -- as the oracle sees it ------------------------------------------------

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(0), coef=np.zeros(self.dimension))

    def score(self, w: np.ndarray, scores: np.ndarray, executor: Executor) -> None:
        """Nothing: users' inference starts from w."""

    def infer(self, point: Point, executor: Executor) -> None:
        """A pass of inference. Where a known output is more violated it is taken instead."""
        answers = self.crew.call_each("answer", [(point.w,)] * len(self.chunks), executor)
        plane = np.zeros(self.dimension)
        offset = risk = 0.0
        for k, answer in enumerate(answers):
            known = [answer, *(kept[k] for kept in self._cache)]
            chosen = _chosen(known, point.w)
            found = answer.values(point.w)
            slack = ROUNDING * (
                1.0 + answer.offsets + rows.sizes(answer.rows) * np.linalg.norm(point.w)
            )
            below = found < chosen.values - slack
            if below.any() and self.nonmaximal is None:
                self.nonmaximal = self.chunks[k].first + int(np.argmax(below))
            plane += chosen.plane
            offset += chosen.offset
            risk += float(chosen.values.sum())
        point.coef[...] = plane / self._examples
        point.offset = offset / self._examples
        point.risk = risk / self._examples
        self._keep(answers)

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        way = line.end.w - line.start.w
        return lambda point: float(np.einsum("i,i->", point.coef, way))

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        return point.coef.copy()

    # -- the cache ------------------------------------------------------------

    def _keep(self, answers: list[Answers]) -> None:
        size = sum(rows.numbers(answer.rows) for answer in answers)
        most = min(self._cache_size, CACHE_NUMBERS // max(1, size))
        if most:
            self._cache.append(answers)
        while len(self._cache) > most:
            self._cache.popleft()

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """The highest cut at w from the kept answers."""
        if len(self._cache) < 2:  # a single pass is a cut that the bundle has
            return None
        plane = np.zeros(self.dimension)
        offset = 0.0
        for k in range(len(self.chunks)):
            chosen = _chosen([kept[k] for kept in self._cache], w)
            plane += chosen.plane
            offset += chosen.offset
        return Cut(plane / self._examples, offset / self._examples)

    def state(self) -> dict[str, Any]:
        """The cache, and whether inference was caught not being exact."""
        cache = [[(kept.rows, kept.offsets) for kept in answers] for answers in self._cache]
        return {"nonmaximal": self.nonmaximal, "cache": cache}

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        self.nonmaximal = state["nonmaximal"]
        self._cache = deque([Answers(*kept) for kept in answers] for answers in state["cache"])
        for answers in self._cache:
            if [kept.rows.shape for kept in answers] != [
                (count_of(chunk.X), self.dimension) for chunk in self.chunks
            ]:
                raise ValueError("kept outputs are of other examples")

    # -- in the end -----------------------------------------------------------

    def audit(self, w: np.ndarray) -> None:
        """Hold predictions for some examples against the inference there.

        A prediction is an output like any other: its loss must not exceed the maximum.
        """
        if self.nonmaximal is not None:
            return
        stride = -(-self._examples // AUDITED)
        for chunk in self.chunks:
            at = [i for i in range(count_of(chunk.X)) if (chunk.first + i) % stride == 0]
            if not at:
                continue
            X, Y = take(chunk.X, at), take(chunk.Y, at)
            some = Chunk(chunk.problem, X, Y, chunk.first, chunk.rescaling)
            found = some.answer(w)
            guess = some.answers_of(call(chunk.problem, "predict", chunk.first, (X,), w), len(w))
            slack = ROUNDING * (1.0 + found.offsets + rows.sizes(found.rows) * np.linalg.norm(w))
            below = found.values(w) < np.maximum(guess.values(w), 0.0) - slack
            if below.any():
                self.nonmaximal = chunk.first + at[int(np.argmax(below))]
                return


@dataclass(frozen=True)
class _Chosen:
    """The most violated of several outputs per example of a chunk, the truth among them."""

    values: np.ndarray
    plane: np.ndarray
    offset: float


def _chosen(known: Sequence[Answers], w: np.ndarray) -> _Chosen:
    values = np.stack([np.zeros(len(known[0].offsets)), *(a.values(w) for a in known)])
    # The first of equal ones, but rather any of them than the truth: its cut is steeper.
    best = values[1:].argmax(axis=0)
    best[values.max(axis=0) > values[1:].max(axis=0)] = -1
    plane = np.zeros(len(w))
    offset = 0.0
    for number, answers in enumerate(known):
        mine = best == number
        if mine.any():
            plane += rows.total(answers.rows, mine)
            offset += float(answers.offsets[mine].sum())
    return _Chosen(values.max(axis=0), plane, offset)
