"""SVC, SVR and OneClassSVM against scikit-learn's: the same model, attributes and conventions."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from cutplane.estimators.kernel_svc import SVC
from cutplane.estimators.kernel_svr import SVR, OneClassSVM
from cutplane.result import Status

KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": "auto"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "linear"},
    {"kernel": "poly", "coef0": 1.0, "degree": 2, "gamma": 0.1},
]


def objective(model, K: np.ndarray, y: np.ndarray, bounds: np.ndarray) -> float:
    """½|w|² + Σ bounds·hinge of a fitted binary model, from its public attributes."""
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    scores = K @ beta + model.intercept_[0]
    return 0.5 * beta @ K @ beta + bounds @ np.maximum(0, 1 - y * scores)


@pytest.mark.parametrize("options", KERNELS, ids=str)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_binary_model_is_libsvms(noisy, options, sparse):
    X, y = noisy
    data = scipy.sparse.csr_matrix(X) if sparse else X
    ours = SVC(C=2.0, tol=1e-8, **options).fit(data, y)
    theirs = svm.SVC(C=2.0, tol=1e-8, **options).fit(data, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    to_dense = (lambda a: a.toarray()) if sparse else np.asarray
    np.testing.assert_allclose(
        to_dense(ours.dual_coef_), to_dense(theirs.dual_coef_), atol=1e-4, err_msg="dual_coef_"
    )
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    np.testing.assert_allclose(
        ours.decision_function(data), theirs.decision_function(data), atol=2e-5
    )
    np.testing.assert_array_equal(
        to_dense(ours.support_vectors_), to_dense(theirs.support_vectors_)
    )
    if options["kernel"] == "linear":
        np.testing.assert_allclose(to_dense(ours.coef_), to_dense(theirs.coef_), atol=1e-5)


@pytest.mark.parametrize("weights", ["none", "classes", "balanced", "rows", "both"])
def test_weights_and_certificate(noisy, weights):
    """The certificate is that of the user's objective, computed here from public attributes."""
    X, y = noisy
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 4, len(y)).astype(float) if weights in ("rows", "both") else None
    classes = {"classes": {-1: 0.3, 1: 4.0}, "both": {-1: 2.0}, "balanced": "balanced"}.get(weights)
    K = X @ X.T
    ours = SVC(C=0.7, kernel="linear", class_weight=classes, tol=1e-7).fit(X, y, rows)
    factor = ours.class_weight_[(y > 0).astype(int)]
    bounds = 0.7 * factor * (np.ones(len(y)) if rows is None else rows)
    certificate = ours.certificate_
    assert certificate.primal == pytest.approx(objective(ours, K, y, bounds), rel=1e-9)
    theirs = svm.SVC(C=0.7, kernel="linear", class_weight=classes, tol=1e-9).fit(X, y, rows)
    theirs_value = objective(theirs, K, y, bounds)
    assert certificate.dual <= theirs_value * (1 + 1e-9)
    assert certificate.primal == pytest.approx(theirs_value, rel=1e-6)


