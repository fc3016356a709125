"""The span of kernel expansions and the oracles on it, against dense linear algebra."""

from __future__ import annotations

from fractions import Fraction
from itertools import product as product_of

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from cutplane.exec import SerialExecutor
from cutplane.kernels import PrecomputedMatrix
from cutplane.losses import Hinge
from cutplane.objective.constant import ConstantOracle, RowPopulation
from cutplane.objective.cut_basis import CutBasis, Expansion, ScoreTable, combined
from cutplane.objective.sampled import Level, SampledOracle
from cutplane.objective.score_risk import RowScoreRisk
from cutplane.risks import LossRisk, Targets
from cutplane.risks.multiclass import CrammerSingerRisk

ROWS = 60


@pytest.fixture(name="K")
def kernel_values() -> np.ndarray:
    return rbf_kernel(np.random.default_rng(0).standard_normal((ROWS, 2)), gamma=0.7)


def some_expansions(rng: np.random.Generator, count: int, outputs: int | None) -> list[Expansion]:
    tail = () if outputs is None else (outputs,)
    found = []
    for _ in range(count):
        rows = np.sort(rng.choice(ROWS, 7, replace=False))
        found.append(Expansion(rows, rng.standard_normal((7, *tail))))
    return found


def dense(expansion: Expansion) -> np.ndarray:
    out = np.zeros((ROWS, *expansion.coef.shape[1:]))
    out[expansion.rows] = expansion.coef
    return out.reshape(ROWS, -1)


def product(K: np.ndarray, a: Expansion, b: Expansion) -> float:
    return float(np.sum(dense(a) * (K @ dense(b))))


def fill(K: np.ndarray, expansions: list[Expansion], capacity: int) -> CutBasis:
    cut_basis = CutBasis(capacity, 1e-13, PrecomputedMatrix(K))
    for k, e in enumerate(expansions):
        products = np.array([product(K, e, other) for other in expansions[:k]])
        cut_basis.add(e, products, product(K, e, e))
    return cut_basis


@pytest.mark.parametrize("outputs", [None, 3])
def test_coordinates_have_the_products_of_the_functions(K, outputs):
    rng = np.random.default_rng(1)
    expansions = some_expansions(rng, 8, outputs)
    twice = combined(expansions[:2], np.array([0.5, -2.0]))  # depends on the first two
    expansions = [*expansions[:5], twice, *expansions[5:]]
    cut_basis = fill(K, expansions, 16)
    lines = cut_basis.coordinates(np.arange(9))
    gram = [[product(K, a, b) for b in expansions] for a in expansions]
    np.testing.assert_allclose(lines @ lines.T, gram, atol=1e-10)
    # A point is what its expansion is.
    w = rng.standard_normal(9) @ lines
    expansion = cut_basis.expand(w)
    assert product(K, expansion, expansion) == pytest.approx(w @ w, rel=1e-10)
    for line, e in zip(lines, expansions, strict=True):
        assert product(K, expansion, e) == pytest.approx(line @ w, rel=1e-8, abs=1e-9)
    assert not cut_basis.negative


def test_a_smaller_span_keeps_its_points(K):
    rng = np.random.default_rng(2)
    expansions = some_expansions(rng, 10, None)
    cut_basis = fill(K, expansions, 12)
    kept = np.array([1, 4, 5, 9])
    lines = cut_basis.coordinates(kept)
    small = cut_basis.kept(kept, 20)
    w = rng.standard_normal(4) @ lines
    moved = small.projected(lines @ w)
    assert len(moved) == 20
    assert moved @ moved == pytest.approx(w @ w)
    np.testing.assert_allclose(dense(small.expand(moved)), dense(cut_basis.expand(w)), atol=1e-9)


def test_lengths_that_no_kernel_has_are_noticed(K):
    cut_basis = CutBasis(4, 1e-13, PrecomputedMatrix(K))
    e = Expansion(np.array([0]), np.ones(1))
    cut_basis.add(e, np.zeros(0), 1.0)
    cut_basis.add(e, np.array([2.0]), 1.0)  # |<a, b>| > |a||b|
    assert cut_basis.negative


def exact_excess(K: np.ndarray, cut_basis: CutBasis) -> np.ndarray:
    """<g_j, g_k> − <L_j, L_k> of all vectors of a span, in fractions."""
    functions = [dense(e) for e in cut_basis.expansions]
    lines = cut_basis.coordinates(np.arange(len(cut_basis)))
    out = np.empty((len(cut_basis), len(cut_basis)))
    for j, k in np.ndindex(out.shape):
        total = Fraction(0)
        for a, b in zip(functions[j].T, functions[k].T, strict=True):
            for i, m in product_of(np.flatnonzero(a), np.flatnonzero(b)):
                total += Fraction(a[i]) * Fraction(b[m]) * Fraction(K[i, m])
        for a, b in zip(lines[j], lines[k], strict=True):
            total -= Fraction(a) * Fraction(b)
        out[j, k] = total
    return out


