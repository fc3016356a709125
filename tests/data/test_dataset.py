"""Data sets on disk: what is written is what is read, and nothing half-written is ever seen."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import cutplane.data.dataset.read
from cutplane import LinearSVC, Rows, open_dataset, write_dataset
from cutplane.data import as_blocks
from cutplane.data.dataset.arrays import header, new_digest
from cutplane.data.dataset.manifest import _digest_of
from cutplane.data.partitions import FolderShare
from cutplane.exec import SerialExecutor


def some_rows(rows=90, features=7, *, sparse=False, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)).astype(dtype)
    return sp.csr_matrix(X * (rng.random(X.shape) < 0.4)) if sparse else X


def in_chunks(X, *columns, size=40):
    for first in range(0, X.shape[0], size):
        yield X[first : first + size], *(column[first : first + size] for column in columns)


def same(A, B) -> bool:
    if sp.issparse(A):
        return A.shape == B.shape and A.dtype == B.dtype and (A != B).nnz == 0
    return A.dtype == B.dtype and np.array_equal(A, B)


# -- what is written is what is read ----------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_integers_in_few_bits_give_the_same_model(tmp_path: Path, sparse, dtype):
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (400, 6)).astype(float)
    X[7, 2], X[8, 3] = limits.max, limits.min
    y = np.sign(X[:, 1] - X[:, 4] + 0.5)
    rows = sp.csr_matrix(X) if sparse else X
    small = write_dataset(tmp_path / "small.cut", in_chunks(rows, y), dtype=dtype)
    plain = write_dataset(tmp_path / "plain.cut", in_chunks(rows, y), dtype=np.float32)
    values = small.n_stored
    assert small.dtype == dtype
    assert plain.nbytes - small.nbytes == values * (4 - np.dtype(dtype).itemsize)
    assert same(small.rows(3, 60), plain.rows(3, 60))
    # Vectorised loops add up in an order that depends on the width of the numbers.
    for solver in ("ocas", "dcd"):
        model = LinearSVC(solver=solver, max_iter=5, random_state=0)
        a, b = (clone(model).fit(data) for data in (small, plain))
        if solver == "ocas":
            np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6, atol=1e-9)
        # Which rows descent leaves out may depend on the last digits: the same to the gap.
        assert a.certificate_.primal >= b.certificate_.dual
        assert b.certificate_.primal >= a.certificate_.dual
        np.testing.assert_allclose(a.decision_function(small), a.decision_function(plain))


@pytest.mark.parametrize("value", [0.5, 128.0, -129.0, np.nan, np.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_integer_type_refuses_what_it_does_not_hold(tmp_path: Path, value, sparse):
    X = np.ones((5, 3))
    X[2, 1] = value
    with pytest.raises(ValueError, match=r"not an integer from -128 to 127.*float32"):
        write_dataset(tmp_path / "a.cut", [sp.csr_matrix(X) if sparse else X], dtype="int8")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_and_columns_come_back(tmp_path: Path, sparse, dtype):
    X = some_rows(sparse=sparse, dtype=dtype)
    y, qid, cost = np.arange(90) % 3, np.arange(90) // 4, np.linspace(0.0, 2.0, 90)
    dataset = write_dataset(tmp_path / "a.cut", in_chunks(X, y, qid, cost))
    for data in (dataset, open_dataset(str(tmp_path / "a.cut"), verify=True)):
        assert same(data.rows(), X)
        assert same(data.rows(30, 55), X[30:55])
        assert data.shape == X.shape and len(data) == data.n_rows == 90
        assert data.dtype == dtype and data.sparse == sparse
        assert data.n_stored == (X.nnz if sparse else X.size)
        for got, given in ((data.y, y), (data.qid, qid), (data.cost, cost)):
            assert same(got, given)
        assert data.label_counts == {0: 30, 1: 30, 2: 30}
        parts = list(data.chunks(rows=25))
        assert [len(part.y) for part in parts] == [25, 25, 25, 15]
        assert np.array_equal(np.concatenate([part.qid for part in parts]), qid)
    assert sorted(os.listdir(tmp_path)) == ["a.cut"]


def test_chunks_are_records_that_unpack(tmp_path: Path):
    X, y = some_rows(), np.arange(90) % 3
    qid, cost = np.arange(90) // 4, np.linspace(0.0, 2.0, 90)
    names = tuple(f"f{j}" for j in range(X.shape[1]))
    data = write_dataset(tmp_path / "a.cut", [Rows(X, y, cost, qid, names)])
    (chunk,) = data.chunks()
    assert isinstance(chunk, Rows) and chunk.names == names == data.feature_names
    for got, given in zip(chunk, (X, y, qid, cost), strict=True):
        assert same(got, given)
    # A copy is the same to the last bit, names included.
    assert write_dataset(tmp_path / "b.cut", data.chunks(rows=17)).digest() == data.digest()
    part = chunk.part(10, 12)
    assert same(part.X, X[10:12]) and part.y.tolist() == y[10:12].tolist()
    assert part.weight.tolist() == cost[10:12].tolist() and part.names == names
    assert Rows(X).part(0, 5).y is None


@pytest.mark.parametrize("largest", [np.uint64(2**63), 2.0**60])
def test_queries_beyond_what_files_keep(tmp_path: Path, largest):
    with pytest.raises(ValueError, match=r"chunk 0: qid holds .* renumber the queries"):
        write_dataset(tmp_path / "a.cut", [(np.ones((1, 2)), [1], np.array([largest]))])


def test_arrays_can_be_read_by_numpy_alone(tmp_path: Path):
    X = some_rows()
    write_dataset(tmp_path / "a.cut", [(X, np.ones(90))])
    assert same(np.load(tmp_path / "a.cut" / "values.npy"), X)
    assert same(np.load(tmp_path / "a.cut" / "y.npy", mmap_mode="r"), np.ones(90))


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array(["b", "a", "äö", "b"]), "U"),
        (np.array(["b", "a", "c", "b"], dtype=object), "U"),
        (np.array([True, False, True, True]), "i"),
        (np.array([3, -1, 3, 2], np.int8), "i"),
        (np.array([0.5, -1.0, 0.5, 1e300]), "f"),
    ],
)
def test_labels_of_every_kind(tmp_path: Path, labels, kind):
    chunks = [(np.ones((2, 1)), labels[:2]), (np.ones((2, 1)), labels[2:])]
    data = write_dataset(tmp_path / "a.cut", chunks)
    assert data.y.dtype.kind == kind
    assert np.array_equal(data.y, labels)
    assert data.label_counts == {v: labels.tolist().count(v) for v in set(labels.tolist())}


def test_very_many_labels_are_not_listed(tmp_path: Path):
    y = np.arange(70_000) / 7.0
    data = write_dataset(tmp_path / "a.cut", [(np.ones((70_000, 1)), y)])
    assert data.label_counts is None
    assert same(data.y, y)


@pytest.mark.parametrize("layout", ["fortran", "big", "strided", "int", "readonly", "memmap"])
def test_dense_layouts(tmp_path: Path, layout):
    X = some_rows()
    if layout == "int":
        X = np.round(X * 10).astype(np.int16)
    given = {
        "fortran": lambda: np.asfortranarray(X),
        "big": lambda: X.astype(">f8"),
        "strided": lambda: np.repeat(X, 2, axis=0)[::2],
        "int": lambda: X,
        "readonly": lambda: np.frombuffer(X.tobytes()).reshape(X.shape),
        "memmap": lambda: _memmap(X, tmp_path),
    }[layout]()
    before = np.array(given)
    data = write_dataset(tmp_path / "a.cut", [given])
    assert same(data.rows(), X.astype(np.float64))
    assert np.array_equal(given, before)


def _memmap(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


@pytest.mark.parametrize("layout", ["int64", "unsorted", "duplicates", "csc", "coo", "array"])
def test_sparse_layouts(tmp_path: Path, layout):
    X = some_rows(sparse=True)
    given = X.copy()
    if layout == "int64":
        given.indices, given.indptr = given.indices.astype("i8"), given.indptr.astype("i8")
    elif layout == "unsorted":
        for i in range(X.shape[0]):
            row = slice(*given.indptr[i : i + 2])
            given.indices[row] = given.indices[row][::-1]
            given.data[row] = given.data[row][::-1]
        given.has_sorted_indices = False
    elif layout == "duplicates":
        places = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        twice = (np.tile(X.data / 2, 2), (np.tile(places, 2), np.tile(X.indices, 2)))
        given = sp.coo_matrix(twice, X.shape)
    elif layout == "array":
        given = sp.csr_array(given)
    else:
        given = given.asformat(layout)
    before = given.copy()
    data = write_dataset(tmp_path / "a.cut", [given])
    assert same(data.rows(), X)
    assert (before != given).nnz == 0
    if layout == "unsorted":
        assert np.array_equal(before.indices, given.indices)


def test_columns_grow_and_indices_widen(tmp_path: Path):
    """Indices take 16 bits until there is a column beyond."""
    parts = [sp.random(50, n, 0.05, format="csr", random_state=n) for n in (300, 65_536, 70_000)]
    wide = [sp.csr_matrix((p.data, p.indices, p.indptr), (50, 70_000)) for p in parts]
    for count, kind in ((1, "<u2"), (2, "<u2"), (3, "<u4")):
        data = write_dataset(tmp_path / "a.cut", parts[:count], overwrite=True)
        assert data.n_features == parts[count - 1].shape[1]
        assert np.load(tmp_path / "a.cut" / "indices.npy").dtype.str == kind
        data.verify()
        X = sp.vstack([w[:, : data.n_features] for w in wide[:count]])
        assert same(data.rows(), X.tocsr())


def test_names_of_columns(tmp_path: Path):
    import pandas as pd

    frame = pd.DataFrame(some_rows(), columns=list("abcdefg"))
    data = write_dataset(tmp_path / "a.cut", [(frame, np.ones(90))])
    assert data.feature_names == tuple("abcdefg")
    assert same(data.rows(), frame.to_numpy())
    with pytest.raises(ValueError, match="chunk 1 has other column names"):
        write_dataset(tmp_path / "b.cut", [frame, frame[list("gfedcba")]])


def test_a_data_set_from_a_data_set(tmp_path: Path):
    X = some_rows(sparse=True)
    data = write_dataset(tmp_path / "a.cut", [(X, np.ones(90), None, np.full(90, 2.0))])
    copy = write_dataset(tmp_path / "b.cut", data.chunks(rows=17))
    assert copy.digest() == data.digest()


def test_pickle_is_a_path(tmp_path: Path):
    data = write_dataset(tmp_path / "a.cut", [some_rows(2000, 50)])
    data = open_dataset(data.path, memory_limit=1234)
    text = pickle.dumps(data)
    assert len(text) < 1000
    assert same(pickle.loads(text).rows(), data.rows())
    assert pickle.loads(text).memory_limit == 1234
    write_dataset(data.path, [some_rows(5)], overwrite=True)
    with pytest.raises(ValueError, match="is another data set than the one that was pickled"):
        pickle.loads(text)


def test_a_closed_data_set(tmp_path: Path):
    with write_dataset(tmp_path / "a.cut", [(some_rows(), np.ones(90))]) as data:
        y = data.y
    assert y.sum() == 90.0
    with pytest.raises(ValueError, match="is closed; open the data set again"):
        data.rows()


def test_more_columns_for_sparse_test_data(tmp_path: Path):
    X = some_rows(sparse=True)
    write_dataset(tmp_path / "a.cut", [X])
    data = open_dataset(tmp_path / "a.cut", n_features=20)
    assert data.shape == (90, 20) and data.rows().shape == (90, 20)
    with pytest.raises(ValueError, match="has 7 features, not 5"):
        open_dataset(tmp_path / "a.cut", n_features=5)
    write_dataset(tmp_path / "d.cut", [some_rows()])
    with pytest.raises(ValueError, match="has 7 features, not 20"):
        open_dataset(tmp_path / "d.cut", n_features=20)


# -- blocks -----------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("limit", [0, 20_000, 10**9])
def test_blocks_are_those_of_memory(tmp_path: Path, monkeypatch, sparse, limit):
    """The same bounds and the same scores, while pages are asked for and dropped."""
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS", 500)
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS_PER_WEIGHT", 1)
    monkeypatch.setattr(cutplane.data.dataset.read, "WINDOW", 10_000)
    X = some_rows(3000, 9, sparse=sparse)
    write_dataset(tmp_path / "a.cut", in_chunks(X, size=700))
    data = open_dataset(tmp_path / "a.cut", memory_limit=limit)
    w = np.arange(9.0)
    for outputs in (1, 5):
        there, here = as_blocks(data, outputs=outputs), as_blocks(X, outputs=outputs)
        assert np.array_equal(there.bounds, here.bounds) and len(there.blocks) > 10
        assert there.n_stored == here.n_stored
        for _ in range(2):
            answers = []
            for matrix in (there, here):
                out = np.full(3000, np.nan)
                matrix.scores(w, out, SerialExecutor())
                answers.append(out)
            assert np.array_equal(*answers)
        assert np.array_equal(
            there.squared_norms(SerialExecutor()), here.squared_norms(SerialExecutor())
        )
        assert np.allclose(
            here.squared_norms(SerialExecutor()),
            np.asarray(X.multiply(X).sum(1)).ravel() if sparse else (X * X).sum(1),
        )


def test_where_rows_begin_is_each_threads_own(tmp_path: Path, monkeypatch):
    """In a pass one room per thread is used over and over; blocks by number stay as they are."""
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS", 64)
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS_PER_WEIGHT", 8)
    X = some_rows(300, sparse=True)
    source = write_dataset(tmp_path / "a.cut", [(X,)]).blocks().blocks
    assert len(source) > 6
    expected = [block.starts.copy() for block in source]
    kept = source[0]
    source.begin()
    both = threading.Barrier(2, timeout=20.0)

    def take(numbers):
        rooms = set()
        for k in numbers:
            block = source.take(k)
            rooms.add(block.starts.ctypes.data)
            both.wait()
            np.testing.assert_array_equal(block.starts, expected[k])
            assert not block.starts.flags.writeable
            both.wait()
        return rooms

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(take, ([0, 1, 2], [3, 4, 5]))
    assert len(first) == len(second) == 1 and first != second
    np.testing.assert_array_equal(kept.starts, expected[0])


def test_pages_are_asked_for_once_and_dropped_beyond_the_limit(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS", 1000)
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS_PER_WEIGHT", 1)
    monkeypatch.setattr(cutplane.data.dataset.read, "WINDOW", 50_000)
    monkeypatch.setattr(cutplane.data.dataset.read, "STRADDLE", 3000)
    size = 20_000 * 9 * 8
    write_dataset(tmp_path / "a.cut", [some_rows(20_000, 9)])
    data = open_dataset(tmp_path / "a.cut", memory_limit=size // 4)
    asked, dropped = [], []
    monkeypatch.setattr(
        cutplane.data.dataset.read.MappedArray, "will_need", lambda _, a, b: asked.append((a, b))
    )
    monkeypatch.setattr(
        cutplane.data.dataset.read.MappedArray, "drop", lambda _, a, b: dropped.append((a, b))
    )
    data.blocks().scores(np.ones(9), np.empty(20_000), SerialExecutor())
    assert asked[0][0] == 0 and asked[-1][1] == size
    assert [a for a, _ in asked[1:]] == [b for _, b in asked[:-1]]
    assert all(b - a < 2 * 50_000 for a, b in asked)
    assert dropped[-1][1] == size and size // 5 < dropped[0][0] <= size // 4
    assert [a for a, _ in dropped[1:]] == [b - 3000 for _, b in dropped[:-1]]


# -- writing is all or nothing ----------------------------------------------------


def test_an_existing_folder_is_kept(tmp_path: Path):
    path = tmp_path / "a.cut"
    write_dataset(path, [some_rows()])
    with pytest.raises(ValueError, match="exists; choose another name, or pass overwrite=True"):
        write_dataset(path, [some_rows(5)])
    assert len(open_dataset(path)) == 90
    assert len(write_dataset(path, [some_rows(5)], overwrite=True)) == 5
    assert os.listdir(tmp_path) == ["a.cut"]


def test_what_is_no_data_set_is_never_overwritten(tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    (tmp_path / "file.cut").write_text("text")
    for name in ("home", "file.cut"):
        with pytest.raises(ValueError, match="is not a data set, so it is not overwritten"):
            write_dataset(tmp_path / name, [some_rows()], overwrite=True)
    assert (tmp_path / "home" / "letter.txt").read_text() == "dear"


def test_a_failure_leaves_nothing_and_the_old_one(tmp_path: Path):
    path = tmp_path / "a.cut"
    write_dataset(path, [some_rows()])

    def chunks():
        yield some_rows(50)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        write_dataset(path, chunks(), overwrite=True)
    with pytest.raises(RuntimeError):
        write_dataset(tmp_path / "new.cut", chunks())
    assert os.listdir(tmp_path) == ["a.cut"]
    assert len(open_dataset(path, verify=True)) == 90


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_a_killed_writer_leaves_no_folder_and_the_next_one_cleans_up(tmp_path: Path):
    path = tmp_path / "a.cut"
    write_dataset(path, [some_rows()])
    code = """
        import os, signal, sys
        import numpy as np
        from cutplane import write_dataset
        def chunks():
            yield np.ones((1000, 50))
            os.kill(os.getpid(), signal.SIGKILL)
        write_dataset(sys.argv[1], chunks(), overwrite=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(path)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == -signal.SIGKILL
    assert len(open_dataset(path, verify=True)) == 90
    left = [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
    assert len(left) == 1
    write_dataset(path, [some_rows(5)], overwrite=True)
    assert os.listdir(tmp_path) == ["a.cut"]


def test_a_folder_that_is_being_written_is_not_cleaned_up(tmp_path: Path):
    path = tmp_path / "a.cut"

    def chunks():
        yield some_rows(5)
        write_dataset(path, [some_rows(7)])  # somebody else is faster
        yield some_rows(5)

    with pytest.raises(ValueError, match="exists"):
        write_dataset(path, chunks())
    assert len(open_dataset(path)) == 7
    assert os.listdir(tmp_path) == ["a.cut"]


# -- bad chunks -------------------------------------------------------------------

ONES = np.ones((3, 2))
BAD_CHUNKS = {
    "no rows": ([], "there are no rows to write"),
    "nan": ([(ONES,), (np.array([[1.0, 2.0], [np.nan, 1.0]]),)], r"got nan in row 4, column 0"),
    "inf": ([sp.csr_matrix([[0.0, 1.0], [0.0, np.inf]])], r"got inf in row 1, column 1"),
    "text": ([np.array([["a", "b"]])], "X must hold numbers"),
    "flat": ([np.ones(5)], "two dimensions"),
    "width": ([ONES, np.ones((3, 3))], "chunk 1 has 3 columns, the ones before 2"),
    "kind": ([ONES, sp.csr_matrix(ONES)], "chunk 1 is sparse, unlike the first one"),
    "short y": ([(ONES, [1, 2])], r"y must hold one label per row, 3; got shape \(2,\)"),
    "nan y": ([(ONES, [1.0, np.nan, 0.0])], "label nan in row 1 of the chunk is not finite"),
    "mixed y": ([(ONES, ["a", "b", "c"]), (ONES, [1, 2, 3])], "labels are integer, those before t"),
    "object y": ([(ONES, np.array([None, 1, "a"], object))], "labels must be finite numbers or"),
    "huge y": ([(ONES, np.array([1, 2, 2**60]))], "within ±2⁵³"),
    "no y": ([(ONES, [1, 2, 3]), (ONES,)], "chunk 1 has X only, unlike the first one"),
    "qid": ([(ONES, [1, 2, 3], [1, 1, -2])], "qid must hold integers ≥ 0"),
    "half qid": ([(ONES, [1, 2, 3], [1.0, 1.5, 2.0])], "qid must hold integers ≥ 0"),
    "cost": ([(ONES, [1, 2, 3], None, [1.0, -1.0, 1.0])], "cost must hold finite numbers ≥ 0"),
    "parts": ([(ONES, 1, 2, 3, 4)], "it has 5 parts"),
}


@pytest.mark.parametrize("case", BAD_CHUNKS)
def test_bad_chunks(tmp_path: Path, case):
    chunks, message = BAD_CHUNKS[case]
    with pytest.raises(ValueError, match=message):
        write_dataset(tmp_path / "a.cut", chunks)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 3}, "the data has 2 columns, but n_features=3"),
        ({"n_features": 0}, "n_features must be an integer from 1"),
        ({"dtype": "int32"}, "dtype must be one of float64, float32, int16, int8, uint8"),
        ({"feature_names": ["a"]}, "feature_names has 1 names for 2 columns"),
        ({"overwrite": 3}, "overwrite must be True or False"),
    ],
)
def test_bad_options(tmp_path: Path, options, message):
    with pytest.raises(ValueError, match=message):
        write_dataset(tmp_path / "a.cut", [ONES], **options)
    assert os.listdir(tmp_path) == []


