"""Linear support vector classification with C chosen by cross-validation.

The folds share one matrix: the rows that a fold holds out have weight 0 in it, so that nothing is
copied, and their scores come with the others'. A fold is one path over C, and folds
run in parallel; on a cluster, whose workers hold the rows once, one after the other.
The scores of held-out rows at the chosen C also say what a score is worth as a probability.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.metrics._scorer import _BaseScorer, _PassthroughScorer
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._checks import check_flag
from ..cluster.rows import RemoteMatrix
from ..exec import make_executor
from ..result import Certificate, Iteration, SolveResult
from ._base import WithExecutor
from ._calibration import Calibration, check_calibrate
from ._fit import seeds, warn_of
from ._rows import checked_rows, copy_features, encode_classes, is_stored, open_rows, weigh_classes
from .linear_path import LinearSVCPath, check_path, solve_path
from .linear_svc import LinearSVC

if TYPE_CHECKING:
    from ._problems import Matrix

# Parameters that LinearSVC does not have.
OWN_PARAMETERS = ("Cs", "cv", "scoring", "refit", "calibrate")
# Fitted attributes of the best model.
OF_THE_MODEL = ("coef_", "intercept_", "n_iter_", "certificate_", "certificates_", "results_")


def looks_at_predictions(scorer: Any) -> bool:
    """Whether a scorer needs no rows: those of scikit-learn look at predictions alone."""
    return isinstance(scorer, _BaseScorer | _PassthroughScorer)


class _CancelledError(Exception):
    """Another fold has failed or was interrupted."""


@dataclass(frozen=True)
class _Rows:
    """What all folds share: the user's X, its blocks, class numbers and weights."""

    X: Any
    matrix: Matrix
    encoded: np.ndarray
    weights: np.ndarray
    weighted: bool


def _gives_probabilities(search: Any) -> bool:
    """Whether the model will have probabilities."""
    if search.calibrate is not None or search.loss == "logistic":
        return True
    raise AttributeError(
        "probabilities are for calibrate='sigmoid' or 'isotonic', and for loss='logistic'; "
        f"got calibrate=None, loss={search.loss!r}"
    )


