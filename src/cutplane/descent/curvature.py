"""The matrix of second derivatives of a smoothed hinge, brought up to date.

    Σ weight_i·x_i x_iᵀ   over the rows ``inside``, with the bias or the constant feature last.

Blocks of rows are taken in groups that depend on the data alone. Every group has its part of the
matrix: from step to step the rows that have come inside are added and those that have gone
subtracted. The parts are added up in order, so that threads do not show in the result. Where that
is too much work, a sample of the rows stands for all: the matrix gives directions, while gradients
and steps are those of all rows.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..data.blocks import Block, CSRBlock
from ..exec import SerialExecutor
from ..loops import newton as loops
from ..oracles import RowOracle
from .passes import FlatRows, flat_rows

# Arrays for parts of the matrix, at most, and the numbers in each compared with those of the data.
MOST_GROUPS, GROUP_PART = 16, 0.25
# Times that the matrix is brought up to date before it is computed anew.
MOST_UPDATES = 30
# A matrix may cost so many products per number of the data, or take so many rows per feature: of
# twice as many rows inside half are taken, of four times as many a quarter.
WORK, ROWS_PER_FEATURE = 16, 8


def row_length(oracle: RowOracle) -> float:
    """Numbers in a row, the mean over all numbers: long rows count by their length."""
    matrix = oracle.matrix
    if not isinstance(matrix.blocks[0], CSRBlock):
        return float(matrix.shape[1])
    known = matrix.facts.get("row length")
    if known is None:
        known = sum(matrix.run(_squared_lengths, SerialExecutor())) / max(1, matrix.numbers)
        matrix.facts["row length"] = known
    return float(known)


def _squared_lengths(k: int, block: Block) -> float:
    """Σ (numbers in a row)² of a block."""
    assert isinstance(block, CSRBlock)
    lengths = np.diff(block.starts)
    return float(np.einsum("i,i->", lengths, lengths))


class Curvature:
    """Σ weight_i x_i x_iᵀ over the rows inside, with the bias or the constant feature last."""

    def __init__(self, oracle: RowOracle) -> None:
        matrix = oracle.matrix
        self._oracle = oracle
        self._constant = 1.0 if oracle.free_bias else oracle.constant
        self._size = matrix.shape[1] + (self._constant != 0.0)
        # Rows on disk are read when their turn comes.
        in_memory = matrix.whole is not None
        self._equal = isinstance(matrix.whole, CSRBlock) and matrix.whole.equal
        self._flat = [flat_rows(block) for block in matrix.blocks] if in_memory else None
        blocks = len(matrix.blocks)
        room = int(GROUP_PART * matrix.numbers / self._size**2)
        groups = min(blocks, max(2, min(MOST_GROUPS, room)))
        edges = [blocks * k // groups for k in range(groups + 1)]
        self._groups = list(pairwise(edges))
        self._halves = np.zeros((groups, self._size, self._size))
        self._counted = np.zeros(len(matrix), np.uint8)
        self._updates = np.full(groups, MOST_UPDATES)
        shortest = len(matrix) / row_length(oracle)
        self._enough = max(ROWS_PER_FEATURE * self._size, WORK * shortest)
        self._halvings = 0  # of the rows that are taken
        self._ranks: np.ndarray | None = None

    def changes(self, inside: np.ndarray) -> tuple[int, int]:
        """How many rows are inside, and how many have changed since the last matrix."""
        return loops.count_changes(self._taken(inside), self._counted)

    def matrix(self, inside: np.ndarray) -> np.ndarray:
        """The matrix for these rows, in an array of its own; from a sample where they are many."""
        count, _ = loops.count_changes(inside, self._counted)
        self._halvings = int(np.log2(max(1.0, count / self._enough)))
        matrix = self._sum(self._taken(inside))
        matrix *= 2.0**self._halvings
        return matrix

    def _taken(self, inside: np.ndarray) -> np.ndarray:
        """The rows inside, or a sample of them."""
        if self._halvings == 0:
            return inside
        if self._ranks is None:
            self._ranks = np.random.default_rng(0).random(len(inside), np.float32)
        return inside * (self._ranks < 0.5**self._halvings)

    def _sum(self, inside: np.ndarray) -> np.ndarray:
        groups, flat = range(len(self._groups)), self._flat
        anew = [self._prepare(group, inside) for group in groups]
        if flat is not None:

            def bring_up_to_date(group: int) -> None:
                for k in range(*self._groups[group]):
                    self._add(k, flat[k], inside, anew[group], self._halves[group])

            self._oracle.executor.run(bring_up_to_date, len(groups))
        else:  # in the order of a pass
            source = self._oracle.matrix.blocks
            source.begin()
            for group in groups:
                for k in range(*self._groups[group]):
                    block = flat_rows(source.take(k))
                    self._add(k, block, inside, anew[group], self._halves[group])
                    source.release(k)
        total = self._halves[0].copy()
        for half in self._halves[1:]:
            total += half
        return total + total.T

    def _prepare(self, group: int, inside: np.ndarray) -> bool:
        """Whether a group's part is to be computed anew; it is 0 then."""
        bounds = self._oracle.matrix.bounds
        first, last = self._groups[group]
        rows = slice(bounds[first], bounds[last])
        count, changed = loops.count_changes(inside[rows], self._counted[rows])
        anew = bool(changed > count or self._updates[group] >= MOST_UPDATES)
        if anew:
            self._halves[group] = 0.0
        self._updates[group] = 0 if anew else self._updates[group] + 1
        return anew

    def _add(
        self, k: int, block: FlatRows, inside: np.ndarray, anew: bool, half: np.ndarray
    ) -> None:
        """Add what block k contributes."""
        rows = self._oracle.matrix.slice(k)
        loops.add_squares(
            *block,
            self._equal,
            inside[rows],
            self._counted[rows],
            self._oracle.targets.weights[rows],
            self._constant,
            anew,
            half,
        )
