from __future__ import annotations

import argparse
import os
import stat
import threading

import pytest

from cutplane.cli.errors import CommandError
from cutplane.cli.outputs import output_file, output_folder
from cutplane.cli.parser import positive_number, seed_number


def test_output_writes_a_new_file(tmp_path):
    with output_file(tmp_path / "a.bin") as file:
        file.write(b"new")
        assert not (tmp_path / "a.bin").exists()  # not before it is complete
    assert (tmp_path / "a.bin").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, error):
    (tmp_path / "a.bin").write_bytes(b"old")
    with pytest.raises(error), output_file(tmp_path / "a.bin") as file:
        file.write(b"half of the n")
        raise error
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_readers_never_see_a_part(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(100_000))
    done = threading.Event()
    seen = set()

    def read():
        while not done.is_set():
            seen.add(len(path.read_bytes()))

    reader = threading.Thread(target=read)
    reader.start()
    for k in range(1, 20):
        with output_file(path) as file:
            for _ in range(10):
                file.write(bytes(10_000 * (1 + k % 2)))
    done.set()
    reader.join()
    assert seen <= {100_000, 200_000}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_files_have_the_usual_permissions(tmp_path):
    with output_file(tmp_path / "ours"):
        pass
    (tmp_path / "usual").touch()
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "usual").stat().st_mode
    )


def test_output_folder_is_made_with_its_parents_and_stays_empty(tmp_path):
    folder = output_folder(tmp_path / "a" / "b")
    assert folder.is_dir() and os.listdir(folder) == []
    assert output_folder(folder) == folder


def test_output_folder_says_why_it_cannot_be(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match="file is a file; the output goes into a folder"):
        output_folder(tmp_path / "file")
    with pytest.raises(CommandError, match=r"cannot write to .*below: Not a directory"):
        output_folder(tmp_path / "file" / "below")

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(CommandError, match=r"cannot write to .*: Permission denied"):
        output_folder(tmp_path)


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "x", ""])
def test_not_positive(text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be a number above 0"):
        positive_number(text)


@pytest.mark.parametrize("text", ["-1", "1.5", "x", "", "4294967296", "²"])
def test_not_a_seed(text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be an integer from 0"):
        seed_number(text)


def test_numbers():
    assert positive_number("1e-3") == 1e-3
    assert seed_number("42") == 42
