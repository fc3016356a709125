"""What every risk promises, for random, tied and extreme scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from cutplane.risks import Targets

SEEDS = st.integers(0, 2**32 - 1)
# Multiples of 1/2 meet kinks and ties exactly.
KINDS = st.sampled_from(["normal", "halves", "wide", "huge"])


def draw_scores(case, rng, rows, kind):
    scores = case.scores(rng, rows)
    if kind == "halves":
        return np.round(2.0 * scores) / 2.0
    if kind == "wide":
        return scores * 10.0 ** rng.uniform(-3, 3, scores.shape)
    if kind == "huge":
        return np.sign(scores) * rng.choice([0.0, 1.0, 1e3, 1e8], scores.shape)
    return scores


def draw(case, seed, kind="normal", rows=12):
    """Targets with weights 0..3, and scores."""
    rng = np.random.default_rng(seed)
    targets = Targets.make(case.labels(rng, rows), rng.integers(0, 4, rows).astype(float))
    return rng, targets, draw_scores(case, rng, rows, kind)


def coefficients(case, scores, targets):
    out = np.full(scores.shape, np.nan)
    case.make().coefficients(scores, out, (0.0, 0.0, 0.0), targets)
    return out


def line_slope(risk, start, end, k, targets):
    """The derivative at one k between scores without a bias."""
    return risk.line_slopes(start, end, (0.0, 0.0), np.array([k]), targets)[0]


def rounding(case, targets, *terms):
    """A bound on the rounding of sums of weighted losses and of the given terms."""
    losses = (case.sum(s, 0.0, targets) for term in terms for s in (term, -term))
    largest = sum(np.abs(term).sum() for term in terms) + sum(losses) + 1.0
    return 1e-13 * (1.0 + targets.weights.sum()) * largest


@given(seed=SEEDS, kind=KINDS)
def test_value(case, seed, kind):
    _, targets, scores = draw(case, seed, kind)
    found = case.make().value(scores, 0.0, targets)
    assert found == pytest.approx(case.sum(scores, 0.0, targets), rel=1e-12, abs=1e-300)


@given(seed=SEEDS, kind=KINDS, other=KINDS)
def test_coefficients_are_subgradients(case, seed, kind, other):
    rng, targets, here = draw(case, seed, kind)
    there = draw_scores(case, rng, len(here), other)
    coef = coefficients(case, here, targets)
    change = np.sum(coef * (there - here))
    low = case.sum(here, 0.0, targets) + change
    assert case.sum(there, 0.0, targets) >= low - rounding(case, targets, here, there)


@given(seed=SEEDS, kind=KINDS, other=KINDS)
def test_the_cut_touches_here_and_lies_below_elsewhere(case, seed, kind, other):
    rng, targets, here = draw(case, seed, kind)
    coef = coefficients(case, here, targets)
    offset = case.make().offset(coef, targets)
    touching = np.sum(coef * here) + offset
    slack = rounding(case, targets, here)
    assert touching == pytest.approx(case.sum(here, 0.0, targets), abs=slack)
    there = draw_scores(case, rng, len(here), other)
    slack = rounding(case, targets, here, there)
    assert np.sum(coef * there) + offset <= case.sum(there, 0.0, targets) + slack


@given(seed=SEEDS, kind=KINDS)
def test_any_dual_point_gives_a_cut(case, seed, kind):
    rng, targets, scores = draw(case, seed, kind)
    coef = case.dual_point(rng, targets)
    low = np.sum(coef * scores) + case.make().offset(coef, targets)
    slack = rounding(case, targets, scores) * (1.0 + np.abs(coef).max())
    assert low <= case.sum(scores, 0.0, targets) + slack


@given(seed=SEEDS, share=st.floats(0.0, 1.0))
def test_averages_of_coefficients_give_cuts(case, seed, share):
    """Blends of cuts, as a checkpoint or another machine may send them."""
    rng, targets, one = draw(case, seed)
    two, three = (
        draw_scores(case, rng, len(one), "wide"),
        draw_scores(case, rng, len(one), "halves"),
    )
    coef = share * coefficients(case, one, targets) + (1 - share) * coefficients(case, two, targets)
    low = np.sum(coef * three) + case.make().offset(coef, targets)
    slack = rounding(case, targets, one, two, three)
    assert low <= case.sum(three, 0.0, targets) + slack


@given(seed=SEEDS, label=st.sampled_from([-1.0, 1.0]), weight=st.floats(0.1, 9))
def test_the_offset_is_the_best_possible(binary_case, seed, label, weight):
    """min over s of weight·loss(s) − coef·s, by a search that knows no conjugate."""
    targets = Targets.make(np.array([label]), np.array([weight]))
    coef = 0.999 * binary_case.dual_point(np.random.default_rng(seed), targets)

    def rest(s: float) -> float:
        return binary_case.sum(np.array([s]), 0.0, targets) - coef[0] * s

    lowest = minimize_scalar(rest, bounds=(-40.0, 40.0), options={"xatol": 1e-10}).fun
    kinks = [label - 0.1, label, label + 0.1]
    lowest = min(lowest, *map(rest, kinks))
    found = binary_case.make().offset(coef, targets)
    assert found == pytest.approx(lowest, rel=1e-8, abs=1e-8 * weight)


# -- lines ----------------------------------------------------------------------------


@given(seed=SEEDS, kind=KINDS, k=st.one_of(st.floats(0.0, 3.0), st.sampled_from([0.0, 0.5, 1.0])))
def test_line_slopes_are_those_of_a_tangent_below(case, seed, kind, k):
    rng, targets, start = draw(case, seed, kind)
    end = draw_scores(case, rng, len(start), kind)
    slope = line_slope(case.make(), start, end, k, targets)
    slack = rounding(case, targets, start, end) * (1.0 + k) ** 2
    value = case.sum(start + k * (end - start), 0.0, targets)
    for other in (0.0, k - 1e-3, k + 1e-3, 2.0, 5.0):
        there = case.sum(start + other * (end - start), 0.0, targets)
        assert there >= value + slope * (other - k) - 30.0 * slack


@given(seed=SEEDS, kind=KINDS)
def test_several_slopes_at_once_are_those_of_one_each(case, seed, kind):
    rng, targets, start = draw(case, seed, kind)
    end = draw_scores(case, rng, len(start), kind)
    risk, steps = case.make(), np.array([0.0, 0.3, 1.0, 2.5])
    found = risk.line_slopes(start, end, (0.1, -0.2), steps, targets)
    for k, slope in zip(steps, found, strict=True):
        one = risk.line_slopes(start, end, (0.1, -0.2), np.array([k]), targets)
        assert one[0] == slope
    if case.classes is None:
        biases = np.array([-2.0, 0.0, 0.7])
        found = risk.bias_slopes(start, biases, targets)
        for bias, slope in zip(biases, found, strict=True):
            assert risk.bias_slopes(start, np.array([bias]), targets)[0] == slope


@given(seed=SEEDS, bias=st.floats(-3, 3))
def test_bias_slopes_by_differences(binary_case, seed, bias):
    _, targets, scores = draw(binary_case, seed)
    (slope,) = binary_case.make().bias_slopes(scores, np.array([bias]), targets)
    h = 1e-5

    def value(b):
        return binary_case.sum(scores, b, targets)

    left, right = (value(bias) - value(bias - h)) / h, (value(bias + h) - value(bias)) / h
    slack = 1e-3 * (1.0 + abs(slope))
    assert left - slack <= slope <= right + slack


@given(seed=SEEDS, part=st.floats(0.0, 1.0), low=st.floats(-3, 3), width=st.floats(0.0, 2.0))
def test_coefficients_between_two_biases_are_mixed(binary_case, seed, part, low, width):
    _, targets, scores = draw(binary_case, seed)
    risk, out = binary_case.make(), np.empty(len(scores))
    risk.coefficients(scores, out, (low, low + width, part), targets)
    ends = [coefficients(binary_case, scores + b, targets) for b in (low, low + width)]
    expected = (1.0 - part) * ends[0] + part * ends[1]
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@given(seed=SEEDS, k=st.floats(0.0, 2.0))
def test_line_derivative_by_differences(binary_case, seed, k):
    rng, targets, start = draw(binary_case, seed)
    end = draw_scores(binary_case, rng, len(start), "normal")
    risk = binary_case.make()
    h = 1e-5

    def value(k):
        return binary_case.sum(start + k * (end - start), 0.0, targets)

    slope = line_slope(risk, start, end, k, targets)
    left, right = (value(k) - value(k - h)) / h, (value(k + h) - value(k)) / h
    slack = 1e-3 * (1.0 + abs(slope))
    assert left - slack <= slope <= right + slack


@given(seed=SEEDS, k=st.floats(0.0, 2.0), a=st.floats(-3, 3), b=st.floats(-3, 3))
def test_biases_are_added_to_the_scores(binary_case, seed, k, a, b):
    rng, targets, start = draw(binary_case, seed)
    end = draw_scores(binary_case, rng, len(start), "normal")
    risk = binary_case.make()
    if binary_case.make().smooth:  # rounding may decide on which side of a kink a row is
        found = risk.line_slopes(start, end, (a, b), np.array([k]), targets)
        expected = line_slope(risk, start + a, end + b, k, targets)
        assert found[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    value = risk.value(start, a, targets)
    assert value == pytest.approx(binary_case.sum(start, a, targets), rel=1e-12)
    out = np.empty(len(start))
    risk.coefficients(start, out, (a, a, 0.0), targets)
    np.testing.assert_allclose(out, coefficients(binary_case, start + a, targets), atol=1e-12)


@given(seed=SEEDS, bias=st.floats(-3, 3))
def test_slopes_and_coefficients_see_the_same_side_of_a_kink(binary_case, seed, bias):
    """Or coefficients at the best bias would not sum to zero, and their plane be no cut."""
    rng, targets, _ = draw(binary_case, seed, rows=200)
    kinks = targets.labels + rng.choice([-0.1, 0.0, 0.1], 200) - bias
    scores = kinks + rng.integers(-2, 3, 200) * np.spacing(kinks)
    risk, out = binary_case.make(), np.empty(200)
    risk.coefficients(scores, out, (bias, bias, 0.0), targets)
    (slope,) = risk.bias_slopes(scores, np.array([bias]), targets)
    assert out.sum() == pytest.approx(slope, abs=1e-9)


# -- weights and blocks ---------------------------------------------------------------


@given(seed=SEEDS, kind=KINDS)
def test_weights_are_repetitions(case, seed, kind):
    rng, targets, scores = draw(case, seed, kind)
    times = targets.weights.astype(int)
    repeated = Targets.make(np.repeat(targets.labels, times))
    risk = case.make()
    assert repeated.total == targets.total
    many = np.repeat(scores, times, axis=0)
    end = draw_scores(case, rng, len(scores), kind)
    one = line_slope(risk, scores, end, 0.3, targets)
    all_rows = line_slope(risk, many, np.repeat(end, times, axis=0), 0.3, repeated)
    assert one == pytest.approx(all_rows, rel=1e-9, abs=1e-9 * (1.0 + np.abs(end - scores).sum()))
    value = risk.value(scores, 0.0, targets)
    assert value == pytest.approx(risk.value(many, 0.0, repeated), rel=1e-12)
    coef, coef_many = coefficients(case, scores, targets), coefficients(case, many, repeated)
    rows = np.repeat(np.arange(len(scores)), times)
    summed = np.zeros_like(coef)
    np.add.at(summed, rows, coef_many)
    np.testing.assert_allclose(coef, summed, rtol=1e-12)
    scale = 1e-12 * (1.0 + np.abs(coef).sum() + np.sum(np.square(coef)))
    assert risk.offset(coef, targets) == pytest.approx(risk.offset(coef_many, repeated), abs=scale)


@given(seed=SEEDS, kind=KINDS, place=st.integers(0, 12))
def test_blocks_add_up_to_the_whole(case, seed, kind, place):
    rng, targets, scores = draw(case, seed, kind)
    end = draw_scores(case, rng, len(scores), kind)
    risk = case.make()
    coef = coefficients(case, scores, targets)

    def measure(rows: slice) -> np.ndarray:
        part = Targets(targets.labels[rows], targets.weights[rows], targets.total)
        s, e = scores[rows], end[rows]
        np.testing.assert_array_equal(coefficients(case, scores[rows], part), coef[rows])
        return np.array(
            [
                risk.value(s, 0.0, part),
                risk.offset(coef[rows], part),
                *risk.line_slopes(s, e, (0.0, 0.0), np.array([0.0, 0.7]), part),
            ]
        )

    whole = measure(slice(None))
    split = measure(slice(0, place)) + measure(slice(place, None))
    np.testing.assert_allclose(split, whole, rtol=1e-9, atol=1e-13 * np.abs(whole).max())


# -- extremes -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e3, 1e8])
@pytest.mark.parametrize("k", [0.0, 0.1, 1.0, 3.0])
def test_extreme_scores_stay_finite(case, size, k):
    rng = np.random.default_rng(0)
    targets = Targets.make(case.labels(rng, 40))
    start, end = (np.sign(case.scores(rng, 40)) * size for _ in range(2))
    risk = case.make()
    assert np.isfinite(line_slope(risk, start, end, k, targets))
    blend = start + k * (end - start)
    value = risk.value(blend, 0.0, targets)
    assert value == pytest.approx(case.sum(blend, 0.0, targets), rel=1e-9)
    coef = coefficients(case, blend, targets)
    assert np.isfinite(coef).all()
    assert np.isfinite(risk.offset(coef, targets))


def test_inputs_are_not_written_to(case):
    _, targets, scores = draw(case, 0)
    copies = targets.labels.copy(), targets.weights.copy(), scores.copy()
    coef = coefficients(case, scores, targets)
    kept = coef.copy()
    case.make().offset(coef, targets)
    line_slope(case.make(), scores, 2 * scores, 0.5, targets)
    for array, copy in zip((targets.labels, targets.weights, scores), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(coef, kept)


def test_rows_of_weight_zero_count_for_nothing(case):
    rng, targets, scores = draw(case, 3)
    scores[targets.weights == 0.0] = 1e8 * case.scores(rng, 12)[targets.weights == 0.0]
    kept = targets.weights > 0.0
    coef = coefficients(case, scores, targets)
    assert not coef[~kept].any()
    fewer = Targets.make(targets.labels[kept], targets.weights[kept])
    assert case.make().offset(coef, targets) == pytest.approx(
        case.make().offset(coef[kept], fewer), rel=1e-13
    )


@given(seed=SEEDS)
def test_clipped_numbers_are_dual_points(binary_case, seed):
    """Any numbers at all become a valid cut once they are clipped."""
    rng, targets, scores = draw(binary_case, seed, "wide")
    risk = binary_case.make()
    u = risk.clip_dual(rng.normal(size=len(scores)) * 10.0 ** rng.uniform(-3, 3), targets)
    coef = risk.dual_coef(u, targets)
    low = coef @ scores + risk.offset(coef, targets)
    slack = rounding(binary_case, targets, scores) * (1.0 + np.abs(u).max())
    assert low <= binary_case.sum(scores, 0.0, targets) + slack
    inside = np.minimum(targets.weights, 0.5)
    np.testing.assert_array_equal(risk.clip_dual(inside, targets), inside)
