"""Kernels of estimators: their parameters, the problems of kernel machines, models and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._blas import single_threaded_blas
from .._checks import check_choice, check_flag, check_integer, check_number, plain
from ..data import as_blocks
from ..dual import DualProblem, DualSettings, DualSolver, WholeSolver
from ..dual.whole import ALL_AT_ONCE
from ..exec import Executor, SerialExecutor, make_executor
from ..kernels import (
    KERNELS,
    CallableMatrix,
    Kernel,
    KernelMatrix,
    PrecomputedMatrix,
    ProductMatrix,
    call_kernel,
    check_precomputed,
    prediction_points,
    training_points,
)
from ..kernels.points import Points
from ..reporting.dual_progress import DualLine
from ..result import Iteration, SolveResult, Status
from ._base import Estimator, dense
from ._fit import Attributes, Memory, Problem, Ready, Run, Settings, warn_of
from ._rows import checked_rows

STOPPING = ("relative", "absolute", "epsilon", "kkt")
# Beyond this, rounding of a kernel in single precision would show in the objective.
SINGLE_TOL = 1e-4
SINGLE_BOUND = 1e2
# Powers of ten between the ranges of features that are on unlike scales.
FAR_APART = 2.0
# A relative gap that is told even if the rule asked for does not mind it.
LARGE_GAP = 0.01
# All problems of a fit take their values from one matrix if it is this small.
ONE_MATRIX = 2500
# Kernel values that a thread holds at a time in prediction.
BLOCK_VALUES = 1 << 20


def check_kernel(model: Any, kernels: Sequence[str] = KERNELS) -> None:
    """Check the parameters ``kernel``, ``degree``, ``gamma`` and ``coef0`` of an estimator."""
    if not callable(model.kernel):
        check_choice("kernel", model.kernel, kernels)
    check_integer("degree", model.degree, at_least=0)
    if isinstance(model.gamma, str):
        check_choice("gamma", model.gamma, ("scale", "auto"))
    else:
        check_number("gamma", model.gamma, at_least=0.0)
    check_number("coef0", model.coef0)


def training_rows(model: Any, X: Any, **options: Any) -> Any:
    """Checked rows, or rows and y if ``options`` has a y; other options are validate_data's."""
    checked = checked_rows(model, X, **options)
    X = canonical_rows(model.kernel, checked[0] if "y" in options else checked)
    return (X, checked[1]) if "y" in options else X


def canonical_rows(kernel: Any, X: Any) -> Any:
    """Training rows without duplicate entries; a precomputed kernel is checked and made dense."""
    if scipy.sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if isinstance(kernel, str) and kernel == "precomputed":
        X = X.toarray() if scipy.sparse.issparse(X) else X
        check_precomputed(X)
    return X


def rows_to_score(model: Any, X: Any) -> Any:
    """Checked rows to predict."""
    check_is_fitted(model)
    X = checked_rows(model, X, reset=False)
    if model.kernel == "precomputed" and scipy.sparse.issparse(X):
        return X.toarray()
    return X


def kernel_of(model: Any, X: Any) -> Kernel:
    """The kernel of an estimator with its parameters as numbers, for training rows X."""
    if callable(model.kernel):
        return Kernel("callable", function=model.kernel)
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
    return Kernel(model.kernel, float(gamma), float(model.coef0), int(model.degree))


def executor_for(model: Any, rows: int, width: int) -> Executor:
    """Threads for kernel values of so many rows; a user's function is called from one thread."""
    if callable(model.kernel):
        return SerialExecutor()
    return make_executor(model.n_jobs, rows * max(1, width) * 64)


def basis_attributes(
    kernel: Kernel, X: Any, support: np.ndarray, dual_coef: np.ndarray
) -> dict[str, Any]:
    """Fitted attributes of basis rows with coefficients, (outputs, basis rows)."""
    known = {} if kernel.function is not None else {"_gamma": kernel.gamma}
    return {
        "support_": support.astype(np.int32),
        "dual_coef_": dual_coef,
        "shape_fit_": X.shape,
        "support_vectors_": np.empty((0, 0)) if kernel.name == "precomputed" else X[support],
        **known,
    }


