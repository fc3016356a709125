"""Chains whose emissions are functions in a kernel's feature space.

    score(x, z) = Σ_t f_{z_t}(x_t) + Σ_t T[z_{t−1}, z_t] (+ begin, finish, second order)

Tokens are the parts; transitions and their like are the plain numbers, in the order in which a
chain of no features has them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from ..exec import Executor
from ..loops import viterbi
from ..objective import Line, Point
from .chain import ChainShape, ChainWeights, LabelledChains, upper
from .examples import parts_at
from .parts import PartsModel, PartsScoreRisk, Reach


class KernelChainScoreRisk(PartsScoreRisk):
    """The risk of labelled chains over emissions and plain numbers.

    A point's ``coef`` is the most violated labelling.

    Parameters
    ----------
    chains : LabelledChains
    executor : Executor
    """

    def __init__(self, chains: LabelledChains, executor: Executor) -> None:
        shape = chains.shape
        self.chains = chains
        self.explicit = ChainShape(0, shape.labels, shape.boundaries, shape.order)
        plain = self.explicit.dimension
        super().__init__(len(chains.truth), shape.labels, plain, executor, shape.labels)

    @property
    def largest(self) -> float:
        """A wrong token counts (weight of its sequence)·(e_z − e_y)."""
        return self.chains.weight * float(np.sqrt(2.0))

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(self.shape), coef=np.zeros(self.parts, dtype=np.int64))

    def weights(self, rows: np.ndarray) -> ChainWeights:
        """The plain numbers of scores or coefficients."""
        return self.explicit.unpack(self.plain_of(rows))

    def evaluate(self, point: Point) -> None:
        self.chains.infer(point, self.weights(point.scores), self.executor)

    def upper(self, point: Point, low: None, errors: np.ndarray) -> float:
        weights = self.weights(point.scores)
        roundings = self.chains.roundings(point.scores, errors, weights)
        return upper(point.risk, roundings, self.chains.weight)

    def slopes(self, line: Line) -> Callable[[Point], float]:
        way = self.explicit.unpack(
            self.plain_of(line.end.scores) - self.plain_of(line.start.scores)
        )
        return self.chains.slopes(line, way, self.executor)

    def coefficients(self, point: Point) -> tuple[np.ndarray, float]:
        chains = self.chains
        coef = np.empty(self.shape)
        viterbi.emission_coefficients(
            chains.truth, chains.token_weights, point.coef, coef[: self.parts]
        )
        (counts,) = chains.count_sums(point.coef, self.executor)
        coef[self.parts :].reshape(-1)[:] = self.explicit.pack(counts)
        return coef, point.offset


class KernelChains(PartsModel):
    """All labelled chains: their tokens are the parts.

    Parameters
    ----------
    chains : LabelledChains
    """

    def __init__(self, chains: LabelledChains) -> None:
        shape = chains.shape
        self.chains = chains
        self.starts = chains.starts
        self.outputs = shape.labels
        self.plain = dataclasses.replace(shape, features=0).dimension

    def score_risk(self, executor: Executor) -> KernelChainScoreRisk:
        return KernelChainScoreRisk(self.chains, executor)

    def some(self, which: np.ndarray, executor: Executor) -> KernelChainScoreRisk:
        chains = self.chains
        lengths = self.starts[which + 1] - self.starts[which]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        truth = chains.truth[parts_at(self.starts, which)]
        return KernelChainScoreRisk(
            LabelledChains(starts, truth, chains.shape, chains.loss), executor
        )

    def reach(self, radius: float) -> Reach:
        """Of a sequence as long as the longest one, with all labels wrong."""
        length = int(np.max(np.diff(self.starts)))
        shape = self.chains.shape
        # Counts of both labellings are no longer than their sums, and their product is ≥ 0.
        sums = [length * radius, max(0, length - 1)]
        sums += [1.0, 1.0] if shape.boundaries else []
        sums += [max(0, length - 2)] if shape.order == 2 else []
        squared = 2.0 * float(np.sum(np.square(sums)))
        loss = float(length if self.chains.loss == "hamming" else 1)
        return Reach(loss, float(np.sqrt(squared)))
