"""Sample size and C on Adult (Figures 4 to 7 of the paper): time, iterations, errors.

Fits that take long are run with one seed instead of three. Each is stopped after LIMIT seconds; the
paper gave up after five days.
"""

from __future__ import annotations

import dataclasses

from ..report import Report
from .problems import (
    fit_and_record,
    sample_sizes,
    seeds,
    split_of,
    summary,
    warm_up,
)

SIZES = (100, 400, 1000, 4000)
FACTORS = (0.01, 0.1, 1.0, 10.0, 100.0)
LIMIT = 20.0
CHEAP = 3.0  # fits of at most so many CPU seconds are repeated


def run(report: Report) -> None:
    """Run the section."""
    split = split_of(report, "a9a")
    if split is None:
        return
    warm_up(split)
    for method in ("constant", "linear"):
        for C in FACTORS[:1] if report.settings.quick else FACTORS:
            here = dataclasses.replace(split, C=C)
            for size in sample_sizes(report, SIZES):
                label = f"Adult {method} C={C:g} r={size}"
                with report.attempt(label):
                    runs = []
                    for seed in seeds(report):
                        if not runs or runs[0]["cpu_seconds"] < CHEAP:
                            options = {"method": method, "sample_size": size, "random_state": seed}
                            runs.append(fit_and_record(report, here, limit=LIMIT, **options))
                    found = summary(runs)
                    case = {**here.facts(), "method": method, "sample_size": size}
                    case["converged"] = all(run["status"] == "converged" for run in runs)
                    report.say(
                        f"{label}: {found['n_iter']['mean']:.0f} iterations, "
                        f"{found['cpu_seconds']['mean']:.1f} CPU s"
                    )
                    report.add({**case, "summary": found, "runs": runs}, [], label)
