"""Rows visited in two lanes at a time, for two threads, which meet by a step in the dual.

Both lanes start from the same w, and each takes its steps as if the other one's rows stood still.
With g₁ and g₂ what they gain by themselves, Δ₁ and Δ₂ the changes of w, the part t of both gains

    D(t) = t·s − ½t²·q,   D(1) = g₁ + g₂ − <Δ₁, Δ₂>,   q = |Δ₁ + Δ₂|² + Σ_i ridge_i·δ_i²

in the dual objective, δ_i being the change of α_i. The best part is s/q. It is close to 1 if lanes
meet often: they then mostly move different features. Two lanes need a twentieth more passes than
one, three or four lanes half as many again or twice as many, on text, k-mers and digits alike; so
there are two for any number of threads, and one thread visits one lane after the other, for the
same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exec import Executor
from ..loops import coordinate as loops

# Stored numbers, and in units of the length of w, below which there is one lane: a meeting reads
# and writes w several times. With 45 numbers per weight (film reviews) one thread takes a third
# more time with two lanes, and two gain no more than by a certificate beside the passes.
LEAST_NUMBERS, LEAST_PER_WEIGHT = 1 << 20, 256
# The least number between meetings, likewise, and the most meetings of a call.
NUMBERS_BETWEEN, BETWEEN_PER_WEIGHT = 1 << 15, 8
MOST_MEETINGS = 16
# A best part of at least this is as good as 1: the full steps gain 94 % of what it would.
NEARLY_ALL = 0.8
# Columns of w that are worth a task.
COLUMNS = 1 << 13


def worth_lanes(numbers: int, weights: int) -> bool:
    """Whether data of so many stored numbers, for a w of that length, are worth two lanes."""
    return numbers >= max(LEAST_NUMBERS, LEAST_PER_WEIGHT * weights)


class Lanes:
    """Room for two lanes beside w.

    Parameters
    ----------
    w : ndarray
        Changed in place.
    row_length : float
        Mean number of stored numbers in a row.
    executor : Executor
        Runs the lanes.
    """

    def __init__(self, w: np.ndarray, row_length: float, executor: Executor) -> None:
        self._w = w
        self._executor = executor
        self._own = np.empty((2, len(w)))
        self._tasks = -(-len(w) // COLUMNS)
        between = max(NUMBERS_BETWEEN, BETWEEN_PER_WEIGHT * len(w))
        self._least = LEAST_NUMBERS / max(1.0, row_length)
        self._rows_between = max(2.0, between / max(1.0, row_length))

    def worth(self, order: np.ndarray) -> bool:
        """Whether some rows are worth two lanes: few are not, whatever the others come to."""
        return len(order) >= self._least

    def visit(
        self,
        rows: tuple[Any, ...],
        order: np.ndarray,
        steps: tuple[Any, ...],
        alpha: np.ndarray,
        idle: np.ndarray,
    ) -> tuple[int, float, float]:
        """As ``loops.visit``, whose arguments ``rows`` and ``steps`` are."""
        count = min(MOST_MEETINGS, max(1, int(len(order) / self._rows_between)))
        found = np.empty((count, 2, 4))
        gains = np.empty(count)
        arguments = (
            *rows,
            order,
            np.arange(count + 1) * len(order) // count,
            *steps,
            NEARLY_ALL,
            COLUMNS,
            self._w,
            alpha,
            idle,
            self._own,
            np.empty(len(order)),
            np.zeros(count * 6 * loops.CACHE_LINE, np.int64),
            np.empty((count, self._tasks, 2)),
            found,
            gains,
        )
        threads = min(2, self._executor.threads)
        self._executor.run(lambda k: loops.visit_in_lanes(*arguments), threads)
        visited, worst = found[..., 0].sum(), found[..., 1].max()
        return int(visited), float(worst), float(gains.sum())
