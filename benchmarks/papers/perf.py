"""The figures of the SVM-perf paper: time and iterations against rows, ε and C.

C multiplies the mean loss, ε is the paper's: gap ≤ ε·C. The plain step, ``cpa``, is SVM-perf's own
algorithm. Where the paper shows SVM-light, a solver by decomposition, libsvm is in its place
(scikit-learn's ``SVC`` with the linear kernel, which has a bias that the others lack), or SVM-light
itself if it is on the PATH. Quality is accuracy, or where one class is rare the
precision at the break-even point, on a fifth of the rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning

from cutplane import linear_svc_path
from cutplane.metrics import prbep

from ..datasets import DataSet
from ..measures.selection import Split, folds
from ..measures.solvers import MeasureCutplane, MeasureProblem
from ..programs import SvmLight
from ..report import TOL, Check, Report, best_objective, certificate_checks
from ..solvers import Cutplane, Effort, Problem, Run, Solver
from .scaling import samples, sizes_of, slope_of
from .selection import CONTIGUOUS

DATA = ("aclimdb", "covtype", "a9a", "w8a", "celegans")
C = 1e4  # multiplies the mean loss
EPSILONS = (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)
STANDARD = 1e-3  # ε of the paper
WEIGHTS = (1e1, 1e2, 1e3, 1e4, 1e5, 1e6)  # values of C, which multiplies the mean loss
TIGHT = 1e-5
SMALLEST, STEP = 500, 10 ** (1 / 2)
STEPS = ("cpa", "ocas")
RARE = 0.2  # with a smaller share of positives, the break-even point is the measure


def _each(report: Report, work: Callable[[Report, DataSet, str], None]) -> None:
    for name in report.settings.source.names(DATA):
        data = report.load(name)
        if data is None:
            continue
        with report.attempt(data.name):
            work(report, data, name)


def _limited(report: Report, step: str, tol: float) -> Effort:
    settings = report.settings
    if step == "cpa":
        return Effort(tol, settings.cpa_iterations, settings.cpa_seconds)
    return Effort(tol, time_limit=settings.tight_seconds)


def _fit(report: Report, solver: Solver, problem: Any, effort: Effort) -> Run:
    report.warm_up(solver, problem)
    return report.timed(solver, problem, effort)


def _point(done: Run, **more: Any) -> dict[str, Any]:
    return {
        **more,
        "seconds": done.seconds,
        "n_iter": done.details["n_iter"],
        "objective": done.objective,
        "status": done.details["status"],
    }


def _held_out(data: DataSet, name: str) -> tuple[Split, Callable[[Run], float], str]:
    """A split, a function for the quality on its test rows in per cent, and the quality's name."""
    split = folds(data, 5, contiguous=name in CONTIGUOUS)[0]
    test = split.test
    rare = np.mean(test.y > 0) < RARE

    def quality(done: Run) -> float:
        scores = test.X @ np.asarray(done.model.w) + done.model.b
        if rare:
            return 100.0 * prbep(test.y, scores)
        return 100.0 * float(np.mean((scores > 0) == (test.y > 0)))

    return split, quality, "PRBEP" if rare else "accuracy"


# -- rows -----------------------------------------------------------------------------


def run_rows(report: Report) -> None:
    """Time and iterations against the number of rows, fixed C, best C, and ordinal regression."""
    _each(report, _rows)


def _rows(report: Report, data: DataSet, name: str) -> None:
    checks: list[Check] = []
    taken = samples(data, sizes_of(data, SMALLEST, STEP))
    curves: dict[str, list[dict[str, Any]]] = {}
    for sample in taken:
        rows = len(sample.y)
        problem = Problem(sample, C / rows)
        for step in STEPS:
            solver = Cutplane(step, "epsilon")
            done = _fit(report, solver, problem, _limited(report, step, STANDARD))
            checks += certificate_checks([done])
            curves.setdefault(f"{step}, classification", []).append(_point(done, rows=rows))
        best = Problem(sample, _best_weight(sample))
        done = _fit(report, Cutplane("ocas", "epsilon"), best, _limited(report, "ocas", STANDARD))
        point = _point(done, rows=rows, C=best.C * rows)
        curves.setdefault("ocas, best C of that size", []).append(point)
        pairs = MeasureProblem(sample, C, "roc_auc")
        done = _fit(report, MeasureCutplane("ocas"), pairs, _limited(report, "ocas", TOL))
        curves.setdefault("ocas, ordinal regression", []).append(_point(done, rows=rows))
    curves["decomposition"] = _decomposition(report, taken)
    slopes = {key: slope_of(points) for key, points in curves.items()}
    case = {**data.facts(), "what": f"{data.name} by rows", "C": C}
    report.add({**case, "curves": curves, "slopes": slopes}, checks, data.name)
    words = (f"{key} {value or np.nan:.2f}" for key, value in slopes.items())
    report.say(f"{data.name}: slopes " + "; ".join(words))


