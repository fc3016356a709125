"""Data sets on disk from files: svmlight text, NumPy archives, tables, other data sets.

Files are read in chunks, so they may be larger than memory; only NumPy archives are loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .._checks import check_choice, check_flag_or_auto
from .dataset import Dataset
from .dataset.write import DatasetWriter, new_dataset, value_type
from .rows import MOST_FEATURES, Rows
from .svmlight.parse import Flag, Options
from .svmlight.read import read_chunks, state_first_index
from .tables import TABLE_SUFFIXES, Columns, file_name, read_archive, table_chunks

FORMATS = ("auto", "svmlight", "npz", "cut", "parquet", "arrow", "csv")
_ARCHIVE_ROWS = 1 << 16  # per chunk


def convert_dataset(
    source: Any,
    path: Any,
    *,
    format: str = "auto",
    overwrite: bool = False,
    dtype: Any = None,
    n_features: int | None = None,
    zero_based: Flag = "auto",
    qid: Flag | str = "auto",
    cost: Flag | str = "auto",
    sort: bool = False,
    unseen: Literal["error", "ignore"] = "error",
    max_features: int = MOST_FEATURES,
    label: str | None = None,
    features: Sequence[str] | None = None,
    n_jobs: int | None = None,
) -> Dataset:
    """Convert files into a data set on disk.

    Parameters
    ----------
    source : path, '-', binary file, or sequence of these
        One file, or several that follow each other as if they were one. '-' is standard input.
        A folder is a data set.
    path : path
        Folder to make, usually with the suffix .cut. It appears when it is complete.
    format : {'auto', 'svmlight', 'npz', 'cut', 'parquet', 'arrow', 'csv'}, default='auto'
        With 'auto' the suffix decides: .npz, .cut, .parquet, .arrow or .feather, .csv; a folder is
        a data set, anything else svmlight text.
    overwrite : bool, default=False
        Whether to replace a data set of the same name.
    dtype : float64, float32, int16, int8 or uint8, optional
        Type of the values on disk. By default float64 for text, and the file's own type for others.
        Integer types are for data that consist of integers; see :func:`write_dataset`.
    n_features : int, optional
        Number of columns, for sparse data. By default as many as the largest index needs.
    zero_based : bool or 'auto', default='auto'
        Whether indices of svmlight text are counted from 0. With 'auto' they are if an index 0
        occurs anywhere, and the result is logged.
    qid : bool, 'auto' or str, default='auto'
        Whether to keep the queries of svmlight text; with 'auto' they are kept if there are any.
        For tables, the name of the column with the queries.
    cost : bool, 'auto' or str, default='auto'
        Whether to keep the costs of svmlight text; with 'auto' they are kept if one is not 1. For
        tables, the name of the column with the costs.
    sort : bool, default=False
        Accept rows of svmlight text whose indices do not increase, and sort them.
    unseen : {'error', 'ignore'}, default='error'
        What to do with indices of svmlight text beyond ``n_features``.
    max_features : int, default=2**31 - 1
        An index of svmlight text beyond this is an error.
    label : str, optional
        Column of a table that holds the labels; without it there are none.
    features : sequence of str, optional
        Columns of a table that hold the features; by default all others, which must be numbers.
    n_jobs : int, optional
        Threads that parse text.

    Returns
    -------
    dataset : Dataset
        Open.

    Raises
    ------
    ValueError
        If there is a mistake in a file. Then no new folder is left, and an old one stays.

    Notes
    -----
    A NumPy archive holds ``X`` (or the arrays of ``scipy.sparse.save_npz``) and, if there are any,
    ``y``, ``qid`` and ``cost``. Tables need pyarrow: ``pip install cutplane[tables]``.
    """
    files = _listed(source)
    kind = _format_of(files, format)
    columns = Columns(label, features, _column("qid", qid), _column("cost", cost))
    if kind in TABLE_SUFFIXES.values():
        if zero_based != "auto" or qid is True or cost is True:
            raise ValueError(
                f"zero_based=…, qid=True and cost=True are for svmlight text, not for {kind} "
                "files; qid and cost take the names of columns"
            )
    elif columns.named():
        raise ValueError(
            f"label, features, qid and cost name columns of tables, but {_names(files)} is "
            f"read as {kind}; pass format='csv', 'parquet' or 'arrow' if it is a table"
        )
    if kind != "svmlight":
        if kind == "cut":
            dtype = Dataset(files[0]).dtype if dtype is None else dtype
            parts = (Dataset(file).chunks() for file in files)
            chunks: Iterator[Rows] = chain.from_iterable(parts)
        else:
            chunks = _archive_rows(files) if kind == "npz" else table_chunks(files, kind, columns)
        with new_dataset(path, overwrite, n_features=n_features, dtype=dtype) as writer:
            for rows in chunks:
                writer.add(rows)
        return Dataset(path)
    if unseen == "ignore" and zero_based == "auto":
        raise ValueError("unseen='ignore' needs zero_based=True or False")
    stored = value_type(np.float64 if dtype is None else dtype)
    parsed = stored if stored.kind == "f" else np.float64
    options = Options(
        n_features, zero_based, parsed, qid, bool(cost), False, sort, unseen, max_features, n_jobs
    )
    with new_dataset(path, overwrite, dtype=stored) as writer:
        _write_text(writer, files, options)
        if cost == "auto" and not writer.costs_differ:
            writer.leave_out("cost")
    return Dataset(path)


def _column(name: str, value: Any) -> str | None:
    """The column's name if the value is one; None for True, False and 'auto'."""
    if not isinstance(value, str):
        check_flag_or_auto(name, value)
        return None
    return None if value == "auto" else value


