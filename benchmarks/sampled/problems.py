"""Problems of the sampled-cuts paper (Yu & Joachims 2008), and runs on them.

| data | training rows | test rows | kernel exp(−|x − z|²/σ²) | C of the paper / rows |
|---|---|---|---|---|
| Checkers, generated | 1,000,000 | 100,000 | σ² = 0.05 | 1 |
| Adult: a9a, a random 22,697 of its rows | 22,697 | all 32,561 | σ² = 20 | 100 |
| Covertype, class 2 against the rest, every feature to [0, 1] | 522,910 | 58,102 | σ² = 1.7 | 1 |

What the paper does not say was found by trying, with exact solvers where these finish:

- The kernel has no factor 2 below the line, and Adult's test set contains its training rows: so
  decomposition gives training and test errors of 7.54 % and 10.40 % (SVM-light in the paper: 7.52 %
  and 10.37 %); on the rows that are not in training it is 17.0 %. With 2σ² it is 11.0 % and
  12.4 %. The paper's sizes, 22,697 and 32,562, are those of two of Platt's nested samples.
- Covertype: features to [0, 1] with σ² = 1.7 come closest. With 2σ² the test error is 0.9 points
  higher.
- Checkers: labels by cell, then noise of 0.02 on the coordinates. 2.39 % of the rows end up on the
  wrong side, which no classifier can help. Whether the paper's generator counts in the same way
  is not known.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..measure import CompileWatch
from ..report import Report

SEED = 20080824
TEST_ROWS = 100_000
TRAIN_ERROR_ROWS = 50_000  # the training error is that of at most so many rows
QUICK_SAMPLE = 50
TRAIN_ROWS = {"checkers": 1_000_000, "a9a": 22_697, "covtype": 522_910}
GAMMA = {"checkers": 1.0 / 0.05, "a9a": 1.0 / 20.0, "covtype": 1.0 / 1.7}  # 1/σ²
BEST_C = {"checkers": 1.0, "a9a": 100.0, "covtype": 1.0}
NAMES = {"checkers": "Checkers", "a9a": "Adult", "covtype": "Covertype"}


@dataclass(frozen=True)
class Split:
    """Training and test rows, dense.

    Attributes
    ----------
    seen : int
        How many test rows are training rows. They come first.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    gamma: float
    C: float
    seen: int = 0

    def first(self, rows: int) -> Split:
        """The split with only the first ``rows`` training rows."""
        return dataclasses.replace(self, X=self.X[:rows], y=self.y[:rows])

    def facts(self) -> dict[str, Any]:
        """The split for the JSON file."""
        return {
            "data": self.name,
            "rows": len(self.y),
            "test_rows": len(self.y_test),
            "features": self.X.shape[1],
            "gamma": self.gamma,
            "C": self.C,
        }


def checkers(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform points on 4×4 cells of alternating classes, then noise of 0.02 on the coordinates."""
    rng = np.random.default_rng(seed)
    X = 4.0 * rng.random((rows, 2))
    y = np.where(np.floor(X).sum(axis=1) % 2 == 0, 1.0, -1.0)
    return X + 0.02 * rng.standard_normal((rows, 2)), y


def split_of(report: Report, name: str, rows: int | None = None) -> Split | None:
    """A problem with all training rows or at most ``rows``; None if its data are missing."""
    settings = report.settings
    most = min(rows or TRAIN_ROWS[name], settings.source.rows or TRAIN_ROWS[name])
    if name == "checkers":
        train, test = checkers(most, SEED), checkers(min(TEST_ROWS, 10 * most), SEED + 1)
        return Split(name, *train, *test, GAMMA[name], BEST_C[name])
    data = report.load(name)
    if data is None:
        return None
    order = np.random.default_rng(SEED).permutation(len(data.y))
    edge = min(TRAIN_ROWS[name], len(order) * 2 // 3 if settings.quick else len(order) - 1)
    seen = edge if name == "a9a" else 0  # the paper's test set: see above
    train_rows, test_rows = order[:edge][:most], order[edge - seen :]
    X, y = data.X, data.y
    return Split(
        name,
        X[train_rows].toarray(),
        y[train_rows],
        X[test_rows].toarray(),
        y[test_rows],
        GAMMA[name],
        BEST_C[name],
        seen,
    )


def warm_up(split: Split) -> None:
    """Compile what the methods need."""
    from cutplane import SampledCutSVC

    few = split.first(400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in ("linear", "constant"):
            SampledCutSVC(gamma=split.gamma, method=method, sample_size=100, max_iter=5).fit(
                few.X, few.y
            )


def record(split: Split, model: Any, *, train_error: bool = True) -> dict[str, Any]:
    """Fit a model, and record its costs and its errors."""
    wall, cpu = time.perf_counter(), time.process_time()
    with CompileWatch() as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(split.X, split.y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    found: dict[str, Any] = {
        "seconds": wall,
        "cpu_seconds": cpu,
        "compile_seconds": watch.seconds,
    }
    begin = time.perf_counter()
    wrong = model.predict(split.X_test) != split.y_test
    found["predictions_per_second"] = len(wrong) / (time.perf_counter() - begin)
    found["test_error"] = float(wrong.mean())
    if split.seen:
        found["unseen_error"] = float(wrong[split.seen :].mean())
    if train_error:
        rows = np.random.default_rng(0).permutation(len(split.y))[:TRAIN_ERROR_ROWS]
        found["train_error"] = 1.0 - float(model.score(split.X[rows], split.y[rows]))
    if len(results := getattr(model, "results_", [])) == 1:
        found.update(results[0].as_dict())
    for name in ("n_basis_", "n_kernel_values_", "basis_error_"):
        if hasattr(model, name):
            found[name.rstrip("_")] = float(getattr(model, name))
    return found


def fit_and_record(
    report: Report,
    split: Split,
    *,
    limit: float | None = None,
    patience: float = 1.0,
    train_error: bool = True,
    keep: list[Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Fit ``SampledCutSVC`` with the problem's C and kernel. ``keep`` gets the model.

    The fit may take ``patience`` times the seconds of the settings.
    """
    from cutplane import SampledCutSVC

    most = patience * report.settings.tight_seconds
    most = most if limit is None else min(limit, most)
    options = {"method": "linear", "start_rows": 0, "max_basis": None, **options}  # as in the paper
    model = SampledCutSVC(C=split.C, gamma=split.gamma, time_limit=most, **options)
    if keep is not None:
        keep.append(model)
    return record(split, model, train_error=train_error)


def sample_sizes(report: Report, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of samples; a single small one in a quick run."""
    return (QUICK_SAMPLE,) if report.settings.quick else sizes


def seeds(report: Report) -> range:
    """The seeds of three runs, as in the paper, or of one quick run."""
    return range(1 if report.settings.quick else 3)


def mean_and_deviation(values: list[float]) -> dict[str, float]:
    """Mean and standard deviation over the seeds."""
    return {"mean": float(np.mean(values)), "deviation": float(np.std(values))}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means and deviations of what the runs have in common."""
    names = ("seconds", "cpu_seconds", "test_error", "unseen_error", "train_error", "n_iter")
    return {
        name: mean_and_deviation([run[name] for run in runs])
        for name in (*names, "n_kernel_values", "n_basis", "primal", "dual")
        if all(name in run for run in runs)
    }
