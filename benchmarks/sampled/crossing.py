"""Which estimator for how many rows: Covertype with a narrow kernel, time and test error of each.

exp(−10·|x − z|²) with C = 1: many rows have a loss, and every basis row counts. All estimators get
the same rows, two threads and at most LIMIT seconds where they take a limit; scikit-learn's use as
many threads as they want. ``SampledCutSVC`` is measured as it is, with samples, and with samples
from a pool of rows, so that what the pool costs can be seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..report import Report
from .problems import SEED, Split, record

SIZES = (3_000, 12_000, 50_000, 200_000)
TEST_ROWS = 20_000
GAMMA, C = 10.0, 1.0
LIMIT = 15.0  # seconds of a fit
COMPONENTS = 500  # number of explicit features


def _svc() -> Any:
    from cutplane import SVC

    return SVC(gamma=GAMMA, C=C, time_limit=LIMIT)


def _sampled(**method: Any) -> Any:
    from cutplane import SampledCutSVC

    options = {"gamma": GAMMA, "C": C, "time_limit": LIMIT, "random_state": 0}
    return SampledCutSVC(**method, **options)


def _cholesky() -> Any:
    from sklearn.pipeline import make_pipeline

    from cutplane import CholeskyFeatures, LinearSVC

    features = CholeskyFeatures(gamma=GAMMA, n_components=COMPONENTS, random_state=0)
    return make_pipeline(features, LinearSVC(C=C, fit_intercept=False))


def _nystroem() -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    features = Nystroem(gamma=GAMMA, n_components=COMPONENTS, random_state=0)
    return make_pipeline(features, LinearSVC(C=C, dual=False))


MODELS: dict[str, Callable[[], Any]] = {
    "SVC": _svc,
    "SampledCutSVC, max_basis='pool'": lambda: _sampled(max_basis="pool"),
    "SampledCutSVC, method='linear'": lambda: _sampled(method="linear"),
    "SampledCutSVC": _sampled,
    f"CholeskyFeatures({COMPONENTS}) + LinearSVC": _cholesky,
    f"scikit-learn Nystroem({COMPONENTS}) + LinearSVC": _nystroem,
}


def run(report: Report) -> None:
    """Run the section."""
    data = report.load("covtype")
    if data is None:
        return
    order = np.random.default_rng(SEED).permutation(len(data.y))
    most = report.settings.source.rows
    test = order[:TEST_ROWS] if most is None else order[: len(order) // 3]
    X_test, y_test = data.X[test].toarray(), data.y[test]
    for size in SIZES if most is None else (most // 2,):
        rows = order[len(test) : len(test) + size]
        split = Split("covtype", data.X[rows].toarray(), data.y[rows], X_test, y_test, GAMMA, C)
        for name, make in MODELS.items():
            what = f"{name}, {len(rows)} rows"
            if report.known(what) is not None:
                continue
            with report.attempt(what), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                few = split.first(min(3000, size))
                make().fit(few.X, few.y).predict(few.X)  # imports and compiles
                found = record(split, make(), train_error=False)
                report.say(f"{what}: {found['seconds']:.2f} s, {100 * found['test_error']:.2f} %")
                report.add({"what": what, "solver": name, **split.facts(), **found}, label=what)
