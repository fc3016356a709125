"""The stabilised step against the paper's plain one: iterations, time, equal objectives.

Both run at the paper's ε. The exact method at a tighter tolerance gives the optimum. So the section
shows the distance of each objective from the optimum, and the error of each lower bound. For a
comparison at equal objectives, each method then continues past its own stopping rule until it has
the objective with which the other one ended, or until its limit. Sampled cuts may lie above the
risk. If their reduced problem has risen to a method's best objective, the method ends.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..report import Report, at_most, thin_trace
from .problems import (
    NAMES,
    Split,
    fit_and_record,
    record,
    sample_sizes,
    seeds,
    split_of,
    warm_up,
)

# Data, rows, C, and the tolerance ε of the optimum.
CASES = (
    ("checkers", 20_000, 1.0, 1e-5),
    ("covtype", 10_000, 1.0, 1e-4),
    ("a9a", 10_000, 1.0, 1e-4),
)
SIZES = (100, 400)
ONE_SEED = 100  # with this sample size there is only one seed
LIMIT = 20.0
MOST_ITERATIONS = 1500
TRACE_POINTS = 80


def run(report: Report) -> None:
    """Run the section."""
    from cutplane import SampledCutSVC

    for name, rows, C, tol in CASES:
        split = split_of(report, name, rows)
        if split is None:
            continue
        split = dataclasses.replace(split, C=C)
        warm_up(split)
        limit = report.settings.tight_seconds
        with report.attempt(f"{NAMES[name]} exact"):
            exact = SampledCutSVC(method="exact", tol=tol, C=C, gamma=split.gamma, time_limit=limit)
            best = record(split, exact, train_error=False)
            report.say(f"{NAMES[name]} exact: {best['n_iter']} iterations, gap {best['gap']:.3g}")
        for size in sample_sizes(report, SIZES):
            for seed in seeds(report)[: 1 if size <= ONE_SEED else 3]:
                label = f"{NAMES[name]} r={size} seed={seed}"
                with report.attempt(label):
                    _case(report, split, {"sample_size": size, "random_state": seed}, best, label)


def _case(report: Report, split: Split, settings: dict[str, Any], best: Any, label: str) -> None:
    steps = {"stabilised": "ocas", "plain": "cpa"}
    runs = {name: _run(report, split, solver=step, **settings) for name, step in steps.items()}
    equal = {}
    for name, other in (("stabilised", "plain"), ("plain", "stabilised")):
        goal = runs[other]["primal"]
        own = runs[name]
        if own["primal"] <= goal:  # on the way: the trace has it
            equal[name] = _first(own["whole_trace"], goal)
            continue
        # A tolerance in the units of the objective, so that the stopping rule never ends the run.
        options = {"solver": steps[name], "stopping": "absolute", "tol": 1e-4, **settings}
        longer = _run(
            report,
            split,
            max_iter=MOST_ITERATIONS,
            callback=lambda r, goal=goal: r.primal <= goal,
            **options,
        )
        equal[name] = _first(longer["whole_trace"], goal)
    for found in runs.values():
        del found["whole_trace"]
    optimum = best["dual"]
    case = {
        **split.facts(),
        **settings,
        "seed": settings["random_state"],
        "optimum": {"primal": best["primal"], "dual": best["dual"]},
        **runs,
        "to_equal_objective": equal,
        "above_optimum": {name: run["primal"] / optimum - 1.0 for name, run in runs.items()},
        "bound_off": {name: run["dual"] / optimum - 1.0 for name, run in runs.items()},
    }
    above = {name: f"{100 * value:.2f} %" for name, value in case["above_optimum"].items()}
    words = [f"{n} {runs[n]['n_iter']} iterations, {above[n]} above F*" for n in runs]
    report.say(f"{label}: {'; '.join(words)}; to the other's objective {equal}")
    claim = "stabilised objective ≤ plain objective"
    check = at_most(claim, runs["stabilised"]["primal"], runs["plain"]["primal"])
    report.add(case, [check], label)


def _run(report: Report, split: Split, **options: Any) -> dict[str, Any]:
    kept: list[Any] = []
    found = fit_and_record(report, split, limit=LIMIT, train_error=False, keep=kept, **options)
    found["trace"] = thin_trace(kept[0].results_[0], TRACE_POINTS)
    found["whole_trace"] = kept[0].results_[0].trace
    return found


def _first(trace: Any, goal: float) -> dict[str, Any]:
    """Whether and when the trace reaches an objective."""
    for r in trace:
        if r.primal <= goal:
            return {"reached": True, "n_iter": int(r.number), "seconds": float(r.seconds)}
    return {"reached": False, "n_iter": len(trace), "seconds": float(trace[-1].seconds)}
