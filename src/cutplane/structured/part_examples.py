"""All training examples of a user's problem in its kernel form, and the risk over their scores.

The loss of example i at its most violated output z is

    Δ(y_i, z) + Σ_p <a_p(x_i, z) − a_p(x_i, y_i), scores of part p> + <v, plain difference>,

with slack rescaling the differences times Δ; and 0 for the truth, which is taken where inference
gives less. The coefficients of the parts, divided by the number of examples, are the plane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exec import Executor
from ..oracles import Line, Point
from . import rows
from .examples import AUDITED
from .inference import Inference, bounds, runs_in_threads
from .part_scores import PartScores, coefficients_of, plain_of
from .parts import PartsSurface
from .problem import RESCALINGS, ROUNDING, SLACK, call, count_of, losses_of, take


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
    """

    coef: np.ndarray
    plain: np.ndarray
    offset: float
    values: np.ndarray
    below: int | None


class PartChunk:
    """Some examples, and the inference for them. Sent to other processes as it is.

    Parameters
    ----------
    problem : Problem
    X, Y : lists
    first : int
        Number of the first example.
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
        first: int,
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
        return PartAnswers(
            coef,
            rows.total(plain, ~worse),
            float(losses[~worse].sum()),
            np.maximum(values, 0.0),
            self.first + int(below[0]) if len(below) else None,
        )


class PartExamples:
    """All examples of a problem in its kernel form.

    Attributes
    ----------
    nonmaximal : int or None
        An example for which inference gave less than an output that was known; None so far.

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
        self.examples = count_of(X)
        self.outputs = outputs
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.nonmaximal: int | None = None
        self.chunks = []
        self._edges = bounds(problem, self.examples, rescaling)
        for a, b in self._edges:
            some = X[a:b], Y[a:b]
            truth = coefficients_of(problem, a, *some, counts[a:b], outputs)
            plain_truth = plain_of(problem, a, *some, plain)
            self.chunks.append(
                PartChunk(problem, *some, a, counts[a:b], truth, plain_truth, rescaling)
            )
        self.inference = Inference(self.chunks, runs_in_threads(problem, rescaling))

    @property
    def parts(self) -> int:
        """Parts of all examples."""
        return int(self.starts[-1])

    def slices(self) -> list[slice]:
        """Parts of each chunk."""
        return [slice(int(self.starts[a]), int(self.starts[b])) for a, b in self._edges]

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
        stride = -(-self.examples // AUDITED)
        for chunk in self.chunks:
            at = [i for i in range(count_of(chunk.X)) if (chunk.first + i) % stride == 0]
            if not at or self.nonmaximal is not None:
                continue
            local = np.concatenate([[0], np.cumsum(chunk.counts)])
            which = np.concatenate([np.arange(local[i], local[i + 1]) for i in at])
            some = PartChunk(
                chunk.problem,
                take(chunk.X, at),
                take(chunk.Y, at),
                chunk.first,
                chunk.counts[at],
                chunk.truth[which],
                chunk.plain_truth[at],
                chunk.rescaling,
            )
            table = scores(int(self.starts[chunk.first]) + which)
            found, guess = some.answer(table, w), some.prediction(table, w)
            below = found.values < guess.values * (1.0 - ROUNDING) - ROUNDING
            if below.any():
                self.note(chunk.first + at[int(np.argmax(below))])


class ProblemSurface(PartsSurface):
    """The risk of a problem over the scores of all parts and the plain weights.

    A point's ``coef`` is the plane that touches the risk there.

    Parameters
    ----------
    model : PartExamples
    executor : Executor
    """

    def __init__(self, model: PartExamples, executor: Executor) -> None:
        super().__init__(model.parts, model.outputs, model.plain, executor, model.outputs)
        self.model = model
        self._slices = model.slices()
        size = max(float(np.max(np.sum(c.truth**2, axis=1), initial=0.0)) for c in model.chunks)
        # Until there are cuts: a part that is wrong counts as that of the truth and of another.
        self._largest = float(np.sqrt(2.0 * size)) / model.examples

    @property
    def largest(self) -> float:
        return self._largest

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(self.shape), coef=np.zeros(self.shape))

    def settle(self, point: Point) -> None:
        w = self.plain_of(point.scores).copy()
        arguments = [(point.scores[part], w) for part in self._slices]
        answers = self.model.inference.call_each("answer", arguments, self.executor)
        plain, offset, risk = np.zeros(self.plain), 0.0, 0.0
        for part, answer in zip(self._slices, answers, strict=True):
            point.coef[part] = answer.coef
            plain += answer.plain
            offset += answer.offset
            risk += float(answer.values.sum())
            self.model.note(answer.below)
        count = self.model.examples
        self.plain_of(point.coef)[:] = plain
        point.coef /= count
        point.offset, point.risk = offset / count, risk / count
        sizes = np.einsum("ij,ij->i", point.coef[: self.parts], point.coef[: self.parts])
        self._largest = max(self._largest, float(np.sqrt(np.max(sizes, initial=0.0))))

    def slopes(self, line: Line) -> Callable[[Point], float]:
        way = line.end.scores - line.start.scores
        return lambda point: float(np.einsum("ij,ij->", point.coef, way))
