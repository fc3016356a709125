"""Problems whose solvers are cutting planes, coordinate descent, Newton's method or stochastic.

minimise ½|w|² + C·total·R(w),    R a mean loss, a measure, or the risk of structured outputs
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import solvers
from ..objective import Cut, LinearOracle, ListwiseScoreRisk, RowOracle
from ..result import SolveResult
from ..risks import ListwiseRisk, Risk, Targets
from ..solvers import IterativeSolver
from ._bounds import Bounds
from ._fit import Memory, Problem, Ready, Run
from ._form import NearlyFreeBias, sparse_point
from .checkpoint import WRONG

if TYPE_CHECKING:
    from ..cluster.rows import RemoteMatrix
    from ..data import BlockedMatrix
    from ..objective.structured import JointModel
    from ..solvers import BundleSolver, CutPosition

    Matrix = BlockedMatrix | RemoteMatrix

STOCHASTIC = ("sgd", "pegasos")
SOLVERS = ("auto", "ocas", "cpa", "dcd", *STOCHASTIC)


def cut_position(solver: str) -> CutPosition | None:
    """Where a solver takes the next cut: ``cpa`` at the reduced problem's solution."""
    return None if solver == "cpa" else solvers.AdaptivePosition()


def bundle_solver(
    oracle: LinearOracle, C: float, run: Run, bounds: Bounds | None = None
) -> BundleSolver:
    """Cutting planes for a linear model, perhaps with bounds on w."""
    position = cut_position(run.settings.solver)
    if bounds is None:
        return solvers.BundleSolver(oracle, C, run.stop, position, run.observe)
    from ..solvers.bounded import BoundedBundleSolver

    box = bounds.box(oracle.dimension, oracle.constant != 0.0)
    return BoundedBundleSolver(oracle, C, run.stop, position, *box, run.observe)


def ready(solver: IterativeSolver, run: Run, cuts: tuple[Cut, ...] = (), crew: Any = None) -> Ready:
    """A solver of cutting planes, connected with the checkpoint, and its start."""
    solver.watched = run.watched
    if run.file is not None:
        assert isinstance(solver, solvers.BundleSolver)
        solver.recorder = run.file.record
        if crew is not None:
            solver.due = run.file.due
        if run.state is not None:
            try:
                solver.restore(run.state)
            except WRONG as error:
                raise run.file.damaged(error) from error
    start = run.start
    if start is not None and not (
        start.size == solver.oracle.dimension and np.all(np.isfinite(start))
    ):
        start = None
    if run.memory is not None and run.memory.digest == run.digest:
        cuts = (*run.memory.cuts, *cuts)
    return Ready(solver, start, (cuts,))


