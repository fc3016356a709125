"""The pair risk and the pair counts against all pairs written out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.risks import pair_counter as module
from cutplane.risks.pair_counter import UnevenPairs
from cutplane.risks.pairs import PairRisk, pair_statistics

SEEDS = st.integers(0, 2**32 - 1)
SERIAL = SerialExecutor()


@dataclass(frozen=True)
class Case:
    """Rows, and the pairs among them as a matrix of w_i·w_j where y_i > y_j."""

    targets: np.ndarray
    queries: np.ndarray | None
    weights: np.ndarray | None
    weighting: str = "pairs"

    @property
    def rows(self) -> int:
        return len(self.targets)

    def risk(self) -> PairRisk:
        return PairRisk(
            self.targets, queries=self.queries, weights=self.weights, weighting=self.weighting
        )

    def numbers(self) -> np.ndarray:
        return np.zeros(self.rows, int) if self.queries is None else self.queries

    def matrix(self) -> np.ndarray:
        weights = np.ones(self.rows) if self.weights is None else self.weights
        same = np.equal.outer(self.numbers(), self.numbers())
        return np.outer(weights, weights) * same * np.greater.outer(self.targets, self.targets)

    def shares(self) -> np.ndarray:
        """The matrix, normalised."""
        matrix = self.matrix()
        if self.weighting == "pairs":
            return matrix / matrix.sum()
        shares = np.zeros_like(matrix)
        parts = [np.where(self.numbers() == q)[0] for q in np.unique(self.numbers())]
        parts = [part for part in parts if matrix[part].sum() > 0.0]
        for part in parts:
            shares[part] = matrix[part] / (len(parts) * matrix[part].sum())
        return shares

    def value(self, scores: np.ndarray) -> float:
        losses = np.maximum(0.0, 1.0 - np.subtract.outer(scores, scores))
        return float(np.sum(self.shares() * losses))

    def plane(self, scores: np.ndarray) -> tuple[np.ndarray, float]:
        violated = self.shares() * np.less.outer(scores - 1.0, scores)
        return violated.sum(axis=0) - violated.sum(axis=1), float(violated.sum())


def draw_targets(rng, rows, kind):
    if kind == "two":
        return rng.integers(0, 2, rows)
    if kind == "few":
        return rng.integers(0, 5, rows) - 2.0
    if kind == "uneven":
        return np.maximum(0, rng.integers(-20, 8, rows))
    return rng.permutation(rng.normal(size=rows))


def draw_scores(rng, rows, kind):
    scores = 2.0 * rng.normal(size=rows)
    if kind == "halves":  # ties and margins of exactly 1
        return np.round(2.0 * scores) / 2.0
    if kind == "equal":
        return np.full(rows, scores[0])
    if kind == "wide":
        return scores * 10.0 ** rng.uniform(-3, 3, rows)
    return scores


def draw(seed, rows=None):
    rng = np.random.default_rng(seed)
    rows = rows or int(rng.choice([2, 3, 7, 30, 120, 300]))
    targets = draw_targets(rng, rows, rng.choice(["two", "few", "uneven", "real"]))
    queries = weights = None
    if rng.random() < 0.5:
        queries = rng.integers(-2, rng.choice([0, 2, rows]), rows)
        queries[-2:] = queries[0]
    if rng.random() < 0.5:
        weights = rng.choice([0.0, 0.3, 1.0, 2.5], rows)
        weights[-2:] = 0.7
    targets[-2:] = [targets.min(), targets.min() + 1]  # at least one pair
    case = Case(targets, queries, weights, str(rng.choice(["pairs", "queries"])))
    return rng, case, draw_scores(rng, rows, rng.choice(["normal", "halves", "equal", "wide"]))


def evaluate(case, scores, executor=SERIAL, risk=None):
    coef = np.full(case.rows, np.nan)
    value, offset = (risk or case.risk()).evaluate(scores, coef, executor)
    return value, coef, offset


# Of scope "class": set up for every test function, and once for all its examples.
@pytest.fixture(
    scope="class", params=[(256, 64, 1 << 16), (1, 2, 4), (1, 8, 64), (10, 20, 50)], ids=str
)
def sizes(request):
    """How many rows are small, a leaf, a piece: each way through the code, in small problems."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(("_SMALL", "_LEAF", "_PIECE"), request.param, strict=True):
            patch.setattr(module, name, size)
        yield


@pytest.fixture(scope="module")
def pool():
    with ThreadExecutor(3) as executor:
        yield executor


# -- against all pairs ----------------------------------------------------------------


