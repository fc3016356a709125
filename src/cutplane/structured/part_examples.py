"""All training examples of a user's problem in its kernel form, and the risk over their scores.

The loss of example i at its most violated output z is

    Δ(y_i, z) + Σ_p <a_p(x_i, z) − a_p(x_i, y_i), scores of part p> + <v, plain difference>,

with slack rescaling the differences times Δ; and 0 for the truth, which is taken where inference
gives less. The coefficients of the parts, divided by the number of examples, are the plane.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..exec import Executor
from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as ROUNDING_UNIT
from ..oracles import Line, Point
from . import rows
from .examples import AUDITED
from .inference import Inference, bounds, runs_in_threads
from .part_scores import PartScores, coefficients_of, plain_of
from .parts import PartsModel, PartsSurface, Reach, parts_at
from .problem import RESCALINGS, ROUNDING, SLACK, call, losses_of, take


@dataclass(frozen=True)
class PartAnswers:
    """Outputs of the examples of a chunk: what they add to a plane, not yet divided.

    Attributes
    ----------
    coef : ndarray, shape (parts, K)
    plain : ndarray, shape (dimension of the plain features,)
    offset : float
        Sum of the losses.
    values : ndarray, shape (examples,)
        What the risk is the mean of.
    below : int or None
        An example for which inference gave less than the truth has.
    largest : ndarray, shape (4,)
        Of these examples: the largest loss, |coefficients of a part|, sum of the latter over the
        parts of an example, and |difference of plain features|.
    """

    coef: np.ndarray
    plain: np.ndarray
    offset: float
    values: np.ndarray
    below: int | None
    largest: np.ndarray


class PartChunk:
    """Some examples, and the inference for them. Sent to other processes as it is.

    Parameters
    ----------
    problem : Problem
    X, Y : lists
    first : int or Numbers
        Number of the first example, or those of all.
    counts : ndarray
        Parts of each example.
    truth : ndarray, shape (parts, K)
        Coefficients of the true outputs.
    plain_truth : matrix
        Their plain features.
    rescaling : str
    """

    def __init__(
        self,
        problem: Any,
        X: Sequence[Any],
        Y: Sequence[Any],
        first: rows.First,
        counts: np.ndarray,
        truth: np.ndarray,
        plain_truth: rows.Rows,
        rescaling: str,
    ) -> None:
        self.problem = problem
        self.X, self.Y = X, Y
        self.first = first
        self.counts = counts
        self.truth, self.plain_truth = truth, plain_truth
        self.rescaling = rescaling

    def scores(self, table: np.ndarray, w: np.ndarray) -> PartScores:
        """What inference gets."""
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        return PartScores(self.problem, self.X, table, starts, w)

    def answer(self, table: np.ndarray, w: np.ndarray) -> PartAnswers:
        """The most violated outputs at these scores of parts and plain weights."""
        scores, name = self.scores(table, w), RESCALINGS[self.rescaling]
        return self.answers_of(
            call(self.problem, name, self.first, (self.X, self.Y, scores)), scores
        )

    def prediction(self, table: np.ndarray, w: np.ndarray) -> PartAnswers:
        """The same for the outputs of highest score."""
        scores = self.scores(table, w)
        return self.answers_of(call(self.problem, "predict", self.first, (self.X, scores)), scores)

    def answers_of(self, outputs: Sequence[Any], scores: PartScores) -> PartAnswers:
        """What these outputs add to a plane."""
        losses = losses_of(self.problem, self.first, self.Y, outputs)
        K, dimension = scores.parts.shape[1], len(scores.w)
        coef = coefficients_of(self.problem, self.first, self.X, outputs, self.counts, K)
        coef = coef - self.truth
        plain = plain_of(self.problem, self.first, self.X, outputs, dimension) - self.plain_truth
        example = np.repeat(np.arange(len(losses)), self.counts)
        if self.rescaling == SLACK:
            coef *= losses[example, None]
            plain = rows.scaled(plain, losses)
        terms = np.einsum("ij,ij->i", coef, scores.parts)
        heights = np.bincount(example, terms, len(losses)) + rows.products(plain, scores.w)
        size = np.bincount(example, np.abs(terms), len(losses)) + np.abs(heights)
        values = losses + heights
        worse = values < 0.0
        below = np.flatnonzero(values < -ROUNDING * (1.0 + losses + size))
        coef[worse[example]] = 0.0
        lengths = rows.sizes(coef)
        largest = (losses, lengths, np.bincount(example, lengths, len(losses)), rows.sizes(plain))
        return PartAnswers(
            coef,
            rows.total(plain, ~worse),
            float(losses[~worse].sum()),
            np.maximum(values, 0.0),
            self.first + int(below[0]) if len(below) else None,
            np.array([np.max(numbers, initial=0.0) for numbers in largest]),
        )


class ChunkGroup:
    """Some examples in chunks.

    Attributes
    ----------
    chunks : list of PartChunk
    inference : Inference
    count, parts : int
        Examples, and their parts.
    slices : list of slice
        Parts of each chunk.
    """

    def __init__(self, chunks: list[PartChunk], threads: bool) -> None:
        self.chunks = chunks
        self.inference = Inference(chunks, threads)
        self.count = sum(len(chunk.counts) for chunk in chunks)
        edges = np.cumsum([0, *(int(chunk.counts.sum()) for chunk in chunks)]).tolist()
        self.parts = edges[-1]
        self.slices = [slice(a, b) for a, b in itertools.pairwise(edges)]


class PartExamples(PartsModel):
    """All examples of a problem in its kernel form.

    Attributes
    ----------
    nonmaximal : int or None
        An example for which inference gave less than an output that was known; None so far.
    largest : ndarray, shape (4,)
        What ``PartAnswers.largest`` was at most so far.

    Parameters
    ----------
    problem : Problem
    X, Y : lists
    counts : ndarray
        Parts of each example.
    outputs : int
        K.
    plain : int
        Dimension of the plain features.
    rescaling : {'margin', 'slack'}
    """

    def __init__(
        self,
        problem: Any,
        X: Sequence[Any],
        Y: Sequence[Any],
        counts: np.ndarray,
        outputs: int,
        plain: int,
        rescaling: str,
    ) -> None:
        self.problem = problem
        self.plain = plain
        self.outputs = outputs
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.nonmaximal: int | None = None
        self.largest = np.zeros(4)
        self._X, self._Y, self._counts = X, Y, counts
        self._rescaling = rescaling
        self._threads = runs_in_threads(problem, rescaling)

    @cached_property
    def whole(self) -> ChunkGroup:
        """All examples."""
        edges = bounds(self.problem, self.count, self._rescaling)
        return ChunkGroup(
            [self._chunk(self._X[a:b], self._Y[a:b], a, self._counts[a:b]) for a, b in edges],
            self._threads,
        )

    @property
    def inference(self) -> Inference:
        """Of all examples."""
        return self.whole.inference

    def _chunk(
        self, X: Sequence[Any], Y: Sequence[Any], first: rows.First, counts: np.ndarray
    ) -> PartChunk:
        truth = coefficients_of(self.problem, first, X, Y, counts, self.outputs)
        plain_truth = plain_of(self.problem, first, X, Y, self.plain)
        return PartChunk(self.problem, X, Y, first, counts, truth, plain_truth, self._rescaling)

    def _chunk_of(self, which: np.ndarray) -> PartChunk:
        """Some examples."""
        at = which.tolist()
        lists = take(self._X, at), take(self._Y, at)
        return self._chunk(*lists, rows.Numbers(which), self._counts[which])

    def surface(self, executor: Executor) -> ProblemSurface:
        return ProblemSurface(self, self.whole, executor)

    def some(self, which: np.ndarray, executor: Executor) -> ProblemSurface:
        edges = bounds(self.problem, len(which), self._rescaling)
        chunks = [self._chunk_of(which[a:b]) for a, b in edges]
        return ProblemSurface(self, ChunkGroup(chunks, self._threads), executor)

    def reach(self, radius: float) -> Reach:
        """From the largest numbers so far: more is not known of a user's problem."""
        loss, _, parts, plain = self.largest.tolist()
        return Reach(loss, parts * radius + plain)

    def note(self, example: int | None) -> None:
        """An example for which inference was caught, if none was known."""
        if self.nonmaximal is None:
            self.nonmaximal = example

    def audit(self, scores: Callable[[np.ndarray], np.ndarray], w: np.ndarray) -> None:
        """Hold predictions for some examples against the inference there.

        Parameters
        ----------
        scores : callable
            Gives the scores of some of the parts.
        w : ndarray
            Plain weights.
        """
        if self.nonmaximal is not None:
            return
        which = np.arange(0, self.count, -(-self.count // AUDITED))
        some = self._chunk_of(which)
        table = scores(parts_at(self.starts, which))
        found, guess = some.answer(table, w), some.prediction(table, w)
        below = found.values < guess.values * (1.0 - ROUNDING) - ROUNDING
        if below.any():
            self.note(int(which[np.argmax(below)]))


class ProblemSurface(PartsSurface):
    """The risk of some examples, or all, over the scores of their parts and the plain weights.

    A point's ``coef`` is the plane that touches the risk there.

    Parameters
    ----------
    model : PartExamples
        All examples.
    group : ChunkGroup
        Those that count.
    executor : Executor
    """

    def __init__(self, model: PartExamples, group: ChunkGroup, executor: Executor) -> None:
        super().__init__(group.parts, model.outputs, model.plain, executor, model.outputs)
        self.model = model
        self.group = group
        size = max(float(np.max(rows.sizes(c.truth), initial=0.0)) for c in group.chunks)
        # Until there are cuts: a part that is wrong counts as that of the truth and of another.
        self._largest = float(np.sqrt(2.0)) * size / group.count

    @property
    def largest(self) -> float:
        return self._largest

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(self.shape), coef=np.zeros(self.shape))

    def settle(self, point: Point) -> None:
        w = self.plain_of(point.scores).copy()
        group, model = self.group, self.model
        arguments = [(point.scores[part], w) for part in group.slices]
        answers = group.inference.call_each("answer", arguments, self.executor)
        plain, offset, risk = np.zeros(self.plain), 0.0, 0.0
        for part, answer in zip(group.slices, answers, strict=True):
            point.coef[part] = answer.coef
            plain += answer.plain
            offset += answer.offset
            risk += float(answer.values.sum())
            model.note(answer.below)
            model.largest = np.maximum(model.largest, answer.largest)
        self.plain_of(point.coef)[:] = plain
        point.coef /= group.count
        point.offset, point.risk = offset / group.count, risk / group.count
        self._largest = max(self._largest, float(model.largest[1]) / group.count)

    def upper(self, point: Point, low: None, errors: np.ndarray) -> float:
        """As if coefficients of any output were as large as those of the truth and the found one.

        More is not known of a user's problem.
        """
        if not np.any(point.scores):  # losses alone are exact
            return super().upper(point, low, errors)
        group, model = self.group, self.model
        largest = max(1.0, float(model.largest[0]))
        w, plain = np.abs(self.plain_of(point.scores)), np.abs(self.plain_of(point.coef))
        terms = max(int(np.max(c.counts, initial=0)) for c in group.chunks) * model.outputs
        unit = ROUNDING_UNIT * (terms + self.plain + 16.0)
        total = unit * group.count * (largest + float(plain @ w))
        for part, chunk in zip(group.slices, group.chunks, strict=True):
            reach = 2.0 * np.abs(chunk.truth).sum(axis=1)
            reach += group.count * np.abs(point.coef[part]).sum(axis=1)
            off = errors[part] + unit * np.abs(point.scores[part])
            total += largest * float(reach @ off.max(axis=1, initial=0.0))
            total += 2.0 * largest * unit * float(rows.products(abs(chunk.plain_truth), w).sum())
        above = 1.0 + (MANY + group.count) * ROUNDING_UNIT
        return (point.risk + total / group.count) * above

    def slopes(self, line: Line) -> Callable[[Point], float]:
        way = line.end.scores - line.start.scores
        return lambda point: float(np.einsum("ij,ij->", point.coef, way))
