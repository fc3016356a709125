"""Where OCAS places its cuts: always between the best point and the trial point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutplane.result import Iteration
from cutplane.solvers import AdaptivePosition, FixedPosition


def make_trace(primals, duals, trials):
    """A trace whose primal falls and whose dual rises, as every trace's do."""
    primals, duals = np.minimum.accumulate(primals), np.maximum.accumulate(duals)
    rows = zip(primals, duals, np.maximum(trials, primals), strict=True)
    return [
        Iteration(k + 1, float(p), float(d), float(t), step=1.0, cuts=k, seconds=0.0)
        for k, (p, d, t) in enumerate(rows)
    ]


def test_fixed_position():
    trace = make_trace([3.0, 2.0], [0.0, 1.0], [9.0, 9.0])
    assert FixedPosition(0.07).next(trace) == 0.07


@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 80), scale=st.floats(-12, 12))
def test_adaptive_position_stays_between_the_points(seed, length, scale):
    rng = np.random.default_rng(seed)
    size = 10.0**scale
    primals = size * (1.0 + rng.random(length) * (rng.random(length) < 0.5))
    duals = size * rng.random(length) * (rng.random(length) < 0.7)
    trace = make_trace(primals, duals, size * 10.0 ** rng.uniform(0, 9, length))
    position = AdaptivePosition().next(trace)
    assert 0.0 < position <= 0.5
    assert AdaptivePosition().next(trace) == position  # no memory of its own


@pytest.mark.parametrize("stalled", ["both", "primal", "dual"])
def test_a_run_that_stands_still_gets_a_position(stalled):
    steps = np.arange(30)
    primals = np.full(30, 2.0) if stalled != "dual" else 2.0 - 0.01 * steps
    duals = np.full(30, 1.0) if stalled != "primal" else 1.0 + 0.01 * steps
    trace = make_trace(primals, duals, np.full(30, 2.0))
    assert 0.0 < AdaptivePosition().next(trace) <= 0.5


def test_cuts_go_to_the_side_that_makes_progress():
    """The primal's progress moves the cut towards the trial point, the bound's away from it."""
    steps = np.arange(30)
    primal_works = make_trace(2.0 - 0.02 * steps, np.full(30, 1.0), np.full(30, 2.5))
    dual_works = make_trace(np.full(30, 2.0), 1.0 + 0.02 * steps, np.full(30, 2.5))
    position = AdaptivePosition()
    far = position.next(primal_works)
    near = position.next(dual_works)
    assert near < far
