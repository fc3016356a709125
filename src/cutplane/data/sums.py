"""Sums over blocks, gradients above all, in an order that the blocks alone fix.

Parts are runs of consecutive blocks. Sums over the blocks of a part are added in the order of the
blocks, and those of parts along a binary tree that halves the range,

    sum(a, b) = sum(a, m) + sum(m, b),   m = ⌊(a + b)/2⌋   over the parts a to b.

Whoever holds some consecutive parts can form the sums of the largest subtrees within them, one or
a few arrays for any number of blocks, and whoever gets these from everybody ends with the same
bits as one who holds all parts. Parts depend on the blocks and the rows alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..loops import vectors

if TYPE_CHECKING:
    from ..exec import Executor
    from .blocks import Block, BlockedMatrix

# Parts are the smallest share of a machine, and no pass over scores goes across their ends: so
# many keep threads and machines busy, and more come only with rows that are worth it.
PARTS = 32
ROWS_PER_PART = 1 << 18
# How far from the best place a share may end, as part of a share, if it then sends fewer sums; two
# parts, which is what halves of odd numbers may be off by, may be twice as much.
ROOM = 1.0 / 32
# Partial gradients that are held at a time: many enough for the threads, in so many numbers.
PARTIAL_NUMBERS = 1 << 22
LEAST_PARTIALS = 8
# Columns of them that are worth a task to add up.
SUM_COLUMNS = 1 << 14
# Numbers between two of them: threads that write to the same line of the cache, or to neighbouring
# ones, wait for one another: on covtype Xᵀ·c takes two threads a tenth more time then.
APART = 16

Node = tuple[int, int]


def part_edges(blocks: int, rows: int) -> np.ndarray:
    """Numbers of the blocks at which parts begin, and the end."""
    count = max(1, min(blocks, max(PARTS, rows // ROWS_PER_PART)))
    return np.arange(count + 1, dtype=np.int64) * blocks // count


@dataclass(frozen=True)
class SumPlan:
    """How the sums over a run of parts are formed, on a stack of arrays."""

    edges: np.ndarray  # blocks at which parts begin, and the end, of all parts
    first: int  # part of the run
    last: int

    @property
    def parts(self) -> int:
        """Number of all parts."""
        return len(self.edges) - 1

    @property
    def blocks(self) -> range:
        """The blocks of the run."""
        return range(int(self.edges[self.first]), int(self.edges[self.last]))

    @cached_property
    def begins(self) -> np.ndarray:
        """By block of the run: whether it is the first of its part."""
        begins = np.zeros(len(self.blocks), dtype=bool)
        begins[self.edges[self.first : self.last] - self.edges[self.first]] = True
        return begins

    @cached_property
    def merges(self) -> np.ndarray:
        """By block of the run: how often the two topmost sums are added up after it."""
        merges = np.zeros(len(self.blocks), dtype=np.int64)
        for a, b in self.nodes:
            self._count_merges(a, b, merges)
        return merges

    def _count_merges(self, a: int, b: int, merges: np.ndarray) -> None:
        if b - a > 1:
            middle = (a + b) // 2
            self._count_merges(a, middle, merges)
            self._count_merges(middle, b, merges)
            merges[self.edges[b] - 1 - self.edges[self.first]] += 1

    @cached_property
    def nodes(self) -> list[Node]:
        """The largest subtrees within the run: what is on the stack in the end."""
        return self._nodes(0, self.parts)

    def _nodes(self, a: int, b: int) -> list[Node]:
        if b <= self.first or self.last <= a:
            return []
        if self.first <= a and b <= self.last:
            return [(a, b)]
        middle = (a + b) // 2
        return self._nodes(a, middle) + self._nodes(middle, b)

    @cached_property
    def depth(self) -> int:
        """Arrays on the stack at most."""
        heights = np.cumsum(self.begins.astype(np.int64) - self.merges)
        return int(np.max(heights + self.merges))


def add_nodes(nodes: Mapping[Node, Any], last: int, first: int = 0) -> Any:
    """The sum over all parts, from those of subtrees, which stay as they are.

    Or over the parts first to last, if these are a node of the tree.
    """

    return _total(nodes, first, last)[0]


def _total(nodes: Mapping[Node, Any], a: int, b: int) -> tuple[Any, bool]:
    """A sum, and whether it may be written to."""
    if (a, b) in nodes:
        return nodes[a, b], False
    middle = (a + b) // 2
    left, left_free = _total(nodes, a, middle)
    right, right_free = _total(nodes, middle, b)
    if left_free:
        left += right
    elif right_free:
        right += left
    else:
        return left + right, True
    return (left, True) if left_free else (right, True)


@dataclass(frozen=True)
class ChunkSums:
    """How sums over chunks of rows are added up: those of a part in their order, then the tree."""

    counts: Sequence[int]  # chunks of each part, of a run of parts
    first: int  # part of the run
    nodes: Sequence[Node]  # the largest subtrees within the run

    @classmethod
    def whole(cls, counts: Sequence[int]) -> ChunkSums:
        """For one who holds all parts."""
        return cls(counts, 0, [(0, len(counts))])

    def add(self, sums: Sequence[Any]) -> list[Any]:
        """The sums of the nodes, from those of the chunks, which may be overwritten."""
        leaves, at = {}, 0
        for part, count in enumerate(self.counts, self.first):
            total = sums[at]
            for k in range(at + 1, at + count):
                total += sums[k]
            leaves[part, part + 1] = total
            at += count
        return [add_nodes(leaves, last, first) for first, last in self.nodes]


def share_parts(sizes: Sequence[float], powers: Sequence[float]) -> list[tuple[int, int]]:
    """Consecutive parts for each of several holders, in proportion to their powers.

    Nobody gets an empty run: with fewer parts than holders the last ones get nothing at all and
    are left out. Of ends that are about as good the one highest in the tree is taken, because
    holders then send fewer sums: with 2ᵏ equal holders one each, mostly.
    """
    parts, count = len(sizes), min(len(sizes), len(powers))
    before = np.concatenate([[0.0], np.cumsum(sizes)])
    shares = np.asarray(powers[:count]) / np.sum(powers[:count]) * before[-1]
    depths, largest = _split_depths(parts), float(np.max(sizes))
    cuts = [0]
    for k, wanted in enumerate(np.cumsum(shares)[:-1].tolist()):
        possible = np.arange(cuts[-1] + 1, parts - (count - 1 - k) + 1)
        distances = np.abs(before[possible] - wanted)
        share = float(min(shares[k], shares[k + 1]))
        room = max(ROOM * share, min(2.0 * largest, 2.0 * ROOM * share), float(distances.min()))
        near = possible[distances <= room]
        cuts.append(int(min(near, key=lambda cut: (depths[cut], abs(before[cut] - wanted)))))
    cuts.append(parts)
    return list(itertools.pairwise(cuts))


def _split_depths(parts: int) -> list[int]:
    """By number of a part: how deep in the tree a range is halved in front of it."""
    depths = [0] * (parts + 1)
    ranges = [(0, parts, 1)]
    while ranges:
        a, b, depth = ranges.pop()
        if b - a > 1:
            middle = (a + b) // 2
            depths[middle] = depth
            ranges += [(a, middle, depth + 1), (middle, b, depth + 1)]
    return depths


# -- gradients --------------------------------------------------------------------


def room_for(shape: tuple[int, ...]) -> int:
    """How many arrays of a shape are held at a time."""
    return max(LEAST_PARTIALS, PARTIAL_NUMBERS // max(1, int(np.prod(shape))))


class BlockSum:
    """Sums of one array per block.

    However many partial sums are held at a time, the order of additions is that of the plan: the
    bits depend neither on that number nor on the threads. A plan is given if the matrix has some
    of the blocks of a larger one only. ``kept`` says whether there is room for the arrays of all
    blocks, which then stay from pass to pass.
    """

    def __init__(
        self, matrix: BlockedMatrix, shape: tuple[int, ...], plan: SumPlan | None = None
    ) -> None:
        self._matrix = matrix
        self._shape = shape
        if plan is None:  # for one who holds all parts
            edges = part_edges(len(matrix.blocks), len(matrix))
            plan = SumPlan(edges, 0, len(edges) - 1)
        self.plan = plan
        self._partials: np.ndarray | None = None
        self._stack: np.ndarray | None = None
        self._room = room_for(shape)
        self.kept = len(matrix.blocks) <= self._room

    def run(
        self, partial: Callable[[int, Block, np.ndarray], None], executor: Executor
    ) -> np.ndarray:
        """One pass: a sum for each node of the plan, a single one if the matrix has all blocks.

        ``partial`` gets the number of a block, the block, and the array for it: what it left there
        in the last pass if arrays are ``kept``, anything otherwise. The sums are good until the
        next pass.
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
        self, partials: np.ndarray, group: range, top: int, stack: np.ndarray, executor: Executor
    ) -> int:
        """Add the arrays of some blocks to the sums on the stack; returns the number of these."""
        sums = stack.reshape(len(stack), -1)
        blocks = slice(group.start, group.stop)
        begins, merges = self.plan.begins[blocks], self.plan.merges[blocks]
        width = sums.shape[1]
        if len(partials) == 1 and begins[0] and not merges[0]:  # a block that is a sum by itself
            sums[top] = partials[0, :width]
            return top + 1

        def columns(k: int) -> int:
            last = min((k + 1) * SUM_COLUMNS, width)
            return vectors.add_tree(partials, begins, merges, top, k * SUM_COLUMNS, last, sums)

        return executor.run(columns, max(1, -(-width // SUM_COLUMNS)))[0]
