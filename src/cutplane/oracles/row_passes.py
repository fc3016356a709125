"""Passes over the scores of rows: everything a surface of row losses asks.

An answer has one entry per chunk of rows, in their order, and the surface adds them up in that
order. Arguments and answers are small, except for the scores themselves, which only those who
hold the rows look into: so the same questions can be put to the rows here, or to rows elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ..exec import Executor
from ..loops import vectors
from ..loops.bounded import ROUNDING
from ..risks import Risk, Scores, Targets

Result = TypeVar("Result")


def in_order(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of arrays, from the first to the last."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


class Passes(Protocol):
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

    def value(self, at: Scores) -> list[float]:
        """Σ weight·loss."""
        ...

    def line_slopes(self, start: Scores, end: Scores, steps: np.ndarray) -> list[np.ndarray]:
        """Derivatives in k at start + k(end − start), for several k."""
        ...

    def bias_slopes(self, scores: Any, biases: np.ndarray) -> list[np.ndarray]:
        """Derivatives in the bias, at several."""
        ...

    def fill(self, scores: Any, low: float, high: float, part: float) -> None:
        """Fill in coefficients: ``1 − part`` of those at the bias ``low``, ``part`` of the other's.

        Any such mixture is the plane of a cut.
        """
        ...

    def upper(self, at: Scores, low: Any, errors: Any) -> list[float]:
        """At least Σ weight·loss, of scores that are off by ``errors`` at most.

        ``low`` are further digits of the scores, if there are any.
        """
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
    """

    def __init__(
        self, targets: Targets, risk: Risk, slices: Sequence[slice], executor: Executor
    ) -> None:
        rows = len(targets.weights)
        self._risk = risk
        self._slices = slices
        self._targets = [targets[rows] for rows in slices]
        self._executor = executor
        self._shape = (rows,) if risk.outputs is None else (rows, risk.outputs)
        self.coef = np.empty(self._shape)

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

    def value(self, at: Scores) -> list[float]:
        return self._run(lambda rows, targets: self._risk.value(at[rows], targets))

    def upper(self, at: Scores, low: np.ndarray | None, errors: np.ndarray) -> list[float]:
        def part(rows: slice, targets: Targets) -> float:
            scores, error = at.values[rows], errors[rows]
            if at.bias:
                scores = scores + at.bias
                error = error + ROUNDING * np.abs(scores)
            return self._risk.upper(scores, 0.0 if low is None else low[rows], error, targets)

        return self._run(part)

    def line_slopes(self, start: Scores, end: Scores, steps: np.ndarray) -> list[np.ndarray]:
        return self._run(
            lambda rows, targets: self._risk.line_slopes(start[rows], end[rows], steps, targets)
        )

    def bias_slopes(self, scores: np.ndarray, biases: np.ndarray) -> list[np.ndarray]:
        return self._run(
            lambda rows, targets: self._risk.bias_slopes(scores[rows], biases, targets)
        )

    def fill(self, scores: np.ndarray, low: float, high: float, part: float) -> None:
        self._run(
            lambda rows, targets: self._risk.coefficients(
                scores[rows], low, high, part, targets, self.coef[rows]
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
