"""Warm starts: from the previous fit, and from any dual point. Never at the price of the proof."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from svc_reference import (
    assert_certified,
    libsvm,
    libsvm_dual,
    quiet_fit,
    results,
    run_script,
    signs_of,
)

from cutplane import LinearSVC, Status

VARIANTS = {
    "hinge": {},
    "no bias": {"fit_intercept": False},
    "regularised bias": {"intercept_scaling": 1.0},
    "cpa": {"solver": "cpa"},
    "squared_hinge": {"loss": "squared_hinge"},
    "logistic": {"loss": "logistic"},
    "crammer_singer": {"multi_class": "crammer_singer"},
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS)
def variant(request):
    return request.param


def assert_same_optimum(warm: LinearSVC, X, y, weights=None, tol: float = 1e-6) -> None:
    """A warm fit ends where a cold one ends, and proves it."""
    cold = clone(warm).fit(X, y, sample_weight=weights)
    assert_certified(
        warm, X, y, weights, references=[result.certificate.primal for result in results(cold)]
    )
    for ours, theirs in zip(results(warm), results(cold), strict=True):
        assert ours.status is Status.CONVERGED
        assert ours.certificate.primal <= theirs.certificate.primal * (1 + 2 * tol)
        assert theirs.certificate.dual <= ours.certificate.primal * (1 + 1e-9)


# -- the previous fit -----------------------------------------------------------------


def test_the_same_problem_again_is_solved_at_once(variant, iris):
    X, y = iris
    model = LinearSVC(tol=1e-6, warm_start=True, **variant).fit(X, y)
    first = model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ <= 3 < first
    assert_same_optimum(model, X, y)


@pytest.mark.parametrize("factor", [0.1, 1.5, 10.0])
def test_another_penalty(variant, iris, factor):
    X, y = iris
    model = LinearSVC(tol=1e-6, warm_start=True, **variant).fit(X, y)
    model.set_params(C=factor).fit(X, y)
    assert_same_optimum(model, X, y)


def test_a_path_of_penalties_takes_fewer_iterations(cancer):
    X, y = cancer
    path = np.geomspace(0.01, 1.0, 12)
    cold = sum(LinearSVC(C=C, solver="ocas").fit(X, y).n_iter_ for C in path)
    model = LinearSVC(solver="ocas", warm_start=True)
    warm = sum(model.set_params(C=C).fit(X, y).n_iter_ for C in path)
    assert warm < 0.8 * cold


def test_other_data_of_the_same_shape(variant, iris):
    """Cuts of the old data would make a bound that is wrong."""
    X, y = iris
    rng = np.random.default_rng(0)
    model = LinearSVC(tol=1e-6, warm_start=True, **variant).fit(10.0 * X, y)
    for other in (X, X + 0.01 * rng.normal(size=X.shape), -X, np.float32(X).astype(float)):
        model.fit(other, y)
        assert_same_optimum(model, other, y)


def test_the_same_data_in_other_units(variant, iris):
    """The old solution is a start with scores of 1e14."""
    X, y = iris
    model = quiet_fit(LinearSVC(warm_start=True, max_iter=500, **variant), 1e-7 * X, y)
    model.set_params(C=1e-14)
    assert_certified(quiet_fit(model, 1e7 * X, y), 1e7 * X, y, rounding=1e-6)


def test_one_number_changed_in_place(variant, iris):
    """The same array object with another content is other data."""
    X, y = iris[0].copy(), iris[1]
    model = LinearSVC(tol=1e-6, warm_start=True, **variant).fit(X, y)
    X[60] += 5.0
    model.fit(X, y)
    assert_same_optimum(model, X, y)


def test_other_labels(variant, iris):
    """Cuts of labels that are hard to fit lie above the risk of those that are easy."""
    X, y = iris
    shuffled = np.random.default_rng(0).permutation(y)
    model = LinearSVC(tol=1e-6, warm_start=True, **variant).fit(X, shuffled)
    for labels in (y, shuffled, (y + 1) % 3):
        model.fit(X, labels)
        assert_same_optimum(model, X, labels)


def test_other_weights(variant, iris):
    X, y = iris
    weights = np.random.default_rng(0).integers(0, 5, len(y)).astype(float)
    model = LinearSVC(tol=1e-6, warm_start=True, **variant).fit(X, y)
    model.fit(X, y, sample_weight=weights)
    assert_same_optimum(model, X, y, weights)
    model.fit(X, y)
    assert_same_optimum(model, X, y)


@pytest.mark.parametrize(
    "change",
    [
        {"loss": "logistic"},
        {"loss": "squared_hinge"},
        {"fit_intercept": False},
        {"intercept_scaling": 2.0},
        {"multi_class": "crammer_singer"},
        {"solver": "cpa"},
        {"class_weight": "balanced"},
    ],
    ids=str,
)
def test_other_parameters(iris, change):
    X, y = iris[0][30:], iris[1][30:]  # unequal classes
    model = LinearSVC(tol=1e-6, warm_start=True).fit(X, y)
    model.set_params(**change).fit(X, y)
    factors = np.ones(len(y))
    if "class_weight" in change:
        counts = np.bincount(y)
        factors = (len(y) / (3 * counts))[y]
    cold = clone(model).fit(X, y)
    assert_certified(model, X, y, factors, references=[r.certificate.primal for r in results(cold)])
    for ours, theirs in zip(results(model), results(cold), strict=True):
        assert ours.certificate.primal <= theirs.certificate.primal * (1 + 2e-6)


def test_other_shapes(iris, cancer, digits):
    model = LinearSVC(tol=1e-6, warm_start=True)
    for X, y in (iris, cancer, digits, iris):
        model.fit(X, y)
        assert_same_optimum(model, X, y)


def test_another_number_of_classes(iris):
    X, y = iris
    model = LinearSVC(tol=1e-6, warm_start=True).fit(X, y)
    model.fit(X[:100], y[:100])
    assert_same_optimum(model, X[:100], y[:100])
    model.fit(X, y)
    assert_same_optimum(model, X, y)


def test_a_cold_start_starts_cold(iris):
    X, y = iris
    model = LinearSVC(warm_start=True).fit(X, y)
    model.set_params(warm_start=False).fit(X, y)
    assert model.n_iter_ == LinearSVC().fit(X, y).n_iter_
    assert_same_optimum(model.set_params(warm_start=True, tol=1e-6).fit(X, y), X, y)


@pytest.mark.parametrize("value", [0.0, 1e3, 1e6, 1e10, 1e15])
def test_any_coef_is_a_start(iris, value):
    """A start is where the search begins, nothing more: the scores there must not haunt the end."""
    X, y = iris
    model = LinearSVC(tol=1e-6, warm_start=True).fit(X, y)
    model.coef_ = np.full_like(model.coef_, value)
    assert_same_optimum(model.fit(X, y), X, y)


def test_what_is_no_point_is_no_start():
    """In a process of its own, because NaN in the wrong place can corrupt memory."""
    script = """
        import numpy as np
        from cutplane import LinearSVC
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(100, 3)), rng.integers(0, 2, 100)
        for value in (np.nan, np.inf, 1e200):
            model = LinearSVC(warm_start=True, max_iter=500).fit(X, y)
            primal = model.certificate_.primal
            model.coef_[:] = value
            model.fit(X, y)
            assert model.certificate_.relative_gap <= 1e-3
            assert abs(model.certificate_.primal / primal - 1) <= 2e-3
    """
    run_script(script)


@pytest.mark.parametrize("layout", ["csr", "csc", "fortran", "float32"])
def test_every_layout_is_told_apart_and_recognised(cancer, layout):
    import scipy.sparse

    make = {
        "csr": scipy.sparse.csr_array,
        "csc": scipy.sparse.csc_matrix,
        "fortran": np.asfortranarray,
        "float32": lambda X: X.astype(np.float32),
    }[layout]
    X, y = cancer
    other = X.copy()
    other[-1] *= -3.0
    model = LinearSVC(tol=1e-6, warm_start=True).fit(make(X), y)
    assert model.fit(make(X), y).n_iter_ <= 3
    model.fit(make(other), y)
    assert_same_optimum(model, make(other).astype(float), y)


def test_empty_sparse_data_can_be_warm_started():
    import scipy.sparse

    X, y = scipy.sparse.csr_array((6, 3)), [0, 1, 0, 1, 0, 1]
    model = LinearSVC(warm_start=True).fit(X, y).fit(X, y)
    assert model.certificate_.gap <= 1e-12  # what rounding may have done


def test_what_a_warm_start_keeps_is_not_pickled(cancer):
    X, y = cancer
    model = LinearSVC(warm_start=True).fit(X, y)
    plain = LinearSVC().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(again)) < 1.1 * len(pickle.dumps(plain)) + 1000
    assert_same_optimum(again.set_params(tol=1e-6).fit(X, y), X, y)


# -- a dual point ---------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_libsvms_dual_point_is_a_proof_by_itself(cancer, C):
    """Its cut makes the first lower bound as good as libsvm's own."""
    X, y = cancer
    signs = signs_of(y, 1)
    alpha = libsvm_dual(X, signs, C)
    known = libsvm(X, signs, C)
    for solver in ("auto", "ocas"):
        model = LinearSVC(C=C, tol=1e-9, solver=solver).fit(X, y, dual_init=alpha)
        assert_certified(model, X, y, references=[known.upper])
        assert model.results_[0].trace[0].dual >= known.lower * (1 - 1e-5)
    assert model.n_iter_ < LinearSVC(C=C, tol=1e-9, solver="ocas").fit(X, y).n_iter_


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("bias", [{}, {"fit_intercept": False}, {"intercept_scaling": 1.0}])
@pytest.mark.parametrize("size", [-5.0, 0.0, 0.5, 1e6])
def test_any_numbers_are_clipped_to_a_valid_point(noisy, loss, bias, size):
    X, y = noisy
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    dual = size * np.random.default_rng(2).normal(size=len(y))
    cold = LinearSVC(tol=1e-7, loss=loss, **bias).fit(X, y, sample_weight=weights)
    warm = LinearSVC(tol=1e-7, loss=loss, **bias)
    warm.fit(X, y, sample_weight=weights, dual_init=dual)
    assert_certified(warm, X, y, weights, references=[cold.certificate_.primal])
    assert warm.certificate_.relative_gap <= 1e-7


