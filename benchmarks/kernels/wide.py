"""Fit and prediction where nobody tuned: few support vectors, many classes, sparse text, large C.

Every estimator runs in a process of its own, which ends when its time is up, on the same rows in
the same form: CSR for text, dense for the rest. All stop at a violation of 1e-3, the rule of the
peers. The best of some runs counts, for all alike; ours uses two threads, the peers as many as
they want. ``regret`` is our time divided by that of the best peer, for fit and for prediction.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import signal
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..datasets import SEED, MissingDataError, Source
from ..generated import coloured, many_classes
from ..measure import child
from ..report import Report, at_least, at_most
from .solvers import PEERS, missing

OURS = "cutplane"
TOL = 1e-3
WANTED = 1.5  # our time should be at most so many times the best peer's
CLOSE = 0.005  # the accuracy may be so much below the best
# Rows of a first fit, in which libraries load and threads start. A large fit runs the same code.
WARM_ROWS = 2000
GENERATED = {"colours": coloured, "many classes": many_classes}


@dataclass(frozen=True)
class Case:
    """Rows to fit and to predict, a kernel and C."""

    what: str
    data: str
    rows: int
    C: float
    gamma: float
    kernel: str = "rbf"
    degree: int = 3
    coef0: float = 0.0
    sparse: bool = False
    test_rows: int = 10_000

    def options(self) -> dict[str, Any]:
        """The parameters that every estimator gets."""
        names = ("C", "gamma", "kernel", "degree", "coef0")
        return {**{name: getattr(self, name) for name in names}, "tol": TOL}

    def split(self, source: Source) -> tuple[Any, np.ndarray, Any, np.ndarray]:
        """X and y to fit, and X and y to predict: half of the rows each if there are too few."""
        rng = np.random.default_rng(SEED)
        rows = self.rows if source.rows is None else min(self.rows, source.rows)
        wanted = rows + min(self.test_rows, rows)
        if self.data in GENERATED:
            X, y = GENERATED[self.data](wanted, rng)
        else:
            data = dataclasses.replace(source, rows=None if not source.generated else wanted)
            found = data.load(self.data)
            order = rng.permutation(len(found.y))[:wanted]
            X, y = found.X[order], found.y[order]
            rows = min(rows, len(y) // 2 if len(y) < wanted else rows)
        X = sp.csr_matrix(X) if self.sparse else X.toarray() if sp.issparse(X) else X
        X = X.astype(np.float64)
        return X[:rows], y[:rows], X[rows:], y[rows:]


CASES = (
    Case("few support vectors", "colours", 50_000, 1.0, 10.0),
    Case("few support vectors, large C", "colours", 50_000, 1e4, 10.0),
    Case("26 classes", "many classes", 15_000, 10.0, 0.1),
    Case("26 classes, polynomial", "many classes", 15_000, 1.0, 0.1, "poly", 3, 1.0),
    Case("10 classes of 784 features", "mnist", 10_000, 10.0, 0.02),
    Case("784 features", "mnist8", 20_000, 10.0, 0.02),
    Case("784 features, polynomial", "mnist8", 10_000, 1.0, 0.01, "poly", 5, 1.0),
    Case("text", "news20-0", 8000, 10.0, 1.0, sparse=True, test_rows=2000),
    Case("text, wide kernel", "aclimdb", 8000, 10.0, 0.1, sparse=True, test_rows=2000),
    Case("rare class, large C", "ijcnn1", 20_000, 1e4, 1.0),
    Case("rare class, polynomial", "ijcnn1", 20_000, 1.0, 1.0, "poly", 3, 1.0),
    Case("noise, C = 100", "covtype", 10_000, 100.0, 1.0),
    Case("noise, large C", "covtype", 5000, 1e4, 1.0),
    Case("little regularised counts", "a9a", 10_000, 1e3, 0.005, sparse=True),
)


def run(report: Report) -> None:
    """Run the section."""
    for case in CASES:
        if report.known(case.what) is not None:
            continue
        with report.attempt(case.what):
            _case(report, case)


def _case(report: Report, case: Case) -> None:
    settings = report.settings
    try:
        X, y, test, _ = case.split(settings.source)
    except MissingDataError as error:
        report.skip(f"{case.what}: {error}")
        return
    entries = []
    for solver in (OURS, *settings.peers):
        sentence = missing(solver) if solver in PEERS else None
        if sentence is not None:
            report.skip(sentence)
            continue
        question = {
            "case": dataclasses.asdict(case),
            "solver": solver,
            "repeats": settings.repeats,
            "limit": settings.peer_seconds,
        }
        try:
            answer = child(["kernel-wide", json.dumps(question), *settings.source.arguments()])
            entry = {"solver": solver, "finished": True, **answer}
        except TimeoutError:
            limit = settings.peer_seconds
            entry = {"solver": solver, "finished": False, "fit": limit, "predict": limit}
        entries.append(entry)
        sign = "" if entry["finished"] else "> "
        report.say(f"{case.what}: {solver} {sign}{entry['fit']:.3f} s, {entry['predict']:.3f} s")
    ours, peers = entries[0], entries[1:]
    regret, checks = {}, []
    for kind in ("fit", "predict") if peers else ():
        best = min(entry[kind] for entry in peers)
        regret[kind] = ours[kind] / best
        claim = f"best peer / ours ≥ {WANTED:g}, {kind}"
        checks.append(at_least(claim, best / ours[kind], WANTED))
    known = [entry["accuracy"] for entry in entries if entry["finished"]]
    if ours["finished"]:
        claim = f"best accuracy − ours ≤ {CLOSE:g}"
        checks.append(at_most(claim, max(known) - ours["accuracy"], CLOSE, "certificate"))
    facts = {
        **dataclasses.asdict(case),
        "rows": X.shape[0],
        "features": X.shape[1],
        "classes": len(np.unique(y)),
        "test_rows": test.shape[0],
    }
    report.add({**facts, "runs": entries, "regret": regret}, checks, case.what)


def answer(question: dict[str, Any], source: Source) -> dict[str, Any]:
    """Times of one estimator on one case, measured in the child process."""
    solver, case = question["solver"], Case(**question["case"])
    X, y, test, known = case.split(source)
    options = case.options()
    if solver == OURS:
        options |= {"n_jobs": 2, "stopping": "kkt"}
    estimator = importlib.import_module(PEERS.get(solver, OURS)).SVC(**options)
    few = np.sort(np.unique(y, return_index=True)[1])
    few = np.unique(np.concatenate([few, np.arange(min(WARM_ROWS, len(y)))]))
    seconds: dict[str, list[float]] = {"fit": [], "predict": []}
    warnings.simplefilter("ignore")
    estimator.fit(X[few], y[few]).predict(test[:10])
    signal.setitimer(signal.ITIMER_REAL, question["limit"])  # kills: no fit looks at a flag
    for turn in range(question["repeats"]):
        begin = time.perf_counter()
        estimator.fit(X, y)
        fitted = time.perf_counter()
        labels = estimator.predict(test)
        seconds["fit"].append(fitted - begin)
        seconds["predict"].append(time.perf_counter() - fitted)
        if turn == 0:  # a result is known: what is left of the time is for more of them
            left = signal.setitimer(signal.ITIMER_REAL, 0.0)[0]
        left -= seconds["fit"][-1] + seconds["predict"][-1]
        if left < max(seconds["fit"]) + max(seconds["predict"]):
            break
    found: dict[str, Any] = {kind: min(runs) for kind, runs in seconds.items()}
    found |= {"seconds": seconds, "support": len(estimator.support_)}
    found["accuracy"] = float(np.mean(labels == known))
    if solver == OURS:
        found["relative_gap"] = estimator.certificate_.relative_gap
    return found