def _listed(source: Any) -> list[Any]:
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        return [source]
    files = list(source)
    if not files:
        raise ValueError("source is empty; give at least one file")
    return files


def _names(files: list[Any]) -> str:
    """For messages."""
    return ", ".join(map(file_name, files[:3]))


def _format_of(files: list[Any], format: str) -> str:
    if check_choice("format", format, FORMATS) != "auto":
        return format
    kinds = {_kind_of(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(f"the files are of different formats, {', '.join(sorted(kinds))}")
    return kinds.pop()


def _kind_of(file: Any) -> str:
    if not isinstance(file, str | os.PathLike):
        return "svmlight"
    suffix = Path(file).suffix.lower()
    if suffix == ".cut" or (file != "-" and Path(file).is_dir()):
        return "cut"
    return "npz" if suffix == ".npz" else TABLE_SUFFIXES.get(suffix, "svmlight")


def _archive_rows(files: list[Any]) -> Iterator[Rows]:
    for rows in map(read_archive, files):
        for first in range(0, rows.X.shape[0], _ARCHIVE_ROWS):
            yield rows.part(first, first + _ARCHIVE_ROWS)


def _write_text(writer: DatasetWriter, files: list[Any], options: Options) -> None:
    """Write svmlight text. With zero_based='auto', decide at the end where indices start."""
    reading, wide = options, options.n_features
    if options.first is None:
        # Read all indices as counted from 0. If they are counted from 1, column 0 stays empty, and
        # is removed at the end.
        reading = replace(
            options,
            zero_based=True,
            n_features=None if wide is None else min(wide + 1, MOST_FEATURES),
            max_features=min(options.max_features + 1, MOST_FEATURES),
        )
    for file in files:
        for rows, _ in read_chunks(file, reading):
            writer.add(rows)
    if options.first is not None:
        return
    name = _names(files)
    if state_first_index(name, writer.lowest_index) == 1:
        writer.shift_indices()
    most = min(wide or MOST_FEATURES, options.max_features)
    if writer.highest_index >= most:
        raise ValueError(
            f"{name}: indices are counted from 0 and the largest is {writer.highest_index}, "
            f"beyond {most} features; raise n_features or max_features"
        )
    writer.features = wide or writer.highest_index + 1  # chunks were read with a column 0 in front
