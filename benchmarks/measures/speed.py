"""Wall time to relative gap 1e-3 over pairs, against the best peers.

The peers' CPU seconds were measured beforehand at their own stopping rules, on the kind of machine
that is named there. Installed peers also run here, to the same objective. A peer has no
certificate, so it cannot tell when to stop. It runs with smaller and smaller tolerances, and the
first run that ends within 1e-3 counts. Times are without compiling.
"""

from __future__ import annotations

from typing import Any

from ..measure import spread, usable_cores
from ..peers import TOLERANCES
from ..report import (
    TOL,
    Report,
    at_least,
    best_objective,
    certificate_checks,
    reached_check,
)
from ..solvers import Effort, Run, Solver
from .solvers import PEERS, MeasureCutplane, MeasureProblem, line_evaluations

TIGHT = 1e-5
# Risk, data, C, the best peer with its earlier measured CPU seconds, and the wanted ratio.
CASES: tuple[tuple[str, str, float, str, float, float], ...] = (
    ("roc_auc", "covtype", 1e3, "dlib", 9.0, 3.0),
    ("roc_auc", "covtype", 1e5, "dlib", 78.0, 3.0),
    ("roc_auc", "w8a", 1e3, "dlib", 0.35, 3.0),
    ("roc_auc", "w8a", 1e5, "dlib", 4.0, 3.0),
    ("ranking", "mq2008", 1e3, "dlib", 0.14, 1.0),
    ("ranking", "mq2008", 1e5, "SVM-rank", 2.5, 1.0),
)


def run(report: Report) -> None:
    """Run the section."""
    for loss, name, C, peer, seconds, wanted in CASES:
        data = report.load(name)
        if data is None:
            continue
        label = f"{name} {loss} C={C:g}"
        with report.attempt(label):
            problem = MeasureProblem(data, C, loss)
            published = {"solver": peer, "cpu_seconds": seconds, "wanted": wanted}
            _case(report, problem, published, label)


def _case(report: Report, problem: MeasureProblem, published: dict[str, Any], label: str) -> None:
    settings = report.settings
    ours = MeasureCutplane()
    report.warm_up(ours, problem)
    runs: list[Run] = []
    entries: list[dict[str, Any]] = []
    for threads in (2, 1):
        if threads > usable_cores():
            report.skip(f"{threads} threads: this process may use {usable_cores()} core(s) only")
            continue
        effort = Effort(tol=TOL, threads=threads, time_limit=settings.tight_seconds)
        several = [report.timed(ours, problem, effort) for _ in range(settings.repeats)]
        runs += several
        entry = {
            "solver": ours.name,
            "threads": threads,
            "seconds": spread([r.seconds for r in several]),
            "line_evaluations": line_evaluations(several[0].details),
            "runs": [r.record() for r in several],
        }
        entries.append(entry)
        report.say(f"{label}: ours, {threads} thread(s), {entry['seconds']['median']:.3f} s median")
    plain = MeasureCutplane("cpa")
    report.warm_up(plain, problem)
    limited = Effort(tol=TOL, max_iter=settings.cpa_iterations, time_limit=settings.cpa_seconds)
    runs.append(report.timed(plain, problem, limited))
    entries.append({"solver": plain.name, "runs": [runs[-1].record()]})
    tight = Effort(tol=TIGHT, time_limit=settings.tight_seconds)
    runs.append(report.timed(ours, problem, tight))
    entries.append({"solver": ours.name, "tight": True, "runs": [runs[-1].record()]})
    for peer in report.peers(problem, settings.peers, PEERS):
        tried, entry = _race_peer(report, peer, problem, best_objective(runs), label)
        runs += tried
        entries.append(entry)
    checks = [*certificate_checks(runs), reached_check(runs[0], runs)]
    mine = next((e["seconds"]["median"] for e in entries if e.get("threads") == 2), None)
    if mine is not None:
        published["ratio"] = published["cpu_seconds"] / mine
        claim = f"{published['solver']}'s CPU s / ours with 2 threads ≥ {published['wanted']:g}"
        checks.append(at_least(claim, published["ratio"], published["wanted"]))
        for entry in (e for e in entries if "reached" in e):
            entry["ratio"] = entry["seconds_to_count"] / mine
            claim = f"{entry['solver']} here / ours with 2 threads ≥ {published['wanted']:g}"
            checks.append(at_least(claim, entry["ratio"], published["wanted"]))
    best = best_objective(runs)
    case = {**problem.facts(), "best_known": best, "published": published, "solvers": entries}
    report.add(case, checks, label)


def _race_peer(
    report: Report, peer: Solver, problem: MeasureProblem, best: float, label: str
) -> tuple[list[Run], dict[str, Any]]:
    """The runs of a peer with smaller and smaller tolerances, and its entry in the case."""
    report.warm_up(peer, problem)
    prepared = peer.prepare(problem)
    left, reached = report.settings.peer_seconds, False
    tried: list[Run] = []
    for tol in (*TOLERANCES, 1e-5, 1e-6):
        tried.append(report.timed(peer, problem, Effort(tol=tol), prepared))
        left -= tried[-1].seconds
        reached = tried[-1].objective <= best * (1 + TOL)
        if reached or left <= 0.0:
            break
    entry: dict[str, Any] = {"solver": peer.name, "reached": reached}
    if reached:
        effort = tried[-1].effort
        again = [
            report.timed(peer, problem, effort, prepared)
            for _ in range(report.settings.repeats - 1)
        ]
        entry["seconds"] = spread([r.seconds for r in (tried[-1], *again)])
        entry["seconds_to_count"] = entry["seconds"]["best"]
        entry["effort"] = effort.facts()
        tried += again
    else:
        entry["seconds_to_count"] = max(r.seconds for r in tried)
    closest = min(r.objective for r in tried) / best - 1
    words = "in" if reached else "not reached after"
    report.say(f"{label}: {peer.name} {words} {entry['seconds_to_count']:.3f} s ({closest:+.1e})")
    entry["runs"] = [r.record() for r in tried]
    return tried, entry
