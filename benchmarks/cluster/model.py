"""The cost model: constants measured on this machine, checked on other fits, and put to use.

Constants come from fits with one worker; fits with two workers, and on data that were not used,
are then predicted. The last case is a cluster that is not here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from cutplane import LinearSVC, open_dataset, write_dataset

from ..files.disk import workspace
from ..report import Report, at_most
from .costs import (
    Constants,
    Workload,
    add_constant,
    answer_arrays,
    cut_constant,
    facts,
    message_constants,
    predict,
    work_constants,
)
from .fit import measured
from .rounds import SIZES, VECTOR, rounds
from .speed import local_client, write_rows

FITTED = (("covtype", 0.1), ("aclimdb", 1.0))  # these fits with one worker give the constants
OFF = 2.0  # largest factor between measured and predicted time
LARGE = {"rows": 10**9, "features": 10**7, "values_per_row": 100}
WORKERS, THREADS = 100, 16
LINK = 10e9 / 8  # bytes per second of the client's network card
LATENCY = 0.5e-3
CUTS = 50.0
FITS = 3
GENERATED_C = 0.1  # takes about 30 iterations for any number of rows


@dataclass
class Known:
    """The data sets on disk, by name."""

    folder: Path

    def path(self, name: str) -> Path:
        """The path of a data set."""
        return self.folder / f"{name}.cut"


def run(report: Report) -> None:
    """Run the section."""
    with workspace() as folder:
        known = Known(folder)
        cases = [(name, C) for name, C in FITTED if _written(report, known, name)]
        if len(cases) < len(FITTED):
            return
        rows = 1000 if report.settings.quick else 200_000
        write_dataset(known.path("generated"), [generated_rows(rows)])
        cases.append(("generated", GENERATED_C))
        runs: dict[tuple[str, int], dict[str, Any]] = {}
        empty: dict[int, float] = {}
        full: dict[int, float] = {}
        for workers in (1, 2):
            with local_client(workers) as client:
                empty[workers] = rounds(client, workers, 0)["seconds"]
                full[workers] = rounds(client, workers, SIZES["8 MB"])["seconds"]
                for name, C in cases:
                    with report.attempt(f"{name}, {workers}"):
                        runs[name, workers] = _fit(client, known.path(name), C, workers)
        constants = _constants(report, empty, full, runs)
        for (name, workers), one in runs.items():
            _check(report, constants, name, workers, one)
        _large(report, constants)


def _written(report: Report, known: Known, name: str) -> bool:
    data = report.load(name)
    if data is not None:
        write_rows(known.path(name), data, 1)
    return data is not None


def generated_rows(rows: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows with more values than covtype's and fewer than those of text, many features."""
    rng = np.random.default_rng(3)
    features, per_row = max(200, rows // 2), 40
    indices = rng.integers(0, features, (rows, per_row), dtype=np.int32)
    indices.sort(axis=1)
    values = rng.random((rows, per_row), dtype=np.float32)
    indptr = np.arange(rows + 1) * per_row
    X = sp.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(rows, features))
    X.sum_duplicates()
    hidden = rng.normal(size=features)
    return X, np.where(X @ hidden + rng.normal(size=rows) > 0, 1.0, -1.0)


def _fit(client: Any, path: Path, C: float, workers: int) -> dict[str, Any]:
    dataset = open_dataset(path)

    def model(**settings: Any) -> LinearSVC:
        return LinearSVC(C, solver="ocas", fit_intercept=False, executor=client, **settings)

    measured(model(max_iter=5), (dataset,))  # compiles, and reads the pages into memory
    # The fastest of some runs counts, because other work may slow them.
    one, fitted = min(
        ((measured(other, (dataset,)), other) for other in (model() for _ in range(FITS))),
        key=lambda pair: pair[0]["seconds"],
    )
    counted = measured(model(max_iter=5), (dataset,), count_bytes=True)
    blocks = len(dataset.blocks(1).blocks)
    return {
        **one,
        "rows": dataset.n_rows,
        "features": dataset.n_features,
        "values": dataset.blocks(1).n_stored,
        "workers": workers,
        "cuts": float(np.mean([record.cuts for record in fitted.results_[0].trace])),
        "arrays": answer_arrays(dataset.n_rows, blocks, workers),
        "sent_per_iteration": counted["sent_bytes"] / counted["n_iter"],
        "received_per_iteration": counted["received_bytes"] / counted["n_iter"],
        "iteration_seconds": (one["seconds"] - one["load_seconds"]) / one["n_iter"],
    }


