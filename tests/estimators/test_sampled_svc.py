"""SampledCutSVC against an independent QP, other estimators of this library, and itself."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from cutplane import LinearSVC, SampledCutSVC, Status


def checkers(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = 4.0 * rng.random((rows, 2))
    y = np.where(np.floor(X).sum(axis=1) % 2, 1.0, -1.0)
    return X + 0.02 * rng.standard_normal((rows, 2)), y


def box_qp(K: np.ndarray, y: np.ndarray, limits: np.ndarray) -> float:
    """The optimum of the SVM without bias: max Σα − ½|Σ α y φ|², 0 ≤ α ≤ limits."""
    Q = K * np.outer(y, y)
    answer = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1.0),
        np.zeros(len(y)),
        jac=True,
        bounds=[(0.0, c) for c in limits],
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 100000, "ftol": 1e-15, "gtol": 1e-9},
    )
    return -float(answer.fun)


def objective(model: SampledCutSVC, X: np.ndarray, y: np.ndarray, weights=1.0) -> float:
    scores = model.decision_function(X)
    squared = float(model.dual_coef_[0] @ scores[model.support_])
    return 0.5 * squared + model.C * float(np.sum(weights * np.maximum(0.0, 1.0 - y * scores)))


# -- the exact answer ---------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize("method", ["exact", "linear", "constant"])
@pytest.mark.parametrize("C", [0.3, 20.0])
def test_samples_of_all_rows_solve_the_qp(method, solver, C):
    X, y = checkers(150)
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    best = box_qp(rbf_kernel(X, gamma=3.0), y, C * weights)
    model = SampledCutSVC(
        C=C,
        gamma=3.0,
        method=method,
        solver=solver,
        start_rows=0,
        sample_size=150,
        tol=1e-7,
        stopping="relative",
    ).fit(X, y, sample_weight=weights)
    certificate = model.certificate_
    assert certificate.kind == "exact"
    assert certificate.relative_gap <= 1e-7
    assert certificate.dual <= best * (1 + 1e-8)
    assert best <= certificate.primal * (1 + 1e-8)
    assert certificate.primal == pytest.approx(objective(model, X, y, weights), rel=1e-9)


def test_a_linear_kernel_gives_the_linear_svm():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    y = np.where(X[:, 0] + rng.standard_normal(300) > 0, 1, -1)
    linear = LinearSVC(C=0.5, fit_intercept=False, tol=1e-6).fit(X, y)
    kernel = SampledCutSVC("linear", 0.5, method="exact", tol=1e-6, stopping="relative").fit(X, y)
    assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=3e-6)
    np.testing.assert_allclose(kernel.coef_, linear.coef_, atol=0.01)


def test_the_joint_multiclass_problem_is_that_of_crammer_and_singer():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5))
    y = np.argmax(X[:, :3] + 0.5 * rng.standard_normal((120, 3)), axis=1)
    linear = LinearSVC(C=0.5, fit_intercept=False, tol=1e-6, multi_class="crammer_singer").fit(X, y)
    kernel = SampledCutSVC(
        "linear", 0.5, multi_class="crammer_singer", tol=1e-6, stopping="relative"
    ).fit(X, y)
    assert kernel.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=3e-6)
    assert np.mean(kernel.predict(X) == linear.predict(X)) > 0.98


def test_one_problem_per_class_against_the_rest():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    settings = {"gamma": 0.3, "tol": 1e-7, "stopping": "relative"}
    model = SampledCutSVC(**settings).fit(X, y)
    for k, name in enumerate("abc"):
        one = SampledCutSVC(**settings).fit(X, np.where(y == name, 1, 0))
        assert model.certificates_[k].primal == pytest.approx(one.certificate_.primal, rel=2e-7)
        np.testing.assert_allclose(
            model.decision_function(X)[:, k], one.decision_function(X), atol=2e-3
        )
    assert list(model.classes_) == ["a", "b", "c"]


@pytest.mark.parametrize("method", ["blocks", "linear", "constant", "exact"])
def test_precomputed_callable_and_sparse_agree(method):
    import scipy.sparse

    X, y = checkers(120)
    settings = {
        "method": method,
        "start_rows": 0,
        "sample_size": 60,
        "tol": 1e-5,
        "random_state": 3,
        "max_iter": 30,
        "gamma": 2.0,
    }

    def function(A, B):
        return rbf_kernel(A, B, gamma=2.0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        named = SampledCutSVC(**settings).fit(X, y)
        called = SampledCutSVC(function, **settings).fit(X, y)
        stored = SampledCutSVC("precomputed", **settings).fit(function(X, X), y)
        sparse = SampledCutSVC(**settings).fit(scipy.sparse.csr_array(X), y)
    scores = named.decision_function(X)
    np.testing.assert_allclose(called.decision_function(X), scores, atol=1e-6)
    np.testing.assert_allclose(stored.decision_function(function(X, X)), scores, atol=1e-6)
    np.testing.assert_allclose(sparse.decision_function(X), scores, atol=1e-6)


# -- samples ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_the_objective_of_the_linear_time_method_is_exact(solver):
    """Also after the span of the cuts has been built anew several times."""
    X, y = checkers(1500)
    best = SampledCutSVC(gamma=10.0, method="exact", tol=1e-4).fit(X, y).certificate_
    model = SampledCutSVC(
        gamma=10.0,
        method="linear",
        solver=solver,
        start_rows=0,
        sample_size=40,
        tol=1e-5,
        max_iter=170,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.certificate_.kind == "estimated"
    assert model.certificate_.primal == pytest.approx(objective(model, X, y), rel=1e-9)
    assert best.dual <= model.certificate_.primal <= 1.1 * best.primal
    assert model.n_iter_ == 170 and model.results_[0].trace[-1].cuts < 140


def test_centred_cuts_bring_the_stabilised_method_closer_than_the_plain_one():
    X, y = checkers(4000)
    best = SampledCutSVC(gamma=10.0, method="exact", tol=1e-4).fit(X, y).certificate_
    for seed in range(3):
        settings = {"gamma": 10.0, "start_rows": 0, "sample_size": 100, "random_state": seed}
        settings["method"] = "linear"
        ocas = SampledCutSVC(**settings).fit(X, y).certificate_
        plain = SampledCutSVC(solver="cpa", **settings).fit(X, y).certificate_
        assert ocas.primal < plain.primal
        assert ocas.primal <= best.dual + 1.5e-3 * len(y)  # ε = 1e-3, and some noise
        assert abs(ocas.dual - best.dual) < abs(plain.dual - best.dual)


def test_the_constant_time_method_does_not_see_the_number_of_rows():
    values, errors = [], []
    X, y = checkers(4000, seed=9)
    for rows in (4000, 16000):
        some = checkers(rows)
        model = SampledCutSVC(
            gamma=10.0,
            C=4000 / rows,
            method="constant",
            start_rows=0,
            sample_size=120,
            random_state=0,
        ).fit(*some)
        values.append(model.n_kernel_values_)
        errors.append(1.0 - model.score(X, y))
        assert model.certificate_.kind == "estimated"
        assert model.results_[0].status is Status.CONVERGED
    assert 0.5 < values[1] / values[0] < 2.0
    assert max(errors) < 0.1


def test_the_constant_time_method_ends_after_passes_in_a_row():
    X, y = checkers(3000)
    model = SampledCutSVC(
        gamma=10.0, method="constant", start_rows=0, sample_size=100, passes=6, random_state=1
    ).fit(X, y)
    trace = model.results_[0].trace
    bound = 1e-3 * len(y)
    passed = [record.trial - record.dual <= bound for record in trace]
    assert all(passed[-6:])
    assert not any(all(passed[k : k + 6]) for k in range(len(passed) - 6))
    # The reported objective is the mean over the samples of the last point.
    trials = [record.trial for record in trace[-6:]]
    assert trace[-1].primal == pytest.approx(np.mean(trials), rel=1e-9)


def test_seeds_and_threads():
    X, y = checkers(9000)  # enough for three threads
    settings = {"gamma": 10.0, "start_rows": 0, "sample_size": 50, "max_iter": 12}
    for method in ("linear", "constant", "exact"):
        models = []
        for seed, threads in ((0, 1), (0, 2), (0, 3), (1, 2)):
            model = SampledCutSVC(method=method, random_state=seed, n_jobs=threads, **settings)
            if method == "exact":
                model.set_params(max_iter=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                models.append(model.fit(X, y))
        for other in models[1:3]:
            np.testing.assert_array_equal(models[0].support_, other.support_)
            np.testing.assert_array_equal(models[0].dual_coef_, other.dual_coef_)
            assert models[0].certificate_ == other.certificate_
        if method != "exact":
            assert not np.array_equal(models[0].support_, models[3].support_)


# -- fewer basis rows ---------------------------------------------------------------------


@pytest.mark.parametrize("method", ["linear", "constant"])
def test_a_reduced_basis_changes_scores_by_no_more_than_it_says(method):
    X, y = checkers(2000)
    settings = {
        "gamma": 5.0,
        "method": method,
        "start_rows": 0,
        "sample_size": 150,
        "random_state": 0,
        "tol": 5e-3,
    }
    whole = SampledCutSVC(**settings).fit(X, y)
    small = SampledCutSVC(max_basis=120, **settings).fit(X, y)
    assert small.n_basis_ == 120 < whole.n_basis_
    assert whole.basis_error_ == 0.0 < small.basis_error_
    apart = np.abs(small.decision_function(X) - whole.decision_function(X))
    assert np.max(apart) <= small.basis_error_ * (1 + 1e-6)
    assert np.max(apart) > 1e-6
    # The objective is that of the model that is returned.
    assert small.certificate_.primal == pytest.approx(objective(small, X, y), rel=1e-6)


def test_a_basis_of_all_rows_is_left_alone():
    X, y = checkers(200)
    model = SampledCutSVC(gamma=5.0, max_basis=200, random_state=0).fit(X, y)
    assert model.basis_error_ == 0.0


def test_samples_are_drawn_from_a_bounded_pool(monkeypatch):
    """Basis rows are few, and the objective is still that of all rows."""
    monkeypatch.setattr("cutplane.estimators.sampled_svc.POOL", 150)
    X, y = checkers(1200)
    X3, y3 = X, np.floor(X[:, 0]).clip(0, 2)
    for start in (0, 100):
        settings = {"gamma": 5.0, "start_rows": start, "sample_size": 60, "max_iter": 40}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            bounded = SampledCutSVC(random_state=0, max_basis="pool", **settings).fit(X, y)
            free = SampledCutSVC(random_state=0, method="linear", **settings).fit(X, y)
            several = SampledCutSVC(random_state=0, max_basis="pool", **settings).fit(X3, y3)
        assert bounded.n_basis_ <= 150 < free.n_basis_
        assert several.n_basis_ <= 150  # the problems share the pool
        assert bounded.certificate_.kind == "estimated"
        assert bounded.sampling_bound() == np.inf  # no theorem is about such samples
        assert np.isfinite(free.sampling_bound())
        assert bounded.certificate_.primal == pytest.approx(objective(bounded, X, y), rel=1e-6)
        assert bounded.certificate_.primal > free.certificate_.primal


# -- the start ----------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_few_rows_are_solved_without_sampling(C):
    X, y = checkers(400)
    weights = np.where(np.arange(400) % 3, 1.0, 2.0)
    weights[:20] = 0.0
    model = SampledCutSVC(C=C, gamma=3.0, sample_size=50).fit(X, y, sample_weight=weights)
    best = box_qp(rbf_kernel(X, gamma=3.0), y, C * weights)
    found = model.certificate_
    assert found.kind == "exact" and found.relative_gap <= 1e-3
    assert found.dual <= best * (1 + 1e-9) and best * (1 - 1e-9) <= found.primal
    assert found.primal == pytest.approx(objective(model, X, y, weights), rel=1e-9)


def test_a_start_on_some_rows_helps_and_is_an_estimate():
    X, y = checkers(1500)
    settings = {"gamma": 10.0, "sample_size": 40, "max_iter": 5, "random_state": 0}
    settings["method"] = "linear"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        started = SampledCutSVC(start_rows=400, **settings).fit(X, y).certificate_
        nothing = SampledCutSVC(start_rows=0, **settings).fit(X, y).certificate_
    assert started.kind == "estimated"
    assert started.primal < nothing.primal


def test_a_better_estimator_is_named(caplog):
    X, y = checkers(60)
    SampledCutSVC(gamma=1.0).fit(X, y)
    assert "SVC has a bias" in caplog.text
    caplog.clear()
    SampledCutSVC("linear").fit(X, y)
    assert "LinearSVC" in caplog.text


# -- bounds -------------------------------------------------------------------------------


def test_sampling_bounds_hold_and_grow_with_the_confidence():
    X, y = checkers(1500)
    best = SampledCutSVC(gamma=10.0, method="exact", tol=1e-4).fit(X, y)
    assert best.sampling_bound() == best.certificate_.gap
    for method in ("linear", "constant"):
        model = SampledCutSVC(
            gamma=10.0, method=method, start_rows=0, sample_size=100, random_state=0
        ).fit(X, y)
        bounds = [model.sampling_bound(c) for c in (0.5, 0.95, 0.999)]
        assert sorted(bounds) == bounds
        assert objective(model, X, y) - best.certificate_.primal <= bounds[0]
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        model.sampling_bound(1.0)


# -- predictions of large models ----------------------------------------------------------


@pytest.mark.parametrize("features", [2, 12], ids=["differences", "packed"])
def test_large_models_are_scored_in_the_precision_of_training(features, monkeypatch):
    """The same scores as in double precision, up to single precision's rounding."""
    from cutplane.estimators import sampled_svc

    X, y = checkers(3000)
    if features > 2:  # the same points among columns of zeros
        wide = np.zeros((len(X), features))
        wide[:, [1, 7]] = X - 2.0
        X = wide
    model = SampledCutSVC(gamma=2.0, start_rows=0, sample_size=300, random_state=0).fit(X, y)
    precise = model.decision_function(X)
    taken = []
    original = sampled_svc.single_scores
    monkeypatch.setattr(
        sampled_svc, "single_scores", lambda *a: taken.append(original(*a)) or taken[-1]
    )
    monkeypatch.setattr(sampled_svc, "SINGLE_BASIS", model.n_basis_ + 1)
    np.testing.assert_array_equal(model.decision_function(X), precise)
    assert not taken
    monkeypatch.setattr(sampled_svc, "SINGLE_BASIS", model.n_basis_)
    single = model.decision_function(X)
    assert taken and taken[0] is not None
    assert 0.0 < np.abs(single - precise).max() < 1e-4
    # A row's score does not depend on the rows beside it.
    np.testing.assert_array_equal(model.decision_function(X[17:23]), single[17:23])
    # A tolerance that asks for more gets more.
    model.set_params(tol=1e-6)
    np.testing.assert_array_equal(model.decision_function(X), precise)


