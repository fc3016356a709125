"""Kernel machines: their problems, the dual on some rows of one data set, and their base class."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from .._checks import check_flag, check_integer, check_number, plain
from ..data import as_blocks
from ..exec import Executor
from ..kernels import Kernel, PrecomputedMatrix, ProductMatrix, TrainingMatrix, kernel_matrix
from ..reporting.line import DualLine
from ..result import Certificate, DualIteration, Iteration, SolveResult, Status
from ..solvers.decomposition.problem import DualProblem, DualSettings
from ..solvers.decomposition.solver import PARTS, DualSolver, solve_small
from ._fit import Memory, Problem, Ready, Run, Settings
from ._kernel import KernelModel, check_kernel
from .checkpoint import Checkpoint

STOPPING = ("relative", "absolute", "epsilon", "kkt")
# With a smaller tolerance, or with coefficients above SINGLE_BOUND, rounding of a kernel in single
# precision would show in the objective.
SINGLE_TOL = 1e-4
SINGLE_BOUND = 1e2
# Features are on unlike scales if their ranges differ by this power of ten.
FAR_APART = 2.0
# A larger relative gap gives a warning, even if the stopping rule has been met.
LARGE_GAP = 0.01
# With at most so many rows, double precision costs almost nothing.
FEW_ROWS = 500
# With at most so many rows, all problems of a fit take their kernel values from one matrix.
ONE_MATRIX = 2500
# A problem of at most so many variables is solved in one call that does not look at the time limit,
# so the limit must be at least SMALL_SECONDS. On pairs of 1,150 rows with 26 classes the general
# solver takes 1.15 (rbf) and 1.4 times (poly) as long.
SMALL = 1500
SMALL_SECONDS = 1.0
# Rows of values that are computed one at a time: this part of all. Then all are computed at once,
# which costs as much as this many.
LINES_PART = 5


class KernelRows:
    """The rows of a fit and their kernel values, for one or more problems on some of the rows.

    Attributes
    ----------
    kernel : Kernel
    settings : DualSettings
        Of every problem, but for the time limit.
    matrix, exact : KernelMatrix
        The values of all rows to work with, and the most exact ones, which may be the same.
    indefinite : bool
        Whether the kernel turned out not to be positive semidefinite.

    Parameters
    ----------
    model : KernelMachine
    kernel, X
        From ``kernel_and_rows``.
    executor : Executor
    settings : Settings
    bound : float
        The largest coefficient that may occur.
    """

    matrix: TrainingMatrix
    exact: TrainingMatrix

    def __init__(
        self,
        model: KernelMachine,
        kernel: Kernel,
        X: Any,
        executor: Executor,
        settings: Settings,
        bound: float,
    ) -> None:
        self.kernel = kernel
        self.settings = DualSettings(
            tol=settings.tol,
            stopping=settings.stopping,
            working_set_size=model.working_set_size,
            shrinking=bool(model.shrinking),
            cache_bytes=float(model.cache_size) * 1e6,
            max_iter=settings.max_iter,
        )
        self.indefinite = False
        self._X = X
        self._room = np.empty(0)  # memory for the values of a problem, reused by the next
        self._groups: list[np.ndarray] = []
        self._places: list[np.ndarray] = []  # for each group, its rows among the values
        centre = model._free_bias  # then a linear kernel may be moved
        self.exact = self.matrix = kernel_matrix(kernel, X, executor, single=False, centre=centre)
        single = settings.tol >= SINGLE_TOL and bound <= SINGLE_BOUND and X.shape[0] > FEW_ROWS
        if single and isinstance(self.exact, ProductMatrix):
            self.matrix = kernel_matrix(kernel, X, executor, single=True, centre=centre)

    def digest(self) -> bytes:
        """A fingerprint of the rows."""
        return as_blocks(self._X, compact=False).digest()

    def split(self, groups: list[np.ndarray]) -> None:
        """Several problems will be solved, each on some of these groups of rows.

        All kernel values are computed once if they are few, those of a group side by side. Small
        pairs of groups together take twice as many, unless they compute few rows.
        """
        self._groups = self._places = groups
        rows, exact = self._X.shape[0], self.exact
        if exact.values is not None or rows * rows * 8 > self.settings.cache_bytes:
            return
        few = rows <= ONE_MATRIX
        if not few and len(groups) > 1 and isinstance(exact, ProductMatrix):
            pair = sum(sorted(map(len, groups))[-2:])
            few = pair <= SMALL and exact.compiled() is None
        if not few:
            return
        if isinstance(exact, ProductMatrix):
            exact = exact.among(np.concatenate(groups))
            ends = np.cumsum([len(group) for group in groups])
            self._places = np.split(np.arange(rows), ends[:-1])
        self.matrix = PrecomputedMatrix(exact.whole(), source=exact)
        if self.kernel.name != "linear":  # whose rows say more than values
            self.exact = self.matrix

    def among(self, which: tuple[int, ...]) -> tuple[TrainingMatrix, TrainingMatrix]:
        """``matrix`` and ``exact`` of the rows of some groups, in this order."""
        matrix = self.matrix.among(np.concatenate([self._places[k] for k in which]))
        if self.exact is self.matrix:
            return matrix, matrix
        return matrix, self.exact.among(np.concatenate([self._groups[k] for k in which]))

    def solve_small(
        self,
        problem: DualProblem,
        which: tuple[int, ...] | None,
        settings: DualSettings,
        beta: np.ndarray,
    ) -> SolveResult | None:
        """Solve and verify a problem of few variables at once, from ``beta``.

        None if it is not solved by that; ``beta`` has come nearer to the solution then. Python
        takes a fifth of a millisecond for the steps of a ``DualSolver``, which is more than a pair
        of small classes takes.
        """
        count, began = len(beta), time.perf_counter()
        matrix, rows, points, height = self.matrix, problem.rows, None, 0
        if matrix.values is None:
            matrix = self.exact
            if which is not None:  # one problem would not pay for two more seconds of compiling
                matrix = matrix.among(np.concatenate([self._groups[k] for k in which]))
                points = matrix.compiled()
                height = 0 if points is None else 2 + count // LINES_PART
        elif which is not None:
            rows, height = np.concatenate([self._places[k] for k in which]), count
        if problem.row_of is not None:
            height = count
        room = None
        if height:
            if len(self._room) < height * count:
                self._room = np.empty(height * count)
            room = self._room[: height * count].reshape(height, count)
        rounds, verified = solve_small(matrix, rows, points, room, problem, settings, beta)
        primal, dual = verified.primal, verified.dual
        if not settings.reached(verified.violation, verified.gap, primal, problem.mass):
            return None
        seconds = time.perf_counter() - began
        last = DualIteration(
            max(1, rounds), primal, dual, primal, 0.0, count, seconds, "", verified.violation, count
        )
        return SolveResult(
            w=beta,
            bias=verified.bias,
            status=Status.CONVERGED,
            certificate=Certificate(primal, dual),
            n_iter=max(1, rounds),
            trace=(last,),
            timings={**dict.fromkeys(PARTS, 0.0), "inner": seconds, "total": seconds},
        )

    def unlike_scales(self) -> str:
        """A sentence that names features on other scales than most; "" if there are none."""
        if self.kernel.name in ("precomputed", "callable"):
            return ""
        X = self._X
        if scipy.sparse.issparse(X):
            scales = abs(X).max(axis=0).toarray().reshape(-1)
        else:
            scales = np.max(X, axis=0, initial=-np.inf) - np.min(X, axis=0, initial=np.inf)
        scales = np.asarray(scales, dtype=np.float64)
        some = scales[scales > 0.0]
        if not len(some):
            return ""
        usual = float(np.median(some))
        apart = np.flatnonzero(np.abs(np.log10(np.maximum(scales, 1e-300) / usual)) > FAR_APART)
        apart = apart[scales[apart] > 0.0]
        remedy = "scale the features, for example with sklearn.preprocessing.StandardScaler"
        if len(apart):
            names = ", ".join(f"{k} (range {scales[k]:.2g})" for k in apart[:5])
            more = f" and {len(apart) - 5} more" if len(apart) > 5 else ""
            which = "feature" if len(apart) == 1 else "features"
            others = f"the others (about {usual:.2g})"
            return f"{which} {names}{more} and {others} are on unlike scales: {remedy}"
        if self.kernel.name != "rbf" and not 10.0**-FAR_APART < usual < 10.0**FAR_APART:
            return f"the features have ranges of about {usual:.2g}: {remedy}"
        return ""


@dataclass(frozen=True)
class Solved:
    """Stands for the solver of a problem that is solved already. Reports a single iteration."""

    result: SolveResult
    observe: Callable[[Iteration], bool | None]
    indefinite: bool = False

    def point(self) -> tuple[np.ndarray, float]:
        return self.result.w, self.result.bias

    def run(self, start: None) -> SolveResult:
        try:
            stopped = self.observe(self.result.trace[-1])
        except KeyboardInterrupt:
            return replace(self.result, status=Status.INTERRUPTED)
        return replace(self.result, status=Status.STOPPED) if stopped else self.result


@dataclass
class KernelProblem(Problem):
    """The dual of a kernel machine.

    Attributes
    ----------
    label : str
    dual : DualProblem
    rows : KernelRows
    which : tuple of int or None
        Groups of rows that the problem is on, in this order; None for all rows.
    """

    label: str
    dual: DualProblem
    rows: KernelRows
    which: tuple[int, ...] | None = None

    def digest(self) -> bytes:
        return self.dual.digest()

    def data_digest(self) -> bytes:
        return self.rows.digest()

    def fit_key(self, settings: Settings) -> str:
        kernel, gamma = self.rows.kernel, plain(settings.parameters["gamma"])
        function = getattr(kernel.function, "__qualname__", None)
        return f"{kernel.name}, {gamma!r}, {kernel.coef0!r}, {kernel.degree}, {function}"

    def solver(self, run: Run) -> Ready:
        dual, rows, which, settings = self.dual, self.rows, self.which, self.rows.settings
        known = run.file is not None or run.memory is not None
        start = dual.start(self._start(run) if known else None)
        if run.stop.time_limit < np.inf:
            settings = replace(settings, time_limit=run.stop.time_limit)
        definite, count = rows.kernel.definite, len(start)
        # Of a small problem nothing but the solution is asked.
        small = count <= SMALL and 8 * count * count <= settings.cache_bytes
        asked = settings.max_iter is not None or settings.working_set_size is not None
        if small and not asked and settings.time_limit >= SMALL_SECONDS and definite:
            result = rows.solve_small(dual, which, settings, start)
            if result is not None:
                return Ready(Solved(result, run.observe))
        matrix, exact = (rows.matrix, rows.exact) if which is None else rows.among(which)
        solver = DualSolver(matrix, dual, settings, run.executor, run.observe, definite, exact)
        return Ready(solver, start)

    def _start(self, run: Run) -> np.ndarray | None:
        """The point from a checkpoint, or the last fit's point scaled to the new C."""
        shape = self.dual.linear.shape
        if run.file is None or (run.state is None and run.start is None):
            memory = run.memory
            if memory is None or memory.dual_point is None or memory.dual_point.shape != shape:
                return None
            return memory.dual_point * (run.C / memory.C)
        beta = run.start if run.state is None else run.state.get("beta")
        if not (
            isinstance(beta, np.ndarray)
            and beta.shape == shape
            and beta.dtype == np.float64
            and np.all(np.isfinite(beta))
        ):
            raise run.file.damaged(ValueError("the dual point is missing or has another length"))
        return beta

    def done(self, result: SolveResult, settings: Settings, C: float) -> bool:
        """Whether a result of an earlier run is good enough.

        Not if the kernel is a function, which may be another one now; and not with
        ``stopping='kkt'``: a result does not tell the violation.
        """
        certificate = result.certificate
        if self.rows.kernel.function is not None or result.w.shape != self.dual.linear.shape:
            return False
        if result.status is Status.MAX_ITER:
            return settings.max_iter is not None and result.n_iter >= settings.max_iter
        if result.status is Status.NUMERICALLY_LIMITED:
            return True
        return settings.stopping != "kkt" and self.rows.settings.reached(
            np.inf, certificate.gap, certificate.primal, self.dual.mass
        )

    def line(self, settings: Settings) -> DualLine:
        return DualLine(self.label, settings.tol, settings.stopping)

    def point(self, solver: Any) -> tuple[np.ndarray, float]:
        point: tuple[np.ndarray, float] = solver.point()
        return point

    def state(self, w: Callable[[], np.ndarray], record: Iteration) -> dict[str, Any]:
        known = {name: float(getattr(record, name)) for name in ("primal", "dual")}
        return {"beta": w(), "n_iter": record.number, **known}

    def memory(self, solver: Any, result: SolveResult, run: Run) -> Memory:
        return Memory(run.C, result.w)

    def finish(self, solver: Any, result: SolveResult) -> SolveResult:
        self.rows.indefinite |= solver.indefinite
        return result

    def cautions(self, settings: Settings, results: list[SolveResult]) -> Iterator[Warning]:
        name = settings.name
        if self.rows.indefinite:
            yield UserWarning(
                f"{name}: the kernel is not positive semidefinite, so the problem is not convex: "
                "the model is a stationary point and its certificate is withheld"
            )
        if any(result.status is Status.NUMERICALLY_LIMITED for result in results):
            scales = self.rows.unlike_scales()
            if scales:
                yield ConvergenceWarning(f"{name}: {scales}")
        if settings.stopping != "kkt":
            return
        reached = (r.certificate.relative_gap for r in results if r.status is Status.CONVERGED)
        worst = max(reached, default=0.0)
        if LARGE_GAP < worst < np.inf:
            yield ConvergenceWarning(
                f"{name}: the optimality conditions hold to tol={settings.tol:g}, which "
                f"stopping='kkt' asks for, but the relative gap is {worst:.2g}: lower tol, or "
                "leave stopping out to stop by the gap"
            )


