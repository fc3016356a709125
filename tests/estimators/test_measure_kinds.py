"""Every measure of MeasureSVC and RankSVM, against a solver that has a constraint for all there is.

Tables, labellings, rankings and sets of negatives are written out, and tiny problems go to
Clarabel, which minimises ½|w|² + scale·risk where scale is what C stands for in the objective.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.base import clone

from cutplane import LinearSVC, MeasureSVC, RankSVM
from cutplane.risks.thresholds import least_rows_for_fpr, threshold_for_fpr

cp = pytest.importorskip("cvxpy")


def tiny(rows=8, seed=0):
    rng = np.random.default_rng(seed)
    truth = (np.arange(rows) < 3).astype(int)
    return rng.normal(size=(rows, 2)) + 0.8 * truth[:, None], truth


def assert_optimal(model, X, risk):
    """The certificate holds the optimum; ``risk`` makes cvxpy's expression from the scores."""
    proof = model.certificate_
    scale = proof.primal / model.risk_certificate_.primal
    w = cp.Variable(X.shape[1])
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + scale * risk(X @ w)))
    optimum = problem.solve(solver=cp.CLARABEL)
    assert proof.kind == "exact"
    assert proof.dual <= optimum * (1.0 + 1e-6)
    assert proof.primal >= optimum * (1.0 - 1e-6)
    assert proof.gap <= 1e-6 * proof.primal


# -- measures of the predictions ------------------------------------------------------


def distance_loss(tp, fp, fn, tn):
    """Distance to the upper left corner of the ROC curve: a user's own."""
    return np.hypot(fn / (tp + fn), fp / (fp + tn)) / np.sqrt(2.0)


# Of scalars, each in another way than the package's.
LOSSES = {
    "f1": lambda a, b, f, t: 1 - 2 * a / (2 * a + b + f),
    "fbeta": lambda a, b, f, t: 1 - 5 * a / (5 * a + 4 * f + b),
    "jaccard": lambda a, b, f, t: 1 - a / (a + b + f),
    "balanced_error": lambda a, b, f, t: 1 - a / (2 * (a + f)) - t / (2 * (b + t)),
    "g_mean": lambda a, b, f, t: 1 - (a * t / ((a + f) * (b + t))) ** 0.5,
    "matthews": lambda a, b, f, t: (
        0.5
        if a + b in (0, a + b + f + t)
        else 0.5 - 0.5 * (a * t - b * f) / ((a + b) * (a + f) * (t + b) * (t + f)) ** 0.5
    ),
    "absolute_error": lambda a, b, f, t: abs(b - f) / (a + b + f + t),
    "relative_absolute_error": lambda a, b, f, t: abs(b - f) / max(a + f, b + t),
    "q_beta": lambda a, b, f, t: (
        0.0 if b == f == 0 else 1 - q_mean(a / (a + f), 1 - abs(b - f) / max(a + f, b + t))
    ),
    "nkld": lambda a, b, f, t: np.tanh(0.5 * divergence(a + f, a + b, a + b + f + t)),
    "callable": lambda a, b, f, t: float(distance_loss(a, b, f, t)),
}


def q_mean(c, q):
    return 0.0 if c * q == 0.0 else 2.0 / (1.0 / c + 1.0 / q)


def divergence(true, found, m):
    p, q = (true + 0.5) / (m + 1), (found + 0.5) / (m + 1)
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


def table_risk(name, truth):
    every = np.array(list(itertools.product([0, 1], repeat=len(truth))))
    a, size, p = every @ truth, every.sum(axis=1), truth.sum()
    b = size - a
    tables = zip(a, b, p - a, len(truth) - p - b, strict=True)
    losses = np.array([LOSSES[name](*(int(v) for v in table)) for table in tables])
    return lambda s: cp.max(losses + (every - truth) / len(truth) @ s)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("C", [3.0, 300.0])
def test_measures_of_the_predictions(name, C):
    X, y = tiny()
    beta = {"fbeta": 2.0}.get(name)
    measure = distance_loss if name == "callable" else name
    model = MeasureSVC(measure, C=C, beta=beta, tol=1e-8).fit(X, y)
    assert_optimal(model, np.hstack([X, np.ones((8, 1))]), table_risk(name, y))


