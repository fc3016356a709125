"""Explicit features of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from .._blas import single_threaded_blas
from .._checks import check_choice, check_integer, check_n_jobs, check_number
from ..kernels import kernel_matrix
from ..kernels.lowrank import pivoted_cholesky
from ._attributes import check_basis, check_stored
from ._fit import CallbackSupportMixin, FitTasks, with_callbacks
from ._kernel import (
    basis_attributes,
    check_kernel,
    executor_for,
    kernel_and_rows,
    over_blocks,
    rows_to_score,
)
from ._rows import checked_rows

SELECTIONS = ("pivoted", "random")


@dataclass(eq=False, repr=False)
class CholeskyFeatures(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator
):
    """Features whose inner products approximate a kernel, for linear models.

    Chooses basis rows B of the training data and maps x to L⁻¹·k(B, x), K_BB = LLᵀ: the
    coordinates of the projection of φ(x) to the span of φ(B). A linear SVM on them is the kernel
    SVM restricted to that span.

    Parameters
    ----------
    kernel, degree, gamma, coef0
        As for :class:`SVC`.
    n_components : int, default=250
        Largest number of basis rows. There are fewer if the other rows depend on them.
    selection : {'pivoted', 'random'}, default='pivoted'
        ``pivoted``: incomplete Cholesky with pivoting, always the row farthest from the span.
        ``random``: a random sample, as in Yu & Joachims (2008).
    max_candidates : int, default=20000
        Number of random rows from which ``pivoted`` chooses.
    tol : float, default=0
        ``pivoted`` stops when every candidate's squared distance is at most this part of the
        largest k(x, x).
    n_jobs : int or None, default=None
        Threads of ``transform``; None for all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : ndarray or CSR matrix, shape (n_components_, n_features)
        The basis rows.
    component_indices_ : ndarray of int64, shape (n_components_,)
        Their numbers among the training rows.
    n_components_ : int
    factor_ : ndarray, shape (n_components_, n_components_)
        L.
    residual_ : float
        The largest squared distance of a candidate from the span.
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    See Also
    --------
    SampledCutSVC : Needs no number of basis rows chosen beforehand.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from cutplane import CholeskyFeatures, LinearSVC
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> features = CholeskyFeatures(gamma=2.0, n_components=50, random_state=0)
    >>> model = make_pipeline(features, LinearSVC(C=10.0)).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    kernel: str | Callable[[Any, Any], Any] = "rbf"
    _: KW_ONLY
    n_components: int = 250
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    selection: str = "pivoted"
    max_candidates: int = 20000
    tol: float = 0.0
    n_jobs: int | None = None
    random_state: Any = None

    _sparse_coef = False

    def _check_common(self) -> None:
        check_kernel(self)
        check_integer("n_components", self.n_components, at_least=1)
        check_choice("selection", self.selection, SELECTIONS)
        check_integer("max_candidates", self.max_candidates, at_least=1)
        check_number("tol", self.tol, at_least=0.0)
        check_n_jobs(self.n_jobs)

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> CholeskyFeatures:
        """Choose the basis rows.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            For a precomputed kernel the values of all pairs, (n_samples, n_samples).
        y : ignored

        Returns
        -------
        self
        """
        given = X
        self._check_common()
        most, among = int(self.n_components), int(self.max_candidates)
        random = check_random_state(self.random_state)
        kernel, X = kernel_and_rows(self, checked_rows(self, X))
        tasks = None
        if getattr(self, "_skl_callbacks", None):
            tasks = FitTasks(self, given, y, 0)  # one task, without iterations
        count = most if self.selection == "random" else max(most, among)
        candidates = np.arange(X.shape[0])
        if count < len(candidates):
            candidates = np.sort(random.choice(len(candidates), count, replace=False))
        with single_threaded_blas(), executor_for(self, len(candidates), most) as executor:
            matrix = kernel_matrix(kernel, X, executor, single=False)
            tol = 0.0 if self.selection == "random" else float(self.tol)
            basis = pivoted_cholesky(matrix, candidates, most, tol)
        if len(basis.rows) == 0:
            raise ValueError("k(x, x) is 0 for all rows: there is nothing to make features of")
        coef = np.zeros((0, len(basis.rows)))
        self.__dict__.update(basis_attributes(kernel, X, basis.rows, coef))
        self.component_indices_ = basis.rows
        self.components_ = self.support_vectors_
        self.n_components_ = len(basis.rows)
        self._n_features_out = self.n_components_
        self.factor_ = basis.factor
        self.residual_ = basis.residual
        if tasks is not None:
            tasks.end()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            For a precomputed kernel (n_samples, rows of the training data).

        Returns
        -------
        features : ndarray, shape (n_samples, n_components_)
        """
        X = rows_to_score(self, X)
        values = np.empty((X.shape[0], self.n_components_))

        def write(which: np.ndarray, block: np.ndarray) -> None:
            values[which] = scipy.linalg.solve_triangular(
                self.factor_, block.T, lower=True, check_finite=False
            ).T

        executor = executor_for(self, X.shape[0] * self.n_components_, 1)
        over_blocks(self, X, executor, write)
        return values

    def _check_attributes(self) -> None:
        check_basis(self, 0)
        check_stored(self, "factor_", (len(self.support_),) * 2)

    def __sklearn_tags__(self) -> Any:
        """Sparse input is welcome, except as a precomputed kernel."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
