"""Kernel models: their parameters, basis rows and scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

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
from ..kernels.points import Points
from ..kernels.rough import rough_sum, rough_sums
from ._base import Estimator, dense
from ._rows import checked_rows

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


def canonical_rows(kernel: Any, X: Any) -> Any:
    """Checked rows without duplicate entries. A precomputed kernel is checked and made dense."""
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
    """The executor for kernel values of ``rows`` rows. One thread calls a user's function."""
    if callable(model.kernel):
        return SerialExecutor()
    return make_executor(model.n_jobs, rows * max(1, width) * 64)


def basis_attributes(
    kernel: Kernel, X: Any, support: np.ndarray, dual_coef: np.ndarray
) -> dict[str, Any]:
    """Fitted attributes from basis rows and their coefficients, shape (outputs, basis rows)."""
    known = {} if kernel.function is not None else {"_gamma": kernel.gamma}
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


def as_rows(X: Any, coef: np.ndarray) -> Any:
    """Coefficients as an array, or, as in scikit-learn, as a sparse matrix if X is sparse."""
    return type(X)(coef) if scipy.sparse.issparse(X) else coef


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
        coef = as_rows(vectors, np.asarray(self._score_coef() @ vectors))
        values = coef.data if scipy.sparse.issparse(coef) else coef
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
