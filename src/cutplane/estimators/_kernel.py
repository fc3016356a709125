"""Estimators with kernels: parameters, basis rows and scores; problems of kernel machines.

A ``KernelModel`` has basis rows and coefficients. A ``KernelMachine`` is one that is trained by
decomposition of the dual: it makes ``KernelRows`` of its rows, which all its problems share, and a
``KernelProblem`` for each of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._blas import single_threaded_blas
from .._checks import check_choice, check_flag, check_integer, check_number, plain
from ..data import as_blocks
from ..exec import Executor, SerialExecutor, make_executor
from ..kernels import (
    KERNELS,
    Kernel,
    PrecomputedMatrix,
    ProductMatrix,
    TrainingMatrix,
    call_kernel,
    check_precomputed,
    kernel_matrix,
    prediction_points,
)
from ..kernels.points import Points
from ..kernels.rough import rough_sum, rough_sums
from ..reporting.line import DualLine
from ..result import Certificate, DualIteration, Iteration, SolveResult, Status
from ..solvers.decomposition.problem import DualProblem, DualSettings
from ..solvers.decomposition.solver import PARTS, DualSolver, solve_small
from ._base import Estimator, dense
from ._fit import Memory, Problem, Ready, Run, Settings
from ._rows import checked_rows
from .checkpoint import Checkpoint

# Kernel values that a thread holds at a time in prediction: 4 MB. Half of it takes up to 9 %
# longer, twice as much between 5 % less and 14 % more. Products of more rows are faster, until the
# values leave a core's cache.
BLOCK_VALUES = 1 << 19
# So many rows are tried in single precision. If this part of their signs is not certain, double
# precision does the rest: to try all would take longer.
TRIED_ROWS, UNCERTAIN = 512, 0.25


def check_kernel(model: Any) -> None:
    """Check the parameters ``kernel``, ``degree``, ``gamma`` and ``coef0`` of an estimator."""
    if not callable(model.kernel):
        check_choice("kernel", model.kernel, KERNELS)
    check_integer("degree", model.degree, at_least=0)
    if isinstance(model.gamma, str):
        check_choice("gamma", model.gamma, ("scale", "auto"))
    else:
        check_number("gamma", model.gamma, at_least=0.0)
    check_number("coef0", model.coef0)


def rows_to_score(model: Any, X: Any) -> Any:
    """Checked rows to predict."""
    check_is_fitted(model)
    X = checked_rows(model, X, reset=False)
    if model.kernel == "precomputed" and scipy.sparse.issparse(X):
        return X.toarray()
    return X


def kernel_and_rows(model: Any, X: Any) -> tuple[Kernel, Any]:
    """The kernel of an estimator with its parameters as numbers, and its training rows.

    The checked rows X get no duplicate entries. A precomputed kernel is checked and made dense.
    """
    if scipy.sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if callable(model.kernel):
        return Kernel("callable", function=model.kernel), X
    if model.kernel == "precomputed":
        X = X.toarray() if scipy.sparse.issparse(X) else X
        check_precomputed(X)
    gamma = model.gamma
    if gamma == "auto" and model.kernel != "precomputed":
        gamma = 1.0 / X.shape[1]
    elif gamma == "scale" and model.kernel != "precomputed":
        if scipy.sparse.issparse(X):
            values = X.data.astype(np.float64)
            size = X.shape[0] * X.shape[1]
            variance = float(np.sum(values**2) / size - (np.sum(values) / size) ** 2)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                variance = float(np.var(X, dtype=np.float64))
        if not np.isfinite(variance):
            raise ValueError(
                "X is too large: its variance overflows, and gamma='scale' is 1 / variance; scale "
                "the features, for example with sklearn.preprocessing.StandardScaler"
            )
        gamma = 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
    elif isinstance(gamma, str):
        gamma = 1.0
    return Kernel(model.kernel, float(gamma), float(model.coef0), int(model.degree)), X


def executor_for(model: Any, rows: int, width: int) -> Executor:
    """The executor for kernel values of ``rows`` rows. One thread calls a user's function."""
    if callable(model.kernel):
        return SerialExecutor()
    return make_executor(model.n_jobs, rows * max(1, width) * 64)


def basis_attributes(
    kernel: Kernel, X: Any, support: np.ndarray, dual_coef: np.ndarray, *, like_rows: bool = False
) -> dict[str, Any]:
    """Fitted attributes from basis rows and their coefficients, shape (outputs, basis rows).

    With ``like_rows`` the coefficients are a sparse matrix if X is, as in scikit-learn.
    """
    known = {} if kernel.function is not None else {"_gamma": kernel.gamma}
    if like_rows and scipy.sparse.issparse(X):
        dual_coef = type(X)(dual_coef)
    return {
        "support_": support.astype(np.int32),
        "dual_coef_": dual_coef,
        "shape_fit_": X.shape,
        "support_vectors_": np.empty((0, 0)) if kernel.name == "precomputed" else X[support],
        **known,
    }


def over_blocks(
    model: Any, X: Any, executor: Executor, use: Callable[[np.ndarray, np.ndarray], None]
) -> None:
    """Call ``use`` for every block of rows, with their numbers and kernel values.

    The kernel values are those with the model's basis rows, shape (rows of the block, basis rows).
    """
    rows, vectors = X.shape[0], len(model.support_)
    if vectors == 0 or rows == 0:
        return
    values_of = _values_of(model, X)
    with executor:
        _run_blocks(vectors, 0, rows, executor, lambda which: use(which, values_of(which)))


