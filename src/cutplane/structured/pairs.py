"""The risk of outputs that are scored by a kernel between pairs of input and output, and its cuts.

A cut is an expansion over pairs of a training input with an output of it,

    (1/N) Σ_i [φ(x_i, z_i) − φ(x_i, y_i)]      with slack rescaling each term times Δ(y_i, z_i),

z_i the most violated output. A sampled cut has r of the examples whose output is not the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..exec import Executor, SerialExecutor
from ..oracles import Cut, Line, Point
from ..oracles.sampled import MOST_SAMPLES, Level, WholeOracle
from ..oracles.span import Expansion
from ..oracles.structured import JointSurface
from .pair_kernel import KnownPairs, PairScores
from .problem import RESCALINGS, ROUNDING, SLACK, call, count_of, losses_of


class PairExamples:
    """All examples of a problem with a kernel between pairs, and the inference for them.

    A point's ``coef`` has the number of the most violated pair of every example, that of the
    truth where nothing is violated.

    Attributes
    ----------
    pairs : KnownPairs
    nonmaximal : int or None
        An example for which inference gave less than an output that was known; None so far.
    coefficients : callable
        Gives the coefficients of the basis from the w of a point.
    """

    rows = 0
    outputs: int | None = None

    def __init__(self, problem: Any, X: Sequence[Any], Y: Sequence[Any], rescaling: str) -> None:
        self.problem = problem
        self.X, self.Y = X, Y
        self.examples = count_of(X)
        self.rescaling = rescaling
        self.pairs = KnownPairs(problem, X, Y)
        self.nonmaximal: int | None = None
        self.coefficients: Callable[[np.ndarray], np.ndarray] = lambda w: np.zeros(0)
        self._losses: dict[int, float] = dict.fromkeys(range(self.examples), 0.0)

    def losses(self, numbers: np.ndarray) -> np.ndarray:
        """Of pairs that were found."""
        return np.array([self._losses[k] for k in numbers.tolist()])

    def factors(self, losses: np.ndarray) -> np.ndarray:
        """What differences of scores are multiplied with."""
        return losses if self.rescaling == SLACK else np.ones(len(losses))

    def scores(self, coef: np.ndarray) -> PairScores:
        """What inference gets."""

        def of(i: int, outputs: Sequence[Any]) -> np.ndarray:
            numbers = np.array([self.pairs.number(i, z) for z in outputs], dtype=np.int64)
            return self.heights(numbers, coef)

        return PairScores(self.examples, of)

    def heights(self, numbers: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Scores of pairs; the coefficients may be of a smaller basis."""
        return self.pairs.values(numbers)[:, : len(coef)] @ coef

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(0), coef=np.arange(self.examples))

    def infer(self, point: Point, executor: Executor) -> None:
        """A pass of inference."""
        coef = self.coefficients(point.w)
        self._settle(point, self._found(RESCALINGS[self.rescaling], coef), coef)

    def _found(self, name: str, coef: np.ndarray) -> np.ndarray:
        """Numbers of the pairs that inference finds; their losses are noted."""
        lists = (self.X, self.Y) if name != "predict" else (self.X,)
        outputs = call(self.problem, name, 0, (*lists, self.scores(coef)))
        losses = losses_of(self.problem, 0, self.Y, outputs)
        numbers = np.array([self.pairs.number(i, outputs[i]) for i in range(self.examples)])
        self._losses.update(zip(numbers.tolist(), losses.tolist(), strict=True))
        return numbers

    def _values(self, numbers: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Loss of every example with these outputs."""
        losses = self.losses(numbers)
        apart = self.heights(numbers, coef) - self.heights(np.arange(self.examples), coef)
        return losses + self.factors(losses) * apart

    def _settle(self, point: Point, numbers: np.ndarray, coef: np.ndarray) -> None:
        values = self._values(numbers, coef)
        self._note(values < -self._slack(numbers, coef))
        point.coef[...] = np.where(values < 0.0, np.arange(self.examples), numbers)
        point.risk = float(np.mean(np.maximum(values, 0.0)))
        point.offset = float(np.mean(self.losses(point.coef)))

    def _slack(self, numbers: np.ndarray, coef: np.ndarray) -> np.ndarray:
        sizes = np.abs(self.heights(numbers, coef)) + self.losses(numbers)
        return ROUNDING * (1.0 + sizes + np.abs(self.heights(np.arange(self.examples), coef)))

    def _note(self, below: np.ndarray) -> None:
        if below.any() and self.nonmaximal is None:
            self.nonmaximal = int(np.argmax(below))

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        """Derivatives along a line."""
        way = self.coefficients(line.end.w) - self.coefficients(line.start.w)
        truth = self.heights(np.arange(self.examples), way)

        def slope(point: Point) -> float:
            factors = self.factors(self.losses(point.coef))
            return float(np.mean(factors * (self.heights(point.coef, way) - truth)))

        return slope

    def audit(self, coef: np.ndarray) -> None:
        """Hold predictions against the inference."""
        found, guess = (self._found(name, coef) for name in (RESCALINGS[self.rescaling], "predict"))
        least = np.maximum(self._values(guess, coef), 0.0) - self._slack(guess, coef)
        self._note(self._values(found, coef) < least)


class PairOracle(WholeOracle):
    """Cuts of all examples whose output is not the truth, or of a sample of them.

    Parameters
    ----------
    model : PairExamples
    rng, size, centred
        As for the oracle of any surface.
    """

    idle_vectors = 64
    definite = False  # as far as anybody knows

    def __init__(
        self, model: PairExamples, rng: np.random.Generator, *, size: int | None, centred: bool
    ) -> None:
        executor = SerialExecutor()  # the user's functions are called from one thread
        surface = JointSurface(model, executor)
        super().__init__(
            model.pairs, surface, executor, rng, size=size, most=model.examples, centred=centred
        )
        self.model = model
        self.pairs = model.pairs
        model.coefficients = self.coefficients

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Coefficients of the basis."""
        expansion = self.span.expand(w)
        out = np.zeros(self.pairs.columns)
        out[expansion.rows] = expansion.coef
        return out

    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w: a pass of inference."""
        into.w = w
        self.surface.settle(into)

    def cut(
        self, start: Point, end: Point | None = None, k: float = 0.0, level: Level | None = None
    ) -> Cut:
        """The cut at start, or at start + k(end − start)."""
        point = start if end is None else self.surface.between(start, end, k)
        model, count = self.model, self.model.examples
        factors = model.factors(model.losses(point.coef)) / count
        wrong = np.flatnonzero((point.coef != np.arange(count)) & (factors != 0.0))
        if len(wrong) == 0:
            return Cut(np.zeros(self.dimension), 0.0)
        found = point.coef[wrong]
        coef = self.coefficients(point.w)
        apart = model.heights(found, coef) - model.heights(wrong, coef)
        terms = dict(zip(wrong.tolist(), (factors[wrong] * apart).tolist(), strict=True))
        drawn, scale = self._sample(wrong, terms, point.offset, level)
        whole = self._products(
            factors[wrong] @ (self.pairs.values(found) - self.pairs.values(wrong))
        )
        within, rank = self.span.projected(whole), self.span.rank
        a = self._add(drawn, point.coef[drawn], scale * factors[drawn])
        if self._centred and len(drawn) < len(wrong):
            a[:rank] = within[:rank]
            lost = sum(terms.values()) - scale * sum(terms[i] for i in drawn.tolist())
            self._offsets[len(self.span) - 1] = point.offset + lost
        return Cut(a, point.offset)

    def _sample(
        self, wrong: np.ndarray, terms: dict[int, float], offset: float, level: Level | None
    ) -> tuple[np.ndarray, float]:
        """Examples of the cut, and what they are multiplied with.

        Of a cut that must be above a level samples are drawn until it is, if the exact one is.
        """
        drawn = self.draw(wrong, self._size)
        scale = len(wrong) / len(drawn)
        if self._centred or level is None or sum(terms.values()) + offset <= level.height:
            return drawn, scale
        for _ in range(MOST_SAMPLES):
            if scale * sum(terms[i] for i in drawn.tolist()) + offset > level.height:
                break
            drawn = self.draw(wrong, self._size)
        return drawn, scale

    def _products(self, heights: np.ndarray) -> np.ndarray:
        """Products of a function with the vectors, from its values on the basis."""
        return np.array([heights[e.rows] @ e.coef for e in self.span.expansions])

    def _add(self, examples: np.ndarray, found: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Add a vector to the span; returns its coordinates."""
        numbers = np.concatenate([found, examples])
        coef = np.concatenate([factors, -factors])
        expansion = Expansion(self.pairs.places(numbers), coef)
        heights = coef @ self.pairs.values(numbers)
        self.kernel_values = self.pairs.computed
        squared = float(heights[expansion.rows] @ coef)
        return self.span.add(expansion, self._products(heights), squared)
