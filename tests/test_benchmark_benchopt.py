"""The benchopt suite, if benchopt is installed: its objective is ours, for all its solvers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("benchopt")

SUITE = Path(__file__).parents[1] / "benchmarks" / "benchopt"


def load(path: Path):
    spec = importlib.util.spec_from_file_location(f"suite_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("file, options", [("cutplane", {}), ("scikit_learn", None)])
def test_solvers_reach_the_optimum_of_the_objective(file, options, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0.3, 1.0, -1.0)
    objective = load(SUITE / "objective.py").Objective.get_instance(
        C=1.0, fit_intercept=fit_intercept
    )
    objective.set_data(X, y)
    if options is None:
        options = {"library": "libsvm" if fit_intercept else "liblinear"}
    solver = load(SUITE / "solvers" / f"{file}.py").Solver.get_instance(**options)
    solver.set_objective(**objective.get_objective())
    assert not solver.skip(**objective.get_objective())[0]
    solver.run(1e-6)
    found = objective.evaluate_result(**solver.get_result())["value"]
    from cutplane import LinearSVC

    exact = LinearSVC(loss="hinge", C=1.0, fit_intercept=fit_intercept, tol=1e-8).fit(X, y)
    assert found == pytest.approx(exact.certificate_.primal, rel=1e-4)
    assert found >= exact.certificate_.dual * (1 - 1e-9)
