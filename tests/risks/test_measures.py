"""Measures of a whole labelling, against every labelling and every contingency table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.losses import Hinge
from cutplane.risks import LossRisk, Targets, contingency
from cutplane.risks.contingency import (
    TABLE_MEASURES,
    TABLES,
    Ranked,
    Ratio,
    TableMeasure,
    table_measure,
)
from cutplane.risks.measures import (
    MeasureRisk,
    TableRisk,
    TopRisk,
    best_threshold,
)

recall_at_k = partial(TopRisk, recall=True)
SEEDS = st.integers(0, 2**32 - 1)
# Halves tie often; zeros are what training starts from.
KINDS = st.sampled_from(["normal", "halves", "wide", "zero", "equal", "large"])


@dataclass(frozen=True)
class MeasureCase:
    """A risk and its loss of a table (a, b), written apart from the package."""

    name: str
    make: Callable[..., MeasureRisk]
    loss: Callable[[int, int, int, int], float]  # of a, b, p and n
    k: Callable[[int, int], int] | None = None  # from p and m

    def risk(self, labels, multiplicity=None) -> MeasureRisk:
        counts = np.ones(len(labels), int) if multiplicity is None else multiplicity
        p = int(counts[labels > 0].sum())
        extra = () if self.k is None or self.name == "break_even" else (self.size(p, counts.sum()),)
        return self.make(labels, *extra, multiplicity=multiplicity)

    def size(self, p, m) -> int | None:
        return None if self.k is None else max(1, min(int(m), self.k(p, int(m))))

    def predict(self, scores, p) -> np.ndarray:
        """The prediction that the risk bounds the loss of."""
        k = self.size(p, len(scores))
        if k is None:
            return scores > 0.0
        chosen = np.zeros(len(scores), bool)
        chosen[np.argsort(-scores, kind="stable")[:k]] = True
        return chosen


def fbeta_loss(beta, a, b, p, n):
    if a == 0:
        return 1.0
    precision, recall = a / (a + b), a / p
    return 1.0 - (1.0 + beta**2) * precision * recall / (beta**2 * precision + recall)


def f1_loss(a, b, p, n):
    return fbeta_loss(1.0, a, b, p, n)


def precision_loss(a, b, p, n):
    return b / (a + b)


def recall_loss(a, b, p, n):
    return (p - a) / p


def matthews_loss(a, b, p, n):
    """By the correlation of two vectors of zeros and ones."""
    true, found = p / (p + n), (a + b) / (p + n)
    variance = true * (1.0 - true) * found * (1.0 - found)
    return 0.5 if a + b in (0, p + n) else 0.5 - 0.5 * (a / (p + n) - true * found) / variance**0.5


def absolute_loss(a, b, p, n):
    return abs((a + b) / (p + n) - p / (p + n))


def relative_loss(a, b, p, n):
    def error(found):
        return 0.5 * abs(found - p) / p + 0.5 * abs(found - p) / n

    return error(a + b) / max(error(0), error(p + n))


def nkld_loss(a, b, p, n):
    epsilon = 0.5 / (p + n)
    true, found = ((count / (p + n) + epsilon) / (1.0 + 2.0 * epsilon) for count in (p, a + b))
    divergence = true * math.log(true / found)
    divergence += (1.0 - true) * math.log((1.0 - true) / (1.0 - found))
    return 2.0 * math.exp(divergence) / (1.0 + math.exp(divergence)) - 1.0


def q_loss(beta, a, b, p, n):
    recall, quantification = a / p, 1.0 - abs(a + b - p) / max(p, n)
    if recall == 0.0 or quantification <= 1e-12:
        return 1.0
    return 1.0 - (1.0 + beta**2) / (beta**2 / quantification + 1.0 / recall)


def some_loss(tp, fp, fn, tn):
    """Neither monotone nor smooth: what a user may give."""
    return np.where((tp + 2.0 * fp) % 3.0 == 1.0, 0.9, 0.2) * (fp + fn > 0.0)


def table_case(name, loss, measure=None, **options):
    measure = name if measure is None else measure

    def make(labels, multiplicity=None):
        return TableRisk(labels, measure, multiplicity=multiplicity, **options)

    return MeasureCase(name, make, loss)


# A new measure of a table needs one entry here: its loss (a, b, p, n), written in another way.
TABLE_CASES = [
    table_case("f1", f1_loss),
    table_case("f2", partial(fbeta_loss, 2.0), "fbeta", beta=2.0),
    table_case("f0.5", partial(fbeta_loss, 0.5), "fbeta", beta=0.5),
    table_case("jaccard", lambda a, b, p, n: 1.0 - a / (p + b)),
    table_case("balanced_error", lambda a, b, p, n: 1.0 - 0.5 * (a / p + (n - b) / n)),
    table_case("g_mean", lambda a, b, p, n: 1.0 - math.sqrt(a / p * (1.0 - b / n))),
    table_case("matthews", matthews_loss),
    table_case("absolute_error", absolute_loss),
    table_case("relative_absolute_error", relative_loss),
    table_case("nkld", nkld_loss),
    table_case("q_beta", partial(q_loss, 1.0)),
    table_case("q2", partial(q_loss, 2.0), "q_beta", beta=2.0),
    table_case(
        "callable",
        lambda a, b, p, n: float(some_loss(a, b, p - a, n - b)),
        some_loss,
    ),
]
CASES = [
    *TABLE_CASES,
    MeasureCase("break_even", TopRisk, precision_loss, lambda p, m: p),
    MeasureCase("precision_few", TopRisk, precision_loss, lambda p, m: (p + 1) // 2),
    MeasureCase("precision_one", TopRisk, precision_loss, lambda p, m: 1),
    MeasureCase("precision_many", TopRisk, precision_loss, lambda p, m: p + (m - p) // 2),
    MeasureCase("precision_all", TopRisk, precision_loss, lambda p, m: m),
    MeasureCase("recall_few", recall_at_k, recall_loss, lambda p, m: (p + 1) // 2),
    MeasureCase("recall_many", recall_at_k, recall_loss, lambda p, m: 2 * p),
]


def test_every_named_measure_is_tested():
    assert set(TABLE_MEASURES) - {"fbeta"} <= {case.name for case in TABLE_CASES}


@pytest.fixture(params=CASES, ids=lambda case: case.name, scope="module")
def measure(request) -> MeasureCase:
    return request.param


def draw_labels(rng, rows):
    labels = np.where(rng.random(rows) < rng.uniform(0.1, 0.9), 1.0, -1.0)
    labels[:2] = [1.0, -1.0]
    return rng.permutation(labels)


def draw_scores(rng, rows, kind):
    if kind == "zero":
        return np.zeros(rows)
    if kind == "equal":
        return np.full(rows, rng.normal())
    scores = 2.0 * rng.normal(size=rows) + rng.normal()
    if kind == "halves":
        return np.round(scores) / 2.0
    if kind == "wide":
        return scores * 10.0 ** rng.uniform(-3, 3, rows)
    return scores * (1e8 if kind == "large" else 1.0)


def evaluate(risk, scores, executor=None):
    coef = np.full(len(scores), np.nan)
    value, offset = risk.evaluate(scores, coef, executor or SerialExecutor())
    return value, offset, coef


def rounding(*scores):
    return 1e-14 * (1.0 + sum(np.abs(s).mean() for s in scores))


# -- the maximum ----------------------------------------------------------------------


def all_labellings(m):
    return np.array(list(itertools.product([0.0, 1.0], repeat=m)))


def risk_by_labellings(case, labels, scores):
    """The largest of all labellings, each compared with y or with the best ones near it."""
    m, truth = len(labels), (labels > 0).astype(float)
    p = int(truth.sum())
    k = case.size(p, m)
    every = all_labellings(m)
    if k is None:
        references = np.broadcast_to(truth, every.shape)
    else:
        every = every[every.sum(axis=1) == k]
        best = every[every @ truth == min(k, p)]
        distance = np.abs(every[:, None] - best).sum(axis=2)
        nearest = distance == distance.min(axis=1, keepdims=True)
        references = nearest @ best / nearest.sum(axis=1, keepdims=True)
    hits = every @ truth
    losses = [
        case.loss(int(a), int(b), p, m - p) for a, b in zip(hits, every.sum(1) - hits, strict=True)
    ]
    return np.max(losses + (every - references) @ scores / m)


@pytest.mark.parametrize("kind", ["normal", "halves", "wide", "zero", "equal"])
@settings(max_examples=20)
@given(seed=SEEDS, rows=st.integers(2, 10))
def test_value_is_the_maximum_over_labellings(measure, seed, kind, rows):
    rng = np.random.default_rng(seed)
    if measure.k is not None:
        rows = min(rows, 8)  # the reference compares pairs of labellings
    labels, scores = draw_labels(rng, rows), draw_scores(rng, rows, kind)
    value, _, _ = evaluate(measure.risk(labels), scores)
    expected = risk_by_labellings(measure, labels, scores)
    assert value == pytest.approx(expected, rel=1e-13, abs=rounding(scores))


def risk_by_tables(case, labels, scores):
    positives = np.sort(scores[labels > 0])[::-1]
    negatives = np.sort(scores[labels < 0])[::-1]
    p, n = len(positives), len(negatives)
    m, k = p + n, case.size(p, p + n)
    missed = [math.fsum(positives[a:]) for a in range(p + 1)]
    alarms = [math.fsum(negatives[:b]) for b in range(n + 1)]
    values = []
    for a, b in itertools.product(range(p + 1), range(n + 1)):
        if k is None:
            change = alarms[b] - missed[a]
        elif a + b != k:
            continue
        elif a == min(k, p):
            change = 0.0
        else:
            change = (min(k, p) - a) * (negatives[:b].mean() - positives[a:].mean())
        values.append(case.loss(a, b, p, n) + change / m)
    return max(values)


@settings(max_examples=8)
@given(seed=SEEDS, kind=KINDS)
def test_value_is_the_maximum_over_tables(measure, seed, kind):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(60, 100))
    labels, scores = draw_labels(rng, rows), draw_scores(rng, rows, kind)
    value, _, _ = evaluate(measure.risk(labels), scores)
    expected = risk_by_tables(measure, labels, scores)
    assert value == pytest.approx(expected, rel=1e-13, abs=rounding(scores))


@settings(max_examples=20)
@given(seed=SEEDS)
def test_scores_near_the_scale_of_the_margin(measure, seed):
    """Tables compete most closely where gains in loss and in score are alike."""
    rng = np.random.default_rng(seed)
    labels = draw_labels(rng, 60)
    scores = rng.normal(size=60) * 10.0 ** rng.uniform(-1, 1) + 0.5 * labels
    value, _, _ = evaluate(measure.risk(labels), scores)
    assert value == pytest.approx(risk_by_tables(measure, labels, scores), rel=1e-13)


@given(seed=SEEDS, kind=KINDS)
def test_the_error_rate_gives_the_hinge_loss(seed, kind):
    """Why the error rate needs no class here."""
    rng = np.random.default_rng(seed)
    labels, scores = draw_labels(rng, 8), draw_scores(rng, 8, kind)
    every = 2.0 * all_labellings(8) - 1.0
    losses = (every != labels).mean(axis=1)
    expected = np.max(losses + (every - labels) @ scores / 16.0)
    found = LossRisk(Hinge()).value(scores, 0.0, Targets.make(labels)) / 8.0
    assert found == pytest.approx(expected, rel=1e-13)


# -- the plane ------------------------------------------------------------------------


@given(seed=SEEDS, kind=KINDS, other=KINDS)
def test_the_plane_touches_here_and_lies_below_elsewhere(measure, seed, kind, other):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 40))
    risk = measure.risk(draw_labels(rng, rows))
    here, there = draw_scores(rng, rows, kind), draw_scores(rng, rows, other)
    value, offset, coef = evaluate(risk, here)
    assert value == pytest.approx(offset + coef @ here, rel=1e-13, abs=rounding(here))
    there_value, _, _ = evaluate(risk, there)
    assert there_value >= offset + coef @ there - rounding(there)
    assert there_value >= value + coef @ (there - here) - rounding(here, there)


@given(seed=SEEDS, kind=KINDS)
def test_coefficients_belong_to_a_labelling(measure, seed, kind):
    """To several, mixed, where equal scores share the last places."""
    rng = np.random.default_rng(seed)
    labels, scores = draw_labels(rng, 20), draw_scores(rng, 20, kind)
    p, k = int((labels > 0).sum()), measure.size(int((labels > 0).sum()), 20)
    _, offset, coef = evaluate(measure.risk(labels), scores)
    assert (coef[labels > 0] <= 0.0).all()
    assert (coef[labels < 0] >= 0.0).all()
    if k is None or k == p:
        for sign in (-1.0, 1.0):  # parts of a row only at one score of a class
            parts = (coef * sign > 0.0) & (np.abs(coef) < 0.999 / 20)
            assert len(np.unique(scores[parts])) <= 1
        a, b = p + 20 * np.minimum(coef, 0.0).sum(), 20 * np.maximum(coef, 0.0).sum()
        assert a == pytest.approx(round(a), abs=1e-12)
        expected = measure.loss(round(a), round(b), p, 20 - p)
        assert offset == pytest.approx(expected, abs=1e-15)
    if k is not None:
        assert coef.sum() == pytest.approx(0.0, abs=1e-15)


@given(seed=SEEDS, kind=KINDS)
def test_value_bounds_the_loss_of_the_prediction(measure, seed, kind):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 40))
    labels, scores = draw_labels(rng, rows), draw_scores(rng, rows, kind)
    p = int((labels > 0).sum())
    value, _, _ = evaluate(measure.risk(labels), scores)
    predicted = measure.predict(scores, p)
    hits, alarms = (int(predicted[labels * sign > 0].sum()) for sign in (1, -1))
    loss = measure.loss(hits, alarms, p, rows - p)
    assert value >= loss - rounding(scores)
    assert value >= 0.0


@given(seed=SEEDS, shift=st.floats(-100.0, 100.0))
def test_a_shift_of_all_scores_changes_no_ranking(seed, shift):
    """With y in place of a labelling of k rows a bias could make the risk what it likes."""
    rng = np.random.default_rng(seed)
    labels, scores = draw_labels(rng, 30), draw_scores(rng, 30, "normal")
    for case in CASES[len(TABLE_CASES) :]:
        risk = case.risk(labels)
        here, there = evaluate(risk, scores)[0], evaluate(risk, scores + shift)[0]
        assert there == pytest.approx(here, abs=1e-12)


def test_a_wide_margin_leaves_only_the_least_loss(measure):
    labels = np.repeat([1.0, -1.0], [3, 5])
    value, offset, coef = evaluate(measure.risk(labels), 100.0 * labels)
    k = measure.size(3, 8)
    least = 0.0 if k is None else measure.loss(min(k, 3), k - min(k, 3), 3, 5)
    assert value == offset == pytest.approx(least, abs=1e-15)
    assert not coef.any()


def test_spread_inside_a_class_costs_nothing_once_the_classes_are_apart():
    """All k ≤ p highest rows are positives: nothing is wrong, however uneven they are."""
    labels = np.repeat([1.0, -1.0], [4, 4])
    scores = np.array([1000.0, 500.0, 80.0, 60.0, -1.0, -40.0, -500.0, -9000.0])
    for k in (1, 2, 3, 4):
        assert evaluate(TopRisk(labels, k), scores)[0] == 0.0


# -- copies, order, threads -----------------------------------------------------------


@given(seed=SEEDS, kind=KINDS)
def test_multiplicity_is_repetition(measure, seed, kind):
    rng = np.random.default_rng(seed)
    labels, scores = draw_labels(rng, 15), draw_scores(rng, 15, kind)
    times = rng.integers(0, 4, 15)
    times[[np.argmax(labels), np.argmin(labels)]] = 2
    rows = np.repeat(np.arange(15), times)
    value, offset, coef = evaluate(measure.risk(labels, times), scores)
    many = evaluate(measure.risk(labels[rows]), scores[rows])
    assert offset == many[1]
    assert value == pytest.approx(many[0], rel=1e-15, abs=0.1 * rounding(scores))
    summed = np.bincount(rows, many[2], minlength=15)
    np.testing.assert_allclose(coef, summed, rtol=1e-15, atol=1e-16)
    assert not coef[times == 0].any()


@given(seed=SEEDS, kind=KINDS)
def test_the_order_of_rows_does_not_matter(measure, seed, kind):
    rng = np.random.default_rng(seed)
    labels, scores = draw_labels(rng, 30), draw_scores(rng, 30, kind)
    value, offset, coef = evaluate(measure.risk(labels), scores)
    mixed = rng.permutation(30)
    found = evaluate(measure.risk(labels[mixed]), scores[mixed])
    assert found[0] == pytest.approx(value, rel=1e-14, abs=rounding(scores))
    if len(np.unique(scores)) == 30:
        assert found[1] == offset
        np.testing.assert_array_equal(found[2], coef[mixed])


@pytest.mark.parametrize("kind", ["normal", "halves", "wide", "zero"])
def test_threads_give_the_same_bits(measure, kind):
    rng = np.random.default_rng(5)
    rows = 3000 if measure.name == "callable" else 150_000  # all tables are looked at once
    labels, scores = draw_labels(rng, rows), draw_scores(rng, rows, kind)
    risk = measure.risk(labels)
    one = evaluate(risk, scores)
    with ThreadExecutor(2) as executor:
        two = evaluate(risk, scores, executor)
    assert one[:2] == two[:2]
    np.testing.assert_array_equal(one[2], two[2])


def test_many_scores_are_summed_exactly(measure):
    """Sums of scores of both signs and very different size, against exact arithmetic."""
    rng = np.random.default_rng(6)
    rows = 2000 if measure.name == "callable" else 20_000  # all tables are looked at once
    labels = draw_labels(rng, rows)
    scores = rng.normal(size=rows) * 10.0 ** rng.uniform(-6, 6, rows)
    value, offset, coef = evaluate(measure.risk(labels), scores)
    terms = (Fraction(c) * Fraction(s) for c, s in zip(coef, scores, strict=True))
    exact = float(Fraction(offset) + sum(terms))
    assert value == pytest.approx(exact, rel=1e-15, abs=1e-15 * np.abs(scores).mean())


def test_scores_are_not_written_to_and_buffers_do_not_leak(measure):
    rng = np.random.default_rng(7)
    labels, first, second = draw_labels(rng, 50), *rng.normal(size=(2, 50))
    risk = measure.risk(labels)
    kept = first.copy()
    before = evaluate(risk, first)
    np.testing.assert_array_equal(first, kept)
    evaluate(risk, second)
    after = evaluate(risk, first)
    assert before[:2] == after[:2]
    np.testing.assert_array_equal(before[2], after[2])


# -- small and odd problems -----------------------------------------------------------


@pytest.mark.parametrize("labels", [[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, 1.0]])
@pytest.mark.parametrize("level", [-1.0, 0.0, 0.25, 1.0, 5.0])
def test_tiny_problems(measure, labels, level):
    labels = np.array(labels)
    for direction in (labels, -labels, np.zeros(len(labels)), np.arange(len(labels))):
        scores = level * direction
        value, _, _ = evaluate(measure.risk(labels), scores)
        assert value == pytest.approx(risk_by_labellings(measure, labels, scores), abs=1e-14)


def test_two_rows_by_hand():
    labels = np.array([1.0, -1.0])
    # s = (0.2, 0.1): predict nothing 1 − 0.1, both 1/3 + 0.05, the wrong one 1 − 0.05.
    value, offset, coef = evaluate(TableRisk(labels, "f1"), np.array([0.2, 0.1]))
    assert value == pytest.approx(0.95)
    assert offset == 1.0
    np.testing.assert_array_equal(coef, [-0.5, 0.5])
    # s = (1, 1): both 1/3 + 1/2, the wrong one 1.
    assert evaluate(TableRisk(labels, "f1"), np.array([1.0, 1.0]))[0] == pytest.approx(1.0)
    assert evaluate(TopRisk(labels), np.array([1.0, 0.0]))[0] == pytest.approx(0.5)


def test_precision_and_recall_meet_at_the_number_of_positives():
    rng = np.random.default_rng(8)
    labels, scores = draw_labels(rng, 40), rng.normal(size=40)
    p = int((labels > 0).sum())
    found = [
        evaluate(r, scores) for r in (TopRisk(labels), TopRisk(labels, p), recall_at_k(labels, p))
    ]
    assert found[0][:2] == found[1][:2] == found[2][:2]


# -- the search over tables -----------------------------------------------------------


@pytest.mark.parametrize("name", TABLE_MEASURES)
def test_what_a_measure_says_of_its_loss_is_true(name):
    """On every table of many small sizes; the search relies on it."""
    for p, n in itertools.product((1, 2, 5, 12), (1, 3, 12)):
        for beta in (0.3, 1.0, 4.0):
            known = table_measure(name, beta)
            tables = TABLES[known.search](known, p, n)
            grid = tables.losses(np.arange(p + 1)[:, None], np.arange(n + 1))
            assert grid.min() >= 0.0 and grid.max() <= 1.0
            assert grid[p, 0] == 0.0
            if tables.measure.search == "ratio":
                assert (np.diff(grid, 2, axis=1) <= 1e-15).all()
            elif tables.measure.search == "size":
                size = np.add.outer(np.arange(p + 1), np.arange(n + 1))
                for q in range(p + n + 1):
                    assert np.ptp(grid[size == q]) == 0.0
            else:
                for lines in (grid, grid.T):  # no table is above both ends of a part of its line
                    for line in lines:
                        for i, j, k in itertools.combinations(range(len(line)), 3):
                            assert line[j] <= max(line[i], line[k]) + 1e-15


@pytest.mark.parametrize("rounding", [0.0, 1e-15])
@pytest.mark.parametrize("rates", [False, True])
def test_the_walk_over_a_ratio_finds_the_worst_table(rates, rounding):
    """Any weights, also where the best number of false positives falls from row to row."""
    rng = np.random.default_rng(5)
    for p, n in itertools.product((1, 4, 30), (1, 7, 50)):
        for scale in (0.0, 0.01, 1.0, 30.0):
            tn, fp = np.sort(np.round(10.0 ** rng.uniform(-2, 2, 2), 2))
            tp, fn = np.round(10.0 ** rng.uniform(-2, 2, 2), 2)
            measure = TableMeasure("some", Ratio(tp, fp, fn, tn, rates), "ratio")
            tables = TABLES[measure.search](measure, p, n)
            positives, negatives = (
                np.sort(np.round(scale * rng.normal(size=k), 1))[::-1] for k in (p, n)
            )
            g = -np.append(np.cumsum(positives[::-1])[::-1], 0.0) / (p + n)
            h = np.insert(np.cumsum(negatives), 0, 0.0) / (p + n)
            every = tables.losses(np.arange(p + 1)[:, None], np.arange(n + 1)) + g[:, None] + h
            ranked = np.concatenate([positives, negatives])
            found = tables.worst(g, h, Ranked(ranked, np.zeros(p + n)), rounding)
            assert found.value == pytest.approx(every.max(), abs=1e-13)
            assert every[found[1:]] == pytest.approx(every.max(), abs=1e-13)
            assert rounding == 0.0 or found.value >= every.max()


@pytest.mark.parametrize("name", ["f1", "jaccard", "balanced_error", "absolute_error", "nkld"])
def test_tables_looked_at_grow_as_m_log_m(name):
    """Far fewer than all p·n, whatever the scores are."""
    for m in (1000, 8000, 64_000):
        rng = np.random.default_rng(0)
        labels = np.where(np.arange(m) % 3 == 0, 1.0, -1.0)
        risk = TableRisk(labels, name)
        for scores in (np.zeros(m), rng.normal(size=m) + labels, 0.01 * rng.normal(size=m)):
            before = risk.tables.looked_at
            evaluate(risk, scores)
            assert risk.tables.looked_at - before <= m * (2.0 + math.log2(m))


@pytest.mark.parametrize("name", ["g_mean", "matthews", "q_beta", "callable"])
def test_most_tables_are_ruled_out(name):
    rng = np.random.default_rng(1)
    m = 4000
    labels = np.where(np.arange(m) % 4 == 0, 1.0, -1.0)

    def loss(tp, fp, fn, tn):
        return np.abs(fp - 2.0 * fn) / (2.0 * m)

    risk = TableRisk(labels, loss if name == "callable" else name)
    for scores in (rng.normal(size=m) + labels, 5.0 * rng.normal(size=m)):
        before = risk.tables.looked_at
        evaluate(risk, scores)
        assert risk.tables.looked_at - before < 0.1 * 1000 * 3000


def curious_loss(tp, fp, fn, tn):
    """A loss with many bumps: nothing can be known of it."""
    return 0.5 + 0.5 * np.sin(7.0 * tp + 3.0 * fp * fp) * np.cos(0.37 * fp)


def plain_loss(tp, fp, fn, tn):
    return (fp + fn) / (tp + fp + fn + tn)


@pytest.mark.parametrize("loss", [curious_loss, plain_loss])
def test_a_loss_of_which_nothing_is_known(loss, monkeypatch):
    """The lazy search against all tables, whatever was looked at before."""
    monkeypatch.setattr(contingency, "FEW_TABLES", 0)
    monkeypatch.setattr(contingency, "TILES", 6)
    rng = np.random.default_rng(3)
    for p, n in ((1, 1), (3, 40), (23, 31), (60, 2)):
        labels = rng.permutation(np.repeat([1.0, -1.0], [p, n]))
        old = TableRisk(labels, loss)  # remembers what it saw
        a, b = np.arange(p + 1)[:, None], np.arange(n + 1)
        every = loss(
            *(np.array(np.broadcast_to(c, (p + 1, n + 1)), float) for c in (a, b, p - a, n - b))
        )
        for scale in (0.0, 0.01, 1.0, 30.0, 0.3):
            scores = np.round(scale * (rng.normal(size=p + n) + labels), 1)
            high = np.sort(scores[labels < 0.0])[::-1]
            missed = np.sort(scores[labels > 0.0])[::-1]
            h = np.concatenate([[0.0], np.cumsum(high)]) / (p + n)
            g = np.array([-missed[k:].sum() for k in range(p + 1)]) / (p + n)
            value, offset, coef = evaluate(old, scores)
            assert value == pytest.approx(np.max(every + g[:, None] + h), abs=1e-13)
            fresh = evaluate(TableRisk(labels, loss), scores)
            assert fresh[:2] == (value, offset)
            np.testing.assert_array_equal(fresh[2], coef)


def test_tables_far_below_the_best_are_never_looked_at(monkeypatch):
    monkeypatch.setattr(contingency, "FEW_TABLES", 0)
    rng = np.random.default_rng(4)
    m = 20_000
    labels = np.where(np.arange(m) % 4 == 0, 1.0, -1.0)
    risk = TableRisk(labels, plain_loss)
    for scores in (np.zeros(m), 10.0 * labels + rng.normal(size=m), 100.0 * rng.normal(size=m)):
        evaluate(risk, scores)
    assert risk.tables.looked_at < 0.1 * 5000 * 15_000


def test_a_loss_that_fails_at_the_border_is_refused_before_training(monkeypatch):
    monkeypatch.setattr(contingency, "FEW_TABLES", 0)
    labels = np.repeat([1.0, -1.0], [2000, 3000])
    for loss, table in (
        (lambda tp, fp, fn, tn: fp / (fp + tp), "tp=0, fp=0, fn=2000, tn=3000"),
        (lambda tp, fp, fn, tn: fn / (fn + tn), "tp=2000, fp=3000, fn=0, tn=0"),
    ):
        with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=f"is nan for {table}"):
            TableRisk(labels, loss)


BAD_LOSSES = {
    "nan": (lambda tp, fp, fn, tn: tp / (tp + fp), r"is nan for tp=0, fp=0, fn=2, tn=3.*np\.where"),
    "outside": (lambda tp, fp, fn, tn: fp, r"is 2 for tp=0, fp=2.*not in \[0, 1\]; scale"),
    "negative": (lambda tp, fp, fn, tn: -tp, r"not in \[0, 1\]"),
    "not vectorised": (
        lambda tp, fp, fn, tn: 1.0 if tp > 1 else 0.0,
        "cannot take arrays.*np.where",
    ),
    "by math": (lambda tp, fp, fn, tn: math.sqrt(tp), "cannot take arrays.*numpy's functions"),
    "one number": (lambda tp, fp, fn, tn: 0.5, r"shape \(\).*one loss per table"),
    "other arguments": (lambda tp: tp, "loss\\(tp, fp, fn, tn\\)"),
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("bad", BAD_LOSSES)
def test_losses_that_are_none_are_refused(bad):
    loss, message = BAD_LOSSES[bad]
    with pytest.raises(ValueError, match=f"measure=.*{message}"):
        TableRisk(np.array([1.0, 1.0, -1.0, -1.0, -1.0]), loss)


# -- errors and digests ---------------------------------------------------------------


def test_one_class_is_refused(measure):
    for label, missing in ((1.0, "no negative rows"), (-1.0, "no positive rows")):
        with pytest.raises(ValueError, match=missing):
            measure.risk(np.full(4, label))
    with pytest.raises(ValueError, match="no positive rows"):
        measure.risk(np.array([1.0, -1.0, -1.0]), np.array([0, 1, 2]))


def test_digests_tell_risks_apart():
    labels = np.array([1.0, -1.0, 1.0, -1.0])
    ones = np.ones(4, int)
    different = [
        *(TableRisk(labels, name) for name in TABLE_MEASURES if name not in ("f1", "fbeta")),
        TableRisk(labels, "fbeta", beta=2.0),
        TableRisk(labels, some_loss),
        TableRisk(labels, "f1"),
        TableRisk(-labels, "f1"),
        TableRisk(labels, "f1", multiplicity=2 * ones),
        TopRisk(labels, 1),
        TopRisk(labels, 3),
        recall_at_k(labels, 1),
        TopRisk(labels),
    ]
    assert len({risk.digest() for risk in different}) == len(different)
    assert TableRisk(labels, "f1").digest() == TableRisk(labels, "f1", multiplicity=ones).digest()
    assert TopRisk(labels).digest() == recall_at_k(labels, 2).digest()  # the same function


# -- thresholds -----------------------------------------------------------------------


def quality(criterion, scores, labels, weights, threshold, k):
    """What the best threshold makes largest."""
    predicted = scores > threshold
    hits = weights[predicted & (labels > 0)].sum()
    alarms = weights[predicted & (labels < 0)].sum()
    p = weights[labels > 0].sum()
    if criterion == "error":
        return -(alarms + p - hits)
    if criterion == "f1":
        return 0.0 if hits == 0 else 2.0 * hits / (p + hits + alarms)
    count = hits + alarms
    if count == 0:
        return -math.inf
    return count if count <= k else -count


@pytest.mark.parametrize("criterion", ["error", "top_k"])
@settings(max_examples=150)
@given(seed=SEEDS, kind=KINDS, rows=st.integers(1, 12))
def test_no_threshold_is_better(criterion, seed, kind, rows):
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1.0, 1.0], rows)
    scores = draw_scores(rng, rows, kind)
    weights = rng.integers(0, 4, rows).astype(float)
    weights[0] = 1.0
    k = int(rng.integers(1, 2 * rows)) if criterion == "top_k" else None
    found = best_threshold(scores, labels, weights, k)
    assert np.isfinite(found)
    reached = quality(criterion, scores, labels, weights, found, k)
    for level in [*scores, scores.min() - 1.0 - 1e-6 * abs(scores.min())]:
        assert reached >= quality(criterion, scores, labels, weights, level, k)
    # Rows of weight 0 are as if they were not there.
    kept = weights > 0
    again = best_threshold(scores[kept], labels[kept], weights[kept], k)
    assert again == found
    rows = np.repeat(np.arange(rows), weights.astype(int))
    assert best_threshold(scores[rows], labels[rows], np.ones(len(rows)), k) == found


def threshold(scores, labels, k=None):
    return best_threshold(scores, labels, np.ones(len(scores)), k)


def test_threshold_lies_midway():
    scores, labels = np.array([3.0, 1.0, -1.0, -2.0]), np.array([1.0, 1.0, -1.0, -1.0])
    for k in (None, 2):
        assert threshold(scores, labels, k) == 0.0
    assert threshold(scores, labels, 3) == -1.5
    assert threshold(scores, labels, 1) == 2.0


def test_threshold_outside_all_scores():
    scores = np.array([3.0, 1.0, -1.0, -2.0])
    assert threshold(scores, np.ones(4)) == -2.5
    assert threshold(scores, -np.ones(4)) == 4.0
    assert threshold(np.array([7.0]), np.array([1.0])) == 6.5
    assert threshold(np.array([7.0]), np.array([-1.0])) == 7.5
    assert threshold(np.array([1e300]), np.array([1.0])) < 1e300


def test_ties_are_never_parted():
    scores, labels = np.array([2.0, 1.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    assert threshold(scores, labels, 2) == 1.5
    assert threshold(scores, labels, 3) == 1.5
    assert threshold(scores, labels, 4) == 0.5
    # Three rows share the highest score: three rather than none.
    assert threshold(scores[1:], labels[1:], 1) == 0.5


def test_neighbouring_numbers_are_told_apart():
    low = 1.0
    high = np.nextafter(low, 2.0)
    for a, b in ((low, high), (-high, -low), (0.0, 5e-324)):
        found = threshold(np.array([a, b]), np.array([-1.0, 1.0]))
        assert a <= found < b
