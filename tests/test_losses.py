"""Every loss of the table: its functions fit together, and compiled loops call the same ones."""

from __future__ import annotations

import math
from functools import partial

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from cutplane import _elementary, losses
from cutplane.losses import LOSSES

# Packages built with -ffast-math that other tests have loaded take subnormal numbers away.
_floats = partial(st.floats, allow_subnormal=False)
ARGUMENTS = st.one_of(_floats(-30.0, 30.0), st.sampled_from([-1.0, 0.0, 1.0, 2.0]))
SHARES = _floats(0.0, 1.0)


# Every loss as it is if nothing is said, and some with other parameters.
CASES = [
    *(make() for make in LOSSES.values()),
    losses.HuberisedHinge(0.01),
    losses.EpsilonInsensitive(0.0),
    losses.SquaredEpsilonInsensitive(2.0),
    losses.Quantile(0.1),
    losses.Huber(1e-3),
]


@pytest.fixture(scope="module", params=CASES, ids=repr)
def loss(request):
    return request.param


def in_domain(loss, share):
    """A random number in the domain of the conjugate."""
    low, high = (min(max(end, -20.0), 20.0) for end in loss.domain)
    return low + share * (high - low)


@given(z=ARGUMENTS, other=ARGUMENTS)
def test_slopes_are_subgradients_of_a_convex_function(loss, z, other):
    assert loss.value(z) >= 0.0
    below = loss.value(z) + loss.slope(z) * (other - z)
    assert loss.value(other) >= below - 1e-9 * (1.0 + abs(below))
    low, high = loss.domain
    assert low <= loss.slope(z) <= high


@given(z=ARGUMENTS, share=SHARES)
def test_planes_of_the_conjugate_lie_below_and_touch(loss, z, share):
    u = in_domain(loss, share)
    below = u * z - loss.conjugate(u)
    assert loss.value(z) >= below - 1e-12 * (1.0 + abs(below))
    u = loss.slope(z)
    touching = u * z - loss.conjugate(u)
    assert loss.value(z) == pytest.approx(touching, rel=1e-9, abs=1e-9)


@given(share=SHARES, z=ARGUMENTS, log_h=_floats(-6.0, 6.0))
def test_dual_step_minimises(loss, share, z, log_h):
    u, h = in_domain(loss, share), math.exp(log_h)

    def objective(v):
        return loss.conjugate(v) - z * v + 0.5 * h * (v - u) ** 2

    found = loss.dual_step(u, z, h)
    low, high = loss.domain
    assert low <= found <= high
    low, high = max(low, u - 100.0 / h - 100.0), min(high, u + 100.0 / h + 100.0)
    best = minimize_scalar(objective, bounds=(low, high), options={"xatol": 1e-12}).fun
    best = min(best, objective(low), objective(high))
    assert objective(found) <= best + 1e-9 * (1.0 + abs(best))


@given(z=ARGUMENTS)
def test_curvature_by_differences(loss, z):
    if loss.curvature is None:
        pytest.skip("the loss has kinks")
    h = 1e-6
    sides = sorted(
        [(loss.slope(z) - loss.slope(z - h)) / h, (loss.slope(z + h) - loss.slope(z)) / h]
    )
    # They differ where the squared hinge has a corner.
    assert sides[0] - 1e-4 <= loss.curvature(z) <= sides[1] + 1e-4


@given(z=ARGUMENTS)
def test_of_margin_is_the_same_function(loss, z):
    if loss.of_margin is not None:
        assert loss.of_margin(max(0.0, 1.0 - z)) == pytest.approx(loss.value(z), abs=1e-300)


@numba.njit
def _compiled(loss, u, z, h):
    return (
        losses.value(loss, z),
        losses.slope(loss, z),
        losses.conjugate(loss, u),
        losses.dual_step(loss, u, z, h),
    )


@given(share=SHARES, z=ARGUMENTS)
def test_compiled_loops_call_the_same_functions(loss, share, z):
    u = in_domain(loss, share)
    found = _compiled(loss, u, z, 0.7)
    plain = loss.value(z), loss.slope(z), loss.conjugate(u), loss.dual_step(u, z, 0.7)
    np.testing.assert_allclose(found, plain, rtol=1e-12, atol=1e-14)
    assert losses.argument(loss, z, -1.0) == (z + 1.0 if loss.regression else -z)
    assert losses.direction(loss, -1.0) == (1.0 if loss.regression else -1.0)


def test_reach_bounds_the_slope_times_the_argument(loss):
    z = np.linspace(-50.0, 50.0, 100_001)
    largest = max(-x * loss.slope(x) for x in z.tolist())
    assert loss.reach is None or largest <= loss.reach * (1.0 + 1e-6)


@pytest.mark.parametrize(
    ("function", "exact", "arguments"),
    [
        (_elementary.exp, np.exp, -np.geomspace(1e-300, 708.0, 100_000)),
        (_elementary.log, np.log, np.geomspace(1e-300, 1e300, 100_000)),
        (_elementary.log, np.log, np.linspace(1.0, 0.0, 100_000, endpoint=False)),
        (_elementary.log1p, np.log1p, np.geomspace(1e-300, 1.0, 100_000)),
        (_elementary.log1p, np.log1p, np.linspace(0.0, 1.0, 100_000)),
    ],
    ids=["exp", "log", "log below 1", "log1p", "log1p below 1"],
)
def test_compiled_exponentials_are_off_by_a_few_roundings(function, exact, arguments):
    found = numba.vectorize(["f8(f8)"])(lambda x: function(x))(arguments)
    right = exact(arguments.astype(np.longdouble))
    error = np.abs(found - right).astype(float)
    assert np.all(error <= 4 * 2.0**-53 * np.abs(right).astype(float))


def test_compiled_exponentials_at_the_ends():
    arguments = np.array([0.0, -0.0, -1e4, -np.inf, np.nan])
    with np.errstate(invalid="ignore"):
        found = numba.vectorize(["f8(f8)"])(lambda x: _elementary.exp(x))(arguments)
    assert found[:2].tolist() == [1.0, 1.0]
    assert np.all((found[2:4] >= 0.0) & (found[2:4] < 1e-300))
    assert np.isnan(found[4])
    # The logistic loss has no overflow, and what is not a number stays so.
    value = numba.njit(lambda loss, z: losses.value(loss, z))
    assert value(losses.Logistic(), -1e300) == 1e300
    assert 0.0 <= value(losses.Logistic(), 1e300) < 1e-300
    assert math.isnan(value(losses.Logistic(), math.nan))
