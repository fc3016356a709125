"""From a problem on blocks to a result: what all linear estimators share.

A fit is a ``Session``: one data set, one executor, one or more problems on it
that share the time limit and react to the same interrupt.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .. import _interrupts
from ..bundle import (
    AdaptivePosition,
    BundleSolver,
    CutPosition,
    FixedPosition,
    IterativeSolver,
    Observer,
    StopRule,
)
from ..bundle.cached import CachedBundleSolver
from ..bundle.sampled import ConstantTimeSolver, SampledSolver
from ..cluster.rows import RemoteMatrix
from ..exec import Executor
from ..oracles import Cut, Oracle, Point, RowOracle
from ..oracles.constant import ConstantOracle
from ..oracles.sampled import WholeOracle
from ..oracles.structured import StructuredOracle
from ..report import progress
from ..result import Certificate, Iteration, SolveResult, Status
from ..solvers import AutoSolver, CoordinateSolver
from ..stochastic import SGD, Pegasos, Schedule, StochasticSolver
from ._problems import Data, Problem, RowProblem
from .checkpoint import WRONG, CheckpointFile, Known, done_by

logger = logging.getLogger("cutplane")

STOCHASTIC: dict[str, Schedule] = {"sgd": SGD(), "pegasos": Pegasos()}
# Sampled cuts are the better the more they are apart: 0.3 took fewer iterations than 0.1 and 0.5,
# and than the rule for exact cuts, which reads the noise as progress.
SAMPLED_POSITION = FixedPosition(0.3)
SOLVERS = ("auto", "ocas", "cpa", "dcd", *STOCHASTIC)


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
    point : Point or None
        The solution with its scores, for a next one on the same data, where they are at hand.
    """

    cuts: tuple[Cut, ...]
    digest: bytes
    dual_point: np.ndarray | None
    C: float
    point: Point | None = None


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
    checkpoint : CheckpointFile or None
        Where the state is written, and what it was.
    one_session : bool
        Whether memories are for this session's own problems, whose data need no fingerprint.
    passes : int, optional
        Samples in a row without a violation that end the constant-time method.
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
        checkpoint: CheckpointFile | None = None,
        one_session: bool = False,
        passes: int = 1,
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
        self._checkpoint = checkpoint
        self._spent = 0.0  # seconds, of the time limit
        self._fingerprint = keep_cuts and not one_session
        # On a cluster, and in a run that goes on from a checkpoint, nobody has them: cutting planes
        # give the same bits there as here.
        self._keep_points = one_session and checkpoint is None and solver in ("auto", "dcd")
        self._matrix_digest = matrix.digest() if self._fingerprint else b""
        self._crew = getattr(matrix, "crew", None)  # if the data is on a cluster
        self._passes = passes
        self._last: tuple[Problem, Oracle] | None = None
        self.results: list[SolveResult] = []
        self.memories: dict[int, Memory] = {}
        self.ended: Status | None = None

    def interrupt(self) -> None:
        """The user wants no more: the remaining problems get a single iteration each."""
        self.ended = Status.INTERRUPTED
        _interrupts.settled()

    def solve_all(self, count: int, solve: Callable[[int], None]) -> None:
        """Call ``solve(k)``, which solves the k-th problem, until there are ``count`` results."""
        while len(self.results) < count:
            try:
                solve(len(self.results))
            except KeyboardInterrupt:  # between two problems; within one the solver stops
                if not self.results or self.ended:
                    raise
                self.interrupt()

    @_interrupts.kept()
    def solve(
        self,
        problem: Problem,
        *,
        C: float | None = None,
        start: np.ndarray | None = None,
        memory: Memory | None = None,
        dual_point: np.ndarray | None = None,
        on_iteration: Callable[[np.ndarray, float], bool] | None = None,
        last: bool = True,
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
        last : bool, default=True
            Whether no other problem follows.
        """
        C = self._C if C is None else C
        known = Known()
        if self._checkpoint is not None:
            known = self._checkpoint.begin(problem.digest(), done_by(self._stop, C * problem.total))
        if known.result is not None:
            self.results.append(known.result)
            return
        oracle = self._oracle(problem)
        limit = 0.0 if self.ended else max(0.0, self._stop.time_limit - self._spent)
        stop = dataclasses.replace(self._stop, time_limit=limit)
        crew = self._crew
        # What was lost while rows were loaded counts for the first problem.
        before = crew.timings.as_dict() if crew is not None and self.results else {}
        with progress(
            self._verbose,
            problem.label,
            target=stop.relative or None,
            note=crew.note if crew is not None else None,
        ) as show:

            def observe(record: Iteration) -> bool:
                show(record)
                stops = False
                if self._callback is not None:
                    named = dataclasses.replace(record, problem=problem.label)
                    stops = bool(self._callback(named))
                if on_iteration is not None:
                    stops |= on_iteration(solver.best.w, solver.best.bias)
                _interrupts.check()
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
            solver.watched = self._callback is not None or on_iteration is not None
            self._connect(solver, known)
            start = start if known.start is None else known.start
            if start is not None and not (
                start.size == oracle.dimension and np.all(np.isfinite(start))
            ):
                start = None
            earlier = None if memory is None or C < memory.C else memory.point
            if earlier is not None and earlier.w is start:  # at a larger C still better than 0
                solver.start_point = earlier
            # From here on the result cannot be lost by an interrupt.
            self.results.append(solver.run(start, cuts))
        self._spent += solver.watch.elapsed() - solver.watch.before
        if crew is not None:
            now = crew.timings.as_dict()
            spent = {name: value - before.get(name, 0.0) for name, value in now.items()}
            result = self.results[-1]
            self.results[-1] = dataclasses.replace(result, timings={**result.timings, **spent})
        self._note_end(problem.label)
        if self._checkpoint is not None:
            self._checkpoint.end(self.results[-1], last)
        if self._keep_cuts:
            point = solver.best_point() if self._keep_points else None
            self.memories[len(self.results) - 1] = Memory(
                solver.active_cuts(), digest, solver.dual_point(), C, point
            )

    def _oracle(self, problem: Problem) -> Oracle:
        """The problem on the data; that of the last one if it is the same.

        It brings sums over the rows up to date, by those that change from one C to the next.
        """
        if self._last is not None and self._last[0] is problem:
            return self._last[1]
        oracle = problem.oracle(self._matrix, self._executor)
        self._last = (problem, oracle) if self._keep_points else None
        return oracle

    def _connect(self, solver: IterativeSolver, known: Known) -> None:
        """Have the solver's state written, and go on from one that is known."""
        if self._checkpoint is None:
            return
        assert isinstance(solver, BundleSolver)
        solver.recorder = self._checkpoint.record
        if self._crew is not None:
            solver.due = self._checkpoint.due
        if known.state is not None:
            try:
                solver.restore(known.state)
            except WRONG as error:
                raise self._checkpoint.damaged(error) from error

    def _note_end(self, label: str) -> None:
        """Log how the last problem ended, and remember if the user ended it."""
        result = self.results[-1]
        if self.ended is None and result.status in (Status.INTERRUPTED, Status.STOPPED):
            self.ended = result.status
            if result.status is Status.INTERRUPTED:
                _interrupts.settled()
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
        remote = isinstance(self._matrix, RemoteMatrix)
        if self._solver == "auto" and self._checkpoint is None and not remote:
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
        position: CutPosition | None = None if self._solver == "cpa" else AdaptivePosition()
        if isinstance(oracle, ConstantOracle):
            return ConstantTimeSolver(oracle, C, stop, self._passes, observer)
        if isinstance(oracle, WholeOracle):
            if position is not None and oracle.samples:
                position = SAMPLED_POSITION
            return SampledSolver(oracle, C, stop, position, observer)
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
