"""Functions of parts in a kernel's feature space, trained by exact or sampled cuts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from .._blas import single_threaded_blas
from ..data import as_blocks
from ..exec import Executor, SerialExecutor, make_executor
from ..kernels import Kernel, KernelMatrix, ProductMatrix, kernel_matrix
from ..kernels.lowrank import Projection, projected
from ..objective import Point
from ..objective.constant import ConstantOracle
from ..objective.linear import RowProducts
from ..objective.sampled import CutBasisOracle, ScoreRiskOracle
from ..objective.stored import StoredMatrix
from ..result import SolveResult, Status
from ..structured.parts import (
    FeatureModel,
    PartsModel,
    PartsPopulation,
    PartsScoreRisk,
    Reach,
    WithUnits,
)
from ._fit import Problem, Settings, solve
from ._kernel_problem import SINGLE_BOUND, SINGLE_TOL
from ._problems import JointProblem
from ._sampled import ConstantProblem, CutBasisProblem, Sampling, kind_of

# All values of a training set's parts are stored, if they take no more than this: every cut
# but the first few would compute them again.
STORED_BYTES = 1 << 29
CONSTANT = "constant"
Improve = Callable[[list[SolveResult]], list[SolveResult]]
Runner = Callable[[Sequence[Problem], Executor, Improve], list[SolveResult]]
# Ends after which more work may follow.
UNFORCED = (Status.CONVERGED, Status.MAX_ITER, Status.NUMERICALLY_LIMITED)


@dataclass(frozen=True)
class PartsSettings:
    """How a model of parts with a kernel is trained.

    Attributes
    ----------
    common : Settings
        C multiplies the sum over examples.
    method : {'auto', 'linear', 'constant', 'exact'}
    sample_size : int
        Parts of a sample; examples in the constant-time method.
    passes : int
        Samples in a row without a violation that end the constant-time method.
    max_basis : int or None
    seed : int
        Of the samples.
    n_jobs : int or None
    """

    common: Settings
    method: str
    sample_size: int
    passes: int
    max_basis: int | None
    seed: int
    n_jobs: int | None


@dataclass(frozen=True)
class PartsFit:
    """A trained model of parts.

    Attributes
    ----------
    result : SolveResult
        ``w`` has a row of coefficients per part, and below these the plain numbers.
    sampling : Sampling
    kernel_values : int
        Computed in training.
    basis_error : float
        |w − Pw| of the projection to fewer parts.
    problem : CutBasisProblem
    """

    result: SolveResult
    sampling: Sampling
    kernel_values: int
    basis_error: float
    problem: CutBasisProblem


def fit_parts(
    kernel: Kernel,
    X: Any,
    model: PartsModel,
    settings: PartsSettings,
    label: str,
    run: Runner,
) -> PartsFit:
    """Train functions of parts in a kernel's feature space.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix
        All parts; for a precomputed kernel the values of all pairs of them.
    model : PartsModel
        All examples.
    settings : PartsSettings
    label : str
        For progress and logs.
    run : callable
        Solves the problem with an executor; makes the stored result from the solver's by a
        function.
    """
    if settings.method == CONSTANT and settings.sample_size >= model.count:
        settings = dataclasses.replace(settings, method="exact")  # there is something to prove
    rows, width = X.shape
    with (
        single_threaded_blas(),
        make_executor(settings.n_jobs, rows * max(1, width) * 64) as executor,
    ):
        if kernel.function is not None:
            executor = SerialExecutor()  # the user's function is called from one thread
        constant = settings.method == CONSTANT
        score_risk = _first_score_risk(model, settings, executor)
        # An exact bound must hold for the kernel itself.
        sampled = settings.sample_size < {"linear": model.parts, CONSTANT: model.count}.get(
            settings.method, 0
        )
        single = (
            settings.common.tol >= SINGLE_TOL
            and settings.common.C * model.count * score_risk.largest <= SINGLE_BOUND
        )
        single &= sampled
        matrix = kernel_matrix(kernel, X, executor, single=single)
        kind = kind_of(kernel, matrix)
        used = matrix if constant else _stored(matrix, executor)
        oracle = _oracle(used, model, score_risk, settings, executor)
        oracle.definite = bool(kernel.definite)
        if used.values is not None and matrix.values is None:
            oracle.kernel_values = rows * rows
        problem = CutBasisProblem(
            label, oracle, lambda w: _coefficients(oracle, model, w), kind, model.count
        )
        if constant:
            problem = ConstantProblem(**vars(problem), passes=settings.passes)
        kernel_values, error = 0, 0.0

        def improve(results: list[SolveResult]) -> list[SolveResult]:
            nonlocal kernel_values, error
            result, kernel_values = results[0], oracle.kernel_values
            if result.w.ndim == 1:  # there was no loss, and so no cut
                result = dataclasses.replace(result, w=np.zeros(model.shape))
            if settings.max_basis is not None:
                precise = matrix
                if isinstance(matrix, ProductMatrix):
                    precise = kernel_matrix(kernel, X, executor, single=False)
                every = model.score_risk(executor) if constant else score_risk
                dtype = np.float32 if single else np.float64
                reduction = Reduction(precise, every, settings, model.count, dtype)
                result, error = reduction.reduced(result)
            return [result]

        result = run([problem], executor, improve)[0]
        radius = float(np.sqrt(max(0.0, np.max(used.diagonal, initial=0.0))))
        sampling = _sampling(oracle.exact, model, score_risk, radius, settings)
        return PartsFit(result, sampling, kernel_values, error, problem)


def _first_score_risk(
    model: PartsModel, settings: PartsSettings, executor: Executor
) -> PartsScoreRisk:
    """The risk; in the constant-time method of as many examples as a sample has."""
    if settings.method != CONSTANT:
        return model.score_risk(executor)
    return model.some(np.arange(min(model.count, settings.sample_size)), executor)


def _oracle(
    matrix: KernelMatrix,
    model: PartsModel,
    score_risk: PartsScoreRisk,
    settings: PartsSettings,
    executor: Executor,
) -> ScoreRiskOracle | ConstantOracle:
    rng, size = np.random.default_rng(settings.seed), settings.sample_size
    if settings.method == CONSTANT:
        population = PartsPopulation(matrix, model, executor)
        return ConstantOracle(population, executor, rng, size=size)
    exact = {"auto": matrix.values is not None, "exact": True}.get(settings.method, False)
    centred = settings.common.solver != "cpa"
    return ScoreRiskOracle(
        WithUnits(matrix, model.units),
        score_risk,
        executor,
        rng,
        size=None if exact else size,
        centred=centred,
        free=model.parts,
    )


def _stored(matrix: KernelMatrix, executor: Executor) -> KernelMatrix:
    """With all values computed, if they fit."""
    if matrix.values is not None:
        return StoredMatrix(matrix.values, executor)
    if matrix.columns**2 * matrix.dtype.itemsize > STORED_BYTES:
        return matrix
    return StoredMatrix(matrix.whole(), executor)


def _coefficients(oracle: CutBasisOracle, model: PartsModel, w: np.ndarray) -> np.ndarray:
    """Coefficients of a point of the solver's."""
    expansion = oracle.cut_basis.expand(w)
    out = np.zeros(model.shape)
    out[expansion.rows] = expansion.coef.reshape(-1, out.shape[1])
    return out


