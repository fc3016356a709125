"""What a path over ten values of C costs, in units of its most expensive fit alone."""

from __future__ import annotations

import time

import numpy as np

from cutplane import LinearSVC, linear_svc_path

from ...measure import spread
from ...report import TOL, Report, at_most

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
LIMIT = 120.0  # seconds of a fit or a path


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
            alone = []
            for C in Cs:
                begin = time.perf_counter()
                LinearSVC(C=C, **settings).fit(data.X, data.y)
                alone.append(time.perf_counter() - begin)
            seconds = []
            for _ in range(min(3, report.settings.repeats)):
                begin = time.perf_counter()
                path = linear_svc_path(data.X, data.y, Cs, **settings)
                seconds.append(time.perf_counter() - begin)
            ratio = float(np.median(seconds) / max(alone))
            gaps = path.relative_gaps.tolist()
            case = {
                **data.facts(),
                "what": f"{name} path",
                "Cs": Cs.tolist(),
                "alone": alone,
                "path": spread(seconds),
                "n_iter": path.n_iters.tolist(),
                "relative_gaps": gaps,
                "ratio": ratio,
            }
            checks = [
                at_most(f"path ≤ {MOST:g}× its most expensive fit", ratio, MOST),
                at_most("every fit of the path converges", max(gaps), TOL),
            ]
            report.add(case, checks, name)
            report.say(f"{name}: {ratio:.2f} times the dearest fit, {max(alone):.2f} s")