@given(seed=SEEDS)
def test_value_and_plane(sizes, seed):
    _, case, scores = draw(seed)
    assert_by_pairs(case, scores)


def assert_by_pairs(case, scores, risk=None):
    value, coef, offset = evaluate(case, scores, risk=risk)
    expected_coef, expected_offset = case.plane(scores)
    scale = 1.0 + np.abs(scores).max()
    assert value == pytest.approx(case.value(scores), rel=1e-12, abs=1e-14 * scale)
    np.testing.assert_allclose(coef, expected_coef, rtol=1e-12, atol=1e-15)
    assert offset == pytest.approx(expected_offset, rel=1e-12)


@given(seed=SEEDS)
def test_counts(sizes, seed):
    _, case, _ = draw(seed)
    risk = case.risk()
    matrix = case.matrix() > 0.0
    numbers = np.unique(case.numbers())
    busy = sum(matrix[case.numbers() == q].any() for q in numbers)
    assert risk.rows == case.rows
    assert risk.pairs == matrix.sum()
    assert risk.queries == len(numbers)
    assert risk.idle_queries == len(numbers) - busy


@given(seed=SEEDS)
def test_statistics(sizes, seed):
    _, case, scores = draw(seed)
    found = pair_statistics(case.targets, scores, case.queries, case.weights)
    matrix = case.matrix()
    np.testing.assert_array_equal(found.queries, np.unique(case.numbers()))
    for name, wanted in {
        "comparable": matrix,
        "swapped": matrix * np.less.outer(scores, scores),
        "tied": matrix * np.equal.outer(scores, scores),
    }.items():
        expected = [wanted[case.numbers() == q].sum() for q in found.queries]
        numbers = getattr(found, name)
        if case.weights is None:
            assert numbers.dtype == np.int64
            np.testing.assert_array_equal(numbers, expected)
        else:
            np.testing.assert_allclose(numbers, expected, rtol=1e-12, atol=1e-12 * matrix.sum())


# -- what any risk of whole rankings promises -----------------------------------------


@given(seed=SEEDS)
def test_the_plane_touches_here_and_lies_below_elsewhere(sizes, seed):
    rng, case, here = draw(seed)
    value, coef, offset = evaluate(case, here)
    assert coef @ here + offset == pytest.approx(value, abs=1e-13 * (1.0 + np.abs(here).max()))
    for kind in ("normal", "halves", "equal", "wide"):
        there = draw_scores(rng, case.rows, kind)
        slack = 1e-13 * (1.0 + np.abs(there).max())
        assert coef @ there + offset <= case.value(there) + slack


@given(seed=SEEDS)
def test_threads_do_not_change_a_bit(sizes, pool, seed):
    _, case, scores = draw(seed)
    risk = case.risk()
    alone, together = evaluate(case, scores, SERIAL, risk), evaluate(case, scores, pool, risk)
    assert alone[0] == together[0]
    np.testing.assert_array_equal(alone[1], together[1])
    assert alone[2] == together[2]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["two", "real"])
def test_threads_do_not_change_a_bit_of_many_rows(kind, weighted, pool):
    rng = np.random.default_rng(0)
    rows = 150_000
    weights = rng.random(rows) + 0.1 if weighted else None
    case = Case(draw_targets(rng, rows, kind), None, weights)
    scores = draw_scores(rng, rows, "normal")
    risk = case.risk()
    alone, together = evaluate(case, scores, SERIAL, risk), evaluate(case, scores, pool, risk)
    assert alone[0] == together[0]
    np.testing.assert_array_equal(alone[1], together[1])
    assert alone[2] == together[2]


@given(seed=SEEDS)
def test_weights_are_repetitions(sizes, seed):
    rng, case, scores = draw(seed, rows=60)
    times = rng.integers(0, 4, case.rows)
    times[-2:] = 1
    rows = np.repeat(np.arange(case.rows), times)
    queries = None if case.queries is None else case.queries[rows]
    weighted = Case(case.targets, case.queries, times.astype(float), case.weighting)
    repeated = Case(case.targets[rows], queries, None, case.weighting)
    value, coef, offset = evaluate(weighted, scores)
    many_value, many_coef, many_offset = evaluate(repeated, scores[rows])
    slack = 1e-14 * (1.0 + np.abs(scores).max())
    assert value == pytest.approx(many_value, rel=1e-12, abs=slack)
    assert offset == pytest.approx(many_offset, rel=1e-12)
    summed = np.bincount(rows, many_coef, minlength=case.rows)
    np.testing.assert_allclose(coef, summed, rtol=1e-11, atol=1e-15)


