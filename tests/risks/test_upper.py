"""Upper bounds on the risk of scores that are known up to an error: exact arithmetic is below."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from cutplane.exec import SerialExecutor
from cutplane.losses import LOSSES, Logistic, SquaredHinge
from cutplane.risks import (
    CrammerSingerRisk,
    F1Risk,
    LossRisk,
    PairRisk,
    Targets,
    TopRisk,
)

SCALES = [1e-3, 1.0, 1e6]


def exact_loss(risk, row: list[Fraction], label) -> mpmath.mpf:
    """The loss of a row, with 60 digits."""
    s = [mpmath.mpf(v.numerator) / v.denominator for v in row]
    if isinstance(risk, CrammerSingerRisk):
        return max((c != label) + v - s[label] for c, v in enumerate(s))
    z = int(label) * s[0]
    if isinstance(risk.loss, Logistic):
        return mpmath.log1p(mpmath.exp(-z))
    loss = max(mpmath.mpf(0), 1 - z)
    return loss**2 if isinstance(risk.loss, SquaredHinge) else loss


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("digits", ["one number", "two numbers"])
def test_the_worst_scores_within_the_error_are_below(name, scale, digits):
    check_upper(LossRisk(LOSSES[name]()), scale, digits, None)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("digits", ["one number", "two numbers"])
def test_the_worst_scores_of_classes_are_below(scale, digits):
    check_upper(CrammerSingerRisk(4), scale, digits, 4)


def check_upper(risk, scale, digits, classes):
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
        0.0 if digits == "one number" else low.reshape(shape),
        error.reshape(shape),
        Targets.make(labels, weights),
    )
    exact = worst = mpmath.mpf(0)
    for h, small, e, label, weight in zip(high, low, error, labels, weights, strict=True):
        middle = [Fraction(a) + Fraction(b) for a, b in zip(h, small, strict=True)]
        own = [c == label for c in range(classes)] if classes else [label > 0]
        bad = [
            m - Fraction(d) if o else m + Fraction(d)
            for m, d, o in zip(middle, e, own, strict=True)
        ]
        exact += mpmath.mpf(weight) * exact_loss(risk, middle, label)
        worst += mpmath.mpf(weight) * exact_loss(risk, bad, label)
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
        "f1": lambda: F1Risk(labels),
        "top": lambda: TopRisk(labels, 7),
    }[name]()
    scores, error = scale * rng.normal(size=rows), 1e-3 * scale
    coef = np.empty(rows)
    here, offset = risk.evaluate(scores, coef, SerialExecutor())
    above = risk.upper(scores, coef, here, offset, np.full(rows, error))
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
    risk, coef = PairRisk(targets), np.empty(5)
    value, offset = risk.evaluate(scores, coef, SerialExecutor())
    exact = (0.5 + (1.0 - (1.2 - 0.5))) / 8
    assert exact <= risk.upper(scores, coef, value, offset, errors) <= exact + 1e-11
    errors[1] = 1e-3
    assert risk.upper(scores, coef, value, offset, errors) >= exact + 1e-3
