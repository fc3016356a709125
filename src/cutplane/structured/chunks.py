"""Examples in chunks, and who runs the inference for them: this process, or others.

Chunks depend on the number of examples alone. Wherever they are, a pass is answered as a ``Share``
of a cut, and the passes before are kept where the chunks are (where processes of our own
run the inference, here).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..data.parts import SumPlan
from ..exec import Executor
from ..loops.bounded import ROUNDING as UNIT
from .inference import Inference
from .kept import Answers, KeptAnswers, Share, Stored
from .problem import RESCALINGS, SLACK, call, count_of, features_of, losses_of
from .rows import Rows, products, scaled


class Chunk:
    """Some examples, and the inference for them. Sent to other processes as it is."""

    def __init__(
        self, problem: Any, X: Sequence[Any], Y: Sequence[Any], first: int, rescaling: str
    ) -> None:
        self.problem = problem
        self.X, self.Y = X, Y
        self.first = first
        self.rescaling = rescaling
        self.truth: Rows | None = None

    def __len__(self) -> int:
        """Number of examples."""
        return count_of(self.X)

    def answer(self, w: np.ndarray) -> Answers:
        """The most violated outputs at w."""
        w = w.view()
        w.flags.writeable = False
        outputs = call(self.problem, RESCALINGS[self.rescaling], self.first, (self.X, self.Y), w)
        return self.answers_of(outputs, len(w), w)

    def answers_of(
        self, outputs: Sequence[Any], dimension: int, w: np.ndarray | None = None
    ) -> Answers:
        """What these outputs add to a plane, and how far their losses may be off at w.

        Inference compares scores of outputs, which are rounded as those of its answer are.
        """
        if self.truth is None:
            self.truth = features_of(self.problem, self.first, self.X, self.Y, dimension)
        offsets = losses_of(self.problem, self.first, self.Y, outputs)
        features = features_of(self.problem, self.first, self.X, outputs, dimension)
        difference = features - self.truth
        if self.rescaling == SLACK:
            difference = scaled(difference, offsets)
        if w is None or not np.any(w):  # losses alone are exact
            return Answers(difference, offsets)
        sizes = sum(products(abs(some), np.abs(w)) for some in (features, self.truth))
        if self.rescaling == SLACK:
            sizes = np.maximum(offsets, 1.0) * sizes
        return Answers(difference, offsets, UNIT * (dimension + 8.0) * (offsets + sizes))


def plan_for(chunks: int, first: int = 0, last: int | None = None) -> SumPlan:
    """How the sums over some of so many chunks are formed."""
    return SumPlan(np.arange(chunks + 1), first, chunks if last is None else last)


class Holders(Protocol):
    """Those who hold the chunks."""

    def infer(self, w: np.ndarray, most: int, keep: bool, executor: Executor) -> list[Share]:
        """A pass of inference, when all but the last ``most`` passes are forgotten."""
        ...

    def cut(self, w: np.ndarray, most: int) -> list[Share]:
        """The highest cut at w from the last ``most`` passes."""
        ...

    def state(self, most: int) -> list[list[Stored]]:
        """The last ``most`` passes."""
        ...

    def restore(self, state: list[list[Stored]]) -> None:
        """Return to a state."""
        ...


class ChunksHere:
    """Chunks in this process, with inference in it or in processes of its own.

    Parameters
    ----------
    chunks : sequence of Chunk
    threads : bool
        Whether threads can run the inference.
    plan : SumPlan, optional
        If these are some of all chunks.
    """

    def __init__(self, chunks: Sequence[Chunk], threads: bool, plan: SumPlan | None = None) -> None:
        self._kept = KeptAnswers(plan or plan_for(len(chunks)), [chunk.first for chunk in chunks])
        self._count = len(chunks)
        self.inference = Inference(chunks, threads)

    def infer(self, w: np.ndarray, most: int, keep: bool, executor: Executor) -> list[Share]:
        self._kept.trim(most)
        answers = self.inference.call_each("answer", [(w,)] * self._count, executor)
        return [self._kept.take(answers, w, keep)]

    def last(self) -> list[Stored]:
        """The outputs of the last pass, if they are kept."""
        return self._kept.last()

    def cut(self, w: np.ndarray, most: int) -> list[Share]:
        self._kept.trim(most)
        return [self._kept.cut(w)]

    def state(self, most: int) -> list[list[Stored]]:
        self._kept.trim(most)
        return self._kept.state()

    def restore(self, state: list[list[Stored]]) -> None:
        self._kept.restore(state)
