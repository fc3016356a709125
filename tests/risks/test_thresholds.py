"""Thresholds between ranks against all monotone predictions, and against a plain table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutplane.risks.thresholds import fit_thresholds

SEEDS = st.integers(0, 2**32 - 1)
CRITERIA = st.sampled_from(["absolute", "zero_one"])


def costs(predicted, ranks, criterion):
    error = np.abs(predicted - ranks)
    return error if criterion == "absolute" else (error > 0).astype(float)


def predict(scores, thresholds):
    return (np.asarray(scores)[:, None] > thresholds).sum(axis=1)


def fitted_error(scores, ranks, weights, n_ranks, criterion):
    """The error of the fitted thresholds, after what they promise was checked."""
    thresholds = fit_thresholds(scores, ranks, weights, n_ranks, criterion)
    assert thresholds.shape == (n_ranks - 1,)
    assert np.all(np.isfinite(thresholds))
    assert np.all(np.diff(thresholds) >= 0.0)
    return weights @ costs(predict(scores, thresholds), ranks, criterion)


def least_error(scores, ranks, weights, n_ranks, criterion):
    """The least error of all non-falling assignments of ranks to distinct scores."""
    distinct, group = np.unique(scores, return_inverse=True)
    chains = itertools.combinations_with_replacement(range(n_ranks), len(distinct))
    return min(weights @ costs(np.array(chain)[group], ranks, criterion) for chain in chains)


def table_error(scores, ranks, weights, n_ranks, criterion):
    """By the table of groups × ranks: least error so far that ends with rank ≤ r."""
    distinct, group = np.unique(scores, return_inverse=True)
    least = np.zeros(n_ranks)
    for g in range(len(distinct)):
        rows = group == g
        error = costs(np.arange(n_ranks)[:, None], ranks[rows], criterion) @ weights[rows]
        least = np.minimum.accumulate(least + error)
    return least[-1]


def draw(seed, rows, n_ranks, distinct):
    """Scores with ties, ranks that follow them loosely, weights 0..3."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, distinct, rows) / 4.0
    noisy = scores + rng.choice([0.0, 0.3, 3.0]) * rng.normal(size=rows)
    ranks = np.clip(np.floor(noisy * 4.0 * n_ranks / distinct), 0, n_ranks - 1).astype(int)
    weights = rng.integers(0, 4, rows).astype(float)
    weights[rng.integers(rows)] = 1.0  # one row at least counts
    return scores, ranks, weights


@given(SEEDS, st.integers(1, 7), st.integers(1, 4), st.integers(1, 8), CRITERIA)
def test_no_monotone_prediction_is_better(seed, rows, n_ranks, distinct, criterion):
    scores, ranks, weights = draw(seed, rows, n_ranks, distinct)
    error = fitted_error(scores, ranks, weights, n_ranks, criterion)
    assert error == least_error(scores, ranks, weights, n_ranks, criterion)


@given(SEEDS, st.integers(1, 7), CRITERIA)
def test_as_many_ranks_as_rows(seed, rows, criterion):
    rng = np.random.default_rng(seed)
    scores, ranks = rng.integers(0, 2 * rows, rows) - 3.0, rng.permutation(rows)
    weights = np.ones(rows)
    error = fitted_error(scores, ranks, weights, rows, criterion)
    assert error == least_error(scores, ranks, weights, rows, criterion)


@pytest.mark.parametrize("criterion", ["absolute", "zero_one"])
@pytest.mark.parametrize("n_ranks", [2, 5, 60, 300])
@pytest.mark.parametrize("distinct", [7, 100, 10_000])
def test_agrees_with_the_table(n_ranks, distinct, criterion):
    scores, ranks, weights = draw(n_ranks + distinct, 300, n_ranks, distinct)
    error = fitted_error(scores, ranks, weights, n_ranks, criterion)
    assert error == table_error(scores, ranks, weights, n_ranks, criterion)


@given(SEEDS, CRITERIA)
def test_real_weights(seed, criterion):
    scores, ranks, _ = draw(seed, 60, 8, 40)
    weights = np.random.default_rng(seed).exponential(size=60)
    error = fitted_error(scores, ranks, weights, 8, criterion)
    assert error == pytest.approx(table_error(scores, ranks, weights, 8, criterion), rel=1e-12)