def test_a_measure_by_name_and_as_a_function_are_one():
    X, y = tiny(40)
    named = MeasureSVC("jaccard", C=50.0, tol=1e-9).fit(X, y)
    given = MeasureSVC(lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn), C=50.0, tol=1e-9)
    given = clone(given).fit(X, y)
    np.testing.assert_allclose(given.coef_, named.coef_, rtol=1e-6)
    f1 = MeasureSVC("f1", C=50.0).fit(X, y)
    fbeta = MeasureSVC("fbeta", beta=1, C=50.0).fit(X, y)
    np.testing.assert_array_equal(f1.coef_, fbeta.coef_)


def test_weights_are_copies_for_a_function_too():
    X, y = tiny()
    weights = np.array([2, 1, 0, 1, 3, 1, 0, 2])
    rows = np.repeat(np.arange(8), weights)
    for measure in (distance_loss, "g_mean", "nkld", "partial_roc_auc"):
        model = MeasureSVC(measure, C=30.0, tol=1e-9).fit(X, y, sample_weight=weights)
        copies = MeasureSVC(measure, C=30.0, tol=1e-9).fit(X[rows], y[rows])
        assert model.risk_certificate_.primal == pytest.approx(
            copies.risk_certificate_.primal, rel=1e-8
        )


@pytest.mark.parametrize("measure", [distance_loss, "f1", "matthews", "prbep"])
def test_class_weights_are_copies(measure):
    X, y = tiny()
    rows = np.repeat(np.arange(8), np.where(y == 1, 3, 2))
    model = MeasureSVC(measure, C=30.0, tol=1e-9, class_weight={0: 2, 1: 3}).fit(X, y)
    copies = MeasureSVC(measure, C=30.0, tol=1e-9).fit(X[rows], y[rows])
    assert model.certificate_.primal == pytest.approx(copies.certificate_.primal, rel=1e-8)
    with pytest.raises(ValueError, match=r"class_weight must hold whole numbers.*balanced_error"):
        MeasureSVC(measure, class_weight="balanced").fit(X, y)


def test_class_weights_of_the_error_rate_are_those_of_the_plain_svm():
    X, y = tiny(30)
    model = MeasureSVC("error_rate", tol=1e-9, class_weight="balanced").fit(X, y)
    plain = LinearSVC(tol=1e-9, class_weight="balanced").fit(X, y)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-8)


def test_class_weights_of_a_roc_area_move_the_threshold_alone():
    """C counts per weight: with all of it divided by the mean weight, w is the same."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [60, 20])
    X = rng.normal(size=(80, 3)) + 0.7 * y[:, None]
    factors = {0: 1.0, 1: 3.0}
    plain = MeasureSVC("roc_auc", C=1.5, tol=1e-9).fit(X, y)
    model = MeasureSVC("roc_auc", C=1.0, tol=1e-9, class_weight=factors).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-3)
    weights = np.where(y == 1, 3.0, 1.0)
    scores = X @ model.coef_[0]
    wrong = [np.sum(weights * ((scores > t) != y)) for t in (*scores, scores.min() - 1.0)]
    assert np.sum(weights * (model.predict(X) != y)) == min(wrong)
    assert model.predict(X).sum() > plain.predict(X).sum()


# -- measures of the order ------------------------------------------------------------


def ranking_risk(relevant, k=None, precision=False):
    """cvxpy's expression of the worst of all rankings of rows that are relevant or not."""
    m = len(relevant)
    order = np.array(list(itertools.permutations(range(m))))
    placed, position = relevant[order], np.argsort(order, axis=1)
    if precision:
        at = np.cumsum(placed, axis=1) / np.arange(1, m + 1)
        losses = 1.0 - (at * placed).sum(axis=1) / relevant.sum()
    else:
        discount = np.where(np.arange(m) < (k or m), 1.0 / np.log2(2.0 + np.arange(m)), 0.0)
        reached = placed @ discount
        losses = 1.0 - reached / reached.max()
    up, down = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    swapped = position[:, up][:, :, None] > position[:, down][:, None, :]
    planes = np.zeros((len(order), m))
    planes[:, up] -= swapped.sum(axis=2)
    planes[:, down] += swapped.sum(axis=1)
    planes *= 2.0 / (len(up) * len(down))
    different = np.unique(np.column_stack([planes, losses]), axis=0)
    return lambda s: cp.max(different[:, -1] + different[:, :-1] @ s)


