"""Linear support vector classification."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._checks import check_choice, check_flag, check_number
from ..data import BlockedMatrix
from ..exec import SerialExecutor
from ..losses import CLASSIFICATION, LOSSES
from ..result import Iteration
from ..risks import LossRisk, Risk, Targets
from ._attributes import check_linear, stored_classes
from ._base import OUTPUTS_TOGETHER, LinearModel, dense
from ._bounds import bounds_of
from ._calibration import Calibration, check_calibration
from ._fit import Problem, Problems, Settings, warn_of, with_callbacks
from ._form import ModelForm, NearlyFreeBias
from ._labels import Labels, is_indicator, positives
from ._problems import SOLVERS, RowProblem
from ._rows import encode_classes, open_rows, weigh_classes
from .checkpoint import Checkpoint

if TYPE_CHECKING:
    from ..cluster.rows import RemoteMatrix

# Losses of the solvers that do not take all.
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


class LinearSVC(ClassifierMixin, LinearModel):
    """Linear support vector classifier with a certificate of optimality.

    Minimises ½|w|² + C·Σ_i weight_i·loss(y_i(<w, x_i> + b)) by cutting planes and
    returns, with the model, a proof of how far its objective is from the
    optimum at most. Parameters are those of scikit-learn's ``LinearSVC`` where
    they mean the same.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser: multiplies their *sum*,
        as in scikit-learn and liblinear.
    loss : {'hinge', 'squared_hinge', 'logistic', 'huberised_hinge'}, default='hinge'
        ``hinge`` is the SVM, ``logistic`` gives logistic regression and its probabilities,
        ``huberised_hinge`` is the hinge with a parabola of width ½ in place of its kink.
    penalty : {'l2'}, default='l2'
        The regulariser, ½|w|². For code that sets it: there is no other.
    solver : {'auto', 'ocas', 'cpa', 'dcd', 'sgd', 'pegasos'}, default='auto'
        ``auto`` chooses by the shape of the data: small data are one compiled call of Newton's
        method, which is also the choice where features are few; otherwise it begins with ``dcd``,
        and goes on with Newton's method if that will be done before. On disk without few features,
        on clusters and for joint problems of all classes it takes ``ocas``, the optimised
        cutting plane algorithm. ``cpa`` is the plain one of SVM-perf and BMRM. ``dcd`` is dual
        coordinate descent, for data in memory. These take every loss. ``sgd`` (Bottou) and
        ``pegasos`` are stochastic: quick, rough, and measured by the same certificate.
    dual : bool or 'auto', default='auto'
        Not used: every solver here bounds the dual, and the optimum is the same. For code that
        sets it.
    tol : float, default=1e-3
        Gap at which to stop, in the unit of ``stopping``.
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
        Let no coefficient be negative.
    bounds : pair (low, high) or None, default=None
        Bounds on the coefficients, each a number or an array with one per feature; infinite where
        there is none. They hold for the coefficients of every class, not for the bias; with
        ``positive`` both hold. Problems with bounds are solved by ``ocas``, which ``auto`` is
        then, or ``cpa``.
    max_iter : int or None, default=None
        Most iterations per problem, or epochs of the stochastic solvers. An iteration is a cut,
        a step of Newton's method, or some passes of ``dcd`` and a certificate; those of all
        solvers that ``auto`` takes count together. None for no limit, for the stochastic solvers'
        own number of epochs, or for the work of 5000 passes of ``dcd``.
    time_limit : float or None, default=None
        Seconds per fit.
    n_jobs : int or None, default=None
        Threads; −1 or None for all cores that the process may use. The result does not
        depend on it, to the last bit.
    executor : dask.distributed.Client, DaskCluster or None, default=None
        A Dask cluster whose workers run the fit; the rows go to them. The result is the same, to
        the last bit; solvers are ``ocas`` and ``cpa``, and ``auto`` is ``ocas`` then.
    warm_start : bool, default=False
        Start from the previous ``coef_`` and, if data and weights are the same, from
        the cuts that were active there: then another C costs few iterations.
    random_state : int, RandomState or None, default=None
        Used by the solvers that visit rows in random order, ``dcd``, ``sgd`` and ``pegasos``;
        ``auto`` takes a fixed seed if None.
    verbose : int, default=0
        1 shows a line of progress in a terminal or notebook and writes records to
        the ``cutplane`` logger elsewhere.
    callback : callable or None, default=None
        Called with an :class:`~cutplane.Iteration` after every iteration; a true
        answer stops the fit.
    checkpoint : Checkpoint, path or None, default=None
        Write the state of the fit there, every minute or as :class:`~cutplane.Checkpoint`
        says, and go on from it if it exists. For the solvers ``ocas`` and ``cpa``; ``auto``
        is ``ocas`` then. With a checkpoint the model has other last bits than without.
    coef_threshold : float or None, default=None
        None for ``coef_`` as an array. A number makes it a CSR matrix that keeps the weights w
        with |w| ≥ coef_threshold; 0 keeps all but zeros. Small weights are dropped as soon as a
        class or label is solved, so that classes × features are never in memory at once. The
        intercept is then fitted anew, and certificates are those of the model
        without these weights: the gap says what they were worth, and may exceed ``tol``.

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
        Whether the model was fitted to an indicator matrix Y of labels.
    n_iter_ : int
        Iterations; the most of any problem.
    certificate_ : Certificate
        ``primal, dual, gap, relative_gap, kind`` of the objective above. For one-vs-rest with more
        than two classes, and for labels, that of the sum of all problems' objectives.
    certificates_ : list of Certificate
        One per problem: one, or one per class for one-vs-rest, or one per label.
    results_ : list of SolveResult
        One per problem: the certificate with status, trace and timings. With ``coef_threshold``
        their ``w`` are empty: they are in ``coef_``.
    calibration_ : Calibration
        What makes scores probabilities, in the model of a ``LinearSVCCV(calibrate=…)`` alone.
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        If X had string column names.

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
    _sparse_coef = True  # with coef_threshold, and after sparsify

    calibration_: Calibration
    multilabel_: bool = False
    sparse_labels_: bool  # whether Y was sparse, and predictions are

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        penalty: str = "l2",
        solver: str = "auto",
        dual: bool | str = "auto",
        tol: float = 1e-3,
        stopping: str = "relative",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        multi_class: str = "ovr",
        positive: bool = False,
        bounds: tuple[Any, Any] | None = None,
        max_iter: int | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        executor: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[Iteration], bool | None] | None = None,
        checkpoint: Checkpoint | str | PathLike[str] | None = None,
        coef_threshold: float | None = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.dual = dual
        self.tol = tol
        self.stopping = stopping
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.positive = positive
        self.bounds = bounds
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.executor = executor
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.coef_threshold = coef_threshold

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
        settings, start = self._check_common(), self._start()
        if is_indicator(y):
            return self._fit_labels(X, y, sample_weight, dual_init, settings, start)
        rows = open_rows(self, X, y, sample_weight)
        self._forget_labels()
        self.classes_, encoded = encode_classes(rows.y)
        self.__dict__.pop("calibration_", None)  # of another model
        weights, _ = weigh_classes(self, encoded, rows.weights)
        with rows.blocks(self._outputs()) as matrix:
            form = self._form(matrix, encoded, weights)
            problems = self._problems(matrix, form, encoded, weights)
            dual_points = None
            if dual_init is not None:
                dual_points = self._check_dual_init(dual_init, form, len(encoded))
            results = self._fit_linear((X, y), matrix, form, problems, settings, start, dual_points)
        warn_of(settings, None, results)
        return self

    def _fit_labels(
        self,
        X: Any,
        Y: Any,
        sample_weight: Any,
        dual_init: Any,
        settings: Settings,
        start: tuple[Any, np.ndarray] | None,
    ) -> LinearSVC:
        """Fit a problem per column of an indicator matrix."""
        labels = Labels(Y)
        n_rows, count = labels.shape
        if self.multi_class in JOINT:
            raise ValueError(
                f"multi_class={self.multi_class!r} is for one class per row, but Y is a matrix of "
                "labels; set multi_class='ovr'"
            )
        rows = open_rows(self, X, np.zeros(n_rows), sample_weight)
        labels.check(rows.weights)
        self.__dict__.pop("calibration_", None)
        self.classes_, self.multilabel_, self.sparse_labels_ = np.arange(count), True, labels.sparse
        constant = float(self.intercept_scaling or 0.0) if self.fit_intercept else 0.0
        form = ModelForm(
            problems=count,
            outputs=None,
            constant=constant,
            free_bias=bool(self.fit_intercept) and constant == 0.0,
        )
        self._check_loss()
        model = LinearSVC(self.C, class_weight=self.class_weight)
        model.classes_ = np.arange(2)  # of each problem

        with rows.blocks() as matrix:

            def make(k: int) -> RowProblem:
                column = labels.column(k)
                try:
                    weights, _ = weigh_classes(model, column, rows.weights)
                except ValueError as error:
                    raise ValueError(f"Y, column {k}: {error}") from error
                return self._problem(f"label {k}", matrix, form, column == 1, weights)

            problems = Problems(count, make)
            dual_points = None
            if dual_init is not None:
                dual_points = self._check_dual_init(dual_init, form, n_rows)
            results = self._fit_linear((X, Y), matrix, form, problems, settings, start, dual_points)
        warn_of(settings, None, results)
        return self

    def _forget_labels(self) -> None:
        """The fit to come is of one class per row."""
        for name in ("multilabel_", "sparse_labels_"):
            self.__dict__.pop(name, None)

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        # As of now: a program may have added losses of its own.
        choices = [name for name, loss in LOSSES.items() if not loss.regression]
        check_choice("loss", self.loss, choices)
        check_choice("multi_class", self.multi_class, MULTI_CLASS)
        check_flag("fit_intercept", self.fit_intercept)
        if self.penalty != "l2":
            raise ValueError(
                f"penalty must be 'l2', got {self.penalty!r}: the regulariser is ½|w|²; for sparse "
                "coefficients take sklearn.svm.LinearSVC(penalty='l1', dual=False)"
            )
        if self.dual != "auto":
            check_flag("dual", self.dual)
        if self.intercept_scaling is not None:
            check_number("intercept_scaling", self.intercept_scaling, above=0.0)
        if self.coef_threshold is not None:
            check_number("coef_threshold", self.coef_threshold, at_least=0.0)
            if self.checkpoint is not None:
                raise ValueError(
                    "a checkpoint keeps all weights: leave out checkpoint or coef_threshold; "
                    "sparsify(threshold) drops small weights after the fit"
                )
        return settings

    def _joint(self) -> bool:
        """Whether all classes make one problem."""
        return self.multi_class in JOINT and len(self.classes_) > 2

    def _outputs(self) -> int:
        """Scores per row of a problem."""
        return len(self.classes_) if self._joint() else 1

    def _form(
        self, matrix: BlockedMatrix | RemoteMatrix, encoded: np.ndarray, weights: np.ndarray
    ) -> ModelForm:
        """How many problems there are, and where their bias is."""
        joint = self._joint()
        self._check_loss()
        wanted = JOINT[self.multi_class] if joint else self.loss
        if joint and (self.loss != wanted or self.solver not in ("auto", "ocas", "cpa")):
            raise ValueError(
                f"multi_class={self.multi_class!r} takes loss={wanted!r} and solver='auto', 'ocas' "
                f"or 'cpa', got loss={self.loss!r}, solver={self.solver!r}"
            )
        classes = len(self.classes_)
        constant, nearly_free = 0.0, None
        if self.fit_intercept and self.intercept_scaling is not None:
            constant = float(self.intercept_scaling)
        elif self.fit_intercept and joint:
            share = np.bincount(encoded, weights) / weights.sum()
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
            constant = nearly_free.constant
        return ModelForm(
            problems=1 if joint or classes == 2 else classes,
            outputs=classes if joint else None,
            constant=constant,
            free_bias=bool(self.fit_intercept) and constant == 0.0,
            nearly_free=nearly_free,
        )

    def _check_loss(self) -> None:
        """Not every solver takes every loss."""
        if self.loss not in LOSSES_OF.get(self.solver, LOSSES):
            *others, last = (repr(loss) for loss in LOSSES_OF[self.solver])
            raise ValueError(
                f"solver={self.solver!r} takes loss={', '.join(others)} or {last}, got "
                f"{self.loss!r}; solver='auto' takes every loss"
            )

    def _problems(
        self,
        matrix: BlockedMatrix | RemoteMatrix,
        form: ModelForm,
        encoded: np.ndarray,
        weights: np.ndarray,
    ) -> Sequence[Problem]:
        """All classes at once, or each class against the rest."""

        def make(k: int) -> RowProblem:
            if form.outputs is not None:
                from ..risks.multiclass import CrammerSingerRisk, MultinomialRisk

                several = self.multi_class == "multinomial"
                kind = MultinomialRisk if several else CrammerSingerRisk
                risk = kind(form.outputs)
                numbers = encoded.astype(np.int64)
                return self._problem("all classes", matrix, form, numbers, weights, risk)
            positive = k if form.problems > 1 else 1
            label = f"class {self.classes_[positive]}"
            return self._problem(label, matrix, form, encoded == positive, weights)

        return Problems(form.problems, make)

    def _problem(
        self,
        label: str,
        matrix: BlockedMatrix | RemoteMatrix,
        form: ModelForm,
        labels: np.ndarray,
        weights: np.ndarray,
        risk: Risk | None = None,
    ) -> RowProblem:
        """A joint problem of class numbers, or with the loss that of the true rows."""
        if risk is None:
            risk, labels = LossRisk(LOSSES[self.loss]()), np.where(labels, 1.0, -1.0)
        return RowProblem(
            label,
            matrix,
            form.constant,
            Targets.make(labels, weights),
            risk,
            form.free_bias,
            form.nearly_free,
            self.coef_threshold,
            bounds=bounds_of(self, matrix.shape[1]),
        )

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
        parts = (
            (some, scores + self.intercept_[some])
            for some, scores in self._scores_by_parts(matrix, OUTPUTS_TOGETHER)
        )
        return positives(parts, len(matrix), len(self.classes_), self.sparse_labels_)

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
        one_by_one = scores if self._joint() else -np.logaddexp(0.0, -scores)
        return one_by_one - logsumexp(one_by_one, axis=1, keepdims=True)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes; for ``loss='logistic'``, and for a calibrated model.

        That of a class is 1/(1 + exp(−score)). With more than two classes these are
        the probabilities of each class against the rest, divided by their sum; with
        ``multi_class='multinomial'`` exp(score), divided by the sum. Labels of which a row may
        have several have each their own probability. The model of a
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

        Predictions and a further ``fit`` make arrays of some rows of it for a while.

        Parameters
        ----------
        threshold : float, default=0
            Drop the weights w with |w| < threshold as well. ``certificate_`` is that of the
            model before: for that of the smaller model set ``coef_threshold`` and fit.

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
