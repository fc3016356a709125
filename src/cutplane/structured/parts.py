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

For that the kernel matrix gets units, too:

    k(part, part) as given,    k(unit, part) = 0,    k(unit, unit) = 1 with itself, else 0

A sampled cut (Yu & Joachims 2008, Algorithm 3) has r of the parts with a coefficient. Units cost
no kernel value, so they are those of all examples in every cut. In the constant-time method
(Algorithm 2) a cut has all parts and units of r examples, and nothing of the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exec import Executor
from ..kernels import KernelMatrix
from ..objective import Cut, Line, Point
from ..objective.constant import MatrixSample
from ..objective.linear import Products
from ..objective.score_risk import PlaneScoreRisk
from .examples import parts_at


class WithUnits(KernelMatrix):
    """A kernel's values of parts, and of units below them, which cost no kernel value.

    Parameters
    ----------
    matrix : KernelMatrix
        Of all parts.
    units : int
    """

    def __init__(self, matrix: KernelMatrix, units: int) -> None:
        self._whole = self._matrix = matrix
        self._parts = matrix.columns
        self._units = units
        self._columns = np.arange(self._parts + units)
        self._own = self._columns < self._parts
        self.dtype = matrix.dtype
        self.columns = len(self._columns)

    @property
    def diagonal(self) -> np.ndarray:  # type: ignore[override]
        """k with itself of every part, then of every unit."""
        return np.concatenate([self._whole.diagonal, np.ones(self._units)])

    @property
    def amplification(self) -> float:  # type: ignore[override]
        """That of the parts."""
        return self._whole.amplification

    def values_of(self, which: np.ndarray) -> int:
        if self._whole.values is not None:  # those of a stored matrix are counted once
            return 0
        return int(np.count_nonzero(which < self._parts)) * self._matrix.columns

    def restricted(self, columns: np.ndarray) -> WithUnits:
        other = WithUnits(self._whole, self._units)
        other._columns = self._columns[columns]
        other._own = other._columns < self._parts
        other._matrix = self._whole.restricted(other._columns[other._own])
        other.columns = len(columns)
        return other

    def fill(self, which: np.ndarray, slots: np.ndarray, out: np.ndarray) -> None:
        out[slots, : self.columns] = self.combine(which, np.eye(len(which))).T

    def combine(
        self, which: np.ndarray, coef: np.ndarray, columns: np.ndarray | None = None
    ) -> np.ndarray:
        if columns is not None:
            return self.restricted(columns).combine(which, coef)
        own = which < self._parts
        out = np.zeros((self.columns, *coef.shape[1:]))
        out[self._own] = self._matrix.combine(which[own], coef[own])
        units = np.zeros((self._units, *coef.shape[1:]))
        np.add.at(units, which[~own] - self._parts, coef[~own])
        out[~self._own] = units[self._columns[~self._own] - self._parts]
        return out


class PartsScoreRisk(PlaneScoreRisk):
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
        return plain_numbers(rows, self.parts, self.plain)


def plain_numbers(rows: np.ndarray, parts: int, plain: int) -> np.ndarray:
    """The plain numbers below so many parts, as a view."""
    return rows[parts:].reshape(-1)[:plain]


@dataclass(frozen=True)
class Reach:
    """How much an example can matter.

    Attributes
    ----------
    loss : float
        The largest loss of an output.
    radius : float
        The largest |Ψ(x, z) − Ψ(x, y)|; with slack rescaling times the loss.
    """

    loss: float
    radius: float


