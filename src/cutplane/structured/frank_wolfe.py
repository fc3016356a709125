"""Chains trained sequence by sequence: block-coordinate Frank–Wolfe under the usual certificate.

A pass visits every sequence once, in random order, and moves its dual point towards the most
violated labelling there by the best step (``loops.frank_wolfe``). w follows at once, so that a
pass over N sequences does about as much as N/10 passes of cutting planes would in the beginning,
where those learn one cut from as many calls of inference.

The dual point is a cut like any other: its plane is the mean of the features of the mixtures less
those of the truth, its offset their mean loss. A certificate computes it anew from all tokens, and
the objective at its w by one pass of inference. What a pass has seen of the gaps of the sequences,
each before its own step, sums up to about the gap of the whole and tells when that is worth it.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..bundle import IterativeSolver, Observer, StopRule
from ..data.blocks import Block
from ..loops import frank_wolfe as loops
from ..oracles import Cut
from ..oracles.structured import StructuredOracle
from ..result import Status
from ..solvers.coordinate import _flat_rows as flat_rows
from .chain import ChainExamples, ChainShape

# Passes between certificates, as a part of those done, where the gap is not seen to be met: some
# tenths more than needed at worst, and a progress line all the time.
GROWTH = 1.5
# Labellings of a sequence that there is room for in the beginning.
SLOTS = 8


class FrankWolfeSolver(IterativeSolver):
    """State of one run. An iteration is some passes and a certificate.

    Parameters
    ----------
    oracle : StructuredOracle
        Of ``ChainExamples`` of first order.
    C, stop, observer
        As for every solver.
    rng : numpy.random.Generator
        Draws the order of the sequences.
    """

    oracle: StructuredOracle

    def __init__(
        self,
        oracle: StructuredOracle,
        C: float,
        stop: StopRule,
        rng: np.random.Generator,
        observer: Observer | None = None,
    ) -> None:
        super().__init__(oracle, C, stop, observer)
        examples = oracle.model
        assert isinstance(examples, ChainExamples)
        chains, shape = examples.chains, examples.shape
        self._examples = examples
        self._rng = rng
        self._rows = flat_rows(examples.matrix)
        starts, truth = chains.starts, chains.truth
        sequences = len(starts) - 1
        lengths = np.diff(starts)
        squares = np.concatenate([[0], np.cumsum(lengths * lengths)])
        gram = np.empty(squares[-1])
        loops.token_products(*self._rows, starts, squares, shape.features, gram)
        self._gram = squares, gram
        self._counts = np.ones(sequences, np.int64)
        self._paths = np.zeros((SLOTS, len(truth)), np.int16)
        self._paths[0] = truth
        self._shares = np.zeros((sequences, SLOTS))
        self._shares[:, 0] = 1.0
        self._losses = np.zeros((sequences, SLOTS))
        self._products = np.zeros((sequences, SLOTS, SLOTS))
        for s in range(sequences):
            own = self._paths[0, starts[s] : starts[s + 1]]
            if len(own):
                self._products[s, 0, 0] = loops.path_product(
                    gram, squares[s], len(own), shape.boundaries, own, own
                )
        self._gaps = np.zeros(sequences)
        self._w = np.zeros(shape.dimension)
        self._alpha = chains.chunks.buffer(0, sequences)
        self._inference = (examples.matrix.numbers + len(truth) * shape.labels) * shape.labels
        self.point, self.trial = oracle.new_point(), oracle.new_point()
        self.passes = self.revisits = 0

    def active_cuts(self) -> tuple[Cut, ...]:
        return () if self._cut is None else (self._cut,)

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        self._begin_at(start, self.point, self.trial)
        for cut in cuts:
            self._bound(cut)
        status, due, dual = None, 1.0, 0.0
        while status is None:
            grown = self._explore()
            dual += grown
            seen = float(self._gaps.sum())
            enough = self.stop.enough(dual + seen, self.C)
            if seen <= enough or self.passes >= due or self._out_of_time():
                status = self._certify()
                due = GROWTH * self.passes
            rate = grown / self._inference
            while status is None and not self._out_of_time():
                more, work = self._revisit()
                dual += more
                if more <= rate * work:
                    break
        return status

    def _out_of_time(self) -> bool:
        return self.watch.elapsed() >= self.stop.time_limit

    def _explore(self) -> float:
        """Visit all sequences with inference; by how much the dual has grown."""
        chains, shape = self._examples.chains, self._examples.shape
        weights = shape.unpack(self._w)
        order = self._rng.permutation(len(self._counts))
        total, done = 0.0, 0
        with self.watch.phase("passes"):
            while done < len(order):
                grown, visited = loops.explore(
                    *self._rows,
                    order[done:],
                    chains.starts,
                    chains.truth,
                    self.C * chains.weight,
                    chains.loss == "hamming",
                    shape.boundaries,
                    *self._gram,
                    *_of(weights),
                    *self._known(),
                    self._gaps,
                    self._alpha,
                )
                total, done = total + grown, done + visited
                if done < len(order):
                    self._widen()
        self.passes += 1
        self.oracle.passes += 1
        return total

    def _revisit(self) -> tuple[float, int]:
        """Visit all sequences with what is known; by how much the dual has grown, and the work."""
        chains, shape = self._examples.chains, self._examples.shape
        order = self._rng.permutation(np.flatnonzero(self._counts > 1))
        self.revisits += 1
        with self.watch.phase("revisits"):
            return loops.revisit(
                *self._rows,
                order,
                chains.starts,
                self.C * chains.weight,
                shape.boundaries,
                *_of(shape.unpack(self._w)),
                *self._known(),
            )

    def _known(self):
        return self._counts, self._paths, self._shares, self._losses, self._products

    def _widen(self) -> None:
        """Twice as many slots."""
        slots = len(self._paths)
        self._paths = np.concatenate([self._paths, np.zeros_like(self._paths)])
        self._shares, self._losses = (
            np.pad(some, ((0, 0), (0, slots))) for some in (self._shares, self._losses)
        )
        self._products = np.pad(self._products, ((0, 0), (0, slots), (0, slots)))

    def _plane(self) -> Cut:
        """The dual point as a cut, computed from all tokens."""
        examples = self._examples
        chains, shape, matrix = examples.chains, examples.shape, examples.matrix

        shares = np.empty((len(chains.truth), shape.labels))
        own = ChainShape(0, shape.labels, True)
        counts = own.unpack(np.zeros(own.dimension))
        mean = (counts.transitions, counts.begin, counts.finish)
        with_paths = (self._counts, self._paths, self._shares)
        loops.mixtures(chains.starts, *with_paths, shares, *mean)
        truth = own.unpack(np.zeros(own.dimension))
        true_shares = np.empty_like(shares)
        only = (np.ones_like(self._counts), self._paths, np.ones((len(self._counts), 1)))
        loops.mixtures(
            chains.starts, *only, true_shares, truth.transitions, truth.begin, truth.finish
        )
        shares -= true_shares
        for some, true in zip(mean, (truth.transitions, truth.begin, truth.finish), strict=True):
            some -= true
            some *= chains.weight

        def gradient(k: int, block: Block, partial: np.ndarray) -> None:
            partial[...] = 0.0
            block.add_gradient(chains.weight * shares[matrix.slice(k)], partial)

        emissions = examples._sum.run(gradient, self.oracle.executor)[0]
        a = shape.pack(dataclasses.replace(counts, emissions=emissions))
        return Cut(a, chains.weight * float(np.sum(self._shares * self._losses)))

    def _certify(self) -> Status | None:
        """Renew bound and best point; says whether that is the end."""
        with self.watch.phase("certificate"):
            cut = self._plane()
            self._bound(cut)
            self._w[...] = -self.C * cut.a  # without the rounding of single steps
            self.oracle.evaluate(self._w.copy(), self.trial)
            objective = self._objective(self.trial)
            step = 0.0
            if objective < self.best.primal:
                self.point.take(self.trial)
                self._keep(self.point)
                step = 1.0
        return self._end_iteration(objective, step, 1)


def _of(weights):
    return weights.emissions, weights.transitions, weights.begin, weights.finish
