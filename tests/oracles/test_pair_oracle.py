"""The oracle of kernels between pairs: cuts against every output, samples against their mean."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane.oracles import Line
from cutplane.structured.pair_kernel import new_scores
from cutplane.structured.pairs import PairExamples, PairOracle
from kernel_problems import PairMatching, matchings, permutations

X, Y = matchings(3)


class Rescaled(PairMatching):
    def most_violated_slack(self, x, y, score):
        own = score(y)
        return max(permutations(x), key=lambda z: self.loss(y, z) * (1.0 + score(z) - own))


def make(rescaling="margin", size=None, centred=True, seed=0):
    model = PairExamples(Rescaled(), X, Y, rescaling)
    return PairOracle(model, np.random.default_rng(seed), size=size, centred=centred)


def some_points(oracle):
    """Combinations of two cuts, and the cuts."""
    oracle.evaluate(np.zeros(oracle.dimension), point := oracle.new_point())
    first = oracle.cut(point)
    oracle.evaluate(-0.5 * first.a, point)
    second = oracle.cut(point)
    return [-0.7 * first.a - 0.9 * second.a, 0.4 * first.a - 2.0 * second.a], [first, second]


def risk_of(oracle, w):
    """Over all outputs, from the pairs of the expansion."""
    coef, pairs, model = oracle.coefficients(w), oracle.pairs, oracle.model
    inputs = [X[pairs.inputs[k]] for k in pairs.basis]
    outputs = [pairs.outputs[k] for k in pairs.basis]
    scores = new_scores(model.problem, X, inputs, outputs, coef)
    total = 0.0
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        every = permutations(x)
        losses = np.array([model.problem.loss(y, z) for z in every])
        apart = scores[i].of(every) - scores[i](y)
        slack = model.rescaling == "slack"
        total += np.max(losses * (1.0 + apart) if slack else losses + apart)
    return total / len(X)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_cuts_touch_the_risk_and_lie_below_it(rescaling):
    oracle = make(rescaling)
    points, cuts = some_points(oracle)
    point = oracle.new_point()
    for w in points:
        oracle.evaluate(w, point)
        assert point.risk == pytest.approx(risk_of(oracle, w), abs=1e-12)
        cuts.append(oracle.cut(point))
        assert cuts[-1].a @ w + cuts[-1].offset == pytest.approx(point.risk, abs=1e-12)
    for w in [*points, *(-c.a for c in cuts)]:
        for cut in cuts:
            assert cut.a @ w + cut.offset <= risk_of(oracle, w) + 1e-12
    assert oracle.exact and oracle.kernel_values == oracle.pairs.computed > 0


def test_products_are_those_of_the_kernel():
    oracle = make()
    some_points(oracle)
    pairs, span = oracle.pairs, oracle.span
    values = pairs.values(np.array(pairs.basis))
    dense = np.zeros((len(span), pairs.columns))
    for k, expansion in enumerate(span.expansions):
        dense[k, expansion.rows] = expansion.coef
    coordinates = span.coordinates(np.arange(len(span)))
    np.testing.assert_allclose(coordinates @ coordinates.T, dense @ values @ dense.T, atol=1e-12)


@pytest.mark.parametrize("centred", [True, False])
def test_samples_have_the_mean_of_the_exact_cut(centred):
    exact = make()
    (w, v), _ = some_points(exact)
    exact.evaluate(w, point := exact.new_point())
    whole = exact.cut(point)
    found = []
    for seed in range(60):
        oracle = make(size=3, centred=centred, seed=seed)
        oracle._size = None
        some_points(oracle)  # the same span
        oracle._size = 3
        oracle.evaluate(w, point := oracle.new_point())
        cut = oracle.cut(point)
        assert not oracle.exact
        assert cut.offset == pytest.approx(whole.offset)
        found.append(cut.a @ v)
        if centred:  # exact within the span
            assert cut.a @ v == pytest.approx(whole.a @ v, abs=1e-10)
            assert cut.a @ w + cut.offset == pytest.approx(point.risk, abs=1e-10)
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - whole.a @ v) <= 4.0 * error + 1e-10


def test_the_minimum_on_a_line():
    oracle = make()
    (w, v), _ = some_points(oracle)
    start, end = oracle.new_point(), oracle.new_point()
    oracle.evaluate(w, start)
    oracle.evaluate(v, end)
    grid = np.linspace(0.0, 3.0, 301)
    heights = [risk_of(oracle, w + k * (v - w)) + 0.5 * 0.3 * k**2 - 0.4 * k for k in grid]
    k = oracle.descend(Line(start, end, 0.3, -0.4, 1e-8, 3.0))
    height = risk_of(oracle, w + k * (v - w)) + 0.5 * 0.3 * k**2 - 0.4 * k
    assert height <= min(heights) + 1e-7
    np.testing.assert_allclose(start.w, w + k * (v - w), atol=1e-12)
    assert start.risk == pytest.approx(risk_of(oracle, start.w), abs=1e-10)
