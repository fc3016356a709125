"""Base classes of the estimators: last steps of a fit; shape and scores of linear models."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache, partial
from numbers import Integral
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, _clone_parametrized
from sklearn.utils.validation import check_is_fitted

from .._checks import check_choice, check_flag, check_integer, check_n_jobs, check_number
from ..data import BlockedMatrix, as_blocks
from ..data.dataset import Dataset
from ..exec import Executor, make_executor, thread_count
from ..result import Iteration, SolveResult
from ._attributes import check_linear
from ._fit import (
    IN_PASSES,
    STOPPING,
    Attributes,
    CallbackSupportMixin,
    FitTasks,
    Problem,
    Settings,
    Start,
    random_of,
    solve,
    store_results,
)
from ._parallel import solve_in_parallel
from ._problems import LinearProblem, NearlyFreeBias, pair_of
from ._rows import check_test_dataset, checked_rows
from .checkpoint import Checkpoint, check_checkpoint

if TYPE_CHECKING:
    from ..cluster.rows import RemoteMatrix

# Scores are computed with the sparse coefficients of so many outputs made dense at a time. More
# outputs share the work of reading a row; fewer outputs need less memory.
OUTPUTS_TOGETHER = 64
# Scores whose relative difference is smaller than this differ only by rounding.
ROUNDING = 1e-10


def dense(values: Any) -> np.ndarray:
    """Coefficients as an array. They may be stored as a sparse matrix."""
    return values.toarray() if scipy.sparse.issparse(values) else values


class WithExecutor:
    """Has a parameter ``executor``, which belongs to this process: pickles are without it."""

    def __getstate__(self) -> dict[str, Any]:
        """The state without the cluster."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "executor": None} if "executor" in state else state

    def __sklearn_clone__(self) -> Any:
        """A clone that uses the same cluster; the cluster is not copied."""
        executor = getattr(self, "executor", None)
        if executor is None:
            return _clone_parametrized(self)
        without = copy.copy(self)
        without.executor = None  # type: ignore[attr-defined]
        clone = _clone_parametrized(without)
        clone.executor = executor
        return clone


def check_executor(model: Any) -> None:
    """Refuse an executor that is not a cluster, or a cluster if it cannot run the solver."""
    if isinstance(model.executor, Integral):
        raise ValueError(
            f"executor must be None or a cluster, got {model.executor!r}; for threads give "
            f"n_jobs={model.executor!r}"
        )
    from ..cluster.executor import cluster_of

    cluster_of(model.executor)
    if model.solver not in IN_PASSES:
        raise ValueError(
            f"solver={model.solver!r} visits rows in random order, which a cluster cannot; with "
            "such an executor use 'auto', 'ocas' or 'cpa'"
        )


