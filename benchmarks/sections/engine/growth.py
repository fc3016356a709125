"""Time of a fit against the number of rows, on generated data: the slope in log-log scale.

C·rows is fixed, so that the problem stays the same while its sample grows.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from cutplane import LinearSVC

from ...datasets import SEED
from ...measure import spread
from ...report import TOL, Report, at_most

ROWS = (10**4, 10**5, 10**6, 10**7)
FEATURES, PER_ROW = 100, 8
WEIGHT = 1e4  # C·rows
STEEPEST = 1.05


def generate(rows: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of a few normal numbers, labels of a linear rule with noise."""
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
    medians, iterations = [], []
    for rows in sizes:
        with report.attempt(f"{rows} rows"):
            X, y = generate(rows)
            model = LinearSVC(C=WEIGHT / rows, fit_intercept=False, tol=TOL)
            model.fit(X[:1000], y[:1000])  # compiles
            seconds = []
            for _ in range(3):
                begin = time.perf_counter()
                model.fit(X, y)
                seconds.append(time.perf_counter() - begin)
            medians.append(float(np.median(seconds)))
            iterations.append(model.n_iter_)
            case = {
                "what": f"{rows} rows",
                "rows": rows,
                "nonzeros": int(X.nnz),
                "seconds": spread(seconds),
                "n_iter": model.n_iter_,
                "relative_gap": model.certificate_.relative_gap,
            }
            report.add(case, [], case["what"])
            report.say(f"{rows} rows: {medians[-1]:.3f} s, {model.n_iter_} iterations")
    if len(medians) < len(sizes):
        return
    logs = np.log(sizes), np.log(medians)
    slope = float(np.polyfit(*logs, 1)[0])
    steps = [float((b - a) / np.log(10)) for a, b in pairwise(logs[1])]
    case = {"what": "slope", "slope": slope, "between": steps}
    report.add(case, [at_most(f"log-log slope ≤ {STEEPEST:g}", slope, STEEPEST)], "slope")
    report.say(f"slope {slope:.3f}")
