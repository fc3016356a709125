"""Iterations to relative gap 1e-3, hinge without bias: OCAS and CPA, with traces for Figure 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..report import (
    TOL,
    Check,
    Report,
    at_most,
    best_objective,
    certificate_checks,
    converged_check,
    reached_check,
    thin_trace,
)
from ..solvers import Cutplane, Effort, Problem, Run, Solver

if TYPE_CHECKING:
    from ..measures.solvers import MeasureProblem

# Data, C, and the iterations of the untuned prototype, which are to be beaten.
CASES: tuple[tuple[str, float, int | None], ...] = (
    ("covtype", 1.0, 119),
    ("covtype", 10.0, 166),
    ("mnist8", 0.1, 84),
    ("mnist8", 1.0, 190),
    ("aclimdb", 0.1, None),
    ("aclimdb", 1.0, None),
    ("aclimdb", 10.0, None),
)


def run(report: Report) -> None:
    """Run the section."""
    for name, C, target in CASES:
        data = report.load(name)
        if data is None:
            continue
        label = f"{name} C={C:g}"
        with report.attempt(label):
            _case(report, Problem(data, C), target, label)


def _case(report: Report, problem: Problem, target: int | None, label: str) -> None:
    case, checks, _ = both_steps(report, problem, target, label, Cutplane)
    report.add(case, checks, label)


def both_steps(
    report: Report,
    problem: Problem | MeasureProblem,
    target: int | None,
    label: str,
    make: Callable[[str], Solver],
) -> tuple[dict[str, Any], list[Check], list[Run]]:
    """OCAS and CPA on a problem: the case, its checks, and the two runs."""
    settings = report.settings
    efforts = {
        "ocas": Effort(tol=TOL, time_limit=settings.tight_seconds),
        "cpa": Effort(tol=TOL, max_iter=settings.cpa_iterations, time_limit=settings.cpa_seconds),
    }
    runs, records = [], []
    for algorithm, effort in efforts.items():
        solver = make(algorithm)
        report.warm_up(solver, problem)
        done = report.timed(solver, problem, effort)
        runs.append(done)
        records.append({**done.record(), "trace": thin_trace(done.result)})
        report.say(
            f"{label} {algorithm}: {done.details['n_iter']} iterations, {done.seconds:.2f} s, "
            f"relative gap {done.details['relative_gap']:.2e}, {done.details['status']}"
        )
    checks = [
        *certificate_checks(runs),
        converged_check(runs[0]),
        reached_check(runs[0], runs),
    ]
    if target is not None:
        needed = runs[0].details["n_iter"]
        checks.append(at_most(f"iterations ≤ {target}", needed, target))
    case = {
        **problem.facts(),
        "target": target,
        "best_known": best_objective(runs),
        "runs": records,
    }
    return case, checks, runs
