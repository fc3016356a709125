"""Oracles for kernels: cuts from samples (Yu & Joachims 2008, Algorithms 1 to 3).

With a kernel the vector of a cut is an expansion over all rows with a loss, and its products
with the other cuts take as many kernel values as there are pairs of rows. So it is taken from a
sample:

    exact          all rows I with a loss                      (Algorithm 1)
    linear time    r rows drawn from I, times |I|/r            (Algorithm 3)
    constant time  r rows drawn from all, a loss or not         (Algorithm 2)

The first two know the scores of all rows: they keep those of every cut, which is r·N kernel
values per cut and N numbers. Then the value of the risk, the minimum on a line and the choice of
the next cut's rows cost no kernel value at all. The third one knows nothing of the rows that it
did not draw, and does not become slower with their number.

Rows are drawn without replacement, so that a sample of all of I is the exact cut.

A sampled cut lies below the risk on average only: c + <g̃, v> with c exact and g̃ a mean over the
sample. But the scores that are kept give the products of the exact vector g with all earlier ones,
so the part of g in their span, Pg, costs no kernel value. A *centred* cut takes Pg + (I − P)g̃: the
mean is the same, and what is left of the error is <g̃ − g, v − Pv>. In the span, where w_c lies,
the cut is the exact one, and touches the risk at w_c. When the span is built anew, of fewer
vectors, parts of Pg would be lost; the cut then becomes R(w_c) + <g̃, v − w_c>, with an error that
grows with |v − w_c|.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ..exec import Executor
from ..kernels import SUM_ROWS, KernelMatrix
from ..loops.bounded import MANY, ROUNDING, precise_scores
from ..loops.cut_basis import ascend
from .cut_basis import CutBasis, Expansion, ScoreTable, combined
from .point import Cut, Point, Proof, squared_norm
from .score_risk import RowScoreRisk, ScoreRisk

CAPACITY = 128
# What is left of a vector that depends on others, relative to its square, is rounding.
DEPENDENT = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-13}
# Samples drawn for one cut, at most, before one that is not violated is taken all the same.
MOST_SAMPLES = 20
# Steps per row that the solution on a first sample may take: at large C it is left earlier.
START_STEPS = 30


@dataclass(frozen=True)
class Level:
    """What a sampled cut must rise above, if the exact one does (Algorithm 3, line 20).

    Attributes
    ----------
    scores : ndarray
        Of the reduced problem's solution.
    risk : float
        Its risk in the reduced problem plus ε.
    """

    scores: np.ndarray
    risk: float


class CutBasisOracle(ABC):
    """What the oracles here have in common: points are coordinates in the span of the cuts.

    Attributes
    ----------
    cut_basis : CutBasis
    kernel_values : int
        How many were computed.
    idle_vectors : int
        Vectors of dropped cuts, at most: beyond that it is worth building the span anew.
    exact : bool
        Whether all cuts so far are those of all rows.
    definite : bool
        Whether the kernel is known to be positive semidefinite.

    Parameters
    ----------
    matrix : KernelMatrix
        Of all rows.
    executor : Executor
    rng : numpy Generator
    """

    idle_vectors = 4
    definite = True

    def __init__(self, matrix: KernelMatrix, executor: Executor, rng: np.random.Generator) -> None:
        self.matrix = matrix
        self.executor = executor
        self.rng = rng
        self.cut_basis = CutBasis(CAPACITY, DEPENDENT[matrix.dtype], matrix)
        self.kernel_values = 0
        self.exact = True

    @property
    def dimension(self) -> int:
        """Length of the coordinate vectors."""
        return self.cut_basis.capacity

    @property
    def rows(self) -> int:
        """Rows that expansions are made of."""
        return self.matrix.columns

    def regularised(self, w: np.ndarray) -> np.ndarray:
        """All of w."""
        return w

    def slack(self, primal: float, C: float) -> float:
        """None: ``CutBasis.errors`` has been taken off the bounds, as far as it matters to each."""
        return 0.0

    def refresh(self, point: Point) -> None:  # noqa: B027 (for none of them)
        """Nothing to do: ``prove`` computes what it reports anew."""

    def forget_cuts(self) -> None:  # noqa: B027 (for none of them)
        """Nothing to do: no cut builds on an earlier one."""

    def offsets(self, offsets: np.ndarray) -> np.ndarray:
        """Offsets of cuts with the vectors of the span, in their order, from those they had."""
        return offsets

    @abstractmethod
    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""

    @abstractmethod
    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w."""

    def prove(self, w: np.ndarray, into: Point, tolerance: float) -> Proof:
        """Move ``into`` to w. What rounding does to kernel values and scores is not bounded."""
        self.evaluate(w, into)
        return Proof(into.risk * (1.0 + MANY * ROUNDING), squared_norm(w))

    def draw(self, among: np.ndarray, size: int | None) -> np.ndarray:
        """So many of these, each once, in order; all of them if there are no more."""
        if size is None or size >= len(among):
            return among
        self.exact = False
        return among[np.sort(self.rng.choice(len(among), size, replace=False, shuffle=False))]


