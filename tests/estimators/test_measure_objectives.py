"""Measures: the objective against every labelling and every table, and what the steps cost."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from ranking_reference import (
    CASES,
    MEASURE_CASES,
    MEASURES,
    assert_certified,
    best_for_planes,
    case_name,
    make_data,
    measure_loss,
    measure_planes,
    measure_risk,
)
from sklearn.metrics import f1_score, roc_auc_score

import cutplane.estimators._problems
from cutplane import LinearSVC, MeasureSVC, Status, metrics
from cutplane.objective import ListwiseScoreRisk
from cutplane.solvers.cutting_plane import REFRESH

TOL = 1e-9


def tiny(seed, rows=8, features=2):
    rng = np.random.default_rng(seed)
    truth = np.array([1, 1, 1, 0, 0, 0, 0, 0])[:rows]
    return rng.normal(size=(rows, features)) + 0.8 * truth[:, None], truth


def assert_optimal(model, optimum, X, y, weights=None):
    assert model.results_[0].status is Status.CONVERGED
    assert_certified(model, X, y, weights=weights, known=optimum)
    assert model.certificate_.primal == pytest.approx(optimum, rel=1e-7)
    assert model.certificate_.dual == pytest.approx(optimum, rel=1e-7)


# -- a generic solver with a constraint for every labelling ---------------------------


TOP = [
    ("precision_at_k", None, 2),
    ("precision_at_k", 1, 1),
    ("precision_at_k", 5, 5),
    ("recall_at_k", None, 6),
    ("recall_at_k", 2, 2),
    ("recall_at_k", 3, 3),
    ("prbep", None, 3),
]


@functools.cache
def best_at_top(measure: str, k: int, seed: int, C: float) -> float:
    X, y = tiny(seed)
    return best_for_planes(X, *measure_planes(measure, y, k), C)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize(("measure", "k", "size"), TOP)
def test_rows_at_the_top(measure, k, size, seed, C, solver):
    X, y = tiny(seed)
    model = MeasureSVC(measure, k=k, C=C / len(y), solver=solver, tol=TOL).fit(X, y)
    assert model.k_ == size
    assert_optimal(model, best_at_top(measure, size, seed, C), X, y)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("C", [1.0, 30.0, 1e3])
@pytest.mark.parametrize("scaling", [None, 3.0, False])
def test_f1(seed, C, scaling):
    """With the regularised bias of default size, of another, and without."""
    X, y = tiny(seed)
    parameters = {"fit_intercept": False} if scaling is False else {"intercept_scaling": scaling}
    model = MeasureSVC("f1", C=C / len(y), tol=TOL, **parameters).fit(X, y)
    wide = X
    if scaling is not False:
        wide = np.hstack([X, np.full((8, 1), scaling or 1.0)])
    optimum = best_for_planes(wide, *measure_planes("f1", y, None), C)
    assert_optimal(model, optimum, X, y)
    assert (model.intercept_[0] == 0.0) == (scaling is False)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_error_rate_is_the_worst_labelling_too(C):
    """The mean hinge loss, with a bias that costs nothing, with one that does, and without."""
    X, y = tiny(0)
    planes = measure_planes("error_rate", y, None)
    wide = np.hstack([X, np.ones((8, 1))])
    model = MeasureSVC("error_rate", C=C / len(y), tol=TOL).fit(X, y)
    assert_optimal(model, best_for_planes(wide, *planes, C, free=1), X, y)
    model = MeasureSVC("error_rate", C=C / len(y), tol=TOL, intercept_scaling=1.0).fit(X, y)
    assert_optimal(model, best_for_planes(wide, *planes, C), X, y)
    model = MeasureSVC("error_rate", C=C / len(y), tol=TOL, fit_intercept=False).fit(X, y)
    assert_optimal(model, best_for_planes(X, *planes, C), X, y)


@pytest.mark.parametrize("measure", ["f1", "precision_at_k", "recall_at_k", "prbep"])
def test_weights_are_copies(measure):
    X, y = tiny(1)
    weights = np.array([2, 1, 0, 1, 3, 1, 0, 2])
    model = MeasureSVC(measure, C=50.0 / weights.sum(), tol=TOL)
    model.fit(X, y, sample_weight=weights)
    rows = np.repeat(np.arange(8), weights)
    copies = MeasureSVC(measure, C=50.0 / len(rows), tol=TOL).fit(X[rows], y[rows])
    assert_optimal(model, copies.certificate_.primal, X, y, weights)
    np.testing.assert_allclose(model.coef_, copies.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, copies.intercept_, atol=1e-6)
    assert getattr(model, "k_", None) == getattr(copies, "k_", None)


# -- the plain SVM --------------------------------------------------------------------


@pytest.mark.parametrize("bias", [{}, {"fit_intercept": False}, {"intercept_scaling": 2.0}])
@pytest.mark.parametrize("weighted", [False, True])
def test_error_rate_is_the_plain_svm(bias, weighted):
    data = make_data()
    weights = np.random.default_rng(0).random(200) if weighted else np.ones(200)
    model = MeasureSVC("error_rate", C=100.0 / weights.sum(), tol=TOL, **bias)
    model.fit(data.X, data.labels, sample_weight=weights)
    plain = LinearSVC(C=100.0 / weights.sum(), tol=TOL, **bias)
    plain.fit(data.X, data.labels, sample_weight=weights)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2 * TOL)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-4)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-4, atol=1e-12)
    np.testing.assert_array_equal(model.predict(data.X), plain.predict(data.X))
    assert_certified(model, data.X, data.labels, weights=weights)


# -- bounds ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", MEASURE_CASES, ids=case_name)
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_bounds_hold_at_every_iteration(case, solver):
    data = make_data()
    seen = []
    model = case.fit(data, C=500.0, solver=solver, callback=seen.append)
    case.assert_certified(model, data)
    close = case.fit(data, C=500.0, tol=1e-7).certificate_
    assert len(seen) == model.n_iter_ > 5
    for record in seen:
        assert record.dual <= close.primal * (1 + 1e-12)
        assert record.primal >= close.dual * (1 - 1e-12)
    assert np.all(np.diff([record.primal for record in seen]) <= 0.0)
    assert np.all(np.diff([record.dual for record in seen]) >= 0.0)


@pytest.mark.parametrize("case", MEASURE_CASES, ids=case_name)
@pytest.mark.parametrize("C", [1e-2, 10.0, 1e4])
def test_the_risk_bounds_the_loss(case, C):
    """It is never less than one minus the measure, so neither is the certificate's primal."""
    data = make_data()
    model = case.fit(data, C=C, max_iter=1000)
    loss = measure_loss(model, data.X, data.labels)
    assert model.risk_certificate_.primal >= loss - 1e-12
    scores = data.X @ model.coef_[0]
    if model.measure in ("f1", "error_rate"):
        scores = scores + model.intercept_[0]
    risk = measure_risk(model.measure, scores, data.labels, getattr(model, "k_", None))
    assert risk >= loss - 1e-12


