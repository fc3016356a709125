"""Ten million features and up to four workers: bytes through the client in an iteration.

Rows are sparse, generated and on disk. Bytes and seconds of an iteration are the difference of two
fits with different numbers of iterations, so they are without what happens once in a fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from cutplane import LinearSVC, open_dataset, write_dataset

from ..files.disk import workspace
from ..report import Report, at_most
from .fit import measured
from .processes import ProcessCluster

FEATURES, QUICK_FEATURES = 10_000_000, 200_000
ROWS, QUICK_ROWS = 400_000, 4_000
PER_ROW = 50
WORKERS = (1, 2, 4)
FEW, MORE = 3, 9  # iterations of the two fits
BYTES = ("sent_bytes", "received_bytes")
FLAT = 1.05  # any number of workers may take so many times the bytes of one


def run(report: Report) -> None:
    """Run the section."""
    quick = report.settings.quick
    features, rows = (QUICK_FEATURES, QUICK_ROWS) if quick else (FEATURES, ROWS)
    with workspace() as folder, ProcessCluster(max(WORKERS)) as cluster:
        path = folder / "wide.cut"
        rng = np.random.default_rng(7)
        hidden = rng.normal(size=features)
        write_dataset(path, (_rows(rng, hidden, rows // 8) for _ in range(8)))
        alone = _iteration(path, n_jobs=1)
        first: dict[str, Any] | None = None
        for count in WORKERS:
            for name in sorted(cluster.pids())[count:]:
                cluster.kill_worker(name)
            cluster.fill_up(count)
            with report.attempt(f"{count} workers"):
                one = _iteration(path, executor=cluster.client)
                first = first or one
                _add(report, count, features, rows, one, first, alone)


def _rows(rng: np.random.Generator, hidden: np.ndarray, rows: int) -> tuple[Any, np.ndarray]:
    indices = rng.integers(0, len(hidden), (rows, PER_ROW), dtype=np.int32)
    indices.sort(axis=1)
    values = rng.random((rows, PER_ROW), dtype=np.float32)
    indptr = np.arange(rows + 1) * PER_ROW
    X = sp.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(rows, len(hidden)))
    X.sum_duplicates()
    return X, np.where(X @ hidden + rng.normal(size=rows) > 0, 1.0, -1.0)


def _iteration(path: Path, **who: Any) -> dict[str, Any]:
    """Bytes and seconds of an iteration, and the outcome of the longer fit."""

    on_cluster = "executor" in who

    def fit(most: int) -> dict[str, Any]:
        model = LinearSVC(1.0, solver="ocas", fit_intercept=False, max_iter=most, **who)
        data = (open_dataset(path),)
        timed = measured(model, data)
        # Bytes are counted in another fit, because counting takes time.
        counted = measured(model, data, count_bytes=True) if on_cluster else {}
        return timed | {name: counted[name] for name in BYTES if on_cluster}

    fit(FEW)  # compiles, and reads the pages into memory
    few, more = fit(FEW), fit(MORE)
    names = ("seconds", "rounds", *BYTES) if on_cluster else ("seconds",)
    each = {name: (more[name] - few[name]) / (MORE - FEW) for name in names}
    return {**each, "digest": more["digest"]}


def _add(
    report: Report,
    count: int,
    features: int,
    rows: int,
    one: dict[str, Any],
    first: dict[str, Any],
    alone: dict[str, Any],
) -> None:
    through = one["sent_bytes"] + one["received_bytes"]
    before = first["sent_bytes"] + first["received_bytes"]
    label = f"{count} worker{'s' * (count > 1)}"
    case = {
        "what": label,
        "workers": count,
        "features": features,
        "rows": rows,
        "iteration": one,
        "iteration_here": alone,
        "vectors_through_client": through / (8 * features),
    }
    report.say(f"{label}: {through / 1e6:.1f} MB and {one['seconds']:.2f} s per iteration")
    checks = [
        at_most("different models, to the last bit", len({one["digest"], alone["digest"]}), 1,
                "certificate"),
        at_most(f"bytes through the client ≤ {FLAT:g} times those with one worker",
                through / before, FLAT),
    ]  # fmt: skip
    report.add(case, checks, label)
