"""Linear support vector classifiers along a path of C."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..exec import make_executor
from ..result import Certificate, SolveResult, Status
from ._cluster import blocks_for, threads_of
from ._datasets import own_columns
from ._form import ModelForm
from ._path import check_path, solve_path
from ._warnings import warn_unless_converged
from .linear_svc import LinearSVC


@dataclass(frozen=True)
class LinearSVCPath:
    """The models of a path, one per C, with their certificates.

    Attributes
    ----------
    Cs : ndarray, shape (n_Cs,)
    classes : ndarray, shape (n_classes,)
    coefs : ndarray, shape (n_Cs, 1, n_features) or (n_Cs, n_classes, n_features)
    intercepts : ndarray, shape (n_Cs, 1) or (n_Cs, n_classes)
    results : tuple of tuple of SolveResult
        By C, then by problem: one, or one per class for one-vs-rest with more than two classes.
    """

    Cs: np.ndarray
    classes: np.ndarray
    coefs: np.ndarray = field(repr=False)
    intercepts: np.ndarray = field(repr=False)
    results: tuple[tuple[SolveResult, ...], ...] = field(repr=False)
    _settings: dict[str, Any] = field(repr=False, default_factory=dict)
    _features: dict[str, Any] = field(repr=False, default_factory=dict)

    @property
    def certificates(self) -> list[list[Certificate]]:
        """By C, then by problem."""
        return [[result.certificate for result in fits] for fits in self.results]

    @property
    def relative_gaps(self) -> np.ndarray:
        """The largest of any problem, by C: shape (n_Cs,)."""
        return np.array([max(c.relative_gap for c in row) for row in self.certificates])

    @property
    def n_iters(self) -> np.ndarray:
        """Iterations of all problems together, by C: shape (n_Cs,)."""
        return np.array([sum(result.n_iter for result in fits) for fits in self.results])

    @property
    def seconds(self) -> np.ndarray:
        """Time of the fits, by C: shape (n_Cs,)."""
        return np.array([sum(r.timings["total"] for r in fits) for fits in self.results])

    @property
    def converged(self) -> np.ndarray:
        """Whether all problems did, by C: shape (n_Cs,)."""
        return np.array(
            [all(r.status is Status.CONVERGED for r in fits) for fits in self.results], dtype=bool
        )

    def __len__(self) -> int:
        """Number of models."""
        return len(self.Cs)

    def model(self, k: int) -> LinearSVC:
        """The k-th model as a fitted :class:`LinearSVC`."""
        model = LinearSVC(C=float(self.Cs[k]), **self._settings)
        model.classes_ = self.classes
        for name, value in self._features.items():
            setattr(model, name, value)
        model._keep(self.coefs[k], self.intercepts[k], list(self.results[k]))
        return model


def linear_svc_path(
    X: Any, y: Any = None, Cs: Any = 10, *, sample_weight: Any = None, **settings: Any
) -> LinearSVCPath:
    """Fit a linear SVM for every C of a path, each from where the last one ended.

    As a loop over :class:`LinearSVC` with ``warm_start=True``, but the data is
    checked and cut into blocks only once. Every model has its own certificate, which the
    warm start does not weaken.

    Parameters
    ----------
    X : array-like, sparse matrix or data set on disk, shape (n_samples, n_features)
    y : array-like, shape (n_samples,), optional for a data set that has labels
        Class labels.
    Cs : int or array-like of float, default=10
        Values of C, fitted in this order; the cheapest is from small to large. An integer
        stands for so many values from 0.001 to 100, evenly in the logarithm.
    sample_weight : array-like, shape (n_samples,), optional
        Factors on C by row. By default the costs of a data set on disk.
    **settings
        Parameters of :class:`LinearSVC` except ``C`` and ``warm_start``. ``time_limit`` is for
        the whole path.

    Returns
    -------
    path : LinearSVCPath
        Coefficients, certificates, iterations and seconds by C.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from cutplane import linear_svc_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = linear_svc_path(StandardScaler().fit_transform(X), y, [0.01, 0.1, 1.0])
    >>> path.coefs.shape
    (3, 1, 30)
    >>> bool(path.relative_gaps.max() <= 1e-3)
    True
    """
    for name in ("C", "warm_start"):
        if name in settings:
            raise TypeError(f"linear_svc_path takes no {name}: give Cs, fits are always warm")
    path = check_path(Cs)
    svc = LinearSVC(C=float(path.max()), **settings)
    svc._check_parameters()
    y, sample_weight = own_columns(X, y, sample_weight)
    checked, encoded, weights = svc._check_data(X, y, sample_weight)
    outputs = len(svc.classes_) if svc._joint() else 1
    with (
        blocks_for(svc, checked, outputs) as matrix,
        make_executor(threads_of(svc), matrix.numbers) as executor,
    ):
        form = svc._form(matrix, encoded, weights)
        results = solve_path(
            svc,
            matrix,
            executor,
            form,
            lambda k: svc._problem(form, k, encoded, weights),
            path,
            svc.callback,
            svc.verbose,
        )
    warn_unless_converged("linear_svc_path", [r for fits in results for r in fits], level=3)
    return path_of(svc, path, form, results, settings)


def path_of(
    svc: LinearSVC,
    Cs: np.ndarray,
    form: ModelForm,
    results: list[list[SolveResult]],
    settings: dict[str, Any],
) -> LinearSVCPath:
    """The path of results; ``svc`` knows the classes and the features."""
    models = [form.model([(r.w, r.bias) for r in fits]) for fits in results]
    names = ("n_features_in_", "feature_names_in_")
    return LinearSVCPath(
        Cs=Cs,
        classes=svc.classes_,
        coefs=np.stack([coef for coef, _ in models]),
        intercepts=np.stack([intercept for _, intercept in models]),
        results=tuple(tuple(fits) for fits in results),
        _settings=dict(settings),
        _features={name: getattr(svc, name) for name in names if hasattr(svc, name)},
    )
