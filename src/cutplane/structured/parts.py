"""Outputs scored by functions of *parts* of the input in a kernel's feature space.

    score(x, z) = Σ_p Σ_k a_pk(x, z)·f_k(u_p(x)) + <v, plain(x, z)>,
    f_k(u) = Σ_s coef[s, k]·k(u_s, u)

The parts u_p of an input may be the tokens of a sequence, the edges of a graph, or the input itself
as a single vector. All outputs have the same parts; an output determines the coefficients a, K per
part. The sum in f is over the parts s of all training examples. Plain terms are linear, without a
kernel.

A vector (a cut or a point) is stored as a matrix with K columns. It has a row of coefficients per
part. Below these rows are the plain numbers v, K per row, with zeros at the end of the last row.
Such a row is called a *unit*. The scores of a vector have the same shape: f of all parts, and below
them the plain numbers again. So inner products are sums of coefficients times scores, as for
kernels in classification. The span of the cuts, the table of scores and the sampling are the same
as there; only the sum of losses over rows is replaced by inference.

For this the kernel matrix gets rows for the units, too:

    k(part, part) as given,    k(unit, part) = 0,    k(unit, unit) = 1 with itself, else 0

A sampled cut (Yu & Joachims 2008, Algorithm 3) has a coefficient for r of the parts. Units cost no
kernel value, so every cut has the units of all examples. In the constant-time method (Algorithm 2)
a cut has all parts and units of r examples, and nothing of the others.

There are two forms: chains and users' problems. The parts of a chain are its tokens. Its plain
numbers are the transitions and the other weights, in the order of a chain without features.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..exec import Executor
from ..kernels import KernelMatrix
from ..loops import viterbi
from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as UNIT
from ..objective import Line, Point
from ..objective.constant import MatrixSample
from ..objective.score_risk import PlaneScoreRisk
from .chain import ChainShape, ChainWeights, LabelledChains, upper
from .examples import Chunk, Examples, Inference, parts_at


class WithUnits(KernelMatrix):
    """The kernel matrix of the parts, extended by units, which cost no kernel value.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix of all parts.
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
        """k(u, u) of every part, then of every unit."""
        return np.concatenate([self._whole.diagonal, np.ones(self._units)])

    @property
    def amplification(self) -> float:  # type: ignore[override]
        """The amplification of the parts' matrix; see ``KernelMatrix``."""
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
        Number of parts of all examples.
    plain : int
        Number of plain numbers.
    largest : float
        The largest |coefficients of a part| of any cut.

    Parameters
    ----------
    parts, plain
        See the attributes.
    outputs : int
        K.
    executor : Executor
    work : float
        Cost of a score in a pass, in units of a comparison and a few additions.
    """

    largest: float

    def __init__(
        self, parts: int, outputs: int, plain: int, executor: Executor, work: float
    ) -> None:
        self.parts = parts
        self.plain = plain
        super().__init__(parts + -(-plain // outputs), outputs, 1.0, executor, work)

    def plain_of(self, rows: np.ndarray) -> np.ndarray:
        """The plain numbers of scores or coefficients, as a view."""
        return rows[self.parts :].reshape(-1)[: self.plain]


class PartsModel(ABC):
    """All examples of a problem in its kernel form: the risk of all or of some of them.

    Attributes
    ----------
    count, parts, units : int
        Numbers of examples, of parts of all of them, and of units of plain numbers.
    shape : tuple of int
        Shape of the coefficients of a vector.

    Parameters
    ----------
    starts : ndarray of int64, shape (examples + 1,)
        Where the parts of each example begin.
    outputs : int
        K.
    plain : int
        Number of plain numbers.
    """

    def __init__(self, starts: np.ndarray, outputs: int, plain: int) -> None:
        self.starts, self.outputs, self.plain = starts, outputs, plain
        self.count, self.parts = len(starts) - 1, int(starts[-1])
        self.units = -(-plain // outputs)
        self.shape = (self.parts + self.units, outputs)

    @abstractmethod
    def score_risk(self, executor: Executor) -> PartsScoreRisk:
        """The mean risk of all examples."""

    @abstractmethod
    def some(self, which: np.ndarray, executor: Executor) -> PartsScoreRisk:
        """The mean risk of some examples, over the scores of their parts."""

    @abstractmethod
    def reach(self, radius: float) -> tuple[float, float]:
        """The largest loss of an output, and the largest |Ψ(x, z) − Ψ(x, y)|.

        With slack rescaling the latter is multiplied by the loss. √k(u, u) is at most ``radius``.
        """


class PartsPopulation:
    """The examples with parts from which samples are drawn.

    Attributes
    ----------
    examples : ndarray
        Numbers of all examples.
    values : KernelMatrix
        The kernel matrix of all parts and units.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix of all parts.
    model : PartsModel
    executor : Executor
    """

    def __init__(self, matrix: KernelMatrix, model: PartsModel, executor: Executor) -> None:
        self.values = WithUnits(matrix, model.units)
        self.examples = np.arange(model.count)
        self._model = model
        self._executor = executor

    def sample(self, which: np.ndarray) -> MatrixSample:
        """A sample of these examples, with their parts and all units."""
        model = self._model
        units = model.parts + np.arange(model.units)
        rows = np.concatenate([parts_at(model.starts, which), units])
        return MatrixSample(self.values, rows, model.some(which, self._executor))


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
        # A wrong token counts (weight of its sequence)·(e_z − e_y).
        self.largest = chains.weight * float(np.sqrt(2.0))

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(self.shape), coef=np.zeros(self.parts, dtype=np.int64))

    def weights(self, rows: np.ndarray) -> ChainWeights:
        """The plain numbers of scores or coefficients."""
        return self.explicit.unpack(self.plain_of(rows))

    def evaluate(self, point: Point) -> None:
        weights = self.weights(point.scores)
        parts = self.chains.infer(point.scores, weights, point.coef, self.executor)
        point.risk, point.offset = map(float, np.sum(parts, axis=0))

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
        viterbi.emission_coefficients(chains.truth, chains.weight, point.coef, coef[: self.parts])
        (counts,) = chains.count_sums(point.coef, self.executor)
        coef[self.parts :].reshape(-1)[:] = self.explicit.pack(counts)
        return coef, point.offset


class KernelChains(PartsModel):
    """All labelled chains. Their tokens are the parts.

    Parameters
    ----------
    chains : LabelledChains
    """

    def __init__(self, chains: LabelledChains) -> None:
        plain = replace(chains.shape, features=0).dimension
        super().__init__(chains.starts, chains.shape.labels, plain)
        self.chains = chains

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

    def reach(self, radius: float) -> tuple[float, float]:
        """As for ``PartsModel``: for the longest sequence, with all labels wrong."""
        length = int(np.max(np.diff(self.starts)))
        shape = self.chains.shape
        # A vector of counts is at most as long as the sum of its entries, and the product of the
        # counts of two labellings is ≥ 0.
        sums = [length * radius, max(0, length - 1)]
        sums += [1.0, 1.0] if shape.boundaries else []
        sums += [max(0, length - 2)] if shape.order == 2 else []
        squared = 2.0 * float(np.sum(np.square(sums)))
        loss = float(length if self.chains.loss == "hamming" else 1)
        return loss, float(np.sqrt(squared))


class KernelProblem(PartsModel):
    """All examples of a user's problem in its kernel form.

    Attributes
    ----------
    largest : ndarray, shape (4,)
        The largest values of ``PartAnswers.largest`` so far.

    Parameters
    ----------
    examples : Examples
    """

    def __init__(self, examples: Examples) -> None:
        super().__init__(examples.starts, examples.outputs, examples.plain)
        self.examples = examples
        self.largest = np.zeros(4)

    def score_risk(self, executor: Executor) -> ProblemScoreRisk:
        return ProblemScoreRisk(self, self.examples.inference, executor)

    def some(self, which: np.ndarray, executor: Executor) -> ProblemScoreRisk:
        return ProblemScoreRisk(self, self.examples.inference_of(which), executor)

    def reach(self, radius: float) -> tuple[float, float]:
        """As for ``PartsModel``, from the largest numbers so far: these are all that is known."""
        loss, _, parts, plain = self.largest.tolist()
        return loss, parts * radius + plain


class ProblemScoreRisk(PartsScoreRisk):
    """The risk of some examples, or all, over the scores of their parts and the plain weights.

    A point's ``coef`` is the plane that touches the risk there: the coefficients of the most
    violated outputs minus those of the truth, divided by the number of examples. If inference finds
    an output that is less violated than the truth, the truth is used.

    Parameters
    ----------
    model : KernelProblem
        All examples.
    inference : Inference
        Inference for the examples of this risk.
    executor : Executor
    """

    def __init__(self, model: KernelProblem, inference: Inference, executor: Executor) -> None:
        edges = np.cumsum([0, *(int(c.counts.sum()) for c in inference.chunks)]).tolist()
        super().__init__(edges[-1], model.outputs, model.plain, executor, model.outputs)
        self.model = model
        self.inference = inference
        self.count = sum(map(len, inference.chunks))
        self._parts = [slice(a, b) for a, b in itertools.pairwise(edges)]
        lengths = [np.linalg.norm(c.truth[0], axis=1) for c in inference.chunks]
        size = float(np.max(np.concatenate(lengths), initial=0.0))
        # A first value until there are cuts: a wrong part has the coefficients of the truth and of
        # another output.
        self.largest = float(np.sqrt(2.0)) * size / self.count

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(self.shape), coef=np.zeros(self.shape))

    def evaluate(self, point: Point) -> None:
        w = self.plain_of(point.scores).copy()
        model = self.model
        arguments = [(point.scores[part], w) for part in self._parts]
        answers = self.inference.call_each(Chunk.part_answers, arguments, self.executor)
        plain, offset, risk = np.zeros(self.plain), 0.0, 0.0
        for part, answer in zip(self._parts, answers, strict=True):
            point.coef[part] = answer.coef
            plain += answer.plain
            offset += answer.offset
            risk += float(answer.values.sum())
            model.examples.note(answer.below)
            model.largest = np.maximum(model.largest, answer.largest)
        self.plain_of(point.coef)[:] = plain
        point.coef /= self.count
        point.offset, point.risk = offset / self.count, risk / self.count
        self.largest = max(self.largest, float(model.largest[1]) / self.count)

    def upper(self, point: Point, low: None, errors: np.ndarray) -> float:
        """The risk, rounded up.

        The bound takes the coefficients of the truth and of the found output as the largest of any
        output, because others of a user's problem are not known.
        """
        if not np.any(point.scores):  # all scores are 0, so losses have no rounding errors
            return super().upper(point, low, errors)
        model, chunks = self.model, self.inference.chunks
        largest = max(1.0, float(model.largest[0]))
        w, plain = np.abs(self.plain_of(point.scores)), np.abs(self.plain_of(point.coef))
        terms = max(int(np.max(c.counts, initial=0)) for c in chunks) * model.outputs
        unit = UNIT * (terms + self.plain + 16.0)
        total = unit * self.count * (largest + float(plain @ w))
        for part, chunk in zip(self._parts, chunks, strict=True):
            reach = 2.0 * np.abs(chunk.truth[0]).sum(axis=1)
            reach += self.count * np.abs(point.coef[part]).sum(axis=1)
            off = errors[part] + unit * np.abs(point.scores[part])
            total += largest * float(reach @ off.max(axis=1, initial=0.0))
            total += 2.0 * largest * unit * float(np.sum(abs(chunk.truth[1]) @ w))
        above = 1.0 + (MANY + self.count) * UNIT
        return (point.risk + total / self.count) * above

    def slopes(self, line: Line) -> Callable[[Point], float]:
        way = line.end.scores - line.start.scores
        return lambda point: float(np.einsum("ij,ij->", point.coef, way))
