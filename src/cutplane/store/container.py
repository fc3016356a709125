"""A file of values and arrays in the safetensors format. No pickle: reading one runs nothing.

    length      uint64, little-endian: bytes of the header
    header      JSON in UTF-8, padded with spaces
    arrays      one after the other, flat, little-endian

The header follows the safetensors format. For each array "0", "1", … it holds type, length and
offset. Under "__metadata__" it holds these texts:

    cutplane    version of this format
    sha256      SHA-256 of length and header, computed with zeros in place of these 64 digits
    data        SHA-256 of the arrays
    kind, writer
    content     JSON: the values, see ``values``

So the two digests cover every byte of the file, and a program can read and check the header alone.
Any reader of safetensors can read the arrays. Before ``read`` takes memory for the arrays, it
checks that their sizes add up to the size of the file. The size of a pipe is not known, so there
``read`` takes memory as the bytes come.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.files import Input, opened, output

VERSION = 2
OLD_MAGIC = b"\x89CUT"  # of version 1
BEGIN = re.compile(rb'\{"__metadata__":\{"cutplane":"(\d{1,9})"')
PREFIX = f'{{"__metadata__":{{"cutplane":"{VERSION}","sha256":"'.encode()
DIGITS = slice(8 + len(PREFIX), 8 + len(PREFIX) + 64)
PIECE = 1 << 20
MOST_HEADER = 100_000_000  # the limit of safetensors
# A compressed file may decompress to 64 MiB, or to 1100 times its size if that is more. gzip
# reaches a factor of 1032.
EXPANDED, EXPANSION = 1 << 26, 1100
DTYPES = {
    **{"|b1": "BOOL", "|i1": "I8", "|u1": "U8", "<i2": "I16", "<u2": "U16", "<i4": "I32"},
    **{"<u4": "U32", "<i8": "I64", "<u8": "U64", "<f2": "F16", "<f4": "F32", "<f8": "F64"},
}
_NUMPY = {name: np.dtype(dtype) for dtype, name in DTYPES.items()}
# Errors that decoding may raise if the values in the file are wrong.
WRONG = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)
PICKLE = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


@dataclass(frozen=True)
class Header:
    """The contents of a file's header.

    Attributes
    ----------
    name : str
        Name of the file, for messages.
    version : int
        Version of the format.
    kind : str
    writer : str
        Program and version that wrote the file.
    content : any
        The values, in JSON's types.
    arrays : tuple of (dtype, int)
        Type and number of elements of each array.
    size : int
        Size of the file in bytes.
    digest : str
        SHA-256 of the header. The header contains the SHA-256 of the arrays, so this digest
        identifies the entire content.
    data : str
        SHA-256 of the arrays.
    """

    name: str
    version: int
    kind: str
    writer: str
    content: Any
    arrays: tuple[tuple[np.dtype, int], ...]
    size: int
    digest: str
    data: str


@dataclass(frozen=True)
class Content:
    """A file's header and its arrays, flat."""

    header: Header
    arrays: tuple[np.ndarray, ...]


class NotRegisteredError(Exception):
    """A file needs a class or function that the user must register; the message says which."""


# -- writing ------------------------------------------------------------------


def write(target: Any, kind: str, content: Any, arrays: Sequence[np.ndarray]) -> None:
    """Write a file. It appears under its name when it is complete.

    Parameters
    ----------
    target : path, '-' or binary file
    kind : str
    content : JSON's types
    arrays : sequence of ndarray
        Stored flat, in memory order. Their types must be in DTYPES, in any byte order.
    """
    flat = [_little_endian(array) for array in arrays]
    head = _head(kind, content, flat)
    try:
        with output(target) as file:
            file.write(head)
            for array in flat:
                file.write(array.data.cast("B") if array.size else b"")
    except OSError as error:  # it may name a temporary file; the user knows the target
        if error.errno is None or isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, f"cannot write: {error.strerror}", str(target)) from None


def _little_endian(array: np.ndarray) -> np.ndarray:
    array = np.ravel(array, order="K")
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in DTYPES:
        raise ValueError(f"arrays of type {array.dtype} cannot be stored")
    return np.ascontiguousarray(array, dtype=dtype)


def _head(kind: str, content: Any, arrays: Sequence[np.ndarray]) -> bytes:
    """The bytes in front of the arrays: length and header."""
    from .. import __version__

    data = hashlib.sha256()
    entries, position = {}, 0
    for number, array in enumerate(arrays):
        data.update(array.data)
        entries[str(number)] = {
            "dtype": DTYPES[array.dtype.str],
            "shape": [array.size],
            "data_offsets": [position, position := position + array.nbytes],
        }
    metadata = {
        "cutplane": str(VERSION),
        "sha256": "0" * 64,
        "data": data.hexdigest(),
        "kind": kind,
        "writer": f"cutplane {__version__}",
        "content": json.dumps(content, allow_nan=False, separators=(",", ":")),
    }
    text = json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER:
        raise ValueError(f"values that are no arrays take {len(text)} bytes, over {MOST_HEADER}")
    head = bytearray(len(text).to_bytes(8, "little") + text)
    head[DIGITS] = hashlib.sha256(head).hexdigest().encode()
    return bytes(head)


# -- reading ------------------------------------------------------------------


def read_header(source: Any) -> Header:
    """Read the header of a file, and check that the sizes in it fit the file.

    Parameters
    ----------
    source : path, '-' or binary file
    """
    with opened(source) as file:
        return _read_header(file)


