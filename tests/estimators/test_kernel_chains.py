"""ChainTagger with a kernel: against every labelling, the linear chain, and multiclass."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import rbf_kernel

import cutplane.estimators._parts_fit as parts_fit
import cutplane.exec
from cutplane import ChainTagger, SampledCutSVC
from kernel_chain_reference import (
    SHAPES,
    corners,
    fit_enumerated,
    objective,
)
from structured_reference import random_chains


@pytest.fixture(scope="module", name="square")
def square_data():
    return corners()


# -- brute force --------------------------------------------------------------------------


@SHAPES
@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_the_optimum_of_the_enumerated_problem(solver, loss, order, boundaries):
    settings = {"loss": loss, "order": order, "boundaries": boundaries}
    fit_enumerated(method="exact", solver=solver, tol=1e-7, rel=1e-6, **settings)


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_the_linear_kernel_is_the_linear_chain(solver):
    X, Y = random_chains(4, lengths=(3, 2, 0, 4, 1, 5, 2, 2))
    plain = ChainTagger(4.0, tol=1e-6, boundaries=True).fit(X, Y)
    model = ChainTagger(
        4.0, kernel="linear", tol=1e-6, boundaries=True, solver=solver, method="exact"
    ).fit(X, Y)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-6)
    assert model.certificate_.dual <= plain.certificate_.primal * (1 + 1e-10)
    assert plain.certificate_.dual <= model.certificate_.primal * (1 + 1e-10)
    coef = model.dual_coef_ @ model.support_vectors_
    np.testing.assert_allclose(coef, plain.coef_, atol=0.02)
    np.testing.assert_allclose(model.transitions_, plain.transitions_, atol=0.02)
    for a, b in zip(model.decision_function(X), plain.decision_function(X), strict=True):
        np.testing.assert_allclose(a, b, atol=0.1)


def test_sequences_of_one_token_are_multiclass(iris):
    X, y = iris
    reference = SampledCutSVC(
        C=0.5, gamma=0.3, method="exact", multi_class="crammer_singer", stopping="relative",
        tol=1e-5,
    ).fit(X, y)  # fmt: skip
    model = ChainTagger(0.5, kernel="rbf", gamma=0.3, tol=1e-5)
    model.fit(X, y, lengths=np.ones(len(y), int))
    assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=2e-5)
    np.testing.assert_array_equal(model.transitions_, 0.0)
    scores = model.decision_function(X, lengths=[len(y)])
    assert scores.shape == (150, 3)
    np.testing.assert_allclose(scores, reference.decision_function(X), atol=0.05)


# -- sampling -----------------------------------------------------------------------------


def tagger(**parameters) -> ChainTagger:
    return ChainTagger(1.0, kernel="rbf", gamma=1.0, tol=1e-3, random_state=0).set_params(
        **parameters
    )


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_a_sample_of_all_tokens_is_exact(square, solver):
    X, y, lengths = square
    exact = tagger(method="exact", solver=solver).fit(X, y, lengths=lengths)
    whole = tagger(method="linear", sample_size=len(y), solver=solver).fit(X, y, lengths=lengths)
    assert whole.certificate_ == exact.certificate_
    assert whole.certificate_.kind == "exact"
    np.testing.assert_array_equal(whole.dual_coef_, exact.dual_coef_)
    assert exact.certificate_.primal == pytest.approx(objective(exact, X, y, lengths), rel=1e-5)
    assert exact.sampling_bound() == exact.certificate_.gap


@pytest.mark.parametrize("solver", ["ocas", "cpa"])
def test_sampled_cuts_come_close(square, solver):
    X, y, lengths = square
    exact = tagger().fit(X, y, lengths=lengths)
    assert exact.certificate_.kind == "exact"  # auto: so few tokens are not sampled
    sampled = tagger(
        method="linear", sample_size=60, solver=solver, stopping="epsilon", tol=2e-2
    ).fit(X, y, lengths=lengths)
    certificate = sampled.certificate_
    assert certificate.kind == "estimated"
    assert certificate.primal == pytest.approx(objective(sampled, X, y, lengths), rel=1e-5)
    assert exact.certificate_.dual <= certificate.primal <= 1.15 * exact.certificate_.primal
    assert certificate.dual == pytest.approx(exact.certificate_.dual, rel=0.15)
    assert sampled.sampling_bound(0.9) < sampled.sampling_bound(0.99)
    again = tagger(
        method="linear", sample_size=60, solver=solver, stopping="epsilon", tol=2e-2
    ).fit(X, y, lengths=lengths)
    np.testing.assert_array_equal(again.dual_coef_, sampled.dual_coef_)


def test_a_kernel_sees_what_lines_do_not(square):
    X, y, lengths = square
    X_test, y_test, lengths_test = corners(1, 200)
    linear = ChainTagger(1.0).fit(X, y, lengths=lengths)
    model = tagger().fit(X, y, lengths=lengths)
    alone = SampledCutSVC(gamma=1.0, method="exact").fit(X, y).score(X_test, y_test)
    assert linear.score(X_test, y_test, lengths=lengths_test) < 0.75
    assert model.score(X_test, y_test, lengths=lengths_test) > alone + 0.05


@pytest.mark.parametrize("method", ["exact", "linear"])
def test_values_that_are_not_stored(square, method, monkeypatch):
    X, y, lengths = square
    stored = tagger(method=method, sample_size=100).fit(X, y, lengths=lengths)
    assert stored.n_kernel_values_ == len(y) ** 2
    monkeypatch.setattr(parts_fit, "STORED_BYTES", 0)
    model = tagger(method=method, sample_size=100).fit(X, y, lengths=lengths)
    assert model.n_kernel_values_ % len(y) == 0
    if method == "linear":
        assert model.n_kernel_values_ <= 100 * len(y) * (model.n_iter_ + 1)
    rel = 2e-3 if method == "exact" else 0.05
    assert model.certificate_.primal == pytest.approx(stored.certificate_.primal, rel=rel)
    assert tagger(method="auto", sample_size=100).fit(X, y, lengths=lengths).results_[0].n_iter > 0


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "computed"])
def test_the_same_bits_for_any_number_of_threads(square, stored, monkeypatch):
    monkeypatch.setattr(cutplane.exec, "NUMBERS_PER_THREAD", 1)
    monkeypatch.setattr(cutplane.structured.chain, "CHUNK_WORK", 300)
    monkeypatch.setattr(cutplane.objective.stored, "STORED_COLUMNS", 50)
    monkeypatch.setattr(cutplane.kernels, "SUM_COLUMNS", 50)
    if not stored:
        monkeypatch.setattr(parts_fit, "STORED_BYTES", 0)
    X, y, lengths = square
    found = []
    for threads in (1, 2, 5):
        model = tagger(method="linear", sample_size=80, n_jobs=threads)
        model.fit(scipy.sparse.csr_array(X), y, lengths=lengths)
        found.append((model.dual_coef_, model.transitions_, model.certificate_.primal))
        assert found[-1][2] == found[0][2]
        np.testing.assert_array_equal(found[-1][0], found[0][0])
        np.testing.assert_array_equal(found[-1][1], found[0][1])


# -- fewer basis tokens -------------------------------------------------------------------


def test_the_cost_of_predictions_is_bounded(square):
    X, y, lengths = square
    model = tagger().fit(X, y, lengths=lengths)
    small = tagger(max_basis=12).fit(X, y, lengths=lengths)
    assert (small.n_basis_, len(small.support_)) == (12, 12)
    assert model.n_basis_ > 100 and model.basis_error_ == 0.0
    # The certificate is that of the smaller model, against the optimum of all.
    assert small.certificate_.primal == pytest.approx(objective(small, X, y, lengths), rel=1e-6)
    assert small.certificate_.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
    assert small.basis_error_ > 0.0
    plenty = tagger(max_basis=10_000).fit(X, y, lengths=lengths)
    np.testing.assert_array_equal(plenty.dual_coef_, model.dual_coef_)


def test_fewer_tokens_are_the_best_that_their_span_has(square):
    """A linear chain on the coordinates of all tokens in the span."""
    X, y, lengths = square
    small = tagger(max_basis=12).fit(X, y, lengths=lengths)
    basis = small.support_vectors_
    factor = np.linalg.cholesky(rbf_kernel(basis, gamma=1.0))
    features = np.linalg.solve(factor, rbf_kernel(basis, X, gamma=1.0)).T
    best = ChainTagger(1.0, tol=1e-4).fit(features, y, lengths=lengths)
    assert best.certificate_.dual <= small.certificate_.primal <= best.certificate_.primal * 1.001


def test_a_stopped_fit_is_projected_only(square):
    X, y, lengths = square
    parameters = {"callback": lambda iteration: iteration.number == 12}
    model = tagger(**parameters).fit(X, y, lengths=lengths)
    small = tagger(max_basis=60, **parameters).fit(X, y, lengths=lengths)
    apart = np.abs(
        small.decision_function(X, lengths=lengths) - model.decision_function(X, lengths=lengths)
    )
    assert 0.0 < apart.max() <= small.basis_error_ * (1 + 1e-5)
    np.testing.assert_array_equal(small.transitions_, model.transitions_)
    assert small.certificate_.primal == pytest.approx(objective(small, X, y, lengths), rel=1e-6)
