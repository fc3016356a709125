"""Time against the number of rows, for ROC area and for 2, 10 and m ranks.

A fit of a fixed number of iterations on generated rows of a few features, and one evaluation of the
risk inside it. Slopes are least squares of log time on log rows.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ..datasets import SEED, DataSet
from ..generated import generated_targets
from ..measure import spread, usable_cores
from ..report import Report, at_most
from ..solvers import Effort
from ..targets import equal_ranks
from .solvers import MeasureCutplane, MeasureProblem

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK_SIZES = (100, 300, 1_000)
FEATURES = 8
ITERATIONS = 20
C = 1e3
# Risk and number of ranks. None stands for as many ranks as rows.
CASES: tuple[tuple[str, int | None], ...] = (
    ("roc_auc", 2),
    ("ordinal", 2),
    ("ordinal", 10),
    ("ordinal", None),
)
STEEPEST = 1.15
MOST_FROM_RANKS = 1.5  # m ranks may take so many times as long as 2, on the most rows


def run(report: Report) -> None:
    """Run the section."""
    sizes = QUICK_SIZES if report.settings.quick else SIZES
    if report.settings.source.rows is not None:
        sizes = tuple(m for m in sizes if m <= report.settings.source.rows)
    most: dict[int, dict[str, float]] = {}
    for threads in (1, 2):
        if threads > usable_cores():
            report.skip(f"{threads} threads: this process may use {usable_cores()} core(s) only")
            continue
        for loss, ranks in CASES:
            label = f"{loss} {ranks or 'm'} ranks, {threads} thread(s)"
            with report.attempt(label):
                case = _case(report, loss, ranks, threads, sizes, label)
                last = case["points"][-1]["seconds"]["best"]
                most.setdefault(threads, {})[f"{loss} {ranks or 'm'}"] = last
    with report.attempt("ranks"):
        _compare_ranks(report, most, sizes[-1])


def _case(
    report: Report, loss: str, ranks: int | None, threads: int, sizes: tuple[int, ...], label: str
) -> dict[str, Any]:
    points = [_point(report, loss, ranks, threads, rows, label) for rows in sizes]
    fit = [p["seconds"]["best"] for p in points]
    evaluation = [p["evaluation_seconds"]["best"] for p in points]
    case = {
        "what": label,
        "loss": loss,
        "ranks": ranks or "m",
        "threads": threads,
        "features": FEATURES,
        "C": C,
        "iterations": ITERATIONS,
        "points": points,
        "slope_fit": slope(sizes, fit),
        "slope_evaluation": slope(sizes, evaluation),
        "slope_last_decade": slope(sizes[-3:], fit[-3:]),
    }
    report.say(
        f"{label}: slope {case['slope_fit']:.3f} per fit, {case['slope_evaluation']:.3f} per "
        f"evaluation, {case['slope_last_decade']:.3f} over the last three sizes"
    )
    checks = [at_most(f"slope of a fit ≤ {STEEPEST}", case["slope_fit"], STEEPEST)]
    report.add(case, checks, label)
    return case


def _point(
    report: Report, loss: str, ranks: int | None, threads: int, rows: int, label: str
) -> dict[str, Any]:
    X, targets = generated_targets(rows, np.random.default_rng(SEED), FEATURES)
    y = equal_ranks(targets, ranks) if ranks else np.argsort(np.argsort(targets))
    if loss == "roc_auc":
        y = np.where(y > 0, 1.0, -1.0)
    problem = MeasureProblem(DataSet(f"generated {rows}", X, y, "generated"), C, loss)
    ours = MeasureCutplane()
    effort = Effort(tol=1e-9, max_iter=ITERATIONS, threads=threads)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        report.warm_up(ours, problem)
        several = [report.timed(ours, problem, effort) for _ in range(report.settings.repeats)]
    first = several[0].details
    seconds = spread([r.seconds for r in several])
    each = [r.details["evaluation_seconds"] / r.details["evaluations"] for r in several]
    report.say(f"{label}, {rows} rows: {seconds['best']:.4f} s, evaluation {min(each):.5f} s")
    return {
        "rows": rows,
        "n_iter": first["n_iter"],
        "evaluations": first["evaluations"],
        "seconds": seconds,
        "evaluation_seconds": spread(each),
        "timings": first["timings"],
    }


def slope(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """The slope of log seconds over log rows, by least squares."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _compare_ranks(report: Report, most: dict[int, dict[str, float]], rows: int) -> None:
    for threads, seconds in most.items():
        two = seconds["ordinal 2"]
        ratios = {name: value / two for name, value in seconds.items()}
        case = {"what": f"ranks, {threads} thread(s)", "rows": rows, "ratios": ratios}
        claim = f"m ranks / 2 ranks ≤ {MOST_FROM_RANKS}"
        report.add(case, [at_most(claim, ratios["ordinal m"], MOST_FROM_RANKS)], case["what"])
