"""Figures 1 and 2 of the OCAS paper: objective against iterations and against time.

CPA, OCAS and the default solver write down every iteration of one run. A peer cannot say what it
had after a second: it is run again and again from the same seed with more passes, and every run
is one point of its curve.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..peers import PEERS, ladder
from ..report import TOL, Report, best_objective, certificate_checks, thin_trace
from ..solvers import Cutplane, Effort, Problem, Run, Solver

# The C of each set is within a factor of ten of the one that validation chooses.
CASES: dict[str, float] = {
    "covtype": 1.0,
    "mnist8": 0.1,
    "aclimdb": 1.0,
    "a9a": 1.0,
    "w8a": 1.0,
    "celegans": 0.1,
}
FILE_C = 1.0
TIGHT = 1e-6  # as in the paper
SHOWN = ("scikit-learn", "SGDClassifier", "snapml, 2 threads")
EPOCHS = 10  # of SGD in the paper
GROWTH = 1.5  # the next run has so many times the passes
CURVE_SHARE = 0.3  # a peer's curve may take this part of --peer-seconds


def problems(report: Report) -> Iterator[tuple[Problem, str]]:
    """The named problems of this section and of section ``peers``."""
    for name in report.settings.source.names(CASES):
        data = report.load(name)
        if data is not None:
            C = CASES.get(name, FILE_C)
            yield Problem(data, C), f"{data.name} C={C:g}"


def run(report: Report) -> None:
    """Run the section."""
    for problem, label in problems(report):
        with report.attempt(label):
            _case(report, problem, label)


def _case(report: Report, problem: Problem, label: str) -> None:
    settings = report.settings
    limited = {"tol": TOL, "max_iter": settings.cpa_iterations, "time_limit": settings.cpa_seconds}
    efforts = {
        "ocas": Effort(tol=TIGHT, time_limit=settings.tight_seconds),
        "cpa": Effort(**limited),
        "auto": Effort(tol=TIGHT, time_limit=settings.tight_seconds),
    }
    runs: list[Run] = []
    for algorithm, effort in efforts.items():
        solver = Cutplane(algorithm)
        report.warm_up(solver, problem)
        runs.append(report.timed(solver, problem, effort))
    curves: list[dict[str, Any]] = []
    everything = list(runs)
    for peer in report.peers(problem, [n for n in SHOWN if n in settings.peers], PEERS):
        several = _curve(report, peer, problem)
        everything += several
        points = [
            {"passes": r.effort.max_iter, "seconds": r.seconds, "objective": r.objective}
            for r in several
        ]
        curves.append({"solver": peer.name, "points": points})
    best = best_objective(everything)
    records = [{**r.record(), "trace": thin_trace(r.result)} for r in runs]
    case = {
        **problem.facts(),
        "best_known": best,
        "runs": records[:2],
        "auto": records[2],
        "peers": curves,
    }
    report.add(case, certificate_checks(everything), label)
    words = (f"{r.solver} {r.objective / best - 1:.1e} after {r.seconds:.2f} s" for r in runs)
    report.say(f"{label}: " + "; ".join(words))


def _curve(report: Report, peer: Solver, problem: Problem) -> list[Run]:
    """Runs with more and more passes. Those of SGD include the paper's number of epochs."""
    report.warm_up(peer, problem)
    prepared = peer.prepare(problem)
    left = CURVE_SHARE * report.settings.peer_seconds
    several = []
    for effort in ladder(peer, GROWTH):
        several.append(report.timed(peer, problem, effort, prepared))
        left -= several[-1].seconds
        if left < 0.0:
            break
    passes = {r.effort.max_iter for r in several}
    if peer.name == "SGDClassifier" and EPOCHS not in passes:
        effort = Effort(tol=several[0].effort.tol, max_iter=EPOCHS)
        several.append(report.timed(peer, problem, effort, prepared))
        several.sort(key=lambda r: r.effort.max_iter or 0)
    return several
