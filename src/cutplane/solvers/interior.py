"""Interior point steps, for margins so hard that Newton's steps on the smoothed loss are blocked.

At the optimum every row has u in [low, high], the domain of ℓ*, and

    w + Σ C_i u_i y_i x_i = 0,   Σ C_i u_i y_i = 0 with a free bias,
    z_i − ℓ*'(u_i) = p_i − q_i,   p_i(high − u_i) = 0,   q_i(u_i − low) = 0,   p_i, q_i ≥ 0.

The method replaces 0 in the two products by μ > 0, and lets μ go to 0. Newton's method solves these
equations with u, p and q in the interior. A row contributes C_i/(ℓ*'' + p/(high − u) + q/(u − low))
times x xᵀ to the matrix. All rows contribute to every step, so about 20 steps are enough for any C
(Ferris & Munson, "Interior-point methods for massive support vector machines", 2002). But every
step is expensive, because its matrix is a sum over all rows. The method works for losses whose ℓ*
is smooth and quadratic between finite ends. A step is Mehrotra's: a first direction, towards μ = 0,
shows how far μ may fall and how large the products of changes are. A second direction with the same
matrix takes both into account.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..loops import interior as loops
from ..losses import direction
from ..objective import Point, RowOracle
from ..objective.linear import RowProducts
from . import constants
from .curvature import Factor, matrix_cost

# How far to go to where the first row would leave the inside.
REACH = 0.99


def interior_cost(oracle: RowOracle, sums: int = 1) -> float:
    """Products that the method is expected to take; infinite where it cannot be used.

    A step has a matrix of all rows, and six passes: for two directions and their scores, for w as
    the dual point has it, and for a cut. The matrix is a sum over rows, and counts ``sums`` times.
    """
    if oracle.risk.loss.conjugate_slope is None:
        return math.inf
    rows = matrix_cost(oracle, sums * len(oracle.matrix))
    return constants.STEPS * (6.0 * oracle.matrix.n_stored + rows)


class InteriorPoint:
    """A point inside, and steps towards the optimum.

    Attributes
    ----------
    point : Point
        w, its scores and the bias; the risk there.
    coef : ndarray, shape (rows,)
        The dual point as coefficients of the risk's sum.
    """

    def __init__(self, oracle: RowOracle, C: float, loss: Any) -> None:
        self._oracle = oracle
        self._loss = loss
        self._scale = C / oracle.targets.total
        rows = len(oracle.matrix)
        self.point: Point = oracle.new_point()
        self._dual = np.empty((3, rows))  # u, p, q
        self._moves = np.zeros((rows, 3))
        self._bends, self._ways, self._side = np.empty(rows), np.empty(rows), np.empty(rows)
        self._products = RowProducts(
            oracle.matrix, self.point.w.shape, oracle.constant, oracle.executor, updates=False
        )
        self._factor = Factor(oracle)
        loops.begin(loss, *loss.domain, *self._dual)
        self.coef = oracle.targets.weights * self._dual[0] * direction(loss, oracle.targets.labels)

    def step(self) -> float:
        """One step; returns its length."""
        w = self.point.w
        residual = self._sums(self.coef) * self._scale
        residual[: len(w)] += w
        self._terms(0.0)
        self._factor.prepare(self._bends * self._scale)
        self._solve(residual)
        longest, now, first, second = self._move(0.0)
        count = np.count_nonzero(self._oracle.targets.weights) or 1
        count *= 1 + np.isfinite(self._loss.domain[0])
        then = now + longest * (first + longest * second)
        target = (max(then, 0.0) / now) ** 3 * now / count
        self._terms(target)
        way = self._solve(residual)
        step = REACH * self._move(target)[0]
        self._take(step, way)
        return step

    def _sums(self, coef: np.ndarray) -> np.ndarray:
        """Xᵀ·coef, with the sum of the coefficients for a free bias."""
        sums = self._products.gradient(coef)
        return np.append(sums, coef.sum()) if self._oracle.free_bias else sums.copy()

    def _solve(self, residual: np.ndarray) -> np.ndarray:
        """The direction in w and the bias; its scores are the ways."""
        way = self._factor.solve(residual - self._sums(self._side) * self._scale)
        size = len(self.point.w)
        self._oracle.score(way[:size], self._ways)
        if self._oracle.free_bias:
            self._ways += way[size]
        return way

    def _rows(self, rows: slice) -> tuple[Any, ...]:
        """What the equations of some rows depend on."""
        loss, point = self._loss, self.point
        here = point.scores[rows], point.bias, self._oracle.targets.labels[rows]
        inside = *self._dual[:, rows], self._moves[rows], *loss.domain
        return loss, loss.conjugate_curvature, *here, *inside

    def _terms(self, target: float) -> None:
        weights = self._oracle.targets.weights

        def part(rows: slice) -> None:
            out = self._bends[rows], self._side[rows]
            loops.terms(*self._rows(rows), target, weights[rows], *out)

        if target == 0.0:
            self._moves[...] = 0.0
        self._oracle.score_risk.run(part)

    def _move(self, target: float) -> tuple[float, float, float, float]:
        def part(rows: slice) -> np.ndarray:
            return np.array(loops.move(*self._rows(rows), target, self._ways[rows]))

        parts = self._oracle.score_risk.run(part)
        _, now, first, second = sum(parts)
        return float(min(part[0] for part in parts)), float(now), float(first), float(second)

    def _take(self, step: float, way: np.ndarray) -> None:
        targets, point = self._oracle.targets, self.point
        size = len(point.w)
        if self._oracle.free_bias:
            self._ways -= way[size]  # the scores are without it
            point.bias += step * float(way[size])
        point.w = point.w + step * way[:size]

        def part(rows: slice) -> float:
            return loops.take(
                self._loss,
                point.scores[rows],
                self._ways[rows],
                point.bias,
                step,
                targets.labels[rows],
                targets.weights[rows],
                *self._dual[:, rows],
                self._moves[rows],
                self.coef[rows],
            )

        point.risk = float(sum(self._oracle.score_risk.run(part))) / targets.total
