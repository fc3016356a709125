"""Problems with cuts in a kernel's space, exact or from samples; smaller bases; bounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from .._checks import check_number
from ..exec import Executor
from ..kernels import Kernel, KernelMatrix, rbf_sums
from ..kernels.definite import definiteness, has_negative_eigenvalue
from ..kernels.lowrank import projected
from ..kernels.points import DensePoints, points_of
from ..result import SolveResult
from ..risks import Risk, Targets
from ..solvers import AdaptivePosition, CutPosition, FixedPosition
from ..solvers.row_ascent import RowAscentSolver
from ..solvers.sampled import ConstantTimeSolver, SampledSolver
from ._fit import Problem, Ready, Run, Settings
from ._problems import ready

# Points of sampled cuts should be farther apart than those of exact cuts. 0.3 took fewer iterations
# than 0.1 and 0.5, and fewer than the adaptive rule for exact cuts, which takes noise for progress.
SAMPLED_POSITION = FixedPosition(0.3)
# Rows on which a kernel is tested for a negative eigenvalue.
TESTED_ROWS = 160
# Relative gap to which the problem on the first rows is solved, unless these are all rows.
START_TOL = 0.01
# Rows whose scores are computed at a time.
SCORED_ROWS = 1 << 16


@dataclass
class CutBasisProblem(Problem):
    """Cuts in a kernel's feature space. The solver computes the scores of all rows.

    Attributes
    ----------
    label : str
    oracle : ScoreRiskOracle
    kind : str
        The kind of certificate that the kernel allows; see ``kind_of``.
    start : ndarray of int64 or None
        Rows on which the problem is solved first.
    """

    label: str
    oracle: Any
    kind: str = "exact"
    total: float = 1.0
    start: np.ndarray | None = None

    def solver(self, run: Run) -> Ready:
        position: CutPosition | None = None
        if run.settings.solver != "cpa":
            position = SAMPLED_POSITION if self.oracle.samples else AdaptivePosition()
        C = run.C * self.total
        solver = SampledSolver(self.oracle, C, run.stop, position, run.observe)
        if self.start is not None:
            tol = START_TOL
            if len(self.start) == np.count_nonzero(self.oracle.score_risk.targets.weights):
                tol = min(tol, 0.5 * run.stop.relative)
            solver.first_cut = partial(self.oracle.first_cut, self.start, C, tol)
        return ready(solver, run)

    def point(self, solver: Any) -> tuple[np.ndarray, float]:
        return solver.coefficients(), 0.0

    def finish(self, solver: Any, result: SolveResult) -> SolveResult:
        """The result. Its certificate claims no more than the kernel allows."""
        certificate = result.certificate
        if self.kind == "withheld":
            certificate = dataclasses.replace(certificate, dual=-math.inf, kind="withheld")
        elif certificate.kind == "exact":
            certificate = dataclasses.replace(certificate, kind=self.kind)
        return dataclasses.replace(result, certificate=certificate)

    def cautions(self, settings: Settings, results: list[SolveResult]) -> Iterator[Warning]:
        if any(result.certificate.kind == "withheld" for result in results):
            yield UserWarning(
                f"{settings.name}: the kernel is not positive semidefinite, so the problem is not "
                "convex and its certificate is withheld"
            )


@dataclass
class ConstantProblem(CutBasisProblem):
    """The constant-time method, which computes scores of samples only.

    Attributes
    ----------
    passes : int
        The run ends after so many samples in a row without a violation.
    """

    passes: int = 1

    def solver(self, run: Run) -> Ready:
        C = run.C * self.total
        return ready(ConstantTimeSolver(self.oracle, C, run.stop, self.passes, run.observe), run)


@dataclass
class RowAscentProblem(CutBasisProblem):
    """Ascent in the dual on blocks of rows."""

    def solver(self, run: Run) -> Ready:
        C = run.C * self.total
        return ready(RowAscentSolver(self.oracle, C, run.stop, run.observe), run)

    def point(self, solver: Any) -> tuple[np.ndarray, float]:
        return solver.best.w, 0.0


def kind_of(kernel: Kernel, matrix: KernelMatrix) -> str:
    """The kind of a certificate that such a kernel allows: exact, conditional or withheld."""
    if kernel.definite is not None:
        return "exact" if kernel.definite else "withheld"
    kind = definiteness(matrix).kind
    if kind == "conditional":
        rows = np.linspace(0, matrix.columns - 1, min(matrix.columns, TESTED_ROWS))
        if has_negative_eigenvalue(matrix, np.unique(rows.astype(np.int64))):
            return "withheld"
    return kind


def reduce_basis(
    matrix: KernelMatrix,
    risks: Sequence[tuple[Risk, Targets]],
    results: list[SolveResult],
    C: float,
    most: int,
) -> tuple[list[SolveResult], float]:
    """Project all models to the span of the same few rows, and compute their new objectives.

    Returns the new results, and the largest |w − Pw|.
    """
    coef = np.concatenate([r.w.reshape(len(r.w), -1) for r in results], axis=1)
    rows = np.flatnonzero(np.any(coef != 0.0, axis=1))
    if len(rows) <= most:
        return results, 0.0
    projection = projected(matrix, rows, coef[rows], most)
    scores = matrix.combine(projection.rows, projection.coef)
    squares = np.einsum("ij,ij->j", projection.coef, scores[projection.rows])
    changed, first = [], 0
    for (risk, targets), result in zip(risks, results, strict=True):
        outputs = slice(first, first + result.w.reshape(len(result.w), -1).shape[1])
        first = outputs.stop
        w = np.zeros_like(result.w)
        w[projection.rows] = projection.coef[:, outputs].reshape(-1, *w.shape[1:])
        values = np.ascontiguousarray(scores[:, outputs].reshape(w.shape))
        losses = risk.value(values, 0.0, targets)
        primal = 0.5 * float(squares[outputs].sum()) + C * losses
        certificate = dataclasses.replace(
            result.certificate, primal=primal, dual=min(primal, result.certificate.dual)
        )
        changed.append(dataclasses.replace(result, w=w, certificate=certificate))
    return changed, projection.error


def single_scores(
    gamma: float, vectors: Any, coef: np.ndarray, X: Any, executor: Executor
) -> np.ndarray | None:
    """Σ_k coef_k·exp(−gamma·|x − vector_k|²) of every row, in the precision of training.

    Returns None if the vectors are sparse, or so far apart that this precision does not suffice.
    Only the vectors decide about that. A row farther out than all vectors has such small kernel
    values that their errors do not matter.
    """
    points = points_of(vectors)
    if not isinstance(points, DensePoints) or len(points) == 0:
        return None
    origin = rbf_sums.origin_of(gamma, points.x)
    if origin is None:
        return None
    left = rbf_sums.sum_points(points.x, origin)
    terms = rbf_sums.RbfTerms.make(left, gamma, coef, np.zeros(len(coef), np.int64))
    scores = np.empty(X.shape[0])
    for first in range(0, len(scores), SCORED_ROWS):
        rows = X[first : first + SCORED_ROWS]
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        right = rbf_sums.sum_points(np.asarray(rows, np.float64), origin)
        scores[first : first + SCORED_ROWS] = terms.sums(right, 1, executor)[0]
    return scores


@dataclass(frozen=True)
class Sampling:
    """How the cuts of a problem were sampled.

    Attributes
    ----------
    exact : bool
        Whether no cut was sampled.
    constant : bool
        Whether the solver has evaluated the risk on samples only.
    centred : bool
        Whether each cut is moved so that it touches the risk where it was made.
    size : int
        r, the size of a sample.
    radius : float
        The largest |δΨ| of a sampled item. For rows it is the largest √k(x, x).
    C : float
        The factor of the mean risk.
    loss : float
        The largest loss of an example; 1 for rows.
    """

    exact: bool
    constant: bool
    centred: bool
    size: int
    radius: float
    C: float
    loss: float = 1.0

    def bound(self, result: SolveResult, confidence: float) -> float:
        """How far the objective is above the optimum at most, with this probability.

        Theorems 2 and 3 of Yu & Joachims (2008), with three changes. (1) Their union bound is over
        the largest possible number of iterations. This one is over the iterations t that happened,
        with δ_t = 6δ/(π²t²). (2) If the objective P is known, |v*| ≤ √(2P) is known too. (3) The
        error at v* of a centred cut made at w_c is <g̃ − g, v* − w_c>, not <g̃ − g, v*>. If the cut
        is also exact in a span, the error is <g̃ − g, v* − Pv*>, and |v* − Pv*| ≤ |v* − w_c|.
        """
        gap = result.certificate.gap
        if self.exact:
            return gap
        doubt = 0.5 * (1.0 - confidence) if self.constant else 1.0 - confidence
        surprise = math.log((math.pi * max(1, result.n_iter)) ** 2 / (6.0 * doubt))
        if self.constant:
            width = self.loss + 2.0 * math.sqrt(2.0 * self.C * self.loss) * self.radius
            return gap + 2.0 * self.C * width * math.sqrt(surprise / (2.0 * self.size))
        reach = math.sqrt(2.0 * result.certificate.primal)
        if self.centred:
            reach += math.sqrt(2.0 * max(max(r.primal, r.dual) for r in result.trace))
        return gap + self.C * self.radius * reach * math.sqrt(2.0 * surprise / self.size)


NOT_SAMPLED = Sampling(exact=True, constant=False, centred=True, size=1, radius=0.0, C=0.0)


def sampling_bounds(
    samplings: list[Sampling], results: list[SolveResult], confidence: float
) -> list[float]:
    """The bound of every problem, with this probability."""
    if not 0.0 < check_number("confidence", confidence) < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    return [s.bound(r, confidence) for s, r in zip(samplings, results, strict=True)]
