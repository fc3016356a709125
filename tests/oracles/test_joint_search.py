"""Searches over the bias alone and with the step, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from cutplane.oracles.joint import JointSearch, Sample
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
    found, other = RISKS[name].line_and_bias(start, end, ((k, bias), (0.0, 1.0)), targets)
    assert other[0] == pytest.approx(targets.total * loss(name, start + 1.0, targets))
    at = start + k * (end - start) + bias
    assert found[0] == pytest.approx(targets.total * loss(name, at, targets))
    line = RISKS[name].line(Scores(start, bias), Scores(end, bias), k, targets)
    assert found[:2] == pytest.approx(np.array(line), rel=1e-9, abs=1e-9)
    slope, curvature = RISKS[name].bias_derivatives(Scores(at - bias, bias), targets)
    assert found[2] == pytest.approx(slope, rel=1e-9, abs=1e-9)
    assert found[5] == pytest.approx(curvature, rel=1e-9, abs=1e-9)
    coef = np.empty(len(start))
    RISKS[name].coefficients(Scores(at, 0.0), targets, coef)
    assert found[6] == pytest.approx(np.abs(coef).sum(), rel=1e-9)
    # the other second derivatives by the change of the first ones, away from kinks
    if name == "logistic":
        step = 1e-5
        more, less = (
            RISKS[name].line_and_bias(start, end, ((k + d, bias),), targets)[0]
            for d in (step, -step)
        )
        change = (more[1:3] - less[1:3]) / (2.0 * step)
        assert found[3:5] == pytest.approx(change, rel=1e-4, abs=1e-5)


def test_logarithms_of_products():
    """Weights that change from row to row, tiny losses, and more rows than one product holds."""
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(size=5000), rng.uniform(5.0, 60.0, 3000), [800.0, -800.0]])
    for weights in (np.ones(8002), rng.choice([0.0, 1.0, 2.5], 8002)):
        targets = Targets.make(np.ones(8002), weights)
        for rows in (slice(None), slice(5000, 8001)):
            found = LogisticRisk().line_and_bias(
                scores[rows], scores[rows], ((0.3, 0.0),), targets[rows]
            )
            exact = weights[rows] @ np.logaddexp(0.0, -scores[rows])
            assert found[0, 0] == pytest.approx(exact, rel=1e-12)


class Watched:
    """A line of random scores, on which evaluations are counted."""

    def __init__(self, name, seed, tolerance=1e-5, slope=0.0, position=None, rough=False):
        self.name = name
        self.targets, self.start, self.end = draw(seed)
        points = [Point(np.zeros(0), scores) for scores in (self.start, self.end)]
        best = scipy.optimize.minimize_scalar(lambda b: loss(name, self.start + b, self.targets))
        points[0].bias, points[0].risk = best.x, best.fun
        points[1].rough = rough
        self.line = Line(*points, 0.1, slope, tolerance, position=position)
        self.looks = []

    def evaluate(self, points):
        self.looks.append(points)
        risk = RISKS[self.name]
        return risk.line_and_bias(self.start, self.end, points, self.targets) / self.targets.total

    def height(self, point):
        k, bias = point
        scores = self.start + k * (self.end - self.start) + bias
        risk = loss(self.name, scores, self.targets)
        return 0.5 * self.line.curvature * k * k + self.line.slope * k + risk


@pytest.mark.parametrize("name", RISKS)
@settings(deadline=None)
@given(seed=SEEDS, step=st.floats(0.02, 5.0))
def test_step_and_bias_together(name, seed, step):
    """Where a minimum is found it is one within the tolerance."""
    watched = Watched(name, seed)
    found = JointSearch(watched.line, watched.evaluate).find(step, 0.3)
    best = scipy.optimize.minimize(watched.height, [0.5, 0.0], bounds=[(1e-6, None), (None, None)])
    if found is not None:
        assert found.k > 0.0
        assert watched.height((found.k, found.bias)) <= best.fun + watched.line.tolerance
    elif best.x[0] > 0.05 and best.fun < watched.line.start.risk - 1e-3:
        assert len(watched.looks) == 7, "gave up early"


@pytest.mark.parametrize("name", RISKS)
@settings(deadline=None)
@given(seed=SEEDS, position=st.floats(0.01, 0.3))
def test_the_next_cut_and_the_end_come_with_it(name, seed, position):
    """A cut there needs no search for its bias, and its coefficients are known to balance."""
    asked = []

    def place(k, fall):
        asked.append((k, fall))
        return position

    watched = Watched(name, seed, 1e-4, position=place, rough=True)
    found = JointSearch(watched.line, watched.evaluate).find(0.5, 0.5)
    if found is None:
        return
    assert len(asked) == 1
    targets, at = watched.targets, found.k + position * (1.0 - found.k)
    scores = watched.start + at * (watched.end - watched.start)
    bias = found.balance.bias
    lowest = scipy.optimize.minimize_scalar(lambda b: loss(name, scores + b, targets)).fun
    assert loss(name, scores + bias, targets) <= lowest + 0.5 * watched.line.tolerance
    coef = np.empty(len(scores))
    RISKS[name].coefficients(Scores(scores, bias), targets, coef)
    coef[coef * found.balance.sign > 0.0] *= found.balance.factor
    assert 0.0 < found.balance.factor <= 1.0
    assert abs(coef.sum()) <= 1e-12 * np.abs(coef).sum()
    assert found.end.risk == pytest.approx(
        loss(name, watched.end + found.end.bias, targets), rel=1e-9
    )


def test_a_sample_knows_the_minimum_over_the_bias():
    """Near the best bias value, slopes and the best bias itself are those of the minimum."""
    watched = Watched("logistic", 4)

    def best(k):
        return scipy.optimize.minimize_scalar(lambda b: watched.height((k, b)), tol=1e-12)

    exact, step = best(0.4), 1e-3
    more, less = best(0.4 + step), best(0.4 - step)
    bias = exact.x + 0.02
    sample = Sample.make(watched.line, 0.4, bias, watched.evaluate(((0.4, bias),))[0])
    assert sample.value - sample.excess == pytest.approx(exact.fun, abs=1e-7)
    assert sample.best == pytest.approx(exact.x, abs=1e-3)
    assert sample.slope == pytest.approx((more.fun - less.fun) / (2.0 * step), abs=1e-3)
    assert sample.turn == pytest.approx((more.x - less.x) / (2.0 * step), rel=0.1, abs=0.01)


def test_two_looks_where_the_step_is_as_expected():
    watched = Watched("logistic", 7, tolerance=1e-3)
    first = JointSearch(watched.line, watched.evaluate).find(0.5, 0.3)
    watched.looks.clear()
    again = JointSearch(watched.line, watched.evaluate).find(1.3 * first.k, 0.3)
    assert len(watched.looks) == 2
    assert watched.height((again.k, again.bias)) <= watched.height((first.k, first.bias)) + 1e-3


def test_no_step_where_nothing_is_gained():
    """The minimum is at k < 0."""
    watched = Watched("logistic", 3, 1e-6, slope=0.5)
    watched.end[:] = watched.start
    assert JointSearch(watched.line, watched.evaluate).find(0.5, 0.3) is None


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
