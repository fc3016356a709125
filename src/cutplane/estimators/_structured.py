"""What estimators of structured outputs do alike: one problem, one flat w, a joint model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np

from ..oracles.structured import JointModel
from ..result import SolveResult
from ._base import LinearModel, SizedData
from ._form import ModelForm
from ._problems import JointProblem

ONE_FLAT_VECTOR = ModelForm(1, None, 0.0, False)


class JointData(JointModel, SizedData, Protocol):
    """All examples, as oracle and session see them."""


class StructuredModel(LinearModel):
    """Base of the estimators of structured outputs. Parameters are documented there."""

    _solvers: ClassVar[tuple[str, ...]] = ("cpa", "ocas")

    @abstractmethod
    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        """The fitted attributes that hold w."""

    @abstractmethod
    def _flat(self) -> np.ndarray:
        """w of the fitted attributes."""

    def _solve_joint(self, data: tuple[Any, Any], label: str, model: JointData) -> SolveResult:
        """Solve the problem of a model of all examples, and store the answer."""
        problem = JointProblem(label, 0.0)
        return self._solve(data, model, ONE_FLAT_VECTOR, lambda _: problem, self._start())[0]

    def _start(self) -> tuple[np.ndarray, np.ndarray] | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        return self._flat()[None], np.zeros(1)

    def _partial_attributes(
        self, form: ModelForm, done: list[SolveResult], w: np.ndarray, bias: float
    ) -> dict[str, Any]:
        return self._attributes(w)

    def _store(self, form: ModelForm, results: list[SolveResult]) -> None:
        for name, value in self._attributes(results[0].w).items():
            setattr(self, name, value)
        self._store_result(results[0])

    def _store_result(self, result: SolveResult) -> None:
        self.n_iter_ = result.n_iter
        self.result_ = result
        self.certificate_ = result.certificate

    def __sklearn_tags__(self) -> Any:
        """Inputs are lists of anything: scikit-learn's checks pass matrices and do not apply."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags
