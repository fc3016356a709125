"""The oracle of chains with kernels: cuts against every labelling, samples against their mean."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from sklearn.metrics.pairwise import rbf_kernel

from cutplane.exec import SerialExecutor
from cutplane.kernels import PrecomputedMatrix
from cutplane.objective import Line
from cutplane.objective.constant import ConstantOracle
from cutplane.objective.sampled import ScoreRiskOracle
from cutplane.structured.chain import ChainShape, LabelledChains
from cutplane.structured.parts import KernelChains, KernelChainScoreRisk, PartsPopulation, WithUnits
from structured_reference import chain_loss, chain_score, labellings, random_chains

LENGTHS = (3, 1, 0, 2, 3, 3, 2)
SHAPES = pytest.mark.parametrize(
    ("order", "boundaries"), [(1, False), (1, True), (2, True)], ids=["1", "1 ends", "2 ends"]
)


def make(order=1, boundaries=False, loss="hamming", size=None, centred=True, seed=0):
    X, Y = random_chains(6, lengths=LENGTHS)
    K = rbf_kernel(np.concatenate(X), gamma=0.7)
    starts = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)
    shape = ChainShape(2, 3, boundaries, order)
    score_risk = KernelChainScoreRisk(
        LabelledChains(starts, np.concatenate(Y), shape, loss), SerialExecutor()
    )
    oracle = ScoreRiskOracle(
        WithUnits(PrecomputedMatrix(K), score_risk.shape[0] - score_risk.parts),
        score_risk,
        SerialExecutor(),
        np.random.default_rng(seed),
        size=size,
        centred=centred,
        free=score_risk.parts,
    )
    return oracle, K, Y


def some_point(oracle):
    """A combination of two cuts."""
    point = oracle.new_point()
    oracle.evaluate(np.zeros(oracle.dimension), point)
    first = oracle.cut(point)
    oracle.evaluate(-0.5 * first.a, point)
    second = oracle.cut(point)
    oracle.evaluate(-0.7 * first.a - 0.9 * second.a, point)
    return point


def dense(oracle, w):
    """Coefficients of tokens and plain numbers of a point."""
    expansion = oracle.cut_basis.expand(w)
    out = np.zeros(oracle.score_risk.shape)
    out[expansion.rows] = expansion.coef
    return out


def risk_of(oracle, K, Y, w, loss):
    """By enumeration, from the coefficients alone."""
    coef = dense(oracle, w)
    scores = K @ coef[: len(K)]
    chain = oracle.score_risk.weights(coef)[1:]
    total, at = 0.0, 0
    for y in Y:
        own = scores[at : at + len(y)]
        truth = chain_score(own, chain, y)
        total += max(
            chain_loss(loss, y, z) + chain_score(own, chain, z) - truth
            for z in labellings(len(y), 3)
        )
        at += len(y)
    return total / len(Y)


@SHAPES
@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
def test_exact_cuts_touch_the_risk_and_lie_below_it(order, boundaries, loss):
    oracle, K, Y = make(order, boundaries, loss)
    point = some_point(oracle)
    assert point.risk == pytest.approx(risk_of(oracle, K, Y, point.w, loss), rel=1e-10)
    cut = oracle.cut(point)
    assert cut.a @ point.w + cut.offset == pytest.approx(point.risk, rel=1e-10)
    # Lengths in coordinates are those of the function and the plain numbers together.
    coef = dense(oracle, point.w)
    squared = np.sum(coef[: len(K)] * (K @ coef[: len(K)])) + np.sum(coef[len(K) :] ** 2)
    assert point.w @ point.w == pytest.approx(squared, rel=1e-10)
    rng = np.random.default_rng(0)
    for _ in range(15):
        w = rng.standard_normal(3) @ oracle.cut_basis.coordinates(np.arange(3)) * 2.0
        assert cut.a @ w + cut.offset <= risk_of(oracle, K, Y, w, loss) + 1e-10
    assert oracle.exact and not oracle.samples


@SHAPES
def test_a_line_is_searched_without_kernel_values(order, boundaries):
    oracle, K, Y = make(order, boundaries)
    start, end = some_point(oracle), oracle.new_point()
    oracle.evaluate(-0.3 * start.w, end)
    ends = start.w.copy(), end.w.copy()
    before = oracle.kernel_values
    line = Line(start, end, curvature=0.1, slope=0.0, tolerance=1e-9)
    k = oracle.descend(line)

    def height(k):
        w = ends[0] + k * (ends[1] - ends[0])
        return 0.05 * k * k + risk_of(oracle, K, Y, w, "hamming")

    grid = np.linspace(0.0, 2.0 * max(k, 0.5), 300)
    assert height(k) <= min(map(height, grid)) + 1e-8
    assert oracle.kernel_values == before


@pytest.mark.parametrize("centred", [True, False])
def test_samples_have_the_mean_of_the_exact_cut(centred):
    heights, own = [], []
    for seed in range(300):
        oracle, _, _ = make(boundaries=True)
        point = some_point(oracle)
        exact = oracle.cut(point)
        v = 0.4 * point.w
        goal = exact.a @ v + exact.offset
        whole = oracle.cut_basis.expansions[-1]
        oracle._size, oracle._centred = 4, centred
        oracle.rng = np.random.default_rng(seed)
        cut = oracle.cut(point)
        heights.append(cut.a @ v + cut.offset)
        own.append(cut.a @ point.w + cut.offset)
        # Four tokens, and all of the plain numbers as they are.
        some, tokens = oracle.cut_basis.expansions[-1], oracle.score_risk.parts
        assert np.sum(some.rows < tokens) == 4
        plain = whole.rows >= tokens
        np.testing.assert_array_equal(some.rows[4:], whole.rows[plain])
        np.testing.assert_array_equal(some.coef[4:], whole.coef[plain])
    if centred:  # exact in the span of the cuts before, in which both points are
        np.testing.assert_allclose(heights, goal, rtol=1e-9)
        np.testing.assert_allclose(own, point.risk, rtol=1e-9)
    else:
        error = np.std(heights) / np.sqrt(len(heights))
        assert abs(np.mean(heights) - goal) < 4 * error
        assert np.std(own) > 1e-3


@SHAPES
def test_the_constant_time_oracle_knows_its_sequences(order, boundaries):
    whole, K, Y = make(order, boundaries)
    model = KernelChains(whole.score_risk.chains)
    drawn = []

    class Noting(PartsPopulation):
        def sample(self, which):
            drawn.append(which)
            return super().sample(which)

    population = Noting(PrecomputedMatrix(K), model, SerialExecutor())
    oracle = ConstantOracle(population, SerialExecutor(), np.random.default_rng(0), size=4)
    values = scipy.linalg.block_diag(K, np.eye(model.units))
    point, w = oracle.new_point(), np.zeros(oracle.dimension)
    for _ in range(6):
        oracle.evaluate(w, point)
        coef = np.zeros(model.shape)
        expansion = oracle.cut_basis.expand(w)
        if len(expansion.rows):
            coef[expansion.rows] = expansion.coef
        scores, plain = K @ coef[: len(K)], whole.score_risk.weights(coef)[1:]
        total = 0.0
        for i in drawn[-1]:
            own, y = scores[model.starts[i] : model.starts[i + 1]], Y[i]
            truth = chain_score(own, plain, y)
            total += max(
                chain_loss("hamming", y, z) + chain_score(own, plain, z) - truth
                for z in labellings(len(y), 3)
            )
        assert point.risk == pytest.approx(total / 4, rel=1e-10)
        cut = oracle.cut(point)
        assert cut.a @ point.w + cut.offset == pytest.approx(point.risk, rel=1e-10)
        w = w - 0.5 * cut.a
    dense = np.zeros((6, *model.shape))
    for k, e in enumerate(oracle.cut_basis.expansions):
        dense[k, e.rows] = e.coef
    gram = np.einsum("aik,ij,bjk->ab", dense, values, dense)
    lines = oracle.cut_basis.coordinates(np.arange(6))
    np.testing.assert_allclose(lines @ lines.T, gram, atol=1e-10)
    assert not oracle.exact
    assert len({tuple(which) for which in drawn}) > 1
