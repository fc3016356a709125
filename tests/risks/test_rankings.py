"""Average precision, NDCG and partial ROC area, against every ranking and set of negatives."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.loops import rankings as loops
from cutplane.metrics import ndcg_score
from cutplane.risks.pairs import PairRisk
from cutplane.risks.partial_area import PartialAreaRisk
from cutplane.risks.rankings import RankingRisk

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.sampled_from(["normal", "halves", "small", "large", "zero"])
# Objective, number of grades, k: a new measure of a ranking needs one entry, and a loss below.
CASES = [
    ("average_precision", 2, None),
    ("ndcg", 2, None),
    ("ndcg", 2, 1),
    ("ndcg", 2, 3),
    ("ndcg", 4, None),
    ("ndcg", 4, 2),
    ("ndcg", 4, 4),
]


def draw(rng, rows, grades, shape):
    relevance = rng.integers(0, grades, rows).astype(float)
    relevance[:2] = [0, grades - 1]
    scores = rng.normal(size=rows)
    scale = {"normal": 1.0, "small": 0.1, "large": 1e3, "zero": 0.0}
    scores = np.round(2.0 * scores) / 2.0 if shape == "halves" else scores * scale[shape]
    return rng.permutation(relevance), scores


def evaluate(risk, scores, executor=None):
    coef = np.full(len(scores), np.nan)
    value, offset = risk.evaluate(scores, coef, executor or SerialExecutor())
    return value, offset, coef


# -- every ranking --------------------------------------------------------------------


@cache
def rankings(m):
    """All rankings: for each the row at every position."""
    return np.array(list(itertools.permutations(range(m))))


def binary_losses(objective, relevant, k):
    """The loss of every ranking of rows that are relevant or not."""
    placed = relevant[rankings(len(relevant))]
    position = np.arange(1, len(relevant) + 1)
    if objective == "average_precision":
        precision = np.cumsum(placed, axis=1) / position
        return 1.0 - (precision * placed).sum(axis=1) / relevant.sum()
    discount = np.where(position <= (k or len(relevant)), 1.0 / np.log2(1.0 + position), 0.0)
    reached = placed @ discount
    return 1.0 - reached / reached.max()


def binary_risk(objective, relevant, scores, k):
    m = len(relevant)
    position = np.argsort(rankings(m), axis=1)
    above, below = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    swapped = position[:, above][:, :, None] > position[:, below][:, None, :]
    margins = scores[above][:, None] - scores[below]
    values = binary_losses(objective, relevant, k) - 2.0 * np.mean(swapped * margins, axis=(1, 2))
    return values.max()


def risk_by_rankings(objective, relevance, scores, k):
    """The binary risks of all grades, each by its share of the gain of the best ranking."""
    if objective == "average_precision":
        return binary_risk(objective, relevance > 0.0, scores, k)
    values = np.unique(relevance)
    position = np.arange(1, len(relevance) + 1)
    discount = np.where(position <= (k or len(relevance)), 1.0 / np.log2(1.0 + position), 0.0)
    gains = 2.0**relevance - 1.0
    best = np.sort(gains)[::-1] @ discount
    total = 0.0
    for low, high in itertools.pairwise(values):
        relevant = relevance >= high
        share = (2.0**high - 2.0**low) * discount[: relevant.sum()].sum() / best
        total += share * binary_risk(objective, relevant, scores, k)
    return total


@pytest.mark.parametrize(("objective", "grades", "k"), CASES)
@settings(max_examples=60)
@given(seed=SEEDS, shape=SHAPES, rows=st.integers(2, 7))
def test_value_is_the_maximum_over_rankings(objective, grades, k, seed, shape, rows):
    rng = np.random.default_rng(seed)
    relevance, scores = draw(rng, min(rows, 6) if grades > 2 else rows, grades, shape)
    value, offset, coef = evaluate(RankingRisk(relevance, objective, k=k), scores)
    expected = risk_by_rankings(objective, relevance, scores, k)
    size = 1.0 + np.abs(scores).max()
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-13 * size)
    assert value == pytest.approx(offset + coef @ scores, rel=1e-12, abs=1e-13 * size)


def reported_loss(objective, relevance, scores, k):
    if objective == "average_precision":
        # Equal scores in the worst order: the risk bounds every order.
        worst = np.empty(len(scores))
        worst[np.lexsort((-relevance, scores))] = np.arange(len(scores))
        return 1.0 - average_precision_score(relevance > 0.0, worst)
    return 1.0 - ndcg_score(relevance, scores, k=k, ties="worst")


@pytest.mark.parametrize(("objective", "grades", "k"), CASES)
@given(seed=SEEDS, shape=SHAPES, other=SHAPES)
def test_planes_lie_below_and_the_risk_bounds_the_loss(objective, grades, k, seed, shape, other):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 40))
    relevance, here = draw(rng, rows, grades, shape)
    there = draw(rng, rows, grades, other)[1]
    risk = RankingRisk(relevance, objective, k=k)
    value, offset, coef = evaluate(risk, here)
    rounding = 1e-12 * (1.0 + np.abs(here).max() + np.abs(there).max())
    assert evaluate(risk, there)[0] >= offset + coef @ there - rounding
    assert value >= reported_loss(objective, relevance, here, k) - rounding
    assert coef.sum() == pytest.approx(0.0, abs=1e-13)
    order = rng.permutation(rows)
    mixed = evaluate(RankingRisk(relevance[order], objective, k=k), here[order])
    assert mixed[0] == pytest.approx(value, rel=1e-12, abs=rounding)


@pytest.mark.parametrize(("objective", "grades", "k"), CASES)
def test_a_wide_margin_costs_nothing_whatever_the_spread_inside_a_grade(objective, grades, k):
    rng = np.random.default_rng(0)
    relevance = rng.permutation(np.arange(30) % grades).astype(float)
    scores = 1e4 * relevance + 1e3 * rng.random(30)
    value, offset, coef = evaluate(RankingRisk(relevance, objective, k=k), scores)
    assert value == offset == 0.0
    assert not coef.any()


@pytest.mark.parametrize(("objective", "grades", "k"), CASES)
def test_queries_are_means_of_their_own_risks(objective, grades, k):
    rng = np.random.default_rng(1)
    relevance, scores = draw(rng, 200, grades, "normal")
    qid = rng.integers(0, 12, 200)
    relevance[qid == 3] = 0.0  # nothing to rank
    risk = RankingRisk(relevance, objective, queries=qid, k=k)
    assert (risk.queries, risk.idle_queries) == (12, 1)
    value, _, coef = evaluate(risk, scores)
    parts = []
    for q in set(range(12)) - {3}:
        own = qid == q
        part = RankingRisk(relevance[own], objective, k=k)
        found = evaluate(part, scores[own])
        parts.append(found[0])
        np.testing.assert_allclose(coef[own], found[2] / 11, rtol=1e-12, atol=1e-17)
    assert value == pytest.approx(np.mean(parts), rel=1e-13)
    assert not coef[qid == 3].any()
    with ThreadExecutor(2) as executor:
        assert evaluate(risk, scores, executor)[0] == value


def test_positions_behind_all_rows_are_no_limit():
    rng = np.random.default_rng(2)
    relevance, scores = draw(rng, 50, 4, "normal")
    every = evaluate(RankingRisk(relevance, "ndcg"), scores)
    for k in (50, 1000):
        assert evaluate(RankingRisk(relevance, "ndcg", k=k), scores)[0] == every[0]
    assert evaluate(RankingRisk(relevance, "ndcg", k=49), scores)[0] == pytest.approx(
        every[0], rel=0.02
    )


def test_the_work_of_the_halves_grows_as_m_log_m():
    """By the number of gains that are computed, at the worst scores: all alike, and mixed."""
    for m in (1000, 8000, 64_000):
        rng = np.random.default_rng(3)
        for scores in (np.zeros(m), np.sort(rng.normal(size=m))[::-1]):
            ups, downs = scores[::2].copy(), scores[1::2].copy()
            rate = 2.0 / (len(ups) * len(downs))
            above = np.empty(len(downs), np.int64)
            work = loops.merge_by_halves(ups, downs, rate, np.empty(0), 0.0, above)
            assert work <= m * (1.0 + 0.5 * math.log2(m))
            assert (np.diff(above) >= 0).all()


@pytest.mark.parametrize(("objective", "grades", "k"), CASES)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_upper_bounds_the_risk_near_by(objective, grades, k, scale):
    rng = np.random.default_rng(4)
    relevance, scores = draw(rng, 60, grades, "normal")
    scores *= scale
    risk = RankingRisk(relevance, objective, queries=rng.integers(0, 4, 60), k=k)
    value, _, coef = evaluate(risk, scores)
    exact = risk.upper(scores, None, np.zeros(60), SerialExecutor())
    assert value <= exact <= value + 1e-11 * (1.0 + scale)
    errors = 1e-3 * scale * rng.random(60)
    above = risk.upper(scores, None, errors, SerialExecutor())
    for way in (np.sign(coef), rng.choice([-1.0, 1.0], 60)):
        assert evaluate(risk, scores + errors * way)[0] <= above
    assert above <= value + 4.1e-3 * scale
    low = 2.0**-54 * np.abs(scores)
    assert risk.upper(scores, low, np.zeros(60), SerialExecutor()) >= exact


@pytest.mark.parametrize(
    ("relevance", "objective", "message"),
    [
        ([0.0, -1.0], "ndcg", "at least 0 for NDCG"),
        ([0.0, 5000.0], "ndcg", "no finite number"),
        ([1.0, 1.0], "ndcg", "nothing to rank"),
        ([1.0, 2.0], "average_precision", "nothing to rank"),
    ],
)
def test_relevance_that_cannot_be_ranked_is_refused(relevance, objective, message):
    with pytest.raises(ValueError, match=message):
        RankingRisk(np.array(relevance), objective)


def test_digests_tell_rankings_apart():
    relevance = np.array([0.0, 1.0, 2.0, 0.0])
    risks = [
        RankingRisk(relevance, "ndcg"),
        RankingRisk(relevance, "ndcg", k=2),
        RankingRisk(relevance, "average_precision"),
        RankingRisk(relevance, "ndcg", queries=np.array([0, 0, 1, 1])),
        PartialAreaRisk(np.where(relevance > 0, 1.0, -1.0), 0.5),
        PartialAreaRisk(np.where(relevance > 0, 1.0, -1.0), 1.0),
    ]
    assert len({risk.digest() for risk in risks}) == len(risks)


# -- partial area ---------------------------------------------------------------------


def area_by_sets(labels, scores, k):
    """The largest mean over all sets of k negatives."""
    ups, downs = scores[labels > 0], scores[labels < 0]
    return max(
        np.mean(np.maximum(0.0, 1.0 - (ups[:, None] - downs[list(some)])))
        for some in itertools.combinations(range(len(downs)), k)
    )


@settings(max_examples=60)
@given(seed=SEEDS, shape=SHAPES, rows=st.integers(2, 10), max_fpr=st.floats(0.01, 1.0))
def test_partial_area_is_the_maximum_over_sets_of_negatives(seed, shape, rows, max_fpr):
    rng = np.random.default_rng(seed)
    relevance, scores = draw(rng, rows, 2, shape)
    labels = 2.0 * relevance - 1.0
    n = int((labels < 0).sum())
    risk = PartialAreaRisk(labels, max_fpr)
    assert risk.k == math.ceil(round(max_fpr * n, 9))
    value, offset, coef = evaluate(risk, scores)
    size = 1.0 + np.abs(scores).max()
    assert value == pytest.approx(area_by_sets(labels, scores, risk.k), rel=1e-13, abs=1e-13)
    assert value == pytest.approx(offset + coef @ scores, rel=1e-12, abs=1e-13 * size)
    there = scores + rng.normal(size=rows)
    assert evaluate(risk, there)[0] >= offset + coef @ there - 1e-13 * size


def test_a_product_that_rounds_up_selects_no_further_negative():
    labels = np.repeat([1.0, -1.0], [5, 100])
    assert 0.07 * 100 > 7
    assert PartialAreaRisk(labels, 0.07).k == 7


def test_all_negatives_are_the_roc_area_and_one_is_the_top():
    rng = np.random.default_rng(5)
    labels, scores = rng.permutation(np.repeat([1.0, -1.0], [20, 80])), rng.normal(size=100)
    assert evaluate(PartialAreaRisk(labels, 1.0), scores)[0] == pytest.approx(
        evaluate(PairRisk(labels), scores)[0], rel=1e-14
    )
    top = np.mean(np.maximum(0.0, 1.0 + scores[labels < 0].max() - scores[labels > 0]))
    assert evaluate(PartialAreaRisk(labels, 0.001), scores)[0] == pytest.approx(top)


@pytest.mark.parametrize("max_fpr", [0.1, 0.5])
def test_the_partial_area_of_scikit_learn_is_bounded(max_fpr):
    """Which it standardises: ½(1 + (area − β²/2)/(β − β²/2))."""
    rng = np.random.default_rng(6)
    labels = rng.permutation(np.repeat([1.0, -1.0], [50, 200]))
    for scale in (0.1, 1.0, 10.0):
        scores = scale * (rng.normal(size=250) + labels)
        standard = roc_auc_score(labels, scores, max_fpr=max_fpr)
        least = max_fpr**2 / 2.0
        area = least + (2.0 * standard - 1.0) * (max_fpr - least)
        assert evaluate(PartialAreaRisk(labels, max_fpr), scores)[0] >= 1.0 - area / max_fpr


def test_copies_of_rows_in_the_partial_area():
    rng = np.random.default_rng(7)
    labels, scores = rng.permutation(np.repeat([1.0, -1.0], [8, 20])), rng.normal(size=28)
    times = rng.integers(0, 4, 28)
    rows = np.repeat(np.arange(28), times)
    one = evaluate(PartialAreaRisk(labels, 0.3, multiplicity=times), scores)
    many = evaluate(PartialAreaRisk(labels[rows], 0.3), scores[rows])
    assert one[:2] == pytest.approx(many[:2], rel=1e-14)
    np.testing.assert_allclose(one[2], np.bincount(rows, many[2], minlength=28), atol=1e-16)


@pytest.mark.parametrize("shape", ["normal", "halves", "large"])
def test_upper_of_the_partial_area_is_above_exact_arithmetic_and_near(shape):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        relevance, high = draw(rng, 24, 2, shape)
        labels = 2.0 * relevance - 1.0
        risk = PartialAreaRisk(labels, 0.3)
        low = 2.0**-54 * np.abs(high) * rng.uniform(-1, 1, 24)
        errors = 1e-13 * np.abs(high) * rng.random(24)

        def exact(scores, risk=risk, labels=labels):
            ups = [v for v, y in zip(scores, labels, strict=True) if y > 0]
            downs = sorted(v for v, y in zip(scores, labels, strict=True) if y < 0)[-risk.k :]
            return sum(max(0, 1 - u + d) for u in ups for d in downs) / (len(ups) * risk.k)

        both = [Fraction(a) + Fraction(b) for a, b in zip(high, low, strict=True)]
        upper = Fraction(risk.upper(high, low, 0.0 * errors, SerialExecutor()))
        assert exact(both) <= upper <= exact(both) * (1 + Fraction(1e-13)) + Fraction(1e-11)
        worst = [
            Fraction(v) - Fraction(e) * int(y) for v, e, y in zip(high, errors, labels, strict=True)
        ]
        assert exact(worst) <= Fraction(risk.upper(high, None, errors, SerialExecutor()))
