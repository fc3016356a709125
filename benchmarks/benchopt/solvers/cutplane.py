"""cutplane: ``LinearSVC`` with its default solver, or one by name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from benchopt import BaseSolver

from cutplane import LinearSVC


class Solver(BaseSolver):
    """A solver that stops at the relative gap that benchopt asks for."""

    name = "cutplane"
    sampling_strategy = "tolerance"
    parameters = {"solver": ["auto"], "n_jobs": [1]}
    requirements = ["pip::cutplane"]

    def set_objective(self, X: Any, y: np.ndarray, C: float, fit_intercept: bool) -> None:
        """Prepare the estimator and have its loops compiled."""
        self.X, self.y = X, y
        options = {"solver": self.solver, "fit_intercept": fit_intercept, "n_jobs": self.n_jobs}
        self.model = LinearSVC(C=C, loss="hinge", **options)
        warnings.simplefilter("ignore")

    def warm_up(self) -> None:
        """A run whose time does not count, because loops are compiled once per machine."""
        self.run(1.0)

    def run(self, tol: float) -> None:
        """Fit without a start."""
        self.model.set_params(tol=min(max(float(tol), 1e-10), 1.0)).fit(self.X, self.y)

    def get_result(self) -> dict[str, Any]:
        """The weights and the bias."""
        return {"w": self.model.coef_.ravel(), "bias": float(np.ravel(self.model.intercept_)[0])}