@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_errors_bound_what_rounding_did_to_products(outputs, scale):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((ROWS, 3)) * [1.0, 1.0, scale]
    K = X @ X.T  # of rank 3: all but a few vectors depend on others
    np.copyto(K, K.T, where=np.tri(ROWS, dtype=bool))
    cut_basis = fill(K, some_expansions(rng, 7, outputs), 8)
    excess = exact_excess(K, cut_basis)
    errors = cut_basis.errors[:7, :7]
    assert np.all(excess <= errors)
    assert np.any(excess > 0.0)
    sizes = np.abs(np.array([dense(e) for e in cut_basis.expansions])).sum(axis=2) @ np.sqrt(
        np.diag(K)
    )
    assert np.all(errors <= 1e-13 * np.outer(sizes, sizes))
    kept = np.array([0, 2, 3, 6])
    small = cut_basis.kept(kept, 8, cut_basis.coordinates(np.array([5]))[0])
    assert np.all(exact_excess(K, small)[:4, :4] <= small.errors[:4, :4])


@pytest.mark.parametrize("outputs", [None, 3])
def test_score_table(K, outputs):
    rng = np.random.default_rng(3)
    expansions = some_expansions(rng, 20, outputs)
    tail = () if outputs is None else (outputs,)
    table = ScoreTable([slice(0, 25), slice(25, 60)], outputs)
    for e in expansions:
        table.add((K @ dense(e)).reshape(ROWS, *tail))
    new = some_expansions(rng, 1, outputs)[0]
    np.testing.assert_allclose(
        table.products(new), [product(K, new, e) for e in expansions], atol=1e-12
    )
    factors = rng.standard_normal(20)
    out = np.zeros((ROWS, *tail))
    for chunk in range(2):
        table.combine(chunk, factors, out)
    expected = K @ sum(f * dense(e) for f, e in zip(factors, expansions, strict=True))
    np.testing.assert_allclose(out.reshape(ROWS, -1), expected, atol=1e-12)
    table.keep(np.array([3, 8]))
    expected = [product(K, new, expansions[k]) for k in (3, 8)]
    np.testing.assert_allclose(table.products(new), expected, atol=1e-12)


# -- oracles ------------------------------------------------------------------------------


def oracle_of(K, *, size, centred=True, seed=0, outputs=None) -> SampledOracle:
    labels = np.where(np.arange(ROWS) % 3 == 0, 1.0, -1.0)
    risk = LossRisk(Hinge())
    if outputs:
        labels, risk = np.arange(ROWS) % outputs, CrammerSingerRisk(outputs)
    weights = 1.0 + np.arange(ROWS) % 2
    return SampledOracle(
        PrecomputedMatrix(K),
        RowScoreRisk(Targets.make(labels, weights), risk, SerialExecutor()),
        SerialExecutor(),
        np.random.default_rng(seed),
        size=size,
        centred=centred,
    )


def at_some_point(oracle: SampledOracle):
    """The point of a combination of two cuts."""
    start = oracle.new_point()
    oracle.evaluate(np.zeros(oracle.dimension), start)
    first = oracle.cut(start)
    oracle.evaluate(-0.8 * first.a, start)
    second = oracle.cut(start)
    oracle.evaluate(-1.5 * first.a - 2.0 * second.a, start)
    return start


@pytest.mark.parametrize("outputs", [None, 3])
def test_exact_cuts_touch_the_risk_and_lie_below_it(K, outputs):
    oracle = oracle_of(K, size=None, outputs=outputs)
    point = at_some_point(oracle)
    cut = oracle.cut(point)
    assert cut.a @ point.w + cut.offset == pytest.approx(point.risk, rel=1e-12)
    # The scores are those of the expansion.
    scores = K @ dense(oracle.cut_basis.expand(point.w))
    np.testing.assert_allclose(point.scores.reshape(ROWS, -1), scores, atol=1e-9)
    rng = np.random.default_rng(4)
    for _ in range(20):
        w = rng.standard_normal(3) @ oracle.cut_basis.coordinates(np.arange(3)) * 3.0
        other = oracle.new_point()
        oracle.evaluate(w, other)
        assert cut.a @ w + cut.offset <= other.risk + 1e-12
    assert oracle.exact and not oracle.samples