@pytest.mark.parametrize("C", [3.0, 300.0])
def test_average_precision(C):
    X, y = tiny(6)
    model = MeasureSVC("average_precision", C=C, tol=1e-8).fit(X, y)
    assert_optimal(model, X, ranking_risk(y == 1, precision=True))
    ranker = RankSVM(C=C, objective="average_precision", tol=1e-8).fit(X, y, qid=np.zeros(6, int))
    np.testing.assert_allclose(ranker.coef_, model.coef_, rtol=1e-6)


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("C", [3.0, 300.0])
def test_ndcg_with_queries_and_grades(k, C):
    rng = np.random.default_rng(3)
    X, qid = rng.normal(size=(11, 2)), np.array([4, 4, 4, 4, 4, 9, 9, 9, 9, 9, 7])
    y = np.array([0, 1, 2, 0, 2, 3, 0, 0, 1, 0, 1])
    model = RankSVM(C=C, objective="ndcg", k=k, tol=1e-8).fit(X, y, qid=qid)
    assert (model.n_queries_, model.n_idle_queries_, model.n_pairs_) == (3, 1, 8 + 7)

    def risk(s):
        total = 0.0
        for q in (4, 9):
            rows = np.flatnonzero(qid == q)
            discount = np.where(np.arange(5) < (k or 5), 1.0 / np.log2(2.0 + np.arange(5)), 0.0)
            best = np.sort(2.0 ** y[rows] - 1.0)[::-1] @ discount
            for low, high in itertools.pairwise(np.unique(y[rows])):
                relevant = y[rows] >= high
                share = (2.0**high - 2.0**low) * discount[: relevant.sum()].sum() / best
                total += 0.5 * share * ranking_risk(relevant, k)(s[rows])
        return total

    assert_optimal(model, X, risk)


@pytest.mark.parametrize("max_fpr", [0.01, 0.4, 1.0])
def test_partial_roc_area(max_fpr):
    X, y = tiny()
    k = {0.01: 1, 0.4: 2, 1.0: 5}[max_fpr]
    model = MeasureSVC("partial_roc_auc", max_fpr=max_fpr, C=100.0, tol=1e-8).fit(X, y)

    def risk(s):
        pairs = [[cp.pos(1.0 - (s[i] - s[j])) for j in range(3, 8)] for i in range(3)]
        return cp.maximum(
            *(
                sum(line[j] for line in pairs for j in some) / (3 * k)
                for some in itertools.combinations(range(5), k)
            ),
            0.0,
        )

    assert_optimal(model, X, risk)


# -- a false positive rate that holds -------------------------------------------------


