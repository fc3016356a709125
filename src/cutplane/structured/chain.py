"""Chains: a label for every token of a sequence, scored by emissions and transitions.

    <w, Ψ(x, z)> = Σ_t <W[:, z_t], x_t> + Σ_t T[z_{t−1}, z_t]
                   (+ begin[z_1] + finish[z_L]) (+ Σ_t S[z_{t−2}, z_{t−1}, z_t])

x is a sequence of L rows with n features, z one of K^L labellings; the best one is found by
Viterbi's algorithm in O(L·K²), or O(L·K³) with the second order. w holds W (n, K), T (K, K) and, if
wanted, begin and finish (K,) and S (K, K, K), flat and in this order. The loss is the number of
wrong tokens, or 1 for every wrong sequence.

Sequences are ragged and lie one after the other in one matrix in blocks: emissions
and their gradient are products of blocks with K outputs, as in multiclass, and inference
is one compiled call per chunk of sequences. Chunks depend on the data alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exec import Executor
from ..loops import viterbi, viterbi2
from ..oracles import Cut, Line, Point

if TYPE_CHECKING:
    from ..data import BlockedMatrix

LOSSES = {"hamming": "most_violated", "zero_one": "most_violated_whole"}

# Additions and comparisons of a chunk: a few hundred microseconds.
CHUNK_WORK = 1 << 20
MOST_CHUNKS = 64
# Partial gradients are long; what they hold must be worth writing and adding them.
NUMBERS_PER_WEIGHT = 4


@dataclass(frozen=True)
class ChainShape:
    """How the parameters of a chain lie in w.

    Attributes
    ----------
    features, labels : int
        n and K.
    boundaries : bool
        Whether there are weights for the first and the last label of a sequence.
    order : {1, 2}
        Labels before a label that its score depends on.
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

    @property
    def loops(self) -> Any:
        """The compiled code for this order."""
        return viterbi2 if self.order == 2 else viterbi

    def unpack(self, w: np.ndarray) -> ChainWeights:
        """Views of the parts of w."""
        K = self.labels
        sizes = [self.features * K, K * K, *[self.boundaries * K] * 2]
        first, transitions, begin, finish, rest = np.split(w, np.cumsum(sizes))
        if not self.boundaries:
            begin, finish = np.zeros(K), np.zeros(K)
        second = rest.reshape(K, K, K) if self.order == 2 else None
        return ChainWeights(first.reshape(-1, K), transitions.reshape(K, K), begin, finish, second)

    def pack(self, weights: ChainWeights) -> np.ndarray:
        """The flat w of these parts."""
        parts = [weights.emissions, weights.transitions]
        if self.boundaries:
            parts += [weights.begin, weights.finish]
        if weights.second is not None:
            parts.append(weights.second)
        return np.concatenate([part.reshape(-1) for part in parts])


@dataclass(frozen=True)
class ChainWeights:
    """Parameters of a chain: W (n, K), T (K, K), begin and finish (K,), S (K, K, K) or None.

    S has the middle label first: second[j, i, k] is for k after j after i.
    """

    emissions: np.ndarray
    transitions: np.ndarray
    begin: np.ndarray
    finish: np.ndarray
    second: np.ndarray | None = None

    def scores(self) -> tuple[np.ndarray, ...]:
        """What inference needs besides the emissions."""
        first = (self.transitions, self.begin, self.finish)
        return first if self.second is None else (self.second, *first)