def _sampling(
    exact: bool,
    model: PartsModel,
    score_risk: PartsScoreRisk,
    radius: float,
    settings: PartsSettings,
) -> Sampling:
    """What the theorems need, from the largest √k(u, u).

    In the linear-time method what is sampled are parts, which count φ(u)⊗coef; in the
    constant-time method examples.
    """
    constant = settings.method == CONSTANT
    reach = (
        model.reach(radius) if constant else Reach(1.0, model.parts * score_risk.largest * radius)
    )
    return Sampling(
        exact=exact,
        constant=constant,
        centred=settings.common.solver != "cpa",
        size=settings.sample_size,
        radius=reach.radius,
        C=settings.common.C * model.count,
        loss=reach.loss,
    )


@dataclass(frozen=True)
class Reduction:
    """Functions in the span of few parts.

    The parts B are chosen by pivoted Cholesky. In the span a model is linear in the features
    z(u) = L⁻¹·k_B(u), K_BB = LLᵀ, with the same |w|: from the projection of the model on it is
    trained as such, because the best model in the span is far better than the projection of
    the best one.

    Attributes
    ----------
    matrix : KernelMatrix
        Of all parts, as precise as can be.
    score_risk : PartsScoreRisk
    settings : PartsSettings
    count : int
        Number of examples.
    dtype : type
        Of the features.
    """

    matrix: KernelMatrix
    score_risk: PartsScoreRisk
    settings: PartsSettings
    count: int
    dtype: type

    def reduced(self, result: SolveResult) -> tuple[SolveResult, float]:
        """The result with fewer parts, its objective computed anew, and |w − Pw|."""
        assert self.settings.max_basis is not None
        parts = self.score_risk.parts
        rows = np.flatnonzero(np.any(result.w[:parts] != 0.0, axis=1))
        if len(rows) <= self.settings.max_basis:
            return result, 0.0
        projection = projected(self.matrix, rows, result.w[rows], self.settings.max_basis)
        w = np.zeros_like(result.w)
        w[projection.rows] = projection.coef
        w[parts:] = result.w[parts:]
        if result.status in UNFORCED:
            self._refit(projection, result, w)
        point: Point = self.score_risk.new_point(np.empty(0))
        point.scores[:parts] = self.matrix.combine(projection.rows, w[projection.rows])
        point.scores[parts:] = w[parts:]
        self.score_risk.evaluate(point)
        squared = float(np.einsum("ij,ij->", w, point.scores))
        primal = 0.5 * squared + self.settings.common.C * self.count * point.risk
        certificate = dataclasses.replace(
            result.certificate, primal=primal, dual=min(primal, result.certificate.dual)
        )
        return dataclasses.replace(result, w=w, certificate=certificate), projection.error

    def _refit(self, projection: Projection, result: SolveResult, w: np.ndarray) -> None:
        """Change w to the best one in the span of its parts."""
        score_risk, factor = self.score_risk, projection.factor
        values = self.matrix.rows(projection.rows).astype(np.float64, copy=False)
        features = scipy.linalg.solve_triangular(factor, values, lower=True).T
        blocks = as_blocks(np.ascontiguousarray(features, dtype=self.dtype))
        shape = (len(factor), projection.coef.shape[1])
        products = RowProducts(blocks, shape, 0.0, score_risk.executor, updates=False)
        model = FeatureModel(products, len(factor), score_risk, self.count)
        own = (factor.T @ projection.coef).reshape(-1)
        start = np.concatenate([own, w[score_risk.parts :].reshape(-1)])
        left = self.settings.common.time_limit - result.timings["total"]
        common = dataclasses.replace(self.settings.common, time_limit=max(0.0, left))
        problem = JointProblem("basis", model)
        found = solve([problem], common, score_risk.executor, starts=[start]).results[0].w
        w[projection.rows] = scipy.linalg.solve_triangular(
            factor, found[: own.size].reshape(shape), lower=True, trans="T"
        )
        w[score_risk.parts :].reshape(-1)[:] = found[own.size :]
