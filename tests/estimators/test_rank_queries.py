"""RankSVM: queries, targets, weights, its own score, and what it refuses."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest
from ranking_reference import all_pairs, assert_certified, make_data

from cutplane import RankSVM, open_dataset, write_dataset
from cutplane.metrics import swapped_pairs

DATA = make_data()
WEIGHTINGS = ["pairs", "queries"]


def fit(X, y, qid=None, weights=None, **parameters) -> RankSVM:
    return RankSVM(0.25, **{"tol": 1e-8, **parameters}).fit(X, y, qid=qid, sample_weight=weights)


def same(one: RankSVM, two: RankSVM) -> None:
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=2e-8)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-3 * np.abs(two.coef_).max())


# -- queries --------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_order_of_the_rows_does_not_matter(weighting):
    plain = fit(DATA.X, DATA.levels, DATA.qid, weighting=weighting)
    for order in (np.argsort(DATA.qid, kind="stable"), np.random.default_rng(0).permutation(200)):
        moved = fit(DATA.X[order], DATA.levels[order], DATA.qid[order], weighting=weighting)
        same(moved, plain)
        assert moved.n_pairs_ == plain.n_pairs_


@pytest.mark.parametrize(
    "rename",
    [
        lambda qid: qid.astype(np.int32),
        lambda qid: qid.astype(np.uint64) + np.uint64(2**63),
        lambda qid: qid.astype(float),
        lambda qid: qid * 10**15 + 5,
        lambda qid: (qid.max() - qid).tolist(),
    ],
    ids=["int32", "uint64", "whole floats", "huge", "list, reversed"],
)
def test_only_which_rows_share_a_query_matters(rename):
    plain = fit(DATA.X, DATA.levels, DATA.qid)
    other = fit(DATA.X, DATA.levels, rename(DATA.qid))
    same(other, plain)
    assert other.n_queries_ == plain.n_queries_ == len(np.unique(DATA.qid))


def test_counts():
    qid = np.repeat([4, 9, 2, 7], [5, 1, 3, 4])
    y = np.array([1, 0, 2, 0, 1, 3, 1, 1, 1, 0, 0, 0, 5])
    X = np.random.default_rng(0).normal(size=(13, 2))
    for weighting in WEIGHTINGS:
        model = fit(X, y, qid, weighting=weighting)
        pairs = all_pairs(y, qid)
        assert model.n_pairs_ == len(pairs.share) == 8 + 3
        assert model.n_queries_ == 4
        assert model.n_idle_queries_ == 2  # one row; all ties
        assert_certified(model, X, y, qid)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_idle_queries_contribute_nothing(weighting, caplog):
    """A query of one row, or with ties only, is counted and logged, and makes no 0/0."""
    rng = np.random.default_rng(1)
    plain = fit(DATA.X, DATA.levels, DATA.qid, weighting=weighting)
    idle = plain.n_idle_queries_
    X = np.vstack([DATA.X, 100.0 * rng.normal(size=(6, 6))])
    y = np.append(DATA.levels, [4, 2, 2, 2, 0, 3])
    qid = np.append(DATA.qid, [900, 901, 901, 901, 902, 903])
    with caplog.at_level(logging.INFO, logger="cutplane"):
        model = fit(X, y, qid, weighting=weighting)
    same(model, plain)
    assert model.n_idle_queries_ == idle + 4
    assert model.n_queries_ == plain.n_queries_ + 4
    assert model.n_pairs_ == plain.n_pairs_
    assert f"{idle + 4} of {model.n_queries_} queries have no pair" in caplog.text


def test_rows_without_weight_make_queries_idle():
    qid, y = np.repeat([0, 1], 3), np.array([0, 1, 2, 0, 0, 1])
    X = np.random.default_rng(0).normal(size=(6, 2))
    model = fit(X, y, qid, [1, 1, 1, 1, 1, 0])
    assert (model.n_pairs_, model.n_queries_, model.n_idle_queries_) == (3, 2, 1)
    same(model, fit(X[:3], y[:3]))


def test_pairs_of_different_queries_are_not_compared():
    """Within each query the feature falls with the target, across them it rises."""
    X = np.array([[0.0], [-1.0], [10.0], [9.0], [20.0], [19.0]])
    y, qid = np.array([0, 1, 2, 3, 4, 5]), np.array([1, 1, 2, 2, 3, 3])
    assert RankSVM().fit(X, y, qid=qid).coef_[0, 0] < 0.0
    assert RankSVM().fit(X, y).coef_[0, 0] > 0.0


def test_no_qid_is_said_once(tmp_path):
    """A constant qid, and queries of a data set, are no reason to warn."""
    X, y = DATA.X, DATA.levels
    with pytest.warns(UserWarning, match=r"all rows are ranked as one query.*qid=") as record:
        plain = RankSVM().fit(X, y)
    assert [w.filename for w in record] == [__file__]
    write_dataset(tmp_path / "none.cut", [(X, y)])
    with pytest.warns(UserWarning, match="one query"):
        RankSVM().fit(open_dataset(tmp_path / "none.cut"))
    one = np.zeros(len(y), dtype=int)
    write_dataset(tmp_path / "one.cut", [(X, y, one)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(RankSVM().fit(X, y, qid=one).coef_, plain.coef_)
        RankSVM().fit(open_dataset(tmp_path / "one.cut"))


def test_weighting_by_query_gives_small_queries_their_say():
    """Nine rows say one thing, two rows the other: by pairs the many win, by queries it is even."""
    X = np.concatenate([np.arange(9.0), [1.0, 0.0]])[:, None] * 0.01
    y = np.concatenate([np.arange(9), [0, 1]])
    qid = np.repeat([0, 1], [9, 2])
    by_pairs = fit(X, y, qid, weighting="pairs")
    by_queries = fit(X, y, qid, weighting="queries")
    assert by_pairs.coef_[0, 0] > by_queries.coef_[0, 0]
    lone = all_pairs(y, qid, None, "queries")
    assert lone.share[-1] == pytest.approx(0.5)
    assert_certified(by_queries, X, y, qid)


# -- weights --------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("target", ["levels", "values"])
def test_weights_are_repetition(weighting, target):
    counts = np.random.default_rng(2).integers(0, 4, 200)
    y = getattr(DATA, target)
    rows = np.repeat(np.arange(200), counts)
    weighted = fit(DATA.X, y, DATA.qid, counts, weighting=weighting)
    repeated = fit(DATA.X[rows], y[rows], DATA.qid[rows], weighting=weighting)
    same(weighted, repeated)
    assert_certified(weighted, DATA.X, y, DATA.qid, counts)


def test_equal_weights_are_factors_on_the_penalty():
    plain = fit(DATA.X, DATA.levels, DATA.qid)
    weighted = RankSVM(4 * plain.C, tol=1e-8)
    weighted.fit(DATA.X, DATA.levels, qid=DATA.qid, sample_weight=np.full(200, 0.25))
    same(weighted, plain)


# -- targets --------------------------------------------------------------------------


def test_real_targets_with_every_row_a_level_of_its_own():
    model = fit(DATA.X, DATA.values)
    assert model.n_pairs_ == 200 * 199 // 2
    assert_certified(model, DATA.X, DATA.values)


@pytest.mark.parametrize(
    "y",
    [
        DATA.levels.astype(np.int8),
        DATA.levels.astype(bool).astype(int),
        DATA.levels - 2,
        DATA.levels.astype(np.float32) / 3,
        [float(level) for level in DATA.levels],
    ],
    ids=["int8", "0 1", "negative", "float32", "list"],
)
def test_targets_of_any_kind(y):
    assert_certified(fit(DATA.X, y, DATA.qid), DATA.X, np.asarray(y), DATA.qid)


# -- score and predict ----------------------------------------------------------------


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_score_is_the_share_of_pairs_in_order(weighting):
    model = RankSVM(0.005, weighting=weighting).fit(DATA.X, DATA.levels, qid=DATA.qid)
    other = make_data(150, seed=0)  # the first rows of other noise
    weights = np.random.default_rng(0).random(150)
    for given in (None, weights):
        pairs = all_pairs(other.levels, other.qid, given, weighting)
        expected = 1.0 - pairs.swapped(other.X @ model.coef_[0])
        score = model.score(other.X, other.levels, qid=other.qid, sample_weight=given)
        assert score == pytest.approx(expected, abs=1e-12)
        swapped = swapped_pairs(
            other.levels,
            model.predict(other.X),
            qid=other.qid,
            average=weighting,
            sample_weight=given,
        )
        assert score == 1.0 - swapped


def test_ties_count_one_half():
    model = RankSVM().fit(DATA.X, DATA.values)
    assert model.score(np.zeros((4, 6)), [0, 1, 2, 3]) == 0.5


def test_predictions_are_scores():
    model = RankSVM().fit(DATA.X, DATA.values)
    np.testing.assert_allclose(model.predict(DATA.X), DATA.X @ model.coef_[0], rtol=1e-9)
    assert model.intercept_.tolist() == [0.0]
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "decision_function")


# -- refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (["a"] * 200, "integers ≥ 0, got .*'a'.* in row 0"),
        (np.where(np.arange(200) == 7, -1, 1), "integers ≥ 0, got .*-1.* in row 7"),
        (np.where(np.arange(200) == 9, 2.5, 1.0), r"integers ≥ 0, got .*2\.5.* in row 9"),
        (np.where(np.arange(200) == 3, np.nan, 1.0), "integers ≥ 0, got .*nan.* in row 3"),
        (np.where(np.arange(200) == 3, np.inf, 1.0), "integers ≥ 0, got .*inf.* in row 3"),
        ([None] * 200, "integers ≥ 0, got None in row 0"),
        (np.zeros(199, int), r"one number per row, 200; got shape \(199,\)"),
        (np.zeros((200, 1), int), r"one number per row, 200; got shape \(200, 1\)"),
        (3, r"one number per row, 200; got shape \(\)"),
        ([], r"one number per row, 200; got shape \(0,\)"),
    ],
    ids=["text", "negative", "fraction", "nan", "inf", "none", "short", "column", "one", "empty"],
)
def test_bad_queries_are_named(bad, message):
    with pytest.raises(ValueError, match=f"qid must hold {message}"):
        RankSVM().fit(DATA.X, DATA.levels, qid=bad)
    model = RankSVM().fit(DATA.X, DATA.levels)
    with pytest.raises(ValueError, match=f"qid must hold {message}"):
        model.score(DATA.X, DATA.levels, qid=bad)


def test_no_comparable_pair():
    with pytest.raises(ValueError, match=r"no pair.*no two rows .*different targets"):
        RankSVM().fit(DATA.X, np.ones(200))
    with pytest.raises(ValueError, match=r"no pair.*in the same query.*different targets"):
        RankSVM().fit(DATA.X, DATA.levels, qid=np.arange(200))
    with pytest.raises(ValueError, match=r"no pair.*positive weight.*different targets"):
        RankSVM().fit(DATA.X, DATA.levels, sample_weight=(DATA.levels == 2).astype(float))
    with pytest.raises(ValueError, match="no comparable pair"):
        RankSVM().fit(DATA.X, DATA.levels).score(DATA.X, np.ones(200))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_targets_must_be_finite(bad):
    y = DATA.values.copy()
    y[5] = bad
    with pytest.raises(ValueError, match=r"(?i)nan|infin"):
        RankSVM().fit(DATA.X, y)


def test_targets_must_be_numbers():
    with pytest.raises(ValueError, match="y must hold numbers, got 'low'"):
        RankSVM().fit(DATA.X, np.array(["low", "high"])[DATA.labels])


def test_one_row_is_too_few():
    with pytest.raises(ValueError, match="minimum of 2"):
        RankSVM().fit(DATA.X[:1], DATA.levels[:1])
