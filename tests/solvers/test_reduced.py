"""The reduced problem against brute force, another solver, and 200-digit arithmetic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from cutplane.exec import SerialExecutor
from cutplane.solvers import reduced
from cutplane.solvers.reduced import Bundle, VectorSpace


def make_bundle(cuts, offsets):
    bundle = Bundle(VectorSpace(cuts.shape[1], SerialExecutor()))
    for a, offset in zip(cuts, offsets, strict=True):
        bundle.add(a, offset)
    return bundle


def shares(bundle):
    """β, the zero cut first."""
    return bundle._beta[: len(bundle) + 1].copy()


def dual_value(beta, cuts, offsets, C):
    w = C * beta[1:] @ cuts
    return C * beta[1:] @ offsets - 0.5 * w @ w


def brute_force(cuts, offsets, C):
    """The best stationary point over all supports."""
    A = np.vstack([np.zeros(cuts.shape[1]), cuts])
    b = np.append(0.0, offsets)
    best = 0.0
    for size in range(1, len(b) + 1):
        for support in itertools.combinations(range(len(b)), size):
            S = list(support)
            system = np.ones((size + 1, size + 1))
            system[:size, :size] = C * A[S] @ A[S].T
            system[size, size] = 0.0
            x = np.linalg.lstsq(system, np.append(b[S], 1.0), rcond=1e-12)[0][:size]
            if x.min() >= -1e-12 and abs(x.sum() - 1.0) <= 1e-9:
                beta = np.zeros(len(b))
                beta[S] = np.maximum(x, 0.0) / np.maximum(x, 0.0).sum()
                best = max(best, dual_value(beta, cuts, offsets, C))
    return best


def small_cuts(kind, rng):
    t, n = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    cuts = rng.integers(-2, 3, (t, n)).astype(float)
    if kind == "duplicates":
        cuts[t // 2 :] = cuts[0]
    elif kind == "dependent":
        cuts = rng.integers(-2, 3, (t, 1)) * rng.normal(size=(1, n))
    elif kind == "zero cuts":
        cuts[::2] = 0.0
    elif kind == "random":
        cuts = rng.normal(size=(t, n))
    return cuts, rng.integers(0, 5, t) / 4.0


@pytest.mark.parametrize("kind", ["integers", "duplicates", "dependent", "zero cuts", "random"])
@pytest.mark.parametrize("C", [1e-3, 0.3, 1.0, 10.0, 1e3])
def test_all_supports(kind, C):
    for seed in range(8):
        cuts, offsets = small_cuts(kind, np.random.default_rng(seed))
        bundle = make_bundle(cuts, offsets)
        solution = bundle.solve(C)
        beta = shares(bundle)
        assert beta.min() >= 0.0
        assert beta.sum() == pytest.approx(1.0, abs=1e-14)
        np.testing.assert_allclose(solution.w, -C * beta[1:] @ cuts, rtol=1e-13, atol=1e-13 * C)
        assert solution.squared_norm == pytest.approx(solution.w @ solution.w, rel=1e-13)
        assert solution.dual == pytest.approx(brute_force(cuts, offsets, C), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("C", [0.5, 5.0])
def test_another_solver(C):
    """The reduced primal, ½|w|² + C·ξ over w and ξ, by sequential quadratic programming."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        cuts, offsets = rng.normal(size=(6, 3)), rng.random(6)
        found = minimize(
            lambda z: 0.5 * z[:3] @ z[:3] + C * z[3],
            np.append(np.zeros(3), 1.0),
            jac=lambda z: np.append(z[:3], C),
            bounds=[(None, None)] * 3 + [(0.0, None)],
            constraints={
                "type": "ineq",
                "fun": lambda z, A=cuts, b=offsets: z[3] - A @ z[:3] - b,
                "jac": lambda z, A=cuts: np.hstack([-A, np.ones((6, 1))]),
            },
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        solution = make_bundle(cuts, offsets).solve(C)
        assert solution.dual == pytest.approx(found.fun, rel=1e-7)
        np.testing.assert_allclose(solution.w, found.x[:3], atol=1e-5)


@pytest.mark.parametrize("length", [1e-20, 1e-16, 1e-12, 1e-8, 1e-4, 1.0, 1e4, 1e8])
def test_one_cut_in_closed_form(length):
    """min ½|w|² + C·max(0, <a, w> + b): w = −a·min(C, b/|a|²)."""
    a, b = length * np.array([0.6, 0.8]), 2.0
    for C in 10.0 ** np.arange(-12.0, 13.0):
        solution = make_bundle(a[None], np.array([b])).solve(C)
        share = min(C, b / length**2)
        np.testing.assert_allclose(solution.w, -a * share, rtol=1e-9)
        expected = share * b - 0.5 * share**2 * length**2
        assert solution.dual == pytest.approx(expected, rel=1e-9)


def test_no_cut_at_all():
    solution = make_bundle(np.empty((0, 3)), np.empty(0)).solve(1e6)
    assert solution.dual == 0.0
    np.testing.assert_array_equal(solution.w, np.zeros(3))


def test_vectors_without_entries():
    solution = make_bundle(np.empty((3, 0)), np.array([0.2, 0.7, 0.1])).solve(10.0)
    assert solution.dual == pytest.approx(7.0, rel=1e-14)


# -- warm starts ----------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
def test_warm_starts_give_the_same_answer(C):
    rng = np.random.default_rng(1)
    cuts, offsets = rng.normal(size=(60, 8)), rng.random(60)
    warm = make_bundle(cuts[:0], offsets[:0])
    previous = 0.0
    for t in range(60):
        warm.add(cuts[t], offsets[t])
        solution = warm.solve(C)
        cold = make_bundle(cuts[: t + 1], offsets[: t + 1]).solve(C)
        assert solution.dual == pytest.approx(cold.dual, rel=1e-10)
        np.testing.assert_allclose(solution.w, cold.w, rtol=1e-6, atol=1e-8)
        assert solution.dual >= previous * (1.0 - 1e-12)
        previous = solution.dual


def test_a_solved_bundle_stays_solved():
    rng = np.random.default_rng(2)
    bundle = make_bundle(rng.normal(size=(40, 5)), rng.random(40))
    first = bundle.solve(10.0)
    for _ in range(3):
        again = bundle.solve(10.0)
        assert again.dual == pytest.approx(first.dual, rel=1e-14)
        np.testing.assert_allclose(again.w, first.w, rtol=1e-10)


def test_other_values_of_c_from_the_same_bundle():
    rng = np.random.default_rng(3)
    cuts, offsets = rng.normal(size=(30, 5)), rng.random(30)
    bundle = make_bundle(cuts, offsets)
    for C in [1.0, 1e4, 1e-4, 1e2, 1e8, 1.0]:
        cold = make_bundle(cuts, offsets).solve(C)
        assert bundle.solve(C).dual == pytest.approx(cold.dual, rel=1e-10)


def test_dropped_cuts_leave_the_solution(monkeypatch):
    monkeypatch.setattr(reduced, "IDLE_SOLUTIONS", 3)
    rng = np.random.default_rng(4)
    cuts, offsets = rng.normal(size=(50, 4)), rng.random(50)
    bundle = make_bundle(cuts[:40], offsets[:40])
    before = bundle.solve(5.0)
    for _ in range(5):
        bundle.solve(5.0)
        bundle.drop_idle()
    active = bundle.active()
    assert len(bundle) == len(active) < 10
    after = bundle.solve(5.0)
    assert after.dual == pytest.approx(before.dual, rel=1e-12)
    np.testing.assert_allclose(after.w, before.w, rtol=1e-9)
    for a, offset in active:  # what is kept is what was given
        (place,) = np.flatnonzero((cuts == a).all(axis=1))
        assert offsets[place] == offset
    for t in range(40, 50):  # their places are used again
        bundle.add(cuts[t], offsets[t])
        found = bundle.solve(5.0)
        kept = np.array([a for a, _ in active])
        cold = make_bundle(
            np.vstack([kept, cuts[40 : t + 1]]),
            np.append([b for _, b in active], offsets[40 : t + 1]),
        ).solve(5.0)
        assert found.dual == pytest.approx(cold.dual, rel=1e-10)


def test_recent_cuts_are_not_dropped():
    rng = np.random.default_rng(5)
    bundle = make_bundle(rng.normal(size=(40, 4)), rng.random(40))
    for _ in range(10):
        bundle.solve(1.0)
        bundle.drop_idle()
    assert len(bundle) == 40


# -- accuracy, in exact arithmetic ----------------------------------------------------


def family(name, rng, t=30, n=6):
    """Cuts and offsets with a difficulty."""
    a = rng.normal(size=n)
    noise = rng.normal(size=(t, n))
    offsets = rng.random(t)
    if name == "random":
        return noise, offsets
    if name == "signed offsets":
        return noise, rng.normal(size=t)
    if name == "duplicates":
        return np.repeat(noise[: t // 3], 3, axis=0), np.repeat(offsets[: t // 3], 3)
    if name == "dependent":
        return rng.integers(-2, 3, (t, 2)) @ rng.normal(size=(2, n)), offsets
    if name == "zero cuts":
        return noise * (rng.random((t, 1)) < 0.7), offsets
    if name == "almost zero cuts":  # contradictory labels leave nothing but rounding
        return 1e-17 * noise, offsets
    if name == "near-parallel":
        return a + 1e-6 * noise, 0.5 + 1e-6 * offsets
    if name == "opposed near-parallel":
        sign = np.where(np.arange(t) % 2, 1.0, -1.0)[:, None]
        return sign * a + 1e-6 * noise, 0.5 + 1e-6 * offsets
    if name == "tiny cuts":  # as smooth risks give near the optimum
        return noise * np.where(np.arange(t) < 2, 1.0, 1e-8)[:, None], offsets
    if name == "one feature times 1e4":
        return noise * np.append(1e4, np.ones(n - 1)), offsets
    if name == "one feature times 1e8":
        return noise * np.append(1e8, np.ones(n - 1)), offsets
    raise KeyError(name)


FAMILIES = [
    "random",
    "signed offsets",
    "duplicates",
    "dependent",
    "zero cuts",
    "almost zero cuts",
    "near-parallel",
    "opposed near-parallel",
    "tiny cuts",
    "one feature times 1e4",
    "one feature times 1e8",
]


def assert_exact(bundle, solution, cuts, offsets, C, exact_reduced):
    beta = shares(bundle)
    assert beta.min() >= 0.0
    assert beta.sum() == pytest.approx(1.0, abs=1e-13)
    optimum, value = exact_reduced(cuts, offsets, C, beta)
    scale = max(abs(float(optimum)), C * np.abs(offsets).max() * 1e-12)
    # Even the best β is rounded, which moves w by that much and the value by its square.
    unavoidable = 0.5 * (1e-15 * C * np.sqrt((cuts**2).sum(axis=1).max())) ** 2
    assert float(optimum - value) <= 1e-9 * scale + unavoidable  # as good as the optimum
    assert solution.dual - float(optimum) <= 1e-12 * scale  # and never above it


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("C", [1e-12, 1e-6, 1.0, 1e4, 1e8, 1e12])
def test_exact_optimum(name, C, exact_reduced):
    cuts, offsets = family(name, np.random.default_rng(0))
    bundle = make_bundle(cuts, offsets)
    assert_exact(bundle, bundle.solve(C), cuts, offsets, C, exact_reduced)


@pytest.mark.parametrize("name", ["near-parallel", "opposed near-parallel", "duplicates"])
@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
def test_hundreds_of_cuts_with_warm_starts(name, C, exact_reduced):
    cuts, offsets = family(name, np.random.default_rng(1), t=201, n=12)
    bundle = make_bundle(cuts[:0], offsets[:0])
    for t in range(201):
        bundle.add(cuts[t], offsets[t])
        solution = bundle.solve(C)
        if t in (20, 200):
            assert_exact(bundle, solution, cuts[: t + 1], offsets[: t + 1], C, exact_reduced)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("C", [1.0, 1e6, 1e12])
def test_never_worse_than_any_single_cut(name, C):
    """β may put all its weight on one cut, so the optimum is at least that good."""
    for seed in range(5):
        cuts, offsets = family(name, np.random.default_rng(seed), t=8)
        singles = C * offsets - 0.5 * C * C * (cuts**2).sum(axis=1)
        best = max(0.0, singles.max())
        bundle = make_bundle(cuts[:0], offsets[:0])
        for a, offset in zip(cuts, offsets, strict=True):
            bundle.add(a, offset)
            solution = bundle.solve(C)
            assert solution.dual >= -1e-9 * C
        assert solution.dual >= best * (1.0 - 1e-9) - 1e-9 * C * 1e-12
