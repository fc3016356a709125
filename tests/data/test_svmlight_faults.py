"""The faults of files, one by one: what is wrong, where, and what to do about it."""

from __future__ import annotations

import bz2
import gzip
import io
import logging
import lzma
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import cutplane.data.svmlight.read as svmlight
from cutplane.data.svmlight import iter_svmlight, load_svmlight


def load(text: bytes, **options):
    return load_svmlight(io.BytesIO(text), **options)


def rows(text: bytes, **options) -> list[list[float]]:
    return load(text, **options)[0].toarray().tolist()


def refuse(text: bytes, place: str, message: str, **options) -> None:
    with pytest.raises(ValueError) as caught:
        load(text, **options)
    assert str(caught.value).startswith(f"<file>:{place}: "), caught.value
    assert message in str(caught.value)


# -- 1 to 5: files as a whole -------------------------------------------------


@pytest.mark.parametrize("text", [b"", b"\n", b" \t\r\n\n", b"# only\n#comments", b"\xef\xbb\xbf"])
def test_01_no_examples(text, tmp_path):
    refuse(text, "1:1", "no examples")
    (tmp_path / "empty.svm").write_bytes(text)
    with pytest.raises(ValueError, match=r"empty\.svm:1:1: no examples"):
        load_svmlight(tmp_path / "empty.svm")
    with pytest.raises(ValueError, match="no examples"):
        list(iter_svmlight(io.BytesIO(text)))


def test_01_no_examples_in_a_compressed_file(tmp_path):
    (tmp_path / "a.svm.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "b.svm.gz").write_bytes(b"")
    for name in ("a.svm.gz", "b.svm.gz"):
        with pytest.raises(ValueError, match="no examples"):
            load_svmlight(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        b"1 1:2 3:4\n-1 2:5\n",
        b"1 1:2 3:4\n-1 2:5",
        b"1 1:2 3:4\r\n-1 2:5\r\n",
        b"1 1:2 3:4\r\n-1 2:5\r",
        b"1\t1:2\t3:4\n-1\t2:5\t\n",
        b"  1   1:2 \t 3:4  \n\n \t\n-1  2:5 \n\n",
        b"\xef\xbb\xbf1 1:2 3:4\n-1 2:5\n",
        b"# head\n1 1:2 3:4# c\n#\n-1 2:5 # 9:9\n# end",
    ],
)
def test_02_03_as_if_clean(text):
    X, y = load(text)
    assert X.toarray().tolist() == [[2, 0, 4], [0, 5, 0]]
    assert y.tolist() == [1, -1]


def test_03_the_mark_is_stripped_once_and_only_at_the_start():
    refuse(b"\xef\xbb\xbf\xef\xbb\xbf1 1:2\n", "1:1", "is not svmlight text")
    refuse(b"1 1:2\n\xef\xbb\xbf1 1:2\n", "2:1", "is not svmlight text")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_04_utf_16(encoding):
    refuse("1 1:2 3:4\n-1 2:5\n".encode(encoding), "1:1", "UTF-16 data; convert it to UTF-8")


TEXT = b"1 1:2 3:4\n-1 2:5\n"
COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_04_compressed_by_suffix(suffix, tmp_path):
    path = tmp_path / f"data.svm{suffix}"
    path.write_bytes(COMPRESS[suffix](TEXT))
    X, y = load_svmlight(path)
    assert X.toarray().tolist() == [[2, 0, 4], [0, 5, 0]] and y.tolist() == [1, -1]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_04_compressed_with_the_wrong_suffix(suffix, tmp_path):
    kind = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}[suffix]
    path = tmp_path / "data.svm"
    path.write_bytes(COMPRESS[suffix](TEXT))
    with pytest.raises(
        ValueError, match=rf"data\.svm:1:1: .* {kind} data; give its name the suffix"
    ):
        load_svmlight(path)
    refuse(COMPRESS[suffix](TEXT), "1:1", f"{kind} data")
    wrong = tmp_path / ("data.xz" if suffix == ".gz" else "data.gz")
    wrong.write_bytes(COMPRESS[suffix](TEXT))
    with pytest.raises(ValueError, match=f"it looks like {kind} data; rename it"):
        load_svmlight(wrong)
    plain = tmp_path / f"plain{suffix}"
    plain.write_bytes(TEXT)
    with pytest.raises(ValueError, match=f"but this is no {kind} file: it is not compressed"):
        load_svmlight(plain)
    twice = tmp_path / f"twice{suffix}"
    twice.write_bytes(COMPRESS[suffix](COMPRESS[suffix](TEXT)))
    with pytest.raises(ValueError, match=f"{kind} data"):
        load_svmlight(twice)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_04_damaged_compressed_files(suffix, tmp_path):
    data = COMPRESS[suffix](b"".join(b"1 %d:%d\n" % (k + 1, k) for k in range(3000)))
    path = tmp_path / f"data{suffix}"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="compressed data are damaged"):
        load_svmlight(path)
    damaged = bytearray(data)
    for k in range(len(data) // 2, len(data) // 2 + 40):
        damaged[k] ^= 0x5A
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"compressed data are damaged|:\d+:\d+: "):
        load_svmlight(path)


