"""The benchmark of record: ``LinearSVC(C=…)`` as a user calls it, against every peer.

A case is a data set, a loss, a free bias or none, and C. Our time is that of the entire call of
``fit`` with default settings, which ends with a certified relative gap of 1e-3. A peer cannot tell
when it is good enough. So it runs again and again, with more passes or smaller tolerances, and the
fastest run whose objective is within 1e-3 of the best known counts. If a peer regularises its
intercept, its w is judged with the best free bias. **Regret** is our time divided by the best
peer's. A peer that is not good enough within ten times our time has no time, and where ours is
long, within thirty seconds or three times ours. If no peer has a time, the regret is below 0.1, or
below our part of that time, and counts as that. Times are without compiling.

Each case also holds the time with one thread, the gap that a run with ``tol=1e-5`` reaches, and
whether the certified objective is that of the model in extended precision. With ``--before`` it
also holds the times of another checkout of the project and of this one, each in a process of its
own, one after the other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from ..measure import child, spread, usable_cores
from ..peers import PEERS, ladder
from ..report import TOL, Report, at_most
from ..solvers import Cutplane, Effort, Model, Problem, Run, Solver

# Fast sets come first, so that an interrupted run has measured most of them.
SETS = (
    *("iris", "wine", "breast-cancer", "digits-8", "200 × 10", "2,000 × 20"),
    *("nursery", "splice", "page-blocks", "satimage-4", "cells", "abalone-19", "caravan", "hiva"),
    *("lending", "grants", "sylva"),
    *("a9a", "w8a", "codrna", "ijcnn1", "usps3", "news20-0", "news20-3", "news20-15", "aclimdb"),
    *("unscaled", "rare class", "repeated rows", "fingerprints", "2,000 × 5,000"),
    *("covtype", "embedding 20,000", "fars", "mnist8", "celegans", "tweets"),
    *("embedding 100,000", "10,000 × 3,000"),
)
# Half of the folder's sets and half of the others are also measured with the other losses.
SMOOTH_SETS = (
    *("iris", "breast-cancer", "2,000 × 20", "a9a", "w8a", "news20-3", "aclimdb", "covtype"),
    *("unscaled", "rare class", "2,000 × 5,000", "embedding 20,000"),
    *("splice", "page-blocks", "lending", "hiva", "tweets"),
)
LOSSES = ("hinge", "squared_hinge", "logistic")
PENALTIES = (1e-3, 1e-2, 1.0, 1e2, 1e4)
TIGHT = 1e-5
# Time limits of our fits, and of the fit with the tight tolerance.
LIMIT, TIGHT_LIMIT = 60.0, 60.0
# A larger regret misses the target.
MOST = 5.0
# A fit may take so many times the seconds of the earlier checkout. So few seconds are noise.
SLOWER, NOISE = 1.15, 2e-3
# A peer gets so many times our time, and at least so many seconds; after so many seconds it gets
# only so many times our time.
PATIENCE, LEAST_PATIENCE = 10.0, 0.05
LONG, LONG_PATIENCE = 30.0, 3.0
# Stored numbers below which a peer must be called as a user calls it, checks and conversions and
# all: there they cost more than the training, and ours are in our time.
SMALL = 1 << 17
# Peers left out here: programs that read files, and solvers that never come within 1e-3.
WITHOUT = ("SGDClassifier", "dlib", "SVM-light", "SVM-perf")


def run(report: Report, sets: Sequence[str] = SETS) -> None:
    """Run the section. The user's own set is measured with all losses."""
    for name in sets:
        data = report.load(name)
        if data is not None:
            every = name in SMOOTH_SETS or name not in SETS
            for loss in LOSSES if every else LOSSES[:1]:
                for bias in ("free", "none"):
                    measure(report, (Problem(data, C, loss, bias) for C in PENALTIES), MOST)


def measure(report: Report, problems: Iterable[Problem], most: float) -> None:
    """Add a case for every problem. Regrets above ``most`` miss the target."""
    for problem in problems:
        what = f"{problem.data.name}, {problem.loss}, {problem.bias} bias, C = {problem.C:g}"
        known = report.known(what)
        with report.attempt(what):
            if known is None:
                _case(report, problem, what, most)
            else:
                _complete(report, problem, known, most)


