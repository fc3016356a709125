"""The zero of an increasing function given by its slope and its steps, in O(rows).

    h(k) = start + slope·k + Σ_{positions ≤ k} jumps,   slope ≥ 0, jumps ≥ 0.

This is the derivative of a convex piecewise quadratic function: its zero is the
exact minimum of the hinge risk along a line, and over the bias. Sorting would
take O(rows·log rows) and a copy. Here a histogram of the steps in chunks of rows locates the
crossing within one of ``BINS`` intervals, only the steps in that interval are kept, if they
are many another histogram locates the crossing among them, and what is left is sorted. Whoever
holds the rows answers three questions at most, each with a few numbers per chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..exec import Executor, SerialExecutor
from ..loops import selection as loops

BINS = 256
# Beyond all kinks of finite data.
FAR = 1e300
# Below this number of steps a task per chunk is not worth it.
FEW_STEPS = 1 << 17
# How often an interval is widened before all steps are listed.
WIDENINGS = 5
# Below this number of steps a sort is cheaper than another histogram.
SORT_BELOW = 4096


@dataclass(frozen=True)
class Grid:
    """An interval in BINS equal bins, numbered from 1; bin 0 is below, bin BINS + 1 beyond."""

    low: float
    high: float

    @classmethod
    def over(cls, low: float, high: float) -> Grid:
        """A grid over an interval, which is widened if it is too short for one."""
        if high - low <= 1e-300:
            low, high = low - 1e-12 * (1.0 + abs(low)), high + 1e-12 * (1.0 + abs(high))
        return cls(low, high)

    @property
    def scale(self) -> float:
        """Bins per unit."""
        return BINS / (self.high - self.low)

    def edges(self) -> np.ndarray:
        """Where bins begin, and the end."""
        return self.low + np.arange(BINS + 1) * ((self.high - self.low) / BINS)

    def inside(self, number: int) -> Grid | None:
        """A grid over one bin; None for those without end."""
        if not 1 <= number <= BINS:
            return None
        edges = self.edges()
        return Grid.over(float(edges[number - 1]), float(edges[number]))

    def histogram(self, positions: np.ndarray, jumps: np.ndarray) -> np.ndarray:
        """Sum of the jumps in every bin."""
        bins = np.zeros(BINS + 2)
        loops.add_histogram(positions, jumps, self.low, self.scale, bins)
        return bins

    def keep(self, positions: np.ndarray, jumps: np.ndarray, number: int) -> int:
        """Move the steps of one bin to the front; returns their number."""
        return loops.collect_bin(
            positions, jumps, self.low, self.scale, BINS, number, positions, jumps
        )

    def around(self, steps: Sequence[tuple[np.ndarray, np.ndarray]], most: int) -> list[Peek]:
        """Those steps of each chunk that are near the middle, in all not more than ``most``."""
        counts = np.zeros(BINS + 2, dtype=np.int64)
        chunks = np.zeros((len(steps), BINS + 2), dtype=np.int64)
        for (positions, _), own in zip(steps, chunks, strict=True):
            loops.count_bins(positions, self.low, self.scale, own)
        counts = chunks.sum(axis=0)
        middle = BINS // 2
        widths = np.cumsum(counts[middle + 1 : -1] + counts[middle:0:-1])
        reach = int(np.searchsorted(widths, most, "right"))  # bins to each side
        first, last = middle + 1 - reach, middle + reach
        found = []
        for (positions, jumps), own in zip(steps, chunks, strict=True):
            room = int(own[first : last + 1].sum()) if reach else 0
            at, by = np.empty(room), np.empty(room)
            if room:
                loops.copy_bins(positions, jumps, self.low, self.scale, BINS, first, last, at, by)
            found.append(Peek(first, last, at, by))
        return found

    def crossing(self, bins: Sequence[np.ndarray], slope: float, start: float) -> tuple[int, float]:
        """The bin in which the function becomes positive, and its level below that bin.

        Parameters
        ----------
        bins : sequence of ndarray
            Histograms of the chunks, to be added in their order.
        slope, start : float
            Of the function, before any step.
        """
        total = np.zeros(BINS + 2)
        for part in bins:
            total += part
        levels = start + np.cumsum(total)
        above = np.flatnonzero(slope * self.edges() + levels[:-1] >= 0.0)
        number = int(above[0]) if len(above) else BINS + 1
        return number, float(levels[number - 1]) if number > 0 else start


@dataclass(frozen=True)
class Peek:
    """The steps of a chunk in the bins ``first`` to ``last`` of a grid."""

    first: int
    last: int
    positions: np.ndarray
    jumps: np.ndarray


class Steps(Protocol):
    """Steps in chunks, wherever they are. All answers have one entry per chunk."""

    def histogram(self, grid: Grid) -> list[np.ndarray]:
        """Sum of the jumps in every bin."""
        ...

    def keep(self, grid: Grid, number: int) -> list[int]:
        """Forget all steps but those of one bin; returns how many are left."""
        ...

    def steps(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Positions and jumps."""
        ...