class Estimator(CallbackSupportMixin, WithExecutor, BaseEstimator):
    """Base of all estimators whose ``fit`` calls ``solve``."""

    # Allowed values of the parameters ``solver`` (none without this parameter) and ``stopping``.
    _solvers: ClassVar[tuple[str, ...]] = ()
    _stopping: ClassVar[tuple[str, ...]] = STOPPING
    # Whether coefficients may be stored as a sparse matrix.
    _sparse_coef: ClassVar[bool] = False
    # Attributes that older model files lack, each with the change that introduced it.
    _since: ClassVar[dict[str, str]] = {}

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """As in scikit-learn, but cached, because it takes a sixth of the time of a small fit."""
        names: list[str] = super()._get_param_names()
        return names

    def _check_common(self) -> Settings:
        """Check the parameters. Returns those that all estimators have."""
        model: Any = self  # parameters are fields of the subclasses
        solvers = model._solvers
        C = check_number("C", model.C, above=0.0) if hasattr(model, "C") else 1.0
        if solvers:
            check_choice("solver", model.solver, solvers)
        check_choice("stopping", model.stopping, model._stopping)
        check_number("tol", model.tol, at_least=0.0)
        max_iter = None if model.max_iter == -1 and not solvers else model.max_iter
        if max_iter is not None:
            check_integer("max_iter", max_iter, at_least=1)
        check_n_jobs(model.n_jobs)
        if getattr(model, "executor", None) is not None:
            check_executor(model)
        warm_start = check_flag("warm_start", getattr(model, "warm_start", False))
        if not isinstance(model.verbose, bool):
            check_integer("verbose", model.verbose, at_least=0)
        if model.callback is not None and not callable(model.callback):
            raise ValueError(f"callback must be callable or None, got {model.callback!r}")
        if model.time_limit is not None:
            check_number("time_limit", model.time_limit, above=0.0, finite=False)
        checkpoint = getattr(model, "checkpoint", None)
        checkpoint = None if checkpoint is None else check_checkpoint(checkpoint)
        if checkpoint is not None and solvers and model.solver not in IN_PASSES:
            raise ValueError(
                f"checkpoint is for solver='ocas' or 'cpa', whose state can be written; got "
                f"solver={model.solver!r}"
            )
        random_state = getattr(model, "random_state", None)
        if random_state is not None:
            random_of(random_state)
        return Settings(
            name=type(model).__name__,
            C=C,
            solver=model.solver if solvers else "",
            tol=float(model.tol),
            stopping=model.stopping,
            max_iter=None if max_iter is None else int(max_iter),
            time_limit=np.inf if model.time_limit is None else float(model.time_limit),
            verbose=int(model.verbose),
            callback=model.callback,
            warm_start=warm_start,
            checkpoint=checkpoint,
            random_state=random_state,
            parameters=model.get_params(deep=False),
        )

    def _solve(
        self,
        data: tuple[Any, Any],
        problems: Sequence[Problem],
        settings: Settings,
        executor: Executor,
        attributes: Attributes,
        *,
        starts: Callable[[int], np.ndarray | None] | None = None,
        dual_points: np.ndarray | None = None,
        improve: Callable[[list[SolveResult]], list[SolveResult]] | None = None,
        threads: int = 1,
    ) -> list[SolveResult]:
        """Solve the problems of a fit, and store the model.

        Parameters
        ----------
        data : X and y as the user gave them
        problems, settings, executor
            As for ``solve``.
        starts : callable, optional
            Takes the number of a problem; returns where the problem starts.
        dual_points : ndarray, optional
            The user's starts, for each problem a number per row, divided by C.
        attributes : callable
            Returns the fitted attributes, from w and bias of all problems or of the first ones.
        threads : int
            Number of threads, each of which may solve another problem.
        improve : callable, optional
            Turns the solvers' results into the results to store.
        """
        tasks = None
        if getattr(self, "_skl_callbacks", None):
            tasks = FitTasks(self, *data, len(problems))
        memories = getattr(self, "_memories", {}) if settings.warm_start else {}

        def start_of(k: int) -> Start:
            w = None if starts is None else starts(k)
            return Start(w, memories.get(k), None if dual_points is None else dual_points[k])

        cold = starts is None and dual_points is None and not memories
        start = None if cold else start_of
        # Callbacks and checkpoints need one problem after the other.
        in_turn = tasks is not None or settings.callback or settings.checkpoint is not None
        if threads > 1 and len(problems) > 1 and not in_turn:
            fitted = solve_in_parallel(problems, settings, threads, executor, start)
        else:
            fitted = solve(
                problems, settings, executor, starts=start, tasks=tasks, attributes=attributes
            )
        self._memories = fitted.memories
        results = fitted.results if improve is None else improve(fitted.results)
        del fitted
        points = [(result.w, result.bias) for result in results]
        if getattr(self, "multilabel_", False) or scipy.sparse.issparse(points[0][0]):
            # There may be many large w, and the model holds them already.
            results = [dataclasses.replace(result, w=np.empty(0)) for result in results]
        self.__dict__.update(attributes(points))
        store_results(self, results)
        if tasks is not None:
            tasks.end()
        return results

    def _check_attributes(self) -> None:
        """Refuse fitted attributes from a file if they do not fit together."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """The state without the data of a warm start, which are large."""
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key != "_memories"}


@dataclass(frozen=True)
class ModelForm:
    """How many problems a linear model has, and how they model the bias.

    Attributes
    ----------
    problems : int
    outputs : int or None
        Scores per row, for a joint problem of all outputs; None if a problem has one score per row.
    constant : float
        Value of the constant feature behind a regularised bias; 0 for none.
    free_bias : bool
    nearly_free : NearlyFreeBias or None
        Given if the constant feature stands for an unregularised bias.
    """

    problems: int = 1
    outputs: int | None = None
    constant: float = 0.0
    free_bias: bool = False
    nearly_free: NearlyFreeBias | None = None

    def model(self, points: list[tuple[Any, float]]) -> tuple[Any, np.ndarray]:
        """``coef_`` and ``intercept_`` of solved problems.

        A w is an array, with a column per output if there are several, or a sparse matrix with a
        row per output. If one w is sparse, so is ``coef_``. The method empties the list, so that
        the memory of each w is free once the model has its values.
        """
        coefs = [w if scipy.sparse.issparse(w) else np.atleast_2d(w.T) for w, _ in points]
        if self.constant:
            intercepts = [self.constant * dense(rows[:, [-1]])[:, 0] for rows in coefs]
        else:
            intercepts = [
                np.full(rows.shape[0], bias) for rows, (_, bias) in zip(coefs, points, strict=True)
            ]
        points.clear()
        width = coefs[0].shape[1] - bool(self.constant)
        intercept = np.concatenate(intercepts)
        if any(map(scipy.sparse.issparse, coefs)):
            return _below_one_another(coefs, width), intercept
        return np.ascontiguousarray(np.vstack([rows[:, :width] for rows in coefs])), intercept

    def point(self, coef: Any, intercept: np.ndarray, k: int) -> np.ndarray | None:
        """The solver's point of problem k; None if the model has another shape."""
        outputs = self.outputs or 1
        coef = coef if coef.ndim == 2 else coef[None]
        if coef.shape[0] != outputs * self.problems:
            return None
        own = slice(k * outputs, (k + 1) * outputs)
        rows = dense(coef[own])
        if self.constant:
            rows = np.hstack([rows, intercept[own, None] / self.constant])
        return np.ascontiguousarray(rows.T if self.outputs else rows[0])


