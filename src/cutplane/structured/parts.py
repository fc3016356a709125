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

There are two forms: chains, whose parts are the tokens and whose plain numbers are the transitions
and their like, in the order in which a chain of no features has them; and users' problems.
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
    largest : float
        The largest |coefficients of a part| of any cut.

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
    """All examples of a problem in its kernel form: their risk, and that of some of them.

    Attributes
    ----------
    count, parts, units : int
        Numbers of examples, of parts of all of them, and of units of plain numbers.
    shape : tuple of int
        Of the coefficients of a vector.

    Parameters
    ----------
    starts : ndarray of int64, shape (examples + 1,)
        Where the parts of each example begin.
    outputs : int
        K.
    plain : int
        Plain numbers.
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

        The latter with slack rescaling times the loss; √k(u, u) is at most the radius.
        """


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
        viterbi.emission_coefficients(chains.truth, chains.weight, point.coef, coef[: self.parts])
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
        """Of a sequence as long as the longest one, with all labels wrong."""
        length = int(np.max(np.diff(self.starts)))
        shape = self.chains.shape
        # Counts of both labellings are no longer than their sums, and their product is ≥ 0.
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
        What ``PartAnswers.largest`` was at most so far.

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
        """From the largest numbers so far: more is not known of a user's problem."""
        loss, _, parts, plain = self.largest.tolist()
        return loss, parts * radius + plain


class ProblemScoreRisk(PartsScoreRisk):
    """The risk of some examples, or all, over the scores of their parts and the plain weights.

    A point's ``coef`` is the plane that touches the risk there: the coefficients of parts of the
    most violated outputs minus those of the truth, divided by the number of examples; the truth is
    taken where inference gives less.

    Parameters
    ----------
    model : KernelProblem
        All examples.
    inference : Inference
        Of those that count.
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
        # Until there are cuts: a part that is wrong counts as that of the truth and of another.
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
        """As if coefficients of any output were as large as those of the truth and the found one.

        More is not known of a user's problem.
        """
        if not np.any(point.scores):  # losses alone are exact
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
