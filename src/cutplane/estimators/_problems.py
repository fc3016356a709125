"""The problems of linear models, for cutting planes, coordinate descent, Newton's method and SGD.

minimise ½|w|² + C·total·R(w),    R a mean loss, a measure, or the risk of structured outputs
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from .. import solvers
from ..objective import Cut, LinearOracle, ListwiseScoreRisk, RowOracle
from ..result import SolveResult
from ..risks import ListwiseRisk, Risk, Targets
from ..solvers import IterativeSolver
from ._fit import IN_PASSES, Memory, Problem, Ready, Run

if TYPE_CHECKING:
    from ..cluster.rows import RemoteMatrix
    from ..data import BlockedMatrix
    from ..objective.structured import JointModel
    from ..solvers import BundleSolver

    Matrix = BlockedMatrix | RemoteMatrix

STOCHASTIC = ("sgd", "pegasos")
SOLVERS = (*IN_PASSES, "dcd", *STOCHASTIC)
# A constant feature that stands for a free bias is this much larger than any row. Then the penalty
# on its weight is negligible, and the reduced problem can still resolve the other features.
NEARLY_FREE = 1e5
# The operating system maps an array of so many bytes separately. Its pages take no memory until
# they are written, and the system gets the memory back when the array is freed.
LARGE = 1 << 25
# Estimated cost of a score per unit of its loss's work, in units of reading a stored number. A
# Newton step takes 7 (sparse rows) to 25 units (dense rows) more per row with the logistic loss,
# whose work is 4, than with the squared hinge.
NUMBERS_PER_SCORE = 5


def bundle_solver(
    oracle: Any, C: float, run: Run, bounds: Bounds | None = None, cheap_cut: Any = None
) -> BundleSolver:
    """Cutting planes for a linear model, perhaps with bounds on w.

    ``cpa`` takes a cut at the reduced problem's solution, ``ocas`` nearer to the best point.
    """
    position = None if run.settings.solver == "cpa" else solvers.AdaptivePosition()
    if bounds is None:
        return solvers.BundleSolver(oracle, C, run.stop, position, run.observe, cheap_cut)
    from ..solvers.bounded import BoundedBundleSolver

    box = bounds.box(oracle.dimension, oracle.constant != 0.0)
    return BoundedBundleSolver(oracle, C, run.stop, position, *box, run.observe)


def ready(solver: Any, run: Run, cuts: tuple[Cut, ...] = (), crew: Any = None) -> Ready:
    """A solver and its start. A cutting plane solver may be connected with a checkpoint."""
    solver.watched = run.watched
    if run.file is not None:
        solver.recorder = run.file.record
        if crew is not None:
            solver.due = run.file.due
        if run.state is not None:
            from ..store.container import WRONG

            try:
                solver.restore(run.state)
            except WRONG as error:
                raise run.file.damaged(error) from error
    start = run.start
    if start is not None and not (
        start.size == solver.oracle.dimension and np.all(np.isfinite(start))
    ):
        start = None
    if run.memory is not None:
        cuts = (*run.memory.cuts, *cuts)
    return Ready(solver, start, (cuts,))


@dataclass(frozen=True)
class NearlyFreeBias:
    """Unregularised biases b, one per class, as weights of a very large constant feature s.

    The objective then is F_s = F + |b|²/2s² ≥ F. This is how far a lower bound on F_s can be above
    the least F. Let (W, b) minimise F. Let p and q be the classes of the largest and of the
    smallest b, and D the difference of these two. The least F is at most f, the objective of any
    point, so |W|² ≤ 2f. Every row x of class q has a loss ≥ D − √2·|W|·|x|, with the loss of
    Crammer and Singer and with the multinomial loss. Class q has a share π of the weights, so

        D ≤ f/(Cπ) + 2√f·max|x|.

    A number added to all b does not change F. If the mean of the largest and the smallest b is 0,

        min F_s ≤ min F + K·D²/8s².

    For a class without weight, b → −∞ lowers F. With the loss of Crammer and Singer, b_p − (1 + D +
    2√f·max|x|) is low enough for that class.

    Attributes
    ----------
    classes : int
        K.
    smallest_share : float
        The least π > 0.
    empty_class : bool
        Whether a class has no weight.
    row_norm : float
        max|x|.
    """

    classes: int
    smallest_share: float
    empty_class: bool
    row_norm: float

    @property
    def constant(self) -> float:
        """s."""
        return NEARLY_FREE * (self.row_norm or 1.0)

    def slack(self, primal: float, C: float) -> float:
        """K·D²/8s² from the objective of a point."""
        reach = 2.0 * math.sqrt(primal) * self.row_norm
        spread = primal / (C * self.smallest_share) + reach
        if self.empty_class:
            spread += 1.0 + spread + reach
        return self.classes * spread**2 / (8.0 * self.constant**2)


@dataclass
class LinearProblem(Problem):
    """A linear model on a matrix.

    Attributes
    ----------
    label : str
    matrix : BlockedMatrix or RemoteMatrix
        The rows.
    constant : float
        Value of the constant feature behind a regularised bias; 0 for none.
    """

    label: str
    matrix: Matrix
    constant: float

    def __post_init__(self) -> None:
        self.crew, self.work = getattr(self.matrix, "crew", None), self.matrix.n_stored

    def data_digest(self) -> bytes:
        return self.matrix.digest()


class SmallWeights:
    """Drops small weights, and stores the other weights as sparse rows.

    The rows of all problems lie together in arrays of LARGE bytes. The operating system gets their
    memory back as soon as the model has copied the values. If every row had arrays of its own, the
    process would keep that memory.

    Parameters
    ----------
    threshold : float
        Smaller weights are dropped.
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._lock = threading.Lock()  # several threads may end a problem at the same time
        # A weak reference to the array that has room left.
        self._array: Callable[[], np.ndarray | None] = lambda: None
        self._used = 0

    def kept(self, dense: np.ndarray) -> scipy.sparse.csr_matrix:
        """The dense rows as sparse rows, without small weights."""
        rows = scipy.sparse.csr_matrix(dense)
        count, kind = rows.nnz, rows.indices.dtype
        size = count + math.ceil(count * kind.itemsize / 8)
        with self._lock:
            array = self._array()
            if array is None or self._used + size > len(array):
                array, self._used = np.empty(max(LARGE // 8, size)), 0
                self._array = weakref.ref(array)
            own = array[self._used : self._used + size]
            self._used += size
        values, columns = own[:count], own[count:].view(kind)[:count]
        values[:], columns[:] = rows.data, rows.indices
        rows.data, rows.indices = values, columns  # SciPy's constructor would copy views
        return rows


@dataclass
class RowProblem(LinearProblem):
    """A risk that is a sum over rows: C multiplies the sum of the losses.

    Attributes
    ----------
    targets : Targets
    risk : Risk
    free_bias : bool
        Whether there is an unregularised bias.
    nearly_free : NearlyFreeBias or None
        Given if the constant feature stands for an unregularised bias.
    small : SmallWeights or None
        If given, the result's w is sparse, without small weights.
    bounds : Bounds or None
        Bounds on w.
    """

    targets: Targets
    risk: Risk
    free_bias: bool
    nearly_free: NearlyFreeBias | None = None
    small: SmallWeights | None = None
    bounds: Bounds | None = None
    _kept: RowOracle | None = field(default=None, repr=False)  # on a path, the oracle of the last C

    def __post_init__(self) -> None:
        self.crew, self.total = getattr(self.matrix, "crew", None), self.targets.total
        scores = len(self.targets.weights) * (self.risk.outputs or 1)
        self.work = self.matrix.n_stored + int(NUMBERS_PER_SCORE * self.risk.work * scores)

    def digest(self) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.risk, self.constant, self.free_bias)).encode())
        digest.update(self.targets.labels.data)
        digest.update(self.targets.weights.data)
        digest.update(b"" if self.bounds is None else self.bounds.digest())
        return digest.digest()

    def solver(self, run: Run) -> Ready:
        oracle = self._kept or RowOracle(
            self.matrix,
            self.targets,
            self.risk,
            run.executor,
            constant=self.constant,
            free_bias=self.free_bias,
            slack=self.nearly_free.slack if self.nearly_free else None,
        )
        # A path continues from the scores and sums of the last C. Cutting planes start without
        # them, because a cluster does not have them and must give the same bits.
        by_rows = self.bounds is None and run.settings.solver in ("auto", "dcd")
        self._kept = oracle if run.on_path and by_rows and self.crew is None else None
        dual_point, memory = run.dual_point, run.memory
        cuts: tuple[Cut, ...] = ()
        if dual_point is not None:
            dual_point = self.risk.clip_dual(dual_point, self.targets)
            cuts = (oracle.dual_cut(self.risk.dual_coef(dual_point, self.targets)),)
        elif memory is not None and memory.dual_point is not None:
            factor = memory.C / run.C
            dual_point = self.risk.carried_dual(memory.dual_point, factor, self.targets)
        made = ready(self._solver(run, oracle, dual_point), run, cuts, self.crew)
        point = None if memory is None or run.C < memory.C else memory.point
        if point is not None and point.w is made.start:  # for a larger C it is still a good start
            made.solver.start_point = point
        return made

    def _solver(
        self, run: Run, oracle: RowOracle, dual_point: np.ndarray | None
    ) -> IterativeSolver:
        name, C, stop = run.settings.solver, run.C * self.total, run.stop
        if name == "auto" and run.file is None and self.crew is None and self.bounds is None:
            # Without a seed the solver always draws the same numbers: a user who has not chosen a
            # stochastic solver expects the same model every time.
            seeded = run.settings.random_state is not None
            rng = run.rng() if seeded else None
            return solvers.AutoSolver(oracle, C, stop, rng, run.observe, dual_point)
        if name == "dcd":
            return solvers.CoordinateSolver(oracle, C, stop, run.rng(), run.observe, dual_point)
        if name in STOCHASTIC:
            from ..solvers.stochastic import StochasticSolver

            return StochasticSolver(oracle, C, stop, name, run.rng(), run.observe)
        return bundle_solver(oracle, C, run, self.bounds)

    def memory(self, solver: Any, result: SolveResult, run: Run) -> Memory:
        point = None if self._kept is None else solver.best_point()
        return Memory(run.C, solver.dual_point(), solver.active_cuts(), run.digest, point)

    def finish(self, solver: Any, result: SolveResult) -> SolveResult:
        """The result without small weights. Its objective is that of the remaining weights."""
        if self.small is None:
            return result
        small = np.abs(result.w) < self.small.threshold
        if self.constant:
            small[-1] = False  # the bias
        if np.any(small & (result.w != 0.0)):
            w = np.where(small, 0.0, result.w)
            point = solver.oracle.new_point()
            point.bias = result.bias  # where the search for the best one of this w begins
            solver.oracle.evaluate(w, point)
            best = solver.prove(dataclasses.replace(solver.best, w=w, bias=point.bias))
            certificate = dataclasses.replace(result.certificate, primal=best.primal)
            result = dataclasses.replace(result, w=w, bias=best.bias, certificate=certificate)
        return dataclasses.replace(result, w=self.small.kept(np.atleast_2d(result.w.T)))


