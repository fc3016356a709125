"""Regression and novelty detection with kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin, RegressorMixin

from .._checks import check_number, check_weights
from ..kernels import Kernel
from ..result import Status
from ..solvers.decomposition.problem import DualProblem
from ._attributes import check_kernel_model, check_stored
from ._fit import Settings, warn_of, with_callbacks
from ._kernel import (
    KernelMachine,
    KernelProblem,
    KernelRows,
    basis_attributes,
    executor_for,
    kernel_and_rows,
)
from ._rows import check_sum, checked_rows

# Rows within this part of the offset count as on the border.
ON_BORDER = 1e-9


class _SingleProblem(KernelMachine):
    """A kernel machine of one problem and one output."""

    def _fit_one(
        self,
        data: tuple[Any, Any],
        kernel: Kernel,
        X: Any,
        dual: DualProblem,
        label: str,
        settings: Settings,
    ) -> None:
        """Solve the problem and store the model. ``data`` are X and y as the user gave them."""
        with executor_for(self, *X.shape) as executor:
            rows = KernelRows(self, kernel, X, executor, settings, float(dual.upper.max()))
            problem = KernelProblem(label, dual, rows)
            results = self._solve(
                data,
                [problem],
                settings,
                executor,
                lambda points: self._assemble(kernel, X, dual, *points[0]),
            )
        self.fit_status_ = int(results[0].status is not Status.CONVERGED)
        warn_of(settings, problem, results)

    def _assemble(
        self, kernel: Kernel, X: Any, dual: DualProblem, beta: np.ndarray, bias: float
    ) -> dict[str, Any]:
        """Fitted attributes. A row's coefficient is the sum of its β."""
        if dual.row_of is not None:
            beta = np.bincount(dual.row_of, beta)
        support = np.flatnonzero(beta)
        return {
            **basis_attributes(kernel, X, support, beta[None, support], like_rows=True),
            "n_support_": np.array([len(support)], dtype=np.int32),
            "intercept_": np.array([bias]),
        }

    def _check_attributes(self) -> None:
        check_kernel_model(self, 1, 1)


