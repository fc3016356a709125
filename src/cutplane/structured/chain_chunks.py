"""Sequences in chunks and parts: who does what in a pass over them. Depends on the data alone.

Inference runs over chunks. Parts are what several machines share out among them: runs of chunks,
and of blocks of tokens, whose sums are added up along the tree of ``data.parts``.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..data.sums import PARTS, ChunkSums, SumPlan

if TYPE_CHECKING:
    from .chain import ChainShape

# Additions and comparisons of a chunk: a few hundred microseconds.
CHUNK_WORK = 1 << 20
MOST_CHUNKS = 64
# Partial gradients are long; what they hold must be worth writing and adding them.
NUMBERS_PER_WEIGHT = 4
# There are so many parts even so, if there is work enough for each of them.
LEAST_PARTS = 2
PART_WORK = 1 << 16


class Chunks:
    """Sequences in consecutive chunks of about the same work, none of them in two parts.

    Attributes
    ----------
    starts : ndarray
    bounds : list of (int, int)
        The first sequence of every chunk, and the one after its last.
    sums : ChunkSums
        How long sums over chunks are added up.

    Parameters
    ----------
    starts : ndarray of int64, shape (sequences + 1,)
        Where each sequence begins among the tokens.
    shape : ChainShape
    edges : sequence of int, optional
        Sequences at which parts begin, and the end.
    """

    def __init__(
        self, starts: np.ndarray, shape: ChainShape, edges: Sequence[int] | None = None
    ) -> None:
        tokens = int(starts[-1])
        count = min(MOST_CHUNKS, max(1, tokens * shape.labels ** (shape.order + 1) // CHUNK_WORK))
        self.bounds: list[tuple[int, int]] = []
        counts = []
        for first, last in itertools.pairwise((0, len(starts) - 1) if edges is None else edges):
            begin, own = int(starts[first]), int(starts[last] - starts[first])
            pieces = max(1, count * own // max(1, tokens))
            inner = np.searchsorted(starts, [begin + own * k // pieces for k in range(1, pieces)])
            marks = np.unique(np.concatenate([[first], inner, [last]])).tolist()
            self.bounds += itertools.pairwise(marks)
            counts.append(len(marks) - 1)
        self.starts = starts
        self.sums = ChunkSums.whole(counts)
        self._width = (shape.labels,) * shape.order

    def held(self, plan: SumPlan) -> Chunks:
        """Those of some parts, whose sequences and tokens are numbered anew."""
        counts = self.sums.counts
        chunks = slice(sum(counts[: plan.first]), sum(counts[: plan.last]))
        first, last = self.bounds[chunks][0][0], self.bounds[chunks][-1][1]
        some = copy.copy(self)
        some.bounds = [(a - first, b - first) for a, b in self.bounds[chunks]]
        some.starts = self.starts[first : last + 1] - self.starts[first]
        some.sums = ChunkSums(counts[plan.first : plan.last], plan.first, plan.nodes)
        return some

    def buffer(self, first: int, last: int) -> np.ndarray:
        """Room for the forward pass over the longest of the sequences first..last."""
        longest = int(np.max(np.diff(self.starts[first : last + 1]), initial=1))
        return np.empty((longest, *self._width))


def part_edges(starts: np.ndarray, shape: ChainShape, numbers: int) -> np.ndarray:
    """Sequences at which parts begin, and the end, for so many stored numbers of all tokens.

    Parts are the smallest share of a machine. Each has a partial gradient, which must be worth it.
    """
    tokens = int(starts[-1])
    inference = tokens * shape.labels ** (shape.order + 1)
    worth = max(LEAST_PARTS, numbers // (NUMBERS_PER_WEIGHT * shape.features * shape.labels))
    count = max(1, min(PARTS, worth, (inference + numbers * shape.labels // 4) // PART_WORK))
    inner = np.searchsorted(starts, [tokens * k // count for k in range(1, count)])
    inner = inner[starts[inner] < tokens]
    return np.unique(np.concatenate([[0], inner, [len(starts) - 1]]))
