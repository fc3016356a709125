"""Chains trained sequence by sequence: block-coordinate ascent in the dual, with its certificate.

A pass visits every sequence once, in random order: inference finds the most violated labelling at
the w of the moment, the dual point of the sequence moves to the maximum over the labellings that
are known of it, and w follows at once (``loops.chain_blocks``). Passes without inference over the
known labellings follow, as long as they gain more for their cost than the last pass with it did.

The dual point is a cut like any other: its plane are the features of the mixtures less those of
the truth, its offset the loss, both as means. A certificate computes it anew from all tokens, and
the objective at its w by one more pass of inference. The gaps that a pass has seen, of each
sequence before its own step, sum up to about the duality gap and tell when a certificate is worth
it.

On 500 words of OCR letters (C = 0.1 / 1 / 10, relative gap 1e-2) this takes 26 / 44 / about 60
passes of inference, where cutting planes take 276 / 893 / 8,400.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..bundle import AdaptivePosition, BundleSolver, IterativeSolver, Observer, StopRule
from ..bundle.solver import ROUNDING
from ..data.blocks import Block
from ..loops import chain_blocks as loops
from ..oracles import Cut
from ..oracles.structured import StructuredOracle
from ..result import Status
from ..structured.chain import ChainExamples, ChainShape
from .choose import AutoSolver
from .coordinate import flat_rows

# Where the gap is not seen to be met there is a certificate when the passes have grown by this
# factor: they then take a part of the time that shrinks, and a progress line moves all the same.
GROWTH = 1.5
# Passes without inference between two with it cost at most so many times what one of these does,
# and there are at most so many passes: where features are on very unlike scales every pass gains a
# little, for ever.
REVISITS = 10
MOST_PASSES = 1000
# Labellings of a sequence that there is room for in the beginning; more are made where needed.
SLOTS = 4
# Numbers that products of tokens may take: half a gigabyte.
MOST_PRODUCTS = 1 << 26


def can_be_visited(examples: object) -> bool:
    """Whether sequences can be visited one by one: chains of first order, in this process."""
    if not isinstance(examples, ChainExamples) or examples.shape.order != 1:
        return False
    lengths = np.diff(examples.chains.starts)
    return bool(np.sum(lengths * lengths) <= MOST_PRODUCTS)


class ChainSolver(IterativeSolver):
    """State of one run. An iteration is some passes and a certificate.

    Parameters
    ----------
    oracle : StructuredOracle
        Of ``ChainExamples`` of first order.
    C, stop, observer
        As for every solver.
    rng : numpy.random.Generator
        Draws the order of the sequences.
    mixtures : Mixtures, optional
        Where to start: the dual point of an earlier run on the same sequences, whatever its C.

    Attributes
    ----------
    passes, revisits : int
        Passes with inference, and without.
    """

    oracle: StructuredOracle

    def __init__(
        self,
        oracle: StructuredOracle,
        C: float,
        stop: StopRule,
        rng: np.random.Generator,
        observer: Observer | None = None,
        mixtures: loops.Mixtures | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, observer)
        examples = oracle.model
        assert isinstance(examples, ChainExamples)
        chains, shape, starts = examples.chains, examples.shape, examples.chains.starts
        self._examples = examples
        self._rng = rng
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
        self._warm = mixtures is not None
        self._mixtures = self._truths() if mixtures is None else mixtures
        self._used = {
            name: len(getattr(self._mixtures, name)) for name in ("shares", "paths", "products")
        }
        self._gaps = np.zeros(count)
        self._w = np.zeros(shape.dimension)
        weights = shape.unpack(self._w)
        self._weights = loops.Weights(
            weights.emissions, weights.transitions, weights.begin, weights.finish
        )
        # Products and comparisons of inference, in numbers of the rows.
        self._inference = (
            examples.matrix.n_stored + len(chains.truth) * shape.labels
        ) * shape.labels
        self.point, self.trial = oracle.new_point(), oracle.new_point()
        self.passes = self.revisits = 0

    def _truths(self) -> loops.Mixtures:
        """The truth alone for every sequence, with room for a few labellings more."""
        starts = self._sequences.starts
        count = len(starts) - 1
        numbers = np.arange(count)
        mixtures = loops.Mixtures(
            counts=np.ones(count, np.int64),
            slots=np.full(count, SLOTS),
            first=SLOTS * numbers,
            paths_at=SLOTS * starts[:-1],
            products_at=SLOTS * SLOTS * numbers,
            shares=np.zeros(SLOTS * count),
            losses=np.zeros(SLOTS * count),
            paths=np.zeros(SLOTS * int(starts[-1]), np.int64),
            products=np.zeros(SLOTS * SLOTS * count),
        )
        loops.begin_with_truth(self._sequences, mixtures)
        return mixtures

    def dual_point(self) -> Any:
        """The mixtures of labellings, good for any C."""
        return self._mixtures

    def active_cuts(self) -> tuple[Cut, ...]:
        return () if self._cut is None else (self._cut,)

    # -- the loop -------------------------------------------------------------

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        self._begin_at(start, self.point, self.trial)
        for cut in cuts:
            self._bound(cut)
        status, due, dual = None, 1.0, 0.0  # D, about
        if self.stop.converged(self.best.primal, self.dual, self.C):  # the start is good enough
            status = self._end_iteration(self.best.primal, 0.0, 1)
        elif self._warm:
            known = self._plane()
            self._w[...] = -self.C * known.a
            dual = self._bound(known)
        while status is None:
            grown = self._explore()
            dual += grown
            seen = float(self._gaps.sum())
            met = seen <= self.stop.enough(dual + seen, self.C)
            # Where rounding is all that is left every pass is an iteration, and a few are the end.
            least = ROUNDING * abs(dual)
            if met or grown <= least or self.passes >= due or self._out_of_time():
                status = self._certify()
                due = GROWTH * self.passes
            more, read, left = grown, self._inference, REVISITS * self._inference
            while status is None and more > least and more * self._inference >= grown * read:
                if left <= 0 or self._out_of_time():
                    break
                more, read = self._revisit()
                dual += more
                left -= read
            if status is None and self.passes >= MOST_PASSES:
                status = Status.MAX_ITER
        return status

    def _out_of_time(self) -> bool:
        return self.watch.elapsed() >= self.stop.time_limit

    def _explore(self) -> float:
        """Visit all sequences with inference; by how much the dual has grown."""
        order = self._rng.permutation(len(self._gaps))
        total, done = 0.0, 0
        with self.watch.phase("passes"):
            while done < len(order):
                known = (self._tokens, self._sequences, self._mixtures, self._weights)
                grown, visited = loops.explore(*known, order[done:], self._gaps)
                total, done = total + grown, done + visited
                if done < len(order):
                    self._make_room(int(order[done]))
        self.passes += 1
        self.oracle.passes += 1
        return total

    def _revisit(self) -> tuple[float, int]:
        """Visit all sequences with what is known: by how much D has grown, and the cost."""
        order = self._rng.permutation(np.flatnonzero(self._mixtures.counts > 1))
        self.revisits += 1
        with self.watch.phase("revisits"):
            known = (self._tokens, self._sequences, self._mixtures, self._weights)
            grown, read = loops.revisit(*known, order)
        return grown, read

    def _make_room(self, s: int) -> None:
        """Twice as many slots for a sequence, behind all others."""
        old, mixtures = self._mixtures, self._mixtures
        slots, starts = int(old.slots[s]), self._sequences.starts
        length = int(starts[s + 1] - starts[s])
        places = {}
        for names, size in (
            (("shares", "losses"), 2 * slots),
            (("paths",), 2 * slots * length),
            (("products",), 4 * slots * slots),
        ):
            at = places[names[0]] = self._used[names[0]]
            self._used[names[0]] = at + size
            longer = {name: _with_room(getattr(mixtures, name), at + size) for name in names}
            mixtures = mixtures._replace(**longer)
        first, at = int(old.first[s]), places["shares"]
        for name in ("shares", "losses"):
            getattr(mixtures, name)[at : at + slots] = getattr(old, name)[first : first + slots]
        first, at = int(old.paths_at[s]), places["paths"]
        size = slots * length
        mixtures.paths[at : at + size] = old.paths[first : first + size]
        first, at = int(old.products_at[s]), places["products"]
        square = mixtures.products[at : at + 4 * slots * slots].reshape(2 * slots, 2 * slots)
        square[:slots, :slots] = old.products[first : first + slots * slots].reshape(slots, slots)
        mixtures.slots[s] = 2 * slots
        mixtures.first[s] = places["shares"]
        mixtures.paths_at[s] = places["paths"]
        mixtures.products_at[s] = places["products"]
        self._mixtures = mixtures

    # -- certificates ---------------------------------------------------------

    def _plane(self) -> Cut:
        """The dual point as a cut, computed from all tokens."""
        examples = self._examples
        chains, shape, matrix = examples.chains, examples.shape, examples.matrix
        shares = np.empty((len(chains.truth), shape.labels))
        counted = ChainShape(0, shape.labels, True)
        counts = counted.unpack(np.zeros(counted.dimension))
        sums = (counts.transitions, counts.begin, counts.finish)
        losses = loops.differences(self._sequences, self._mixtures, shares, *sums)
        for some in sums:
            some *= chains.weight

        def gradient(k: int, block: Block, partial: np.ndarray) -> None:
            partial[...] = 0.0
            block.add_gradient(chains.weight * shares[matrix.slice(k)], partial)

        emissions = examples.sum_blocks(gradient, self.oracle.executor)
        return Cut(shape.pack(replace(counts, emissions=emissions)), chains.weight * losses)

    def _certify(self) -> Status | None:
        """Renew bound and best point; says whether that is the end."""
        with self.watch.phase("certificate"):
            cut = self._plane()
            self._bound(cut)
            self._w[...] = -self.C * cut.a  # without the rounding of single steps
            self.oracle.evaluate(self._w.copy(), self.trial)
            objective = self._objective(self.trial)
            better = objective < self.best.primal
            if better:
                self.point.take(self.trial)
                self._keep(self.point)
        return self._end_iteration(objective, float(better), 1)


class ChainAutoSolver(AutoSolver):
    """Block-coordinate ascent, then cutting planes where rounding has stopped it."""

    oracle: StructuredOracle

    def _stages(self) -> Iterator[IterativeSolver]:
        if can_be_visited(self.oracle.model):
            known: Any = self._dual_point
            yield ChainSolver(self.oracle, self.C, self._stop(), self._rng, self._observe, known)
        yield BundleSolver(self.oracle, self.C, self._stop(), AdaptivePosition(), self._observe)


def _with_room(array: np.ndarray, size: int) -> np.ndarray:
    """The array, or one of twice the length at least if it is too short."""
    if len(array) >= size:
        return array
    longer = np.zeros(max(size, 2 * len(array)), array.dtype)
    longer[: len(array)] = array
    return longer
