"""The position λ of the cut: iterations at fixed values against the library's own rule."""

from __future__ import annotations

from ..report import (
    TOL,
    Report,
    at_most,
    best_objective,
    certificate_checks,
    converged_check,
)
from ..solvers import Effort, Problem, Run, automatic_position, fixed_position
from .iterations import CASES

POSITIONS = (0.02, 0.05, 0.1, 0.2)


def run(report: Report) -> None:
    """Run the section."""
    for name, C, _ in CASES:
        data = report.load(name)
        if data is None:
            continue
        label = f"{name} C={C:g}"
        with report.attempt(label):
            _case(report, Problem(data, C), label)


def _case(report: Report, problem: Problem, label: str) -> None:
    settings = report.settings
    effort = Effort(tol=TOL, max_iter=settings.cpa_iterations, time_limit=settings.cpa_seconds)
    automatic = automatic_position()
    solvers = [*(fixed_position(p) for p in POSITIONS), automatic]
    runs: list[Run] = []
    for solver in solvers:
        report.warm_up(solver, problem)
        runs.append(report.timed(solver, problem, effort))
    words = [f"{r.solver}: {r.details['n_iter']} ({r.details['status']})" for r in runs]
    report.say(f"{label}: " + ", ".join(words))
    own = runs[-1]
    checks = [*certificate_checks(runs), converged_check(own)]
    ended = [r.details["n_iter"] for r in runs[:-1] if r.details["status"] == "converged"]
    if ended and own.details["status"] == "converged":
        checks.append(at_most("own rule ≤ best fixed λ", own.details["n_iter"], min(ended)))
    case = {
        **problem.facts(),
        "automatic": automatic.name,
        "best_known": best_objective(runs),
        "runs": [r.record() for r in runs],
    }
    report.add(case, checks, label)
