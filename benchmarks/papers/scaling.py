"""Figure 3 and Table 4 of the OCAS paper: time against the number of rows, and threads.

Figure 3: samples of the splice sites (the paper's worm) and of covtype, C fixed. Table 4: generated
splice sites in the number of columns of the paper's human ones, two threads against one,
per part of an iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..datasets import SEED, DataSet
from ..files.splice_sites import splice_chunks
from ..measure import memory_speed, spread, usable_cores
from ..peers import PEERS
from ..report import TOL, Check, Report, at_least, at_most, certificate_checks
from ..solvers import Cutplane, Effort, Problem, Run, Solver
from .curves import FILE_C
from .peers import STANDARD

CASES: dict[str, float] = {"celegans": 0.1, "covtype": 1.0}
SMALLEST, STEP = 100, 10 ** (1 / 2)
SLOPE_FROM = 1000  # with fewer rows, the time of a fit is that of its calls
STEEPEST = 1.2
RIVALS = ("scikit-learn", "SGDClassifier")
SITES = 400_000  # rows in Table 4
SITES_C = 1e-3
FASTER = 1.6  # two threads should be so many times as fast


def run(report: Report) -> None:
    """Run the section of Figure 3."""
    speed = memory_speed(min(2, usable_cores()))
    for name in report.settings.source.names(CASES):
        data = report.load(name)
        if data is None:
            continue
        with report.attempt(data.name):
            _case(report, data, CASES.get(name, FILE_C), speed)


def sizes_of(data: DataSet, smallest: int = SMALLEST, step: float = STEP) -> list[int]:
    """Numbers of rows with equal ratios. The last one is that of all rows."""
    count = max(1, round(np.log(len(data.y) / smallest) / np.log(step)))
    sizes = np.geomspace(min(smallest, len(data.y)), len(data.y), count + 1)
    return sorted({round(m) for m in sizes})


def samples(data: DataSet, sizes: Sequence[int]) -> list[DataSet]:
    """Samples of these sizes. Each is a part of the next one, and has both classes."""
    order = np.random.default_rng(SEED).permutation(len(data.y))
    ends = [int(np.argmin(data.y)), int(np.argmax(data.y))]
    order = np.concatenate([ends, order[~np.isin(order, ends)]])
    return [data.take(np.sort(order[:m])) for m in sizes]


def slope_of(points: Sequence[dict[str, Any]], least: int = SLOPE_FROM) -> float | None:
    """The exponent with which the time grows with the rows."""
    used = [(p["rows"], p["seconds"]) for p in points if p["rows"] >= least]
    if len(used) < 2:
        return None
    return float(np.polyfit(*np.log(np.array(used)).T, 1)[0])


def _case(report: Report, data: DataSet, C: float, speed: float) -> None:
    settings, checks = report.settings, []
    solvers: list[tuple[Solver, Effort, float]] = [
        (Cutplane("auto"), Effort(tol=TOL), settings.tight_seconds),
        (Cutplane("ocas"), Effort(tol=TOL), settings.tight_seconds),
        (Cutplane("cpa"), Effort(tol=TOL), settings.cpa_seconds),
    ]
    names = [name for name in RIVALS if name in settings.peers]
    for peer in report.peers(Problem(data, C), names, PEERS):
        solvers.append((peer, STANDARD.get(peer.name, Effort()), settings.peer_seconds))
    taken = samples(data, sizes_of(data))
    curves = []
    for solver, effort, most in solvers:
        points: list[dict[str, Any]] = []
        for sample in taken:
            problem = Problem(sample, C)
            if points and points[-1]["seconds"] * len(sample.y) > most * points[-1]["rows"]:
                break  # the next one would exceed its time
            done = _median(report, solver, problem, effort)
            checks += certificate_checks([done])
            nbytes = sample.X.data.nbytes + sample.X.indices.nbytes
            points.append(
                {
                    "rows": len(sample.y),
                    "seconds": done.seconds,
                    "n_iter": done.details.get("n_iter"),
                    "reads": done.seconds * speed / nbytes,
                }
            )
        slope = slope_of(points)
        curves.append({"solver": solver.name, "points": points, "slope": slope})
        report.say(
            f"{data.name}: {solver.name} {points[-1]['rows']} rows "
            f"{points[-1]['seconds']:.3f} s, slope {slope or np.nan:.2f}"
        )
    if curves[0]["slope"] is not None:
        claim = f"slope of the default solver ≤ {STEEPEST:g}"
        checks.append(at_most(claim, curves[0]["slope"], STEEPEST))
    case = {**data.facts(), "C": C, "what": f"{data.name} by rows", "curves": curves}
    report.add(case, checks, data.name)


def _median(report: Report, solver: Solver, problem: Problem, effort: Effort) -> Run:
    """The run with the median time of three, or a single run if it takes long."""
    report.warm_up(solver, problem)
    prepared = solver.prepare(problem)
    runs = [report.timed(solver, problem, effort, prepared)]
    if runs[0].seconds < 0.5:
        runs += [report.timed(solver, problem, effort, prepared) for _ in range(2)]
    return sorted(runs, key=lambda r: r.seconds)[len(runs) // 2]


# -- threads --------------------------------------------------------------------------


def run_threads(report: Report) -> None:
    """Run the section of Table 4."""
    if usable_cores() < 2:
        report.skip("the section: this process may use one core only")
        return
    rows = min(SITES, report.settings.source.rows or SITES)
    with report.attempt("splice sites"):
        chunks = [(sp.csr_matrix(X), y) for X, y in splice_chunks(rows)]
        X = sp.vstack([X for X, _ in chunks], format="csr")
        y = np.concatenate([y for _, y in chunks]).astype(np.float64)
        data = DataSet("splice sites", X, y, "generated")
        _compare(report, data, SITES_C, f"splice sites, {rows} rows")


def _compare(report: Report, data: DataSet, C: float, label: str) -> None:
    """Add a case: one and two threads on a problem."""
    problem, ours = Problem(data, C), Cutplane()
    report.warm_up(ours, problem)
    runs: dict[int, list[Run]] = {1: [], 2: []}
    for _ in range(report.settings.repeats):  # in turn, so that other work slows both
        for threads, several in runs.items():
            effort = Effort(tol=TOL, threads=threads)
            several.append(report.timed(ours, problem, effort))
    speeds = {k: memory_speed(k) for k in (1, 2)}
    one, two = (min(runs[k], key=lambda r: r.seconds) for k in (1, 2))
    phases = {
        phase: {
            "one": seconds,
            "two": two.result.timings[phase],
            "ratio": seconds / max(two.result.timings[phase], 1e-9),
        }
        for phase, seconds in one.result.timings.items()
    }
    ratio = one.seconds / two.seconds
    same = np.array_equal(one.model.w, two.model.w)
    everything = [*runs[1], *runs[2]]
    checks = [
        *certificate_checks(everything),
        Check("same bits with 1 and 2 threads", same, float(same), 1.0, "certificate"),
        at_least(f"2 threads ≥ {FASTER}× one", ratio, FASTER),
    ]
    report.say(f"{label}: {one.seconds:.3f} s / {two.seconds:.3f} s = {ratio:.2f}")
    case = {
        **problem.facts(),
        "one": spread([r.seconds for r in runs[1]]),
        "two": spread([r.seconds for r in runs[2]]),
        "ratio": ratio,
        "phases": phases,
        # The gain of reading alone, which limits the gain if memory is the limit.
        "memory": {"one": speeds[1], "two": speeds[2], "ratio": speeds[2] / speeds[1]},
        "n_iter": one.details["n_iter"],
        "runs": [r.record() for r in everything],
    }
    report.add(case, checks, label)
