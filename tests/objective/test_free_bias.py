"""The unregularised bias: R(w) = min_b, against brute force over b."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.objective import Line


def at(oracle, w):
    point = oracle.new_point()
    oracle.evaluate(w, point)
    return point


def lowest_over_bias(problem, w):
    """min_b: at a kink for piecewise linear losses, by a search elsewhere."""
    scores = problem.scores(w)
    kinks = problem.labels - scores
    if problem.case.name == "epsilon_insensitive":
        kinks = np.concatenate([kinks - 0.1, kinks + 0.1])
    if problem.case.name == "hinge":
        return min(problem.risk(w, b) for b in kinks)
    bounds = kinks.min() - 50.0, kinks.max() + 50.0
    found = minimize_scalar(
        lambda b: problem.risk(w, b), bounds=bounds, options={"xatol": 1e-9 * np.ptp(bounds)}
    )
    return min(found.fun, min(problem.risk(w, b) for b in kinks))


def unbalanced(problem):
    labels = np.full(len(problem.labels), -1.0)
    labels[0] = 1.0
    return replace(problem, labels=labels)


def tied(problem):
    """Integer data: many rows meet at the same kinks."""
    return replace(problem, X=np.round(problem.X))


def equal_rows(problem):
    return replace(problem, X=np.zeros_like(problem.X))


def unchanged(problem):
    return problem


VARIANTS = {
    "plain": ({}, unchanged),
    "tied with weights": ({"weighted": True}, tied),
    "unbalanced with constant": ({"constant": 1.0}, unbalanced),
    "three rows": ({"rows": 3}, unchanged),
    "three tied rows": ({"rows": 3}, tied),
    "equal rows with weights": ({"weighted": True}, equal_rows),
}


@pytest.fixture(params=VARIANTS)
def problem(request, binary_case, make_problem):
    settings, change = VARIANTS[request.param]
    return change(make_problem(binary_case, seed=2, free_bias=True, **settings))


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0, 20.0])
def test_risk_is_the_minimum_over_the_bias(problem, scale):
    rng = np.random.default_rng(0)
    for _ in range(3):
        w = np.round(4.0 * problem.random_w(rng, scale)) / 4.0
        point = at(problem.oracle(block_numbers=40), w)
        assert point.risk == pytest.approx(problem.risk(w, point.bias), rel=1e-12)
        lowest = lowest_over_bias(problem, w)
        assert point.risk == pytest.approx(lowest, rel=1e-9, abs=1e-12)
        assert np.isfinite(point.bias)


@pytest.mark.parametrize("shift", [30.0, 1e3, 1e4, 1e6])
def test_a_bias_far_away_is_found(binary_case, make_problem, shift):
    """Data far from the origin, as temperatures in kelvin or years are."""
    problem = make_problem(binary_case, seed=3, free_bias=True)
    far = replace(problem, X=problem.X + shift)
    w = np.ones(problem.X.shape[1])
    # the scores move by 5·shift and the best bias by as much the other way
    expected = at(problem.oracle(), w)
    found = at(far.oracle(), w)
    assert found.risk == pytest.approx(expected.risk, rel=1e-6)
    # The hinge may have many best biases: this one is as good on the other data.
    there = problem.risk(w, found.bias + 5.0 * shift)
    assert there == pytest.approx(expected.risk, rel=1e-6)


@pytest.mark.parametrize("size", [1e8, 1e12, 1e17])
def test_huge_scores(binary_case, make_problem, size):
    problem = make_problem(binary_case, seed=4, free_bias=True)
    w = size * problem.random_w(np.random.default_rng(0))
    oracle = problem.oracle()
    point = at(oracle, w)
    oracle.evaluate(w, point)  # once more, from the bias found
    assert np.isfinite([point.risk, point.bias]).all()
    assert point.risk <= 1.01 * problem.risk(w, 0.0)
    assert point.risk == pytest.approx(lowest_over_bias(problem, w), rel=1e-3)


def test_cut_lies_below_the_minimum_over_the_bias(problem):
    rng = np.random.default_rng(1)
    oracle = problem.oracle(block_numbers=40)
    for scale in (0.0, 0.5, 3.0):
        w = np.round(4.0 * problem.random_w(rng, scale)) / 4.0
        point = at(oracle, w)
        cut = oracle.cut(point)
        assert cut.a @ w + cut.offset == pytest.approx(point.risk, rel=1e-9, abs=1e-12)
        for other in (0.0, 0.1, 1.0, 20.0):
            v = problem.random_w(rng, other)
            lowest = lowest_over_bias(problem, v)
            assert cut.a @ v + cut.offset <= lowest * (1.0 + 1e-9) + 1e-12


def test_coefficients_sum_to_zero(problem):
    """A column of ones in the data sees the sum of the coefficients."""
    ones = np.ones((len(problem.X), 1))
    watched = replace(problem, X=np.hstack([ones, problem.X]))
    oracle = watched.oracle(block_numbers=40)
    rng = np.random.default_rng(2)
    for scale in (0.0, 0.5, 3.0, 100.0):
        w = np.round(4.0 * watched.random_w(rng, scale)) / 4.0
        cut = oracle.cut(at(oracle, w))
        assert abs(cut.a[0]) <= 1e-14 * (1.0 + abs(cut.offset))
    for _ in range(5):
        coef = watched.case.dual_point(rng, oracle.targets)
        assert abs(oracle.dual_cut(coef).a[0]) <= 1e-14 * np.abs(coef).max()


def test_any_dual_point_gives_a_cut(problem):
    rng = np.random.default_rng(3)
    oracle = problem.oracle()
    for _ in range(4):
        coef = problem.case.dual_point(rng, oracle.targets)
        kept = coef.copy()
        cut = oracle.dual_cut(coef)
        np.testing.assert_array_equal(coef, kept)
        for scale in (0.0, 0.3, 5.0):
            v = problem.random_w(rng, scale)
            assert cut.a @ v + cut.offset <= lowest_over_bias(problem, v) * (1.0 + 1e-9) + 1e-12


@pytest.mark.parametrize("k", [0.1, 1.0, 2.5])
def test_blend_minimises_over_the_bias_again(problem, k):
    rng = np.random.default_rng(4)
    oracle = problem.oracle(block_numbers=40)
    one, two = problem.random_w(rng), problem.random_w(rng, 4.0)
    into = oracle.new_point()
    oracle.blend(at(oracle, one), at(oracle, two), k, into)
    assert into.risk == pytest.approx(
        lowest_over_bias(problem, one + k * (two - one)), rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2, 1e4])
def test_line_descends_with_the_bias(problem, C):
    """The step need not be optimal in w and b together, but never leads upwards,
    and a descent that is there is found."""
    rng = np.random.default_rng(5)
    oracle = problem.oracle(block_numbers=40)
    for _ in range(3):
        one, two = problem.random_w(rng, 0.3), problem.random_w(rng, 1.0)
        change = two - one
        curvature, slope = change @ change / C, one @ change / C

        def value(k, one=one, change=change, curvature=curvature, slope=slope):
            risk = lowest_over_bias(problem, one + k * change)
            return 0.5 * curvature * k * k + slope * k + risk

        grid = [value(k) for k in np.concatenate([[0.0], np.geomspace(1e-2, 10.0, 16)])]
        drop = grid[0] - min(grid)
        start, end = at(oracle, one), at(oracle, two)
        k = oracle.descend(Line(start, end, curvature, slope, 1e-3 * drop))
        np.testing.assert_allclose(start.w, one + k * change, rtol=1e-12, atol=1e-13)
        lowest, room = lowest_over_bias(problem, start.w), 1e-4 * drop  # a tenth of the tolerance
        assert lowest * (1.0 - 1e-9) - 1e-12 <= start.risk <= lowest * (1.0 + 1e-9) + room + 1e-12
        assert value(k) <= grid[0] * (1.0 + 1e-9) + 1e-12
        if drop > 1e-6:
            assert grid[0] - value(k) > 0.0


def test_the_same_bits_for_any_number_of_threads(binary_case, make_problem):
    problem = make_problem(binary_case, rows=400, free_bias=True, weighted=True)
    rng = np.random.default_rng(6)
    one, two = problem.random_w(rng), problem.random_w(rng)
    found = []
    for executor in (SerialExecutor(), ThreadExecutor(2), ThreadExecutor(8)):
        with executor:
            oracle = problem.oracle(executor, block_numbers=50)
            start, end = at(oracle, one), at(oracle, two)
            first = start.risk, start.bias
            k = oracle.descend(Line(start, end, 0.1, -0.3, 1e-6))
            cut = oracle.cut(start, end, 0.3)
            found.append((*first, start.risk, start.bias, end.risk, k, cut.offset, *cut.a))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_bias_of_no_weights_at_all(loss, all_cases, make_problem):
    """At w = 0 the rows of a class are alike, so that two sums take the place of all rows."""
    problem = make_problem(all_cases[loss], seed=4, weighted=True, free_bias=True)
    oracle = problem.oracle()
    w = np.zeros(oracle.dimension)
    point = at(oracle, w)
    assert point.risk == pytest.approx(lowest_over_bias(problem, w), rel=1e-9)
    assert oracle.cut(point).offset == pytest.approx(point.risk, rel=1e-9)
