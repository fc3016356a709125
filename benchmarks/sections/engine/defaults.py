"""What a user gets who types nothing but the class name and C: `LinearSVC(C=…)`, bias and all.

For every data set and C: seconds of a fit (the median of some, compiled code loaded), the certified
gap, and the same for scikit-learn's `LinearSVC(loss="hinge")`, whose distance from the optimum our
lower bound tells. scikit-learn's intercept is regularised, so that its objective here is that of
its own coefficients with the best free bias. **Regret** is our time divided by its time; where
it has not come within the tolerance it has no time.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import sklearn.svm

from cutplane import LinearSVC

from ...datasets import DataSet
from ...report import TOL, Report, at_most

SETS = ("news20-0", "news20-3", "news20-15", "aclimdb", "codrna", "a9a", "w8a", "ijcnn1", "usps3")
LARGE = ("covtype", "mnist8", "celegans")
PENALTIES = (1e-2, 1.0, 1e2, 1e4)
# Seconds that a fit of ours may take.
LIMIT = 60.0


def run(report: Report) -> None:
    """Run the section."""
    regrets = []
    for name in (*SETS, *LARGE):
        data = report.load(name)
        if data is None:
            continue
        LinearSVC(C=1e-3, time_limit=LIMIT).fit(data.X, data.y)  # loads compiled code
        for C in PENALTIES:
            with report.attempt(f"{name}, C = {C:g}"):
                case = _case(report, data, C)
                gap = at_most("certified gap ≤ 1e-3", case["relative_gap"], TOL)
                report.add(case, [gap], case["what"])
                if case["regret"] is not None:
                    regrets.append(case["regret"])
                report.say(_line(case))
    if regrets:
        summary = {"what": "regret", **_quantiles(regrets)}
        report.add(summary, [], "regret")


def _case(report: Report, data: DataSet, C: float) -> dict[str, Any]:
    ours, seconds = [], []
    for _ in range(min(3, report.settings.repeats)):
        begin = time.perf_counter()
        ours.append(LinearSVC(C=C, time_limit=LIMIT).fit(data.X, data.y))
        seconds.append(time.perf_counter() - begin)
        if seconds[-1] > 10.0:
            break
    certificate = ours[-1].certificate_
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = sklearn.svm.LinearSVC(C=C, loss="hinge").fit(data.X, data.y)
    peer_seconds = time.perf_counter() - begin
    excess = _objective(data, peer.coef_.ravel(), C) / certificate.dual - 1.0
    mine = float(np.median(seconds))
    return {
        **data.facts(),
        "what": f"{data.name}, C = {C:g}",
        "C": C,
        "seconds": mine,
        "relative_gap": certificate.relative_gap,
        "status": ours[-1].results_[0].status.value,
        "peer_seconds": peer_seconds,
        "peer_excess": excess,
        "regret": mine / peer_seconds if excess <= TOL else None,
    }


def _objective(data: DataSet, w: np.ndarray, C: float) -> float:
    """½|w|² + C·Σ hinge with the best free bias, which is at a kink."""
    kinks = data.y - np.asarray(data.X @ w).ravel()
    order = np.argsort(kinks)
    rising = np.cumsum((data.y[order] < 0).astype(float))
    falling = np.count_nonzero(data.y > 0) - np.cumsum((data.y[order] > 0).astype(float))
    bias = kinks[order][np.argmax(rising >= falling)]
    losses = np.maximum(0.0, data.y * (kinks - bias))
    return float(0.5 * w @ w + C * losses.sum())


def _quantiles(regrets: list[float]) -> dict[str, float]:
    logs = np.log(regrets)
    return {
        "cases": len(regrets),
        "geometric_mean": float(np.exp(logs.mean())),
        "median": float(np.exp(np.median(logs))),
        "worst": float(np.exp(logs.max())),
        "ahead": float(np.mean(logs < 0.0)),
    }


def _line(case: dict[str, Any]) -> str:
    return (
        f"{case['what']}: {case['seconds']:.3f} s, gap {case['relative_gap']:.1e}; scikit-learn "
        f"{case['peer_seconds']:.3f} s, {case['peer_excess']:.1e} above the optimum"
    )
