"""Rows of other programs' files: Parquet, Arrow and CSV tables by pyarrow, NumPy archives."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .rows import Rows

TABLE_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
}
_ROWS, _FEW_ROWS = 1 << 16, 1 << 8  # per chunk, at most and at least
_VALUES = 1 << 20  # per chunk, about
_BUFFER = 1 << 16  # bytes per column that are read at a time


@dataclass(frozen=True)
class Columns:
    """The names of the columns that hold labels, features, queries and costs."""

    label: str | None
    features: Sequence[str] | None
    qid: str | None
    cost: str | None

    def named(self) -> list[str]:
        """All names that are given."""
        return [name for name in (self.label, self.qid, self.cost, *(self.features or ())) if name]


def column_names(files: list[Any], kind: str) -> list[str]:
    """The names of all columns of a table."""
    return list(_opened(files, kind)[1].schema.names)


def _opened(files: list[Any], kind: str) -> tuple[list[str], Any]:
    """The files' names, and the table."""
    try:
        import pyarrow
        import pyarrow.dataset
    except ImportError:
        raise ImportError(
            f"{kind} files are read by pyarrow; install it with pip install cutplane[tables]"
        ) from None
    paths = [str(Path(file)) for file in files]
    for path in paths:
        with open(path, "rb"):  # a missing file raises FileNotFoundError, not pyarrow's error
            pass
    try:
        return paths, pyarrow.dataset.dataset(paths, format=kind)
    except pyarrow.ArrowException as error:
        raise ValueError(f"{paths[0]}: not a readable {kind} file: {error}") from None


def table_chunks(files: list[Any], kind: str, columns: Columns) -> Iterator[Rows]:
    """Chunks of a table that consists of one or more files with the same columns."""
    paths, table = _opened(files, kind)
    import pyarrow

    path = paths[0]  # for messages
    chosen = _chosen(table.schema.names, columns, path)
    features = chosen.features or []
    row = 0
    try:
        for batch in _batches(table, paths, kind, chosen.named()):
            if not batch.num_rows:
                continue
            y, qid, cost = (
                None if name is None else _values(batch, name, path, row, text=name == chosen.label)
                for name in (chosen.label, chosen.qid, chosen.cost)
            )
            yield Rows(_matrix(batch, features, path, row), y, cost, qid, tuple(features))
            row += batch.num_rows
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path}: near row {row}: {error}") from None
    if not row:
        raise ValueError(f"{path}: no examples; the table is empty")


