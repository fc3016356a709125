"""StructuredSVM with a kernel between pairs of input and output: train, store, predict."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import KERNELS
from ..result import SolveResult, Status
from ..structured.pair_kernel import new_scores, try_pairs
from ..structured.pairs import PairExamples
from ..structured.problem import PAIRS, call
from ._callbacks import FitTasks
from ._fit import Settings, store_results
from ._kernel_parts import KernelParts
from ._pairs_fit import fit_pairs


class KernelPairs(KernelParts):
    """Base of ``StructuredSVM``, where the parameters are documented."""

    _kernels = (*KERNELS, PAIRS)

    problem_: Any
    rescaling: str
    support_pairs_: list[tuple[Any, Any]]

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        if self.kernel == PAIRS and self.max_basis is not None:
            raise ValueError(
                "max_basis cannot be had with kernel='pairs': leave it out, or write parts"
            )
        return settings

    def _pairs_attributes(self, model: PairExamples, coef: np.ndarray) -> dict[str, Any]:
        """The fitted attributes, from coefficients of the basis."""
        used, pairs = np.flatnonzero(coef), model.pairs
        numbers = [pairs.basis[k] for k in used]
        return {
            "support_pairs_": [(model.X[pairs.inputs[k]], pairs.outputs[k]) for k in numbers],
            "dual_coef_": coef[used],
            "n_basis_": len(used),
            "problem_": self.problem_,
        }

    def _solve_pairs(self, data: tuple[Any, Any], X: Any, Y: Any) -> tuple[SolveResult, Any]:
        """Train, and store the model; returns the examples, too."""
        try_pairs(self.problem_, X, Y, self.rescaling)
        model = PairExamples(self.problem_, X, Y, self.rescaling)
        tasks = FitTasks(self, *data, 1)
        fitted = fit_pairs(
            model,
            self._parts_settings(),
            tasks,
            lambda points: self._pairs_attributes(model, points[0][0]),
        )
        self._set(self._pairs_attributes(model, fitted.result.w))
        self._samplings = [fitted.sampling]
        self.n_kernel_values_ = model.pairs.computed
        self.basis_error_ = 0.0
        store_results(self, [fitted.result])
        tasks.end()
        self._warn_indefinite(fitted.result)
        if fitted.result.status is not Status.INTERRUPTED:
            model.audit(fitted.result.w)
        return fitted.result, model

    def _predict_pairs(self, X: Any) -> Any:
        """Outputs of highest score."""
        inputs, outputs = ([pair[k] for pair in self.support_pairs_] for k in (0, 1))
        scores = new_scores(self.problem_, X, inputs, outputs, self.dual_coef_)
        return call(self.problem_, "predict", 0, (X, scores))
