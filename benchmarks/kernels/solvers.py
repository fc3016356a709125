"""Kernel machines as adapters: ours and the peers, on one kind of problem, with one objective.

    D(β) = yᵀβ − ½βᵀKβ,   β_i = y_i·α_i,  0 ≤ α_i ≤ C_i,  Σβ = 0

``dual_objective`` computes D in float64 by scikit-learn's ``pairwise_kernels`` from what a solver
returns. Peers run in a process of their own that ends when their time is up: no peer
has a time limit.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from ..datasets import SEED, DataSet, Source
from ..generated import checkers
from ..measure import CompileWatch, child

BOUNDED = 1e-6  # α counts as bounded if it is closer to C than this part of C
PEERS = {"scikit-learn": "sklearn.svm", "scikit-learn-intelex": "sklearnex.svm"}
# Sets with mostly zeros come as CSR, other sets as dense arrays.
SPARSE = ("a9a", "w8a", "ijcnn1")
CHOICE_ROWS = 3000  # the better form for a peer is found on so many rows


def sample(source: Source, name: str, rows: int | None) -> DataSet:
    """A random sample of ``rows`` rows of a set. Digits become two classes."""
    if source.rows is not None:
        rows = min(rows or source.rows, source.rows)
    if name == "checkers":
        X, y = checkers(rows or 50_000, np.random.default_rng(SEED))
        return DataSet(name, X, y, "generated")
    data = source.load(name)
    if name == "usps":
        data = dataclasses.replace(data, y=np.where(data.y >= 5, 1.0, -1.0))
    if rows is None or rows >= len(data.y):
        return data
    return data.take(np.random.default_rng(SEED).permutation(len(data.y))[:rows])


@dataclass(frozen=True)
class KernelProblem:
    """Rows with a kernel and C. ``factors`` multiply C for the classes −1 and +1."""

    data: DataSet
    C: float
    gamma: float
    kernel: str = "rbf"
    degree: int = 3
    coef0: float = 0.0
    factors: tuple[float, float] = (1.0, 1.0)

    def facts(self) -> dict[str, Any]:
        facts = {k: v for k, v in dataclasses.asdict(self).items() if k != "data"}
        return {**self.data.facts(), **facts, "factors": list(self.factors)}

    def options(self) -> dict[str, Any]:
        """Parameters that scikit-learn's estimator and ours have in common."""
        return {
            "C": self.C,
            "kernel": self.kernel,
            "gamma": self.gamma,
            "degree": self.degree,
            "coef0": self.coef0,
            "class_weight": {-1.0: self.factors[0], 1.0: self.factors[1]},
        }

    @property
    def bounds(self) -> np.ndarray:
        """C of each row."""
        return self.C * np.where(self.data.y > 0, self.factors[1], self.factors[0])

    def rows(self, form: str | None = None) -> Any:
        """X in float64, as 'csr' or 'dense'. By default it is as in SPARSE."""
        form = form or ("csr" if self.data.name in SPARSE else "dense")
        X = self.data.X.astype(np.float64)
        return sp.csr_matrix(X) if form == "csr" else X.toarray()

    def few_rows(self, count: int) -> KernelProblem:
        """The same problem on the first rows and on the first row of each class."""
        y = self.data.y
        chosen = set(range(min(count, len(y))))
        for label in np.unique(y):
            chosen.update(np.flatnonzero(y == label)[:20].tolist())
        some = np.array(sorted(chosen))
        return dataclasses.replace(self, data=self.data.take(some))


def beta_of(model: Any, rows: int) -> np.ndarray:
    """β of all rows, from the attributes of a model for two classes."""
    beta = np.zeros(rows)
    coef = model.dual_coef_
    beta[model.support_] = (coef.toarray() if sp.issparse(coef) else np.asarray(coef))[0]
    return beta


def dual_objective(problem: KernelProblem, beta: np.ndarray, block: int = 1000) -> float:
    """D(β) by scikit-learn's kernels, in blocks of support vectors."""
    rows = np.flatnonzero(beta)
    X = problem.data.X[rows].astype(np.float64).toarray()
    coef, quadratic = beta[rows], 0.0
    parameters: dict[str, Any] = {} if problem.kernel == "linear" else {"gamma": problem.gamma}
    if problem.kernel == "poly":
        parameters.update(degree=problem.degree, coef0=problem.coef0)
    for first in range(0, len(rows), block):
        K = pairwise_kernels(X[first : first + block], X, metric=problem.kernel, **parameters)
        quadratic += float(coef[first : first + block] @ (K @ coef))
    return float(problem.data.y @ beta) - 0.5 * quadratic


