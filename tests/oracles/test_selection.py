"""The zero of a sum of steps, against sorting all of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.oracles.selection import BINS, SORT_BELOW, Grid, ListedSteps, crossing

SEEDS = st.integers(0, 2**32 - 1)


def reference(positions, jumps, slope, start):
    """Sort, then walk, in exact arithmetic: the smallest k with h(k) ≥ 0, as a Fraction.

    h(k) = start + slope·k + Σ of the jumps at positions ≤ k, where a step
    belongs to its position.
    """
    order = np.argsort(positions, kind="stable")
    level, slope = Fraction(float(start)), Fraction(float(slope))
    for place, jump in zip(positions[order], jumps[order], strict=True):
        k = Fraction(float(place))
        if slope > 0 and slope * k + level >= 0:
            return -level / slope
        level += Fraction(float(jump))
        if slope * k + level >= 0:
            return k
    return -level / slope if slope > 0 else None


def find(positions, jumps, slope, start, low=0.0, high=1.0, blocks=3, executor=None):
    """``crossing`` on copies cut into blocks: it may overwrite its inputs."""
    steps = ListedSteps(
        [part.copy() for part in np.array_split(positions, blocks)],
        [part.copy() for part in np.array_split(jumps, blocks)],
        executor or SerialExecutor(),
    )
    return crossing(steps, slope, start, Grid.over(low, high))


def steps(rng, rows, kind):
    """Positions and jumps that sum exactly, so that the reference has one answer."""
    positions = {
        "uniform": lambda: rng.uniform(0.0, 3.0, rows),
        "ties": lambda: rng.integers(0, 6, rows) / 4.0,
        "equal": lambda: np.full(rows, 0.75),
        "signed": lambda: rng.normal(size=rows),
        "ranges": lambda: 10.0 ** rng.uniform(-12, 12, rows),
        "clustered": lambda: 0.5 + 1e-13 * rng.integers(0, 50, rows),
        "edges": lambda: rng.integers(0, BINS + 1, rows) / BINS,
    }[kind]()
    return positions, rng.integers(1, 9, rows) / 8.0


KINDS = ["uniform", "ties", "equal", "signed", "ranges", "clustered", "edges"]


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=SEEDS,
    share=st.floats(0.01, 0.99),
    low=st.sampled_from([0.0, -1.0, 0.7, 50.0, -1e6]),
    width=st.sampled_from([1.0, 1e-8, 1e6, 1e300]),
)
def test_without_slope(kind, seed, share, low, width):
    """The bias of the hinge. Sums of multiples of 1/8 are exact: the answers are equal."""
    rng = np.random.default_rng(seed)
    positions, jumps = steps(rng, int(rng.integers(1, 60)), kind)
    start = -np.ceil(share * jumps.sum() * 8.0) / 8.0
    found = find(positions, jumps, 0.0, start, low, low + width)
    assert found == float(reference(positions, jumps, 0.0, start))


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "signed"])
@given(
    seed=SEEDS,
    share=st.floats(0.01, 3.0),
    slope=st.sampled_from([1e-9, 0.125, 1.0, 1e6]),
    high=st.sampled_from([1e-9, 1.0, 2.0, 1e9]),
)
def test_with_slope(kind, seed, share, slope, high):
    rng = np.random.default_rng(seed)
    positions, jumps = steps(rng, int(rng.integers(1, 60)), kind)
    start = -share * jumps.sum()
    found = find(positions, jumps, slope, start, 0.0, high)
    expected = float(reference(positions, jumps, slope, start))
    # h grows at least with its slope, so an error in h moves k by that over the slope
    slack = 1e-14 * jumps.sum() / slope
    assert found == pytest.approx(expected, rel=1e-12, abs=slack)


@pytest.mark.parametrize("slope", [0.0, 0.5])
@pytest.mark.parametrize("where", ["below", "inside", "beyond"])
@pytest.mark.parametrize("kind", ["uniform", "ties", "equal", "ranges", "clustered"])
def test_more_steps_in_one_bin_than_are_sorted(slope, where, kind):
    rng = np.random.default_rng(1)
    positions, jumps = steps(rng, 5 * SORT_BELOW, kind)
    start = -np.round(0.6 * jumps.sum())
    low, high = {"below": (1e13, 2e13), "inside": (-1e13, 1e13), "beyond": (-2.0, -1.0)}[where]
    found = find(positions, jumps, slope, start, low, high)
    expected = float(reference(positions, jumps, slope, start))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_few_distinct_positions_among_many_steps():
    """More steps than are sorted, at two neighbouring numbers."""
    positions = np.full(3 * SORT_BELOW, 1.0)
    positions[::2] = np.nextafter(1.0, 2.0)
    jumps = np.ones(len(positions))
    half = len(positions) / 2
    assert find(positions, jumps, 0.0, -half) == 1.0
    assert find(positions, jumps, 0.0, -half - 1) == np.nextafter(1.0, 2.0)
    assert find(positions, jumps, 0.0, -half, 3.0, 4.0) == 1.0


def test_zero_at_the_first_and_last_step():
    positions, jumps = np.array([3.0, 1.0, 2.0]), np.ones(3)
    assert find(positions, jumps, 0.0, -1.0, 0.0, 10.0) == 1.0
    assert find(positions, jumps, 0.0, -2.0, 0.0, 10.0) == 2.0
    assert find(positions, jumps, 0.0, -3.0, 0.0, 10.0) == 3.0
    assert find(positions, jumps, 0.0, -2.5, 0.0, 10.0) == 3.0


def test_no_steps():
    empty = np.empty(0)
    assert find(empty, empty, 2.0, -1.0) == pytest.approx(0.5)
    assert find(empty, empty, 2.0, -1e9) == pytest.approx(5e8)
    assert find(empty, empty, 2.0, -1e-9, 0.0, 1e9) == pytest.approx(5e-10)


def test_a_sum_that_rounding_keeps_below_zero():
    """Where the steps only just reach zero, the answer lies at or beyond the last one."""
    rng = np.random.default_rng(0)
    positions, jumps = rng.uniform(0.0, 1.0, 500), rng.random(500)
    start = -float(np.sum(jumps)) * (1.0 + 1e-15)
    for low, high in [(0.0, 1.0), (0.0, 0.3), (5.0, 6.0), (-1.0, -0.5)]:
        assert find(positions, jumps, 0.0, start, low, high) >= positions.max()


def test_empty_blocks_and_any_partition():
    rng = np.random.default_rng(2)
    positions, jumps = steps(rng, 300, "uniform")
    start = -np.round(0.4 * jumps.sum())
    expected = float(reference(positions, jumps, 0.25, start))
    for blocks in (1, 2, 7, 299, 400):
        found = find(positions, jumps, 0.25, start, blocks=blocks)
        assert found == pytest.approx(expected, rel=1e-13)


def test_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(3)
    positions, jumps = rng.normal(size=30_000), rng.random(30_000)
    found = set()
    for executor in (SerialExecutor(), ThreadExecutor(2), ThreadExecutor(8)):
        with executor:
            found.add(find(positions, jumps, 1e-3, -7000.0, 0.0, 0.1, 20, executor))
    assert len(found) == 1


@pytest.mark.parametrize("centre", [0.0, 1e17, -1e17])
def test_an_interval_without_width(centre):
    """At a bias of 1e17, bias ± 1 are the same number."""
    positions, jumps = np.array([1.0, 2.0, 3.0]) + centre, np.ones(3)
    expected = np.sort(positions)[1]
    assert find(positions, jumps, 0.0, -2.0, centre, centre) == expected


def test_steps_closer_than_the_smallest_normal_number():
    """A width whose inverse overflows must not send the search in circles."""
    rng = np.random.default_rng(4)
    positions = 5e-324 * rng.integers(0, 1000, 2 * SORT_BELOW)
    jumps = np.ones(len(positions))
    start = -float(len(positions) // 2)
    found = find(positions, jumps, 0.0, start)
    assert found == float(reference(positions, jumps, 0.0, start))
