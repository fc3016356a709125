"""Checkers, a million rows in a minute; scikit-learn's SVC and Nystroem + LinearSVC beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..report import Report, at_most
from .problems import Split, fit_and_record, record, sample_sizes, split_of, warm_up

MOST_SECONDS = 60.0
PEER_SIZES = (10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000)
BASES = (50, 100, 200, 400)
# The exponents with which the peers' time grows with rows and basis rows, on one core.
SVC_GROWTH, NYSTROEM_GROWTH = 1.8, 1.2
OURS = (("constant", None), ("constant", 1000), ("linear", None))


def run(report: Report) -> None:
    """Run the section."""
    split = split_of(report, "checkers")
    assert split is not None
    warm_up(split)
    for method, basis in OURS:
        for size in sample_sizes(report, (400, 1000) if method == "constant" else (400,)):
            label = f"{method} r={size}" + (f" max_basis={basis}" if basis else "")
            with report.attempt(label):
                options = {"method": method, "sample_size": size, "max_basis": basis}
                found = fit_and_record(report, split, random_state=0, **options)
                checks = []
                if method == "constant":
                    checks.append(at_most("seconds < 60", found["seconds"], MOST_SECONDS))
                _add(report, split, f"SampledCutSVC {label}", found, checks)
    with report.attempt("Nystroem"):
        nystroem(report, split, BASES[:1] if report.settings.quick else BASES)
    with report.attempt("scikit-learn SVC"):
        svc(report, split, PEER_SIZES)


def nystroem(report: Report, split: Split, bases: Sequence[int]) -> None:
    """Add cases with more and more basis rows, as the time allows."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    for size, following in pairwise((*bases, math.inf)):
        solver = f"scikit-learn Nystroem {size} + LinearSVC"
        found = _known(report, split, solver)
        if found is None:
            features = Nystroem(gamma=split.gamma, n_components=int(size), random_state=0)
            # The default loss. With more rows than features the primal solver is the fastest.
            linear = LinearSVC(C=split.C, dual=False)
            found = record(split, make_pipeline(features, linear))
            _add(report, split, solver, found, [])
        if _too_long(report, found, following / size, NYSTROEM_GROWTH):
            return


def svc(report: Report, split: Split, sizes: Sequence[int]) -> None:
    """Add cases with more and more rows, as the time should allow."""
    from sklearn.svm import SVC

    for rows, following in pairwise((*sizes, math.inf)):
        if rows > len(split.y) and rows != sizes[0]:
            return
        few = split.first(int(rows))
        found = _known(report, few, "scikit-learn SVC")
        if found is None:
            found = record(few, SVC(C=split.C, gamma=split.gamma))
            _add(report, few, "scikit-learn SVC", found, [])
        if _too_long(report, found, following / rows, SVC_GROWTH):
            return


def _known(report: Report, split: Split, solver: str) -> dict[str, Any] | None:
    """The earlier cases of a solver, if this run continues an earlier one."""
    same = (c for c in report.content["cases"] if c["solver"] == solver)
    return next((case for case in same if case["rows"] == len(split.y)), None)


def _too_long(report: Report, found: dict[str, Any], larger: float, power: float) -> bool:
    """Whether a problem that is larger by the factor ``larger`` would take too long for a peer."""
    return found["cpu_seconds"] * larger**power > report.settings.peer_seconds


def _add(
    report: Report, split: Split, solver: str, found: dict[str, Any], checks: list[Any]
) -> None:
    report.say(
        f"{solver}, {len(split.y)} rows: {found['seconds']:.1f} s, "
        f"test error {100 * found['test_error']:.2f} %"
    )
    report.add({**split.facts(), "solver": solver, **found}, checks, solver)
