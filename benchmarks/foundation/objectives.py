"""Objectives against the peers', ours at 1e-3 and tight, every loss; certificates checked."""

from __future__ import annotations

from ..report import (
    TOL,
    Report,
    best_objective,
    certificate_checks,
    converged_check,
    reached_check,
)
from ..solvers import Cutplane, Effort, Problem, Run

TIGHT = 1e-6
# Data, loss, C, bias. C of the Crammer–Singer cases is such that liblinear ends in a minute.
CASES: tuple[tuple[str, str, float, str], ...] = (
    ("covtype", "hinge", 1.0, "none"),
    ("covtype", "hinge", 10.0, "none"),
    ("mnist8", "hinge", 0.1, "none"),
    ("mnist8", "hinge", 1.0, "none"),
    ("aclimdb", "hinge", 0.1, "none"),
    ("aclimdb", "hinge", 1.0, "none"),
    ("aclimdb", "hinge", 10.0, "none"),
    ("aclimdb", "squared_hinge", 0.1, "none"),
    ("aclimdb", "squared_hinge", 1.0, "none"),
    ("aclimdb", "squared_hinge", 1.0, "regularised"),
    ("aclimdb", "logistic", 1.0, "none"),
    ("aclimdb", "logistic", 10.0, "none"),
    ("aclimdb", "logistic", 1.0, "free"),
    ("a9a", "hinge", 1.0, "none"),
    ("a9a", "hinge", 1.0, "regularised"),
    ("a9a", "squared_hinge", 1.0, "none"),
    ("a9a", "squared_hinge", 1.0, "regularised"),
    ("a9a", "squared_hinge", 1.0, "free"),
    ("a9a", "logistic", 1.0, "none"),
    ("a9a", "logistic", 1.0, "free"),
    ("w8a", "hinge", 1.0, "none"),
    ("usps", "crammer_singer", 0.1, "none"),
    ("usps", "crammer_singer", 1.0, "none"),
    ("mnist", "crammer_singer", 0.01, "none"),
    ("mnist", "crammer_singer", 0.1, "none"),
)


def run(report: Report) -> None:
    """Run the section."""
    for name, loss, C, bias in CASES:
        data = report.load(name)
        if data is None:
            continue
        label = f"{name} {loss} C={C:g}" + (f" bias {bias}" if bias != "none" else "")
        with report.attempt(label):
            _case(report, Problem(data, C, loss, bias), label)


def _case(report: Report, problem: Problem, label: str) -> None:
    ours = Cutplane()
    report.warm_up(ours, problem)
    runs: list[Run] = [
        report.timed(ours, problem, Effort(tol=tol, time_limit=report.settings.tight_seconds))
        for tol in (TOL, TIGHT)
    ]
    for peer in report.peers(problem):
        report.warm_up(peer, problem)
        runs.append(report.timed(peer, problem, Effort()))
    best = best_objective(runs)
    for done in runs:
        report.say(
            f"{label}: {done.solver} {done.effort.facts().get('tol', '')} objective "
            f"{done.objective:.8g}, {done.objective / best - 1:.1e} above best, "
            f"{done.seconds:.2f} s"
        )
    case = {**problem.facts(), "best_known": best, "runs": [r.record() for r in runs]}
    checks = [
        *certificate_checks(runs),
        converged_check(runs[0]),
        reached_check(runs[0], runs),
    ]
    report.add(case, checks, label)
