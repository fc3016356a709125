"""What estimators of structured outputs do alike: one problem, one flat w, a joint model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np

from ..exec import make_executor
from ..oracles.structured import JointModel
from ..result import SolveResult
from ._base import Estimator
from ._cluster import threads_of
from ._fit import Settings
from ._problems import JointProblem


class JointData(JointModel, Protocol):
    """All examples, and the work that a pass over them is."""

    @property
    def numbers(self) -> int:
        """In numbers of a data matrix."""
        ...


class StructuredModel(Estimator):
    """Base of the estimators of structured outputs. Parameters are documented there."""

    _solvers: ClassVar[tuple[str, ...]] = ("cpa", "ocas")

    @abstractmethod
    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        """The fitted attributes that hold w."""

    @abstractmethod
    def _flat(self) -> np.ndarray:
        """w of the fitted attributes."""

    def _solve_joint(
        self, data: tuple[Any, Any], label: str, model: JointData, settings: Settings
    ) -> SolveResult:
        """Solve the problem of a model of all examples, and store the answer."""
        start = None
        if self.warm_start and hasattr(self, "coef_"):
            start = [self._flat()]
        with make_executor(threads_of(self), model.numbers) as executor:
            return self._solve(
                data,
                [JointProblem(label, model)],
                settings,
                executor,
                lambda points: self._attributes(points[0][0]),
                starts=start,
            )[0]

    def __sklearn_tags__(self) -> Any:
        """Inputs are lists of anything: scikit-learn's checks pass matrices and do not apply."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags
