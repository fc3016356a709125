"""The linear oracle: turns a point w into a cut of the risk, and a line into its minimum.

    R(w) = risk of the scores <w, x_i> + c·w_0

over blocks of rows. c·w_0 is the regularised bias of the papers: w_0 is the weight
of a constant feature with the value c, which is never stored. The ``ScoreRisk``
handles an unregularised bias. A cut of R at w is (a, offset) with
a = (1/W) Σ coef_i·x_i, where coef and offset are the plane that touches the risk at
the scores.

The oracle reads the data only in two products, scores X·w and sums Xᵀ·coef. From one cut to the
next the hinge's coefficients change in few rows. So it keeps the sum of each block, and adds
(coef − last coef)·x for the rows that have changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..data import BlockedMatrix, BlockSum
from ..data.blocks import Block
from ..data.sums import SumPlan, room_for
from ..exec import Executor
from ..loops import bounded, vectors
from ..risks import Risk, Targets
from .point import Cut, Point, Proof, squared_norm
from .score_risk import RowPasses, RowScoreRisk, ScoreRisk

# With fewer stored numbers, every gradient is computed from all rows: updates would save little,
# and sums that cancel exactly should stay exactly zero.
WORTH_UPDATES = 1 << 16
# After so many updates all sums are computed anew, so that rounding errors do not accumulate.
MOST_UPDATES = 30

Slack = Callable[[float, float], float]


class Products(Protocol):
    """The products X·w and Xᵀ·coef, of rows in this process or on workers.

    ``shape`` is that of w: a row more for the constant feature, if any, and a column per output.
    """

    shape: tuple[int, ...]

    def scores(self, w: np.ndarray, out: Any) -> None:
        """out = X·w."""
        ...

    def bounded(self, w: np.ndarray, *outs: Any, bias: float = 0.0) -> None:
        """X·w + bias, and bounds on the rounding errors.

        ``outs`` are two arrays, scores and errors; or three arrays, high, low and errors, for
        scores high + low in twice the digits.
        """
        ...

    def gradient(self, coef: Any) -> np.ndarray:
        """Xᵀ·coef. The next call overwrites the array."""
        ...

    def start_anew(self, forget: bool = False) -> None:
        """Compute the next gradient from all rows, not from the last gradient.

        With ``forget`` earlier scores of points are not needed any more either.
        """
        ...


class RowsElsewhere(Protocol):
    """A design matrix whose rows are not in this process."""

    shape: tuple[int, int]
    n_stored: int
    blocks: range
    part_rows: list[int]

    def products(self, shape: tuple[int, ...], constant: float, updates: bool) -> Products:
        """Begin a problem; returns its products with the rows."""
        ...

    def passes(
        self, targets: Targets, risk: Risk, slices: Sequence[slice], light: bool
    ) -> RowPasses:
        """Passes over the scores, if the risk of the current problem is a sum over rows."""
        ...


class RowProducts:
    """Products with rows in this process.

    Parameters
    ----------
    matrix : BlockedMatrix
    shape : tuple of int
        Shape of w, with the constant feature.
    constant : float
        Value of the constant feature; 0 for none.
    executor : Executor
    updates : bool
        Whether to update the sums of blocks instead of computing them anew, if this is less work.
    plan : SumPlan, optional
        Needed if the matrix has only some of the rows.

    Attributes
    ----------
    updated : ndarray of bool
        For each block, whether the last gradient updated its sum.
    """

    def __init__(
        self,
        matrix: BlockedMatrix,
        shape: tuple[int, ...],
        constant: float,
        executor: Executor,
        updates: bool,
        plan: SumPlan | None = None,
    ) -> None:
        self.shape = shape
        self._matrix = matrix
        self._constant = constant
        self._executor = executor
        self._sum = BlockSum(matrix, shape, plan)
        self._updates = updates
        self.updated = np.zeros(len(matrix.blocks), dtype=bool)
        rows = (len(matrix), *shape[1:]) if updates else (0,)
        self._last, self._changes = np.zeros(rows), np.empty(rows)  # coefficients
        self._age = MOST_UPDATES  # gradients since all sums were computed anew

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        if not np.any(w):  # every fit begins at w = 0
            out[...] = 0.0
            return

        def part(k: int, block: Block) -> None:
            rows = out[self._matrix.slice(k)]
            block.scores(w, rows)
            if self._constant:
                rows += self._constant * w[-1]

        self._matrix.run(part, self._executor)

    def bounded(self, w: np.ndarray, *outs: np.ndarray, bias: float = 0.0) -> None:
        columns = w.reshape(len(w), -1)
        start = np.full(columns.shape[1], bias)
        if self._constant:  # take the model's own intercept, which is rounded, too
            start += self._constant * columns[-1]
            columns = columns[:-1]
        if not np.any(columns):
            for out in outs:
                out[...] = 0.0
            outs[0][...] = start if w.ndim > 1 else start[0]
            return
        kernel = bounded.precise_scores if len(outs) == 3 else bounded.scores
        tables = [out.reshape(len(self._matrix), -1) for out in outs]

        def part(k: int, block: Block) -> None:
            rows = self._matrix.slice(k)
            kernel(*block.flat(), columns, start, *(table[rows] for table in tables))

        self._matrix.run(part, self._executor)

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        """Xᵀ·coef, as for all ``Products``; ``node_sums`` gets a sum for each node of the plan."""
        self._age = 0 if self._age >= MOST_UPDATES else self._age + 1

        def part(k: int, block: Block) -> None:
            rows, total = coef[self._matrix.slice(k)], self._sum.array(k)
            if not (self._updates and self._update(k, rows, block, total)):
                total[...] = 0.0
                block.add_gradient(rows, total)
            if self._constant:
                total[-1] = self._constant * rows.sum(axis=0)

        self.node_sums = self._sum.run(part, self._executor)
        return self.node_sums[0]

    def _update(self, k: int, coef: np.ndarray, block: Block, total: np.ndarray) -> bool:
        """Update the sum of block k.

        Returns False, and does nothing, if the sum must be computed anew: because too many rows
        have changed, or because there were too many updates.
        """
        rows = self._matrix.slice(k)
        changes = self._changes[rows]
        changed, active = vectors.take_changes(
            coef.reshape(-1), self._last[rows].reshape(-1), changes.reshape(-1)
        )
        self.updated[k] = self._age > 0 and 2 * changed <= active
        if self.updated[k]:
            block.add_gradient(changes, total)
        return bool(self.updated[k])

    def start_anew(self, forget: bool = False) -> None:
        self._age = MOST_UPDATES

    def sums(self) -> tuple[np.ndarray, int, np.ndarray] | None:
        """A copy of what the next gradient builds on, if it does and there was one before: the last
        coefficients, how old the sums are, and the sums of all blocks.
        """
        held = self._sum.held()
        if not self._updates or held is None:
            return None
        return self._last.copy(), self._age, held.copy()

    def restore_sums(self, coef: np.ndarray, age: int, sums: np.ndarray) -> None:
        """Take a state that ``sums`` has returned."""
        self._last[...] = coef
        self._age = age
        self._sum.restore(sums)


class LinearOracle:
    """Cuts and lines for a linear model.

    Parameters
    ----------
    matrix : BlockedMatrix or RowsElsewhere
    score_risk : ScoreRisk
        The risk over the scores of the matrix's rows.
    constant : float, default=0
        Value of the constant feature behind the regularised bias; 0 for none.
    slack : callable, optional
        (objective of a point, C) → how much the lower bound of this problem may exceed the optimum
        of the user's problem, which this one approximates.
    products : Products, optional
        In place of those that the oracle makes.
    """

    def __init__(
        self,
        matrix: BlockedMatrix | RowsElsewhere,
        score_risk: ScoreRisk,
        *,
        constant: float = 0.0,
        slack: Slack | None = None,
        products: Products | None = None,
    ) -> None:
        self._slack = slack
        self.matrix: Any = matrix
        self.score_risk = score_risk
        self.executor = score_risk.executor
        self.constant = constant
        self._w_shape = matrix.shape[1] + (constant != 0.0), *score_risk.shape[1:]
        self.dimension = math.prod(self._w_shape)
        # With a slack the weight of the constant feature stands for a free bias, without a penalty.
        self.penalised = slice(None if slack is None else -math.prod(self._w_shape[1:]))
        updates = matrix.n_stored >= WORTH_UPDATES and len(matrix.blocks) <= room_for(self._w_shape)
        if products is None:
            if isinstance(matrix, BlockedMatrix):
                products = RowProducts(matrix, self._w_shape, constant, self.executor, updates)
            else:
                products = matrix.products(self._w_shape, constant, updates)
        self._products = products
        self._proving: tuple[Point, ...] | None = None  # room for errors, and for more digits
        # These need scores only, so the risk itself does them.
        self.blend, self.descend = score_risk.blend, score_risk.descend
        # The next cut is computed from all rows, not by an update of earlier sums.
        self.forget_cuts = products.start_anew

    def slack(self, primal: float, C: float) -> float:
        """How much to subtract from a lower bound, so that it holds for the user's problem."""
        return 0.0 if self._slack is None else self._slack(primal, C)

    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""
        return self.score_risk.new_point(np.zeros(self._w_shape))

    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w: one product X·w."""
        into.w = w.reshape(self._w_shape)
        self._products.scores(into.w, into.scores)
        self.score_risk.find_bias(into)
        self.score_risk.evaluate(into)

    def score(self, w: np.ndarray, out: np.ndarray) -> None:
        """out = X·w, with the constant feature."""
        self._products.scores(w.reshape(self._w_shape), out)

    def prove(
        self, w: np.ndarray, into: Point, tolerance: float, norms: np.ndarray | None = None
    ) -> Proof:
        """Move ``into`` to w and prove upper bounds there, at its bias: one product X·w.

        If the point's tolerance is 0, the bias is the best one.

        The bounds cover every rounding error of the scores, of the losses and of their sum. If the
        bounds are together more than ``tolerance``, the scores are computed again in twice the
        digits.

        Norms |x_i| say that ``into`` has been evaluated at this w, from the data alone. Then no
        product is needed: Σ_p |x_p·w_p| ≤ |x|·|w|, so the norms bound the errors of the scores.
        """
        score_risk = self.score_risk
        into.w = w.reshape(self._w_shape)
        if self._proving is None:
            self._proving = tuple(score_risk.new_point(into.w) for _ in range(3))
        errors, low, high = self._proving
        if norms is None:
            self._products.bounded(into.w, into.scores, errors.scores)
            if into.tolerance == 0.0:
                score_risk.find_bias(into)
            score_risk.evaluate(into)
        else:
            length = math.sqrt(squared_norm(into.w))
            terms = self.dimension + bounded.FEW
            np.multiply(norms, bounded.ABOVE * bounded.ROUNDING * terms * length, errors.scores)
        risk = score_risk.upper(into, None, errors.scores)
        if not risk - into.risk <= tolerance:
            outs = high.scores, low.scores, errors.scores
            self._products.bounded(into.w, *outs, bias=into.bias)
            better = score_risk.upper(high, low.scores, errors.scores)
            risk = better if math.isnan(risk) or better < risk else risk
        return Proof(risk, squared_norm(into.w.reshape(-1)[self.penalised]))

    def refresh(self, point: Point) -> None:
        """Compute a point anew from its w and bias, and depend on no earlier results."""
        self.refresh_scores(point)
        self.score_risk.evaluate(point)

    def refresh_scores(self, point: Point) -> None:
        """Compute the scores of a point from its w; bias and risk are known."""
        self._products.start_anew(forget=True)
        self._products.scores(point.w, point.scores)

    def state(self) -> dict[str, Any]:
        """First guesses of the searches.

        All other results are computed anew, in this run and in one that resumes from the state.
        """
        self._products.start_anew()
        return self.score_risk.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take a state that ``state`` has returned."""
        self.score_risk.restore(state)

    def cut(self, start: Point, end: Point | None = None, k: float = 0.0) -> Cut:
        """The cut at start, or at start + k(end − start): one product Xᵀ·coef."""
        point = start if end is None else self.score_risk.between(start, end, k)
        if self.score_risk.free_bias and point.mixture is None:
            self.score_risk.find_bias(point)
        coef, offset = self.score_risk.coefficients(point)
        total = self.score_risk.total
        return Cut(self._products.gradient(coef).reshape(-1) / total, offset / total)


