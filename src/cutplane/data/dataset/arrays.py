"""Arrays in files: written piece by piece, read as memory maps.

The format is NumPy's ``.npy``, so any program can read a file with ``numpy.load``. The header has a
fixed length. It is written last, when the length of the array is known. While the numbers are
written, their digest is computed.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import stat
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..files import naming

HEADER = 128
_PIECE = 1 << 24  # bytes per step where a whole file is read


@dataclass(frozen=True)
class ArrayRecord:
    """What the manifest says about a file."""

    dtype: str  # as numpy.dtype.str
    shape: tuple[int, ...]
    digest: str  # BLAKE2b of the numbers, hexadecimal

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)


def new_digest() -> hashlib.blake2b:
    """A new digest of the kind that all files of a data set use."""
    return hashlib.blake2b(digest_size=16)


def damaged(what: str) -> ValueError:
    """The error for a file of a data set that is not as it was written."""
    return ValueError(f"{what}: the data set is damaged; write it again")


def open_regular(path: Path) -> int:
    """Open a file of a data set for reading. It must be a regular file, which has a size."""
    # Without O_NONBLOCK, opening a pipe would wait for a process that writes into it.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        file = os.open(path, flags)
    except FileNotFoundError:
        raise damaged(f"{path} is missing") from None
    except OSError as error:
        raise ValueError(
            f"{path} cannot be opened ({error.strerror}); mend that, or write the data set again"
        ) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise damaged(f"{path} is not a regular file")
    return file


def header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The beginning of a .npy file of version 1.0."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    length = HEADER - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1) + b"\n"


class ArrayWriter:
    """Writes an array of unknown length; ``width`` is its number of columns, if it has any."""

    def __init__(self, path: Path, dtype: np.dtype | type, width: int | None = None) -> None:
        self._path = path
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self._width = width
        self._digest = new_digest()
        self.length = 0
        self._file = open(path, "w+b")  # noqa: SIM115 - closed by finish or close
        self._file.write(b"\0" * HEADER)

    def write(self, array: np.ndarray) -> None:
        """Append numbers, or rows."""
        data = np.ascontiguousarray(array, dtype=self.dtype)
        self.length += len(data)
        if data.size:
            view = data.reshape(-1).view(np.uint8).data
            with naming(self._path):
                self._file.write(view)
            self._digest.update(view)

    def rewrite(
        self, dtype: np.dtype | type, change: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> None:
        """Write all numbers so far again in another type, after ``change`` if that is given."""
        name = self._path.with_suffix(".new")
        new = ArrayWriter(name, dtype, self._width)
        try:
            with naming(self._path):
                self._file.flush()
            self._file.seek(HEADER)
            while piece := self._file.read(_PIECE):
                numbers = np.frombuffer(piece, self.dtype)
                new.write(numbers if change is None else change(numbers))
        except BaseException:
            new.close()
            raise
        self.close()
        os.replace(name, self._path)
        self.dtype, self._digest, self._file = new.dtype, new._digest, new._file

    def finish(self) -> ArrayRecord:
        """Complete the file, written through to the disk."""
        shape = (self.length,) if self._width is None else (self.length, self._width)
        with naming(self._path):
            self._file.seek(0)
            self._file.write(header(self.dtype.str, shape))
            self._file.flush()
            os.fsync(self._file.fileno())
            self.close()
        return ArrayRecord(self.dtype.str, shape, self._digest.hexdigest())

    def close(self) -> None:
        """Close the file, complete or not."""
        self._file.close()


class MappedArray:
    """A file of numbers, mapped into memory read-only.

    The map lives as long as any array that uses it. The file stays open, because advice to the
    system needs it. Type and shape of the file must be those of ``record``.
    """

    def __init__(self, path: Path, record: ArrayRecord) -> None:
        self.name = str(path)
        self._record = record
        self._size = HEADER + record.nbytes
        self._file = open_regular(path)
        self._close = weakref.finalize(self, os.close, self._file)
        self._changed = os.fstat(self._file).st_mtime_ns
        self.check_size()
        if os.read(self._file, HEADER) != header(record.dtype, record.shape):
            raise damaged(f"{path} does not begin as the manifest says")
        self.map = mmap.mmap(self._file, self._size, access=mmap.ACCESS_READ)
        flat = np.frombuffer(self.map, record.dtype, math.prod(record.shape), offset=HEADER)
        self.array = flat.reshape(record.shape)

    def check_size(self) -> None:
        """Refuse a file that has changed since it was opened.

        If the file has become shorter, a read behind its end would kill the process. If somebody
        has written to the file, earlier checks of its numbers are no longer valid.
        """
        if not self._close.alive:
            raise ValueError(f"{self.name} is closed; open the data set again")
        status = os.fstat(self._file)
        if status.st_size != self._size:
            raise ValueError(
                f"{self.name} has {status.st_size} bytes instead of {self._size}: it was cut off "
                "or changed; write the data set again"
            )
        if status.st_mtime_ns != self._changed:
            raise ValueError(f"{self.name} was changed while it was open; open the data set again")

    def verify(self) -> None:
        """Compare the digest. This reads the file directly, not through the map."""
        with open(self.name, "rb", buffering=0) as file:
            file.seek(HEADER)
            digest = hashlib.file_digest(file, new_digest)
        if digest.hexdigest() != self._record.digest:
            raise ValueError(
                f"{self.name} has been changed: its digest is not that of the manifest; "
                "write the data set again"
            )

    # -- advice to the system -----------------------------------------------------

    def will_need(self, first: int, last: int) -> None:
        """Tell the system that these bytes of the array are read soon, so that it reads ahead."""
        if hasattr(os, "posix_fadvise") and last > first:
            os.posix_fadvise(self._file, HEADER + first, last - first, os.POSIX_FADV_WILLNEED)

    def drop(self, first: int, last: int) -> None:
        """Tell the system that these bytes are not read soon, so that it can free their memory.

        Only full pages are freed. A page at the end of the bytes is freed with the bytes after it.
        """
        begin = (HEADER + first) // mmap.PAGESIZE * mmap.PAGESIZE
        end = (HEADER + last) // mmap.PAGESIZE * mmap.PAGESIZE
        if end <= begin or not hasattr(self.map, "madvise"):
            return
        self.map.madvise(mmap.MADV_DONTNEED, begin, end - begin)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file, begin, end - begin, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Close the file. The map is removed when the last array that uses it is gone."""
        self._close()
