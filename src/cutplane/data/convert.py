"""Data sets on disk from files: svmlight text, NumPy archives, tables.

Files are read in chunks, so they may be larger than memory; only NumPy archives are loaded, one
array at a time.
"""

from __future__ import annotations

import itertools
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse

from .arguments import Flag, flag, integer
from .dataset import Dataset, open_dataset
from .dataset_write import DatasetWriter, is_dataset, save_manifest, value_type
from .folders import replacing_folder
from .svmlight import iter_svmlight
from .svmlight_limits import MOST_FEATURES, state_first_index
from .tables import TABLE_SUFFIXES, Columns, table_chunks

FORMATS = ("auto", "svmlight", "npz", "parquet", "arrow", "csv")
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
    query_id: Flag | str = "auto",
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
    path : path
        Of the folder to make, by custom with the suffix .cut. It appears when it is complete.
    format : {'auto', 'svmlight', 'npz', 'parquet', 'arrow', 'csv'}, default='auto'
        By default what the suffix says: .npz, .parquet, .arrow or .feather, .csv; anything else is
        svmlight text.
    overwrite : bool, default=False
        Whether a data set of that name is replaced.
    dtype : float64, float32, int16, int8 or uint8, optional
        Type of the values on disk. By default float64 for text, and for others what they have.
        Integers are for data that consist of nothing else; see :func:`write_dataset`.
    n_features : int, optional
        Columns, for sparse data; by default as many as there are.
    zero_based : bool or 'auto', default='auto'
        Whether indices of svmlight text are counted from 0. With 'auto' they are if there is an
        index 0 anywhere, and what was found is logged.
    query_id : bool, 'auto' or str, default='auto'
        Whether to keep the queries of svmlight text; with 'auto' if there are any. For tables the
        name of the column that holds them.
    cost : bool, 'auto' or str, default='auto'
        The same for costs; with 'auto' they are kept if one is not 1.
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
        If there is a mistake in a file. Nothing is left of the folder then, and an old one stays.

    Notes
    -----
    A NumPy archive holds ``X`` (or the arrays of ``scipy.sparse.save_npz``) and, if there are any,
    ``y``, ``qid`` and ``cost``. Tables need pyarrow: ``pip install cutplane[tables]``.
    """
    files = _listed(source)
    kind = _format_of(files, format)
    columns = Columns(label, features, _column("query_id", query_id), _column("cost", cost))
    if kind in TABLE_SUFFIXES.values():
        if zero_based != "auto" or query_id is True or cost is True:
            raise ValueError(
                f"zero_based=…, query_id=True and cost=True are for svmlight text, not for {kind} "
                "files; query_id and cost take the names of columns"
            )
    elif columns.named():
        raise ValueError(
            f"label, features, query_id and cost name columns of tables, but {_names(files)} is "
            f"read as {kind}; pass format='csv', 'parquet' or 'arrow' if it is a table"
        )
    text = _Text(zero_based, query_id, cost, sort, unseen, max_features, n_jobs)
    folder = Path(path)
    with replacing_folder(
        folder, overwrite=bool(flag("overwrite", overwrite, auto=False)), is_ours=is_dataset
    ) as building:
        if kind == "svmlight":
            manifest = text.write(files, building, n_features, dtype)
        else:
            chunks: Iterator[Any]
            if kind == "npz":
                chunks = itertools.chain.from_iterable(map(_archive_chunks, files))
            else:
                chunks = table_chunks(files, kind, columns)
            with DatasetWriter(building, n_features=n_features, dtype=dtype) as writer:
                for chunk in chunks:
                    writer.add(chunk)
                manifest = writer.finish()
        save_manifest(building, manifest)
    return open_dataset(folder)


def _column(name: str, value: Any) -> str | None:
    """The name of a column, if it is one and not a choice of the same parameter."""
    if not isinstance(value, str):
        flag(name, value)
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
    return ", ".join(
        str(file if isinstance(file, str | os.PathLike) else getattr(file, "name", "<file>"))
        for file in files[:3]
    )


def _format_of(files: list[Any], format: str) -> str:
    if format not in FORMATS:
        options = ", ".join(map(repr, FORMATS))
        raise ValueError(f"format must be one of {options}, got {format!r}")
    if format != "auto":
        return format
    kinds = {_kind_of(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(f"the files are of different formats, {', '.join(sorted(kinds))}")
    return kinds.pop()


def _kind_of(file: Any) -> str:
    if not isinstance(file, str | os.PathLike):
        return "svmlight"
    suffix = Path(file).suffix.lower()
    return "npz" if suffix == ".npz" else TABLE_SUFFIXES.get(suffix, "svmlight")


# -- svmlight ---------------------------------------------------------------------


class _Text:
    """How svmlight text is read."""

    def __init__(
        self,
        zero_based: Flag,
        query_id: Any,
        cost: Any,
        sort: bool,
        unseen: Literal["error", "ignore"],
        max_features: int,
        n_jobs: int | None,
    ) -> None:
        self._zero_based = flag("zero_based", zero_based)
        self._query_id = query_id
        self._cost = cost
        self._sort = sort
        self._unseen = unseen
        self._n_jobs = n_jobs
        self._max_features = integer("max_features", max_features, 1, MOST_FEATURES)

    def write(self, files: list[Any], folder: Path, n_features: int | None, dtype: Any) -> Any:
        """Write the files of a data set; the manifest."""
        find_out = self._zero_based == "auto"
        if find_out and self._unseen == "ignore":
            raise ValueError("unseen='ignore' needs zero_based=True or False")
        # What is counted from 1 has an empty column 0, if it is read as counted from 0.
        extra = 1 if find_out else 0
        wide = None if n_features is None else integer("n_features", n_features, 1, MOST_FEATURES)
        stored = value_type(np.float64 if dtype is None else dtype)
        parsed = stored if stored.kind == "f" else np.float64
        with DatasetWriter(folder, dtype=stored) as writer:
            for file in files:
                for chunk in iter_svmlight(
                    file,
                    n_features=None if wide is None else min(wide + extra, MOST_FEATURES),
                    zero_based=bool(self._zero_based),
                    dtype=parsed,
                    query_id=self._query_id,
                    cost=bool(self._cost),
                    unseen=self._unseen,
                    max_features=min(self._max_features + extra, MOST_FEATURES),
                    sort=self._sort,
                    n_jobs=self._n_jobs,
                ):
                    writer.add(_four(chunk, bool(self._query_id), bool(self._cost)))
            if self._cost == "auto" and not writer.costs_differ:
                writer.leave_out("cost")
            if find_out:
                self._settle_first_index(writer, _names(files), wide)
            return writer.finish()

    def _settle_first_index(self, writer: DatasetWriter, name: str, wide: int | None) -> None:
        """Index 0 occurs, or all indices are one less."""
        first = state_first_index(name, writer.lowest_index)
        if first == 1:
            writer.shift_indices()
        most = min(wide or MOST_FEATURES, self._max_features)
        if writer.highest_index >= most:
            raise ValueError(
                f"{name}: indices are counted from 0 and the largest is {writer.highest_index}, "
                f"beyond {most} features; raise n_features or max_features"
            )
        writer.set_features(wide or writer.highest_index + 1)


def _four(chunk: tuple[Any, ...], has_qid: bool, has_cost: bool) -> tuple[Any, Any, Any, Any]:
    X, y, *rest = chunk
    qid = rest.pop(0) if has_qid else None
    return X, y, qid, rest.pop(0) if has_cost else None


# -- NumPy archives ---------------------------------------------------------------


def _archive_chunks(file: Any) -> Iterator[tuple[Any, ...]]:
    X, *columns = read_archive(file)
    for first in range(0, X.shape[0], _ARCHIVE_ROWS):
        part = slice(first, first + _ARCHIVE_ROWS)
        yield X[part], *(None if column is None else column[part] for column in columns)


def read_archive(file: Any) -> tuple[Any, ...]:
    """What a NumPy archive holds: ``X, y, qid, cost``, with None for what is not there."""
    name = _names([file])
    with ExitStack() as stack:
        if isinstance(file, str | os.PathLike):
            file = stack.enter_context(open(file, "rb"))
        try:
            archive = np.load(file, allow_pickle=False)
        except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ValueError(f"{name} is not a NumPy archive: {error}") from None
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError(f"{name} is not an archive of several arrays (.npz)")
        stack.enter_context(archive)
        try:
            X = _archive_matrix(archive, name)
            columns = [archive.get(key) for key in ("y", "qid", "cost")]
        except ValueError:
            raise
        except Exception as error:  # zipfile and zlib have many ways to say so
            raise ValueError(f"{name} is damaged: {error}") from None
    for key, column in zip(("y", "qid", "cost"), columns, strict=True):
        if column is not None and len(column) != X.shape[0]:
            raise ValueError(f"{name}: {key} has {len(column)} entries for {X.shape[0]} rows of X")
    return X, *columns


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
