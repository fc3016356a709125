"""Time until the objective is within 1e-2, 1e-3 and 1e-4 of the best known, hinge without bias.

Our time is read off one run: from the call of ``fit`` to the iteration whose best point is good
enough. The time to the certificate that says so is stored beside it. A peer cannot
say when it is good: it is run again and again with more passes, or smaller tolerances, and the
fastest run that ends within the distance counts. One that does not get there in its budget
takes longer than its longest run: if that is shorter than what the others took, the ratio is
a lower bound. Compiling is not in the times.

Distance to the limit: the same time as a number of sequential reads of the data, at the bandwidth
that as many threads have when they sum up an array. A peer with more threads than ours is not
compared with it. dlib cannot leave out the bias, so it solves the problem with a regularised one,
to the optimum of that.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..measure import memory_speed, spread, usable_cores
from ..peers import PEERS, ladder
from ..report import Report, at_least, best_objective, certificate_checks
from ..solvers import Cutplane, Effort, Problem, Run, Solver

CASES: dict[str, tuple[float, ...]] = {
    "covtype": (0.01, 1.0, 10.0),
    "mnist8": (0.01, 0.1, 1.0),
    "aclimdb": (0.1, 1.0, 10.0, 100.0),
    "a9a": (0.1, 1.0, 10.0),
    "w8a": (0.1, 1.0, 10.0),
    "celegans": (0.01, 0.1, 1.0),
}
DISTANCES = (1e-2, 1e-3, 1e-4)
MIDDLE = 1e-3  # the distance that is judged
TIGHT = 2e-5
# Seconds: all runs of a peer on a case, our tight run, and each of our timed runs.
PEER_SECONDS, TIGHT_SECONDS, RUN_SECONDS = 8.0, 20.0, 10.0
HALVINGS = {1e-3: 2, 1e-2: 1, 1e-4: 1}  # of the step between passes, by distance
OTHERS = ("ijcnn1", "usps3")  # on which no constant of the solvers was chosen
OTHER_CS = (0.1, 1.0, 10.0)


def section(*names: str) -> Callable[[Report], None]:
    """The section of a data set, or of several."""

    def run(report: Report) -> None:
        speeds = {threads: memory_speed(threads) for threads in _threads(report)}
        for data in filter(None, map(report.load, names)):
            for C in CASES.get(data.name, OTHER_CS):
                label = f"{data.name} C={C:g}"
                with report.attempt(label):
                    _case(report, Problem(data, C), label, speeds)

    return run


def _threads(report: Report) -> list[int]:
    if usable_cores() < 2:
        report.skip("2 threads: this process may use 1 core only")
        return [1]
    return [1, 2]


def _case(report: Report, problem: Problem, label: str, speeds: dict[int, float]) -> None:
    settings, ours = report.settings, Cutplane("auto")
    limit = min(settings.tight_seconds, RUN_SECONDS)
    report.warm_up(ours, problem)
    runs: dict[int, list[Run]] = {threads: [] for threads in speeds}
    effort = Effort(tol=min(DISTANCES), time_limit=limit)
    for _ in range(min(3, settings.repeats)):
        for threads, several in runs.items():  # in turn, so that a busy spell hits both
            several.append(report.timed(ours, problem, _with(effort, threads)))
    mine = [r for several in runs.values() for r in several]
    tight = Effort(tol=TIGHT, time_limit=min(settings.tight_seconds, TIGHT_SECONDS))
    everything = [*mine, report.timed(ours, problem, tight)]
    tried = {
        peer: _try(report, peer, problem, best_objective(everything))
        for peer in report.peers(problem, tuple(PEERS), PEERS)
    }
    everything += [r for several in tried.values() for r in several]
    best = best_objective(everything)
    peers = [_peer_entry(peer, several, best) for peer, several in tried.items()]
    peers += _with_bias(report, problem, tight)
    nbytes = problem.data.X.data.nbytes + problem.data.X.indices.nbytes
    entries = [
        _our_entry(threads, several, best, nbytes / speeds[threads])
        for threads, several in runs.items()
    ]
    ended = [r for r in mine if r.details["status"] == "converged"]  # the others by the clock
    same = all(np.array_equal(ended[0].model.w, r.model.w) for r in ended)
    checks = [
        *certificate_checks(everything),
        at_least("same bits in every run and for any threads", float(same), 1.0, "certificate"),
    ]
    case = {
        **problem.facts(),
        "best_known": best,
        "bandwidth": {str(k): v for k, v in speeds.items()},
        "ours": entries,
        "peers": peers,
    }
    found = {threads: ratio_of(case, threads) for threads in runs}
    ratios = {threads: ratio for threads, ratio in found.items() if ratio is not None}
    case["ratios"] = {str(threads): ratio for threads, ratio in ratios.items()}
    for threads, ratio in ratios.items():
        checks.append(at_least(f"best peer / ours with {threads} thread(s) ≥ 1", ratio, 1.0))
    report.add(case, checks, label)
    report.say(
        f"{label}: ahead of the best peer by {', '.join(f'{r:.2f}' for r in ratios.values())}"
    )


def _with(effort: Effort, threads: int) -> Effort:
    return Effort(effort.tol, effort.max_iter, effort.time_limit, threads)


def _try(report: Report, peer: Solver, problem: Problem, best: float) -> list[Run]:
    """Runs of a peer with twice the effort each time, until it is as good as it gets.

    Then fewer passes are tried, between those that were too few and those that were enough.
    """
    report.warm_up(peer, problem)
    prepared = peer.prepare(problem)
    budget = min(PEER_SECONDS, report.settings.peer_seconds)
    spent, tried = 0.0, []
    for effort in ladder(peer):
        tried.append(report.timed(peer, problem, effort, prepared))
        spent += tried[-1].seconds
        if tried[-1].objective <= best * (1 + min(DISTANCES)) or spent > budget:
            break
    for distance, halvings in HALVINGS.items():
        for _ in range(halvings):
            between = _between(tried, best * (1 + distance))
            if between is None:
                break
            tried.append(report.timed(peer, problem, between, prepared))
    return tried


def _between(tried: Sequence[Run], enough: float) -> Effort | None:
    """Passes between the fewest that are good and the most below them that are not."""
    counted = {r.effort.max_iter: r for r in tried if r.effort.max_iter is not None}
    good = [k for k, r in counted.items() if r.objective <= enough]
    few = [k for k in counted if good and k < min(good)]
    if not few:
        return None
    count = round((max(few) * min(good)) ** 0.5)
    if count in counted:
        return None
    return dataclasses.replace(counted[min(good)].effort, max_iter=count)


def _with_bias(report: Report, problem: Problem, tight: Effort) -> list[dict[str, Any]]:
    """Peers that cannot leave the bias out, on the problem that has one, to its own optimum."""
    with_bias = dataclasses.replace(problem, bias="regularised")
    entries = []
    for peer in report.peers(with_bias, tuple(PEERS), PEERS):
        if not peer.solves(problem):
            ours = Cutplane("auto")
            report.warm_up(ours, with_bias)
            best = report.timed(ours, with_bias, tight)
            several = _try(report, peer, with_bias, best.objective)
            entry = _peer_entry(peer, several, best_objective([best, *several]))
            entries.append({**entry, "bias": with_bias.bias})
    return entries


def _our_entry(
    threads: int, several: Sequence[Run], best: float, read_seconds: float
) -> dict[str, Any]:
    entry: dict[str, Any] = {"solver": several[0].solver, "threads": threads}
    for name, good in (("within", _good_at), ("certified", _certified_at)):
        times = {}
        for distance in DISTANCES:
            found = [good(r, best, distance) for r in several]
            known = [t for t in found if t is not None]
            times[f"{distance:g}"] = spread(known) if len(known) == len(found) else None
        entry[name] = times
    middle = entry["within"][f"{MIDDLE:g}"]
    entry["reads"] = None if middle is None else middle["median"] / read_seconds
    entry["runs"] = [r.record() for r in several]
    return entry


def _good_at(done: Run, best: float, distance: float) -> float | None:
    """Seconds from the call until the best point was within a distance of the best known."""
    return _first(done, done.result.column("primal") <= best * (1 + distance))


def _certified_at(done: Run, best: float, distance: float) -> float | None:
    return _first(done, done.result.column("relative_gap") <= distance)


def _first(done: Run, good: np.ndarray) -> float | None:
    if not np.any(good):
        return None
    before = done.seconds - done.result.timings["total"]  # checks, and blocks
    return float(before + done.result.column("seconds")[np.argmax(good)])


def _peer_entry(peer: Solver, several: Sequence[Run], best: float) -> dict[str, Any]:
    within = {}
    for distance in DISTANCES:
        good = [r.seconds for r in several if r.objective <= best * (1 + distance)]
        within[f"{distance:g}"] = min(good) if good else None
    return {
        "solver": peer.name,
        "threads": getattr(peer, "threads", 1),
        "within": within,
        "longest": max(r.seconds for r in several),
        "exhausted": ladder(peer)[-1] in [r.effort for r in several],
        "closest": min(r.objective for r in several) / best - 1,
        "runs": [r.record() for r in several],
    }


def best_peer(case: dict[str, Any], threads: int, distance: str) -> tuple[float, str | None]:
    """Seconds and name of the fastest peer to a distance; those with more threads are left out.

    A peer that was stopped before it got there takes longer than its longest run, and nobody knows
    how much. If that is less than what the others took, it is all that can be said, and there is
    no name. One that did all it can and did not get there never does; if that is so with all
    of them, the longest of their runs is taken.
    """
    peers = [p for p in case["peers"] if p.get("threads", 1) <= threads]
    known: list[tuple[float, str | None]] = []
    for peer in peers:
        found = peer["within"][distance]
        if found is not None:
            known.append((found, peer["solver"]))
        elif not peer.get("exhausted", False):
            known.append((peer["longest"], None))
    if not known:
        return max((p["longest"] for p in peers), default=math.inf), None
    return min(known, key=lambda pair: pair[0])


def ratio_of(case: dict[str, Any], threads: int, distance: float = MIDDLE) -> float | None:
    """How many times as long the best peer takes as our median, at least."""
    mine = [e["within"][f"{distance:g}"] for e in case["ours"] if e["threads"] == threads]
    seconds, _ = best_peer(case, threads, f"{distance:g}")
    if not mine or mine[0] is None or math.isinf(seconds):
        return None
    return seconds / mine[0]["median"]
