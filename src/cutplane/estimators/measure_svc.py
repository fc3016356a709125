"""Binary classifiers trained for the measure that is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from .._checks import check_choice, check_number
from ..losses import Hinge
from ..result import Status
from ..risks import ListwiseRisk, LossRisk, Targets
from ..risks.contingency import TABLE_MEASURES, WITH_BETA
from ..risks.measures import TableRisk, TopRisk, best_threshold
from ..risks.pairs import PairRisk
from ..risks.partial_area import PartialAreaRisk
from ..risks.rankings import RankingRisk
from ..risks.thresholds import least_rows_for_fpr, threshold_for_fpr
from ._attributes import stored_classes
from ._base import LinearModel, ModelForm
from ._fit import Settings, divided, warn, warn_of, with_callbacks
from ._problems import ListwiseProblem, RowProblem, bounds_of
from ._rows import encode_classes, open_rows, weigh_classes

if TYPE_CHECKING:
    from ._problems import Matrix

MEASURES = (
    "roc_auc",
    "partial_roc_auc",
    "recall_at_fpr",
    "average_precision",
    "precision_at_k",
    "recall_at_k",
    "prbep",
    *TABLE_MEASURES,
    "error_rate",
)
# SVM-perf's default for k, divided by the number of positive rows.
DEFAULT_K = {"precision_at_k": 0.5, "recall_at_k": 2.0}
WITH_FPR = ("partial_roc_auc", "recall_at_fpr")
DEFAULT_FPR, DEFAULT_CONFIDENCE = 0.1, 0.95
MOST_COPIES = 2**31
# Measures without a meaning for weighted rows, and the reason.
NO_WEIGHTS = {
    "average_precision": "it counts positions in a ranking, and a row has one position",
    "recall_at_fpr": "its threshold counts independent rows",
}


@dataclass(eq=False, repr=False)
class MeasureSVC(ClassifierMixin, LinearModel):
    """Linear classifier for two classes, trained for ROC area, F1, precision at k and the like.

    Minimises ½|w|² + C·m·risk, where m is the number of rows, or the sum of their weights, and the
    risk is convex and never less than one minus the measure on the training data. The certificate
    limits how far the model is from the optimum. SVM-perf solves the same problems.

    Parameters
    ----------
    measure : str or callable, default='roc_auc'
        Of the order of the rows:

        - ``roc_auc``: pairs of a positive and a negative row in the right order.
        - ``partial_roc_auc``: the same at false positive rates up to ``max_fpr``.
        - ``recall_at_fpr``: the same, with a threshold at which the false positive rate is at most
          ``max_fpr`` with the given ``confidence`` (Neyman-Pearson classification).
        - ``average_precision``: the mean precision at the positive rows' positions.
        - ``precision_at_k``, ``recall_at_k``: among the k rows of highest score.
        - ``prbep``: both of these with k = number of positive rows, where they are equal.

        Of the predictions:

        - ``f1``, ``fbeta``: F1 of the positive class, and Fβ with ``beta``.
        - ``jaccard``: intersection over union of the true and the predicted positive rows.
        - ``balanced_error``, ``g_mean``: the arithmetic mean of both classes' error rates, and the
          geometric mean of their recalls.
        - ``matthews``: Matthews' correlation coefficient.
        - ``absolute_error``, ``relative_absolute_error``, ``nkld``, ``q_beta``: how well the share
          of positives among the predictions is that among the rows (quantification). The second
          and third are normalised to [0, 1]; the last is the Fβ-mean of recall and the second.
        - ``error_rate``: the plain SVM.
        - A callable ``loss(tp, fp, fn, tn)`` that takes arrays of counts and returns an array of
          losses in [0, 1]: any loss of the contingency table. In a fit it is called for nearly all
          (positives + 1)·(negatives + 1) tables, in blocks, and then for few of them.
    C : float, default=1.0
        Weight of the risk per row, as for every estimator here: with ``error_rate`` it is that of
        :class:`LinearSVC`. SVM-perf's c is C·m/100.
    k : int, float or None, default=None
        For precision and recall at k: a number of rows, or, as a float, a multiple of the number
        of positive rows. None means 0.5 for precision, and 2.0, or all rows, for recall.
    beta : float or None, default=None
        For ``fbeta`` and ``q_beta``: recall counts ``beta`` times as much. None means 1.
    max_fpr : float or None, default=None
        For ``partial_roc_auc`` and ``recall_at_fpr``: the largest false positive rate that counts,
        above 0 and up to 1. A share of the negative rows, rounded up. None means 0.1.
    class_weight : dict or 'balanced', optional
        Factors on the weights of the rows, by class; the notes say what weights are. In ROC areas,
        where every pair has a row of each class, they move the decision threshold alone.
        'balanced' is for ``error_rate`` and ``roc_auc``. See also the measure ``balanced_error``.
    confidence : float or None, default=None
        For ``recall_at_fpr``: the probability that the model's false positive rate is at most
        ``max_fpr``, over the choice of the rows. None means 0.95.
    random_state : int, RandomState instance or None, default=None
        For ``recall_at_fpr``: chooses the half of the negative rows that does not train.
    solver : {'ocas', 'cpa'}, default='ocas'
        The optimised cutting plane algorithm, or the plain one of SVM-perf.
    tol : float, default=1e-3
        The fit stops when the gap is at most this. ``stopping`` says in which unit.
    stopping : {'relative', 'absolute', 'epsilon'}, default='relative'
        ``relative``: gap ≤ tol·objective. ``absolute``: gap ≤ tol. ``epsilon``:
        gap ≤ C·m·tol, SVM-perf's rule in units of the measure.
    fit_intercept : bool, default=True
        For measures of the predictions, train the decision threshold with the weights. For
        measures of the order the threshold does not matter in training, and it is always fitted
        afterwards.
    intercept_scaling : float or None, default=None
        Value of a constant feature. Its weight gives the intercept. None means 1; for
        ``error_rate`` it means a bias that is not regularised.
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
        Minus the decision threshold. ROC areas and ``average_precision``: the one with the fewest
        errors on the training data. At k and ``prbep``: above it are k training rows.
        ``recall_at_fpr``: an order statistic of the scores of the negatives not trained on.
    classes_ : ndarray, shape (2,)
        The two labels. The second one is the positive class.
    k_ : int
        Number of training rows that are predicted positive, for the measures with k and ``prbep``.
    calibration_rows_ : ndarray of int
        For ``recall_at_fpr``: the negative rows that set the threshold and did not train the
        weights.
    n_iter_ : int
    certificate_ : Certificate
        ``primal, dual, gap, relative_gap, kind`` of ½|w|² + C·m·risk.
    risk_certificate_ : Certificate
        ``certificate_`` divided by C·m, in units of the measure: it is about risk + |w|²/2Cm.
    certificates_, results_ : list of Certificate, list of SolveResult
        Lists with one entry: this certificate, and the result with status, trace and timings.
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    See Also
    --------
    RankSVM : More than two levels of relevance, and queries.

    Notes
    -----
    A sample weight multiplies the pairs of its row for ``roc_auc``, and its loss for
    ``error_rate``. For ``average_precision`` and ``recall_at_fpr`` there are none. For the other
    measures weights are counts: whole numbers, and a row of weight 2 is two rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.preprocessing import StandardScaler
    >>> from cutplane import MeasureSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = MeasureSVC("roc_auc", C=0.02).fit(X, y)
    >>> bool(roc_auc_score(y, model.decision_function(X)) > 0.99)
    True
    """

    measure: str | Callable[..., Any] = "roc_auc"
    _: KW_ONLY
    C: float = 1.0
    k: float | None = None
    beta: float | None = None
    max_fpr: float | None = None
    class_weight: dict[Any, float] | str | None = None
    confidence: float | None = None
    random_state: Any = None
    fit_intercept: bool = True
    intercept_scaling: float | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MeasureSVC:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)
        y : array-like, shape (n_samples,), optional for a Dataset that has labels
            Labels of two classes.
        sample_weight : array-like, shape (n_samples,), optional
            See the notes of the class; rows of weight 0 do not count. By default the costs of a
            Dataset.

        Returns
        -------
        self
        """
        settings = self._check_common()
        rows = open_rows(self, X, y, sample_weight)
        self.classes_, encoded = encode_classes(rows.y)
        if len(self.classes_) > 2:
            # scikit-learn's checks look for the first words of this message.
            raise ValueError(
                f"Only binary classification is supported: y has {len(self.classes_)} classes; "
                "use LinearSVC, or one MeasureSVC per class"
            )
        weights, _ = weigh_classes(self, encoded, rows.weights)
        labels = np.where(encoded == 1, 1.0, -1.0)
        for name in ("k_", "calibration_rows_"):  # of an earlier fit, for another measure
            self.__dict__.pop(name, None)
        with rows.blocks() as matrix:
            problem = self._problem(matrix, labels, weights)
            form = ModelForm(constant=problem.constant)
            results = self._fit_linear((X, y), form, [problem], settings)
            self.risk_certificate_ = divided(results[0].certificate, settings.C * problem.total)
            if not self._of_predictions():
                scores = self._training_scores(matrix)
                self.intercept_ = np.array([-self._threshold(scores, labels, weights)])
        warn_of(settings, None, results)
        if results[0].status is Status.CONVERGED and not np.any(self.coef_):
            warn(
                UserWarning(
                    "all weights are zero: by the convex bound of "
                    f"measure={self.measure!r} no model is better than equal scores for all "
                    "rows, up to tol. Raise C; if that changes nothing, the classes overlap too "
                    "much for this measure: use measure='roc_auc', a larger max_fpr or LinearSVC"
                )
            )
        return self

    def _check_common(self) -> Settings:
        if not callable(self.measure):
            check_choice("measure", self.measure, MEASURES)
        settings = super()._check_common()
        for name, measures in (
            ("k", tuple(DEFAULT_K)),
            ("beta", WITH_BETA),
            ("max_fpr", WITH_FPR),
            ("confidence", ("recall_at_fpr",)),
        ):
            value = getattr(self, name)
            if value is None:
                continue
            if self.measure not in measures:
                raise ValueError(
                    f"{name} has no meaning for measure={self.measure!r}; leave it out, or use "
                    f"measure={' or '.join(map(repr, measures))}"
                )
            check_number(name, value, above=0.0)
        if self.class_weight is not None and self.measure in NO_WEIGHTS:
            raise ValueError(
                f"class_weight has no meaning for measure={self.measure!r}: "
                f"{NO_WEIGHTS[str(self.measure)]}; leave it out"
            )
        if self.max_fpr is not None and self.max_fpr > 1.0:
            raise ValueError(
                f"max_fpr must be at most 1, a share of the negative rows; got {self.max_fpr!r}"
            )
        if self.confidence is not None and self.confidence >= 1.0:
            raise ValueError(f"confidence must be below 1, a probability; got {self.confidence!r}")
        return settings

    def _of_predictions(self) -> bool:
        """Whether the measure is one of predictions, not of the order of the rows."""
        return callable(self.measure) or self.measure in (*TABLE_MEASURES, "error_rate")

    def _threshold(self, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
        """The decision threshold for a measure of the order of the rows."""
        if self.measure == "recall_at_fpr":
            return threshold_for_fpr(scores[self.calibration_rows_], *self._false_positives())
        return best_threshold(scores, labels, weights, getattr(self, "k_", None))

    def _false_positives(self) -> tuple[float, float]:
        """The largest false positive rate, and the confidence that it is not exceeded."""
        rate = DEFAULT_FPR if self.max_fpr is None else float(self.max_fpr)
        return rate, DEFAULT_CONFIDENCE if self.confidence is None else float(self.confidence)

    def _problem(
        self, matrix: Matrix, labels: np.ndarray, weights: np.ndarray
    ) -> RowProblem | ListwiseProblem:
        label = str(getattr(self.measure, "__name__", self.measure))
        bounds = bounds_of(self, matrix.shape[1])
        if self.measure == "error_rate":
            bias, targets = self._bias(), Targets.make(labels, weights)
            return RowProblem(
                label, matrix, targets=targets, risk=LossRisk(Hinge()), bounds=bounds, **bias
            )
        constant = 0.0
        if self.fit_intercept and self._of_predictions():
            constant = float(self.intercept_scaling or 1.0)
        mass = float(weights.sum())
        return ListwiseProblem(label, matrix, constant, self._risk(labels, weights), mass, bounds)

    def _risk(self, labels: np.ndarray, weights: np.ndarray) -> ListwiseRisk:
        if self.measure == "roc_auc":
            return PairRisk(labels, weights=weights)
        if self.measure in NO_WEIGHTS and not np.all(weights == 1.0):
            raise ValueError(
                f"sample_weight has no meaning for measure={self.measure!r}: "
                f"{NO_WEIGHTS[str(self.measure)]}; leave it out"
            )
        if self.measure == "average_precision":
            return RankingRisk(labels, "average_precision")
        if self.measure == "recall_at_fpr":
            self.calibration_rows_ = self._held_out(labels)
            trained = np.ones(len(labels), np.int64)
            trained[self.calibration_rows_] = 0
            return PartialAreaRisk(labels, self._false_positives()[0], multiplicity=trained)
        copies = self._copies(weights)
        if self.measure == "partial_roc_auc":
            return PartialAreaRisk(labels, self._false_positives()[0], multiplicity=copies)
        if self._of_predictions():
            beta = 1.0 if self.beta is None else float(self.beta)
            return TableRisk(labels, self.measure, beta=beta, multiplicity=copies)
        counts = np.ones(len(labels), np.int64) if copies is None else copies
        positives, rows = int(counts[labels > 0.0].sum()), int(counts.sum())
        self.k_ = positives if self.measure == "prbep" else self._rows_at_top(positives, rows)
        return TopRisk(labels, self.k_, recall=self.measure == "recall_at_k", multiplicity=copies)

    def _held_out(self, labels: np.ndarray) -> np.ndarray:
        """Half of the negative rows, at random: the threshold is fitted to these alone."""
        negatives = np.flatnonzero(labels < 0.0)
        least = least_rows_for_fpr(*self._false_positives())
        if len(negatives) // 2 < least:
            rate, confidence = self._false_positives()
            raise ValueError(
                f"max_fpr={rate:g} with confidence={confidence:g} needs {2 * least} negative rows, "
                f"half of them to fit the threshold to; there are {len(negatives)}: raise max_fpr, "
                "lower the confidence or give more rows"
            )
        order = check_random_state(self.random_state).permutation(negatives)
        return np.sort(order[: len(negatives) // 2])

    def _rows_at_top(self, positives: int, rows: int) -> int:
        k: Any = DEFAULT_K[str(self.measure)] if self.k is None else self.k
        count = int(k) if isinstance(k, Integral) else max(1, round(k * positives))
        if self.k is not None and count > rows:
            times = f", {k:g} times the {positives} positive rows"
            raise ValueError(
                f"k must be at most the number of rows that count, {rows}; got {count}"
                f"{'' if isinstance(k, Integral) else times}"
            )
        return min(rows, count)

    def _copies(self, weights: np.ndarray) -> np.ndarray | None:
        """Weights as counts, None if all are 1."""
        if np.all(weights == 1.0):
            return None
        bad = np.flatnonzero(weights != np.floor(weights))
        if len(bad):
            name, remedy = "sample_weight", ""
            if self.class_weight is not None:
                name = "sample_weight times class_weight"
                remedy = "; measure='balanced_error' gives both classes the same weight"
            raise ValueError(
                f"{name} must hold whole numbers for measure={self.measure!r}, where a weight is a "
                f"number of copies; got {weights[bad[0]]:g} in row {bad[0]}{remedy}"
            )
        if weights.sum() >= MOST_COPIES:
            raise ValueError(
                f"sample_weight makes {weights.sum():.3g} copies of rows for measure="
                f"{self.measure!r}; at most {MOST_COPIES} are possible: divide the weights"
            )
        return weights.astype(np.int64)

    def decision_function(self, X: Any) -> np.ndarray:
        """Score of the positive class, ``classes_[1]``, less the decision threshold.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,)
        """
        return self._scores(X) + self.intercept_[0]

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray, shape (n_samples,)
        """
        positive = self.decision_function(X) > 0.0
        return self.classes_[positive.astype(np.intp)]

    def _check_attributes(self) -> None:
        stored_classes(self, most=2)
        super()._check_attributes()

    def __sklearn_tags__(self) -> Any:
        """Two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # These measures say little about accuracy: the k rows at the top need not be the positive
        # ones, and a model may have the right share of positive rows and no row right.
        shares = ("absolute_error", "relative_absolute_error", "nkld")
        tags.classifier_tags.poor_score = self.measure in (*DEFAULT_K, *shares)
        return tags
