"""Block-coordinate ascent: fewer passes than cutting planes, warm starts, room for outputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from cutplane import ChainTagger, Status, StructuredSVM
from cutplane.exec import SerialExecutor
from cutplane.solvers import blocks
from cutplane.structured import MulticlassProblem, Problem


class Counting(Problem):
    """Matchings; the inference is counted."""

    def __init__(self):
        self.calls = 0

    def joint_feature(self, x, y):
        return x[np.arange(len(y)), y].sum(axis=0)

    def loss(self, y, z):
        return float(np.sum(y != z))

    def most_violated(self, x, y, score):
        self.calls += 1
        wrong = np.ones(x.shape[:2])
        wrong[np.arange(len(y)), y] = 0.0
        return linear_sum_assignment(x @ score.w + wrong, maximize=True)[1]

    def predict(self, x, score):
        return linear_sum_assignment(x @ score.w, maximize=True)[1]


@pytest.fixture(scope="module")
def matchings():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, n, 60)) for n in rng.integers(2, 6, 60)]
    hidden = rng.normal(size=60)
    noisy = [(x + 0.7 * rng.normal(size=x.shape)) @ hidden for x in X]
    return X, [linear_sum_assignment(worth, maximize=True)[1] for worth in noisy]


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_bounds_agree_with_cutting_planes(matchings, C):
    found = []
    for solver in ("auto", "cpa"):
        model = StructuredSVM(Counting(), C, solver=solver, tol=1e-3).fit(*matchings)
        assert model.results_[0].status is Status.CONVERGED
        found.append(model.certificate_)
    for one, other in itertools.permutations(found):
        assert one.dual <= other.primal * (1 + 1e-12)


def test_chains_take_a_part_of_the_inference(oracles):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 40)) for n in rng.integers(1, 8, 100)]
    hidden = rng.normal(size=(40, 5))
    y = [np.argmax(x @ hidden + 4.0 * rng.normal(size=(len(x), 5)), axis=1) for x in X]
    for solver in ("auto", "ocas"):
        ChainTagger(1.0, solver=solver).fit(X, y)
    assert oracles[0].passes < oracles[1].passes


@pytest.mark.parametrize("chains", [True, False])
def test_steps_in_the_span_raise_the_dual_by_what_they_say(matchings, monkeypatch, chains):
    """The dual and w of the mixtures, computed anew before and after each of these steps."""
    C, plain, seen = 1.0, blocks.Trail._go_on, []

    def dual(kind, count):
        cut = kind.plane(SerialExecutor())
        w = -C * count * cut.a
        np.testing.assert_allclose(kind.w, w, atol=1e-9 * np.abs(w).max())
        return C * count * cut.offset - 0.5 * w @ w

    def checked(trail):
        kind, count = trail._blocks, len(trail._blocks.gaps)
        before = dual(kind, count)
        grown = plain(trail)
        seen.append((grown, dual(kind, count) - before))
        return grown

    monkeypatch.setattr(blocks.Trail, "_go_on", checked)
    if chains:
        rng = np.random.default_rng(0)
        X = [rng.normal(size=(n, 40)) for n in rng.integers(0, 8, 200)]
        hidden = rng.normal(size=(40, 20))
        y = [np.argmax(x @ hidden + rng.normal(size=(len(x), 20)), axis=1) for x in X]
        ChainTagger(C, solver="bcfw", boundaries=True).fit(X, y)
    else:
        StructuredSVM(Counting(), C, solver="bcfw").fit(*matchings)
    said, grown = np.transpose(seen)
    assert np.all(said >= 0.0) and np.any(said > 0.0)
    np.testing.assert_allclose(grown, said, rtol=1e-6, atol=1e-7)


def test_few_weights_at_a_large_cost_are_for_cutting_planes(oracles):
    """The bounds of all solvers agree; the default takes no more passes than its two parts."""
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(n, 4)) for n in rng.integers(1, 9, 120)]
    hidden = rng.normal(size=(4, 3))
    y = [np.argmax(x @ hidden + 3.0 * rng.normal(size=(len(x), 3)), axis=1) for x in X]
    found = [ChainTagger(10.0, solver=s, tol=1e-3).fit(X, y) for s in ("auto", "bcfw", "ocas")]
    for one, other in itertools.permutations(found, 2):
        assert one.certificate_.dual <= other.certificate_.primal * (1 + 1e-12)
    auto, ascent, planes = (oracle.passes for oracle in oracles)
    assert "qp" in found[0].results_[0].timings and "qp" not in found[1].results_[0].timings
    assert planes < auto < ascent
    again = ChainTagger(10.0, tol=1e-3, warm_start=True).fit(X, y).fit(X, y)
    assert again.n_iter_ <= 2


def test_warm_starts_keep_the_outputs(matchings):
    problem = Counting()
    model = StructuredSVM(problem, 1.0, solver="bcfw", tol=1e-3, warm_start=True).fit(*matchings)
    first, problem.calls = problem.calls, 0
    model.set_params(C=1.2).fit(*matchings)
    assert problem.calls < first
    fresh = StructuredSVM(Counting(), 1.2, solver="cpa", tol=1e-3).fit(*matchings)
    assert model.certificate_.dual <= fresh.certificate_.primal
    assert fresh.certificate_.dual <= model.certificate_.primal


def test_the_same_model_every_time(matchings):
    coef = [
        StructuredSVM(Counting(), solver="auto", n_jobs=jobs).fit(*matchings).coef_
        for jobs in (1, 1, 2)
    ]
    assert np.array_equal(coef[0], coef[1]) and np.array_equal(coef[0], coef[2])


@pytest.mark.parametrize("solver", ["auto", "bcfw"])
def test_where_memory_or_passes_end_cutting_planes_go_on(matchings, monkeypatch, solver):
    monkeypatch.setattr(blocks, "CACHE_NUMBERS", 100)
    model = StructuredSVM(Counting(), 1.0, solver=solver, tol=1e-4)
    if solver == "auto":
        assert model.fit(*matchings).results_[0].status is Status.CONVERGED
    else:
        with pytest.warns(ConvergenceWarning):
            assert model.fit(*matchings).results_[0].status is Status.MAX_ITER
        assert model.certificate_.dual <= model.certificate_.primal
    monkeypatch.setattr(blocks, "MOST_PASSES", 2)
    X = [np.random.default_rng(k).normal(size=(4, 3)) for k in range(9)]
    y = [np.argmax(x, axis=1) for x in X]
    tagger = ChainTagger(10.0, solver=solver, tol=1e-6, max_iter=500)
    if solver == "auto":
        assert tagger.fit(X, y).results_[0].status is Status.CONVERGED
    else:
        with pytest.warns(ConvergenceWarning):
            assert tagger.fit(X, y).results_[0].status is Status.MAX_ITER


def test_limits_and_interrupts(matchings):
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        StructuredSVM(Counting(), 1e3, solver="bcfw", tol=1e-9, time_limit=1e-9).fit(*matchings)

    def interrupt(iteration):
        if iteration.number == 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = StructuredSVM(Counting(), 1e3, solver="bcfw", tol=1e-9, callback=interrupt)
        assert model.fit(*matchings).results_[0].status is Status.INTERRUPTED
    stop = {"callback": lambda iteration: iteration.number == 3}
    stopped = StructuredSVM(Counting(), 1e3, solver="auto", tol=1e-9, **stop).fit(*matchings)
    assert stopped.n_iter_ == 3 and stopped.results_[0].status is Status.STOPPED


def test_what_it_is_not_for():
    X, y = np.eye(3), [0, 1, 2]
    with pytest.raises(ValueError, match="solver='bcfw' is for models without a kernel, in this"):
        StructuredSVM(MulticlassProblem(), solver="bcfw", kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match="solver='bcfw' is for models without a kernel, in this"):
        ChainTagger(solver="bcfw", kernel="rbf").fit([X], [y])
    with pytest.raises(ValueError, match="first order"):
        ChainTagger(solver="bcfw", order=2).fit([X], [y])
