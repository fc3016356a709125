"""Geometric means over all cases whose sections have been run into the same folder."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np

from ..report import Report, at_least
from .objective import CASES, DISTANCES, MIDDLE, ratio_of

WANTED = {"1": 1.5, "2": 3.0}


def run(report: Report) -> None:
    """Run the section."""
    ratios: dict[str, dict[str, float]] = {}
    nearer: dict[str, dict[str, list[float]]] = {}  # by threads and distance
    for name in CASES:
        file = report.file.with_name(f"{name}.json")
        if not file.is_file():
            report.skip(f"{name}: its section has not been run")
            continue
        for case in json.loads(file.read_text("utf-8"))["cases"]:
            for threads in WANTED:
                ratio = ratio_of(case, int(threads))
                if ratio is not None:
                    ratios.setdefault(threads, {})[f"{name} C={case['C']:g}"] = ratio
                for distance in set(DISTANCES) - {MIDDLE}:
                    other = ratio_of(case, int(threads), distance)
                    if other is not None:
                        by_distance = nearer.setdefault(threads, {})
                        by_distance.setdefault(f"{distance:g}", []).append(other)
    for threads, by_case in sorted(ratios.items()):
        mean = _mean(by_case.values())
        worst = min(by_case, key=lambda key: by_case[key])
        what = f"{threads} thread(s)"
        others = {
            distance: {
                "mean": _mean(found),
                "ahead": sum(r >= 1.0 for r in found),
                "of": len(found),
            }
            for distance, found in sorted(nearer.get(threads, {}).items())
        }
        case = {"what": what, "mean": mean, "worst": worst, "ratios": by_case, "others": others}
        wanted = WANTED[threads]
        checks = [
            at_least(f"geometric mean ≥ {wanted:g}", mean, wanted),
            at_least(f"ahead in every case ({worst})", by_case[worst], 1.0),
        ]
        report.add(case, checks, what)
        report.say(f"{what}: {mean:.2f} times, least {by_case[worst]:.2f} in {worst}")


def _mean(ratios: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(ratios)))))
