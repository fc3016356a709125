"""Time, iterations and errors against the number of rows (Figures 1 to 3 of the paper).

Slopes are those of CPU seconds, which other processes on the machine hardly change. Decomposition
runs beside the two methods, as SVM-light does in the paper, up to the size that it should finish in
time.

The paper's C is that of the mean loss and proportional to the rows, so that the problem becomes
harder with them and takes more iterations. With that C fixed, all that grows is the number of rows.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..measures.growth import slope
from ..report import Report, at_most
from .problems import (
    NAMES,
    Split,
    fit_and_record,
    record,
    sample_sizes,
    seeds,
    split_of,
    summary,
    warm_up,
)

# Data, method, sample size, and whether C of the mean loss is fixed or grows with the rows.
CASES = (
    ("checkers", "linear", 400, False),
    ("checkers", "linear", 400, True),
    ("checkers", "constant", 1000, False),
    ("checkers", "constant", 1000, True),
    ("checkers", "exact", 0, False),
    ("covtype", "linear", 400, False),
    ("covtype", "constant", 1000, False),
    ("covtype", "exact", 0, False),
)
MOST_SLOPE = {"linear": 1.1, "constant": 0.15}
SMALLEST = 7_000
# The largest number of rows: the linear-time method takes a thousand iterations on Covertype.
LARGEST = {("covtype", "linear"): 131_000}
ONE_SEED = 20_000  # with so many rows or more there is only one seed
EXACT_SECONDS = 60.0  # decomposition runs if it is expected to take at most so many CPU seconds


def run(report: Report) -> None:
    """Run the section."""
    for name, method, wanted, fixed in CASES:
        whole = split_of(report, name)
        if whole is None:
            continue
        warm_up(whole)
        size = sample_sizes(report, (wanted,))[0] if wanted else 0
        label = f"{NAMES[name]} {method}" + (f" r={size}" if size else "")
        label += " fixed C" if fixed else ""
        with report.attempt(label):
            points = _points(report, whole, method, size, fixed, label)
            slopes = {"seconds": _slope(points), "seconds_per_iteration": _slope(points, "n_iter")}
            case = {**whole.facts(), "method": method, "sample_size": size, "fixed_C": fixed}
            checks = []
            if method in MOST_SLOPE:
                most = MOST_SLOPE[method]
                claim = f"{label}: slope of the CPU time per iteration ≤ {most}"
                checks.append(at_most(claim, slopes["seconds_per_iteration"], most))
                if fixed or method == "linear":
                    claim = f"{label}: slope of the CPU time ≤ {most}"
                    checks.append(at_most(claim, slopes["seconds"], most))
            report.add({**case, "points": points, "slopes": slopes}, checks, label)


def _points(
    report: Report, whole: Split, method: str, size: int, fixed: bool, label: str
) -> list[dict[str, Any]]:
    """The measurements at every size, over the seeds."""
    points: list[dict[str, Any]] = []
    most = LARGEST.get((whole.name, method), len(whole.y))
    for rows in (rows for rows in _sizes(len(whole.y)) if rows <= most):
        split = whole.first(rows)
        if fixed:
            split = dataclasses.replace(split, C=whole.C * _sizes(len(whole.y))[0] / rows)
        if method == "exact":
            runs = [_decomposition(split, report.settings.tight_seconds)]
        else:
            runs = [
                fit_and_record(report, split, method=method, sample_size=size, random_state=seed)
                for seed in seeds(report)[: 1 if rows > ONE_SEED else 3]
            ]
        converged = all(run.get("status", "converged") == "converged" for run in runs)
        points.append({"rows": rows, "converged": converged, **summary(runs), "runs": runs})
        report.say(f"{label}, {rows} rows: {points[-1]['cpu_seconds']['mean']:.2f} CPU s")
        # Four times the rows take at most sixteen times as long.
        if method == "exact" and 16 * runs[0]["cpu_seconds"] > EXACT_SECONDS:
            break
    return points


def _slope(points: list[dict[str, Any]], per: str | None = None) -> float:
    """The slope of the CPU time of fits that were not stopped, or of all fits per iteration."""
    used = [p for p in points if p["converged"] or per is not None]
    seconds = [p["cpu_seconds"]["mean"] / (p[per]["mean"] if per else 1.0) for p in used]
    return slope(tuple(p["rows"] for p in used), seconds)


def _decomposition(split: Split, limit: float) -> dict[str, Any]:
    from cutplane import SVC

    return record(split, SVC(C=split.C, gamma=split.gamma, time_limit=limit))


def _sizes(rows: int) -> list[int]:
    """All rows, a quarter of them, and so on, in ascending order."""
    sizes = [rows]
    while sizes[0] // 4 >= min(SMALLEST, rows // 4):
        sizes.insert(0, sizes[0] // 4)
    return sizes
