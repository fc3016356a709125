"""The linear oracle: turns a point w into a cut of the risk, and a line into its minimum.

    R(w) = risk of the scores <w, x_i> + c·w_0

over blocks of rows. c·w_0 is the regularised bias of the papers, a constant
feature that is never stored; an unregularised bias is the surface's affair.
A cut of R at w is (a, offset) with a = (1/W) Σ coef_i·x_i, where coef and offset
are the plane that touches the risk at the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..data import BlockedMatrix, BlockSum
from ..data.blocks import Block
from ..exec import Executor
from ..risks import Risk, Targets
from .changes import ChangedRows
from .point import Cut, Line, Point
from .row_surface import RowSurface
from .surface import Surface

Slack = Callable[[float, float], float]

# Stored numbers from which on it pays to bring cuts up to date. Below, sums that cancel exactly
# should stay exactly zero.
WORTH_UPDATES = 1 << 16


class LinearOracle:
    """Cuts and lines for a linear model.

    Parameters
    ----------
    matrix : BlockedMatrix
    surface : Surface
        The risk over the scores of the matrix's rows.
    constant : float, default=0
        Value of the constant feature behind the regularised bias; 0 for none.
    slack : callable, optional
        (objective of a point, C) → what the lower bound on the optimum of this problem may
        exceed that of the problem it stands for.
    """

    def __init__(
        self,
        matrix: BlockedMatrix,
        surface: Surface,
        *,
        constant: float = 0.0,
        slack: Slack | None = None,
    ) -> None:
        self._slack = slack
        self.matrix = matrix
        self.surface = surface
        self.executor = surface.executor
        self.constant = constant
        tail = () if surface.outputs is None else (surface.outputs,)
        self._w_shape = (matrix.shape[1] + (constant != 0.0), *tail)
        self._gradient = BlockSum(matrix, self._w_shape)
        updates = self._gradient.kept and matrix.numbers >= WORTH_UPDATES
        self._changes = ChangedRows(matrix, surface.shape) if updates else None

    @property
    def dimension(self) -> int:
        """Length of w as a flat vector."""
        return int(np.prod(self._w_shape))

    def regularised(self, w: np.ndarray) -> np.ndarray:
        """The part of w whose square counts in the objective of the user's problem, flat."""
        # With a slack the constant feature stands for a free bias.
        return (w if self._slack is None else w[:-1]).reshape(-1)

    def slack(self, primal: float, C: float) -> float:
        """What a lower bound must be taken down by to hold for the user's problem."""
        return 0.0 if self._slack is None else self._slack(primal, C)

    def new_point(self) -> Point:
        """The point w = 0, not evaluated."""
        return self.surface.new_point(np.zeros(self._w_shape))

    def evaluate(self, w: np.ndarray, into: Point) -> None:
        """Move ``into`` to w: one product X·w, or none at 0."""
        shaped = w.reshape(self._w_shape)
        into.w = shaped
        if not np.any(shaped):
            into.scores[...] = 0.0
            self.surface.settle(into)
            return

        def scores(k: int, block: Block) -> None:
            out = into.scores[self.matrix.slice(k)]
            block.scores(shaped, out)
            if self.constant:
                out += self.constant * shaped[-1]

        self.matrix.run(scores, self.executor)
        self.surface.settle(into)

    def state(self) -> dict[str, Any]:
        """Guesses of the surface. All else starts anew, here as in a run that goes on from it."""
        if self._changes is not None:
            self._changes.start_anew()
        return self.surface.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        self.surface.restore(state)

    def blend(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move ``into`` to start + k(end − start), without reading the data."""
        self.surface.blend(start, end, k, into)

    def descend(self, line: Line) -> float:
        """Move the start of a line to the minimum on it; returns its k."""
        return self.surface.descend(line)

    def cut(self, start: Point, end: Point | None = None, k: float = 0.0) -> Cut:
        """The cut at start, or at start + k(end − start): one product Xᵀ·coef."""
        point = start if end is None else self.surface.between(start, end, k)
        return self._cut_of(*self.surface.coefficients(point))

    def _cut_of(self, coef: np.ndarray, offset: float) -> Cut:
        changes = self._changes

        def gradient(k: int, block: Block, partial: np.ndarray) -> None:
            rows = coef[self.matrix.slice(k)]
            if changes is None or not changes.add(k, rows, block, partial):
                partial[...] = 0.0
                block.add_gradient(rows, partial)
            if self.constant:
                partial[-1] = self.constant * rows.sum(axis=0)

        total = self.surface.total
        a = self._gradient.run(gradient, self.executor)
        return Cut(a.reshape(-1) / total, offset / total)


class RowOracle(LinearOracle):
    """Cuts and lines for a linear model whose risk is a sum over rows.

    Parameters
    ----------
    matrix : BlockedMatrix
    targets : Targets
    risk : Risk
    executor : Executor
    constant : float, default=0
        Value of the constant feature behind the regularised bias; 0 for none.
    free_bias : bool, default=False
        Minimise over an unregularised bias.
    slack : callable, optional
        As for every linear oracle.
    """

    surface: RowSurface

    def __init__(
        self,
        matrix: BlockedMatrix,
        targets: Targets,
        risk: Risk,
        executor: Executor,
        *,
        constant: float = 0.0,
        free_bias: bool = False,
        slack: Slack | None = None,
    ) -> None:
        surface = RowSurface(targets, risk, executor, free_bias=free_bias)
        super().__init__(matrix, surface, constant=constant, slack=slack)
        self.targets = targets
        self.risk = risk
        self.free_bias = free_bias

    def dual_cut(self, coef: np.ndarray) -> Cut:
        """The cut from any dual point.

        Parameters
        ----------
        coef : ndarray, shape of the scores
            Per row, weight times a number in the domain of the loss's
            conjugate; for the hinge −y·weight·π with 0 ≤ π ≤ 1.
        """
        return self._cut_of(*self.surface.dual_plane(coef))
