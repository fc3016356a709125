"""Lines and biases of the hinge from histograms, against brute force over all kinks."""

import numpy as np
import pytest

from cutplane.bundle import AdaptivePosition, BundleSolver, StopRule
from cutplane.exec import ThreadExecutor
from cutplane.loops import hinge as loops
from cutplane.oracles import bias_bins, row_surface
from cutplane.oracles.bias_bins import BiasBins
from cutplane.oracles.octaves import BINS, Octaves
from cutplane.result import Status


def random_rows(rng, rows, ties=False):
    scores = rng.normal(size=rows) * 2.0
    if ties:
        scores = np.round(2.0 * scores) / 2.0
    labels = np.where(rng.random(rows) < 0.4, 1.0, -1.0)
    return scores, labels, rng.uniform(0.1, 3.0, rows)


def losses(scores, labels, weights, bias=0.0):
    return float(np.sum(weights * np.maximum(0.0, 1.0 - labels * (scores + bias))))


# -- lines --------------------------------------------------------------------


@pytest.mark.parametrize("times", [1.0, 1e-2, 1e2])
@pytest.mark.parametrize("seed", range(4))
def test_the_bracket_has_the_minimum_and_its_point_is_as_good_as_said(seed, times):
    rng = np.random.default_rng(seed)
    start, labels, weights = random_rows(rng, 300)
    end = start + rng.normal(size=300) * rng.choice([0.1, 1.0, 10.0])
    step = 1e-9
    first = losses(start, labels, weights)
    rate = (losses(start + step * (end - start), labels, weights) - first) / step
    curvature, inclination = 0.5, -0.3 * abs(rate) - max(0.0, rate)

    def height(k):
        here = losses(start + k * (end - start), labels, weights)
        return here + k * (inclination + 0.5 * curvature * k)

    kinks = (1.0 - labels * start) / (labels * (end - start))
    octaves = Octaves.around(times * min(kinks[kinks > 0.0], key=height))
    bins = np.zeros(BINS + 2)
    slope = loops.line_profile(start, 0.0, end, 0.0, labels, weights, octaves.first, bins)
    assert slope == pytest.approx(rate, rel=1e-3)
    assert slope + inclination < 0.0
    bracket = octaves.bracket(bins, curvature, slope + inclination)
    places = np.concatenate([kinks[kinks > 0.0], np.linspace(bracket.low, bracket.high, 999)])
    heights = np.array([height(k) for k in places])
    # Between kinks it is a parabola; the grid inside of the bracket is fine enough for that.
    lowest = heights.min()
    best = places[int(np.argmin(heights))]
    assert bracket.low <= best <= bracket.high
    assert lowest - 1e-9 <= height(bracket.k) <= lowest + bracket.loss + 1e-9
    fall = octaves.fall(bins, curvature, slope + inclination, bracket.k)
    assert fall == pytest.approx(height(0.0) - height(bracket.k), rel=0.1)


def test_minima_outside_of_all_bins_are_said_to_be_there():
    octaves, bins = Octaves.around(1.0), np.zeros(BINS + 2)
    beyond = octaves.bracket(bins, 1e-6, -1.0)  # zero at 1e6
    assert beyond.low == octaves.edges()[-1] < beyond.high and not beyond.loss < np.inf
    below = octaves.bracket(bins, 1e6, -1.0)
    assert (below.low, below.high) == (0.0, octaves.edges()[0]) and not below.loss < np.inf


@pytest.mark.parametrize("guess", [5e-324, 1e-300, 1.0, 1e308])
def test_bins_exist_around_every_number(guess):
    edges = Octaves.around(guess).edges()
    assert len(edges) == BINS + 1 and np.all(np.diff(edges) > 0.0) and np.isfinite(edges[-1])
    assert edges[0] <= guess <= edges[-1]


# -- the bias -----------------------------------------------------------------


def bias_profile(scores, labels, weights, bins):
    profile = np.zeros((bias_bins.BINS + 2, 4))
    loops.bias_profile(scores, labels, weights, bins.low, bins.scale, profile)
    return profile