def read(source: Any) -> Content:
    """Read a file and check all of it.

    Parameters
    ----------
    source : path, '-' or binary file
    """
    with opened(source) as file:
        header = _read_header(file)
        digest = hashlib.sha256()
        arrays = []
        for dtype, count in header.arrays:
            data = _read_exactly(file, count * dtype.itemsize)
            digest.update(data)
            arrays.append(np.frombuffer(data, dtype=dtype))
        if digest.hexdigest() != header.data:
            raise damaged(file.name, "the arrays do not fit their SHA-256")
        for number, array in enumerate(arrays):
            if array.dtype == np.bool_ and np.any(array.view(np.uint8) > 1):
                raise damaged(file.name, f"array {number} has truth values other than 0 and 1")
            arrays[number] = array.astype(array.dtype.newbyteorder("="), copy=False)
        if file.read_into(memoryview(bytearray(1))):
            raise damaged(file.name, "there is more after its end")
        return Content(header, tuple(arrays))


@contextmanager
def reading(name: str, what: str = "its content is wrong") -> Iterator[None]:
    """Turn errors of the block into ValueErrors that say: a damaged file, or too little memory."""
    try:
        yield
    except WRONG as error:
        raise damaged(name, f"{what} ({_cause(error)})") from None
    except NotRegisteredError as error:
        raise ValueError(f"{name} cannot be loaded: {error}") from None
    except MemoryError:
        raise ValueError(f"{name} needs more memory than there is") from None


def damaged(name: str, cause: str) -> ValueError:
    """The error for a file whose content has changed since it was written."""
    return ValueError(f"{name} is damaged: {cause}; use another copy of the file")


def begins_like_ours(begin: bytes) -> bool:
    """Whether the first 64 bytes of a file say that cutplane wrote it, in any version."""
    return begin.startswith(OLD_MAGIC) or BEGIN.match(begin, 8) is not None


def _read_exactly(file: Input, size: int) -> bytearray:
    """The next ``size`` bytes. A false ``size`` takes no more memory than the file has bytes."""
    try:
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
    except MemoryError:
        raise ValueError(f"{file.name} needs more memory than there is") from None
    if filled < size:
        raise damaged(file.name, "it ends too early")
    return data


def _read_header(file: Input) -> Header:
    name = file.name
    head = bytearray(64)
    head = head[: file.read_into(memoryview(head))]
    version = _version(name, bytes(head))
    length = int.from_bytes(head[:8], "little")
    most = MOST_HEADER if file.size is None else min(MOST_HEADER, file.size - 8)
    if not 56 <= length <= most:
        raise damaged(name, f"a header of {length} bytes does not fit into the file")
    head += _read_exactly(file, length - 56)
    digest = bytes(head[DIGITS])
    head[DIGITS] = b"0" * 64
    if hashlib.sha256(head).hexdigest().encode() != digest or head[8 : DIGITS.start] != PREFIX:
        raise damaged(name, "the header does not fit its SHA-256")
    with reading(name, "its header is wrong"):
        fields = json.loads(head[8:].decode(), parse_constant=_no_constant)
        metadata = fields.pop("__metadata__")
        kind, writer, data = (_typed(metadata[key], str) for key in ("kind", "writer", "data"))
        content = json.loads(_typed(metadata["content"], str), parse_constant=_no_constant)
        arrays, size = _arrays(fields)
    size += len(head)
    if file.size is not None and size != file.size:
        raise damaged(name, f"it has {file.size} bytes, but its header tells of {size}")
    if file.compressed is not None and size > max(EXPANDED, EXPANSION * file.compressed):
        raise ValueError(
            f"{name} would decompress to {size} bytes, {EXPANSION} times its size or more; "
            "decompress it yourself if you trust it"
        )
    return Header(name, version, kind, writer, content, arrays, size, digest.decode(), data)


def _version(name: str, begin: bytes) -> int:
    """The version of the format. If cutplane did not write the file, an error says what it is."""
    match = BEGIN.match(begin, 8)
    if match is None:
        if not begin:
            raise ValueError(f"{name} is empty; expected a file written by cutplane")
        likely = ""
        if begin.startswith(OLD_MAGIC):
            likely = " of this version but by an older one, whose files are not read: train again"
        elif begin.startswith(PICKLE):
            likely = "; it looks like a pickle, which could run anything: it is not loaded"
        elif begin.startswith(b"SVM-"):
            likely = "; it looks like an SVM-light model: use load_svmlight_model"
        raise ValueError(f"{name} is no file written by cutplane{likely}")
    version = int(match[1])
    if version > VERSION:
        raise ValueError(
            f"{name} has format version {version}, written by a newer cutplane; this one reads "
            f"version {VERSION}: upgrade it, or save the file with an older one"
        )
    if version < VERSION:
        raise damaged(name, f"format version {version} does not exist")
    if len(begin) < 64:
        raise damaged(name, "it ends too early")
    return version


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"expected a value of type {kind.__name__}, got {value!r:.40}")
    return value


def _arrays(fields: dict[str, Any]) -> tuple[tuple[tuple[np.dtype, int], ...], int]:
    """Type and length of each array, and the bytes of all; checks that they follow each other."""
    arrays, position = [], 0
    for number, (name, value) in enumerate(fields.items()):
        dtype, (count,), offsets = value["dtype"], value["shape"], value["data_offsets"]
        if name != str(number) or dtype not in _NUMPY:
            raise ValueError(f"array {number} has the name {name!r:.40}, the type {dtype!r:.40}")
        end = position + _NUMPY[dtype].itemsize * _typed(count, int)
        if count < 0 or offsets != [position, end]:
            raise ValueError(f"array {number} has {count} elements at {offsets!r:.80}")
        arrays.append((_NUMPY[dtype], count))
        position = end
    return tuple(arrays), position


def _cause(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]!r:.40} is missing"
    return "too deep" if isinstance(error, RecursionError) else str(error)[:200]
