"""Passes over the scores of rows: everything a surface of row losses asks, by name.

An answer has one entry per chunk of rows, in their order, and the surface adds them up in that
order. Arguments and answers are small, except for the scores themselves, which only those who
hold the rows look into: so the same questions can be put to the rows here, or to rows elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ..data.parts import ChunkSums
from ..exec import Executor
from ..loops import vectors
from ..loops.bounded import ROUNDING
from ..risks import HingeRisk, Risk, Scores, SmoothRisk, Targets
from . import bias_bins
from .bias_bins import Band, BiasBins
from .octaves import BINS, Octaves
from .selection import Grid, Listed, ListedSteps, StepLists

Result = TypeVar("Result")
Question = tuple[Any, ...]
# (k, bias) of each.
Points = tuple[tuple[float, float], ...]


def in_order(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of arrays, from the first to the last."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


class Passes(StepLists, Protocol):
    """What a surface asks those who hold rows.

    Attributes
    ----------
    coef : Any
        Where coefficients go: an array, or what stands for it.
    """

    coef: Any

    def new_scores(self) -> Any:
        """Room for the scores of a point."""
        ...

    def blend(self, start: Any, end: Any, k: float, into: Any) -> None:
        """Scores at start + k(end − start)."""
        ...

    def value(
        self, at: Scores, ahead: Sequence[Question] = (), then: Sequence[Question] = ()
    ) -> list[float]:
        """Σ weight·loss.

        ``ahead`` are questions (name, argument, …) that are likely to be next, and ``then`` what
        comes next one after the other, unless the fit ends, for those to whom they can be put at
        the same time.
        """
        ...

    def upper(self, at: Scores, low: Any, errors: Any) -> list[float]:
        """At least Σ weight·loss, of scores that are off by ``errors`` at most.

        ``low`` are further digits of the scores, if there are any.
        """
        ...

    def active_weights(self, at: Scores) -> list[np.ndarray]:
        """Weights of the rows inside the margin (+, −) and at the kink (+, −)."""
        ...

    def fill(self, at: Scores, positive: float | None = None, negative: float = 0.0) -> None:
        """Fill in the coefficients; rows at the kink count in part if the parts are given."""
        ...

    def set_coef(self, coef: np.ndarray) -> None:
        """Take coefficients from elsewhere."""
        ...

    def offset(self) -> list[float]:
        """Offset of the plane with the coefficients."""
        ...

    def weigh(self) -> list[np.ndarray]:
        """Sums of the positive and of minus the negative coefficients."""
        ...

    def scale(self, sign: float, factor: float) -> None:
        """Multiply the coefficients of one sign."""
        ...

    def slope(self, start: Any, end: Any) -> list[float]:
        """Derivative in the direction from start to end of the plane with the coefficients."""
        ...

    def bias_derivatives(self, at: Scores) -> list[np.ndarray]:
        """First and second derivative in the bias."""
        ...

    def line(self, start: Scores, end: Scores, k: float) -> list[np.ndarray]:
        """Value and derivative at start + k(end − start)."""
        ...

    def line_and_bias(self, start: Any, end: Any, points: Points) -> list[np.ndarray]:
        """Value and derivatives at start + k(end − start) + bias, by (k, bias) of ``points``."""
        ...

    def profile_bias(
        self, scores: Any, bins: BiasBins, then: Sequence[Question] = ()
    ) -> np.ndarray:
        """Weights of both classes and weighted kinks by bin; ``then`` as for ``value``."""
        ...

    def fill_band(self, scores: Any, band: Band) -> None:
        """Fill in the coefficients of a plane that is balanced by the rows in a bin."""
        ...

    def profile_line(self, start: Scores, end: Scores, octaves: Octaves) -> np.ndarray:
        """Sums of the jumps of the derivative along a line by bin, and its value at 0+ at last."""
        ...

    def list_line(
        self, start: Scores, end: Scores, first: float, last: float, grid: Grid
    ) -> list[Listed]:
        """List where below ``last`` and by how much the derivative along a line jumps."""
        ...

    def list_bias(self, at: Scores, first: float, last: float, grid: Grid) -> list[Listed]:
        """List where in [first, last) and by how much the derivative in the bias jumps."""
        ...


class RowPasses:
    """Passes over rows that are here.

    Parameters
    ----------
    targets : Targets
    risk : Risk
    slices : sequence of slice
        The rows, in chunks.
    executor : Executor
        Runs over the chunks.
    sums : ChunkSums
        How long sums are added up.
    """

    def __init__(
        self,
        targets: Targets,
        risk: Risk,
        slices: Sequence[slice],
        executor: Executor,
        sums: ChunkSums,
    ) -> None:
        rows = len(targets.weights)
        self._risk: Any = risk
        self._slices = slices
        self._targets = [targets[rows] for rows in slices]
        self._executor = executor
        self._sums = sums
        self._shape = (rows,) if risk.outputs is None else (rows, risk.outputs)
        self.coef = np.empty(self._shape)
        if isinstance(risk, HingeRisk):
            self._positions, self._jumps = np.empty(rows), np.empty(rows)
        self._listed = ListedSteps([], [], executor)

    def _run(self, function: Callable[[slice, Targets], Result]) -> list[Result]:
        return self._executor.run(
            lambda k: function(self._slices[k], self._targets[k]), len(self._slices)
        )

    def new_scores(self) -> np.ndarray:
        return np.zeros(self._shape)

    def blend(self, start: np.ndarray, end: np.ndarray, k: float, into: np.ndarray) -> None:
        self._run(
            lambda rows, _: vectors.blend(
                start[rows].reshape(-1), end[rows].reshape(-1), k, into[rows].reshape(-1)
            )
        )

    def value(
        self, at: Scores, ahead: Sequence[Question] = (), then: Sequence[Question] = ()
    ) -> list[float]:
        return self._run(lambda rows, targets: self._risk.value(at[rows], targets))

    def upper(self, at: Scores, low: np.ndarray | None, errors: np.ndarray) -> list[float]:
        def part(rows: slice, targets: Targets) -> float:
            scores, error = at.values[rows], errors[rows]
            if at.bias:
                scores = scores + at.bias
                error = error + ROUNDING * np.abs(scores)
            return self._risk.upper(scores, 0.0 if low is None else low[rows], error, targets)

        return self._run(part)

    # -- planes ---------------------------------------------------------------

    def active_weights(self, at: Scores) -> list[np.ndarray]:
        return self._run(lambda rows, targets: self._risk.active_weights(at[rows], targets))

    def fill(self, at: Scores, positive: float | None = None, negative: float = 0.0) -> None:
        risk, coef = self._risk, self.coef
        if positive is None:
            self._run(lambda rows, targets: risk.coefficients(at[rows], targets, coef[rows]))
        else:
            self._run(
                lambda rows, targets: risk.split_coefficients(
                    at[rows], targets, positive, negative, coef[rows]
                )
            )

    def set_coef(self, coef: np.ndarray) -> None:
        self.coef[...] = coef

    def offset(self) -> list[float]:
        return self._run(lambda rows, targets: self._risk.offset(self.coef[rows], targets))

    def weigh(self) -> list[np.ndarray]:
        def sums(rows: slice, _: Targets) -> np.ndarray:
            coef = self.coef[rows]
            negative = np.minimum(coef, 0.0).sum()
            return np.array([coef.sum() - negative, -negative])

        return self._run(sums)

    def scale(self, sign: float, factor: float) -> None:
        def multiply(rows: slice, _: Targets) -> None:
            coef = self.coef[rows]
            coef[coef * sign > 0.0] *= factor

        self._run(multiply)

    def slope(self, start: np.ndarray, end: np.ndarray) -> list[float]:
        return self._run(
            lambda rows, _: float(np.einsum("i,i->", self.coef[rows], end[rows] - start[rows]))
        )

    # -- the bias and lines ---------------------------------------------------

    def bias_derivatives(self, at: Scores) -> list[np.ndarray]:
        assert isinstance(self._risk, SmoothRisk)
        risk = self._risk
        return self._run(lambda rows, targets: np.array(risk.bias_derivatives(at[rows], targets)))

    def line_and_bias(self, start: np.ndarray, end: np.ndarray, points: Points) -> list[np.ndarray]:
        assert isinstance(self._risk, SmoothRisk)
        risk = self._risk
        return self._run(
            lambda rows, targets: risk.line_and_bias(start[rows], end[rows], points, targets)
        )

    def line(self, start: Scores, end: Scores, k: float) -> list[np.ndarray]:
        return self._run(
            lambda rows, targets: np.array(self._risk.line(start[rows], end[rows], k, targets))
        )

    def profile_bias(
        self, scores: np.ndarray, bins: BiasBins, then: Sequence[Question] = ()
    ) -> np.ndarray:
        return self.bias_profiles(scores, bins)[0]

    def bias_profiles(self, scores: np.ndarray, bins: BiasBins) -> list[np.ndarray]:
        """As ``profile_bias``, of the nodes of the plan."""

        def work(rows: slice, targets: Targets) -> np.ndarray:
            profile = np.zeros((bias_bins.BINS + 2, 4))
            self._risk.bias_profile(scores[rows], targets, bins.low, bins.scale, profile)
            return profile

        return self._sums.add(self._run(work))

    def fill_band(self, scores: np.ndarray, band: Band) -> None:
        bins = (band.bins.low, band.bins.scale, bias_bins.BINS, band.number)
        self._run(
            lambda rows, targets: self._risk.band_coefficients(
                scores[rows], targets, bins, band.positive, band.negative, self.coef[rows]
            )
        )

    def profile_line(self, start: Scores, end: Scores, octaves: Octaves) -> np.ndarray:
        return self.line_profiles(start, end, octaves)[0]

    def line_profiles(self, start: Scores, end: Scores, octaves: Octaves) -> list[np.ndarray]:
        """As ``profile_line``, of the nodes of the plan."""

        def work(rows: slice, targets: Targets) -> np.ndarray:
            profile = np.zeros(BINS + 3)
            profile[-1] = self._risk.line_profile(
                start[rows], end[rows], targets, octaves.first, profile[:-1]
            )
            return profile

        return self._sums.add(self._run(work))

    def list_line(
        self, start: Scores, end: Scores, first: float, last: float, grid: Grid
    ) -> list[Listed]:
        return self._list(
            lambda rows, targets, at, by: self._risk.line_steps(
                start[rows], end[rows], targets, last, at, by
            ),
            grid,
        )

    def list_bias(self, at: Scores, first: float, last: float, grid: Grid) -> list[Listed]:
        return self._list(
            lambda rows, targets, positions, jumps: self._risk.bias_steps(
                at[rows], targets, first, last, positions, jumps
            ),
            grid,
        )

    def _list(
        self,
        steps: Callable[[slice, Targets, np.ndarray, np.ndarray], tuple[int, float]],
        grid: Grid,
    ) -> list[Listed]:
        def work(rows: slice, targets: Targets) -> tuple[int, Listed]:
            at, by = self._positions[rows], self._jumps[rows]
            count, below = steps(rows, targets, at, by)
            return count, Listed(below, grid.histogram(at[:count], by[:count]))

        answers = self._run(work)
        counted = [(rows, count) for rows, (count, _) in zip(self._slices, answers, strict=True)]
        self._listed = ListedSteps(
            [self._positions[rows][:count] for rows, count in counted],
            [self._jumps[rows][:count] for rows, count in counted],
            self._executor,
        )
        return [listed for _, listed in answers]

    def histogram(self, grid: Grid) -> list[np.ndarray]:
        return self._listed.histogram(grid)

    def keep(self, grid: Grid, number: int) -> list[int]:
        return self._listed.keep(grid, number)

    def steps(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return self._listed.steps()

    def least(self) -> list[float]:
        return self._listed.least()