def _case(report: Report, problem: Problem, what: str, most: float) -> None:
    ours = Cutplane("auto")
    report.warm_up(ours, problem)
    everything: list[Run] = []
    times = {}
    for threads in (2, 1) if usable_cores() > 1 else (1,):
        effort = Effort(time_limit=LIMIT, threads=threads)
        several = [report.timed(ours, problem, effort)]
        if several[0].seconds < LIMIT / 10:
            several += [report.timed(ours, problem, effort) for _ in range(2)]
        times[str(threads)] = spread([r.seconds for r in several])
        everything += several
    mine = everything[0]
    tight = report.timed(ours, problem, Effort(tol=TIGHT, time_limit=TIGHT_LIMIT))
    best = min(r.objective for r in (*everything, tight))
    seconds = times[max(times)]["median"]
    peers = [
        _peer(report, peer, problem, solved, best, seconds)
        for peer, solved in _peers(report, problem)
    ]
    regret, winner = _compared(seconds, peers)
    primal, dual = mine.details["primal"], mine.details["dual"]
    exact = extended_objective(problem, mine.model)
    lowest = min([exact, tight.objective, *(p["closest"] for p in peers)])
    case = {
        **problem.facts(),
        "what": what,
        "ours": times,
        "cpu_seconds": mine.details["cpu_seconds"],
        "status": mine.details["status"],
        "relative_gap": mine.details["relative_gap"],
        "primal": primal,
        "dual": dual,
        "tight": {key: tight.details[key] for key in ("relative_gap", "status")},
        "tight_seconds": tight.seconds,
        "peers": peers,
        "best_peer": winner,
        "regret": regret,
    }
    checks = [
        at_most("certified gap ≤ 1e-3", mine.details["relative_gap"], TOL),
        at_most(f"regret ≤ {most:g}", regret, most),
        at_most("objective in extended precision ≤ primal", exact, _up(primal), "certificate"),
        at_most("dual ≤ lowest objective known", dual, _up(lowest), "certificate"),
        at_most("tight dual ≤ lowest", tight.details["dual"], _up(lowest), "certificate"),
    ]
    if report.settings.before is not None:
        case["before"], now = (_alone(report, problem, of) for of in (report.settings.before, None))
        case["after"] = now
        limit = SLOWER * case["before"]["median"] + NOISE
        checks.append(at_most("no slower than before by 15 %", now["median"], limit))
    if problem.C <= 1e3:
        checks.append(at_most("gap ≤ 1e-5", tight.details["relative_gap"], TIGHT))
    report.add(case, checks, what)
    report.say(f"{what}: {seconds:.4f} s, regret {regret:.2f} ({case['best_peer']})")


def _complete(report: Report, problem: Problem, case: dict[str, Any], most: float) -> None:
    """Measure the peers that were not installed when a case was measured, and judge it again."""
    known = {peer["solver"] for peer in case["peers"]}
    best = min([case["primal"], *(peer["closest"] for peer in case["peers"])])
    seconds = case["ours"][max(case["ours"])]["median"]
    new = [
        _peer(report, peer, problem, solved, best, seconds)
        for peer, solved in _peers(report, problem)
        if peer.name not in known
    ]
    if not new:
        return
    case["peers"] += new
    case["regret"], case["best_peer"] = _compared(seconds, case["peers"])
    judged = dataclasses.asdict(at_most(f"regret ≤ {most:g}", case["regret"], most))
    case["checks"] = [judged if c["claim"] == judged["claim"] else c for c in case["checks"]]
    report.save()
    report.say(f"{case['what']}: regret {case['regret']:.2f} ({case['best_peer']})")


def _compared(seconds: float, peers: Sequence[dict[str, Any]]) -> tuple[float, str | None]:
    """The regret, and the fastest of the peers that are good enough."""
    good = [peer for peer in peers if peer["seconds"] is not None]
    if not good:
        return max(1.0 / PATIENCE, seconds / _patience(seconds)), None
    winner = min(good, key=lambda peer: peer["seconds"])
    return seconds / winner["seconds"], winner["solver"]


def _alone(report: Report, problem: Problem, checkout: Path | None) -> dict[str, Any]:
    """Times of this or another checkout, in a process of its own."""
    case = [problem.data.name, problem.loss, problem.bias, repr(problem.C)]
    options = [*report.settings.source.arguments(), "--threads", str(min(2, usable_cores()))]
    options += ["--seconds", str(LIMIT), "--repeats", str(min(3, report.settings.repeats))]
    package = None if checkout is None else checkout / "src"
    answer = child(["fits", *case, *options], package=package)
    return {**spread(answer["seconds"]), **answer}