def test_rows_of_weight_zero_do_not_count(noisy):
    X, y = noisy
    weights = np.random.default_rng(0).integers(0, 2, len(y)).astype(float)
    ours = SVC(gamma=0.2, tol=1e-8).fit(X, y, weights)
    without = SVC(gamma=0.2, tol=1e-8).fit(X[weights > 0], y[weights > 0])
    assert np.all(weights[ours.support_] > 0)
    np.testing.assert_allclose(ours.decision_function(X), without.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("break_ties", [False, True])
def test_three_classes_in_scikit_learns_layout(iris, shape, break_ties):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    options = {"decision_function_shape": shape, "break_ties": break_ties, "tol": 1e-8}
    ours, theirs = SVC(**options).fit(X, names), svm.SVC(**options).fit(X, names)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert len(ours.certificates_) == len(ours.results_) == 3
    if shape == "ovo" and break_ties:
        with pytest.raises(ValueError, match="break_ties"):
            ours.predict(X)
    else:
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_ten_classes(digits):
    X, y = digits
    ours, theirs = SVC(C=5.0, tol=1e-7).fit(X, y), svm.SVC(C=5.0, tol=1e-7).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    assert ours.dual_coef_.shape == (9, len(ours.support_))


@pytest.mark.parametrize(
    ("kernel", "classes", "features"),
    [
        *((kernel, classes, 80) for kernel in ("linear", "poly", "rbf") for classes in (2, 4)),
        *(("rbf", 2, features) for features in (3, 10)),
    ],
)
def test_labels_have_the_signs_of_the_scores(kernel, classes, features, monkeypatch):
    """Single precision proves most of them; rows on a border get their scores anew."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(classes, features))
    y = rng.integers(0, classes, 300)
    X = centres[y] + 2.0 * rng.normal(size=(300, features))
    model = SVC(kernel=kernel, decision_function_shape="ovo").fit(X, y)
    new = centres[rng.integers(0, classes, 3000)] + 2.0 * rng.normal(size=(3000, features))
    # A row near the border of a pair of classes, found by bisection between two rows.
    low, high = (new[np.flatnonzero(pick)[0]] for pick in _sides(model, new))
    for _ in range(30):
        middle = 0.5 * (low + high)
        if _sides(model, middle[None])[0][0]:
            low = middle
        else:
            high = middle
    new[1000] = low
    doubles = []
    exact = SVC._scores_of
    monkeypatch.setattr(
        SVC, "_scores_of", lambda self, X: doubles.append(X.shape[0]) or exact(self, X)
    )
    labels = model.predict(new)
    np.testing.assert_array_equal(labels, model.set_params(n_jobs=3).predict(new))
    assert 1 <= doubles[0] <= 300
    scores = model.decision_function(new).reshape(len(new), -1)
    np.testing.assert_array_equal(np.sign(model._signed_scores(new)), np.sign(scores))
    if classes == 2:
        np.testing.assert_array_equal(labels, scores[:, 0] > 0.0)


def _sides(model, X):
    """Which rows are on either side of the border of the first two classes."""
    scores = model.decision_function(X).reshape(len(X), -1)[:, 0]
    return scores > 0.0, scores <= 0.0


def test_uncertain_signs_are_computed_in_double_precision(monkeypatch):
    """With huge coefficients single precision proves little: no more than some rows are tried."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 70)), rng.integers(0, 2, 200)
    model = SVC(gamma=1e-4, C=1e9, tol=0.1).fit(X, y)
    new = rng.normal(size=(2000, 70))
    labels = model.predict(new)
    np.testing.assert_array_equal(labels, model.classes_[(model.decision_function(new) > 0) * 1])


def test_one_against_rest_is_a_binary_problem_per_class(iris):
    X, y = iris
    model = SVC(multi_class="ovr", tol=1e-8, gamma=0.5).fit(X, y)
    scores = model.decision_function(X)
    for k in range(3):
        single = SVC(tol=1e-8, gamma=0.5).fit(X, y == k)
        np.testing.assert_allclose(scores[:, k], single.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
    assert model.dual_coef_.shape == (3, len(model.support_))


@pytest.mark.parametrize("options", KERNELS, ids=str)
def test_regression_is_libsvms(noisy, options):
    X, _ = noisy
    z = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    weights = np.random.default_rng(0).integers(0, 3, len(z)).astype(float)
    ours = SVR(C=3.0, epsilon=0.05, tol=1e-7, **options).fit(X, z, weights)
    theirs = svm.SVR(C=3.0, epsilon=0.05, tol=1e-7, **options).fit(X, z, weights)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    beta = np.zeros(len(z))
    beta[ours.support_] = ours.dual_coef_[0]
    regulariser = 0.5 * beta @ (ours.predict(X) - ours.intercept_)
    losses = np.maximum(0, np.abs(z - ours.predict(X)) - 0.05)
    assert ours.certificate_.primal == pytest.approx(regulariser + 3.0 * weights @ losses, rel=1e-6)
    assert ours.certificate_.relative_gap < 1e-5


@pytest.mark.parametrize("nu", [0.05, 0.5, 0.95])
def test_one_class_is_libsvms(noisy, nu):
    X, _ = noisy
    ours = OneClassSVM(nu=nu, gamma=0.2, tol=1e-8).fit(X)
    theirs = svm.OneClassSVM(nu=nu, gamma=0.2, tol=1e-8).fit(X)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-6)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-5)
    assert np.mean(ours.predict(X) < 0) <= nu
    assert len(ours.support_) / len(X) >= nu
    assert ours.certificate_.primal < 0 <= ours.certificate_.gap
    assert 0 <= ours.certificate_.relative_gap < 1e-5


