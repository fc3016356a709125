"""Writing svmlight files: the same numbers back, and the old file until the new one is complete."""

from __future__ import annotations

import gzip
import io
import os
import stat

import numpy as np
import pytest
import scipy.sparse

from cutplane.data.svmlight import dump_svmlight, load_svmlight


def text(*args, **options) -> str:
    target = io.BytesIO()
    dump_svmlight(*args, target, **options)
    return target.getvalue().decode()


def test_lines():
    X = np.array([[1.5, 0, 2], [0, 0, 0], [-0.1, 1e-320, 1e300]])
    assert text(X, [1, -1, 0.5]) == "1 1:1.5 3:2\n-1\n0.5 1:-0.1 2:1e-320 3:1e+300\n"
    assert text(X[:1], [1], zero_based=True) == "1 0:1.5 2:2\n"
    assert text(X[:1], [1], qid=[7], cost=[0.25]) == "1 qid:7 cost:0.25 1:1.5 3:2\n"
    head = text(X[1:2], [1], comment="two\nlines äöü\n\nend")
    assert head == "# two\n# lines äöü\n#\n# end\n1\n"


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64, bool, ">f8"])
def test_types(dtype):
    X = np.array([[1, 0, 1], [0, 1, 0]], dtype)
    assert text(X, np.array([True, False])) == "1 1:1 3:1\n0 2:1\n"
    target = io.BytesIO()
    dump_svmlight(scipy.sparse.csr_array(X.astype(np.float64)), X[:, 0], target)


def test_float32_keeps_its_value_whatever_it_is_read_as():
    X = np.array([[0.1, 1 / 3, 1e-45, 3.4e38]], np.float32)
    for dtype in (np.float32, np.float64):
        Y, _ = load_svmlight(io.BytesIO(text(X, [1]).encode()), dtype=dtype)
        assert np.array_equal(Y.toarray(), X.astype(dtype))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_forms(form):
    X = scipy.sparse.random(20, 9, 0.4, format="csr", random_state=1)
    assert text(X.asformat(form), np.arange(20)) == text(X.toarray(), np.arange(20))
    assert text(scipy.sparse.csr_array(X), np.arange(20)) == text(X, np.arange(20))


def test_unsorted_and_repeated_entries_are_not_changed():
    X = scipy.sparse.csr_matrix((np.array([1.0, 2, 3, 0]), [2, 0, 2, 1], [0, 4]), shape=(1, 3))
    before = X.data.copy(), X.indices.copy()
    assert text(X, [1]) == "1 1:2 2:0 3:4\n"
    assert np.array_equal(X.data, before[0]) and np.array_equal(X.indices, before[1])


def test_large_matrices_go_out_in_blocks():
    X = scipy.sparse.random(3000, 400, 0.1, format="csr", random_state=2)
    y = np.arange(3000.0)
    Y, z = load_svmlight(io.BytesIO(text(X, y).encode()), n_features=400)
    assert (X != Y).nnz == 0 and np.array_equal(y, z)
    Y, _ = load_svmlight(io.BytesIO(text(X.toarray(), y).encode()), n_features=400)
    assert (X != Y).nnz == 0


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_compressed_by_suffix(suffix, tmp_path):
    path = tmp_path / f"a.svm{suffix}"
    X = np.eye(3)
    dump_svmlight(X, [1, 2, 3], path)
    assert np.array_equal(load_svmlight(path)[0].toarray(), X)
    first = path.read_bytes()
    assert suffix == "" or not first.startswith(b"1")
    dump_svmlight(X, [1, 2, 3], path)
    assert path.read_bytes() == first  # nothing of name or time in it
    assert os.listdir(tmp_path) == [path.name]


def test_an_open_file_stays_open(tmp_path):
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        dump_svmlight(np.eye(2), [1, 2], file)
        dump_svmlight(np.eye(2), [3, 4], file)
    assert load_svmlight(tmp_path / "a.gz")[1].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_failure_leaves_the_old_file(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(b"old")
    for error in (OSError(28, "No space left on device"), KeyboardInterrupt()):

        def fail(*args, error=error):
            raise error

        monkeypatch.setattr("cutplane.data.svmlight.write._texts", fail)
        with pytest.raises(type(error)):
            dump_svmlight(np.eye(2), [1, 2], path)
        assert path.read_bytes() == b"old" and os.listdir(tmp_path) == [path.name]


def test_names_near_the_limit_of_the_file_system(tmp_path):
    path = tmp_path / ("ä" * 120 + ".svm")  # 244 bytes
    dump_svmlight(np.eye(2), [1, 2], path)
    assert load_svmlight(path)[1].tolist() == [1, 2]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(PermissionError):
        dump_svmlight(np.eye(2), [1, 2], tmp_path / "a.svm")
    tmp_path.chmod(stat.S_IRWXU)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": [[1, np.nan], [0, 1]]}, "X must hold finite numbers, got nan in row 0, column 1"),
        (
            {"X": scipy.sparse.csr_array([[1, 2], [np.inf, 1]])},
            "X must hold finite numbers, got inf in row 1, column 0",
        ),
        ({"X": np.eye(2) * 1j}, "X must hold real numbers"),
        ({"X": np.array([["a", "b"], ["c", "d"]])}, "X must hold real numbers"),
        ({"X": np.ones(2)}, "X must have two dimensions"),
        ({"X": np.ones((0, 2)), "y": []}, "X has no rows"),
        ({"y": [1, np.nan]}, "y must hold finite numbers, got nan in row 1"),
        ({"y": [1]}, r"y must hold one number per row, 2; got shape \(1,\)"),
        ({"y": ["a", "b"]}, "y must hold numbers"),
        ({"qid": [1, -1]}, "qid must hold integers ≥ 0, got -1 in row 1"),
        ({"qid": [1.5, 1]}, r"qid must hold integers ≥ 0, got 1\.5 in row 0"),
        ({"qid": [1]}, r"qid must hold one number per row, 2; got shape \(1,\)"),
        ({"cost": [1, -0.5]}, r"cost must hold finite numbers ≥ 0, got -0\.5 in row 1"),
        ({"cost": [np.inf, 1]}, "cost must hold finite numbers ≥ 0, got inf in row 0"),
        ({"comment": "a\0b"}, "comment holds a NUL byte"),
    ],
)
def test_wrong_arguments(changes, message, tmp_path):
    arguments = {"X": np.eye(2), "y": [1, 2], "path_or_file": tmp_path / "a", **changes}
    with pytest.raises(ValueError, match=message):
        dump_svmlight(**arguments)
    assert os.listdir(tmp_path) == []


def test_things_that_are_no_files():
    with pytest.raises(TypeError, match="expected a path or a binary file to write to"):
        dump_svmlight(np.eye(2), [1, 2], 5)
