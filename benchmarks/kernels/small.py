"""Waiting times on small sets: never slower than scikit-learn by more than 20 ms.

Sets that come with scikit-learn or are generated, fewer than 2,000 rows, at the defaults of both
estimators with four kernels and two C; the fits alternate, the best of each counts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.svm
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from ..report import Report, at_most

MOST = 0.02  # seconds
LONG = 0.5  # fits of so many seconds are repeated at most three times
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"kernel": "linear"},
    {"C": 100.0},
    {"kernel": "poly"},
)


def _standardised(load: Callable[..., Any]) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def make() -> tuple[np.ndarray, np.ndarray]:
        X, y = load(return_X_y=True)
        return StandardScaler().fit_transform(X), y

    return make


def _noise() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(1500, 50)), rng.integers(0, 2, 1500)


def _wide() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(400, 3000)), rng.integers(0, 2, 400)


SETS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": _standardised(datasets.load_wine),
    "breast cancer": _standardised(datasets.load_breast_cancer),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "2 classes": lambda: datasets.make_classification(
        1900, 20, n_informative=10, flip_y=0.1, random_state=0
    ),
    "5 classes": lambda: datasets.make_classification(
        1900, 20, n_informative=10, n_classes=5, random_state=0
    ),
    "20 classes": lambda: datasets.make_blobs(
        1500, 10, centers=20, cluster_std=4.0, random_state=0
    ),
    "moons": lambda: datasets.make_moons(1000, noise=0.3, random_state=0),
    "circles": lambda: datasets.make_circles(1900, noise=0.2, factor=0.5, random_state=0),
    "noise": _noise,
    "wide": _wide,
}


def run(report: Report) -> None:
    """Run the section."""
    for name, make in SETS.items():
        X, y = make()
        if report.settings.source.rows is not None:
            X, y = X[: report.settings.source.rows], y[: report.settings.source.rows]
            if len(np.unique(y)) < 2:  # as in the first rows of a sorted set
                report.skip(f"{name}: one class only in so few rows")
                continue
        for options in OPTIONS:
            label = f"{name} {options or ''}".strip()
            with report.attempt(label):
                _case(report, name, X, y, options, label)


def _seconds(estimator: Any, X: np.ndarray, y: np.ndarray) -> float:
    begin = time.perf_counter()
    estimator.fit(X, y)
    return time.perf_counter() - begin


def _case(
    report: Report, name: str, X: np.ndarray, y: np.ndarray, options: dict[str, Any], label: str
) -> None:
    from cutplane import SVC

    estimators = (SVC(**options), sklearn.svm.SVC(**options))
    runs: tuple[list[float], list[float]] = ([], [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator in estimators:
            estimator.fit(X, y)
        for turn in range(4 * report.settings.repeats):
            for estimator, seconds in zip(estimators, runs, strict=True):
                seconds.append(_seconds(estimator, X, y))
            if turn >= 2 and runs[1][0] > LONG:
                break
    ours, peer = (min(seconds) for seconds in runs)
    report.say(f"{label}: ours {1e3 * ours:.1f} ms, scikit-learn {1e3 * peer:.1f} ms")
    case = {
        "what": label,
        "set": name,
        "rows": X.shape[0],
        "features": X.shape[1],
        "classes": len(np.unique(y)),
        "options": options,
        "ours": {"best": ours, "runs": runs[0]},
        "peer": {"best": peer, "runs": runs[1]},
    }
    claim = f"ours − scikit-learn ≤ {1e3 * MOST:g} ms"
    report.add(case, [at_most(claim, ours - peer, MOST)], label)