def _constants(
    report: Report,
    empty: dict[int, float],
    full: dict[int, float],
    runs: dict[tuple[str, int], dict[str, Any]],
) -> Constants:
    fitted = [runs[name, 1] for name, _ in FITTED]
    many = max(fitted, key=lambda one: one["features"])
    constants = Constants(
        *message_constants(empty, full, VECTOR),
        *work_constants(fitted),
        add=add_constant(),
        cut=cut_constant(many),
    )
    case = {"what": "constants", "constants": facts(constants), "empty": empty, "full": full}
    report.add(case)
    return constants


def _check(
    report: Report,
    constants: Constants,
    name: str,
    workers: int,
    one: dict[str, Any],
) -> None:
    work = Workload(
        rows=one["rows"],
        features=one["features"],
        values=one["values"],
        workers=workers,
        threads=1,
        arrays=one["arrays"],
        rounds=one["rounds"] / one["n_iter"],
        cuts=one["cuts"],
    )
    predicted = predict(work, constants)
    ratio = one["iteration_seconds"] / predicted["seconds"]
    label = f"{name}, {workers} worker" + "s" * (workers > 1)
    case = {
        "what": label,
        "used_for_constants": workers == 1 and name in dict(FITTED),
        "workers": workers,
        "n_iter": one["n_iter"],
        "rounds_per_iteration": work.rounds,
        "arrays": work.arrays,
        "measured": {
            "seconds": one["iteration_seconds"],
            "work": one["work_seconds"] / one["n_iter"],
            "rest of rounds": (one["round_seconds"] - one["work_seconds"]) / one["n_iter"],
            "sent_bytes": one["sent_per_iteration"],
            "received_bytes": one["received_per_iteration"],
        },
        "predicted": predicted,
        "ratio": ratio,
    }
    report.say(
        f"{label}: {one['iteration_seconds']:.4f} s per iteration, predicted "
        f"{predicted['seconds']:.4f} s"
    )
    claim = f"measured and predicted differ at most by a factor of {OFF:g}"
    report.add(case, [at_most(claim, max(ratio, 1.0 / ratio), OFF)], label)


def _large(report: Report, constants: Constants) -> None:
    """The predicted times of a large cluster."""
    rows, features = LARGE["rows"], LARGE["features"]
    values = rows * LARGE["values_per_row"]
    blocks = max(1, values * 12 >> 22)
    # The link between hosts replaces the loopback device of this machine.
    linked = replace(constants, link=LINK, between=LINK)
    for workers, asked in ((WORKERS, 5.0), (128, 5.0), (128, 13.0)):
        work = Workload(
            rows=rows,
            features=features,
            values=values,
            workers=workers,
            threads=THREADS,
            arrays=answer_arrays(rows, blocks, workers),
            rounds=asked,
            cuts=CUTS,
            latency=LATENCY,
        )
        predicted = predict(work, linked)
        label = f"10⁹ rows × 10⁷ features, {workers} workers"
        case = {
            "what": label,
            "workers": workers,
            "threads": THREADS,
            "rounds_per_iteration": asked,
            "arrays": work.arrays,
            "predicted": predicted,
            "link_bytes_per_second": LINK,
            "latency_seconds": LATENCY,
            "values_per_row": LARGE["values_per_row"],
        }
        report.say(f"{label}, {asked:g} rounds: {predicted['seconds']:.1f} s per iteration")
        report.add(case, label=label)
