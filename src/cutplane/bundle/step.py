"""Where OCAS places the next cut: at w_b + λ(w_t − w_b).

The paper takes λ = 0.1. The best fixed λ lies between 0.01 and 0.3, depending on
the data and on C; ``AdaptivePosition`` finds it from the course of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from ..result import Iteration

# Weight of an iteration relative to the one after it: a memory of about five.
MEMORY = 0.8
# Iterations looked back at; older ones would weigh less than MEMORY**40 = 1e-4.
WINDOW = 40
# λ where only the primal makes progress and F is no higher than the gap at w_t.
# Not sensitive: 0.35 to 0.5 gave the same counts within 2 % on average.
SCALE = 0.5
# The range tried. A floor of 0.002 or 0.003 was no better overall, 0.01 a little worse
# at large C; no fixed λ above 0.3 was tried, and 0.3 was never better than 0.2.
SMALLEST, LARGEST = 0.005, 0.3


class CutPosition(Protocol):
    """Chooses λ for the cut after an iteration."""

    def next(self, record: Iteration, trace: Sequence[Iteration]) -> float:
        """λ for the cut after ``record``, the last of ``trace``."""
        ...


class FixedPosition:
    """The same λ always."""

    def __init__(self, position: float) -> None:
        self.position = position

    def next(self, record: Iteration, trace: Sequence[Iteration]) -> float:
        return self.position


class AdaptivePosition:
    """λ from which side closes the gap, and from how far F rises towards w_t.

    λ = SCALE · share^(2/3) · level^(1/3), kept in [SMALLEST, LARGEST].

    ``share`` is the primal's part in the recent closing of the gap. Where the
    lower bound does the work (dense data, large C), w_b is already good and the
    bundle must learn the kinks of F around it: cuts close to w_b, small λ.
    Where the primal does the work (text), w_t is the better informed point and
    cuts towards it bring w_b along: large λ. The share hardly depends on
    the λ in use, so following it feeds back little. Progress is measured in log F
    and log of the bound: before the bound means anything (it starts at 0, so its
    log rises fast) the share is small, although the primal falls fast then.

    ``level`` = gap / (F(w_t) − F(w_b)), at most 1: by convexity F at
    w_b + level·(w_t − w_b) exceeds F(w_b) by no more than the gap, so it says how
    far along the line F stays within a gap of the best. It answers at once when
    w_t jumps far away, which the smoothed share does not. But it feeds back (small
    λ, wild w_t, small level), hence the smaller exponent.

    Stateless: depends only on the last WINDOW records of the trace.
    """

    def next(self, record: Iteration, trace: Sequence[Iteration]) -> float:
        if record.gap <= 0.0:
            return SMALLEST
        share = self._primal_share(trace[-WINDOW - 1 :])
        level = record.gap / max(record.gap, record.trial - record.primal)
        position = SCALE * share ** (2 / 3) * level ** (1 / 3)
        return min(max(position, SMALLEST), LARGEST)

    @staticmethod
    def _primal_share(trace: Sequence[Iteration]) -> float:
        """Primal's part in the closing of the gap, recent iterations weighing more."""
        falls = rises = 0.0
        for before, after in pairwise(trace):
            primal, dual = before.primal, before.dual
            gap = primal - dual
            if gap <= 0.0:  # closed by rounding; the run went on from a better sum
                continue
            # Decrease of log primal : increase of log dual, times dual/gap.
            fall = (primal - after.primal) * dual / primal
            rise = after.dual - dual
            falls = MEMORY * falls + fall / gap
            rises = MEMORY * rises + rise / gap
        total = falls + rises
        return max(0.0, falls / total) if total > 0.0 else 0.0
