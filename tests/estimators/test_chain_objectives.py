"""ChainTagger against the QP with every labelling, and against multiclass."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import cutplane.exec
import cutplane.structured.chain
from cutplane import LinearSVC
from cutplane.estimators.chain_tagger import ChainTagger
from cutplane.structured.chain import ChainShape
from structured_reference import enumerated_chains, random_chains


def enumerated(X, Y, loss, boundaries, order=1):
    return enumerated_chains(X, Y, ChainShape(X[0].shape[1], 3, boundaries, order), loss)


def flat(model):
    """w of the fitted attributes."""
    return model._shape.pack(model._chain_weights())


@pytest.mark.parametrize("boundaries", [False, True], ids=["plain", "boundaries"])
@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
@pytest.mark.parametrize("solver", ["cpa", "ocas", "bcfw"])
@pytest.mark.parametrize("C", [0.3, 5.0, 100.0])
def test_the_optimum_of_the_enumerated_problem(solver, loss, boundaries, C):
    X, Y = random_chains(2)
    every = enumerated(X, Y, loss, boundaries)
    optimum = every.optimum(C)
    model = ChainTagger(C, loss=loss, boundaries=boundaries, solver=solver, tol=1e-7).fit(X, Y)
    certificate = model.certificate_
    assert certificate.kind == "exact"
    assert certificate.relative_gap <= 1e-7
    assert certificate.dual <= optimum * (1 + 1e-8)
    assert optimum <= certificate.primal * (1 + 1e-8)
    # The model is the point that the certificate is about.
    assert every.objective(flat(model), C) == pytest.approx(certificate.primal, rel=1e-10)
    assert every.objective(model.results_[0].w, C) == pytest.approx(certificate.primal, rel=1e-10)


@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
@pytest.mark.parametrize("boundaries", [False, True], ids=["plain", "boundaries"])
def test_second_order(loss, boundaries):
    X, Y = random_chains(2)
    every = enumerated(X, Y, loss, boundaries, order=2)
    optimum = every.optimum(1.0)
    model = ChainTagger(1.0, loss=loss, boundaries=boundaries, order=2, tol=1e-7).fit(X, Y)
    assert model.certificate_.dual <= optimum * (1 + 1e-8)
    assert optimum <= model.certificate_.primal * (1 + 1e-8)
    assert every.objective(flat(model), 1.0) == pytest.approx(optimum, rel=2e-7)
    assert model.second_transitions_.shape == (3, 3, 3)


def test_second_order_learns_what_the_first_cannot():
    """The label is that of two tokens before, but for the first two: features say nothing later."""
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(60):
        y = np.tile(rng.integers(0, 3, 2), 4)
        rows = np.eye(3)[y]
        rows[2:] = 0.0
        X.append(rows)
        Y.append(y)
    scores = [ChainTagger(1e3, order=order).fit(X, Y).score(X, Y) for order in (1, 2)]
    assert scores[0] < 0.8
    assert scores[1] == 1.0


@pytest.mark.parametrize("solver", ["cpa", "ocas", "bcfw"])
@pytest.mark.parametrize("max_iter", [1, 3])
def test_bounds_hold_at_any_time(solver, max_iter):
    X, Y = random_chains(5, lengths=(3, 2, 3, 1))
    optimum = enumerated(X, Y, "hamming", False).optimum(6.0)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        model = ChainTagger(6.0, solver=solver, max_iter=max_iter, tol=1e-9).fit(X, Y)
    assert 0.0 <= model.certificate_.dual <= optimum * (1 + 1e-9)
    assert optimum <= model.certificate_.primal
    assert len(model.predict(X)) == len(X)


@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
def test_sequences_of_one_token_are_multiclass(iris, loss):
    """Without a neighbour there is no transition: Crammer and Singer's problem."""
    X, y = iris
    reference = LinearSVC(
        C=0.5, multi_class="crammer_singer", fit_intercept=False, tol=1e-6, max_iter=5000
    ).fit(X, y)
    model = ChainTagger(0.5, loss=loss, tol=1e-6).fit(X, y, lengths=np.ones(len(y), int))
    assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=2e-6)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=0.02)
    np.testing.assert_array_equal(model.transitions_, 0.0)
    np.testing.assert_array_equal(model.predict(X, lengths=[150]).shape, (150,))


