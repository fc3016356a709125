"""Partitions: rows that come in pieces of their own, each on some machine.

What a worker does with a partition before a fit: check it, count, cut it into blocks. Blocks end
where partitions end, so that the blocks, and with them the bits of a fit, depend on the
partitions and not on who holds them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .blocks import Block, BlockedMatrix, MemoryBlocks, as_blocks
from .parts import part_edges
from .sparse import check_sparse


@dataclass(frozen=True)
class Facts:
    """What is known of a partition.

    Attributes
    ----------
    rows, features, numbers : int
        Its shape, and stored values.
    names : tuple of str or None
        Of its columns.
    """

    rows: int
    features: int
    numbers: int
    names: tuple[str, ...] | None


def clean(number: int, piece: Any) -> Any:
    """A partition as an array or CSR matrix of finite float32 or float64; refuses what is not."""
    where = f"partition {number} of X"
    if hasattr(piece, "to_numpy"):
        piece = piece.to_numpy()
    sparse = scipy.sparse.issparse(piece)
    check_sparse(piece, where)
    X: Any = scipy.sparse.csr_array(piece) if sparse else np.asarray(piece)
    if X.ndim != 2:
        raise ValueError(f"{where} has {X.ndim} dimension(s), not 2")
    try:
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} does not hold numbers: {error}") from error
    if sparse:
        X.sum_duplicates()
    bad = ~np.isfinite(X.data if sparse else X)
    if np.any(bad):
        place = int(np.argmax(bad.ravel()))
        row = int(np.searchsorted(X.indptr, place, "right") - 1) if sparse else place // X.shape[1]
        raise ValueError(
            f"{where} has NaN or infinity in its row {row}; fill it in or leave it out"
        )
    return X


def names_of(piece: Any) -> tuple[str, ...] | None:
    """Names of the columns of a partition as it was given."""
    if hasattr(piece, "columns") and all(isinstance(name, str) for name in piece.columns):
        return tuple(piece.columns)
    return None


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
    """Refuse partitions that do not fit together; ``widths`` if they must have as many columns."""
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
        Of the blocks of each partition.

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
    """Some partitions, which are there.

    Attributes
    ----------
    pieces : sequence of array or CSR matrix
    features : int
    outputs : int
        Scores per row of the model.
    """

    pieces: Sequence[Any]
    features: int
    outputs: int

    def open(self) -> BlockedMatrix:
        """The rows of all partitions in blocks."""
        parts = [as_blocks(X, outputs=self.outputs) for X in self.pieces if X.shape[0]]
        blocks: list[Block] = [block for part in parts for block in part.blocks]
        heights = [block.rows for block in blocks]
        bounds = np.cumsum([0, *heights]).astype(np.int64)
        numbers = sum(part.numbers for part in parts)
        shape = (int(bounds[-1]), self.features)
        return BlockedMatrix(MemoryBlocks(blocks), bounds, shape, numbers)
