"""Sums over the blocks of a matrix: gradients, above all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..loops import vectors
from .blocks import Block, BlockedMatrix, Runner

# Partial gradients that are held at a time: many enough for the threads, in so many numbers.
PARTIAL_NUMBERS = 1 << 22
LEAST_PARTIALS = 8
# Columns of them that are worth a task to add up.
SUM_COLUMNS = 1 << 12


class BlockSum:
    """Sums of one array per block, added in the order of the blocks.

    However many partial sums are held at a time, each is added to the sum of all before: the bits
    depend neither on that number nor on the threads.

    Attributes
    ----------
    kept : bool
        Whether there is room for the arrays of all blocks, which then stay from pass to pass.

    Parameters
    ----------
    matrix : BlockedMatrix
    shape : tuple of int
        Of the arrays.
    """

    def __init__(self, matrix: BlockedMatrix, shape: tuple[int, ...]) -> None:
        self._matrix = matrix
        self._shape = shape
        self._partials: np.ndarray | None = None
        self._room = max(LEAST_PARTIALS, PARTIAL_NUMBERS // max(1, int(np.prod(shape))))
        self.kept = len(matrix.blocks) <= self._room

    def run(
        self, partial: Callable[[int, Block, np.ndarray], None], executor: Runner
    ) -> np.ndarray:
        """One pass; the sum is good until the next one.

        Parameters
        ----------
        partial : callable
            Gets the number of a block, the block, and the array for it: what it left there in
            the last pass if arrays are ``kept``, anything otherwise.
        executor : Executor
        """
        matrix = self._matrix
        count = len(matrix.blocks)
        if self._partials is None:
            room = min(count, max(self._room, executor.threads))
            self._partials = np.empty((room + 1, *self._shape))
        partials = self._partials
        room = len(partials) - 1
        matrix.blocks.begin()
        for first in range(0, count, room):
            group = range(first, min(first + room, count))

            def work(k: int, block: Block, first: int = first) -> None:
                partial(k, block, partials[1 + k - first])

            matrix.run(work, executor, group)
            begin = 0 if first else 1  # partials[0] is the sum of the groups before
            self._add_up(partials[begin : 1 + len(group)], partials[0], executor)
        return partials[0]

    @staticmethod
    def _add_up(partials: np.ndarray, out: np.ndarray, executor: Runner) -> None:
        """out = Σ_k partials[k], in that order."""
        parts, total = partials.reshape(len(partials), -1), out.reshape(-1)

        def columns(k: int) -> None:
            last = min((k + 1) * SUM_COLUMNS, len(total))
            vectors.add_up(parts, k * SUM_COLUMNS, last, total)

        executor.run(columns, max(1, -(-len(total) // SUM_COLUMNS)))
