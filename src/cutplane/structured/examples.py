"""All training examples of a user's problem: a ``JointModel``.

Examples lie in chunks that depend on their number alone. The most violated outputs of a chunk are
answered as a matrix with rows Ψ(x_i, z_i) − Ψ(x_i, y_i) and losses Δ(y_i, z_i); with
slack rescaling the rows are multiplied by the losses. Either way the loss of example i is

    offset_i + <row_i, w>,

and 0 for the truth. Answers of the last passes are kept: they give cuts without
inference, and show inference that is not exact, where an answer is below one known already.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ..data.parts import Node, add_nodes
from ..exec import Executor
from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as UNIT
from ..oracles import Cut, Line, Point
from . import rows
from .chunks import Chunk, ChunksHere, Holders, plan_for
from .inference import Inference, bounds, runs_in_threads
from .kept import Share
from .problem import ROUNDING, call, count_of, take

# Numbers that the cache may hold.
CACHE_NUMBERS = 1 << 26
# Examples whose predictions are held against the answers of inference in the end.
AUDITED = 200


class ProblemExamples:
    """All examples of a problem.

    Attributes
    ----------
    nonmaximal : int or None
        An example for which inference gave less than an output that was known; None so far.
    threads : bool
        Whether threads can run the inference.
    crew : Workers or None
        The workers that run it.

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
        self.nonmaximal: int | None = None
        self.threads = runs_in_threads(problem, rescaling)
        self.crew: Any = None
        self._cache_size = cache_size
        self._kept = 0
        self._identity = (problem, X, Y, rescaling)
        self._here = ChunksHere(self.chunks, self.threads)
        self._holders: Holders = self._here

    # -- who runs the inference -----------------------------------------------

    @property
    def numbers(self) -> int:
        """So many that threads are used wherever they can be."""
        return 1 << 40 if self.threads else self.dimension

    @property
    def inference(self) -> Inference:
        """Who runs it, if it is not the workers of a cluster."""
        return self._here.inference

    def send(self, crew: Any, holders: Holders) -> None:
        """Have the workers of a cluster, who hold the chunks, run the inference."""
        self._holders = holders
        self.crew = crew

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
        keep = self._cache_size > 0
        shares = self._holders.infer(point.w, self._kept, keep, executor)
        if self.nonmaximal is None:
            below = [share.below for share in shares if share.below is not None]
            self.nonmaximal = below[0] if below else None
        point.coef[...] = self._plane(shares) / self._examples
        point.offset = _sum([share.offsets for share in shares]) / self._examples
        point.risk = _sum([share.risks for share in shares]) / self._examples
        point.error = _sum([share.errors for share in shares]) / self._examples
        size = sum(share.numbers for share in shares)
        self._kept = min(self._kept + keep, self._cache_size, CACHE_NUMBERS // max(1, size))

    def upper(self, point: Point, executor: Executor) -> float:
        """From what the inference there has said."""
        return (point.risk + point.error) * (1.0 + (MANY + self._examples) * UNIT)

    def _plane(self, shares: Sequence[Share]) -> np.ndarray:
        planes = [plane for share in shares for plane in share.planes]
        return add_nodes(dict(zip(self._nodes(shares), planes, strict=True)), len(self.chunks))

    def _nodes(self, shares: Sequence[Share]) -> list[Node]:
        """Which chunks the sums of everybody are over."""
        last = itertools.accumulate(len(share.offsets) for share in shares)
        edges = itertools.pairwise([0, *last])
        return [node for a, b in edges for node in plan_for(len(self.chunks), a, b).nodes]

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        way = line.end.w - line.start.w
        return lambda point: float(np.einsum("i,i->", point.coef, way))

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        return point.coef.copy()

    # -- the cache ------------------------------------------------------------

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """The highest cut at w from the kept answers."""
        if self._kept < 2:  # a single pass is a cut that the bundle has
            return None
        shares = self._holders.cut(w, self._kept)
        offset = _sum([share.offsets for share in shares])
        return Cut(self._plane(shares) / self._examples, offset / self._examples)

    def state(self) -> dict[str, Any]:
        """The cache, and whether inference was caught not being exact."""
        return {"nonmaximal": self.nonmaximal, "cache": self._holders.state(self._kept)}

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        cache = [[(matrix, offsets) for matrix, offsets in kept] for kept in state["cache"]]
        expected = [(len(chunk), self.dimension) for chunk in self.chunks]
        if any([matrix.shape for matrix, _ in kept] != expected for kept in cache):
            raise ValueError("kept outputs are of other examples")
        for matrix, offsets in itertools.chain(*cache):
            for numbers in (matrix.data if scipy.sparse.issparse(matrix) else matrix, offsets):
                if numbers.dtype != np.float64 or not np.isfinite(numbers).all():
                    raise ValueError("kept outputs are not finite numbers")
            if offsets.shape != matrix.shape[:1]:
                raise ValueError("kept outputs do not have a loss each")
        self.nonmaximal = state["nonmaximal"]
        self._holders.restore(cache)
        self._kept = len(cache)

    # -- in the end -----------------------------------------------------------

    def audit(self, w: np.ndarray) -> None:
        """Hold predictions for some examples against the inference there.

        A prediction is an output like any other: its loss must not exceed the maximum.
        """
        if self.nonmaximal is not None:
            return
        stride = -(-self._examples // AUDITED)
        for chunk in self.chunks:
            at = [i for i in range(len(chunk)) if (chunk.first + i) % stride == 0]
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


def _sum(parts: Sequence[Sequence[float]]) -> float:
    """The sum over chunks, in their order."""
    return sum(itertools.chain(*parts))
