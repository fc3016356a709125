"""A file of a JSON header and arrays. No pickle: reading one runs nothing and imports nothing.

    magic       8 bytes, as PNG's: shows copies that changed the ends of lines
    version     uint32
    length      uint64, bytes of the header
    digest      32 bytes, SHA-256 of the three above and the header
    header      JSON in UTF-8: {"kind", "writer", "content", "arrays"}
    arrays      one after the other, each begins at a multiple of 64 bytes, zeros between

All numbers are little-endian. The header lists of each array its type, its number of elements,
where it starts and its own SHA-256, so every byte of the file is covered, and the header alone
can be read and trusted. Sizes must add up to that of the file before memory is taken for
them; from a pipe memory is taken as the bytes come.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.files import Input, opened, output

MAGIC = b"\x89CUT\r\n\x1a\n"
VERSION = 1
PREAMBLE = struct.Struct("<8sIQ32s")
ALIGNMENT = 64
PIECE = 1 << 20
MOST_HEADER = 1 << 31
DTYPES = frozenset(
    ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
)
PICKLE = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


@dataclass(frozen=True)
class Entry:
    """What the header says of an array: its type, elements, first byte in the file, SHA-256."""

    dtype: np.dtype
    count: int
    start: int
    digest: str

    @property
    def size(self) -> int:
        """Bytes."""
        return self.count * self.dtype.itemsize


@dataclass(frozen=True)
class Header:
    """What is known of a file from its header.

    Attributes
    ----------
    name : str
        Of the file, for messages.
    version : int
        Of the format.
    kind : str
    writer : str
        Program and version that wrote it.
    content : any
        The values, in JSON's types.
    arrays : tuple of Entry
    length : int
        Bytes up to the end of the header.
    digest : str
        SHA-256 of the header, which has those of the arrays: identifies the content.
    """

    name: str
    version: int
    kind: str
    writer: str
    content: Any
    arrays: tuple[Entry, ...]
    length: int
    digest: str

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self.arrays[-1].start + self.arrays[-1].size if self.arrays else self.length


@dataclass(frozen=True)
class Content:
    """A file's header and its arrays, flat."""

    header: Header
    arrays: tuple[np.ndarray, ...]


# -- writing ------------------------------------------------------------------


def write(target: Any, kind: str, content: Any, arrays: Sequence[np.ndarray]) -> None:
    """Write a file, which appears under its name when it is complete.

    Parameters
    ----------
    target : path, '-' or binary file
    kind : str
    content : JSON's types
    arrays : sequence of ndarray
        Stored flat, in the order of their memory; of a type in DTYPES but for the byte order.
    """
    flat = [_little_endian(array) for array in arrays]
    entries, header = _header(kind, content, flat)
    head = PREAMBLE.pack(MAGIC, VERSION, len(header), b"")[: -hashlib.sha256().digest_size]
    preamble = head + hashlib.sha256(head + header).digest()
    try:
        with output(target) as file:
            file.write(preamble + header)
            position = len(preamble) + len(header)
            for entry, array in zip(entries, flat, strict=True):
                file.write(bytes(entry.start - position))
                file.write(array.data.cast("B") if array.size else b"")
                position = entry.start + entry.size
    except OSError as error:  # of a temporary file beside the target
        if error.errno is None or isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, f"cannot write: {error.strerror}", str(target)) from None


def _little_endian(array: np.ndarray) -> np.ndarray:
    array = np.ravel(array, order="K")
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in DTYPES:
        raise ValueError(f"arrays of type {array.dtype} cannot be stored")
    return np.ascontiguousarray(array, dtype=dtype)


def _header(kind: str, content: Any, arrays: Sequence[np.ndarray]) -> tuple[list[Entry], bytes]:
    """Where the arrays are, and the header that says so."""
    from .. import __version__

    digests = [hashlib.sha256(array.data).hexdigest() for array in arrays]
    first = ALIGNMENT
    while True:  # where the arrays start depends on the length of the text that says it
        entries, position = [], first
        for array, digest in zip(arrays, digests, strict=True):
            position += -position % ALIGNMENT
            entries.append(Entry(array.dtype, array.size, position, digest))
            position += array.nbytes
        text = json.dumps(
            {
                "kind": kind,
                "writer": f"cutplane {__version__}",
                "content": content,
                "arrays": [
                    {"dtype": e.dtype.str, "count": e.count, "start": e.start, "sha256": e.digest}
                    for e in entries
                ],
            },
            allow_nan=False,
            separators=(",", ":"),
        ).encode()
        end = PREAMBLE.size + len(text)
        if end <= first:
            return entries, text + b" " * (first - end if arrays else 0)
        first = end + -end % ALIGNMENT


# -- reading ------------------------------------------------------------------


def read_header(source: Any) -> Header:
    """Read the header of a file, and check that its sizes fit the file.

    Parameters
    ----------
    source : path, '-' or binary file
    """
    with opened(source) as file:
        return _read_header(file)


