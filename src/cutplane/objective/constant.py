"""The oracle of the constant-time method, which samples examples (Yu & Joachims 2008, Algorithm 2).

Each evaluation draws r of all examples, with or without a loss, and the cut is the cut of the mean
risk of these r examples. This takes about r² kernel values, however many examples there are. The
risk is known only on samples.

A ``Population`` knows what an example is: a row, or an input with an output of many parts. It
returns a ``MatrixSample`` of given examples, which evaluates points and makes cuts. The oracle
draws the examples and keeps the basis of the cuts.
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
    """The examples from which the oracle draws."""

    @property
    def examples(self) -> np.ndarray:
        """Numbers of the examples that may be drawn."""
        ...

    @property
    def values(self) -> KernelMatrix:
        """The kernel matrix whose rows the expansions combine."""
        ...

    def sample(self, which: np.ndarray) -> MatrixSample:
        """These examples."""
        ...


class ConstantOracle(CutBasisOracle):
    """Cuts of samples of the examples.

    An evaluation draws a sample. The cut at the evaluated point is the cut of the same sample.

    Parameters
    ----------
    population : Population
    executor, rng
        As for ``CutBasisOracle``.
    size : int
        Examples per sample, r.
    """

    def __init__(
        self, population: Population, executor: Executor, rng: np.random.Generator, *, size: int
    ) -> None:
        super().__init__(population.values, executor, rng)
        self.population = population
        self._size = size
        self.sample: MatrixSample | None = None  # drawn by the last evaluation
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
        """Move ``into`` to the end of the line, k = 1.

        Start and end have different samples, so scores between them are not known.
        """
        assert k == 1.0
        # Evaluations make new arrays, so two points may share them.
        into.w, into.scores, into.coef = end.w, end.scores, end.coef
        into.bias, into.risk, into.offset = end.bias, end.risk, end.offset

    def descend(self, line: Line) -> float:
        """Never called: risks along a line are not known, so the solver takes the plain step."""
        raise AssertionError("the constant-time method takes the plain step")

    def cut(self, start: Point, end: Point | None = None, k: float = 0.0) -> Cut:
        """The cut at the point of the last evaluation, of the same sample."""
        assert self.sample is not None
        cut = self.sample.cut(start)
        self.kernel_values = self._before + self.sample.kernel_values
        return cut

    def rebase(self, vectors: np.ndarray, point: Point, capacity: int) -> np.ndarray:
        """Keep only these vectors of the basis. The point must be a combination of them.

        Returns
        -------
        coordinates : ndarray, shape (vectors, capacity so far)
            Coordinates of the kept vectors in the old basis.
        """
        old = self.cut_basis
        self.cut_basis = old.kept(vectors, capacity)
        return old.coordinates(vectors)


class MatrixSample:
    """Examples whose risk is a function of the scores of some rows of a kernel matrix.

    Attributes
    ----------
    rows : ndarray of int64
        Numbers of these rows.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix of all rows.
    rows
        See the attribute.
    score_risk : ScoreRisk
        The mean risk of the examples, as a function of the scores of these rows.
    """

    def __init__(self, matrix: KernelMatrix, rows: np.ndarray, score_risk: ScoreRisk) -> None:
        self.rows = rows
        self._matrix = matrix
        self._score_risk = score_risk
        self._cut_basis: CutBasis | None = None
        self._heights: np.ndarray | None = None  # scores of the rows under every vector
        self.kernel_values = 0

    def evaluate(self, cut_basis: CutBasis, w: np.ndarray) -> Point:
        """Evaluate the point with coordinates w in the basis.

        This takes a kernel value for every row of the sample and every row of the expansion.
        """
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
        """Scores of the rows under every vector.

        From these scores ``cut`` gets the products of the new cut with all vectors.
        """
        vectors = cut_basis.expansions
        if not vectors:
            return np.zeros((0, len(self.rows)))
        terms = np.concatenate([e.rows for e in vectors])
        coef = np.concatenate([e.coef for e in vectors])
        groups = np.repeat(np.arange(len(vectors)), [len(e.rows) for e in vectors])
        return self._at(self.rows, terms).grouped(terms, coef, groups, len(vectors))

    def _many(self, cut_basis: CutBasis) -> bool:
        """Whether the vectors have more terms than there are rows.

        Then many terms belong to the same row, and joining them saves kernel values.
        """
        return sum(len(e.rows) for e in cut_basis.expansions) > self._matrix.columns

    def _at(self, rows: np.ndarray, terms: np.ndarray) -> KernelMatrix:
        """The matrix at some rows. Counts the kernel values that the terms need."""
        matrix = self._matrix.restricted(rows)
        self.kernel_values += matrix.values_of(terms)
        return matrix

    def cut(self, point: Point) -> Cut:
        """The cut at the evaluated point. Its vector is added to the basis."""
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
        """Products of a vector with all vectors of the basis, and with itself."""
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
        The kernel matrix of all rows.
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
        # The total scales the sample to all rows. With equal weights the risk is the sample's mean.
        total = self._targets.total * (len(which) / len(self.examples))
        targets = Targets(self._targets.labels[which], self._targets.weights[which], total)
        return MatrixSample(self.values, which, RowScoreRisk(targets, self._risk, SerialExecutor()))
