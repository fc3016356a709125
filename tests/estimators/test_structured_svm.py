"""StructuredSVM against enumerated problems, LinearSVC, and problems written in Python.

scikit-learn's ``parametrize_with_checks`` does not apply: the estimator needs a problem to be made
at all, and its inputs and outputs are lists of anything rather than a matrix and a column.
"""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

from cutplane import LinearSVC, Status
from cutplane.estimators.structured_svm import StructuredSVM
from cutplane.structured import BinaryProblem, MulticlassProblem, Problem, Score
from structured_reference import Enumerated

# -- labels ---------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["cpa", "ocas", "bcfw", "auto"])
@pytest.mark.parametrize("cache_size", [0, 5])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_multiclass_is_crammer_singer(iris, solver, cache_size, C):
    X, y = iris
    reference = LinearSVC(
        C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-6, max_iter=9999
    ).fit(X, y)
    model = StructuredSVM(
        MulticlassProblem(), C=C, solver=solver, cache_size=cache_size, tol=1e-6
    ).fit(X, y)
    assert model.certificate_.kind == "exact"
    assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=3e-6)
    np.testing.assert_allclose(model.coef_.reshape(3, -1), reference.coef_, atol=0.02)
    assert np.mean(model.predict(X) == reference.predict(X)) > 0.98
    assert model.score(X, y) == pytest.approx(-np.mean(model.predict(X) != y))


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_matrix, list])
def test_binary_is_the_hinge(noisy, layout):
    X, y = noisy
    reference = LinearSVC(C=0.1, loss="hinge", fit_intercept=False, tol=1e-6).fit(X, y)
    model = StructuredSVM(BinaryProblem(), C=0.1, tol=1e-6).fit(layout(X), y)
    assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=2e-6)
    np.testing.assert_allclose(model.coef_, reference.coef_[0], atol=1e-2)


