"""Metrics against scikit-learn, scipy and their definitions written out."""

from __future__ import annotations

import doctest
import itertools
import math
import pickle

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as peers
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from cutplane import metrics

SEEDS = st.integers(0, 2**32 - 1)


def draw(seed, rows=12, levels=4, distinct=6, n_queries=3):
    """Targets, scores with ties, queries in mixed order and with holes in their numbers."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, levels, rows).astype(float)
    scores = rng.integers(0, distinct, rows) / 4.0 - 0.5
    return truth, scores, 3 * rng.integers(0, n_queries, rows) + 1


def split(qid, *columns):
    for query in np.unique(qid):
        yield [column[qid == query] for column in columns]


def classes(seed, **options):
    """Two classes, with at least one row of each."""
    truth, scores, _ = draw(seed, levels=2, **options)
    truth[:2] = 0.0, 1.0
    return truth, scores


# -- NDCG ---------------------------------------------------------------------


@given(SEEDS, st.sampled_from([None, 1, 3, 50]))
def test_linear_gains_agree_with_sklearn(seed, k):
    truth, scores, _ = draw(seed)
    want = peers.ndcg_score([truth], [scores], k=k)
    assert metrics.ndcg_score(truth, scores, k=k, gains="linear") == pytest.approx(want)


@given(SEEDS, st.sampled_from([None, 2]), st.sampled_from(["exponential", "linear"]))
def test_ndcg_is_the_mean_over_queries(seed, k, gains):
    truth, scores, qid = draw(seed)
    value = metrics.ndcg_score(truth, scores, qid=qid, k=k, gains=gains)
    gain = 2.0**truth - 1.0 if gains == "exponential" else truth
    parts = [
        peers.ndcg_score([g], [s], k=k) if len(g) > 1 else float(g[0] > 0.0)
        for g, s in split(qid, gain, scores)
    ]
    assert value == pytest.approx(np.mean(parts))


@pytest.mark.parametrize("k", [None, 1, 3, 4])
def test_tied_rows_count_the_mean_over_their_orders(k):
    """The expected value is the mean over all orders of the rows that respect the scores."""
    truth, scores = [0, 3, 1, 2, 0], [1.0, 2.0, 1.0, 1.0, 0.5]
    rows = range(5)
    first = 5 if k is None else k

    def dcg(order):
        return sum((2.0 ** truth[i] - 1.0) / math.log2(2 + p) for p, i in enumerate(order[:first]))

    orders = list(itertools.permutations(rows))
    respecting = [
        o for o in orders if all(scores[a] >= scores[b] for a, b in itertools.pairwise(o))
    ]
    values = np.array([dcg(o) for o in respecting]) / max(map(dcg, orders))
    assert len(values) == 6
    assert metrics.ndcg_score(truth, scores, k=k) == pytest.approx(values.mean())
    assert metrics.ndcg_score(truth, scores, k=k, ties="worst") == pytest.approx(values.min())


@given(SEEDS, st.sampled_from(["average", "worst"]))
def test_the_order_of_the_rows_does_not_matter(seed, ties):
    truth, scores, qid = draw(seed)
    order = np.random.default_rng(seed).permutation(len(truth))
    value = metrics.ndcg_score(truth, scores, qid=qid, k=3, ties=ties)
    other = metrics.ndcg_score(truth[order], scores[order], qid=qid[order], k=3, ties=ties)
    assert other == pytest.approx(value, rel=1e-14)


def test_queries_without_a_relevant_row():
    truth, scores, qid = [1, 0, 0, 0], [0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1]
    found = 1.0 / math.log2(3.0)
    assert metrics.ndcg_score(truth, scores, qid=qid) == pytest.approx(found / 2.0)
    assert metrics.ndcg_score(truth, scores, qid=qid, empty=1) == pytest.approx((1 + found) / 2.0)
    assert metrics.ndcg_score(truth, scores, qid=qid, empty="skip") == pytest.approx(found)
    with pytest.raises(ValueError, match="no relevant row"):
        metrics.ndcg_score([0, 0], [1.0, 2.0], empty="skip")


# -- pairs --------------------------------------------------------------------


def pair_counts(truth, scores, weights):
    """Wrong and comparable weight, pair by pair."""
    wrong = comparable = 0.0
    for i, j in itertools.permutations(range(len(truth)), 2):
        if truth[i] > truth[j]:
            weight = weights[i] * weights[j]
            comparable += weight
            wrong += weight * (0.5 * (scores[i] == scores[j]) + (scores[i] < scores[j]))
    return wrong, comparable


@given(SEEDS, st.booleans(), st.sampled_from(["pairs", "queries"]))
def test_swapped_pairs_pair_by_pair(seed, weighted, average):
    truth, scores, qid = draw(seed)
    weights = np.random.default_rng(seed).integers(0, 3, len(truth)).astype(float)
    truth[:2], qid[:2], weights[:2] = (0.0, 1.0), 1, 1.0
    used = weights if weighted else np.ones(len(truth))
    counts = np.array([pair_counts(*columns) for columns in split(qid, truth, scores, used)])
    wrong, comparable = counts[counts[:, 1] > 0.0].T
    want = wrong.sum() / comparable.sum() if average == "pairs" else np.mean(wrong / comparable)
    options = {"qid": qid, "average": average, "sample_weight": weights if weighted else None}
    assert metrics.swapped_pairs(truth, scores, **options) == pytest.approx(want)
    assert metrics.somers_d(truth, scores, **options) == pytest.approx(1.0 - 2.0 * want)


@given(SEEDS)
def test_two_classes_give_the_area_under_the_curve(seed):
    truth, scores = classes(seed, rows=30)
    weights = np.random.default_rng(seed).exponential(size=30)
    area = peers.roc_auc_score(truth, scores)
    weighted = peers.roc_auc_score(truth, scores, sample_weight=weights)
    assert 1.0 - metrics.swapped_pairs(truth, scores) == pytest.approx(area)
    value = 1.0 - metrics.swapped_pairs(2.0 * truth - 1.0, scores, sample_weight=weights)
    assert value == pytest.approx(weighted)


@given(SEEDS)
def test_tau_is_kendalls_without_ties_and_somers_with_them(seed):
    rng = np.random.default_rng(seed)
    truth, scores = rng.permutation(15), rng.permutation(15).astype(float)
    want = stats.kendalltau(truth, scores).statistic
    assert metrics.somers_d(truth, scores) == pytest.approx(want)
    truth, scores, _ = draw(seed, rows=20)
    want = stats.somersd(truth, scores).statistic
    assert metrics.somers_d(truth, scores) == pytest.approx(want)


def test_real_targets_and_many_pairs():
    """More pairs than 32 bits count, without listing them."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=100_000)
    scores = truth + rng.normal(size=100_000)
    want = stats.kendalltau(truth, scores).statistic
    assert metrics.somers_d(truth, scores) == pytest.approx(want, abs=1e-12)


