"""Linear regression: support vectors, quantiles, Huber's loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from .._checks import check_choice, check_number
from ..cluster.rows import RemoteMatrix
from ..data import BlockedMatrix
from ..losses import LOSSES
from ..risks import LossRisk, Targets
from ._attributes import check_linear, check_stored, stored_features
from ._base import LinearModel, ModelForm
from ._fit import Lazy, Ready, Run, Settings, warn_of, with_callbacks
from ._problems import RowProblem, bounds_of
from ._rows import check_sum, open_rows

REGRESSION = tuple(name for name, loss in LOSSES.items() if loss.regression)
CROSSING = ("allow", "sort")
# Rounding errors of the losses, relative to the losses of predictions that are wrong by the size of
# the targets.
ROUNDING = 1e-15


@dataclass
class RegressionProblem(RowProblem):
    """A regression problem. Its optimum may be 0, so it also stops at a gap of rounding errors."""

    def solver(self, run: Run) -> Ready:
        y = self.targets.labels
        far = y + np.abs(y) + 2.0 * self.risk.loss[0]  # beyond ε, too
        least = ROUNDING * run.C * self.risk.value(far, 0.0, self.targets)
        stop = replace(run.stop, absolute=max(run.stop.absolute, least))
        return super().solver(replace(run, stop=stop))


@dataclass(eq=False, repr=False, kw_only=True)
class LinearSVR(RegressorMixin, LinearModel):
    """Linear regression by support vectors, quantiles or Huber's loss, with a certificate.

    Minimises ½|w|² + C·Σ_i weight_i·loss(<w, x_i> + b − y_i) and certifies the result:
    ``certificate_`` limits how far the objective is from the optimum. Parameters with the same
    meaning have the same names as in scikit-learn's ``LinearSVR``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses. It multiplies their *sum*, as in scikit-learn and liblinear.
    loss : {'epsilon_insensitive', 'squared_epsilon_insensitive', 'quantile', 'huber'}, \