class Chunks:
    """Sequences in consecutive chunks of about the same work.

    Parameters
    ----------
    starts : ndarray of int64, shape (sequences + 1,)
        Where each sequence begins among the tokens.
    shape : ChainShape
    """

    def __init__(self, starts: np.ndarray, shape: ChainShape) -> None:
        tokens = int(starts[-1])
        count = min(MOST_CHUNKS, max(1, tokens * shape.labels ** (shape.order + 1) // CHUNK_WORK))
        inner = np.searchsorted(starts, [tokens * k // count for k in range(1, count)])
        edges = np.unique(np.concatenate([[0], inner, [len(starts) - 1]])).tolist()
        self.bounds = list(itertools.pairwise(edges))
        self.starts = starts
        self._width = (shape.labels,) * shape.order

    def buffer(self, first: int, last: int) -> np.ndarray:
        """Room for the forward pass over the longest of the sequences first..last."""
        longest = int(np.max(np.diff(self.starts[first : last + 1]), initial=1))
        return np.empty((longest, *self._width))


def work(shape: ChainShape, matrix: BlockedMatrix) -> int:
    """What a pass of products and inference costs, in numbers of a data matrix."""
    inference = 4 * len(matrix) * shape.labels ** (shape.order + 1)
    return inference + matrix.numbers * shape.labels


def emissions(
    matrix: BlockedMatrix, weights: np.ndarray, out: np.ndarray, executor: Executor
) -> None:
    """out = X·W."""
    matrix.scores(np.ascontiguousarray(weights), out, executor)


def decode(
    scores: np.ndarray,
    chunks: Chunks,
    shape: ChainShape,
    weights: ChainWeights,
    executor: Executor,
) -> np.ndarray:
    """The labelling of highest score of every sequence, as numbers of labels per token."""
    path = np.zeros(len(scores), dtype=np.int64)

    def task(k: int) -> None:
        first, last = chunks.bounds[k]
        buffer = chunks.buffer(first, last)
        shape.loops.decode(scores, chunks.starts, first, last, *weights.scores(), buffer, path)

    executor.run(task, len(chunks.bounds))
    return path


class LabelledChains:
    """Sequences with their true labels: inference for all of them, from emissions and transitions.

    Attributes
    ----------
    weight : float
        Of a sequence: 1/N.
    token_weights : ndarray, shape (tokens,)
        The same for every token.

    Parameters
    ----------
    starts : ndarray of int64, shape (sequences + 1,)
    truth : ndarray of int64, shape (tokens,)
        Numbers of the labels.
    shape : ChainShape
    loss : {'hamming', 'zero_one'}
    """

    def __init__(self, starts: np.ndarray, truth: np.ndarray, shape: ChainShape, loss: str) -> None:
        self.shape = shape
        self.loss = loss
        self.truth = truth
        sequences = len(starts) - 1
        self._violated = getattr(shape.loops, LOSSES[loss])
        self.weight = 1.0 / sequences
        self._weights = np.full(sequences, self.weight)
        self.token_weights = np.repeat(self._weights, np.diff(starts))
        self._chunks = Chunks(starts, shape)

    @property
    def starts(self) -> np.ndarray:
        """Where each sequence begins among the tokens."""
        return self._chunks.starts

    def infer(self, point: Point, weights: ChainWeights, executor: Executor) -> None:
        """Viterbi's algorithm with the loss added; the most violated labelling becomes ``coef``."""
        chunks = self._chunks

        def task(k: int) -> np.ndarray:
            first, last = chunks.bounds[k]
            return np.array(
                self._violated(
                    point.scores,
                    chunks.starts,
                    first,
                    last,
                    *weights.scores(),
                    self.truth,
                    self._weights,
                    chunks.buffer(first, last),
                    point.coef,
                )
            )

        parts = executor.run(task, len(chunks.bounds))
        point.risk, point.offset = map(float, np.sum(parts, axis=0))

    def slopes(self, line: Line, way: ChainWeights, executor: Executor) -> Callable[[Point], float]:
        """Derivatives on a line, from the emissions at both ends and the others' difference."""
        start, end, chunks = line.start, line.end, self._chunks

        def slope(point: Point) -> float:
            def task(k: int) -> float:
                return self.shape.loops.slope(
                    start.scores,
                    end.scores,
                    chunks.starts,
                    *chunks.bounds[k],
                    *way.scores(),
                    self.truth,
                    self._weights,
                    point.coef,
                )

            return sum(executor.run(task, len(chunks.bounds)))

        return slope

    def counts(self, path: np.ndarray, executor: Executor) -> ChainWeights:
        """Mean counts of a labelling minus those of the truth, of all but the emissions."""
        chunks = self._chunks
        counted = ChainShape(0, self.shape.labels, True, self.shape.order)

        def count(k: int) -> np.ndarray:
            partial = np.zeros(counted.dimension)
            self.shape.loops.add_counts(
                chunks.starts,
                *chunks.bounds[k],
                self.truth,
                self._weights,
                path,
                *counted.unpack(partial).scores(),
            )
            return partial

        return counted.unpack(np.sum(executor.run(count, len(chunks.bounds)), axis=0))


class ChainExamples:
    """All training sequences of a chain; a ``JointModel``.

    A point's ``scores`` are the emissions, its ``coef`` the most violated labelling.

    Parameters
    ----------
    matrix : BlockedMatrix
        All tokens, in order.
    chains : LabelledChains
    """

    def __init__(self, matrix: BlockedMatrix, chains: LabelledChains) -> None:
        self.matrix = matrix
        self.chains = chains
        self.shape = chains.shape
        self.dimension = self.shape.dimension
        self.rows = len(chains.truth)
        self.outputs: int | None = self.shape.labels
        self._groups = self._gradient_groups()

    def _gradient_groups(self) -> list[range]:
        """Consecutive blocks that share a partial gradient."""
        blocks = len(self.matrix.blocks)
        worth = self.matrix.numbers // (
            NUMBERS_PER_WEIGHT * self.shape.features * self.shape.labels
        )
        count = max(1, min(blocks, worth))
        edges = [blocks * k // count for k in range(count + 1)]
        return [range(a, b) for a, b in itertools.pairwise(edges)]

    @property
    def numbers(self) -> int:
        """Work of a pass, in numbers of the data."""
        return work(self.shape, self.matrix)

    def digest(self) -> bytes:
        """Identifies the data, the labels and the loss."""
        digest = hashlib.blake2b(self.matrix.digest(), digest_size=16)
        digest.update(repr((self.chains.loss, self.shape)).encode())
        digest.update(self.chains.starts.data)
        digest.update(self.chains.truth.data)
        return digest.digest()

    def new_point(self, w: np.ndarray) -> Point:
        scores = np.zeros((self.rows, self.shape.labels))
        return Point(w, scores, coef=np.zeros(self.rows, dtype=np.int64))

    def score(self, w: np.ndarray, scores: np.ndarray, executor: Executor) -> None:
        """The emissions: one product X·W."""
        emissions(self.matrix, self.shape.unpack(w).emissions, scores, executor)

    def infer(self, point: Point, executor: Executor) -> None:
        """Viterbi's algorithm with the loss added."""
        self.chains.infer(point, self.shape.unpack(point.w), executor)

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        """From the emissions at both ends: no product with the data."""
        way = self.shape.unpack(line.end.w - line.start.w)
        return self.chains.slopes(line, way, executor)

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        """One product Xᵀ·coef over the wrong tokens, and the counts of transitions."""
        path, shape, chains = point.coef, self.shape, self.chains
        longest = int(np.max(np.diff(self.matrix.bounds)))

        def gradient(k: int) -> np.ndarray:
            partial = np.zeros((shape.features, shape.labels))
            buffer = np.empty((longest, shape.labels))
            for number in self._groups[k]:
                rows = self.matrix.slice(number)
                coef = buffer[: rows.stop - rows.start]
                viterbi.emission_coefficients(
                    chains.truth[rows], chains.token_weights[rows], path[rows], coef
                )
                self.matrix.blocks[number].add_gradient(coef, partial)
            return partial

        partials = executor.run(gradient, len(self._groups))
        for partial in partials[1:]:
            partials[0] += partial
        counts = chains.counts(path, executor)
        return shape.pack(dataclasses.replace(counts, emissions=partials[0]))

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """None: the product X·W costs more than the inference that a cache would spare."""
        return None

    def state(self) -> dict[str, Any]:
        """Nothing: the answers depend on w alone."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to do."""
