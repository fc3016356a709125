"""Examples in chunks, and who runs the inference for them: this process, or others.

Chunks depend on the number of examples alone. Wherever they are, a pass is answered as a ``Share``
of a cut, and the passes before are kept where the chunks are (where processes of our own
run the inference, here).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..data.sums import SumPlan
from ..exec import Executor
from .examples import Inference
from .kept import KeptAnswers, Share, Stored


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
    inference : Inference
        Of these chunks.
    plan : SumPlan, optional
        If these are some of all chunks.
    """

    def __init__(self, inference: Inference, plan: SumPlan | None = None) -> None:
        self._inference = inference
        self._count = len(inference.chunks)
        self._kept = KeptAnswers(plan or plan_for(self._count), inference.chunks)

    def infer(self, w: np.ndarray, most: int, keep: bool, executor: Executor) -> list[Share]:
        self._kept.trim(most)
        answers = self._inference.call_each("row_answers", [(w,)] * self._count, executor)
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