@pytest.mark.parametrize(
    ("multi_class", "method"),
    [
        ("ovr", "exact"),
        ("ovr", "constant"),
        ("ovr", "blocks"),
        ("crammer_singer", "exact"),
        ("crammer_singer", "constant"),
    ],
)
def test_bounds_hold_where_rounding_of_kernel_values_is_most_of_the_objective(multi_class, method):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((14, 30)) * np.where(np.arange(30) == 0, 1e8, 1.0)
    y = np.arange(14) % 3
    K = X @ X.T
    np.copyto(K, K.T, where=np.tri(14, dtype=bool))
    model = SampledCutSVC(
        kernel="precomputed", method=method, multi_class=multi_class, C=0.1, tol=0.0, max_iter=100
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(K, y)
    exact = np.vectorize(Fraction, otypes=[object])
    for k, result in enumerate(model.results_):
        beta = exact(result.w.reshape(14, -1))
        scores = exact(K) @ beta
        if multi_class == "ovr":
            losses = np.maximum(0, 1 - np.where(y == k, 1, -1) * scores[:, 0])
        else:
            apart = 1 + scores - scores[np.arange(14), y][:, None]
            apart[np.arange(14), y] = 0
            losses = apart.max(axis=1)
        objective = float(np.sum(beta * scores) / 2 + Fraction(0.1) * losses.sum())
        certificate = result.certificate
        assert certificate.kind == "exact"
        assert 0.0 <= certificate.dual <= objective <= certificate.primal
        assert certificate.primal <= objective * (1 + 1e-9)
