"""Write files and folders without the risk of losing old ones; read files that may be compressed.

A file or folder appears under its name when it is complete, or not at all. A folder is built under
a temporary name beside its final one, written through to the disk and then renamed. A process that
is killed in the middle leaves its temporary folder behind. The next process that writes to the same
name removes this folder, unless its owner still runs: the owner holds a lock, which the system
releases when the process ends.

A source may be a path, ``-`` for standard input or a binary file. Files whose names end in .gz,
.bz2 or .xz are decompressed. If the content of a file does not fit its name, an error says what
the content looks like.
"""

from __future__ import annotations

import bz2
import errno
import glob
import gzip
import lzma
import os
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

try:
    import fcntl
except ImportError:  # Windows has no such locks, so folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

_LOCK = "lock"

# -- writing ------------------------------------------------------------------


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new binary file that replaces the file ``path`` when the block is done.

    Other processes see the old file or the new one, never a part of a file. If the block fails, the
    old file stays and nothing else is left behind. A link stays a link: the file it leads to is
    replaced. The new file has the mode and owner of the old one. A pipe, a device or an open
    descriptor such as ``/dev/stdout`` cannot be replaced, so the block writes to it directly.
    """
    if is_special(path):
        with _written_directly(path) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    with temporary(target) as (name, file):
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        os.replace(name, target)


def is_special(path: Path) -> bool:
    """Whether there is something at ``path`` that is neither a regular file nor a folder."""
    if descriptor_of(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def descriptor_of(path: Path) -> int | None:
    """The open descriptor of this process that a path names: 1 for ``/dev/stdout``."""
    for _ in range(40):  # links in a row, at most
        folder = os.path.realpath(path.parent)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd") and path.name.isdigit():
            return int(path.name)
        try:
            path = Path(folder) / os.readlink(path)
        except OSError:  # no link
            return None
    return None


@contextmanager
def _written_directly(path: Path) -> Iterator[BinaryIO]:
    descriptor = descriptor_of(path)
    if descriptor == 1 and sys.stdout is not None:
        sys.stdout.flush()
    # A copy of a descriptor writes where the descriptor stands. Opening the path anew would write
    # at the beginning of the file.
    with open(path if descriptor is None else os.dup(descriptor), "wb") as file:
        yield file


def check_writable(path: Path) -> None:
    """Raise the OSError that writing to ``path`` would raise, without changing the file."""
    if not is_special(path):
        with temporary(Path(os.path.realpath(path))):
            return
    if descriptor_of(path) is None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


@contextmanager
def temporary(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file beside ``path``, with the mode and owner of ``path`` if that exists.

    The file is removed at the end, unless the block has renamed it.
    """
    # Part of the name only: the whole name and the suffix might be longer than a name may be.
    name = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.tmp")
    old = os.stat(path) if path.exists() else None
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    # mkstemp would make a file that only its owner can read.
    with open(name, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        try:
            if old is not None:
                if hasattr(os, "chown"):
                    with suppress(PermissionError):  # only root may give a file to another owner
                        os.chown(name, old.st_uid, old.st_gid)
                os.chmod(name, mode)
            yield name, file
        finally:
            try:
                file.close()  # Windows deletes closed files only
            finally:  # close writes the rest of the buffer, so it fails if the disk is full
                name.unlink(missing_ok=True)


@contextmanager
def output(target: Any) -> Iterator[BinaryIO]:
    """A binary file to write to: a path, compressed by its suffix, ``-`` or an open file.

    The file of a path is replaced when everything is written, see :func:`replacing`. Compressed
    files hold neither a name nor a time, so the same content gives the same bytes.
    """
    if not isinstance(target, str | os.PathLike):
        if not hasattr(target, "write"):
            raise TypeError(f"expected a path or a binary file to write to, got {target!r}")
        yield target
        return
    if target == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    with replacing(path) as file:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed:
                yield cast(BinaryIO, compressed)
        elif path.suffix in _SUFFIXES:
            with _OPEN[_SUFFIXES[path.suffix]](file, "wb") as compressed:
                yield compressed
        else:
            yield file


# -- folders ------------------------------------------------------------------


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give this file's name to system errors that name no file, such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def replacing_folder(
    path: Path, *, overwrite: bool, is_ours: Callable[[Path], bool]
) -> Iterator[Path]:
    """A new, empty folder that replaces ``path`` when the block is done.

    Without ``overwrite`` it is an error if ``path`` exists. ``is_ours`` tells whether an old folder
    may be replaced.
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
    except OSError as error:  # name the path that the user knows, not the temporary folder
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
        fcntl.flock(file, fcntl.LOCK_EX)  # before another process can see a lock without an owner
        os.rename(folder / f"{_LOCK}.new", folder / _LOCK)
        yield


def _sweep(parent: Path, prefix: str) -> None:
    """Remove temporary folders whose processes have ended."""
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


# -- reading ------------------------------------------------------------------

_SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
_KINDS = {kind: suffix for suffix, kind in _SUFFIXES.items()}
_OPEN: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}

# The first bytes of other kinds of files.
_SIGNATURES = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"PK\x03\x04": "zip",
    b"PAR1": "Parquet",
    b"\x93NUMPY": "NumPy",
    b"\x89HDF": "HDF5",
    b"\x80\x04\x95": "pickle",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def _kind(head: bytes) -> str | None:
    """The probable kind of a file that begins with ``head``; None for plain text."""
    for signature, kind in _SIGNATURES.items():
        if head.startswith(signature):
            return kind
    # UTF-16 without a byte order mark: every other byte of ASCII text is zero.
    odd, even = any(head[1:64:2]), any(head[:64:2])
    if len(head) >= 4 and odd != even:
        return "UTF-16"
    control = sum(byte < 32 and byte not in b"\t\n\r" for byte in head)
    return "binary" if control > len(head) // 32 + 1 else None


def check_is_text(name: str, head: bytes) -> None:
    """Refuse content that is not plain text; the message says what it is and what to do."""
    kind = _kind(head)
    if kind is None:
        return
    if kind == "UTF-16":
        remedy = "convert it to UTF-8, for instance with iconv -f UTF-16 -t UTF-8"
    elif kind in _KINDS:
        remedy = f"give its name the suffix {_KINDS[kind]}, or decompress it first"
    elif kind in ("Zstandard", "zip"):
        remedy = "decompress it first"
    else:
        remedy = "convert it to text first"
    raise ValueError(f"{name}:1:1: this is not plain text but {kind} data; {remedy}")


@dataclass(frozen=True)
class Input:
    """A binary file that is open for reading, and what to call it in messages."""

    file: BinaryIO
    name: str
    size: int | None  # bytes of content, if that is known before reading
    compressed: int | None = None  # bytes before decompression, if it is a compressed file

    def read_into(self, buffer: memoryview) -> int:
        """Fill the buffer, or less at the end of the content; returns the number of bytes."""
        filled = 0
        while filled < len(buffer):
            count = self._read_some(buffer[filled:])
            if not count:
                break
            filled += count
        return filled

    def read_all(self) -> bytes:
        """The whole content."""
        content, piece = bytearray(), bytearray(1 << 20)
        while count := self.read_into(memoryview(piece)):
            content += piece[:count]
        return bytes(content)

    def _read_some(self, buffer: memoryview) -> int:
        try:
            if hasattr(self.file, "readinto"):
                count = self.file.readinto(buffer)
                if count is None:  # no bytes yet, which is not the end of the file
                    raise ValueError(f"{self.name} is in non-blocking mode; it cannot be read so")
                return count
            data = self.file.read(len(buffer))
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            # An OSError without errno comes from gzip or bz2, not from the system.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ValueError(f"{self.name}: the compressed data are damaged: {error}") from None
        if isinstance(data, str):
            raise TypeError(f"{self.name} is open as text; open it in binary mode ('rb')")
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def opened(source: Any) -> Iterator[Input]:
    """Open a path, decompressed by its suffix, ``-`` for standard input, or an open file."""
    if not isinstance(source, str | os.PathLike):
        if not hasattr(source, "read"):
            raise TypeError(f"expected a path or a binary file, got {source!r}")
        name = getattr(source, "name", None)
        yield Input(source, name if isinstance(name, str) else "<file>", None)
        return
    if source == "-":
        yield Input(sys.stdin.buffer, "<stdin>", None)
        return
    path = Path(source)
    with open(path, "rb") as raw, ExitStack() as inner:
        kind = _SUFFIXES.get(path.suffix.lower())
        size = os.fstat(raw.fileno()).st_size
        if kind is None:
            # Reads into our buffer, which is larger than this file's, bypass this file's buffer.
            yield Input(cast(BinaryIO, raw), str(path), size or None)
            return
        head = raw.peek(6)[:6]
        if head and _kind(head) != kind:
            looks = _kind(head)
            likely = f"it looks like {looks} data" if looks else "it is not compressed"
            raise ValueError(
                f"{path}: the name ends in {path.suffix}, but this is no {kind} file: {likely}; "
                "rename it"
            )
        plain: Any = _OPEN[kind](raw, "rb")
        yield Input(inner.enter_context(plain), str(path), None, size)
