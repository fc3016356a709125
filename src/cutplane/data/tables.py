"""Tables as chunks of features and labels: Parquet, Arrow and CSV files, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TABLE_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
}
_ROWS, _FEW_ROWS = 1 << 16, 1 << 8  # per chunk, at most and at least
_NUMBERS = 1 << 20  # per chunk, about
_BUFFER = 1 << 16  # bytes per column that are read at a time


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold what."""

    label: str | None
    features: Sequence[str] | None
    qid: str | None
    cost: str | None

    def named(self) -> list[str]:
        """The columns that are named."""
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
        with open(path, "rb"):  # a missing file is an error of its own
            pass
    try:
        return paths, pyarrow.dataset.dataset(paths, format=kind)
    except pyarrow.ArrowException as error:
        raise ValueError(f"{paths[0]}: not a readable {kind} file: {error}") from None


def table_chunks(files: list[Any], kind: str, columns: Columns) -> Iterator[tuple[Any, ...]]:
    """Chunks ``(X, y, qid, cost)`` of one table in one or more files of the same columns."""
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
            yield (
                _Frame(batch, features, path, row),
                *(
                    None
                    if name is None
                    else _values(batch, name, path, row, text=name == chosen.label)
                    for name in (chosen.label, chosen.qid, chosen.cost)
                ),
            )
            row += batch.num_rows
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path}: near row {row}: {error}") from None
    if not row:
        raise ValueError(f"{path}: no examples; the table is empty")


def _batches(table: Any, paths: list[str], kind: str, names: list[str]) -> Iterator[Any]:
    """Some columns of all files, of which a few batches are in memory, however large they are."""
    rows = max(_FEW_ROWS, min(_ROWS, _NUMBERS // len(names)))
    if kind != "parquet":
        yield from table.to_batches(
            columns=names, batch_size=rows, batch_readahead=1, fragment_readahead=1
        )
        return
    # The scanner of a table holds whole groups of rows, of which a file may have but one.
    from pyarrow.parquet import ParquetFile

    for path in paths:
        with ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            missing = set(names) - set(file.schema_arrow.names)
            if missing:
                raise ValueError(f"{path}: there is no column {min(missing)!r}, as in {paths[0]}")
            yield from file.iter_batches(batch_size=rows, columns=names, use_threads=False)


def _chosen(names: list[str], columns: Columns, path: str) -> Columns:
    """The columns with those that are meant by default."""
    others = (columns.label, columns.qid, columns.cost)
    features = columns.features or [name for name in names if name not in others]
    chosen = Columns(columns.label, features, columns.qid, columns.cost)
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


class _Frame:
    """The features of a batch, with the names of its columns."""

    def __init__(self, batch: Any, names: Sequence[str], path: str, row: int) -> None:
        self.columns = tuple(names)
        self._parts = [_values(batch, name, path, row, text=False) for name in names]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        kind = np.result_type(np.float32, *{part.dtype for part in self._parts})
        X = np.empty((len(self._parts[0]), len(self._parts)), dtype or kind)
        for j, part in enumerate(self._parts):
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
    remedy = (
        ""
        if text
        else (
            "; encode it as numbers, choose the columns with features=…, or name it with label=… "
            "if it holds the labels"
        )
    )
    raise ValueError(f"{path}: column {name!r} is of type {kind}, not of numbers{remedy}")
