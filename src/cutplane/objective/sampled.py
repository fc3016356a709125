"""Oracles for kernels: cuts from samples (Yu & Joachims 2008, Algorithms 1 to 3).

With a kernel the vector of a cut is an expansion over all rows with a loss. Its products with the
other cuts take as many kernel values as there are pairs of rows. So the expansion is over a sample
of the rows instead:

    exact          all rows I with a loss                      (Algorithm 1)
    linear time    r rows drawn from I, times |I|/r            (Algorithm 3)
    constant time  r rows drawn from all rows, with or without a loss   (Algorithm 2)

The first two methods know the scores of all rows. They keep the scores of every cut, N numbers,
which take r·N kernel values. Then the value of the risk, the minimum on a line and the choice of
the next cut's rows cost no further kernel value. The third method (``objective.constant``) knows
only the rows that it has drawn, so it does not become slower with their number.

Rows are drawn without replacement, so a sample of all rows of I gives the exact cut.

A sampled cut c + <g̃, v> lies below the risk only on average: c is exact, and g̃ is a mean over the
sample. But the kept scores give the products of the exact vector g with all earlier vectors. So Pg,
the projection of g to their span, costs no kernel value. A *centred* cut has the vector
Pg + (I − P)g̃. Its mean is the same, and its error is only <g̃ − g, v − Pv>. For v in the span, and
w_c lies there, the cut is the exact one, so it touches the risk at w_c. When a new span with fewer
vectors is built, parts of Pg would be lost. Then the cut becomes R(w_c) + <g̃, v − w_c>, with an
error that grows with |v − w_c|.
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
# If a vector's squared distance from the span, relative to its square, is less than this, the
# distance is taken to be rounding, and the vector to lie in the span.
DEPENDENT = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-13}
# For one cut at most so many samples are drawn. If none of them gives a violated cut, the last one
# is taken.
MOST_SAMPLES = 20
# The solution on a first sample may take so many steps per row; at large C it needs more, and is
# stopped.
START_STEPS = 30


@dataclass(frozen=True)
class Level:
    """The level above which a cut counts as violated (Algorithm 3, line 20).

    If the exact cut is violated, the sampled cut must be violated, too.

    Attributes
    ----------
    scores : ndarray
        Scores at the reduced problem's solution.
    risk : float
        The risk of this solution in the reduced problem, plus ε.
    """

    scores: np.ndarray
    risk: float


class CutBasisOracle(ABC):
    """Base of the oracles with cuts in a kernel's space: points are coordinates in a ``CutBasis``.

    Attributes
    ----------
    cut_basis : CutBasis
    kernel_values : int
        Number of kernel values computed so far.
    idle_vectors : int
        With more vectors of dropped cuts than this, it is worth building the span anew.
    exact : bool
        Whether all cuts so far are cuts of all rows.
    definite : bool
        Whether the kernel is known to be positive semidefinite.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix of all rows.
    executor : Executor
    rng : numpy Generator
    """

    idle_vectors = 4
    definite = True
    penalised = slice(None)  # all of w

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
        """Number of rows that expansions can have."""
        return self.matrix.columns

    def slack(self, primal: float, C: float) -> float:
        """0, because the solver subtracts the errors in ``CutBasis.errors`` from its bounds."""
        return 0.0

    def refresh(self, point: Point) -> None:  # noqa: B027 (for none of them)
        """Does nothing, because ``prove`` computes what it reports anew."""

    def forget_cuts(self) -> None:  # noqa: B027 (for none of them)
        """Does nothing, because no cut is an update of an earlier one."""

    def offsets(self, offsets: np.ndarray) -> np.ndarray:
        """New offsets of the cuts, from their old ones, when the span is built anew."""
        return offsets

    @abstractmethod
    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""

    @abstractmethod
    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w."""

    def prove(self, w: np.ndarray, into: Point, tolerance: float) -> Proof:
        """Move ``into`` to w. The rounding errors of kernel values and scores are not bounded."""
        self.evaluate(w, into)
        return Proof(into.risk * (1.0 + MANY * ROUNDING), squared_norm(w))

    def draw(self, among: np.ndarray, size: int | None) -> np.ndarray:
        """A random sample of this size without repetition, in order; all if there are no more."""
        if size is None or size >= len(among):
            return among
        self.exact = False
        return among[np.sort(self.rng.choice(len(among), size, replace=False, shuffle=False))]


