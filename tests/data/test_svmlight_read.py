"""Reading svmlight files: what comes back, from where, in chunks, in threads."""

from __future__ import annotations

import bz2
import gzip
import inspect
import io
import lzma
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_svmlight_file
from svmlight_check import SIZES, attempt, check, same
from svmlight_reference import random_rows

import cutplane.data.svmlight.read as svmlight
from cutplane.data.svmlight import dump_svmlight, iter_svmlight, load_svmlight

TEXT = b"1 qid:1 1:0.5 3:2 # a\n-1 qid:2 2:-1.25 cost:3 # b c\n\n# x\n2 qid:2 1:1 4:1e-3\n"
PAD = b"#" + b"x" * 100 + b"\n"  # longer than the first look at a file
EVERYTHING = {"qid": True, "cost": True, "comments": True}


def some_rows(rows: int, features: int, seed: int = 0, *, qids: bool = False) -> bytes:
    """Text of a random sparse matrix, with comments and empty lines."""
    rng = np.random.default_rng(seed)
    lines = []
    for k in range(rows):
        indices = np.flatnonzero(rng.random(features) < 0.3) + 1
        values = np.round(rng.normal(size=len(indices)), int(rng.integers(0, 18)))
        query = f" qid:{k // 5}" if qids else ""
        pairs = " ".join(
            f"{j}:{v!r}" for j, v in zip(indices.tolist(), values.tolist(), strict=True)
        )
        lines.append(f"{k % 3 - 1}{query} {pairs}" + (" # comment" if k % 7 == 0 else ""))
        if k % 11 == 0:
            lines.append("")
    return "\n".join(lines).encode() + b"\n"


# -- what comes back ----------------------------------------------------------


def test_the_tuple_follows_the_flags():
    X, y = load_svmlight(io.BytesIO(TEXT))
    assert isinstance(X, scipy.sparse.csr_matrix) and X.dtype == np.float64
    assert X.toarray().tolist() == [[0.5, 0, 2, 0], [0, -1.25, 0, 0], [1, 0, 0, 1e-3]]
    assert y.tolist() == [1, -1, 2] and y.dtype == np.float64
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.has_canonical_format
    _, _, qid = load_svmlight(io.BytesIO(TEXT), qid=True)
    assert qid.tolist() == [1, 2, 2]
    _, _, cost = load_svmlight(io.BytesIO(TEXT), cost=True)
    assert cost.tolist() == [1, 3, 1]
    _, _, qid, cost, comments = load_svmlight(io.BytesIO(TEXT), **EVERYTHING)
    assert (qid.tolist(), cost.tolist(), comments) == ([1, 2, 2], [1, 3, 1], ["a", "b c", ""])


def test_the_arrays_are_ours_and_as_long_as_needed():
    X, y = load_svmlight(io.BytesIO(TEXT))
    for array in (X.data, X.indices, y):
        assert array.flags.writeable
        assert array.base is None or array.base.nbytes == array.nbytes


def test_stored_zeros_stay():
    assert load_svmlight(io.BytesIO(b"1 1:0 2:0.0\n"))[0].nnz == 2


def test_comments_of_any_kind():
    text = "1 # ä  ö # x \n2 1:1#\n3\n4 #\xff \r\n".encode() + b"5 # \xff\n"
    comments = load_svmlight(io.BytesIO(text), comments=True)[2]
    assert comments == ["ä  ö # x", "", "", "ÿ", "\\xff"]


