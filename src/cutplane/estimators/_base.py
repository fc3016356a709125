"""What estimators share: the last steps of a fit; and linear models: their shape and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..cluster.rows import RemoteMatrix
from ..data import BlockedMatrix, as_blocks
from ..data.dataset import Dataset
from ..exec import Executor, make_executor
from ..result import SolveResult
from ._attributes import check_linear
from ._bounds import check_bounds
from ._callbacks import CallbackSupportMixin, FitTasks
from ._cluster import WithExecutor
from ._fit import STOPPING, Attributes, Problem, Settings, solve, store_results
from ._form import ModelForm
from ._rows import check_test_dataset, checked_rows

# Relative to their size, scores closer than this differ by rounding.
ROUNDING = 1e-10


def dense(values: Any) -> np.ndarray:
    """Coefficients as an array, also if they are kept as a sparse matrix."""
    return values.toarray() if scipy.sparse.issparse(values) else values


class Estimator(CallbackSupportMixin, WithExecutor, BaseEstimator):
    """Base of all estimators that are trained by ``solve``."""

    _solvers: ClassVar[tuple[str, ...]] = ()
    _stopping: ClassVar[tuple[str, ...]] = STOPPING
    # Whether coefficients may be stored as a sparse matrix.
    _sparse_coef: ClassVar[bool] = False

    def _check_common(self) -> Settings:
        """Check the parameters; those that all estimators have are returned."""
        return Settings.of(self, solvers=self._solvers, stopping=self._stopping)

    def _solve(
        self,
        data: tuple[Any, Any],
        problems: Sequence[Problem],
        settings: Settings,
        executor: Executor,
        attributes: Attributes,
        *,
        starts: Sequence[np.ndarray | None] | None = None,
        dual_points: np.ndarray | None = None,
    ) -> list[SolveResult]:
        """Solve the problems of a fit, and store the model.

        Parameters
        ----------
        data : X and y as the user gave them
        problems, settings, executor, starts, dual_points
            As for ``solve``.
        attributes : callable
            The fitted attributes, from w and bias of the problems, perhaps of the first ones only.
        """
        tasks = FitTasks(self, *data, len(problems))
        fitted = solve(
            problems,
            settings,
            executor,
            starts=starts,
            memories=getattr(self, "_memories", None) if settings.warm_start else None,
            dual_points=dual_points,
            tasks=tasks,
            attributes=attributes,
        )
        self._memories = fitted.memories
        self._set(attributes([(result.w, result.bias) for result in fitted.results]))
        store_results(self, fitted.results)
        tasks.end()
        return fitted.results

    def _check_attributes(self) -> None:
        """Refuse fitted attributes, from a file, that do not fit together."""
        raise NotImplementedError

    def _set(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """What a warm start keeps is large and bound to the data: not pickled."""
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key != "_memories"}


class LinearModel(Estimator):
    """An estimator with ``coef_`` and ``intercept_``."""

    _solvers: ClassVar[tuple[str, ...]] = ("ocas", "cpa")

    coef_: Any
    intercept_: np.ndarray

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        check_bounds(self)
        return settings

    def _start(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The previous model, if a fit may start there."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        return dense(self.coef_), self.intercept_

    def _fit_linear(
        self,
        data: tuple[Any, Any],
        matrix: BlockedMatrix | RemoteMatrix,
        form: ModelForm,
        problems: Sequence[Problem],
        settings: Settings,
        start: tuple[np.ndarray, np.ndarray] | None,
        dual_points: np.ndarray | None = None,
    ) -> list[SolveResult]:
        """Solve the problems of a linear model, perhaps from an earlier model, and store it."""
        starts = None
        if start is not None:
            starts = [form.point(*start, k) for k in range(form.problems)]
        with make_executor(self.n_jobs, matrix.numbers) as executor:
            return self._solve(
                data,
                problems,
                settings,
                executor,
                lambda points: self._linear_attributes(form, points),
                starts=starts,
                dual_points=dual_points,
            )

    def _linear_attributes(
        self, form: ModelForm, points: list[tuple[np.ndarray, float]]
    ) -> dict[str, Any]:
        """Fitted attributes of points; problems that are not solved yet score 0."""
        to_come = [(np.zeros_like(points[0][0]), 0.0)] * (form.problems - len(points))
        coef, intercept = form.model(points + to_come)
        attributes = {"coef_": coef, "intercept_": intercept}
        if hasattr(self, "classes_"):
            attributes["classes_"] = self.classes_
        return attributes

    def _check_attributes(self) -> None:
        check_linear(self, 1)

    # -- scores ---------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        """X·coef, without the intercept: shape (n_samples,), or (n_samples, outputs)."""
        check_is_fitted(self)
        if isinstance(X, Dataset):
            check_test_dataset(self, X)
        else:
            X = checked_rows(self, X, reset=False)
        return self._scores_of(as_blocks(X, compact=False))

    def _scores_of(self, matrix: BlockedMatrix | RemoteMatrix) -> np.ndarray:
        coef = np.atleast_2d(dense(self.coef_))
        single = len(coef) == 1
        w = coef[0] if single else np.ascontiguousarray(coef.T)
        scores = np.empty((len(matrix),) if single else (len(matrix), len(coef)))
        with make_executor(self.n_jobs, matrix.numbers) as executor:
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
