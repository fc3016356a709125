"""A path of values of C, warm and cold: iterations and seconds."""

from __future__ import annotations

import time
from typing import Any

from ..report import Report, at_most
from .solvers import KernelProblem, fit_ours, sample

PATH = tuple(2.0**k for k in range(-3, 5))
CASES: tuple[tuple[str, int, float], ...] = (("a9a", 8000, 0.005), ("covtype", 8000, 1.0))
CLOSE = 1e-3


def run(report: Report) -> None:
    """Run the section."""
    for name, rows, gamma in CASES:
        if report.load(name) is None:
            continue
        problem = KernelProblem(sample(report.settings.source, name, rows), PATH[0], gamma)
        with report.attempt(name):
            _case(report, problem, name)


def _case(report: Report, problem: KernelProblem, label: str) -> None:
    from cutplane import SVC

    fit_ours(problem.few_rows(1500))
    X, y = problem.rows(), problem.data.y
    points: list[dict[str, Any]] = []
    warm = SVC(gamma=problem.gamma, warm_start=True)
    for C in PATH:
        point: dict[str, Any] = {"C": C}
        for kind, model in (
            ("warm", warm.set_params(C=C)),
            ("cold", SVC(gamma=problem.gamma, C=C)),
        ):
            begin = time.perf_counter()
            model.fit(X, y)
            point[kind] = {
                "seconds": time.perf_counter() - begin,
                "n_iter": model.n_iter_,
                "primal": model.certificate_.primal,
                "dual": model.certificate_.dual,
            }
        points.append(point)
    totals = {
        kind: {what: sum(p[kind][what] for p in points) for what in ("seconds", "n_iter")}
        for kind in ("warm", "cold")
    }
    apart = max(abs(p["warm"]["dual"] / p["cold"]["dual"] - 1.0) for p in points)
    crossed = max(p["warm"]["dual"] / p["cold"]["primal"] - 1.0 for p in points)
    report.say(
        f"{label}: {totals['warm']['seconds']:.2f} s warm, {totals['cold']['seconds']:.2f} s cold"
    )
    case = {
        "what": f"{label}, {X.shape[0]} rows, {len(PATH)} values of C",
        "points": points,
        "totals": totals,
    }
    checks = [
        at_most(f"duals, warm and cold: relative difference ≤ {CLOSE:g}", apart, CLOSE),
        at_most("no warm dual above a cold primal, up to 1e-5", crossed, 1e-5, "certificate"),
        at_most("warm iterations ≤ cold", totals["warm"]["n_iter"], totals["cold"]["n_iter"]),
    ]
    report.add(case, checks, label)
