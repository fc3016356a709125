"""Data that need no folder: sets that come with scikit-learn, and generated families.

The families are the kinds of data on which defaults fail: few rows, more features than rows,
separable classes, features on unlike scales, a rare class, rows that come many times. They are
dense arrays where a user would have dense arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

Loaded = tuple[Any, np.ndarray]


def _bundled(name: str, positive: int) -> Callable[[], Loaded]:
    """A set of scikit-learn's: one class against the rest, features to mean 0 and variance 1."""

    def load() -> Loaded:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        return X, np.where(y == positive, 1.0, -1.0)

    return load


def _normal(rows: int, features: int, *, noise: float = 0.1, seed: int = 0) -> Loaded:
    """Standard normal features; a linear rule, some labels flipped."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    y = np.where(X @ rng.standard_normal(features) > 0.0, 1.0, -1.0)
    return X, np.where(rng.random(rows) < noise, -y, y)


def _unscaled() -> Loaded:
    """Features whose scales run from 1e-3 to 1e3."""
    X, y = _normal(20_000, 30, seed=1)
    return X * np.logspace(-3, 3, 30), y


def _rare() -> Loaded:
    """One row in 200 is positive, and the classes overlap."""
    rng = np.random.default_rng(2)
    y = np.where(rng.random(50_000) < 0.005, 1.0, -1.0)
    return rng.standard_normal((50_000, 20)) + 0.7 * (y > 0)[:, None], y


def _duplicated() -> Loaded:
    """A thousand different rows, each fifty times, with labels of their own."""
    rng = np.random.default_rng(3)
    X, y = _normal(1000, 40, seed=3)
    rows = rng.integers(0, 1000, 50_000)
    return X[rows], np.where(rng.random(50_000) < 0.1, -y[rows], y[rows])


def _embedding(rows: int) -> Loaded:
    """Dense rows of length 1 in 768 dimensions with a few strong directions, single precision."""
    rng = np.random.default_rng(4)
    scales = 1.0 / np.sqrt(1.0 + np.arange(768))
    X = (rng.standard_normal((rows, 768), dtype=np.float32) * scales).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ rng.standard_normal(768).astype(np.float32)
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    return X, np.where(rng.random(rows) < 0.05, -y, y)


def _fingerprints() -> Loaded:
    """Rows of 0 and 1, one in ten set, fewer rows than would determine the features."""
    rng = np.random.default_rng(5)
    X = (rng.random((3845, 1617)) < 0.1).astype(np.float64)
    scores = X @ rng.standard_normal(1617)
    return sp.csr_matrix(X), np.where(scores + rng.standard_normal(3845) > 0.0, 1.0, -1.0)


FAMILIES: dict[str, Callable[[], Loaded]] = {
    "iris": _bundled("iris", 1),
    "wine": _bundled("wine", 1),
    "breast-cancer": _bundled("breast_cancer", 1),
    "digits-8": _bundled("digits", 8),
    "200 × 10": lambda: _normal(200, 10),
    "2,000 × 20": lambda: _normal(2000, 20),
    "unscaled": _unscaled,
    "rare class": _rare,
    "repeated rows": _duplicated,
    "2,000 × 5,000": lambda: _normal(2000, 5000),
    "10,000 × 3,000": lambda: _normal(10_000, 3000),
    "fingerprints": _fingerprints,
    "embedding 20,000": lambda: _embedding(20_000),
    "embedding 100,000": lambda: _embedding(100_000),
}
