"""OCAS and CPA for every risk: iterations to relative gap 1e-3, evaluations per line search."""

from __future__ import annotations

from ..foundation.iterations import both_steps
from ..report import Report, at_most
from .solvers import MeasureCutplane, MeasureProblem, line_evaluations

MOST_EVALUATIONS = 5.0  # per line search, on average
# Risk, data, C, and the iterations of the prototype at its best λ, 0.05, which are to be beaten.
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
    case, checks, runs = both_steps(report, problem, target, label, MeasureCutplane)
    needed = line_evaluations(runs[0].details)
    claim = f"evaluations per line search ≤ {MOST_EVALUATIONS:g}"
    checks.append(at_most(claim, needed, MOST_EVALUATIONS))
    ocas, cpa = (r.details for r in runs)
    checks.append(at_most("OCAS iterations ≤ CPA iterations", ocas["n_iter"], cpa["n_iter"]))
    report.say(f"{label}: {needed:.2f} evaluations per line search")
    report.add({**case, "line_evaluations": needed}, checks, label)