@pytest.mark.parametrize("seed", range(20))
def test_04_random_bytes(seed):
    with pytest.raises(ValueError, match=r"^<file>:\d+:\d+: .*(text|NUL|carriage)"):
        load(random.Random(seed).randbytes(5000))


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"PK\x03\x04", "zip"),
        (b"PAR1", "Parquet"),
        (b"\x93NUMPY", "NumPy"),
        (b"\x28\xb5\x2f\xfd", "Zstandard"),
        (b"\x80\x04\x95", "pickle"),
    ],
)
def test_04_other_formats(head, kind):
    refuse(head + bytes(range(100)), "1:1", f"{kind} data")


@pytest.mark.parametrize(
    "text", [b"1 1:2\n1 \0", b"1 1:2\n1 1:\0", b"1 1:2\n1 2\0:1", b"1 1:2\n1 # a\0", b"1 1:2\n\0"]
)
def test_05_nul(text):
    with pytest.raises(ValueError, match=r"^<file>:2:\d+: there is a NUL byte"):
        load(text)


# -- 6 to 9: values -----------------------------------------------------------


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-inf", "+Infinity", "nan(0x1)"])
def test_06_not_finite(value):
    refuse(f"1 1:1\n1 1:1 12:{value}\n".encode(), "2:10", f"value '{value}' is not finite")
    refuse(f"1 cost:{value}".encode(), "1:8", "is not finite")


@pytest.mark.parametrize("value", ["1e400", "-1e400", "1" * 400])
def test_07_too_large(value):
    refuse(f"1 1:1\n1 12:{value} 13:x\n".encode(), "2:6", "is beyond the largest float64")


def test_08_subnormal_numbers_are_kept():
    assert load(b"1 1:1e-320")[0].data.tolist() == [1e-320] != [0.0]


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("1_0", "write it without '_'"),
        ("0x10", "write it without '0x'"),
        ("1d3", "write the exponent with 'e'"),
        ("2,5", "the decimal mark is a point"),
        ("1e", "not a number"),
        ("1e+", "not a number"),
        (".", "not a number"),
        ("-", "not a number"),
        ("+-1", "not a number"),
        ("--1", "not a number"),
        ("1.2.3", "not a number"),
        ("1f", "not a number"),
        ("1e5.5", "not a number"),
        ("abc", "not a number"),
        ("0b1", "not a number"),
        ("1\x0b", "is not svmlight text"),
        ("１", "is not svmlight text"),
    ],
)
def test_09_not_a_number(value, remedy):
    column = "5" if remedy != "is not svmlight text" else "3"
    refuse(f"1 2:{value} 3:1".encode(), f"1:{column}", remedy)
    refuse(f"1 1:1 2:1\n{value} 3:1".encode(), "2:1", remedy)


# -- 10 to 15: indices --------------------------------------------------------


def test_10_negative_index():
    refuse(b"1 1:1 -3:2\n", "1:7", "index -3 is negative; indices start at 0 or 1")


def test_11_index_zero():
    refuse(b"1 1:1\n1 0:1 1:2\n", "2:3", "pass zero_based=True", zero_based=False)
    assert rows(b"1 0:1 1:2\n", zero_based=True) == [[1, 2]]
    assert rows(b"1 1:2\n", zero_based=True) == [[0, 2]]
    assert rows(b"1 1:2\n", zero_based=False) == [[2]]


@pytest.mark.parametrize(("text", "first"), [(b"1 1:1 3:1\n", 1), (b"1 1:1\n1 0:1 3:1\n", 0)])
def test_11_what_was_found_is_stated(text, first, caplog):
    with caplog.at_level(logging.INFO, "cutplane"):
        X, _ = load(text)
    assert X.shape[1] == 4 - first
    assert f"the smallest index is {first}, so indices are counted from {first}" in caplog.text
    assert f"zero_based={first == 0}" in caplog.text
    caplog.clear()
    load(text, zero_based=first == 0)
    assert not caplog.text