def test_empty_sequences_add_nothing():
    """An empty sequence has no wrong labelling, so it adds no loss."""
    X, Y = random_chains(1, lengths=(3, 2, 2))
    more_X, more_Y = [X[0], [], X[1], np.zeros((0, 2)), X[2]], [Y[0], [], Y[1], [], Y[2]]
    plain = ChainTagger(1.0, tol=1e-8).fit(X, Y)
    more = ChainTagger(1.0, tol=1e-8).fit(more_X, more_Y)
    assert more.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-7)
    predicted = more.predict(more_X)
    assert [len(labels) for labels in predicted] == [3, 0, 2, 0, 2]


def random_text(seed: int = 0, sequences: int = 60, features: int = 30, labels: int = 5):
    """Sparse tokens with labels that depend on features and on the label before."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, sequences)
    rows = scipy.sparse.random_array((lengths.sum(), features), density=0.2, rng=rng, format="csr")
    weights = rng.normal(size=(features, labels))
    y = np.argmax(rows @ weights + 0.3 * rng.normal(size=(lengths.sum(), labels)), axis=1)
    return rows, y, lengths


def test_solvers_and_layouts_agree():
    X, y, lengths = random_text()
    primals = [
        ChainTagger(1.0, solver=solver, tol=1e-5)
        .fit(layout(X), y, lengths=lengths)
        .certificate_.primal
        for solver in ("cpa", "ocas", "bcfw")
        for layout in (
            lambda X: X,
            lambda X: X.toarray(),
            lambda X: np.asfortranarray(X.toarray()),
            lambda X: X.astype(np.float32),
            lambda X: scipy.sparse.csr_matrix(X),
        )
    ]
    np.testing.assert_allclose(primals, primals[0], rtol=2e-5)


def bits(model) -> tuple:
    trace = tuple((r.primal, r.dual, r.trial, r.step) for r in model.results_[0].trace)
    return model.coef_.tobytes(), model.transitions_.tobytes(), model.begin_.tobytes(), trace


@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
@pytest.mark.parametrize("sparse", [True, False])
def test_the_same_bits_for_any_number_of_threads(monkeypatch, loss, sparse):
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS", 300)
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS_PER_WEIGHT", 1)
    monkeypatch.setattr(cutplane.exec, "NUMBERS_PER_THREAD", 1)
    monkeypatch.setattr(cutplane.structured.chain, "CHUNK_WORK", 200)
    monkeypatch.setattr(cutplane.structured.chain, "NUMBERS_PER_WEIGHT", 1)
    X, y, lengths = random_text()
    X = X if sparse else X.toarray()
    models = [
        ChainTagger(0.3, loss=loss, boundaries=True, n_jobs=jobs).fit(X, y, lengths=lengths)
        for jobs in (1, 2, 3, None)
    ]
    assert len({bits(model) for model in models}) == 1
    labels = {model.predict(X, lengths=lengths).tobytes() for model in models}
    assert len(labels) == 1


@pytest.mark.parametrize("solver", ["auto", "ocas"])
def test_warm_starts(solver, oracles):
    X, y, lengths = random_text()
    cold = ChainTagger(1.0, solver=solver, tol=1e-4).fit(X, y, lengths=lengths)
    model = ChainTagger(1.0, solver=solver, tol=1e-4, warm_start=True).fit(X, y, lengths=lengths)
    again = model.fit(X, y, lengths=lengths)
    assert again.n_iter_ <= 2
    assert again.certificate_.relative_gap <= 1e-4
    model.set_params(C=1.2).fit(X, y, lengths=lengths)
    ChainTagger(1.2, solver=solver, tol=1e-4).fit(X, y, lengths=lengths)
    if solver == "ocas":
        assert oracles[-2].passes < oracles[-1].passes
    # Other labels: their weights are no start, and the cuts are of another problem.
    other = model.set_params(C=1.0).fit(X, np.char.add("t", y.astype(str)), lengths=lengths)
    assert other.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-4)
    changed = np.where(y == 0, 1, y)
    changed[0] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, changed, lengths=lengths)
    fresh = ChainTagger(1.0, solver=solver, tol=1e-4).fit(X, changed, lengths=lengths)
    assert model.certificate_.dual <= fresh.certificate_.primal * (1 + 1e-9)
    assert fresh.certificate_.dual <= model.certificate_.primal * (1 + 1e-9)