def counts(problem: KernelProblem, beta: np.ndarray) -> dict[str, int]:
    """The numbers of all support vectors and of those at the bound."""
    size = np.abs(beta)
    bounded = size >= problem.bounds * (1.0 - BOUNDED)
    return {"support": int(np.count_nonzero(size)), "bounded": int(np.count_nonzero(bounded))}


def fit_ours(
    problem: KernelProblem, X: Any = None, *, tol: float = 1e-3, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """A fit of ours, and its record."""
    from cutplane import SVC

    X = problem.rows() if X is None else X
    model = SVC(tol=tol, stopping="kkt", **problem.options(), **options)  # the rule of the peers
    with CompileWatch() as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        model.fit(X, problem.data.y)
        seconds = time.perf_counter() - begin
    result, certificate = model.results_[0], model.certificate_
    record = {
        "solver": "cutplane",
        "seconds": seconds,
        "compile_seconds": watch.seconds,
        "tol": tol,
        "status": result.status.value,
        "n_iter": int(result.n_iter),
        "primal": certificate.primal,
        "dual": certificate.dual,
        "relative_gap": certificate.relative_gap,
        "timings": dict(result.timings),
        **counts(problem, beta_of(model, len(problem.data.y))),
    }
    return model, record


def timed_ours(problem: KernelProblem, X: Any = None, **options: Any) -> dict[str, Any]:
    """A record of a fit in which nothing was compiled."""
    for _ in range(3):
        _, record = fit_ours(problem, X, **options)
        if record["compile_seconds"] == 0.0:
            break
    return record


# -- peers ----------------------------------------------------------------------------


def missing(peer: str) -> str | None:
    """A sentence that says why a peer cannot run; None if it can."""
    if importlib.util.find_spec(PEERS[peer].split(".")[0]) is None:
        return f"{peer} is not installed"
    return None


def fit_peer(
    peer: str, problem: KernelProblem, form: str, tol: float, cache_size: float = 200.0
) -> tuple[Any, float]:
    """A fit of a peer, and its wall time."""
    estimator = importlib.import_module(PEERS[peer]).SVC
    model = estimator(tol=tol, cache_size=cache_size, **problem.options())
    X = problem.rows(form)
    begin = time.perf_counter()
    model.fit(X, problem.data.y)
    return model, time.perf_counter() - begin


def race_peer(
    peer: str, source: Source, problem: KernelProblem, tol: float, limit: float
) -> dict[str, Any]:
    """A peer's record, with the form of the data that is faster for it on few rows.

    ``finished`` is False if its time ran out.
    """
    question = {
        "peer": peer,
        "name": problem.data.name,
        "rows": len(problem.data.y),
        "C": problem.C,
        "gamma": problem.gamma,
        "tol": tol,
        "limit": limit,
    }
    try:
        answer = child(["kernel-peer", json.dumps(question), *source.arguments()])
    except TimeoutError:
        return {"solver": peer, "finished": False, "seconds": limit}
    return {"solver": peer, "finished": True, **answer}


def answer_race(question: dict[str, Any], source: Source) -> dict[str, Any]:
    """The fit of ``race_peer``, which runs in the child process."""
    import signal

    data = sample(source, question["name"], question["rows"])
    problem = KernelProblem(data, question["C"], question["gamma"])
    peer, tol = question["peer"], question["tol"]
    few = problem.few_rows(CHOICE_ROWS)
    forms = ("csr", "dense") if question["name"] != "checkers" else ("dense",)
    for form in forms:  # threads start, libraries load
        fit_peer(peer, few.few_rows(200), form, tol)
    tried = {form: fit_peer(peer, few, form, tol)[1] for form in forms}
    form = min(tried, key=lambda f: tried[f])
    signal.setitimer(signal.ITIMER_REAL, question["limit"])  # kills: no fit looks at a flag
    model, seconds = fit_peer(peer, problem, form, tol)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    beta = beta_of(model, len(data.y))
    return {
        "seconds": seconds,
        "form": form,
        "few_rows_seconds": tried,
        "dual": dual_objective(problem, beta),
        **counts(problem, beta),
    }