@pytest.mark.parametrize("index", [11, 2**31, 2**32 + 1, 2**63, 2**64 + 1, 10**30])
def test_12_beyond_max_features(index):
    text = f"1 1:1\n1 3:1 {index}:1".encode()
    message = f"index {index} counted from 1 is beyond max_features=10"
    refuse(text, "2:7", message, max_features=10, zero_based=False)
    if index > 11:
        refuse(text, "2:7", f"index {index} is beyond max_features=2147483647; correct it")


def test_12_before_allocating():
    tracemalloc.start()
    with pytest.raises(ValueError, match="max_features"):
        load(b"1 2147483648:1")
    X, _ = load(b"1 2147483647:1", n_jobs=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert X.shape == (1, 2**31 - 1) and X.indices.dtype == np.int32
    assert peak < 200e6
    refuse(b"1 2147483647:1", "1:3", "counted from 0", zero_based=True)
    refuse(b"1 2147483647:1\n1 0:1", "1:3", "counted from 0")
    refuse(b"1 1:1\n1 10:1\n1 0:1", "2:3", "index 10 counted from 0", max_features=10)


def test_13_repeated_index():
    refuse(b"1 1:1\n1 1:1 5:1 5:1", "2:11", "index 5 occurs twice in this row; keep one")
    refuse(b"1 1:1 2:1\n# x\n1 5:1 3:1 05:1 6:1", "3:11", "index 5 occurs twice", sort=True)
    refuse(b"1 # a\r2\n1 5:1 3:1 5:1 # 5:1", "2:11", "index 5 occurs twice", sort=True)


def test_14_indices_that_do_not_increase():
    text = b"1 1:1\n-1 7:1 5:0.12345678901234567890123 6:2\n1 2:1\n"
    refuse(text, "2:8", "index 5 follows 7; indices must increase (or pass sort=True)")
    X, _ = load(text, sort=True)
    assert X.indices.tolist() == [0, 4, 5, 6, 1]
    assert X.data.tolist() == [1, 0.12345678901234567890123, 2, 1, 1]
    assert X.has_sorted_indices


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("1:", "'1:' has no value after ':'"),
        (":2", "':2' has no index before ':'"),
        (":", "':' has no index"),
        ("1", "'1' has no ':'; expected index:value"),
        ("1:2:3", "'1:2:3' has more than one ':'"),
        ("1.5:2", "index '1.5' is not a whole number"),
        ("+1:2", "index '+1' is not a whole number"),
        ("a:2", "index 'a' is not a whole number"),
        ("sid:2", "index 'sid' is not a whole number"),
        ("qid", "'qid' has no ':'"),
        ("QID:2", "index 'QID' is not a whole number"),
        ("1: 2", "'1:' has no value"),
        ("x" * 100, "'" + "x" * 40 + "…' has no ':'"),
    ],
)
def test_15_broken_pairs(token, message):
    refuse(f"1 1:1\n1 {token} 7:1".encode(), "2:3", message)


# -- 16 to 23: labels and queries ---------------------------------------------


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("spam", "label 'spam' is not a number; labels are numbers: give each class one"),
        ("nan", "label 'nan' is not finite"),
        ("inf", "label 'inf' is not finite"),
        ("1e400", "label '1e400' is beyond the largest float64"),
        ("1,2", "several labels per row cannot be read"),
        ("3:0.5", "the row begins with '3:0.5'; a label must come first"),
        ("qid:1", "a label must come first"),
        ("1x", "label '1x' is not a number"),
    ],
)
def test_16_bad_labels(label, message):
    refuse(f"1 1:1\n  {label} 1:1".encode(), "2:3", message)


def test_17_label_only_rows():
    X, y = load(b"1\n2 # c\n3 1:1 2:1\n-4.5\n")
    assert X.toarray().tolist() == [[0, 0], [0, 0], [1, 1], [0, 0]]
    assert y.tolist() == [1, 2, 3, -4.5]
    X, y = load(b"1\n2\n")
    assert X.shape == (2, 0) and y.tolist() == [1, 2]


