"""Seconds to within 1e-3 of the best known objective, and memory, against every peer.

Our time is that to a certified relative gap of 1e-3, with two threads; the best known objective is
the lowest of all runs, among them one of ours to 1e-6. A peer has no certificate: ``peers`` says
how it is given every chance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .. import measure
from ..datasets import DataSet, MissingDataError
from ..measure import spread, usable_cores
from ..report import (
    TOL,
    Report,
    at_least,
    at_most,
    best_objective,
    certificate_checks,
    reached_check,
)
from ..solvers import Effort
from .peers import PEERS, missing, race
from .problems import LOSSES, RegressionCutplane, RegressionProblem, load

TIGHT = 1e-6
WANTED = 5.0  # we should be so many times as fast as the best peer


def section(name: str) -> Callable[[Report], None]:
    """The section of a data set."""

    def run(report: Report) -> None:
        todo = [
            (loss, parameter)
            for loss, parameter in LOSSES
            if report.known(f"{name} {loss} {parameter:g}") is None
        ]
        if not todo:
            return
        try:
            data = load(name, report.settings.source)
        except MissingDataError as error:
            report.skip(str(error))
            return
        for loss, parameter in todo:
            problem = RegressionProblem(data, loss, parameter)
            with report.attempt(problem.name):
                _case(report, problem)

    return run


def _case(report: Report, problem: RegressionProblem) -> None:
    settings, ours = report.settings, RegressionCutplane()
    threads = min(2, usable_cores())
    free = dataclasses.replace(problem, bias="free")
    for each in (problem, free):
        report.warm_up(ours, each)
    effort = Effort(tol=TOL, threads=threads, time_limit=settings.tight_seconds)
    runs = [report.timed(ours, problem, effort) for _ in range(settings.repeats)]
    seconds = spread([r.seconds for r in runs])
    tight = Effort(tol=TIGHT, threads=threads, time_limit=settings.tight_seconds)
    runs.append(report.timed(ours, problem, tight))
    free_runs = [report.timed(ours, free, effort)]
    label = problem.name
    report.say(f"{label}: ours {seconds['median']:.3f} s, to {TIGHT:g} {runs[-1].seconds:.3f} s")
    best = best_objective(runs)
    peers = []
    for name in settings.peers:
        sentence = missing(name)
        if sentence is not None:
            report.skip(sentence)
        elif problem.loss in PEERS[name][1]:
            peers.append(
                race(name, problem, settings.source, best * (1.0 + TOL), settings.peer_seconds)
            )
            _say(report, label, peers[-1], best)
    lowest = min([best, *(r["objective"] for peer in peers for r in peer["runs"])])
    checks = [
        *certificate_checks(runs),
        *certificate_checks(free_runs),
        reached_check(runs[0], runs),
    ]
    checks += [
        at_most(
            f"{r.solver}, tol {r.effort.tol:g}: dual ≤ best of peers",
            r.details["dual"],
            lowest * (1 + 1e-9),
            "certificate",
        )
        for r in runs
    ]
    for peer in peers:
        peer["ratio"] = peer["seconds"] / seconds["median"]
    if peers:
        fastest = min(peer["ratio"] for peer in peers)
        checks.append(at_least(f"best peer / ours ≥ {WANTED:g}", fastest, WANTED))
    case = {
        **problem.facts(),
        "threads": threads,
        "best_known": lowest,
        "seconds": seconds,
        "extra_bytes": _memory(ours, problem, effort),
        "data_bytes": problem.data.X.nbytes,
        "runs": [r.record() for r in runs],
        "free_bias": free_runs[0].record(),
        "peers": peers,
    }
    report.add(case, checks, label)


def _memory(ours: RegressionCutplane, problem: RegressionProblem, effort: Effort) -> int | None:
    """Peak memory of a fit, less the memory before it; None if the system does not tell."""
    data: DataSet = problem.data
    measure.release_free_memory()
    if not measure.reset_peak():
        return None
    before = measure.resident_bytes()
    ours.train(problem, data, effort)
    peak = measure.peak_bytes()
    return None if before is None or peak is None else max(0, peak - before)


def _say(report: Report, label: str, peer: dict[str, Any], best: float) -> None:
    if not peer["runs"]:
        report.say(f"{label}: {peer['solver']} ended by {peer['ended']}, no answer")
        return
    closest = min(r["judged"] for r in peer["runs"]) / best - 1.0
    words = "in" if peer["reached"] else "not reached after"
    report.say(f"{label}: {peer['solver']} {words} {peer['seconds']:.2f} s ({closest:+.1e})")