def test_a_model_without_weights_is_told_of():
    """Classes that overlap: the highest negatives are above the positives for every w."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.arange(400) % 2
    with pytest.warns(UserWarning, match="all weights are zero"):
        model = MeasureSVC("partial_roc_auc", max_fpr=0.05, C=100.0).fit(X, y)
    assert not np.any(model.coef_)
    assert model.risk_certificate_.primal == pytest.approx(1.0)  # of equal scores


@pytest.mark.parametrize(("n", "max_fpr", "confidence"), [(59, 0.05, 0.95), (200, 0.1, 0.9)])
def test_the_false_positive_rate_holds_as_often_as_said(n, max_fpr, confidence):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    draws = rng.random((4000, n))  # of which a share 1 − t is above t
    rates = np.array([1.0 - threshold_for_fpr(scores, max_fpr, confidence) for scores in draws])
    held = np.mean(rates <= max_fpr)
    rank = next(
        r for r in range(1, n + 1) if stats.binom.sf(r - 1, n, 1 - max_fpr) <= 1 - confidence
    )
    exact = 1.0 - stats.binom.sf(rank - 1, n, 1.0 - max_fpr)
    assert exact >= confidence
    assert held == pytest.approx(exact, abs=4 * np.sqrt(0.25 / 4000))
    assert threshold_for_fpr(draws[0], max_fpr, confidence) == np.sort(draws[0])[rank - 1]


def test_too_few_negatives_for_the_confidence():
    assert least_rows_for_fpr(0.05, 0.95) == 59
    threshold_for_fpr(np.arange(59.0), 0.05, 0.95)
    with pytest.raises(ValueError, match=r"58 negative rows are too few.*at least 59"):
        threshold_for_fpr(np.arange(58.0), 0.05, 0.95)
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 10 == 0
    with pytest.raises(ValueError, match=r"max_fpr=0\.05.*needs 118 negative rows.*there are 90"):
        MeasureSVC("recall_at_fpr", max_fpr=0.05).fit(X, y)


def test_recall_at_a_false_positive_rate():
    rng = np.random.default_rng(1)
    y = (rng.random(3000) < 0.2).astype(int)
    X = rng.normal(size=(3000, 3)) + y[:, None]
    model = MeasureSVC("recall_at_fpr", max_fpr=0.1, C=100.0, random_state=0).fit(X, y)
    rows = model.calibration_rows_
    assert not y[rows].any() and len(rows) == (y == 0).sum() // 2
    assert model.decision_function(X[rows]).max() > 0.0
    rate = model.predict(X[rows]).mean()
    assert 0.05 < rate < 0.1  # below by what the confidence takes
    assert model.predict(X[y == 1]).mean() > 0.5
    # The weights do not depend on these rows.
    other = X.copy()
    other[rows] += 100.0
    again = clone(model).fit(other, y)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-12)
    assert clone(model).set_params(measure="roc_auc", max_fpr=None).fit(X, y).intercept_ != (
        model.intercept_
    )


# -- parameters -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"measure": "f3"}, "measure must be one of 'roc_auc'"),
        ({"measure": 3}, "measure must be one of"),
        ({"beta": 2.0}, "beta has no meaning for measure='roc_auc'.*'fbeta' or 'q_beta'"),
        ({"measure": "fbeta", "beta": 0.0}, "beta must be a finite number > 0"),
        ({"max_fpr": 0.1}, "max_fpr has no meaning for measure='roc_auc'"),
        ({"measure": "partial_roc_auc", "max_fpr": 0.0}, "max_fpr must be a finite number > 0"),
        ({"measure": "partial_roc_auc", "max_fpr": 1.5}, "max_fpr must be at most 1"),
        ({"measure": "partial_roc_auc", "confidence": 0.9}, "confidence has no meaning"),
        ({"measure": "recall_at_fpr", "confidence": 1.0}, "confidence must be below 1"),
        ({"measure": distance_loss, "k": 2}, "k has no meaning for measure="),
        ({"measure": lambda tp, fp, fn, tn: tp}, "measure=.*is 2 for tp=2.*not in \\[0, 1\\]"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        MeasureSVC(**parameters).fit(*tiny())


@pytest.mark.parametrize("measure", ["average_precision", "recall_at_fpr"])
def test_weights_without_a_meaning(measure):
    X, y = tiny()
    with pytest.raises(ValueError, match=f"sample_weight has no meaning for measure='{measure}': "):
        MeasureSVC(measure).fit(X, y, sample_weight=2.0 * np.ones(8))
    with pytest.raises(ValueError, match=f"class_weight has no meaning for measure='{measure}': "):
        MeasureSVC(measure, class_weight={0: 1, 1: 2}).fit(X, y)


def test_wrong_parameters_of_a_ranking_are_named():
    X, y = tiny()
    qid = np.zeros(8, int)
    with pytest.raises(ValueError, match="objective must be one of 'pairs'"):
        RankSVM(objective="map").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"k has no meaning for objective='pairs'.*'ndcg'"):
        RankSVM(k=3).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="k must be an integer ≥ 1"):
        RankSVM(objective="ndcg", k=0).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="sample_weight has no meaning for objective='ndcg'"):
        RankSVM(objective="ndcg").fit(X, y, qid=qid, sample_weight=np.arange(8) + 1.0)
    with pytest.raises(ValueError, match="relevance must be at least 0 for NDCG, got -1"):
        RankSVM(objective="ndcg").fit(X, y - 1, qid=qid)
