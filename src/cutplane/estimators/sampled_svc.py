"""Classification with kernels on many rows, by blocks of rows or by sampled cuts."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._blas import single_threaded_blas
from .._checks import check_choice, check_integer, check_weights
from ..exec import Executor
from ..kernels import Kernel, KernelMatrix, ProductMatrix, kernel_matrix
from ..losses import Hinge
from ..objective.constant import ConstantOracle, RowPopulation
from ..objective.sampled import SampledOracle
from ..objective.score_risk import RowScoreRisk
from ..result import Iteration, SolveResult, Status
from ..risks import LossRisk, Risk, Targets
from ..risks.multiclass import CrammerSingerRisk
from ..solvers.row_ascent import RowAscentOracle
from ._attributes import check_kernel_model, stored_classes
from ._fit import Settings, seeds, warn_of, with_callbacks
from ._kernel import (
    SINGLE_BOUND,
    SINGLE_TOL,
    KernelModel,
    basis_attributes,
    check_kernel,
    executor_for,
    kernel_and_rows,
    rows_to_score,
)
from ._rows import checked_rows, encode_classes, weigh_classes
from ._sampled import (
    ConstantProblem,
    CutBasisProblem,
    RowAscentProblem,
    Sampling,
    kind_of,
    reduce_basis,
    sampling_bounds,
    single_scores,
)

logger = logging.getLogger("cutplane")

METHODS = ("auto", "blocks", "linear", "constant", "exact")
# Models of fewer rows are fast enough in double precision.
SINGLE_BASIS = 2000
# Default number of rows that samples are drawn from. On 100,000 rows of Covertype with a narrow
# kernel, half as many gave 16.5 % errors, and these 14.6 % with twice the time of a prediction.
POOL = 20_000
# Up to so many rows SVC took about as much time as this, or less, wherever both were measured.
FEW_ROWS = 50_000


@dataclass(eq=False, repr=False)
class SampledCutSVC(ClassifierMixin, KernelModel):
    """Support vector classifier with kernels for many rows, which keeps no kernel values.

    Minimises ½|w|² + C·Σ_i weight_i·max(0, 1 − y_i·<w, φ(x_i)>) in the kernel's feature space
    (there is no bias), by ascent in the dual on blocks of rows, or by cutting planes whose vectors
    are means over samples of rows (Yu & Joachims 2008).

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'precomputed'} or callable, default='rbf'
        As for :class:`SVC`.
    C : float, default=1.0
        Weight of the losses, as in :class:`SVC`. The papers' C is this C times the number of rows.
    method : {'auto', 'blocks', 'linear', 'constant', 'exact'}, default='auto'
        ``blocks``: every step maximises the dual over a block of rows, drawn by what they could
        gain; objective and lower bound are known, and proved unless ``time_limit`` or Ctrl-C ends
        the fit. ``linear``: every cut is a sample of the rows that have a loss; the time is linear
        in the number of rows, the objective is known and the lower bound estimated. ``constant``:
        every cut is a sample of all rows; the time does not depend on the number of rows, and both
        objective and lower bound are estimates. ``exact``: nothing is sampled; the number of kernel
        values is quadratic in that of the rows, and the certificate is exact. ``constant`` with a
        ``sample_size`` of all rows is ``exact``. ``auto``: ``blocks``; ``linear`` if there are no
        more than ``start_rows`` rows, and with ``multi_class='crammer_singer'``, ``solver='cpa'``
        or ``max_basis='pool'``.
    sample_size : int, default=400
        Number of rows in a sample or a block.
    degree, gamma, coef0
        Parameters of the kernel, as for :class:`SVC`.
    solver : {'ocas', 'cpa'}, default='ocas'
        The stabilised step, with an exact search on a line and cuts near the best point, or the
        plain one of the paper. The constant-time method always takes the plain one, and
        blocks take neither.
    multi_class : {'ovr', 'crammer_singer'}, default='ovr'
        For more than two classes: one problem per class against the rest, or the joint problem.
    class_weight : dict or 'balanced', optional
        Factors on C by class.
    tol : float, default=1e-3
        The fit stops when the gap is at most this. ``stopping`` says in which unit.
    stopping : {'relative', 'absolute', 'epsilon'}, default='relative'
        ``relative``: gap ≤ tol·objective. ``absolute``: gap ≤ tol. ``epsilon``:
        gap ≤ C·(sum of weights)·tol, the paper's rule.
    passes : int, default=4
        The constant-time method ends when this many samples in a row show no violation.
    start_rows : int, default=4000
        With ``method='linear'`` and ``solver='ocas'``: the problem is first solved on so many rows
        without sampling, and the solution is the first cut. If there are no more rows than that,
        this is the solution, and the certificate is exact. 0: start with no cut.
    max_basis : int, 'pool' or None, default=None
        Most rows that predictions are computed from. With a number, a model with more rows is
        projected to the span of so many of them; ``basis_error_`` bounds what that changes.
        'pool': with ``method='linear'`` all samples are drawn from the same 20,000 rows, taken
        at random. The objective is that of all rows; the estimated bound and the gap compare it
        with the best model of these 20,000 rows alone, not with the best of all. None: no limit.
    max_iter : int or None, default=None
        Largest number of iterations per problem.
    time_limit : float or None, default=None
        Limit of one fit in seconds.
    n_jobs : int or None, default=None
        Number of threads; None means all cores that the process may use. It does not change a bit
        of the result.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    verbose : int, default=0
        1 shows a line of progress.
    callback : callable or None, default=None
        Called with an :class:`Iteration` after every iteration. If it returns something true, the
        fit stops.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    support_ : ndarray of int32, shape (n_basis,)
        The training rows that predictions need.
    support_vectors_ : ndarray or CSR matrix, shape (n_basis, n_features)
    dual_coef_ : ndarray, shape (1, n_basis) or (n_classes, n_basis)
    n_basis_ : int
        Number of kernel values per prediction.
    basis_error_ : float
        |w − projection of w| after a reduction to ``max_basis`` rows: no score changes by more
        than this times √k(x, x). 0 without.
    n_kernel_values_ : int
        Number of kernel values that the fit computed.
    n_iter_ : int
    certificate_ : Certificate
        In the objective above; with several problems of the sum of theirs. ``kind`` is 'estimated'
        where cuts were sampled, or where there was no time for a proof: the lower bound then holds
        approximately, with ``max_basis='pool'`` only for models of the pool, and with
        ``method='constant'`` the objective is an estimate, too. It is 'withheld' if the kernel is
        not positive semidefinite, and 'conditional' if neither its form nor a factorisation proves
        that it is.
    certificates_ : list of Certificate
        One per problem.
    results_ : list of SolveResult
        One per problem: the certificate with status, trace and timings; ``w`` holds the
        coefficients of the rows.
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    See Also
    --------
    SVC : Has a bias, and is as fast or faster on up to some 50,000 rows.
    CholeskyFeatures : Explicit features for :class:`LinearSVC`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from cutplane import SampledCutSVC
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = SampledCutSVC(gamma=2.0, random_state=0).fit(X, y)
    >>> model.certificate_.kind, bool(model.score(X, y) > 0.99)
    ('exact', True)
    """

    kernel: str | Callable[[Any, Any], Any] = "rbf"
    C: float = 1.0
    _: KW_ONLY
    method: str = "auto"
    sample_size: int = 400
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    solver: str = "ocas"
    multi_class: str = "ovr"
    class_weight: dict[Any, float] | str | None = None
    tol: float = 1e-3
    stopping: str = "relative"
    passes: int = 4
    start_rows: int = 4000
    max_basis: int | str | None = None
    max_iter: int | None = None
    time_limit: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    callback: Callable[[Iteration], bool | None] | None = None

    _solvers = ("ocas", "cpa")

    # -- fitting ----------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SampledCutSVC:
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
        weights, self.class_weight_ = weigh_classes(self, encoded, check_weights(sample_weight, X))
        method = self._chosen_method(int(np.count_nonzero(weights)))
        self._name_better(method, X.shape[0])
        with single_threaded_blas(), executor_for(self, *X.shape) as executor:
            bound = settings.C * float(weights.max())
            matrix = self._matrix(method, kernel, X, executor, bound)
            risks = self._risks(encoded, weights)
            precise = cache(partial(kernel_matrix, kernel, X, executor, single=False))
            problems = self._problems(method, kernel, matrix, precise, risks, executor)

            def improve(results: list[SolveResult]) -> list[SolveResult]:
                self.n_kernel_values_ = sum(problem.oracle.kernel_values for problem in problems)
                self._samplings = [self._sampling(method, problem, matrix) for problem in problems]
                self.basis_error_ = 0.0
                if self.max_basis is None or self.max_basis == "pool":
                    return results
                double = precise() if isinstance(matrix, ProductMatrix) else matrix
                most = int(self.max_basis)
                results, self.basis_error_ = reduce_basis(double, risks, results, settings.C, most)
                return results

            results = self._solve(
                data,
                problems,
                settings,
                executor,
                partial(self._assemble, kernel, X, len(risks)),
                improve=improve,
            )
        self.fit_status_ = int(any(r.status is not Status.CONVERGED for r in results))
        warn_of(settings, problems[0], results)
        return self

    def _check_common(self) -> Settings:
        check_kernel(self)
        settings = super()._check_common()
        check_choice("method", self.method, METHODS)
        check_integer("sample_size", self.sample_size, at_least=1)
        check_choice("multi_class", self.multi_class, ("ovr", "crammer_singer"))
        check_integer("passes", self.passes, at_least=1)
        check_integer("start_rows", self.start_rows, at_least=0)
        if isinstance(self.max_basis, str):
            check_choice("max_basis", self.max_basis, ("pool",))
        elif self.max_basis is not None:
            check_integer("max_basis", self.max_basis, at_least=1)
        return settings

    def _chosen_method(self, rows: int) -> str:
        """What 'auto' is: blocks, unless samples are asked for or the start is the solution."""
        if self.method == "blocks" and self._joint():
            raise ValueError(
                "method='blocks' is for multi_class='ovr'; take 'linear' with 'crammer_singer'"
            )
        if self.method != "auto":
            return self.method
        sampled = self._joint() or self.solver != "ocas" or self.max_basis == "pool"
        return "linear" if sampled or rows <= self.start_rows else "blocks"

    def _matrix(
        self, method: str, kernel: Kernel, X: Any, executor: Executor, bound: float
    ) -> KernelMatrix:
        # An exact bound must hold for the kernel itself.
        single = method != "exact" and self.sample_size < X.shape[0]
        single &= self.tol >= SINGLE_TOL and bound <= SINGLE_BOUND
        single &= not (self._starts(method) and X.shape[0] <= self.start_rows)
        return kernel_matrix(kernel, X, executor, single=single, sums=not self._joint())

    def _sampling(self, method: str, problem: CutBasisProblem, matrix: KernelMatrix) -> Sampling:
        radius = float(np.sqrt(max(0.0, np.max(matrix.diagonal))))
        if self.max_basis == "pool" and not problem.oracle.exact:
            radius = math.inf  # the theorems hold only for samples of all rows
        return Sampling(
            exact=problem.oracle.exact,
            constant=method == "constant",
            centred=self.solver == "ocas",
            size=int(self.sample_size),
            radius=radius,
            C=float(self.C) * problem.total,
        )

    def _starts(self, method: str) -> bool:
        """Whether the solution on a sample is where the fit starts: the paper's step has none."""
        plain = method != "linear" or self.solver != "ocas"
        return self.start_rows > 0 and not plain and not self._joint()

    def _name_better(self, method: str, rows: int) -> None:
        """Say so if another estimator is known to do better."""
        if self.kernel == "linear":
            better = "LinearSVC(fit_intercept=False) solves the same problem, faster and exactly"
        elif method != "constant" and rows <= FEW_ROWS:
            better = f"SVC has a bias and is as fast or faster up to some {FEW_ROWS:,} rows"
        else:
            return
        logger.warning("SampledCutSVC is for many rows and other kernels than linear: %s", better)

    def _joint(self) -> bool:
        return self.multi_class == "crammer_singer" and len(self.classes_) > 2

    def _risks(self, encoded: np.ndarray, weights: np.ndarray) -> list[tuple[Risk, Targets]]:
        """The risk and the targets of every problem."""
        classes = len(self.classes_)
        if self._joint():
            targets = Targets.make(encoded.astype(np.int64), weights)
            return [(CrammerSingerRisk(classes), targets)]
        positives = [1] if classes == 2 else range(classes)
        labels = (np.where(encoded == k, 1.0, -1.0) for k in positives)
        return [(LossRisk(Hinge()), Targets.make(signs, weights)) for signs in labels]

    def _problems(
        self,
        method: str,
        kernel: Kernel,
        matrix: KernelMatrix,
        precise: Callable[[], KernelMatrix],
        risks: list[tuple[Risk, Targets]],
        executor: Executor,
    ) -> list[CutBasisProblem]:
        own = seeds(self.random_state, len(risks))
        kind, size = kind_of(kernel, matrix), int(self.sample_size)
        labels = ["joint"] if self._joint() else [str(label) for label in self.classes_]
        labels = labels[1:] if len(self.classes_) == 2 else labels
        problems: list[CutBasisProblem] = []
        generators = [np.random.default_rng(seed) for seed in own]
        # The rows of positive weight, in an order that all problems share, so that they share
        # basis rows.
        counting = np.flatnonzero(risks[0][1].weights)
        bounded = method == "linear" and self.max_basis == "pool" and len(counting) > POOL
        if bounded or self._starts(method):
            counting = generators[0].permutation(counting)
        start = np.sort(counting[: int(self.start_rows)]) if self._starts(method) else None
        pool = None
        if bounded:
            pool = np.zeros(matrix.columns, dtype=bool)
            pool[counting[:POOL]] = True
        for (risk, targets), label, rng in zip(risks, labels, generators, strict=True):
            oracle: Any
            if method == "blocks":
                risk_of_rows = RowScoreRisk(targets, risk, executor)
                oracle = RowAscentOracle(matrix, precise, risk_of_rows, rng, size)
                problems.append(RowAscentProblem(label, oracle, kind, targets.total))
                continue
            # A sample of all rows is all rows: then there is something to prove.
            sampled = method == "constant" and size < np.count_nonzero(targets.weights)
            if sampled:
                population = RowPopulation(matrix, targets, risk)
                oracle = ConstantOracle(population, executor, rng, size=size)
            else:
                oracle = SampledOracle(
                    matrix,
                    RowScoreRisk(targets, risk, executor),
                    executor,
                    rng,
                    size=size if method == "linear" else None,
                    centred=self.solver == "ocas",
                    pool=pool,
                )
            oracle.definite = bool(kernel.definite)
            facts = (label, oracle, kind, targets.total)
            problems.append(
                ConstantProblem(*facts, passes=int(self.passes))
                if sampled
                else CutBasisProblem(*facts, start=start)
            )
        return problems

    def _assemble(
        self, kernel: Kernel, X: Any, count: int, points: list[tuple[np.ndarray, float]]
    ) -> dict[str, Any]:
        """Fitted attributes from the problems' coefficients; 0 for problems not solved yet."""
        coefs = [coef for coef, _ in points]
        coefs += [np.zeros_like(coefs[0])] * (count - len(coefs))
        every = np.vstack([coef.T.reshape(-1, len(coef)) for coef in coefs])
        support = np.flatnonzero(np.any(every != 0.0, axis=0))
        return {
            **basis_attributes(kernel, X, support, every[:, support]),
            "n_basis_": len(support),
            "intercept_": np.zeros(len(every)),
            "classes_": self.classes_,
        }

    def sampling_bound(self, confidence: float = 0.95) -> float | list[float]:
        """How far the objective is above the optimum at most, with this probability.

        From Theorems 2 and 3 of Yu & Joachims (2008). It holds for any data and is very much
        larger than what one sees; where no cut was sampled it is the gap. With
        ``max_basis='pool'`` it is infinite: samples are not of all rows.

        Parameters
        ----------
        confidence : float, default=0.95

        Returns
        -------
        bound : float, or list of float with several problems
        """
        check_is_fitted(self)
        bounds = sampling_bounds(self._samplings, self.results_, confidence)
        return bounds if len(bounds) > 1 else bounds[0]

    def _check_attributes(self) -> None:
        classes = stored_classes(self)
        outputs = 1 if classes == 2 else classes
        check_kernel_model(self, outputs, outputs)

    # -- prediction -------------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        """Scores as of every kernel machine; for large models in single precision, as in training.

        Single precision is used only where it is precise enough for ``tol``.
        """
        X = rows_to_score(self, X)
        largest = float(np.abs(self.dual_coef_).max(initial=0.0))
        single = self.tol >= SINGLE_TOL and largest <= SINGLE_BOUND
        single &= len(self.support_) >= SINGLE_BASIS
        if single and self.kernel == "rbf" and len(self.dual_coef_) == 1:
            work = X.shape[0] * len(self.support_)
            with single_threaded_blas(), executor_for(self, work, 1) as executor:
                model = (self._gamma, self.support_vectors_, self.dual_coef_[0])
                scores = single_scores(*model, X, executor)
            if scores is not None and np.all(np.isfinite(scores)):
                return scores[:, None]
        return self._scores_of(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            For a precomputed kernel (n_samples, rows of the training data).

        Returns
        -------
        scores : ndarray, shape (n_samples,) or (n_samples, n_classes)
            For two classes positive means ``classes_[1]``.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray, shape (n_samples,)
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return self.classes_[(scores[:, 0] > 0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]