# -- retrieval ----------------------------------------------------------------


@given(SEEDS, st.integers(1, 8))
def test_retrieval_is_the_mean_over_all_orders_of_tied_rows(seed, k):
    truth, scores = classes(seed, rows=8, distinct=3)
    order = np.argsort(-scores, kind="stable")
    blocks = [order[scores[order] == s] for s in np.unique(scores)[::-1]]
    before = np.cumsum([0, *map(len, blocks)])

    def hits(taken):
        """Positive rows among the first ``taken``: the mean over all orders of tied rows."""
        total = 0.0
        for start, block in zip(before, blocks, strict=False):
            part = min(max(taken - start, 0), len(block))
            total += np.mean([truth[list(o[:part])].sum() for o in itertools.permutations(block)])
        return total

    n_positive = int(truth.sum())
    assert metrics.precision_at_k(truth, scores, k) == pytest.approx(hits(k) / k)
    assert metrics.recall_at_k(truth, scores, k) == pytest.approx(hits(k) / n_positive)
    assert metrics.prbep(truth, scores) == pytest.approx(hits(n_positive) / n_positive)


@given(SEEDS)
def test_retrieval_without_ties_agrees_with_sklearn(seed):
    rng = np.random.default_rng(seed)
    truth, _ = classes(seed, rows=20)
    scores = rng.permutation(20).astype(float)
    for k in (1, 5, 20):
        predicted = scores >= 20 - k
        signed = 2.0 * truth - 1.0
        assert metrics.precision_at_k(truth, scores, k) == pytest.approx(
            peers.precision_score(truth, predicted)
        )
        assert metrics.recall_at_k(signed, scores, k) == pytest.approx(
            peers.recall_score(truth, predicted)
        )
    curve = peers.precision_recall_curve(truth, scores)
    at_break = np.flatnonzero(np.isclose(curve[0], curve[1]) & (curve[1] > 0.0))
    value = metrics.prbep(truth, scores)
    assert value == 0.0 or value in [pytest.approx(curve[0][i]) for i in at_break]


# -- scorers ------------------------------------------------------------------


