"""Solvers as adapters: ours and the peers, on one kind of problem, judged by one objective.

    F(w, b) = ½|w|² + C·Σ_i loss(x_i, y_i; w, b),   plus ½b² where the bias is regularised.

``objective`` computes F in float64 from the coefficients that a solver returns, whatever the
solver says of itself. A peer gets the data in the form it likes best: the conversion is not
timed. Peers run with one BLAS thread: with two, on a busy machine, scikit-learn took up to 36 times
as long on 1,000 rows of aclimdb (a quiet machine was not tried). A peer whose package
is not installed says so by ``missing``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.metadata
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from cutplane import LinearSVC

from .datasets import DataSet
from .measure import CompileWatch

# Features up to which a peer that factorises their matrix is tried.
FEW_FEATURES = 2000
LOSSES = ("hinge", "squared_hinge", "logistic")
BIASES = ("none", "regularised", "free")


@dataclass(frozen=True)
class Problem:
    """A data set with C (which multiplies the sum of the losses), a loss and a kind of bias."""

    data: DataSet
    C: float
    loss: str = "hinge"
    bias: str = "none"

    def __post_init__(self) -> None:
        assert self.loss in LOSSES and self.bias in BIASES

    @property
    def classes(self) -> np.ndarray:
        return np.unique(self.data.y)

    def facts(self) -> dict[str, object]:
        return {**self.data.facts(), "C": self.C, "loss": self.loss, "bias": self.bias}

    def objective(self, model: Model) -> float:
        return objective(self, model)

    def few_rows(self, per_class: int = 64) -> Problem:
        """The same problem on a few rows of each class, with the same types and features."""
        y = self.data.y
        rows = np.sort(np.concatenate([np.flatnonzero(y == k)[:per_class] for k in self.classes]))
        data = DataSet(self.data.name, self.data.X[rows], y[rows], self.data.origin)
        return dataclasses.replace(self, data=data)


@dataclass(frozen=True)
class Model:
    """A linear model: w of shape (features,), and the bias b."""

    w: np.ndarray
    b: float


@dataclass(frozen=True)
class Effort:
    """How hard a solver tries. None stands for the solver's default.

    Only our solvers have ``threads``. Only our solvers and programs have ``time_limit``.
    """

    tol: float | None = None
    max_iter: int | None = None
    time_limit: float | None = None
    threads: int | None = None

    def facts(self) -> dict[str, object]:
        return {key: value for key, value in dataclasses.asdict(self).items() if value is not None}

    def settings(self) -> dict[str, Any]:
        """The effort as parameters of our estimators."""
        return {"n_jobs" if key == "threads" else key: v for key, v in self.facts().items()}


@dataclass(frozen=True)
class Run:
    """One run of one solver.

    Attributes
    ----------
    seconds : float
        Wall time of the call that trains.
    compile_seconds : float
        The part of it in which code was compiled or loaded.
    objective : float
        As ``objective`` computes it.
    details : dict
        What else the solver reports, in JSON's types.
    result : SolveResult or None
        Of our solvers.
    """

    solver: str
    effort: Effort
    seconds: float
    compile_seconds: float
    objective: float
    model: Model
    details: dict[str, Any]
    result: Any = field(default=None, repr=False)

    def record(self) -> dict[str, Any]:
        """The run for the JSON file."""
        return {
            "solver": self.solver,
            "effort": self.effort.facts(),
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "objective": self.objective,
            **self.details,
        }


def objective(problem: Problem, model: Model) -> float:
    """F of a model, computed in float64."""
    w = np.asarray(model.w, dtype=np.float64)
    b = np.asarray(model.b, dtype=np.float64)
    scores = problem.data.X @ w + b
    y = problem.data.y
    if problem.loss == "logistic":
        losses = np.logaddexp(0.0, -y * scores)
    else:
        losses = np.maximum(0.0, 1.0 - y * scores)
        if problem.loss == "squared_hinge":
            losses **= 2
    regulariser = 0.5 * np.sum(w * w)
    if problem.bias == "regularised":
        regulariser += 0.5 * np.sum(b * b)
    return float(regulariser + problem.C * losses.sum())


class Solver:
    """An adapter of a solver. Only the time of ``train`` counts, not ``prepare`` and ``finish``."""

    name: str
    ours = False

    def missing(self) -> str | None:
        """A sentence that says why the solver cannot run here; None if it can."""
        return None

    def solves(self, problem: Any) -> bool:
        return True

    def prepare(self, problem: Any) -> Any:
        return problem.data

    def train(self, problem: Any, prepared: Any, effort: Effort) -> Any:
        raise NotImplementedError

    def finish(self, problem: Any, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        """The model, details for the JSON file, and the SolveResult of our solvers."""
        raise NotImplementedError


def run(solver: Solver, problem: Problem, effort: Effort, prepared: Any = None) -> Run:
    """Train once, and compute the objective of the model."""
    if prepared is None:
        prepared = solver.prepare(problem)
    blas = contextlib.nullcontext() if solver.ours else threadpool_limits(1, "blas")
    with warnings.catch_warnings(), blas, CompileWatch() as watch:
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin, cpu = time.perf_counter(), time.process_time()
        trained = solver.train(problem, prepared, effort)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    model, details, result = solver.finish(problem, trained)
    details["cpu_seconds"] = cpu
    seconds = details.pop("seconds", seconds)  # programs report them without the reading
    value = problem.objective(model)
    return Run(solver.name, effort, seconds, watch.seconds, value, model, details, result)


# -- ours -----------------------------------------------------------------------------


class Cutplane(Solver):
    """``cutplane.LinearSVC``; ``stopping`` is the unit of its tolerance."""

    ours = True

    def __init__(self, solver: str = "ocas", stopping: str = "relative") -> None:
        self.solver = solver
        self.stopping = stopping
        self.name = f"cutplane {solver}"

    def train(self, problem: Problem, prepared: DataSet, effort: Effort) -> Any:
        model = LinearSVC(
            C=problem.C,
            loss=problem.loss,
            solver=self.solver,
            stopping=self.stopping,
            fit_intercept=problem.bias != "none",
            intercept_scaling=1.0 if problem.bias == "regularised" else None,
            **effort.settings(),
        )
        return model.fit(prepared.X, prepared.y)

    def finish(self, problem: Problem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        details = {**trained.results_[0].as_dict(), "stopping": self.stopping}
        return Model(trained.coef_[0], trained.intercept_[0]), details, trained.results_[0]


# -- peers ----------------------------------------------------------------------------


class ScikitLearn(Solver):
    """scikit-learn's LinearSVC for both hinges, and LogisticRegression for the logistic loss.

    ``logistic`` is the solver of the latter: its default, or ``newton-cholesky``, which is the
    better one for few features.
    """

    def __init__(self, logistic: str = "lbfgs") -> None:
        self.logistic = logistic
        self.name = "scikit-learn" + ("" if logistic == "lbfgs" else f" {logistic}")

    def solves(self, problem: Problem) -> bool:
        if problem.loss == "logistic":
            few = problem.data.X.shape[1] <= FEW_FEATURES
            return problem.bias != "regularised" and (few or self.logistic == "lbfgs")
        return self.logistic == "lbfgs" and problem.bias != "free"

    def prepare(self, problem: Problem) -> sp.csr_matrix:
        return problem.data.X.astype(np.float64)

    def train(self, problem: Problem, prepared: sp.csr_matrix, effort: Effort) -> Any:
        biased = problem.bias != "none"
        if problem.loss == "logistic":
            model = LogisticRegression(
                C=problem.C,
                solver=self.logistic,
                fit_intercept=biased,
                tol=effort.tol or 1e-8,
                max_iter=effort.max_iter or 10_000,
            )
        else:
            hinge = problem.loss == "hinge"
            model = sklearn.svm.LinearSVC(
                C=problem.C,
                loss=problem.loss,
                dual=hinge,
                fit_intercept=biased,
                intercept_scaling=1.0,
                tol=effort.tol or (1e-4 if hinge else 1e-7),
                max_iter=effort.max_iter or 1000,
                random_state=0,
            )
        return model.fit(prepared, problem.data.y)

    def finish(self, problem: Problem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        n_iter = int(np.max(trained.n_iter_))
        details = {
            "estimator": type(trained).__name__,
            "n_iter": n_iter,
            "status": "converged" if n_iter < trained.max_iter else "max_iter",
        }
        b = float(trained.intercept_[0]) if problem.bias != "none" else 0.0
        return Model(trained.coef_[0], b), details, None


class Liblinear(Solver):
    """liblinear, with -s 3, 2 and 0 for our losses. Its multicore build has ``-m`` threads."""

    types = {"hinge": 3, "squared_hinge": 2, "logistic": 0}  # noqa: RUF012
    tight = {3: 1e-3, 2: 1e-6, 0: 1e-6}  # noqa: RUF012

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self.name = "liblinear" if threads == 1 else f"liblinear, {threads} threads"

    def missing(self) -> str | None:
        try:
            importlib.import_module("liblinear.liblinearutil")
        except ImportError:
            return "liblinear is left out: pip install liblinear-official"
        try:
            if self.threads > 1:
                importlib.metadata.version("liblinear-multicore")
        except importlib.metadata.PackageNotFoundError:
            return f"{self.name} is left out: pip install liblinear-multicore"
        return None

    def solves(self, problem: Problem) -> bool:
        return problem.bias != "free" or problem.loss in ("squared_hinge", "logistic")

    def prepare(self, problem: Problem) -> Any:
        from liblinear import liblinearutil

        X = sp.csr_matrix(problem.data.X, dtype=np.float64)
        return liblinearutil.problem(problem.data.y, X)

    def train(self, problem: Problem, prepared: Any, effort: Effort) -> Any:
        from liblinear.liblinearutil import train  # loaded by prepare

        kind = self.types[problem.loss]
        options = f"-q -s {kind} -c {problem.C!r} -e {effort.tol or self.tight[kind]!r}"
        if problem.bias != "none":
            options += " -B 1"
        if problem.bias == "free":
            options += " -R"
        if self.threads > 1:
            options += f" -m {self.threads}"
        return train(prepared, options)

    def finish(self, problem: Problem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        features, biased = trained.nr_feature, problem.bias != "none"
        column = np.ctypeslib.as_array(trained.w, shape=(features + biased,))
        if trained.get_labels()[0] < 0:  # liblinear's positive class is that of the first row
            column = -column
        details = {"options": f"-s {self.types[problem.loss]}"}
        return Model(column[:features].copy(), column[features] if biased else 0.0), details, None


PEERS: dict[str, type[ScikitLearn] | type[Liblinear]] = {
    "scikit-learn": ScikitLearn,
    "liblinear": Liblinear,
}