def read(source: Any) -> Content:
    """Read a whole file and check all of it.

    Parameters
    ----------
    source : path, '-' or binary file
    """
    with opened(source) as file:
        header = _read_header(file)
        position = header.length
        arrays = []
        for number, entry in enumerate(header.arrays):
            if any(_read_exactly(file, entry.start - position)):
                raise damaged(file.name, f"bytes before array {number} are not zero")
            data = _read_exactly(file, entry.size)
            if hashlib.sha256(data).hexdigest() != entry.digest:
                raise damaged(file.name, f"array {number} does not fit its SHA-256")
            array = np.frombuffer(data, dtype=entry.dtype)
            if entry.dtype == np.bool_ and np.any(array.view(np.uint8) > 1):
                raise damaged(file.name, f"array {number} has truth values other than 0 and 1")
            arrays.append(array.astype(entry.dtype.newbyteorder("="), copy=False))
            position = entry.start + entry.size
        if file.read_into(memoryview(bytearray(1))):
            raise damaged(file.name, "there is more after its end")
        return Content(header, tuple(arrays))


def damaged(name: str, cause: str) -> ValueError:
    """The error for a file that is not as it was written."""
    return ValueError(f"{name} is damaged: {cause}; use another copy of the file")


def _read_exactly(file: Input, size: int) -> bytearray:
    """So many bytes; never much more memory than there are bytes."""
    if file.size is not None:  # the size of the file has been checked
        data = bytearray(size)
        filled = file.read_into(memoryview(data))
    else:
        data, filled = bytearray(), 0
        while filled < size:
            piece = bytearray(min(PIECE, size - filled))
            count = file.read_into(memoryview(piece))
            data += piece[:count]
            filled += count
            if count < len(piece):
                break
    if filled < size:
        raise damaged(file.name, "it ends too early")
    return data


def _read_header(file: Input) -> Header:
    name = file.name
    begin = bytearray(PREAMBLE.size)
    count = file.read_into(memoryview(begin))
    _check_magic(name, bytes(begin[:count]))
    if count < PREAMBLE.size:
        raise damaged(name, "it ends too early")
    _, version, length, digest = PREAMBLE.unpack(begin)
    if version > VERSION:
        raise ValueError(
            f"{name} has format version {version}, written by a newer cutplane; this one reads "
            f"versions up to {VERSION}: upgrade it, or save the file with an older one"
        )
    if version < 1:
        raise damaged(name, f"format version {version} does not exist")
    if length > (MOST_HEADER if file.size is None else file.size - PREAMBLE.size):
        raise damaged(name, f"a header of {length} bytes does not fit into the file")
    text = _read_exactly(file, length)
    if hashlib.sha256(begin[: -len(digest)] + text).digest() != digest:
        raise damaged(name, "the header does not fit its SHA-256")
    try:
        fields = json.loads(text.decode(), parse_constant=_no_constant)
        header = Header(
            name,
            version,
            _typed(fields["kind"], str),
            _typed(fields["writer"], str),
            fields["content"],
            _entries(fields["arrays"], PREAMBLE.size + length),
            PREAMBLE.size + length,
            digest.hex(),
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise damaged(name, f"its header is wrong ({_cause(error)})") from None
    if file.size is not None and header.size != file.size:
        raise damaged(name, f"it has {file.size} bytes, but its header tells of {header.size}")
    return header


def _check_magic(name: str, begin: bytes) -> None:
    """Whether the file is ours at all, and what else it may be."""
    if begin[: len(MAGIC)] == MAGIC:
        return
    if not begin:
        raise ValueError(f"{name} is empty; expected a file written by cutplane")
    likely = ""
    if begin.startswith(PICKLE):
        likely = "; it looks like a pickle, which could run anything: it is not loaded"
    elif begin[1:4] == MAGIC[1:4]:
        likely = "; it may have been copied as text, which changed it: copy it as a binary file"
    elif begin.startswith(b"SVM-"):
        likely = "; it looks like an SVM-light model: use load_svmlight_model"
    raise ValueError(f"{name} is no file written by cutplane{likely}")


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"expected a value of type {kind.__name__}, got {value!r:.40}")
    return value


def _entries(values: Any, position: int) -> tuple[Entry, ...]:
    """The arrays: of known types, without gaps but for the alignment, in their order."""
    entries = []
    for number, value in enumerate(_typed(values, list)):
        dtype, count = _typed(value["dtype"], str), _typed(value["count"], int)
        start = _typed(value["start"], int)
        if dtype not in DTYPES:
            raise ValueError(f"array {number} has the unknown type {dtype!r:.40}")
        position += -position % ALIGNMENT
        if count < 0 or start != position:
            raise ValueError(f"array {number} has {count} elements from byte {start} on")
        entries.append(Entry(np.dtype(dtype), count, start, _typed(value["sha256"], str)))
        position += entries[-1].size
    return tuple(entries)


def _cause(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]!r:.40} is missing"
    return "too deep" if isinstance(error, RecursionError) else str(error)[:200]