def _below_one_another(parts: list[Any], width: int) -> scipy.sparse.csr_matrix:
    """The first ``width`` columns of all parts, stacked as a CSR matrix. Empties the list.

    Each part is freed when it has been copied, so that memory holds the values hardly ever twice.
    """
    lengths = [np.diff(scipy.sparse.csr_matrix(part)[:, :width].indptr) for part in parts]
    starts = np.cumsum(np.concatenate([[0], *lengths]))
    index = np.int32 if max(width, starts[-1]) < np.iinfo(np.int32).max else np.int64
    values, columns = np.empty(starts[-1]), np.empty(starts[-1], index)
    end = int(starts[-1])
    while parts:
        own = scipy.sparse.csr_matrix(parts.pop())[:, :width]
        here = slice(end - own.nnz, end)
        values[here], columns[here] = own.data, own.indices
        end = here.start
    return scipy.sparse.csr_matrix(
        (values, columns, starts.astype(index)), shape=(len(starts) - 1, width)
    )


@dataclass(eq=False, repr=False, kw_only=True)
class CutModel(Estimator):
    """An estimator whose fit can run on a cluster, and the parameters of such fits.

    The fields of a subclass are its parameters, the keyword arguments of its constructor.
    """

    solver: str = "ocas"
    tol: float = 1e-3
    stopping: str = "relative"
    max_iter: int | None = None
    time_limit: float | None = None
    n_jobs: int | None = None
    executor: Any = None
    warm_start: bool = False
    verbose: int = 0
    callback: Callable[[Iteration], bool | None] | None = None
    checkpoint: Checkpoint | str | PathLike[str] | None = None