@dataclass
class ListwiseProblem(LinearProblem):
    """A risk of all scores at once: C multiplies the risk times the sum of the weights.

    Attributes
    ----------
    risk : ListwiseRisk
    total : float
        The sum of the weights of the rows.
    bounds : Bounds or None
        Bounds on w.
    """

    risk: ListwiseRisk
    total: float
    bounds: Bounds | None = None

    def digest(self) -> bytes:
        bounds = b"" if self.bounds is None else self.bounds.digest()
        return self.risk.digest() + repr(self.constant).encode() + bounds

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
        self.crew, self.total = getattr(self.model, "crew", None), float(self.model.count)

    def data_digest(self) -> bytes:
        return self.model.digest()

    def solver(self, run: Run) -> Ready:
        from ..objective.structured import StructuredOracle

        oracle = StructuredOracle(self.model, run.executor)
        name, C = run.settings.solver, run.C * self.total
        if name in ("auto", "bcfw") and run.file is None and solvers.can_be_visited(self.model):
            solver = solvers.BlockAutoSolver if name == "auto" else solvers.BlockSolver
            rng = np.random.default_rng(0)  # the same model every time
            kept = None if run.memory is None else run.memory.dual_point
            return ready(solver(oracle, C, run.stop, rng, run.observe, kept), run)
        made = bundle_solver(oracle, C, run, cheap_cut=oracle.cheap_cut)
        return ready(made, run, crew=self.crew)