def test_sampled_cuts_are_the_exact_one_on_average(K):
    """At a function outside of the span, too; centred ones are exact in it, and err less."""
    outside = np.random.default_rng(5).standard_normal(ROWS)
    found = {}
    for centred in (True, False):
        heights, beyond, own = [], [], []
        for seed in range(300):
            oracle = oracle_of(K, size=None)
            point = at_some_point(oracle)
            first = oracle_of(K, size=None)
            exact = first.cut(at_some_point(first))
            v = 0.4 * point.w
            oracle._size, oracle._centred = 12, centred
            oracle.rng = np.random.default_rng(seed)
            cut = oracle.cut(point)
            heights.append(cut.a @ v + cut.offset)
            beyond.append(cut.offset + outside @ K @ dense(oracle.cut_basis.expand(cut.a))[:, 0])
            own.append(cut.a @ point.w + cut.offset)
            assert not oracle.exact
        goal = exact.a @ v + exact.offset
        far = exact.offset + outside @ K @ dense(first.cut_basis.expand(exact.a))[:, 0]
        assert abs(np.mean(beyond) - far) < 4 * np.std(beyond) / np.sqrt(len(beyond))
        found[centred] = np.std(beyond)
        if centred:
            np.testing.assert_allclose(heights, goal, rtol=1e-9)
            np.testing.assert_allclose(own, point.risk, rtol=1e-9)
        else:
            assert abs(np.mean(heights) - goal) < 4 * np.std(heights) / np.sqrt(len(heights))
            assert np.std(own) > 1e-3
    assert found[True] < 0.9 * found[False]


def test_centred_cuts_touch_the_risk_in_a_smaller_span(K):
    oracle = oracle_of(K, size=None)
    point = at_some_point(oracle)
    oracle._size = 12
    exact, sampled = oracle.cut(point), oracle.cut(point)
    kept = np.array([1, 3])  # an exact cut and the last one
    offsets = np.array([7.0, sampled.offset])
    coordinates = oracle.rebase(kept, point, oracle.dimension)
    w = oracle.cut_basis.projected(coordinates @ point.w)
    a, offset = oracle.cut_basis.coordinates(np.arange(2)), oracle.offsets(offsets)
    assert offset[0] == 7.0
    assert a[1] @ w + offset[1] == pytest.approx(point.risk, rel=1e-9)
    assert exact.offset == pytest.approx(sampled.offset)
    # And again, when the other one is forgotten.
    point.w = w
    coordinates = oracle.rebase(np.array([1]), point, oracle.dimension)
    w = oracle.cut_basis.projected(coordinates @ w)
    (offset,) = oracle.offsets(np.array([sampled.offset]))
    assert oracle.cut_basis.coordinates(np.arange(1))[0] @ w + offset == pytest.approx(point.risk)


def test_samples_are_drawn_again_until_the_cut_is_violated(K):
    oracle = oracle_of(K, size=None, centred=False)
    point = at_some_point(oracle)
    exact = oracle.cut(point)
    height = exact.a @ point.w + exact.offset
    oracle._size = 6
    above = 0
    for _ in range(40):
        cut = oracle.cut(point, level=Level(point.scores.copy(), height - 1e-9))
        above += cut.a @ point.w + cut.offset > height - 1e-9
    assert above >= 38  # by chance about half of them would be
    free = [oracle.cut(point) for _ in range(40)]
    assert sum(c.a @ point.w + c.offset > height - 1e-9 for c in free) < 36


@pytest.mark.parametrize("outputs", [None, 3])
def test_the_constant_time_oracle_knows_its_sample(K, outputs):
    labels = np.where(np.arange(ROWS) % 3 == 0, 1.0, -1.0)
    risk = LossRisk(Hinge())
    if outputs:
        labels, risk = np.arange(ROWS) % outputs, CrammerSingerRisk(outputs)
    targets = Targets.make(labels, np.ones(ROWS))
    population = RowPopulation(PrecomputedMatrix(K), targets, risk)
    oracle = ConstantOracle(population, SerialExecutor(), np.random.default_rng(0), size=20)
    point = oracle.new_point()
    oracle.evaluate(np.zeros(oracle.dimension), point)
    w = np.zeros(oracle.dimension)
    for _ in range(5):
        cut = oracle.cut(point)
        assert cut.a @ point.w + cut.offset == pytest.approx(point.risk, rel=1e-9)
        w = w - 0.7 * cut.a
        oracle.evaluate(w, point)
        scores = K @ dense(oracle.cut_basis.expand(w))
        np.testing.assert_allclose(
            point.scores.reshape(20, -1), scores[oracle.sample.rows], atol=1e-9
        )
    lines = oracle.cut_basis.coordinates(np.arange(5))
    gram = [
        [product(K, a, b) for b in oracle.cut_basis.expansions] for a in oracle.cut_basis.expansions
    ]
    np.testing.assert_allclose(lines @ lines.T, gram, atol=1e-10)
