"""The linear oracle: turns a point w into a cut of the risk, and a line into its minimum.

    R(w) = risk of the scores <w, x_i> + c·w_0

over blocks of rows. c·w_0 is the regularised bias of the papers, a constant
feature that is never stored; an unregularised bias is the surface's affair.
A cut of R at w is (a, offset) with a = (1/W) Σ coef_i·x_i, where coef and offset
are the plane that touches the risk at the scores.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..data import BlockedMatrix
from ..exec import Executor
from ..loops import vectors
from ..risks import Risk, Targets
from .point import Cut, Line, Point
from .row_surface import RowSurface
from .surface import Surface

Slack = Callable[[float, float], float]

# Stored numbers from which on it pays to bring cuts up to date. Below, sums that cancel exactly
# should stay exactly zero.
WORTH_UPDATES = 1 << 16
# Times that a block's part of a cut is brought up to date before it is computed anew.
MOST_UPDATES = 30


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
        self._slices = [matrix.slice(k) for k in range(len(matrix.blocks))]
        self._partials = np.zeros((len(matrix.blocks), *self._w_shape))
        self._last_coef = np.zeros(surface.shape)  # whose products the partials are
        self._changes = np.empty(surface.shape)
        self._updates = np.zeros(len(matrix.blocks), np.int64)  # since they were computed anew

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
        """Move ``into`` to w: one product X·w."""
        shaped = w.reshape(self._w_shape)
        into.w = shaped

        def scores(k: int) -> None:
            out = into.scores[self._slices[k]]
            self.matrix.blocks[k].scores(shaped, out)
            if self.constant:
                out += self.constant * shaped[-1]

        self.executor.run(scores, len(self._slices))
        self.surface.settle(into)

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
        def gradient(k: int) -> None:
            rows = coef[self._slices[k]]
            partial = self._partials[k]
            if not self._add_changes(k, rows, partial):
                partial[...] = 0.0
                self.matrix.blocks[k].add_gradient(rows, partial)
            if self.constant:
                partial[-1] = self.constant * rows.sum(axis=0)

        self.executor.run(gradient, len(self._slices))
        total = self.surface.total
        return Cut(self._partials.sum(axis=0).reshape(-1) / total, offset / total)

    def _add_changes(self, k: int, rows: np.ndarray, partial: np.ndarray) -> bool:
        """Bring a block's product up to date by the rows whose coefficient has changed.

        From one cut to the next the hinge's change in few rows. False if there are too many,
        or if it is time to start anew, so that rounding does not add up.
        """
        if self.matrix.numbers < WORTH_UPDATES:
            return False
        changes = self._changes[self._slices[k]]
        changed, active = vectors.take_changes(
            rows.reshape(-1), self._last_coef[self._slices[k]].reshape(-1), changes.reshape(-1)
        )
        self._updates[k] += 1
        if 2 * changed > active or self._updates[k] > MOST_UPDATES:
            self._updates[k] = 0
            return False
        self.matrix.blocks[k].add_gradient(changes, partial)
        return True


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