class RowOracle(LinearOracle):
    """Cuts and lines for a linear model whose risk is a sum over rows.

    Parameters
    ----------
    matrix : BlockedMatrix or RowsElsewhere
    targets : Targets
    risk : Risk
    executor : Executor
    constant : float, default=0
        Value of the constant feature behind the regularised bias; 0 for none.
    free_bias : bool, default=False
        Minimise over an unregularised bias.
    slack : callable, optional
        As for every linear oracle.
    """

    score_risk: RowScoreRisk

    def __init__(
        self,
        matrix: BlockedMatrix | RowsElsewhere,
        targets: Targets,
        risk: Risk,
        executor: Executor,
        *,
        constant: float = 0.0,
        free_bias: bool = False,
        slack: Slack | None = None,
    ) -> None:
        score_risk = RowScoreRisk(
            targets, risk, executor, free_bias=free_bias, edges=matrix.part_rows
        )
        super().__init__(matrix, score_risk, constant=constant, slack=slack)
        if not isinstance(matrix, BlockedMatrix):
            score_risk.passes = matrix.passes(targets, risk, score_risk.slices, score_risk.light)
        self.targets = targets
        self.risk = risk
        self.free_bias = free_bias

    def dual_cut(self, coef: np.ndarray) -> Cut:
        """The cut from any dual point.

        Parameters
        ----------
        coef : ndarray, shape of the scores
            Per row, weight times a number in the domain of the loss's
            conjugate; for the hinge −y·weight·π with 0 ≤ π ≤ 1.
        """
        coef, offset = self.score_risk.dual_plane(coef)
        total = self.score_risk.total
        return Cut(self._products.gradient(coef).reshape(-1) / total, offset / total)
