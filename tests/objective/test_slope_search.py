"""The minimum of a convex function from its derivatives, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from cutplane.objective.search import find_bracket

SEEDS = st.integers(0, 2**32 - 1)


def kinked(seed, curvature):
    """A convex, piecewise quadratic function, its derivative and its minimum by brute force."""
    rng = np.random.default_rng(seed)
    kinks = np.round(rng.normal(size=rng.integers(1, 30)), rng.integers(0, 9)) * 10.0 ** (
        rng.integers(-3, 4)
    )
    sizes = rng.random(len(kinks)) + 0.1

    def value(x):
        return 0.5 * curvature * x * x + float(sizes @ np.abs(x - kinks))

    def slopes(points):
        side = np.sign(points[:, None] - kinks)
        return curvature * points + np.where(side == 0.0, 1.0, side) @ sizes

    order = np.argsort(kinks)
    ends = [value(x) for x in kinks]
    for k in range(len(kinks) + 1):  # the minimum of each quadratic piece
        slope = sizes[order[:k]].sum() - sizes[order[k:]].sum()
        if curvature > 0.0:
            ends.append(value(-slope / curvature))
    return value, slopes, min(ends)


@given(
    seed=SEEDS,
    curvature=st.sampled_from([0.0, 1e-3, 1.0, 10.0]),
    guess=st.floats(-20.0, 20.0),
    at_once=st.sampled_from([1, 6]),
    tolerance=st.sampled_from([1e-1, 1e-6, 1e-12]),
)
def test_minimum_of_kinked_functions(seed, curvature, guess, at_once, tolerance):
    value, slopes, least = kinked(seed, curvature)
    first = guess + 0.3 * np.array([-1.0, 0.0, 1.0])
    bracket = find_bracket(slopes, first, tolerance, at_once=at_once)
    assert bracket.low <= bracket.point <= bracket.high
    slack = 1e-10 * (1.0 + abs(least))
    assert value(bracket.point) <= least + max(tolerance, bracket.excess) + slack
    assert bracket.excess <= tolerance or bracket.high - bracket.low <= 1e-9 * (
        1.0 + abs(bracket.high)
    )


@given(seed=SEEDS, tolerance=st.sampled_from([1e-3, 1e-9]))
def test_limits_hold(seed, tolerance):
    value, slopes, _ = kinked(seed, 1e-3)

    def within(points):
        assert np.all((points >= 0.0) & (points <= 0.5))
        return slopes(points)

    first = np.array([0.0, 0.1, 0.2])
    bracket = find_bracket(within, first, tolerance, lowest=0.0, highest=0.5)
    fine = min(value(x) for x in np.linspace(0.0, 0.5, 2001))
    assert value(bracket.point) <= fine + tolerance + 1e-9 * (1.0 + abs(fine))


def test_smooth_functions_take_few_passes():
    passes = 0

    def slopes(points):
        nonlocal passes
        passes += 1
        return np.tanh(points - 0.7) + 0.01 * points

    bracket = find_bracket(slopes, np.array([-1.0, 1.0]), 1e-12, at_once=1)
    assert bracket.point == pytest.approx(
        brentq(lambda x: np.tanh(x - 0.7) + 0.01 * x, 0.0, 1.0), abs=1e-5
    )
    assert passes <= 10


def test_a_zero_slope_is_a_minimum():
    for tolerance in (0.0, 1e-3):  # the search ends, though there is no other slope anywhere
        bracket = find_bracket(lambda x: np.zeros_like(x), np.array([3.0, 4.0]), tolerance)
        assert bracket.low == bracket.high == 3.0
        assert bracket.excess == 0.0


@pytest.mark.parametrize("guess", [-3.0, 0.2, 0.7, 5.0])
def test_the_least_of_several_minima(guess):
    """With the last digit asked for, the answer does not depend on where the search began."""

    def slopes(x):
        return np.where(x < 0.25, -1.0, np.where(x <= 0.75, 0.0, 2.0))

    bracket = find_bracket(slopes, guess + np.array([-0.1, 0.0, 0.1]), 0.0)
    assert bracket.point == pytest.approx(0.25, abs=1e-15)
