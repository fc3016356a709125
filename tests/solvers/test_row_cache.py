"""The row cache: right rows, within its budget, least recently used first."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane.exec import SerialExecutor
from cutplane.kernels import Kernel, PrecomputedMatrix, ProductMatrix, points_of
from cutplane.solvers.decomposition.solver import RowCache


def make(rows: int = 60, dtype=np.float64):
    X = np.random.default_rng(0).normal(size=(rows, 3))
    matrix = ProductMatrix(Kernel("rbf", 0.5), points_of(X, dtype), None, SerialExecutor())
    return matrix, matrix.rows(np.arange(rows))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("capacity", [2, 7, 30, 60])
def test_random_use(dtype, capacity):
    """Whatever is fetched in whatever order, through shrinking and back."""
    matrix, K = make(dtype=dtype)
    cache = RowCache(matrix, capacity * 60 * np.dtype(dtype).itemsize)
    assert len(cache.slots) == capacity
    rng = np.random.default_rng(1)
    columns, left = np.arange(60), np.arange(60)
    for round_ in range(60):
        count = int(rng.integers(1, min(capacity, 12) + 1))
        rows = rng.choice(left, count, replace=False)
        slots, _ = cache.fetch(rows)
        assert len(set(slots.tolist())) == count
        np.testing.assert_allclose(cache.slots[slots], K[rows][:, columns], rtol=1e-5)
        if round_ % 20 == 10:
            keep = np.flatnonzero(rng.random(len(columns)) < 0.7)
            columns = columns[keep]
            left = np.sort(rng.choice(left, len(left) - 8, replace=False))
            computed = cache.computed
            cache.restrict(matrix.restricted(columns), keep, left)
            kept = rows[np.isin(rows, left)][: len(cache.slots)]
            cache.fetch(kept)
            assert cache.computed == computed, "rows used last survive"
        if round_ == 45:
            columns, left = np.arange(60), np.arange(60)
            cache.reset(matrix)


def test_budget_is_kept_and_shrinking_makes_room():
    matrix, K = make()
    budget = 10 * 60 * 8
    cache = RowCache(matrix, budget)
    cache.fetch(np.arange(10))
    assert cache.slots.base.nbytes <= budget
    keep = np.arange(0, 60, 2)
    cache.restrict(matrix.restricted(keep), keep, np.arange(60))
    assert len(cache.slots) == 20 and cache.slots.base.nbytes <= budget
    computed = cache.computed
    slots, new = cache.fetch(np.arange(10))
    assert cache.computed == computed and not len(new), "rows survive compaction"
    np.testing.assert_array_equal(cache.slots[slots], K[:10][:, keep])


def test_least_recently_used_goes_first():
    matrix, _ = make()
    cache = RowCache(matrix, 3 * 60 * 8)
    for rows in ([0], [1], [2], [0], [3]):  # 1 goes
        cache.fetch(np.array(rows))
    computed = cache.computed
    cache.fetch(np.array([0, 2, 3]))
    assert cache.computed == computed
    cache.fetch(np.array([1]))
    assert cache.computed == computed + 1


def test_failed_rows_are_not_promised(monkeypatch):
    matrix, K = make()
    cache = RowCache(matrix, 5 * 60 * 8)
    cache.fetch(np.arange(5))
    original = ProductMatrix.fill

    def fail(self, which, slots, out):
        out[slots] = np.nan
        raise KeyboardInterrupt

    monkeypatch.setattr(ProductMatrix, "fill", fail)
    with pytest.raises(KeyboardInterrupt):
        cache.fetch(np.array([10, 11]))
    monkeypatch.setattr(ProductMatrix, "fill", original)
    for rows in ([10, 11], [0, 1, 2, 3, 4]):
        np.testing.assert_array_equal(cache.slots[cache.fetch(np.array(rows))[0]], K[rows])


def test_stored_matrix_is_used_in_place_and_not_changed():
    _, K = make()
    before = K.copy()
    cache = RowCache(PrecomputedMatrix(K), 1e9)
    assert cache.slots is K
    keep = np.arange(5, 50)
    cache.restrict(PrecomputedMatrix(K).restricted(keep), keep, np.arange(len(K)))
    np.testing.assert_array_equal(cache.slots[cache.fetch(np.array([3, 7]))[0]], K[[3, 7]][:, keep])
    np.testing.assert_array_equal(K, before)
