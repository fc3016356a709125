"""What a fit must show, against extended precision and an outside solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import optimum
from objectives import DOUBLE_EPS, FLOOR, LONG, Objective, Point
from problems import TABLE, Case

# A primal may carry a bound of its own rounding: at most so many times what rounding can do.
ROUNDING = 16.0
# What rounding does to the checks themselves, as a part of what it does in double precision.
OWN_ROUNDING = float(np.finfo(LONG).eps) / DOUBLE_EPS
# Kernel machines bound their rounding more sharply only where it is more than this part of the
# gap at which they may stop.
KERNEL_MACHINES, SHARP = ("SVC", "SVR", "OneClassSVM"), 0.5
# Seconds past a time limit: what a loaded machine takes for one iteration.
LATE = 2.0


@dataclass(frozen=True)
class Violation:
    """What did not hold, by a short name, and the numbers."""

    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


def violations(case: Case, answer: dict[str, Any]) -> list[Violation]:
    """A list of what is wrong with an answer of ``fits.run``."""
    if answer["error"] is not None:
        check = str(answer["error"]).split(":")[0]
        return [Violation(check if check in ("hang", "crash") else "error", answer["error"])]
    found = []
    limit = case.parameters.get("time_limit")
    if limit is not None and answer["seconds"] > limit + LATE:
        found.append(Violation("time_limit", f"{answer['seconds']:.1f} s, allowed {limit:g}"))
    objectives = TABLE[case.kind].objectives(case, answer["C"])
    for k, (objective, problem) in enumerate(zip(objectives, answer["problems"], strict=True)):
        which = f" (problem {k})" if len(objectives) > 1 else ""
        found += [Violation(v.check, v.text + which) for v in _of_problem(case, objective, problem)]
    said = answer["warnings"] or any(p["status"] != "converged" for p in answer["problems"])
    if not answer["finite"] and not said:
        found.append(Violation("not finite", "scores are not finite, and nothing says so"))
    return found


def _of_problem(case: Case, objective: Objective, problem: dict[str, Any]) -> Iterator[Violation]:
    most = case.parameters.get("max_iter")
    if most is not None and problem["n_iter"] > most:
        yield Violation("max_iter", f"{problem['n_iter']} iterations, allowed {most}")
    primal, dual, point = problem["primal"], problem["dual"], problem["point"]
    exact = problem["kind"] == "exact"
    if objective.space.indefinite and exact:
        yield Violation("kind", "'exact', but the kernel is indefinite")
        return
    if not np.isfinite(primal) or np.isnan(dual) or (exact and not np.isfinite(dual)):
        if problem["status"] != "numerically_limited":
            yield Violation("not finite", f"{_text(problem)}")
        return
    value, size, rounding = objective.evaluate(point)
    if not np.isfinite(float(value)):
        yield Violation("not finite", f"the model's objective is {value}; {_text(problem)}")
        return
    floor = float(FLOOR * size + rounding * OWN_ROUNDING)
    border = objective.border * float(size)
    if primal < value - floor - border:
        # Of sums in double precision nobody can expect more, of a certificate one can.
        check = "primal below" if primal < value - floor - rounding else "primal rounding"
        yield Violation(check, f"the model's is {float(value):.12g}; {_text(problem)}")
    penalty = 0.0 if objective.biases == 0 else np.sum((point.b / objective.nearly_free) ** 2) / 2
    above = floor + border + penalty + ROUNDING * rounding + objective.detour(point)
    if case.kind in KERNEL_MACHINES:
        above += SHARP * _enough(case, objective, float(size))
    if primal > value + above:
        yield Violation("primal above", f"the model's is {float(value):.12g}; {_text(problem)}")
    if not exact:
        return
    best = _upper_bound(objective, point, value)
    if dual > best + floor:
        yield Violation("dual", f"a point with {float(best):.12g} exists; {_text(problem)}")
    if problem["status"] == "converged":
        enough = _enough(case, objective, float(size))
        if value - dual > enough + 2 * floor + border:
            yield Violation(
                "rule",
                f"converged at a gap of {float(value) - dual:.3g}, allowed {enough:.3g}; "
                f"{_text(problem)}",
            )


def _upper_bound(objective: Objective, point: Point, value: Any) -> Any:
    """The least objective of any point that is known."""
    other = optimum.solve(objective, float(abs(value)))
    bounds = [value]
    if other is not None:
        bounds.append(objective.evaluate(other)[0])
    if objective.biases == 0 or objective.a is not None:
        zero = Point(np.zeros_like(point.w), np.zeros_like(point.b))
        bounds.append(objective.evaluate(zero)[0])
    return min(bound for bound in bounds if not np.isnan(bound))


def _enough(case: Case, objective: Objective, size: float) -> float:
    """The gap at which the fit may stop."""
    tol = case.parameters["tol"]
    stopping = case.parameters.get("stopping", "relative")
    enough = tol * {"relative": size, "absolute": 1.0, "epsilon": objective.unit}[stopping]
    return float(max(enough, objective.least))


def _text(problem: dict[str, Any]) -> str:
    return "primal {primal:.12g}, dual {dual:.12g}, {kind}, {status}, {n_iter} iterations".format(
        **problem
    )
