"""Chains: a label for every token of a sequence, scored by emissions and transitions.

    <w, Ψ(x, z)> = Σ_t <W[:, z_t], x_t> + Σ_t T[z_{t−1}, z_t]
                   (+ begin[z_1] + finish[z_L]) (+ Σ_t S[z_{t−2}, z_{t−1}, z_t])

x is a sequence of L rows with n features, and z is one of K^L labellings. Viterbi's algorithm finds
the best labelling in O(L·K²), or in O(L·K³) with second order. w holds W (n, K), T (K, K) and, if
wanted, begin and finish (K,) and S (K, K, K), flat and in this order. The loss is the number of
wrong tokens, or 1 for every wrong sequence.

The tokens of all sequences lie one after the other in one matrix in blocks. Emissions and
their gradient are products of blocks with K outputs, as for multiclass. Inference is one
compiled call per chunk of sequences. A part is a run of chunks and of blocks of tokens; several
machines divide the parts among them, and sums of parts are added along the tree of ``data.sums``.
Chunks and parts depend on the data alone.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..data import BlockedMatrix, BlockSum, as_blocks
from ..data.blocks import Block
from ..data.sums import PARTS, ChunkSums, SumPlan
from ..exec import Executor
from ..loops import bounded, viterbi
from ..loops.bounded import MANY, ROUNDING
from ..objective import Line, Point
from ..objective.structured import JointModel

# Additions and comparisons per chunk, which take a few hundred microseconds.
CHUNK_WORK = 1 << 20
MOST_CHUNKS = 64
# Every part has a partial gradient as long as the weights. A part must have so many numbers per
# weight that writing and adding this gradient costs little in comparison.
NUMBERS_PER_WEIGHT = 4
# There are at least so many parts, if each of them has enough work.
LEAST_PARTS = 2
PART_WORK = 1 << 16
# The number of wrong tokens, or 1 for every wrong sequence.
LOSSES = ("hamming", "zero_one")


@dataclass(frozen=True)
class ChainShape:
    """The order of a chain's parameters in w.

    Attributes
    ----------
    features, labels : int
        n and K.
    boundaries : bool
        Whether there are weights for the first and the last label of a sequence.
    order : {1, 2}
        Number of earlier labels on which the score of a label depends.
    """

    features: int
    labels: int
    boundaries: bool
    order: int = 1

    @property
    def dimension(self) -> int:
        """Length of w."""
        K = self.labels
        return (self.features + K + 2 * self.boundaries + K * K * (self.order == 2)) * K

    def unpack(self, w: np.ndarray) -> ChainWeights:
        """Views of the parts of w."""
        K = self.labels
        sizes = [self.features * K, K * K, *[self.boundaries * K] * 2]
        first, transitions, begin, finish, rest = np.split(w, np.cumsum(sizes))
        if not self.boundaries:
            begin, finish = np.zeros(K), np.zeros(K)
        second = rest.reshape((K, K, K) if self.order == 2 else (0, 0, 0))
        return ChainWeights(first.reshape(-1, K), second, transitions.reshape(K, K), begin, finish)

    def pack(self, weights: ChainWeights) -> np.ndarray:
        """The flat w of these parts."""
        ends = [weights.begin, weights.finish] if self.boundaries else []
        parts = [weights.emissions, weights.transitions, *ends, weights.second]
        return np.concatenate([part.reshape(-1) for part in parts])


class ChainWeights(NamedTuple):
    """Parameters of a chain: W (n, K), S (K, K, K), T (K, K), begin and finish (K,).

    S has the middle label first: second[j, i, k] is the weight of the labels i, j, k in a row. In
    chains of first order its shape is (0, 0, 0). Inference takes emissions, and all of these but W.
    """

    emissions: np.ndarray
    second: np.ndarray
    transitions: np.ndarray
    begin: np.ndarray
    finish: np.ndarray


class Chunks:
    """Sequences in consecutive chunks of about the same work. Each chunk lies within one part.

    Attributes
    ----------
    starts : ndarray
    bounds : list of (int, int)
        The first sequence of every chunk, and the one after its last.
    sums : ChunkSums
        How sums over chunks are added up.

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
        self._width = (shape.labels if shape.order == 2 else 1, shape.labels)

    def held(self, plan: SumPlan) -> Chunks:
        """The chunks of some parts, with sequences and tokens numbered from 0."""
        counts = self.sums.counts
        chunks = slice(sum(counts[: plan.first]), sum(counts[: plan.last]))
        first, last = self.bounds[chunks][0][0], self.bounds[chunks][-1][1]
        some = copy.copy(self)
        some.bounds = [(a - first, b - first) for a, b in self.bounds[chunks]]
        some.starts = self.starts[first : last + 1] - self.starts[first]
        some.sums = ChunkSums(counts[plan.first : plan.last], plan.first, plan.nodes)
        return some

    def buffer(self, first: int, last: int) -> np.ndarray:
        """A buffer for the forward pass over the longest of the sequences first..last."""
        longest = int(np.max(np.diff(self.starts[first : last + 1]), initial=1))
        return np.empty((longest, *self._width))