@dataclass(eq=False, repr=False)
class LinearSVCCV(ClassifierMixin, WithExecutor, BaseEstimator):
    """Linear support vector classifier whose C is chosen by cross-validation.

    Every fold is a path over C in which each fit starts from the fit before, as in
    :func:`linear_svc_path`. The folds run in parallel on one copy of the data. Finally, a model
    with the best C by mean score is fitted to all rows. Every fit has a certificate.

    Parameters
    ----------
    Cs : int or array-like of float, default=10
        Values of C, in the order of the fits; from small to large is fastest. An integer means that
        many values between 0.001 and 100, evenly spaced in the logarithm.
    cv : int, splitter, iterable or None, default=None
        As in scikit-learn: the number of stratified folds (None means 5), a splitter or the splits.
    scoring : str, callable or None, default=None
        A scorer's name or ``scorer(model, X, y)``; None means accuracy. scikit-learn's own scorers
        use the sample weights if they can.
    refit : bool, default=True
        Whether to fit a model with the best C to all rows. Without this model, there are no
        predictions.
    calibrate : {'sigmoid', 'isotonic'} or None, default=None
        Provide probabilities, by Platt's sigmoid or by isotonic regression on the scores of the
        held-out rows at the chosen C. Sample weights count, class weights do not.
    loss, solver, tol, stopping, fit_intercept, intercept_scaling, class_weight, multi_class, \
positive, bounds, max_iter
        As for :class:`LinearSVC`.
    time_limit : float or None, default=None
        Limit in seconds of each fold, and of the final fit.
    n_jobs : int or None, default=None
        Number of threads; None means all cores that the process may use. It does not change the
        result.
    executor : dask.distributed.Client, DaskCluster or None, default=None
        As for :class:`LinearSVC`. On a cluster the folds follow one another, on the same rows.
    random_state : int, RandomState or None, default=None
        As for :class:`LinearSVC`.
    verbose : int, default=0
        1 shows the progress of the final fit.

    Attributes
    ----------
    C_ : float
        The C of the best mean score; the smallest if several are equally good.
    Cs_ : ndarray, shape (n_Cs,)
    scores_ : ndarray, shape (n_folds, n_Cs)
        Scores of the held-out rows.
    fold_certificates_ : list of list of list of Certificate
        Indexed by fold, C and problem.
    n_iters_ : ndarray, shape (n_folds, n_Cs)
    best_score_ : float
        Mean score at ``C_``.
    best_estimator_ : LinearSVC
        Fitted to all rows. With ``calibrate`` it also gives the probabilities. This is the model
        to save.
    coef_, intercept_, n_iter_, certificate_, certificates_, results_
        Attributes of ``best_estimator_``.
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from cutplane import LinearSVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> search = LinearSVCCV(Cs=[0.001, 0.01, 0.1, 1.0], scoring="roc_auc").fit(X, y)
    >>> search.scores_.shape
    (5, 4)
    >>> search.certificate_.relative_gap <= 1e-3
    True
    """

    Cs: Any = 10
    _: KW_ONLY
    cv: Any = None
    scoring: Any = None
    refit: bool = True
    calibrate: str | None = None
    loss: str = "hinge"
    solver: str = "auto"
    tol: float = 1e-3
    stopping: str = "relative"
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    class_weight: dict[Any, float] | str | None = None
    multi_class: str = "ovr"
    positive: bool = False
    bounds: tuple[Any, Any] | None = None
    max_iter: int | None = None
    time_limit: float | None = None
    n_jobs: int | None = None
    executor: Any = None
    random_state: Any = None
    verbose: int = 0

    # -- fitting --------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> LinearSVCCV:
        """Choose C and fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data set on disk, shape (n_samples, n_features)
            With a cluster as ``executor`` also a Dask array or dataframe, or RowFiles.
        y : array-like, shape (n_samples,)
            Class labels; optional if X has its own.
        sample_weight : array-like, shape (n_samples,), optional
            Factors on C by row. Default: 1, or the costs of a data set on disk.
        groups : array-like, shape (n_samples,), optional
            For the splitters that keep groups together.

        Returns
        -------
        self
        """
        Cs = check_path(self.Cs)
        refit = check_flag("refit", self.refit)
        if check_calibrate(self.calibrate) is not None and not refit:
            raise ValueError("refit=False leaves no model to calibrate: set refit=True")
        svc = LinearSVC(float(Cs.max()), **self._settings())
        settings = svc._check_common()
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise ValueError(
                "scoring must be the name of one scorer, a callable or None for accuracy, "
                f"got {self.scoring!r}"
            )
        scorer = check_scoring(LinearSVC(), scoring=self.scoring)
        given = X
        if not (stored := is_stored(X)):
            X, y = checked_rows(self, X, y=y)
        elif not looks_at_predictions(scorer):
            raise ValueError(
                f"scoring={self.scoring!r} gets the rows that a fold holds out, but those of a "
                f"{type(X).__name__} are not in memory; give the name of a scorer"
            )
        rows = open_rows(svc, X, y, sample_weight)
        svc.classes_, encoded = encode_classes(rows.y)
        self.classes_ = svc.classes_
        if stored:
            copy_features(svc, self)
            y = self.classes_[encoded]
        rows_of = np.empty((len(encoded), 0)) if stored else X  # splitters get this as X
        folds = list(check_cv(self.cv, y, classifier=True).split(rows_of, y, groups))
        # One seed per fit, drawn beforehand, so that the order in which folds run does not matter.
        own_seeds: list[int | None] = [None] * (len(folds) + 1)
        if self.random_state is not None:
            own_seeds = [*seeds(self.random_state, len(folds) + 1)]

        with rows.blocks(svc._outputs()) as matrix:
            held = _Rows(given, matrix, encoded, rows.weights, rows.weighted)
            paths, scores = self._run_folds(held, Cs, folds, own_seeds, scorer)
            self.Cs_ = Cs
            self.scores_ = np.array(scores)
            self.fold_certificates_: list[list[list[Certificate]]] = [p.certificates for p in paths]
            self.n_iters_ = np.array([path.n_iters for path in paths])
            best = self._best()
            self.C_, self.best_score_ = float(Cs[best]), float(np.mean(self.scores_[:, best]))
            results = [r for path in paths for fits in path.results for r in fits]
            if refit:
                results += self._refit((given, y), held, paths, best, own_seeds[-1])
            if self.calibrate is not None:  # by the scores of held-out rows at the best C
                parts = []
                for path, (_, which) in zip(paths, folds, strict=True):
                    known = self._known(path, best, matrix, which, self.n_jobs)
                    scores_of = known.decision_function(which)
                    parts.append((scores_of, encoded[which], rows.weights[which]))
                calibration = Calibration.of(self.calibrate, self.classes_, parts)
                self.best_estimator_.calibration_ = calibration
        warn_of(dataclasses.replace(settings, name=type(self).__name__), None, results)
        return self

    def _svc(self, C: float, seed: Any) -> LinearSVC:
        """The estimator of one fit, which knows the classes and the features."""
        svc = LinearSVC(C, **{**self._settings(), "random_state": seed})
        svc.classes_ = self.classes_
        copy_features(self, svc)
        return svc

    def _settings(self) -> dict[str, Any]:
        own = self.get_params(deep=False)
        return {k: v for k, v in own.items() if k not in OWN_PARAMETERS}

    def _run_folds(
        self,
        rows: _Rows,
        Cs: np.ndarray,
        folds: list[tuple[np.ndarray, np.ndarray]],
        seeds: list[int | None],
        scorer: Callable[..., float],
    ) -> tuple[list[LinearSVCPath], list[np.ndarray]]:
        """A path and its scores per fold."""
        cancelled = threading.Event()
        count = len(folds)
        remote = isinstance(rows.matrix, RemoteMatrix)  # workers run one request at a time
        jobs = 1 if remote else self.n_jobs

        def stopped(record: Iteration) -> None:
            if cancelled.is_set():
                raise _CancelledError

        def path_of_fold(fold: int, threads: int) -> LinearSVCPath:
            """All fits of one fold."""
            svc = self._svc(float(Cs.max()), seeds[fold])
            counts = np.bincount(folds[fold][0], minlength=len(rows.weights))  # rows may repeat
            try:
                weights, _ = weigh_classes(svc, rows.encoded, rows.weights * counts)
            except ValueError as error:
                raise ValueError(f"fold {fold}: {error}") from error
            settings = dataclasses.replace(svc._check_common(), callback=stopped, verbose=0)
            of_fold = (rows.matrix, rows.encoded, weights, settings, self._settings(), threads)
            return solve_path(svc, Cs, *of_fold, complete=False)

        # A fold is a single task, however many rounds it takes: fewer numbers are worth a thread.
        with make_executor(jobs, 4 * count * rows.matrix.n_stored) as outer:
            threads = max(1, outer.threads // count)

            def run(fold: int) -> tuple[LinearSVCPath, np.ndarray]:
                try:
                    path = path_of_fold(fold, threads)
                    return path, self._score(path, rows, folds[fold][1], scorer, threads)
                except BaseException:
                    cancelled.set()  # makes the other folds end after their next iteration
                    raise

            done = outer.run(run, count)
        return [path for path, _ in done], [scores for _, scores in done]

    def _score(
        self,
        path: LinearSVCPath,
        rows: _Rows,
        held_out: np.ndarray,
        scorer: Callable[..., float],
        threads: int,
    ) -> np.ndarray:
        """The score of each model of a path on the rows it has not seen."""
        y = self.classes_[rows.encoded[held_out]]
        if not looks_at_predictions(scorer):
            X = _safe_indexing(rows.X, held_out)
            return np.array([float(scorer(path.model(k), X, y)) for k in range(len(path))])
        weights = {}
        metric = getattr(scorer, "_score_func", None)
        if rows.weighted and (metric is None or "sample_weight" in signature(metric).parameters):
            weights["sample_weight"] = rows.weights[held_out]
        models = (self._known(path, k, rows.matrix, held_out, threads) for k in range(len(path)))
        return np.array([float(scorer(model, held_out, y, **weights)) for model in models])

    def _known(
        self, path: LinearSVCPath, k: int, matrix: Matrix, held_out: np.ndarray, threads: int | None
    ) -> LinearSVC:
        """The k-th model of a path, which takes any X for the rows that its fold held out."""
        model = path.model(k).set_params(n_jobs=threads, executor=None)
        scores = model._scores_of(matrix)[held_out]
        model.__dict__["_scores"] = lambda X: scores.copy()  # callers add the intercept in place
        return model

    def _best(self) -> int:
        """Position of the best C."""
        mean = self.scores_.mean(axis=0)
        if np.all(np.isnan(mean)):
            raise ValueError(
                "scoring gave nan for every C; does every fold hold out rows of each class?"
            )
        top = np.flatnonzero(mean == np.nanmax(mean))
        return int(top[np.argmin(self.Cs_[top])])

    def _refit(
        self,
        data: tuple[Any, Any],
        rows: _Rows,
        paths: list[LinearSVCPath],
        best: int,
        seed: int | None,
    ) -> list[SolveResult]:
        """Fit all rows, from the mean of the folds' models."""
        model = self._svc(self.C_, seed)
        settings = model._check_common()
        weights, _ = weigh_classes(model, rows.encoded, rows.weights)
        form, problems = model._problems(rows.matrix, rows.encoded, weights)
        start = (
            np.mean([path.coefs[best] for path in paths], axis=0),
            np.mean([path.intercepts[best] for path in paths], axis=0),
        )
        results = model._fit_linear(data, form, problems, settings, start)
        self.best_estimator_ = model
        for name in OF_THE_MODEL:
            setattr(self, name, getattr(model, name))
        return results

    # -- prediction -----------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance to the separating hyperplanes, times |w|.

        Parameters
        ----------
        X : array-like, sparse matrix or data set on disk, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,) or (n_samples, n_classes)
            For two classes positive means ``classes_[1]``.
        """
        return self._fitted().decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data set on disk, shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray, shape (n_samples,)
        """
        return self._fitted().predict(X)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of the classes, see :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like, sparse matrix or data set on disk, shape (n_samples, n_features)

        Returns
        -------
        logarithms : ndarray, shape (n_samples, n_classes)
        """
        return self._fitted().predict_log_proba(X)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes; with ``calibrate`` or ``loss='logistic'``.

        Parameters
        ----------
        X : array-like, sparse matrix or data set on disk, shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray, shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._fitted().predict_proba(X)

    def _fitted(self) -> LinearSVC:
        """The model that was fitted to all rows."""
        check_is_fitted(self, "scores_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                "there is no model to predict with: it was fitted with refit=False"
            )
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        """Sparse input is welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
