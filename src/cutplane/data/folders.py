"""Folders that appear complete or not at all.

A folder is built under a temporary name beside the one it shall have, written through to the disk
and then renamed. A process that is killed meanwhile leaves the temporary folder behind; the next
one that writes to the same name removes it. Whether its owner still lives is told by a lock that
the system releases with the process.
"""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .array_file import naming

try:
    import fcntl
except ImportError:  # Windows: what was left behind stays
    fcntl = None  # type: ignore[assignment]

_LOCK = "lock"


@contextmanager
def replacing_folder(
    path: Path, *, overwrite: bool, is_ours: Callable[[Path], bool]
) -> Iterator[Path]:
    """A new, empty folder that takes the place of ``path`` once the block is done.

    Parameters
    ----------
    path : Path
    overwrite : bool
        Whether something may be there already.
    is_ours : callable
        Whether a folder is one that may be replaced.
    """
    _check_free(path, overwrite, is_ours)
    prefix = f".{path.name[:40]}."
    _sweep(path.parent, prefix)
    token = secrets.token_hex(4)
    building = path.with_name(f"{prefix}{token}.tmp")
    try:
        building.mkdir()
        with _locked(building):
            yield building
            _check_free(path, overwrite, is_ours)
            with naming(building):
                sync_folder(building)
                _move(building, path, path.with_name(f"{prefix}{token}.old.tmp"))
                (path / _LOCK).unlink(missing_ok=True)
                sync_folder(path.parent)
    except OSError as error:  # nobody knows the folder by that name
        if error.errno is None or not str(error.filename).startswith(str(building)):
            raise
        raise OSError(error.errno, f"cannot write: {error.strerror}", str(path)) from None
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _move(building: Path, path: Path, aside: Path) -> None:
    """Rename the new folder; an old one is moved aside first and removed after."""
    if not path.exists():
        os.rename(building, path)
        return
    os.rename(path, aside)
    try:
        os.rename(building, path)
    except BaseException:
        os.rename(aside, path)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _check_free(path: Path, overwrite: bool, is_ours: Callable[[Path], bool]) -> None:
    if not path.exists() and not path.is_symlink():
        return
    if not overwrite:
        raise ValueError(f"{path} exists; choose another name, or pass overwrite=True")
    if not path.is_dir() or path.is_symlink() or not (is_ours(path) or not any(path.iterdir())):
        raise ValueError(f"{path} is not a data set, so it is not overwritten; choose another name")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    with open(folder / f"{_LOCK}.new", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # before anybody can find it
        os.rename(folder / f"{_LOCK}.new", folder / _LOCK)
        yield


def _sweep(parent: Path, prefix: str) -> None:
    """Remove what processes that are no more have left behind."""
    if fcntl is None:
        return
    for folder in parent.glob(f"{glob.escape(prefix)}*.tmp"):
        try:
            with open(folder / _LOCK, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # in use, or without a lock
            continue


def sync_folder(folder: Path) -> None:
    """Write the names in a folder through to the disk."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
