"""The oracle that looks at a sample of all examples (Yu & Joachims 2008, Algorithm 2).

A cut is that of r examples drawn from all, a loss or not: some r² kernel values, however many
examples there are. The risk is known on samples only.

What an example is, a row or an input with an output of many parts, the ``Population`` knows. It
gives a ``MatrixSample`` of examples, which evaluates points and makes cuts; the oracle draws, and
keeps the span of the cuts.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..exec import Executor, SerialExecutor
from ..kernels import KernelMatrix
from ..risks import Risk, Targets
from .cut_basis import CutBasis, Expansion
from .point import Cut, Line, Point
from .sampled import CutBasisOracle, product
from .score_risk import RowScoreRisk, ScoreRisk


class Population(Protocol):
    """What samples are drawn from."""

    @property
    def examples(self) -> np.ndarray:
        """Numbers of the examples that count."""
        ...

    @property
    def values(self) -> KernelMatrix:
        """The kernel's values that expansions are about."""
        ...

    def sample(self, which: np.ndarray) -> MatrixSample:
        """These examples."""
        ...


class ConstantOracle(CutBasisOracle):
    """Cuts of a sample of all examples; nothing is known of the others.

    An evaluation draws a sample; the cut at the point is that of the same sample.

    Parameters
    ----------
    population : Population
    executor, rng
        As for every oracle here.
    size : int
        Examples of a sample, r.
    """

    def __init__(
        self, population: Population, executor: Executor, rng: np.random.Generator, *, size: int
    ) -> None:
        super().__init__(population.values, executor, rng)
        self.population = population
        self._size = size
        self.sample: MatrixSample | None = None  # the one drawn last
        self._before = 0  # kernel values of earlier samples

    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""
        return Point(np.zeros(self.dimension), np.empty(0))

    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w and estimate the risk there on a new sample."""
        self._before = self.kernel_values
        self.sample = self.population.sample(self.draw(self.population.examples, self._size))
        into.take(self.sample.evaluate(self.cut_basis, w))
        self.kernel_values = self._before + self.sample.kernel_values

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """At the end: nothing is known between points of different samples."""
        assert k == 1.0
        # Evaluations make new arrays, so these may be shared.
        into.w, into.scores, into.coef = end.w, end.scores, end.coef
        into.bias, into.risk, into.offset = end.bias, end.risk, end.offset

    def descend(self, line: Line) -> float:
        """Not called: nothing is known along a line, so that the step is the plain one."""
        raise AssertionError("the constant-time method takes the plain step")

    def cut(self, start: Point, end: Point | None = None, k: float = 0.0) -> Cut:
        """The cut at the point evaluated last, of its sample."""
        assert self.sample is not None
        cut = self.sample.cut(start)
        self.kernel_values = self._before + self.sample.kernel_values
        return cut

    def rebase(self, vectors: np.ndarray, point: Point, capacity: int) -> np.ndarray:
        """Forget all vectors but these, in whose span the point lies.

        Returns
        -------
        coordinates : ndarray, shape (vectors, capacity so far)
            Of the vectors that are left.
        """
        old = self.cut_basis
        self.cut_basis = old.kept(vectors, capacity)
        return old.coordinates(vectors)


class MatrixSample:
    """Examples whose risk is a function of the scores of some rows of a kernel matrix.

    Attributes
    ----------
    rows : ndarray of int64
        Those rows.

    Parameters
    ----------
    matrix : KernelMatrix
        Of all rows.
    rows
        The same.
    score_risk : ScoreRisk
        The mean risk of the examples, over the scores of these rows.
    """

    def __init__(self, matrix: KernelMatrix, rows: np.ndarray, score_risk: ScoreRisk) -> None:
        self.rows = rows
        self._matrix = matrix
        self._score_risk = score_risk
        self._cut_basis: CutBasis | None = None
        self._heights: np.ndarray | None = None  # of every vector at the rows
        self.kernel_values = 0

    def evaluate(self, cut_basis: CutBasis, w: np.ndarray) -> Point:
        """The point w of a span: a kernel value for every row and every row of the expansion."""
        self._cut_basis = cut_basis
        point = self._score_risk.new_point(w)
        if point.scores.ndim == 1 and not self._many(cut_basis):
            self._heights = self._vectors(cut_basis)
            point.scores[...] = np.einsum("k,ki->i", cut_basis.factors(w), self._heights)
        else:
            expansion = cut_basis.expand(w)
            if len(expansion.rows):
                at = self._at(self.rows, expansion.rows)
                point.scores[...] = at.combine(expansion.rows, expansion.coef)
        self._score_risk.evaluate(point)
        return point

    def _vectors(self, cut_basis: CutBasis) -> np.ndarray:
        """Scores of the rows under every vector: the cut's products with these come for free."""
        vectors = cut_basis.expansions
        if not vectors:
            return np.zeros((0, len(self.rows)))
        terms = np.concatenate([e.rows for e in vectors])
        coef = np.concatenate([e.coef for e in vectors])
        groups = np.repeat(np.arange(len(vectors)), [len(e.rows) for e in vectors])
        return self._at(self.rows, terms).grouped(terms, coef, groups, len(vectors))

    def _many(self, cut_basis: CutBasis) -> bool:
        """Whether the vectors have so many terms that finding those of the same row pays."""
        return sum(len(e.rows) for e in cut_basis.expansions) > self._matrix.columns

    def _at(self, rows: np.ndarray, terms: np.ndarray) -> KernelMatrix:
        """The matrix at some rows; its values for the terms are counted."""
        matrix = self._matrix.restricted(rows)
        self.kernel_values += matrix.values_of(terms)
        return matrix

    def cut(self, point: Point) -> Cut:
        """The cut at the point that was evaluated; its vector becomes one of the span."""
        cut_basis, total = self._cut_basis, self._score_risk.total
        assert cut_basis is not None
        coef, offset = self._score_risk.coefficients(point)
        lossy = np.flatnonzero(coef if coef.ndim == 1 else np.any(coef != 0.0, axis=1))
        if len(lossy) == 0:
            return Cut(np.zeros(cut_basis.capacity), 0.0)
        own = Expansion(self.rows[lossy], coef[lossy] / total)
        if self._heights is None:
            products, squared = self._products(own, cut_basis)
        else:
            products = np.array([product(own.coef, h[lossy]) for h in self._heights])
            at = self._at(own.rows, own.rows)
            squared = product(own.coef, at.combine(own.rows, own.coef))
        return Cut(cut_basis.add(own, products, squared), offset / total)

    def _products(self, own: Expansion, cut_basis: CutBasis) -> tuple[np.ndarray, float]:
        """Products of a vector with those of a span and with itself, from its values there."""
        every = [own, *cut_basis.expansions]
        rows = np.concatenate([e.rows for e in every])
        place = np.arange(len(rows))
        if self._many(cut_basis):
            rows, place = np.unique(rows, return_inverse=True)
        heights = self._at(rows, own.rows).combine(own.rows, own.coef)
        ends = np.cumsum([len(e.rows) for e in every])[:-1]
        squared, *products = (
            product(e.coef, heights[k]) for e, k in zip(every, np.split(place, ends), strict=True)
        )
        return np.array(products), squared


class RowPopulation:
    """Rows, with a sum of losses over them.

    Attributes
    ----------
    examples : ndarray
        Rows with a weight.
    values : KernelMatrix

    Parameters
    ----------
    matrix : KernelMatrix
        Of all rows.
    targets : Targets
    risk : Risk
    """

    def __init__(self, matrix: KernelMatrix, targets: Targets, risk: Risk) -> None:
        self.values = matrix
        self.examples = np.flatnonzero(targets.weights)
        self._targets = targets
        self._risk = risk

    def sample(self, which: np.ndarray) -> MatrixSample:
        """These rows."""
        # They stand for all; with equal weights the risk is their mean.
        total = self._targets.total * (len(which) / len(self.examples))
        targets = Targets(self._targets.labels[which], self._targets.weights[which], total)
        return MatrixSample(self.values, which, RowScoreRisk(targets, self._risk, SerialExecutor()))
