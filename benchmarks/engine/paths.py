"""The time of a path over ten values of C, in units of its most expensive fit alone.

Another path, which is not timed, counts the work of each fit: the rows that passes of descent
visit, in units of all rows, the products X·w and Xᵀ·c, and the certificates.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from cutplane import LinearSVC, linear_svc_path
from cutplane.objective.linear import RowProducts
from cutplane.solvers import CoordinateSolver, NewtonSolver
from cutplane.solvers.base import IterativeSolver

from ..measure import spread
from ..report import TOL, Report, at_most

CASES: dict[str, tuple[float, float]] = {
    "covtype": (1e-3, 1.0),
    "mnist8": (1e-3, 1.0),
    "aclimdb": (0.1, 100.0),
    "a9a": (0.01, 10.0),
    "w8a": (0.01, 10.0),
    "celegans": (1e-3, 1.0),
}
COUNT = 10
MOST = 3.0
LIMIT = 120.0  # time limit of a fit or a path in seconds


def run(report: Report) -> None:
    """Run the section."""
    for name, (low, high) in CASES.items():
        data = report.load(name)
        if data is None:
            continue
        with report.attempt(name):
            Cs = np.geomspace(low, high, COUNT)
            settings = {"fit_intercept": False, "tol": TOL, "time_limit": LIMIT}
            LinearSVC(C=low, max_iter=3, **settings).fit(data.X, data.y)  # compiles
            seconds: list[float] = []
            fits: list[list[float]] = []
            for _ in range(min(3, report.settings.repeats)):  # in turn: noise meets both
                fits.append([])
                for C in Cs:
                    begin = time.perf_counter()
                    LinearSVC(C=C, **settings).fit(data.X, data.y)
                    fits[-1].append(time.perf_counter() - begin)
                begin = time.perf_counter()
                path = linear_svc_path(data.X, data.y, Cs, **settings)
                seconds.append(time.perf_counter() - begin)
            alone = np.median(fits, axis=0).tolist()
            ratio = float(np.median(seconds) / max(alone))
            with _counted(len(data.y)) as work:
                linear_svc_path(data.X, data.y, Cs, **settings)
            gaps = path.relative_gaps.tolist()
            case = {
                **data.facts(),
                "what": f"{name} path",
                "Cs": Cs.tolist(),
                "alone": alone,
                "path": spread(seconds),
                "n_iter": path.n_iters.tolist(),
                "relative_gaps": gaps,
                "fits": [
                    {
                        "C": C,
                        "alone": alone[k],
                        "seconds": path.seconds[k],
                        "phases": path.results[k][0].timings,
                        "certificates": int(path.n_iters[k]),
                        **work[k],
                    }
                    for k, C in enumerate(Cs.tolist())
                ],
                "ratio": ratio,
            }
            checks = [
                at_most(f"path ≤ {MOST:g}× its most expensive fit", ratio, MOST),
                at_most("every fit of the path converges", max(gaps), TOL),
            ]
            report.add(case, checks, name)
            report.say(f"{name}: {ratio:.2f} times the dearest fit, {max(alone):.2f} s")


@contextmanager
def _counted(rows: int) -> Iterator[list[dict[str, float]]]:
    """Counts the work of each fit inside ``with``."""
    work: list[dict[str, float]] = []
    now = {"passes": 0.0, "X·w": 0.0, "Xᵀ·c": 0.0}
    run, step, solve = CoordinateSolver._pass, NewtonSolver._step, IterativeSolver.run
    scores, gradient = RowProducts.scores, RowProducts.gradient

    def counted_run(passes: CoordinateSolver, *arguments: Any) -> Any:
        before = passes.passes
        answer = run(passes, *arguments)
        now["passes"] += passes.passes - before
        return answer

    def counted_scores(products: RowProducts, w: np.ndarray, out: np.ndarray) -> None:
        now["X·w"] += float(np.any(w))
        scores(products, w, out)

    def counted_step(solver: NewtonSolver, *arguments: Any) -> float:
        now["X·w"] += 1.0
        return step(solver, *arguments)

    def counted_gradient(products: RowProducts, coef: np.ndarray) -> np.ndarray:
        now["Xᵀ·c"] += 1.0
        return gradient(products, coef)

    def counted_solve(solver: IterativeSolver, *arguments: Any) -> Any:
        for name in now:
            now[name] = 0.0
        answer = solve(solver, *arguments)
        work.append(dict(now))
        return answer

    with ExitStack() as stack:
        for owner, name, counted in (
            (CoordinateSolver, "_pass", counted_run),
            (NewtonSolver, "_step", counted_step),
            (RowProducts, "scores", counted_scores),
            (RowProducts, "gradient", counted_gradient),
            (IterativeSolver, "run", counted_solve),
        ):
            stack.enter_context(patch.object(owner, name, counted))
        yield work