@given(seed=SEEDS)
def test_the_order_of_rows_and_the_names_of_queries_do_not_matter(sizes, seed):
    rng, case, scores = draw(seed)
    order = rng.permutation(case.rows)
    queries = None if case.queries is None else 1000 - 7 * case.queries[order]
    weights = None if case.weights is None else case.weights[order]
    # Any increasing function of the targets has the same pairs.
    other = Case(np.exp(0.1 * case.targets[order]), queries, weights, case.weighting)
    value, coef, offset = evaluate(case, scores)
    other_value, other_coef, other_offset = evaluate(other, scores[order])
    slack = 1e-14 * (1.0 + np.abs(scores).max())
    assert value == pytest.approx(other_value, rel=1e-12, abs=slack)
    np.testing.assert_allclose(coef[order], other_coef, rtol=1e-12, atol=1e-15)
    assert offset == pytest.approx(other_offset, rel=1e-12)


def test_nothing_is_left_over_from_the_last_point(sizes):
    rng, case, _ = draw(11, rows=300)
    risk = case.risk()
    for kind in ("wide", "normal", "halves"):
        scores = draw_scores(rng, case.rows, kind)
        kept = scores.copy()
        again, fresh = evaluate(case, scores, SERIAL, risk), evaluate(case, scores)
        assert again[0] == fresh[0]
        np.testing.assert_array_equal(again[1], fresh[1])
        np.testing.assert_array_equal(scores, kept)


# -- numbers --------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [1e6, -1e9])
def test_a_common_shift_of_the_scores_costs_no_digits(sizes, shift):
    rng = np.random.default_rng(5)
    queries = rng.integers(0, 3, 300)
    case = Case(rng.integers(0, 5, 300), queries, rng.random(300))
    shifts = shift * (1.0 + queries)  # another one in every query
    scores = np.round(rng.normal(size=300) * 2.0**20) / 2.0**20  # adding the shift is exact
    value, coef, _ = evaluate(case, scores)
    moved_value, moved_coef, _ = evaluate(case, scores + shifts)
    assert value == pytest.approx(case.value(scores), rel=1e-13)
    assert moved_value == pytest.approx(value, rel=1e-13)
    np.testing.assert_array_equal(moved_coef, coef)


def test_scores_that_are_not_numbers_make_no_number(sizes, pool):
    rng, case, scores = draw(5, rows=300)
    for share in (0.01, 0.5, 1.0):
        scores[rng.random(300) < share] = np.nan
        for executor in (SERIAL, pool):
            assert np.isnan(evaluate(case, scores, executor)[0])


def test_a_perfect_ranking_has_no_risk(sizes):
    targets = np.repeat(np.arange(60.0), 5)
    scores = 0.1 * np.random.default_rng(0).random(300) + 1e5 + 1.5 * targets
    value, coef, offset = evaluate(Case(targets, None, None), scores)
    assert (value, offset) == (0.0, 0.0)
    assert not coef.any()


def test_pairs_beyond_32_bits():
    rows = 100_000
    targets = np.repeat([0.0, 1.0], rows)
    case = Case(targets, None, None)
    risk = case.risk()
    assert risk.pairs == 10**10
    # Every pair is violated by 2, or none is counted at all.
    value, coef, offset = evaluate(case, 1.0 - targets, SERIAL, risk)
    assert (value, offset) == pytest.approx((2.0, 1.0), rel=1e-14)
    np.testing.assert_allclose(coef, np.repeat([1.0, -1.0], rows) / rows, rtol=1e-14)
    found = pair_statistics(targets, 1.0 - targets)
    assert (found.comparable[0], found.swapped[0], found.tied[0]) == (10**10, 10**10, 0)
    found = pair_statistics(targets, np.ones(2 * rows))
    assert (found.comparable[0], found.swapped[0], found.tied[0]) == (10**10, 0, 10**10)


@pytest.mark.parametrize("gap", [-0.5, 0.0, 0.25, 1.0, 3.0])
def test_one_pair(gap):
    case = Case(np.array([7, 3]), None, None)
    value, coef, offset = evaluate(case, np.array([gap, 0.0]))
    inside = float(gap < 1.0)  # a margin of exactly 1 is not violated
    assert (value, offset) == (max(0.0, 1.0 - gap), inside)
    np.testing.assert_array_equal(coef, [-inside, inside])


