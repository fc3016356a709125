"""What files on disk cost: sequential reading, pages in memory, memory of a process by kind."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ..datasets import CACHE_VARIABLE

_PIECE = 1 << 24


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A folder for large files, which is removed at the end."""
    parent = os.environ.get(CACHE_VARIABLE)
    with tempfile.TemporaryDirectory(prefix="cutplane-files-", dir=parent) as folder:
        yield Path(folder)


def free_bytes() -> int:
    """Free bytes on the disk of the workspace."""
    return shutil.disk_usage(os.environ.get(CACHE_VARIABLE) or tempfile.gettempdir()).free


def files_of(folder: Path) -> list[Path]:
    """The files that a pass over the rows of a data set reads."""
    return [file for name in ("values", "indices") if (file := folder / f"{name}.npy").exists()]


def forget(files: list[Path]) -> None:
    """Drop the pages of files from memory, so that the next reader reads the disk."""
    if not hasattr(os, "posix_fadvise"):
        return
    for file in files:
        with open(file, "rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def sequential_seconds(files: list[Path]) -> float:
    """Seconds to read files from the disk, from beginning to end, into one buffer."""
    forget(files)
    buffer = bytearray(_PIECE)
    begin = time.perf_counter()
    for file in files:
        with open(file, "rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass
    seconds = time.perf_counter() - begin
    forget(files)
    return seconds


def cached_bytes(files: list[Path]) -> int | None:
    """Bytes of files in the page cache, mapped or not; None if the system does not tell."""
    import ctypes
    import mmap

    import numpy as np

    try:
        mincore = ctypes.CDLL(None, use_errno=True).mincore
    except (AttributeError, OSError):
        return None
    total = 0
    for file in files:
        with open(file, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view:
                start = np.frombuffer(view, np.uint8)
                pages = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
                failed = mincore(
                    ctypes.c_void_p(start.ctypes.data),
                    ctypes.c_size_t(size),
                    ctypes.c_void_p(pages.ctypes.data),
                )
                del start
        if failed:
            return None
        total += int(np.count_nonzero(pages & 1)) * mmap.PAGESIZE
    return total


class MemoryWatch:
    """The largest anonymous and mapped memory of this process inside ``with``, by sampling.

    The system can take back pages of mapped files at any moment, but no anonymous memory.
    """

    KINDS = ("RssAnon", "RssFile", "VmRSS")

    def __init__(self, every: float = 0.05) -> None:
        self._every = every
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.largest = dict.fromkeys(self.KINDS, 0)

    def _watch(self) -> None:
        while not self._end.wait(self._every):
            self._look()

    def _look(self) -> None:
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/status").read_text().splitlines():
                kind, _, rest = line.partition(":")
                if kind in self.largest:
                    self.largest[kind] = max(self.largest[kind], 1024 * int(rest.split()[0]))

    def __enter__(self) -> MemoryWatch:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()


def bytes_from_disk() -> int | None:
    """The bytes that this process has read from the disk so far."""
    try:
        for line in Path("/proc/self/io").read_text().splitlines():
            if line.startswith("read_bytes:"):
                return int(line.split()[1])
    except OSError:
        pass
    return None