def _best_weight(sample: DataSet) -> float:
    """The C with the best accuracy on a fifth of the rows."""
    split = folds(sample, 5)[0]
    grid = np.array(WEIGHTS[1:-1]) / len(sample.y)
    if np.ptp(split.train.y) == 0:
        return float(grid[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = linear_svc_path(
            split.train.X, split.train.y, grid, fit_intercept=False, time_limit=3.0
        )
    scores = split.vali.X @ path.coefs[:, 0].T
    right = ((scores > 0) == (split.vali.y > 0)[:, None]).mean(axis=0)
    return float(grid[int(np.argmax(right))])


def _decomposition(report: Report, taken: list[DataSet]) -> list[dict[str, Any]]:
    """Runs of libsvm, or of SVM-light if it is installed, with as many rows as time allows."""
    points: list[dict[str, Any]] = []
    light = SvmLight()
    for sample in taken:
        rows = len(sample.y)
        # Twice the rows take about four times as long.
        if points and points[-1]["seconds"] * (rows / points[-1]["rows"]) ** 2 > (
            report.settings.peer_seconds
        ):
            break
        if light.missing() is None:
            done = report.timed(light, Problem(sample, C / rows), Effort())
            points.append({"rows": rows, "seconds": done.seconds, "solver": light.name})
            continue
        X = sample.X.astype(np.float64)
        begin = time.perf_counter()
        sklearn.svm.SVC(kernel="linear", C=C / rows).fit(X, sample.y)
        points.append({"rows": rows, "seconds": time.perf_counter() - begin, "solver": "libsvm"})
    return points


# -- ε and C --------------------------------------------------------------------------


def run_tolerances(report: Report) -> None:
    """Iterations, time, quality and objective against ε."""
    _each(report, _tolerances)


def _tolerances(report: Report, data: DataSet, name: str) -> None:
    split, quality, measure = _held_out(data, name)
    problem = Problem(split.train, C / len(split.train.y))
    runs: dict[str, list[tuple[float, Run]]] = {step: [] for step in STEPS}
    for step, several in runs.items():
        for epsilon in EPSILONS:
            done = _fit(report, Cutplane(step, "epsilon"), problem, _limited(report, step, epsilon))
            several.append((epsilon, done))
            if done.details["status"] != "converged":
                break  # a smaller ε takes longer
    tight = _tight(report, problem)
    everything = [tight, *(r for several in runs.values() for _, r in several)]
    best = best_objective(everything)
    curves = {
        step: [
            {**_point(r, epsilon=eps), "quality": quality(r), "above": r.objective / best - 1.0}
            for eps, r in several
        ]
        for step, several in runs.items()
    }
    case = {**split.train.facts(), "what": f"{data.name} by ε", "C": C, "measure": measure}
    case |= {"best_known": best, "best_quality": quality(tight), "curves": curves}
    report.add(case, certificate_checks(everything), data.name)
    report.say(f"{data.name}: " + _counts(curves))


def run_weights(report: Report) -> None:
    """Iterations, time, quality and objective against C."""
    _each(report, _weights)


def _weights(report: Report, data: DataSet, name: str) -> None:
    split, quality, measure = _held_out(data, name)
    curves: dict[str, list[dict[str, Any]]] = {step: [] for step in STEPS}
    checks: list[Check] = []
    over: set[str] = set()
    for weight in WEIGHTS:
        problem = Problem(split.train, weight / len(split.train.y))
        tight = _tight(report, problem)
        runs = {
            step: _fit(report, Cutplane(step, "epsilon"), problem, _limited(report, step, STANDARD))
            for step in STEPS
            if step not in over
        }
        everything = [tight, *runs.values()]
        best, exact = best_objective(everything), quality(tight)
        checks += certificate_checks(everything)
        for step, done in runs.items():
            point = _point(done, C=weight, quality=quality(done), exact_quality=exact)
            curves[step].append({**point, "above": done.objective / best - 1.0})
            if done.details["status"] != "converged":
                over.add(step)  # a larger C takes longer
    case = {**split.train.facts(), "what": f"{data.name} by C", "measure": measure}
    report.add({**case, "epsilon": STANDARD, "curves": curves}, checks, data.name)
    report.say(f"{data.name}: " + _counts(curves))


def _tight(report: Report, problem: Problem) -> Run:
    effort = Effort(tol=TIGHT, time_limit=report.settings.tight_seconds)
    return _fit(report, Cutplane("auto"), problem, effort)


def _counts(curves: dict[str, list[dict[str, Any]]]) -> str:
    return "; ".join(
        f"{step} " + ", ".join(str(p["n_iter"]) for p in points) for step, points in curves.items()
    )
