"""OCAS and CPA for every risk: iterations to relative gap 1e-3, evaluations per line search."""

from __future__ import annotations

from ..report import (
    TOL,
    Report,
    at_most,
    best_objective,
    certificate_checks,
    converged_check,
    reached_check,
    thin_trace,
)
from ..solvers import Effort, Run
from .solvers import MeasureCutplane, MeasureProblem, line_evaluations

MOST_EVALUATIONS = 5.0  # the largest allowed mean per line search
# Risk, data, C, and the iterations to beat: those of the prototype at its best λ, 0.05.
CASES: tuple[tuple[str, str, float, int | None], ...] = (
    ("roc_auc", "covtype", 1e3, None),
    ("roc_auc", "covtype", 1e5, None),
    ("roc_auc", "w8a", 1e3, 19),
    ("roc_auc", "w8a", 1e5, 71),
    *((loss, "w8a", C, None) for loss in ("f1", "precision_at_k") for C in (1e4, 1e5, 1e6)),
    *((loss, "w8a", C, None) for loss in ("recall_at_k", "prbep") for C in (1e4, 1e5, 1e6)),
    ("ranking", "mq2008", 1e3, None),
    ("ranking", "mq2008", 1e5, None),
    ("ordinal", "abalone", 1e3, None),
    ("ordinal", "abalone", 1e5, None),
    ("ordinal", "california10", 1e3, None),
    ("ordinal", "california10", 1e5, None),
)


def run(report: Report) -> None:
    """Run the section."""
    for loss, name, C, target in CASES:
        data = report.load(name)
        if data is None:
            continue
        label = f"{name} {loss} C={C:g}"
        with report.attempt(label):
            _case(report, MeasureProblem(data, C, loss), target, label)


def _case(report: Report, problem: MeasureProblem, target: int | None, label: str) -> None:
    settings = report.settings
    efforts = {
        "ocas": Effort(tol=TOL, time_limit=settings.tight_seconds),
        "cpa": Effort(tol=TOL, max_iter=settings.cpa_iterations, time_limit=settings.cpa_seconds),
    }
    runs: list[Run] = []
    records = []
    for algorithm, effort in efforts.items():
        solver = MeasureCutplane(algorithm)
        report.warm_up(solver, problem)
        done = report.timed(solver, problem, effort)
        runs.append(done)
        records.append({**done.record(), "trace": thin_trace(done.result)})
        report.say(
            f"{label} {algorithm}: {done.details['n_iter']} iterations, {done.seconds:.2f} s, "
            f"relative gap {done.details['relative_gap']:.2e}, {done.details['status']}"
        )
    ocas, cpa = (r.details["n_iter"] for r in runs)
    needed = line_evaluations(runs[0].details)
    claim = f"evaluations per line search ≤ {MOST_EVALUATIONS:g}"
    checks = [
        *certificate_checks(runs),
        converged_check(runs[0]),
        reached_check(runs[0], runs),
        at_most(claim, needed, MOST_EVALUATIONS),
        at_most("OCAS iterations ≤ CPA iterations", ocas, cpa),
    ]
    if target is not None:
        checks.append(at_most(f"iterations ≤ {target}", ocas, target))
    report.say(f"{label}: {needed:.2f} evaluations per line search")
    case = {
        **problem.facts(),
        "target": target,
        "best_known": best_objective(runs),
        "runs": records,
        "line_evaluations": needed,
    }
    report.add(case, checks, label)
