"""Row blocks: the partition, what is copied, and products over forced small blocks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from cutplane.data import as_blocks, blocks
from cutplane.exec import ThreadExecutor

FLOATS = [np.float32, np.float64]
LAYOUTS = ["csr", "row", "column"]


def make(layout, dtype=np.float64, shape=(50, 7), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) * (rng.random(shape) < 0.5)
    X[3:9] = 0.0
    X = X.astype(dtype)
    if layout == "csr":
        return scipy.sparse.csr_array(X)
    return np.asfortranarray(X) if layout == "column" else X


def dense(X):
    return X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)


def parts(X):
    """The arrays that X consists of."""
    return [X.data, X.indices, X.indptr] if scipy.sparse.issparse(X) else [X]


def assert_products(matrix, X, outputs=None):
    """Scores and gradient over all blocks equal numpy's."""
    X = dense(X).astype(np.float64)
    rng = np.random.default_rng(1)
    tail = () if outputs is None else (outputs,)
    w, coef = rng.normal(size=(X.shape[1], *tail)), rng.normal(size=(X.shape[0], *tail))
    scores, gradient = np.full(coef.shape, np.nan), np.zeros(w.shape)
    for k, block in enumerate(matrix.blocks):
        block.scores(w, scores[matrix.slice(k)])
        block.add_gradient(coef[matrix.slice(k)], gradient)
    np.testing.assert_allclose(scores, X @ w, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gradient, X.T @ coef, rtol=1e-12, atol=1e-12)


# -- the partition --------------------------------------------------------------------


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=80),
    block_numbers=st.integers(1, 200),
)
def test_sparse_partition_covers_the_rows_evenly(lengths, block_numbers):
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = scipy.sparse.csr_array(
        (np.ones(starts[-1]), np.concatenate([np.arange(n) for n in lengths]), starts),
        shape=(len(lengths), 30),
    )
    matrix = as_blocks(X, block_numbers=block_numbers)
    assert matrix.shape == X.shape
    assert matrix.n_stored == starts[-1]
    assert matrix.bounds[0] == 0
    assert matrix.bounds[-1] == len(lengths)
    assert np.all(np.diff(matrix.bounds) > 0)
    assert [block.rows for block in matrix.blocks] == np.diff(matrix.bounds).tolist()
    numbers = np.diff(starts[matrix.bounds])
    assert numbers.sum() == starts[-1]
    assert numbers.max() <= block_numbers + 2 * max(lengths)


@given(
    rows=st.integers(1, 60),
    features=st.integers(0, 9),
    block_numbers=st.integers(1, 100),
    layout=st.sampled_from(["row", "column"]),
)
def test_dense_partition_covers_the_rows_evenly(rows, features, block_numbers, layout):
    X = np.zeros((rows, features), order="F" if layout == "column" else "C")
    matrix = as_blocks(X, block_numbers=block_numbers)
    assert (matrix.bounds[0], matrix.bounds[-1]) == (0, rows)
    assert np.all(np.diff(matrix.bounds) > 0)
    assert sum(block.rows for block in matrix.blocks) == rows
    assert max(block.rows for block in matrix.blocks) * features <= block_numbers + 2 * features


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partition_depends_on_the_data_alone(layout, monkeypatch):
    X = make(layout)
    bounds = as_blocks(X, block_numbers=20).bounds
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "7")
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    np.testing.assert_array_equal(as_blocks(X, block_numbers=20).bounds, bounds)


def test_default_blocks_are_long_against_the_features():
    """Partial gradients fill one vector per block, so there must not be many of them."""
    wide = scipy.sparse.random_array((4000, 60_000), density=0.003, format="csr", rng=0)
    matrix = as_blocks(wide)
    assert len(matrix.blocks) * wide.shape[1] <= max(wide.shape[1], wide.nnz / 4)
    tall = np.zeros((200_000, 10), dtype=np.float32)
    assert len(as_blocks(tall).blocks) > 4


