"""Linear support vector classification."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._checks import check_choice, check_number
from ..data import BlockedMatrix
from ..exec import SerialExecutor
from ..losses import CLASSIFICATION, LOSSES
from ..risks import LossRisk, Risk, Targets
from ._attributes import check_linear, stored_classes
from ._base import OUTPUTS_TOGETHER, LinearModel, ModelForm, dense
from ._calibration import Calibration, check_calibration
from ._fit import IN_PASSES, Lazy, Settings, warn_of, with_callbacks
from ._problems import SOLVERS, NearlyFreeBias, RowProblem, SmallWeights, bounds_of
from ._rows import Labels, encode_classes, is_indicator, open_rows, weigh_classes

if TYPE_CHECKING:
    from ..cluster.rows import RemoteMatrix

# The stochastic solvers take only these losses.
STOCHASTIC = tuple(name for name in CLASSIFICATION if LOSSES[name].reach is not None)
LOSSES_OF = {"sgd": STOCHASTIC, "pegasos": STOCHASTIC}
MULTI_CLASS = ("ovr", "crammer_singer", "multinomial")
# The loss of a joint problem.
JOINT = {"crammer_singer": "hinge", "multinomial": "logistic"}


def _gives_probabilities(model: Any) -> bool:
    """Whether scores are logarithms of odds, or a calibration knows what they mean."""
    if model.loss == "logistic" or hasattr(model, "calibration_"):
        return True
    raise AttributeError(
        f"probabilities are for loss='logistic', got loss={model.loss!r}; for every loss "
        "LinearSVCCV(calibrate='sigmoid') or sklearn.calibration.CalibratedClassifierCV finds some"
    )


@dataclass(eq=False, repr=False, kw_only=True)
class LinearSVC(ClassifierMixin, LinearModel):
    """Linear support vector classifier with a certificate of optimality.

    Minimises ½|w|² + C·Σ_i weight_i·loss(y_i(<w, x_i> + b)) and certifies the result:
    ``certificate_`` limits how far the objective is from the optimum. Parameters with the same
    meaning have the same names as in scikit-learn's ``LinearSVC``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses. It multiplies their *sum*, as in scikit-learn and liblinear.
    loss : {'hinge', 'squared_hinge', 'logistic', 'huberised_hinge'}, default='hinge'
        ``hinge`` is the SVM, ``logistic`` gives logistic regression and its probabilities,
        ``huberised_hinge`` is the hinge with a parabola of width ½ in place of its kink.
    penalty : {'l2'}, default='l2'
        The regulariser, ½|w|². There is no other; the parameter exists for compatibility with
        scikit-learn.
    solver : {'auto', 'ocas', 'cpa', 'dcd', 'sgd', 'pegasos'}, default='auto'
        ``auto`` chooses by the shape of the data. It takes Newton's method for small data, for few
        features and, in memory, for the logistic loss. Otherwise it begins with ``dcd``, and
        changes to Newton's method if that is expected to end earlier. It takes ``ocas`` for data on
        disk with many features, on clusters, and for joint problems of all classes. ``ocas`` is the
        optimised cutting plane algorithm, ``cpa`` the plain one of SVM-perf and BMRM, and ``dcd``
        is dual coordinate descent, for data in memory. These work with every loss. ``sgd`` (Bottou)
        and ``pegasos`` are stochastic: fast but inexact. They return the same kind of certificate.
    dual : bool or 'auto', default='auto'
        Not used: the optimum does not depend on it. It exists for compatibility with scikit-learn.
    tol : float, default=1e-3
        The fit stops when the gap is at most this. ``stopping`` says in which unit.
    stopping : {'relative', 'absolute', 'epsilon'}, default='relative'
        ``relative``: gap ≤ tol·objective. ``absolute``: gap ≤ tol. ``epsilon``:
        gap ≤ C·(sum of weights)·tol, SVM-perf's rule.
    fit_intercept : bool, default=True
        Fit a bias b. It is not regularised unless ``intercept_scaling`` is given.
    intercept_scaling : float or None, default=None
        None for a true bias. A number s appends a constant feature of value s,
        whose weight is regularised, as in liblinear and in the papers.
    class_weight : dict or 'balanced', optional
        Factors on C by class, as in scikit-learn.
    multi_class : {'ovr', 'crammer_singer', 'multinomial'}, default='ovr'
        For more than two classes: one problem per class, or one joint problem, of the hinge of
        Crammer and Singer or, with ``loss='logistic'``, multinomial logistic regression.
    positive : bool, default=False
        Whether to forbid negative coefficients.
    bounds : pair (low, high) or None, default=None
        Bounds on the coefficients, each a number or an array with one per feature; infinite where
        there is none. They hold for the coefficients of every class, not for the bias; with
        ``positive`` both hold. Problems with bounds are solved by ``ocas``, which ``auto`` means
        in this case, or by ``cpa``.
    max_iter : int or None, default=None
        Most iterations per problem, or epochs of the stochastic solvers. An iteration is a cut, a
        step of Newton's method, or some passes of ``dcd`` and a certificate; with ``auto`` the
        iterations of all solvers count together. None for no limit, for the stochastic solvers' own
        number of epochs, or for the work of 5000 passes of ``dcd``.
    time_limit : float or None, default=None
        Limit of one fit in seconds.
    n_jobs : int or None, default=None
        Number of threads; −1 or None means all cores that the process may use. It does not change a
        bit of the result.
    executor : dask.distributed.Client, DaskCluster or None, default=None
        A Dask cluster. Its workers hold the rows and run the fit, with the solver ``ocas``, which
        ``auto`` means in this case, or ``cpa``. The result is the same as with this solver on one
        machine, to the last bit.
    warm_start : bool, default=False
        Start from the previous ``coef_`` and, if data and weights are the same, from the cuts that
        were active there. A fit with another C then takes few iterations.
    random_state : int, RandomState or None, default=None
        Used by the solvers that visit rows in random order, ``dcd``, ``sgd`` and ``pegasos``;
        ``auto`` takes a fixed seed if None.
    verbose : int, default=0
        1 shows a line of progress in a terminal or notebook and writes records to
        the ``cutplane`` logger elsewhere.
    callback : callable or None, default=None
        Called with an :class:`~cutplane.Iteration` after every iteration. If it returns something
        true, the fit stops.
    checkpoint : Checkpoint, path or None, default=None
        Write the state of the fit to this file, every minute or as :class:`~cutplane.Checkpoint`
        says, and continue from the file if it exists. For the solvers ``ocas``, which ``auto``
        means in this case, and ``cpa``. The last bits of a model differ with and without a
        checkpoint.
    coef_threshold : float or None, default=None
        None makes ``coef_`` an array. A number makes it a CSR matrix of the weights w with |w| ≥
        coef_threshold; 0 drops only zeros. The fit drops small weights as soon as it has solved a
        class or label, so it never stores classes × features numbers. Then it fits the intercept
        again. Certificates are about the model without the small weights, so the gap includes what
        they were worth, and may exceed ``tol``.

    Attributes
    ----------
    coef_ : ndarray, shape (1, n_features) or (n_classes, n_features)
        A CSR matrix with ``coef_threshold``, and after :meth:`sparsify`. A row per label for
        several labels per row.
    intercept_ : ndarray, shape (1,) or (n_classes,)
    classes_ : ndarray, shape (n_classes,)
        The numbers of the columns of Y for several labels per row; of a model from the command line
        the labels in the file.
    multilabel_ : bool
        Whether y was an indicator matrix of labels.
    n_iter_ : int
        Number of iterations; with several problems the largest.
    certificate_ : Certificate
        ``primal, dual, gap, relative_gap, kind`` of the objective above. For one-vs-rest with more
        than two classes, and for labels, it is about the sum of the objectives of all problems.
    certificates_ : list of Certificate
        One per problem: one, or one per class for one-vs-rest, or one per label.
    results_ : list of SolveResult
        One per problem: the certificate with status, trace and timings. With several labels per
        row, and with ``coef_threshold``, their ``w`` are empty: they are in ``coef_``.
    calibration_ : Calibration
        Converts scores into probabilities; only in the model of a ``LinearSVCCV(calibrate=…)``.
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    Notes
    -----
    Values of X are not copied if they are float32 or float64 in CSR, C or
    Fortran order. 64-bit sparse indices are copied into 16 or 32 bits. Other
    layouts are converted to CSR once.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from cutplane import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(C=0.1).fit(StandardScaler().fit_transform(X), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    _solvers = SOLVERS
    _sparse_coef = True  # with coef_threshold, and after sparsify()
    loss: str = "hinge"
    penalty: str = "l2"
    solver: str = "auto"
    dual: bool | str = "auto"
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    class_weight: dict[Any, float] | str | None = None
    multi_class: str = "ovr"
    random_state: Any = None
    coef_threshold: float | None = None

    calibration_: Calibration = field(init=False)
    multilabel_: bool = field(init=False, default=False)
    sparse_labels_: bool = field(init=False)  # whether Y was sparse, and predictions are

    # -- fitting --------------------------------------------------------------

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, dual_init: Any = None
    ) -> LinearSVC:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)
        y : array-like, shape (n_samples,), optional for a Dataset that has labels
            Class labels. Or for several labels per row an indicator matrix of 0 and 1, an array
            or a sparse matrix of shape (n_samples, n_labels): then each label is a problem
            of its own, and ``class_weight`` is for the classes 0 and 1 of each.
        sample_weight : array-like, shape (n_samples,), optional
            Factors on C by row; rows of weight 0 do not count. By default the costs of a Dataset.
        dual_init : array-like, shape (n_samples,) or (n_problems, n_samples), optional
            A dual point to start from, as other solvers return it: numbers
            from 0 to C·weight per row (from 0 up for the squared hinge). It is clipped
            to these bounds and gives the first cut.

        Returns
        -------
        self
        """
        settings = self._check_common()
        labels = Labels(y) if is_indicator(y) else None
        if labels is not None and self.multi_class in JOINT:
            raise ValueError(
                f"multi_class={self.multi_class!r} is for one class per row, but Y is a matrix of "
                "labels; set multi_class='ovr'"
            )
        given = y if labels is None else np.zeros(labels.shape[0])
        rows = open_rows(self, X, given, sample_weight)
        for name in ("multilabel_", "sparse_labels_", "calibration_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        weights: np.ndarray = rows.weights
        targets: Any = labels
        if labels is None:
            self.classes_, targets = encode_classes(rows.y)
            weights, _ = weigh_classes(self, targets, weights)
        else:
            labels.check(weights)
            self.classes_, self.multilabel_ = np.arange(labels.shape[1]), True
            self.sparse_labels_ = labels.sparse
        with rows.blocks(self._outputs()) as matrix:
            form, problems = self._problems(matrix, targets, weights)
            dual_points = None
            if dual_init is not None:
                dual_points = self._check_dual_init(dual_init, form, len(weights))
            results = self._fit_linear((X, y), form, problems, settings, None, dual_points)
        warn_of(settings, None, results)
        return self

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        # The list is made at every fit, because a program may have added losses of its own.
        choices = [name for name, loss in LOSSES.items() if not loss.regression]
        check_choice("loss", self.loss, choices)
        check_choice("multi_class", self.multi_class, MULTI_CLASS)
        if self.penalty != "l2":
            raise ValueError(
                f"penalty must be 'l2', got {self.penalty!r}: the regulariser is ½|w|²; for sparse "
                "coefficients take sklearn.svm.LinearSVC(penalty='l1', dual=False)"
            )
        if self.coef_threshold is not None:
            check_number("coef_threshold", self.coef_threshold, at_least=0.0)
            if self.checkpoint is not None:
                raise ValueError(
                    "a checkpoint keeps all weights: leave out checkpoint or coef_threshold; "
                    "sparsify(threshold) drops small weights after the fit"
                )
        return settings

    def _outputs(self) -> int:
        """Scores per row of a problem: several if one problem is about all classes."""
        classes = len(self.classes_)
        return classes if self.multi_class in JOINT and classes > 2 else 1

    def _form(
        self, matrix: BlockedMatrix | RemoteMatrix, targets: Any, weights: np.ndarray
    ) -> ModelForm:
        """How many problems there are, and how they model the bias.

        ``targets`` holds the number of each row's class, or the ``Labels`` of the rows.
        """
        if self.loss not in LOSSES_OF.get(self.solver, LOSSES):
            *others, last = (repr(loss) for loss in LOSSES_OF[self.solver])
            raise ValueError(
                f"solver={self.solver!r} takes loss={', '.join(others)} or {last}, got "
                f"{self.loss!r}; solver='auto' takes every loss"
            )
        classes = len(self.classes_)
        if self._outputs() == 1:
            count = 1 if classes == 2 and not self.multilabel_ else classes
            return ModelForm(count, **self._bias())
        wanted = JOINT[self.multi_class]
        if self.loss != wanted or self.solver not in IN_PASSES:
            raise ValueError(
                f"multi_class={self.multi_class!r} takes loss={wanted!r} and solver='auto', 'ocas' "
                f"or 'cpa', got loss={self.loss!r}, solver={self.solver!r}"
            )
        form = ModelForm(outputs=classes, **self._bias())
        if not form.free_bias:
            return form
        share = np.bincount(targets, weights) / weights.sum()
        if self.multi_class == "multinomial" and np.any(share == 0.0):
            raise ValueError(
                f"no row of class {self.classes_[share.argmin()]!r} has a positive weight, and "
                "its intercept has no optimum; leave its rows out, or set intercept_scaling"
            )
        squares = matrix.squared_norms(SerialExecutor())
        nearly_free = NearlyFreeBias(
            classes=classes,
            smallest_share=float(share[share > 0.0].min()),
            empty_class=bool(np.any(share == 0.0)),
            row_norm=math.sqrt(np.max(squares, where=weights > 0.0, initial=0.0)),
        )
        return ModelForm(outputs=classes, constant=nearly_free.constant, nearly_free=nearly_free)

    def _problems(
        self, matrix: BlockedMatrix | RemoteMatrix, targets: Any, weights: np.ndarray
    ) -> tuple[ModelForm, Sequence[RowProblem]]:
        """All classes at once, each class against the rest, or each label against its absence."""
        form = self._form(matrix, targets, weights)
        bounds = bounds_of(self, matrix.shape[1])
        small = None if self.coef_threshold is None else SmallWeights(self.coef_threshold)

        def make(k: int) -> RowProblem:
            risk: Risk = LossRisk(LOSSES[self.loss]())
            own = weights
            if form.outputs is not None:
                from ..risks.multiclass import CrammerSingerRisk, MultinomialRisk

                several = self.multi_class == "multinomial"
                kind = MultinomialRisk if several else CrammerSingerRisk
                name, risk, y = "all classes", kind(form.outputs), targets.astype(np.int64)
            elif self.multilabel_:
                column = targets.column(k)
                try:
                    own, _ = weigh_classes(self, column, weights, classes=np.arange(2))
                except ValueError as error:
                    raise ValueError(f"Y, column {k}: {error}") from error
                name, y = f"label {k}", np.where(column == 1, 1.0, -1.0)
            else:
                positive = k if form.problems > 1 else 1
                name, y = (
                    f"class {self.classes_[positive]}",
                    np.where(targets == positive, 1.0, -1.0),
                )
            return RowProblem(
                name,
                matrix,
                form.constant,
                Targets.make(y, own),
                risk,
                form.free_bias,
                form.nearly_free,
                small,
                bounds=bounds,
            )

        return form, [make(0)] if form.problems == 1 else Lazy(form.problems, make)

    def _check_dual_init(self, dual_init: Any, form: ModelForm, rows: int) -> np.ndarray:
        """A dual point per problem, divided by C."""
        if form.outputs is not None:
            raise ValueError(f"dual_init is not available for multi_class={self.multi_class!r}")
        try:
            dual = np.atleast_2d(np.asarray(dual_init, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise ValueError(f"dual_init must hold numbers: {error}") from error
        if dual.shape != (form.problems, rows) or not np.all(np.isfinite(dual)):
            raise ValueError(
                f"dual_init must hold finite numbers in shape ({form.problems}, {rows}), "
                f"or ({rows},) for a single problem; got shape {np.shape(dual_init)}"
            )
        return dual / self.C

    # -- prediction -----------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance to the separating hyperplanes, times |w|.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,) or (n_samples, n_classes)
            For two classes positive means ``classes_[1]``; in the column of a label that a row
            has it.
        """
        scores = self._scores(X)
        scores += self.intercept_[0] if scores.ndim == 1 else self.intercept_
        return scores[:, None] if self.multilabel_ and scores.ndim == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray, shape (n_samples,)
            Of a model for several labels per row the indicator matrix, shape
            (n_samples, n_labels): sparse if that of the fit was.
        """
        if self.multilabel_:
            return self._predict_labels(X)
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def _predict_labels(self, X: Any) -> Any:
        """The indicator matrix of the labels with positive scores, some labels at a time."""
        matrix = self._rows_to_score(X)
        parts = [
            scipy.sparse.csr_matrix(found) if self.sparse_labels_ else found
            for some, scores in self._scores_by_parts(matrix, OUTPUTS_TOGETHER)
            for found in (scores + self.intercept_[some] > 0.0,)
        ]
        if self.sparse_labels_:
            return scipy.sparse.hstack(parts, format="csr", dtype=np.int64)
        return np.hstack(parts).astype(np.int64)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of the classes, see :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        logarithms : ndarray, shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if hasattr(self, "calibration_"):
            return self.calibration_.log_probabilities(scores)
        if self.multilabel_:
            return -np.logaddexp(0.0, -scores)
        if scores.ndim == 1:
            return -np.logaddexp(0.0, np.column_stack([scores, -scores]))
        one_by_one = scores if self._outputs() > 1 else -np.logaddexp(0.0, -scores)
        return one_by_one - logsumexp(one_by_one, axis=1, keepdims=True)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes; for ``loss='logistic'``, and for a calibrated model.

        The probability of a class is 1/(1 + exp(−score)). With more than two classes, the
        probabilities of each class against the rest are divided by their sum; with
        ``multi_class='multinomial'`` the values exp(score) are divided by their sum. If a row may
        have several labels, every label has its own probability. The model of a
        ``LinearSVCCV(calibrate=…)`` has the probabilities of its calibration instead.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray, shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        if hasattr(self, "calibration_"):
            return self.calibration_.probabilities(self.decision_function(X))
        return np.exp(self.predict_log_proba(X))

    def _check_attributes(self) -> None:
        if self.multilabel_:
            classes = getattr(self, "classes_", None)
            if not isinstance(classes, np.ndarray) or classes.ndim != 1:
                raise ValueError("classes_ must hold a label per row of coef_")
            check_linear(self, len(classes))
            if self.multilabel_ is not True or not isinstance(self.sparse_labels_, bool):
                raise ValueError("multilabel_ and sparse_labels_ must be True or False")
            return
        classes = stored_classes(self)
        check_linear(self, 1 if classes == 2 else classes)
        check_calibration(self, classes)

    # -- the coefficients in memory -------------------------------------------

    def sparsify(self, threshold: float = 0.0) -> LinearSVC:
        """Keep ``coef_`` as a sparse matrix: less memory and smaller files if most of it is 0.

        Predictions, and a further ``fit``, turn some rows of it into arrays while they run.

        Parameters
        ----------
        threshold : float, default=0
            Also drop the weights w with |w| < threshold. ``certificate_`` is still about the model
            with all weights. For a certificate of the smaller model, set ``coef_threshold`` and
            fit.

        Returns
        -------
        self
        """
        check_number("threshold", threshold, at_least=0.0)
        check_is_fitted(self)
        coef = scipy.sparse.csr_matrix(self.coef_, copy=threshold > 0.0)
        if threshold > 0.0:
            coef.data[np.abs(coef.data) < threshold] = 0.0
            coef.eliminate_zeros()
        self.coef_ = coef
        return self

    def densify(self) -> LinearSVC:
        """Keep ``coef_`` as an array, as it is after ``fit``.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.coef_ = dense(self.coef_)
        return self

    def __sklearn_tags__(self) -> Any:
        """A row may have several labels, unless all classes make one problem.

        With bounds a model need not be able to follow its data.
        """
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = bool(self.positive) or self.bounds is not None
        tags.classifier_tags.multi_label = self.multi_class not in JOINT
        return tags
