"""The linear oracle without a free bias: cuts, lines and blends against numpy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.objective import Line

VARIANTS = {
    "dense": {},
    "sparse with weights": {"weighted": True},
    "dense with constant": {"constant": -2.5},
    "sparse with constant and weights": {"constant": 1.0, "weighted": True},
}


@pytest.fixture(params=VARIANTS)
def variant(request):
    return request.param


@pytest.fixture
def problem(variant, case, make_problem):
    return make_problem(case, seed=1, **VARIANTS[variant])


@pytest.fixture
def oracle(variant, problem):
    return problem.oracle(block_numbers=40, sparse="sparse" in variant)


def at(oracle, w):
    point = oracle.new_point()
    oracle.evaluate(w, point)
    return point


def height(cut, w):
    return cut.a @ w.reshape(-1) + cut.offset


def test_scores_and_risk(problem, oracle):
    rng = np.random.default_rng(0)
    for scale in (0.0, 1.0, 100.0):
        w = problem.random_w(rng, scale)
        kept = w.copy()
        point = at(oracle, w)
        np.testing.assert_allclose(point.scores, problem.scores(w), rtol=1e-12, atol=1e-12)
        assert point.risk == pytest.approx(problem.risk(w), rel=1e-12)
        assert point.bias == 0.0
        assert oracle.dimension == w.size
        np.testing.assert_array_equal(w, kept)
        flat = at(oracle, w.reshape(-1))
        assert flat.risk == point.risk


def test_norms_bound_the_rounding_errors_of_scores(make_problem, all_cases, variant):
    """Two proofs of one point, one of them without a product, are above exact arithmetic."""
    problem = make_problem(all_cases["hinge"], seed=1, **VARIANTS[variant])
    oracle = problem.oracle(block_numbers=40, sparse="sparse" in variant)
    w = problem.random_w(np.random.default_rng(0), 100.0)
    norms = np.sqrt(oracle.matrix.squared_norms(SerialExecutor()) + oracle.constant**2)
    evaluated, other = at(oracle, w), oracle.new_point()
    without = oracle.prove(w, evaluated, np.inf, norms)
    product = oracle.prove(w, other, np.inf)
    exact = exact_risk(problem, w)
    for proof in (without, product):
        assert exact <= proof.risk <= float(exact) * (1.0 + 1e-12)
    assert without.squared_norm == product.squared_norm


def exact_risk(problem, w) -> Fraction:
    """The mean hinge loss in rational numbers."""
    w = [Fraction(v) for v in w.reshape(-1).tolist()]
    total = Fraction(0)
    for x, y, weight in zip(problem.X.tolist(), problem.labels, problem.weights, strict=True):
        row = [*map(Fraction, x), *([Fraction(problem.constant)] if problem.constant else [])]
        score = sum(a * b for a, b in zip(row, w, strict=True))
        total += Fraction(float(weight)) * max(Fraction(0), 1 - int(y) * score)
    return total / sum(Fraction(float(weight)) for weight in problem.weights)


def test_cut_touches_and_lies_below(problem, oracle):
    rng = np.random.default_rng(1)
    for scale in (0.0, 0.3, 3.0, 300.0):
        w = problem.random_w(rng, scale)
        cut = oracle.cut(at(oracle, w))
        size = 1.0 + abs(cut.offset) + np.abs(cut.a * w.reshape(-1)).sum()
        assert height(cut, w) == pytest.approx(problem.risk(w), abs=1e-12 * size)
        for other in (0.1, 1.0, 30.0):
            v = problem.random_w(rng, other)
            assert height(cut, v) <= problem.risk(v) + 1e-12 * (size + problem.risk(v))
            near = w + 1e-3 * v
            assert height(cut, near) <= problem.risk(near) + 1e-12 * (size + problem.risk(near))


def test_gradient_by_differences(problem, oracle):
    """Random points meet no kink, so that every risk has a gradient there."""
    w = problem.random_w(np.random.default_rng(2))
    cut = oracle.cut(at(oracle, w))
    flat, h = w.reshape(-1), 1e-6
    for j in range(flat.size):
        step = np.zeros(flat.size)
        step[j] = h
        up, down = ((flat + sign * step).reshape(w.shape) for sign in (1.0, -1.0))
        slope = (problem.risk(up) - problem.risk(down)) / (2.0 * h)
        assert cut.a[j] == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_any_dual_point_gives_a_cut(problem, oracle):
    rng = np.random.default_rng(3)
    targets = oracle.targets
    for _ in range(5):
        cut = oracle.dual_cut(problem.case.dual_point(rng, targets))
        for scale in (0.0, 0.2, 1.0, 10.0):
            v = problem.random_w(rng, scale)
            assert height(cut, v) <= problem.risk(v) + 1e-12 * (1.0 + problem.risk(v))


def test_dual_point_of_the_hinge_in_closed_form(make_problem, case):
    """a = −(1/m) Σ π_i y_i x_i and offset = (1/m) Σ π_i."""
    if case.name != "hinge":
        pytest.skip("the hinge's formula")
    problem = make_problem(case, seed=4)
    pi = np.random.default_rng(0).random(60)
    cut = problem.oracle().dual_cut(-problem.labels * pi)
    np.testing.assert_allclose(cut.a, -(pi * problem.labels) @ problem.X / 60, rtol=1e-12)
    assert cut.offset == pytest.approx(pi.mean(), rel=1e-13)


@pytest.mark.parametrize("k", [0.0, 0.1, 1.0, 2.5])
def test_blend_is_the_point_between(problem, oracle, k):
    rng = np.random.default_rng(4)
    one, two = problem.random_w(rng), problem.random_w(rng, 5.0)
    start, end, into = at(oracle, one), at(oracle, two), oracle.new_point()
    oracle.blend(start, end, k, into)
    expected = at(oracle, one + k * (two - one))
    np.testing.assert_allclose(into.w, expected.w, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(into.scores, expected.scores, rtol=1e-12, atol=1e-12)
    assert into.risk == pytest.approx(expected.risk, rel=1e-11)
    cut, between = oracle.cut(into), oracle.cut(start, end, k)
    np.testing.assert_allclose(between.a, cut.a, rtol=1e-10, atol=1e-12)
    assert between.offset == pytest.approx(cut.offset, rel=1e-10)
    np.testing.assert_array_equal(start.w, one)
    oracle.blend(start, end, k, start)  # in place
    np.testing.assert_array_equal(start.scores, into.scores)
    assert start.risk == into.risk
    np.testing.assert_array_equal(end.w, two)


# -- lines ----------------------------------------------------------------------------


def line_objective(problem, start, end, curvature, slope):
    a, b = problem.scores(start), problem.scores(end)

    def value(k: float) -> float:
        risk = problem.case.risk(a + k * (b - a), problem.labels, problem.weights)
        return 0.5 * curvature * k * k + slope * k + risk

    return value


def lowest_on_line(value, low, high):
    """The minimum of a convex function by ternary search."""
    for _ in range(100):
        one, two = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, two) if value(one) <= value(two) else (one, high)
    return min(value(low), value(high), value(0.0))


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_descent_ends_at_the_minimum_of_the_line(problem, oracle, C):
    rng = np.random.default_rng(5)
    for scale in (0.1, 1.0, 50.0):
        one, two = problem.random_w(rng, 0.3), problem.random_w(rng, scale)
        change = two - one
        curvature, slope = np.sum(change * change) / C, np.sum(one * change) / C
        value = line_objective(problem, one, two, curvature, slope)
        tolerance = 1e-9 * value(0.0)
        start, end = at(oracle, one), at(oracle, two)
        k = oracle.descend(Line(start, end, curvature, slope, tolerance))
        assert k >= 0.0
        lowest = lowest_on_line(value, 0.0, max(100.0, 2.0 * k))
        assert value(k) <= lowest + tolerance + 1e-12 * (1.0 + value(0.0))
        np.testing.assert_allclose(start.w, one + k * change, rtol=1e-12, atol=1e-13)
        assert start.risk == pytest.approx(problem.risk(one + k * change), rel=1e-11)
        np.testing.assert_array_equal(end.w, two)


def test_exact_minimum_of_the_hinge(case, make_problem):
    """Every kink and every parabola between two kinks: none is lower."""
    if case.name != "hinge":
        pytest.skip("the hinge is piecewise quadratic along a line")
    problem = make_problem(case, seed=6, weighted=True)
    oracle = problem.oracle(block_numbers=40)
    rng = np.random.default_rng(6)
    for trial in range(30):
        one, two = problem.random_w(rng), problem.random_w(rng)
        if trial % 3 == 0:  # many ties
            one, two = np.round(one), np.round(two)
        curvature, slope = (0.0, -0.05) if trial % 2 else (0.3, -0.2)
        a, b = problem.scores(one), problem.scores(two)
        value = line_objective(problem, one, two, curvature, slope)
        y = problem.labels
        with np.errstate(divide="ignore", invalid="ignore"):
            kinks = (1.0 - y * a) / (y * (b - a))
        kinks = np.sort(np.append(kinks[np.isfinite(kinks) & (kinks > 0.0)], 0.0))
        candidates = list(kinks)
        for left, right in zip(kinks, [*kinks[1:], kinks[-1] + 10.0], strict=True):
            middle, h = 0.5 * (left + right), 0.25 * (right - left)
            if h > 1e-9 and curvature > 0.0:
                derivative = (value(middle + h) - value(middle - h)) / (2.0 * h)
                candidates.append(np.clip(middle - derivative / curvature, left, right))
        k = oracle.descend(Line(at(oracle, one), at(oracle, two), curvature, slope, 0.0))
        assert value(k) <= min(value(c) for c in candidates) + 1e-12


def test_a_line_that_rises_is_not_followed(problem, oracle):
    w = problem.random_w(np.random.default_rng(7))
    point, same = at(oracle, w), at(oracle, w.copy())
    assert oracle.descend(Line(point, same, 1.0, 1.0, 0.0)) == 0.0
    other = at(oracle, problem.random_w(np.random.default_rng(8)))
    assert oracle.descend(Line(point, other, 1.0, 1e6, 0.0)) == 0.0
    np.testing.assert_array_equal(point.w, w)


# -- the same for any executor --------------------------------------------------------


def test_the_same_bits_for_any_number_of_threads(case, make_problem):
    problem = make_problem(case, rows=400, constant=1.0, weighted=True)
    rng = np.random.default_rng(9)
    one, two = problem.random_w(rng), problem.random_w(rng)
    found = []
    for executor in (SerialExecutor(), ThreadExecutor(2), ThreadExecutor(8)):
        with executor:
            oracle = problem.oracle(executor, block_numbers=50)
            assert len(oracle.matrix.blocks) > 20
            start, end = at(oracle, one), at(oracle, two)
            first = start.risk
            k = oracle.descend(Line(start, end, 0.1, -0.3, 1e-6))
            cut = oracle.cut(start, end, 0.3)
            found.append((first, end.risk, start.risk, k, cut.offset, *cut.a, *end.scores.flat))
    assert found[0] == found[1] == found[2]


def test_blocks_do_not_change_the_answer(problem):
    rng = np.random.default_rng(10)
    w = problem.random_w(rng)
    cuts = []
    for block_numbers in (None, 1, 30, 10_000):
        oracle = problem.oracle(block_numbers=block_numbers)
        cuts.append(oracle.cut(at(oracle, w)))
    for cut in cuts[1:]:
        np.testing.assert_allclose(cut.a, cuts[0].a, rtol=1e-11, atol=1e-13)
        assert cut.offset == pytest.approx(cuts[0].offset, rel=1e-12)


def test_no_features_at_all(case, make_problem):
    """Without features and bias the risk is that of zero scores."""
    problem = make_problem(case, features=0)
    oracle = problem.oracle()
    w = problem.random_w(np.random.default_rng(0))
    point = at(oracle, w)
    assert point.risk == pytest.approx(problem.risk(w), rel=1e-13)
    assert oracle.cut(point).offset == pytest.approx(point.risk, rel=1e-12)


def test_a_risk_without_a_bias_says_so(make_problem, case):
    problem = make_problem(case, free_bias=True)
    if case.classes:
        with pytest.raises(ValueError, match=type(case.make()).__name__):
            problem.oracle()
    else:
        problem.oracle()
