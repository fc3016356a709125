"""What half and double of each constant of descent, Newton's method and the choice does.

A number is the CPU time of one thread with the constant changed, divided by that with all as they
are, both the least of some runs: the geometric mean over the problems, and the worst. A constant
whose half and double make no difference should go.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from cutplane import LinearSVC
from cutplane.solvers import choose, coordinate, curvature, newton, small

from ..datasets import DataSet
from ..report import TOL, Report, at_most

CONSTANTS: dict[str, tuple[Any, ...]] = {
    "BIAS_SQUARE": (coordinate,),
    "GROWTH": (coordinate,),  # half and double of what is above 1
    "LEAST": (coordinate,),
    "FIRST_WAIT": (coordinate,),
    "LITTLE": (coordinate,),
    "WIDTH": (newton, small),
    "NARROWER": (newton, small),  # half and double of what is below 1
    "STEP_SLOPE": (newton,),
    "SAMPLE": (curvature,),
    "GRADIENTS": (curvature,),
    "RESIDUAL": (curvature,),
    "STEPS": (choose,),
    "FEW_PASSES": (choose,),
    "BELIEVED": (choose,),
}
PROBLEMS = (
    *(("a9a", "hinge", C) for C in (1e-2, 1.0, 1e2)),
    *(("w8a", "hinge", C) for C in (1e-2, 1.0, 1e2)),
    *(("codrna", "hinge", 1.0), ("usps3", "hinge", 1.0), ("usps3", "hinge", 1e2)),
    *(("news20-3", "hinge", C) for C in (1e-2, 1.0, 1e2)),
    *(("news20-3", "logistic", 1.0), ("w8a", "logistic", 1.0), ("w8a", "squared_hinge", 1.0)),
    *(("fingerprints", "hinge", 1.0), ("fingerprints", "logistic", 1e2)),
)
LIMIT = 30.0
LARGE = 10.0  # times as slow, or not converged


def run(report: Report) -> None:
    """Run the section."""
    effects: dict[tuple[str, str], dict[str, float]] = {}
    for name, loss, C in PROBLEMS:
        data = report.load(name)
        if data is None:
            continue
        with report.attempt(f"{name}, {loss}, C = {C:g}"):
            _seconds(data, loss, C, 1)  # compiles
            usual = _seconds(data, loss, C, report.settings.repeats)
            for constant in CONSTANTS:
                for factor in (0.5, 2.0):
                    with _changed(constant, factor):
                        seconds = _seconds(data, loss, C, report.settings.repeats)
                    key = f"{name}, {loss}, C = {C:g}"
                    ratio = min(seconds / usual, LARGE)
                    effects.setdefault((constant, str(factor)), {})[key] = ratio
            report.say(f"{name}, {loss}, C = {C:g}: {usual:.3f} s")
    for constant, modules in CONSTANTS.items():
        case: dict[str, Any] = {"what": constant, "value": getattr(modules[0], constant)}
        for factor in ("0.5", "2.0"):
            ratios = effects.get((constant, factor), {})
            if ratios:
                mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
                worst = max(ratios, key=lambda key: ratios[key])
                case[factor] = {"mean": mean, "worst": ratios[worst], "where": worst, "all": ratios}
        if "0.5" in case:
            report.add(case, (), constant)
    count = {"what": "number of constants", "count": len(CONSTANTS)}
    report.add(count, [at_most("at most 8 constants", len(CONSTANTS), 8)], "count")


def _seconds(data: DataSet, loss: str, C: float, repeats: int) -> float:
    """The least CPU time of some fits; infinite if one does not converge."""
    least = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        model = LinearSVC(C=C, loss=loss, tol=TOL, n_jobs=1, time_limit=LIMIT)
        model.fit(data.X, data.y)
        least = min(least, time.process_time() - begin)
        if model.results_[0].status.value != "converged":
            return np.inf
    return float(least)


@contextmanager
def _changed(name: str, factor: float) -> Iterator[None]:
    """Inside, a constant is another one wherever it is known."""
    modules = CONSTANTS[name]
    before = getattr(modules[0], name)
    if name == "GROWTH":
        value = 1.0 + factor * (before - 1.0)
    elif name == "NARROWER":
        value = 1.0 - factor * (1.0 - before)
    else:
        value = type(before)(factor * before)
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(patch.object(module, name, value))
        yield