def part_edges(starts: np.ndarray, shape: ChainShape, numbers: int) -> np.ndarray:
    """Sequences at which parts begin, and the end, for so many stored numbers of all tokens.

    A machine gets entire parts. Each part needs a partial gradient, so it must not be too small.
    """
    tokens = int(starts[-1])
    inference = tokens * shape.labels ** (shape.order + 1)
    worth = max(LEAST_PARTS, numbers // (NUMBERS_PER_WEIGHT * shape.features * shape.labels))
    count = max(1, min(PARTS, worth, (inference + numbers * shape.labels // 4) // PART_WORK))
    inner = np.searchsorted(starts, [tokens * k // count for k in range(1, count)])
    inner = inner[starts[inner] < tokens]
    return np.unique(np.concatenate([[0], inner, [len(starts) - 1]]))


def work(shape: ChainShape, matrix: BlockedMatrix) -> int:
    """Cost of a pass of products and inference, in units of reading a stored value."""
    inference = 4 * len(matrix) * shape.labels ** (shape.order + 1)
    return inference + matrix.n_stored * shape.labels


def decode(
    scores: np.ndarray, chunks: Chunks, weights: ChainWeights, executor: Executor
) -> np.ndarray:
    """For every sequence the labelling with the highest score, as label numbers of the tokens."""
    path = np.zeros(len(scores), dtype=np.int64)

    def task(k: int) -> None:
        first, last = chunks.bounds[k]
        buffer = chunks.buffer(first, last)
        viterbi.decode(scores, chunks.starts, first, last, *weights[1:], buffer, path)

    executor.run(task, len(chunks.bounds))
    return path


def upper(risk: float, roundings: Sequence[float], weight: float) -> float:
    """A risk plus the rounding errors of the chunks and of the sum over sequences."""
    return (risk + sum(roundings)) * (1.0 + (MANY + 1.0 / weight) * ROUNDING)


class LabelledChains:
    """Sequences with their true labels, and inference for them from emissions and transitions.

    Attributes
    ----------
    weight : float
        Weight of a sequence, 1/N.

    Parameters
    ----------
    starts : ndarray of int64, shape (sequences + 1,)
    truth : ndarray of int64, shape (tokens,)
        Numbers of the true labels.
    shape : ChainShape
    loss : {'hamming', 'zero_one'}
    chunks : Chunks, optional
        The chunks of these sequences.
    weight : float, optional
        Needed if these are only some of all sequences.
    """

    def __init__(
        self,
        starts: np.ndarray,
        truth: np.ndarray,
        shape: ChainShape,
        loss: str,
        *,
        chunks: Chunks | None = None,
        weight: float | None = None,
    ) -> None:
        self.shape = shape
        self.loss = loss
        self.truth = truth
        self.weight = 1.0 / (len(starts) - 1) if weight is None else weight
        self.chunks = chunks or Chunks(starts, shape)
        self.starts = self.chunks.starts
        self._plain = ChainShape(0, shape.labels, True, shape.order)

    def infer(
        self, scores: np.ndarray, weights: ChainWeights, path: np.ndarray, executor: Executor
    ) -> list[np.ndarray]:
        """Viterbi's algorithm with the loss added: risk and offset by chunk, from emissions.

        ``path`` gets the most violated labelling.
        """
        chunks = self.chunks

        def task(k: int) -> np.ndarray:
            first, last = chunks.bounds[k]
            found = viterbi.most_violated(
                scores,
                chunks.starts,
                first,
                last,
                *weights[1:],
                self.truth,
                self.weight,
                self.loss == "hamming",
                chunks.buffer(first, last),
                path,
            )
            return np.array(found)

        return executor.run(task, len(chunks.bounds))

    def roundings(
        self, scores: np.ndarray, errors: np.ndarray, weights: ChainWeights
    ) -> list[float]:
        """By chunk, a bound on how much rounding reduces the risk; emissions are off by ``errors``.

        The loss of a labelling is a sum of a few terms per token: of its score and of the score of
        the truth. Each addition has an error of one unit of rounding of the sum of their sizes.
        """
        lengths = np.diff(self.starts)
        number = np.repeat(np.arange(len(lengths)), lengths)
        plain = sum(float(np.max(np.abs(part), initial=0.0)) for part in weights[1:])
        tokens = len(number)
        if plain == 0.0 and not np.any(scores):  # losses alone are exact
            return [0.0] * len(self.chunks.bounds)
        largest = np.max(np.abs(scores[:tokens]), axis=1)
        sizes = np.bincount(number, largest, len(lengths)) + plain * (lengths + 1.0)
        off = 2.0 * np.bincount(number, np.max(errors[:tokens], axis=1), len(lengths))
        off += ROUNDING * (6.0 * lengths + 16.0) * (2.0 * sizes + lengths + 1.0)
        off *= self.weight
        return [float(off[first:last].sum()) for first, last in self.chunks.bounds]

    def slopes(self, line: Line, way: ChainWeights, executor: Executor) -> Callable[[Point], float]:
        """Derivatives on a line, from the emissions at both ends and the other weights' change."""
        ends = line.start.scores, line.end.scores
        return lambda point: sum(self.slope(*ends, way, point.coef, executor))

    def slope(
        self,
        start: np.ndarray,
        end: np.ndarray,
        way: ChainWeights,
        path: np.ndarray,
        executor: Executor,
    ) -> list[float]:
        """The derivative of the plane of a labelling by chunk, from start to end."""

        def task(k: int) -> float:
            own = *self.chunks.bounds[k], *way[1:], self.truth, path
            return self.weight * float(viterbi.slope(start, end, self.starts, *own))

        return executor.run(task, len(self.chunks.bounds))

    def count_sums(self, path: np.ndarray, executor: Executor) -> list[ChainWeights]:
        """Mean counts of a labelling minus those of the truth, for all weights but the emissions'.

        There is an entry for each node of the tree of parts: one, if this process has all parts.
        """
        chunks = self.chunks
        own = self.truth, self.weight, path

        def task(k: int) -> np.ndarray:
            counts = np.zeros(self._plain.dimension)
            parts = self._plain.unpack(counts)[1:]
            viterbi.add_counts(self.starts, *chunks.bounds[k], *own, *parts)
            return counts

        partials = executor.run(task, len(chunks.bounds))
        return [self._plain.unpack(total) for total in chunks.sums.add(partials)]


class ChainExamples(JointModel):
    """All training sequences of a chain.

    A point's ``scores`` are the emissions, its ``coef`` the most violated labelling.

    Attributes
    ----------
    sum : BlockSum
        Of arrays in the shape of W, one per block of tokens.

    Parameters
    ----------
    matrix : BlockedMatrix
        All tokens, in order.
    chains : LabelledChains
    plan : SumPlan, optional
        How sums over blocks are added up. It must have the same parts as the chunks of the chains.
    """

    def __init__(
        self, matrix: BlockedMatrix, chains: LabelledChains, plan: SumPlan | None = None
    ) -> None:
        self.matrix = matrix
        self.chains = chains
        self.shape = chains.shape
        self.dimension = self.shape.dimension
        self.count = round(1.0 / chains.weight)
        self.numbers = work(self.shape, matrix)
        self.sum = BlockSum(matrix, (self.shape.features, self.shape.labels), plan)

    @classmethod
    def in_parts(
        cls, rows: Any, starts: np.ndarray, truth: np.ndarray, shape: ChainShape, loss: str
    ) -> ChainExamples:
        """Examples whose sums are added by parts, as on a cluster, so that the bits agree.

        Parameters
        ----------
        rows : ndarray or CSR matrix
            All tokens.
        starts, truth, shape, loss
            As for ``LabelledChains``.
        """
        edges = part_edges(starts, shape, getattr(rows, "nnz", np.prod(rows.shape)))
        matrix = as_blocks(rows, outputs=shape.labels, edges=starts[edges].tolist())
        chains = LabelledChains(
            starts, truth, shape, loss, chunks=Chunks(starts, shape, edges.tolist())
        )
        plan = SumPlan(np.searchsorted(matrix.bounds, starts[edges]), 0, len(edges) - 1)
        return cls(matrix, chains, plan)

    def digest(self) -> bytes:
        """A fingerprint of the data, the labels and the loss."""
        digest = hashlib.blake2b(self.matrix.digest(), digest_size=16)
        digest.update(repr((self.chains.loss, self.shape)).encode())
        digest.update(self.chains.starts.data)
        digest.update(self.chains.truth.data)
        return digest.digest()

    def new_point(self, w: np.ndarray) -> Point:
        tokens = len(self.chains.truth)
        scores = np.zeros((tokens, self.shape.labels))
        return Point(w, scores, coef=np.zeros(tokens, dtype=np.int64))

    def score(self, w: np.ndarray, scores: np.ndarray, executor: Executor) -> None:
        """Compute the emissions, by one product X·W."""
        own = np.ascontiguousarray(self.shape.unpack(w).emissions)
        self.matrix.scores(own, scores, executor)

    def infer(self, point: Point, executor: Executor) -> None:
        """Viterbi's algorithm with the loss added. Sets ``coef`` to the most violated labelling."""
        weights = self.shape.unpack(point.w)
        parts = self.chains.infer(point.scores, weights, point.coef, executor)
        point.risk, point.offset = map(float, np.sum(parts, axis=0))

    def upper(self, point: Point, executor: Executor) -> float:
        """The risk, rounded up. The errors of the emissions take one more product X·W."""
        return upper(
            point.risk, self.roundings(point.w, point.scores, executor), self.chains.weight
        )

    def roundings(self, w: np.ndarray, scores: np.ndarray, executor: Executor) -> list[float]:
        """By chunk, a bound on how much rounding reduces the risk at w with these emissions."""
        weights = self.shape.unpack(w)
        own = np.ascontiguousarray(weights.emissions)
        anew, errors = np.empty((2, *scores.shape))

        def part(k: int, block: Block) -> None:
            here = self.matrix.slice(k)
            none = np.zeros(self.shape.labels)
            bounded.scores(*block.flat(), own, none, anew[here], errors[here])

        self.matrix.run(part, executor)
        return self.chains.roundings(scores, errors, weights)

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        """Derivatives from the emissions at both ends, without a product with the data."""
        way = self.shape.unpack(line.end.w - line.start.w)
        return self.chains.slopes(line, way, executor)

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        """The plane, from one product Xᵀ·coef over the wrong tokens and counts of transitions."""
        return self.planes(point.coef, executor)[0]

    def planes(self, path: np.ndarray, executor: Executor) -> list[np.ndarray]:
        """The plane of a labelling, summed for each node of the tree of parts."""
        shape, chains = self.shape, self.chains

        def gradient(k: int, block: Block) -> None:
            rows, partial = self.matrix.slice(k), self.sum.array(k)
            coef = np.empty((rows.stop - rows.start, shape.labels))
            viterbi.emission_coefficients(chains.truth[rows], chains.weight, path[rows], coef)
            partial[...] = 0.0
            block.add_gradient(coef, partial)

        emissions = self.sum.run(gradient, executor)
        counts = chains.count_sums(path, executor)
        return [
            shape.pack(some._replace(emissions=product))
            for product, some in zip(emissions, counts, strict=True)
        ]