@dataclass(eq=False, repr=False, kw_only=True)
class SVR(RegressorMixin, _SingleProblem):
    """Support vector regression with kernels and a certificate of optimality.

    Minimises ½|w|² + C·Σ_i weight_i·max(0, |y_i − <w, φ(x_i)> − b| − epsilon) by decomposition of
    the dual. Parameters and attributes have the names and meanings of scikit-learn's ``SVR``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses. It multiplies their sum.
    epsilon : float, default=0.1
        Errors up to this size have no loss.
    kernel, degree, gamma, coef0, shrinking, cache_size, max_iter, working_set_size
        As for :class:`SVC`.
    tol : float, default=1e-3
        The fit stops when the gap is at most this. ``stopping`` says in which unit.
    n_jobs, time_limit, warm_start, verbose, callback, checkpoint
        As for :class:`SVC`.
    stopping : {'relative', 'absolute', 'epsilon', 'kkt'}, default='relative'
        As for :class:`SVC`; the unit of ``kkt`` is that of y.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_
        As for :class:`SVC`; ``dual_coef_`` is α − α*, shape (1, n_support).
    n_iter_ : int
    certificate_ : Certificate
        About the objective above.
    certificates_, results_ : list of Certificate, list of SolveResult
        With one entry: that certificate, and the same with status, trace and timings; ``w`` holds
        α, then −α*.
    fit_status_ : int
        0 if the fit converged.
    shape_fit_ : tuple of int
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    Examples
    --------
    >>> import numpy as np
    >>> from cutplane import SVR
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(np.all(np.abs(model.predict(X) - np.sin(X[:, 0])) < 0.06))
    True
    """

    C: float = 1.0
    epsilon: float = 0.1

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVR:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            For a precomputed kernel the values of all pairs, (n_samples, n_samples).
        y : array-like, shape (n_samples,)
        sample_weight : array-like, shape (n_samples,), optional
            Factors on C by row.

        Returns
        -------
        self
        """
        data, settings = (X, y), self._check_common()
        epsilon = float(self.epsilon)
        X, y = checked_rows(self, X, y=y, y_numeric=True)
        kernel, X = kernel_and_rows(self, X)
        weights = check_weights(sample_weight, X)
        check_sum(settings.C, weights)
        bounds = settings.C * weights
        targets = np.asarray(y, dtype=np.float64)
        rows, zero = len(targets), np.zeros(len(targets))
        problem = DualProblem(
            linear=np.concatenate([epsilon - targets, -epsilon - targets]),
            lower=np.concatenate([zero, -bounds]),
            upper=np.concatenate([bounds, zero]),
            row_of=np.tile(np.arange(rows), 2),
            rounded=True,
        )
        self._fit_one(data, kernel, X, problem, "regression", settings)
        return self

    def _check_common(self) -> Settings:
        check_number("epsilon", self.epsilon, at_least=0.0)
        return super()._check_common()

    def predict(self, X: Any) -> np.ndarray:
        """Predict targets.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        targets : ndarray, shape (n_samples,)
        """
        return self._scores(X)[:, 0]


@dataclass(eq=False, repr=False, kw_only=True)
class OneClassSVM(OutlierMixin, _SingleProblem):
    """Novelty detection: a region that holds most of the training rows (Schölkopf et al. 2001).

    Minimises ½|w|² − ν·ρ·Σ_i weight_i + Σ_i weight_i·max(0, ρ − <w, φ(x_i)>) by decomposition of
    the dual. Parameters and attributes have the names and meanings of scikit-learn's
    ``OneClassSVM``.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the rows lies outside, and at least this share are support vectors; in
        (0, 1].
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, max_iter, working_set_size
        As for :class:`SVC`.
    n_jobs, time_limit, warm_start, verbose, callback, checkpoint
        As for :class:`SVC`.
    stopping : {'relative', 'absolute', 'epsilon', 'kkt'}, default='relative'
        As for :class:`SVC`. The objective is negative; ``relative`` takes its absolute value.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_
        As for :class:`SVC`.
    offset_ : ndarray, shape (1,)
        ρ: ``decision_function`` is ``score_samples`` minus this.
    n_iter_ : int
    certificate_ : Certificate
        About the objective above, which is negative.
    certificates_, results_ : list of Certificate, list of SolveResult
        Lists with one entry: this certificate, and the result with status, trace and timings.
    fit_status_ : int
        0 if the fit converged.
    shape_fit_ : tuple of int
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    Examples
    --------
    >>> from cutplane import OneClassSVM
    >>> model = OneClassSVM(nu=0.5, gamma=1.0).fit([[0.0], [0.1], [0.2], [3.0]])
    >>> model.predict([[0.1], [10.0]])
    array([ 1, -1])
    """

    _free_bias = False  # the coefficients sum to nu times the weights

    nu: float = 0.5

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            For a precomputed kernel the values of all pairs, (n_samples, n_samples).
        y : ignored
        sample_weight : array-like, shape (n_samples,), optional

        Returns
        -------
        self
        """
        data, settings = (X, y), self._check_common()
        kernel, X = kernel_and_rows(self, checked_rows(self, X))
        weights = check_weights(sample_weight, X)
        problem = DualProblem(
            linear=np.zeros(len(weights)),
            lower=np.zeros(len(weights)),
            upper=weights,
            total=float(self.nu) * float(weights.sum()),
        )
        self._fit_one(data, kernel, X, problem, "one class", settings)
        return self

    def _check_common(self) -> Settings:
        if check_number("nu", self.nu, above=0.0) > 1.0:
            raise ValueError(f"nu must be a number in (0, 1], got {self.nu!r}")
        return super()._check_common()

    def _assemble(
        self, kernel: Kernel, X: Any, dual: DualProblem, beta: np.ndarray, bias: float
    ) -> dict[str, Any]:
        attributes = super()._assemble(kernel, X, dual, beta, bias)
        # Free support vectors lie on the border. Rounding must not decide whether they are outside.
        attributes["intercept_"] += ON_BORDER * np.abs(attributes["intercept_"])
        attributes["offset_"] = -attributes["intercept_"]
        return attributes

    def _check_attributes(self) -> None:
        super()._check_attributes()
        check_stored(self, "offset_", (1,))

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance to the region's border, times |w|: positive inside.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,)
        """
        return self._scores(X)[:, 0]

    def score_samples(self, X: Any) -> np.ndarray:
        """<w, φ(x)> of every row.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Tell rows inside the region or on its border, 1, from those outside, −1.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of int, shape (n_samples,)
        """
        return np.where(self._signed_scores(X)[:, 0] >= 0.0, 1, -1)
