"""What the searches over the bias and along lines ask of the risks, against numpy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutplane.risks import HingeRisk, LogisticRisk, Scores, SquaredHingeRisk, Targets

SEEDS = st.integers(0, 2**32 - 1)


def draw(seed, rows=15, halves=False):
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1.0, 1.0], rows)
    targets = Targets.make(labels, rng.integers(0, 4, rows).astype(float))
    start, end = rng.normal(size=(2, rows)) * 2.0
    if halves:
        start, end = np.round(2.0 * start) / 2.0, np.round(2.0 * end) / 2.0
    return rng, targets, start, end


def hinge_sum(scores, targets):
    return float(targets.weights @ np.maximum(0.0, 1.0 - targets.labels * scores))


@given(seed=SEEDS, halves=st.booleans())
def test_steps_along_a_line_add_up_to_the_derivative(seed, halves):
    _, targets, start, end = draw(seed, halves=halves)
    positions, jumps = np.full((2, len(start)), np.nan)
    count, slope = HingeRisk().line_steps(
        Scores(start, 0.0), Scores(end, 0.0), targets, 1e300, positions, jumps
    )
    positions, jumps = positions[:count], jumps[:count]
    assert np.all(positions > 0.0)
    assert np.all(jumps >= 0.0)
    edges = np.unique(np.concatenate([[0.0], positions, [positions.max(initial=0.0) + 1.0]]))
    for left, right in itertools.pairwise(edges):
        if right - left < 1e-6:
            continue
        # the function is linear between two steps
        a, b = left + 0.25 * (right - left), left + 0.75 * (right - left)
        rise = hinge_sum(start + b * (end - start), targets)
        rise -= hinge_sum(start + a * (end - start), targets)
        found = slope + jumps[positions <= left].sum()
        assert found == pytest.approx(rise / (b - a), rel=1e-6, abs=1e-6)


def test_rows_that_do_not_change_have_no_step():
    targets = Targets.make(np.array([1.0, -1.0, 1.0]))
    scores = Scores(np.array([0.3, 2.0, 1.0]), 0.0)
    buffers = np.empty((2, 3))
    assert HingeRisk().line_steps(scores, scores, targets, 1e300, *buffers) == (0, 0.0)


@given(seed=SEEDS, halves=st.booleans(), bias=st.floats(-4, 4))
def test_steps_of_the_bias_add_up_to_the_derivative(seed, halves, bias):
    _, targets, scores, _ = draw(seed, halves=halves)
    positions, jumps = np.full((2, len(scores)), np.nan)
    inside = np.full((2, len(scores)), np.nan)
    few, below = HingeRisk().bias_steps(Scores(scores, 0.0), targets, bias, bias + 1, *inside)
    count, lowest = HingeRisk().bias_steps(
        Scores(scores, 0.0), targets, -1e300, 1e300, positions, jumps
    )
    assert count == len(scores)
    assert few == np.count_nonzero((positions >= bias) & (positions < bias + 1))
    assert below == pytest.approx(lowest + jumps[positions < bias].sum())
    h = 1e-7
    if np.abs(positions - bias).min() < 2.0 * h:
        return
    rise = hinge_sum(scores + bias + h, targets) - hinge_sum(scores + bias - h, targets)
    assert lowest + jumps[positions <= bias].sum() == pytest.approx(rise / (2.0 * h), abs=1e-5)


@given(seed=SEEDS, bias=st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]))
def test_active_weights(seed, bias):
    _, targets, scores, _ = draw(seed, halves=True)
    margin = 1.0 - targets.labels * (scores + bias)  # exact for multiples of 1/2
    positive = targets.labels > 0.0
    expected = [
        targets.weights[(margin > 0) & positive].sum(),
        targets.weights[(margin > 0) & ~positive].sum(),
        targets.weights[(margin == 0) & positive].sum(),
        targets.weights[(margin == 0) & ~positive].sum(),
    ]
    found = HingeRisk().active_weights(Scores(scores, bias), targets)
    np.testing.assert_array_equal(found, expected)


@given(seed=SEEDS, positive=st.floats(0, 1), negative=st.floats(0, 1))
def test_rows_at_the_kink_count_in_part(seed, positive, negative):
    _, targets, scores, _ = draw(seed, halves=True)
    out = np.empty(len(scores))
    HingeRisk().split_coefficients(Scores(scores, 0.5), targets, positive, negative, out)
    margin = 1.0 - targets.labels * (scores + 0.5)
    share = np.where(targets.labels > 0.0, positive, negative)
    part = np.where(margin > 0.0, 1.0, np.where(margin == 0.0, share, 0.0))
    np.testing.assert_allclose(out, -targets.labels * part * targets.weights, rtol=1e-15)


@pytest.mark.parametrize("risk", [SquaredHingeRisk(), LogisticRisk()], ids=["squared", "logistic"])
@given(seed=SEEDS, bias=st.floats(-3, 3))
def test_bias_derivatives_by_differences(risk, seed, bias):
    _, targets, scores, _ = draw(seed)
    slope, curvature = risk.bias_derivatives(Scores(scores, bias), targets)
    h = 1e-6

    def slope_at(b):
        return risk.bias_derivatives(Scores(scores, b), targets)[0]

    rise = risk.value(Scores(scores, bias + h), targets)
    rise -= risk.value(Scores(scores, bias - h), targets)
    assert slope == pytest.approx(rise / (2 * h), rel=1e-5, abs=1e-5)
    left = (slope_at(bias) - slope_at(bias - h)) / h
    right = (slope_at(bias + h) - slope_at(bias)) / h
    low, high = sorted((left, right))  # they differ where the squared hinge has a corner
    assert low - 1e-4 * (1 + abs(low)) <= curvature <= high + 1e-4 * (1 + abs(high))
