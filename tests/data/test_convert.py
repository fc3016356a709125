"""Files become data sets with the same numbers, or an error that says where the mistake is."""

from __future__ import annotations

import gzip
import io
import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from cutplane import (
    convert_dataset,
    dump_svmlight,
    load_svmlight,
    open_dataset,
    write_dataset,
)

TEXT = "+1 qid:1 1:0.5 3:2.25 # a\n-1 qid:1 2:1 3:-4 cost:0.5\n+1 qid:2 1:1e-3\n"


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of a few lines."""
    monkeypatch.setattr("cutplane.data.svmlight.read.CHUNK", 200)


def text_of(rows=60, features=9, seed=0, **options):
    X = sp.random(rows, features, 0.4, format="csr", random_state=seed)
    y = np.arange(rows) % 3 - 1.0
    file = io.BytesIO()
    dump_svmlight(X, y, file, **options)
    return file.getvalue()


# -- svmlight ---------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["svm", "svm.gz", "txt", "data"])
def test_svmlight(tmp_path: Path, small_chunks, suffix):
    path = tmp_path / f"train.{suffix}"
    content = text_of(qid=np.arange(60) // 7)
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    data = convert_dataset(path, tmp_path / "a.cut")
    X, y, qid = load_svmlight(path, qid=True)
    assert data.shape == X.shape and (data.rows() != X).nnz == 0
    assert np.array_equal(data.y, y) and np.array_equal(data.qid, qid) and data.cost is None
    data.verify()


def test_queries_and_costs_on_demand(tmp_path: Path):
    path = tmp_path / "t.svm"
    path.write_text(TEXT)
    data = convert_dataset(path, tmp_path / "a.cut")
    assert data.qid.tolist() == [1, 1, 2] and data.cost.tolist() == [1.0, 0.5, 1.0]
    data = convert_dataset(path, tmp_path / "b.cut", qid=False, cost=False, dtype=np.float32)
    assert data.qid is None and data.cost is None and data.dtype == np.float32
    path.write_text("1 1:1\n2 1:2\n")
    data = convert_dataset(path, tmp_path / "c.cut", cost=True)
    assert data.qid is None and data.cost.tolist() == [1.0, 1.0]
    assert convert_dataset(path, tmp_path / "d.cut").cost is None


@pytest.mark.parametrize("zero_based", [True, False, "auto"])
@pytest.mark.parametrize("first", [0, 1])
def test_first_index(tmp_path: Path, caplog, small_chunks, zero_based, first):
    path = tmp_path / "t.svm"
    path.write_bytes(text_of(zero_based=first == 0))
    if first == 0 and zero_based is False:
        with pytest.raises(ValueError, match=r"t\.svm:.*index 0"):
            convert_dataset(path, tmp_path / "a.cut", zero_based=zero_based)
        assert os.listdir(tmp_path) == ["t.svm"]
        return
    with caplog.at_level(logging.INFO, "cutplane"):
        data = convert_dataset(path, tmp_path / "a.cut", zero_based=zero_based)
    X, _ = load_svmlight(path, zero_based=zero_based)
    assert data.shape == X.shape and (data.rows() != X).nnz == 0
    data.verify()
    found = f"the smallest index is {first}, so indices are counted from {first}"
    assert (found in caplog.text) == (zero_based == "auto")


@pytest.mark.parametrize("first", [0, 1])
def test_number_of_features(tmp_path: Path, first):
    path = tmp_path / "t.svm"
    path.write_text(f"1 {first}:1\n2 {first + 4}:2\n")
    for features in (5, 8):
        data = convert_dataset(path, tmp_path / "a.cut", n_features=features, overwrite=True)
        assert data.rows().toarray().tolist()[1] == [0, 0, 0, 0, 2.0] + [0] * (features - 5)
    with pytest.raises(ValueError, match=r"t\.svm.*(index 5|largest is 4)"):
        convert_dataset(path, tmp_path / "b.cut", n_features=4)
    data = convert_dataset(
        path, tmp_path / "b.cut", n_features=4, zero_based=first == 0, unseen="ignore"
    )
    assert data.rows().toarray().tolist() == [[1, 0, 0, 0], [0, 0, 0, 0]]
    with pytest.raises(ValueError, match="unseen='ignore' needs zero_based"):
        convert_dataset(path, tmp_path / "c.cut", n_features=4, unseen="ignore")


def test_indices_around_16_bits(tmp_path: Path):
    path = tmp_path / "t.svm"
    for last, first, kind in ((65536, 1, "<u2"), (65537, 1, "<u4"), (65535, 0, "<u2")):
        path.write_text(f"1 {first}:1\n2 {last}:2\n")
        data = convert_dataset(path, tmp_path / "a.cut", overwrite=True)
        assert data.n_features == last + 1 - first
        assert data.rows()[1].indices.tolist() == [last - first]
        assert np.load(tmp_path / "a.cut" / "indices.npy").dtype.str == kind


def test_several_files_are_one(tmp_path: Path, small_chunks):
    whole = text_of(90, 12)
    lines = whole.splitlines(keepends=True)
    paths = [tmp_path / f"part{k}" for k in range(3)]
    for k, path in enumerate(paths):
        path.write_bytes(b"".join(lines[30 * k : 30 * k + 30]))
    data = convert_dataset(paths, tmp_path / "a.cut")
    X, y = load_svmlight(io.BytesIO(whole))
    assert (data.rows() != X).nnz == 0 and np.array_equal(data.y, y)
    paths[1].write_bytes(b"1 1:1 2:x\n")
    with pytest.raises(ValueError, match="part1:1:9: value 'x'"):
        convert_dataset(paths, tmp_path / "b.cut")
    assert not (tmp_path / "b.cut").exists()


def test_open_files_and_standard_input(tmp_path: Path, monkeypatch):
    data = convert_dataset(io.BytesIO(TEXT.encode()), tmp_path / "a.cut")
    assert data.shape == (3, 3)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert convert_dataset("-", tmp_path / "b.cut").digest() == data.digest()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "t.svm:1:1: no examples"),
        (b"1 1:1\n1 qid:3 1:1\n", "t.svm:2:"),
        (b"1 1:1\n1 1:nan\n", "t.svm:2:5"),
        (b"1 3:1 2:1\n", "t.svm:1:7: index 2 follows 3"),
        (b"\x1f\x8b1234", "gzip"),
    ],
)
def test_mistakes_in_text(tmp_path: Path, content, message):
    (tmp_path / "t.svm").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        convert_dataset(tmp_path / "t.svm", tmp_path / "a.cut")
    assert os.listdir(tmp_path) == ["t.svm"]


def test_sort(tmp_path: Path):
    (tmp_path / "t.svm").write_text("1 3:1 2:4\n")
    data = convert_dataset(tmp_path / "t.svm", tmp_path / "a.cut", sort=True)
    assert data.rows().toarray().tolist() == [[0, 4, 1]]


# -- archives ---------------------------------------------------------------------


def test_archives(tmp_path: Path):
    X = np.arange(12.0).reshape(4, 3)
    S = sp.csr_matrix(X)
    y = np.array(["a", "b", "a", "b"])
    np.savez_compressed(tmp_path / "d.npz", X=X.astype(np.float32), y=y, qid=[1, 1, 2, 2])
    data = convert_dataset(tmp_path / "d.npz", tmp_path / "d.cut")
    assert not data.sparse and data.dtype == np.float32 and np.array_equal(data.rows(), X)
    assert data.y.tolist() == y.tolist() and data.qid.tolist() == [1, 1, 2, 2]
    for matrix in (S, S.tocsc()):
        sp.save_npz(tmp_path / "s.npz", matrix)
        data = convert_dataset(tmp_path / "s.npz", tmp_path / "s.cut", overwrite=True)
        assert data.sparse and data.y is None and (data.rows() != S).nnz == 0
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    np.savez(tmp_path / "m.npz", **parts, y=[1, 2, 3, 4], cost=[1.0, 2.0, 1.0, 1.0])
    data = convert_dataset(tmp_path / "m.npz", tmp_path / "m.cut")
    assert data.y.tolist() == [1, 2, 3, 4] and data.cost.tolist() == [1.0, 2.0, 1.0, 1.0]


def test_bad_archives(tmp_path: Path):
    def refused(message, **arrays):
        np.savez(tmp_path / "x.npz", **arrays)
        with pytest.raises(ValueError, match=message):
            convert_dataset(tmp_path / "x.npz", tmp_path / "a.cut")

    refused("has neither X nor the arrays of a sparse matrix.*it has Z", Z=np.ones(3))
    refused("y has 3 entries for 2 rows", X=np.ones((2, 2)), y=np.ones(3))
    refused("two dimensions", X=np.ones(3))
    refused("Object arrays cannot be loaded|pickle", X=np.array([[None]], dtype=object))
    bad = {"data": [1.0], "indices": [9], "indptr": [0, 1], "shape": (1, 3)}
    refused("indices", **bad)
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(ValueError, match=r"x\.npz"):
        convert_dataset(tmp_path / "x.npz", tmp_path / "a.cut")
    (tmp_path / "x.npz").write_bytes(b"1 1:1\n")
    with pytest.raises(ValueError, match=r"x\.npz is not a NumPy archive"):
        convert_dataset(tmp_path / "x.npz", tmp_path / "a.cut")
    assert os.listdir(tmp_path) == ["x.npz"]


# -- tables -----------------------------------------------------------------------


def frame(rows=500):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "income": rng.normal(size=rows),
            "member": rng.random(rows) < 0.5,
            "query": np.arange(rows) // 5,
            "class": np.where(rng.random(rows) < 0.5, "yes", "no"),
            "weight": rng.random(rows),
        }
    )


WRITE = {
    "parquet": lambda f, p: f.to_parquet(p, row_group_size=100),
    "feather": lambda f, p: f.to_feather(p),
    "csv": lambda f, p: f.to_csv(p, index=False),
}


@pytest.mark.parametrize("suffix", WRITE)
def test_tables(tmp_path: Path, suffix):
    table = frame()
    path = tmp_path / f"t.{suffix}"
    WRITE[suffix](table, path)
    data = convert_dataset(path, tmp_path / "a.cut", label="class", qid="query", cost="weight")
    assert data.feature_names == ("age", "income", "member") and not data.sparse
    expected = table[["age", "income", "member"]].to_numpy(np.float64)
    assert np.array_equal(data.rows(), expected)
    assert data.y.tolist() == table["class"].tolist()
    assert data.qid.tolist() == table["query"].tolist()
    assert np.array_equal(data.cost, table["weight"])
    some = convert_dataset(
        [path, path], tmp_path / "b.cut", label="age", features=["income"], dtype=np.float32
    )
    assert some.shape == (1000, 1) and some.y.dtype == np.int64 and some.dtype == np.float32
    assert np.array_equal(some.rows(0, 500)[:, 0], table["income"].to_numpy(np.float32))


def test_categories_and_numbers_of_other_types(tmp_path: Path):
    table = frame(50)
    table["class"] = table["class"].astype("category")
    table["age"] = table["age"].astype("uint8")
    table["income"] = table["income"].astype("float32")
    table[["age", "income", "class"]].to_parquet(tmp_path / "t.parquet")
    data = convert_dataset(tmp_path / "t.parquet", tmp_path / "a.cut", label="class")
    assert data.y.tolist() == table["class"].tolist()
    assert data.dtype == np.float32
    assert np.array_equal(data.rows(), table[["age", "income"]].to_numpy(np.float32))


def test_bad_tables(tmp_path: Path):
    table = frame(20)
    path, out = tmp_path / "t.parquet", tmp_path / "a.cut"
    table.to_parquet(path)

    def refused(message, **options):
        with pytest.raises(ValueError, match=message):
            convert_dataset(path, out, **options)
        assert not out.exists()

    refused("column 'class' is of type .*string, not of numbers; encode it")
    refused("there is no column 'klass'; there are 'age', 'income'", label="klass")
    refused("column 'age' is used twice", label="age", features=["income", "age"])
    refused("are for svmlight text, not for parquet", label="age", zero_based=True)
    refused("are for svmlight text, not for parquet", label="age", cost=True)
    table.loc[7, "income"] = np.nan
    table.to_parquet(path)
    refused("column 'income' has no value in row 7|got nan in row 7", features=["age", "income"])
    table.iloc[:0].to_parquet(path)
    refused("no examples|empty", features=["age"])
    path.write_bytes(b"PAR1 not really PAR1")
    refused("not a readable parquet file")
    with pytest.raises(FileNotFoundError):
        convert_dataset(tmp_path / "nowhere.parquet", out, features=["age"])


def test_a_mistake_late_in_a_csv_file(tmp_path: Path):
    pytest.importorskip("pyarrow")
    lines = ["a,b"] + ["1,2"] * 300_000 + ["1,x"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"t\.csv: .*'x'"):
        convert_dataset(tmp_path / "t.csv", tmp_path / "a.cut")
    assert os.listdir(tmp_path) == ["t.csv"]


def test_bad_requests(tmp_path: Path):
    (tmp_path / "t.svm").write_text(TEXT)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    out = tmp_path / "a.cut"

    def refused(message, source, **options):
        with pytest.raises(ValueError, match=message):
            convert_dataset(source, out, **options)

    refused("format must be one of 'auto', 'svmlight'", tmp_path / "t.svm", format="xml")
    refused("source is empty", [])
    refused("different formats, csv, svmlight", [tmp_path / "t.svm", tmp_path / "t.csv"])
    refused(
        "name columns of tables, but .*t.svm is read as svmlight", tmp_path / "t.svm", label="a"
    )
    refused("zero_based must be True, False or 'auto'", tmp_path / "t.svm", zero_based="no")
    with pytest.raises(FileNotFoundError):
        convert_dataset(tmp_path / "nowhere.svm", out)
    assert sorted(os.listdir(tmp_path)) == ["t.csv", "t.svm"]


PEAK = """
    import sys
    from cutplane import convert_dataset
    convert_dataset(sys.argv[1], sys.argv[2], label="y", dtype="float32")
    with open("/proc/self/status") as file:  # getrusage counts what the parent had
        print(next(line.split()[1] for line in file if line.startswith("VmHWM:")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no peak of memory to read")
def test_memory_for_parquet_does_not_grow_with_the_file(tmp_path: Path):
    """Of one group of rows, which is how large tables often come."""
    pq = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    peaks = {}
    for rows in (100_000, 700_000):
        columns = {f"x{j}": rng.random(rows) for j in range(25)} | {"y": np.arange(rows) % 2}
        path = tmp_path / f"{rows}.parquet"
        table = pyarrow.table(columns)
        pq.write_table(table, path, row_group_size=rows, compression="none", use_dictionary=False)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PEAK), str(path), str(tmp_path / f"{rows}.cut")],
            capture_output=True,
            check=True,
            text=True,
        )
        peaks[rows] = int(done.stdout) * 1024
        assert open_dataset(tmp_path / f"{rows}.cut").shape == (rows, 25)
    # The larger file has 125 MB more; all of them were in memory, and more.
    assert peaks[700_000] - peaks[100_000] < 60e6


