"""Many labels per row: time, memory and the objective of every label, on generated text.

Words follow a power law, and a fifth of the words of a row are from the topics of its labels. All
solvers minimise the squared hinge with a regularised bias, scikit-learn's default. Each solver runs
in a process of its own. The section samples the memory of this process and of all that it starts.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..datasets import SEED
from ..measure import child, usable_cores
from ..report import TOL, Check, Report, at_least, at_most

ROWS, LABELS = 100_000, 1_000
QUICK_ROWS, QUICK_LABELS = 2_000, 20
WORDS, LENGTH, TOPIC, PER_ROW = 47_000, 60, 30, 3
FROM_TOPICS = 0.2  # share of the words from the topics of a row's labels
THRESHOLD = 0.01  # below it weights are dropped, as in DiSMEC (Babbar and Schölkopf 2017)
OURS, SMALLER, PEER = "cutplane", f"cutplane, coef_threshold={THRESHOLD}", "scikit-learn"
SECONDS = 7200.0  # time limit of a process
SAMPLE = 0.5  # seconds between two samples of the memory
TOGETHER = 50  # scores of so many labels are computed at a time


def generate(rows: int, labels: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Rows of weighted words, scaled to length 1, and the indicator matrix of their labels."""
    rng = np.random.default_rng(SEED)
    often = 1.0 / np.sqrt(np.arange(5, labels + 5))
    own = rng.choice(labels, size=(rows, PER_ROW), p=often / often.sum())
    own[:labels, 0] = np.arange(labels)  # every label has a row
    topics = rng.integers(0, WORDS, size=(labels, TOPIC))
    lengths = np.maximum(5, rng.poisson(LENGTH, rows))
    row = np.repeat(np.arange(rows), lengths)
    zipf = np.cumsum(1.0 / np.arange(10, WORDS + 10))
    word = np.searchsorted(zipf, rng.random(len(row)) * zipf[-1])
    topical = np.flatnonzero(rng.random(len(row)) < FROM_TOPICS)
    label = own[row[topical], rng.integers(0, PER_ROW, len(topical))]
    word[topical] = topics[label, rng.integers(0, TOPIC, len(topical))]
    X = sp.csr_matrix((np.ones(len(row)), (row, word)), (rows, WORDS))  # adds up repeated words
    in_rows = np.bincount(X.indices, minlength=WORDS)
    X.data = np.log1p(X.data) * np.log((1.0 + rows) / (1.0 + in_rows))[X.indices]
    norms = np.sqrt(np.bincount(np.repeat(np.arange(rows), np.diff(X.indptr)), X.data**2, rows))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    Y = sp.csr_matrix((np.ones(own.size), (np.repeat(np.arange(rows), PER_ROW), own.ravel())))
    Y.data[:] = 1.0
    return X.astype(np.float32), Y.astype(np.int8)


# -- one solver, in a process of its own --------------------------------------------------


def probe(question: dict[str, Any]) -> dict[str, Any]:
    """Fit, and return the times, the memory and the objective of every label."""
    X, Y = generate(question["rows"], question["labels"])
    name, threads = question["solver"], question["threads"]
    fit = _sklearn if name == PEER else _cutplane
    fit(name, X[:300], Y[:300, :2], threads, warm_up=True)
    # Our peer's processes get the rows by a file that is mapped: pages in use count once.
    with TreeMemory() as memory:
        begin, cpu = time.perf_counter(), _tree_cpu()
        model = fit(name, X, Y, threads)
        seconds, cpu_seconds = time.perf_counter() - begin, _tree_cpu() - cpu
    coef, intercept, certificates = model
    answer = {
        "solver": name,
        "threads": threads,
        "rows": X.shape[0],
        "features": X.shape[1],
        "n_stored": int(X.nnz),
        "labels": Y.shape[1],
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "data_bytes": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
        "before_bytes": memory.before,
        "peak_bytes": memory.peak,
        "kept_weights": int(coef.nnz if sp.issparse(coef) else coef.size),
        "objectives": _objectives(X, Y, coef, intercept),
    }
    if certificates:
        answer["primals"] = [c.primal for c in certificates]
        answer["duals"] = [c.dual for c in certificates]
    return answer


def _cutplane(name: str, X: Any, Y: Any, threads: int, warm_up: bool = False) -> tuple:
    from cutplane import LinearSVC

    model = LinearSVC(
        loss="squared_hinge",
        intercept_scaling=1.0,
        tol=TOL,
        n_jobs=threads,
        coef_threshold=THRESHOLD if name == SMALLER else None,
        solver="dcd" if warm_up else "auto",  # few rows are solved by another solver
    ).fit(X, Y)
    return model.coef_, model.intercept_, model.certificates_


