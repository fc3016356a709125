"""Estimators of structured outputs with a kernel between parts: check, train, store, score."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from .._checks import check_choice, check_integer
from ..kernels import KERNELS, Kernel
from ..result import SolveResult
from ..structured.parts import PartsModel
from ._callbacks import FitTasks
from ._cluster import threads_of
from ._fit import Settings, seeds, store_results, warn
from ._kernel import (
    KernelBasis,
    basis_attributes,
    canonical_rows,
    check_kernel,
    executor_for,
    kernel_of,
)
from ._parts_fit import CONSTANT, PartsSettings, fit_parts
from ._sampled import NOT_SAMPLED, Sampling, sampling_bounds
from ._structured import StructuredModel

METHODS = ("auto", "linear", CONSTANT, "exact")
# Parts of a sample; in the constant-time method, and with pairs, examples.
SAMPLE_SIZE, CONSTANT_SAMPLE_SIZE = 1000, 100
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


class KernelParts(StructuredModel):
    """Base of the estimators that score parts of inputs. Parameters are documented there."""

    _kernels: ClassVar[tuple[str, ...]] = KERNELS

    kernel: Any
    method: str
    sample_size: int | None
    passes: int
    max_basis: int | None
    random_state: Any

    _samplings: list[Sampling]

    @abstractmethod
    def _plain_attributes(self, plain: np.ndarray) -> dict[str, Any]:
        """The fitted attributes besides the functions of parts, from the plain numbers."""

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        check_choice("method", self.method, METHODS)
        if self.sample_size is not None:
            check_integer("sample_size", self.sample_size, at_least=1)
        check_integer("passes", self.passes, at_least=1)
        if self.max_basis is not None:
            check_integer("max_basis", self.max_basis, at_least=1)
        if self.kernel is None:
            if self.method == CONSTANT:
                raise ValueError(
                    "method='constant' is for kernels: give one, as kernel='rbf', or leave method "
                    "out"
                )
            return settings
        check_kernel(self, self._kernels)
        if settings.checkpoint is not None:
            raise ValueError("checkpoint cannot be had with a kernel: leave it out")
        return settings

    def _fit_kernel(
        self, data: tuple[Any, Any], label: str, rows: Any, model: PartsModel
    ) -> SolveResult:
        """Train with a kernel, and store the model."""
        rows = canonical_rows(self.kernel, rows)
        tasks = FitTasks(self, *data, 1)
        kernel = kernel_of(self, rows)

        def attributes(points: list[tuple[np.ndarray, float]]) -> dict[str, Any]:
            coef = points[0][0]
            return self._kernel_attributes(kernel, rows, coef, model.plain_of(coef))

        fitted = fit_parts(kernel, rows, model, self._parts_settings(), label, tasks, attributes)
        self._set(attributes([(fitted.result.w, 0.0)]))
        self._samplings = [fitted.sampling]
        self.n_kernel_values_ = fitted.kernel_values
        self.basis_error_ = fitted.basis_error
        store_results(self, [fitted.result])
        tasks.end()
        self._warn_indefinite(fitted.result)
        return fitted.result

    def _warn_indefinite(self, result: SolveResult) -> None:
        """Say why there is no certificate, if there is none."""
        if result.certificate.kind == "withheld":
            warn(
                UserWarning(
                    f"{type(self).__name__}: the kernel is not positive semidefinite, so the "
                    "problem is not convex and its certificate is withheld"
                )
            )

    def _parts_settings(self) -> PartsSettings:
        return PartsSettings(
            common=dataclasses.replace(self._check_common(), warm_start=False),
            method=self.method,
            sample_size=self._sample_size(),
            passes=int(self.passes),
            max_basis=None if self.max_basis is None else int(self.max_basis),
            seed=seeds(self.random_state, 1)[0],
            n_jobs=threads_of(self),
        )

    def _sample_size(self) -> int:
        if self.sample_size is not None:
            return int(self.sample_size)
        return CONSTANT_SAMPLE_SIZE if self.method == CONSTANT else SAMPLE_SIZE

    def _kernel_attributes(
        self, kernel: Kernel, rows: Any, coef: np.ndarray, plain: np.ndarray
    ) -> dict[str, Any]:
        """The fitted attributes, from coefficients of parts and plain numbers."""
        own = coef[: rows.shape[0]]
        support = np.flatnonzero(np.any(own != 0.0, axis=1))
        return {
            **self._plain_attributes(plain),
            **basis_attributes(kernel, rows, support, np.ascontiguousarray(own[support].T)),
            "n_basis_": len(support),
        }

    def _part_scores(self, rows: Any, scores: np.ndarray) -> None:
        """Scores of parts, (parts, K); those of no support vector are left as they are."""
        if self.kernel == "precomputed" and scipy.sparse.issparse(rows):
            rows = rows.toarray()
        coef = np.ascontiguousarray(self.dual_coef_.T)

        def write(which: np.ndarray, values: np.ndarray) -> None:
            scores[which[0] : which[-1] + 1] = values @ coef

        executor = executor_for(self, rows.shape[0] * len(self.support_), 1)
        KernelBasis.of(self).over_blocks(rows, executor, write)

    def sampling_bound(self, confidence: float = 0.95) -> float:
        """How far the objective is above the optimum at most, with this probability.

        As for :class:`SampledCutSVC`, with parts (tokens) as rows, or examples with
        ``method='constant'``: how large a loss can be, and how much an example can matter, is
        known of chains; of other problems it is the largest seen in training. The gap, where no
        cut was sampled.

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
