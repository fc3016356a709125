"""Outputs of the last passes of inference, per chunk of examples: the most violated of them.

The output z_i of example i has the row Ψ(x_i, z_i) − Ψ(x_i, y_i) and the offset Δ(y_i, z_i); its
loss at w is offset_i + <row_i, w>, and 0 for the truth. A cut is a sum over examples of rows and
offsets, whichever output each example takes; the highest one at w takes the most violated ones.

Rows are summed by chunk, and sums of chunks along the tree of ``data.parts``: so whoever holds
some of the chunks sends a vector or a few, and all get the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data.sums import SumPlan
from . import rows
from .examples import ROUNDING, Chunk, RowAnswers

# A chunk's outputs in a checkpoint: rows and offsets.
Stored = tuple[rows.Rows, np.ndarray]


@dataclass(frozen=True)
class Share:
    """What some consecutive chunks add to a cut.

    Attributes
    ----------
    planes : list of ndarray
        Sums of rows, one for each node of the plan.
    offsets, risks : list of float
        By chunk.
    errors : list of float
        By chunk, what rounding may have taken off the risk.
    below : int or None
        The first example whose new output is less violated than one known before.
    numbers : int
        Values stored in the new outputs.
    answers : list or None
        The new outputs themselves, by chunk, if they are to be known elsewhere, too.
    """

    planes: list[np.ndarray]
    offsets: list[float]
    risks: list[float]
    errors: list[float] = field(default_factory=list)
    below: int | None = None
    n_stored: int = 0
    answers: list[Stored] | None = None


class KeptAnswers:
    """Outputs of the last passes over some chunks.

    Parameters
    ----------
    plan : SumPlan
        Which chunks.
    chunks : sequence of Chunk
    """

    def __init__(self, plan: SumPlan, chunks: Sequence[Chunk]) -> None:
        self._plan = plan
        self._chunks = chunks
        self._passes: deque[list[RowAnswers]] = deque()

    def __len__(self) -> int:
        """Number of passes kept."""
        return len(self._passes)

    def add(self, answers: Sequence[Stored]) -> None:
        """Keep the outputs of a pass."""
        self._passes.append([RowAnswers(*kept) for kept in answers])

    def trim(self, most: int) -> None:
        """Forget all but the last passes."""
        while len(self._passes) > most:
            self._passes.popleft()

    def take(self, answers: list[RowAnswers], w: np.ndarray, keep: bool) -> Share:
        """The highest cut at w from a new pass and the ones before; the new one is kept."""
        below: list[int] = []
        chosen, errors = [], []
        for k, answer in enumerate(answers):
            one = _chosen([answer, *(kept[k] for kept in self._passes)], w)
            slack = ROUNDING * (1.0 + answer.offsets + rows.sizes(answer.rows) * np.linalg.norm(w))
            less = answer.values(w) < one.values - slack
            if less.any():
                below.append(self._chunks[k].first + int(np.argmax(less)))
            chosen.append(one)
            errors.append(0.0 if answer.errors is None else float(answer.errors.sum()))
        if keep:
            self._passes.append(answers)
        return self._share(
            chosen,
            errors=errors,
            below=below[0] if below else None,
            n_stored=sum(rows.n_stored(answer.rows) for answer in answers),
        )

    def cut(self, w: np.ndarray) -> Share:
        """The highest cut at w from the passes kept."""
        return self._share(
            _chosen([kept[k] for kept in self._passes], w) for k in range(len(self._chunks))
        )

    def _share(self, chosen: Iterable[_Chosen], **facts: Any) -> Share:
        planes: list[np.ndarray] = []
        offsets, risks = [], []
        for one, merges in zip(chosen, self._plan.merges, strict=True):
            planes.append(one.plane)
            offsets.append(one.offset)
            risks.append(float(one.values.sum()))
            for _ in range(merges):
                planes[-2] += planes[-1]
                planes.pop()
        return Share(planes, offsets, risks, **facts)

    def last(self) -> list[Stored]:
        """The last pass, by chunk."""
        return [(kept.rows, kept.offsets) for kept in self._passes[-1]]

    def state(self) -> list[list[Stored]]:
        """By pass and chunk."""
        return [[(kept.rows, kept.offsets) for kept in answers] for answers in self._passes]

    def restore(self, state: Sequence[Sequence[Stored]]) -> None:
        """Return to a state."""
        self._passes = deque()
        for answers in state:
            self.add(answers)


@dataclass(frozen=True)
class _Chosen:
    """The most violated of several outputs per example of a chunk, the truth among them."""

    values: np.ndarray
    plane: np.ndarray
    offset: float


def _chosen(known: Sequence[RowAnswers], w: np.ndarray) -> _Chosen:
    values = np.stack([np.zeros(len(known[0].offsets)), *(a.values(w) for a in known)])
    # The first of equal ones, but rather any of them than the truth: its cut is steeper.
    best = values[1:].argmax(axis=0)
    best[values.max(axis=0) > values[1:].max(axis=0)] = -1
    plane = np.zeros(len(w))
    offset = 0.0
    for number, answers in enumerate(known):
        mine = best == number
        if mine.any():
            plane += rows.total(answers.rows, mine)
            offset += float(answers.offsets[mine].sum())
    return _Chosen(values.max(axis=0), plane, offset)