@pytest.mark.parametrize("qids", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_agrees_with_scikit_learn(qids, dtype, tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(some_rows(300, 40, qids=qids))
    theirs = load_svmlight_file(str(path), dtype=dtype, query_id=qids)
    ours = load_svmlight(path, dtype=dtype, qid=qids)
    assert ours[0].shape == theirs[0].shape
    assert ours[0].data.tobytes() == theirs[0].data.tobytes()
    assert np.array_equal(ours[0].indices, theirs[0].indices)
    assert np.array_equal(ours[0].indptr, theirs[0].indptr)
    assert all(np.array_equal(a, b) for a, b in zip(ours[1:], theirs[1:], strict=True))


@pytest.mark.parametrize("seed", range(100))
def test_agrees_with_scikit_learn_on_odd_files(seed):
    """They read cost: as an error, and labels of more digits than a double has differently."""
    text = random_rows(random.Random(seed))
    if b"cost" in text or not text.strip():
        return
    X, y = load_svmlight(io.BytesIO(text), zero_based=False, n_features=2**31 - 1)
    Y, z = load_svmlight_file(io.BytesIO(text), zero_based=False, n_features=2**31 - 1)
    assert X.data.tobytes() == Y.data.tobytes() and y.tobytes() == z.tobytes()
    assert np.array_equal(X.indices, Y.indices) and np.array_equal(X.indptr, Y.indptr)


# -- pieces and threads -------------------------------------------------------


@pytest.mark.parametrize("size", range(1, 90))
def test_cut_at_every_place(size):
    """Pieces of every size up to the whole text, so that every byte is the first of one."""
    whole = attempt(TEXT, 1 << 20, **EVERYTHING)
    assert same(attempt(TEXT, size, n_jobs=1, **EVERYTHING), whole)
    windows = b"\xef\xbb\xbf" + TEXT.replace(b"\n", b"\r\n").rstrip()
    assert same(attempt(windows, size, n_jobs=1, **EVERYTHING), whole)


@pytest.mark.parametrize("sort", [False, True])
def test_many_digits_and_disorder_in_small_pieces(sort):
    text = (
        b"123456789012345678901234567890 7:0.12345678901234567890123 cost:2.00000000000000000000001"
    )
    text += b" 9:1.00000000000000000000001 # c\n1 8:5 10:0.99999999999999999999999\n"
    if sort:
        text += b"-1 5:1 3:3.33333333333333333333333 4:4 cost:1\n"
    assert check(text, sizes=tuple(range(1, 60)), sort=sort) is None


def test_threads_give_the_same_bits(monkeypatch, tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(some_rows(2000, 30, qids=True))
    options = {"qid": True, "comments": True}
    one = load_svmlight(path, n_jobs=1, **options)
    for size in (1000, 4096, 1 << 16):
        monkeypatch.setattr(svmlight, "PIECE", size)
        for n_jobs in (1, 2, 8, None, -1, -2, -5000, 5000):
            assert same(load_svmlight(path, n_jobs=n_jobs, **options), one)


def test_two_readers_in_two_threads(monkeypatch, tmp_path):
    monkeypatch.setattr(svmlight, "PIECE", 5000)
    path = tmp_path / "a.svm"
    path.write_bytes(some_rows(1000, 30))
    one = load_svmlight(path, n_jobs=1)
    results = [None, None]

    def read(k):
        results[k] = load_svmlight(path, n_jobs=2)

    threads = [threading.Thread(target=read, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same((*result, None), (*one, None)) for result in results)


def test_no_thread_outlives_a_reader(monkeypatch):
    monkeypatch.setattr(svmlight, "PIECE", 1000)
    before = threading.active_count()
    chunks = iter_svmlight(io.BytesIO(some_rows(500, 20)), rows=10, n_jobs=4)
    next(chunks)
    chunks.close()
    with pytest.raises(ValueError, match="has no ':'"):
        load_svmlight(io.BytesIO(some_rows(500, 20) + b"1 x"), n_jobs=4)
    assert threading.active_count() == before


# -- chunks -------------------------------------------------------------------


@pytest.mark.parametrize("size", [*SIZES, 500])
@pytest.mark.parametrize("rows", [1, 2, 7, 50, 1000])
def test_chunks_of_rows(rows, size, monkeypatch):
    monkeypatch.setattr(svmlight, "PIECE", size)
    text = some_rows(50, 10, qids=True)
    whole = load_svmlight(io.BytesIO(text), **EVERYTHING)
    chunks = list(iter_svmlight(io.BytesIO(text), rows=rows, n_features=10, n_jobs=1, **EVERYTHING))
    assert [len(chunk[1]) for chunk in chunks] == [
        min(rows, 50 - start) for start in range(0, 50, rows)
    ]
    X = scipy.sparse.vstack([chunk[0] for chunk in chunks], format="csr")
    parts = [np.concatenate(column) for column in list(zip(*chunks, strict=True))[1:4]]
    comments = [comment for chunk in chunks for comment in chunk[4]]
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    assert same((X, *parts, comments), whole)


def test_chunks_of_bytes():
    text = some_rows(5000, 10)
    sizes = [len(chunk[1]) for chunk in iter_svmlight(io.BytesIO(text), bytes=10_000)]
    assert sum(sizes) == 5000
    assert len(text) // 10_000 <= len(sizes) <= len(text) // 8_000
    sizes = [len(y) for _, y in iter_svmlight(io.BytesIO(PAD + b"1\n2\n3\n"), bytes=1)]
    assert sizes == [1, 1, 1]
    assert len(list(iter_svmlight(io.BytesIO(text)))) == 1


def test_chunks_are_as_wide_as_the_file_so_far():
    text = PAD + b"1 2:1\n1 5:1\n1 1:1\n"
    shapes = [X.shape for X, _ in iter_svmlight(io.BytesIO(text), bytes=1)]
    assert shapes == [(1, 2), (1, 5), (1, 5)]
    shapes = [
        X.shape for X, _ in iter_svmlight(io.BytesIO(text), rows=1, zero_based=True, n_features=7)
    ]
    assert shapes == [(1, 7)] * 3


def test_chunks_come_before_a_later_mistake():
    chunks = iter_svmlight(io.BytesIO(PAD + b"1 1:1\n2 1:1\nx\n"), bytes=1, n_jobs=1)
    assert next(chunks)[1].tolist() == [1]
    assert next(chunks)[1].tolist() == [2]
    with pytest.raises(ValueError, match=r":4:1: label 'x' is not a number"):
        next(chunks)


def test_long_rows_are_sorted_and_checked_in_chunks(monkeypatch):
    monkeypatch.setattr(svmlight, "PIECE", 10)
    text = PAD + b"1 9:1 8:2 7:3 6:4\n1 1:1\n1 3:1 2:2 1:3 4:4\n"
    chunks = list(iter_svmlight(io.BytesIO(text), rows=1, sort=True, n_features=9))
    assert [X.indices.tolist() for X, _ in chunks] == [[5, 6, 7, 8], [0], [0, 1, 2, 3]]
    assert [X.data.tolist() for X, _ in chunks] == [[4, 3, 2, 1], [1], [3, 2, 1, 4]]
    with pytest.raises(ValueError, match=r"<file>:3:1: index 9 occurs twice in this row"):
        load_svmlight(io.BytesIO(PAD + b"1 1:1\n1 9:1 8:2 7:3 6:4 9:5\n"), sort=True)


# -- from where ---------------------------------------------------------------


def test_paths_and_files(tmp_path):
    folder = tmp_path / "with spaces und Umläuten"
    folder.mkdir()
    path = folder / ("n" * 200 + ".svm")
    path.write_bytes(TEXT)
    expected = load_svmlight(io.BytesIO(TEXT), **EVERYTHING)
    assert same(load_svmlight(path, **EVERYTHING), expected)
    assert same(load_svmlight(str(path), **EVERYTHING), expected)
    with open(path, "rb") as file:
        assert same(load_svmlight(file, **EVERYTHING), expected)
    with open(path, "rb", buffering=0) as raw:
        assert same(load_svmlight(raw, **EVERYTHING), expected)
    with gzip.open(tmp_path / "x.gz", "wb") as file:
        file.write(TEXT)
    with gzip.open(tmp_path / "x.gz") as file:
        assert same(load_svmlight(file, **EVERYTHING), expected)


def test_messages_name_the_file(tmp_path):
    path = tmp_path / "data.svm"
    path.write_bytes(b"1 7:1 5:1\n")
    message = r"data\.svm:1:7: index 5 follows 7; indices must increase \(or pass sort=True\)"
    for compress, suffix in (
        (gzip.compress, ".gz"),
        (bz2.compress, ".bz2"),
        (lzma.compress, ".xz"),
    ):
        (tmp_path / f"data.svm{suffix}").write_bytes(compress(path.read_bytes()))
        with pytest.raises(ValueError, match=message.replace("svm", f"svm{suffix}")):
            load_svmlight(tmp_path / f"data.svm{suffix}")
    with pytest.raises(ValueError, match=message):
        load_svmlight(path)
    with open(path, "rb") as file, pytest.raises(ValueError, match=message):
        load_svmlight(file)


def test_standard_input():
    code = (
        "from cutplane.data.svmlight import *; X, y = load_svmlight('-');"
        "dump_svmlight(X, y, '-', comment='from a pipe')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"1 1:0.5\n-1 2:3\n", capture_output=True, check=True
    )
    assert done.stdout.replace(b"\r\n", b"\n") == b"# from a pipe\n1 1:0.5\n-1 2:3\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_with_short_reads(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        with open(path, "wb", buffering=0) as pipe:
            for k in range(0, len(TEXT), 7):
                pipe.write(TEXT[k : k + 7])
                time.sleep(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    X, y = load_svmlight(path)
    writer.join()
    assert y.tolist() == [1, -1, 2] and X.nnz == 5


@pytest.mark.skipif(not hasattr(os, "set_blocking"), reason="no such mode")
def test_a_pipe_that_does_not_wait_is_not_taken_for_its_end():
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.write(writing, TEXT)
    with open(reading, "rb", buffering=0) as pipe, pytest.raises(ValueError, match="non-blocking"):
        load_svmlight(pipe)
    os.close(writing)


def test_things_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_svmlight(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        load_svmlight(tmp_path)
    with pytest.raises(TypeError, match="expected a path or a binary file, got 5"):
        load_svmlight(5)
    with pytest.raises(TypeError, match="open it in binary mode"):
        load_svmlight(io.StringIO("1 1:1"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features must be an integer from 1"),
        ({"n_features": 2**31}, "n_features must be an integer from 1"),
        ({"n_features": 2.0}, "n_features must be an integer from 1"),
        ({"max_features": 2**31}, "max_features must be an integer from 1"),
        ({"zero_based": "yes"}, "zero_based must be True, False or 'auto'"),
        ({"zero_based": 1}, "zero_based must be True, False or 'auto'"),
        ({"qid": None}, "qid must be True, False or 'auto'"),
        ({"cost": "auto"}, "cost must be True or False"),
        ({"sort": "no"}, "sort must be True or False"),
        ({"comments": 2}, "comments must be True or False"),
        ({"dtype": np.int64}, "dtype must be float64 or float32"),
        ({"dtype": "spam"}, "dtype must be float64 or float32"),
        ({"unseen": "drop"}, "unseen must be 'error' or 'ignore'"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"n_jobs": 1.5}, "n_jobs must be"),
    ],
)
def test_wrong_arguments(options, message):
    for read in (load_svmlight, iter_svmlight):  # at once, not with the first chunk
        if options.get("zero_based") == "yes" and read is iter_svmlight:
            message = "zero_based must be True or False"
        with pytest.raises(ValueError, match=message):
            read(io.BytesIO(TEXT), **options)


def test_wrong_arguments_of_chunks():
    for options, message in (
        ({"rows": 5, "bytes": 5}, "rows or bytes, not both"),
        ({"rows": 0}, "rows must be"),
        ({"bytes": 0}, "bytes must be"),
        ({"zero_based": "auto"}, "a chunk comes before the rest of the file is known"),
    ):
        with pytest.raises(ValueError, match=message):
            iter_svmlight(io.BytesIO(TEXT), **options)


def test_both_readers_take_the_same_options():
    """So that the command line can hand them on to either."""
    one, many = (inspect.signature(f).parameters for f in (load_svmlight, iter_svmlight))
    assert set(many) - set(one) == {"rows", "bytes"}
    assert set(one) <= set(many)
    differ = {name for name in one if one[name].default != many[name].default}
    assert differ == {"zero_based"}


def test_time_is_linear_in_the_rows_with_queries():
    """scikit-learn's is quadratic. Generous: this is a shared machine."""
    times = []
    for repeat in (1, 8):
        text = b"1 qid:1 1:1 2:2\n" * (20_000 * repeat)
        load_svmlight(io.BytesIO(text), qid=True)
        start = time.process_time()
        load_svmlight(io.BytesIO(text), qid=True, n_jobs=1)
        times.append(time.process_time() - start)
    assert times[1] < 40 * max(times[0], 1e-3)


def test_big_enough_to_grow_and_to_be_predicted(tmp_path):
    """Sparse at first and dense at the end, so that the predicted length is wrong."""
    text = b"1\n" * 700_000 + b"1 1:1 2:2 3:3 4:4\n" * 100_000
    path = tmp_path / "a.svm"
    path.write_bytes(text)
    for source in (path, io.BytesIO(text)):
        X, y = load_svmlight(source)
        assert X.shape == (800_000, 4) and X.nnz == 400_000 and X.data.sum() == 1e6
        assert len(y) == 800_000 and X.indptr[700_000] == 0
    path.write_bytes(b"1 1:1 2:2 3:3 4:4\n" * 100_000 + b"1\n" * 700_000)
    X, _ = load_svmlight(path)
    assert X.nnz == 400_000 == len(X.data)


def test_a_written_file_is_read_by_scikit_learn(tmp_path):
    X = scipy.sparse.random(50, 20, 0.3, format="csr", random_state=0)
    y = np.arange(50.0)
    dump_svmlight(X, y, tmp_path / "a.svm", qid=np.arange(50) // 5, comment="test")
    Y, z, qid = load_svmlight_file(str(tmp_path / "a.svm"), n_features=20, query_id=True)
    assert (
        (X != Y).nnz == 0 and np.array_equal(y, z) and qid.tolist() == [k // 5 for k in range(50)]
    )


def test_the_calling_thread_compiles(monkeypatch, tmp_path):
    """Ctrl-C cannot stop another thread that compiles: nothing is handed out before."""
    from cutplane.data.svmlight import parse as pieces

    threads = []
    parse = pieces.Piece.parse

    def noted(self, *arguments):
        threads.append(threading.current_thread())
        parse(self, *arguments)

    class NotCompiled:
        signatures: tuple = ()

        def __call__(self, *arguments):
            read_rows(*arguments)
            NotCompiled.signatures = ("one",)

    read_rows = pieces.loops.read_rows
    monkeypatch.setattr(pieces.Piece, "parse", noted)
    monkeypatch.setattr(pieces.loops, "read_rows", NotCompiled())
    path = tmp_path / "many.svm"
    path.write_text("1 1:0.25 7:1.5\n" * 400_000)
    X, _ = load_svmlight(path, n_jobs=2)
    assert X.shape == (400_000, 7)
    assert len(threads) > 2
    assert threads[0] is threading.current_thread()
    assert threading.current_thread() not in threads[1:]
