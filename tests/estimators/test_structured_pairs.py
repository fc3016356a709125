"""StructuredSVM with a kernel between pairs: against parts, brute force, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import cutplane.structured.pair_kernel as pair_kernel
from cutplane import StructuredSVM
from cutplane.models import load_model, register, save_model
from cutplane.structured import MulticlassProblem, Problem
from kernel_problems import GAMMA, Matching, PairMatching, explicit, matchings, permutations
from structured_reference import Enumerated


@pytest.fixture(scope="module", name="tables")
def some_matchings():
    return matchings()


def pairing(**parameters) -> StructuredSVM:
    return StructuredSVM(PairMatching(), 20.0, kernel="pairs", tol=1e-6, solver="ocas").set_params(
        **parameters
    )


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
@pytest.mark.parametrize("C", [2.0, 60.0])
def test_the_enumerated_problem_and_parts(tables, solver, C):
    X, Y = tables
    every = Enumerated.make(explicit(X), Y, permutations, Matching().joint_feature, Matching().loss)
    optimum = every.optimum(C)
    model = pairing(C=C, solver=solver).fit(X, Y)
    assert model.certificate_.kind == "conditional"
    assert model.certificate_.dual <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.primal * (1 + 1e-7)
    parts = StructuredSVM(Matching(), C, kernel="rbf", gamma=GAMMA, tol=1e-6).fit(X, Y)
    assert model.certificate_.primal == pytest.approx(parts.certificate_.primal, rel=3e-6)
    # Scores of new inputs are those of the other form, on which predictions rest.
    new, _ = matchings(7)
    agree = [
        np.array_equal(a, b) for a, b in zip(model.predict(new), parts.predict(new), strict=True)
    ]
    assert np.mean(agree) > 0.8
    assert model.n_basis_ == len(model.support_pairs_) == len(model.dual_coef_)


class PairClasses(Problem):
    """Classes with a kernel between (x, y) pairs; batch forms, costs, and slack rescaling."""

    cost = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 0.5], [1.0, 3.0, 0.0]])

    def pair_kernel_batch(self, X, Y, X2, Y2):
        same = np.equal.outer(np.asarray(Y), np.asarray(Y2))
        return rbf_kernel(np.asarray(X), np.asarray(X2), gamma=GAMMA) * same

    def loss(self, y, z):
        return self.cost[y, z]

    def most_violated_batch(self, X, Y, scores):
        return [int(np.argmax(self.cost[y] + scores[i].of(range(3)))) for i, y in enumerate(Y)]

    def most_violated_slack(self, x, y, score):
        table = score.of(range(3))
        return int(np.argmax(self.cost[y] * (1.0 + table - table[y])))

    def predict(self, x, score):
        return int(np.argmax(score.of(range(3))))


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_a_product_kernel_is_multiclass(iris, rescaling):
    X, y = iris[0][::5], iris[1][::5]
    parameters = {"C": 30.0, "rescaling": rescaling, "tol": 1e-5}
    parts = StructuredSVM(
        MulticlassProblem(PairClasses.cost), kernel="rbf", gamma=GAMMA, **parameters
    ).fit(X, y)
    model = StructuredSVM(PairClasses(), kernel="pairs", **parameters).fit(X, y)
    assert model.certificate_.kind == "conditional"
    assert model.certificate_.primal == pytest.approx(parts.certificate_.primal, rel=3e-5)
    assert np.mean(np.array(model.predict(iris[0])) == parts.predict(iris[0])) > 0.97


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_samples(tables, solver):
    X, Y = tables
    exact = pairing(solver=solver, method="exact").fit(X, Y)
    whole = pairing(solver=solver, method="linear", sample_size=8).fit(X, Y)
    assert whole.certificate_ == exact.certificate_
    np.testing.assert_array_equal(whole.dual_coef_, exact.dual_coef_)
    some = pairing(solver=solver, method="linear", sample_size=4, random_state=0, tol=0.01)
    some.fit(X, Y)
    assert some.certificate_.kind == "estimated"
    assert exact.certificate_.dual <= some.certificate_.primal <= 1.3 * exact.certificate_.primal
    assert some.sampling_bound() > some.certificate_.gap


def test_values_that_are_not_kept(tables, monkeypatch):
    X, Y = tables
    kept = pairing(tol=1e-3).fit(X, Y)
    assert kept.n_kernel_values_ <= sum(len(permutations(x)) for x in X) * 40
    monkeypatch.setattr(pair_kernel, "STORED_BYTES", 8 * 64 * 10)
    model = pairing(tol=1e-3).fit(X, Y)
    assert model.n_kernel_values_ > 2 * kept.n_kernel_values_
    assert model.certificate_.primal == pytest.approx(kept.certificate_.primal, rel=2e-3)


def test_every_value_is_computed_once(tables):
    calls = []

    class Counting(PairMatching):
        def pair_kernel(self, x, y, x2, y2):
            calls.append((x.tobytes(), tuple(y), x2.tobytes(), tuple(y2)))
            return super().pair_kernel(x, y, x2, y2)

    model = pairing(problem=Counting()).fit(*tables)
    tried = len(calls) - model.n_kernel_values_
    assert 0 < tried < 1000  # before the fit, on a few examples
    assert len(set(calls[tried:])) == model.n_kernel_values_


def test_pickles_clones_and_files(tables, tmp_path):
    X, Y = tables
    model = pairing().fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    for a, b in zip(again.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert clone(model).kernel == "pairs"
    register(PairMatching, "tests.PairMatching")
    save_model(model, tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.dual_coef_, model.dual_coef_)
    np.testing.assert_array_equal(loaded.predict(X)[3], model.predict(X)[3])
    parts = model.set_params(problem=Matching(), kernel="rbf").fit(X, Y)
    assert not hasattr(parts, "support_pairs_") and hasattr(parts, "plain_coef_")


def test_outputs_are_told_apart():
    key = pair_kernel.key_of
    assert key(np.array([1, 2])) == key(np.array([1, 2])) != key(np.array([2, 1]))
    assert key([1, [2]]) == key([1, [2]]) != key([1, [3]])
    assert key({"a": {1}}) == key({"a": {1}}) != key({"a": {2}})
    assert key("a") != key("b")


class Lopsided(PairMatching):
    def pair_kernel(self, x, y, x2, y2):
        return float(len(x)) + 0.5 * float(len(x2))


class Negative(PairMatching):
    def pair_kernel(self, x, y, x2, y2):
        return -1.0


class Endless(PairMatching):
    def pair_kernel(self, x, y, x2, y2):
        return np.inf


class Wide(PairMatching):
    def pair_kernel_batch(self, X, Y, X2, Y2):
        return np.zeros((len(X), 1 + len(X2)))


class Least(PairMatching):
    def predict(self, x, score):
        return min(permutations(x), key=score)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (Matching(), r"lacks pair_kernel\(x, y, x2, y2\); kernel='pairs' needs it; it has what"),
        (Lopsided(), "pair_kernel must be symmetric, but it is"),
        (Negative(), "pair with itself must be ≥ 0, got -1 for example 0"),
        (Endless(), "pair_kernel gave inf, not a finite number"),
        (Wide(), r"one for every two pairs: \(5, 5\) of them, got \(5, 6\)"),
        (Least(), "predict gave an output for example"),
    ],
)
def test_what_is_missing_or_wrong_is_named(tables, problem, message):
    with pytest.raises(ValueError, match=message):
        pairing(problem=problem).fit(*tables)


def test_refused_parameters(tables):
    with pytest.raises(ValueError, match="max_basis cannot be had with kernel='pairs'"):
        pairing(max_basis=5).fit(*tables)
    with pytest.raises(ValueError, match="checkpoint cannot be had with a kernel"):
        pairing(checkpoint="file").fit(*tables)
    with pytest.raises(ValueError, match=r"lacks parts\(x\).*for kernel='pairs'"):
        pairing(kernel="rbf").fit(*tables)
    with pytest.raises(ValueError, match=r"lacks joint_feature\(x, y\).*for kernel='pairs'"):
        pairing(kernel=None).fit(*tables)


class Indefinite(PairMatching):
    def pair_kernel(self, x, y, x2, y2):
        return np.tanh(super().pair_kernel(x, y, x2, y2) - 1.0) + 0.5 * (x is x2)


class Blind(PairMatching):
    def most_violated(self, x, y, score):
        return y


def test_certificates_that_are_withheld(tables):
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = pairing(problem=Indefinite(), tol=0.01).fit(*tables)
    assert model.certificate_.kind == "withheld"
    with pytest.warns(UserWarning, match="most_violated of Blind is not exact"):
        blind = pairing(problem=Blind()).fit(*tables)
    assert blind.certificate_.kind == "withheld"
    assert len(blind.predict(tables[0])) == len(tables[0])
