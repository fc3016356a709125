"""Structured outputs with kernels by samples of all examples: brute force, exact cuts, cost."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from cutplane import ChainTagger, Status, StructuredSVM
from kernel_chain_reference import SHAPES, corners, fit_enumerated, objective
from kernel_problems import GAMMA, Matching, explicit, matchings, permutations
from structured_reference import Enumerated

SIZES = (3, 2, 3, 2) * 30


def tagger(**parameters) -> ChainTagger:
    return ChainTagger(
        1.0, kernel="rbf", gamma=1.0, tol=1e-2, method="constant", random_state=0
    ).set_params(**parameters)


def matcher(**parameters) -> StructuredSVM:
    return StructuredSVM(
        Matching(), 2.5, kernel="rbf", gamma=GAMMA, method="constant", random_state=0
    ).set_params(**parameters)


class Counting(Matching):
    """Counts calls."""

    def __init__(self):
        self.calls = {"most_violated": 0, "part_coefficients": 0}

    def most_violated(self, x, y, score):
        self.calls["most_violated"] += 1
        return super().most_violated(x, y, score)

    def part_coefficients(self, x, y):
        self.calls["part_coefficients"] += 1
        return super().part_coefficients(x, y)


# -- a sample of all examples ---------------------------------------------------------------


@SHAPES
@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
def test_all_sequences_give_the_optimum_of_the_enumerated_problem(loss, order, boundaries):
    settings = {"loss": loss, "order": order, "boundaries": boundaries}
    model = fit_enumerated(method="constant", tol=1e-6, rel=1e-5, **settings)
    assert model.sampling_bound() == model.certificate_.gap


def test_all_sequences_give_the_answer_of_the_exact_method():
    X, y, lengths = corners()
    exact = tagger(method="exact", tol=1e-3).fit(X, y, lengths=lengths)
    whole = tagger(sample_size=len(lengths), tol=1e-3).fit(X, y, lengths=lengths)
    for one, other in ((exact, whole), (whole, exact)):
        assert one.certificate_.kind == "exact"
        assert one.certificate_.relative_gap <= 1e-3
        assert one.certificate_.dual <= other.certificate_.primal
    found = objective(whole, X, y, lengths)
    assert whole.certificate_.primal == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("C", [0.3, 8.0])
def test_all_examples_give_the_optimum_of_the_enumerated_problem(C):
    X, Y = matchings()
    every = Enumerated.make(explicit(X), Y, permutations, Matching().joint_feature, Matching().loss)
    optimum = every.optimum(C)
    model = matcher(C=C, tol=1e-6).fit(X, Y)
    assert model.certificate_.kind == "exact"
    assert model.certificate_.relative_gap <= 1e-6
    assert model.certificate_.dual <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.primal * (1 + 1e-7)
    features = np.concatenate([f.reshape(-1, f.shape[2]) for f in explicit(X)])
    w = np.append(model.dual_coef_[0] @ features[model.support_], model.plain_coef_)
    assert every.objective(w, C) == pytest.approx(model.certificate_.primal, rel=1e-6)


# -- samples --------------------------------------------------------------------------------


def test_samples_of_sequences_come_close():
    X, y, lengths = corners(sequences=400)
    exact = tagger(method="exact").fit(X, y, lengths=lengths)
    model = tagger(sample_size=80).fit(X, y, lengths=lengths)
    assert model.certificate_.kind == "estimated"
    assert model.results_[0].status is Status.CONVERGED
    found = objective(model, X, y, lengths)
    assert exact.certificate_.dual <= found <= 1.1 * exact.certificate_.primal
    assert model.certificate_.primal == pytest.approx(found, rel=0.15)
    new = corners(seed=1, sequences=400)
    assert model.score(*new) > exact.score(*new) - 0.02
    # The theorem's bound covers what was lost; a larger confidence costs more.
    assert found - exact.certificate_.dual <= model.sampling_bound()
    assert model.sampling_bound(0.5) < model.sampling_bound(0.99)


def test_samples_of_examples_come_close():
    X, Y = matchings(1, sizes=(3, 2) * 15)
    model = matcher(C=0.7, sample_size=15, passes=2).fit(X, Y)
    assert model.certificate_.kind == "estimated"
    assert model.results_[0].status is Status.CONVERGED
    assert 0.0 < model.sampling_bound(0.5) < model.sampling_bound(0.99)
    # What it is worth, over all outputs of all examples.
    features, feature = explicit(X), Matching().joint_feature
    every = Enumerated.make(features, Y, permutations, feature, Matching().loss)
    edges = np.concatenate([f.reshape(-1, f.shape[2]) for f in features])
    w = np.append(model.dual_coef_[0] @ edges[model.support_], model.plain_coef_)
    found = every.objective(w, 0.7)
    exact = matcher(C=0.7, method="exact").fit(X, Y).certificate_
    assert exact.dual <= found <= 1.2 * exact.primal
    assert model.certificate_.primal == pytest.approx(found, rel=0.3)
    assert found - exact.dual <= model.sampling_bound()


def test_the_end_is_passes_in_a_row():
    X, y, lengths = corners(sequences=400)
    model = tagger(sample_size=60, passes=3).fit(X, y, lengths=lengths)
    trace = model.results_[0].trace
    passed = [record.trial - record.dual <= 1e-2 * record.trial for record in trace]
    assert all(passed[-3:])
    assert not any(all(passed[k : k + 3]) for k in range(len(passed) - 3))
    assert trace[-1].primal == pytest.approx(np.mean([r.trial for r in trace[-3:]]), rel=1e-9)


def test_the_cost_of_an_iteration_does_not_depend_on_the_number_of_sequences():
    values = []
    for sequences in (500, 5000):
        X, y, lengths = corners(sequences=sequences)
        with pytest.warns(UserWarning, match="iterations"):
            model = tagger(sample_size=50, max_iter=15).fit(X, y, lengths=lengths)
        values.append(model.n_kernel_values_)
        assert model.n_basis_ < 15 * 50 * 8
    assert 0.6 < values[1] / values[0] < 1.6


def test_inference_runs_for_samples_only():
    counts = []
    for copies in (1, 8):
        X, Y = matchings(2, sizes=SIZES * copies)
        problem = Counting()
        model = StructuredSVM(
            problem, 0.2, kernel="rbf", gamma=GAMMA, method="constant", sample_size=10,
            max_iter=6, random_state=0, tol=1e-9,
        )  # fmt: skip
        before = dict(problem.calls)
        with pytest.warns(UserWarning, match="iterations"):
            model.fit(X, Y)
        counts.append({name: n - before[name] for name, n in problem.calls.items()})
    small, large = counts
    # 7 samples, the trials before, and the audit of up to 200 examples.
    assert small["most_violated"] <= 7 * 10 + 2 * 20 + len(SIZES)
    assert large["most_violated"] <= 7 * 10 + 2 * 20 + 200
    assert large["part_coefficients"] < len(SIZES) * 8


# -- ways to say the same -------------------------------------------------------------------


def test_seeds_threads_and_kernels_given_in_other_ways():
    X, y, lengths = corners(sequences=300)
    settings = {"C": 0.2, "sample_size": 60, "max_iter": 10, "tol": 1e-5}  # in double precision
    with pytest.warns(UserWarning, match="iterations"):
        model = tagger(n_jobs=1, **settings).fit(X, y, lengths=lengths)
        threads = tagger(n_jobs=2, **settings).fit(X, y, lengths=lengths)
        other = tagger(random_state=1, **settings).fit(X, y, lengths=lengths)
        given = tagger(kernel=lambda a, b: rbf_kernel(a, b, gamma=1.0), **settings)
        given.fit(X, y, lengths=lengths)
        table = tagger(kernel="precomputed", **settings)
        table.fit(rbf_kernel(X, gamma=1.0), y, lengths=lengths)
    np.testing.assert_array_equal(model.dual_coef_, threads.dual_coef_)
    assert model.certificate_ == threads.certificate_
    assert not np.array_equal(model.support_, other.support_)
    for same in (given, table):
        np.testing.assert_array_equal(same.support_, model.support_)
        np.testing.assert_allclose(same.dual_coef_, model.dual_coef_, atol=1e-6)
        assert same.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-7)


def test_a_smaller_basis_is_trained_on_all_sequences():
    X, y, lengths = corners(sequences=200)
    model = tagger(sample_size=60, max_basis=40).fit(X, y, lengths=lengths)
    assert model.n_basis_ <= 40
    assert model.certificate_.primal == pytest.approx(objective(model, X, y, lengths), rel=1e-4)
    exact = tagger(method="exact").fit(X, y, lengths=lengths)
    assert exact.certificate_.dual <= model.certificate_.primal
    assert model.certificate_.primal <= 1.1 * exact.certificate_.primal


def test_callbacks_get_a_model_and_stop_it():
    X, y, lengths = corners(sequences=200)
    seen = []

    def callback(record):
        seen.append(record.number)
        return record.number == 4

    model = tagger(sample_size=30, callback=callback).fit(X, y, lengths=lengths)
    assert seen == [1, 2, 3, 4]
    assert model.results_[0].status is Status.STOPPED
    assert len(model.predict([X[:3]])[0]) == 3


# -- what goes wrong ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": None}, "method='constant' is for kernels"),
        ({"passes": 0}, "passes must be an integer ≥ 1"),
        ({"sample_size": 0}, "sample_size must be an integer ≥ 1"),
        ({"method": "constants"}, "method must be one of"),
        ({"checkpoint": "file"}, "checkpoint is not available with a kernel"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y, lengths = corners(sequences=5)
    with pytest.raises(ValueError, match=message):
        tagger(**parameters).fit(X, y, lengths=lengths)


class Failing(Matching):
    """Raises for one of the examples."""

    def __init__(self, bad):
        self.bad = bad

    def most_violated(self, x, y, score):
        if x is self.bad:
            raise RuntimeError("here")
        return super().most_violated(x, y, score)


def test_errors_name_the_example():
    X, Y = matchings(2, sizes=SIZES)
    with pytest.raises(RuntimeError, match="here") as caught:
        StructuredSVM(
            Failing(X[31]), 2.5, kernel="rbf", method="constant", sample_size=40, random_state=0
        ).fit(X, Y)
    assert caught.value.__notes__ == ["raised by most_violated for example 31"]


def test_inference_that_is_not_exact_is_noticed():
    class Sloppy(Matching):
        def most_violated(self, x, y, score):
            return np.asarray(y) if np.any(score.parts) else super().most_violated(x, y, score)

    X, Y = matchings(2, sizes=SIZES)
    with pytest.warns(UserWarning, match="is not exact"):
        model = StructuredSVM(
            Sloppy(), 2.5, kernel="rbf", gamma=GAMMA, method="constant", sample_size=30
        ).fit(X, Y)
    assert model.certificate_.kind == "withheld"


def test_empty_sequences_may_be_all_of_a_sample():
    X, y, lengths = corners(sequences=20)
    lengths = np.concatenate([lengths, np.zeros(200, int)])
    model = tagger(sample_size=3, max_iter=40, tol=0.5).fit(X, y, lengths=lengths)
    assert np.isfinite(model.certificate_.primal)
