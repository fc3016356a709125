"""What a tagger does if it has a kernel: train, store, score tokens."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state

from ..result import SolveResult
from ..structured import chain
from ._callbacks import WARN_LEVEL, FitTasks
from ._chain_kernel import KernelChainSettings, fit_kernel_chain
from ._sampled import Sampling
from ._structured import StructuredModel
from ._with_kernel import WithKernel, canonical_rows


class KernelTagger(WithKernel, StructuredModel):
    """Base of ``ChainTagger``, where the parameters are documented."""

    method: str
    sample_size: int
    max_basis: int | None
    random_state: Any

    classes_: np.ndarray
    n_features_in_: int
    _shape: chain.ChainShape
    _samplings: list[Sampling]

    def _fit_kernel(
        self, data: tuple[Any, Any], rows: Any, chains: chain.LabelledChains
    ) -> SolveResult:
        """Train with a kernel, and store the model."""
        rows = canonical_rows(self.kernel, rows)
        try:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError as error:
            raise ValueError(f"random_state: {error}") from error
        settings = KernelChainSettings(
            C=float(self.C),
            solver=self.solver,
            stop=self._stop_rule(),
            tol=float(self.tol),
            method=self.method,
            sample_size=int(self.sample_size),
            max_basis=None if self.max_basis is None else int(self.max_basis),
            seed=seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            callback=self.callback,
        )
        tasks = FitTasks(self, *data, 1)
        tasks.begin_problem("chain")
        fitted = fit_kernel_chain(
            self._make_kernel(rows),
            rows,
            chains,
            settings,
            lambda coef: tasks.iteration(lambda: self._kernel_attributes(rows, coef())),
        )
        tasks.end_problem()
        for name, value in self._kernel_attributes(rows, fitted.result.w).items():
            setattr(self, name, value)
        self._samplings = [fitted.sampling]
        self.n_kernel_values_ = fitted.kernel_values
        self.basis_error_ = fitted.basis_error
        self._store_result(fitted.result)
        tasks.end()
        if fitted.result.certificate.kind == "withheld":
            warnings.warn(
                "ChainTagger: the kernel is not positive semidefinite, so the problem is not "
                "convex and its certificate is withheld",
                UserWarning,
                stacklevel=WARN_LEVEL + 1,
            )
        return fitted.result

    def _kernel_attributes(self, rows: Any, coef: np.ndarray) -> dict[str, Any]:
        """The fitted attributes that hold coefficients of tokens, and plain numbers below."""
        tokens, shape = rows.shape[0], self._shape
        explicit = dataclasses.replace(shape, features=0)
        support = np.flatnonzero(np.any(coef[:tokens] != 0.0, axis=1))
        return {
            **self._plain_attributes(explicit.unpack(coef[tokens:].reshape(-1))),
            **self._model(rows, support, np.ascontiguousarray(coef[support].T)),
            "n_basis_": len(support),
        }

    def _plain_attributes(self, weights: chain.ChainWeights) -> dict[str, Any]:
        """All but the emissions."""
        attributes = {
            "transitions_": weights.transitions.copy(),
            "begin_": weights.begin.copy(),
            "finish_": weights.finish.copy(),
            "classes_": self.classes_,
            "n_features_in_": self.n_features_in_,
            "_shape": self._shape,
        }
        if weights.second is not None:
            attributes["second_transitions_"] = weights.second.transpose(1, 0, 2).copy()
        return attributes

    def _kernel_emissions(self, rows: Any, scores: np.ndarray) -> None:
        """Scores of all tokens and labels."""
        if self.kernel == "precomputed" and scipy.sparse.issparse(rows):
            rows = rows.toarray()
        coef = np.ascontiguousarray(self.dual_coef_.T)

        def write(which: np.ndarray, values: np.ndarray) -> None:
            scores[which[0] : which[-1] + 1] = values @ coef

        self._over_blocks(rows, write)