class ListedSteps:
    """Steps in arrays, which are overwritten.

    Parameters
    ----------
    positions, jumps : sequences of arrays
        One of each per chunk.
    executor : Executor
    """

    def __init__(
        self, positions: Sequence[np.ndarray], jumps: Sequence[np.ndarray], executor: Executor
    ) -> None:
        self._positions = list(positions)
        self._jumps = list(jumps)
        few = sum(map(len, positions)) < FEW_STEPS
        self._executor = SerialExecutor() if few else executor

    def histogram(self, grid: Grid) -> list[np.ndarray]:
        """Sum of the jumps in every bin."""
        return self._executor.run(
            lambda k: grid.histogram(self._positions[k], self._jumps[k]), len(self._positions)
        )

    def keep(self, grid: Grid, number: int) -> list[int]:
        """Forget all steps but those of one bin; returns how many are left."""
        counts = self._executor.run(
            lambda k: grid.keep(self._positions[k], self._jumps[k], number), len(self._positions)
        )
        for k, count in enumerate(counts):
            self._positions[k] = self._positions[k][:count]
            self._jumps[k] = self._jumps[k][:count]
        return counts

    def steps(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Positions and jumps."""
        return list(zip(self._positions, self._jumps, strict=True))

    def least(self) -> list[float]:
        """The first position of every chunk that has any."""
        return [float(at.min()) for at in self._positions if len(at)]


def crossing(
    steps: Steps,
    slope: float,
    start: float,
    grid: Grid,
    bins: Sequence[np.ndarray] | None = None,
) -> float:
    """The smallest k with h(k) ≥ 0.

    Parameters
    ----------
    steps : Steps
        They are forgotten.
    slope, start : float
        Of h, before any step.
    grid : Grid
        Where the zero is expected; it may be elsewhere, at the price of more steps to sort.
    bins : sequence of ndarray, optional
        Histograms of the chunks over the grid, if they are known.
    """
    number, level = grid.crossing(steps.histogram(grid) if bins is None else bins, slope, start)
    left = sum(steps.keep(grid, number))
    finer = grid.inside(number)
    if left > SORT_BELOW and finer is not None:
        number, level = finer.crossing(steps.histogram(finer), slope, level)
        steps.keep(finer, number)
    parts = steps.steps()
    inside = np.concatenate([part[0] for part in parts])
    jumps = np.concatenate([part[1] for part in parts])
    if len(inside) > SORT_BELOW:
        lowest, highest = float(inside.min()), float(inside.max())
        if highest - lowest > 1e-300:  # else they are equal, and sorted already
            rest = ListedSteps([inside], [jumps], SerialExecutor())
            return crossing(rest, slope, level, Grid(lowest, highest))
    order = np.argsort(inside, kind="stable")
    k, found = loops.walk_steps(inside[order], jumps[order], slope, level)
    if found:
        return k
    # A flat function that rounding kept just below zero: its last step is the answer.
    return float(inside.max()) if len(inside) else grid.high


@dataclass(frozen=True)
class Listed:
    """What a chunk says when it has listed its steps in an interval.

    Attributes
    ----------
    below : float
        Value of the function below them.
    bins : ndarray
        Their histogram.
    """

    below: float
    bins: np.ndarray


class StepLists(Steps, Protocol):
    """Those who hold rows, when they have listed steps."""

    def least(self) -> list[float]:
        """The first position of every chunk that has any."""
        ...


# Has all chunks list their steps in an interval, with a histogram of them.
ListSteps = Callable[[float, float, Grid], list[Listed]]


def find_zero(
    list_steps: ListSteps,
    steps: StepLists,
    slope: float,
    start: float,
    low: float,
    high: float,
    lowest: float,
) -> float:
    """The zero of start + slope·k plus a step function, expected in [low, high).

    If the zero is not in the expected interval, that is widened, at last to all from ``lowest``
    on. The answer is ``lowest`` or the first step if the function is nowhere negative.

    Parameters
    ----------
    list_steps : callable
        Has the steps listed.
    steps : StepLists
        Where they are then.
    """
    for attempt in range(WIDENINGS + 1):
        first, last = (low, high) if attempt < WIDENINGS else (lowest, FAR)
        grid = Grid.over(low, high)
        listed = list_steps(first, last, grid)
        below = start + sum(chunk.below for chunk in listed)
        above = below + sum(float(chunk.bins.sum()) for chunk in listed)
        if slope * first + below < 0.0 <= slope * last + above:
            break
        if first == lowest and slope * first + below >= 0.0:
            break
        width = high - low
        low, high = max(lowest, low - 8.0 * width), min(FAR, high + 8.0 * width)
    if slope * first + below >= 0.0:  # nowhere negative
        if lowest > -FAR:
            return lowest
        firsts = steps.least()
        return min(firsts) if firsts else lowest
    return crossing(steps, slope, below, grid, [chunk.bins for chunk in listed])