default='epsilon_insensitive'
        Of the residual r = <w, x> + b − y:

        - ``epsilon_insensitive``: max(0, \\|r\\| − ε), support vector regression;
        - ``squared_epsilon_insensitive``: its square;
        - ``quantile``: max(−τ·r, (1 − τ)·r), the pinball loss: predicts the τ-quantile of y;
        - ``huber``: ½r² up to \\|r\\| = ε, beyond that ε(\\|r\\| − ½ε), so that
          outliers have less influence.
    epsilon : float, default=0.0
        ε above, in the unit of y. Deviations up to ε have no loss. For ``huber`` it is the
        deviation at which the loss becomes linear, and must be above 0.
    quantile : float or list of float, default=0.5
        τ above, between 0 and 1. Several quantiles are fitted one after the other, to the same copy
        of the data.
    crossing : {'allow', 'sort'}, default='allow'
        What ``predict`` does if the prediction of a lower quantile is above that of a higher one.
        ``sort`` puts the predictions of a row in order, which never makes them worse (Chernozhukov,
        Fernández-Val & Galichon, "Quantile and probability curves without crossing", 2010).
    solver : {'auto', 'ocas', 'cpa', 'dcd'}, default='auto'
        As for :class:`LinearSVC`.
    dual : bool or 'auto', default='auto'
        Not used, as for :class:`LinearSVC`.
    tol : float, default=1e-3
        The fit stops when the gap is at most this. ``stopping`` says in which unit.
    stopping : {'relative', 'absolute', 'epsilon'}, default='relative'
        ``relative``: gap ≤ tol·objective. ``absolute``: gap ≤ tol. ``epsilon``:
        gap ≤ C·(sum of weights)·tol.
    fit_intercept : bool, default=True
        Fit a bias b. It is not regularised unless ``intercept_scaling`` is given.
    intercept_scaling : float or None, default=None
        None for a true bias. A number s appends a constant feature of value s, whose weight is
        regularised, as in liblinear; scikit-learn does so with 1.0.
    positive : bool, default=False
        Whether to forbid negative coefficients, as for :class:`LinearSVC`.
    bounds : pair (low, high) or None, default=None
        Bounds on the coefficients, as for :class:`LinearSVC`.
    max_iter, time_limit, n_jobs, executor, warm_start, random_state, verbose, callback, checkpoint
        As for :class:`LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,), or (n_quantiles, n_features) for a list of quantiles
    intercept_ : ndarray, shape (1,) or (n_quantiles,)
    n_iter_ : int
        Number of iterations; with several quantiles the largest.
    certificate_ : Certificate
        ``primal, dual, gap, relative_gap, kind`` of the objective above; with several quantiles, of
        the sum of their objectives.
    certificates_ : list of Certificate
        One, or one per quantile.
    results_ : list of SolveResult
        One, or one per quantile: the certificate with status, trace and timings.
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    See Also
    --------
    SVR : The same loss with kernels.

    Notes
    -----
    The unit of C is one over that of y. A fit is faster if the features have similar scales.

    Examples
    --------
    >>> import numpy as np
    >>> from cutplane import LinearSVR
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> y = 3.0 * X[:, 0] + 7.0
    >>> y[4] = 1000.0
    >>> model = LinearSVR(C=10.0, tol=1e-6).fit(X, y)
    >>> bool(abs(model.predict([[100.0]])[0] - 307.0) < 1e-3)
    True
    """

    _solvers = ("auto", "ocas", "cpa", "dcd")

    loss: str = "epsilon_insensitive"
    epsilon: float = 0.0
    quantile: float | Sequence[float] = 0.5
    crossing: str = "allow"
    solver: str = "auto"
    dual: bool | str = "auto"
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    random_state: Any = None

    # -- fitting --------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVR:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)
        y : array-like, shape (n_samples,), optional for a Dataset that has labels
            Numbers.
        sample_weight : array-like, shape (n_samples,), optional
            Factors on C by row; rows of weight 0 do not count. By default the costs of a Dataset.

        Returns
        -------
        self
        """
        settings = self._check_common()
        rows = open_rows(self, X, y, sample_weight, y_numeric=True)
        check_sum(self.C, rows.weights)
        targets = Targets.make(np.asarray(rows.y, dtype=np.float64), rows.weights)
        with rows.blocks() as matrix:
            form, problems = self._problems(matrix, targets)
            results = self._fit_linear((X, y), form, problems, settings)
        warn_of(settings, None, results)
        return self

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        check_choice("loss", self.loss, REGRESSION)
        check_choice("crossing", self.crossing, CROSSING)
        check_number("epsilon", self.epsilon, at_least=0.0)
        if self.loss == "huber" and self.epsilon == 0.0:
            raise ValueError(
                "epsilon must be above 0 for loss='huber': it is the residual at which the loss "
                "becomes linear, about 1.35 times the noise's standard deviation"
            )
        if not self._quantiles():
            raise ValueError("quantile must be a number between 0 and 1, or a list of such; got []")
        for quantile in self._quantiles():
            if not isinstance(quantile, Real) or not 0.0 < quantile < 1.0:
                raise ValueError(
                    f"quantile must lie between 0 and 1, got {quantile!r}; the median is 0.5"
                )
        return settings

    def _quantiles(self) -> list[float]:
        return np.atleast_1d(np.asarray(self.quantile)).tolist()

    def _check_attributes(self) -> None:
        if self._several():
            check_linear(self, len(self._quantiles()))
        else:
            check_stored(self, "coef_", (stored_features(self),))
            check_stored(self, "intercept_", (1,))

    def _several(self) -> bool:
        """Whether there is an output per quantile of a list."""
        return self.loss == "quantile" and np.ndim(self.quantile) > 0

    def _problems(
        self, matrix: BlockedMatrix | RemoteMatrix, targets: Targets
    ) -> tuple[ModelForm, Sequence[RowProblem]]:
        """One problem, or one per quantile."""
        values = self._quantiles() if self.loss == "quantile" else [self.epsilon]
        form = ModelForm(len(values), **self._bias())
        bounds = bounds_of(self, matrix.shape[1])

        def make(k: int) -> RegressionProblem:
            label = f"quantile {values[k]:g}" if self.loss == "quantile" else "regression"
            risk = LossRisk(LOSSES[self.loss](float(values[k])))
            return RegressionProblem(
                label, matrix, form.constant, targets, risk, form.free_bias, bounds=bounds
            )

        return form, [make(0)] if len(values) == 1 else Lazy(len(values), make)

    def _linear_attributes(
        self, form: ModelForm, points: list[tuple[np.ndarray, float]]
    ) -> dict[str, Any]:
        attributes = super()._linear_attributes(form, points)
        if not self._several():
            attributes["coef_"] = attributes["coef_"][0]
        return attributes

    # -- prediction -----------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Predict targets.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        targets : ndarray, shape (n_samples,), or (n_samples, n_quantiles) for a list of quantiles
        """
        scores = self._scores(X).reshape(-1, len(self.intercept_)) + self.intercept_
        if not self._several():
            return scores[:, 0]
        if self.crossing == "sort":
            scores[:, np.argsort(self._quantiles(), kind="stable")] = np.sort(scores, axis=1)
        return scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², the coefficient of determination, as of every regressor; for one output.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
        sample_weight : array-like, shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        if self._several():
            raise ValueError(
                "score is for one output, and quantile is a list; measure every column of predict "
                "by sklearn.metrics.mean_pinball_loss"
            )
        return float(super().score(X, y, sample_weight))