class ScoreRiskOracle(CutBasisOracle):
    """Cuts of all rows, or of a sample of those with a loss; scores of all rows are known.

    Parameters
    ----------
    matrix, executor, rng
        As for every oracle here.
    score_risk : ScoreRisk
        The risk, of scores with a row per row of the matrix.
    size : int or None
        Rows of a sample, r; None for exact cuts.
    centred : bool
        Whether sampled cuts are exact in the span of the earlier ones.
    free : int, optional
        Rows from this one on cost no kernel value: no sample leaves them out.
    pool : ndarray of bool, optional
        Rows that samples are drawn from, which bounds the rows of a model; by default all. A row
        outside counts in the risk and in the part of a cut that is exact, as every row does.
    """

    idle_vectors = 64  # the scores of all rows must be moved; and the span is where cuts are exact

    def __init__(
        self,
        matrix: KernelMatrix,
        score_risk: ScoreRisk,
        executor: Executor,
        rng: np.random.Generator,
        *,
        size: int | None,
        centred: bool,
        free: int | None = None,
        pool: np.ndarray | None = None,
    ) -> None:
        super().__init__(matrix, executor, rng)
        self._pool = pool
        self.score_risk = score_risk
        self._size = size
        self._centred = centred
        self._free = matrix.columns if free is None else free
        self.samples = size is not None and size < self._free  # whether cuts may be sampled
        self._offsets: dict[int, float] = {}  # of sampled vectors that touch the risk
        self.blend, self.descend = score_risk.blend, score_risk.descend
        # Scores of free rows are numbers of the model itself, which are not rounded.
        dtype = matrix.dtype if free is None else np.dtype(np.float64)
        self.table = ScoreTable(score_risk.slices, score_risk.outputs, dtype)

    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""
        return self.score_risk.new_point(np.zeros(self.dimension))

    def offsets(self, offsets: np.ndarray) -> np.ndarray:
        """Those that make the cuts touch the risk where they did."""
        return np.array([self._offsets.get(k, offset) for k, offset in enumerate(offsets)])

    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w, from the scores of the cuts."""
        into.w = w
        factors = self.cut_basis.factors(w)
        score_risk = self.score_risk
        score_risk.runner.run(
            lambda k: self.table.combine(k, factors, into.scores), len(score_risk.slices)
        )
        score_risk.evaluate(into)

    def prove(self, w: np.ndarray, into: Point, tolerance: float) -> Proof:
        """Move ``into`` to w, from kernel values of its own unless cuts are sampled.

        Those are as many as for one exact cut. With samples they would be as many as for all cuts
        together, and the lower bound is an estimate anyway. Scores are taken to be off by as much
        as rounding can make them.
        """
        if not self.exact:
            return super().prove(w, into, tolerance)
        expansion = self.cut_basis.expand(w)
        scores, errors = np.zeros((2, *into.scores.shape))
        if len(expansion.rows):
            scores, errors = self._bounded(expansion)
        into.w = w
        into.scores[...] = scores
        self.score_risk.evaluate(into)
        risk = self.score_risk.upper(into, None, errors)
        return Proof(risk, self._square(expansion, scores, errors) if len(expansion.rows) else 0.0)

    def proved_square(self, expansions: list[Expansion], weights: np.ndarray) -> float:
        """At least |Σ_k weights[k]·expansion_k|², from kernel values of its own.

        The coefficients c of the sum are off by δ, |δ| ≤ u·(count + 2)·Σ_k |weights[k]·coef_k|, so
        the square may be above cᵀKc by 2|δ|ᵀ|Kc| + |δᵀKδ|.
        """
        expansion = combined(expansions, weights)
        if not len(expansion.rows):
            return 0.0
        scores, errors = self._bounded(expansion)
        every = combined([Expansion(e.rows, np.abs(e.coef)) for e in expansions], np.abs(weights))
        delta = (len(weights) + MANY) * ROUNDING * every.coef
        root = np.sqrt(np.abs(self.matrix.diagonal[every.rows]))
        own = np.abs(scores[every.rows]) + errors[every.rows]
        lost = 2.0 * product(delta, own) + float(np.sum((root @ delta) ** 2))
        return (self._square(expansion, scores, errors) + lost) * (1.0 + MANY * ROUNDING)

    def _square(self, expansion: Expansion, scores: np.ndarray, errors: np.ndarray) -> float:
        """At least the square of an expansion whose scores are so far off."""
        own, sizes = scores[expansion.rows], np.abs(expansion.coef)
        squared = max(0.0, product(expansion.coef, own)) + product(sizes, errors[expansion.rows])
        squared += (sizes.size + MANY) * ROUNDING * product(sizes, np.abs(own))
        return squared * (1.0 + MANY * ROUNDING)

    def _bounded(self, expansion: Expansion) -> tuple[np.ndarray, np.ndarray]:
        """Scores of an expansion, and how far each may be off.

        Stored values are summed in twice the digits. Of others |K| is summed as well, so that
        errors of the sum are relative to that, and those of the values if they are relative. Else
        |K_il| is at most √(K_ii·K_ll). Free rows' scores are numbers of the model, without errors.
        """
        matrix, rows, sizes = self.matrix, expansion.rows, np.abs(expansion.coef)
        self.kernel_values += matrix.values_of(rows)
        if matrix.values is not None and matrix.dtype == np.float64:
            shape = (matrix.columns, *sizes.shape[1:])
            coef = expansion.coef.reshape(len(rows), -1)
            outs = np.zeros((3, matrix.columns, coef.shape[1]))
            values = np.ascontiguousarray(matrix.values[rows].T).reshape(-1)
            starts = np.arange(matrix.columns + 1) * len(rows)
            precise_scores(values, None, starts, coef, np.zeros(coef.shape[1]), *outs)
            high, low, errors = (out.reshape(shape) for out in outs)
            return high, errors + np.abs(low)
        scores, known = np.zeros((2, matrix.columns, *sizes.shape[1:]))
        for first in range(0, len(rows), SUM_ROWS):
            piece = slice(first, first + SUM_ROWS)
            values = matrix.rows(rows[piece]).T
            scores += values @ expansion.coef[piece]
            known += np.abs(values) @ sizes[piece]
        largest = known
        if not matrix.relative:
            root = np.sqrt(np.abs(matrix.diagonal))
            root[self._free :] = 0.0
            largest = np.multiply.outer(root, root[rows] @ sizes)
        off = matrix.amplification * largest
        known[self._free :] = 0.0
        return scores, ROUNDING * ((len(rows) + 8.0) * known + off)

    def cut(
        self, start: Point, end: Point | None = None, k: float = 0.0, level: Level | None = None
    ) -> Cut:
        """The cut at start, or at start + k(end − start): r·N kernel values."""
        point = start if end is None else self.score_risk.between(start, end, k)
        coef, offset = self.score_risk.coefficients(point)
        coef, offset = coef / self.score_risk.total, offset / self.score_risk.total
        lossy = np.flatnonzero(coef if coef.ndim == 1 else np.any(coef != 0.0, axis=1))
        if len(lossy) == 0:
            return Cut(np.zeros(self.dimension), 0.0)
        rows, free = np.split(lossy, [np.searchsorted(lossy, self._free)])
        some = self._sample(coef, rows, free)
        sampled = len(some.rows) < len(lossy)
        if level is not None and not self._centred and sampled:
            some = self._violated(some, coef, offset, rows, free, level)
        if not (self._centred and sampled):
            return Cut(self._add(some), offset)
        parts = self.score_risk.runner.run(
            lambda k: self.table.whole_products(k, coef), len(self.score_risk.slices)
        )
        within, rank = self.cut_basis.projected(reduce(np.add, parts)), self.cut_basis.rank
        a = self._add(some)
        a[:rank] = within[:rank]
        lost = product(coef, point.scores) - product(some.coef, point.scores[some.rows])
        self._offsets[len(self.cut_basis) - 1] = offset + lost
        return Cut(a, offset)

    def _sample(self, coef: np.ndarray, rows: np.ndarray, free: np.ndarray) -> Expansion:
        """A vector of the same mean, from a sample of the rows and all of the free ones."""
        among = rows
        if self._pool is not None and self._size is not None and len(rows) > self._size:
            some = rows[self._pool[rows]]
            among = some if len(some) else rows
            self.exact &= len(among) == len(rows)
        drawn = self.draw(among, self._size)
        some = coef[drawn] * (len(rows) / max(1, len(drawn)))
        return Expansion(np.concatenate([drawn, free]), np.concatenate([some, coef[free]]))

    def _violated(
        self,
        some: Expansion,
        coef: np.ndarray,
        offset: float,
        rows: np.ndarray,
        free: np.ndarray,
        level: Level,
    ) -> Expansion:
        """A sample whose cut is above the level, if the exact one is; ``some`` is the first."""
        if product(coef, level.scores) + offset <= level.risk:
            return some
        for _ in range(MOST_SAMPLES):
            if product(some.coef, level.scores[some.rows]) + offset > level.risk:
                break
            some = self._sample(coef, rows, free)
        return some

    def _add(self, expansion: Expansion) -> np.ndarray:
        """Compute the scores of a new vector; returns its coordinates."""
        scores = self.scores_of(expansion)
        products = self.table.products(expansion)
        squared = product(expansion.coef, scores[expansion.rows])
        coordinates = self.cut_basis.add(expansion, products, squared)
        self.table.add(scores)
        return coordinates

    def scores_of(self, expansion: Expansion) -> np.ndarray:
        """Scores of all rows; the kernel values are counted."""
        self.kernel_values += self.matrix.values_of(expansion.rows)
        return self.matrix.combine(expansion.rows, expansion.coef)

    def rebase(self, vectors: np.ndarray, point: Point, capacity: int) -> np.ndarray:
        """Forget all vectors but these and the one of a point.

        Returns
        -------
        coordinates : ndarray, shape (vectors + 1, capacity so far)
            Of the vectors that are left.
        """
        old = self.cut_basis
        coordinates = np.vstack([old.coordinates(vectors), point.w])
        offsets = self._offsets
        self._offsets = {n: offsets[k] for n, k in enumerate(vectors) if k in offsets}
        self.cut_basis = old.kept(vectors, capacity, point.w)
        self.table.keep(vectors)
        self.table.add(point.scores)
        return coordinates


class SampledOracle(ScoreRiskOracle):
    """Cuts of a sum of losses over rows."""

    score_risk: RowScoreRisk

    def first_cut(self, rows: np.ndarray, C: float, tol: float) -> Cut:
        """The cut that the solution of the hinge's problem on these rows alone gives.

        With its dual solution α, where 0 ≤ α_i ≤ C·weight_i / Σ weight, and D the sum of the upper
        bounds, the vector is −Σ α_i·y_i·φ(x_i)/D and the offset Σ α_i/D: a cut of the mean loss of
        these rows, and along its vector lies that solution. C is that of the mean loss of all rows.

        The bound of every α is the one that it has among all rows. A problem of the same C for
        fewer rows would follow their noise: on 4,000 of 60,000 rows of covtype it led to an
        objective that is 14 % higher.
        """
        targets = self.score_risk.targets
        y, upper = targets.labels[rows], C / targets.total * targets.weights[rows]
        values = self.matrix.rows(rows, rows)
        self.kernel_values += values.size
        alpha, scores = np.zeros(len(rows)), np.zeros(len(rows))
        ascend(values, y, upper, tol, START_STEPS * len(rows), alpha, scores)
        used, most = np.flatnonzero(alpha), float(upper.sum())
        vector = Expansion(rows[used], -alpha[used] * y[used] / most)
        self.exact &= len(rows) == np.count_nonzero(targets.weights)
        return Cut(self._add(vector), float(alpha.sum()) / most)


def product(coef: np.ndarray, scores: np.ndarray) -> float:
    """Σ coef·scores."""
    return float(np.einsum("i,i->", coef.reshape(-1), scores.reshape(-1)))