def test_one_dual_point_per_class(iris):
    X, y = iris
    duals = np.array([libsvm_dual(X, signs_of(y, k), 1.0) for k in range(3)])
    model = LinearSVC(tol=1e-6).fit(X, y, dual_init=duals)
    for k, result in enumerate(model.results_):
        known = libsvm(X, signs_of(y, k), 1.0)
        assert result.trace[0].dual >= known.lower * (1 - 1e-4)
        assert result.certificate.dual <= known.upper * (1 + 1e-9)


def test_a_dual_point_and_a_warm_start_together(cancer):
    X, y = cancer
    alpha = libsvm_dual(X, signs_of(y, 1), 1.0)
    model = LinearSVC(tol=1e-6, warm_start=True).fit(X, y)
    model.set_params(C=0.5).fit(X, y, dual_init=0.5 * alpha)
    assert_same_optimum(model, X, y)


@pytest.mark.parametrize(
    "dual",
    [[0.1], np.zeros((2, 569)), np.zeros(568), np.zeros((569, 1)), np.full(569, np.nan), "abc"],
    ids=["short", "two rows", "one less", "column", "nan", "text"],
)
def test_a_wrong_dual_point_is_named(cancer, dual):
    with pytest.raises(ValueError, match="dual_init"):
        LinearSVC().fit(*cancer, dual_init=dual)


def test_crammer_singer_takes_no_dual_point(iris):
    with pytest.raises(ValueError, match="dual_init"):
        LinearSVC(multi_class="crammer_singer").fit(*iris, dual_init=np.zeros(150))


def test_the_dual_point_is_not_changed(cancer):
    dual = np.full(569, 9.0)
    quiet_fit(LinearSVC(), *cancer, dual_init=dual)
    assert np.all(dual == 9.0)
