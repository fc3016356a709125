"""Problems that are tiny, flat, contradictory or badly scaled: a model with an honest proof."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import scipy.sparse
from ranking_reference import (
    CASES,
    MEASURE_CASES,
    MEASURES,
    ORDINAL_CASES,
    RANK_CASES,
    Data,
    assert_certified,
    best_for_planes,
    case_name,
    make_data,
    mass,
    measure_planes,
    measure_risk,
)
from svc_reference import quiet_fit, run_script

from cutplane import MeasureSVC, OrdinalSVC, RankSVM, Status

PAIR_CASES = [MEASURE_CASES[0], *RANK_CASES, *ORDINAL_CASES]
SOLVERS = ["ocas", "cpa"]


@pytest.fixture(params=CASES, ids=case_name)
def case(request):
    return request.param


def with_rows(data: Data, X: np.ndarray) -> Data:
    """The same targets for other rows."""
    return Data(X, data.labels, data.levels, data.values, data.qid)


def risk_of_zero(case, data: Data) -> float:
    """Of scores that are all equal. Every pair violates its margin by 1."""
    if case not in MEASURE_CASES or case.name == "roc_auc":
        return 1.0
    if case.name == "error_rate":  # a free bias follows the majority
        return 2.0 * min(np.mean(data.labels), 1.0 - np.mean(data.labels))
    k = case.fit(data, max_iter=1, tol=1.0, C=1e-9)
    return measure_risk(case.name, np.zeros(len(data.X)), data.labels, getattr(k, "k_", None))


# -- nothing to learn from ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["zeros", "sparse zeros", "equal rows"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_that_are_all_equal(case, kind, solver):
    """w = 0 is optimal, and the first cut or two prove it; F1 may use the bias."""
    data = make_data(30)
    X = np.zeros((30, 6)) if kind != "equal rows" else np.tile(data.X[0], (30, 1))
    given = scipy.sparse.csr_array(X) if kind == "sparse zeros" else X
    model = case.fit(data, given, C=7.0, solver=solver)
    case.assert_certified(model, with_rows(data, X))
    assert model.results_[0].status is Status.CONVERGED
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(getattr(model, "thresholds_", 0.0)).all()
    assert len(model.predict(X)) == 30
    if case.name == "f1":
        if kind != "equal rows":
            assert np.all(model.coef_ == 0.0)
        return
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-9)
    assert model.certificate_.primal == pytest.approx(7.0 * risk_of_zero(case, data), rel=1e-9)
    if kind != "equal rows":
        assert np.all(model.coef_ == 0.0)
        assert model.certificate_.gap <= 1e-12 * model.certificate_.primal


@pytest.mark.parametrize("case", PAIR_CASES, ids=case_name)
def test_every_row_with_every_target(case):
    """Nothing can be learnt: pairs and their opposites."""
    data = make_data(10)
    top = data.labels.max() if case.target == "labels" else 1
    X = np.vstack([data.X, data.X])
    y = np.repeat([0, top], 10)
    extra = {"qid": np.tile(data.qid % 2, 2)} if case.by_query else {}
    model = case.make(C=100.0 / len(y), tol=1e-6).fit(X, y, **extra)
    assert_certified(model, X, y, **extra)
    assert model.certificate_.primal == pytest.approx(100.0, rel=1e-6)
    assert model.results_[0].status is Status.CONVERGED


# -- few rows -------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("distance", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("make", [MeasureSVC, RankSVM, OrdinalSVC])
def test_two_rows_are_one_pair(make, distance, C):
    """Closed form: w = αd with α = min(C, 1/d²)."""
    X, y = np.array([[5.0, 0.0], [5.0, distance]]), [0, 1]
    alpha = min(C, distance**-2)
    optimum = 0.5 * (alpha * distance) ** 2 + C * max(0.0, 1.0 - alpha * distance**2)
    model = make(C=C / 2, tol=1e-9).fit(X, y)
    assert model.certificate_.primal == pytest.approx(optimum, rel=1e-8)
    np.testing.assert_allclose(model.coef_[0], [0.0, alpha * distance], rtol=1e-6, atol=1e-12)
    assert_certified(model, X, y, known=optimum)
    assert np.all(np.diff(model.predict(X)) > 0)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_two_rows(measure, solver):
    X, y = np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([0, 1])
    model = MeasureSVC(measure, C=50.0 / len(y), tol=1e-8, solver=solver).fit(X, y)
    assert_certified(model, X, y)
    assert model.results_[0].status is Status.CONVERGED
    k = getattr(model, "k_", None)
    wide = np.hstack([X, np.ones((2, 1))]) if measure in ("f1", "error_rate") else X
    if measure != "roc_auc":
        planes = measure_planes(measure, y, k)
        optimum = best_for_planes(wide, *planes, 50.0, free=int(measure == "error_rate"))
        assert model.certificate_.primal == pytest.approx(optimum, rel=1e-7)
    if k != 2:
        np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("positives", [1, 199])
def test_one_row_of_a_class(measure, positives):
    data = make_data()
    y = (np.argsort(np.argsort(data.values)) >= 200 - positives).astype(int)
    model = MeasureSVC(measure, C=1e3 / len(y)).fit(data.X, y)
    assert model.results_[0].status is Status.CONVERGED
    assert_certified(model, data.X, y)
    if measure == "prbep":
        assert model.k_ == positives


@pytest.mark.parametrize("C", [1e4, 1e6])
def test_more_features_than_rows(case, C):
    data = make_data(40, 300)
    model = quiet_fit_case(case, data, C=C, tol=1e-4)
    case.assert_certified(model, data)
    assert model.results_[0].status is Status.CONVERGED


# -- repeated rows and columns --------------------------------------------------------


@pytest.mark.parametrize("case", [*PAIR_CASES, MEASURE_CASES[-1]], ids=case_name)
def test_repeated_rows_are_the_same_mean(case):
    data = make_data(60)
    often = Data(*(np.repeat(getattr(data, name), 3, axis=0) for name in vars(data)))
    one, three = case.fit(data, C=50.0, tol=1e-7), case.fit(often, C=50.0, tol=1e-7)
    assert one.certificate_.primal == pytest.approx(three.certificate_.primal, rel=2e-7)


def test_repeated_columns_are_a_scaling(case):
    data = make_data()
    double, scaled = np.hstack([data.X, data.X]), np.sqrt(2.0) * data.X
    one, two = (case.fit(data, X, C=50.0, tol=1e-7) for X in (double, scaled))
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=2e-7)
    case.assert_certified(one, with_rows(data, double))


# -- scales ---------------------------------------------------------------------------


@pytest.mark.parametrize("power", [-30, 30])
def test_units_do_not_matter(case, power):
    """X·s with C/s² is the same problem, and powers of two round nothing: the same iterates."""
    data, scale = make_data(), 2.0**power
    plain = case.fit(data, C=128.0)
    # The bias of F1 is regularised: its constant feature has the unit of the others.
    bias = {"intercept_scaling": scale} if case.name == "f1" else {}
    model = case.fit(data, scale * data.X, C=128.0 * scale**-2, **bias)
    assert model.n_iter_ == plain.n_iter_
    np.testing.assert_array_equal(scale * model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.intercept_, plain.intercept_)
    assert scale**2 * model.certificate_.primal == plain.certificate_.primal


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_one_feature_in_another_unit(case, scale):
    """Converges, or states its true gap."""
    data = make_data()
    units = np.array([scale, 1.0, 1.0, 1.0, 1.0, 1.0])
    scaled = with_rows(data, data.X * units)
    model = quiet_fit_case(case, scaled, C=10.0, max_iter=1000)
    # The same problem, better scaled but for the price of one weight, is a point near by.
    near = case.fit(data, C=10.0)
    near.coef_ = near.coef_ / units
    known = case.objective(near, scaled)
    case.assert_certified(model, scaled, known=known, rounding=1e-6)
    assert model.certificate_.primal <= known + model.certificate_.gap + 1e-6 * known
    if scale < 1.0:
        assert model.results_[0].status is Status.CONVERGED


def quiet_fit_case(case, data, **parameters):
    """Fit where not converging is part of the plan."""
    parameters["C"] /= mass(case.y(data), None, case.extra(data).get("qid"))
    return quiet_fit(case.make(**parameters), data.X, case.y(data), **case.extra(data))


@functools.cache
def fitted(case, noise: float, C: float):
    return case.fit(make_data(100, noise=noise), C=C)


@pytest.mark.parametrize("C", [1e-12, 1e12])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_extreme_penalties(case, C, solver, noise):
    """Gap ≥ 0 and true: below the value of the solution for any other C, and of w = 0."""
    data = make_data(100, noise=noise)
    model = quiet_fit_case(case, data, C=C, solver=solver, max_iter=2000)
    known = [C * risk_of_zero(case, data)]
    for other in (1.0, 1e3, 1e5):
        near = copy.copy(fitted(case, noise, other))
        near.C = model.C
        known.append(case.objective(near, data))
    case.assert_certified(model, data, known=min(known), rounding=1e-7)
    assert model.certificate_.gap >= 0.0
    assert model.certificate_.primal <= min(known) * (1 + 1e-9) + model.certificate_.gap
    if C < 1.0 or solver == "ocas":
        assert model.results_[0].status is Status.CONVERGED
    if C == 1e-12:
        assert model.certificate_.primal == pytest.approx(known[0], rel=1e-3)


def test_numbers_near_the_ends_of_the_range():
    """Squares overflow or vanish: refuse, or answer with finite numbers and an honest gap.

    In a process of its own, because NaN in the wrong place can corrupt memory.
    """
    script = """
        import math, warnings
        import numpy as np
        from cutplane import MeasureSVC, OrdinalSVC, RankSVM
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        X, y, qid = rng.normal(size=(60, 3)), np.arange(60) % 2, np.arange(60) // 10
        cases = [(s * X, 1.0) for s in (1e-300, 1e-150, 1e20, 1e150, 1e300)]
        cases += [(X, C) for C in (1e-300, 1e100, 1e300)]
        measures = ("roc_auc", "f1", "precision_at_k", "recall_at_k", "prbep", "error_rate")
        measures += ("g_mean", "nkld", "partial_roc_auc", "average_precision")
        models = [MeasureSVC(measure) for measure in measures] + [OrdinalSVC(), RankSVM()]
        models += [RankSVM(objective="ndcg"), RankSVM(objective="ndcg", k=3)]
        for X, C in cases:
            for model in models:
                model.set_params(C=C, max_iter=30)
                what = f"{model} of {X[0, 0]:g}"
                extra = {"qid": qid} if isinstance(model, RankSVM) else {}
                try:
                    model.fit(X, y, **extra)
                except ValueError as error:
                    if not any(word in str(error) for word in ("X", "C", "scale")):
                        print(what, "unhelpful:", error)
                    continue
                except Exception as error:
                    print(what, "raises", repr(error))
                    continue
                proof = model.certificate_
                numbers = [proof.primal, proof.dual, proof.gap, *model.coef_[0], *model.intercept_]
                if not all(map(math.isfinite, numbers)):
                    print(what, "is not finite:", proof)
                elif not 0.0 <= proof.dual <= proof.primal:
                    print(what, "has no valid proof:", proof)
    """
    assert run_script(script).stdout == ""
