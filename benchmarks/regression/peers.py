"""Peers, each in a process of its own that is ended when its time or its memory is used up.

A peer tries harder and harder (more passes from the same start, the last by its own rule) until its
objective is low enough; the fastest run that reached it counts. The process writes a line of JSON
per run to a file, so that nothing is lost if it is ended, and its parent watches its memory.

    python -m benchmarks.regression.peers QUESTION FILE
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import Source
from ..measure import ROOT
from ..solvers import Model
from .problems import RegressionProblem, load

# A peer may take at most this part of the machine's memory.
MOST_MEMORY = 0.6
# Seconds to import, to load the data and to warm up. They do not count.
READY_SECONDS = 120.0
PASSES = tuple(int(5 * 1.5**k) for k in range(16))  # to 2,189
Fit = Callable[[RegressionProblem, int | None], Model]


# -- the peers ------------------------------------------------------------------------


def scikit_learn(problem: RegressionProblem, passes: int | None) -> Model:
    """scikit-learn's LinearSVR, which is liblinear: dual coordinate descent or Newton's method."""
    from sklearn.svm import LinearSVR

    limits = (
        {"max_iter": 20_000, "tol": 1e-6} if passes is None else {"max_iter": passes, "tol": 1e-12}
    )
    model = LinearSVR(
        C=problem.C,
        epsilon=problem.parameter,
        loss=problem.loss,
        dual=problem.loss == "epsilon_insensitive",  # the primal is faster, but not for this
        intercept_scaling=1.0,
        random_state=0,
        **limits,
    ).fit(problem.data.X, problem.data.y)
    return Model(model.coef_, float(model.intercept_[0]))


def rehline(problem: RegressionProblem, passes: int | None) -> Model:
    """ReHLine, dual coordinate descent. A constant feature is appended."""
    from rehline import plqERM_Ridge

    losses = {
        "epsilon_insensitive": {"name": "SVR", "epsilon": problem.parameter},
        "quantile": {"name": "QR", "qt": problem.parameter},
        "huber": {"name": "huber", "tau": problem.parameter},
    }
    limits = (
        {"max_iter": 20_000, "tol": 1e-6} if passes is None else {"max_iter": passes, "tol": 1e-12}
    )
    X = np.hstack([problem.data.X, np.ones((len(problem.data.y), 1))])
    model = plqERM_Ridge(losses[problem.loss], C=problem.C, **limits).fit(X, problem.data.y)
    return Model(model.coef_[:-1], float(model.coef_[-1]))


def quantile_regressor(problem: RegressionProblem, passes: int | None) -> Model:
    """scikit-learn's QuantileRegressor, which is HiGHS, without a regulariser."""
    from sklearn.linear_model import QuantileRegressor

    model = QuantileRegressor(quantile=problem.parameter, alpha=0.0, solver="highs")
    model.fit(problem.data.X, problem.data.y)
    return Model(model.coef_, float(model.intercept_))


def quantreg(problem: RegressionProblem, passes: int | None) -> Model:
    """statsmodels' QuantReg, reweighted least squares without a regulariser."""
    from statsmodels.regression.quantile_regression import QuantReg

    X = np.hstack([problem.data.X, np.ones((len(problem.data.y), 1))])
    limits = {} if passes is None else {"max_iter": passes}
    found = QuantReg(problem.data.y, X).fit(q=problem.parameter, **limits).params
    return Model(found[:-1], float(found[-1]))


# Package, losses, function, and whether the function takes a number of passes.
PEERS: dict[str, tuple[str, tuple[str, ...], Fit, bool]] = {
    "scikit-learn LinearSVR": (
        "sklearn",
        ("epsilon_insensitive", "squared_epsilon_insensitive"),
        scikit_learn,
        True,
    ),
    "ReHLine": ("rehline", ("epsilon_insensitive", "quantile", "huber"), rehline, True),
    "scikit-learn QuantileRegressor": ("sklearn", ("quantile",), quantile_regressor, False),
    "statsmodels QuantReg": ("statsmodels", ("quantile",), quantreg, True),
}
WITHOUT_REGULARISER = ("scikit-learn QuantileRegressor", "statsmodels QuantReg")


def missing(peer: str) -> str | None:
    """A sentence that says why a peer cannot run; None if it can."""
    package = PEERS[peer][0]
    if importlib.util.find_spec(package) is None:
        return f"{peer} is left out: pip install {package}"
    return None


