"""The peers of the engine benchmark, each with the ladder of efforts on which it is tried."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from .solvers import Effort, Liblinear, Model, Problem, ScikitLearn, Solver


class StochasticGradient:
    """scikit-learn's SGDClassifier: hinge, no bias, ``max_iter`` epochs of its own schedule."""

    name = "SGDClassifier"
    ours = False

    def missing(self) -> str | None:
        return None  # cutplane depends on scikit-learn

    def solves(self, problem: Problem) -> bool:
        return problem.loss == "hinge" and problem.bias == "none"

    def prepare(self, problem: Problem) -> sp.csr_matrix:
        return problem.data.X.astype(np.float64)

    def train(self, problem: Problem, prepared: sp.csr_matrix, effort: Effort) -> Any:
        model = SGDClassifier(
            loss="hinge",
            alpha=1.0 / (problem.C * len(problem.data.y)),
            fit_intercept=False,
            max_iter=effort.max_iter or 1000,
            tol=None,
            random_state=0,
        )
        return model.fit(prepared, problem.data.y)

    def finish(self, problem: Problem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        return Model(trained.coef_[0], 0.0), {"n_iter": int(trained.n_iter_)}, None


PEERS: dict[str, type[Solver]] = {
    "scikit-learn": ScikitLearn,
    "liblinear": Liblinear,
    "SGDClassifier": StochasticGradient,
}

# liblinear's own program takes no number of passes, only a tolerance.
TOLERANCES = (3.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 3e-3, 1e-3)
FIRST_PASSES, GROWTH = 1, 1.4
NEVER = 1e-12  # a tolerance that no run reaches: the passes alone decide


def ladder(peer: Solver) -> list[Effort]:
    """Efforts from little to much; a peer is run with each until it is good or out of time."""
    if isinstance(peer, Liblinear):
        return [Effort(tol=tol) for tol in TOLERANCES]
    passes = [FIRST_PASSES]
    while passes[-1] < 5000:
        passes.append(max(passes[-1] + 1, round(GROWTH * passes[-1])))
    return [Effort(tol=NEVER, max_iter=count) for count in passes]
