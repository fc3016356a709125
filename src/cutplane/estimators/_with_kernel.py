"""Estimators with a kernel: its parameters, basis rows, and kernel values of new rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from .._blas import single_threaded_blas
from .._checks import check_choice, check_integer, check_number
from ..exec import Executor, SerialExecutor, make_executor
from ..kernels import (
    KERNELS,
    Kernel,
    ProductMatrix,
    call_kernel,
    check_precomputed,
    prediction_points,
)

# Kernel values that a thread holds at a time in prediction.
BLOCK_VALUES = 1 << 20


def canonical_rows(kernel: Any, X: Any) -> Any:
    """Training rows without duplicate entries; a precomputed kernel is checked and made dense."""
    if scipy.sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if isinstance(kernel, str) and kernel == "precomputed":
        X = X.toarray() if scipy.sparse.issparse(X) else X
        check_precomputed(X)
    return X


class WithKernel:
    """What estimators with a kernel do alike. Parameters are documented there."""

    _kernels: ClassVar[tuple[str, ...]] = KERNELS

    kernel: Any
    degree: int
    gamma: float | str
    coef0: float
    n_jobs: int | None

    support_: np.ndarray
    support_vectors_: Any
    dual_coef_: np.ndarray

    def _check_kernel(self) -> None:
        """Check the parameters of the kernel."""
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, self._kernels)
        check_integer("degree", self.degree, at_least=0)
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ("scale", "auto"))
        else:
            check_number("gamma", self.gamma, at_least=0.0)
        check_number("coef0", self.coef0)

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
            with np.errstate(over="ignore", invalid="ignore"):
                variance = float(np.var(X, dtype=np.float64))
        if not np.isfinite(variance):
            raise ValueError(
                "X is too large: its variance overflows, and gamma='scale' is 1 / variance; scale "
                "the features, for example with sklearn.preprocessing.StandardScaler"
            )
        return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0

    def _executor(self, rows: int, width: int) -> Executor:
        return make_executor(self.n_jobs, rows * max(1, width) * 64)

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
