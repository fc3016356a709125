"""Functions of parts in a kernel's feature space, trained by exact or sampled cuts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ..data import as_blocks
from ..exec import Executor
from ..kernels import Kernel, KernelMatrix, ProductMatrix, kernel_matrix
from ..kernels.lowrank import Projection, projected
from ..objective.constant import ConstantOracle
from ..objective.linear import LinearOracle, RowProducts
from ..objective.sampled import CutBasisOracle, ScoreRiskOracle
from ..objective.stored import StoredMatrix
from ..result import SolveResult, Status
from ..structured.parts import PartsModel, PartsPopulation, WithUnits
from ._fit import Problem, Ready, Run, Settings, Start, seeds, solve
from ._kernel import SINGLE_BOUND, SINGLE_TOL
from ._problems import bundle_solver, ready
from ._sampled import ConstantProblem, CutBasisProblem, Sampling, kind_of

# All kernel values of the training parts are stored if they take at most so many bytes. Otherwise
# every cut but the first few would compute them again.
STORED_BYTES = 1 << 29
CONSTANT = "constant"
# Default size of a sample: of parts, and of examples in the constant-time method.
SAMPLE_SIZE, CONSTANT_SAMPLE_SIZE = 1000, 100
# After a run that ended for one of these reasons, a smaller model may be trained. After an
# interrupt, a callback's stop or the time limit the fit must end.
UNFORCED = (Status.CONVERGED, Status.MAX_ITER, Status.NUMERICALLY_LIMITED)


class PartsFit:
    """Makes the problem of a model of parts with a kernel, and reduces the model after training.

    Attributes
    ----------
    problem : CutBasisProblem
        The ``w`` of its result has a row of coefficients per part, and below these the plain
        weights.
    kernel_values : int
        Number of kernel values that training has computed. ``improve`` sets it.
    basis_error : float
        |w − Pw| of the projection P to fewer parts; 0 without one. ``improve`` sets it.

    Parameters
    ----------
    estimator : estimator
        Has the parameters ``method``, ``sample_size``, ``passes``, ``max_basis`` and
        ``random_state``.
    kernel : Kernel
    X : ndarray or CSR matrix
        All parts; for a precomputed kernel the values of all pairs of them.
    model : PartsModel
        All examples.
    settings : Settings
        C multiplies the sum over examples.
    executor : Executor
    label : str
        For progress and logs.
    """

    def __init__(
        self,
        estimator: Any,
        kernel: Kernel,
        X: Any,
        model: PartsModel,
        settings: Settings,
        executor: Executor,
        label: str,
    ) -> None:
        method = estimator.method
        size = CONSTANT_SAMPLE_SIZE if method == CONSTANT else SAMPLE_SIZE
        size = size if estimator.sample_size is None else int(estimator.sample_size)
        if method == CONSTANT and size >= model.count:
            method = "exact"  # a sample would hold all examples, so a bound can be proved
        self._kernel, self._X, self._model, self._executor = kernel, X, model, executor
        self._settings, self._max_basis, self._size = settings, estimator.max_basis, size
        self._constant = method == CONSTANT
        # The constant-time method only needs to evaluate samples.
        self._score_risk = (
            model.some(np.arange(size), executor) if self._constant else model.score_risk(executor)
        )
        # Single precision is for sampled cuts only: an exact bound must hold for the kernel itself.
        sampled = size < {"linear": model.parts, CONSTANT: model.count}.get(method, 0)
        self._single = (
            sampled
            and settings.tol >= SINGLE_TOL
            and settings.C * model.count * self._score_risk.largest <= SINGLE_BOUND
        )
        self._matrix = kernel_matrix(kernel, X, executor, single=self._single)
        kind = kind_of(kernel, self._matrix)
        self._used = self._matrix if self._constant else _stored(self._matrix, executor)
        self._oracle = self._make_oracle(method, seeds(estimator.random_state, 1)[0])
        self._oracle.definite = bool(kernel.definite)
        if self._used.values is not None and self._matrix.values is None:
            self._oracle.kernel_values = X.shape[0] ** 2
        facts = (label, self._oracle, kind, float(model.count))
        self.problem = CutBasisProblem(*facts)
        if self._constant:
            self.problem = ConstantProblem(*facts, passes=int(estimator.passes))
        self.kernel_values, self.basis_error = 0, 0.0

    def _make_oracle(self, method: str, seed: int) -> CutBasisOracle:
        rng = np.random.default_rng(seed)
        if self._constant:
            population = PartsPopulation(self._used, self._model, self._executor)
            return ConstantOracle(population, self._executor, rng, size=self._size)
        exact = method == "exact" or (method == "auto" and self._used.values is not None)
        return ScoreRiskOracle(
            WithUnits(self._used, self._model.units),
            self._score_risk,
            self._executor,
            rng,
            size=None if exact else self._size,
            centred=self._settings.solver != "cpa",
            free=self._model.parts,
        )

    def sampling(self) -> Sampling:
        """What the theorems about samples need, from the largest √k(u, u).

        The linear-time method samples parts u, each of which adds φ(u)⊗coef to a cut. The
        constant-time method samples examples.
        """
        model = self._model
        radius = float(np.sqrt(max(0.0, np.max(self._used.diagonal, initial=0.0))))
        loss, reach = 1.0, model.parts * self._score_risk.largest * radius
        if self._constant:
            loss, reach = model.reach(radius)
        return Sampling(
            exact=self._oracle.exact,
            constant=self._constant,
            centred=self._settings.solver != "cpa",
            size=self._size,
            radius=reach,
            C=self._settings.C * model.count,
            loss=loss,
        )

    def improve(self, results: list[SolveResult]) -> list[SolveResult]:
        """The result to store: a model with at most ``max_basis`` parts, and its objective.

        Pivoted Cholesky chooses the parts B. A model in the span of φ(B) is linear in the features
        z(u) = L⁻¹·k_B(u), K_BB = LLᵀ, and has the same |w| there. The best model in the span is far
        better than the projection of the best model of all. So the projection is only the start of
        another fit, of a linear model on these features.
        """
        result, model = results[0], self._model
        self.kernel_values = self._oracle.kernel_values
        if result.w.ndim == 1:  # the solver has no cut, because no example had a loss
            result = dataclasses.replace(result, w=np.zeros(model.shape))
        parts, most = model.parts, self._max_basis
        rows = np.flatnonzero(np.any(result.w[:parts] != 0.0, axis=1))
        if most is None or len(rows) <= most:
            return [result]
        matrix = self._matrix
        if isinstance(matrix, ProductMatrix):  # in double precision
            matrix = kernel_matrix(self._kernel, self._X, self._executor, single=False)
        if self._constant:
            self._score_risk = model.score_risk(self._executor)
        projection = projected(matrix, rows, result.w[rows], most)
        w = np.zeros_like(result.w)
        w[projection.rows] = projection.coef
        w[parts:] = result.w[parts:]
        if result.status in UNFORCED:
            left = max(0.0, self._settings.time_limit - result.timings["total"])
            self._refit(projection, matrix, w, left)
        point = self._score_risk.new_point(np.empty(0))
        point.scores[:parts] = matrix.combine(projection.rows, w[projection.rows])
        point.scores[parts:] = w[parts:]
        self._score_risk.evaluate(point)
        squared = float(np.einsum("ij,ij->", w, point.scores))
        primal = 0.5 * squared + self._settings.C * model.count * point.risk
        certificate = dataclasses.replace(
            result.certificate, primal=primal, dual=min(primal, result.certificate.dual)
        )
        self.basis_error = projection.error
        return [dataclasses.replace(result, w=w, certificate=certificate)]

    def _refit(
        self, projection: Projection, matrix: KernelMatrix, w: np.ndarray, seconds: float
    ) -> None:
        """Change w to the best one in the span of its parts.

        The factors of the plain weights (units) become features of their own.
        """
        factor, (parts, units) = projection.factor, (self._model.parts, self._model.units)
        own, outputs = projection.coef.shape
        values = matrix.rows(projection.rows).astype(np.float64, copy=False)
        features = np.zeros((parts + units, own + units), np.float32 if self._single else None)
        features[:parts, :own] = scipy.linalg.solve_triangular(factor, values, lower=True).T
        features[parts:, own:] = np.eye(units)
        blocks = as_blocks(features)
        shape = (own + units, outputs)
        products = RowProducts(blocks, shape, 0.0, self._executor, updates=False)
        oracle = LinearOracle(blocks, self._score_risk, products=products)
        start = np.concatenate([factor.T @ projection.coef, w[parts:]])
        settings = dataclasses.replace(self._settings, time_limit=seconds)
        problem = SpanProblem("basis", oracle, float(self._model.count))
        fitted = solve([problem], settings, self._executor, starts=lambda k: Start(start))
        found = fitted.results[0].w.reshape(shape)
        w[projection.rows] = scipy.linalg.solve_triangular(
            factor, found[:own], lower=True, trans="T"
        )
        w[parts:] = found[own:]


@dataclass
class SpanProblem(Problem):
    """A model that is linear in features of the parts. C multiplies the sum over examples.

    Attributes
    ----------
    label : str
    oracle : LinearOracle
    total : float
        The number of examples.
    """

    label: str
    oracle: LinearOracle
    total: float

    def solver(self, run: Run) -> Ready:
        return ready(bundle_solver(self.oracle, run.C * self.total, run), run)


def _stored(matrix: KernelMatrix, executor: Executor) -> KernelMatrix:
    """The matrix with all its values computed, if they fit into STORED_BYTES; else as it is."""
    if matrix.values is not None:
        return StoredMatrix(matrix.values, executor)
    if matrix.columns**2 * matrix.dtype.itemsize > STORED_BYTES:
        return matrix
    return StoredMatrix(matrix.whole(), executor)
