"""From a problem on blocks to a result: what all linear estimators share.

A fit is a ``Session``: one data set, one executor, one or more problems on it
that share the time limit and react to the same interrupt.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..bundle import AdaptivePosition, BundleSolver, IterativeSolver, Observer, StopRule
from ..bundle.cached import CachedBundleSolver
from ..data import BlockedMatrix
from ..descent import AutoSolver, CoordinateSolver
from ..exec import Executor
from ..oracles import Cut, LinearOracle, Oracle, RowOracle, WholeSurface
from ..oracles.structured import JointModel, StructuredOracle
from ..report import progress
from ..result import Certificate, Iteration, SolveResult, Status
from ..risks import HingeRisk, Risk, Targets, WholeRisk
from ..stochastic import SGD, Pegasos, Schedule, StochasticSolver
from ._callbacks import WARN_LEVEL
from ._form import NearlyFreeBias

logger = logging.getLogger("cutplane")

STOCHASTIC: dict[str, Schedule] = {"sgd": SGD(), "pegasos": Pegasos()}
SOLVERS = ("auto", "ocas", "cpa", "dcd", *STOCHASTIC)


class Data(Protocol):
    """What a session needs to know of its data itself; the problems know the rest."""

    def digest(self) -> bytes:
        """A fingerprint."""
        ...


@dataclass(frozen=True)
class Problem(ABC):
    """One risk on the session's data.

    Attributes
    ----------
    label : str
        For progress and logs.
    constant : float
        Value of the constant feature behind a regularised bias; 0 for none.
    """

    label: str
    constant: float

    @property
    @abstractmethod
    def total(self) -> float:
        """What turns the risk of the loop into that of the user's objective."""

    @abstractmethod
    def oracle(self, matrix: Any, executor: Executor) -> Oracle:
        """The problem on the session's data."""

    @abstractmethod
    def digest(self) -> bytes:
        """Identifies the risk and its targets."""


@dataclass(frozen=True)
class RowProblem(Problem):
    """A risk that is a sum over rows: C multiplies the sum of the losses.

    Attributes
    ----------
    targets : Targets
    risk : Risk
    free_bias : bool
        Whether there is an unregularised bias.
    nearly_free : NearlyFreeBias or None
        If the constant feature stands for an unregularised bias.
    """

    targets: Targets
    risk: Risk
    free_bias: bool
    nearly_free: NearlyFreeBias | None = None

    @property
    def total(self) -> float:
        return self.targets.total

    def oracle(self, matrix: BlockedMatrix, executor: Executor) -> RowOracle:
        return RowOracle(
            matrix,
            self.targets,
            self.risk,
            executor,
            constant=self.constant,
            free_bias=self.free_bias,
            slack=self.nearly_free.slack if self.nearly_free else None,
        )

    def digest(self) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((type(self.risk).__name__, self.constant, self.free_bias)).encode())
        digest.update(self.targets.labels.data)
        digest.update(self.targets.weights.data)
        return digest.digest()

    def carried(self, dual_point: np.ndarray, factor: float) -> np.ndarray:
        """A dual point divided by C, for another C: ``factor`` is the old one by the new one.

        Rows of the hinge at their bound stay there. Where the others' margins are 1 their α
        hardly depends on C, so that α/C changes by the factor.
        """
        if not isinstance(self.risk, HingeRisk):
            return dual_point
        weights = self.targets.weights
        bound = dual_point >= weights * (1.0 - 1e-12)
        return np.where(bound, weights, np.minimum(factor * dual_point, weights))


@dataclass(frozen=True)
class WholeProblem(Problem):
    """A risk of all scores at once: C multiplies the risk."""

    risk: WholeRisk

    @property
    def total(self) -> float:
        return 1.0

    def oracle(self, matrix: BlockedMatrix, executor: Executor) -> LinearOracle:
        return LinearOracle(matrix, WholeSurface(self.risk, executor), constant=self.constant)

    def digest(self) -> bytes:
        return self.risk.digest() + repr(self.constant).encode()


@dataclass(frozen=True)
class JointProblem(Problem):
    """A structured problem, whose model is the session's data: C multiplies the mean risk."""

    @property
    def total(self) -> float:
        return 1.0

    def oracle(self, matrix: JointModel, executor: Executor) -> StructuredOracle:
        return StructuredOracle(matrix, executor)

    def digest(self) -> bytes:
        return b""


