"""Structured outputs trained example by example: block-coordinate ascent in the dual.

The dual point of an example i is a mixture of outputs with shares α ≥ 0 that sum to 1, which begins
as the truth alone. With c for the cost of an example, C/N, and Ψ and Δ of the mixtures,

    w = c·Σ_i [Ψ(x_i, y_i) − Ψ(mixture_i)],    D = c·Σ_i Δ(mixture_i) − ½|w|².

A pass visits every example once, in random order: inference finds its most violated output at the w
of the moment, the mixture moves to the maximum of D over the outputs that are known of the example,
and w follows at once. These are pairwise steps of block-coordinate Frank–Wolfe (Lacoste-Julien et
al. 2013; Osokin et al. 2016). Passes without inference over the known outputs follow, as long as
they gain more for their cost than the last pass with it did. At large C these are many small moves
in about the same direction. So D is maximised over the span of the last few of them, which costs
little, as D is known there from the products of these moves (``Trail``).

The dual point is a cut like any other: its plane is the mean of the mixtures' features less those
of the truth, its offset the mean of their losses. A certificate computes the cut anew from all
examples, and the objective by one more pass of inference. Every step moves the w of the dual point
to and fro, so that the objective is lower at a mean of the last w. A certificate tries this mean
first. A pass sees the gap of each example before its step. The sum of these gaps is about the
duality gap at w, and twice the gap at the mean; it tells when a certificate is worth its cost.

On 500 words of OCR letters (C = 0.1 / 1 / 10, relative gap 1e-2) this takes 37 / 63 / 94 passes of
inference, certificates included, where cutting planes take 276 / 893 / 8,400. Without the span and
the mean it takes 31 / 62 / 226.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..data.blocks import Block
from ..exec import Executor
from ..loops import chain_blocks as loops
from ..loops import row_blocks
from ..objective import Cut
from ..objective.structured import StructuredOracle
from ..result import Iteration, Status
from ..structured.chain import ChainExamples, ChainShape
from ..structured.linear import CACHE_NUMBERS, LinearExamples
from .base import ROUNDING, IterativeSolver, Observer, StopRule
from .choose import AutoSolver
from .constants import LITTLE
from .coordinate import flat_rows
from .cutting_plane import AdaptivePosition, BundleSolver

# Where the gap is not seen to be met there is a certificate when the passes have grown by this
# factor: they then take a part of the time that shrinks, and a progress line moves all the same.
GROWTH = 1.5
# The same where the gap is seen to be met, and a certificate has not confirmed it.
RETRY = 1.1
# Passes without inference between two with it cost at most so many times what one of these does.
# With half of it C = 10 takes a third more time on chunking, with double of it a sixth more; on
# letters both take as much.
REVISITS = 8
# The least chance of a sequence to be visited in a pass without inference; it is certain where a
# visit has gained as much as the mean of all. 0.3 took a tenth more time at C = 10, and visits of
# all sequences a quarter more.
LEAST_CHANCE = 0.1
# A certificate is tried where the gaps seen are so many times what is enough: the mean of the last
# w is about that much better than w.
EARLY = 2.0
# What the mean of the last w keeps of itself when a pass is added. With 0.875 C = 10 takes 5 to
# 10 % less time, C = 0.1 up to 20 % more.
KEPT_MEAN = 0.75
# Moves in whose span D is maximised. 3 and 8 were as fast. There is a copy of w for each.
MOVES = 5
# Added to the squares of these moves, which are nearly parallel. Without it steps are longer, and
# lose more to shares that would be negative: with 1e-10 C = 10 takes a quarter more time.
RIDGE = 1e-3
# What this costs in passes without inference.
TRAIL_COST = 0.5
# There are at most so many passes: where features are on very unlike scales every pass gains a
# little, for ever.
MOST_PASSES = 1000
# What cutting planes take in passes of inference: about so many whatever the problem, and for each
# weight so many to bring the gap down by a factor of e. Measured with 56 to 4,004 weights: 0.02 to
# 0.8 per weight, the least with many sequences and small C, the most with few sequences and large
# C. Where it matters both methods are far apart, so that half and double of it choose the same.
LEAST_PASSES = 100
PASSES_PER_WEIGHT = 0.2
# Labellings of a sequence that there is room for in the beginning; more are made where needed.
SLOTS = 4
# Numbers of a cache line: visits without inference read one of them, for one label of a feature,
# inference all, for as many labels. Measured with 22 and 26 labels a visit costs 0.4 of inference.
LINE = 8
# Numbers that products of tokens may take: half a gigabyte.
MOST_PRODUCTS = 1 << 26
# What a pass over the kept outputs of a user's problem costs in passes of inference in Python,
# which does at least some products per output and a call for each.
KEPT_COST = 0.1


def can_be_visited(model: object) -> bool:
    """Whether examples can be visited one by one: in this process, chains of first order."""
    if isinstance(model, LinearExamples):
        return model.crew is None
    if not isinstance(model, ChainExamples) or model.shape.order != 1:
        return False
    lengths = np.diff(model.chains.starts)
    return bool(np.sum(lengths * lengths) <= MOST_PRODUCTS)


class BlockSolver(IterativeSolver):
    """State of one run. An iteration is some passes and a certificate.

    Parameters
    ----------
    oracle : StructuredOracle
        Of a model that ``can_be_visited``.
    C, stop, observer
        As for every solver.
    rng : numpy.random.Generator
        Draws the order of the examples.
    kept : optional
        Where to start: the dual point of an earlier run on the same examples, whatever its C.

    Attributes
    ----------
    passes : int
        Passes with inference so far.
    """

    oracle: StructuredOracle

    def __init__(
        self,
        oracle: StructuredOracle,
        C: float,
        stop: StopRule,
        rng: np.random.Generator,
        observer: Observer | None = None,
        kept: Any = None,
    ) -> None:
        super().__init__(oracle, C, stop, observer)
        model: Any = oracle.model
        kind = ChainBlocks if isinstance(model, ChainExamples) else ExampleBlocks
        self._blocks = kind(model, C, kept)
        self._rng = rng
        self._warm = kept is not None
        self.point, self.trial = oracle.new_point(), oracle.new_point()
        self.passes = 0
        self._trail = Trail(self._blocks)

    def dual_point(self) -> Any:
        """The mixtures, good for any C."""
        return self._blocks.kept()

    def active_cuts(self) -> tuple[Cut, ...]:
        return () if self._cut is None else (self._cut,)

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        self._begin_at(start, self.point, self.trial)
        for cut in cuts:
            self._bound(cut)
        blocks = self._blocks
        status, due, retry, dual = None, 1.0, 1.0, 0.0  # D, about
        if self.stop.converged(self.best.primal, self.dual, self.C):  # the start is good enough
            status = self._end_iteration(self.best.primal, 0.0, 1)
        elif self._warm:
            known = blocks.plane(self.oracle.executor)
            blocks.w[...] = -self.C * known.a
            dual = self._bound(known)
        while status is None:
            with self.watch.phase("passes"):
                grown = blocks.explore(self._rng)
            self._trail.begin()
            self.passes += 1
            self.oracle.passes += 1
            dual += grown
            seen = float(blocks.gaps.sum())
            enough = EARLY * self.stop.enough(dual + seen, self.C)
            met = seen <= enough and self.passes >= retry
            # Where rounding is all that is left every pass is an iteration, and a few are the end.
            least = ROUNDING * abs(dual)
            late = self.watch.elapsed() >= self.stop.time_limit
            if met or grown <= least or self.passes >= due or late or blocks.full:
                status = self._end_iteration(*self._certify(), 1)
                due, retry = GROWTH * self.passes, RETRY * self.passes
            more, cost, left = grown, 1.0, float(REVISITS)
            while status is None and more > least and more >= grown * cost:
                if left <= 0.0 or self.watch.elapsed() >= self.stop.time_limit:
                    break
                with self.watch.phase("revisits"):
                    more, cost = self._trail.revisit(self._rng)
                dual += more
                left -= cost
            if status is None and (self.passes >= MOST_PASSES or blocks.full):
                status = Status.MAX_ITER
        return status

    def _certify(self) -> tuple[float, float]:
        """Renew bound and best point; returns the lowest objective, and 1 if it is the best."""
        lowest, found = np.inf, False
        with self.watch.phase("certificate"):
            cut = self._blocks.plane(self.oracle.executor)
            self._bound(cut)
            self._blocks.w[...] = -self.C * cut.a  # without the rounding of single steps
            for w in (self._trail.mean, self._blocks.w):
                self.oracle.evaluate(w.copy(), self.trial)
                objective = self._objective(self.trial)
                lowest = min(lowest, objective)
                if objective < self.best.primal:
                    found = True
                    self.point.take(self.trial)
                    self._keep(self.point)
                if self.stop.converged(self.best.primal, self.dual, self.C):
                    break
        return lowest, float(found)


class Trail:
    """Passes over the known outputs of all examples, and steps that go on where they are going.

    With w_k, ℓ_k and α_k for w, c·Σ_i Δ(mixture_i) and all shares after pass k, the last m of them
    span points w + Σ_k x_k·(w_k − w_{k−1}), and the same of ℓ and α, where

        D = ℓ + <x, Δℓ> − ½|w + Σ_k x_k·Δw_k|²

    is largest for a small system of equations. Negative shares there become 0 and the others of
    the example are scaled. From the last point to this one D is a parabola, and its top, at most
    the whole way, is where the step ends: D never falls.

    Attributes
    ----------
    mean : ndarray
        Of w after the last passes, before such steps: these find a better D than objective.
    """

    mean: np.ndarray

    def __init__(self, blocks: ChainBlocks | ExampleBlocks) -> None:
        self._blocks = blocks
        self._ends: list[tuple[np.ndarray, float, np.ndarray]] = []

    def begin(self) -> None:
        """After a pass with inference: there are other outputs, and other directions."""
        self._ends = [self._see()]

    def revisit(self, rng: np.random.Generator) -> tuple[float, float]:
        """A pass without inference: growth of the dual, and cost in passes of inference."""
        grown, cost = self._blocks.revisit(rng)
        self._ends.append(self._see())
        if len(self._ends) <= MOVES:
            return grown, cost
        grown += self._go_on()
        self._ends = [(self._blocks.w.copy(), *self._blocks.shares())]
        return grown, (1.0 + TRAIL_COST) * cost

    def _see(self) -> tuple[np.ndarray, float, np.ndarray]:
        """Where a pass has ended; it counts for the mean."""
        w = self._blocks.w.copy()
        if not self._ends:
            self.mean = w.copy()
        else:
            self.mean *= KEPT_MEAN
            self.mean += (1.0 - KEPT_MEAN) * w
        return w, *self._blocks.shares()

    def _go_on(self) -> float:
        """Step to the largest D in the span; by how much it has grown."""
        ws, losses, every = zip(*self._ends, strict=True)
        moves = [end - start for start, end in itertools.pairwise(ws)]
        w, loss, shares = self._ends[-1]
        gram = np.array([[_product(one, other) for other in moves] for one in moves])
        sizes = np.sqrt(np.diagonal(gram))
        if not np.all(sizes > 0.0):
            return 0.0
        slopes = np.diff(losses) - [_product(move, w) for move in moves]
        gram = gram / np.outer(sizes, sizes) + RIDGE * np.eye(MOVES)
        target = shares.copy()
        for x, change in zip(
            np.linalg.solve(gram, slopes / sizes) / sizes, np.diff(every, axis=0), strict=True
        ):
            target += x * change
        self._blocks.set_shares(target)
        end_loss, end_shares = self._blocks.shares()
        way = self._blocks.w - w
        slope, bend = end_loss - loss - _product(way, w), _product(way, way)
        step = min(1.0, max(0.0, slope / bend)) if bend > 0.0 else 0.0
        if step < 1.0:
            self._blocks.set_shares(shares + step * (end_shares - shares))
        return step * (slope - 0.5 * step * bend)


def _product(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.einsum("i,i->", a, b))


class BlockAutoSolver(AutoSolver):
    """Block-coordinate ascent, then cutting planes where these will be done before it.

    A gap that has come down from H to G in the last W passes of inference, at least a third of all,
    comes down to the tolerance in about W·log(G/tol)/log(H/G) more. Cutting planes begin anew but
    for the best point and the bound, and take about

        LEAST_PASSES + PASSES_PER_WEIGHT·d·log(1/tol)

    passes: the more weights, d, the more directions they have to learn.
    """

    oracle: StructuredOracle

    def _stages(self, cuts: tuple[Cut, ...]) -> Iterator[IterativeSolver]:
        kept: Any = self._dual_point
        if len(cuts) <= 1:  # with more an earlier run has ended with cutting planes
            rng = self._given_rng or np.random.default_rng(0)
            observe = self._observe_ascent
            yield BlockSolver(self.oracle, self.C, self.stop, rng, observe, kept)
        # Where outputs are kept they give cuts for nothing, which plain cutting planes need more.
        plain = isinstance(self.oracle.model, LinearExamples)
        position = None if plain else AdaptivePosition()
        cheap = self.oracle.cheap_cut
        yield BundleSolver(self.oracle, self.C, self.stop, position, self._observe, cheap)

    def _observe_ascent(self, record: Iteration) -> bool:
        """Stop ascent where cutting planes will be done before it."""
        if self._observe(record):
            return True
        stage: Any = self._stage
        now, passes = self.trace[-1], stage.passes
        enough = self.stop.enough(now.primal, self.C)
        if now.gap <= enough:
            return False
        enough = max(enough, ROUNDING * now.primal)
        planes = float(LEAST_PASSES)
        planes += PASSES_PER_WEIGHT * self.oracle.dimension * math.log(now.primal / enough)
        self._course.append((passes, now.gap))
        earlier = [seen for seen in self._course if GROWTH * seen[0] <= passes]
        if passes < LITTLE * planes or not earlier:  # the first passes tell little
            return False
        before, gap = earlier[-1]
        closed = math.log(gap / now.gap)
        self._gave_up = (passes - before) * math.log(now.gap / enough) > planes * closed
        return self._gave_up


class ChainBlocks:
    """Sequences with the labellings that are known of them, in compiled code.

    Attributes
    ----------
    w : ndarray
        c·Σ_i [Ψ(x_i, y_i) − Ψ(mixture_i)], kept up to date.
    gaps : ndarray, shape (sequences,)
        c·(largest u − Σ_a α_a·u_a), u = Δ + <w, Ψ>, of each before its last visit with inference:
        its part of the duality gap.
    full : bool
        Whether there is no room for more labellings.

    Parameters
    ----------
    examples : ChainExamples
        Of first order.
    C : float
        Multiplies the mean risk.
    mixtures : Mixtures, optional
        Where to start.
    """

    full = False

    def __init__(
        self, examples: ChainExamples, C: float, mixtures: loops.Mixtures | None = None
    ) -> None:
        chains, shape, starts = examples.chains, examples.shape, examples.chains.starts
        self._examples = examples
        values, indices, row_starts = flat_rows(examples.matrix)
        columns = np.empty(0, np.int32) if indices is None else indices
        self._tokens = loops.Tokens(values, columns, row_starts, indices is None)
        lengths = np.diff(starts)
        count = len(lengths)
        squares = np.concatenate([[0], np.cumsum(lengths * lengths)])
        gram = np.empty(squares[-1])
        loops.token_products(self._tokens, starts, squares, shape.features, gram)
        self._sequences = loops.Sequences(
            starts,
            chains.truth,
            C * chains.weight,
            chains.loss == "hamming",
            shape.boundaries,
            squares,
            gram,
            chains.chunks.buffer(0, count),
        )
        if mixtures is None:  # the truth alone for every sequence, with room for a few labellings
            ends = np.cumsum([0, *loops.region_size(SLOTS, lengths)])
            slots = np.full(count, SLOTS)
            mixtures = loops.Mixtures(
                np.zeros(count, np.int64), slots, ends[:-1], np.zeros(ends[-1])
            )
            loops.begin_with_truth(self._sequences, mixtures)
        self._mixtures = mixtures
        self._used = len(self._mixtures.store)
        self.gaps, self._gains = np.zeros((2, count))
        self.w = np.zeros(examples.dimension)
        self._weights = shape.unpack(self.w)
        # Products and comparisons of inference, in numbers of the rows.
        self._inference = (
            examples.matrix.n_stored + len(chains.truth) * shape.labels
        ) * shape.labels

    def kept(self) -> loops.Mixtures:
        """The mixtures, good for any C."""
        return self._mixtures

    def explore(self, rng: np.random.Generator) -> float:
        """Visit all sequences with inference; by how much the dual has grown."""
        order = rng.permutation(len(self.gaps))
        total, done = 0.0, 0
        while done < len(order):
            known = self._tokens, self._sequences, self._mixtures, self._weights
            grown, visited, _ = loops.visit(*known, order[done:], self.gaps, self._gains, True)
            total, done = total + grown, done + visited
            if done < len(order):
                self._make_room(int(order[done]))
        return total

    def revisit(self, rng: np.random.Generator) -> tuple[float, float]:
        """Visit some with what is known: growth of the dual, and cost in passes of inference.

        At large C a fifth of the sequences make four fifths of the gains, so that the chance of a
        visit follows what the last one has gained.
        """
        several = np.flatnonzero(self._mixtures.counts > 1)
        gains = self._gains[several]
        chances = np.maximum(LEAST_CHANCE * gains.sum(), gains * len(gains))
        order = rng.permutation(several[rng.random(len(gains)) * gains.sum() <= chances])
        known = self._tokens, self._sequences, self._mixtures, self._weights
        grown, _, read = loops.visit(*known, order, self.gaps, self._gains, False)
        return grown, LINE * read / self._inference

    def shares(self) -> tuple[float, np.ndarray]:
        """c·Σ_i Δ(mixture_i), and the shares of all known labellings."""
        shares = np.empty(int(self._mixtures.counts.sum()))
        losses = loops.copy_shares(self._sequences.starts, self._mixtures, shares)
        return self._sequences.cost * losses, shares

    def set_shares(self, target: np.ndarray) -> None:
        """Make the shares the nearest to ``target`` that can be, and let w follow."""
        loops.set_shares(self._tokens, self._sequences, self._mixtures, self._weights, target)

    def _make_room(self, s: int) -> None:
        """Twice as many slots for a sequence, behind all others."""
        mixtures, starts = self._mixtures, self._sequences.starts
        length = int(starts[s + 1] - starts[s])
        before = loops.region(mixtures, s, length)
        mixtures.slots[s] *= 2
        mixtures.at[s] = self._used
        self._used += loops.region_size(int(mixtures.slots[s]), length)
        if self._used > len(mixtures.store):
            store = np.zeros(max(self._used, 2 * len(mixtures.store)))
            store[: len(mixtures.store)] = mixtures.store
            self._mixtures = mixtures = mixtures._replace(store=store)
        for old, new in zip(before, loops.region(mixtures, s, length), strict=True):
            new[tuple(map(slice, old.shape))] = old

    def plane(self, executor: Executor) -> Cut:
        """The dual point as a cut, computed from all sequences."""
        examples = self._examples
        chains, shape, matrix = examples.chains, examples.shape, examples.matrix
        shares = np.empty((len(chains.truth), shape.labels))
        counted = ChainShape(0, shape.labels, True)
        counts = counted.unpack(np.zeros(counted.dimension))
        sums = (counts.transitions, counts.begin, counts.finish)
        losses = loops.differences(self._sequences, self._mixtures, shares, *sums)
        for some in sums:
            some *= chains.weight

        def gradient(k: int, block: Block) -> None:
            partial = examples.sum.array(k)
            partial[...] = 0.0
            block.add_gradient(chains.weight * shares[matrix.slice(k)], partial)

        emissions = examples.sum.run(gradient, executor)[0]
        return Cut(shape.pack(counts._replace(emissions=emissions)), chains.weight * losses)


class ExampleBlocks:
    """Examples of a user's problem: rows Ψ(x_i, z) − Ψ(x_i, y_i) and losses of the outputs z.

    What can be asked of it is what ``ChainBlocks`` can be.

    Inference runs chunk by chunk at the w of the moment, so that batch forms are used; the steps of
    the examples of a chunk follow one another.

    Parameters
    ----------
    model : LinearExamples
    C : float
        Multiplies the mean risk.
    kept : list of Kept, optional
        Where to start.
    """

    def __init__(self, model: LinearExamples, C: float, kept: Any = None) -> None:
        self._chunks = model.examples.inference.chunks
        self._weight = 1.0 / model.count
        self._cost = C / model.count
        truth = row_blocks.Kept.truth
        self._kept = [truth() for _ in range(model.count)] if kept is None else kept
        self.w = np.zeros(model.dimension)
        self.gaps = np.zeros(model.count)
        self._work = np.zeros(model.dimension)

    @property
    def full(self) -> bool:
        return sum(len(kept.values) for kept in self._kept) > CACHE_NUMBERS

    def kept(self) -> Any:
        return self._kept

    def explore(self, rng: np.random.Generator) -> float:
        grown = 0.0
        for k in rng.permutation(len(self._chunks)):
            chunk = self._chunks[k]
            answers = chunk.row_answers(self.w)
            rows = answers.rows
            rows.sort_indices()
            rows.eliminate_zeros()
            for j in rng.permutation(len(chunk)):
                i = chunk.numbers[j]
                part = slice(rows.indptr[j], rows.indptr[j + 1])
                row = rows.indices[part].astype(np.int64), rows.data[part]
                kept = self._kept[i] = self._kept[i].with_output(
                    *row, float(answers.offsets[j]), self._work
                )
                more, self.gaps[i] = kept.visit(self._cost, self.w)
                grown += more
        return grown

    def revisit(self, rng: np.random.Generator) -> tuple[float, float]:
        several = [i for i, kept in enumerate(self._kept) if len(kept.shares) > 1]
        grown = 0.0
        for j in rng.permutation(len(several)):
            grown += self._kept[several[j]].visit(self._cost, self.w)[0]
        return grown, KEPT_COST

    def shares(self) -> tuple[float, np.ndarray]:
        losses = sum(float(np.einsum("i,i->", k.shares, k.losses)) for k in self._kept)
        return self._cost * losses, np.concatenate([kept.shares for kept in self._kept])

    def set_shares(self, target: np.ndarray) -> None:
        at = 0
        for kept in self._kept:
            count = len(kept.shares)
            if count > 1:
                kept.move_to(target[at : at + count], self._cost, self.w)
            at += count

    def plane(self, executor: Executor) -> Cut:
        a = np.zeros(len(self.w))
        offset = 0.0
        for kept in self._kept:
            offset += kept.add_to(self._weight, a)
        return Cut(a, self._weight * offset)
