"""Cheap cuts: the same bounds with fewer questions to the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane.exec import SerialExecutor
from cutplane.objective.structured import StructuredOracle
from cutplane.solvers import AdaptivePosition, BundleSolver, StopRule
from cutplane.solvers.cutting_plane import MOST_CHEAP_CUTS
from cutplane.structured import MulticlassProblem
from cutplane.structured.examples import Examples
from cutplane.structured.linear import LinearExamples

STOP = StopRule(relative=1e-6)


@pytest.fixture
def oracle():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 4)) + 0.8 * np.eye(4)[y]
    problem = MulticlassProblem().prepare(X, y)
    model = LinearExamples(Examples(problem, X, y), cache_size=5)
    return StructuredOracle(model, SerialExecutor())


@pytest.mark.parametrize("position", [None, AdaptivePosition()], ids=["cpa", "ocas"])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_same_optimum_in_fewer_passes(oracle, position, C):
    plain = BundleSolver(oracle, C, STOP, position).run()
    passes = oracle.passes
    cached = BundleSolver(oracle, C, STOP, position, None, oracle.cheap_cut).run()
    assert cached.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-6)
    assert cached.certificate.dual <= plain.certificate.primal
    assert plain.certificate.dual <= cached.certificate.primal
    assert cached.n_iter < plain.n_iter
    assert oracle.passes - passes < passes


def test_without_cheap_cuts_it_is_the_loop(oracle):
    plain = BundleSolver(oracle, 10.0, STOP, None).run()
    cached = BundleSolver(oracle, 10.0, STOP, None, None, lambda w: None).run()
    np.testing.assert_array_equal(cached.w, plain.w)
    assert cached.n_iter == plain.n_iter


def test_cheap_cuts_are_limited(oracle):
    """There are few of them even if every cheap cut seems worth adding."""
    asked = []

    def cheap(w):
        asked.append(w)
        return oracle.cut(at(w))

    def at(w):
        point = oracle.new_point()
        oracle.evaluate(w, point)
        return point

    result = BundleSolver(oracle, 1e4, StopRule(max_iter=2), None, None, cheap).run()
    assert len(asked) <= 2 * MOST_CHEAP_CUTS
    assert result.certificate.dual <= result.certificate.primal
