"""The risk of outputs that are scored by a kernel between pairs of input and output, and its cuts.

A cut is an expansion over pairs of a training input with an output of it,

    (1/N) Σ_i [φ(x_i, z_i) − φ(x_i, y_i)]      with slack rescaling each term times Δ(y_i, z_i),

z_i the most violated output. A sampled cut has r of the examples whose output is not the truth,
or, in the constant-time method, all of r examples.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..exec import Executor, SerialExecutor
from ..oracles import Cut, Line, Point
from ..oracles.constant import SampleCut
from ..oracles.sampled import MOST_SAMPLES, Level, WholeOracle
from ..oracles.span import CutSpan, Expansion
from ..oracles.structured import JointSurface
from .examples import AUDITED
from .pair_kernel import KnownPairs, PairScores
from .problem import RESCALINGS, ROUNDING, SLACK, call, count_of, losses_of, take
from .rows import First, Numbers


class PairExamples:
    """Examples of a problem with a kernel between pairs, and the inference for them.

    A point's ``coef`` has the number of the most violated pair of every example, that of the
    truth where nothing is violated.

    Attributes
    ----------
    pairs : KnownPairs
    truth : ndarray
        Numbers of the true pairs: those of the examples.
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
        self.truth = np.arange(self.examples)
        self.nonmaximal: int | None = None
        self.coefficients: Callable[[np.ndarray], np.ndarray] = lambda w: np.zeros(0)
        self._first: First = 0
        self._losses: dict[int, float] = dict.fromkeys(range(self.examples), 0.0)

    def some(self, which: np.ndarray) -> PairExamples:
        """Some of the examples, of the same known pairs."""
        other = copy.copy(self)
        other.X, other.Y = take(self.X, which.tolist()), take(self.Y, which.tolist())
        other.examples = len(which)
        other.truth = self.truth[which]
        other._first = Numbers(other.truth)
        return other

    def losses(self, numbers: np.ndarray) -> np.ndarray:
        """Of pairs that were found."""
        return np.array([self._losses[k] for k in numbers.tolist()])

    def factors(self, losses: np.ndarray) -> np.ndarray:
        """What differences of scores are multiplied with."""
        return losses if self.rescaling == SLACK else np.ones(len(losses))

    def scores(self, coef: np.ndarray) -> PairScores:
        """What inference gets."""

        def of(i: int, outputs: Sequence[Any]) -> np.ndarray:
            example = int(self.truth[i])
            numbers = np.array([self.pairs.number(example, z) for z in outputs], dtype=np.int64)
            return self.heights(numbers, coef)

        return PairScores(self.examples, of)

    def heights(self, numbers: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Scores of pairs; the coefficients may be of a smaller basis."""
        return self.pairs.values(numbers)[:, : len(coef)] @ coef

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(0), coef=self.truth.copy())

    def infer(self, point: Point, executor: Executor) -> None:
        """A pass of inference."""
        coef = self.coefficients(point.w)
        self._settle(point, self._found(RESCALINGS[self.rescaling], coef), coef)

    def _found(self, name: str, coef: np.ndarray) -> np.ndarray:
        """Numbers of the pairs that inference finds; their losses are noted."""
        lists = (self.X, self.Y) if name != "predict" else (self.X,)
        outputs = call(self.problem, name, self._first, (*lists, self.scores(coef)))
        losses = losses_of(self.problem, self._first, self.Y, outputs)
        numbers = np.array(
            [self.pairs.number(i, z) for i, z in zip(self.truth.tolist(), outputs, strict=True)]
        )
        self._losses.update(zip(numbers.tolist(), losses.tolist(), strict=True))
        return numbers

    def _values(self, numbers: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Loss of every example with these outputs."""
        losses = self.losses(numbers)
        apart = self.heights(numbers, coef) - self.heights(self.truth, coef)
        return losses + self.factors(losses) * apart

    def _settle(self, point: Point, numbers: np.ndarray, coef: np.ndarray) -> None:
        values = self._values(numbers, coef)
        self._note(values < -self._slack(numbers, coef))
        point.coef[...] = np.where(values < 0.0, self.truth, numbers)
        point.risk = float(np.mean(np.maximum(values, 0.0)))
        point.offset = float(np.mean(self.losses(point.coef)))

    def _slack(self, numbers: np.ndarray, coef: np.ndarray) -> np.ndarray:
        sizes = np.abs(self.heights(numbers, coef)) + self.losses(numbers)
        return ROUNDING * (1.0 + sizes + np.abs(self.heights(self.truth, coef)))

    def _note(self, below: np.ndarray) -> None:
        if below.any() and self.nonmaximal is None:
            self.nonmaximal = int(self.truth[np.argmax(below)])

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        """Derivatives along a line."""
        way = self.coefficients(line.end.w) - self.coefficients(line.start.w)
        truth = self.heights(self.truth, way)

        def slope(point: Point) -> float:
            factors = self.factors(self.losses(point.coef))
            return float(np.mean(factors * (self.heights(point.coef, way) - truth)))

        return slope

    def audit(self, coef: np.ndarray) -> None:
        """Hold predictions for some examples against the inference there."""
        if self.examples > AUDITED:
            some = self.some(np.arange(0, self.examples, -(-self.examples // AUDITED)))
            some.audit(coef)
            self.nonmaximal = some.nonmaximal
            return
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
        return basis_coefficients(self.pairs, self.span, w)

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
        whole = _products(
            self.span, factors[wrong] @ (self.pairs.values(found) - self.pairs.values(wrong))
        )
        within, rank = self.span.projected(whole), self.span.rank
        vector = pair_cut(self.pairs, self.span, drawn, point.coef[drawn], scale * factors[drawn])
        self.kernel_values = self.pairs.computed
        a = self.span.add(vector.expansion, vector.products, vector.squared)
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


class PairPopulation:
    """Examples of a problem with a kernel between pairs, that samples are drawn from.

    Attributes
    ----------
    examples : ndarray
        All of them.
    values : KnownPairs

    Parameters
    ----------
    model : PairExamples
    """

    def __init__(self, model: PairExamples) -> None:
        self.examples = np.arange(model.examples)
        self.values = model.pairs
        self._model = model

    def sample(self, which: np.ndarray) -> PairSample:
        """These examples."""
        return PairSample(self._model, which)


class PairSample:
    """Some examples of a problem with a kernel between pairs.

    Parameters
    ----------
    whole : PairExamples
        All of them.
    which : ndarray
    """

    def __init__(self, whole: PairExamples, which: np.ndarray) -> None:
        self._whole = whole
        self._model = whole.some(which)
        self._before = whole.pairs.computed
        self._span: CutSpan | None = None

    @property
    def kernel_values(self) -> int:
        """Computed for it so far."""
        return self._whole.pairs.computed - self._before

    def evaluate(self, span: CutSpan, w: np.ndarray) -> Point:
        """A point of the span: inference for the examples."""
        model, self._span = self._model, span
        model.coefficients = lambda w: basis_coefficients(model.pairs, span, w)
        point = model.new_point(w)
        model.infer(point, SerialExecutor())
        if self._whole.nonmaximal is None:
            self._whole.nonmaximal = model.nonmaximal
        return point

    def cut(self, point: Point) -> SampleCut | None:
        """The cut at the point that was evaluated; None if there is no loss."""
        assert self._span is not None
        model = self._model
        factors = model.factors(model.losses(point.coef)) / model.examples
        wrong = np.flatnonzero((point.coef != model.truth) & (factors != 0.0))
        if len(wrong) == 0:
            return None
        pairs = model.truth[wrong], point.coef[wrong]
        return pair_cut(model.pairs, self._span, *pairs, factors[wrong], point.offset)


def basis_coefficients(pairs: KnownPairs, span: CutSpan, w: np.ndarray) -> np.ndarray:
    """Coefficients of the basis, of a point of a span."""
    expansion = span.expand(w)
    out = np.zeros(pairs.columns)
    out[expansion.rows] = expansion.coef
    return out


def pair_cut(
    pairs: KnownPairs,
    span: CutSpan,
    truth: np.ndarray,
    found: np.ndarray,
    factors: np.ndarray,
    offset: float = 0.0,
) -> SampleCut:
    """Σ factors·[φ(found pair) − φ(true pair)], whose pairs become part of the basis."""
    numbers = np.concatenate([found, truth])
    coef = np.concatenate([factors, -factors])
    expansion = Expansion(pairs.places(numbers), coef)
    heights = coef @ pairs.values(numbers)
    squared = float(heights[expansion.rows] @ coef)
    return SampleCut(expansion, _products(span, heights), squared, offset)


def _products(span: CutSpan, heights: np.ndarray) -> np.ndarray:
    """Products of a function with the vectors of a span, from its values on the basis."""
    return np.array([heights[e.rows] @ e.coef for e in span.expansions])