class ScoreRiskOracle(CutBasisOracle):
    """Cuts of all rows, or of a sample of the rows with a loss. It keeps the scores of all rows.

    Parameters
    ----------
    matrix, executor, rng
        As for ``CutBasisOracle``.
    score_risk : ScoreRisk
        The risk, as a function of scores with one row per row of the matrix.
    size : int or None
        Rows of a sample, r; None for exact cuts.
    centred : bool
        Whether sampled cuts are exact in the span of the earlier vectors.
    free : int, optional
        Rows with this number and larger ones cost no kernel value, so every sample contains them.
    pool : ndarray of bool, optional
        Rows from which samples are drawn; by default all. A pool limits the number of rows in the
        model. Rows outside of the pool still count in the risk and in the exact part of a cut.
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
        """New offsets, with which the cuts touch the risk where they did before."""
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
        """An upper bound on |Σ_k weights[k]·expansion_k|², from newly computed kernel values.

        The coefficients c of the sum are off by δ, |δ| ≤ u·(count + 2)·Σ_k |weights[k]·coef_k|, so
        the square may exceed cᵀKc by 2|δ|ᵀ|Kc| + |δᵀKδ|.
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
        """An upper bound on the square of an expansion, from its scores and their errors."""
        own, sizes = scores[expansion.rows], np.abs(expansion.coef)
        squared = max(0.0, product(expansion.coef, own)) + product(sizes, errors[expansion.rows])
        squared += (sizes.size + MANY) * ROUNDING * product(sizes, np.abs(own))
        return squared * (1.0 + MANY * ROUNDING)

    def _bounded(self, expansion: Expansion) -> tuple[np.ndarray, np.ndarray]:
        """Scores of an expansion, and a bound on the error of each.

        Stored values are summed in twice the digits. For other values |K| is summed as well,
        because errors of the sum are relative to Σ |coef|·|K|, and so are errors of the values if
        they are relative to the value. Otherwise |K_il| ≤ √(K_ii·K_ll) bounds the latter. Scores of
        free rows are numbers of the model, without errors.
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
        """A vector with the same mean, from a sample of the rows and all free rows."""
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
        """A sample whose cut is above the level, if the exact cut is; ``some`` is the first try."""
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
        """Scores of all rows under an expansion. Counts the kernel values."""
        self.kernel_values += self.matrix.values_of(expansion.rows)
        return self.matrix.combine(expansion.rows, expansion.coef)

    def rebase(self, vectors: np.ndarray, point: Point, capacity: int) -> np.ndarray:
        """Keep only these vectors and the vector of a point.

        Returns
        -------
        coordinates : ndarray, shape (vectors + 1, capacity so far)
            Coordinates of the kept vectors in the old basis.
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
        """A cut from the solution of the hinge's problem on these rows alone.

        Let α be the dual solution, 0 ≤ α_i ≤ C·weight_i / Σ weight, and D the sum of the upper
        bounds. The cut has the vector −Σ α_i·y_i·φ(x_i)/D and the offset Σ α_i/D. It is a cut of
        the mean loss of these rows, and the solution is a multiple of its vector. C multiplies the
        mean loss of all rows.

        Every α has the same upper bound as in the problem on all rows. With larger bounds, C times
        the mean over these rows, the solution would follow their noise: on 4,000 of 60,000 rows of
        covtype this led to an objective that is 14 % higher.
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
