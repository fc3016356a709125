"""What all kernel machines do alike: check, build the kernel, fit through a session, score rows."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._checks import (
    check_choice,
    check_flag,
    check_integer,
    check_n_jobs,
    check_number,
    check_weights,
    class_factors,
    plain,
)
from ..data import as_blocks
from ..data.sparse import check_sparse
from ..dual import DualSettings
from ..exec import Executor
from ..kernels import Kernel
from ..result import Iteration, SolveResult, Status
from ._base import dense
from ._callbacks import CallbackSupportMixin
from ._kernel_solve import KernelSession
from ._with_kernel import WithKernel, canonical_rows
from .checkpoint import Checkpoint, CheckpointFile, check_checkpoint

FLOATS = (np.float64, np.float32)
STOPPING = ("relative", "absolute", "epsilon", "kkt")


def as_rows(X: Any, coef: np.ndarray) -> Any:
    """An array, as a sparse matrix if the rows X are one: what scikit-learn has there."""
    return type(X)(coef) if scipy.sparse.issparse(X) else coef


class KernelMachine(WithKernel, CallbackSupportMixin, BaseEstimator):
    """Base of the kernel machines. Parameters are documented there."""

    kernel: str | Callable[[Any, Any], Any]
    shrinking: bool
    tol: float
    stopping: str
    cache_size: float
    max_iter: int | None
    working_set_size: int | None
    time_limit: float | None
    warm_start: bool
    verbose: int
    callback: Callable[[Iteration], bool | None] | None
    checkpoint: Checkpoint | str | PathLike[str] | None
    C: float
    class_weight: dict[Any, float] | str | None

    # Whether the bias is free, and so the coefficients sum to 0.
    _free_bias: ClassVar[bool] = True

    intercept_: np.ndarray

    # -- checks -----------------------------------------------------------------------

    def _check_common(self) -> None:
        """Check the parameters that all machines solved by decomposition have."""
        self._check_shared()
        check_choice("stopping", self.stopping, STOPPING)
        check_flag("shrinking", self.shrinking)
        check_number("cache_size", self.cache_size, above=0.0)
        if self.working_set_size is not None:
            size = check_integer("working_set_size", self.working_set_size, at_least=2)
            if size % 2:
                raise ValueError(f"working_set_size must be even, got {size}")
        check_flag("warm_start", self.warm_start)
        check_checkpoint(self.checkpoint)

    def _check_shared(self) -> None:
        """Check the parameters that all kernel machines have."""
        self._check_kernel()
        check_number("tol", self.tol, at_least=0.0)
        if self.max_iter is not None and self.max_iter != -1:
            check_integer("max_iter", self.max_iter, at_least=1)
        check_n_jobs(self.n_jobs)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, above=0.0, finite=False)
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, at_least=0)
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be callable or None, got {self.callback!r}")

    def _training_data(self, X: Any, **options: Any) -> Any:
        """X as an array, or X and y if ``options`` has a y; other options are validate_data's.

        A precomputed kernel is checked and made dense.
        """
        check_sparse(X)
        checked = validate_data(
            self, X, accept_sparse="csr", accept_large_sparse=True, dtype=FLOATS, **options
        )
        X = canonical_rows(self.kernel, checked[0] if "y" in options else checked)
        return (X, checked[1]) if "y" in options else X

    def _classification_data(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """Rows, class numbers, and C times the weight of every row; classes are stored."""
        X, y = self._training_data(X, y=y)
        check_classification_targets(y)
        weights = check_weights(sample_weight, X)
        self.classes_, encoded = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only ({self.classes_[0]!r}); a classifier needs at least two"
            )
        self.class_weight_ = np.ones(len(self.classes_))
        if self.class_weight is not None:
            self.class_weight_ = class_factors(self.class_weight, self.classes_, encoded, weights)
            weights = weights * self.class_weight_[encoded]
        mass = np.bincount(encoded, weights, minlength=len(self.classes_))
        if np.count_nonzero(mass) < 2:
            raise ValueError(
                "only one class has rows of positive weight; a classifier needs at least two"
            )
        bounds = float(self.C) * weights
        self._check_sum(bounds)
        return X, encoded, bounds

    def _check_sum(self, bounds: np.ndarray) -> None:
        """The losses must be able to add up."""
        with np.errstate(over="ignore"):
            total = float(bounds.sum())
        if not np.isfinite(total):
            raise ValueError("C times the sum of the weights overflows; lower C or sample_weight")

    # -- fitting ----------------------------------------------------------------------

    def _settings(self) -> DualSettings:
        return DualSettings(
            tol=float(self.tol),
            stopping=self.stopping,
            working_set_size=self.working_set_size,
            shrinking=bool(self.shrinking),
            cache_bytes=float(self.cache_size) * 1e6,
            max_iter=None if self.max_iter in (None, -1) else int(self.max_iter),
            time_limit=np.inf if self.time_limit is None else float(self.time_limit),
        )

    def _session(self, X: Any, executor: Executor, bound: float) -> KernelSession:
        kernel = self._make_kernel(X)
        return KernelSession(
            kernel,
            X,
            executor,
            settings=self._settings(),
            bound=bound,
            verbose=int(self.verbose),
            callback=self.callback,
            free_bias=self._free_bias,
            checkpoint=self._checkpoint_file(kernel, X),
        )

    def _checkpoint_file(self, kernel: Kernel, X: Any) -> CheckpointFile | None:
        checkpoint = check_checkpoint(self.checkpoint)
        if checkpoint is None:
            return None
        name, parameters = type(self).__name__, self.get_params(deep=False)
        function = getattr(kernel.function, "__qualname__", None)
        gamma = plain(self.gamma)
        course = f"{kernel.name}, {gamma!r}, {kernel.coef0!r}, {kernel.degree}, {function}"
        digest = as_blocks(X, compact=False).digest()
        return CheckpointFile(checkpoint, name, parameters, course, digest)

    def _store(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def _store_results(self, results: list[SolveResult]) -> None:
        one = len(results) == 1
        self.result_ = results[0] if one else results
        self.certificate_ = (
            results[0].certificate if one else [result.certificate for result in results]
        )
        self.fit_status_ = int(any(r.status is not Status.CONVERGED for r in results))

    # -- scores -----------------------------------------------------------------------

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

    def _test_data(self, X: Any) -> Any:
        check_is_fitted(self)
        check_sparse(X)
        X = validate_data(self, X, accept_sparse="csr", reset=False, dtype=FLOATS)
        if self.kernel == "precomputed" and scipy.sparse.issparse(X):
            return X.toarray()
        return X

    def _scores(self, X: Any) -> np.ndarray:
        """Σ coef·k(x, support vector) + intercept: shape (rows, outputs)."""
        X = self._test_data(X)
        coef = self._score_coef()
        scores = np.tile(self.intercept_, (X.shape[0], 1))

        def add(which: np.ndarray, values: np.ndarray) -> None:
            scores[which[0] : which[-1] + 1] += values @ coef.T

        with np.errstate(over="ignore", invalid="ignore"):
            self._over_blocks(X, add)
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

    def __getstate__(self) -> dict[str, Any]:
        """What a warm start keeps is bound to the training data: not pickled."""
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key != "_memory"}
