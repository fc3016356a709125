"""The linear oracle: turns a point w into a cut of the risk, and a line into its minimum.

    R(w) = risk of the scores <w, x_i> + c·w_0

over blocks of rows. c·w_0 is the regularised bias of the papers, a constant
feature that is never stored; an unregularised bias is the surface's affair.
A cut of R at w is (a, offset) with a = (1/W) Σ coef_i·x_i, where coef and offset
are the plane that touches the risk at the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..data import BlockedMatrix
from ..exec import Executor
from ..risks import Risk, Targets
from .point import Cut, Line, Point, Proof, squared_norm
from .products import Products, RowProducts, RowsElsewhere, worth_updates
from .row_surface import RowSurface
from .surface import Surface

Slack = Callable[[float, float], float]


def _w_shape(
    matrix: BlockedMatrix | RowsElsewhere, constant: float, outputs: int | None
) -> tuple[int, ...]:
    tail = () if outputs is None else (outputs,)
    return (matrix.shape[1] + (constant != 0.0), *tail)


class LinearOracle:
    """Cuts and lines for a linear model.

    Parameters
    ----------
    matrix : BlockedMatrix or RowsElsewhere
    surface : Surface
        The risk over the scores of the matrix's rows.
    constant : float, default=0
        Value of the constant feature behind the regularised bias; 0 for none.
    slack : callable, optional
        (objective of a point, C) → what the lower bound on the optimum of this problem may
        exceed that of the problem it stands for.
    products : Products, optional
        If they have been made already.
    """

    def __init__(
        self,
        matrix: BlockedMatrix | RowsElsewhere,
        surface: Surface,
        *,
        constant: float = 0.0,
        slack: Slack | None = None,
        products: Products | None = None,
    ) -> None:
        self._slack = slack
        self.matrix: Any = matrix
        self.surface = surface
        self.executor = surface.executor
        self.constant = constant
        self._w_shape = _w_shape(matrix, constant, surface.outputs)
        self._proving: tuple[Point, ...] | None = None  # room for errors, and for more digits
        updates = worth_updates(len(matrix.blocks), matrix.n_stored, self._w_shape)
        self._products: Products
        if products is not None:
            self._products = products
        elif isinstance(matrix, BlockedMatrix):
            self._products = RowProducts(matrix, self._w_shape, constant, surface.executor, updates)
        else:
            self._products = matrix.products(self._w_shape, constant, updates)

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
        self._products.scores(shaped, into.scores)
        self.surface.settle(into)

    def score(self, w: np.ndarray, out: np.ndarray) -> None:
        """out = X·w, with the constant feature."""
        self._products.scores(w.reshape(self._w_shape), out)

    def prove(self, w: np.ndarray, into: Point, tolerance: float) -> Proof:
        """Move ``into`` to w and prove upper bounds there: one product X·w.

        Every rounding error of the scores, of the losses and of their sum is bounded. If that comes
        to more than ``tolerance``, the scores are computed once more in twice the digits.
        """
        surface = self.surface
        into.w = w.reshape(self._w_shape)
        if self._proving is None:
            self._proving = tuple(surface.new_point(into.w) for _ in range(3))
        errors, low, high = self._proving
        self._products.bounded(into.w, into.scores, errors.scores)
        surface.settle(into)
        risk = surface.upper(into, None, errors.scores)
        if not risk - into.risk <= tolerance:
            self._products.precise(into.w, into.bias, high.scores, low.scores, errors.scores)
            better = surface.upper(high, low.scores, errors.scores)
            risk = better if math.isnan(risk) or better < risk else risk
        return Proof(risk, squared_norm(self.regularised(into.w)))

    def refresh(self, point: Point) -> None:
        """Compute a point anew from its w, and depend on nothing else that was before."""
        self.place(point)
        self.surface.settle_again(point)

    def forget_cuts(self) -> None:
        """Compute the next cut from all rows, whatever was computed before."""
        self._products.start_anew()

    def place(self, point: Point) -> None:
        """Compute the scores of a point from its w; bias and risk are known."""
        self._products.start_anew(forget=True)
        self._products.scores(point.w, point.scores)

    def state(self) -> dict[str, Any]:
        """Guesses of the surface. All else starts anew, here as in a run that goes on from it."""
        self._products.start_anew()
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

    def _cut_of(self, coef: Any, offset: float) -> Cut:
        total = self.surface.total
        a = self._products.gradient(coef)
        return Cut(a.reshape(-1) / total, offset / total)


class RowOracle(LinearOracle):
    """Cuts and lines for a linear model whose risk is a sum over rows.

    Parameters
    ----------
    matrix : BlockedMatrix or RowsElsewhere
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
        matrix: BlockedMatrix | RowsElsewhere,
        targets: Targets,
        risk: Risk,
        executor: Executor,
        *,
        constant: float = 0.0,
        free_bias: bool = False,
        slack: Slack | None = None,
    ) -> None:
        products = passes = None
        if not isinstance(matrix, BlockedMatrix):
            shape = _w_shape(matrix, constant, risk.outputs)
            updates = worth_updates(len(matrix.blocks), matrix.n_stored, shape)
            products = matrix.products(shape, constant, updates)
            passes = partial(matrix.passes, targets, risk)
        surface = RowSurface(
            targets,
            risk,
            executor,
            free_bias=free_bias,
            edges=matrix.part_rows,
            passes=passes,
        )
        super().__init__(matrix, surface, constant=constant, slack=slack, products=products)
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
