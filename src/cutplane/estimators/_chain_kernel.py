"""A chain with a kernel, from tokens to a fitted model: by exact or sampled cuts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bundle import StopRule
from ..data.blas import single_threaded_blas
from ..exec import Executor, SerialExecutor, make_executor
from ..kernels import Kernel, KernelMatrix, ProductMatrix, StoredMatrix
from ..lowrank import projected
from ..oracles import Point
from ..result import Iteration, SolveResult
from ..structured.chain import LabelledChains
from ..structured.kernel_chain import KernelChainOracle, KernelChainSurface
from ._kernel_solve import SINGLE_BOUND, SINGLE_TOL
from ._sampled import MadeProblem, Sampling, is_indefinite, kernel_matrix, withheld
from ._solve import Session

# All values of a training set's tokens are stored, if they take no more than this: every cut
# but the first few would compute them again.
STORED_BYTES = 1 << 29


@dataclass(frozen=True)
class KernelChainSettings:
    """How a chain with a kernel is trained.

    Attributes
    ----------
    C : float
        Of the mean over sequences.
    solver : {'ocas', 'cpa'}
    stop : StopRule
    tol : float
        Of the stop rule, whatever its unit.
    method : {'auto', 'linear', 'exact'}
    sample_size : int
        Tokens of a sample.
    max_basis : int or None
    seed : int
        Of the samples.
    n_jobs : int or None
    verbose : int
    callback : callable or None
    """

    C: float
    solver: str
    stop: StopRule
    tol: float
    method: str
    sample_size: int
    max_basis: int | None
    seed: int
    n_jobs: int | None
    verbose: int
    callback: Callable[[Iteration], bool | None] | None


@dataclass(frozen=True)
class KernelChainFit:
    """A trained chain.

    Attributes
    ----------
    result : SolveResult
        ``w`` has a row of coefficients per token, and below these the plain numbers.
    sampling : Sampling
    kernel_values : int
        Computed in training.
    basis_error : float
        |w − Pw| of the projection to fewer tokens.
    indefinite : bool
        Whether the kernel is known not to be semidefinite.
    """

    result: SolveResult
    sampling: Sampling
    kernel_values: int
    basis_error: float
    indefinite: bool


# What an iteration is told to: the best point's coefficients, if asked for.
OnIteration = Callable[[Callable[[], np.ndarray]], bool]


def fit_kernel_chain(
    kernel: Kernel,
    X: Any,
    chains: LabelledChains,
    settings: KernelChainSettings,
    on_iteration: OnIteration,
) -> KernelChainFit:
    """Train a chain with a kernel between tokens.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix
        All tokens; for a precomputed kernel the values of all pairs of them.
    chains : LabelledChains
    settings : KernelChainSettings
    on_iteration : callable
        Called after every iteration; a true answer stops the fit.
    """
    rows, width = X.shape
    with (
        single_threaded_blas(),
        make_executor(settings.n_jobs, rows * max(1, width) * 16) as executor,
    ):
        if kernel.function is not None:
            executor = SerialExecutor()  # the user's function is called from one thread
        single = settings.tol >= SINGLE_TOL and settings.C * chains.weight <= SINGLE_BOUND
        matrix = kernel_matrix(kernel, X, executor, single=single)
        indefinite = is_indefinite(kernel, matrix)
        used = _stored(matrix, executor)
        surface = KernelChainSurface(chains, executor)
        exact = {"auto": used.values is not None, "exact": True}.get(settings.method, False)
        oracle = KernelChainOracle(
            used,
            surface,
            executor,
            np.random.default_rng(settings.seed),
            size=None if exact else settings.sample_size,
            centred=settings.solver == "ocas",
        )
        oracle.definite = bool(kernel.definite)
        if used.values is not None and matrix.values is None:
            oracle.kernel_values = rows * rows
        session = Session(
            used,  # type: ignore[arg-type]
            executor,
            C=settings.C,
            solver=settings.solver,
            stop=settings.stop,
            random_state=None,
            verbose=settings.verbose,
            callback=settings.callback,
            keep_cuts=False,
        )
        session.solve(
            MadeProblem("chain", 0.0, oracle),
            on_iteration=lambda w, _: on_iteration(lambda: _coefficients(oracle, w)),
        )
        result = session.results[0]
        if indefinite:
            result = withheld(result)
        kernel_values, error = oracle.kernel_values, 0.0
        if settings.max_basis is not None:
            precise = matrix
            if isinstance(matrix, ProductMatrix):
                precise = kernel_matrix(kernel, X, executor, single=False)
            result, error = _reduced(result, precise, surface, settings)
        return KernelChainFit(result, _sampling(oracle, settings), kernel_values, error, indefinite)


def _stored(matrix: KernelMatrix, executor: Executor) -> KernelMatrix:
    """With all values computed, if they fit."""
    if matrix.values is not None:
        return StoredMatrix(matrix.values, executor)
    if matrix.columns**2 * matrix.dtype.itemsize > STORED_BYTES:
        return matrix
    return StoredMatrix(matrix.whole(), executor)


def _coefficients(oracle: KernelChainOracle, w: np.ndarray) -> np.ndarray:
    """Coefficients of a point of the solver's."""
    expansion = oracle.span.expand(w)
    out = np.zeros(oracle.surface.shape)
    out[expansion.rows] = expansion.coef.reshape(-1, out.shape[1])
    return out


def _sampling(oracle: KernelChainOracle, settings: KernelChainSettings) -> Sampling:
    """What the theorems need: a wrong token counts (token weight)·φ(x)⊗(e_z − e_y)."""
    mean_length = float(oracle.surface.chains.token_weights.sum())
    diagonal = oracle.matrix.diagonal
    return Sampling(
        exact=oracle.exact,
        constant=False,
        centred=settings.solver == "ocas",
        size=settings.sample_size,
        radius=mean_length * float(np.sqrt(2.0 * max(0.0, np.max(diagonal)))),
        C=settings.C,
    )


def _reduced(
    result: SolveResult,
    matrix: KernelMatrix,
    surface: KernelChainSurface,
    settings: KernelChainSettings,
) -> tuple[SolveResult, float]:
    """Emissions projected to the span of few tokens, the objective computed anew; |w − Pw|."""
    assert settings.max_basis is not None
    tokens = surface.tokens
    coef = result.w[:tokens]
    rows = np.flatnonzero(np.any(coef != 0.0, axis=1))
    if len(rows) <= settings.max_basis:
        return result, 0.0
    projection = projected(matrix, rows, coef[rows], settings.max_basis)
    w = np.zeros_like(result.w)
    w[projection.rows] = projection.coef
    w[tokens:] = result.w[tokens:]
    point: Point = surface.new_point(np.empty(0))
    point.scores[:tokens] = matrix.combine(projection.rows, projection.coef)
    point.scores[tokens:] = w[tokens:]
    surface.settle(point)
    squared = float(np.einsum("ij,ij->", w, point.scores))
    primal = 0.5 * squared + settings.C * point.risk
    certificate = dataclasses.replace(
        result.certificate, primal=primal, dual=min(primal, result.certificate.dual)
    )
    return dataclasses.replace(result, w=w, certificate=certificate), projection.error
