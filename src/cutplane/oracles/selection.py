"""The zero of an increasing function given by its slope and its steps, in O(rows).

    h(k) = start + slope·k + Σ_{positions ≤ k} jumps,   slope ≥ 0, jumps ≥ 0.

This is the derivative of a convex piecewise quadratic function: its zero is the
exact minimum of the hinge risk along a line, and over the bias. Sorting would
take O(rows·log rows) and a copy. Here a histogram round locates the crossing
within one of ``BINS`` intervals, a collecting round fetches the steps in that
interval, and only those are sorted. Both rounds are sums over blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..exec import Executor, SerialExecutor
from ..loops import selection as loops

BINS = 256
# Beyond all kinks of finite data.
FAR = 1e300
# Below this number of steps a task per block is not worth it.
FEW_STEPS = 1 << 17
# How often an interval is widened before all steps are listed.
WIDENINGS = 5
# Below this number of steps a sort is cheaper than another round.
SORT_BELOW = 4096


def crossing(
    positions: Sequence[np.ndarray],
    jumps: Sequence[np.ndarray],
    slope: float,
    start: float,
    low: float,
    high: float,
    executor: Executor,
) -> float:
    """The smallest k with h(k) ≥ 0.

    Parameters
    ----------
    positions, jumps : sequences of arrays
        The steps, one array per block. They are overwritten.
    slope, start : float
        Of h, before any step.
    low, high : float
        Where the zero is expected; it may be elsewhere, at the price of a round.
    executor : Executor
        Runs over the blocks.
    """
    if high - low <= 1e-300:
        low, high = low - 1e-12 * (1.0 + abs(low)), high + 1e-12 * (1.0 + abs(high))
    scale = BINS / (high - low)

    def histogram(block: int) -> np.ndarray:
        bins = np.zeros(BINS + 2)
        loops.add_histogram(positions[block], jumps[block], low, scale, bins)
        return bins

    bins = np.zeros(BINS + 2)
    for part in executor.run(histogram, len(positions)):
        bins += part
    levels = start + np.cumsum(bins)
    edges = low + np.arange(BINS + 1) * ((high - low) / BINS)
    above = np.flatnonzero(slope * edges + levels[:-1] >= 0.0)
    wanted = int(above[0]) if len(above) else BINS + 1

    def collect(block: int) -> tuple[np.ndarray, np.ndarray]:
        at, by = positions[block], jumps[block]  # they are not needed any more
        count = loops.collect_bin(at, by, low, scale, BINS, wanted, at, by)
        return at[:count], by[:count]

    parts = executor.run(collect, len(positions))
    inside = np.concatenate([part[0] for part in parts])
    steps = np.concatenate([part[1] for part in parts])
    level = float(levels[wanted - 1]) if wanted > 0 else start
    if len(inside) > SORT_BELOW:
        lowest, highest = float(inside.min()), float(inside.max())
        if highest - lowest > 1e-300:  # else they are equal, and sorted already
            return crossing([inside], [steps], slope, level, lowest, highest, SerialExecutor())
    order = np.argsort(inside, kind="stable")
    k, found = loops.walk_steps(inside[order], steps[order], slope, level)
    if found:
        return k
    # A flat function that rounding kept just below zero: its last step is the answer.
    return float(inside.max()) if len(inside) else high


# Lists the steps of some rows in an interval: (rows, low, high, positions, jumps) →
# (their number, value of the function below them).
ListSteps = Callable[[slice, float, float, np.ndarray, np.ndarray], tuple[int, float]]


class ZeroFinder:
    """Finds zeros of step functions that blocks list, in buffers of one number per row.

    Parameters
    ----------
    slices : sequence of slice
        The rows, in chunks.
    executor : Executor
    """

    def __init__(self, slices: Sequence[slice], executor: Executor) -> None:
        rows = int(slices[-1].stop)
        self._slices = slices
        self._executor = executor
        self._positions = np.empty(rows)
        self._jumps = np.empty(rows)

    def zero(
        self,
        steps: ListSteps,
        slope: float,
        start: float,
        low: float,
        high: float,
        lowest: float,
    ) -> float:
        """The zero of start + slope·k plus a step function, expected in [low, high).

        ``steps`` lists the function's steps in an interval for a block and returns their
        number and its value below them. If the zero is not in the expected interval, that is
        widened, at last to all from ``lowest`` on. The answer is ``lowest`` or the first step
        if the function is nowhere negative.
        """
        for attempt in range(WIDENINGS + 1):
            first, last = (low, high) if attempt < WIDENINGS else (lowest, FAR)
            at = [self._positions[rows] for rows in self._slices]
            by = [self._jumps[rows] for rows in self._slices]
            parts = self._list(steps, first, last, at, by)
            at = [a[:count] for a, (count, _) in zip(at, parts, strict=True)]
            by = [b[:count] for b, (count, _) in zip(by, parts, strict=True)]
            below = start + sum(value for _, value in parts)
            above = below + sum(float(b.sum()) for b in by)
            if slope * first + below < 0.0 <= slope * last + above:
                break
            if first == lowest and slope * first + below >= 0.0:
                break
            width = high - low
            low, high = max(lowest, low - 8.0 * width), min(FAR, high + 8.0 * width)
        if slope * first + below >= 0.0:  # nowhere negative
            firsts = [float(a.min()) for a in at if len(a)]
            return lowest if lowest > -FAR or not firsts else min(firsts)
        if sum(map(len, at)) < FEW_STEPS:  # not worth a task per block
            at, by = [np.concatenate(at)], [np.concatenate(by)]
        return crossing(at, by, slope, below, low, high, self._executor)

    def _list(
        self,
        steps: ListSteps,
        low: float,
        high: float,
        at: list[np.ndarray],
        by: list[np.ndarray],
    ) -> list[tuple[int, float]]:
        return self._executor.run(
            lambda k: steps(self._slices[k], low, high, at[k], by[k]), len(at)
        )
