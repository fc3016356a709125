"""Warm starts of MeasureSVC, RankSVM and OrdinalSVC: fewer iterations, never a wrong proof."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from ranking_reference import CASES, FEW_CASES, Data, case_name, make_data
from sklearn.base import clone

from cutplane import MeasureSVC, OrdinalSVC, RankSVM, Status

TOL = 1e-6


@pytest.fixture(params=CASES[:-1], ids=case_name)  # the last one differs in thresholds only
def case(request):
    return request.param


def fit_again(model, case, data: Data):
    return model.fit(data.X, case.y(data), **case.extra(data))


def assert_same_optimum(warm, case, data: Data) -> None:
    """A warm fit ends where a cold one ends, and proves it."""
    cold = fit_again(clone(warm), case, data)
    case.assert_certified(warm, data, known=cold.certificate_.primal)
    assert warm.results_[0].status is Status.CONVERGED
    assert warm.certificate_.primal <= cold.certificate_.primal * (1 + 2 * TOL)
    assert cold.certificate_.dual <= warm.certificate_.primal * (1 + 1e-9)


def test_the_same_problem_again_is_solved_at_once(case):
    data = make_data()
    model = case.fit(data, C=100.0, tol=TOL, warm_start=True)
    first = model.n_iter_
    fit_again(model, case, data)
    assert model.n_iter_ <= 3 < first
    assert_same_optimum(model, case, data)


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_another_penalty(case, factor):
    data = make_data()
    model = case.fit(data, C=100.0, tol=TOL, warm_start=True)
    fit_again(model.set_params(C=100.0 * factor / len(data.X)), case, data)
    assert_same_optimum(model, case, data)


@pytest.mark.parametrize(
    ("case", "solver"),
    [*((case, "ocas") for case in CASES[:-1]), *((case, "cpa") for case in FEW_CASES)],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_path_of_penalties_takes_fewer_iterations(case, solver):
    data = make_data(noise=3.0)
    path = np.geomspace(100.0, 10_000.0, 10)
    cold = [case.fit(data, C=C, solver=solver) for C in path]
    model = case.make(warm_start=True, solver=solver)
    warm = 0
    for C, alone in zip(path, cold, strict=True):
        fit_again(model.set_params(C=C / len(data.X)), case, data)
        warm += model.n_iter_
        assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-3)
    assert warm < 0.8 * sum(alone.n_iter_ for alone in cold)


def test_other_data_of_the_same_shape(case):
    """Cuts of the old data would make a bound that is wrong."""
    data = make_data()
    larger = Data(10.0 * data.X, data.labels, data.levels, data.values, data.qid)
    model = case.fit(larger, C=100.0, tol=TOL, warm_start=True)
    for X in (data.X, -data.X, data.X + 0.01):
        other = Data(X, data.labels, data.levels, data.values, data.qid)
        fit_again(model, case, other)
        assert_same_optimum(model, case, other)


def test_other_targets(case):
    """Cuts of targets that are hard to fit lie above the risk of those that are easy."""
    data = make_data(noise=0.1)
    order = np.random.default_rng(0).permutation(200)
    hard = Data(data.X, *(getattr(data, n)[order] for n in ("labels", "levels", "values", "qid")))
    model = case.fit(hard, C=100.0, tol=TOL, warm_start=True)
    fit_again(model, case, data)
    assert_same_optimum(model, case, data)
    fit_again(model, case, hard)
    assert_same_optimum(model, case, hard)


def test_other_queries():
    """The same rows and targets, divided in another way, are another risk."""
    data = make_data()
    order = np.random.default_rng(0).permutation(200)
    shuffled = Data(data.X, data.labels, data.levels, data.values, data.qid[order])
    case = CASES[6]
    for weighting in ("pairs", "queries"):
        model = RankSVM(100.0, weighting=weighting, tol=TOL, warm_start=True)
        fit_again(model, case, data)
        fit_again(model, case, shuffled)
        assert_same_optimum(model, case, shuffled)
    model.fit(data.X, data.levels)  # without queries
    cold = RankSVM(100.0, weighting="queries", tol=TOL).fit(data.X, data.levels)
    assert model.certificate_.dual <= cold.certificate_.primal * (1 + 1e-9)
    assert model.certificate_.primal <= cold.certificate_.primal * (1 + 2 * TOL)


def test_other_names_of_the_queries_are_the_same_risk():
    data = make_data()
    model = RankSVM(100.0, tol=TOL, warm_start=True).fit(data.X, data.levels, qid=data.qid)
    assert model.fit(data.X, data.levels, qid=10 * data.qid + 3).n_iter_ <= 3


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (MeasureSVC("roc_auc"), {"measure": "prbep"}),
        (MeasureSVC("prbep"), {"measure": "roc_auc"}),
        (MeasureSVC("precision_at_k"), {"measure": "recall_at_k"}),
        (MeasureSVC("precision_at_k"), {"k": 60}),
        (MeasureSVC("f1"), {"measure": "error_rate"}),
        (MeasureSVC("error_rate"), {"measure": "f1"}),
        (MeasureSVC("f1"), {"fit_intercept": False}),
        (MeasureSVC("f1"), {"intercept_scaling": 4.0}),
        (MeasureSVC("roc_auc"), {"solver": "cpa"}),
        (OrdinalSVC(), {"class_weight": "balanced"}),
        (RankSVM(), {"weighting": "queries"}),
    ],
    ids=str,
)
def test_other_parameters(model, change):
    data = make_data()
    extra = {"qid": data.qid} if isinstance(model, RankSVM) else {}
    y = data.labels if isinstance(model, MeasureSVC) else data.levels
    model = clone(model).set_params(C=100.0 / len(data.X), tol=TOL, warm_start=True)
    model.fit(data.X, y, **extra)
    model.set_params(**change).fit(data.X, y, **extra)
    cold = clone(model).fit(data.X, y, **extra)
    assert model.results_[0].status is Status.CONVERGED
    assert model.certificate_.dual <= cold.certificate_.primal * (1 + 1e-9)
    assert model.certificate_.primal <= cold.certificate_.primal * (1 + 2 * TOL)
    assert cold.certificate_.dual <= model.certificate_.primal * (1 + 1e-9)


@pytest.mark.parametrize("case", FEW_CASES, ids=case_name)
def test_other_weights(case):
    data = make_data()
    weights = np.random.default_rng(0).integers(0, 4, 200)
    model = case.fit(data, C=100.0, tol=TOL, warm_start=True)
    model.fit(data.X, case.y(data), sample_weight=weights, **case.extra(data))
    case.assert_certified(model, data, weights=weights)
    cold = case.make(C=100.0 / len(data.X), tol=TOL)
    cold.fit(data.X, case.y(data), sample_weight=weights, **case.extra(data))
    assert model.certificate_.primal <= cold.certificate_.primal * (1 + 2 * TOL)
    assert model.certificate_.dual <= cold.certificate_.primal * (1 + 1e-9)


def test_other_shapes(case):
    model = case.make(C=0.5, tol=TOL, warm_start=True)
    for data in (make_data(), make_data(120), make_data(200, 3), make_data()):
        fit_again(model, case, data)
        assert_same_optimum(model, case, data)


def test_a_cold_start_starts_cold(case):
    data = make_data()
    model = case.fit(data, warm_start=True)
    fit_again(model.set_params(warm_start=False), case, data)
    fresh = case.fit(data)
    assert model.n_iter_ == fresh.n_iter_
    np.testing.assert_array_equal(model.coef_, fresh.coef_)


@pytest.mark.parametrize("case", FEW_CASES, ids=case_name)
@pytest.mark.parametrize("value", [0.0, 1e6, np.nan])
def test_any_coef_is_a_start(case, value):
    data = make_data()
    model = case.fit(data, C=100.0, tol=TOL, warm_start=True)
    model.coef_ = np.full_like(model.coef_, value)
    fit_again(model, case, data)
    assert_same_optimum(model, case, data)


def test_what_a_warm_start_keeps_is_not_pickled(case):
    data = make_data(100, 60)
    warm, plain = case.fit(data, warm_start=True), case.fit(data)
    again = pickle.loads(pickle.dumps(warm))
    assert len(pickle.dumps(warm)) < 1.05 * len(pickle.dumps(plain)) + 300
    fit_again(again.set_params(C=100.0 / len(data.X), tol=TOL), case, data)
    assert_same_optimum(again, case, data)
