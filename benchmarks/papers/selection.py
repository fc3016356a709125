"""Table 3 of the OCAS paper: the time of a whole model selection over C.

Every method is trained for every C. The C with the best ROC area on the validation rows is chosen,
and its model is judged by the ROC area on the test rows. The time of all fits together counts. Our
fits are one path, in which every fit starts from the one before. The section also shows the same
fits one by one. Peers cannot start from another fit. A peer that does not end its grid within
``--peer-seconds`` counts with the time that it has taken, as "> seconds".

Cross-validation: ``LinearSVCCV`` with five folds against scikit-learn's ``GridSearchCV``.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from cutplane import LinearSVC, LinearSVCCV, linear_svc_path

from ..datasets import SEED, DataSet
from ..measure import usable_cores
from ..measures.selection import Split, folds
from ..peers import PEERS
from ..report import TOL, Report, at_least, at_most
from ..solvers import Effort, Problem, Solver
from ..solvers import run as run_solver
from .peers import STANDARD

# The paper's grids where our data are like the paper's. Pixels are in [0, 1] here.
TEXT = (0.1, 0.5, 1.0, 5.0, 10.0)
GRIDS: dict[str, tuple[float, ...]] = {
    "covtype": TEXT,
    "mnist8": (0.01, 0.05, 0.1, 0.5, 1.0),
    "aclimdb": TEXT,
    "a9a": TEXT,
    "w8a": TEXT,
    "celegans": (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0),
}
CONTIGUOUS = ("celegans",)  # neighbouring rows of the file overlap in the genome
CROSS = ("a9a", "w8a")
FOLDS = 5
AS_GOOD = 0.005  # largest difference in ROC area: all choose optima from the same grid
SETTINGS = {"fit_intercept": False, "tol": TOL}

Fits = Iterator[tuple[float, np.ndarray, float]]  # C, w, seconds


def run(report: Report) -> None:
    """Run the section."""
    for name in report.settings.source.names(GRIDS):
        data = report.load(name)
        if data is None:
            continue
        with report.attempt(data.name):
            split = folds(data, FOLDS, contiguous=name in CONTIGUOUS)[0]
            _case(report, split, GRIDS.get(name, TEXT))
    for name in CROSS:
        data = report.load(name)
        if data is None:
            continue
        with report.attempt(f"{name}, cross-validation"):
            _cross_validation(report, folds(data, FOLDS)[0], GRIDS[name])


# -- one split ------------------------------------------------------------------------


def _case(report: Report, split: Split, grid: Sequence[float]) -> None:
    train = split.train
    few = Problem(train, grid[0]).few_rows().data
    with warnings.catch_warnings():  # compiles
        warnings.simplefilter("ignore", ConvergenceWarning)
        linear_svc_path(few.X, few.y, grid[:2], **SETTINGS)
        linear_svc_path(train.X, train.y, grid[:2], max_iter=3, **SETTINGS)
    methods: dict[str, Callable[[], Fits]] = {
        "cutplane, path": lambda: _path(train, grid),
        "cutplane, fit by fit": lambda: _one_by_one(train, grid),
    }
    problem = Problem(train, grid[0])
    for peer in report.peers(problem, report.settings.peers, PEERS):
        report.warm_up(peer, problem)
        methods[peer.name] = lambda peer=peer: _peer(peer, train, grid)
    records = [
        _choose(split, name, fits(), len(grid), _budget(report, name))
        for name, fits in methods.items()
    ]
    mine = records[0]
    for record in records:
        record["ratio"] = record["seconds"] / mine["seconds"]
    checks = []
    for record in records[1:]:
        if record["method"] in ("scikit-learn", "liblinear") and record["complete"]:
            claim = f"test ROC area as good as with {record['method']}, up to {AS_GOOD:g}"
            checks.append(at_least(claim, mine["test"], record["test"] - AS_GOOD))
    case = {**train.facts(), "what": f"{train.name} selection", "grid": list(grid)}
    report.add({**case, "methods": records}, checks, train.name)
    words = (f"{r['method']} {r['seconds']:.2f} s ({r['test']:.4f})" for r in records)
    report.say(f"{train.name}: " + "; ".join(words))


def _budget(report: Report, name: str) -> float:
    return math.inf if name.startswith("cutplane") else report.settings.peer_seconds


def _path(train: DataSet, grid: Sequence[float]) -> Fits:
    begin = time.perf_counter()
    path = linear_svc_path(train.X, train.y, grid, **SETTINGS)
    seconds = time.perf_counter() - begin
    for C, coef in zip(grid, path.coefs, strict=True):
        yield C, coef[0], seconds / len(grid)


def _one_by_one(train: DataSet, grid: Sequence[float]) -> Fits:
    for C in grid:
        begin = time.perf_counter()
        model = LinearSVC(C=C, **SETTINGS).fit(train.X, train.y)
        yield C, model.coef_[0], time.perf_counter() - begin


def _peer(peer: Solver, train: DataSet, grid: Sequence[float]) -> Fits:
    prepared = peer.prepare(Problem(train, grid[0]))
    for C in grid:
        effort = STANDARD.get(peer.name, Effort())
        done = run_solver(peer, Problem(train, C), effort, prepared)
        yield C, np.asarray(done.model.w), done.seconds


def _choose(split: Split, name: str, fits: Fits, count: int, budget: float) -> dict[str, Any]:
    """The time of all fits, and the test value of the fit that the validation rows choose."""
    seconds, tried = 0.0, []
    for C, w, taken in fits:
        seconds += taken
        tried.append((_area(split.vali, w), C, w))
        if seconds > budget:
            break
    vali, C, w = max(tried, key=lambda t: t[0])
    return {
        "method": name,
        "seconds": seconds,
        "complete": len(tried) == count,
        "fits": len(tried),
        "C": C,
        "vali": vali,
        "test": _area(split.test, w),
    }


def _area(data: DataSet, w: np.ndarray) -> float:
    return float(roc_auc_score(data.y, data.X @ w))


# -- cross-validation -----------------------------------------------------------------


def _cross_validation(report: Report, split: Split, grid: Sequence[float]) -> None:
    train, jobs = split.train, min(2, usable_cores())
    cv = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    ours = LinearSVCCV(Cs=list(grid), cv=cv, scoring="roc_auc", n_jobs=jobs, **SETTINGS)
    peer = GridSearchCV(
        sklearn.svm.LinearSVC(loss="hinge", fit_intercept=False, random_state=0),
        {"C": list(grid)},
        scoring="roc_auc",
        cv=cv,
        n_jobs=jobs,
    )
    records = []
    for name, search in (("cutplane, LinearSVCCV", ours), ("scikit-learn, GridSearchCV", peer)):
        few = Problem(train, grid[0]).few_rows().data
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            search.fit(few.X, few.y)  # compiles, starts processes
            begin = time.perf_counter()
            search.fit(train.X, train.y)
            seconds = time.perf_counter() - begin
        scores = search.decision_function(split.test.X)
        records.append(
            {
                "method": name,
                "seconds": seconds,
                "complete": True,
                "fits": FOLDS * len(grid) + 1,
                "C": float(search.best_estimator_.C),
                "test": float(roc_auc_score(split.test.y, scores)),
            }
        )
    for record in records:
        record["ratio"] = record["seconds"] / records[0]["seconds"]
    difference = abs(records[0]["test"] - records[1]["test"])
    checks = [at_most("both choose equally good models", difference, AS_GOOD)]
    what = f"{train.name} cross-validation"
    case = {**train.facts(), "what": what, "grid": list(grid), "methods": records}
    report.add(case, checks, what)
    report.say(f"{what}: " + "; ".join(f"{r['method']} {r['seconds']:.2f} s" for r in records))
