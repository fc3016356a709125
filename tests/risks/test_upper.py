"""Upper bounds on the risk of scores that are known up to an error: exact arithmetic is below."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from cutplane.exec import SerialExecutor
from cutplane.losses import LOSSES
from cutplane.risks import LossRisk, Targets
from cutplane.risks.measures import TableRisk, TopRisk
from cutplane.risks.multiclass import CrammerSingerRisk, MultinomialRisk
from cutplane.risks.pairs import PairRisk

SCALES = [1e-3, 1.0, 1e6]


class Exact:
    """The functions that formulas of losses are made of, with 60 digits."""

    abs = staticmethod(abs)

    @staticmethod
    def pos(t: mpmath.mpf) -> mpmath.mpf:
        return max(mpmath.mpf(0), t)

    @staticmethod
    def logistic(t: mpmath.mpf) -> mpmath.mpf:
        return mpmath.log1p(mpmath.exp(t))

    @staticmethod
    def huber(t: mpmath.mpf, M: float) -> mpmath.mpf:
        return t**2 if abs(t) <= M else M * (2 * abs(t) - M)


def exact_loss(risk, row: list[Fraction], label, formula) -> mpmath.mpf:
    """The loss of a row, with 60 digits."""
    s = [mpmath.mpf(v.numerator) / v.denominator for v in row]
    if isinstance(risk, CrammerSingerRisk):
        return max((c != label) + v - s[label] for c, v in enumerate(s))
    if isinstance(risk, MultinomialRisk):
        return mpmath.log(sum(mpmath.exp(v - s[label]) for v in s))
    y = mpmath.mpf(float(label))
    return formula(s[0] - y if risk.loss.regression else y * s[0], Exact)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("digits", ["one number", "two numbers"])
def test_the_worst_scores_within_the_error_are_below(name, scale, digits, formulas):
    check_upper(LossRisk(LOSSES[name]()), scale, digits, None, formulas[name])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("digits", ["one number", "two numbers"])
@pytest.mark.parametrize("risk", [CrammerSingerRisk(4), MultinomialRisk(4)], ids=repr)
def test_the_worst_scores_of_classes_are_below(risk, scale, digits):
    check_upper(risk, scale, digits, 4)


def check_upper(risk, scale, digits, classes, formula=None):
    mpmath.mp.dps = 60
    rng = np.random.default_rng(3)
    rows = 40
    labels = rng.integers(0, classes, rows) if classes else rng.choice([-1.0, 1.0], rows)
    weights = rng.uniform(0.0, 2.0, rows)
    high = scale * rng.normal(size=(rows, classes or 1))
    if classes is None:
        high[:20] = labels[:20, None] * (1.0 + 1e-15 * rng.integers(-3, 4, (20, 1)))  # at the kink
    low = 1e-17 * high * rng.uniform(-1, 1, high.shape) if digits == "two numbers" else 0.0 * high
    error = 1e-12 * scale * rng.random(high.shape) if digits == "one number" else 1e-28 * abs(high)
    shape = high.shape if classes else (rows,)
    upper = risk.upper(
        high.reshape(shape),
        low.reshape(shape),
        error.reshape(shape),
        0.0,
        Targets.make(labels, weights),
    )
    exact = worst = mpmath.mpf(0)
    for h, small, e, label, weight in zip(high, low, error, labels, weights, strict=True):
        middle = [Fraction(a) + Fraction(b) for a, b in zip(h, small, strict=True)]
        own = [c == label for c in range(classes)] if classes else [label > 0]
        if classes is None and risk.loss.regression:  # farther from the target
            own = [middle[0] < label]
        bad = [
            m - Fraction(d) if o else m + Fraction(d)
            for m, d, o in zip(middle, e, own, strict=True)
        ]
        exact += mpmath.mpf(weight) * exact_loss(risk, middle, label, formula)
        worst += mpmath.mpf(weight) * exact_loss(risk, bad, label, formula)
    assert upper >= worst >= exact
    assert upper - worst <= 1e-13 * worst + 2.5 * (worst - exact)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["pairs", "weighted queries", "f1", "top"])
def test_risks_of_all_scores_move_no_faster(name, scale):
    rng = np.random.default_rng(5)
    rows = 60
    labels = np.where(rng.random(rows) < 0.3, 1.0, -1.0)
    queries, weights = rng.integers(0, 5, rows), rng.uniform(0.1, 3.0, rows)
    risk = {
        "pairs": lambda: PairRisk(rng.integers(0, 5, rows).astype(float)),
        "weighted queries": lambda: PairRisk(
            rng.normal(size=rows), queries=queries, weights=weights, weighting="queries"
        ),
        "f1": lambda: TableRisk(labels, "f1"),
        "top": lambda: TopRisk(labels, 7),
    }[name]()
    scores, error = scale * rng.normal(size=rows), 1e-3 * scale
    coef = np.empty(rows)
    here, _ = risk.evaluate(scores, coef, SerialExecutor())
    above = risk.upper(scores, None, np.full(rows, error), SerialExecutor())
    assert above <= here + 2.1 * error
    sign = np.where(coef > 0.0, 1.0, -1.0)
    for way in (sign, rng.choice([-1.0, 1.0], rows)):
        there, _ = risk.evaluate(scores + error * way, coef, SerialExecutor())
        assert there <= above


def test_rows_in_no_violated_pair_do_not_matter():
    """Their scores may be as large, and as rough, as they like."""
    targets = np.array([0.0, 0.0, 1.0, 2.0, 2.0])
    scores = np.array([-1e12, 0.0, 0.5, 1.2, 1e12])
    errors = np.array([1e-4, 1e-12, 1e-12, 1e-12, 1e-4])
    risk = PairRisk(targets)
    exact = (0.5 + (1.0 - (1.2 - 0.5))) / 8
    assert exact <= risk.upper(scores, None, errors, SerialExecutor()) <= exact + 1e-11
    errors[1] = 1e-3
    assert risk.upper(scores, None, errors, SerialExecutor()) >= exact + 1e-3 / 8  # one pair of 8


def exact_root(x: Fraction) -> Fraction:
    """To forty digits."""
    return Fraction(math.isqrt(x.numerator * 10**80 // x.denominator), 10**40)


EXACT_LOSSES = {
    "f1": lambda a, b, p, n: 1 - Fraction(2 * a, p + a + b),
    "fbeta 2.0": lambda a, b, p, n: 1 - Fraction(5 * a, 4 * p + a + b),
    "jaccard": lambda a, b, p, n: 1 - Fraction(a, p + b),
    "balanced_error": lambda a, b, p, n: 1 - Fraction(a, 2 * p) - Fraction(n - b, 2 * n),
    "g_mean": lambda a, b, p, n: 1 - exact_root(Fraction(a * (n - b), p * n)),
    "absolute_error": lambda a, b, p, n: Fraction(abs(a + b - p), p + n),
}


def exact_risk(risk, s: list[Fraction], labels, weights) -> Fraction:
    """By all pairs, or all tables of predicted rows, in fractions."""
    if isinstance(risk, PairRisk):
        pairs = [(i, j) for i in range(len(s)) for j in range(len(s)) if labels[i] > labels[j]]
        w = [Fraction(v) for v in weights]
        total = sum(w[i] * w[j] for i, j in pairs)
        return sum(w[i] * w[j] * max(0, 1 - s[i] + s[j]) for i, j in pairs) / total
    ups = sorted((v for v, y in zip(s, labels, strict=True) if y > 0), reverse=True)
    downs = sorted((v for v, y in zip(s, labels, strict=True) if y < 0), reverse=True)
    p, m = len(ups), len(s)
    best = Fraction(0)
    for a in range(p + 1):
        for b in range(len(downs) + 1):
            if isinstance(risk, TableRisk):
                rate, loss = Fraction(1, m), EXACT_LOSSES[risk.tables.measure.name](a, b, p, m - p)
                change = rate * (sum(downs[:b]) - sum(ups[a:]))
            else:
                if a + b != risk.k or a > min(risk.k, p):
                    continue
                e = min(risk.k, p) - a
                loss = 1 - Fraction(a, p if risk.recall else risk.k)
                change = Fraction(0)
                if e:
                    change = Fraction(e, m) * (sum(downs[:b]) / b - sum(ups[a:]) / (p - a))
            best = max(best, loss + change)
    return best


def exact_case(name, rng, rows):
    labels = np.where(np.arange(rows) % 3 == 0, 1.0, -1.0)
    ones, weights = np.ones(rows), rng.uniform(0.1, 3.0, rows)
    levels = rng.permutation(np.arange(rows) % 4).astype(float)
    heavy = np.where(levels == 3.0, 1e6 * weights, weights)
    return {
        "pairs": lambda: (PairRisk(levels), levels, ones),
        "weighted pairs": lambda: (PairRisk(levels, weights=weights), levels, weights),
        "a heavy level": lambda: (PairRisk(levels, weights=heavy), levels, heavy),
        "weighted classes": lambda: (PairRisk(labels, weights=weights), labels, weights),
        "f1": lambda: (TableRisk(labels, "f1"), labels, ones),
        "f2": lambda: (TableRisk(labels, "fbeta", beta=2.0), labels, ones),
        "jaccard": lambda: (TableRisk(labels, "jaccard"), labels, ones),
        "balanced error": lambda: (TableRisk(labels, "balanced_error"), labels, ones),
        "g-mean": lambda: (TableRisk(labels, "g_mean"), labels, ones),
        "absolute error": lambda: (TableRisk(labels, "absolute_error"), labels, ones),
        "precision, few": lambda: (TopRisk(labels, 3), labels, ones),
        "precision, many": lambda: (TopRisk(labels, 14), labels, ones),
        "recall, all": lambda: (TopRisk(labels, rows, recall=True), labels, ones),
        "break even": lambda: (TopRisk(labels), labels, ones),
    }[name]()


@pytest.mark.parametrize("shape", ["spread", "at the margin", "nearly right", "one far away"])
@pytest.mark.parametrize(
    "name",
    [
        "pairs",
        "weighted pairs",
        "a heavy level",
        "weighted classes",
        "f1",
        "f2",
        "jaccard",
        "balanced error",
        "g-mean",
        "absolute error",
        "precision, few",
        "precision, many",
        "recall, all",
        "break even",
    ],
)
def test_risks_of_all_scores_are_above_exact_arithmetic_and_near(name, shape):
    """In one number and in two; the second adds no more than a few roundings of the risk."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = 20
        risk, labels, weights = exact_case(name, rng, rows)
        high = 10.0 * rng.normal(size=rows)
        if shape == "at the margin":
            high = rng.integers(-2, 3, rows) + 0.1
        elif shape == "nearly right":
            size = 1.0 if isinstance(risk, PairRisk) else 30.0
            high = size * labels * (1.0 + 1e-9 * rng.normal(size=rows))
        elif shape == "one far away":
            high[rng.integers(rows)] = 1e9
        low = 2.0**-54 * np.abs(high) * rng.uniform(-1, 1, rows)
        errors = 1e-14 * np.abs(high) * rng.random(rows)
        exact = exact_risk(risk, [Fraction(v) for v in high], labels, weights)
        assert Fraction(risk.upper(high, None, 0.0 * errors, SerialExecutor())) >= exact
        moved = [
            Fraction(v) + Fraction(d) * int(sign)
            for v, d, sign in zip(high, errors, rng.choice([-1, 1], rows), strict=True)
        ]
        worst = exact_risk(risk, moved, labels, weights)
        assert Fraction(risk.upper(high, None, errors, SerialExecutor())) >= worst
        both = [Fraction(v) + Fraction(d) for v, d in zip(high, low, strict=True)]
        exact = exact_risk(risk, both, labels, weights)
        upper = Fraction(risk.upper(high, low, 0.0 * errors, SerialExecutor()))
        # A pair that is at the margin may count, or not, and a weight is rounded.
        largest = 4e9 if shape == "one far away" else 100.0
        kinks = largest * 2e-16 if isinstance(risk, PairRisk) and shape != "spread" else 0.0
        sums = 0.0 if (weights == 1.0).all() else 1e-14 * largest
        rounding = Fraction(1e-27 * largest + kinks + sums)
        assert exact <= upper <= exact * (1 + Fraction(2e-14)) + rounding
