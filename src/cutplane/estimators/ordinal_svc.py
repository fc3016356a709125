"""Ordinal regression: classes that have an order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from .._checks import check_choice
from ..risks.pairs import PairRisk
from ..risks.thresholds import fit_thresholds
from ._attributes import check_stored, stored_classes
from ._base import LinearModel, ModelForm
from ._fit import Settings, divided, warn_of, with_callbacks
from ._problems import ListwiseProblem, bounds_of
from ._rows import encode_classes, open_rows, weigh_classes

CRITERIA = ("absolute", "zero_one")


@dataclass(eq=False, repr=False, kw_only=True)
class OrdinalSVC(ClassifierMixin, LinearModel):
    """Linear classifier for ordered classes: learns to rank, then where to cut.

    Minimises ½|w|² + C·m·(mean over pairs of different class of max(0, 1 − (s_i − s_j))), where m
    is the number of rows, or the sum of their weights, as SVM-perf's ordinal regression does. The
    certificate limits how far the model is from the optimum. Thresholds between the classes are
    then fitted to the training scores, exactly. The cost does not depend on the number of classes.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses per row, as for all estimators: C times m multiplies the mean over
        pairs here, as it multiplies the mean over rows in :class:`LinearSVC`.
    criterion : {'absolute', 'zero_one'}, default='absolute'
        What the thresholds minimise on the training data: ``absolute`` is the mean distance in
        classes between prediction and truth, ``zero_one`` the number of wrong predictions.
    class_weight : dict or 'balanced', optional
        Factors on the rows of each class. The factor of a pair is the product of both.
    solver : {'ocas', 'cpa'}, default='ocas'
        The optimised cutting plane algorithm, or the plain one of SVM-perf.
    tol : float, default=1e-3
        The fit stops when the gap is at most this. ``stopping`` says in which unit.
    stopping : {'relative', 'absolute', 'epsilon'}, default='relative'
        ``relative``: gap ≤ tol·objective. ``absolute``: gap ≤ tol. ``epsilon``:
        gap ≤ C·m·tol.
    positive : bool, default=False
        Whether to forbid negative coefficients, as for :class:`LinearSVC`.
    bounds : pair (low, high) or None, default=None
        Bounds on the coefficients, as for :class:`LinearSVC`.
    max_iter, time_limit, n_jobs, executor, warm_start, verbose, callback, checkpoint
        As for :class:`LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray, shape (1, n_features)
    intercept_ : ndarray, shape (1,)
        0: the thresholds take its place.
    thresholds_ : ndarray, shape (n_classes - 1,)
        Not decreasing. Class k is predicted if the score is above k of them.
    classes_ : ndarray, shape (n_classes,)
        The labels in increasing order, which is the order of the classes.
    n_pairs_ : int
        Number of pairs of rows of different classes in the training data.
    n_iter_ : int
    certificate_ : Certificate
        ``primal, dual, gap, relative_gap, kind`` of the objective above.
    risk_certificate_ : Certificate
        ``certificate_`` divided by C·m, in units of the fraction of swapped pairs.
    certificates_, results_ : list of Certificate, list of SolveResult
        Lists with one entry: this certificate, and the result with status, trace and timings.
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    See Also
    --------
    RankSVM : Real-valued targets, and queries.

    Examples
    --------
    >>> import numpy as np
    >>> from cutplane import OrdinalSVC
    >>> X = np.arange(9.0)[:, None]
    >>> y = np.array([1, 1, 1, 2, 2, 2, 5, 5, 5])
    >>> OrdinalSVC().fit(X, y).predict([[-3.0], [4.0], [30.0]])
    array([1, 2, 5])
    """

    criterion: str = "absolute"
    class_weight: dict[Any, float] | str | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OrdinalSVC:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)
        y : array-like, shape (n_samples,), optional for a Dataset that has labels
            Class labels; their order is the order of the classes.
        sample_weight : array-like, shape (n_samples,), optional
            A pair counts as often as the product of its rows' weights says. By default the costs
            of a Dataset.

        Returns
        -------
        self
        """
        settings = self._check_common()
        rows = open_rows(self, X, y, sample_weight)
        self.classes_, ranks = encode_classes(rows.y)
        weights, _ = weigh_classes(self, ranks, rows.weights)
        risk = PairRisk(ranks.astype(np.float64), weights=weights)
        self.n_pairs_ = risk.pairs
        with rows.blocks() as matrix:
            bounds = bounds_of(self, matrix.shape[1])
            problem = ListwiseProblem("ordinal", matrix, 0.0, risk, float(weights.sum()), bounds)
            results = self._fit_linear((X, y), ModelForm(), [problem], settings)
            self.risk_certificate_ = divided(results[0].certificate, settings.C * problem.total)
            scores = self._training_scores(matrix)
        self.thresholds_ = fit_thresholds(
            scores, ranks, weights, len(self.classes_), self.criterion
        )
        warn_of(settings, None, results)
        return self

    def _check_common(self) -> Settings:
        check_choice("criterion", self.criterion, CRITERIA)
        return super()._check_common()

    def score_samples(self, X: Any) -> np.ndarray:
        """Where rows are on the scale that the thresholds cut.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,)
        """
        return self._scores(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Score of every class, largest for the one that is predicted.

        With score s and thresholds θ, class k scores Σ_{j ≤ k} (s − θ_j).

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, s − θ: positive means ``classes_[1]``.
        """
        above = self._scores(X)[:, None] - self.thresholds_
        if above.shape[1] == 1:
            return above[:, 0]
        return np.concatenate([np.zeros((len(above), 1)), np.cumsum(above, axis=1)], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray, shape (n_samples,)
        """
        scores = self._scores(X)
        return self.classes_[np.searchsorted(self.thresholds_, scores, side="left")]

    def _check_attributes(self) -> None:
        super()._check_attributes()
        check_stored(self, "thresholds_", (stored_classes(self) - 1,))

    def __sklearn_tags__(self) -> Any:
        """The classes in scikit-learn's checks have no order, so a poor accuracy is allowed."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
