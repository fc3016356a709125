"""The stabilised step against the paper's plain one: iterations, kernel values, equal objectives.

Both run at the paper's ε. The optimum is known from the exact method at a tight tolerance, so that
each objective is told by its distance from it, and each lower bound by how far it is off. Where
the plain method ends above the stabilised one's objective, it is run on at ε = 0 until it gets
there or is given up: the comparison at equal objective.
"""

from __future__ import annotations

from typing import Any

from ...report import Report, at_most
from ...sampled_problems import NAMES, record, sample_sizes, seeds, split_of, warm_up

CASES = (("checkers", 20_000, 1.0), ("covtype", 20_000, 1.0), ("a9a", 22_697, 1.0))
SIZES = (100, 400, 1000)
EXACT_TOL = 1e-5
MOST_ITERATIONS = 1500


def run(report: Report) -> None:
    """Run the section."""
    from cutplane import SampledCutSVC

    for name, rows, C in CASES:
        split = split_of(report, name, rows)
        if split is None:
            continue
        warm_up(split)
        settings: dict[str, Any] = {"C": C, "gamma": split.gamma}
        limit = report.settings.tight_seconds
        with report.attempt(f"{NAMES[name]} exact"):
            exact = SampledCutSVC(method="exact", tol=EXACT_TOL, time_limit=5 * limit, **settings)
            best = record(split, exact, train_error=False)
        for size in sample_sizes(report, SIZES):
            for seed in seeds(report):
                label = f"{NAMES[name]} r={size} seed={seed}"
                with report.attempt(label):
                    chosen = {**settings, "sample_size": size, "random_state": seed}
                    _case(report, split, chosen, best, label)


def _case(report: Report, split: Any, settings: dict[str, Any], best: Any, label: str) -> None:
    from cutplane import SampledCutSVC

    limit = report.settings.tight_seconds
    ocas = record(split, SampledCutSVC(time_limit=limit, **settings))
    plain = record(split, SampledCutSVC(solver="cpa", time_limit=limit, **settings))
    goal = ocas["primal"]
    equal = record(
        split,
        SampledCutSVC(
            solver="cpa",
            tol=0.0,
            time_limit=limit,
            max_iter=MOST_ITERATIONS,
            callback=lambda r: r.primal <= goal,
            **settings,
        ),
    )
    optimum = best["dual"]
    case = {
        **split.facts(),
        "sample_size": settings["sample_size"],
        "seed": settings["random_state"],
        "optimum": {"primal": best["primal"], "dual": best["dual"]},
        "stabilised": ocas,
        "plain": plain,
        "plain_to_equal_objective": {**equal, "reached": equal["primal"] <= goal},
        "above_optimum": {
            "stabilised": ocas["primal"] / optimum - 1.0,
            "plain": plain["primal"] / optimum - 1.0,
        },
        "bound_off": {
            "stabilised": ocas["dual"] / optimum - 1.0,
            "plain": plain["dual"] / optimum - 1.0,
        },
    }
    above = {name: f"{100 * value:.2f} %" for name, value in case["above_optimum"].items()}
    note = "" if equal["primal"] <= goal else " (not reached)"
    report.say(
        f"{label}: stabilised {ocas['n_iter']} iterations, {above['stabilised']} above F*; "
        f"plain {plain['n_iter']}, {above['plain']}; to equal objective {equal['n_iter']}{note}"
    )
    check = at_most("stabilised objective ≤ plain objective", ocas["primal"], plain["primal"])
    report.add(case, [check], label)