@pytest.mark.parametrize("case", MEASURE_CASES, ids=case_name)
def test_the_measure_in_training_is_the_one_of_the_metrics(case):
    """What is bounded is what scikit-learn and ``cutplane.metrics`` report."""
    data = make_data(noise=2.0)
    model = case.fit(data, C=1e4)
    scores = model.decision_function(data.X)
    reported = {
        "roc_auc": lambda: roc_auc_score(data.labels, scores),
        "f1": lambda: f1_score(data.labels, model.predict(data.X)),
        "error_rate": lambda: model.score(data.X, data.labels),
        "precision_at_k": lambda: metrics.precision_at_k(data.labels, scores, model.k_),
        "recall_at_k": lambda: metrics.recall_at_k(data.labels, scores, model.k_),
        "prbep": lambda: metrics.prbep(data.labels, scores),
    }[case.name]()
    assert 0.5 < reported < 1.0
    assert 1.0 - model.risk_certificate_.primal <= reported
    assert reported == pytest.approx(1.0 - measure_loss(model, data.X, data.labels), abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_epsilon_is_in_units_of_the_measure(measure):
    data = make_data()
    model = MeasureSVC(measure, C=1e3 / len(data.X), stopping="epsilon", tol=0.01)
    model.fit(data.X, data.labels)
    assert model.risk_certificate_.gap <= 0.01
    before = model.results_[0].trace[-2]
    assert before.gap > 0.01 * model.C * len(data.X)


# -- what the steps cost --------------------------------------------------------------


class Watched(ListwiseScoreRisk):
    """Counts line searches and the evaluations they take."""

    score_risks: list[Watched] = []  # noqa: RUF012

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.searches = self.spent = 0
        self.score_risks.append(self)

    def descend(self, line) -> float:
        before = self.evaluations
        k = super().descend(line)
        self.searches += 1
        self.spent += self.evaluations - before
        return k


@pytest.fixture
def score_risks(monkeypatch):
    monkeypatch.setattr(Watched, "score_risks", [])
    monkeypatch.setattr(cutplane.estimators._problems, "ListwiseScoreRisk", Watched)
    return Watched.score_risks


@pytest.mark.parametrize("case", CASES[:-1], ids=case_name)
def test_ocas_takes_far_fewer_iterations(case, score_risks):
    """Neither more than a few evaluations for each of its line searches."""
    data = make_data(600, 30, share=0.3, noise=4.0)
    fast = case.fit(data, C=1e5)
    (score_risk,) = score_risks or [None]
    slow = case.fit(data, C=1e5, solver="cpa")
    for model in (fast, slow):
        assert model.results_[0].status is Status.CONVERGED
    assert slow.n_iter_ >= 4 * fast.n_iter_
    assert fast.certificate_.dual <= slow.certificate_.primal
    assert slow.certificate_.dual <= fast.certificate_.primal
    assert fast.certificate_.primal == pytest.approx(slow.certificate_.primal, rel=1e-3)
    if case.name == "error_rate":
        assert score_risk is None
        return
    assert score_risk.searches == fast.n_iter_
    assert score_risk.spent <= 3.0 * score_risk.searches
    # The search apart: the trial point and the cut, the start and the check at the end; and the
    # best point, now and then.
    again = (fast.n_iter_ - 1) // REFRESH
    assert score_risk.evaluations == score_risk.spent + 2 * fast.n_iter_ + 1 + again
    assert score_risks[1].searches == 0
    assert score_risks[1].evaluations <= 2 * slow.n_iter_ + 2
