"""Peak memory of a fit for several cache sizes: the cache, within 10 %, plus O(m).

The slope between the smallest and the largest cache shows what grows with the cache. The rest is
given in doubles per row, next to the number of features of a row, because fits copy the rows.
"""

from __future__ import annotations

import json
from typing import Any

from ..measure import child
from ..report import Report, at_most

MEGABYTES = (20.0, 60.0, 200.0)
CASES: tuple[tuple[str, int, float, float], ...] = (
    ("covtype", 50_000, 1.0, 1.0),
    ("a9a", 32_561, 1.0, 0.005),
)
SHARE = 1.1
DOUBLES_PER_ROW = 64  # a fit may take so many, besides the cache and copies of the rows


def run(report: Report) -> None:
    """Run the section."""
    for name, rows, C, gamma in CASES:
        if report.load(name) is None:
            continue
        with report.attempt(name):
            _case(report, name, rows, C, gamma)


def _case(report: Report, name: str, rows: int, C: float, gamma: float) -> None:
    points: list[dict[str, Any]] = []
    for size in MEGABYTES:
        question = {"name": name, "rows": rows, "C": C, "gamma": gamma, "cache_size": size}
        question["time_limit"] = report.settings.tight_seconds
        source = report.settings.source
        answer = child(["kernel-memory", json.dumps(question), *source.arguments()])
        if answer["extra_bytes"] is None:
            report.skip("the section: this system does not tell the peak memory of a process")
            return
        points.append({"cache_size": size, **answer})
        report.say(
            f"{name}, cache {size:g} MB: peak {answer['extra_bytes'] / 1e6:.1f} MB above the data"
        )
    least, most = points[0], points[-1]
    grown = (most["extra_bytes"] - least["extra_bytes"]) / 1e6
    slope = grown / (most["cache_size"] - least["cache_size"])
    checks = [at_most(f"growth of the peak / growth of the cache ≤ {SHARE:g}", slope, SHARE)]
    for point in points:
        rest = point["extra_bytes"] - SHARE * 1e6 * point["cache_size"] - point["copies_bytes"]
        point["doubles_per_row"] = rest / (8 * point["rows"])
        checks.append(
            at_most(
                f"{point['cache_size']:g} MB: peak ≤ {SHARE:g}·cache + copies of the rows + "
                f"{DOUBLES_PER_ROW} m doubles",
                point["doubles_per_row"],
                DOUBLES_PER_ROW,
            )
        )
    case = {"what": f"{name}, {least['rows']} rows", "points": points, "slope": slope}
    report.add(case, checks, name)
