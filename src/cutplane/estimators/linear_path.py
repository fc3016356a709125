"""Linear support vector classifiers along a path of C: every fit starts from the last one.

A cut is a lower bound on the risk, whatever C, and so is a dual point divided by C, which is a
cut, too: all that was learnt at one C serves the next, and no certificate suffers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import check_number
from ..exec import make_executor
from ..result import Certificate, SolveResult, Status
from ._fit import Settings, solve, store_results, warn_of
from ._rows import copy_features, encode_classes, open_rows, weigh_classes
from .linear_svc import LinearSVC

if TYPE_CHECKING:
    from ._problems import Matrix

# An integer Cs stands for as many values from SMALLEST_C to LARGEST_C, with equal ratios.
SMALLEST_C, LARGEST_C = 1e-3, 1e2


def check_path(Cs: Any) -> np.ndarray:
    """The values of C, in the order in which they are fitted."""
    if isinstance(Cs, int | np.integer) and not isinstance(Cs, bool):
        if Cs < 1:
            raise ValueError(f"Cs must be at least one value or their number ≥ 1, got {Cs}")
        return np.geomspace(SMALLEST_C, LARGEST_C, int(Cs))
    if isinstance(Cs, str) or not isinstance(Cs, Iterable):
        raise ValueError(f"Cs must be numbers > 0, or how many of them, got {Cs!r}")
    values = [check_number(f"Cs[{k}]", C, above=0.0) for k, C in enumerate(Cs)]
    if not values:
        raise ValueError("Cs holds no value; give at least one C")
    return np.array(values)


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
    _source: Any = field(repr=False, default=None)  # an estimator that knows the features

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
        copy_features(self._source, model)
        model.coef_, model.intercept_ = self.coefs[k], self.intercepts[k]
        store_results(model, list(self.results[k]))
        return model


def linear_svc_path(
    X: Any, y: Any = None, Cs: Any = 10, *, sample_weight: Any = None, **settings: Any
) -> LinearSVCPath:
    """Fit a linear SVM for every C of a path. Each fit starts from the solution of the one before.

    This does the same as a loop over :class:`LinearSVC` with ``warm_start=True``, but checks the
    data and cuts them into blocks only once. Every model has its own certificate.

    Parameters
    ----------
    X : array-like, sparse matrix or data set on disk, shape (n_samples, n_features)
    y : array-like, shape (n_samples,), optional for a data set that has labels
        Class labels.
    Cs : int or array-like of float, default=10
        Values of C, in the order of the fits; from small to large is fastest. An integer means that
        many values between 0.001 and 100, evenly spaced in the logarithm.
    sample_weight : array-like, shape (n_samples,), optional
        Factors on C by row. Default: 1, or the costs of a data set on disk.
    **settings
        Parameters of :class:`LinearSVC` except ``C``, ``warm_start`` and ``coef_threshold``.
        ``time_limit`` is for the whole path.

    Returns
    -------
    path : LinearSVCPath
        Coefficients, certificates, iterations and seconds for each C.

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
    if settings.get("coef_threshold") is not None:
        raise TypeError(
            "linear_svc_path takes no coef_threshold: a fit starts from all weights of the one "
            "before; path.model(k).sparsify(threshold) drops small ones"
        )
    path = check_path(Cs)
    svc = LinearSVC(C=float(path.max()), **settings)
    common = dataclasses.replace(svc._check_common(), name="linear_svc_path")
    rows = open_rows(svc, X, y, sample_weight)
    svc.classes_, encoded = encode_classes(rows.y)
    weights, _ = weigh_classes(svc, encoded, rows.weights)
    with rows.blocks(svc._outputs()) as matrix:
        found = solve_path(svc, path, matrix, encoded, weights, common, settings, svc.n_jobs)
    warn_of(common, None, [result for fits in found.results for result in fits])
    return found


def solve_path(
    svc: LinearSVC,
    Cs: np.ndarray,
    matrix: Matrix,
    encoded: np.ndarray,
    weights: np.ndarray,
    settings: Settings,
    parameters: dict[str, Any],
    n_jobs: int | None,
    *,
    complete: bool = True,
) -> LinearSVCPath:
    """The path on checked rows.

    Parameters
    ----------
    svc : LinearSVC
        Knows the classes and the features.
    Cs, settings, complete
        As for ``solve``.
    matrix, encoded, weights
        The rows in blocks, the numbers of their classes, and their weights.
    parameters : dict
        Those of ``LinearSVC`` for the models of the path.
    n_jobs : int or None
    """
    form, problems = svc._problems(matrix, encoded, weights)
    # The list keeps all problems, because every C needs them again.
    every = list(problems)
    with make_executor(n_jobs, every[0].work) as executor:
        solved = solve(every, settings, executor, Cs=Cs.tolist(), complete=complete).results
    by_C = [solved[at : at + len(every)] for at in range(0, len(solved), len(every))]
    models = [form.model([(r.w, r.bias) for r in fits]) for fits in by_C]
    return LinearSVCPath(
        Cs=Cs,
        classes=svc.classes_,
        coefs=np.stack([coef for coef, _ in models]),
        intercepts=np.stack([intercept for _, intercept in models]),
        results=tuple(map(tuple, by_C)),
        _settings=dict(parameters),
        _source=svc,
    )