@dataclass(frozen=True)
class KernelBasis:
    """The rows that a model computes kernel values with.

    Attributes
    ----------
    kernel : Kernel
    support : ndarray of int32
        Their numbers among the training rows.
    vectors : ndarray or CSR matrix
        The rows themselves; none for a precomputed kernel.
    """

    kernel: Kernel
    support: np.ndarray
    vectors: Any

    @classmethod
    def of(cls, model: Any) -> KernelBasis:
        """The basis of a fitted model."""
        if callable(model.kernel):
            kernel = Kernel("callable", function=model.kernel)
        else:
            kernel = Kernel(model.kernel, model._gamma, float(model.coef0), int(model.degree))
        return cls(kernel, model.support_, model.support_vectors_)

    def over_blocks(
        self, X: Any, executor: Executor, use: Callable[[np.ndarray, np.ndarray], None]
    ) -> None:
        """Call a function with rows in blocks and their kernel values with the basis rows."""
        rows, vectors = X.shape[0], len(self.support)
        if vectors == 0 or rows == 0:
            return
        block = max(16, min(1024, BLOCK_VALUES // vectors))
        values_of = self._filler(X)

        def task(k: int) -> None:
            which = np.arange(k * block, min((k + 1) * block, rows))
            use(which, values_of(which))

        with single_threaded_blas(), executor:
            executor.run(task, -(-rows // block))

    def _filler(self, X: Any) -> Callable[[np.ndarray], np.ndarray]:
        """A function that computes the kernel values of some rows with all basis rows."""
        kernel, vectors, support = self.kernel, self.vectors, self.support
        if kernel.function is not None:
            function = kernel.function
            return lambda which: call_kernel(function, X[which], vectors)
        if kernel.name == "precomputed":
            return lambda which: np.asarray(X[which][:, support], dtype=np.float64)
        left, right = prediction_points(kernel, X, vectors)
        return ProductMatrix(kernel, left, right, SerialExecutor()).rows


# -- the dual problem on some rows of one data set ------------------------------------------------


@dataclass(frozen=True)
class Decomposition:
    """Parameters of the decomposition that only kernel machines have."""

    working_set_size: int | None
    shrinking: bool
    cache_bytes: float


class KernelRows:
    """The rows of a fit and their kernel values, for one or more problems on some of the rows.

    Attributes
    ----------
    kernel : Kernel
    indefinite : bool
        Whether the kernel turned out not to be positive semidefinite.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix
        Rows, or the kernel values of a precomputed kernel.
    executor : Executor
    decomposition : Decomposition
    single : bool
        Whether the tolerance lets kernel values be computed in single precision.
    free_bias : bool
        Whether all problems have a bias and coefficients that sum to 0, so that a linear kernel
        may be moved.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        executor: Executor,
        decomposition: Decomposition,
        *,
        single: bool,
        free_bias: bool = False,
    ) -> None:
        self.kernel = kernel
        self.decomposition = decomposition
        self.indefinite = False
        self._X = X
        self._executor = executor
        self._points: Points | None = None
        self._exact: Points | None = None  # the same in double precision
        self._values: np.ndarray | None = None
        self._room: np.ndarray | None = None
        self._groups: list[np.ndarray] = []
        self._places: list[np.ndarray] = []  # rows of the groups in the values
        if kernel.name == "precomputed":
            self._values = X
        elif kernel.function is None:
            self._exact = training_points(kernel, X, single=False, centre=free_bias)
            self._points = self._exact
            if single and X.shape[0] > ALL_AT_ONCE:
                self._points = training_points(kernel, X, single=True, centre=free_bias)

    def digest(self) -> bytes:
        """A fingerprint of the rows."""
        return as_blocks(self._X, compact=False).digest()

    def split(self, groups: list[np.ndarray]) -> None:
        """Several problems will be solved, each on some of these groups of rows.

        All kernel values are computed once if they are few, those of a group side by side.
        """
        self._groups = self._places = groups
        rows = self._X.shape[0]
        few = rows <= ONE_MATRIX and rows * rows * 8 <= self.decomposition.cache_bytes
        if self._values is not None or not few:
            return
        if self._exact is None:
            self._values = self._matrix(None).whole()
            return
        points = self._exact.take(np.concatenate(groups))
        self._values = ProductMatrix(self.kernel, points, None, self._executor).whole()
        self._places = np.split(np.arange(rows), np.cumsum([len(group) for group in groups])[:-1])

    def _matrix(self, which: tuple[int, ...] | None) -> KernelMatrix:
        """The kernel matrix of all rows, or of the rows of some groups."""
        if self._values is not None:
            full = PrecomputedMatrix(self._values)
            if which is None:
                return full
            rows = np.concatenate([self._places[k] for k in which])
            return full.square(rows, self._room_for(len(rows)))
        if self._points is not None:
            return self._product(self._points, which)
        assert self.kernel.function is not None
        X = self._X if which is None else self._X[self._rows(which)]
        return CallableMatrix(self.kernel.function, X)

    def _rows(self, which: tuple[int, ...]) -> np.ndarray:
        return np.concatenate([self._groups[k] for k in which])

    def _product(self, points: Points, which: tuple[int, ...] | None) -> ProductMatrix:
        points = points if which is None else points.take(self._rows(which))
        return ProductMatrix(self.kernel, points, None, self._executor)

    def solver(
        self,
        problem: DualProblem,
        which: tuple[int, ...] | None,
        settings: DualSettings,
        observe: Any,
    ) -> WholeSolver | DualSolver:
        """The solver of a problem on the rows of some groups, in this order, or on all rows."""
        definite = self.kernel.definite
        exact = None if self._exact is None else self._product(self._exact, which)
        if not WholeSolver.suits(problem, settings):
            matrix = self._matrix(which)
            return DualSolver(matrix, problem, settings, self._executor, observe, definite, exact)
        if self._values is not None and which is not None:
            values, rows = self._values, np.concatenate([self._places[k] for k in which])
        else:
            full = exact if exact is not None and self._values is None else self._matrix(which)
            values, rows = full.whole(), np.arange(len(problem))
        return WholeSolver(values, rows, problem, settings, observe, definite, exact)

    def unlike_scales(self) -> str:
        """Which features are on other scales than most, in a sentence; empty if none is."""
        if self._exact is None:
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

    def _room_for(self, rows: int) -> np.ndarray:
        """Room for the kernel values of a problem, used again by the next one."""
        if self._room is None or len(self._room) < rows * rows:
            assert self._values is not None
            self._room = np.empty(rows * rows, dtype=self._values.dtype)
        return self._room


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
        solver = self.rows.solver(
            self.dual, self.which, self._settings(run.settings, run.stop.time_limit), run.observe
        )
        return Ready(solver, self._start(run))

    def _settings(self, settings: Settings, seconds: float) -> DualSettings:
        decomposition = self.rows.decomposition
        return DualSettings(
            tol=settings.tol,
            stopping=settings.stopping,
            working_set_size=decomposition.working_set_size,
            shrinking=decomposition.shrinking,
            cache_bytes=decomposition.cache_bytes,
            max_iter=settings.max_iter,
            time_limit=seconds,
        )

    def _start(self, run: Run) -> np.ndarray | None:
        """The point from a checkpoint, or the last fit's point scaled to the new C."""
        if run.file is None or (run.state is None and run.start is None):
            memory = run.memory
            if (
                memory is None
                or memory.dual_point is None
                or memory.dual_point.shape != self._shape
            ):
                return None
            return memory.dual_point * (run.C / memory.C)
        beta = run.start if run.state is None else run.state.get("beta")
        if not (
            isinstance(beta, np.ndarray)
            and beta.shape == self._shape
            and beta.dtype == np.float64
            and np.all(np.isfinite(beta))
        ):
            raise run.file.damaged(ValueError("the dual point is missing or has another length"))
        return beta

    @property
    def _shape(self) -> tuple[int]:
        return (len(self.dual),)

    def done(self, result: SolveResult, settings: Settings, C: float) -> bool:
        """Whether a result of an earlier run is good enough.

        Not if the kernel is a function, which may be another one now; and not with
        ``stopping='kkt'``: a result does not tell the violation.
        """
        certificate = result.certificate
        if self.rows.kernel.function is not None or result.w.shape != self._shape:
            return False
        if result.status is Status.MAX_ITER:
            return settings.max_iter is not None and result.n_iter >= settings.max_iter
        if result.status is Status.NUMERICALLY_LIMITED:
            return True
        return settings.stopping != "kkt" and self._settings(settings, np.inf).reached(
            np.inf, certificate.gap, certificate.primal, self.dual.mass
        )

    def line(self, settings: Settings) -> DualLine:
        return DualLine(self.label, settings.tol, settings.stopping)

    def point(self, solver: Any) -> tuple[np.ndarray, float]:
        point = solver.point()
        return point.beta, point.bias

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
        reached = (r.certificate.relative_gap for r in results if r.status is Status.CONVERGED)
        worst = max(reached, default=0.0)
        if settings.stopping == "kkt" and LARGE_GAP < worst < np.inf:
            yield ConvergenceWarning(
                f"{name}: the optimality conditions hold to tol={settings.tol:g}, which "
                f"stopping='kkt' asks for, but the relative gap is {worst:.2g}: lower tol, or "
                "leave stopping out to stop by the gap"
            )


# -- what the kernel machines share: their parameters, attributes and scores ----------------------


def as_rows(X: Any, coef: np.ndarray) -> Any:
    """Coefficients as a sparse matrix if the rows X are sparse, as in scikit-learn."""
    return type(X)(coef) if scipy.sparse.issparse(X) else coef


class KernelModel(Estimator):
    """An estimator with ``support_vectors_``, ``dual_coef_`` and ``intercept_``."""

    kernel: Any
    support_: np.ndarray
    support_vectors_: Any
    dual_coef_: Any
    intercept_: np.ndarray

    def _check_common(self) -> Settings:
        check_kernel(self)
        return super()._check_common()

    @property
    def coef_(self) -> Any:
        """Weights of the features, for the linear kernel only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        vectors = self.support_vectors_
        coef = as_rows(vectors, np.asarray(self._score_coef() @ vectors))
        values = coef.data if scipy.sparse.issparse(coef) else coef
        values.flags.writeable = False  # a change would not change predictions
        return coef

    def _score_coef(self) -> np.ndarray:
        """Coefficients of the support vectors, one row per output of ``_scores``."""
        return dense(self.dual_coef_)

    def _scores(self, X: Any) -> np.ndarray:
        """Σ coef·k(x, support vector) + intercept: shape (rows, outputs)."""
        return self._scores_of(rows_to_score(self, X))

    def _scores_of(self, X: Any) -> np.ndarray:
        coef = self._score_coef()
        scores = np.tile(self.intercept_, (X.shape[0], 1))

        def add(which: np.ndarray, values: np.ndarray) -> None:
            scores[which[0] : which[-1] + 1] += values @ coef.T

        executor = executor_for(self, X.shape[0] * len(self.support_), 1)
        with np.errstate(over="ignore", invalid="ignore"):
            KernelBasis.of(self).over_blocks(X, executor, add)
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


class KernelMachine(KernelModel):
    """A kernel model that is trained by decomposition of the dual."""

    _stopping: ClassVar[tuple[str, ...]] = STOPPING
    _sparse_coef: ClassVar[bool] = True  # if the rows are
    # Whether the bias is free, and so the coefficients sum to 0.
    _free_bias: ClassVar[bool] = True

    shrinking: bool
    cache_size: float
    working_set_size: int | None

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        check_flag("shrinking", self.shrinking)
        check_number("cache_size", self.cache_size, above=0.0)
        if self.working_set_size is not None:
            size = check_integer("working_set_size", self.working_set_size, at_least=2)
            if size % 2:
                raise ValueError(f"working_set_size must be even, got {size}")
        return settings

    def _kernel_rows(
        self, X: Any, executor: Executor, settings: Settings, bound: float
    ) -> KernelRows:
        """The training rows; ``bound`` is the largest coefficient that may occur."""
        return KernelRows(
            kernel_of(self, X),
            X,
            executor,
            Decomposition(
                self.working_set_size, bool(self.shrinking), float(self.cache_size) * 1e6
            ),
            single=settings.tol >= SINGLE_TOL and bound <= SINGLE_BOUND,
            free_bias=self._free_bias,
        )

    def _fit_kernel(
        self,
        data: tuple[Any, Any],
        problems: Sequence[Problem],
        settings: Settings,
        executor: Executor,
        attributes: Attributes,
    ) -> list[SolveResult]:
        """Solve the problems of a kernel machine, store the model, and give warnings."""
        results = self._solve(data, problems, settings, executor, attributes)
        self.fit_status_ = int(any(r.status is not Status.CONVERGED for r in results))
        warn_of(settings, problems[0], results)
        return results
