"""Where OCAS places the next cut: at w_b + λ(w_t − w_b).

λ = 0.1 in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..result import Iteration


class CutPosition(Protocol):
    """Chooses λ for the cut after an iteration."""

    def next(self, record: Iteration, trace: Sequence[Iteration]) -> float: ...


class FixedPosition:
    """The same λ always."""

    def __init__(self, position: float) -> None:
        self.position = position

    def next(self, record: Iteration, trace: Sequence[Iteration]) -> float:
        return self.position
