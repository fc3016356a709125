"""The search along a line: minima known in closed form, and how many evaluations they cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutplane.objective.search import MOST_EVALUATIONS, LineValue, minimise


class Counted:
    """A function with its derivative that counts its calls."""

    def __init__(self, value, slope):
        self.value, self.slope = value, slope
        self.calls = 0

    def __call__(self, k):
        self.calls += 1
        return self.at(k)

    def at(self, k):
        return LineValue(k, self.value(k), self.slope(k))

    def minimise(self, guess=1.0, tolerance=0.0, known=None, **options):
        if known is not None:
            options["known"] = self.at(known)
        return minimise(self, self.at(0.0), guess, tolerance, **options).k


def quadratic(minimum, curvature=1.0):
    return Counted(
        lambda k: 0.5 * curvature * (k - minimum) ** 2, lambda k: curvature * (k - minimum)
    )


def kinked(slopes, offsets):
    """max_j slopes_j·k + offsets_j, with the slope of a largest piece."""
    slopes, offsets = np.asarray(slopes, float), np.asarray(offsets, float)
    return Counted(
        lambda k: float(np.max(slopes * k + offsets)),
        lambda k: float(slopes[np.argmax(slopes * k + offsets)]),
    )


@pytest.mark.parametrize("minimum", [1e-6, 1e-3, 0.3, 1.0, 7.0, 1e4, 1e8])
@pytest.mark.parametrize("guess", [1.0, 1e-3])
def test_quadratic(minimum, guess):
    f = quadratic(minimum)
    k = f.minimise(guess, tolerance=1e-12 * minimum**2)
    assert k == pytest.approx(minimum, rel=1e-5)


@pytest.mark.parametrize("minimum", [0.05, 0.3, 1.0, 3.0, 15.0])
@pytest.mark.parametrize(("share", "most"), [(1e-1, 6), (1e-2, 8), (1e-3, 10)])
def test_smooth_functions_take_few_evaluations(minimum, share, most):
    """The search costs as little as its tolerance allows, here a share of the possible drop."""
    f = quadratic(minimum)
    f.minimise(tolerance=share * f.value(0.0))
    assert f.calls <= 4
    g = Counted(
        lambda k: np.logaddexp(0.0, 4.0 * (k - minimum)) - 2.0 * k,
        lambda k: 4.0 / (1.0 + np.exp(-4.0 * (k - minimum))) - 2.0,
    )
    lowest = g.value(minimum)
    k = g.minimise(tolerance=share * (g.value(0.0) - lowest))
    assert g.value(k) - lowest <= share * (g.value(0.0) - lowest)
    assert g.calls <= most


def test_a_straight_line_that_rises_has_its_minimum_at_zero():
    f = kinked([2.0], [1.0])
    assert f.minimise(known=1.0) == 0.0
    assert f.calls == 0


def test_minimum_at_zero():
    for f in (quadratic(-1.0), quadratic(0.0), kinked([0.0, 2.0], [1.0, 0.0])):
        assert f.minimise() == 0.0
        assert f.calls == 0


def test_the_guess_is_the_minimum():
    f = quadratic(1.0)
    assert f.minimise(guess=1.0) == 1.0
    assert f.calls == 1


@pytest.mark.parametrize("minimum", [0.01, 0.4, 2.0, 300.0])
def test_one_kink(minimum):
    f = kinked([-1.0, 3.0], [minimum, -3.0 * minimum])
    k = f.minimise(tolerance=1e-9)
    assert k == pytest.approx(minimum, rel=1e-6)
    assert f.calls <= 16


@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([1e-1, 1e-3, 1e-6]))
def test_many_kinks_to_the_tolerance(seed, share):
    """Against all corners of a maximum of lines."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=12) * 10.0 ** rng.uniform(-2, 2, 12)
    slopes[:2] = -abs(slopes[0]), abs(slopes[1])
    offsets = rng.normal(size=12)
    f = kinked(slopes, offsets)
    one, two = np.triu_indices(12, 1)
    corners = (offsets[two] - offsets[one]) / (slopes[one] - slopes[two])
    lowest = min(f.value(k) for k in [0.0, *corners] if k >= 0.0)
    drop = f.value(0.0) - lowest
    k = f.minimise(tolerance=share * drop)
    assert k >= 0.0
    assert f.value(k) <= lowest + share * drop + 1e-12 * (1.0 + abs(lowest))
    assert f.calls <= 2 * MOST_EVALUATIONS