@given(SEEDS, CRITERIA)
def test_the_order_of_rows_and_repetition_for_weight_change_nothing(seed, criterion):
    scores, ranks, weights = draw(seed, 30, 5, 12)
    thresholds = fit_thresholds(scores, ranks, weights, 5, criterion)
    order = np.random.default_rng(seed).permutation(30)
    shuffled = fit_thresholds(scores[order], ranks[order], weights[order], 5, criterion)
    np.testing.assert_array_equal(shuffled, thresholds)
    if weights.any():
        often = np.repeat(np.arange(30), weights.astype(int))
        once = np.ones(len(often))
        repeated = fit_thresholds(scores[often], ranks[often], once, 5, criterion)
        error = weights @ costs(predict(scores, repeated), ranks, criterion)
        assert error == fitted_error(scores, ranks, weights, 5, criterion)


@given(SEEDS)
def test_absolute_thresholds_are_best_for_the_values_of_the_ranks(seed):
    """Whatever increasing values stand behind the ranks."""
    scores, ranks, weights = draw(seed, 7, 4, 6)
    values = np.cumsum(np.random.default_rng(seed).integers(1, 9, 4))
    predicted = predict(scores, fit_thresholds(scores, ranks, weights, 4, "absolute"))
    distinct, group = np.unique(scores, return_inverse=True)
    chains = itertools.combinations_with_replacement(range(4), len(distinct))
    least = min(weights @ np.abs(values[np.array(c)[group]] - values[ranks]) for c in chains)
    assert weights @ np.abs(values[predicted] - values[ranks]) == least


@pytest.mark.parametrize("criterion", ["absolute", "zero_one"])
def test_thresholds_lie_half_way(criterion):
    scores, ranks = np.array([3.0, 0.0, 1.0, 7.0]), np.array([2, 0, 0, 4])
    thresholds = fit_thresholds(scores, ranks, np.ones(4), 6, criterion)
    # ranks 1 and 3 are predicted nowhere, rank 5 lies above all scores
    np.testing.assert_allclose(thresholds, [2.0, 2.0, 5.0, 5.0, 7.0 + 0.5 * 7.0 / 3.0])
    lower = fit_thresholds(scores, ranks + 1, np.ones(4), 6, criterion)
    np.testing.assert_allclose(lower, [-0.5 * 7.0 / 3.0, 2.0, 2.0, 5.0, 5.0])


def test_missed_rows_between_hits_get_the_nearer_rank():
    """Where the 0/1 error leaves a choice, the absolute error decides."""
    scores = np.arange(9.0)
    ranks = np.array([0, 0, 0, 9, 1, 2, 8, 9, 9])
    weights = np.array([5.0, 5.0, 5.0, 1.0, 1.0, 1.0, 1.0, 5.0, 5.0])
    predicted = predict(scores, fit_thresholds(scores, ranks, weights, 10, "zero_one"))
    np.testing.assert_array_equal(predicted, [0, 0, 0, 1, 1, 2, 8, 9, 9])


@pytest.mark.parametrize("criterion", ["absolute", "zero_one"])
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e300])
def test_scores_that_are_neighbouring_floats_are_told_apart(scale, criterion):
    start = np.array([-scale, 0.0, scale])
    scores = np.sort(np.concatenate([start, np.nextafter(start, np.inf)]))
    scores = np.unique(scores)
    ranks = np.arange(len(scores))
    assert fitted_error(scores, ranks, np.ones(len(scores)), len(scores), criterion) == 0.0


@pytest.mark.parametrize("criterion", ["absolute", "zero_one"])
def test_one_score_for_all_rows(criterion):
    ranks = np.array([0, 1, 1, 2])
    assert fitted_error(np.full(4, 2.5), ranks, np.ones(4), 3, criterion) == 2.0
    assert fit_thresholds(np.ones(2), np.zeros(2, int), np.ones(2), 1, criterion).shape == (0,)


def test_unsigned_ranks_and_float32_scores():
    scores, ranks, weights = draw(3, 50, 5, 20)
    plain = fit_thresholds(scores, ranks, weights, 5, "zero_one")
    narrow = fit_thresholds(
        scores.astype(np.float32), ranks.astype(np.uint8), weights, 5, "zero_one"
    )
    np.testing.assert_array_equal(narrow, plain)
