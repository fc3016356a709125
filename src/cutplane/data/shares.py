"""Shares of the rows: how one of several machines comes to its blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .blocks import Block, BlockedMatrix, ColumnMajorBlock, MemoryBlocks, read_only
from .dataset import Dataset


@dataclass(frozen=True)
class FolderShare:
    """Some blocks of a data set on disk, by the path of its folder.

    Attributes
    ----------
    path : str
    digest : bytes
        Of the data set that is meant.
    n_features : int
    memory_limit : int or None
        Bytes that may stay in memory.
    outputs : int
        Scores per row of the model.
    first, last : int
        Which blocks.
    """

    path: str
    digest: bytes
    n_features: int
    memory_limit: int | None
    outputs: int
    first: int
    last: int

    def within(self, limit: int) -> FolderShare:
        """With at most so many bytes in memory, unless a number was given."""
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
    """Some blocks, which travel themselves."""

    blocks: Sequence[Block]
    features: int

    def open(self) -> BlockedMatrix:
        """The blocks."""
        blocks = [_fixed(block) for block in self.blocks]
        bounds = np.cumsum([0, *(block.rows for block in blocks)]).astype(np.int64)
        numbers = sum(block.arrays()[0].size for block in blocks)
        shape = (int(bounds[-1]), self.features)
        return BlockedMatrix(MemoryBlocks(blocks), bounds, shape, numbers)


def _fixed(block: Block) -> Block:
    """A block of read-only arrays, as blocks are where they were made."""
    arrays: dict[str, Any] = {
        field.name: read_only(value)
        for field in dataclasses.fields(block)
        if isinstance(value := getattr(block, field.name), np.ndarray)
    }
    return dataclasses.replace(block, **arrays)


def travelling(block: Block) -> Block:
    """A block without what is not its own."""
    if isinstance(block, ColumnMajorBlock):
        rows = slice(block.first, block.first + block.rows)
        return ColumnMajorBlock(np.ascontiguousarray(block.xt[:, rows]), 0, block.rows)
    return block
