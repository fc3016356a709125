"""The objective: a linear support vector machine, with or without a free bias.

    min_{w, b}  ½|w|² + C·Σ_i max(0, 1 − y_i·(x_i·w + b)),    b = 0 unless ``fit_intercept``

Without a bias it is the objective of benchopt's public benchmark of linear support vector machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Hinge loss and ½|w|²."""

    name = "Linear SVM"
    min_benchopt_version = "1.7"
    parameters = {"C": [0.1, 1.0, 10.0], "fit_intercept": [False, True]}

    def set_data(self, X: Any, y: np.ndarray) -> None:
        """Store the rows and their labels, −1 and +1."""
        self.X, self.y = X, y

    def get_objective(self) -> dict[str, Any]:
        """What benchopt passes to the solvers."""
        return {"X": self.X, "y": self.y, "C": self.C, "fit_intercept": self.fit_intercept}

    def get_one_result(self) -> dict[str, Any]:
        """The simplest point, w = 0."""
        return {"w": np.zeros(self.X.shape[1]), "bias": 0.0}

    def evaluate_result(self, w: np.ndarray, bias: float) -> dict[str, float]:
        """The objective in double precision, and the share of misclassified rows."""
        w = np.asarray(w, dtype=np.float64).ravel()
        margins = self.y * (self.X @ w + bias)
        loss = float(np.maximum(0.0, 1.0 - margins).sum())
        return {"value": 0.5 * float(w @ w) + self.C * loss, "error": float(np.mean(margins <= 0))}
