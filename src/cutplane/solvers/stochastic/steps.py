"""Stochastic steps over rows: their settings, and the point that they move.

The kernels, and the formula of a step, are in ``loops/stochastic.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.blocks import CSRBlock
from ...loops import stochastic as loops
from ...objective import RowOracle
from .schedules import Schedule
from .shuffled_rows import Rows


def _loss_of(oracle: RowOracle) -> Any:
    """The loss of a problem that has stochastic steps."""
    loss = getattr(oracle.risk, "loss", None)
    if loss is None or loss.reach is None:
        raise TypeError(f"{oracle.risk!r} has no stochastic steps: a loss with a reach has")
    return loss


@dataclass(frozen=True)
class Steps:
    """What a step depends on besides the row; symbols as in the kernels."""

    loss: Any
    decay: float
    constant: float
    bias_rate: float
    squared_radius: float
    capped: bool

    @classmethod
    def make(cls, oracle: RowOracle, C: float, schedule: Schedule) -> Steps:
        """The steps of a schedule on the oracle's problem."""
        loss = _loss_of(oracle)
        # At the optimum λ|w|² is the mean of −z_i·loss'(z_i), so |w|² ≤ reach/λ.
        return cls(
            loss=loss,
            decay=1.0 / C,
            constant=float(oracle.constant),
            bias_rate=schedule.bias_rate if oracle.free_bias else 0.0,
            squared_radius=loss.reach * C if schedule.projected else math.inf,
            capped=math.isinf(loss.domain[0]),
        )


class StochasticSteps:
    """A point w that begins at 0 and takes a step at every row that it visits.

    Parameters
    ----------
    steps : Steps
    dimension : int
        Length of w.
    first_step : float
        t₀: steps counted before the first.
    """

    def __init__(self, steps: Steps, dimension: int, first_step: float) -> None:
        self.steps = steps
        self.w = np.zeros(dimension)
        self._state = np.array([first_step, 0.0])

    @property
    def bias(self) -> float:
        """The unregularised bias; 0 if there is none."""
        return float(self._state[loops.BIAS])

    def visit(self, rows: Rows, order: np.ndarray, coef: np.ndarray) -> None:
        """Take a step at each of the rows in ``order``.

        ``coef`` gets the derivative of the loss in the score at every row visited,
        as far as the step used it: a point of the conjugate's domain.
        """
        steps, block = self.steps, rows.block
        if isinstance(block, CSRBlock):
            values, indices, starts = block.values, block.indices, block.starts
        else:
            values, indices = block.x.reshape(-1), None
            starts = np.arange(block.rows + 1) * block.x.shape[1]
        loops.visit(
            values,
            indices,
            starts,
            order,
            rows.labels,
            rows.weights,
            steps.loss,
            steps.decay,
            steps.constant,
            steps.bias_rate,
            steps.squared_radius,
            steps.capped,
            self.w,
            self._state,
            coef,
        )
