"""The table "classification / ordinal regression" of the SVM-perf paper, on our data.

As there, binary labels are two ranks. What the paper's SVM-light was, a solver that needs the
pairs one by one, is scikit-learn's LinearSVC on all differences x_i − x_j here: on samples, because
no data set of the table fits in memory that way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..datasets import SEED, DataSet
from ..report import TOL, Report, best_objective, certificate_checks
from ..risks import count_pairs
from ..solvers import Effort, Problem, Run, ScikitLearn
from .solvers import MeasureCutplane, MeasureProblem, PairDifferences

DATA = ("aclimdb", "a9a", "w8a", "covtype", "mnist8", "celegans")
C = 1e4  # multiplies the mean loss, for both tasks
BUDGET = 24 * 2**30  # bytes
# Data and risk whose samples are also solved with all pairs.
PAIRS = (("w8a", "roc_auc"), ("covtype", "roc_auc"), ("california10", "ordinal"))
SAMPLES = (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
VALUE, INDEX, POINTER = 8, 4, 8  # bytes of each in a CSR matrix
NODE = 16  # bytes per non-zero in liblinear's own copy
MOST_BYTES_RUN = 8 * 2**30  # a sample whose matrix and copy take more is not run
PASSES = 200


def run(report: Report) -> None:
    """Run the section."""
    for name in DATA:
        data = report.load(name)
        if data is None:
            continue
        with report.attempt(name):
            _full(report, data)
    for name, loss in PAIRS:
        data = report.load(name)
        if data is None:
            continue
        with report.attempt(f"{name} by pairs"):
            _samples(report, data, loss)


# -- the table ------------------------------------------------------------------------


def _full(report: Report, data: DataSet) -> None:
    settings = report.settings
    efforts = {
        "ocas": Effort(tol=TOL, time_limit=settings.tight_seconds),
        "cpa": Effort(tol=TOL, max_iter=settings.cpa_iterations, time_limit=settings.cpa_seconds),
    }
    tasks: dict[str, Any] = {}
    checks = []
    for task, loss in (("classification", "error_rate"), ("ordinal", "roc_auc")):
        problem = MeasureProblem(data, C, loss)
        runs: list[Run] = []
        for algorithm, effort in efforts.items():
            solver = MeasureCutplane(algorithm)
            report.warm_up(solver, problem)
            runs.append(report.timed(solver, problem, effort))
        if task == "classification":
            # scikit-learn's C multiplies the sum; this makes the objective the same.
            peer, plain = ScikitLearn(), Problem(data, C / len(data.y))
            report.warm_up(peer, plain)
            runs.append(report.timed(peer, plain, Effort()))
        checks += certificate_checks(runs)
        tasks[task] = {
            "best_known": best_objective(runs),
            "runs": [r.record() for r in runs],
        }
        words = (f"{r.solver} {r.seconds:.2f} s, {r.details['n_iter']} iterations" for r in runs)
        report.say(f"{data.name} {task}: " + "; ".join(words))
    size = pair_matrix(data)
    report.say(f"{data.name}: {size['pairs']:.3g} pairs, {size['bytes'] / 2**30:.3g} GiB")
    case = {**data.facts(), "what": data.name, "C": C, **tasks, "pair_matrix": size}
    report.add(case, checks, data.name)


def pair_matrix(data: DataSet, tried: int = 4000) -> dict[str, Any]:
    """The size of the matrix of all differences, estimated from some, and how many rows fit.

    A sample has the same share of comparable pairs, so half the rows have a quarter of the pairs.
    """
    rng = np.random.default_rng(SEED)
    first, second = rng.integers(0, len(data.y), size=(2, 4 * tried))
    differ = data.y[first] != data.y[second]
    first, second = first[differ][:tried], second[differ][:tried]
    nonzeros = (data.X[first] - data.X[second]).count_nonzero() / len(first)
    pairs = count_pairs(data.y, data.qid)
    matrix = pairs * (nonzeros * (VALUE + INDEX) + POINTER)
    copied = matrix + pairs * (nonzeros + 2) * NODE
    return {
        "pairs": pairs,
        "nonzeros_per_pair": nonzeros,
        "bytes": matrix,
        "bytes_with_copy": copied,
        "rows_that_fit": int(len(data.y) * math.sqrt(BUDGET / matrix)),
        "rows_that_fit_with_copy": int(len(data.y) * math.sqrt(BUDGET / copied)),
        "budget": BUDGET,
    }


# -- where pairs end ------------------------------------------------------------------


def _samples(report: Report, data: DataSet, loss: str) -> None:
    order = np.random.default_rng(SEED).permutation(len(data.y))
    spent = before = 0.0
    for rows in (*(m for m in SAMPLES if m < len(data.y)), len(data.y)):
        sample = data if rows == len(data.y) else data.take(np.sort(order[:rows]))
        if len(np.unique(sample.y)) < 2:
            continue
        problem = MeasureProblem(sample, C, loss)
        ours = MeasureCutplane()
        report.warm_up(ours, problem)
        effort = Effort(tol=TOL, time_limit=report.settings.tight_seconds)
        runs = [report.timed(ours, problem, effort)]
        size = pair_matrix(sample)
        # Four times the pairs will take at least four times as long.
        in_time = spent + 4.0 * before <= report.settings.peer_seconds
        in_memory = size["bytes_with_copy"] <= MOST_BYTES_RUN
        if in_time and in_memory:
            peer = PairDifferences()
            report.warm_up(peer, problem_of_few(problem))
            runs.append(report.timed(peer, problem, Effort(max_iter=PASSES)))
            before = runs[-1].seconds
            spent += before
        why = "run" if len(runs) == 2 else "time" if not in_time else "memory"
        if why != "run" and size["bytes"] > BUDGET:
            why = "budget"
        words = "; ".join(f"{r.solver} {r.seconds:.3f} s" for r in runs)
        report.say(f"{data.name} {rows} rows, {size['pairs']:.3g} pairs: {words} ({why})")
        case = {
            **problem.facts(),
            "what": f"{data.name} {rows} by pairs",
            "best_known": best_objective(runs),
            "pair_matrix": size,
            "ended": why,
            "most_bytes_run": MOST_BYTES_RUN,
            "runs": [r.record() for r in runs],
        }
        report.add(case, certificate_checks(runs), case["what"])


def problem_of_few(problem: MeasureProblem, rows: int = 60) -> MeasureProblem:
    """A sample of so many rows, with different targets."""
    order = np.argsort(problem.data.y, kind="stable")
    ends = np.unique([*order[: rows // 2], *order[-rows // 2 :]])
    return MeasureProblem(problem.data.take(ends), problem.C, problem.loss)
