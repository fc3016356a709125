"""Sums over the blocks of a matrix, in the order that ``parts`` fixes: gradients, above all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..loops import vectors
from .blocks import Block, BlockedMatrix, Runner
from .parts import SumPlan, whole_plan

# Partial gradients that are held at a time: many enough for the threads, in so many numbers.
PARTIAL_NUMBERS = 1 << 22
LEAST_PARTIALS = 8
# Columns of them that are worth a task to add up.
SUM_COLUMNS = 1 << 14
# Numbers between two of them: threads that write to the same line of the cache, or to neighbouring
# ones, wait for one another: on covtype Xᵀ·c takes two threads a tenth more time then.
APART = 16


def room_for(shape: tuple[int, ...]) -> int:
    """How many arrays of a shape are held at a time."""
    return max(LEAST_PARTIALS, PARTIAL_NUMBERS // max(1, int(np.prod(shape))))


class BlockSum:
    """Sums of one array per block.

    However many partial sums are held at a time, the order of additions is that of the plan: the
    bits depend neither on that number nor on the threads.

    Attributes
    ----------
    kept : bool
        Whether there is room for the arrays of all blocks, which then stay from pass to pass.
    plan : SumPlan

    Parameters
    ----------
    matrix : BlockedMatrix
    shape : tuple of int
        Of the arrays.
    plan : SumPlan, optional
        If the matrix has some of the blocks of a larger one only.
    """

    def __init__(
        self, matrix: BlockedMatrix, shape: tuple[int, ...], plan: SumPlan | None = None
    ) -> None:
        self._matrix = matrix
        self._shape = shape
        self.plan = plan or whole_plan(len(matrix.blocks), len(matrix))
        self._partials: np.ndarray | None = None
        self._stack: np.ndarray | None = None
        self._room = room_for(shape)
        self.kept = len(matrix.blocks) <= self._room

    def run(
        self, partial: Callable[[int, Block, np.ndarray], None], executor: Runner
    ) -> np.ndarray:
        """One pass; the sums are good until the next one.

        Parameters
        ----------
        partial : callable
            Gets the number of a block, the block, and the array for it: what it left there in
            the last pass if arrays are ``kept``, anything otherwise.
        executor : Executor

        Returns
        -------
        sums : ndarray
            One for each node of the plan: a single one if the matrix has all blocks.
        """
        matrix = self._matrix
        count = len(matrix.blocks)
        if self._partials is None or self._stack is None:
            room = min(count, max(self._room, executor.threads))
            self._partials = np.empty((room, int(np.prod(self._shape)) + APART))
            self._stack = np.empty((self.plan.depth, *self._shape))
        partials, stack = self._partials, self._stack
        room = len(partials)
        top = 0
        matrix.blocks.begin()
        for first in range(0, count, room):
            group = range(first, min(first + room, count))

            def work(k: int, block: Block, first: int = first) -> None:
                partial(k, block, partials[k - first, :-APART].reshape(self._shape))

            matrix.run(work, executor, group)
            top = self._add_up(partials[: len(group)], group, top, stack, executor)
        return stack[:top]

    def held(self) -> np.ndarray | None:
        """The arrays that are ``kept`` of all blocks after a pass, shape (blocks, numbers)."""
        return None if self._partials is None else self._partials[:, :-APART]

    def restore(self, arrays: np.ndarray) -> None:
        """Hold these arrays, as if they came from a pass."""
        self._partials = np.empty((len(arrays), arrays.shape[1] + APART))
        self._partials[:, :-APART] = arrays
        self._stack = np.empty((self.plan.depth, *self._shape))

    def _add_up(
        self, partials: np.ndarray, group: range, top: int, stack: np.ndarray, executor: Runner
    ) -> int:
        """Add the arrays of some blocks to the sums on the stack; returns the number of these."""
        sums = stack.reshape(len(stack), -1)
        blocks = slice(group.start, group.stop)
        begins, merges = self.plan.begins[blocks], self.plan.merges[blocks]
        width = sums.shape[1]

        def columns(k: int) -> int:
            last = min((k + 1) * SUM_COLUMNS, width)
            return vectors.add_tree(partials, begins, merges, top, k * SUM_COLUMNS, last, sums)

        return executor.run(columns, max(1, -(-width // SUM_COLUMNS)))[0]