def test_beyond_float32(tmp_path: Path):
    with pytest.raises(ValueError, match="1e\\+39 is beyond float32; pass dtype='float64'"):
        write_dataset(tmp_path / "a.cut", [np.float32(ONES), ONES * 1e39])


# -- damaged data sets ------------------------------------------------------------


def _edit(path: Path, change):
    entries = json.loads((path / "manifest.json").read_text())
    change(entries)
    (path / "manifest.json").write_text(json.dumps(entries))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.update(rows=91), "is damaged or was edited"),
        (lambda e: e["arrays"]["values"].update(shape=[2**50, 7]), "is damaged or was edited"),
        (lambda e: e.pop("digest"), "is damaged or was edited"),
        (lambda e: e.update(version=2), "newer version of cutplane.*upgrade"),
        (lambda e: e.update(format="other"), "is not the manifest of a data set"),
        (lambda e: e.pop("format"), "is not the manifest of a data set"),
    ],
)
def test_a_manifest_that_was_edited(tmp_path: Path, change, message):
    path = write_dataset(tmp_path / "a.cut", [some_rows()]).path
    _edit(path, change)
    with pytest.raises(ValueError, match=message):
        open_dataset(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.update(rows=-1),
        lambda e: e.update(rows=0),
        lambda e: e.update(features=0),
        lambda e: e.update(version=0),
        lambda e: e.update(feature_names=list(range(7))),
        lambda e: e.update(labels=["a"], label_counts=[90]),
        lambda e: e.update(numbers=5),
        lambda e: e.update(layout="sparse"),
        lambda e: e.update(label_kind="text"),
        lambda e: e["arrays"]["values"].update(dtype="|O"),
        lambda e: e["arrays"].update(evil={"dtype": "<f8", "shape": [1], "digest": ""}),
        lambda e: e.update(labels=[1], label_counts=[1, 2]),
        lambda e: e.update(feature_names=["a"]),
        lambda e: e.pop("arrays"),
    ],
)
def test_a_manifest_whose_entries_do_not_fit(tmp_path: Path, change):
    """The digest fits the wrong entries."""
    path = write_dataset(tmp_path / "a.cut", [some_rows()]).path

    def edit(entries):
        entries.pop("digest")
        change(entries)
        entries["digest"] = _digest_of(entries)

    _edit(path, edit)
    with pytest.raises(ValueError, match="is damaged or was edited"):
        open_dataset(path)


