"""Table 2 of the OCAS paper: objective, iterations and time at every solver's own stopping rule.

OCAS and CPA stop by SVM-perf's rule, gap ≤ 10⁻³·C·rows, as in the paper. The default solver stops
at a relative gap of 1e-3, stochastic solvers after the paper's 10 epochs, and peers by their
defaults. Times are also given in passes over the memory of the data, at the bandwidth of two
threads, or of one thread for peers.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..measure import memory_speed, usable_cores
from ..peers import PEERS
from ..report import TOL, Report, at_most, best_objective, certificate_checks
from ..solvers import Cutplane, Effort, Problem, Run, Solver
from .curves import EPOCHS, problems

TIGHT = 1e-5
# The default efforts of peers, where their adapters have other ones.
STANDARD = {
    "liblinear": Effort(tol=0.1),
    "SGDClassifier": Effort(max_iter=EPOCHS),
    "skglm": Effort(max_iter=100),  # its default of 50,000 passes takes minutes
}


def run(report: Report) -> None:
    """Run the section."""
    speeds = {threads: memory_speed(threads) for threads in (1, min(2, usable_cores()))}
    for problem, label in problems(report):
        with report.attempt(label):
            _case(report, problem, speeds, label)


def _case(report: Report, problem: Problem, speeds: dict[int, float], label: str) -> None:
    settings = report.settings
    limits = {"time_limit": settings.cpa_seconds, "max_iter": settings.cpa_iterations}
    ours: list[tuple[Solver, Effort]] = [
        (Cutplane("auto"), Effort(tol=TOL, time_limit=settings.tight_seconds)),
        (Cutplane("ocas", "epsilon"), Effort(tol=TOL, time_limit=settings.tight_seconds)),
        (Cutplane("cpa", "epsilon"), Effort(tol=TOL, **limits)),
        (Cutplane("sgd"), Effort(max_iter=EPOCHS)),
    ]
    names = [name for name in settings.peers if name in PEERS]
    found = report.peers(problem, names, PEERS)
    with_bias = dataclasses.replace(problem, bias="regularised")
    others = [p for p in report.peers(with_bias, names, PEERS) if not p.solves(problem)]
    plain = _runs(report, problem, [*ours, *((p, STANDARD.get(p.name, Effort())) for p in found)])
    records = _records(plain, problem, speeds)
    if others:  # these cannot leave the bias out
        biased = _runs(report, with_bias, [(p, Effort()) for p in others])
        records += _records(biased, with_bias, speeds)
    done = [r for r in plain if isinstance(r, Run)]
    best = best_objective(done)
    first = done[0]
    checks = certificate_checks(done)
    if first.details["status"] == "converged":
        checks.append(
            at_most("default solver ≤ best known/(1 − tol)", first.objective, best / (1 - TOL))
        )
    case = {**problem.facts(), "best_known": best, "bandwidth": speeds[max(speeds)]}
    report.add({**case, "solvers": records}, checks, label)
    report.say(f"{label}: " + "; ".join(f"{r['solver']} {r['seconds']:.2f} s" for r in records))


def _runs(
    report: Report, problem: Problem, asked: list[tuple[Solver, Effort]]
) -> list[Run | tuple[str, float]]:
    """A run of each solver, and a tight one of ours. Programs that are cut short are named."""
    done: list[Run | tuple[str, float]] = []
    for solver, effort in asked:
        report.warm_up(solver, problem)
        try:
            if not solver.ours:
                effort = dataclasses.replace(effort, time_limit=report.settings.peer_seconds)
            done.append(report.timed(solver, problem, effort))
        except TimeoutError:
            done.append((solver.name, report.settings.peer_seconds))
    tight = Effort(tol=TIGHT, time_limit=report.settings.tight_seconds)
    done.append(report.timed(Cutplane("auto"), problem, tight))
    return done


def _records(
    runs: list[Run | tuple[str, float]], problem: Problem, speeds: dict[int, float]
) -> list[dict[str, Any]]:
    """The records of all runs but the last, tight one, which only gives the optimum."""
    nbytes = problem.data.X.data.nbytes + problem.data.X.indices.nbytes
    best = best_objective(r for r in runs if isinstance(r, Run))
    records: list[dict[str, Any]] = []
    for done in runs[:-1]:
        if not isinstance(done, Run):
            records.append({"solver": done[0], "finished": False, "seconds": done[1]})
            continue
        threads = max(speeds) if done.result is not None or "threads" in done.solver else 1
        records.append(
            {
                **done.record(),
                "finished": True,
                "bias": problem.bias,
                "above": done.objective / best - 1.0,
                "reads": done.seconds * speeds[threads] / nbytes,
            }
        )
    return records