# -- forms of the same data -------------------------------------------------------------


def forms(X: np.ndarray) -> dict[str, object]:
    sparse = scipy.sparse.csr_matrix(X)
    unsorted = sparse.copy()
    for k in range(len(X)):
        part = slice(unsorted.indptr[k], unsorted.indptr[k + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1]
        unsorted.data[part] = unsorted.data[part][::-1]
    unsorted.has_sorted_indices = False
    long = sparse.copy()
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    return {
        "Fortran": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "big-endian": X.astype(">f8"),
        "list": X.tolist(),
        "CSR": sparse,
        "CSR array": scipy.sparse.csr_array(X),
        "CSC": sparse.tocsc(),
        "unsorted CSR": unsorted,
        "int64 CSR": long,
    }


@pytest.mark.parametrize("form", forms(np.eye(3)))
def test_forms_of_the_same_data(noisy, form):
    X, y = noisy
    X = np.round(X, 2)
    data = forms(X)[form]
    expected = SVC(tol=1e-7).fit(X, y).decision_function(X)
    np.testing.assert_allclose(
        SVC(tol=1e-7).fit(data, y).decision_function(data), expected, atol=1e-5
    )
    np.testing.assert_allclose(SVC(tol=1e-7).fit(data, y).decision_function(X), expected, atol=1e-5)


def test_single_precision_input(noisy):
    X, y = noisy
    ours = SVC().fit(X.astype(np.float32), y)
    assert ours.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(
        ours.decision_function(X.astype(np.float32)),
        SVC().fit(X, y).decision_function(X),
        atol=5e-3,
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_precomputed_and_callable_are_the_kernel_itself(noisy, sparse):
    X, y = noisy
    expected = SVC(kernel="linear", tol=1e-7, stopping="kkt").fit(X, y)
    K = X @ X.T
    stored = SVC(kernel="precomputed", tol=1e-7, stopping="kkt").fit(
        scipy.sparse.csr_matrix(K) if sparse else K, y
    )
    np.testing.assert_allclose(
        stored.decision_function(K[:20]), expected.decision_function(X[:20]), atol=1e-5
    )
    assert stored.certificate_.kind == "exact"

    def product(A, B):
        values = A @ B.T
        return values.toarray() if scipy.sparse.issparse(values) else values

    data = scipy.sparse.csr_matrix(X) if sparse else X
    called = SVC(kernel=product, tol=1e-7, stopping="kkt").fit(data, y)
    np.testing.assert_allclose(
        called.decision_function(data), expected.decision_function(X), atol=1e-5
    )
    assert called.certificate_.kind == "exact"


# -- running ----------------------------------------------------------------------------


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=4000) > 0, 1, 0)
    models = [SVC(C=3.0, n_jobs=n).fit(X, y) for n in (1, 2, 8)]
    assert models[0].results_[0].n_iter > 1
    for other in models[1:]:
        np.testing.assert_array_equal(models[0].dual_coef_, other.dual_coef_)
        np.testing.assert_array_equal(models[0].intercept_, other.intercept_)
        np.testing.assert_array_equal(
            models[0].decision_function(X[:3000]), other.decision_function(X[:3000])
        )