class QueryRidge(RegressorMixin, BaseEstimator):
    """A ranker as scikit-learn sees it: fit takes qid, predict gives scores."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y, qid=None):
        assert qid is not None
        assert len(qid) == len(y)
        self.ridge_ = Ridge(alpha=self.alpha).fit(X, y)
        return self

    def predict(self, X):
        return self.ridge_.predict(X)


@pytest.fixture
def ranking():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    qid = rng.integers(0, 15, 120)
    return X, rng.poisson(np.exp(0.5 * X[:, 0])).clip(0, 4), qid


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


SCORERS = [
    (metrics.ndcg_scorer, metrics.ndcg_score, {"k": 5, "gains": "linear", "empty": "skip"}, 1.0),
    (metrics.ndcg_scorer, metrics.ndcg_score, {}, 1.0),
    (metrics.swapped_pairs_scorer, metrics.swapped_pairs, {"average": "queries"}, -1.0),
]


@pytest.mark.parametrize(("make", "metric", "options", "sign"), SCORERS)
def test_scorers_get_the_queries_of_the_fold(ranking, routing, make, metric, options, sign):
    X, y, qid = ranking
    folds = GroupKFold(5)
    want = []
    for train, test in folds.split(X, y, qid):
        scores = QueryRidge().fit(X[train], y[train], qid[train]).predict(X[test])
        want.append(sign * metric(y[test], scores, qid=qid[test], **options))
    got = cross_val_score(
        QueryRidge().set_fit_request(qid=True),
        X,
        y,
        scoring=pickle.loads(pickle.dumps(make(**options))),
        params={"qid": qid, "groups": qid},
        cv=folds,
        error_score="raise",
    )
    np.testing.assert_allclose(got, want)


def test_search_over_a_grid(ranking, routing):
    X, y, qid = ranking
    search = GridSearchCV(
        QueryRidge().set_fit_request(qid=True),
        {"alpha": [1e-3, 1.0, 1e5]},
        scoring=metrics.swapped_pairs_scorer(),
        cv=GroupKFold(3),
        error_score="raise",
    )
    search.fit(X, y, qid=qid, groups=qid)
    assert np.all(search.cv_results_["mean_test_score"] <= 0.0)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_a_scorer_made_before_routing_was_enabled_works(ranking):
    X, y, qid = ranking
    scorer = metrics.ndcg_scorer(k=3)
    model = QueryRidge().fit(X, y, qid)
    with sklearn.config_context(enable_metadata_routing=True):
        value = scorer(model, X, y, qid=qid)
    assert value == metrics.ndcg_score(y, model.predict(X), qid=qid, k=3)


def test_scorers_without_queries(ranking):
    X, y, _ = ranking
    model = Ridge().fit(X, y)
    value = metrics.swapped_pairs_scorer(qid=False)(model, X, y)
    assert value == -metrics.swapped_pairs(y, model.predict(X))
    with pytest.raises(ValueError, match="got no qid"):
        metrics.swapped_pairs_scorer()(model, X, y)


# -- input --------------------------------------------------------------------

GOOD = {"y_true": [0, 1, 1], "y_score": [0.1, 0.2, 0.3]}


@pytest.mark.parametrize(
    ("metric", "change", "message"),
    [
        ("ndcg_score", {"y_score": [0.1, 0.2]}, "y_score has 2 rows, y_true has 3"),
        ("ndcg_score", {"y_score": [0.1, np.nan, 0.2]}, "y_score must be finite, got nan in row 1"),
        ("ndcg_score", {"y_true": ["a", "b", "c"]}, "y_true must hold numbers"),
        ("ndcg_score", {"y_true": [[0], [1], [2]]}, "y_true must have one dimension"),
        ("ndcg_score", {"y_true": [], "y_score": []}, "y_true is empty"),
        ("ndcg_score", {"y_true": [0, -1, 2]}, "y_true must not be negative"),
        ("ndcg_score", {"y_true": [0, 1, 2000]}, "too large for gains='exponential'"),
        ("ndcg_score", {"qid": [1, 1]}, "qid must hold one number per row, 3"),
        ("ndcg_score", {"qid": [1, -1, 1]}, "qid must hold"),
        ("ndcg_score", {"qid": [1, 1.5, 1]}, "qid must hold"),
        ("ndcg_score", {"qid": [1, np.nan, 1]}, "qid must hold"),
        ("ndcg_score", {"qid": ["a", "a", "b"]}, "qid must hold"),
        ("ndcg_score", {"k": 0}, "k must be an integer ≥ 1, got 0"),
        ("ndcg_score", {"k": 2.5}, "k must be an integer"),
        ("ndcg_score", {"gains": "cubic"}, "gains must be one of 'exponential', 'linear'"),
        ("ndcg_score", {"ties": "best"}, "ties must be one of"),
        ("ndcg_score", {"empty": "drop"}, "empty must be 0, 1 or 'skip'"),
        ("swapped_pairs", {"average": "rows"}, "average must be one of"),
        ("swapped_pairs", {"y_true": [1, 1, 1]}, "no comparable pair: no two rows differ"),
        ("swapped_pairs", {"qid": [0, 1, 1]}, "no two rows within a query"),
        ("swapped_pairs", {"sample_weight": [1, -1, 1]}, "sample_weight must not be negative"),
        ("swapped_pairs", {"sample_weight": [0, 1, 1]}, "no two rows of positive weight"),
        ("swapped_pairs", {"sample_weight": [1]}, "sample_weight has 1 rows"),
        ("somers_d", {"y_true": [1, 1, 1]}, "no comparable pair"),
        ("precision_at_k", {"k": 4}, "k must be an integer ≥ 1 and ≤ 3, the number of rows"),
        ("precision_at_k", {"k": 1, "y_true": [0, 1, 2]}, "the classes 0 and 1, or −1 and 1"),
        ("recall_at_k", {"k": 1, "y_true": [0, 0, 0]}, "y_true has no positive row"),
        ("prbep", {"y_true": [-1, -1, -1]}, "y_true has no positive row"),
    ],
)
def test_errors_name_the_parameter(metric, change, message):
    with pytest.raises(ValueError, match=message):
        getattr(metrics, metric)(**(GOOD | change))


def test_examples_in_the_docstrings():
    result = doctest.testmod(metrics, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 10
    assert result.failed == 0