@dataclass(frozen=True)
class Memory:
    """What a warm start keeps of a problem.

    Attributes
    ----------
    cuts : tuple of Cut
        Those active at the solution. They hold for the same risk on the same data only.
    digest : bytes
        Of that risk and data.
    dual_point : ndarray or None
        The solution's dual point per row, divided by C, from the solvers that keep one.
    C : float
        Of that solution.
    """

    cuts: tuple[Cut, ...]
    digest: bytes
    dual_point: np.ndarray | None
    C: float


class Session:
    """Solves problems on one data set.

    Attributes
    ----------
    results : list of SolveResult
        Of the problems solved so far.
    memories : dict of int to Memory
        By number of the problem, where wanted.
    ended : Status or None
        How the user ended it: INTERRUPTED or STOPPED.

    Parameters
    ----------
    matrix, executor
        The data, and who runs over them.
    C : float
        Of the user's objective.
    solver : str
        One of SOLVERS.
    stop : StopRule
        Its time limit is for all problems together.
    random_state : int, RandomState or None
    verbose : int
    callback : callable or None
        The user's, called after every iteration.
    keep_cuts : bool
        Whether memories are wanted.
    one_session : bool
        Whether memories are for this session's own problems, whose data need no fingerprint.
    """

    def __init__(
        self,
        matrix: Data,
        executor: Executor,
        *,
        C: float,
        solver: str,
        stop: StopRule,
        random_state: Any,
        verbose: int,
        callback: Callable[[Iteration], bool | None] | None,
        keep_cuts: bool,
        one_session: bool = False,
    ) -> None:
        self._matrix = matrix
        self._executor = executor
        self._C = C
        self._solver = solver
        self._stop = stop
        try:
            self._random = check_random_state(random_state)
        except ValueError as error:
            raise ValueError(f"random_state: {error}") from error
        self._seeded = random_state is not None
        self._verbose = verbose
        self._callback = callback
        self._keep_cuts = keep_cuts
        self._fingerprint = keep_cuts and not one_session
        self._matrix_digest = matrix.digest() if self._fingerprint else b""
        self.results: list[SolveResult] = []
        self.memories: dict[int, Memory] = {}
        self.ended: Status | None = None

    def interrupt(self) -> None:
        """The user wants no more: the remaining problems get a single iteration each."""
        self.ended = Status.INTERRUPTED

    def solve_all(self, count: int, solve: Callable[[int], None]) -> None:
        """Call ``solve(k)``, which solves the k-th problem, until there are ``count`` results."""
        while len(self.results) < count:
            try:
                solve(len(self.results))
            except KeyboardInterrupt:  # between two problems; within one the solver stops
                if not self.results or self.ended:
                    raise
                self.interrupt()

    def solve(
        self,
        problem: Problem,
        *,
        C: float | None = None,
        start: np.ndarray | None = None,
        memory: Memory | None = None,
        dual_point: np.ndarray | None = None,
        on_iteration: Callable[[np.ndarray, float], bool] | None = None,
    ) -> None:
        """Solve the next problem.

        After an interrupt or a callback's stop, or beyond the time limit, the remaining
        problems get a single iteration each, so that the model is complete.

        Parameters
        ----------
        problem : Problem
        C : float, optional
            If not the session's.
        start : ndarray, optional
            Where to start.
        memory : Memory, optional
            Of an earlier solution.
        dual_point : ndarray, optional
            A dual point per row, divided by C: gives a cut to start with.
        on_iteration : callable, optional
            Gets the best point so far, (w, bias); a true answer stops the solver.
        """
        C = self._C if C is None else C
        oracle = problem.oracle(self._matrix, self._executor)
        spent = sum(result.timings["total"] for result in self.results)
        limit = 0.0 if self.ended else max(0.0, self._stop.time_limit - spent)
        stop = dataclasses.replace(self._stop, time_limit=limit)
        with progress(self._verbose, problem.label, target=stop.relative or None) as show:

            def observe(record: Iteration) -> bool:
                show(record)
                stops = False
                if self._callback is not None:
                    named = dataclasses.replace(record, problem=problem.label)
                    stops = bool(self._callback(named))
                if on_iteration is not None:
                    stops |= on_iteration(solver.best.w, solver.best.bias)
                return stops

            digest = self._digest(problem)
            cuts: tuple[Cut, ...] = ()
            if dual_point is not None:
                assert isinstance(problem, RowProblem) and isinstance(oracle, RowOracle)
                dual_point = problem.risk.clip_dual(dual_point, problem.targets)
                cuts = (oracle.dual_cut(-problem.targets.labels * dual_point),)
            if memory is not None and memory.digest == digest:
                cuts = (*memory.cuts, *cuts)
                if dual_point is None and memory.dual_point is not None:
                    assert isinstance(problem, RowProblem)
                    dual_point = problem.carried(memory.dual_point, memory.C / C)
            solver = self._make_solver(oracle, C * problem.total, stop, observe, dual_point)
            if start is not None and not (
                start.size == oracle.dimension and np.all(np.isfinite(start))
            ):
                start = None
            # From here on the result cannot be lost by an interrupt.
            self.results.append(solver.run(start, cuts))
        self._note_end(problem.label)
        if self._keep_cuts:
            self.memories[len(self.results) - 1] = Memory(
                solver.active_cuts(), digest, solver.dual_point(), C
            )

    def _note_end(self, label: str) -> None:
        """Log how the last problem ended, and remember if the user ended it."""
        result = self.results[-1]
        if self.ended is None and result.status in (Status.INTERRUPTED, Status.STOPPED):
            self.ended = result.status
        elif self.ended is not None and result.status is not Status.CONVERGED:
            result = self.results[-1] = dataclasses.replace(result, status=self.ended)
        logger.info(
            "%s: %s after %d iterations and %.2f s, %s",
            label,
            result.status.reason,
            result.n_iter,
            result.timings["total"],
            result.certificate,
        )

    def _make_solver(
        self,
        oracle: Oracle,
        C: float,
        stop: StopRule,
        observer: Observer,
        dual_point: np.ndarray | None,
    ) -> IterativeSolver:
        if self._solver == "auto":
            # Reproducible without a seed: nobody who names no solver expects chance in it.
            seed = self._random.randint(2**31 - 1) if self._seeded else 0
            rng = np.random.default_rng(seed)
            return AutoSolver(oracle, C, stop, rng, observer, dual_point)
        if self._solver == "dcd" or self._solver in STOCHASTIC:
            assert isinstance(oracle, RowOracle)
            # One stream of numbers per problem, all from the session's.
            rng = np.random.default_rng(self._random.randint(2**31 - 1))
            if self._solver == "dcd":
                return CoordinateSolver(oracle, C, stop, rng, observer, dual_point)
            return StochasticSolver(oracle, C, stop, STOCHASTIC[self._solver], rng, observer)
        position = AdaptivePosition() if self._solver == "ocas" else None
        if isinstance(oracle, StructuredOracle):
            return CachedBundleSolver(oracle, C, stop, position, observer, oracle.cheap_cut)
        return BundleSolver(oracle, C, stop, position, observer)

    def _digest(self, problem: Problem) -> bytes:
        if not self._fingerprint:
            return b""
        return self._matrix_digest + problem.digest()


