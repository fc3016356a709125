"""Snap ML: parallel coordinate descent; its bias, too, is regularised."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseSolver
from snapml import SupportVectorMachine


class Solver(BaseSolver):
    """A solver that stops by its own rule, at the tolerance that benchopt asks for."""

    name = "snapml"
    sampling_strategy = "tolerance"
    parameters = {"n_jobs": [1]}
    requirements = ["pip::snapml"]

    def skip(self, X: Any, y: np.ndarray, C: float, fit_intercept: bool) -> tuple[bool, str | None]:
        """Whether to skip the problem: with a bias the library would solve another one."""
        return fit_intercept, "snapml regularises the bias" if fit_intercept else None

    def set_objective(self, X: Any, y: np.ndarray, C: float, fit_intercept: bool) -> None:
        """Prepare the estimator."""
        self.X, self.y = X, y
        options = {"fit_intercept": False, "n_jobs": self.n_jobs, "max_iter": 1_000_000}
        self.model = SupportVectorMachine(regularizer=1.0 / C, **options)

    def run(self, tol: float) -> None:
        """Fit without a start."""
        self.model.set_params(tol=min(max(float(tol), 1e-12), 1.0)).fit(self.X, self.y)

    def get_result(self) -> dict[str, Any]:
        """The weights."""
        return {"w": np.ravel(self.model.coef_), "bias": 0.0}
