"""The peers of the engine benchmark, each with the ladder of efforts on which it is tried."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from .dlib_solvers import DlibLinear
from .measure import usable_cores
from .programs import SvmLight, SvmPerf
from .solvers import Effort, Liblinear, Model, Problem, ScikitLearn, Solver


class Estimator(Solver):
    """A peer that is an estimator like those of scikit-learn, for problems without a bias.

    An adapter gives its name, its package, the losses it knows and a method ``estimator``.
    """

    name: str
    package: str
    losses: tuple[str, ...] = ("hinge",)
    threads = 1

    def missing(self) -> str | None:
        try:
            importlib.import_module(self.package)
        except ImportError:
            return f"{self.name} is left out: pip install {self.package}"
        if self.threads > usable_cores():
            return f"{self.name}: this process may use {usable_cores()} core(s) only"
        return None

    def solves(self, problem: Problem) -> bool:
        return problem.loss in self.losses and problem.bias == "none"

    def prepare(self, problem: Problem) -> Any:
        return problem.data.X.astype(np.float64)

    def estimator(self, problem: Problem, effort: Effort) -> Any:
        raise NotImplementedError

    def train(self, problem: Problem, prepared: Any, effort: Effort) -> Any:
        return self.estimator(problem, effort).fit(prepared, problem.data.y)

    def finish(self, problem: Problem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        biased = problem.bias != "none"
        b = float(np.ravel(trained.intercept_)[0]) if biased else 0.0
        return Model(np.ravel(trained.coef_).astype(np.float64), b), {}, None


class StochasticGradient(Estimator):
    """scikit-learn's SGDClassifier: ``max_iter`` epochs of its own schedule."""

    name, package = "SGDClassifier", "sklearn"

    def estimator(self, problem: Problem, effort: Effort) -> Any:
        return SGDClassifier(
            loss="hinge",
            alpha=1.0 / (problem.C * len(problem.data.y)),
            fit_intercept=False,
            max_iter=effort.max_iter or 1000,
            tol=None,
            random_state=0,
        )

    def finish(self, problem: Problem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        model, _, result = super().finish(problem, trained)
        return model, {"n_iter": int(trained.n_iter_)}, result


class Snap(Estimator):
    """snapml's SupportVectorMachine: dual coordinate descent, ``max_iter`` passes, any threads.

    Its regulariser is 1/C. CSR in float32 is what it takes without a copy of its own.
    """

    package, losses = "snapml", ("hinge", "squared_hinge")

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.name = "snapml" if threads == 1 else f"snapml, {threads} threads"

    def prepare(self, problem: Problem) -> sp.csr_matrix:
        return sp.csr_matrix(problem.data.X, dtype=np.float32)

    def estimator(self, problem: Problem, effort: Effort) -> Any:
        from snapml import SupportVectorMachine

        return SupportVectorMachine(
            loss=problem.loss,
            regularizer=1.0 / problem.C,
            max_iter=effort.max_iter or 1000,
            tol=effort.tol or 1e-3,
            n_jobs=self.threads,
            random_state=0,
        )


class Skglm(Estimator):
    """skglm's LinearSVC: coordinate descent on the dual with Anderson's extrapolation.

    Its working sets begin with 10 rows and it solves at most 50 of them, which are over before the
    support vectors of our problems are found. So the first set is all rows here, and
    ``max_iter`` counts the passes over it: that converges.
    """

    name = package = "skglm"

    def estimator(self, problem: Problem, effort: Effort) -> Any:
        from skglm import LinearSVC

        return LinearSVC(
            C=problem.C,
            p0=len(problem.data.y),
            max_iter=50 if effort.max_iter is None else 1,
            max_epochs=effort.max_iter or 50_000,
            tol=effort.tol or 1e-4,
            fit_intercept=False,
        )


class ReHLine(Estimator):
    """ReHLine's classifier: coordinate descent on the dual of piecewise linear losses.

    It takes dense rows only, and regularises the bias.
    """

    name, package = "ReHLine", "rehline"

    def solves(self, problem: Problem) -> bool:
        rows, features = problem.data.X.shape
        return problem.loss == "hinge" and problem.bias != "free" and rows * features <= MOST_DENSE

    def prepare(self, problem: Problem) -> np.ndarray:
        X = problem.data.X
        return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)

    def estimator(self, problem: Problem, effort: Effort) -> Any:
        from rehline import plq_Ridge_Classifier

        return plq_Ridge_Classifier(
            loss={"name": "svm"},
            C=problem.C,
            fit_intercept=problem.bias != "none",
            max_iter=effort.max_iter or 1000,
            tol=effort.tol or 1e-4,
        )


# Numbers of a dense copy for peers that take nothing else.
MOST_DENSE = 30_000_000

PEERS: dict[str, Callable[[], Solver]] = {
    "scikit-learn": ScikitLearn,
    "scikit-learn newton-cholesky": partial(ScikitLearn, "newton-cholesky"),
    "liblinear": Liblinear,
    "liblinear, 2 threads": partial(Liblinear, 2),
    "ReHLine": ReHLine,
    "SGDClassifier": StochasticGradient,
    "snapml": Snap,
    "snapml, 2 threads": partial(Snap, 2),
    "skglm": Skglm,
    "dlib": DlibLinear,
    "SVM-light": SvmLight,
    "SVM-perf": SvmPerf,
}

# liblinear's own program and those of SVM-light take no number of passes, only a tolerance.
TOLERANCES = (3.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)
MOST_PASSES = 100_000
NEVER = 1e-12  # a tolerance that no run reaches: the passes alone decide


def ladder(peer: Solver, growth: float = 2.0) -> list[Effort]:
    """Efforts from little to much; a peer is run with each until it is good or out of time."""
    if isinstance(peer, Liblinear | SvmLight | SvmPerf | DlibLinear):
        return [Effort(tol=tol) for tol in TOLERANCES]
    passes = [1]
    while passes[-1] < MOST_PASSES:
        passes.append(max(passes[-1] + 1, round(growth * passes[-1])))
    return [Effort(tol=NEVER, max_iter=count) for count in passes]
