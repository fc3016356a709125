"""Kernel machines without bias on many rows, by ascent in the dual on blocks of rows.

With upper_i = C·weight_i / Σ weight the dual of ½|w|² + C·(mean hinge loss) is

    max_α  D(α) = Σα − ½|w|²,    w = Σ_i α_i·y_i·φ(x_i),    0 ≤ α_i ≤ upper_i.

The scores of all rows are kept, so objective and D are known after every step, and no cut has to be
sampled. A step draws a block of rows, each with a chance that grows with what its α alone could
gain, maximises D over the α of the block, and moves the scores of all rows. This takes
block · rows kernel values, as a sampled cut does, and none of them is stored. But a cut of r rows
gives each of them the same weight, and the reduced problem weighs cuts as they are: an α that was
too large stays so. Here a row that is drawn again is put right.

On the way w changes a lot from step to step, and the objective is lower at a point between. So the
best point moves on the line to w from time to time. In the end w itself is as good. It has fewer
rows than points between, and it is what is returned when the gap is closed.

Kernel values may be in single precision, which is six times as fast. When the gap is closed, and at
ends that are not for lack of time, the scores are computed anew in double precision, with bounds on
their errors, and objective and bound are proved. Where that fails, ascent goes on from these
scores. Otherwise the certificate is an estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..kernels import KernelMatrix
from ..loops import row_ascent as loops
from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as UNIT
from ..objective import Cut, Line, Point
from ..objective.score_risk import RowScoreRisk
from ..result import SolveResult, Status
from .base import CLOSER, Best, IterativeSolver, Observer, StopRule

# A block is left when a sweep gains less than this part of what the first one has gained, or after
# so many sweeps. Sweeps take a twentieth of the time.
SWEEP_PART = 0.05
MOST_SWEEPS = 100
# The best point moves when the steps have grown by this factor: searches on lines then take a part
# of the time that shrinks.
GROWTH = 1.1
# The part of the gap that is enough which is left to rounding in single precision.
MARGIN = 0.01


class RowAscentOracle:
    """The rows of a problem with their kernel values.

    Attributes
    ----------
    kernel_values : int
        Number of kernel values computed so far.
    exact, samples, definite : bool
        As of other oracles with kernels: nothing is sampled.

    Parameters
    ----------
    matrix : KernelMatrix
        Of all rows, perhaps in single precision.
    precise : callable
        Gives the same in double precision.
    score_risk : RowScoreRisk
        Of the hinge loss.
    rng : numpy Generator
        Draws the blocks.
    size : int
        Rows of a block.
    """

    exact, samples, definite = True, False, True

    def __init__(
        self,
        matrix: KernelMatrix,
        precise: Callable[[], KernelMatrix],
        score_risk: RowScoreRisk,
        rng: np.random.Generator,
        size: int,
    ) -> None:
        self.matrix = matrix
        self.score_risk = score_risk
        self.rng = rng
        self.size = size
        self.kernel_values = 0
        self._precise = precise

    @property
    def dimension(self) -> int:
        """Points are given by a coefficient per row."""
        return self.matrix.columns

    @cached_property
    def precise(self) -> KernelMatrix:
        """The kernel in double precision."""
        return self._precise()

    def block(self, gains: np.ndarray) -> np.ndarray:
        """Rows drawn without replacement, with chances in proportion to their gains."""
        rows = np.flatnonzero(gains > 0.0)
        if len(rows) > self.size:
            # The first of independent exponential waiting times (Efraimidis & Spirakis 2006).
            times = self.rng.standard_exponential(len(rows)) / gains[rows]
            rows = np.sort(rows[np.argpartition(times, self.size)[: self.size]])
        return rows

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Kernel values of some rows among themselves."""
        self.kernel_values += len(rows) ** 2
        return self.matrix.rows(rows, rows).astype(np.float64)

    def scores(self, rows: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Σ_k coef_k·K(rows_k, ·) of all rows."""
        self.kernel_values += self.matrix.values_of(rows)
        return self.matrix.combine(rows, coef)

    def bounded_scores(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores from the coefficients of all rows, and bounds on their errors."""
        matrix, rows = self.precise, np.flatnonzero(coef)
        self.kernel_values += matrix.values_of(rows)
        some = coef[rows]
        sizes = None
        if matrix.relative:  # no value is negative
            both = matrix.combine(rows, np.column_stack([some, np.abs(some)]))
            scores, sizes = np.ascontiguousarray(both.T)
        else:
            scores = matrix.combine(rows, some)
        return scores, matrix.sum_errors(coef, len(rows), sizes)


class RowAscentSolver(IterativeSolver):
    """State of one run. An iteration is a step on a block of rows.

    The result's ``w`` holds the coefficients of the rows.

    Parameters
    ----------
    oracle : RowAscentOracle
    C, stop, observer
        As for every solver.
    """

    oracle: RowAscentOracle  # type: ignore[assignment]

    def __init__(
        self, oracle: RowAscentOracle, C: float, stop: StopRule, observer: Observer | None = None
    ) -> None:
        super().__init__(oracle, C, stop, observer)  # type: ignore[arg-type]
        targets = oracle.score_risk.targets
        self._y = targets.labels
        self._upper = C / targets.total * targets.weights
        self._alpha, self._scores, self._gains = np.zeros((3, len(self._y)))
        self._primal = np.inf  # of the dual point's w
        self._doubt: float | None = None  # what the last proof has added to the gap
        self._proved = False

    def active_cuts(self) -> tuple[Cut, ...]:
        return ()

    def _objective(self, point: Point) -> float:
        return 0.5 * _product(point.w, point.scores) + self.C * point.risk

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        risk = self.oracle.score_risk
        self.point = risk.new_point(np.zeros(self.oracle.dimension))
        risk.evaluate(self.point)
        self._keep(self.point)
        status, due = None, 1.0
        self._look()
        while status is None:
            rows = self.oracle.block(self._gains)
            with self.watch.phase("block"):
                changes = self._ascend(rows)
            with self.watch.phase("scores"):
                self._scores += self.oracle.scores(rows, changes)
            self._look()
            with self.watch.phase("line_search"):
                step = self._improve(search=len(self.trace) + 1 >= due)
            if len(self.trace) + 1 >= due:
                due *= GROWTH
            status = self._end_iteration(self._primal, step, len(rows))
        if status not in (Status.CONVERGED, Status.TIME_LIMIT):
            self._prove_best()
            if self.stop.converged(self.best.primal, self.dual, self.C):
                return Status.CONVERGED
        return status

    def _look(self) -> None:
        """Objective and bound at the dual point, and what every row could gain."""
        state = self._y, self._upper, self.oracle.matrix.diagonal, self._alpha, self._scores
        losses, total, square = loops.gains_of_rows(*state, self._gains)
        self._primal = losses + 0.5 * square
        self.dual = max(self.dual, total - 0.5 * square)

    def _ascend(self, rows: np.ndarray) -> np.ndarray:
        """Maximise D over the α of a block; returns how its coefficients change."""
        alpha, y = self._alpha[rows], self._y[rows]
        block = self.oracle.values(rows), y, self._upper[rows]
        loops.ascend_block(*block, SWEEP_PART, MOST_SWEEPS, alpha, self._scores[rows])
        changes = (alpha - self._alpha[rows]) * y
        self._alpha[rows] = alpha
        return changes

    def _improve(self, search: bool) -> float:
        """Move the best point towards w: all the way, or to the best point of the line."""
        better = self._primal < self.best.primal
        if not (search or better):
            return 0.0
        risk = self.oracle.score_risk
        trial = risk.spare
        trial.w = self._alpha * self._y
        trial.scores[...] = self._scores
        risk.evaluate(trial)
        if better:
            self.point.copy(trial)
            self._keep(self.point)
            return 1.0
        point = self.point
        start, end = _product(point.w, point.scores), _product(trial.w, trial.scores)
        mixed = _product(trial.w, point.scores)
        gap = max(0.0, self.best.primal - self.dual)
        curvature, slope = start - 2.0 * mixed + end, mixed - start
        tolerance = self.line_tolerance * gap / self.C
        step = risk.descend(
            Line(point, trial, max(0.0, curvature) / self.C, slope / self.C, tolerance)
        )
        return self._keep_if_better(point, step)

    # -- proofs -----------------------------------------------------------------------

    def _converged(self) -> bool:
        """Whether the gap at w itself is small enough, as far as is known without a proof."""
        enough = self.stop.enough(self._primal, self.C)
        doubt = MARGIN * enough if self._doubt is None else min(self._doubt, CLOSER * enough)
        return self.stop.converged(self._primal, self.dual - doubt, self.C)

    def verify(self) -> None:
        """Does nothing: a proof is due where the gap is closed, and where the run has time."""

    def _verified(self) -> bool:
        """Whether a proof at the dual point meets the rule."""
        before = self._primal - self.dual
        coef = self._alpha * self._y
        with self.watch.phase("certificate"):
            primal = self._prove_dual(coef)
        self._best = Best(coef, 0.0, primal, proved=True)
        self._doubt = max(0.0, primal - self.dual - before)
        if super()._verified():
            return True
        # The scores are better now, and the next steps start from them.
        self.point.w, self._proved = coef, False
        self.point.scores[...] = self._scores
        self.oracle.score_risk.evaluate(self.point)
        self._look()
        return False

    def _prove_best(self) -> None:
        """Prove bound and objective, where the run has ended with the gap open."""
        with self.watch.phase("certificate"):
            best, coef = self.best, self._alpha * self._y
            primal = self._prove_dual(coef)
            if not np.array_equal(best.w, coef):
                between = self._upper_objective(best.w, *self.oracle.bounded_scores(best.w))[0]
                if between < primal:
                    coef, primal = best.w, between
            self._best = Best(coef, 0.0, primal, proved=True)

    def _prove_dual(self, coef: np.ndarray) -> float:
        """Set the bound to one that is proved; returns a proved objective at the dual point."""
        self._scores, errors = self.oracle.bounded_scores(coef)
        primal, square = self._upper_objective(coef, self._scores, errors)
        total = float(self._alpha.sum())
        self.dual = max(0.0, total - 0.5 * square - MANY * UNIT * (total + square))
        self._proved = True
        return primal

    def _upper_objective(
        self, coef: np.ndarray, scores: np.ndarray, errors: np.ndarray
    ) -> tuple[float, float]:
        """Upper bounds on the objective and on |w|²."""
        sizes = np.abs(coef)
        square = max(0.0, _product(coef, scores)) + _product(sizes, errors)
        square += (len(coef) + MANY) * UNIT * _product(sizes, np.abs(scores))
        square *= 1.0 + MANY * UNIT
        point = replace(self.point, w=coef, scores=scores)
        risk = self.oracle.score_risk.upper(point, None, errors)
        return (0.5 * square + self.C * risk) * (1.0 + MANY * UNIT), square

    def _result(self, status: Status) -> SolveResult:
        result = super()._result(status)
        if self._proved or result.certificate.kind != "exact":
            return result
        return replace(result, certificate=replace(result.certificate, kind="estimated"))


def _product(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.einsum("i,i->", a, b))
