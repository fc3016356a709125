"""Rows on several machines: how each worker gets its blocks.

There are three ways. The worker opens some blocks of a data set on disk (``FolderShare``). Or the
client sends the blocks themselves (``MemoryShare``). Or the rows come in partitions, from a Dask
collection or from files (``RowFiles``); the worker checks the partitions, counts their rows and
cuts them into blocks (``PartitionShare``). No block holds rows of two partitions. So the blocks,
and the bits of a fit, depend on the partitions and not on which worker holds which partition.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .._checks import check_sparse
from .blocks import Block, BlockedMatrix, ColumnMajorBlock, as_blocks, read_only
from .dataset import Dataset
from .rows import Rows, canonical, first_not_finite, joined_column
from .sums import part_edges
from .tables import TABLE_SUFFIXES, Columns, table_chunks

# -- blocks of data in memory or on disk ------------------------------------------


@dataclass(frozen=True)
class FolderShare:
    """Some blocks of a data set on disk, by the path of its folder."""

    path: str
    digest: bytes  # of the client's data set, which the worker compares with its own
    n_features: int
    memory_limit: int | None  # bytes that may stay in memory
    outputs: int  # scores per row of the model
    first: int  # blocks first to last − 1
    last: int

    def within(self, limit: int) -> FolderShare:
        """The same share with this limit on the bytes in memory, unless the user gave a limit."""
        if self.memory_limit is not None:
            return self
        return dataclasses.replace(self, memory_limit=limit)

    def open(self) -> BlockedMatrix:
        """The blocks."""
        try:
            dataset = Dataset(self.path, n_features=self.n_features, memory_limit=self.memory_limit)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{self.path} cannot be read here: {error}; the folder must be readable by every "
                "worker under the same path"
            ) from error
        if dataset.digest() != self.digest:
            raise ValueError(f"{self.path} is another data set here; the same must be everywhere")
        return dataset.blocks(self.outputs, range(self.first, self.last))


@dataclass(frozen=True)
class MemoryShare:
    """Some blocks, which are sent to the worker."""

    blocks: Sequence[Block]
    features: int

    def open(self) -> BlockedMatrix:
        """The blocks."""
        blocks = [_fixed(block) for block in self.blocks]
        return _matrix_of(blocks, self.features, sum(block.arrays()[0].size for block in blocks))


def _fixed(block: Block) -> Block:
    """The block with read-only arrays: pickling has made them writeable."""
    arrays: dict[str, Any] = {
        field.name: read_only(value)
        for field in dataclasses.fields(block)
        if isinstance(value := getattr(block, field.name), np.ndarray)
    }
    return dataclasses.replace(block, **arrays)


def travelling(block: Block) -> Block:
    """The block without rows of other blocks: column-major blocks are views of one array."""
    if isinstance(block, ColumnMajorBlock):
        rows = slice(block.first, block.first + block.rows)
        return ColumnMajorBlock(np.ascontiguousarray(block.xt[:, rows]), 0, block.rows)
    return block


def _matrix_of(blocks: Sequence[Block], features: int, n_stored: int) -> BlockedMatrix:
    bounds = np.cumsum([0, *(block.rows for block in blocks)]).astype(np.int64)
    return BlockedMatrix(blocks, bounds, (int(bounds[-1]), features), n_stored)


# -- files, each read by the worker that will hold it -------------------------------


@dataclass(frozen=True)
class RowFiles:
    """Training data in several files, for fits on a cluster: workers read the files.

    Pass it to ``fit`` in place of X. Labels come from the files, and so do queries and costs if
    there are any.

    Parameters
    ----------
    paths : sequence of path
        svmlight text, also compressed, or Parquet, Arrow or CSV tables, all of one kind. They must
        be readable by every worker under the same path.
    n_features : int, optional
        Columns of svmlight text; by default the largest index of all files.
    zero_based : bool, default=False
        Whether indices of svmlight text are counted from 0.
    label, qid, cost : str, optional
        Columns of tables with labels, queries and weights.
    features : sequence of str, optional
        Columns of tables with the features; by default all others.
    """

    paths: Sequence[str | os.PathLike[str]]
    n_features: int | None = None
    zero_based: bool = False
    label: str | None = None
    qid: str | None = None
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

    def read(self, number: int) -> Rows:
        """One file."""
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
        if kind is None:
            from .svmlight import load_svmlight

            X, y, qid, cost = load_svmlight(
                path,
                n_features=self.n_features,
                zero_based=self.zero_based,
                qid="auto",
                cost=True,
                n_jobs=1,
            )
            return Rows(X, y, cost, qid)
        columns = Columns(self.label, self.features, self.qid, self.cost)
        chunks = list(table_chunks([path], kind, columns))
        X, y, qid, cost = (joined_column(parts, "") for parts in zip(*chunks, strict=True))
        return Rows(X, y, cost, qid, chunks[0].names)


def widen(X: Any, features: int) -> Any:
    """Sparse rows with ``features`` columns; dense rows as they are."""
    if not scipy.sparse.issparse(X) or X.shape[1] == features:
        return X
    return scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], features))


# -- partitions ---------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """Counts of a partition, which its worker reports to the client."""

    rows: int
    features: int
    n_stored: int  # stored values
    names: tuple[str, ...] | None  # of the columns


def clean(number: int, piece: Any) -> Any:
    """A partition as an array or CSR matrix of float32 or float64; refuses numbers not finite."""
    where = f"partition {number} of X"
    if hasattr(piece, "to_numpy"):
        piece = piece.to_numpy()
    check_sparse(piece, where)
    X = canonical(piece)
    if X.ndim != 2:
        raise ValueError(f"{where} has {X.ndim} dimension(s), not 2")
    try:
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} does not hold numbers: {error}") from error
    if (bad := first_not_finite(X)) is not None:
        raise ValueError(
            f"{where} has NaN or infinity in its row {bad[0]}; fill it in or leave it out"
        )
    return X


def facts(names: tuple[str, ...] | None, X: Any) -> Facts:
    """Count a clean partition whose columns have these names."""
    numbers = X.nnz if scipy.sparse.issparse(X) else X.size
    return Facts(X.shape[0], X.shape[1], int(numbers), names)


def block_bounds(X: Any, outputs: int) -> np.ndarray:
    """Rows of a partition at which its blocks begin, and the end."""
    if not X.shape[0]:
        return np.zeros(1, dtype=np.int64)
    return as_blocks(X, outputs=outputs, compact=False).bounds


def digest(X: Any) -> bytes:
    """A fingerprint of a partition."""
    if not X.shape[0]:
        return hashlib.blake2b(repr(X.shape).encode(), digest_size=16).digest()
    return as_blocks(X, compact=False).digest()


def check_alike(found: Sequence[Facts], *, widths: bool = True) -> None:
    """Refuse partitions whose columns differ; with ``widths`` their number must agree, too."""
    if not sum(facts.rows for facts in found):
        raise ValueError("X has no rows: all its partitions are empty")
    first = next(k for k, facts in enumerate(found) if facts.rows)
    for k, other in enumerate(found):
        if widths and other.features != found[first].features and other.rows:
            raise ValueError(
                f"partition {k} of X has {other.features} features, but partition {first} has "
                f"{found[first].features}"
            )
        if other.names != found[first].names and other.rows:
            raise ValueError(f"the columns of partition {k} of X are named otherwise than before")


def all_parts(bounds: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Blocks and parts of several partitions, one after the other.

    Parameters
    ----------
    bounds : sequence of ndarray
        For each partition, the rows at which its blocks begin, and the end.

    Returns
    -------
    rows : ndarray
        Rows at which blocks begin, and the end.
    edges : ndarray
        Blocks at which parts begin, and the end.
    first : list of int
        Parts at which partitions begin, and the end.
    """
    rows, edges, first = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], [0]
    for own in bounds:
        blocks = len(own) - 1
        if blocks:
            rows.append(rows[-1][-1] + own[1:])
            edges.append(edges[-1][-1] + part_edges(blocks, int(own[-1]))[1:])
        first.append(first[-1] + (len(edges[-1]) if blocks else 0))
    return np.concatenate(rows), np.concatenate(edges), first


@dataclass(frozen=True)
class PartitionShare:
    """Some partitions that this worker holds."""

    pieces: Sequence[Any]  # arrays or CSR matrices
    features: int
    outputs: int  # scores per row of the model

    def open(self) -> BlockedMatrix:
        """The rows of all partitions in blocks."""
        parts = [as_blocks(X, outputs=self.outputs) for X in self.pieces if X.shape[0]]
        blocks = [block for part in parts for block in part.blocks]
        return _matrix_of(blocks, self.features, sum(part.n_stored for part in parts))
