"""Chains whose emissions are functions in a kernel's feature space.

    score(x, z) = Σ_t f_{z_t}(x_t) + Σ_t T[z_{t−1}, z_t] (+ begin, finish, second order),
    f_k(x) = Σ_s coef[s, k]·k(x_s, x)

over the training tokens s. Transitions and their like stay plain numbers. A vector (a cut, a point)
is a matrix with K columns: a row per token, its coefficients, and below these the plain numbers
in *units* of K, in the order in which a chain of no features has them. Its scores have the same
shape: the emissions of all tokens, and below these the plain numbers once more. So inner products
are sums of coefficients times scores, as for kernels in classification, and the span of
the cuts, the table of scores and the sampling are the same; inference takes the place of a
sum of losses over rows.

A sampled cut (Yu & Joachims 2008, Algorithm 3) has r of the tokens whose label is wrong. Units cost
no kernel value, so they are those of all sequences in every cut.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..exec import Executor
from ..kernels import KernelMatrix
from ..loops import viterbi
from ..oracles import Line, Point
from ..oracles.sampled import SurfaceOracle
from ..oracles.span import Expansion
from ..oracles.whole_surface import PlaneSurface
from .chain import ChainShape, ChainWeights, LabelledChains


class KernelChainSurface(PlaneSurface):
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
        self.tokens = len(chains.truth)
        self.explicit = ChainShape(0, shape.labels, shape.boundaries, shape.order)
        units = self.explicit.dimension // shape.labels
        super().__init__(self.tokens + units, shape.labels, 1.0, executor, shape.labels)

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(self.shape), coef=np.zeros(self.tokens, dtype=np.int64))

    def weights(self, rows: np.ndarray) -> ChainWeights:
        """The plain numbers of scores or coefficients."""
        return self.explicit.unpack(rows[self.tokens :].reshape(-1))

    def settle(self, point: Point) -> None:
        self.chains.infer(point, self.weights(point.scores), self.executor)

    def slopes(self, line: Line) -> Callable[[Point], float]:
        units = slice(self.tokens, None)
        way = self.explicit.unpack((line.end.scores[units] - line.start.scores[units]).reshape(-1))
        return self.chains.slopes(line, way, self.executor)

    def coefficients(self, point: Point) -> tuple[np.ndarray, float]:
        chains = self.chains
        coef = np.empty(self.shape)
        viterbi.emission_coefficients(
            chains.truth, chains.token_weights, point.coef, coef[: self.tokens]
        )
        counts = chains.counts(point.coef, self.executor)
        coef[self.tokens :].reshape(-1)[:] = self.explicit.pack(counts)
        return coef, point.offset


class KernelChainOracle(SurfaceOracle):
    """Cuts of all wrong tokens, or of a sample of them.

    Parameters
    ----------
    matrix : KernelMatrix
        Of all tokens.
    surface : KernelChainSurface
    executor, rng, size, centred
        As for the oracle of any surface.
    """

    surface: KernelChainSurface

    def __init__(
        self,
        matrix: KernelMatrix,
        surface: KernelChainSurface,
        executor: Executor,
        rng: np.random.Generator,
        *,
        size: int | None,
        centred: bool,
    ) -> None:
        super().__init__(
            matrix, surface, executor, rng, size=size, centred=centred, free=surface.tokens
        )

    @property
    def rows(self) -> int:
        return self.surface.shape[0]

    def scores_of(self, expansion: Expansion) -> np.ndarray:
        own = expansion.rows < self.surface.tokens
        scores = np.zeros(self.surface.shape)
        scores[: self.surface.tokens] = self.matrix.combine(
            expansion.rows[own], expansion.coef[own]
        )
        scores[expansion.rows[~own]] = expansion.coef[~own]
        if self.matrix.values is None:  # those of a stored matrix are counted once
            self.kernel_values += int(np.count_nonzero(own)) * self.surface.tokens
        return scores