# -- the parent -----------------------------------------------------------------------


def race(
    peer: str, problem: RegressionProblem, source: Source, enough: float, seconds: float
) -> dict[str, Any]:
    """All runs of a peer on a problem, and the reason of their end.

    Returns
    -------
    dict
        ``runs``, each with passes, seconds, objective and what is judged; ``reached``; ``seconds``
        of the fastest run that reached ``enough``, or else of the longest run that did not, the one
        that was ended included; ``extra_bytes``, the most memory above that of the data;
        ``ended``: 'done', 'time', 'memory' or 'failed'.
    """
    question = {
        "peer": peer,
        "name": problem.data.name,
        "loss": problem.loss,
        "parameter": problem.parameter,
        "C": problem.C,
        "enough": enough,
        "folder": None if source.folder is None else str(source.folder.resolve()),
        "rows": source.rows,
        "generated": source.generated,
    }
    with tempfile.TemporaryDirectory(prefix="cutplane-peer-") as folder:
        file = Path(folder) / "runs"
        file.touch()
        ended, peak = _watched([json.dumps(question), str(file)], file, seconds)
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    base = lines[0]["ready_bytes"] if lines else None
    runs = lines[1:]
    within = [r["seconds"] for r in runs if r["judged"] <= enough]
    return {
        "solver": peer,
        "runs": runs,
        "ended": ended,
        "reached": bool(within),
        "seconds": min(within) if within else _longest(runs, ended, seconds),
        "extra_bytes": None if base is None or peak is None else max(0, peak - base),
    }


def _longest(runs: list[dict[str, Any]], ended: str, seconds: float) -> float:
    """The seconds of the longest run. A run that was ended took the rest of the time."""
    took = [r["seconds"] for r in runs]
    return max([*took, seconds - sum(took)]) if ended != "done" or not took else max(took)


def _watched(arguments: list[str], file: Path, seconds: float) -> tuple[str, int | None]:
    """Run the child; returns the reason of its end, and its peak memory."""
    import cutplane

    places = [str(ROOT), str(Path(cutplane.__file__).resolve().parents[1])]
    places += [p for p in (os.environ.get("PYTHONPATH"),) if p]
    most = MOST_MEMORY * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    peak: int | None = None
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.regression.peers", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(places),
            "OMP_NUM_THREADS": "2",
            "OPENBLAS_NUM_THREADS": "2",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        began, ready = time.monotonic(), None
        while process.poll() is None:
            now = time.monotonic()
            if ready is None and file.stat().st_size:
                ready = now
            peak = max(peak or 0, _peak_of(process.pid)) or None
            if now - began > READY_SECONDS + seconds or (
                ready is not None and now - ready > seconds
            ):
                return "time", peak
            if peak is not None and peak > most:
                return "memory", peak
            time.sleep(0.05)
        return ("done" if process.returncode == 0 else "failed"), peak
    finally:
        process.kill()
        process.wait()


def _peak_of(process: int) -> int:
    try:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


# -- the child ------------------------------------------------------------------------


def _runs(question: dict[str, Any], file: Path) -> None:
    folder = None if question["folder"] is None else Path(question["folder"])
    source = Source(folder, question["rows"], question["generated"])
    data = load(question["name"], source)
    problem = RegressionProblem(data, question["loss"], question["parameter"], question["C"])
    _, _, fit, takes_passes = PEERS[question["peer"]]
    fit(problem.few_rows(), 5 if takes_passes else None)  # libraries load
    _write(file, {"ready_bytes": _now_bytes()})
    for passes in _efforts(takes_passes):
        begin = time.perf_counter()
        model = fit(problem, passes)
        seconds = time.perf_counter() - begin
        value = problem.objective(model)
        judged = problem.total_loss(model) if question["peer"] in WITHOUT_REGULARISER else value
        record = {"passes": passes, "seconds": seconds, "objective": value, "judged": judged}
        _write(file, record)
        if judged <= question["enough"]:
            return


def _efforts(takes_passes: bool) -> Iterator[int | None]:
    if takes_passes:
        yield from PASSES
    yield None


def _now_bytes() -> int | None:
    from .. import measure

    measure.release_free_memory()
    measure.reset_peak()
    return measure.resident_bytes()


def _write(file: Path, record: dict[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _runs(json.loads(sys.argv[1]), Path(sys.argv[2]))