@pytest.mark.parametrize("size", [8, 1 << 20])
def test_18_qid_on_some_lines_only(size, monkeypatch):
    monkeypatch.setattr(svmlight, "PIECE", size)
    for qid in (False, True, "auto"):
        text = b"1 qid:1 1:1\n# c\n\n1 1:1 2:1\n1 qid:1 1:1\n"
        refuse(text, "4:1", "a qid on some lines only", qid=qid)
    refuse(b"1 1:1\n1 1:1 qid:1\n", "2:1", "a qid on some lines only")


def test_18_no_qid_at_all():
    refuse(b"# c\n1 1:1\n", "2:1", "there is no qid; pass qid=False", qid=True)
    assert load(b"1 1:1\n", qid="auto")[2] is None
    with pytest.raises(ValueError, match="there is no qid"):
        next(iter_svmlight(io.BytesIO(b"1 1:1\n"), qid=True))


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        ("-1", "qid '-1' is negative"),
        ("1.5", "qid '1.5' is not a whole number"),
        ("1e3", "is not a whole number"),
        ("", "qid '' is not a whole number"),
        ("a", "qid 'a' is not a whole number"),
        ("9223372036854775808", "is beyond the largest 64-bit integer"),
        ("18446744073709551617", "is beyond the largest 64-bit integer"),
        ("1" * 100, "is beyond the largest 64-bit integer"),
    ],
)
def test_19_bad_qids(qid, message):
    refuse(f"1 qid:1 1:1\n1 qid:{qid} 1:1".encode(), "2:3", message)


def test_19_largest_qid():
    _, _, qid = load(b"1 qid:9223372036854775807\n1 qid:0", qid=True)
    assert qid.tolist() == [2**63 - 1, 0] and qid.dtype == np.int64


def test_20_qid_and_cost_anywhere():
    text = b"1 1:1 qid:3 2:1\n2 1:1 cost:2 2:1 qid:4\n3 cost:0.5 qid:5 1:1\n4 qid:6\n"
    X, _, qid, cost = load(text, qid=True, cost=True)
    assert qid.tolist() == [3, 4, 5, 6] and cost.tolist() == [1, 2, 0.5, 1]
    assert X.toarray().tolist() == [[1, 1], [1, 1], [1, 0], [0, 0]]
    refuse(b"1 qid:1 1:1 qid:1", "1:13", "a second qid in one row; keep one")
    refuse(b"1 cost:1 1:1 cost:1", "1:14", "a second cost in one row; keep one")


def test_20_what_is_left_out_is_stated(caplog):
    text = b"1 qid:1 1:1 cost:2\n1 qid:1 1:1\n"
    with caplog.at_level(logging.INFO, "cutplane"):
        load(text)
    assert "1 of 2 rows have a cost:, which is left out; pass cost=True" in caplog.text
    assert "qid: is left out" in caplog.text


@pytest.mark.parametrize("cost", ["-1", "-0.1234567890123456789012", "nan", "1e400", "", "x"])
def test_20_bad_costs(cost):
    refuse(f"1 cost:{cost} 1:1".encode(), "1:8", "cost '")


def test_21_22_23_queries_come_as_they_are():
    """Grouping, single items and ties are the ranking's business; the reader changes nothing."""
    _, y, qid = load(b"1 qid:2\n2 qid:1\n3 qid:2\n3 qid:7\n", qid=True)
    assert qid.tolist() == [2, 1, 2, 7] and y.tolist() == [1, 2, 3, 3]


# -- 24: one long line --------------------------------------------------------


@pytest.mark.parametrize("kind", ["features", "comment", "blanks", "disorder"])
def test_24_one_long_line_takes_its_result_and_no_more(kind, tmp_path, monkeypatch):
    """64 pieces long; the 1 GB of the fault list are in the benchmarks."""
    monkeypatch.setattr(svmlight, "PIECE", 1 << 16)
    count = 700_000
    order = range(1, count + 1) if kind != "disorder" else range(count, 0, -1)
    parts = {
        "features": b"1 " + b" ".join(b"%d:1" % k for k in order),
        "comment": b"1 1:1 #" + b"x" * 6_000_000,
        "blanks": b"1 1:1" + b" " * 6_000_000 + b"2:2",
        "disorder": b"1 " + b" ".join(b"%d:1" % k for k in order),
    }
    path = tmp_path / "long.svm"
    path.write_bytes(parts[kind] + b"\n-1 1:3\n")
    tracemalloc.start()
    X, y = load_svmlight(path, n_jobs=1, sort=kind == "disorder")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert X.shape[0] == 2 and y.tolist() == [1, -1] and X[1, 0] == 3
    assert X.nnz == {"features": count + 1, "disorder": count + 1, "comment": 2, "blanks": 3}[kind]
    assert X.has_sorted_indices and (np.diff(X.indices[:-1]) > 0).all()
    result = X.data.nbytes + X.indices.nbytes
    sorting = 4 if kind == "disorder" else 1
    assert peak < 1.3 * sorting * result + 12e6  # 12 MB: pieces


