"""Bad input and hard problems for the kernel machines."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane.estimators.kernel_svc import SVC
from cutplane.estimators.kernel_svr import SVR, OneClassSVM


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C must be"),
        ({"C": -1.0}, "C must be"),
        ({"C": np.nan}, "C must be"),
        ({"C": np.inf}, "C must be"),
        ({"gamma": -0.1}, "gamma must be"),
        ({"gamma": np.nan}, "gamma must be"),
        ({"gamma": "big"}, "gamma must be one of"),
        ({"kernel": "gauss"}, "kernel must be one of"),
        ({"degree": 1.5}, "degree must be"),
        ({"degree": -1}, "degree must be"),
        ({"coef0": np.inf}, "coef0 must be"),
        ({"tol": -1e-3}, "tol must be"),
        ({"cache_size": 0}, "cache_size must be"),
        ({"working_set_size": 3}, "even"),
        ({"working_set_size": 0}, "working_set_size must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"decision_function_shape": "all"}, "decision_function_shape must be"),
        ({"multi_class": "all"}, "multi_class must be"),
        ({"class_weight": {1: -1.0}}, "class_weight must"),
        ({"callback": 3}, "callback must be"),
        ({"time_limit": 0.0}, "time_limit must be"),
    ],
    ids=str,
)
def test_bad_parameters(noisy, options, message):
    with pytest.raises(ValueError, match=message):
        SVC(**options).fit(*noisy)


def test_bad_parameters_of_the_others(noisy):
    with pytest.raises(ValueError, match="epsilon must be"):
        SVR(epsilon=-0.1).fit(*noisy)
    for nu in (0.0, 1.1, np.nan):
        with pytest.raises(ValueError, match="nu must be"):
            OneClassSVM(nu=nu).fit(noisy[0])
    for C in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="C must be"):
            SVR(C=C).fit(*noisy)


@pytest.mark.parametrize("make", [SVR, OneClassSVM])
def test_bad_weights_and_kernels_of_the_others(noisy, make):
    X, y = noisy
    ones = np.ones(len(y))
    for weights, message in ((0 * ones, "zero"), (-ones, "negative"), (ones * np.nan, "NaN|nan")):
        with pytest.raises(ValueError, match=message):
            make().fit(X, y, sample_weight=weights)
    K = X @ X.T
    with pytest.raises(ValueError, match="square"):
        make(kernel="precomputed").fit(K[:, :-1], y)
    K[3, 4] += 1.0
    with pytest.raises(ValueError, match="symmetric"):
        make(kernel="precomputed").fit(K, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (lambda y: np.zeros(len(y)), "zero"),
        (lambda y: -np.ones(len(y)), "must not be negative"),
        (lambda y: np.full(len(y), np.nan), "NaN|nan"),
        (lambda y: (y > 0).astype(float), "only one class has rows of positive weight"),
        (lambda y: np.full(len(y), 1e308), "overflows"),
    ],
)
def test_bad_weights(noisy, weights, message):
    X, y = noisy
    with pytest.raises(ValueError, match=message):
        SVC().fit(X, y, weights(y))


def test_one_class_only(noisy):
    with pytest.raises(ValueError, match="one class only"):
        SVC().fit(noisy[0], np.ones(len(noisy[0])))


def test_class_without_weight_among_three(iris):
    """Its pairs have nothing to decide; the others are fitted."""
    X, y = iris
    model = SVC().fit(X, y, (y != 1).astype(float))
    assert np.all(np.isfinite(model.intercept_))
    assert not np.any(y[model.support_] == 1)
    scores = SVC(decision_function_shape="ovo").fit(X, y, (y != 1).astype(float))
    assert np.mean((scores.decision_function(X)[:, 1] > 0)[y == 0]) > 0.9


# -- kernels ----------------------------------------------------------------------------


def test_indefinite_kernel_is_told_and_its_certificate_withheld(noisy):
    X, y = noisy
    with pytest.warns(UserWarning, match="not positive semidefinite.*withheld"):
        model = SVC(kernel="sigmoid", gamma=1.0).fit(X, y)
    assert model.certificate_.kind == "withheld"
    assert model.certificate_.gap == np.inf and model.certificate_.relative_gap == np.inf
    assert np.all(np.isfinite(model.decision_function(X)))


@pytest.mark.parametrize("how", ["precomputed", "callable", "poly"])
def test_indefinite_kernels_are_found_out(noisy, how):
    X, y = noisy

    def distance(A, B):
        return ((A[:, None] - B[None]) ** 2).sum(-1)

    cases = {
        "precomputed": (SVC(kernel="precomputed"), distance(X, X)),
        "callable": (SVC(kernel=distance), X),
        "poly": (SVC(kernel="poly", coef0=-3.0, degree=2), X),
    }
    model, data = cases[how]
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model.fit(data, y)
    assert model.certificate_.kind == "withheld"


@pytest.mark.parametrize(
    "function",
    [
        lambda A, B: np.full((len(A), len(B)), np.nan),
        lambda A, B: np.ones((len(B), len(A) + 1)),
        lambda A, B: np.ones(3),
        lambda A, B: "kernel",
    ],
)
@pytest.mark.parametrize("make", [SVC, SVR])
def test_bad_callables(noisy, function, make):
    with pytest.raises(ValueError, match="kernel: the function"):
        make(kernel=function).fit(*noisy)


def test_error_of_a_callable_is_passed_through(noisy):
    def broken(A, B):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        SVC(kernel=broken).fit(*noisy)


def test_bad_precomputed(noisy):
    X, y = noisy
    K = X @ X.T
    with pytest.raises(ValueError, match="square"):
        SVC(kernel="precomputed").fit(K[:, :-1], y)
    crooked = K.copy()
    crooked[3, 4] += 1.0
    with pytest.raises(ValueError, match="symmetric"):
        SVC(kernel="precomputed").fit(crooked, y)
    model = SVC(kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(K[:, :-1])


# -- data -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [None, 10])
@pytest.mark.parametrize("gamma", [0.0, 1e-12, 1e10])
def test_extreme_gamma(noisy, gamma, size):
    X, y = noisy
    model = SVC(gamma=gamma, working_set_size=size).fit(X, y)
    certificate = model.certificate_
    assert model.fit_status_ == 0 and certificate.gap >= 0
    assert np.all(np.isfinite(model.decision_function(X)))
    if gamma < 1.0:  # all rows look alike: the larger class wins, at the price of the smaller
        assert certificate.primal == pytest.approx(2 * np.sum(y == 1), rel=1e-3)
    else:  # every row stands alone
        assert np.mean(model.predict(X) == y) == 1.0
        assert np.all(model.decision_function(X + 1.0) == model.intercept_)


@pytest.mark.parametrize("size", [None, 4])
@pytest.mark.parametrize("value", [0.0, 3.7, 1e6])
def test_all_rows_equal(value, size):
    X, y = np.full((30, 4), value), np.array([0, 1, 1] * 10)
    model = SVC(working_set_size=size).fit(X, y)
    assert model.certificate_.primal == pytest.approx(20.0, rel=1e-3)
    assert np.all(model.predict(X) == 1)
    assert np.all(np.isfinite(SVR().fit(X, y.astype(float)).predict(X)))
    assert np.all(np.isfinite(OneClassSVM().fit(X).decision_function(X)))


def test_duplicated_rows_are_weights(noisy):
    X, y = noisy
    options = {"gamma": 0.2, "tol": 1e-7}
    once = SVC(C=2.0, **options).fit(X, y)
    twice = SVC(C=1.0, **options).fit(np.vstack([X, X]), np.concatenate([y, y]))
    assert twice.certificate_.primal == pytest.approx(once.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(twice.decision_function(X), once.decision_function(X), atol=1e-4)


def test_duplicated_columns_are_a_factor(noisy):
    X, y = noisy
    once = SVC(gamma=0.4, tol=1e-7).fit(X, y)
    twice = SVC(gamma=0.2, tol=1e-7).fit(np.hstack([X, X]), y)
    assert twice.certificate_.primal == pytest.approx(once.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize("size", [None, 10])
def test_contradictory_labels_converge(noisy, size):
    X, y = noisy
    model = SVC(C=5.0, tol=1e-6, working_set_size=size)
    model.fit(np.vstack([X, X]), np.concatenate([y, -y]))
    assert model.fit_status_ == 0
    assert model.certificate_.primal == pytest.approx(2 * len(y) * 5.0, rel=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.parametrize(("kernel", "size"), [("rbf", None), ("linear", None), ("rbf", 64)])
def test_extreme_c_is_honest(noisy, C, kernel, size):
    """Whatever is reached, the gap is stated and is not negative."""
    X, y = noisy
    model = SVC(C=C, kernel=kernel, time_limit=2.0, gamma=0.2, working_set_size=size).fit(X, y)
    certificate = model.certificate_
    assert certificate.gap >= 0 and np.isfinite(certificate.primal)
    assert certificate.dual <= certificate.primal
    X = X.astype(np.longdouble)
    K = X @ X.T if kernel == "linear" else np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(-1))
    beta = np.zeros(len(y), np.longdouble)
    beta[model.support_] = model.dual_coef_[0]
    scores = K @ beta + model.intercept_[0]
    value = 0.5 * beta @ K @ beta + C * np.maximum(0, 1 - y * scores).sum()
    assert certificate.primal >= value
    assert certificate.primal == pytest.approx(float(value), rel=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_feature_out_of_scale(noisy):
    X, y = noisy
    for factor in (1e8, 1e-8):
        data = X * np.where(np.arange(5) == 2, factor, 1.0)
        model = SVC(kernel="linear", time_limit=2.0)
        model.fit(data, y)
        assert model.certificate_.gap >= 0 and np.isfinite(model.certificate_.gap)


def test_input_is_not_changed_and_may_be_read_only(noisy):
    X, y = noisy  # the fixture is read-only
    K = X @ X.T
    before = K.copy()
    K.flags.writeable = False
    SVC(kernel="precomputed").fit(K, y)
    SVC(kernel="precomputed", working_set_size=4, shrinking=True).fit(K, y)
    np.testing.assert_array_equal(K, before)
    SVC().fit(X, y)


def test_cache_is_kept_small():
    """Budget of 1 MB against 128 MB of kernel values: same optimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    small = SVC(cache_size=1).fit(X, y)
    large = SVC(cache_size=200).fit(X, y)
    assert small.certificate_.primal == pytest.approx(large.certificate_.primal, rel=1e-3)
