"""The effect of half and double of each constant of descent, Newton's method and the choice.

A number is the CPU time of one thread with the constant changed, divided by the time with no
constant changed; both are the least of some runs. The section shows the geometric mean over the
problems, and the worst. A constant whose half and double make no difference should go.

With one data set left out: each constant gets the value, of half, present and double, that is best
on all other sets. The time on the set left out tells whether the constants are fitted to the sets
on which they were chosen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from cutplane import LinearSVC
from cutplane.solvers import constants

from ..datasets import DataSet
from ..report import TOL, Report, at_most

CONSTANTS = tuple(name for name in vars(constants) if name.isupper())
FACTORS = (0.5, 2.0)
PROBLEMS = (
    *(("a9a", "hinge", C) for C in (1e-2, 1.0, 1e2)),
    *(("w8a", "hinge", C) for C in (1e-2, 1.0, 1e2)),
    *(("codrna", "hinge", 1.0), ("usps3", "hinge", 1.0), ("usps3", "hinge", 1e2)),
    *(("news20-3", "hinge", C) for C in (1e-2, 1.0, 1e2)),
    *(("news20-3", "logistic", 1.0), ("w8a", "logistic", 1.0), ("w8a", "squared_hinge", 1.0)),
    *(("fingerprints", "hinge", 1.0), ("fingerprints", "logistic", 1e2)),
    *(("unscaled", "hinge", 1.0), ("rare class", "hinge", 1.0), ("2,000 × 20", "hinge", 1e2)),
)
LIMIT = 30.0
LARGE = 10.0  # the ratio for fits that are slower still or do not converge
MOST, MOST_LOST = 8, 1.1

Ratios = dict[str, dict[str, float]]  # a ratio per data set and problem


def run(report: Report) -> None:
    """Run the section."""
    effects: dict[tuple[str, float], Ratios] = {}
    for name, loss, C in PROBLEMS:
        data = report.load(name)
        if data is None:
            continue
        what = f"{name}, {loss}, C = {C:g}"
        with report.attempt(what):
            _seconds(data, loss, C)  # compiles
            for key in ((constant, factor) for constant in CONSTANTS for factor in FACTORS):
                usual = changed = np.inf  # both are measured in turn, so that neither is favoured
                for _ in range(report.settings.repeats):
                    usual = min(usual, _seconds(data, loss, C))
                    with _changed(*key):
                        changed = min(changed, _seconds(data, loss, C))
                by_set = effects.setdefault(key, {})
                by_set.setdefault(name, {})[what] = min(changed / usual, LARGE)
            report.say(f"{what}: {usual:.3f} s")
    for constant in CONSTANTS:
        known = {factor: effects.get((constant, factor), {}) for factor in FACTORS}
        if all(known.values()):
            case = {"what": constant, "value": getattr(constants, constant)}
            case |= {str(factor): _effect(known[factor]) for factor in FACTORS}
            case["left_out"] = lost = left_out(known)
            label = f"{constant} fixed without a data set loses ≤ 10 % on it"
            report.add(case, [at_most(label, max(lost.values()), MOST_LOST)], constant)
    count = {"what": "number of constants", "count": len(CONSTANTS)}
    report.add(count, [at_most(f"at most {MOST} constants", len(CONSTANTS), MOST)], "count")


def left_out(known: dict[float, Ratios]) -> dict[str, float]:
    """For each data set, its time ratio with the factor that is best on all other sets."""
    lost = {}
    for name in next(iter(known.values())):
        others = {
            factor: _mean([r for key in by_set if key != name for r in by_set[key].values()])
            for factor, by_set in known.items()
        }
        best = min(others, key=lambda factor: others[factor])
        lost[name] = _mean(list(known[best][name].values())) if others[best] < 1.0 else 1.0
    return lost


def _effect(by_set: Ratios) -> dict[str, Any]:
    ratios = {what: ratio for several in by_set.values() for what, ratio in several.items()}
    worst = max(ratios, key=lambda what: ratios[what])
    mean = _mean(list(ratios.values()))
    return {"mean": mean, "worst": ratios[worst], "where": worst, "all": ratios}


def _mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else 1.0


def _seconds(data: DataSet, loss: str, C: float) -> float:
    """The CPU time of a fit, or infinity if it does not converge."""
    begin = time.process_time()
    model = LinearSVC(C=C, loss=loss, tol=TOL, n_jobs=1, time_limit=LIMIT).fit(data.X, data.y)
    seconds = time.process_time() - begin
    return seconds if model.results_[0].status.value == "converged" else np.inf


@contextmanager
def _changed(name: str, factor: float) -> Iterator[None]:
    """Multiply a constant inside ``with``; for GROWTH and NARROWER their difference from 1."""
    before = getattr(constants, name)
    base = 1.0 if name in ("GROWTH", "NARROWER") else 0.0
    value = type(before)(base + factor * (before - base))
    with patch.object(constants, name, value):
        yield
