"""A user's problem whose functions of parts lie in a kernel's feature space.

A point's plane is made of the coefficients of the parts of the most violated outputs minus those of
the truth, divided by the number of examples; the truth is taken where inference gives less.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from ..exec import Executor
from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as UNIT
from ..objective import Line, Point
from . import rows
from .examples import Examples, Inference
from .parts import PartsModel, PartsScoreRisk, Reach


class KernelProblem(PartsModel):
    """All examples of a problem in its kernel form.

    Attributes
    ----------
    largest : ndarray, shape (4,)
        What ``PartAnswers.largest`` was at most so far.

    Parameters
    ----------
    examples : Examples
    """

    def __init__(self, examples: Examples) -> None:
        self.examples = examples
        self.plain = examples.plain
        self.outputs = examples.outputs
        self.starts = examples.starts
        self.largest = np.zeros(4)

    def score_risk(self, executor: Executor) -> ProblemScoreRisk:
        return ProblemScoreRisk(self, self.examples.inference, executor)

    def some(self, which: np.ndarray, executor: Executor) -> ProblemScoreRisk:
        return ProblemScoreRisk(self, self.examples.inference_of(which), executor)

    def reach(self, radius: float) -> Reach:
        """From the largest numbers so far: more is not known of a user's problem."""
        loss, _, parts, plain = self.largest.tolist()
        return Reach(loss, parts * radius + plain)


class ProblemScoreRisk(PartsScoreRisk):
    """The risk of some examples, or all, over the scores of their parts and the plain weights.

    A point's ``coef`` is the plane that touches the risk there.

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
        size = max(float(np.max(rows.sizes(c.truth[0]), initial=0.0)) for c in inference.chunks)
        # Until there are cuts: a part that is wrong counts as that of the truth and of another.
        self._largest = float(np.sqrt(2.0)) * size / self.count

    @property
    def largest(self) -> float:
        return self._largest

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(self.shape), coef=np.zeros(self.shape))

    def evaluate(self, point: Point) -> None:
        w = self.plain_of(point.scores).copy()
        model = self.model
        arguments = [(point.scores[part], w) for part in self._parts]
        answers = self.inference.call_each("part_answers", arguments, self.executor)
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
        self._largest = max(self._largest, float(model.largest[1]) / self.count)

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
            total += 2.0 * largest * unit * float(rows.products(abs(chunk.truth[1]), w).sum())
        above = 1.0 + (MANY + self.count) * UNIT
        return (point.risk + total / self.count) * above

    def slopes(self, line: Line) -> Callable[[Point], float]:
        way = line.end.scores - line.start.scores
        return lambda point: float(np.einsum("ij,ij->", point.coef, way))
