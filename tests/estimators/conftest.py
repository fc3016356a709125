"""Data sets of the estimator tests."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import StandardScaler


def _frozen(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Read-only, so that no test can spoil another's data."""
    for array in arrays:
        array.flags.writeable = False
    return arrays


@pytest.fixture(scope="session")
def cancer():
    """569 × 30, two classes 0 and 1, standardised; not separable at moderate C."""
    X, y = load_breast_cancer(return_X_y=True)
    return _frozen(StandardScaler().fit_transform(X), y)


@pytest.fixture(scope="session")
def iris():
    """150 × 4, three classes; class 0 separable, the others not."""
    X, y = load_iris(return_X_y=True)
    return _frozen(X, y)


@pytest.fixture(scope="session")
def digits():
    """600 × 64 of the digits 0 to 9, in [0, 1]."""
    X, y = load_digits(return_X_y=True)
    return _frozen(X[:600] / 16.0, y[:600])


@pytest.fixture(scope="session")
def noisy():
    """200 × 5 with overlapping classes −1 and +1 of unequal size."""
    rng = np.random.default_rng(7)
    y = np.where(rng.random(200) < 0.3, 1, -1)
    X = rng.normal(size=(200, 5)) + 0.7 * y[:, None] * rng.normal(size=5) + 0.5
    return _frozen(X, y)
