"""Wall time with 2 threads at tolerance 1e-3, beside scikit-learn and scikit-learn-intelex.

A peer gets the data dense or as CSR, whichever is faster for it on 3,000 rows, and all threads that
it wants. Our time is the median of several runs. A peer's time is that of one run, or
``--peer-seconds`` if this limit stops the run.
"""

from __future__ import annotations

from typing import Any

from ..measure import spread, usable_cores
from ..report import Report, at_least, at_most
from .solvers import KernelProblem, missing, race_peer, sample, timed_ours

TOL = 1e-3
WANTED = {"scikit-learn": 3.0, "scikit-learn-intelex": 1.0}
CLOSE = 1e-4  # largest relative difference of dual objectives at this tolerance
# Data, rows (None: all), C, γ.
CASES: tuple[tuple[str, int | None, float, float], ...] = (
    ("a9a", None, 1.0, 0.005),
    ("ijcnn1", None, 1.0, 1.0),
    ("covtype", 20_000, 1.0, 1.0),
    ("covtype", 50_000, 1.0, 1.0),
    ("checkers", 50_000, 10.0, 1.0),
)


def run(report: Report) -> None:
    """Run the section."""
    for name, rows, C, gamma in CASES:
        if name != "checkers" and report.load(name) is None:
            continue
        problem = KernelProblem(sample(report.settings.source, name, rows), C, gamma)
        label = f"{name} {len(problem.data.y)} rows"
        with report.attempt(label):
            _case(report, problem, label)


def _case(report: Report, problem: KernelProblem, label: str) -> None:
    settings = report.settings
    timed_ours(problem.few_rows(5000), n_jobs=2)
    X = problem.rows()
    runs = [timed_ours(problem, X, tol=TOL, n_jobs=2) for _ in range(settings.repeats)]
    seconds = spread([r["seconds"] for r in runs])
    report.say(f"{label}: ours {seconds['median']:.2f} s, {runs[0]['support']} support vectors")
    if usable_cores() < 2:
        report.skip("2 threads: this process may use one core only")
    peers: list[dict[str, Any]] = []
    checks = []
    for peer in settings.peers:
        sentence = missing(peer)
        if sentence is not None:
            report.skip(sentence)
            continue
        entry = race_peer(peer, settings.source, problem, TOL, settings.peer_seconds)
        entry["ratio"] = entry["seconds"] / seconds["median"]
        peers.append(entry)
        sign = "" if entry["finished"] else "> "
        report.say(f"{label}: {peer} {sign}{entry['seconds']:.2f} s, {sign}{entry['ratio']:.1f} ×")
        wanted = WANTED[peer]
        checks.append(at_least(f"{peer} / ours ≥ {wanted:g}", entry["ratio"], wanted))
        if entry["finished"]:
            apart = abs(entry["dual"] / runs[0]["dual"] - 1.0)
            claim = f"{peer}: relative difference of the duals ≤ {CLOSE:g}"
            checks.append(at_most(claim, apart, CLOSE, "certificate"))
    case = {
        "what": label,
        **problem.facts(),
        "threads": min(2, usable_cores()),
        "seconds": seconds,
        "runs": runs,
        "peers": peers,
    }
    report.add(case, checks, label)