def divided(certificate: Certificate, by: float) -> Certificate:
    """The certificate of the objective divided by a number."""
    return dataclasses.replace(
        certificate, primal=certificate.primal / by, dual=certificate.dual / by
    )


def warn_unless_converged(name: str, results: list[SolveResult], level: int = WARN_LEVEL) -> None:
    """Warn of the worst result above the tolerance, unless the user's callback ended it.

    To be called by ``fit`` itself, so that the warning shows the caller's line; ``level`` is
    that of the caller, from here, where ``fit`` is not wrapped.
    """
    worst = max(
        (r for r in results if r.status not in (Status.CONVERGED, Status.STOPPED)),
        key=lambda r: r.certificate.relative_gap,
        default=None,
    )
    if worst is None:
        return
    advice = {
        Status.MAX_ITER: " Raise max_iter, or tol if this is close enough.",
        Status.TIME_LIMIT: " Raise time_limit, or tol if this is close enough.",
        Status.NUMERICALLY_LIMITED: " Bring the features to similar scales, or lower C.",
    }.get(worst.status, "")
    certificate = worst.certificate
    warnings.warn(
        f"{name} {worst.status.reason} after {worst.n_iter} iterations, above tol: the "
        f"objective {certificate.primal:.6g} is at most {certificate.gap:.3g} above the "
        f"optimum (relative gap {certificate.relative_gap:.2g}).{advice}",
        ConvergenceWarning,
        stacklevel=level,
    )
