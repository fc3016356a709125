"""Pairs of rows: the objective against all pairs written out, and another solver on them."""

from __future__ import annotations

import numpy as np
import pytest
from ranking_reference import (
    ORDINAL_CASES,
    RANK_CASES,
    all_pairs,
    assert_certified,
    best_for_pairs,
    case_name,
    make_data,
    mass,
)

from cutplane import MeasureSVC, OrdinalSVC, RankSVM, Status

TOL = 1e-9


def tiny(seed, rows=20, features=3):
    """Rows whose pairs another solver can take; grades, real targets and queries with ties."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    grades = rng.integers(0, 3, rows)
    grades[:2] = [0, 2]
    qid = rng.integers(0, 3, rows)
    qid[:2] = 1
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], rows)
    weights[:2] = 1.0
    return X, grades, qid, weights


def assert_optimal(model, optimum, X, y, qid=None, weights=None):
    """Converged to the optimum of another solver, from above and from below."""
    assert model.results_[0].status is Status.CONVERGED
    assert_certified(model, X, y, qid, weights, known=optimum)
    assert model.certificate_.primal == pytest.approx(optimum, rel=1e-8)
    assert model.certificate_.dual == pytest.approx(optimum, rel=1e-8)


# -- another solver -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize("weighting", ["pairs", "queries"])
@pytest.mark.parametrize("weighted", [False, True])
def test_ranking_within_queries(seed, C, solver, weighting, weighted):
    X, y, qid, weights = tiny(seed)
    weights = weights if weighted else None
    optimum = best_for_pairs(X, all_pairs(y, qid, weights, weighting), C)
    model = RankSVM(C / mass(y, weights, qid), weighting=weighting, solver=solver, tol=TOL)
    model.fit(X, y, qid=qid, sample_weight=weights)
    assert_optimal(model, optimum, X, y, qid, weights)


def test_the_two_weightings_differ():
    """Or the tests above show less than they seem to."""
    X, y, qid, _ = tiny(0)
    optima = [best_for_pairs(X, all_pairs(y, qid, None, w), 10.0) for w in ("pairs", "queries")]
    assert optima[0] != pytest.approx(optima[1], rel=1e-3)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
def test_real_targets(C):
    X, _, qid, weights = tiny(5)
    y = np.random.default_rng(5).normal(size=len(X)).round(1)
    optimum = best_for_pairs(X, all_pairs(y), C)
    assert_optimal(RankSVM(C / len(y), tol=TOL).fit(X, y), optimum, X, y)
    optimum = best_for_pairs(X, all_pairs(y, qid, weights), C)
    model = RankSVM(C / mass(y, weights, qid), tol=TOL).fit(X, y, qid=qid, sample_weight=weights)
    assert_optimal(model, optimum, X, y, qid, weights)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize("weighted", [False, True])
def test_ordinal_classes(seed, C, solver, weighted):
    X, y, _, weights = tiny(seed)
    weights = weights if weighted else None
    optimum = best_for_pairs(X, all_pairs(y, None, weights), C)
    model = OrdinalSVC(C / mass(y, weights), solver=solver, tol=TOL)
    model.fit(X, y, sample_weight=weights)
    assert_optimal(model, optimum, X, y, weights=weights)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize("weighted", [False, True])
def test_roc_area(seed, C, solver, weighted):
    X, y, _, weights = tiny(seed)
    y, weights = (y == 2).astype(int), weights if weighted else None
    optimum = best_for_pairs(X, all_pairs(y, None, weights), C)
    model = MeasureSVC("roc_auc", C=C / mass(y, weights), solver=solver, tol=TOL)
    model.fit(X, y, sample_weight=weights)
    assert_optimal(model, optimum, X, y, weights=weights)


@pytest.mark.parametrize(("share", "weighted"), [(0.03, False), (0.97, False), (0.03, True)])
def test_few_rows_of_a_class(share, weighted):
    """Counted in another way than classes of similar size, and in more rows than few."""
    data = make_data(450, share=share)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 450) if weighted else None
    optimum = best_for_pairs(data.X, all_pairs(data.labels, None, weights), 1.0)
    model = MeasureSVC("roc_auc", C=1.0 / mass(data.labels, weights), tol=1e-7)
    model.fit(data.X, data.labels, sample_weight=weights)
    assert_certified(model, data.X, data.labels, weights=weights, known=optimum)
    assert model.certificate_.primal == pytest.approx(optimum, rel=2e-7)


@pytest.mark.parametrize("balanced", ["balanced", {0: 2.0, 2: 0.5}])
def test_class_weights_multiply_the_rows(balanced):
    X, y, _, weights = tiny(1)
    factors = np.array([2.0, 1.0, 0.5])
    if balanced == "balanced":
        factors = weights.sum() / (3 * np.bincount(y, weights))
    optimum = best_for_pairs(X, all_pairs(y, None, weights * factors[y]), 10.0)
    C = 10.0 / mass(y, weights * factors[y])
    model = OrdinalSVC(C, class_weight=balanced, tol=TOL).fit(X, y, sample_weight=weights)
    assert_optimal(model, optimum, X, y, weights=weights * factors[y])


# -- the same problem by other names --------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_two_levels_are_the_roc_area(weighted):
    data = make_data()
    weights = np.random.default_rng(0).random(len(data.X)) if weighted else None
    C = 50.0 / mass(data.labels, weights)
    area = MeasureSVC("roc_auc", C=C, tol=TOL).fit(data.X, data.labels, sample_weight=weights)
    rank = RankSVM(C, tol=TOL).fit(data.X, data.labels, sample_weight=weights)
    ordinal = OrdinalSVC(C, tol=TOL).fit(data.X, data.labels, sample_weight=weights)
    np.testing.assert_array_equal(area.coef_, rank.coef_)
    np.testing.assert_array_equal(area.coef_, ordinal.coef_)
    assert area.certificate_ == rank.certificate_ == ordinal.certificate_
    # Both fit the threshold of fewest errors; where several are, any of them.
    for model in (area, ordinal):
        errors = np.average(model.predict(data.X) != data.labels, weights=weights)
        scores = np.sort(data.X @ area.coef_[0])
        least = min(
            np.average((data.X @ area.coef_[0] > t) != data.labels, weights=weights)
            for t in [-np.inf, *(0.5 * (scores[1:] + scores[:-1])), np.inf]
        )
        assert errors == pytest.approx(least, abs=1e-12)


def test_one_query_is_no_query():
    data = make_data()
    plain = RankSVM(50.0 / len(data.X)).fit(data.X, data.levels)
    for weighting in ("pairs", "queries"):
        model = RankSVM(50.0 / len(data.X), weighting=weighting).fit(
            data.X, data.levels, qid=[3] * len(data.X)
        )
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
        assert (model.n_queries_, model.n_idle_queries_) == (1, 0)


def test_only_the_order_of_the_targets_counts():
    data = make_data()
    plain = RankSVM(50.0 / len(data.X)).fit(data.X, data.values)
    other = RankSVM(50.0 / len(data.X)).fit(data.X, np.exp(3.0 * data.values))
    np.testing.assert_array_equal(plain.coef_, other.coef_)
    ranks = np.argsort(np.argsort(data.values))
    np.testing.assert_array_equal(plain.coef_, RankSVM(50.0 / len(data.X)).fit(data.X, ranks).coef_)
    swapped = RankSVM(50.0 / len(data.X), tol=TOL).fit(data.X, -data.values)
    plain = RankSVM(50.0 / len(data.X), tol=TOL).fit(data.X, data.values)
    np.testing.assert_allclose(swapped.coef_, -plain.coef_, atol=1e-5)


@pytest.mark.parametrize("shift", [-3.0, 1e3])
def test_a_constant_added_to_a_query_changes_nothing(shift):
    """Only differences within a query count, so what its rows share is no feature."""
    data = make_data()
    moved = data.X + shift * np.sin(data.qid)[:, None]
    plain = RankSVM(50.0 / len(data.X), tol=1e-7).fit(data.X, data.levels, qid=data.qid)
    other = RankSVM(50.0 / len(data.X), tol=1e-7).fit(moved, data.levels, qid=data.qid)
    assert other.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-7)


# -- along the way --------------------------------------------------------------------


@pytest.mark.parametrize("case", [*RANK_CASES, *ORDINAL_CASES], ids=case_name)
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_bounds_hold_at_every_iteration(case, solver):
    """The callback sees the optimum between the bounds, which only improve."""
    data = make_data()
    seen = []
    model = case.fit(data, C=100.0, solver=solver, tol=1e-3, callback=seen.append)
    case.assert_certified(model, data)
    close = case.fit(data, C=100.0, tol=1e-8).certificate_
    assert len(seen) == model.n_iter_ > 3
    for record in seen:
        assert record.dual <= close.primal * (1 + 1e-12)
        assert record.primal >= close.dual * (1 - 1e-12)
        assert record.trial >= record.primal * (1 - 1e-12)
    assert np.all(np.diff([record.primal for record in seen]) <= 0.0)
    assert np.all(np.diff([record.dual for record in seen]) >= 0.0)
    assert seen[-1].primal == pytest.approx(model.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("case", [*RANK_CASES, *ORDINAL_CASES], ids=case_name)
def test_the_risk_bounds_the_swapped_pairs(case):
    data = make_data()
    for C in (0.1, 10.0, 1e4):
        model = case.fit(data, C=C)
        qid = data.qid if case.by_query else None
        pairs = all_pairs(case.y(data), qid, weighting=getattr(model, "weighting", "pairs"))
        scores = data.X @ model.coef_[0]
        swapped = pairs.swapped(scores)
        assert pairs.risk(scores) >= swapped
        assert model.risk_certificate_.primal >= swapped
        assert model.n_pairs_ == len(pairs.share)
