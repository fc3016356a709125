"""Two threads against one: the same bits, in how much less time."""

from __future__ import annotations

import numpy as np

from ..datasets import DataSet, repeat_rows
from ..measure import memory_speed, spread, usable_cores
from ..report import TOL, Check, Report, at_least, certificate_checks
from ..solvers import Cutplane, Effort, Problem, Run

# Data, how often its rows are repeated, C.
CASES: tuple[tuple[str, int, float], ...] = (("covtype", 4, 1.0), ("aclimdb", 1, 1.0))
WANTED = 1.6


def run(report: Report) -> None:
    """Run the section."""
    if usable_cores() < 2:
        report.skip("the section: this process may use one core only")
        return
    for name, times, C in CASES:
        data = report.load(name)
        if data is None:
            continue
        label = f"{name} ×{times} C={C:g}"
        with report.attempt(label):
            compare(report, repeat_rows(data, times) if times > 1 else data, C, label)


def compare(report: Report, data: DataSet, C: float, label: str) -> None:
    """Both numbers of threads on a problem, as a case of the report."""
    problem, ours = Problem(data, C), Cutplane()
    report.warm_up(ours, problem)
    runs: dict[int, list[Run]] = {1: [], 2: []}
    for _ in range(report.settings.repeats):  # in turn, so that a busy spell hits both
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
        at_least(f"2 threads ≥ {WANTED}× one", ratio, WANTED),
    ]
    report.say(f"{label}: {one.seconds:.3f} s / {two.seconds:.3f} s = {ratio:.2f}")
    case = {
        **problem.facts(),
        "one": spread([r.seconds for r in runs[1]]),
        "two": spread([r.seconds for r in runs[2]]),
        "ratio": ratio,
        "phases": phases,
        # What reading alone gains: more is not to be had where memory is the limit.
        "memory": {"one": speeds[1], "two": speeds[2], "ratio": speeds[2] / speeds[1]},
        "n_iter": one.details["n_iter"],
        "runs": [r.record() for r in everything],
    }
    report.add(case, checks, label)