def _run_blocks(
    vectors: int, first: int, last: int, executor: Executor, use: Callable[[np.ndarray], None]
) -> None:
    """Call a function with the rows first ≤ k < last in blocks."""
    block = max(16, min(1024, BLOCK_VALUES // vectors))

    def task(k: int) -> None:
        begin = first + k * block
        use(np.arange(begin, min(begin + block, last)))

    with single_threaded_blas():
        executor.run(task, -(-(last - first) // block))


def _values_of(model: Any, X: Any) -> Callable[[np.ndarray], np.ndarray]:
    """A function that computes the kernel values of some rows with all basis rows."""
    support, vectors = model.support_, model.support_vectors_
    if callable(model.kernel):
        return lambda which: call_kernel(model.kernel, X[which], vectors)
    if model.kernel == "precomputed":
        return lambda which: np.asarray(X[which][:, support], dtype=np.float64)
    kernel, left, right = _points_of(model, X)
    return ProductMatrix(kernel, left, right, SerialExecutor()).rows


def _points_of(model: Any, X: Any) -> tuple[Kernel, Points, Points]:
    """A model's kernel, and rows and basis rows as its points."""
    kernel = Kernel(model.kernel, model._gamma, float(model.coef0), int(model.degree))
    return kernel, *prediction_points(kernel, X, model.support_vectors_)


class KernelModel(Estimator):
    """An estimator with ``support_vectors_``, ``dual_coef_`` and ``intercept_``."""

    kernel: Any
    support_: np.ndarray
    support_vectors_: Any
    dual_coef_: Any
    intercept_: np.ndarray

    @property
    def coef_(self) -> Any:
        """Weights of the features, for the linear kernel only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        vectors = self.support_vectors_
        coef: Any = np.asarray(self._score_coef() @ vectors)
        values = coef
        if scipy.sparse.issparse(vectors):
            coef = type(vectors)(coef)
            values = coef.data
        values.flags.writeable = False  # changing this copy would not change predictions
        return coef

    def _score_coef(self) -> np.ndarray:
        """Coefficients of the support vectors, one row per output of ``_scores``."""
        return dense(self.dual_coef_)

    def _scores(self, X: Any) -> np.ndarray:
        """Σ coef·k(x, support vector) + intercept: shape (rows, outputs)."""
        return self._scores_of(rows_to_score(self, X))

    def _sums(
        self, change: Callable[[np.ndarray], np.ndarray] = np.asarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """A function from kernel values, (rows, support vectors), to sums, (rows, outputs).

        ``change`` is applied to the coefficients first.
        """
        coef = change(self._score_coef()).T
        return lambda values: values @ coef

    def _signed_scores(self, X: Any) -> np.ndarray:
        """Scores with the signs of those of ``_scores``: for labels this is enough.

        Single precision proves most signs (see ``kernels.rough``); rows with another score are
        computed again in double precision.
        """
        X = rows_to_score(self, X)
        rows, vectors = X.shape[0], len(self.support_)
        if callable(self.kernel) or self.kernel == "precomputed":
            return self._scores_of(X)
        if rows < 2 * TRIED_ROWS or vectors == 0:
            return self._scores_of(X)
        kernel, left, right = _points_of(self, X)
        several = len(self.intercept_) > 1
        sums = None if several else rough_sum(kernel, left, right, self._score_coef()[0])
        if sums is None:
            changes = self._sums(), self._sums(np.abs)
            sums = rough_sums(kernel, left, right, *changes, SerialExecutor())
        if sums is None:
            return self._scores_of(X)
        scores, certain = np.empty((rows, len(self.intercept_))), np.zeros(rows, dtype=bool)

        def use(which: np.ndarray) -> None:
            own, error = sums(which)
            own += self.intercept_
            # Rounding in double precision is well below a hundredth of the error.
            error = 1.01 * error + 1e-15 * np.abs(self.intercept_)
            scores[which] = own
            certain[which] = np.all((np.abs(own) > error) & np.isfinite(own), axis=1)

        with np.errstate(over="ignore", invalid="ignore"), executor_for(self, rows, vectors) as run:
            _run_blocks(vectors, 0, TRIED_ROWS, run, use)
            if np.count_nonzero(certain) < (1.0 - UNCERTAIN) * TRIED_ROWS:
                return self._scores_of(X)
            _run_blocks(vectors, TRIED_ROWS, rows, run, use)
        if not np.all(np.isfinite(scores)):
            return self._scores_of(X)
        again = np.flatnonzero(~certain)
        if len(again):
            scores[again] = self._scores_of(X[again])
        return scores

    def _scores_of(self, X: Any) -> np.ndarray:
        sums = self._sums()
        scores = np.tile(self.intercept_, (X.shape[0], 1))

        def add(which: np.ndarray, values: np.ndarray) -> None:
            scores[which[0] : which[-1] + 1] += sums(values)

        executor = executor_for(self, X.shape[0] * len(self.support_), 1)
        with np.errstate(over="ignore", invalid="ignore"):
            over_blocks(self, X, executor, add)
        if not np.all(np.isfinite(scores)):
            row = int(np.flatnonzero(~np.all(np.isfinite(scores), axis=1))[0])
            raise ValueError(
                f"the scores overflow, first in row {row} of X: bring X to the scale of the "
                "training data"
            )
        return scores

    def __sklearn_tags__(self) -> Any:
        """Sparse input is welcome, except as a precomputed kernel."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


# -- kernel machines ---------------------------------------------------------------------

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
