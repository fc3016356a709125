"""A user's problem with linear scores: a ``JointModel``.

The outputs of a pass of inference have rows and offsets, and the loss of example i is

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

from ..data.sums import Node, add_nodes
from ..exec import Executor
from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as UNIT
from ..objective import Cut, Line, Point
from .chunks import ChunksHere, Holders, plan_for
from .examples import Examples
from .kept import Share

# Numbers that the cache may hold.
CACHE_NUMBERS = 1 << 26


class LinearExamples:
    """All examples of a problem, where w is a vector.

    Attributes
    ----------
    dimension : int
        Of w.
    crew : Workers or None
        The workers that run the inference.

    Parameters
    ----------
    examples : Examples
    cache_size : int
        Passes whose answers are kept.
    """

    def __init__(self, examples: Examples, cache_size: int) -> None:
        self.examples = examples
        self.dimension = examples.dimension
        self.count = examples.count
        self.crew: Any = None
        self._chunks = examples.inference.chunks
        self._cache_size = cache_size
        self._kept = 0
        self._holders: Holders = ChunksHere(examples.inference)

    @property
    def numbers(self) -> int:
        """So many that threads are used wherever they can be."""
        return 1 << 40 if self.examples.threads else self.dimension

    def send(self, crew: Any, holders: Holders) -> None:
        """Have the workers of a cluster, who hold the chunks, run the inference."""
        self._holders = holders
        self.crew = crew

    def digest(self) -> bytes:
        """Identifies problem and data; never the same if they cannot be pickled."""
        import joblib

        try:
            return joblib.hash(self.examples.identity).encode()
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
        for share in shares:
            self.examples.note(share.below)
        point.coef[...] = self._plane(shares) / self.count
        point.offset = _sum([share.offsets for share in shares]) / self.count
        point.risk = _sum([share.risks for share in shares]) / self.count
        point.error = _sum([share.errors for share in shares]) / self.count
        size = sum(share.n_stored for share in shares)
        self._kept = min(self._kept + keep, self._cache_size, CACHE_NUMBERS // max(1, size))

    def upper(self, point: Point, executor: Executor) -> float:
        """From what the inference there has said."""
        return (point.risk + point.error) * (1.0 + (MANY + self.count) * UNIT)

    def _plane(self, shares: Sequence[Share]) -> np.ndarray:
        planes = [plane for share in shares for plane in share.planes]
        return add_nodes(dict(zip(self._nodes(shares), planes, strict=True)), len(self._chunks))

    def _nodes(self, shares: Sequence[Share]) -> list[Node]:
        """Which chunks the sums of everybody are over."""
        last = itertools.accumulate(len(share.offsets) for share in shares)
        edges = itertools.pairwise([0, *last])
        return [node for a, b in edges for node in plan_for(len(self._chunks), a, b).nodes]

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
        return Cut(self._plane(shares) / self.count, offset / self.count)

    def state(self) -> dict[str, Any]:
        """The cache, and whether inference was caught not being exact."""
        return {
            "nonmaximal": self.examples.nonmaximal,
            "cache": self._holders.state(self._kept),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        cache = [[(matrix, offsets) for matrix, offsets in kept] for kept in state["cache"]]
        expected = [(len(chunk), self.dimension) for chunk in self._chunks]
        if any([matrix.shape for matrix, _ in kept] != expected for kept in cache):
            raise ValueError("kept outputs are of other examples")
        for matrix, offsets in itertools.chain(*cache):
            for numbers in (matrix.data if scipy.sparse.issparse(matrix) else matrix, offsets):
                if numbers.dtype != np.float64 or not np.isfinite(numbers).all():
                    raise ValueError("kept outputs are not finite numbers")
            if offsets.shape != matrix.shape[:1]:
                raise ValueError("kept outputs do not have a loss each")
        self.examples.nonmaximal = state["nonmaximal"]
        self._holders.restore(cache)
        self._kept = len(cache)


def _sum(parts: Sequence[Sequence[float]]) -> float:
    """The sum over chunks, in their order."""
    return sum(itertools.chain(*parts))
