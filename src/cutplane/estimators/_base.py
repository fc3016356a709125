"""What all linear estimators do alike: check, fit through a session, store, score rows."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .._checks import check_choice, check_flag, check_integer, check_n_jobs, check_number
from ..bundle import StopRule
from ..cluster.rows import RemoteMatrix
from ..data import BlockedMatrix, as_blocks
from ..data.dataset import Dataset
from ..exec import make_executor
from ..result import Iteration, SolveResult
from ._callbacks import CallbackSupportMixin, FitTasks
from ._cluster import WithExecutor, check_executor, is_stored, threads_of, training_collection
from ._datasets import check_test_dataset, training_dataset
from ._form import ModelForm
from ._problems import Data, Problem
from ._solve import Memory, Session, divided
from .checkpoint import Checkpoint, CheckpointFile, check_checkpoint

# Whose state can be written; auto then means ocas.
WITH_STATE = ("auto", "ocas", "cpa")
STOPPING = ("relative", "absolute", "epsilon")
# Relative to their size, scores closer than this differ by rounding.
ROUNDING = 1e-10
FLOATS = (np.float64, np.float32)


def dense(values: Any) -> np.ndarray:
    """Coefficients as an array, also if they are kept as a sparse matrix."""
    return values.toarray() if scipy.sparse.issparse(values) else values


class SizedData(Data, Protocol):
    """Data other than rows in blocks, with the work that a pass over them is."""

    @property
    def numbers(self) -> int:
        """In numbers of a data matrix."""
        ...


class LinearModel(CallbackSupportMixin, WithExecutor, BaseEstimator):
    """Base of the linear estimators. Parameters are documented there."""

    C: float
    solver: str
    tol: float
    stopping: str
    max_iter: int | None
    time_limit: float | None
    n_jobs: int | None
    executor: Any
    warm_start: bool
    verbose: int
    callback: Callable[[Iteration], bool | None] | None
    checkpoint: Checkpoint | str | os.PathLike[str] | None

    _solvers: ClassVar[tuple[str, ...]] = ("ocas", "cpa")

    def _check_common(self) -> None:
        """Check the parameters that all linear estimators have."""
        check_number("C", self.C, above=0.0)
        check_choice("solver", self.solver, self._solvers)
        check_choice("stopping", self.stopping, STOPPING)
        check_number("tol", self.tol, at_least=0.0)
        if self.max_iter is not None:
            check_integer("max_iter", self.max_iter, at_least=1)
        check_n_jobs(self.n_jobs)
        check_executor(self)
        check_flag("warm_start", self.warm_start)
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, at_least=0)
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be callable or None, got {self.callback!r}")
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, above=0.0, finite=False)
        if check_checkpoint(self.checkpoint) is not None and self.solver not in WITH_STATE:
            raise ValueError(
                f"checkpoint is for solver='ocas' or 'cpa', whose state can be written; got "
                f"solver={self.solver!r}"
            )

    def _training_data(self, X: Any, y: Any, **options: Any) -> tuple[Any, np.ndarray]:
        """Training data as arrays, or a data set on disk as it is."""
        if isinstance(X, Dataset):
            return X, training_dataset(self, X, y, **options)
        if is_stored(X):
            return training_collection(self, X, y)
        return validate_data(
            self, X, y, accept_sparse="csr", accept_large_sparse=True, dtype=FLOATS, **options
        )

    def _stop_rule(self) -> StopRule:
        return StopRule(
            **{self.stopping: float(self.tol)},
            max_iter=None if self.max_iter is None else int(self.max_iter),
            time_limit=np.inf if self.time_limit is None else float(self.time_limit),
        )

    def _checkpoint_file(self, matrix: Data) -> CheckpointFile | None:
        checkpoint = check_checkpoint(self.checkpoint)
        if checkpoint is None:
            return None
        name, parameters = type(self).__name__, self.get_params(deep=False)
        course = f"{self.solver}, C = {float(self.C)!r}"
        return CheckpointFile(checkpoint, name, parameters, course, matrix.digest())

    def _start(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The previous model, if a fit may start there."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        return dense(self.coef_), self.intercept_

    def _solve(
        self,
        data: tuple[Any, Any],
        matrix: BlockedMatrix | RemoteMatrix | SizedData,
        form: ModelForm,
        problem_of: Callable[[int], Problem],
        start: tuple[np.ndarray, np.ndarray] | None,
        dual_points: np.ndarray | None = None,
    ) -> list[SolveResult]:
        """Solve all problems of a fit, and store the model.

        Parameters
        ----------
        data : X and y as the user gave them
        matrix : X in blocks, or other data
        form : ModelForm
        problem_of : callable
            Makes the k-th problem.
        start : ``coef_`` and ``intercept_`` to start from, if any
        dual_points : ndarray, optional
            One per problem, divided by C.
        """
        memories: dict[int, Memory] = getattr(self, "_memories", {}) if self.warm_start else {}
        tasks = FitTasks(self, *data, form.problems)
        with make_executor(threads_of(self), matrix.numbers) as executor:
            session = Session(
                matrix,
                executor,
                C=float(self.C),
                solver=self.solver,
                stop=self._stop_rule(),
                random_state=getattr(self, "random_state", None),
                verbose=self.verbose,
                callback=self.callback,
                keep_cuts=self.warm_start,
                checkpoint=self._checkpoint_file(matrix),
            )

            def solve(k: int) -> None:
                def show(w: np.ndarray, bias: float) -> bool:
                    return tasks.iteration(
                        lambda: self._partial_attributes(form, session.results[:k], w, bias)
                    )

                problem = problem_of(k)
                tasks.begin_problem(problem.label)
                session.solve(
                    problem,
                    start=form.point(*start, k) if start is not None else None,
                    memory=memories.get(k),
                    dual_point=dual_points[k] if dual_points is not None else None,
                    on_iteration=show if tasks.active else None,
                    last=k == form.problems - 1,
                )
                tasks.end_problem()

            session.solve_all(form.problems, solve)
        self._memories = session.memories
        self._store(form, session.results)
        tasks.end()
        return session.results

    def _solve_one(
        self,
        data: tuple[Any, Any],
        matrix: BlockedMatrix | RemoteMatrix,
        problem: Problem,
        start: tuple[np.ndarray, np.ndarray] | None,
        *,
        free_bias: bool = False,
    ) -> list[SolveResult]:
        """As ``_solve``, for a fit of one problem whose C multiplies a mean.

        The certificate is stored in units of the risk, too.
        """
        form = ModelForm(1, None, problem.constant, free_bias)
        results = self._solve(data, matrix, form, lambda _: problem, start)
        self.risk_certificate_ = divided(results[0].certificate, float(self.C))
        return results

    # -- what is stored -------------------------------------------------------

    def _partial_attributes(
        self, form: ModelForm, done: list[SolveResult], w: np.ndarray, bias: float
    ) -> dict[str, Any]:
        """Fitted attributes as if the fit had stopped now: classes not yet fitted score 0."""
        points = [(r.w, r.bias) for r in done] + [(w, bias)]
        points += [(np.zeros_like(w), 0.0)] * (form.problems - len(points))
        coef, intercept = form.model(points)
        attributes = {"coef_": coef, "intercept_": intercept}
        if hasattr(self, "classes_"):
            attributes["classes_"] = self.classes_
        return attributes

    def _store(self, form: ModelForm, results: list[SolveResult]) -> None:
        self._keep(*form.model([(r.w, r.bias) for r in results]), results)

    def _keep(self, coef: np.ndarray, intercept: np.ndarray, results: list[SolveResult]) -> None:
        """Set the attributes of a fitted model."""
        self.coef_, self.intercept_ = coef, intercept
        self.n_iter_ = max(result.n_iter for result in results)
        one = len(results) == 1
        self.result_ = results[0] if one else results
        self.certificate_ = (
            results[0].certificate if one else [result.certificate for result in results]
        )

    # -- scores ---------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        """X·coef, without the intercept: shape (n_samples,), or (n_samples, outputs)."""
        check_is_fitted(self)
        if isinstance(X, Dataset):
            check_test_dataset(self, X)
        else:
            X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=FLOATS)
        return self._scores_of(as_blocks(X, compact=False))

    def _scores_of(self, matrix: BlockedMatrix | RemoteMatrix) -> np.ndarray:
        coef = dense(self.coef_)
        single = len(coef) == 1
        w = coef[0] if single else np.ascontiguousarray(coef.T)
        scores = np.empty((len(matrix),) if single else (len(matrix), len(coef)))
        with make_executor(threads_of(self), matrix.numbers) as executor:
            matrix.scores(w, scores, executor)
        return scores

    def _training_scores(self, matrix: BlockedMatrix | RemoteMatrix) -> np.ndarray:
        """Scores to fit thresholds to: those that only rounding keeps apart are made equal.

        At the optimum many rows lie exactly one margin apart; which of them comes first is chance.
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

    def __getstate__(self) -> dict[str, Any]:
        """Cuts kept for a warm start are large and bound to the data: not pickled."""
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key != "_memories"}