def _sklearn(name: str, X: Any, Y: Any, threads: int, warm_up: bool = False) -> tuple:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    # Y has 64-bit integers: with 8 bits, scikit-learn 1.9 confuses labels beyond the 127th.
    model = OneVsRestClassifier(LinearSVC(), n_jobs=threads).fit(X, Y.astype(np.int64))
    parts = model.estimators_
    return np.vstack([p.coef_ for p in parts]), np.concatenate([p.intercept_ for p in parts]), []


def _objectives(X: Any, Y: Any, coef: Any, intercept: np.ndarray) -> list[float]:
    """½(|w|² + b²) + Σ max(0, 1 − y·s)² of every label."""
    found: list[float] = []
    for first in range(0, Y.shape[1], TOGETHER):
        some = slice(first, first + TOGETHER)
        w, b = coef[some], intercept[some]
        w = w.toarray() if sp.issparse(w) else w
        signs = 2.0 * Y[:, some].toarray() - 1.0
        losses = np.maximum(0.0, 1.0 - signs * (X @ w.T.astype(np.float64) + b)) ** 2
        found += (0.5 * (np.sum(w * w, axis=1) + b * b) + losses.sum(axis=0)).tolist()
    return found


class TreeMemory:
    """Memory of this process and its descendants inside ``with``: at the start, and the peak.

    Pages that several processes map count once, if the system tells (Linux: PSS).
    """

    def __enter__(self) -> TreeMemory:
        self.before = self.peak = _tree_bytes()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()
        return self

    def _look(self) -> None:
        while not self._over.wait(SAMPLE):
            self.peak = max(self.peak, _tree_bytes())

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._watch.join()
        self.peak = max(self.peak, _tree_bytes())


def _tree(file: str) -> Iterator[str]:
    """The content of a file of /proc for this process and all its descendants."""
    todo = [os.getpid()]
    while todo:
        process = Path("/proc") / str(todo.pop())
        try:
            for thread in (process / "task").iterdir():
                todo += map(int, (thread / "children").read_text().split())
            yield (process / file).read_text()
        except OSError:  # the process has ended
            continue


def _tree_bytes() -> int:
    lines = (line for text in _tree("smaps_rollup") for line in text.splitlines())
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _tree_cpu() -> float:
    """CPU seconds of all these processes, with those that have ended."""
    ticks = (text.rpartition(")")[2].split()[11:15] for text in _tree("stat"))
    return sum(map(int, (t for some in ticks for t in some))) / os.sysconf("SC_CLK_TCK")


# -- the section ----------------------------------------------------------------------------


def run(report: Report) -> None:
    """Run the section."""
    quick = report.settings.quick
    rows, labels = (QUICK_ROWS, QUICK_LABELS) if quick else (ROWS, LABELS)
    threads = min(2, usable_cores())
    runs: dict[str, dict[str, Any]] = {}
    for name in (OURS, SMALLER, PEER):
        with report.attempt(name):
            question = {"rows": rows, "labels": labels, "solver": name, "threads": threads}
            runs[name] = case = child(["labels", json.dumps(question)], seconds=SECONDS)
            case["what"] = name
            report.add(case, _checks(case, runs, quick), name)
            extra = (case["peak_bytes"] - case["before_bytes"]) / 2**20
            report.say(
                f"{name}: {case['seconds']:.1f} s, CPU {case['cpu_seconds']:.1f} s, "
                f"{extra:.0f} MiB more than before"
            )


def _checks(case: dict[str, Any], runs: dict[str, dict[str, Any]], quick: bool) -> list[Check]:
    checks = []
    if "primals" in case:
        objectives, primals = np.array(case["objectives"]), np.array(case["primals"])
        error = float(np.max(np.abs(primals / objectives - 1.0)))
        # The objective here is from products in float32, that of the certificate from float64.
        checks.append(at_most("certified primal = objective", error, 1e-5, "certificate"))
    if case["solver"] == SMALLER:
        dense = 8.0 * case["features"] * case["labels"]
        extra = case["peak_bytes"] - case["before_bytes"]
        if not quick:  # in a quick run the rows take more memory than the coefficients
            checks.append(at_most("extra memory ≤ features × labels × 8", extra, dense))
    if case["solver"] == PEER:
        for name in (OURS, SMALLER):
            if name in runs:
                duals = np.array(runs[name]["duals"]) / np.array(case["objectives"])
                claim = f"{name}: dual ≤ the peer's objective, every label"
                checks.append(at_most(claim, float(duals.max()), 1.0 + 1e-6, "certificate"))
        if OURS in runs:
            ratio = np.array(runs[OURS]["objectives"]) / np.array(case["objectives"])
            checks.append(at_most("ours / peer's objective", float(ratio.max()), 1.0 + TOL))
            solved = float((1.0 / ratio).max())  # otherwise its time is that of an unsolved problem
            checks.append(at_most("peer's objective / ours", solved, 1.0 + 10.0 * TOL))
            if not quick:
                faster = case["seconds"] / runs[OURS]["seconds"]
                checks.append(at_least("faster than the peer", faster, 1.0))
    return checks
