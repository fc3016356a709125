"""Sample size and C on Adult (Figures 4 to 7 of the paper): time, iterations, errors."""

from __future__ import annotations

import dataclasses

from ...report import Report
from ...sampled_problems import record, sample_sizes, seeds, split_of, summary, warm_up

SIZES = (100, 400, 1000, 4000)
FACTORS = (0.01, 0.1, 1.0, 10.0, 100.0)


def run(report: Report) -> None:
    """Run the section."""
    from cutplane import SampledCutSVC

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
                    runs = [
                        record(
                            here,
                            SampledCutSVC(
                                C=C,
                                gamma=here.gamma,
                                method=method,
                                sample_size=size,
                                random_state=seed,
                                time_limit=report.settings.tight_seconds,
                            ),
                        )
                        for seed in seeds(report)
                    ]
                    found = summary(runs)
                    case = {**here.facts(), "method": method, "sample_size": size}
                    report.say(
                        f"{label}: {found['n_iter']['mean']:.0f} iterations, "
                        f"{found['seconds']['mean']:.1f} s"
                    )
                    report.add({**case, "summary": found, "runs": runs}, [], label)
