"""Turn Python values into JSON and arrays, and back: numbers, texts, lists, arrays, records.

A value of a type that JSON knows is stored as it is. Any other value becomes a JSON object whose
first key says what the value is:

    {"float": "inf"}                    inf, -inf and nan, which JSON does not know
    {"tuple": [...]}, {"dict": [[key, value], ...]}, {"bytes": hex}
    {"array": number, "shape": [...]}   an array of the file; "order": "F" if column-major
    {"numbers": [...], "shape", "dtype"}   a small array
    {"strings": [...], "shape", "dtype"}, {"objects": [...], "shape"}
    {"text": array, "width": int}       strings of very different lengths, as their code points
    {"sparse": "csr_matrix", "shape", "data", "indices", "indptr"}
    {"record": name, ...fields}         a dataclass or an enumeration that the registry lists
    {"trace": name, ...columns}         a tuple of records of iterations
    {"object": name, "state"}, {"function": name}     objects and functions that the user registered

An array that occurs several times is stored once, and loading makes one array of it again. So a
small file cannot expand to much memory: a loaded model takes a small multiple of its file. The
decoder imports nothing by name, and refuses names that the registry does not list.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from ..result import Certificate, DualIteration, Iteration, SolveResult, Status
from .container import DTYPES, NotRegisteredError

SPARSE: dict[str, Any] = {
    "csr_matrix": scipy.sparse.csr_matrix,
    "csr_array": scipy.sparse.csr_array,
}
FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
SMALL = 256  # an array of at most so many elements is stored in the header
PADDING = 16  # a numpy array of strings may be this many times as long as the strings themselves
RECORDS: dict[str, Any] = {
    **{
        kind.__name__: kind for kind in (Certificate, SolveResult, Status, Iteration, DualIteration)
    },
    "DualCertificate": Certificate,  # in older files
}


class StoreError(ValueError):
    """A value cannot be stored. The message completes the sentence "it is …"."""


class Registry:
    """Classes and functions that a file may name.

    Attributes
    ----------
    records : dict of str to dataclass or enumeration
    objects : dict of str to class or function
    """

    def __init__(self, records: dict[str, Any] | None = None) -> None:
        self.records = {**RECORDS, **(records or {})}
        self.objects: dict[str, Any] = {}

    def name_of(self, thing: Any) -> str | None:
        """The name under which a class or function is registered."""
        return next((name for name, known in self.objects.items() if known is thing), None)


# -- to JSON ------------------------------------------------------------------


class Encoder:
    """Turns values into JSON's types, and collects the arrays among the values.

    Attributes
    ----------
    arrays : list of ndarray
        In the order of their numbers.
    """

    def __init__(self, registry: Registry | None = None) -> None:
        self.arrays: list[np.ndarray] = []
        self._registry = registry or Registry()
        self._known: dict[tuple[Any, ...], tuple[int, np.ndarray]] = {}

    def encode(self, value: Any) -> Any:
        """The value in JSON's types."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list:
            return [self.encode(item) for item in value]
        if type(value) is tuple:
            return self._tuple(value)
        if type(value) is dict:
            return {"dict": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
        if isinstance(value, bytes):
            return {"bytes": value.hex()}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if type(value).__name__ in SPARSE and scipy.sparse.issparse(value):
            return self._sparse(value)
        return self._named(value)

    def _tuple(self, value: tuple[Any, ...]) -> Any:
        kinds = {type(item) for item in value}
        if len(kinds) == 1 and issubclass(next(iter(kinds)), Iteration):
            name = self._record_name(value[0])
            columns = {
                field.name: self._column([getattr(item, field.name) for item in value])
                for field in dataclasses.fields(value[0])
            }
            return {"trace": name, **columns}
        return {"tuple": [self.encode(item) for item in value]}

    def _column(self, values: list[Any]) -> Any:
        if all(isinstance(value, float) for value in values):
            return self.encode(np.array(values))
        return self.encode(values)

    def _array(self, array: np.ndarray) -> Any:
        shape = list(array.shape)
        if type(array) is not np.ndarray:
            array = np.asarray(array)
        named = {"shape": shape, "dtype": array.dtype.kind}
        if array.dtype.kind in "UT":
            texts = [str(item) for item in array.ravel().tolist()]
            if array.dtype.kind == "U" and not _dense(texts):
                points = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
                points = points.reshape(-1).view("<u4")
                return {"text": self._array(points), "width": len(points) // array.size, **named}
            return {"strings": texts, **named}
        if array.dtype == object:
            items = [self.encode(item) for item in array.ravel().tolist()]
            return {"objects": items, "shape": shape}
        if array.dtype.newbyteorder("<").str not in DTYPES:
            raise StoreError(f"an array of type {array.dtype}, which cannot be stored in the file")
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        if array.size <= SMALL and not fortran:
            values = [self.encode(item) for item in array.ravel().tolist()]
            return {"numbers": values, "shape": shape, "dtype": array.dtype.newbyteorder("<").str}
        flat = array.ravel(order="F" if fortran else "C")
        layout = (array.shape, array.strides) if flat.base is None else array.size
        key = (array.__array_interface__["data"][0], array.dtype.str, layout)
        if key not in self._known:
            # The entry keeps the array alive, so that no later array gets the same address.
            self._known[key] = len(self.arrays), array
            self.arrays.append(flat)
        answer = {"array": self._known[key][0], "shape": shape}
        return {**answer, "order": "F"} if fortran else answer

    def _sparse(self, matrix: Any) -> Any:
        return {
            "sparse": type(matrix).__name__,
            "shape": list(map(int, matrix.shape)),
            **{name: self._array(getattr(matrix, name)) for name in ("data", "indices", "indptr")},
        }

    def _record_name(self, value: Any) -> str:
        name = type(value).__name__
        if self._registry.records.get(name) is not type(value):
            raise StoreError(f"a {name}, which cannot be stored in the file")
        return name

    def _named(self, value: Any) -> Any:
        name = self._registry.name_of(value)
        if name is not None:
            return {"function": name}
        name = self._registry.name_of(type(value))
        if name is not None:
            return {"object": name, "state": self.encode(dict(vars(value)))}
        if isinstance(value, Enum):
            return {"record": self._record_name(value), "value": value.value}
        if dataclasses.is_dataclass(value):
            fields = {
                f.name: self.encode(getattr(value, f.name)) for f in dataclasses.fields(value)
            }
            return {"record": self._record_name(value), **fields}
        raise StoreError(f"a {type(value).__name__}, which cannot be stored in the file")


# -- from JSON ----------------------------------------------------------------


class Decoder:
    """Turns the output of an Encoder into values again.

    Wrong input raises ValueError, TypeError or KeyError. Decoding runs no code of the file's choice
    except the constructors of the records in the registry.
    """

    def __init__(self, arrays: Sequence[np.ndarray], registry: Registry | None = None) -> None:
        self._arrays = arrays
        self._registry = registry or Registry()
        self._listed = 0  # elements of arrays that became lists in traces

    def decode(self, value: Any) -> Any:
        """The value."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = next(iter(value), "")
        method = self._METHODS.get(kind)
        if method is None:
            raise ValueError(f"values of the kind {kind!r:.40} are not known")
        return method(self, value)

    def _array(self, value: Any) -> np.ndarray:
        number, shape = value["array"], _shape(value["shape"])
        if type(number) is not int or not 0 <= number < len(self._arrays):
            raise ValueError(f"there is no array {number!r:.40}")
        array = self._arrays[number]
        if math.prod(shape) != array.size:
            raise ValueError(f"array {number} has {array.size} elements, not shape {shape}")
        return array.reshape(shape, order="F" if value.get("order") == "F" else "C")

    def _numbers(self, value: Any) -> np.ndarray:
        if value["dtype"] not in DTYPES:
            raise ValueError(f"the type {value['dtype']!r:.40} is not known")
        items = self.decode(_list(value["numbers"]))
        if not all(isinstance(item, int | float) for item in items):
            raise ValueError("numbers that are none")
        dtype = np.dtype(value["dtype"]).newbyteorder("=")
        return np.array(items, dtype=dtype).reshape(_shape(value["shape"]))

    def _strings(self, value: Any) -> np.ndarray:
        texts = _list(value["strings"])
        if not all(type(text) is str for text in texts):
            raise ValueError("strings that are none")
        kind: Any = np.str_
        if value["dtype"] == "T" and hasattr(np.dtypes, "StringDType"):
            kind = np.dtypes.StringDType()
        elif not _dense(texts):
            raise ValueError("strings that take much more memory than in the file")
        return np.array(texts, dtype=kind).reshape(_shape(value["shape"]))

    def _text(self, value: Any) -> np.ndarray:
        points, width = self.decode(value["text"]), value["width"]
        if type(width) is not int or width < 1 or points.dtype != np.uint32:
            raise ValueError("text that is none")
        if np.any(points > 0x10FFFF):
            raise ValueError("text that is not Unicode")
        return points.view(f"U{width}").reshape(_shape(value["shape"]))

    def _objects(self, value: Any) -> np.ndarray:
        items = self.decode(_list(value["objects"]))
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(_shape(value["shape"]))

    def _sparse(self, value: Any) -> Any:
        data, indices, indptr = (self.decode(value[n]) for n in ("data", "indices", "indptr"))
        if not all(isinstance(a, np.ndarray) and a.dtype.kind == "i" for a in (indices, indptr)):
            raise ValueError("a sparse matrix whose indices are no integers")
        parts, shape = (data, indices, indptr), _shape(value["shape"])
        try:
            matrix = SPARSE[value["sparse"]](parts, shape=shape, copy=False)
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"a sparse matrix whose parts do not fit: {error}") from None
        return matrix

    def _record(self, value: Any) -> Any:
        kind: Any = self._registry.records[value["record"]]
        if issubclass(kind, Enum):
            return kind(value["value"])
        names = {field.name for field in dataclasses.fields(kind)}
        given = {name: self.decode(item) for name, item in value.items() if name != "record"}
        if set(given) - names:
            raise ValueError(f"{value['record']} has no {', '.join(sorted(set(given) - names))}")
        return kind(**given)

    def _trace(self, value: Any) -> tuple[Any, ...]:
        kind: Callable[..., Any] = self._registry.records[value["trace"]]
        columns = {k: self._column(v) for k, v in value.items() if k != "trace"}
        return tuple(
            kind(**dict(zip(columns, items, strict=True)))
            for items in zip(*columns.values(), strict=True)
        )

    def _column(self, value: Any) -> list[Any]:
        column = self.decode(value)
        if not isinstance(column, np.ndarray) or column.ndim != 1:
            return _list(column)
        # Many traces may name the same array, and each makes a list of it. Limit the sum of all
        # lists, or a small file could fill the memory.
        if "array" in value:
            self._listed += column.size
            if self._listed > sum(array.size for array in self._arrays):
                raise ValueError("traces of more numbers than there are in the file")
        return column.tolist()

    def _object(self, value: Any) -> Any:
        kind: Any = self._registered(value["object"])
        state = self.decode(value["state"])
        if not isinstance(kind, type) or not isinstance(state, dict):
            raise ValueError(f"{value['object']!r:.80} is registered as something else")
        thing: Any = object.__new__(kind)
        vars(thing).update(state)
        return thing

    def _registered(self, name: Any) -> Any:
        if name not in self._registry.objects:
            raise NotRegisteredError(
                f"it needs {name!r:.80}, which is not registered; import its module and call "
                "cutplane.models.register with it first"
            )
        return self._registry.objects[name]

    _METHODS: ClassVar[dict[str, Callable[[Decoder, Any], Any]]] = {
        "float": lambda self, value: FLOATS[value["float"]],
        "tuple": lambda self, value: tuple(self.decode(_list(value["tuple"]))),
        "dict": lambda self, value: dict(self.decode(_list(value["dict"]))),
        "bytes": lambda self, value: bytes.fromhex(value["bytes"]),
        "array": _array,
        "numbers": _numbers,
        "strings": _strings,
        "text": _text,
        "objects": _objects,
        "sparse": _sparse,
        "record": _record,
        "trace": _trace,
        "object": _object,
        "function": lambda self, value: self._registered(value["function"]),
    }


def _dense(texts: list[str]) -> bool:
    """Whether a numpy array of these strings takes little more memory than the strings do.

    In such an array each string takes as much memory as the longest.
    """
    longest = max(map(len, texts), default=0)
    return len(texts) * longest <= PADDING * (sum(map(len, texts)) + len(texts)) + SMALL


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {value!r:.40}")
    return value


def _shape(value: Any) -> tuple[int, ...]:
    if not all(type(size) is int and size >= 0 for size in _list(value)):
        raise ValueError(f"{value!r:.40} is no shape")
    return tuple(value)