# -- products and copies --------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("block_numbers", [None, 1, 17, 60])
def test_small_blocks_give_the_same_products(layout, dtype, outputs, block_numbers):
    X = make(layout, dtype)
    matrix = as_blocks(X, block_numbers=block_numbers)
    assert len(matrix.blocks) > (1 if block_numbers else 0)
    assert_products(matrix, X, outputs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_values_are_not_copied(layout, dtype):
    X = make(layout, dtype)
    values = X.data if layout == "csr" else X
    for block in as_blocks(X, block_numbers=40, compact=False).blocks:
        held = getattr(block, {"csr": "values", "row": "x", "column": "xt"}[layout])
        assert held.dtype == dtype
        if held.size:
            assert np.shares_memory(held, values)
        if layout == "csr" and held.size:
            assert np.shares_memory(block.indices, X.indices)  # 32 bits wide: viewed


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_blocks_are_read_only_and_the_input_stays_as_it_was(layout, dtype):
    X = make(layout, dtype)
    before = [part.copy() for part in parts(X)]
    flags = [part.flags.writeable for part in parts(X)]
    matrix = as_blocks(X, block_numbers=40)
    assert_products(matrix, X)
    for block in matrix.blocks:
        for name in ("values", "indices", "starts", "x", "xt"):
            if hasattr(block, name):
                assert not getattr(block, name).flags.writeable
    for part, copy, flag in zip(parts(X), before, flags, strict=True):
        np.testing.assert_array_equal(part, copy)
        assert part.flags.writeable == flag


@pytest.mark.parametrize("layout", LAYOUTS)
def test_read_only_input(layout):
    X = make(layout)
    for part in parts(X):
        part.flags.writeable = False
    assert_products(as_blocks(X, block_numbers=40), X)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_memory_mapped_input(layout, dtype, tmp_path):
    X = make(layout, dtype)
    mapped = []
    for k, part in enumerate(parts(X)):
        np.save(tmp_path / f"{k}.npy", part)
        mapped.append(np.load(tmp_path / f"{k}.npy", mmap_mode="r"))
    if layout == "csr":
        M = scipy.sparse.csr_array(tuple(mapped), shape=X.shape, copy=False)
    else:
        M = mapped[0]
    matrix = as_blocks(M, block_numbers=40)
    assert_products(matrix, X)
    held = [getattr(matrix.blocks[-1], n, None) for n in ("values", "x", "xt")]
    assert any(h is not None and np.shares_memory(h, mapped[0]) for h in held)


@pytest.mark.parametrize(("features", "expected"), [(9, np.uint16), (70_000, np.uint32)])
@pytest.mark.parametrize("outputs", [None, 2])
def test_wide_indices_are_narrowed(features, expected, outputs):
    density = min(0.5, 20 / features)
    X = scipy.sparse.random_array((30, features), density=density, format="csr", rng=0)
    X.indices = X.indices.astype(np.int64)
    X.indptr = X.indptr.astype(np.int64)
    X.indices[0] = features - 1  # the highest index must survive
    matrix = as_blocks(X, block_numbers=50)
    assert {block.indices.dtype for block in matrix.blocks} == {np.dtype(expected)}
    assert_products(matrix, X, outputs)
    assert X.indices.dtype == np.int64


@pytest.mark.parametrize(
    ("features", "room", "compact", "expected"),
    [
        (9, 1 << 20, True, np.uint16),
        (9, 1 << 20, False, np.uint32),
        (9, 10, True, np.uint32),
        (70_000, 1 << 20, True, np.uint32),
    ],
)
def test_compact_indices(features, room, compact, expected, monkeypatch):
    monkeypatch.setattr("cutplane.data.blocks.COMPACT_BYTES", room)
    X = scipy.sparse.random_array((30, features), density=9 / features, format="csr", rng=0)
    X.indices = X.indices.astype(np.int32)
    X.indices[0] = features - 1
    matrix = as_blocks(X, block_numbers=50, compact=compact)
    assert {block.indices.dtype for block in matrix.blocks} == {np.dtype(expected)}
    assert np.shares_memory(matrix.blocks[0].indices, X.indices) == (expected is np.uint32)
    assert_products(matrix, X)


def test_large_copies_of_many_features_are_not_made(monkeypatch):
    monkeypatch.setattr(blocks, "FEW_PASSES_BYTES", 10)
    for features, expected in ((4096, np.uint16), (4097, np.uint32)):
        X = scipy.sparse.random(30, features, 0.01, "csr", rng=np.random.default_rng(0))
        X.indices = X.indices.astype(np.int32)
        assert as_blocks(X).whole.indices.dtype == expected


def test_copies_shared_among_threads(monkeypatch):
    monkeypatch.setattr(blocks, "SHARED_COPY", 7)
    X = scipy.sparse.random(40, 300, 0.1, "csr", rng=np.random.default_rng(0))
    with ThreadExecutor(3) as executor:
        shared = as_blocks(X, runner=executor)
    plain = as_blocks(X)
    assert shared.whole.indices.dtype == plain.whole.indices.dtype == np.uint16
    np.testing.assert_array_equal(shared.whole.indices, plain.whole.indices)
    np.testing.assert_array_equal(plain.whole.indices, X.indices)


def rows_of_equal_values(lengths, values, features=40):
    """Sparse rows of these lengths, with equal values within each row."""
    rng = np.random.default_rng(0)
    columns = [np.sort(rng.choice(features, length, replace=False)) for length in lengths]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    data = np.repeat(np.asarray(values, np.float32), lengths)
    indices = np.concatenate([*columns, []]).astype(np.int32)
    return scipy.sparse.csr_array((data, indices, starts), (len(lengths), features))


@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=90),
    changed=st.none() | st.integers(0, 10**6),
    one_value=st.booleans(),
    shared=st.booleans(),
)
def test_rows_of_equal_values_are_found(lengths, changed, one_value, shared):
    values = np.ones(len(lengths)) if one_value else np.arange(1, len(lengths) + 1)
    X = rows_of_equal_values(lengths, values)
    if changed is not None and X.nnz:
        X.data[changed % X.nnz] += 0.5
    rows = [X.data[a:b] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    expected = X.nnz > 0 and all(len(set(row.tolist())) <= 1 for row in rows)
    with pytest.MonkeyPatch.context() as patch, ThreadExecutor(2) as threads:
        patch.setattr(blocks, "SHARED_COPY", 16)
        patch.setattr(blocks, "ROWS_AT_FIRST", 3)
        matrix = as_blocks(X, runner=threads if shared else None)
    assert matrix.whole.equal == expected
    assert all(block.equal == expected for block in matrix.blocks)
    assert not as_blocks(X, compact=False).whole.equal  # a single pass is not worth looking


@pytest.mark.parametrize("features", [40, 70_000])
def test_loops_for_equal_values_give_the_same_bits(features):
    rng = np.random.default_rng(2)
    X = rows_of_equal_values(rng.integers(0, 12, 200), rng.normal(size=200), features)
    found = as_blocks(X).whole
    others = dataclasses.replace(found, equal=False)
    assert found.equal
    w, coef = rng.normal(size=features), rng.normal(size=200) * (rng.random(200) < 0.7)
    scores, gradients = np.empty((2, 200)), np.zeros((2, features))
    for k, block in enumerate((found, others)):
        block.scores(w, scores[k])
        block.add_gradient(coef, gradients[k])
    np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(*gradients)
    np.testing.assert_allclose(scores[0], X @ w, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gradients[0], X.T @ coef, rtol=1e-12, atol=1e-12)


def test_features_at_the_edge_of_16_bits():
    """65,536 features: the highest index is 65,535, which 16 bits hold."""
    X = scipy.sparse.csr_array((2, 1 << 16))
    X.data, X.indptr = np.array([1.0, 2.0]), np.array([0, 1, 2])
    X.indices = np.array([0, (1 << 16) - 1])
    assert_products(as_blocks(X), X)


@pytest.mark.parametrize("wide", [False, True])
def test_unsorted_and_duplicate_indices(wide):
    """A feature given twice in a row counts with the sum of its values."""
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    indices = np.array([3, 0, 3, 2, 1, 1, 1], dtype=np.int64 if wide else np.int32)
    X = scipy.sparse.csr_array((3, 4))
    X.data, X.indices, X.indptr = values, indices, np.array([0, 3, 3, 7], dtype=indices.dtype)
    expected = np.array([[2.0, 0, 0, 5], [0, 0, 0, 0], [0, 112, 8, 0]])
    assert_products(as_blocks(X), expected)
    np.testing.assert_array_equal(X.indices, indices)  # neither sorted nor merged


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize(
    "cut",
    [
        lambda X: X[::2],
        lambda X: X[:, 1:5],
        lambda X: X[::-1, ::-1],
        lambda X: X[5:17],
        lambda X: X[10:11],
        lambda X: X[:, :1],
        lambda X: X.T,
        lambda X: np.broadcast_to(X[0], (6, X.shape[1])),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_strided_views(cut, outputs, dtype, order):
    X = cut(np.array(make("row", dtype), order=order))
    before = X.copy()
    assert_products(as_blocks(X, block_numbers=12), X, outputs)
    np.testing.assert_array_equal(X, before)


def test_rows_of_a_larger_row_major_array_are_not_copied():
    X = make("row")
    assert np.shares_memory(as_blocks(X[5:30]).blocks[0].x, X)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_rows_empty(layout):
    X = make(layout, shape=(40, 3))
    X = X * 0.0
    if layout == "csr":
        X.eliminate_zeros()
    matrix = as_blocks(X, block_numbers=10)
    assert_products(matrix, X)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_digest_tells_data_apart(layout):
    if not hasattr(as_blocks(make(layout)), "digest"):
        pytest.skip("no digest")
    digest = as_blocks(make(layout)).digest()
    assert digest == as_blocks(make(layout)).digest()
    X = make(layout)
    values = X.data if layout == "csr" else X
    values.flat[-1] += 1.0
    assert digest != as_blocks(X).digest()
    assert digest != as_blocks(make(layout, np.float32)).digest()
    assert digest != as_blocks(make(layout)[:-1]).digest()
