"""Chains with kernels by other means: explicit features, objectives, data that no line divides."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from cutplane import ChainTagger
from cutplane.structured.chain import ChainShape, ChainWeights
from structured_reference import enumerated_chains, random_chains

SHAPES = pytest.mark.parametrize(
    ("order", "boundaries"), [(1, False), (1, True), (2, True)], ids=["1", "1 ends", "2 ends"]
)
GAMMA = 0.8


def corners(seed: int = 0, sequences: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens in a square; the label is the parity of the corner, which no line divides.

    It is likely to be that of the token before, and one token of five tells nothing.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, sequences)
    y = np.cumsum(rng.random(lengths.sum()) < 0.2) % 2
    side = rng.integers(0, 2, len(y))
    X = np.column_stack([side, side ^ y]) * 2.0 - 1.0 + 0.45 * rng.standard_normal((len(y), 2))
    X[rng.random(len(y)) < 0.2] = 0.0
    return X, np.array(["even", "odd"])[y], lengths


def explicit_features(X: list[np.ndarray]) -> list[np.ndarray]:
    """Features of the RBF kernel on these tokens: their inner products are its values."""
    tokens = np.concatenate(X)
    factor = np.linalg.cholesky(rbf_kernel(tokens, gamma=GAMMA) + 1e-13 * np.eye(len(tokens)))
    return np.split(factor, np.cumsum([len(x) for x in X])[:-1])


def explicit_point(model: ChainTagger, X: list[np.ndarray]) -> np.ndarray:
    """The model as a w of the explicit features."""
    tokens = len(np.concatenate(X))
    features = np.concatenate(explicit_features(X))
    coef = np.zeros((tokens, len(model.classes_)))
    coef[model.support_] = model.dual_coef_.T
    second = np.zeros((0, 0, 0))
    if model.order == 2:
        second = model.second_transitions_.transpose(1, 0, 2)
    shape = ChainShape(tokens, len(model.classes_), model.boundaries, model.order)
    return shape.pack(
        ChainWeights(features.T @ coef, second, model.transitions_, model.begin_, model.finish_)
    )


def objective(model: ChainTagger, X: np.ndarray, y: np.ndarray, lengths: np.ndarray) -> float:
    """Of a model with two labels and the Hamming loss, by Viterbi in plain Python."""
    emissions = model.decision_function(X, lengths=lengths)
    truth, T = np.searchsorted(model.classes_, y), model.transitions_
    risk = 0.0
    for a, b in zip(np.cumsum(lengths) - lengths, np.cumsum(lengths), strict=True):
        s, z = emissions[a:b], truth[a:b]
        best = s[0] + (np.arange(2) != z[0])
        own = s[0, z[0]]
        for t in range(1, b - a):
            best = (best[:, None] + T).max(axis=0) + s[t] + (np.arange(2) != z[t])
            own += T[z[t - 1], z[t]] + s[t, z[t]]
        risk += best.max() - own
    values = rbf_kernel(model.support_vectors_, gamma=model._gamma)
    squared = np.einsum("ki,ij,kj->", model.dual_coef_, values, model.dual_coef_)
    return 0.5 * (squared + np.sum(T**2)) + model.C * risk


def fit_enumerated(*, tol: float, rel: float, **settings) -> ChainTagger:
    """A model of chains of which all labellings can be tried, checked against their optimum.

    ``rel`` is how near its objective must be. The model is the point that its certificate is about.
    """
    X, Y = random_chains(2)
    features = explicit_features(X)
    shape = ChainShape(features[0].shape[1], 3, settings["boundaries"], settings["order"])
    every = enumerated_chains(features, Y, shape, settings["loss"])
    optimum = every.optimum(1.0)
    model = ChainTagger(1.0, kernel="rbf", gamma=GAMMA, tol=tol, **settings).fit(X, Y)
    certificate = model.certificate_
    assert certificate.kind == "exact"
    assert certificate.relative_gap <= tol
    assert certificate.dual <= optimum * (1 + 1e-7)
    assert optimum <= certificate.primal * (1 + 1e-7)
    assert every.objective(explicit_point(model, X), 1.0) == pytest.approx(optimum, rel=rel)
    return model