def _batches(table: Any, paths: list[str], kind: str, names: list[str]) -> Iterator[Any]:
    """Some columns of all files in batches. Only a few batches are in memory at a time."""
    rows = max(_FEW_ROWS, min(_ROWS, _VALUES // len(names)))
    if kind != "parquet":
        yield from table.to_batches(
            columns=names, batch_size=rows, batch_readahead=1, fragment_readahead=1
        )
        return
    # to_batches would hold whole row groups in memory, and a Parquet file may be one row group.
    from pyarrow.parquet import ParquetFile

    for path in paths:
        with ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            missing = set(names) - set(file.schema_arrow.names)
            if missing:
                raise ValueError(f"{path}: there is no column {min(missing)!r}, as in {paths[0]}")
            yield from file.iter_batches(batch_size=rows, columns=names, use_threads=False)


def _chosen(names: list[str], columns: Columns, path: str) -> Columns:
    """The columns, with all other columns as features if none are named; checks the names."""
    others = (columns.label, columns.qid, columns.cost)
    features = columns.features or [name for name in names if name not in others]
    chosen = replace(columns, features=features)
    if not features:
        raise ValueError(f"{path}: no column is left for the features")
    there, used = set(names), set[str]()
    for name in chosen.named():
        if name not in there:
            some = ", ".join(map(repr, names[:10])) + (", …" if len(names) > 10 else "")
            raise ValueError(f"{path}: there is no column {name!r}; there are {some}")
        if name in used:
            raise ValueError(f"{path}: column {name!r} is used twice")
        used.add(name)
    return chosen


def _matrix(batch: Any, names: Sequence[str], path: str, row: int) -> np.ndarray:
    """The features of a batch, in the smallest floating type that holds them."""
    parts = [_values(batch, name, path, row, text=False) for name in names]
    X = np.empty((len(parts[0]), len(parts)), np.result_type(np.float32, *{p.dtype for p in parts}))
    for j, part in enumerate(parts):
        X[:, j] = part
    return X


def _values(batch: Any, name: str, path: str, row: int, *, text: bool) -> np.ndarray:
    """A column as numbers, or as text if that is allowed."""
    import pyarrow
    import pyarrow.compute

    column = batch.column(name)
    if column.null_count:
        bad = row + int(np.argmax(np.asarray(column.is_null())))
        raise ValueError(
            f"{path}: column {name!r} has no value in row {bad}; fill it in, or leave the "
            "column or the row out"
        )
    kind = column.type
    types = pyarrow.types
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if types.is_integer(kind) or types.is_floating(kind):
        return column.to_numpy(zero_copy_only=False)
    if types.is_boolean(kind):
        return column.to_numpy(zero_copy_only=False).astype(np.uint8)
    if types.is_decimal(kind):
        return column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    if text and (types.is_string(kind) or types.is_large_string(kind)):
        return np.array(column.to_pylist(), dtype=str)
    message = f"{path}: column {name!r} is of type {kind}, not of numbers"
    if not text:
        message += (
            "; encode it as numbers, choose the columns with features=…, or name it with label=… "
            "if it holds the labels"
        )
    raise ValueError(message)


# -- NumPy archives ---------------------------------------------------------------


def file_name(file: Any) -> str:
    """A path, or the name of an open file, for messages."""
    return str(file if isinstance(file, str | os.PathLike) else getattr(file, "name", "<file>"))


def read_archive(file: Any) -> Rows:
    """The rows in a NumPy archive."""
    name = file_name(file)
    with ExitStack() as stack:
        if isinstance(file, str | os.PathLike):
            file = stack.enter_context(open(file, "rb"))
        try:
            archive = np.load(file, allow_pickle=False)
        except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            begin = "allow_pickle" in str(error)  # numpy takes any unknown file for a pickle
            cause = "it begins like none; numpy.savez writes them" if begin else error
            raise ValueError(f"{name} is not a NumPy archive: {cause}") from None
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError(f"{name} is not an archive of several arrays (.npz)")
        stack.enter_context(archive)
        try:
            X = _archive_matrix(archive, name)
            columns = {key: archive.get(key) for key in ("y", "qid", "cost")}
        except ValueError:
            raise
        except Exception as error:  # zipfile and zlib raise many kinds of errors for damaged files
            raise ValueError(f"{name} is damaged: {error}") from None
    for key, column in columns.items():
        if column is not None and len(column) != X.shape[0]:
            raise ValueError(f"{name}: {key} has {len(column)} entries for {X.shape[0]} rows of X")
    return Rows(X, columns["y"], columns["cost"], columns["qid"])


def _archive_matrix(archive: Any, name: str) -> Any:
    if "X" in archive:
        X = archive["X"]
        if X.ndim != 2:
            raise ValueError(f"{name}: X must have two dimensions, got shape {X.shape}")
        return X
    if not {"data", "indices", "indptr", "shape"} <= set(archive.files):
        raise ValueError(
            f"{name} has neither X nor the arrays of a sparse matrix (data, indices, indptr, "
            f"shape); it has {', '.join(archive.files)}"
        )
    layout = archive["format"].item() if "format" in archive else b"csr"
    layout = layout.decode() if isinstance(layout, bytes) else str(layout)
    if layout not in ("csr", "csc"):
        raise ValueError(f"{name}: sparse matrices must be in CSR or CSC format, not {layout}")
    make = scipy.sparse.csr_matrix if layout == "csr" else scipy.sparse.csc_matrix
    parts = tuple(archive[key] for key in ("data", "indices", "indptr"))
    X = make(parts, shape=tuple(archive["shape"].tolist()))
    X.check_format(full_check=True)
    return X.tocsr()
