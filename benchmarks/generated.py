"""Generated stand-ins: of the same kind as the real sets, small, not separable.

For smoke tests and ``--quick``, and the only data of the sections that need any number of rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from .kmers import positional_kmers
from .targets import Rows, equal_ranks


def _noisy_labels(scores: np.ndarray, rng: np.random.Generator, flipped: float) -> np.ndarray:
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    return np.where(rng.random(len(y)) < flipped, -y, y)


def _generated_covtype(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """A few numbers in [0, 1] and a block of indicators."""
    numbers = rng.random((rows, 10), dtype=np.float32)
    indicators = np.zeros((rows, 44), dtype=np.float32)
    indicators[np.arange(rows), rng.integers(0, 4, rows)] = 1.0
    indicators[np.arange(rows), 4 + rng.integers(0, 40, rows)] = 1.0
    X = np.hstack([numbers, indicators])
    return sp.csr_matrix(X), _noisy_labels(X @ rng.normal(size=54), rng, 0.2)


def _generated_digits(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """Ten noisy prototypes of 64 pixels."""
    prototypes = rng.random((10, 64)) * (rng.random((10, 64)) < 0.4)
    y = rng.integers(0, 10, rows)
    X = prototypes[y] + 0.35 * rng.normal(size=(rows, 64)) * (rng.random((rows, 64)) < 0.3)
    return sp.csr_matrix(np.clip(X, 0.0, 1.0)), y.astype(np.int64)


def _generated_digit8(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    X, y = _generated_digits(rows, rng)
    return X, np.where(y == 8, 1.0, -1.0)


def _generated_text(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of length 1 over 2000 words, frequent and rare."""
    words = np.minimum(rng.zipf(1.3, size=(rows, 40)), 2000) - 1
    values = rng.random(words.shape)
    places = np.repeat(np.arange(rows), 40), words.ravel()
    X = sp.csr_matrix((values.ravel(), places), (rows, 2000))
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags(1.0 / lengths) @ X)
    return X, _noisy_labels(X @ rng.normal(size=2000), rng, 0.05)


def _generated_binary(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """Indicators only, 14 of 120 per row."""
    X = np.zeros((rows, 120), dtype=np.float32)
    X[np.arange(rows)[:, None], rng.integers(0, 120, size=(rows, 14))] = 1.0
    return sp.csr_matrix(X), _noisy_labels(X @ rng.normal(size=120), rng, 0.15)


def _generated_rare(rows: int, rng: np.random.Generator) -> Rows:
    """The same indicators, one row in ten positive."""
    X, _ = _generated_binary(rows, rng)
    scores = X @ rng.normal(size=120) + rng.normal(size=rows)
    return X, np.where(scores > np.quantile(scores, 0.9), 1.0, -1.0)


def generated_targets(rows: int, rng: np.random.Generator, features: int = 8) -> Rows:
    """Real targets, a linear function of a few normal features with noise."""
    X = rng.normal(size=(rows, features)).astype(np.float32)
    slopes = np.linspace(1.0, 0.1, features)
    return sp.csr_matrix(X), X @ slopes + 0.5 * rng.normal(size=rows)


def _generated_ranks(count: int) -> Callable[[int, np.random.Generator], Rows]:
    def generate(rows: int, rng: np.random.Generator) -> Rows:
        X, y = generated_targets(rows, rng)
        return X, equal_ranks(y, count)

    return generate


def _generated_queries(part: int) -> Callable[[int, np.random.Generator], Rows]:
    """Queries of about 20 rows and three grades; the parts have other rows."""

    def generate(rows: int, rng: np.random.Generator) -> Rows:
        X, y = generated_targets(rows, rng.spawn(part + 1)[part])
        return X, equal_ranks(y, 3).astype(np.float64), np.arange(rows) // 20

    return generate


def _generated_sites(rows: int, rng: np.random.Generator) -> Rows:
    """Random letters; positive rows have most of a motif before the middle."""
    letters = rng.choice(np.frombuffer(b"ACGT", np.uint8), size=(rows, 20))
    y = np.where(rng.random(rows) < 0.15, 1.0, -1.0)
    motif = np.frombuffer(b"TTTCAG", np.uint8)
    places = (y[:, None] > 0.0) & (rng.random((rows, 6)) < 0.7)
    letters[:, 4:10] = np.where(places, motif, letters[:, 4:10])
    return positional_kmers(letters), y


def checkers(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """Points in [0, 4)², the parity of the unit square as label, then noise on the points."""
    X = rng.uniform(0.0, 4.0, size=(rows, 2))
    y = np.where(np.floor(X).sum(axis=1) % 2 > 0, 1.0, -1.0)
    X += 0.02 * rng.normal(size=X.shape)
    return sp.csr_matrix(X.astype(np.float32)), y


def coloured(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three colours in [0, 1], one class in five inside a bent tube: few rows are near its wall."""
    X = rng.random((4 * rows, 3)) ** 0.8
    bend = 0.5 + 0.25 * np.sin(3.0 * X[:, 0])
    apart = np.hypot(X[:, 1] - bend, X[:, 2] - 0.8 * bend) - 0.28
    clear = np.flatnonzero(np.abs(apart) > 0.02)[:rows]
    return X[clear], np.where(apart[clear] < 0.0, 1.0, -1.0)


def many_classes(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """26 classes of 16 features, three clusters each, a few of which overlap."""
    centres = rng.normal(size=(78, 16))
    number = rng.integers(0, len(centres), rows)
    return centres[number] + 0.45 * rng.normal(size=(rows, 16)), number % 26


GENERATORS: dict[str, Callable[[int, np.random.Generator], Rows]] = {
    "covtype": _generated_covtype,
    "mnist": _generated_digits,
    "mnist8": _generated_digit8,
    "usps": _generated_digits,
    "usps3": _generated_digit8,
    "aclimdb": _generated_text,
    "a9a": _generated_binary,
    "w8a": _generated_rare,
    "ijcnn1": _generated_rare,
    "codrna": _generated_covtype,
    **{f"news20-{k}": _generated_text for k in (0, 3, 15)},
    "abalone": _generated_ranks(12),
    "california": generated_targets,
    "cpu_act": generated_targets,
    "california10": _generated_ranks(10),
    "stars": _generated_ranks(8),
    "stars-test": _generated_ranks(8),
    "mq2008": _generated_queries(0),
    "mq2008-vali": _generated_queries(1),
    "mq2008-test": _generated_queries(2),
    "celegans": _generated_sites,
}
