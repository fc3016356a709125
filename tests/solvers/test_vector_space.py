"""The bundle's vectors: products, combinations, reuse of places, chunks of columns."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.solvers import reduced
from cutplane.solvers.reduced import VectorSpace


@pytest.fixture(params=[None, 10], ids=["one chunk", "chunks"])
def chunked(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(reduced, "CHUNK_COLUMNS", request.param)


@pytest.mark.parametrize("dimension", [0, 1, 9, 10, 37])
def test_products_and_combinations(dimension, chunked):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, dimension))  # more than one slab
    kept = VectorSpace(dimension, SerialExecutor())
    for k, vector in enumerate(vectors):
        column = kept.append(vector)
        np.testing.assert_allclose(column, vectors[: k + 1] @ vector, rtol=1e-12, atol=1e-13)
    coef = rng.normal(size=40)
    coef[::3] = 0.0
    np.testing.assert_allclose(kept.combine(coef), coef @ vectors, rtol=1e-12, atol=1e-13)


def test_forgotten_places_are_used_again(chunked):
    rng = np.random.default_rng(1)
    vectors = list(rng.normal(size=(200, 23)))
    kept, mirror = VectorSpace(23, SerialExecutor()), []
    for k, vector in enumerate(vectors):
        mirror.append(vector)
        column = kept.append(vector)
        np.testing.assert_allclose(column, np.array(mirror) @ vector, rtol=1e-12, atol=1e-13)
        if k % 7 == 6:
            positions = np.sort(rng.choice(len(mirror), size=len(mirror) // 2, replace=False))
            kept.keep(positions)
            mirror = [mirror[p] for p in positions]
            coef = rng.normal(size=len(mirror))
            np.testing.assert_allclose(kept.combine(coef), coef @ np.array(mirror), atol=1e-12)
            for p, vector in enumerate(mirror):
                np.testing.assert_array_equal(kept.vectors[p], vector)
    assert len(kept._slabs) <= 2  # never more than 13 vectors at a time


def test_vectors_are_copied():
    kept = VectorSpace(3, SerialExecutor())
    vector = np.ones(3)
    kept.append(vector)
    vector[:] = 5.0
    np.testing.assert_array_equal(kept.vectors[0], np.ones(3))


def test_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(reduced, "CHUNK_COLUMNS", 10)
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(30, 333)) * 10.0 ** rng.integers(-5, 5, 333)
    coef = rng.normal(size=30)
    found = []
    for executor in (SerialExecutor(), ThreadExecutor(2), ThreadExecutor(8)):
        with executor:
            kept = VectorSpace(333, executor)
            columns = [kept.append(vector) for vector in vectors]
            found.append((columns[-1].tobytes(), kept.combine(coef).tobytes()))
    assert found[0] == found[1] == found[2]
