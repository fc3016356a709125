"""What the size of the working set, the cache and shrinking are worth (sections 7.2 to 7.4).

Two problems: many bounded support vectors (a9a) and many free ones (w8a). There is one fit of each.
If a fit reaches its time limit, the section shows what it had by then.
"""

from __future__ import annotations

from typing import Any

from ..report import Report
from .solvers import KernelProblem, sample, timed_ours

PROBLEMS: tuple[tuple[str, int, float, float], ...] = (
    ("a9a", 11_221, 1.0, 0.005),
    ("w8a", 9_888, 5.0, 0.05),
)
SIZES = (2, 4, 10, 20, 50, 100, 200, 512, 1024)
MEGABYTES = (2, 5, 10, 20, 40, 80, 200, 500)
SMALL_SET = 10  # SVM-light's working set, with which the cache matters more
LIMIT = 6.0  # time limit of a fit in seconds


def run(report: Report) -> None:
    """Run the section."""
    for name, rows, C, gamma in PROBLEMS:
        if report.load(name) is None:
            continue
        problem = KernelProblem(sample(report.settings.source, name, rows), C, gamma)
        with report.attempt(name):
            _case(report, problem, name)


def _case(report: Report, problem: KernelProblem, label: str) -> None:
    X = problem.rows()
    limit = min(LIMIT, report.settings.tight_seconds)

    def measure(**options: Any) -> dict[str, Any]:
        record = timed_ours(problem, X, time_limit=limit, **options)
        report.say(f"{label} {options}: {record['seconds']:.2f} s, {record['n_iter']} iterations")
        return {**options, **record}

    timed_ours(problem.few_rows(600))
    sizes = [measure(working_set_size=q) for q in SIZES]
    caches = [
        measure(cache_size=float(size), shrinking=shrinking, working_set_size=q)
        for q in (None, SMALL_SET)
        for shrinking in (True, False)
        for size in MEGABYTES
    ]
    case = {
        "what": f"{label}, {X.shape[0]} rows, C={problem.C:g}, γ={problem.gamma:g}",
        **problem.facts(),
        "sizes": sizes,
        "caches": caches,
        "limit": limit,
    }
    report.add(case, label=label)
