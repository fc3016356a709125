"""The base class of the estimators of structured outputs, with and without a kernel.

A model without a kernel is a vector w. A model with a kernel consists of functions in the kernel's
feature space and of plain weights, such as the transitions of a chain. Either kind has one problem,
a ``JointProblem`` for w; ``_fit_kernel`` states and solves that of a kernel. An estimator's
``_attributes`` turns w, or the plain weights, into fitted attributes.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from .._blas import single_threaded_blas
from .._checks import check_choice, check_integer
from ..result import SolveResult
from ..structured.parts import PartsModel
from ._base import CutModel
from ._fit import Settings, warn
from ._kernel import (
    basis_attributes,
    check_kernel,
    executor_for,
    kernel_and_rows,
    over_blocks,
)
from ._parts_fit import CONSTANT, PartsFit
from ._sampled import NOT_SAMPLED, Sampling, sampling_bounds

METHODS = ("auto", "linear", CONSTANT, "exact")
# Fitted attributes that models with a kernel have.
OF_KERNELS = (
    "support_",
    "support_vectors_",
    "dual_coef_",
    "shape_fit_",
    "n_basis_",
    "basis_error_",
    "n_kernel_values_",
    "_gamma",
    "_samplings",
)


@dataclass(eq=False, repr=False, kw_only=True)
class StructuredModel(CutModel):
    """Base of the estimators of structured outputs. These document the parameters."""

    tol: float = 1e-2
    kernel: str | Callable[[Any, Any], Any] | None = None
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    method: str = "auto"
    sample_size: int | None = None
    passes: int = 4
    max_basis: int | None = None
    random_state: Any = None

    _samplings: list[Sampling] = field(init=False)

    @abstractmethod
    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        """The fitted attributes from w; with a kernel, from the plain weights."""

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        check_choice("method", self.method, METHODS)
        for name, value in (("sample_size", self.sample_size), ("max_basis", self.max_basis)):
            if value is not None:
                check_integer(name, value, at_least=1)
        check_integer("passes", self.passes, at_least=1)
        if self.solver == "bcfw" and (self.kernel is not None or self.executor is not None):
            raise ValueError(
                "solver='bcfw' is for models without a kernel, in this process; take solver='ocas' "
                "with a kernel or a cluster"
            )
        if self.kernel is None:
            if self.method == CONSTANT:
                raise ValueError(
                    "method='constant' is for kernels: give one, as kernel='rbf', or leave method "
                    "out"
                )
            return settings
        check_kernel(self)
        if settings.checkpoint is not None:
            raise ValueError("checkpoint is not available with a kernel: leave it out")
        if self.executor is not None:
            raise ValueError(
                "executor: with a kernel all runs on this machine; leave it out, or train "
                "with kernel=None"
            )
        return settings

    def _fit_kernel(
        self, data: tuple[Any, Any], label: str, rows: Any, model: PartsModel, settings: Settings
    ) -> SolveResult:
        """Fit functions of parts in the kernel's feature space, and store the model."""
        kernel, rows = kernel_and_rows(self, rows)

        def attributes(points: list[tuple[np.ndarray, float]]) -> dict[str, Any]:
            coef = points[0][0]
            if coef.ndim == 1:  # the solver has no cut yet, because no example had a loss
                coef = np.zeros(model.shape)
            own = coef[: rows.shape[0]]
            support = np.flatnonzero(np.any(own != 0.0, axis=1))
            return {
                **self._attributes(coef[model.parts :].reshape(-1)[: model.plain]),
                **basis_attributes(kernel, rows, support, np.ascontiguousarray(own[support].T)),
                "n_basis_": len(support),
            }

        common = dataclasses.replace(settings, warm_start=False)
        with single_threaded_blas(), executor_for(self, *rows.shape) as executor:
            fit = PartsFit(self, kernel, rows, model, common, executor, label)
            result = self._solve(
                data, [fit.problem], common, executor, attributes, improve=fit.improve
            )[0]
            self._samplings = [fit.sampling()]
        self.n_kernel_values_ = fit.kernel_values
        self.basis_error_ = fit.basis_error
        for caution in fit.problem.cautions(settings, [result]):
            warn(caution)
        return result

    def _kernel_scores(self, rows: Any) -> np.ndarray:
        """Scores of parts, (parts, K), under a fitted model with a kernel."""
        scores = np.zeros((rows.shape[0], len(self.dual_coef_)))
        if self.kernel == "precomputed" and scipy.sparse.issparse(rows):
            rows = rows.toarray()
        coef = np.ascontiguousarray(self.dual_coef_.T)

        def write(which: np.ndarray, values: np.ndarray) -> None:
            scores[which[0] : which[-1] + 1] = values @ coef

        executor = executor_for(self, rows.shape[0] * len(self.support_), 1)
        over_blocks(self, rows, executor, write)
        return scores

    def sampling_bound(self, confidence: float = 0.95) -> float:
        """How far the objective is above the optimum at most, with this probability.

        Without sampled cuts it is the gap. Otherwise it is the bound of :class:`SampledCutSVC`,
        where parts (tokens) take the place of rows, or examples with ``method='constant'``. That
        bound needs the largest loss of an example and its largest effect on the objective. For
        chains both are known; for other output spaces they are the largest seen in training.

        Parameters
        ----------
        confidence : float, default=0.95

        Returns
        -------
        bound : float
        """
        check_is_fitted(self)
        samplings = [NOT_SAMPLED] if self.kernel is None else self._samplings
        return sampling_bounds(samplings, self.results_, confidence)[0]

    def __sklearn_tags__(self) -> Any:
        """Inputs are lists of anything: scikit-learn's checks pass matrices and do not apply."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags
