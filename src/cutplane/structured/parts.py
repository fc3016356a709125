"""Outputs scored by functions of *parts* of the input in a kernel's feature space.

    score(x, z) = Σ_p Σ_k a_pk(x, z)·f_k(u_p(x)) + <v, plain(x, z)>,
    f_k(u) = Σ_s coef[s, k]·k(u_s, u)

The parts u_p of an input (the tokens of a sequence, the edges of a graph, or the one vector that it
is) are the same for all outputs; the output decides on the coefficients a, K per part. The sum in f
is over the parts s of all training examples. Plain terms are linear, without a kernel.

A vector (a cut, a point) is a matrix with K columns: a row per part, its coefficients, and below
these the plain numbers v in *units* of K, zeros at the end of the last one. Its scores have the
same shape: f of all parts, and below these the plain numbers once more. So inner products are sums
of coefficients times scores, as for kernels in classification, and the span of the cuts, the table
of scores and the sampling are the same; inference takes the place of a sum of losses over rows.

A sampled cut (Yu & Joachims 2008, Algorithm 3) has r of the parts with a coefficient. Units cost
no kernel value, so they are those of all examples in every cut.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..exec import Executor
from ..kernels import KernelMatrix
from ..oracles import Cut, Line, Point
from ..oracles.products import Products
from ..oracles.sampled import SurfaceOracle
from ..oracles.span import Expansion
from ..oracles.whole_surface import PlaneSurface


class PartsSurface(PlaneSurface):
    """A risk over the scores of parts and plain numbers.

    Attributes
    ----------
    parts : int
        Of all examples.
    plain : int
        Plain numbers.

    Parameters
    ----------
    parts, plain
        The same.
    outputs : int
        K.
    executor : Executor
    work : float
        What a score costs in a pass, where a comparison and a few additions cost 1.
    """

    def __init__(
        self, parts: int, outputs: int, plain: int, executor: Executor, work: float
    ) -> None:
        self.parts = parts
        self.plain = plain
        super().__init__(parts + -(-plain // outputs), outputs, 1.0, executor, work)

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest |coefficients of a part| of any cut."""

    def plain_of(self, rows: np.ndarray) -> np.ndarray:
        """The plain numbers of scores or coefficients, as a view."""
        return rows[self.parts :].reshape(-1)[: self.plain]


class PartsOracle(SurfaceOracle):
    """Cuts of all parts with a coefficient, or of a sample of them.

    Parameters
    ----------
    matrix : KernelMatrix
        Of all parts.
    surface : PartsSurface
    executor, rng, size, centred
        As for the oracle of any surface.
    """

    surface: PartsSurface

    def __init__(
        self,
        matrix: KernelMatrix,
        surface: PartsSurface,
        executor: Executor,
        rng: np.random.Generator,
        *,
        size: int | None,
        centred: bool,
    ) -> None:
        super().__init__(
            matrix, surface, executor, rng, size=size, centred=centred, free=surface.parts
        )

    @property
    def rows(self) -> int:
        return self.surface.shape[0]

    def scores_of(self, expansion: Expansion) -> np.ndarray:
        own = expansion.rows < self.surface.parts
        scores = np.zeros(self.surface.shape)
        scores[: self.surface.parts] = self.matrix.combine(expansion.rows[own], expansion.coef[own])
        scores[expansion.rows[~own]] = expansion.coef[~own]
        if self.matrix.values is None:  # those of a stored matrix are counted once
            self.kernel_values += int(np.count_nonzero(own)) * self.surface.parts
        return scores


class FeatureModel:
    """The same risk over explicit features of the parts; a ``JointModel``.

    w holds the weights of the features, (features, K), then the units.

    Parameters
    ----------
    products : Products
        With the features of all parts.
    features : int
    surface : PartsSurface
    """

    def __init__(self, products: Products, features: int, surface: PartsSurface) -> None:
        self._products = products
        self._surface = surface
        self.rows, self.outputs = surface.shape[0], surface.outputs or 1
        self._shape = (features, self.outputs)
        self._own = features * self.outputs
        self.dimension = self._own + (self.rows - surface.parts) * self.outputs

    def digest(self) -> bytes:
        """Nothing: no state of it is ever kept."""
        return b""

    def new_point(self, w: np.ndarray) -> Point:
        return self._surface.new_point(w)

    def score(self, w: np.ndarray, scores: np.ndarray, executor: Executor) -> None:
        """One product of all features with their weights."""
        weights = np.ascontiguousarray(w[: self._own].reshape(self._shape))
        self._products.scores(weights, scores[: self._surface.parts])
        scores[self._surface.parts :].reshape(-1)[:] = w[self._own :]

    def infer(self, point: Point, executor: Executor) -> None:
        """From the scores alone."""
        self._surface.settle(point)

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        return self._surface.slopes(line)

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        """One product of all features with the coefficients of the parts."""
        coef, _ = self._surface.coefficients(point)
        own = self._products.gradient(coef[: self._surface.parts])
        return np.concatenate([own.reshape(-1), coef[self._surface.parts :].reshape(-1)])

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """None: answers are not kept."""
        return None

    def state(self) -> dict[str, Any]:
        """Nothing: the answers depend on w alone."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to do."""