@given(
    minimum=st.floats(-6, 6).map(lambda e: 10.0**e),
    guess=st.floats(-6, 6).map(lambda e: 10.0**e),
    corner=st.floats(0.0, 100.0),
)
def test_never_worse_than_the_start(minimum, guess, corner):
    """A parabola with a kink at its minimum: no answer may lie above the value at 0."""
    f = Counted(
        lambda k: 0.5 * (k - minimum) ** 2 + corner * abs(k - minimum),
        lambda k: k - minimum + corner * (1.0 if k >= minimum else -1.0),
    )
    k = f.minimise(guess, tolerance=0.0)
    assert f.value(k) <= f.value(0.0)


@pytest.mark.parametrize("far", [1e6, 1e12, 1e15])
def test_far_beyond_the_guess(far):
    f = quadratic(far)
    k = f.minimise(guess=1.0, tolerance=1e-6 * far**2)
    assert f.value(k) <= 1e-5 * f.value(0.0)
    assert f.calls <= 30


@pytest.mark.parametrize("near", [1e-6, 1e-12])
def test_far_before_the_guess(near):
    f = quadratic(near)
    k = f.minimise(guess=1.0, tolerance=1e-6 * near**2)
    assert f.value(k) <= 1e-5 * f.value(0.0)
    assert f.calls <= 30


def test_a_function_that_falls_for_ever_ends():
    f = Counted(lambda k: -k, lambda k: -1.0)
    assert f.minimise() > 1e6
    assert f.calls <= MOST_EVALUATIONS


def curved(curvature, slopes, offsets):
    """½·curvature·k² + max_j slopes_j·k + offsets_j."""
    pieces = kinked(slopes, offsets)
    return Counted(
        lambda k: 0.5 * curvature * k * k + pieces.value(k),
        lambda k: curvature * k + pieces.slope(k),
    )


@given(seed=st.integers(0, 10_000))
def test_known_curvature_and_a_known_point_never_spoil_the_minimum(seed):
    rng = np.random.default_rng(seed)
    slopes = np.append(rng.normal(size=6), -3.0)
    offsets = rng.normal(size=7)
    bend = rng.exponential() + 0.1
    f = curved(bend, slopes, offsets)
    grid = np.linspace(0.0, 100.0, 10_001)[:, None]  # its lowest point is an upper bound
    lowest = np.min(0.5 * bend * grid[:, 0] ** 2 + np.max(slopes * grid + offsets, axis=1))
    tolerance = 1e-3 * max(f.value(0.0) - lowest, 1e-9)
    for known in (None, 0.3, 1.0, 20.0):
        for curvature in (0.0, bend):
            k = f.minimise(tolerance=tolerance, known=known, curvature=curvature)
            assert f.value(k) <= lowest + tolerance + 1e-12


def test_what_is_known_saves_evaluations():
    """One parabola whose curvature is known: the secant hits the minimum, and the bound says so."""
    f = quadratic(0.3)
    f.minimise(guess=2.0, tolerance=1e-9, known=1.0, curvature=1.0)
    with_knowledge = f.calls
    f = quadratic(0.3)
    f.minimise(guess=2.0, tolerance=1e-9)
    assert with_knowledge == 1 < f.calls


def test_known_point_below_the_minimum():
    f = quadratic(5.0)
    assert f.minimise(guess=0.5, tolerance=1e-9, known=1.0) == pytest.approx(5.0, rel=1e-4)


def test_longest_is_respected_with_a_known_point_beyond():
    f = quadratic(5.0)
    assert f.minimise(guess=0.5, longest=2.0, known=8.0) == 2.0
