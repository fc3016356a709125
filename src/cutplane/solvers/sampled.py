"""The loop with a kernel: coordinates in the span of the cuts, and what sampling changes.

Cuts from samples lie below the risk only with high probability. So the lower bound is an estimate,
unless no cut was sampled. The span grows with every cut. When many cuts have been dropped, the loop
builds it anew from the remaining cuts and the best point.

The constant-time method knows the risk on samples only. Its point is always the solution of the
reduced problem. The run ends when p samples in a row show no violation above ε. During these the
loop adds no cut, and the reported risk is their mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as UNIT
from ..objective import Cut, Point
from ..objective.constant import ConstantOracle
from ..objective.cut_basis import CutBasis
from ..objective.sampled import Level, ScoreRiskOracle
from ..result import Certificate, SolveResult, Status
from .base import ROUNDING_PART, Best, Observer, StopRule
from .cutting_plane import BundleSolver, CutPosition
from .reduced import Bundle, ReducedSolution, VectorSpace

# Cuts whose weight was zero for so long are dropped, as in the paper.
IDLE_SOLUTIONS = 20


@dataclass(frozen=True)
class CutBasisBest(Best):
    """The best point in coordinates, with the span that these belong to."""

    cut_basis: CutBasis = field(kw_only=True)


class CoordinateSpace(VectorSpace):
    """Coordinates of the vectors of an oracle's span.

    Attributes
    ----------
    numbers : ndarray of int64
        For each kept vector its number among the vectors of the span.

    Parameters
    ----------
    oracle : ScoreRiskOracle or ConstantOracle
    """

    def __init__(self, oracle: ScoreRiskOracle | ConstantOracle) -> None:
        super().__init__(oracle.dimension, oracle.executor)
        self.numbers = np.zeros(0, np.int64)
        self._oracle = oracle

    def append(self, vector: np.ndarray) -> np.ndarray:
        """Keep the coordinates of the last vector of the span."""
        self.numbers = np.append(self.numbers, len(self._oracle.cut_basis) - 1)
        return super().append(vector)

    def error(self, coef: np.ndarray) -> float:
        if not self._oracle.exact:  # the bound is an estimate anyway
            return 0.0
        errors = self._oracle.cut_basis.errors[np.ix_(self.numbers, self.numbers)]
        rounding = 2.0 * (len(coef) + MANY) * UNIT * float(coef @ np.abs(errors) @ coef)
        return max(0.0, float(coef @ errors @ coef)) + rounding

    def keep(self, positions: np.ndarray) -> None:
        super().keep(positions)
        self.numbers = self.numbers[positions]


class SampledSolver(BundleSolver):
    """The loop on points of a kernel's feature space whose scores are known for all rows.

    The result's ``w`` holds the coefficients of the rows.

    Parameters
    ----------
    oracle : ScoreRiskOracle
    C, stop, position, observer
        As for the loop without kernels.

    Attributes
    ----------
    first_cut : callable or None
        Returns the first cut, in place of the cut at w = 0.
    """

    oracle: ScoreRiskOracle | ConstantOracle

    def __init__(
        self,
        oracle: ScoreRiskOracle | ConstantOracle,
        C: float,
        stop: StopRule,
        position: CutPosition | None,
        observer: Observer | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, position, observer)
        self.space: CoordinateSpace = CoordinateSpace(oracle)
        self.bundle = Bundle(self.space, IDLE_SOLUTIONS)
        self.first_cut: Callable[[], Cut] | None = None

    def _begin(self, start: np.ndarray | None) -> None:
        super()._begin(start)
        if self.first_cut is not None:
            with self.watch.phase("start"):
                cut = self.first_cut()
                self.bundle.add(cut.a, cut.offset)

    def _keep(self, point: Point) -> None:
        super()._keep(point)
        self._best = CutBasisBest(**vars(self.best), cut_basis=self.oracle.cut_basis)

    def _cut_at(self) -> tuple[Any, ...] | None:
        if not self.trace and self.first_cut is not None:
            return None
        if not self.trace or self.position is not None:
            return super()._cut_at()
        assert self.solution is not None and isinstance(self.oracle, ScoreRiskOracle)
        risk = (self.solution.dual - 0.5 * self.solution.squared_norm) / self.C
        enough = self.stop.enough(self.best.primal, self.C) / self.C
        return self.trial, None, 0.0, Level(self.trial.scores, risk + enough)

    def _solve_reduced(self) -> ReducedSolution:
        cut_basis = self.oracle.cut_basis
        if (
            len(cut_basis) == cut_basis.capacity
            or len(cut_basis) - len(self.bundle) > self.oracle.idle_vectors
        ):
            self._rebase()
        return super()._solve_reduced()

    def _rebase(self) -> None:
        """Build the span anew from the vectors of the remaining cuts and the best point."""
        assert isinstance(self.best, CutBasisBest)
        count = len(self.bundle)
        needed = count + self.oracle.idle_vectors + 2
        capacity = self.oracle.dimension
        while capacity < needed:
            capacity *= 2
        coordinates = self.oracle.rebase(self.space.numbers, self.point, capacity)
        cut_basis = self.oracle.cut_basis
        w = cut_basis.projected(np.einsum("ij,j->i", coordinates, self.best.w))
        self._best = replace(self.best, w=w, cut_basis=cut_basis, proved=False)
        self.point.w = cut_basis.projected(np.einsum("ij,j->i", coordinates, self.point.w))
        self.trial.w = np.zeros(capacity)  # to be evaluated anew before it is used
        self.space.numbers = np.arange(count)
        vectors = cut_basis.coordinates(self.space.numbers)
        self.bundle.replace(vectors, self.oracle.offsets(self.bundle.offsets))

    def verify(self) -> None:
        assert isinstance(self.best, CutBasisBest)
        self._support()
        if self.best.cut_basis is self.oracle.cut_basis:
            super().verify()
        else:  # an interrupt has come between the two
            self.dual = max(0.0, self.proved)

    def _support(self) -> None:
        """If products of cuts are too rough, compute the last bound anew from all their rows."""
        oracle, weights = self.oracle, self.C * self.bundle.weights
        if not (isinstance(oracle, ScoreRiskOracle) and oracle.exact):
            return
        if self.space.error(weights) <= ROUNDING_PART * self.best.primal:
            return
        with self.watch.phase("certificate"):
            cuts = [oracle.cut_basis.expansions[k] for k in self.space.numbers]
            height = float(weights @ self.bundle.offsets)
            squared = oracle.proved_square(cuts, weights)
            # The zero cut may get some of the weight, so a part of all weights is feasible, too.
            part = min(1.0, height / squared) if squared > 0.0 else 1.0
            height, squared = part * height, part * part * squared
            rounding = (len(weights) + MANY) * UNIT * (abs(height) + squared)
            self._raise(height - 0.5 * squared - rounding)

    def _result(self, status: Status) -> SolveResult:
        result = super()._result(status)
        certificate = result.certificate
        if self.oracle.cut_basis.negative and not self.oracle.definite:
            certificate = Certificate(certificate.primal, -np.inf, "withheld")
        elif not self.oracle.exact:
            certificate = replace(certificate, kind="estimated")
        return replace(result, w=self.coefficients(), certificate=certificate)

    def coefficients(self) -> np.ndarray:
        """The coefficients of all rows at the best point."""
        assert isinstance(self.best, CutBasisBest)
        expansion = self.best.cut_basis.expand(self.best.w)
        coef = np.zeros((self.oracle.rows, *expansion.coef.shape[1:]))
        coef[expansion.rows] = expansion.coef
        return coef


class ConstantTimeSolver(SampledSolver):
    """The loop of the constant-time method, which knows the risk on samples only (Algorithm 2).

    Parameters
    ----------
    oracle : ConstantOracle
    C, stop, observer
        As for the loop without kernels.
    passes : int
        p. The run stops after so many samples in a row without a violation.
    """

    oracle: ConstantOracle

    def __init__(
        self,
        oracle: ConstantOracle,
        C: float,
        stop: StopRule,
        passes: int,
        observer: Observer | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, None, observer)
        self._wanted = passes
        self._passed = 0
        self._risks: list[float] = []

    def _take_trial(self) -> float:
        """Take the solution of the reduced problem, with the mean risk of its samples."""
        if self._passed == 0:
            self._risks = []
        self._risks.append(self.trial.risk)
        self.oracle.blend(self.point, self.trial, 1.0, self.point)
        self.point.risk = float(np.mean(self._risks))
        self._keep(self.point)
        return 1.0

    def _converged(self) -> bool:
        passed = self.stop.converged(self.trace[-1].trial, self.dual, self.C)
        self._passed = self._passed + 1 if passed else 0
        # A sample of all rows would give the same answer again.
        return self._passed >= (1 if self.oracle.exact else self._wanted)

    def _cut_at(self) -> tuple[Any, ...] | None:
        return None if self._passed else (self.trial if self.trace else self.point,)

    def verify(self) -> None:
        """The objective stays an estimate from samples."""
        self.dual = max(0.0, self.proved)

    def _verified(self) -> bool:
        return True

    def _stalled(self) -> bool:
        return False