@dataclass
class RowProblem(Problem):
    """A risk that is a sum over rows: C multiplies the sum of the losses.

    Attributes
    ----------
    label : str
    matrix : BlockedMatrix or RemoteMatrix
        The rows.
    constant : float
        Value of the constant feature behind a regularised bias; 0 for none.
    targets : Targets
    risk : Risk
    free_bias : bool
        Whether there is an unregularised bias.
    nearly_free : NearlyFreeBias or None
        If the constant feature stands for an unregularised bias.
    coef_threshold : float or None
        If given, the result's w is sparse, without the weights that are smaller than this.
    bounds : Bounds or None
        On w.
    """

    label: str
    matrix: Matrix
    constant: float
    targets: Targets
    risk: Risk
    free_bias: bool
    nearly_free: NearlyFreeBias | None = None
    coef_threshold: float | None = None
    bounds: Bounds | None = None
    _kept: RowOracle | None = field(default=None, repr=False)  # of the C before, on a path

    def __post_init__(self) -> None:
        self.crew = getattr(self.matrix, "crew", None)

    @property
    def total(self) -> float:
        return self.targets.total

    def digest(self) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.risk, self.constant, self.free_bias)).encode())
        digest.update(self.targets.labels.data)
        digest.update(self.targets.weights.data)
        digest.update(b"" if self.bounds is None else self.bounds.digest())
        return digest.digest()

    def data_digest(self) -> bytes:
        return self.matrix.digest()

    def solver(self, run: Run) -> Ready:
        oracle = self._oracle(run)
        dual_point, memory = run.dual_point, run.memory
        cuts: tuple[Cut, ...] = ()
        if memory is not None and memory.digest != run.digest:
            memory = None
        if dual_point is not None:
            dual_point = self.risk.clip_dual(dual_point, self.targets)
            cuts = (oracle.dual_cut(self.risk.dual_coef(dual_point, self.targets)),)
        elif memory is not None and memory.dual_point is not None:
            factor = memory.C / run.C
            dual_point = self.risk.carried_dual(memory.dual_point, factor, self.targets)
        made = ready(self._solver(run, oracle, dual_point), run, cuts, self.crew)
        point = None if memory is None or run.C < memory.C else memory.point
        if point is not None and point.w is made.start:  # at a larger C still better than 0
            made.solver.start_point = point
        return made

    def _solver(
        self, run: Run, oracle: RowOracle, dual_point: np.ndarray | None
    ) -> IterativeSolver:
        name, C, stop = run.settings.solver, run.C * self.total, run.stop
        if self.bounds is not None:
            return bundle_solver(oracle, C, run, self.bounds)
        if name == "auto" and run.file is None and self.crew is None:
            # Reproducible without a seed: nobody who names no solver expects chance in it.
            seeded = run.settings.random_state is not None
            rng = run.rng() if seeded else None
            return solvers.AutoSolver(oracle, C, stop, rng, run.observe, dual_point)
        if name == "dcd":
            return solvers.CoordinateSolver(oracle, C, stop, run.rng(), run.observe, dual_point)
        if name in STOCHASTIC:
            from ..solvers.stochastic import SGD, Pegasos, StochasticSolver

            schedule = SGD() if name == "sgd" else Pegasos()
            return StochasticSolver(oracle, C, stop, schedule, run.rng(), run.observe)
        return bundle_solver(oracle, C, run)

    def _keeps_points(self, run: Run) -> bool:
        """Whether a path goes on from the scores and sums of the C before.

        Not with cutting planes: they give the same bits here as on a cluster, where nobody has
        these.
        """
        by_rows = self.bounds is None and run.settings.solver in ("auto", "dcd")
        return run.on_path and by_rows

    def _oracle(self, run: Run) -> RowOracle:
        """The problem on the data; that of the last C, if it may be used again."""
        oracle = self._kept
        if oracle is None:
            oracle = RowOracle(
                self.matrix,
                self.targets,
                self.risk,
                run.executor,
                constant=self.constant,
                free_bias=self.free_bias,
                slack=self.nearly_free.slack if self.nearly_free else None,
            )
        self._kept = oracle if self._keeps_points(run) else None
        return oracle

    def memory(self, solver: Any, result: SolveResult, run: Run) -> Memory:
        point = solver.best_point() if self._keeps_points(run) else None
        return Memory(run.C, solver.dual_point(), solver.active_cuts(), run.digest, point)

    def finish(self, solver: Any, result: SolveResult) -> SolveResult:
        """The result; without small weights, and with the objective that it has without them."""
        if self.coef_threshold is None:
            return result
        small = np.abs(result.w) < self.coef_threshold
        if self.constant:
            small[-1] = False  # the bias
        if np.any(small & (result.w != 0.0)):
            w = np.where(small, 0.0, result.w)
            best = solver.prove(dataclasses.replace(solver.best, w=w))
            certificate = dataclasses.replace(result.certificate, primal=best.primal)
            result = dataclasses.replace(result, w=w, bias=best.bias, certificate=certificate)
        return dataclasses.replace(result, w=sparse_point(result.w))


@dataclass
class ListwiseProblem(Problem):
    """A risk of all scores at once: C multiplies the risk times the sum of the weights.

    Attributes
    ----------
    label : str
    matrix : BlockedMatrix or RemoteMatrix
        The rows.
    constant : float
        Value of the constant feature behind a regularised bias; 0 for none.
    risk : ListwiseRisk
    mass : float
        The sum of the weights of the rows.
    bounds : Bounds or None
        On w.
    """

    label: str
    matrix: Matrix
    constant: float
    risk: ListwiseRisk
    mass: float
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        self.crew = getattr(self.matrix, "crew", None)

    @property
    def total(self) -> float:
        return self.mass

    def digest(self) -> bytes:
        bounds = b"" if self.bounds is None else self.bounds.digest()
        return self.risk.digest() + repr(self.constant).encode() + bounds

    def data_digest(self) -> bytes:
        return self.matrix.digest()

    def solver(self, run: Run) -> Ready:
        score_risk = ListwiseScoreRisk(self.risk, run.executor)
        oracle = LinearOracle(self.matrix, score_risk, constant=self.constant)
        made = bundle_solver(oracle, run.C * self.total, run, self.bounds)
        return ready(made, run, crew=self.crew)


@dataclass
class JointProblem(Problem):
    """Structured outputs with a linear model: C multiplies the sum of the losses of the examples.

    Attributes
    ----------
    label : str
    model : JointModel
        All examples.
    """

    label: str
    model: JointModel

    def __post_init__(self) -> None:
        self.crew = getattr(self.model, "crew", None)

    @property
    def total(self) -> float:
        return float(self.model.count)

    def data_digest(self) -> bytes:
        return self.model.digest()

    def solver(self, run: Run) -> Ready:
        from ..objective.structured import StructuredOracle

        oracle = StructuredOracle(self.model, run.executor)
        name, C = run.settings.solver, run.C * self.total
        if name in ("auto", "bcfw") and run.file is None and solvers.can_be_visited(self.model):
            solver = solvers.BlockAutoSolver if name == "auto" else solvers.BlockSolver
            rng = np.random.default_rng(0)  # nobody expects chance in the model
            memory = run.memory
            known = memory is not None and memory.digest == run.digest
            kept = memory.dual_point if memory is not None and known else None
            return ready(solver(oracle, C, run.stop, rng, run.observe, kept), run)
        position = cut_position(name)
        made = solvers.BundleSolver(oracle, C, run.stop, position, run.observe, oracle.cheap_cut)
        return ready(made, run, crew=self.crew)
