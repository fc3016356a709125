"""The oracle that looks at a sample of all rows (Yu & Joachims 2008, Algorithm 2).

A cut is that of r rows drawn from all, a loss or not: r² kernel values, however many rows there
are. The risk is known on samples only.
"""

from __future__ import annotations

import numpy as np

from ..exec import Executor, SerialExecutor
from ..kernels import KernelMatrix
from ..risks import Risk, Targets
from .point import Cut, Line, Point
from .row_surface import RowSurface
from .sampled import SpanOracle, product
from .span import Expansion


class ConstantOracle(SpanOracle):
    """Cuts of a sample of all rows; nothing is known of the others.

    An evaluation draws a sample; the cut at the point is that of the same sample.

    Parameters
    ----------
    matrix, executor, rng
        As for every oracle here.
    targets : Targets
    risk : Risk
    size : int
        Rows of a sample, r.
    """

    def __init__(
        self,
        matrix: KernelMatrix,
        targets: Targets,
        risk: Risk,
        executor: Executor,
        rng: np.random.Generator,
        *,
        size: int,
    ) -> None:
        super().__init__(matrix, executor, rng)
        self.matrix = matrix
        self._targets = targets
        self.risk = risk
        self._rows = np.flatnonzero(targets.weights)
        self._size = min(size, len(self._rows))
        self._resample()
        self._heights = np.zeros((0, self._size))

    def _resample(self) -> None:
        self._sample = rows = self.draw(self._rows, self._size)
        # The sample stands for all rows; with equal weights this is the mean over the sample.
        total = self._targets.total * (len(rows) / len(self._rows))
        targets = Targets(self._targets.labels[rows], self._targets.weights[rows], total)
        self._surface = RowSurface(targets, self.risk, SerialExecutor())

    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""
        return self._surface.new_point(np.zeros(self.dimension))

    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w and estimate the risk there on a new sample."""
        self._resample()
        into.w = w
        self._heights = self._vectors_at(self._sample)
        into.scores[...] = np.einsum("k,k...->...", self.span.factors(w), self._heights)
        self._surface.settle(into)

    def _vectors_at(self, rows: np.ndarray) -> np.ndarray:
        """Scores of some rows under every vector: shape (vectors, rows) or (..., outputs)."""
        expansions = self.span.expansions
        tail = () if self.risk.outputs is None else (self.risk.outputs,)
        if not expansions:
            return np.zeros((0, len(rows), *tail))
        terms = np.concatenate([e.rows for e in expansions])
        coef = np.concatenate([e.coef for e in expansions])
        vector = np.repeat(np.arange(len(expansions)), [len(e.rows) for e in expansions])
        self.kernel_values += len(terms) * len(rows)
        return self.matrix.restricted(rows).grouped(terms, coef, vector, len(expansions))

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """At the end: nothing is known between points of different samples."""
        assert k == 1.0
        into.copy(end)

    def descend(self, line: Line) -> float:
        """Not called: nothing is known along a line, so that the step is the plain one."""
        raise AssertionError("the constant-time method takes the plain step")

    def cut(self, start: Point, end: Point | None = None, k: float = 0.0) -> Cut:
        """The cut at the point evaluated last, of its sample: r² kernel values."""
        coef, offset = self._surface.coefficients(start)
        total = self._surface.total
        lossy = np.flatnonzero(coef if coef.ndim == 1 else np.any(coef != 0.0, axis=1))
        if len(lossy) == 0:
            return Cut(np.zeros(self.dimension), 0.0)
        expansion = Expansion(self._sample[lossy], coef[lossy] / total)
        own = self.matrix.restricted(expansion.rows).combine(expansion.rows, expansion.coef)
        self.kernel_values += len(lossy) ** 2
        products = np.array([product(expansion.coef, h[lossy]) for h in self._heights])
        squared = product(expansion.coef, own)
        return Cut(self.span.add(expansion, products, squared), offset / total)

    def rebase(self, vectors: np.ndarray, point: Point, capacity: int) -> np.ndarray:
        """Forget all vectors but these, in whose span the point lies.

        Returns
        -------
        coordinates : ndarray, shape (vectors, capacity so far)
            Of the vectors that are left.
        """
        old = self.span
        coordinates = old.coordinates(vectors)
        self.span = old.kept(coordinates, [old.expansions[k] for k in vectors], capacity)
        return coordinates
