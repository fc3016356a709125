"""scikit-learn: liblinear's dual coordinate descent without bias, libsvm with a free one.

liblinear regularises its bias, so with ``fit_intercept`` it solves another problem.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from benchopt import BaseSolver
from sklearn.svm import SVC, LinearSVC

MOST_ITERATIONS = 1_000_000


class Solver(BaseSolver):
    """A solver that stops by its own rule, at the tolerance that benchopt asks for."""

    name = "scikit-learn"
    sampling_strategy = "tolerance"
    parameters = {"library": ["liblinear", "libsvm"]}
    requirements = ["pip::scikit-learn"]

    def skip(self, X: Any, y: np.ndarray, C: float, fit_intercept: bool) -> tuple[bool, str | None]:
        """Whether to skip the problem: the library would solve another one."""
        if fit_intercept and self.library == "liblinear":
            return True, "liblinear regularises the bias"
        if not fit_intercept and self.library == "libsvm":
            return True, "libsvm always has a bias"
        return False, None

    def set_objective(self, X: Any, y: np.ndarray, C: float, fit_intercept: bool) -> None:
        """Prepare the estimator."""
        self.X, self.y = X, y
        warnings.simplefilter("ignore")
        if self.library == "libsvm":
            self.model = SVC(kernel="linear", C=C)
        else:
            options = {"fit_intercept": False, "max_iter": MOST_ITERATIONS, "dual": True}
            self.model = LinearSVC(C=C, loss="hinge", **options)

    def run(self, tol: float) -> None:
        """Fit without a start."""
        self.model.set_params(tol=min(max(float(tol), 1e-12), 1.0)).fit(self.X, self.y)

    def get_result(self) -> dict[str, Any]:
        """The weights and the bias. libsvm's scores are those of the second class."""
        coef = self.model.coef_
        coef = coef.toarray() if hasattr(coef, "toarray") else coef
        bias = float(np.ravel(self.model.intercept_)[0])
        return {"w": np.ravel(coef), "bias": bias}