def _patience(seconds: float) -> float:
    """Seconds that a peer gets."""
    return max(min(PATIENCE * seconds, LONG), LONG_PATIENCE * seconds, LEAST_PATIENCE)


def _up(value: float) -> float:
    return value + 1e-9 * abs(value)


def _peers(report: Report, problem: Problem) -> Iterator[tuple[Solver, Problem]]:
    """The installed peers, each with the problem that it solves in place of ours."""
    small = problem.data.facts()["nonzeros"] < SMALL
    for name, make in PEERS.items():
        if name in WITHOUT or (small and not name.startswith("scikit-learn")):
            continue
        peer = make()
        sentence = peer.missing()
        solved = problem if peer.solves(problem) else _own(problem)
        if sentence is not None:
            report.skip(sentence)
        elif peer.solves(solved):
            yield peer, solved


def _own(problem: Problem) -> Problem:
    """The problem with a regularised bias in place of a free one."""
    return dataclasses.replace(problem, bias="regularised") if problem.bias == "free" else problem


def _peer(
    report: Report, peer: Solver, problem: Problem, solved: Problem, best: float, seconds: float
) -> dict[str, Any]:
    """The first run of a peer that is good enough. Its effort grows until its time is up."""
    report.warm_up(peer, solved)
    prepared = peer.prepare(solved)
    patience = _patience(seconds)
    good: list[Run] = []
    closest, longest = math.inf, 0.0
    for effort in ladder(peer):
        done = report.timed(peer, solved, effort, prepared)
        value = done.objective if solved is problem else free_bias_objective(problem, done.model.w)
        closest, longest = min(closest, value), max(longest, done.seconds)
        if value <= best * (1.0 + TOL):
            good.append(done)
            break
        if 2.0 * done.seconds > patience:
            break
    return {
        "solver": peer.name,
        "threads": getattr(peer, "threads", 1),
        "bias": solved.bias,
        "seconds": good[0].seconds if good else None,
        "cpu_seconds": good[0].details["cpu_seconds"] if good else None,
        "effort": good[0].effort.facts() if good else None,
        "longest": longest,
        "closest": closest,
    }


def losses_of(problem: Problem, scores: np.ndarray) -> np.ndarray:
    """The loss of each row."""
    margins = problem.data.y * scores
    if problem.loss == "logistic":
        return np.logaddexp(0.0, -margins)
    hinge = np.maximum(0.0, 1.0 - margins)
    return hinge if problem.loss == "hinge" else hinge * hinge


def free_bias_objective(problem: Problem, w: np.ndarray) -> float:
    """The least ½|w|² + C·Σ loss over the bias."""
    scores = np.asarray(problem.data.X @ np.asarray(w, dtype=np.float64)).ravel()
    reach = 2.0 + float(np.max(np.abs(scores)))
    found = minimize_scalar(
        lambda b: float(losses_of(problem, scores + b).sum()),
        bounds=(-reach, reach),
        method="bounded",
        options={"xatol": 1e-9 * reach},
    )
    return float(0.5 * w @ w + problem.C * found.fun)


def extended_objective(problem: Problem, model: Model) -> float:
    """The objective with all sums and products in extended precision."""
    X, w = problem.data.X, np.asarray(model.w, dtype=np.longdouble)
    scores = np.empty(len(problem.data.y), dtype=np.longdouble)
    step = max(1, 2**22 // max(1, X.shape[1] if not sp.issparse(X) else X.nnz // X.shape[0] + 1))
    for first in range(0, len(scores), step):
        rows = X[first : first + step]
        if sp.issparse(rows):
            products = rows.data.astype(np.longdouble) * w[rows.indices]
            sums = np.concatenate([[0.0], np.cumsum(products)])
            scores[first : first + step] = np.diff(sums[rows.indptr])
        else:
            scores[first : first + step] = rows.astype(np.longdouble) @ w
    losses = losses_of(problem, scores + np.longdouble(model.b))
    return float(0.5 * (w @ w) + np.longdouble(problem.C) * losses.sum())
