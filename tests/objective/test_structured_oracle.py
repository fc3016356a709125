"""The structured oracle against every output: values, cuts, lines, the cache."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import cutplane.structured.chain
from cutplane.data import as_blocks
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.objective import Line
from cutplane.objective.structured import StructuredOracle
from cutplane.structured import Problem
from cutplane.structured.chain import ChainExamples, ChainShape, LabelledChains
from cutplane.structured.examples import Examples
from cutplane.structured.linear import LinearExamples
from structured_reference import (
    chain_feature,
    chain_loss,
    enumerated_chains,
    labellings,
    random_chains,
)

LENGTHS = (3, 1, 0, 2, 4, 1, 3)


class SlowChain(Problem):
    """The chain of the compiled code, by trying every labelling."""

    def __init__(self, shape: ChainShape, loss: str, sparse: bool = False):
        self.shape, self.kind, self.sparse = shape, loss, sparse

    def joint_feature(self, x, y):
        vector = chain_feature(self.shape, x, y)
        return scipy.sparse.csr_array(vector[None]) if self.sparse else vector

    def loss(self, y, z):
        return chain_loss(self.kind, y, z)

    def most_violated(self, x, y, score):
        every = labellings(len(x), self.shape.labels)
        return max(every, key=lambda z: self.loss(y, z) + score(z))

    def predict(self, x, score):
        every = labellings(len(x), self.shape.labels)
        return max(every, key=score)


@pytest.fixture(params=["hamming", "zero_one"])
def loss(request):
    return request.param


@pytest.fixture(params=["chain", "sparse chain", "second chain", "user", "sparse user"])
def case(request, loss):
    """An oracle, and the same problem enumerated."""
    X, Y = random_chains(3, lengths=LENGTHS)
    order = 2 if "second" in request.param else 1
    shape = ChainShape(2, 3, request.param.endswith("chain"), order)
    if request.param.endswith("chain"):
        stacked = np.concatenate(X)
        layout = scipy.sparse.csr_array if "sparse" in request.param else np.asarray
        starts = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)
        matrix = as_blocks(layout(stacked), block_numbers=5)
        model = ChainExamples(matrix, LabelledChains(starts, np.concatenate(Y), shape, loss))
    else:
        problem = SlowChain(shape, loss, sparse="sparse" in request.param)
        model = LinearExamples(Examples(problem, X, Y), cache_size=3)
    oracle = StructuredOracle(model, SerialExecutor())
    return oracle, enumerated_chains(X, Y, shape, loss)


def at(oracle, w):
    point = oracle.new_point()
    oracle.evaluate(w, point)
    return point


def test_value_and_cut(case):
    oracle, every = case
    rng = np.random.default_rng(0)
    points = [np.zeros(oracle.dimension)]
    points += [scale * rng.normal(size=oracle.dimension) for scale in (0.1, 1.0, 10.0)]
    for w in points:
        point = at(oracle, w)
        assert point.risk == pytest.approx(every.risks(w).mean(), rel=1e-12)
        cut = oracle.cut(point)
        assert cut.a @ w + cut.offset == pytest.approx(point.risk, rel=1e-11, abs=1e-12)
        for v in points:  # below the risk everywhere
            assert cut.a @ v + cut.offset <= every.risks(v).mean() * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("k", [0.0, 0.1, 1.0, 2.5])
def test_blend_is_the_point_between(case, k):
    oracle, every = case
    rng = np.random.default_rng(4)
    one, two = rng.normal(size=(2, oracle.dimension))
    start, end, into = at(oracle, one), at(oracle, two), oracle.new_point()
    oracle.blend(start, end, k, into)
    between = one + k * (two - one)
    np.testing.assert_allclose(into.w, between, rtol=1e-13, atol=1e-13)
    assert into.risk == pytest.approx(every.risks(between).mean(), rel=1e-11)
    cut, other = oracle.cut(into), oracle.cut(start, end, k)
    np.testing.assert_allclose(other.a, cut.a, rtol=1e-10, atol=1e-12)
    assert other.offset == pytest.approx(cut.offset, rel=1e-10)
    np.testing.assert_array_equal(start.w, one)
    oracle.blend(start, end, k, start)  # in place
    assert start.risk == into.risk


@pytest.mark.parametrize("seed", range(4))
def test_descend_finds_the_minimum(case, seed):
    oracle, every = case
    rng = np.random.default_rng(seed)
    one, two = rng.normal(size=(2, oracle.dimension))
    way = two - one
    start, end = at(oracle, one), at(oracle, two)
    C = 3.0
    line = Line(start, end, way @ way / C, one @ way / C, tolerance=1e-9)
    k = oracle.descend(line)

    def height(k):
        return every.objective(one + k * way, C / len(every.rows))  # C is of the mean here

    grid = np.linspace(0.0, max(3.0, 2.0 * k), 2001)
    assert height(k) <= min(map(height, grid)) + 1e-6
    np.testing.assert_allclose(start.w, one + k * way, rtol=1e-12, atol=1e-12)
    assert start.risk == pytest.approx(every.risks(start.w).mean(), rel=1e-10)


def test_known_points_cost_no_inference(loss):
    X, Y = random_chains(3, lengths=LENGTHS)
    shape = ChainShape(2, 3, False)
    problem = SlowChain(shape, loss)
    model = LinearExamples(Examples(problem, X, Y), cache_size=3)
    oracle = StructuredOracle(model, SerialExecutor())
    one, two = np.random.default_rng(0).normal(size=(2, shape.dimension))
    start, end = at(oracle, one), at(oracle, two)
    assert oracle.passes == 2
    oracle.blend(start, end, 1.0, start)
    oracle.evaluate(two.copy(), start)
    oracle.cut(start)
    assert oracle.passes == 2


def test_proofs_infer_again_where_scores_were_blended(loss):
    """Other points were computed from the data alone, and an interrupted move is none of them."""
    X, Y = random_chains(3, lengths=LENGTHS)
    shape, starts = ChainShape(2, 3, True), np.concatenate([[0], np.cumsum(LENGTHS)])
    chains = LabelledChains(starts, np.concatenate(Y), shape, loss)
    model = ChainExamples(as_blocks(np.concatenate(X)), chains)
    oracle = StructuredOracle(model, SerialExecutor())
    one, two = np.random.default_rng(0).normal(size=(2, shape.dimension))
    start, end, into = at(oracle, one), at(oracle, two), oracle.new_point()
    known = oracle.prove(two.copy(), end, 0.0)
    assert oracle.passes == 2 and known.risk >= end.risk
    oracle.blend(start, end, 0.3, into)
    between = into.w.copy()
    proof = oracle.prove(between, into, 0.0)
    assert oracle.passes == 4
    anew = at(oracle, between)
    assert proof == oracle.prove(between, anew, 0.0)
    np.testing.assert_array_equal(into.scores, anew.scores)
    start.take(into)  # what was proved needs no inference elsewhere, either
    assert oracle.prove(between, start, 0.0) == proof and oracle.passes == 5
    infer, model.infer = model.infer, interrupted
    with pytest.raises(KeyboardInterrupt):
        oracle.evaluate(two, start)
    model.infer = infer
    assert oracle.prove(two, start, 0.0) == known and oracle.passes == 7


def interrupted(*arguments):
    raise KeyboardInterrupt


def test_cheap_cuts_are_the_best_of_known_outputs(loss):
    X, Y = random_chains(3, lengths=LENGTHS)
    shape = ChainShape(2, 3, False)
    model = LinearExamples(Examples(SlowChain(shape, loss), X, Y), cache_size=3)
    every = enumerated_chains(X, Y, shape, loss)
    oracle = StructuredOracle(model, SerialExecutor())
    points = np.random.default_rng(0).normal(size=(5, shape.dimension))
    assert oracle.cheap_cut(points[0]) is None
    cuts = []
    for w in points[:4]:
        cuts.append(oracle.cut(at(oracle, w)))
    new = points[4]
    passes = oracle.passes
    cut = oracle.cheap_cut(new)
    assert oracle.passes == passes
    height = cut.a @ new + cut.offset
    assert height >= max(c.a @ new + c.offset for c in cuts[1:]) - 1e-12  # the last three passes
    for v in points:
        assert cut.a @ v + cut.offset <= every.risks(v).mean() + 1e-12


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("order", [1, 2])
def test_the_same_bits_for_any_number_of_threads(loss, layout, order, monkeypatch):
    monkeypatch.setattr(cutplane.structured.chain, "CHUNK_WORK", 30)
    monkeypatch.setattr(cutplane.structured.chain, "NUMBERS_PER_WEIGHT", 1)
    lengths = tuple(np.random.default_rng(0).integers(0, 8, 40))
    X, Y = random_chains(1, lengths=lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    shape = ChainShape(2, 3, True, order)
    w = np.random.default_rng(1).normal(size=shape.dimension)
    found = set()
    for threads in (1, 2, 3):
        executor = ThreadExecutor(threads) if threads > 1 else SerialExecutor()
        with executor:
            matrix = as_blocks(layout(np.concatenate(X)), block_numbers=20)
            model = ChainExamples(matrix, LabelledChains(starts, np.concatenate(Y), shape, loss))
            assert len(model.chains.chunks.bounds) > 5
            assert len(model.sum.plan.edges) > 3  # more than two parts
            oracle = StructuredOracle(model, executor)
            point = at(oracle, w)
            cut = oracle.cut(point)
            found.add((point.risk, cut.offset, cut.a.tobytes(), point.scores.tobytes()))
    assert len(found) == 1