def test_warm_start_across_values_of_c(cancer):
    X, y = cancer
    options = {"working_set_size": 10, "tol": 1e-4}
    model = SVC(C=1.0, warm_start=True, **options).fit(X, y)
    cold = SVC(C=1.1, **options).fit(X, y)
    model.set_params(C=1.1).fit(X, y)
    assert model.n_iter_ < cold.n_iter_
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-4)
    again = model.fit(X, y)
    assert again.n_iter_ == 1
    other = model.fit(X[:300], y[:300])  # other data: from the start
    assert other.fit_status_ == 0


@pytest.mark.parametrize("make", [SVC, SVR, OneClassSVM])
def test_one_iteration_gives_a_usable_model(noisy, make):
    X, y = noisy
    with pytest.warns(ConvergenceWarning, match="reached max_iter after 1 iterations.*gap"):
        model = make(max_iter=1, working_set_size=4).fit(X, y)
    assert model.results_[0].status is Status.MAX_ITER and model.fit_status_ == 1
    assert np.all(np.isfinite(model.decision_function(X) if make is not SVR else model.predict(X)))
    assert model.certificate_.gap > 0


def test_time_limit_is_shared_by_all_problems(digits):
    X, y = digits
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = SVC(time_limit=1e-9, tol=1e-9, working_set_size=4).fit(X, y)
    assert {r.status for r in model.results_} == {Status.TIME_LIMIT}
    assert model.predict(X).shape == y.shape


def test_callback_sees_and_stops(noisy):
    X, y = noisy
    seen = []

    def callback(record):
        seen.append(record)
        return len(seen) == 2

    model = SVC(callback=callback, working_set_size=64, tol=1e-9).fit(X, y)
    assert model.results_[0].status is Status.STOPPED
    assert seen[-1].problem == "1 against -1"
    assert seen[-1].violation > 0 and seen[-1].active <= len(y)


def test_interrupt_keeps_the_model(noisy):
    X, y = noisy

    def interrupt(record):
        if record.number == 3:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        model = SVC(callback=interrupt, working_set_size=64, tol=1e-9).fit(X, y)
    assert model.results_[0].status is Status.INTERRUPTED
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize(("stopping", "word"), [("relative", "gap"), ("kkt", "violation")])
def test_progress_tells_what_it_stops_by(noisy, caplog, monkeypatch, stopping, word):
    module = sys.modules["cutplane.reporting.progress"]  # the package's name is the function's
    monkeypatch.setattr(module, "FIRST_RECORD", 0.0)
    X, y = noisy
    with caplog.at_level("INFO", logger="cutplane"):
        SVC(verbose=1, working_set_size=10, stopping=stopping).fit(X, y)
    text = caplog.text
    assert word in text and "active" in text and "1 against -1" in text


def test_pickle_keeps_the_model_and_drops_the_memory(noisy):
    X, y = noisy
    model = SVC(warm_start=True).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    assert not hasattr(copy, "_memory")


def test_small_fit_is_silent(noisy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVC().fit(*noisy).predict(noisy[0])


def _primal(C: float) -> float:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    return SVC(C=C, n_jobs=2).fit(X, X[:, 0] * X[:, 1] > 0).certificate_.primal


def test_fits_in_threads_and_forked_processes_do_not_meet():
    values = [1.0, 2.0, 3.0, 4.0]
    expected = [_primal(C) for C in values]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_primal, values)) == expected
    if "fork" in multiprocessing.get_all_start_methods():
        with (
            warnings.catch_warnings(),
            multiprocessing.get_context("fork").Pool(2) as processes,
        ):
            assert processes.map_async(_primal, values).get(timeout=60) == expected


def test_interrupt_between_problems_completes_the_model(iris, monkeypatch):
    from cutplane.estimators._kernel import KernelRows

    original, count = KernelRows.among, 0

    def interrupted(self, rows):
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return original(self, rows)

    monkeypatch.setattr(KernelRows, "among", interrupted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(working_set_size=4).fit(*iris)
    assert model.results_[0].status is Status.CONVERGED
    assert len(model.results_) == 3 and model.predict(iris[0]).shape == (150,)
    assert Status.INTERRUPTED in {result.status for result in model.results_}