class PartsModel(ABC):
    """All examples of a problem in its kernel form: their risk, and that of some of them.

    Attributes
    ----------
    starts : ndarray of int64, shape (examples + 1,)
        Where the parts of each example begin.
    outputs : int
        K.
    plain : int
        Plain numbers.
    """

    starts: np.ndarray
    outputs: int
    plain: int

    @property
    def count(self) -> int:
        """Number of examples."""
        return len(self.starts) - 1

    @property
    def parts(self) -> int:
        """Parts of all examples."""
        return int(self.starts[-1])

    @property
    def units(self) -> int:
        """Units of plain numbers."""
        return -(-self.plain // self.outputs)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the coefficients of a vector."""
        return (self.parts + self.units, self.outputs)

    def plain_of(self, rows: np.ndarray) -> np.ndarray:
        """The plain numbers of coefficients, as a view."""
        return plain_numbers(rows, self.parts, self.plain)

    @abstractmethod
    def score_risk(self, executor: Executor) -> PartsScoreRisk:
        """The mean risk of all examples."""

    @abstractmethod
    def some(self, which: np.ndarray, executor: Executor) -> PartsScoreRisk:
        """The mean risk of some examples, over the scores of their parts."""

    @abstractmethod
    def reach(self, radius: float) -> Reach:
        """How much an example can matter, if √k(u, u) is at most the radius for every part."""


class PartsPopulation:
    """Examples with parts, that samples are drawn from.

    Attributes
    ----------
    examples : ndarray
        All of them.
    values : KernelMatrix
        Of all parts and units.

    Parameters
    ----------
    matrix : KernelMatrix
        Of all parts.
    model : PartsModel
    executor : Executor
    """

    def __init__(self, matrix: KernelMatrix, model: PartsModel, executor: Executor) -> None:
        self.values = WithUnits(matrix, model.units)
        self.examples = np.arange(model.count)
        self._model = model
        self._executor = executor

    def sample(self, which: np.ndarray) -> MatrixSample:
        """These examples: their parts, and all units."""
        model = self._model
        units = model.parts + np.arange(model.units)
        rows = np.concatenate([parts_at(model.starts, which), units])
        return MatrixSample(self.values, rows, model.some(which, self._executor))


class FeatureModel:
    """The same risk over explicit features of the parts; a ``JointModel``.

    w holds the weights of the features, (features, K), then the units.

    Parameters
    ----------
    products : Products
        With the features of all parts.
    features : int
    score_risk : PartsScoreRisk
    count : int
        Number of examples.
    """

    def __init__(
        self, products: Products, features: int, score_risk: PartsScoreRisk, count: int
    ) -> None:
        self.count = count
        self._products = products
        self._score_risk = score_risk
        rows, outputs = score_risk.shape[0], score_risk.shape[-1]
        self._shape = (features, outputs)
        self._own = features * outputs
        self.dimension = self._own + (rows - score_risk.parts) * outputs

    def digest(self) -> bytes:
        """Nothing: no state of it is ever kept."""
        return b""

    def new_point(self, w: np.ndarray) -> Point:
        return self._score_risk.new_point(w)

    def score(self, w: np.ndarray, scores: np.ndarray, executor: Executor) -> None:
        """One product of all features with their weights."""
        weights = np.ascontiguousarray(w[: self._own].reshape(self._shape))
        self._products.scores(weights, scores[: self._score_risk.parts])
        scores[self._score_risk.parts :].reshape(-1)[:] = w[self._own :]

    def infer(self, point: Point, executor: Executor) -> None:
        """From the scores alone."""
        self._score_risk.evaluate(point)

    def upper(self, point: Point, executor: Executor) -> float:
        """One more product of all features with their weights, for the errors of the scores."""
        weights = np.ascontiguousarray(point.w[: self._own].reshape(self._shape))
        scores, errors = np.zeros((2, *self._score_risk.shape))
        self._products.bounded(
            weights, scores[: self._score_risk.parts], errors[: self._score_risk.parts]
        )
        return self._score_risk.upper(point, None, errors)

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        return self._score_risk.slopes(line)

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        """One product of all features with the coefficients of the parts."""
        coef, _ = self._score_risk.coefficients(point)
        own = self._products.gradient(coef[: self._score_risk.parts])
        return np.concatenate([own.reshape(-1), coef[self._score_risk.parts :].reshape(-1)])

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """None: answers are not kept."""
        return None

    def state(self) -> dict[str, Any]:
        """Nothing: the answers depend on w alone."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to do."""