def test_not_a_data_set(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("1 1:1")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_bytes(b"\x80\x04\x95")
    for name, message in (
        ("empty", "holds no manifest.json"),
        ("nowhere", "does not exist"),
        ("file", "is a file, not a data set; convert_dataset"),
        ("broken", "is not the manifest of a data set"),
    ):
        with pytest.raises(ValueError, match=message):
            open_dataset(tmp_path / name)


def test_files_cut_off_missing_or_changed(tmp_path: Path):
    path = write_dataset(tmp_path / "a.cut", [(some_rows(sparse=True), np.ones(90))]).path
    for name in ("values", "indices", "starts", "y"):
        file = path / f"{name}.npy"
        content = file.read_bytes()
        file.write_bytes(content[:-8])
        with pytest.raises(ValueError, match=f"{name}.npy has .* bytes instead of .* cut off"):
            open_dataset(path)
        file.unlink()
        with pytest.raises(ValueError, match=f"{name}.npy is missing"):
            open_dataset(path)
        file.write_bytes(content[:20] + b"?" + content[21:])
        with pytest.raises(ValueError, match="does not begin as the manifest says"):
            open_dataset(path)
        lowest = -2 if name == "indices" else -8  # bit of the last number
        file.write_bytes(
            content[:lowest] + bytes([content[lowest] ^ 1]) + content[len(content) + lowest + 1 :]
        )
        if name == "starts":
            with pytest.raises(ValueError, match="rows go from number 0 to"):
                open_dataset(path)
            file.write_bytes(content)
            continue
        open_dataset(path)
        with pytest.raises(ValueError, match=f"{name}.npy has been changed: its digest"):
            open_dataset(path, verify=True)
        file.write_bytes(content)
    open_dataset(path, verify=True)


def resigned(path: Path, name: str, change) -> Path:
    """Change an array of a data set, and sign it as somebody who means it would."""
    file = path / f"{name}.npy"
    array = np.load(file)
    array = array if (other := change(array)) is None else other
    file.write_bytes(header(array.dtype.str, array.shape) + array.tobytes())

    def edit(entries):
        digest = new_digest()
        digest.update(array.tobytes())
        entries["arrays"][name] = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "digest": digest.hexdigest(),
        }
        entries.pop("digest")
        entries["digest"] = _digest_of(entries)

    _edit(path, edit)
    return path


