"""Problems that break solvers: degenerate, contradictory, badly scaled, extreme."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from svc_reference import (
    assert_certified,
    best_bias,
    binary_objective,
    certificates,
    libsvm,
    quiet_fit,
    results,
    run_script,
    signs_of,
    smooth_optimum,
)

from cutplane import LinearSVC, Status

LOSSES = ["hinge", "squared_hinge", "logistic"]
VARIANTS = {
    "hinge": {},
    "no bias": {"fit_intercept": False},
    "cpa": {"solver": "cpa"},
    "squared_hinge": {"loss": "squared_hinge"},
    "logistic": {"loss": "logistic"},
    "crammer_singer": {"multi_class": "crammer_singer"},
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS)
def variant(request):
    return request.param


def least_hinge(X, signs) -> tuple[float, np.ndarray, float]:
    """The least sum of hinge losses without any regulariser, as a linear program: (sum, w, b)."""
    rows, features = X.shape
    cost = np.concatenate([np.zeros(features + 1), np.ones(rows)])
    extended = np.hstack([X, np.ones((rows, 1))]) * signs[:, None]
    answer = scipy.optimize.linprog(
        cost,
        A_ub=-np.hstack([extended, np.eye(rows)]),
        b_ub=-np.ones(rows),
        bounds=[(None, None)] * (features + 1) + [(0, None)] * rows,
        method="highs",
    )
    return answer.fun, answer.x[:features], answer.x[features]


# -- degenerate -----------------------------------------------------------------------


@pytest.mark.parametrize("y", [[1, 1, 1, 1], ["a"] * 4, [False] * 4], ids=str)
def test_one_class_is_refused(y, variant):
    with pytest.raises(ValueError, match=r"one class"):
        LinearSVC(**variant).fit(np.eye(4), y)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("positives", [1, 5, 8])
@pytest.mark.parametrize("loss", LOSSES)
def test_all_zero_data(loss, positives, sparse):
    """w = 0, no gap, and the bias that is best for the labels alone."""
    X = scipy.sparse.csr_array((10, 3)) if sparse else np.zeros((10, 3))
    y = np.arange(10) < positives
    model = LinearSVC(C=2.0, loss=loss, tol=1e-9).fit(X, y)
    share = positives / 10
    optimum = {
        "hinge": 2 * min(share, 1 - share),
        "squared_hinge": 4 * share * (1 - share),
        "logistic": -share * np.log(share) - (1 - share) * np.log(1 - share),
    }[loss]
    assert model.coef_.tolist() == [[0.0, 0.0, 0.0]]
    assert np.isfinite(model.intercept_).all()
    assert model.certificate_.primal == pytest.approx(2.0 * 10 * optimum, rel=1e-12)
    assert model.certificate_.gap <= 1e-12 * model.certificate_.primal
    assert model.results_[0].status is Status.CONVERGED


def test_all_zero_data_of_three_classes(variant):
    X, y = np.zeros((9, 2)), np.arange(9) % 3
    model = LinearSVC(**variant).fit(X, y)
    assert np.all(model.coef_ == 0.0)
    assert_certified(model, X, y)
    for proof in certificates(model):
        assert proof.gap <= 1e-9 * proof.primal


@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 1e3])
@pytest.mark.parametrize("distance", [1e-3, 1.0, 1e3])
def test_two_rows(C, distance):
    """Closed form: α = min(C, 2/d²), F = 2α − ½α²d²."""
    X, y = np.array([[0.0, 1.0], [distance, 1.0]]), [0, 1]
    alpha = min(C, 2.0 / distance**2)
    optimum = 2 * alpha - 0.5 * (alpha * distance) ** 2
    model = LinearSVC(C=C, tol=1e-9).fit(X, y)
    assert model.certificate_.primal == pytest.approx(optimum, rel=1e-8)
    # ½|w − w*|² is at most the gap.
    off = np.sqrt(2.0 * max(model.certificate_.gap, 1e-15 * optimum))
    assert model.coef_[0] == pytest.approx([alpha * distance, 0.0], rel=1e-6, abs=off)
    assert_certified(model, X, y, references=[optimum])


def test_two_equal_rows_of_two_classes(variant):
    model = LinearSVC(**variant).fit([[1.0, 2.0], [1.0, 2.0]], [0, 1])
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-9)
    assert model.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_one_row_per_class(multi_class):
    X, y = np.eye(6) * 3.0, np.arange(6)
    model = LinearSVC(C=100.0, multi_class=multi_class, tol=1e-6).fit(X, y)
    assert_certified(model, X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert all(proof.relative_gap <= 1e-6 for proof in certificates(model))


def test_more_features_than_rows(variant):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 500)), np.arange(20) % 2
    model = LinearSVC(C=10.0, tol=1e-6, **variant).fit(X, y)
    assert_certified(model, X, y)
    assert model.score(X, y) == 1.0
    assert model.certificate_.relative_gap <= 1e-6
    if variant == {}:
        known = libsvm(X, signs_of(y, 1), 10.0)
        assert known.lower * (1 - 1e-6) <= model.certificate_.primal <= known.upper * (1 + 1e-6)


def test_one_feature(variant):
    X, y = np.linspace(-1, 2, 30)[:, None], np.arange(30) >= 15
    model = LinearSVC(tol=1e-6, **variant).fit(X, y)
    assert_certified(model, X, y)
    assert model.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize("value", [1.0, -50.0, 1e4])
def test_constant_features_do_nothing_beside_a_free_bias(noisy, value):
    X, y = noisy
    wide = np.hstack([X, np.full((len(X), 2), value)])
    plain, model = LinearSVC(tol=1e-7).fit(X, y), LinearSVC(tol=1e-7).fit(wide, y)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(model.coef_[0, 5:] * value, 0.0, atol=1e-2)


# -- repeated and contradictory -------------------------------------------------------


@pytest.mark.parametrize("times", [2, 7])
def test_repeated_rows_are_a_larger_penalty(noisy, variant, times):
    X, y = noisy
    once = LinearSVC(C=0.1 * times, tol=1e-7, **variant).fit(X, y)
    often = LinearSVC(C=0.1, tol=1e-7, **variant).fit(np.tile(X, (times, 1)), np.tile(y, times))
    assert often.certificate_.primal == pytest.approx(once.certificate_.primal, rel=2e-7)


@pytest.mark.parametrize("times", [2, 5])
def test_repeated_columns_are_a_scaling(noisy, variant, times):
    """w spreads over the copies: the same optimum as for one column, √times as long."""
    X, y = noisy
    copies = LinearSVC(C=0.1, tol=1e-7, **variant).fit(np.tile(X, (1, times)), y)
    scaled = LinearSVC(C=0.1, tol=1e-7, **variant).fit(np.sqrt(times) * X, y)
    assert copies.certificate_.primal == pytest.approx(scaled.certificate_.primal, rel=2e-7)
    assert_certified(copies, np.tile(X, (1, times)), y)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_row_with_both_labels(noisy, loss, C):
    """Nothing can be learnt: w = 0 is optimal, at a known price."""
    X = noisy[0]
    y = np.repeat([0, 1], len(X))
    model = LinearSVC(C=C, loss=loss, tol=1e-6).fit(np.vstack([X, X]), y)
    price = {"hinge": 2.0, "squared_hinge": 2.0, "logistic": 2.0 * np.log(2.0)}[loss]
    assert model.certificate_.primal == pytest.approx(C * len(X) * price, rel=1e-6)
    assert model.certificate_.dual <= C * len(X) * price * (1 + 1e-12)
    assert model.results_[0].status is Status.CONVERGED


def test_random_labels(variant):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 10)), rng.integers(0, 2, 300)
    model = LinearSVC(C=100.0, **variant).fit(X, y)
    assert all(result.status is Status.CONVERGED for result in results(model))
    assert_certified(model, X, y)


@pytest.mark.parametrize("C", [1.0, 1e2, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_stall_far_above_the_limit_of_precision(noisy, loss, C):
    """A cut that does not cut the trial point off brings the same trial point for ever."""
    X, y = noisy
    model = LinearSVC(C=C, loss=loss, tol=1e-5).fit(X, y)
    assert model.results_[0].status is Status.CONVERGED
    plain = LinearSVC(C=C, loss=loss, tol=1e-5, solver="cpa").fit(X, y)
    assert model.certificate_.dual <= plain.certificate_.primal * (1 + 1e-9)
    assert plain.certificate_.dual <= model.certificate_.primal * (1 + 1e-9)


# -- scales ---------------------------------------------------------------------------


@pytest.mark.parametrize("power", [-40, -10, 10, 40])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_units_do_not_matter(cancer, power, bias, solver):
    """X·s with C/s² is the same problem, and powers of two round nothing: the same iterates."""
    X, y = cancer
    scale = 2.0**power
    plain = LinearSVC(fit_intercept=bias, solver=solver).fit(X, y)
    model = LinearSVC(C=scale**-2, fit_intercept=bias, solver=solver).fit(scale * X, y)
    assert model.n_iter_ == plain.n_iter_
    np.testing.assert_array_equal(scale * model.coef_, plain.coef_)
    assert scale**2 * model.certificate_.primal == plain.certificate_.primal
    assert scale**2 * model.certificate_.dual == plain.certificate_.dual


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_one_feature_in_another_unit_smooth(noisy, loss, scale):
    X, y = noisy
    units = np.array([scale, 1.0, 1.0, 1.0, 1.0])
    optimum = smooth_optimum(X, 1.0 * y, 1.0, loss, penalty=units**-2.0)
    model = quiet_fit(LinearSVC(loss=loss), X * units, y)
    assert_honest(model, X * units, y, optimum)


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_one_feature_in_another_unit(noisy, scale, bias, solver):
    X, y = noisy
    units = np.array([scale, 1.0, 1.0, 1.0, 1.0])
    scaled = X * units
    known = np.inf  # the best of a few points that are near the optimum
    for C in (0.1, 1.0, 10.0, 1e3):
        v = quiet_fit(LinearSVC(C=C, tol=1e-6, fit_intercept=bias), X, y).coef_[0]
        for w in (v / units, np.where(units < 1, 0.0, v / units)):
            b = best_bias(scaled @ w, 1.0 * y) if bias else 0.0
            known = min(known, binary_objective(w, b, scaled, y, 1.0))
    model = quiet_fit(LinearSVC(fit_intercept=bias, solver=solver), scaled, y)
    assert_honest(model, scaled, y, known)


def assert_honest(model, X, y, known: float) -> None:
    """Converged, or states a gap that is true."""
    assert_certified(model, X, y, references=[known])
    assert model.certificate_.primal <= known + model.certificate_.gap + 1e-9 * known
    ratio = np.abs(X).max() / np.abs(X).max(axis=0).min()
    if ratio < 1e6:
        assert model.results_[0].status is Status.CONVERGED
    if model.results_[0].status is not Status.CONVERGED:
        assert model.results_[0].status is Status.NUMERICALLY_LIMITED
        assert model.certificate_.relative_gap > 1e-3


def test_the_hint_at_scaling(noisy, monkeypatch):
    """A fit that rounding has stopped says what helps."""
    monkeypatch.setattr("cutplane.solvers.cutting_plane.BundleSolver._stalled", lambda solver: True)
    with pytest.warns(ConvergenceWarning, match="similar scales"):
        model = LinearSVC(tol=0.0).fit(*noisy)
    assert model.results_[0].status is Status.NUMERICALLY_LIMITED


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_extreme_penalties_on_overlapping_classes(noisy, C, solver):
    X, y = noisy
    least, w, b = least_hinge(X, 1.0 * y)
    known = min(
        binary_objective(w, b, X, y, C),
        binary_objective(np.zeros(5), best_bias(np.zeros(200), 1.0 * y), X, y, C),
    )
    model = quiet_fit(LinearSVC(C=C, solver=solver), X, y)
    assert_certified(model, X, y, references=[known])
    assert model.certificate_.primal >= C * least * (1 - 1e-9)
    assert model.certificate_.primal <= known * (1 + 2e-3)
    assert model.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_extreme_penalties_on_separable_classes(iris, C, solver):
    """Beyond some C the hard margin is the optimum, and stays it."""
    X, y = iris[0], iris[1] == 0
    signs = signs_of(y, True)
    known = libsvm(X, signs, min(C, 1e4)).upper
    model = quiet_fit(LinearSVC(C=C, solver=solver), X, y)
    assert_certified(model, X, y, references=[known])
    assert model.certificate_.primal <= known * (1 + 2e-3)
    assert model.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1e6])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_extreme_penalties_of_smooth_losses(noisy, loss, C):
    X, y = noisy
    optimum = smooth_optimum(X, 1.0 * y, C, loss)
    model = quiet_fit(LinearSVC(C=C, loss=loss), X, y)
    assert_certified(model, X, y, references=[optimum])
    assert model.certificate_.primal >= optimum * (1 - 1e-9)
    assert model.certificate_.relative_gap <= 1e-3


def test_numbers_near_the_ends_of_the_range():
    """Squares overflow or vanish: refuse, or answer with finite numbers and an honest gap.

    In a process of its own, because NaN in the wrong place can corrupt memory.
    """
    script = """
        import itertools, math, sys, traceback, warnings
        import numpy as np
        from cutplane import LinearSVC
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
        weights = np.ones(60)
        clocks = X.copy()
        clocks[:, 0] = 1.7e18 + 1e15 * X[:, 0]  # nanoseconds since 1970
        cases = [("clocks", clocks, 1.0, weights)]
        cases += [(f"X {s:g}", s * X, 1.0, weights) for s in 10.0 ** np.arange(-300, 308, 76)]
        cases += [(f"X {s:g}", s * X, 1.0, weights) for s in (1e12, 1e17, 1e20, 1e42, 1e150)]
        cases += [(f"C {C:g}", X, C, weights) for C in (1e-300, 1e100, 1e300)]
        cases += [(f"weights {s:g}", X, 1.0, s * weights) for s in (1e-300, 1e300, 1.7e308)]
        losses = ("hinge", "squared_hinge", "logistic")
        for (name, X, C, weights), loss, bias in itertools.product(cases, losses, (True, False)):
            what = f"{name}, {loss}, bias {bias}"
            model = LinearSVC(C=C, loss=loss, fit_intercept=bias, max_iter=30)
            try:
                model.fit(X, y, sample_weight=weights)
            except ValueError as error:
                if not any(word in str(error) for word in ("X", "C", "weight", "scale")):
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
