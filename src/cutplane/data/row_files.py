"""Rows in several files, each read by the worker that will hold it."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .tables import TABLE_SUFFIXES, Columns, table_chunks


@dataclass(frozen=True)
class RowFiles:
    """Training data in several files, for fits on a cluster: each is read by a worker.

    Takes the place of X in ``fit``; labels, and if there are any queries and costs, come from the
    files.

    Parameters
    ----------
    paths : sequence of path
        svmlight text, also compressed, or Parquet, Arrow or CSV tables, all of one kind. They must
        be readable by every worker under the same path.
    n_features : int, optional
        Columns of svmlight text; by default the largest index of all files.
    zero_based : bool, default=False
        Whether indices of svmlight text are counted from 0.
    label, query_id, cost : str, optional
        Columns of tables with labels, queries and weights.
    features : sequence of str, optional
        Columns of tables with the features; by default all others.
    """

    paths: Sequence[str | os.PathLike[str]]
    n_features: int | None = None
    zero_based: bool = False
    label: str | None = None
    query_id: str | None = None
    cost: str | None = None
    features: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.paths, str | os.PathLike) or not len(self.paths):
            raise ValueError(f"paths must be a list of at least one path, got {self.paths!r}")
        names = [str(Path(path).absolute()) for path in self.paths]
        if len(set(names)) < len(names):
            twice = next(name for k, name in enumerate(names) if name in names[:k])
            raise ValueError(f"{twice} is listed twice; its rows would count twice")
        if len({TABLE_SUFFIXES.get(Path(name).suffix.lower()) for name in names}) > 1:
            raise ValueError("paths must be files of one kind, all svmlight text or all tables")
        table = Path(names[0]).suffix.lower() in TABLE_SUFFIXES
        if table and self.label is None:
            raise ValueError("tables need label=…, the column that holds the labels")

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, number: int) -> tuple[Any, ...]:
        """One file: ``X, y, qid, cost``, names of columns; with None for what is not there."""
        path = Path(self.paths[number]).absolute()
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise ValueError(
                f"{path} cannot be read on {socket.gethostname()}: {error.strerror}; files must "
                "be readable by every worker under the same path"
            ) from error
        kind = TABLE_SUFFIXES.get(path.suffix.lower())
        return self._table(path, kind) if kind else self._text(path)

    def _text(self, path: Path) -> tuple[Any, ...]:
        from .svmlight import load_svmlight

        X, y, qid, cost = load_svmlight(
            path,
            n_features=self.n_features,
            zero_based=self.zero_based,
            query_id="auto",
            cost=True,
            n_jobs=1,
        )
        return X, y, qid, cost, None

    def _table(self, path: Path, kind: str) -> tuple[Any, ...]:
        columns = Columns(self.label, self.features, self.query_id, self.cost)
        chunks = list(table_chunks([path], kind, columns))
        X = np.concatenate([np.asarray(chunk[0]) for chunk in chunks])
        others = [
            None if column[0] is None else np.concatenate(column)
            for column in zip(*(chunk[1:] for chunk in chunks), strict=True)
        ]
        return X, *others, chunks[0][0].columns


def features_of(contents: tuple[Any, ...]) -> Any:
    """The features of what was read."""
    return contents[0]


def names_of(contents: tuple[Any, ...]) -> Any:
    """The names of the columns of what was read."""
    return contents[4]


def column_of(contents: tuple[Any, ...], number: int) -> Any:
    """Labels (1), queries (2) or costs (3) of what was read."""
    return contents[number]


def widen(X: Any, features: int) -> Any:
    """Sparse rows with so many columns."""
    if not scipy.sparse.issparse(X) or X.shape[1] == features:
        return X
    return scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], features))


def joined(parts: Sequence[np.ndarray | None], what: str) -> np.ndarray | None:
    """A column of all files; None if none has it."""
    there = [part is not None for part in parts]
    if not any(there):
        return None
    if not all(there):
        raise ValueError(f"file {there.index(False)} has no {what}, but others have")
    return np.concatenate([part for part in parts if part is not None])