COST = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 0.5], [1.0, 3.0, 0.0]])


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("solver", ["cpa", "ocas", "bcfw", "auto"])
@pytest.mark.parametrize("C", [1.0, 50.0])
def test_costs_against_the_enumerated_problem(rescaling, solver, C):
    rng = np.random.default_rng(0)
    y = np.arange(12) % 3
    X = rng.normal(size=(12, 2)) + y[:, None]

    def feature(x, z):
        return np.kron(np.eye(3)[z], x)

    every = Enumerated.make(
        X, y, lambda x: range(3), feature, lambda y, z: COST[y, z], rescaling=rescaling
    )
    model = StructuredSVM(
        MulticlassProblem(COST), C=C, rescaling=rescaling, solver=solver, tol=1e-7
    ).fit(X, y)
    optimum = every.optimum(C)
    assert model.certificate_.dual <= optimum * (1 + 1e-8)
    assert optimum <= model.certificate_.primal * (1 + 1e-8)
    assert every.objective(model.coef_, C) == pytest.approx(model.certificate_.primal, rel=1e-10)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (MulticlassProblem(np.ones((2, 2))), "shape"),
        (MulticlassProblem(np.ones((3, 3))), "0 on the diagonal"),
        (MulticlassProblem(-COST), "≥ 0"),
        (MulticlassProblem(classes=[2, 1, 0]), "increasing"),
        (MulticlassProblem(classes=[0, 1, 7]), "label 2 was not seen"),
        (BinaryProblem(), "needs two classes, got 3"),
    ],
)
def test_bad_costs_and_classes(iris, problem, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(problem).fit(*iris)


# -- a problem written in Python ------------------------------------------------------


class Matching(Problem):
    """Bipartite matching: x[i, j] has the features of the edge from i to j, y[i] is i's partner."""

    def joint_feature(self, x, y):
        return x[np.arange(len(y)), y].sum(axis=0)

    def loss(self, y, z):
        return float(np.mean(np.asarray(y) != z))

    def most_violated(self, x, y, score):
        wrong = np.ones(x.shape[:2]) / len(y)
        wrong[np.arange(len(y)), y] = 0.0
        return linear_sum_assignment(x @ score.w + wrong, maximize=True)[1]

    def predict(self, x, score):
        return linear_sum_assignment(x @ score.w, maximize=True)[1]


class SparseMatching(Matching):
    def joint_feature(self, x, y):
        return scipy.sparse.csr_array(super().joint_feature(x, y)[None])


@pytest.fixture(scope="module")
def matchings():
    rng = np.random.default_rng(0)
    w = rng.normal(size=4)
    X = [rng.normal(size=(n, n, 4)) for n in (1, 2, 3, 3, 4, 4, 3, 2)]
    noisy = [x + 0.4 * rng.normal(size=x.shape) for x in X]
    Y = [Matching().predict(x, Score(Matching(), x, w)) for x in noisy]
    return X, Y


def permutations(x):
    return [np.array(z) for z in itertools.permutations(range(len(x)))]


@pytest.mark.parametrize("problem", [Matching(), SparseMatching()], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("solver", "cache_size"),
    [("cpa", 0), ("cpa", 4), ("ocas", 0), ("ocas", 4), ("bcfw", 4), ("auto", 4)],
)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_matchings_against_the_enumerated_problem(matchings, problem, solver, cache_size, C):
    X, Y = matchings
    dense = Matching()
    every = Enumerated.make(X, Y, permutations, dense.joint_feature, dense.loss)
    optimum = every.optimum(C)
    # Block ascent alone nears the optimum slowly: its bounds are checked from further away.
    tol = 1e-3 if solver == "bcfw" else 1e-7
    model = StructuredSVM(problem, C, solver=solver, cache_size=cache_size, tol=tol).fit(X, Y)
    assert model.certificate_.dual <= optimum * (1 + 1e-8)
    assert optimum <= model.certificate_.primal * (1 + 1e-8)
    assert every.objective(model.coef_, C) == pytest.approx(model.certificate_.primal, rel=1e-10)
    losses = [dense.loss(y, z) for y, z in zip(Y, model.predict(X), strict=True)]
    assert model.score(X, Y) == pytest.approx(-np.mean(losses))


def test_the_cache_spares_inference(matchings):
    X, Y = matchings
    iterations = [
        StructuredSVM(Matching(), 12.0, solver="cpa", cache_size=size, tol=1e-6).fit(X, Y).n_iter_
        for size in (0, 5)
    ]
    assert iterations[1] < iterations[0]


class SlackMatching(Matching):
    """Slack rescaling by trying every matching."""

    def most_violated_slack(self, x, y, score):
        def violation(z):
            return self.loss(y, z) * (1.0 + score(z) - score(y))

        return max(permutations(x), key=violation)


@pytest.mark.parametrize("solver", ["cpa", "ocas", "bcfw", "auto"])
def test_slack_rescaling_against_the_enumerated_problem(matchings, solver):
    X, Y = matchings
    problem = SlackMatching()
    every = Enumerated.make(X, Y, permutations, problem.joint_feature, problem.loss, "slack")
    model = StructuredSVM(problem, 2.5, rescaling="slack", solver=solver, tol=1e-7).fit(X, Y)
    optimum = every.optimum(2.5)
    assert model.certificate_.dual <= optimum * (1 + 1e-8)
    assert optimum <= model.certificate_.primal * (1 + 1e-8)


def bits(model) -> tuple:
    trace = tuple((r.primal, r.dual, r.trial, r.step, r.cuts) for r in model.results_[0].trace)
    return model.coef_.tobytes(), trace


def test_the_same_bits_in_processes_and_threads(matchings):
    X, Y = matchings

    class Threaded(Matching):
        releases_gil = True

    models = [
        StructuredSVM(Matching(), 4.0).fit(X, Y),
        StructuredSVM(Matching(), 4.0, n_jobs=2).fit(X, Y),
        StructuredSVM(Threaded(), 4.0, n_jobs=1).fit(X, Y),
        StructuredSVM(Threaded(), 4.0, n_jobs=3).fit(X, Y),
    ]
    assert len({bits(model) for model in models}) == 1


def test_batches_in_threads(digits, monkeypatch):
    X, y = digits
    monkeypatch.setattr("cutplane.structured.examples.BATCH", 40)
    models = [
        StructuredSVM(MulticlassProblem(), 0.5, n_jobs=jobs).fit(X[:200], y[:200])
        for jobs in (1, 2, 3)
    ]
    assert len({bits(model) for model in models}) == 1


def test_warm_starts(matchings):
    X, Y = matchings
    model = StructuredSVM(Matching(), 4.0, tol=1e-5, warm_start=True).fit(X, Y)
    first = model.certificate_.primal
    model.fit(X, Y)
    assert model.n_iter_ <= 2
    assert model.certificate_.primal <= first * (1 + 1e-9)
    other = [y[::-1].copy() for y in Y]  # the cuts do not hold for these
    fresh = StructuredSVM(Matching(), 4.0, tol=1e-5).fit(X, other)
    model.fit(X, other)
    assert model.certificate_.dual <= fresh.certificate_.primal * (1 + 1e-9)
    assert fresh.certificate_.dual <= model.certificate_.primal * (1 + 1e-9)


def test_clone_pickle_and_grid_search(matchings):
    X, Y = matchings
    model = clone(StructuredSVM(Matching(), C=3.0)).fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    for a, b in zip(copy.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    search = GridSearchCV(model, {"C": [1.0, 10.0]}, cv=KFold(2)).fit(X, Y)
    assert search.best_score_ <= 0.0


def test_stopping_and_interrupts(matchings):
    X, Y = matchings
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = StructuredSVM(Matching(), 1e4, max_iter=1, tol=1e-9).fit(X, Y)
    assert model.n_iter_ == 1

    def interrupt(iteration):
        if iteration.number == 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = StructuredSVM(
            Matching(), 1e4, cache_size=0, tol=1e-9, callback=interrupt, n_jobs=2
        ).fit(X, Y)
    assert model.results_[0].status is Status.INTERRUPTED
    assert len(model.predict(X)) == len(X)


def test_not_fitted(matchings):
    with pytest.raises(NotFittedError):
        StructuredSVM(Matching()).predict(matchings[0])
