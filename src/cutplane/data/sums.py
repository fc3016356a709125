"""Sums of one array per block, mostly of gradients, in an order that depends on the blocks alone.

A part is a run of consecutive blocks. The arrays of a part are added in the order of the blocks.
The sums of the parts are added along a binary tree that halves the range of parts,

    sum(a, b) = sum(a, m) + sum(m, b),   m = ⌊(a + b)/2⌋   over the parts a to b.

A worker that holds some consecutive parts forms the sums of the largest subtrees within them: one
or a few arrays, however many blocks it has. The client adds the sums of all workers along the rest
of the tree, and gets the same bits as a machine that holds all parts. Parts depend only on the
number of blocks and of rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..loops import vectors

if TYPE_CHECKING:
    from ..exec import Executor
    from .blocks import Block, BlockedMatrix

# A machine gets whole parts, and each task of a pass over scores stays within one part. 32 parts
# keep threads and machines busy. More parts only pay if each has many rows.
PARTS = 32
ROWS_PER_PART = 1 << 18
# A worker's share of the parts may end this fraction of a share away from its best end, if the
# worker then sends fewer sums. An end that is two parts away may be at twice this distance, because
# a subtree of an odd number of parts does not halve evenly.
ROOM = 1.0 / 32
# Partial gradients in memory at a time: as many as fit in so many numbers, but at least eight, so
# that all threads have work.
PARTIAL_NUMBERS = 1 << 22
LEAST_PARTIALS = 8
# Columns of the partial gradients that one task adds up.
SUM_COLUMNS = 1 << 14
# Unused numbers between two partial gradients. Threads that write to the same cache line, or to
# neighbouring ones, wait for one another. On covtype, Xᵀ·c with two threads takes a tenth longer
# without the distance.
APART = 16

Node = tuple[int, int]


def part_edges(blocks: int, rows: int) -> np.ndarray:
    """Numbers of the blocks at which parts begin, and the end."""
    count = max(1, min(blocks, max(PARTS, rows // ROWS_PER_PART)))
    return np.arange(count + 1, dtype=np.int64) * blocks // count


class SumPlan:
    """How to add the arrays of the blocks in a run of parts, with a stack of arrays.

    For each block in turn: put its array on the stack if the block ``begins`` a part, otherwise add
    it to the topmost array; then add the two topmost arrays as often as ``merges`` says.

    Parameters
    ----------
    edges : ndarray
        Blocks at which parts begin, and the end, of all parts.
    first, last : int
        The run is the parts first to last − 1.

    Attributes
    ----------
    blocks : range
        The blocks of the run.
    begins : ndarray of bool
        For each block of the run, whether it is the first of its part.
    merges : ndarray of int64
        For each block of the run, how often the two topmost sums are added after it.
    nodes : list of Node
        The largest subtrees within the run. Their sums are on the stack at the end.
    depth : int
        The largest number of arrays on the stack.
    """

    def __init__(self, edges: np.ndarray, first: int, last: int) -> None:
        self.edges, self.first, self.last = edges, first, last
        self.blocks = range(int(edges[first]), int(edges[last]))
        self.begins = np.zeros(len(self.blocks), dtype=bool)
        self.begins[edges[first:last] - edges[first]] = True
        self.merges = np.zeros(len(self.blocks), dtype=np.int64)
        self.nodes: list[Node] = []
        trees = [(0, len(edges) - 1, False)]  # parts a to b, and whether a node contains them
        while trees:
            a, b, contained = trees.pop()
            if b <= first or last <= a:
                continue
            inside = first <= a and b <= last
            if inside and not contained:
                self.nodes.append((a, b))
            if b - a > 1:
                if inside:
                    self.merges[edges[b] - 1 - edges[first]] += 1
                middle = (a + b) // 2
                trees += [(middle, b, inside), (a, middle, inside)]
        heights = np.cumsum(self.begins - self.merges)
        self.depth = int(np.max(heights + self.merges, initial=0))


def add_nodes(nodes: Mapping[Node, Any], last: int, first: int = 0) -> Any:
    """The sum over the parts ``first`` to ``last``, a node of the tree, from sums of its subtrees.

    The given sums are not changed.
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
    """How to add sums over chunks of rows: within each part in order, then along the tree."""

    counts: Sequence[int]  # number of chunks of each part in a run of parts
    first: int  # number of the run's first part
    nodes: Sequence[Node]  # the largest subtrees within the run

    @classmethod
    def whole(cls, counts: Sequence[int]) -> ChunkSums:
        """For a machine that holds all parts."""
        return cls(counts, 0, [(0, len(counts))])

    def add(self, sums: Sequence[Any]) -> list[Any]:
        """The sums of the nodes, from the sums of the chunks. The latter may be overwritten."""
        leaves, at = {}, 0
        for part, count in enumerate(self.counts, self.first):
            total = sums[at]
            for k in range(at + 1, at + count):
                total += sums[k]
            leaves[part, part + 1] = total
            at += count
        return [add_nodes(leaves, last, first) for first, last in self.nodes]


