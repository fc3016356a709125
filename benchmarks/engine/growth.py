"""Time of a fit against the number of rows, and threads, on generated data.

C·rows is fixed, so that the problem stays the same while its sample grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..datasets import SEED, DataSet
from ..measure import memory_speed, spread, usable_cores
from ..report import TOL, Report, at_most, certificate_checks
from ..solvers import Cutplane, Effort, Problem, Run

ROWS = (10**4, 10**5, 10**6, 10**7)
FEATURES, PER_ROW = 100, 8
WEIGHT = 1e4  # C·rows
STEEPEST = 1.05


def generate(rows: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows with a few normal numbers, and labels of a linear rule with noise."""
    rng = np.random.default_rng(SEED)
    columns = rng.integers(0, FEATURES // PER_ROW, size=(rows, PER_ROW), dtype=np.int32)
    columns += np.arange(PER_ROW, dtype=np.int32) * (FEATURES // PER_ROW)  # sorted, no duplicates
    values = rng.standard_normal((rows, PER_ROW), dtype=np.float32)
    rule = rng.standard_normal(FEATURES).astype(np.float32)
    scores = np.einsum("ij,ij->i", values, rule[columns]) + rng.standard_normal(rows)
    starts = np.arange(rows + 1, dtype=np.int32) * PER_ROW
    X = sp.csr_matrix((values.reshape(-1), columns.reshape(-1), starts), (rows, FEATURES))
    return X, np.where(scores > 0.0, 1.0, -1.0)


def run(report: Report) -> None:
    """Run the section."""
    sizes = ROWS[:2] if report.settings.quick else ROWS
    threads = [1, 2] if usable_cores() > 1 else [1]
    medians = []
    for rows in sizes:
        with report.attempt(f"{rows} rows"):
            case, runs = _case(report, rows, threads)
            medians.append(case["by_threads"][str(threads[-1])]["median"])
            report.add(case, certificate_checks(runs), case["what"])
            times = (f"{key}: {t['median']:.3f} s" for key, t in case["by_threads"].items())
            report.say(f"{rows} rows, threads {', '.join(times)}, {case['n_iter']} iterations")
    if len(medians) < len(sizes):
        return
    logs = np.log(sizes), np.log(medians)
    slope = float(np.polyfit(*logs, 1)[0])
    steps = [float((b - a) / np.log(10)) for a, b in pairwise(logs[1])]
    summary = {"what": "slope", "slope": slope, "between": steps}
    report.add(summary, [at_most(f"log-log slope ≤ {STEEPEST:g}", slope, STEEPEST)], "slope")
    report.say(f"slope {slope:.3f}")


def _case(report: Report, rows: int, threads: Sequence[int]) -> tuple[dict[str, Any], list[Run]]:
    data = DataSet("generated", *generate(rows), "generated")
    problem, solver = Problem(data, WEIGHT / rows), Cutplane("auto")
    report.warm_up(solver, problem)
    runs: dict[int, list[Run]] = {count: [] for count in threads}
    for _ in range(min(3, report.settings.repeats)):  # in turn, so that other work slows both
        for count, several in runs.items():
            several.append(report.timed(solver, problem, Effort(tol=TOL, threads=count)))
    everything = [r for several in runs.values() for r in several]
    times = {str(count): spread([r.seconds for r in several]) for count, several in runs.items()}
    nbytes = data.X.data.nbytes + data.X.indices.nbytes
    most = str(max(threads))
    case = {
        **problem.facts(),
        "what": f"{rows} rows",
        "by_threads": times,
        "speed_up": times["1"]["median"] / times[most]["median"],
        "reads": times[most]["median"] * memory_speed(int(most)) / nbytes,
        "n_iter": everything[0].details["n_iter"],
        "relative_gap": everything[0].details["relative_gap"],
    }
    return case, everything
