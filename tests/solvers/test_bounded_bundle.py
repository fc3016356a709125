"""The reduced problem over a box, against Clarabel, closed forms and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cutplane.exec import SerialExecutor
from cutplane.solvers.bounded import BoundedBundle
from cutplane.solvers.box_interior import interior_weights
from cutplane.solvers.reduced import Bundle, VectorSpace

cp = pytest.importorskip("cvxpy")

BOXES = {
    "none": lambda rng, d: (np.full(d, -np.inf), np.full(d, np.inf)),
    "positive": lambda rng, d: (np.zeros(d), np.full(d, np.inf)),
    "small": lambda rng, d: (np.full(d, -0.1), np.full(d, 0.2)),
    "without 0, some fixed": lambda rng, d: (
        low := rng.normal(size=d),
        low + rng.random(d) * (rng.random(d) < 0.7),
    ),
    "mixed": lambda rng, d: (
        np.where(rng.random(d) < 0.5, -np.inf, -0.3),
        np.where(rng.random(d) < 0.5, np.inf, 0.0),
    ),
}


def make(A, b, low, high):
    bundle = BoundedBundle(VectorSpace(A.shape[1], SerialExecutor()), low, high)
    for a, offset in zip(A, b, strict=True):
        bundle.add(a, offset)
    return bundle


def problem(box, features, cuts, seed):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(cuts, features)), rng.normal(size=cuts)
    b[0] = 2.0  # not all is solved by w = 0
    return A, b, *BOXES[box](rng, features)


def primal(A, b, C, w):
    return 0.5 * w @ w + C * max(0.0, (A @ w + b).max())


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e4])
@pytest.mark.parametrize("features", [1, 7, 40, 300])
@pytest.mark.parametrize("box", BOXES)
def test_optimum_is_clarabels(box, features, C):
    A, b, low, high = problem(box, features, 12, seed=features)
    found = make(A, b, low, high).solve(C)
    assert np.all((low <= found.w) & (found.w <= high))
    value = primal(A, b, C, found.w)
    assert found.dual <= value
    assert value - found.dual <= 1e-7 * value
    w = cp.Variable(features)
    has_low, has_high = np.isfinite(low), np.isfinite(high)
    walls = [w[has_low] >= low[has_low]] if has_low.any() else []
    walls += [w[has_high] <= high[has_high]] if has_high.any() else []
    goal = 0.5 * cp.sum_squares(w) + C * cp.pos(cp.max(A @ w + b))
    optimum = cp.Problem(cp.Minimize(goal), walls).solve(solver=cp.CLARABEL)
    assert found.dual <= optimum * (1.0 + 1e-5) + 1e-7
    assert value >= optimum * (1.0 - 1e-5) - 1e-7


@pytest.mark.parametrize("features", [5, 300])
def test_cuts_that_come_and_go(features):
    """Warm starts, and products that are kept from solution to solution, lose nothing."""
    A, b, low, high = problem("mixed", features, 40, seed=1)
    bundle = BoundedBundle(VectorSpace(features, SerialExecutor()), low, high, idle_solutions=3)
    for j in range(40):
        bundle.add(A[j], b[j])
        found = bundle.solve(30.0)
        anew = make(*zip_cuts(bundle, features), low, high).solve(30.0)
        assert found.dual == pytest.approx(anew.dual, rel=1e-8)
        bundle.drop_idle()
    assert len(bundle) < 40


def zip_cuts(bundle, features):
    cuts = bundle.active()
    return np.array([a for a, _ in cuts]).reshape(-1, features), np.array([o for _, o in cuts])


def test_without_bounds_it_is_the_other_bundle():
    A, b, low, high = problem("none", 9, 15, seed=3)
    other = Bundle(VectorSpace(9, SerialExecutor()))
    for a, offset in zip(A, b, strict=True):
        other.add(a, offset)
    ours, theirs = make(A, b, low, high).solve(5.0), other.solve(5.0)
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-9)
    assert ours.dual == pytest.approx(theirs.dual, rel=1e-12)


def test_one_cut_in_closed_form():
    """With one cut that stays active w is the clipped −C·a."""
    a = np.array([1.0, -2.0, 0.5, 3.0])
    low, high = np.array([-0.5, -np.inf, 0.0, -9.0]), np.array([9.0, 1.0, 0.0, -1.0])
    found = make(a[None], np.array([10.0]), low, high).solve(0.7)
    np.testing.assert_allclose(found.w, [-0.5, 1.0, 0.0, -2.1])


def test_all_features_fixed():
    A, b, low, _ = problem("without 0, some fixed", 6, 5, seed=0)
    found = make(A, b, low, low).solve(3.0)
    np.testing.assert_array_equal(found.w, low)
    assert found.dual == pytest.approx(primal(A, b, 3.0, low), rel=1e-12)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("C", [1.0, 1e5])
def test_bound_holds_in_exact_arithmetic(box, C):
    """D(β) over the rationals, for weights that sum to exactly 1, is not below the bound."""
    A, b, low, high = problem(box, 20, 8, seed=5)
    bundle = make(A, b, low, high)
    found = bundle.solve(C)
    beta = [Fraction(float(share)) for share in bundle._beta]
    total = sum(beta)
    beta = [share / total for share in beta][1:]
    exact = Fraction(C) * sum(x * Fraction(float(y)) for x, y in zip(beta, b, strict=True))
    for i in range(20):
        u = -Fraction(C) * sum(x * Fraction(float(y)) for x, y in zip(beta, A[:, i], strict=True))
        w = max(u, Fraction(float(low[i]))) if np.isfinite(low[i]) else u
        w = min(w, Fraction(float(high[i]))) if np.isfinite(high[i]) else w
        exact += w * w / 2 - u * w
    assert Fraction(found.dual) <= exact
    assert float(exact) - found.dual <= 1e-9 * float(exact) + 1e-9


def test_state_goes_on_to_the_same_bits():
    A, b, low, high = problem("mixed", 300, 20, seed=2)
    bundle = make(A[:12], b[:12], low, high)
    for _ in range(3):
        bundle.solve(10.0)
    other = BoundedBundle(VectorSpace(300, SerialExecutor()), low, high)
    other.restore(bundle.state())
    for j in range(12, 20):
        for each in (bundle, other):
            each.add(A[j], b[j])
        one, two = bundle.solve(10.0), other.solve(10.0)
        np.testing.assert_array_equal(one.w, two.w)
        assert one.dual == two.dual
    state = bundle.state()
    for name in ("beta", "gram", "free", "free_gram"):
        with pytest.raises(ValueError, match="not as it was written"):
            other.restore({**state, name: state[name][:-1]})


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("C", [0.1, 1e6])
def test_interior_point_alone(box, C):
    """The weights that it finds are optimal to many digits, from any start."""
    A, b, low, high = problem(box, 30, 25, seed=8)
    inside = np.flatnonzero(low < high)
    fixed = np.where(low < high, 0.0, low)
    beta = interior_weights(
        A[:, inside],
        b + A @ fixed,
        C,
        low[inside],
        high[inside],
        np.eye(25)[0],
        np.clip(np.zeros(len(inside)), low[inside], high[inside]),
    )
    assert np.all(beta >= 0.0) and beta.sum() == pytest.approx(1.0)
    u = -C * (beta @ A)
    w = np.clip(u, low, high)
    dual = C * (beta @ b) + np.sum((0.5 * w - u) * w)
    best = make(A, b, low, high).solve(C).dual
    heights = A @ w + b
    if heights.max() > 0.0:  # else the zero cut, which it is not given here, has a share
        assert dual == pytest.approx(best, rel=1e-6)