def share_parts(sizes: Sequence[float], powers: Sequence[float]) -> list[tuple[int, int]]:
    """Divide parts among several workers, in proportion to their powers.

    Each worker gets consecutive parts. With fewer parts than workers, the last workers get none and
    are left out of the result. Of several ends that are about as good, the function takes the one
    highest in the tree, because workers then send fewer sums: with 2ᵏ equal workers mostly one
    each.
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
    """For each part, how deep in the tree the cut in front of it is."""
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
    """How many arrays of a shape are in memory at a time."""
    return max(LEAST_PARTIALS, PARTIAL_NUMBERS // max(1, int(np.prod(shape))))


class BlockSum:
    """Sums of one array per block.

    The plan fixes the order of the additions, so the bits depend neither on the number of arrays in
    memory nor on the number of threads. Give a plan if the matrix has only some of the blocks of a
    larger one. If there is room for the arrays of all blocks, see ``room_for``, they are kept: they
    stay in memory from pass to pass.
    """

    def __init__(
        self, matrix: BlockedMatrix, shape: tuple[int, ...], plan: SumPlan | None = None
    ) -> None:
        self._matrix = matrix
        self._shape = shape
        if plan is None:  # the matrix has all parts
            edges = part_edges(len(matrix.blocks), len(matrix))
            plan = SumPlan(edges, 0, len(edges) - 1)
        self.plan = plan
        self._partials = np.empty((0, 0))  # made in the first pass
        self._stack = np.empty((plan.depth, *shape))
        self._room = room_for(shape)

    def run(self, fill: Callable[[int, Block], None], executor: Executor) -> np.ndarray:
        """One pass: a sum for each node of the plan, a single one if the matrix has all blocks.

        ``fill`` gets the number of a block and the block, and fills its ``array``. The next pass
        overwrites the sums.
        """
        count = len(self._matrix.blocks)
        if not len(self._partials):
            room = min(count, max(self._room, executor.threads))
            self._partials = np.empty((room, int(np.prod(self._shape)) + APART))
        room, top = len(self._partials), 0
        for first in range(0, count, room):
            group = range(first, min(first + room, count))
            self._matrix.run(fill, executor, group)
            top = self._add_up(group, top, executor)
        return self._stack[:top]

    def array(self, k: int) -> np.ndarray:
        """The array of block k, during a pass.

        If arrays are kept, it holds what was written into it in the last pass, otherwise
        arbitrary numbers.
        """
        return self._partials[k % len(self._partials), :-APART].reshape(self._shape)

    def held(self) -> np.ndarray | None:
        """The arrays that are kept, of all blocks after a pass, shape (blocks, numbers)."""
        return self._partials[:, :-APART] if len(self._partials) else None

    def restore(self, arrays: np.ndarray) -> None:
        """Hold these arrays, as if they came from a pass."""
        self._partials = np.empty((len(arrays), arrays.shape[1] + APART))
        self._partials[:, :-APART] = arrays

    def _add_up(self, group: range, top: int, executor: Executor) -> int:
        """Add the arrays of some blocks to the sums on the stack; returns the new stack height."""
        sums = self._stack.reshape(len(self._stack), -1)
        partials, width = self._partials[: len(group)], sums.shape[1]
        blocks = slice(group.start, group.stop)
        begins, merges = self.plan.begins[blocks], self.plan.merges[blocks]
        if len(partials) == 1 and begins[0] and not merges[0]:  # nothing to add, only to store
            sums[top] = partials[0, :width]
            return top + 1

        def columns(k: int) -> int:
            last = min((k + 1) * SUM_COLUMNS, width)
            return vectors.add_tree(partials, begins, merges, top, k * SUM_COLUMNS, last, sums)

        return executor.run(columns, max(1, -(-width // SUM_COLUMNS)))[0]