def setting(place, value):
    def change(array):
        array[place] = value

    return change


def raising(place, value):
    def change(array):
        array[place] += value

    return change


SPARSE_FAULTS = {
    "end + 100000": ("starts", raising(-1, 100_000), r"starts.npy: rows go from number 0 to 100"),
    "end + 1000": ("starts", raising(-1, 1000), "starts.npy: rows go from number 0 to"),
    "end - 1": ("starts", raising(-1, -1), "starts.npy: rows go from number 0 to"),
    "begin -1": ("starts", setting(0, -1), "starts.npy: rows go from number -1 to"),
    "begin 1": ("starts", setting(0, 1), "starts.npy: rows go from number 1 to"),
    "far out": ("starts", setting(40, 10**12), "starts.npy: row 40 ends before it begins"),
    "negative": ("starts", setting(40, -5), "starts.npy: row 39 ends before it begins"),
    "index": ("indices", setting(-1, 7), "indices.npy: row 89 points beyond the 7 features"),
    "largest index": ("indices", setting(-1, 65535), "row 89 points beyond the 7 features"),
    "order": ("indices", lambda array: array[::-1].copy(), r"the features of row \d+ are not in"),
    "twice": ("indices", setting(1, 0), "indices.npy: the features of row 0 are not in order"),
    "nan": ("values", setting(-1, np.nan), "values.npy: row 89 holds nan"),
    "infinity": ("values", setting(0, -np.inf), "values.npy: row 0 holds -inf"),
}
USES = {
    "rows": lambda data: data.rows(),
    "chunks": lambda data: list(data.chunks(7)),
    "scores": lambda data: data.blocks().scores(np.ones(7), np.ones(90), SerialExecutor()),
    "by number": lambda data: list(data.blocks().blocks),
    "pickled": lambda data: list(pickle.loads(pickle.dumps(data)).blocks().blocks),
    "worker": lambda data: (
        FolderShare(str(data.path), data.digest(), 7, None, 1, 0, 1)
        .open()
        .scores(np.ones(7), np.ones(90), SerialExecutor())
    ),
    "fit": lambda data: LinearSVC().fit(data, np.arange(90) % 2),
    "predict": lambda data: (
        LinearSVC().fit(np.eye(7), [0, 1, 0, 1, 0, 1, 0]).decision_function(data)
    ),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("fault", SPARSE_FAULTS)
def test_damaged_rows_do_not_reach_the_loops(tmp_path: Path, fault, use):
    """The manifest has new digests of the damaged files; the loops would leave their arrays."""
    name, change, message = SPARSE_FAULTS[fault]
    X = some_rows(sparse=True)
    X = sp.vstack([np.ones((1, 7)), X[1:]], format="csr")
    path = resigned(write_dataset(tmp_path / "a.cut", [X]).path, name, change)
    with pytest.raises(ValueError, match=message) as caught:
        USES[use](open_dataset(path, verify=True))
    assert "the data set is damaged; write it again" in str(caught.value)


@pytest.mark.parametrize("use", USES)
def test_dense_rows_that_are_not_finite(tmp_path: Path, use):
    path = write_dataset(tmp_path / "a.cut", [some_rows()]).path
    resigned(path, "values", setting((17, 3), np.nan))
    with pytest.raises(ValueError, match=r"values.npy: row 17 holds nan: the data set is damaged"):
        USES[use](open_dataset(path))


COLUMN_FAULTS = [
    ("y", "real", np.nan, "nan in row 5 is no label"),
    ("y", "real", np.inf, "inf in row 5 is no label"),
    ("y", "integer", 0.5, "0.5 in row 5 is no label"),
    ("y", "integer", np.nan, "nan in row 5 is no label"),
    ("y", "integer", 1e300, r"1e\+300 in row 5 is no label"),
    ("y", "text", 3, "3 in row 5 is no label"),
    ("y", "text", -1, "-1 in row 5 is no label"),
    ("qid", "real", -1, "-1 in row 5 is no query"),
    ("cost", "real", np.nan, "nan in row 5 is no cost"),
    ("cost", "real", -1.0, "-1.0 in row 5 is no cost"),
]


@pytest.mark.parametrize(("name", "kind", "value", "message"), COLUMN_FAULTS)
def test_damaged_columns(tmp_path: Path, name, kind, value, message):
    labels = {
        "real": np.arange(90) / 2,
        "integer": np.arange(90) % 3,
        "text": np.array(["a", "b", "c"])[np.arange(90) % 3],
    }[kind]
    chunk = (some_rows(), labels, np.arange(90) // 4, np.ones(90))
    path = resigned(write_dataset(tmp_path / "a.cut", [chunk]).path, name, setting(5, value))
    data = open_dataset(path, verify=True)
    with pytest.raises(ValueError, match=rf"{name}.npy: {message}: the data set is damaged"):
        getattr(data, name)
    with pytest.raises(ValueError, match=message):
        list(data.chunks())


@pytest.mark.parametrize("name", ["values.npy", "indices.npy", "y.npy", "manifest.json"])
@pytest.mark.parametrize("kind", ["fifo", "device", "loop", "folder"])
def test_only_regular_files(tmp_path: Path, name, kind):
    """A pipe without a writer must not hold the process up."""
    path = write_dataset(tmp_path / "a.cut", [(some_rows(sparse=True), np.ones(90))]).path
    (path / name).unlink()
    match kind:
        case "fifo":
            os.mkfifo(path / name)
        case "device":
            (path / name).symlink_to("/dev/zero")
        case "loop":
            (path / name).symlink_to(name)
        case "folder":
            (path / name).mkdir()
    message = f"{name} cannot be opened" if kind == "loop" else f"{name} is not a regular file"
    with pytest.raises(ValueError, match=message):
        open_dataset(path)


def test_a_file_behind_a_link_is_fine(tmp_path: Path):
    path = write_dataset(tmp_path / "a.cut", [some_rows()]).path
    os.rename(path / "values.npy", tmp_path / "elsewhere")
    (path / "values.npy").symlink_to(tmp_path / "elsewhere")
    assert same(open_dataset(path).rows(), some_rows())


def test_a_file_that_is_written_to_while_it_is_open(tmp_path: Path):
    data = write_dataset(tmp_path / "a.cut", [some_rows(sparse=True)])
    matrix = data.blocks()
    matrix.scores(np.ones(7), np.ones(90), SerialExecutor())
    time.sleep(0.02)
    with open(data.path / "indices.npy", "r+b") as file:
        file.seek(-2, os.SEEK_END)
        file.write(b"\xff\xff")
    with pytest.raises(ValueError, match=r"indices.npy was changed while it was open"):
        matrix.scores(np.ones(7), np.ones(90), SerialExecutor())


def test_rows_of_zeros_alone(tmp_path: Path):
    X = sp.csr_matrix((5, 3))
    assert same(write_dataset(tmp_path / "a.cut", [X]).rows(), X)


@pytest.mark.parametrize("features", [2**31 - 1, 2**31, 2**61])
def test_absurd_numbers_of_features(tmp_path: Path, monkeypatch, features):
    path = write_dataset(tmp_path / "a.cut", [some_rows(sparse=True)]).path

    def edit(entries):
        entries.pop("digest")
        entries["features"] = features
        entries["digest"] = _digest_of(entries)

    _edit(path, edit)
    monkeypatch.setattr(cutplane.data.memory, "available_memory", lambda: 7 << 30)
    with pytest.raises(ValueError, match=r"features.*(2147483647|GiB of memory)"):
        LinearSVC().fit(open_dataset(path), np.arange(90) % 2)


FULL = """
    import resource, sys
    import numpy as np
    from cutplane import convert_dataset, write_dataset
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
    for call in (
        lambda: write_dataset(sys.argv[1], [np.ones((1000, 50))] * 3),
        lambda: convert_dataset(sys.argv[2], sys.argv[1]),
    ):
        try:
            call()
        except OSError as error:
            print(error.filename, error.strerror, sep="|")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on the size of files")
def test_a_full_disk_is_named_by_the_folder(tmp_path: Path):
    """A limit on the size of files simulates the full disk: writing fails in the middle."""
    path, text = tmp_path / "a.cut", tmp_path / "t.svm"
    text.write_text("1 1:1 2:2 3:3\n" * 5000)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL), str(path), str(text)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{path}|cannot write: File too large\n" * 2
    assert os.listdir(tmp_path) == ["t.svm"]
    with pytest.raises(FileNotFoundError, match=r"cannot write: No such file .*nowhere/a\.cut"):
        write_dataset(tmp_path / "nowhere" / "a.cut", [some_rows()])