def test_many_rows_against_sorted_lists():
    """Two targets and 10⁵ rows: c⁺ and c⁻ by binary search in numpy."""
    rng = np.random.default_rng(3)
    rows = 100_000
    targets = (rng.random(rows) < 0.2).astype(float)
    scores = np.round(rng.normal(size=rows) + targets, 3)
    value, coef, offset = evaluate(Case(targets, None, None), scores)
    high, low = targets == 1.0, targets == 0.0
    reach, below = np.sort(scores[high] - 1.0), np.sort(scores[low])
    counts = np.empty(rows)
    counts[low] = np.searchsorted(reach, scores[low], side="left")
    plus = len(below) - np.searchsorted(below, scores[high] - 1.0, side="right")
    counts[high] = -plus
    pairs = float(high.sum() * low.sum())
    np.testing.assert_allclose(coef, counts / pairs, rtol=1e-14)
    assert offset == pytest.approx(plus.sum() / pairs, rel=1e-14)
    assert value == pytest.approx((plus.sum() + counts @ scores) / pairs, rel=1e-10)


# -- what cannot be ranked ------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        Case(np.ones(5), None, None),
        Case(np.array([1.0]), None, None),
        Case(np.array([1.0, 2.0, 1.0]), np.array([0, 1, 2]), None),
        Case(np.array([1.0, 2.0, 1.0]), None, np.array([1.0, 0.0, 1.0])),
        Case(np.array([1.0, 2.0]), None, np.zeros(2)),
    ],
)
def test_no_pair(case):
    with pytest.raises(ValueError, match="no pair to rank"):
        case.risk()
    found = pair_statistics(case.targets, np.zeros(case.rows), case.queries, case.weights)
    assert not found.comparable.any() and not found.swapped.any() and not found.tied.any()
    assert len(found.comparable) == len(np.unique(case.numbers()))


def test_digest_tells_risks_apart():
    targets, queries = np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1])
    risks = [
        PairRisk(targets),
        PairRisk(targets[::-1]),
        PairRisk(np.minimum(targets, 1)),
        PairRisk(targets, queries=queries),
        PairRisk(targets, queries=queries, weighting="queries"),
        PairRisk(targets, weights=np.array([1.0, 2.0, 1.0, 1.0, 1.0])),
        PairRisk(np.append(targets, 0), weights=np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])),
    ]
    assert len({risk.digest() for risk in risks}) == len(risks)
    assert PairRisk(targets.astype(float)).digest() == risks[0].digest()


# -- two levels of very different size ------------------------------------------------


@pytest.fixture(scope="class", params=[4, 1 << 14], ids=str)
def uneven_pieces(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SMALL", 1)
        patch.setattr(module, "_MANY_PIECE", request.param)
        yield


@given(seed=SEEDS)
def test_few_of_one_level(uneven_pieces, seed):
    """The few may be above or below the many, with ties and weights; all pairs tell."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(30, 300))
    targets = np.zeros(rows)
    few = int(rng.integers(1, max(2, rows // (module.UNEVEN + 1))))
    targets[rng.permutation(rows)[:few]] = rng.choice([-1.0, 1.0])
    weights = rng.choice([0.3, 1.0, 2.5], rows) if rng.random() < 0.5 else None
    case = Case(targets, None, weights, "pairs")
    scores = draw_scores(rng, rows, rng.choice(["normal", "halves", "equal", "wide"]))
    risk = case.risk()
    assert isinstance(risk._counter, UnevenPairs)
    assert_by_pairs(case, scores, risk)


@given(seed=SEEDS)
def test_few_of_one_level_with_threads(uneven_pieces, pool, seed):
    rng = np.random.default_rng(seed)
    targets = np.where(np.arange(2000) % 40 == 0, 1.0, 0.0)
    case = Case(targets, None, rng.uniform(0.5, 2.0, 2000), "pairs")
    scores = draw_scores(rng, 2000, rng.choice(["normal", "halves", "wide"]))
    for one, two in zip(evaluate(case, scores), evaluate(case, scores, pool), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
@pytest.mark.parametrize("row", [0, 700])
def test_few_of_one_level_survives_overflow(bad, row):
    """Scores that are no numbers may give any value, but not a crash."""
    targets = np.where(np.arange(1000) % 40 == 0, 1.0, 0.0)
    scores = np.linspace(-1.0, 1.0, 1000)
    scores[row] = bad
    case = Case(targets, None, None, "pairs")
    assert isinstance(case.risk()._counter, UnevenPairs)
    with np.errstate(all="ignore"):
        _, coef, _ = evaluate(case, scores)
    assert len(coef) == 1000