# -- bounds on the coefficients: the parameters ``positive`` and ``bounds`` --------------------


@dataclass(frozen=True)
class Bounds:
    """low ≤ w ≤ high, for every feature and every output; the bias has none.

    Attributes
    ----------
    low, high : ndarray, shape (n_features,)
    """

    low: np.ndarray
    high: np.ndarray

    def box(self, dimension: int, has_constant: bool) -> tuple[np.ndarray, np.ndarray]:
        """The bounds for a solver's flat w, with those of the constant feature if there is one."""
        outputs = dimension // (len(self.low) + has_constant)
        bias = np.full(has_constant * outputs, np.inf)
        return (
            np.append(np.repeat(self.low, outputs), -bias),
            np.append(np.repeat(self.high, outputs), bias),
        )

    def digest(self) -> bytes:
        """A fingerprint of the bounds."""
        return self.low.tobytes() + self.high.tobytes()


def bounds_of(model: Any, n_features: int) -> Bounds | None:
    """The bounds of a model with this many features; None if there are no bounds."""
    if model.bounds is None and not model.positive:
        return None
    low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    if model.bounds is not None:
        for name, values, given in zip(
            ("low", "high"), (low, high), pair_of(model.bounds), strict=True
        ):
            if given.ndim and len(given) != n_features:
                raise ValueError(
                    f"bounds: {name} has {len(given)} numbers, but X has {n_features} features; "
                    "give one number for all features, or one per feature"
                )
            values[:] = given
    empty = np.isposinf(low) | np.isneginf(high)
    negative = (high < 0.0) & bool(model.positive)
    for wrong, why in (
        (low > high, "low must not be above high"),
        (empty, "there is no number between"),
        (negative, "positive=True leaves nothing; drop it, or raise high"),
    ):
        if wrong.any():
            k = int(wrong.argmax())
            names = getattr(model, "feature_names_in_", None)
            name = "" if names is None else f" ({names[k]!r})"
            raise ValueError(f"bounds of feature {k}{name} are ({low[k]:g}, {high[k]:g}): {why}")
    return Bounds(np.maximum(low, 0.0) if model.positive else low, high)


def pair_of(bounds: Any) -> list[np.ndarray]:
    """low and high as arrays: one number for all features, or one per feature."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be a pair (low, high), such as (0, np.inf); got {bounds!r}"
        ) from None
    pair = []
    for name, given in (("low", low), ("high", high)):
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"bounds: {name} must be a number, or one per feature; got {given!r}; for no bound "
                "give -np.inf or np.inf"
            ) from None
        if values.ndim > 1:
            raise ValueError(
                f"bounds: {name} must be a number, or one per feature, got shape {values.shape}"
            )
        if np.isnan(values).any():
            where = f" of feature {int(np.isnan(values).argmax())}" if values.ndim else ""
            raise ValueError(
                f"bounds: {name}{where} is NaN; for no bound give -np.inf as low, np.inf as high"
            )
        pair.append(values)
    return pair