@pytest.mark.parametrize("reach", [0.5, 3.0, 40.0])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_band_has_the_best_bias(seed, ties, reach):
    rng = np.random.default_rng(seed)
    scores, labels, weights = random_rows(rng, 400, ties)
    kinks = labels - scores
    risks = np.array([losses(scores, labels, weights, b) for b in kinks])
    best, lowest = kinks[int(np.argmin(risks))], float(risks.min())
    bins = BiasBins(best - 0.7 * reach, best + 1.3 * reach)
    band = bins.band(bias_profile(scores, labels, weights, bins))
    assert band.risk == pytest.approx(losses(scores, labels, weights, band.bias), rel=1e-12)
    assert lowest - 1e-9 <= band.risk <= lowest + band.loss + 1e-9
    # The plane: balanced, below min_b R everywhere, and as high as said where it was made.
    coef = np.empty(400)
    place = (bins.low, bins.scale, bias_bins.BINS, band.number)
    loops.band_coefficients(scores, labels, weights, *place, band.positive, band.negative, coef)
    assert abs(coef.sum()) <= 1e-11
    assert np.all(-labels * coef >= 0.0) and np.all(np.abs(coef) <= weights * (1.0 + 1e-15))
    offset = np.abs(coef).sum()
    width = 2.0 * reach / bias_bins.BINS
    inside = np.abs(kinks - band.bias) <= 1.001 * width
    made = coef @ scores + offset
    assert lowest - width * weights[inside].sum() - 1e-9 <= made <= lowest + 1e-9
    for _ in range(5):
        other = scores + rng.normal(size=400)
        least = min(losses(other, labels, weights, b) for b in labels - other)
        assert coef @ other + offset <= least + 1e-9


def test_a_bias_outside_of_all_bins_is_not_found():
    scores, labels, weights = random_rows(np.random.default_rng(0), 100)
    for low in (-80.0, 60.0):
        bins = BiasBins(low, low + 1.0)
        assert bins.band(bias_profile(scores, labels, weights, bins)) is None
    wide = BiasBins(60.0, 61.0).wider(200.0)
    band = wide.band(bias_profile(scores, labels, weights, wide))
    finer = band.bins.inside(band.number)
    inner = finer.band(bias_profile(scores, labels, weights, finer))
    assert inner.risk <= band.risk + 1e-9 and inner.loss <= band.loss
    assert finer.low < inner.bias < finer.high


def test_one_class_has_no_best_bias():
    scores, _, weights = random_rows(np.random.default_rng(0), 50)
    bins = BiasBins(-9.0, 9.0)
    profile = bias_profile(scores, np.full(50, -1.0), weights, bins)
    assert bins.band(profile) is None


# -- whole runs -----------------------------------------------------------------------


@pytest.mark.parametrize("free_bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.4, 40.0, 4000.0, 4e5])
def test_runs_by_histograms_reach_the_optimum(
    monkeypatch, make_problem, all_cases, free_bias, weighted, C
):
    """Lines and biases on the way are rough, bounds and the last point are not."""
    problem = make_problem(
        all_cases["hinge"], seed=3, rows=500, weighted=weighted, free_bias=free_bias
    )

    def run(rows, executor=None):
        monkeypatch.setattr(row_surface, "EXACT_ROWS", rows)
        oracle = problem.oracle(executor=executor)
        return BundleSolver(oracle, C, StopRule(relative=1e-6), AdaptivePosition()).run()

    exact, rough = run(10**9), run(0)
    with ThreadExecutor(2) as executor:
        threads = run(0, executor)
    assert rough.status is Status.CONVERGED and exact.status is Status.CONVERGED
    if C > 100.0 and np.any(exact.column("step")):  # else 0 is the solution, or a few steps do
        assert rough.column("step").tolist() != exact.column("step").tolist()
    for record in (*rough.trace, rough.certificate):
        assert record.dual <= exact.certificate.primal * (1.0 + 1e-12)
        assert record.primal >= exact.certificate.dual * (1.0 - 1e-12)
    recomputed = problem.objective(rough.w, rough.bias, C)
    assert rough.certificate.primal == pytest.approx(recomputed, rel=1e-10)
    np.testing.assert_array_equal(rough.w, threads.w)
    assert rough.certificate == threads.certificate