def test_parquet_files_of_other_columns(tmp_path: Path):
    pq = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    for name in ("a", "b"):
        table = pyarrow.table({"x": [1.0, 2.0], name: [3.0, 4.0], "y": [0, 1]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet: there is no column 'a', as in .*a\.parquet"):
        convert_dataset(
            [tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "t.cut", label="y"
        )
    assert not (tmp_path / "t.cut").exists()


def test_data_sets_in_one(tmp_path):
    """Values keep their type, and columns their names."""
    rng = np.random.default_rng(5)
    X, y = rng.integers(-3, 4, (30, 3)), np.array(["a", "b", "c"] * 10)
    for name, rows in (("one", slice(0, 12)), ("two", slice(12, 30))):
        chunk = (X[rows], y[rows], np.arange(30)[rows] // 7)
        write_dataset(tmp_path / f"{name}.cut", [chunk], dtype="int8", feature_names="xyz")
    both = convert_dataset([tmp_path / "one.cut", tmp_path / "two.cut"], tmp_path / "both.cut")
    np.testing.assert_array_equal(both.rows(), X)
    np.testing.assert_array_equal(both.y, y)
    np.testing.assert_array_equal(both.qid, np.arange(30) // 7)
    assert both.dtype == np.int8 and both.feature_names == ("x", "y", "z") and both.cost is None
    (tmp_path / "one.cut").rename(tmp_path / "folder")
    wide = convert_dataset(tmp_path / "folder", tmp_path / "float.cut", dtype="float32")
    assert wide.dtype == np.float32 and wide.shape == (12, 3)