@dataclass(eq=False, repr=False, kw_only=True)
class KernelMachine(KernelModel):
    """A kernel model that is trained by decomposition of the dual.

    The fields of such a class are its parameters, the keyword arguments of its constructor.
    """

    _stopping: ClassVar[tuple[str, ...]] = STOPPING
    _sparse_coef: ClassVar[bool] = True  # if the rows are
    # Whether the bias is free, and so the coefficients sum to 0.
    _free_bias: ClassVar[bool] = True

    kernel: str | Callable[[Any, Any], Any] = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    tol: float = 1e-3
    stopping: str = "relative"
    shrinking: bool = True
    cache_size: float = 200
    max_iter: int | None = None
    working_set_size: int | None = None
    n_jobs: int | None = None
    time_limit: float | None = None
    warm_start: bool = False
    verbose: int = 0
    callback: Callable[[Iteration], bool | None] | None = None
    checkpoint: Checkpoint | str | PathLike[str] | None = None

    def _check_common(self) -> Settings:
        check_kernel(self)
        settings = super()._check_common()
        check_flag("shrinking", self.shrinking)
        check_number("cache_size", self.cache_size, above=0.0)
        if self.working_set_size is not None:
            size = check_integer("working_set_size", self.working_set_size, at_least=2)
            if size % 2:
                raise ValueError(f"working_set_size must be even, got {size}")
        return settings
