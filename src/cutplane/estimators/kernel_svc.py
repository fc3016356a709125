"""Classification with kernels."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from .._blas import single_threaded_blas
from .._checks import check_choice, check_flag, check_weights
from ..exec import Executor
from ..result import SolveResult, Status
from ..solvers.decomposition.problem import DualProblem
from ._attributes import check_kernel_model, check_stored, stored_classes
from ._base import dense
from ._calibration import Calibration, check_calibrate, check_calibration
from ._fit import Lazy, Settings, solve, warn_of, with_callbacks
from ._kernel import (
    KernelMachine,
    KernelProblem,
    KernelRows,
    basis_attributes,
    executor_for,
    kernel_and_rows,
)
from ._rows import checked_rows, encode_classes, weigh_classes


def _gives_probabilities(model: Any) -> bool:
    """Whether the scores are, or will be, calibrated."""
    if model.calibrate is not None:
        return True
    raise AttributeError("probabilities are for calibrate='sigmoid' or 'isotonic', got None")


@dataclass(eq=False, repr=False, kw_only=True)
class SVC(ClassifierMixin, KernelMachine):
    """Support vector classifier with kernels and a certificate of optimality.

    Minimises ½|w|² + C·Σ_i weight_i·max(0, 1 − y_i(<w, φ(x_i)> + b)) in the kernel's feature space
    by decomposition of the dual. Parameters and attributes have the names and meanings of
    scikit-learn's ``SVC``. The page "Differences from scikit-learn" of the documentation lists the
    differences.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses. It multiplies their sum.
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'precomputed'} or callable, default='rbf'
        A callable gets two blocks of rows and returns their kernel values. With ``precomputed``, X
        is the matrix of kernel values.
    degree : int, default=3
        The degree of the kernel ``poly``.
    gamma : {'scale', 'auto'} or float, default='scale'
        The γ of the kernels ``rbf``, ``poly`` and ``sigmoid``. ``scale`` means 1 / (n_features ·
        X.var()), ``auto`` means 1 / n_features.
    coef0 : float, default=0.0
        The constant term of the kernels ``poly`` and ``sigmoid``.
    shrinking : bool, default=True
        Whether to leave out variables that will probably stay at their bounds, and to check them at
        the end. The answer is the same up to ``tol``.
    probability : False, default=False
        True is an error: use ``calibrate``. The parameter exists for compatibility with
        scikit-learn.
    tol : float, default=1e-3
        The fit stops when the gap is at most this. ``stopping`` says in which unit. If it is at
        least 1e-4, kernel values of more than 500 rows are computed in single precision where that
        is precise enough. The certificate is always computed in double precision.
    cache_size : float, default=200
        Memory for kernel rows, in MB (10⁶ bytes).
    class_weight : dict or 'balanced', optional
        Factors on C by class.
    max_iter : int or None, default=None
        Largest number of iterations (working sets) per problem. None or −1 means no limit. Then a
        problem ends as numerically limited if twice as many steps do not halve the gap.
    decision_function_shape : {'ovr', 'ovo'}, default='ovr'
        For more than two classes: whether ``decision_function`` returns a score per class
        or per pair of classes.
    break_ties : bool, default=False
        Whether ``predict`` follows the scores per class instead of the votes of the pairs.
    multi_class : {'ovo', 'ovr'}, default='ovo'
        For more than two classes: one problem per pair of classes, as in
        scikit-learn, or one per class against the rest.
    working_set_size : int or None, default=None
        Number of variables to optimise at a time, which must be even; 2 is SMO. None means all
        variables of a small problem, otherwise as many as make one product of matrices fast.
    n_jobs : int or None, default=None
        Number of threads; None means all cores that the process may use. It does not change a bit
        of the result.
    time_limit : float or None, default=None
        Limit of one fit in seconds.
    warm_start : bool, default=False
        Start from the dual variables of the fit before, scaled to the new C.
    verbose : int, default=0
        1 shows a line of progress with the violation and the number of active variables.
    random_state : int, RandomState or None, default=None
        Not used: the fit draws no random numbers. It exists for compatibility with scikit-learn.
    callback : callable or None, default=None
        Called with an :class:`~cutplane.Iteration` that also has ``violation`` and ``active``. If
        it returns something true, the fit stops.
    checkpoint : Checkpoint, path or None, default=None
        Write the dual point to this file, every minute or as :class:`~cutplane.Checkpoint` says,
        and continue from the file if it exists.
    calibrate : {'sigmoid', 'isotonic'} or None, default=None
        Provide probabilities, by Platt's sigmoid or by isotonic regression on the scores of
        held-out rows. To get these, there is one more fit per fold, which leaves out the rows of
        the fold. All fits have the same kernel, with the ``gamma`` of all rows, and compute its
        values only once if there are few rows. Sample weights count, class weights do not.
        ``callback``, ``checkpoint`` and ``warm_start`` apply to the fit to all rows, ``time_limit``
        to each fit.
    cv : int, splitter, iterable or None, default=None
        The folds of ``calibrate``, as in scikit-learn: the number of stratified folds (None means
        5), a splitter or the splits.
    stopping : {'relative', 'absolute', 'epsilon', 'kkt'}, default='relative'
        ``relative``: gap ≤ tol·objective. ``absolute``: gap ≤ tol. ``epsilon``: gap ≤ C·(sum of
        weights)·tol. ``kkt``: the violation of the optimality conditions is at most tol, which is
        libsvm's rule. It says nothing about the gap: if the gap is above 1 %, there is a warning.

    Attributes
    ----------
    support_ : ndarray of int32, shape (n_support,)
        Rows that are support vectors, by class.
    support_vectors_ : ndarray or CSR matrix, shape (n_support, n_features)
    n_support_ : ndarray of int32, shape (n_classes,)
    dual_coef_ : ndarray or CSR matrix, shape (n_classes − 1, n_support)
        y·α in scikit-learn's layout; with ``multi_class='ovr'`` shape (n_classes, n_support).
        Sparse if X was.
    intercept_ : ndarray, shape (n_problems,)
    coef_ : ndarray or CSR matrix, shape (n_problems, n_features)
        For the linear kernel; not to be changed. Sparse if X was.
    classes_ : ndarray, shape (n_classes,)
    class_weight_ : ndarray, shape (n_classes,)
    n_iter_ : int
        Number of iterations; with several problems the largest.
    certificate_ : Certificate
        About the objective above, in double precision, with all rounding errors included; with
        several problems, about the sum of their objectives. ``kind`` is 'exact' if the kernel's
        form, or a factorisation of up to 2,000 rows, proves that the kernel is positive
        semidefinite. It is 'withheld', with an infinite gap, if the kernel is not, and
        'conditional' otherwise.
    certificates_ : list of Certificate
        One per problem, in the order of ``intercept_``.
    results_ : list of SolveResult
        One per problem: the certificate with status, trace and timings; ``w`` holds the dual
        variables y·α.
    fit_status_ : int
        0 if all problems converged.
    calibration_ : Calibration
        Converts scores into probabilities; only with ``calibrate``.
    shape_fit_ : tuple of int
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from cutplane import SVC
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = SVC(C=10.0).fit(X, y)
    >>> model.certificate_.relative_gap < 1e-3
    True
    """

    C: float = 1.0
    probability: bool | str = False
    class_weight: dict[Any, float] | str | None = None
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    multi_class: str = "ovo"
    random_state: Any = None
    calibrate: str | None = None
    cv: Any = None

    calibration_: Calibration = field(init=False)

    # -- fitting ----------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            For a precomputed kernel the values of all pairs, (n_samples, n_samples).
        y : array-like, shape (n_samples,)
            Class labels.
        sample_weight : array-like, shape (n_samples,), optional
            Factors on C by row; rows of weight 0 do not count.

        Returns
        -------
        self
        """
        data, settings = (X, y), self._check_common()
        X, y = checked_rows(self, X, y=y)
        kernel, X = kernel_and_rows(self, X)
        self.classes_, encoded = encode_classes(y)
        sample_weight = check_weights(sample_weight, X)
        weights, self.class_weight_ = weigh_classes(self, encoded, sample_weight)
        bounds = settings.C * weights
        tasks, groups = self._tasks(encoded)
        self.__dict__.pop("calibration_", None)  # of another fit
        with executor_for(self, *X.shape) as executor:
            rows = KernelRows(self, kernel, X, executor, settings, float(bounds.max()))
            if len(tasks) > 1 or self.calibrate is not None:
                rows.split(groups)
            if self.calibrate is not None:
                self.calibration_ = self._cross_fit(
                    rows, X, y, encoded, sample_weight, settings, executor
                )
            problem = partial(self._problem, rows, tasks, groups, encoded, bounds)
            problems = [problem(0)] if len(tasks) == 1 else Lazy(len(tasks), problem)
            attributes = partial(self._assemble, rows, X, encoded, tasks, groups)
            results = self._solve(data, problems, settings, executor, attributes)
        self.fit_status_ = int(any(r.status is not Status.CONVERGED for r in results))
        warn_of(settings, problems[0], results)
        return self

    def _cross_fit(
        self,
        rows: KernelRows,
        X: Any,
        y: np.ndarray,
        encoded: np.ndarray,
        sample_weight: np.ndarray,
        settings: Settings,
        executor: Executor,
    ) -> Calibration:
        """The calibration of scores of rows that a fold's fit has not seen.

        All folds share the kernel values: the rows that a fold holds out have weight 0 in its fit.
        """
        tasks, groups = self._tasks(encoded)
        quiet = dataclasses.replace(
            settings, verbose=0, callback=None, checkpoint=None, warm_start=False
        )
        results: list[SolveResult] = []
        held_out = []
        folds = check_cv(self.cv, y, classifier=True).split(X, y)
        for fold, (train, test) in enumerate(folds):
            counts = np.bincount(train, minlength=len(encoded))  # rows may be repeated
            try:
                weights, _ = weigh_classes(self, encoded, sample_weight * counts)
            except ValueError as error:
                raise ValueError(f"fold {fold} of cv: {error}") from error
            problem = partial(self._problem, rows, tasks, groups, encoded, settings.C * weights)
            problems = Lazy(len(tasks), problem)
            fitted = solve(problems, quiet, executor, complete=False).results
            model = copy.copy(self)
            points = [(result.w, result.bias) for result in fitted]
            model.__dict__.update(self._assemble(rows, X, encoded, tasks, groups, points))
            scores = model._class_scores(model._scores_of(X[test]))
            held_out.append((scores, encoded[test], sample_weight[test]))
            results += fitted
        warn_of(dataclasses.replace(settings, name="SVC, for a fold of cv,"), None, results)
        assert self.calibrate is not None
        return Calibration.of(self.calibrate, self.classes_, held_out)

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        check_choice("multi_class", self.multi_class, ("ovo", "ovr"))
        check_flag("break_ties", self.break_ties)
        if self.probability not in (False, "deprecated"):  # the latter is scikit-learn's default
            raise ValueError(
                f"probability must be False, got {self.probability!r}; for probabilities set "
                "calibrate='sigmoid', or fit "
                "sklearn.calibration.CalibratedClassifierCV(SVC(...), ensemble=False)"
            )
        if self.calibrate is not None:
            check_calibrate(self.calibrate)
        return settings

    def _one_against_rest(self) -> bool:
        return self.multi_class == "ovr" and len(self.classes_) > 2

    def _tasks(self, encoded: np.ndarray) -> tuple[list[tuple[int, int]], list[np.ndarray]]:
        """Of each problem the positive and the negative class (−1: all others), and groups of rows.

        The groups are the rows of each class; all rows if the problems are on all.
        """
        count, every = len(self.classes_), [np.arange(len(encoded))]
        if count == 2:
            return [(1, -1)], every
        if self.multi_class == "ovr":
            return [(k, -1) for k in range(count)], every
        order = np.argsort(encoded, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(encoded))[:-1])
        return list(itertools.combinations(range(count), 2)), groups

    def _problem(
        self,
        rows: KernelRows,
        tasks: list[tuple[int, int]],
        groups: list[np.ndarray],
        encoded: np.ndarray,
        bounds: np.ndarray,
        k: int,
    ) -> KernelProblem:
        """The dual of a pair of classes, or of a class against the rest."""
        names, (positive, negative) = self.classes_, tasks[k]
        if negative < 0:
            own = encoded == positive
            upper = bounds * own
            problem = DualProblem(1.0 - 2.0 * own, upper - bounds, upper)
            rest = names[0] if len(names) == 2 else "the rest"
            return KernelProblem(f"{names[positive]} against {rest}", problem, rows)
        first, second = bounds[groups[positive]], bounds[groups[negative]]
        linear, lower, upper = np.zeros((3, len(first) + len(second)))
        linear[: len(first)], linear[len(first) :] = -1.0, 1.0
        upper[: len(first)], lower[len(first) :] = first, -second
        label = f"{names[positive]} against {names[negative]}"
        return KernelProblem(label, DualProblem(linear, lower, upper), rows, tasks[k])

    def _assemble(
        self,
        rows: KernelRows,
        X: Any,
        encoded: np.ndarray,
        tasks: list[tuple[int, int]],
        groups: list[np.ndarray],
        points: list[tuple[np.ndarray, float]],
    ) -> dict[str, Any]:
        """Fitted attributes, coefficients in scikit-learn's layout.

        There may be fewer points than problems: the other problems are not solved yet, and their
        scores are 0.

        In one-vs-one row r of ``dual_coef_`` holds, for a support vector of class k, its
        coefficient against class r if r < k, else against class r + 1.
        """
        classes = len(self.classes_)
        one_vs_one = classes > 2 and not self._one_against_rest()
        height = classes - 1 if one_vs_one else len(tasks)
        every = np.zeros((height, len(encoded)))
        for k, ((a, b), (beta, _)) in enumerate(zip(tasks, points, strict=False)):
            if b < 0:
                every[k] = beta
            else:
                every[b - 1, groups[a]] = beta[: len(groups[a])]
                every[a, groups[b]] = beta[len(groups[a]) :]
        support = np.flatnonzero(np.any(every != 0.0, axis=0))
        support = support[np.argsort(encoded[support], kind="stable")]
        bias = np.zeros(len(tasks))
        bias[: len(points)] = [bias for _, bias in points]
        return {
            **basis_attributes(rows.kernel, X, support, every[:, support], like_rows=True),
            "n_support_": np.bincount(encoded[support], minlength=classes).astype(np.int32),
            "intercept_": bias,
            "classes_": self.classes_,
        }

    def _check_attributes(self) -> None:
        classes = stored_classes(self)
        if classes == 2:
            check_kernel_model(self, 1, 1)
        elif self.multi_class == "ovr":
            check_kernel_model(self, classes, classes)
        else:
            check_kernel_model(self, classes - 1, classes * (classes - 1) // 2)
        check_stored(self, "n_support_", (classes,), np.int32)
        counts = self.n_support_
        if counts.min() < 0 or counts.sum() != len(self.support_):
            raise ValueError("n_support_ must count the support vectors of each class")
        check_calibration(self, classes)

    # -- prediction -------------------------------------------------------------------

    def _score_coef(self) -> np.ndarray:
        """One row per problem."""
        classes, dual_coef = len(self.classes_), super()._score_coef()
        if classes == 2 or self._one_against_rest():
            return dual_coef
        first, second = _pairs(classes)  # the classes of every pair
        own = np.repeat(np.arange(classes), self.n_support_)  # the class of every support vector
        coef = np.where(own == first[:, None], dual_coef[second - 1], 0.0)
        np.copyto(coef, dual_coef[first], where=own == second[:, None])
        return coef

    def _sums(
        self, change: Callable[[np.ndarray], np.ndarray] = np.asarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """By the class of a support vector: it has a part in the pairs of its class only."""
        classes = len(self.classes_)
        if classes == 2 or self._one_against_rest():
            return super()._sums(change)
        coef, first, second = change(dense(self.dual_coef_)).T, *_pairs(classes)
        ends = np.cumsum(self.n_support_)
        own = [slice(end - count, end) for end, count in zip(ends, self.n_support_, strict=True)]

        def sums(values: np.ndarray) -> np.ndarray:
            # of every class against each of the others
            parts = np.stack([values[:, part] @ coef[part] for part in own])
            return (parts[first, :, second - 1] + parts[second, :, first]).T

        return sums

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes or of the pairs of classes.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            For a precomputed kernel (n_samples, rows of the training data).

        Returns
        -------
        scores : ndarray, shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            For two classes positive means ``classes_[1]``, for a pair of classes the
            first of them.
        """
        scores = self._scores(X)
        if self.decision_function_shape == "ovo" and len(self.classes_) > 2:
            return scores
        return self._class_scores(scores)

    def _class_scores(self, scores: np.ndarray) -> np.ndarray:
        """Scores of the classes from those of the problems; for two classes, of the second one."""
        if len(self.classes_) == 2:
            return scores[:, 0]
        if self._one_against_rest():
            return scores
        return _ovr_decision_function(scores < 0, -scores, len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray, shape (n_samples,)
        """
        check_is_fitted(self)
        classes = len(self.classes_)
        if self.break_ties and self.decision_function_shape == "ovo" and classes > 2:
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if classes == 2:
            best = (self._signed_scores(X)[:, 0] > 0).astype(np.intp)
        elif self._one_against_rest() or self.break_ties:
            best = self._class_scores(self._scores(X)).argmax(axis=1)
        else:
            best = _votes(self._signed_scores(X), classes).argmax(axis=1)
        return self.classes_[best]

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of the classes; with ``calibrate``.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        logarithms : ndarray, shape (n_samples, n_classes)
        """
        scores = self._class_scores(self._scores(X))
        return self._known_calibration().log_probabilities(scores)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes; with ``calibrate``.

        :meth:`predict` follows the scores: now and then it names a class that is not the
        most probable one.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray, shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self._class_scores(self._scores(X))
        return self._known_calibration().probabilities(scores)

    def _known_calibration(self) -> Calibration:
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                "this SVC was fitted without calibrate; call fit again for probabilities"
            )
        return self.calibration_


@lru_cache(maxsize=4)
def _pairs(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The first and the second class of every pair, in scikit-learn's order; not to be changed."""
    first, second = np.triu_indices(classes, 1)
    return first, second


def _votes(scores: np.ndarray, classes: int) -> np.ndarray:
    """How many of the pairs each class wins."""
    first, second = _pairs(classes)
    winner = np.zeros((len(first), classes))
    pairs = np.arange(len(first))
    winner[pairs, first], winner[pairs, second] = 1.0, -1.0
    with single_threaded_blas():  # the start of threads would take longer than this product
        return (scores > 0) @ winner + np.bincount(second, minlength=classes)
