"""What all kernel machines do alike: check, build the kernel, fit through a session, score rows."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

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
)
from ..data import as_blocks
from ..data.blas import single_threaded_blas
from ..dual import DualSettings
from ..exec import Executor, SerialExecutor, make_executor
from ..kernels import (
    KERNELS,
    Kernel,
    ProductMatrix,
    call_kernel,
    check_precomputed,
    prediction_points,
)
from ..result import Iteration, SolveResult, Status
from ._callbacks import CallbackSupportMixin
from ._kernel_solve import KernelSession
from .checkpoint import Checkpoint, CheckpointFile, check_checkpoint

FLOATS = (np.float64, np.float32)
# Kernel values that a thread holds at a time in prediction.
BLOCK_VALUES = 1 << 20


class KernelMachine(CallbackSupportMixin, BaseEstimator):
    """Base of the kernel machines. Parameters are documented there."""

    kernel: str | Callable[[Any, Any], Any]
    degree: int
    gamma: float | str
    coef0: float
    shrinking: bool
    tol: float
    cache_size: float
    max_iter: int | None
    working_set_size: int | None
    n_jobs: int | None
    time_limit: float | None
    warm_start: bool
    verbose: int
    callback: Callable[[Iteration], bool | None] | None
    checkpoint: Checkpoint | str | PathLike[str] | None
    C: float
    class_weight: dict[Any, float] | str | None

    support_: np.ndarray
    support_vectors_: Any
    dual_coef_: np.ndarray
    intercept_: np.ndarray

    # -- checks -----------------------------------------------------------------------

    def _check_common(self) -> None:
        """Check the parameters that all machines solved by decomposition have."""
        self._check_shared()
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

    def _check_kernel(self) -> None:
        """Check the parameters of the kernel."""
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, KERNELS)
        check_integer("degree", self.degree, at_least=0)
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ("scale", "auto"))
        else:
            check_number("gamma", self.gamma, at_least=0.0)
        check_number("coef0", self.coef0)

    def _training_data(self, X: Any, **options: Any) -> Any:
        """X as an array, or X and y if ``options`` has a y; other options are validate_data's.

        A precomputed kernel is checked and made dense.
        """
        checked = validate_data(
            self, X, accept_sparse="csr", accept_large_sparse=True, dtype=FLOATS, **options
        )
        X = checked[0] if "y" in options else checked
        if scipy.sparse.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if self.kernel == "precomputed":
            X = X.toarray() if scipy.sparse.issparse(X) else X
            check_precomputed(X)
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

    def _make_kernel(self, X: Any) -> Kernel:
        """The kernel with its parameters as numbers; ``gamma_`` is stored."""
        if callable(self.kernel):
            return Kernel("callable", function=self.kernel)
        self._gamma = self._gamma_value(X)
        return Kernel(self.kernel, self._gamma, float(self.coef0), int(self.degree))

    def _gamma_value(self, X: Any) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.kernel == "precomputed":
            return 1.0
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        if scipy.sparse.issparse(X):
            values = X.data.astype(np.float64)
            size = X.shape[0] * X.shape[1]
            variance = float(np.sum(values**2) / size - (np.sum(values) / size) ** 2)
        else:
            variance = float(np.var(X, dtype=np.float64))
        return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0

    def _settings(self) -> DualSettings:
        return DualSettings(
            tol=float(self.tol),
            working_set_size=self.working_set_size,
            shrinking=bool(self.shrinking),
            cache_bytes=float(self.cache_size) * 1e6,
            max_iter=None if self.max_iter in (None, -1) else int(self.max_iter),
            time_limit=np.inf if self.time_limit is None else float(self.time_limit),
        )

    def _executor(self, rows: int, width: int) -> Executor:
        return make_executor(self.n_jobs, rows * max(1, width) * 16)

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
            checkpoint=self._checkpoint_file(kernel, X),
        )

    def _checkpoint_file(self, kernel: Kernel, X: Any) -> CheckpointFile | None:
        checkpoint = check_checkpoint(self.checkpoint)
        if checkpoint is None:
            return None
        name, parameters = type(self).__name__, self.get_params(deep=False)
        function = getattr(kernel.function, "__qualname__", None)
        course = f"{kernel.name}, {self.gamma!r}, {kernel.coef0!r}, {kernel.degree}, {function}"
        digest = as_blocks(X, compact=False).digest()
        return CheckpointFile(checkpoint, name, parameters, course, digest)

    def _model(self, X: Any, support: np.ndarray, dual_coef: np.ndarray) -> dict[str, Any]:
        """Fitted attributes of support vectors with coefficients, (outputs, support vectors)."""
        attributes = {
            "support_": support.astype(np.int32),
            "dual_coef_": dual_coef,
            "shape_fit_": X.shape,
            "support_vectors_": np.empty((0, 0)) if self.kernel == "precomputed" else X[support],
        }
        if hasattr(self, "_gamma"):
            attributes["_gamma"] = self._gamma
        return attributes

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
    def coef_(self) -> np.ndarray:
        """Weights of the features, for the linear kernel only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._score_coef() @ self.support_vectors_
        return np.asarray(coef)

    def _score_coef(self) -> np.ndarray:
        """Coefficients of the support vectors, one row per output of ``_scores``."""
        return self.dual_coef_

    def _test_data(self, X: Any) -> Any:
        check_is_fitted(self)
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

        self._over_blocks(X, add)
        return scores

    def _over_blocks(self, X: Any, use: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """Call a function with rows in blocks and their kernel values with the support vectors."""
        rows, vectors = X.shape[0], len(self.support_)
        if vectors == 0 or rows == 0:
            return
        block = max(16, min(1024, BLOCK_VALUES // vectors))
        fill = self._filler(X)

        def task(k: int) -> None:
            which = np.arange(k * block, min((k + 1) * block, rows))
            use(which, fill(which))

        with single_threaded_blas(), self._executor(rows * vectors, 1) as executor:
            executor.run(task, -(-rows // block))

    def _filler(self, X: Any) -> Callable[[np.ndarray], np.ndarray]:
        """What gives the kernel values of some rows with all support vectors."""
        if callable(self.kernel):
            function = self.kernel
            return lambda which: call_kernel(function, X[which], self.support_vectors_)
        if self.kernel == "precomputed":
            support = self.support_
            return lambda which: np.asarray(X[which][:, support], dtype=np.float64)
        kernel = Kernel(self.kernel, self._gamma, float(self.coef0), int(self.degree))
        left, right = prediction_points(kernel, X, self.support_vectors_)
        return ProductMatrix(kernel, left, right, SerialExecutor()).rows

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