def test_24_a_token_without_end(monkeypatch):
    monkeypatch.setattr(svmlight, "PIECE", 1000)
    with pytest.raises(ValueError, match=r"<file>:2:7: more than 65536 characters without a blank"):
        load(b"1 1:1\n1 1:1 " + b"0" * 200_000)


@pytest.mark.parametrize("place", ["2:3", "2:11", "3:1"])
def test_24_places_in_long_lines(place, monkeypatch):
    monkeypatch.setattr(svmlight, "PIECE", 4)
    text = {
        "2:3": b"1 1:1\n1 x 2:1\n",
        "2:11": b"1 1:1\n1 1:1 2:1 2:1 3:1\n",
        "3:1": b"1 1:1\n1 1:1 2:1 3:1 4:1 # long\nx\n",
    }[place]
    with pytest.raises(ValueError, match=f"^<file>:{place}: "):
        load(text)


# -- 25 to 27 -----------------------------------------------------------------


def test_25_comma_decimal_locale(tmp_path):
    """In a process whose C library writes 0,5."""
    if not Path("/usr/bin/localedef").exists():
        pytest.skip("no localedef")
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")],
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("no German locale")
    code = (
        "import io, locale\n"
        "locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')\n"
        "assert locale.localeconv()['decimal_point'] == ','\n"
        "from cutplane.data.svmlight import *\n"
        "X, y = load_svmlight(io.BytesIO(b'0.5 1:2.25 2:0.12345678901234567890123'))\n"
        "target = io.BytesIO(); dump_svmlight(X, y, target)\n"
        "print(target.getvalue().decode(), end='')\n"
        "try: load_svmlight(io.BytesIO(b'1 1:2,5'))\n"
        "except ValueError as error: print(error)\n"
    )
    environment = {**os.environ, "LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "0.5 1:2.25 2:0.12345678901234568"
    assert "the decimal mark is a point" in second


def test_26_unseen_features(caplog):
    text = b"1 1:1 4:1\n1 2:1 3:1 5:1\n"
    refuse(
        text,
        "1:7",
        "index 4 is beyond n_features=3; raise it, or pass unseen='ignore'",
        n_features=3,
    )
    X, _ = load(text, n_features=3, unseen="ignore")
    assert X.toarray().tolist() == [[1, 0, 0], [0, 1, 1]]
    assert "2 values of features beyond n_features=3 are left out" in caplog.text
    refuse(
        b"1 1:1 9:1", "1:7", "beyond max_features=8", n_features=3, unseen="ignore", max_features=8
    )
    with pytest.raises(ValueError, match="unseen='ignore' needs n_features"):
        load(text, unseen="ignore")


def test_26_unseen_features_where_the_first_index_is_found_out(caplog):
    text = b"1 1:1 3:1\n1 2:1\n1 0:1\n"
    refuse(text, "1:7", "index 3 counted from 0 is beyond n_features=3", n_features=3)
    X, _ = load(text, n_features=3, unseen="ignore")
    assert X.toarray().tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert "1 values of features beyond n_features=3 are left out" in caplog.text


def test_27_fewer_features_are_padded():
    assert rows(b"1 1:1\n", n_features=4) == [[1, 0, 0, 0]]
    chunks = list(iter_svmlight(io.BytesIO(b"1 1:1\n1 3:1\n"), rows=1, n_features=4))
    assert [chunk[0].shape for chunk in chunks] == [(1, 4), (1, 4)]


def test_carriage_returns_alone():
    refuse(b"1 1:1\r2 1:1\r", "1:6", "a carriage return inside a line; lines end in")


def test_the_first_mistake_is_reported_whatever_the_pieces(monkeypatch):
    text = b"".join(b"1 1:1 2:%d\n" % k for k in range(50)) + b"1 x\n" + b"y\n" * 50
    for size in (1, 9, 50, 1000):
        monkeypatch.setattr(svmlight, "PIECE", size)
        for n_jobs in (1, 2):
            refuse(text, "51:3", "'x' has no ':'", n_jobs=n_jobs)
