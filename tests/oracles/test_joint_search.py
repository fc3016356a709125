"""Searches over the bias alone and with the step, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from cutplane.oracles.joint import minimise_jointly
from cutplane.oracles.line import newton
from cutplane.oracles.point import Line, Point
from cutplane.risks import LogisticRisk, Scores, SquaredHingeRisk, Targets

SEEDS = st.integers(0, 2**32 - 1)
RISKS = {"logistic": LogisticRisk(), "squared_hinge": SquaredHingeRisk()}


def draw(seed, rows=60):
    rng = np.random.default_rng(seed)
    targets = Targets.make(
        rng.permuted(np.resize([1.0, -1.0, -1.0], rows)), rng.uniform(0.5, 2.0, rows)
    )
    return targets, *(rng.normal(size=(2, rows)) * rng.uniform(0.2, 3.0))


def loss(name, scores, targets):
    margins = targets.labels * scores
    losses = (
        np.logaddexp(0.0, -margins) if name == "logistic" else np.maximum(0.0, 1.0 - margins) ** 2
    )
    return float(targets.weights @ losses) / targets.total


@pytest.mark.parametrize("name", RISKS)
@given(seed=SEEDS, k=st.floats(0.0, 2.0), bias=st.floats(-2.0, 2.0))
def test_value_and_derivatives_of_the_risks(name, seed, k, bias):
    targets, start, end = draw(seed)
    found = RISKS[name].line_and_bias(start, end, k, bias, targets)
    at = start + k * (end - start) + bias
    assert found[0] == pytest.approx(targets.total * loss(name, at, targets))
    line = RISKS[name].line(Scores(start, bias), Scores(end, bias), k, targets)
    assert found[:2] == pytest.approx(np.array(line), rel=1e-9, abs=1e-9)
    slope, curvature = RISKS[name].bias_derivatives(Scores(at - bias, bias), targets)
    assert found[2] == pytest.approx(slope, rel=1e-9, abs=1e-9)
    assert found[5] == pytest.approx(curvature, rel=1e-9, abs=1e-9)
    # the other second derivatives by the change of the first ones, away from kinks
    if name == "logistic":
        step = 1e-5
        more, less = (
            RISKS[name].line_and_bias(start, end, k + d, bias, targets) for d in (step, -step)
        )
        change = (more[1:3] - less[1:3]) / (2.0 * step)
        assert found[3:5] == pytest.approx(change, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", RISKS)
@settings(deadline=None)
@given(seed=SEEDS)
def test_step_and_bias_together(name, seed):
    """Where a minimum is found it is one within the tolerance."""
    targets, start, end = draw(seed)
    way = end - start
    curvature, tolerance = 0.1, 1e-5
    a, b = (Point(np.zeros(0), scores) for scores in (start, end))
    line = Line(a, b, curvature, 0.0, tolerance)

    def height(point):
        k, bias = point
        return 0.5 * curvature * k * k + loss(name, start + k * way + bias, targets)

    evaluations = []

    def evaluate(k, bias):
        evaluations.append(k)
        return RISKS[name].line_and_bias(start, end, k, bias, targets) / targets.total

    found = minimise_jointly(line, evaluate, 0.5, 0.0)
    best = scipy.optimize.minimize(height, [0.5, 0.0], bounds=[(1e-6, None), (None, None)])
    if found is not None:
        assert found[0] > 0.0
        assert height(found) <= best.fun + tolerance
    elif best.x[0] > 0.05:  # well inside: it must be found
        assert len(evaluations) == 8, "gave up early"
        assert best.x[0] > 5.0 or best.x[0] < 0.1


def test_no_step_where_nothing_is_gained():
    """The minimum is at k < 0."""
    targets, start, _ = draw(3)
    a, b = (Point(np.zeros(0), scores) for scores in (start, start))
    line = Line(a, b, 1.0, 0.5, 1e-6)
    risk = LogisticRisk()

    def evaluate(k, bias):
        return risk.line_and_bias(start, start, k, bias, targets) / targets.total

    assert minimise_jointly(line, evaluate, 0.5, 0.0) is None


@pytest.mark.parametrize("name", RISKS)
@settings(deadline=None)
@given(seed=SEEDS, begin=st.floats(-30.0, 30.0))
def test_the_bias_is_found_with_few_passes(name, seed, begin):
    targets, start, _ = draw(seed)
    asked = []

    def derivatives(bias):
        asked.append(bias)
        return RISKS[name].bias_derivatives(Scores(start, bias), targets)

    tolerance = 1e-12 * targets.total
    bias = newton(derivatives, begin, tolerance)
    assert abs(derivatives(bias)[0]) <= 10.0 * tolerance
    assert len(asked) <= 40


def test_a_smooth_bias_nearby_takes_four_passes():
    targets, start, _ = draw(1, rows=5000)
    asked = []

    def derivatives(bias):
        asked.append(bias)
        return LogisticRisk().bias_derivatives(Scores(start, bias), targets)

    best = newton(derivatives, 0.0, 1e-13 * targets.total)
    asked.clear()
    again = newton(derivatives, best + 0.05, 1e-13 * targets.total)
    assert len(asked) <= 4
    assert abs(again - best) <= 1e-11
