"""Data for the commands: svmlight text, NumPy archives, data sets on disk, all as one ``Table``.

A NumPy archive (.npz) holds ``y`` and either ``X`` or the parts of a sparse matrix as
``scipy.sparse.save_npz`` names them; ``qid`` and ``cost`` may be there, too.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .common import CommandError
from .flags import count

logger = logging.getLogger("cutplane")

TABLES = (".csv", ".parquet", ".pq", ".arrow", ".feather", ".ipc")


@dataclass(frozen=True)
class Table:
    """Rows with their labels, and what else a file has.

    Attributes
    ----------
    name : str
        For messages.
    X : ndarray, CSR matrix or Dataset, shape (rows, features)
    y : ndarray, shape (rows,)
    qid : ndarray or None
    cost : ndarray or None
        Weights of the rows; None if all are 1.
    """

    name: str
    X: Any
    y: np.ndarray
    qid: np.ndarray | None = None
    cost: np.ndarray | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def weights(self) -> np.ndarray:
        """Of the rows."""
        return np.ones(len(self.y)) if self.cost is None else self.cost

    def aligned(self, features: int) -> tuple[Table, int]:
        """With as many columns as a model has, in memory; how many values that leaves out."""
        X, left_out = _aligned(in_memory(self).X, features)
        return replace(self, X=X), left_out


def _aligned(X: Any, features: int) -> tuple[Any, int]:
    import scipy.sparse

    width = X.shape[1]
    if width == features:
        return X, 0
    if width > features:
        rest = X[:, features:]
        beyond = rest.nnz if scipy.sparse.issparse(X) else np.count_nonzero(rest)
        return X[:, :features], int(beyond)
    if scipy.sparse.issparse(X):
        X = X.tocsr()
        return scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], features)), 0
    return np.pad(X, ((0, 0), (0, features - width))), 0


# -- arguments ----------------------------------------------------------------


def add_reader_flags(parser: Any, *, width: bool = False) -> None:
    """Offer what svmlight files need; ``width`` if the number of columns may be fixed."""
    group = parser.add_argument_group("reading svmlight files")
    group.add_argument(
        "--zero-based", action="store_true", help="indices count from 0; the usual is from 1"
    )
    group.add_argument(
        "--sort", action="store_true", help="accept rows whose indices do not increase"
    )
    group.add_argument(
        "--max-features",
        metavar="N",
        type=count,
        help="an index beyond this is an error (default: 2147483647)",
    )
    if width:
        group.add_argument(
            "--n-features",
            metavar="N",
            type=count,
            help="columns of the data, if the largest index in the file does not tell",
        )


def reader_options(args: argparse.Namespace) -> dict[str, Any]:
    """The reader's flags as arguments of the readers."""
    options: dict[str, Any] = {"zero_based": args.zero_based, "sort": args.sort}
    if args.max_features is not None:
        options["max_features"] = args.max_features
    if getattr(args, "n_features", None) is not None:
        options["n_features"] = args.n_features
    return options


# -- reading ------------------------------------------------------------------


def format_of(name: str) -> str:
    """The format of a file, by its name: svmlight, npz or cut."""
    path = Path(name)
    if path.suffix == ".npz":
        return "npz"
    if path.suffix == ".cut" or (name != "-" and path.is_dir()):
        return "cut"
    if path.suffix.lower() in TABLES:
        raise CommandError(
            f"{name} is a table; convert it first: cutplane convert --label COLUMN {name} data.cut"
        )
    return "svmlight"


def read_table(name: str, args: argparse.Namespace) -> Table:
    """Read all of a file.

    Parameters
    ----------
    name : str
        A path, or '-' for svmlight text from standard input.
    args : Namespace
        With the reader's flags.
    """
    match format_of(name):
        case "npz":
            return _read_archive(name)
        case "cut":
            return _open_dataset(name)
    from ..data.svmlight import load_svmlight

    X, y, qid, cost = load_svmlight(name, query_id="auto", cost=True, **reader_options(args))
    return _table(name, X, y, qid, cost)


def read_chunks(name: str, args: argparse.Namespace) -> Iterator[Table]:
    """Read a file in parts, where its format has parts."""
    match format_of(name):
        case "npz":
            yield _read_archive(name)
            return
        case "cut":
            yield from _dataset_chunks(name)
            return
    from ..data.svmlight import iter_svmlight

    for X, y, qid, cost in iter_svmlight(name, query_id="auto", cost=True, **reader_options(args)):
        yield _table(name, X, y, qid, cost)


def _table(name: str, X: Any, y: Any, qid: Any, cost: Any) -> Table:
    uniform = cost is None or bool(np.all(cost == 1.0))
    return Table("<stdin>" if name == "-" else name, X, y, qid, None if uniform else cost)


def whole_labels(y: np.ndarray) -> np.ndarray:
    """Labels as integers, if they are."""
    if y.dtype.kind == "f" and np.all(y == np.floor(y)) and np.all(np.abs(y) < 2.0**53):
        return y.astype(np.int64)
    return y


def _read_archive(name: str) -> Table:
    from ..data.convert import read_archive

    X, y, qid, cost = read_archive(name)
    if X.dtype.kind in "iub" and X.dtype.itemsize <= 2:
        X = X.astype(np.float32)  # exact, and half the memory
    return _labelled(_table(name, X, y, qid, cost))


def _labelled(table: Table) -> Table:
    if table.y is None:
        raise CommandError(f"{table.name} has no labels")
    return table


# -- data sets on disk --------------------------------------------------------


def _open_dataset(name: str) -> Table:
    """A data set that stays on disk, with its columns."""
    from .. import open_dataset

    dataset = open_dataset(name)
    return _labelled(_table(name, dataset, dataset.y, dataset.qid, dataset.cost))


def _dataset_chunks(name: str) -> Iterator[Table]:
    from .. import open_dataset

    with open_dataset(name) as dataset:
        for chunk in dataset.chunks():
            yield _labelled(_table(name, *chunk))


def in_memory(table: Table) -> Table:
    """The table with its rows as an array or a sparse matrix."""
    if hasattr(table.X, "memory_limit"):  # a data set on disk
        return replace(table, X=table.X.rows())
    return table