@dataclass(eq=False, repr=False)
class LinearModel(CutModel):
    """An estimator with ``coef_`` and ``intercept_``, and the parameters of all linear models."""

    _solvers: ClassVar[tuple[str, ...]] = ("ocas", "cpa")

    C: float = 1.0
    _: KW_ONLY
    positive: bool = False
    bounds: tuple[Any, Any] | None = None

    coef_: Any = field(init=False)
    intercept_: np.ndarray = field(init=False)

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        positive = check_flag("positive", self.positive)
        if self.bounds is not None:
            pair_of(self.bounds)  # as far as it can be checked without the data
        if (positive or self.bounds is not None) and self.solver not in IN_PASSES:
            raise ValueError(
                f"solver={self.solver!r} takes no bounds on the coefficients; use solver='ocas', "
                "which solver='auto' is here, or solver='cpa'"
            )
        if hasattr(self, "fit_intercept"):
            check_flag("fit_intercept", self.fit_intercept)
            if self.intercept_scaling is not None:
                check_number("intercept_scaling", self.intercept_scaling, above=0.0)
        if getattr(self, "dual", "auto") != "auto":
            check_flag("dual", self.dual)
        return settings

    def _bias(self) -> dict[str, Any]:
        """The kind of bias (constant feature, free, or none), as fields of a ``ModelForm``."""
        constant = float(self.intercept_scaling or 0.0) if self.fit_intercept else 0.0
        return {"constant": constant, "free_bias": bool(self.fit_intercept) and constant == 0.0}

    def _fit_linear(
        self,
        data: tuple[Any, Any],
        form: ModelForm,
        problems: Sequence[LinearProblem],
        settings: Settings,
        start: tuple[np.ndarray, np.ndarray] | None = None,
        dual_points: np.ndarray | None = None,
    ) -> list[SolveResult]:
        """Solve the problems of a linear model, from the last fit or a given start; store it."""
        if start is None and self.warm_start and hasattr(self, "coef_"):
            start = self.coef_, self.intercept_
        threads, first = 1, problems[0]
        if isinstance(first.matrix, BlockedMatrix) and first.matrix.whole is not None:
            # A thread gets an entire problem, with many passes, so less work per pass is worth it.
            threads = thread_count(self.n_jobs, 4 * form.problems * first.work)
        with make_executor(self.n_jobs, first.work) as executor:
            return self._solve(
                data,
                problems,
                settings,
                executor,
                partial(self._linear_attributes, form),
                starts=None if start is None else partial(form.point, *start),
                dual_points=dual_points,
                threads=threads,
            )

    def _linear_attributes(
        self, form: ModelForm, points: list[tuple[Any, float]]
    ) -> dict[str, Any]:
        """Fitted attributes from w and bias. Problems that are not solved yet have the scores 0."""
        points += [(0.0 * points[0][0], 0.0)] * (form.problems - len(points))
        coef, intercept = form.model(points)
        attributes = {"coef_": coef, "intercept_": intercept}
        if hasattr(self, "classes_"):
            attributes["classes_"] = self.classes_
        return attributes

    def _check_attributes(self) -> None:
        check_linear(self, 1)

    # -- scores ---------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        """X·coef, without the intercept: shape (n_samples,), or (n_samples, outputs)."""
        return self._scores_of(self._rows_to_score(X))

    def _rows_to_score(self, X: Any) -> BlockedMatrix:
        check_is_fitted(self)
        if isinstance(X, Dataset):
            check_test_dataset(self, X)
        else:
            X = checked_rows(self, X, reset=False)
        return as_blocks(X, compact=False)

    def _scores_of(self, matrix: BlockedMatrix | RemoteMatrix) -> np.ndarray:
        outputs = 1 if self.coef_.ndim == 1 else self.coef_.shape[0]
        if outputs == 1:
            scores = np.empty(len(matrix))
            with make_executor(self.n_jobs, matrix.n_stored) as executor:
                matrix.scores(dense(self.coef_).reshape(-1), scores, executor)
            return scores
        together = outputs if isinstance(self.coef_, np.ndarray) else OUTPUTS_TOGETHER
        parts = [part for _, part in self._scores_by_parts(matrix, together)]
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def _scores_by_parts(
        self, matrix: BlockedMatrix | RemoteMatrix, together: int
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Iterate over groups of outputs: yields which outputs, and X·coef for them."""
        with make_executor(self.n_jobs, matrix.n_stored) as executor:
            for first in range(0, self.coef_.shape[0], together):
                some = slice(first, first + together)
                w = np.ascontiguousarray(dense(self.coef_[some]).T)
                scores = np.empty((len(matrix), w.shape[1]))
                matrix.scores(w, scores, executor)
                yield some, scores

    def _training_scores(self, matrix: BlockedMatrix | RemoteMatrix) -> np.ndarray:
        """Scores for fitting thresholds. Scores that differ only by rounding are made equal.

        At the optimum many rows have the same score in exact arithmetic; without this step rounding
        would decide about their order.
        """
        scores = self._scores_of(matrix)
        levels, level_of = np.unique(scores, return_inverse=True)
        size = np.maximum(np.abs(levels[1:]), np.median(np.abs(scores)))
        near = np.diff(levels) <= ROUNDING * size
        group = np.concatenate([[0], np.cumsum(~near)])
        first = np.flatnonzero(np.diff(group, prepend=-1))
        return levels[first][group[level_of]]

    def __sklearn_tags__(self) -> Any:
        """Sparse input is welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
