"""Wall time to relative gap 1e-3 over pairs, against the best peers.

The peers' CPU seconds were measured beforehand (on the kind of machine that is written there),
at their own stopping rules. Peers that are installed run again here, to the same objective: a peer
has no certificate, so nobody could tell when to stop it. It is run again and again from the same
seed with more passes (and, apart from that, with smaller tolerances), and the fastest run that ends
within 1e-3 counts. Compiling is not in the times.
"""

from __future__ import annotations

import math
from typing import Any

from ..measure import spread, usable_cores
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
GROWTH = 1.25  # of the passes from run to run: how much too long a peer's time may be
GROWTH_QUICK = 2.0
FIRST_PASSES = 4
TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6)
# Risk, data, C, the best peer measured beforehand with its CPU seconds, and the wanted ratio.
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
    """All runs of a peer on a case, and its entry."""
    report.warm_up(peer, problem)
    enough = best * (1 + TOL)
    prepared = peer.prepare(problem)
    by_passes = _by_passes(report, peer, problem, prepared, enough)
    by_tolerance = _by_tolerance(report, peer, problem, prepared, enough, by_passes)
    tried = [*by_passes, *by_tolerance]
    within = [r for r in tried if r.objective <= enough]
    entry: dict[str, Any] = {"solver": peer.name, "reached": bool(within)}
    if within:
        winner = min(within, key=lambda r: r.seconds)
        again = [
            report.timed(peer, problem, winner.effort, prepared)
            for _ in range(report.settings.repeats - 1)
        ]
        entry["seconds"] = spread([winner.seconds, *(r.seconds for r in again)])
        entry["seconds_to_count"] = entry["seconds"]["best"]
        entry["effort"] = winner.effort.facts()
        tried += again
        report.say(f"{label}: {peer.name} within {TOL:g} in {entry['seconds']['best']:.3f} s")
    else:
        # Either way takes longer than its longest run; a peer that takes no passes has one way.
        counted = "n_iter" in by_passes[-1].details
        ways = (by_passes, by_tolerance) if counted else (by_tolerance,)
        entry["seconds_to_count"] = min(max(r.seconds for r in way) for way in ways)
        closest = min(r.objective for r in tried) / best - 1
        report.say(
            f"{label}: {peer.name} not within {TOL:g} after {entry['seconds_to_count']:.1f} s "
            f"({closest:.1e} above the best known)"
        )
    entry["runs"] = [r.record() for r in tried]
    return tried, entry


def _by_passes(
    report: Report,
    peer: Solver,
    problem: MeasureProblem,
    prepared: Any,
    enough: float,
) -> list[Run]:
    """More and more passes at the peer's default tolerance, for half the time that it gets."""
    growth = GROWTH_QUICK if report.settings.quick else GROWTH
    passes, spent = FIRST_PASSES, 0.0
    tried: list[Run] = []
    while True:
        done = report.timed(peer, problem, Effort(max_iter=passes), prepared)
        tried.append(done)
        spent += done.seconds
        ended = done.details.get("n_iter", 0) < passes  # converged, or it takes no passes
        following = math.ceil(passes * growth)
        next_seconds = done.seconds * following / passes
        too_long = spent + next_seconds > 0.5 * report.settings.peer_seconds
        if done.objective <= enough or ended or too_long:
            return tried
        passes = following


def _by_tolerance(
    report: Report,
    peer: Solver,
    problem: MeasureProblem,
    prepared: Any,
    enough: float,
    before: list[Run],
) -> list[Run]:
    """Smaller and smaller tolerances, as long as that can be faster than what is known."""
    reached = [r.seconds for r in before if r.objective <= enough]
    left = 0.5 * report.settings.peer_seconds
    passes = before[-1].details.get("n_iter")
    per_pass = before[-1].seconds / passes if passes else None
    tried: list[Run] = []
    for tol in TOLERANCES:
        allowed = min([left, *reached])
        most = max(1, int(allowed / per_pass)) if per_pass else None
        done = report.timed(peer, problem, Effort(tol=tol, max_iter=most), prepared)
        tried.append(done)
        left -= done.seconds
        if done.objective <= enough or left <= 0.0 or done.details.get("status") == "max_iter":
            break
    return tried
