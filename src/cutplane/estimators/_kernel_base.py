"""What the kernel machines share: their parameters, attributes and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from .._checks import check_flag, check_integer, check_number
from ..exec import Executor
from ..result import SolveResult, Status
from ._base import Estimator, dense
from ._fit import Attributes, Problem, Settings, warn_of
from ._kernel import KernelBasis, check_kernel, executor_for, kernel_of, rows_to_score
from ._kernel_problem import (
    SINGLE_BOUND,
    SINGLE_TOL,
    STOPPING,
    Decomposition,
    KernelRows,
)


def as_rows(X: Any, coef: np.ndarray) -> Any:
    """An array, as a sparse matrix if the rows X are one: what scikit-learn has there."""
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
