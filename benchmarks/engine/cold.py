"""The first fit of a process, on iris: nothing compiled yet, and compiled by an earlier process.

Each case runs in a process of its own. CPU seconds count, because importing and compiling are work
of one thread, and because they leave other processes out. They are compared with the import of
scikit-learn and numba.
"""

from __future__ import annotations

from ..measure import child, fresh_cache, spread
from ..report import Report, at_most

ESTIMATORS = ("LinearSVC", "SVC", "MeasureSVC", "RankSVM")
MOST_COLD, MOST_WARM = 3.0, 0.15


def run(report: Report) -> None:
    """Run the section."""
    for name in ESTIMATORS:
        with report.attempt(name), fresh_cache() as folder, fresh_cache() as other:
            # Installers compile modules to bytecode. Here a process does that, whose compiled loops
            # are for nobody else.
            bytecode = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
            child(["estimator", name], {**bytecode, "NUMBA_CACHE_DIR": other})
            runs = [
                child(["estimator", name], {**bytecode, "NUMBA_CACHE_DIR": folder})
                for _ in range(1 + report.settings.repeats)
            ]
            cold, warm = runs[0], spread([r["import"] + r["fit"] for r in runs[1:]])
            case = {"what": name, "cold": cold, "warm": warm, "runs": runs}
            checks = [
                at_most(f"first fit ever ≤ {MOST_COLD:g} s", cold["fit"], MOST_COLD),
                at_most(f"later processes ≤ {MOST_WARM:g} s", warm["median"], MOST_WARM),
            ]
            report.add(case, checks, name)
            report.say(f"{name}: {cold['fit']:.2f} s at first, then {warm['median']:.2f} s")
