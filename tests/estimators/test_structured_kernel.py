"""StructuredSVM with a kernel between parts: brute force, other solvers, the linear form."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold

import cutplane.exec
from cutplane import SVC, LinearSVC, Status, StructuredSVM
from cutplane.structured import BinaryProblem, MulticlassProblem, MultilabelProblem, Problem
from kernel_problems import GAMMA, Matching, explicit, matchings, permutations
from structured_reference import Enumerated

COST = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 0.5], [1.0, 3.0, 0.0]])


@pytest.fixture(scope="module", name="tables")
def some_matchings():
    return matchings()


def matcher(**parameters) -> StructuredSVM:
    return StructuredSVM(
        Matching(), 2.5, kernel="rbf", gamma=GAMMA, tol=1e-6, solver="ocas"
    ).set_params(**parameters)


# -- independent answers --------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize("C", [0.3, 8.0])
def test_matchings_against_the_enumerated_problem(tables, solver, C):
    X, Y = tables
    every = Enumerated.make(explicit(X), Y, permutations, Matching().joint_feature, Matching().loss)
    optimum = every.optimum(C)
    model = matcher(C=C, solver=solver).fit(X, Y)
    assert model.certificate_.kind == "exact"
    assert model.certificate_.relative_gap <= 1e-6
    assert model.certificate_.dual <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.primal * (1 + 1e-7)
    # The model is the point that the certificate is about.
    features = np.concatenate([f.reshape(-1, f.shape[2]) for f in explicit(X)])
    w = np.append(model.dual_coef_[0] @ features[model.support_], model.plain_coef_)
    assert every.objective(w, C) == pytest.approx(model.certificate_.primal, rel=1e-6)
    losses = [Matching().loss(y, z) for y, z in zip(Y, model.predict(X), strict=True)]
    assert model.score(X, Y) == pytest.approx(-np.mean(losses))


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_the_linear_kernel_is_the_linear_form(tables, solver):
    X, Y = tables
    plain = StructuredSVM(Matching(), 2.5, tol=1e-6).fit(X, Y)
    model = matcher(kernel="linear", solver=solver).fit(X, Y)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=3e-6)
    coef = np.append(model.dual_coef_ @ model.support_vectors_, model.plain_coef_)
    np.testing.assert_allclose(coef, plain.coef_, atol=0.02)
    found, expected = model.predict(X), plain.predict(X)
    assert np.mean(np.concatenate(found) == np.concatenate(expected)) > 0.9


def test_multiclass_is_crammer_singer_on_explicit_features(iris):
    X, y = iris
    values = rbf_kernel(X, gamma=0.3)
    factor = np.linalg.cholesky(values + 1e-12 * np.eye(len(y)))
    reference = LinearSVC(
        C=0.5, multi_class="crammer_singer", fit_intercept=False, tol=1e-6, max_iter=9999
    ).fit(factor, y)
    model = StructuredSVM(
        MulticlassProblem(), 0.5, kernel="rbf", gamma=0.3, tol=1e-5, solver="ocas"
    ).fit(X, y)
    assert model.certificate_.dual <= reference.certificate_.primal * (1 + 1e-9)
    assert reference.certificate_.dual <= model.certificate_.primal * (1 + 1e-9)
    scores = values[:, model.support_] @ model.dual_coef_.T
    np.testing.assert_allclose(scores, factor @ reference.coef_.T, atol=0.05)
    new = X + 0.1
    table = rbf_kernel(new, model.support_vectors_, gamma=0.3) @ model.dual_coef_.T
    np.testing.assert_array_equal(model.predict(new), np.argmax(table, axis=1))


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, list])
def test_binary_is_the_kernel_machine_without_bias(noisy, layout):
    X, y = noisy
    X, y = X[:120], y[:120]
    values = rbf_kernel(X, gamma=0.1)
    signs = np.where(y == np.max(y), 1.0, -1.0)
    model = StructuredSVM(
        BinaryProblem(), 2.0, kernel="rbf", gamma=0.1, tol=1e-5, solver="ocas"
    ).fit(layout(X), y)
    # The dual max Σα − ½αᵀQα over 0 ≤ α ≤ C, by projected coordinate ascent.
    Q, alpha = signs[:, None] * values * signs, np.zeros(len(y))
    gradient = np.ones(len(y))
    for _ in range(400):
        for i in range(len(y)):
            step = np.clip(alpha[i] + gradient[i] / Q[i, i], 0.0, 2.0) - alpha[i]
            alpha[i] += step
            gradient -= step * Q[i]
    optimum = alpha.sum() - 0.5 * alpha @ Q @ alpha
    assert model.certificate_.dual <= optimum * (1 + 1e-4)
    assert model.certificate_.primal == pytest.approx(optimum, rel=1e-4)
    bias_free = SVC(C=2.0, gamma=0.1).fit(X, y)  # a bias changes little here
    assert np.mean(model.predict(layout(X)) == bias_free.predict(X)) > 0.9


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_costs_against_the_enumerated_problem(rescaling):
    rng = np.random.default_rng(0)
    y = np.arange(12) % 3
    X = rng.normal(size=(12, 2)) + y[:, None]
    features = np.linalg.cholesky(rbf_kernel(X, gamma=GAMMA) + 1e-13 * np.eye(12))
    every = Enumerated.make(
        features, y, lambda x: range(3), lambda x, z: np.kron(np.eye(3)[z], x),
        lambda y, z: COST[y, z], rescaling=rescaling,
    )  # fmt: skip
    optimum = every.optimum(0.3)
    model = StructuredSVM(
        MulticlassProblem(COST), 0.3, kernel="rbf", gamma=GAMMA, rescaling=rescaling, tol=1e-6
    ).fit(X, y)
    assert model.certificate_.dual <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.primal * (1 + 1e-7)


@pytest.mark.parametrize("pairwise", [True, False])
def test_several_labels_with_the_linear_kernel(pairwise):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    Y = ((X @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(40, 3))) > 0).astype(int)
    problem = MultilabelProblem(pairwise)
    plain = StructuredSVM(problem, 0.5, tol=1e-5).fit(X, Y)
    model = StructuredSVM(problem, 0.5, tol=1e-5, kernel="linear", solver="ocas").fit(X, Y)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=3e-5)
    assert len(model.plain_coef_) == (3 if pairwise else 0)
    assert np.mean(model.predict(X) == plain.predict(X)) > 0.95


# -- sampling, threads, processes, fewer parts ----------------------------------------------


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_a_sample_of_all_parts_is_exact(tables, solver):
    X, Y = tables
    exact = matcher(method="exact", solver=solver).fit(X, Y)
    whole = matcher(method="linear", sample_size=999, solver=solver).fit(X, Y)
    assert whole.certificate_ == exact.certificate_
    np.testing.assert_array_equal(whole.dual_coef_, exact.dual_coef_)
    assert exact.sampling_bound() == exact.certificate_.gap
    some = matcher(
        method="linear", sample_size=25, solver=solver, random_state=0, tol=0.05, max_iter=300
    ).fit(X, Y)
    assert some.certificate_.kind == "estimated"
    assert exact.certificate_.dual <= some.certificate_.primal <= 1.3 * exact.certificate_.primal
    assert some.sampling_bound() > some.certificate_.gap


def test_processes_and_threads_do_not_change_a_bit(tables, iris, monkeypatch):
    X, Y = tables
    one = matcher(tol=1e-3).fit(X, Y)
    two = matcher(tol=1e-3, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert one.certificate_ == two.certificate_
    monkeypatch.setattr(cutplane.exec, "NUMBERS_PER_THREAD", 1)
    monkeypatch.setattr("cutplane.structured.examples.BATCH", 40)
    found = [StructuredSVM(MulticlassProblem(), kernel="rbf", n_jobs=n).fit(*iris) for n in (1, 3)]
    np.testing.assert_array_equal(found[0].dual_coef_, found[1].dual_coef_)


def test_the_cost_of_predictions_is_bounded(iris):
    X, y = iris
    model = StructuredSVM(MulticlassProblem(), 0.7, kernel="rbf", gamma=0.3, tol=1e-3)
    whole = clone(model).fit(X, y)
    small = clone(model).set_params(max_basis=12).fit(X, y)
    assert (small.n_basis_, len(small.support_), whole.basis_error_) == (12, 12, 0.0)
    assert whole.n_basis_ > 50 and whole.n_kernel_values_ == len(y) ** 2
    assert small.certificate_.dual == pytest.approx(whole.certificate_.dual, rel=1e-9)
    values = rbf_kernel(X, small.support_vectors_, gamma=0.3)
    scores = values @ small.dual_coef_.T
    margin = scores + 1.0 - np.eye(3)[y]
    risk = np.sum(margin.max(axis=1) - scores[np.arange(len(y)), y])
    squared = np.sum(small.dual_coef_ * scores[small.support_].T)
    assert small.certificate_.primal == pytest.approx(0.5 * squared + 0.7 * risk, rel=1e-6)
    # The best in the span of these parts: a linear model of their coordinates.
    factor = np.linalg.cholesky(rbf_kernel(small.support_vectors_, gamma=0.3))
    features = np.linalg.solve(factor, values.T).T
    best = StructuredSVM(MulticlassProblem(), 0.7, tol=1e-4).fit(features, y)
    assert best.certificate_.dual <= small.certificate_.primal <= best.certificate_.primal * 1.002


# -- the estimator ----------------------------------------------------------------------------


def test_pickles_clones_and_searches(tables):
    X, Y = tables
    model = matcher().fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    for a, b in zip(again.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert clone(model).get_params()["gamma"] == GAMMA
    search = GridSearchCV(matcher(tol=0.05), {"gamma": [0.1, 2.0]}, cv=KFold(2)).fit(X, Y)
    assert search.best_params_["gamma"] in (0.1, 2.0)
    with pytest.raises(NotFittedError):
        matcher().predict(X)
    # From a kernel to none and back nothing is left over.
    model.set_params(kernel=None).fit(X, Y)
    assert not hasattr(model, "dual_coef_") and model.coef_.shape == (3,)
    model.set_params(kernel="linear").fit(X, Y)
    assert not hasattr(model, "coef_")


def test_precomputed_and_callable_kernels_agree(iris):
    X, y = iris
    values = rbf_kernel(X, gamma=0.3)
    model = StructuredSVM(MulticlassProblem(), 0.3, kernel="rbf", gamma=0.3).fit(X, y)
    for kernel, given in (("precomputed", values), (lambda A, B: rbf_kernel(A, B, gamma=0.3), X)):
        other = clone(model).set_params(kernel=kernel).fit(given, y)
        assert other.certificate_.primal == pytest.approx(model.certificate_.primal, rel=0.02)
        assert np.mean(other.predict(given[:50]) == model.predict(X[:50])) > 0.95


def test_an_indefinite_kernel_has_no_certificate(iris):
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = StructuredSVM(MulticlassProblem(), kernel="sigmoid", gamma=0.01).fit(*iris)
    assert model.certificate_.kind == "withheld"


def test_callbacks_and_limits(tables):
    X, Y = tables
    seen = []
    model = matcher(callback=lambda record: seen.append(record.number) or len(seen) >= 3)
    model.fit(X, Y)
    assert model.results_[0].status is Status.STOPPED and len(seen) == 3
    assert len(model.predict(X)) == len(X)


class Greedy(Matching):
    """Gives the truth, whatever the scores."""

    def most_violated(self, x, y, score):
        return y


def test_inference_that_is_not_exact(tables):
    X, Y = tables
    with pytest.warns(UserWarning, match="certificate is withheld"):
        model = StructuredSVM(Greedy(), 2.5, kernel="rbf").fit(X, Y)
    assert model.certificate_.kind == "withheld"
    honest = Greedy()
    honest.exact = False
    assert StructuredSVM(honest, 2.5, kernel="rbf").fit(X, Y).certificate_.kind == "estimated"


# -- what is refused --------------------------------------------------------------------------


class OnlyFeatures(Matching):
    parts = None


@pytest.mark.parametrize(
    ("problem", "kernel", "message"),
    [
        (OnlyFeatures(), "rbf", r"lacks parts\(x\); a kernel needs it; it has .* for kernel=None"),
        (Problem(), "rbf", r"lacks parts\(x\), part_coefficients\(x, y\), loss\(y, z\), most_viol"),
        (Matching, "rbf", r"not a class: write Matching\(\)"),
    ],
)
def test_what_is_missing_is_named(tables, problem, kernel, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(problem, kernel=kernel).fit(*tables)


def with_method(name, method):
    problem = Matching()
    setattr(problem, name, method)
    return problem


@pytest.mark.parametrize(
    ("name", "method", "message"),
    [
        ("parts", lambda x: x.ravel(), "a row per part, got 1 dimensions for example 0"),
        ("parts", lambda x: [["a"]], "parts must give a matrix of numbers"),
        ("parts", lambda x: np.zeros((len(x), len(x))), "same width: it is 2 for example 1, 1 for"),
        ("parts", lambda x: np.full((x.shape[0] ** 2, 2), np.nan), "parts contains NaN"),
        ("parts", lambda x: np.zeros((0, 2)), "parts gave none"),
        ("part_coefficients", lambda x, y: np.zeros((9, 1)), r"\(1, 1\), got \(9, 1\)"),
        ("part_coefficients", lambda x, y: np.zeros(len(x) ** 2), r"\(1, K\), got \(1,\) for"),
        (
            "part_coefficients",
            lambda x, y: np.zeros((len(x) ** 2, len(x))),
            r"\(4, 1\), got \(4, 2\) for example 1",
        ),
        ("part_coefficients", lambda x, y: np.full((len(x) ** 2, 1), np.inf), "not finite"),
        ("plain_feature", lambda x, y: np.zeros(len(x)), "plain_feature must always have the same"),
        ("loss", lambda y, z: 1.0, r"loss\(y, y\) must be 0"),
        ("most_violated", lambda x, y, score: score["w"], "not subscriptable"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_named(tables, name, method, message):
    with pytest.raises((ValueError, TypeError), match=message):
        StructuredSVM(with_method(name, method), kernel="rbf", gamma=1.0).fit(*tables)


def test_a_prediction_that_is_no_maximum_is_noticed(tables):
    worst = with_method("predict", lambda x, score: min(permutations(x), key=lambda z: score(z)))
    with pytest.raises(ValueError, match="predict gave an output for example"):
        StructuredSVM(worst, kernel="rbf", gamma=1.0).fit(*tables)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "gauss"}, "kernel must be one of"),
        ({"kernel": "pairs"}, "kernel='pairs' is gone.*parts"),
        ({"gamma": -1.0}, "gamma"),
        ({"method": "cubic"}, "method must be one of"),
        ({"sample_size": 0}, "sample_size"),
        ({"max_basis": 0}, "max_basis"),
        ({"random_state": "now"}, "random_state"),
        ({"checkpoint": "file"}, "checkpoint is not available with a kernel"),
    ],
)
def test_bad_parameters(tables, parameters, message):
    with pytest.raises(ValueError, match=message):
        matcher(**parameters).fit(*tables)


def test_inputs_of_another_width(tables):
    model = matcher().fit(*tables)
    with pytest.raises(ValueError, match="parts are 3 wide, but StructuredSVM was fitted with 2"):
        model.predict([np.zeros((2, 2, 3))])
