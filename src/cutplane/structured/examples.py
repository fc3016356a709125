"""All training examples of a user's problem, in chunks, and their contributions to a cut.

The loss of example i at an output z is

    Δ(y_i, z) + Σ_p <a_p(x_i, z) − a_p(x_i, y_i), scores of part p> + <w, plain difference>,

and 0 for the truth. With slack rescaling the differences are multiplied by Δ. Chunks depend only on
the number of examples and on the problem's methods. So answers are the same, whether the calling
thread computes them, several threads, other processes, or the workers of a cluster.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..exec import Executor, ProcessPool
from ..loops.bounded import ROUNDING as UNIT
from . import rows
from .problem import (
    RESCALINGS,
    SLACK,
    Scores,
    call,
    coefficients_of,
    has_batch,
    losses_of,
    parts_of,
    plain_of,
    take,
)

# So many chunks are enough to share among processes and workers.
MOST_CHUNKS = 32
# Examples per call of a batch form.
BATCH = 512
# Number of examples that are tried before a fit, and that are audited after it.
TRIED, AUDITED = 5, 200
# Smaller relative differences of scores count as rounding.
ROUNDING = 1e-8


@dataclass(frozen=True)
class RowAnswers:
    """Outputs of the examples of a chunk in the linear form: loss_i(w) = offset_i + <row_i, w>.

    Attributes
    ----------
    rows : matrix, shape (examples, dimension)
        Differences of joint features.
    offsets : ndarray, shape (examples,)
    errors : ndarray, shape (examples,), optional
        Bounds on the errors of the largest losses, at the w for which inference found the outputs.
    """

    rows: rows.Rows
    offsets: np.ndarray
    errors: np.ndarray | None = None

    def values(self, w: np.ndarray) -> np.ndarray:
        """Loss of every example at w."""
        return self.offsets + self.rows @ w


@dataclass(frozen=True)
class PartAnswers:
    """Outputs of the examples of a chunk, over the scores of their parts.

    Sums leave out examples whose output is less violated than the truth.

    Attributes
    ----------
    coef : ndarray, shape (parts, K)
        Differences of coefficients.
    plain : ndarray, shape (plain features,)
        Sum of the differences of plain features.
    offset : float
        Sum of the losses.
    values : ndarray, shape (examples,)
        The loss at these scores, or 0 if it is negative. The risk is the mean of these values.
    roundings : ndarray, shape (examples,)
        Smaller differences of values count as rounding.
    below : int or None
        An example for which inference found an output that is less violated than the truth.
    largest : ndarray, shape (4,)
        The largest of each over the examples: loss, |coefficients of a part|, sum of these over the
        parts of an example, and |difference of plain features|.
    """

    coef: np.ndarray
    plain: np.ndarray
    offset: float
    values: np.ndarray
    roundings: np.ndarray
    below: int | None
    largest: np.ndarray


@dataclass(eq=False)
class Chunk:
    """Some examples, and the inference for them. Other processes get it as a pickle.

    Attributes
    ----------
    problem : Problem
    X, Y : lists
    numbers : sequence of int
        The examples' numbers among all examples.
    rescaling : {'margin', 'slack'}
    parts : matrix or None
        The parts of these examples, one below the other, if functions of parts are linear.
    counts : ndarray
        Number of parts of each example.
    outputs, plain : int
        K, and the number of plain features.
    """

    problem: Any
    X: Sequence[Any]
    Y: Sequence[Any]
    numbers: Sequence[int]
    rescaling: str
    parts: rows.Rows | None
    counts: np.ndarray
    outputs: int
    plain: int

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.counts)

    def bare(self) -> Chunk:
        """The chunk without the problem and without what is computed from it, for pickling."""
        return replace(self, problem=None)

    @cached_property
    def truth(self) -> tuple[np.ndarray, rows.Rows]:
        """Coefficients and plain features of the true outputs."""
        return self._features(self.Y)

    @cached_property
    def _truth_rows(self) -> rows.Rows:
        return rows.joint_rows(self.parts, self.truth[0], self.counts, self.truth[1])

    def _features(self, outputs: Sequence[Any]) -> tuple[np.ndarray, rows.Rows]:
        lists = (self.problem, self.numbers, self.X, outputs)
        return coefficients_of(*lists, self.counts, self.outputs), plain_of(*lists, self.plain)

    def scores(self, table: np.ndarray, w: np.ndarray) -> Scores:
        """The argument of inference, from scores of parts and plain weights."""
        return Scores(self.problem, self.X, w, table, self.counts)

    def most_violated(self, scores: Scores) -> Any:
        """The most violated outputs."""
        return call(
            self.problem, RESCALINGS[self.rescaling], self.numbers, (self.X, self.Y, scores)
        )

    def predictions(self, scores: Scores) -> Any:
        """The outputs with the highest scores."""
        return call(self.problem, "predict", self.numbers, (self.X, scores))

    def row_answers(self, w: np.ndarray) -> RowAnswers:
        """The most violated outputs at w, if functions of parts are linear.

        Inference compares scores of outputs. All of them have rounding errors, so the best output
        may have a larger loss than the answer, by a bound that the answer contains.
        """
        own = len(w) - self.plain  # W, then plain weights
        weights = w[:own].reshape(self.outputs, -1) if self.outputs else np.zeros((0, 0))
        scores = self.scores(rows.part_scores(self.parts, weights), w[own:])
        outputs = self.most_violated(scores)
        offsets = losses_of(self.problem, self.numbers, self.Y, outputs)
        coef, plain = self._features(outputs)
        features = rows.joint_rows(self.parts, coef, self.counts, plain)
        difference = features - self._truth_rows
        if self.rescaling == SLACK:
            difference = rows.scaled(difference, offsets)
        if not np.any(w):  # all scores are 0, so losses have no rounding errors
            return RowAnswers(difference, offsets)
        sizes = sum(abs(some) @ np.abs(w) for some in (features, self._truth_rows))
        if self.rescaling == SLACK:
            sizes = np.maximum(offsets, 1.0) * sizes
        return RowAnswers(difference, offsets, UNIT * (len(w) + 8.0) * (offsets + sizes))

    def part_answers(self, table: np.ndarray, w: np.ndarray) -> PartAnswers:
        """The most violated outputs at these scores of parts and plain weights."""
        scores = self.scores(table, w)
        return self.answers_of(self.most_violated(scores), scores)

    def answers_of(self, outputs: Sequence[Any], scores: Scores) -> PartAnswers:
        """The contribution of these outputs to a cut."""
        losses = losses_of(self.problem, self.numbers, self.Y, outputs)
        coef, plain = self._features(outputs)
        coef, plain = coef - self.truth[0], plain - self.truth[1]
        example = np.repeat(np.arange(len(self)), self.counts)
        if self.rescaling == SLACK:
            coef *= losses[example, None]
            plain = rows.scaled(plain, losses)
        terms = np.einsum("ij,ij->i", coef, scores.parts)
        heights = np.bincount(example, terms, len(self)) + plain @ scores.w
        size = np.bincount(example, np.abs(terms), len(self)) + np.abs(heights)
        values = losses + heights
        roundings = ROUNDING * (1.0 + losses + size)
        worse = values < 0.0
        below = np.flatnonzero(values < -roundings)
        coef[worse[example]] = 0.0
        lengths = np.linalg.norm(coef, axis=1)
        largest = (losses, lengths, np.bincount(example, lengths, len(self)), rows.sizes(plain))
        return PartAnswers(
            coef,
            plain.T @ ~worse,
            float(losses[~worse].sum()),
            np.maximum(values, 0.0),
            roundings,
            self.numbers[below[0]] if len(below) else None,
            np.array([np.max(numbers, initial=0.0) for numbers in largest]),
        )


class Inference:
    """Runs a method of all chunks: in threads, in processes, or in the calling thread.

    Attributes
    ----------
    threads : bool
        Whether threads can run the inference side by side.

    Parameters
    ----------
    chunks : sequence of Chunk
    threads : bool
    """

    def __init__(self, chunks: Sequence[Chunk], threads: bool) -> None:
        self.chunks = chunks
        self.threads = threads
        self._pool: ProcessPool | None = None

    def start(self, processes: int) -> None:
        """Start processes, if the inference holds the GIL, so that threads would not help."""
        if processes > 1 and not self.threads and len(self.chunks) > 1:
            self._pool = ProcessPool(self.chunks, processes)

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.close()

    def call_each(
        self,
        method: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        executor: Executor,
    ) -> list[Any]:
        """Call ``method(chunk, *arguments)``, a method of ``Chunk``, for every chunk."""
        if self._pool is not None:
            return self._pool.call_each(method, arguments)

        def task(k: int) -> Any:
            return method(self.chunks[k], *arguments[k])

        if self.threads:
            return executor.run(task, len(self.chunks))
        return [task(k) for k in range(len(self.chunks))]


class Examples:
    """All examples of a problem. The constructor tries the problem on a few of them.

    Attributes
    ----------
    count, outputs, width, plain : int
        Numbers of examples, of functions K, of features of a part, and of plain features.
    dimension : int
        Length of w, if functions of parts are linear.
    identity : tuple
        The objects from which a fingerprint of the data is computed.
    starts : ndarray of int64, shape (examples + 1,)
        Where the parts of each example begin.
    nonmaximal : int or None
        An example for which inference missed a known, more violated output; None if there is none.
    threads : bool
        Whether threads can run the inference.

    Parameters
    ----------
    problem : Problem
    X, Y : lists
    rescaling : {'margin', 'slack'}
    parts : (matrix, ndarray), optional
        The result of ``parts_of`` for X, checked.
    kernel : bool, default=False
        Whether functions of parts lie in a kernel's space. Then this object does not keep the
        parts.
    """

    def __init__(
        self,
        problem: Any,
        X: Sequence[Any],
        Y: Sequence[Any],
        rescaling: str = "margin",
        parts: tuple[Any, np.ndarray] | None = None,
        kernel: bool = False,
    ) -> None:
        self.problem = problem
        self.rescaling = rescaling
        matrix, self._counts = parts_of(problem, X) if parts is None else parts
        self.count = len(self._counts)
        self._parts = None if kernel else matrix
        self.width = matrix.shape[1]
        self.starts = np.concatenate([[0], np.cumsum(self._counts)])
        self.nonmaximal: int | None = None
        self._X, self._Y = X, Y
        batch = has_batch(problem, RESCALINGS[rescaling])
        self.threads = batch or bool(getattr(problem, "releases_gil", False))
        self._batch = BATCH if batch else 1
        self.outputs, self.plain = self._try()
        self.dimension = self.outputs * self.width + self.plain
        self.identity = (problem, X, Y, rescaling)

    @cached_property
    def inference(self) -> Inference:
        """The inference for all examples."""
        return self.inference_of(np.arange(self.count))

    def inference_of(self, which: np.ndarray) -> Inference:
        """The inference for some examples, in chunks."""
        count = min(MOST_CHUNKS, -(-len(which) // self._batch))
        edges = itertools.pairwise(len(which) * k // count for k in range(count + 1))
        return Inference([self._chunk(which[a:b]) for a, b in edges], self.threads)

    def _chunk(self, which: np.ndarray) -> Chunk:
        first, last = int(which[0]), int(which[-1]) + 1
        run = last - first == len(which)  # take consecutive examples as slices
        own = slice(*self.starts[[first, last]]) if run else parts_at(self.starts, which)
        numbers = which.tolist()
        return Chunk(
            self.problem,
            self._X[first:last] if run else take(self._X, numbers),
            self._Y[first:last] if run else take(self._Y, numbers),
            numbers,
            self.rescaling,
            None if self._parts is None else self._parts[own],
            self._counts[which],
            self.outputs,
            self.plain,
        )

    def note(self, example: int | None) -> None:
        """Record the first example for which inference missed a more violated output."""
        if self.nonmaximal is None:
            self.nonmaximal = example

    def _try(self) -> tuple[int, int]:
        """Try the problem on a few examples; returns K and the number of plain features.

        Checks that features have one length, the loss of the truth is 0, and, at scores 0 and at
        random ones, that the most violated output is at least as violated as the truth and the
        prediction scores at least as much as both.
        """
        outputs, plain = None, None
        for i in sorted({self.count * k // TRIED for k in range(TRIED)}):
            lists = (self.problem, [i], take(self._X, [i]), take(self._Y, [i]))
            outputs = coefficients_of(*lists, self._counts[[i]], outputs).shape[1]
            plain = plain_of(*lists, plain).shape[1]
            self.outputs, self.plain = outputs, plain
            own = losses_of(self.problem, [i], lists[3], lists[3])[0]
            if own != 0.0:
                raise ValueError(
                    f"loss(y, y) must be 0, got {own:g} for example {i} of "
                    f"{type(self.problem).__name__}"
                )
            rng = np.random.default_rng(i)
            for size in (0.0, 1.0):
                table = size * rng.normal(size=(int(self._counts[i]), outputs))
                w = rng.normal(size=plain)
                self._try_at(i, table, size * w / (np.linalg.norm(w) or 1.0))
        assert outputs is not None and plain is not None
        return outputs, plain

    def _try_at(self, i: int, table: np.ndarray, w: np.ndarray) -> None:
        """Raise if one of the outputs found for an example cannot be a maximum."""
        chunk = self._chunk(np.array([i]))
        scores = chunk.scores(table, w)
        worst = chunk.most_violated(scores)
        loss = float(losses_of(self.problem, [i], chunk.Y, worst)[0])
        guess = chunk.predictions(scores)
        if not getattr(self.problem, "exact", True):
            return
        of_truth, of_worst, of_guess = (scores[0](z[0]) for z in (chunk.Y, worst, guess))
        size = ROUNDING * (1.0 + abs(of_truth) + abs(of_worst) + loss)
        factor = loss if self.rescaling == SLACK else 1.0
        violation = loss + (of_worst - of_truth) * factor
        if violation < -size:
            raise ValueError(
                f"{RESCALINGS[self.rescaling]} gave an output for example {i} that is less "
                f"violated ({violation:.3g}) than the true one (0); if inference is approximate "
                "say so with exact = False"
            )
        best = max(of_truth, of_worst)
        if of_guess < best - size and math.isfinite(best):
            raise ValueError(
                f"predict gave an output for example {i} of score {of_guess:.6g}, but "
                f"another one scores {best:.6g}; if inference is approximate say so with "
                "exact = False"
            )

    def audit(self, table: Callable[[np.ndarray], np.ndarray], w: np.ndarray) -> None:
        """After a fit, compare the predictions for some examples with the inference there.

        A prediction is a possible output, so it must not be more violated than the output that
        inference finds. If it is, inference is not exact.

        Parameters
        ----------
        table : callable
            Returns the scores of the parts with given numbers.
        w : ndarray
            Plain weights.
        """
        if self.nonmaximal is not None:
            return
        which = np.arange(0, self.count, -(-self.count // AUDITED))
        some = self._chunk(which)
        scores = some.scores(table(parts_at(self.starts, which)), w)
        found = some.answers_of(some.most_violated(scores), scores)
        guess = some.answers_of(some.predictions(scores), scores)
        self.note(found.below)
        below = found.values < guess.values - found.roundings - guess.roundings
        if below.any():
            self.note(int(which[np.argmax(below)]))


def parts_at(starts: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Numbers of the parts of some examples, one after the other."""
    counts = starts[which + 1] - starts[which]
    before = np.cumsum(counts) - counts
    return np.repeat(starts[which] - before, counts) + np.arange(int(counts.sum()))
