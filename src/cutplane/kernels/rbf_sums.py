"""Sums of Gaussian kernels, Σ_k coef_k·exp(−gamma·|x_k − z_j|²), without keeping any value.

This is for dense float32 rows. With up to NEAR features the exponents come from differences, which
lose no precision. With more features, terms with few non-zeros are packed, and take one pass over a
strip of columns per non-zero. For the other terms a product of matrices is faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..loops import kernel_sums as loops
from .points import DensePoints, squared_norms

LOG2_E = 1.4426950408889634
NEAR = loops.LANES
# Terms are packed if their non-zeros are at most this part of the features, or this many.
PACKED_PART, PACKED_COUNT = 0.6, 8
# Numbers of a strip of columns, which should stay in the second cache.
PANEL = 1 << 15
WIDEST, NARROWEST = 256, 64
SOME = 1000  # rows from which the share of zeros is estimated
# Columns that a thread works on at a time: fewer if there are few columns.
FEW, MANY = 256, 2048
# Rows and columns of a block of products.
BLOCK_ROWS, BLOCK_COLUMNS = 256, 512
# Squared norms and gamma up to this neither overflow nor underflow in float32.
MODERATE = 1e30
# Largest gamma·|x|² whose rounding is accepted: an error of 1e-5 in the exponent.
MOST_REACH = 1e-5 / float(np.finfo(np.float32).eps)


def origin_of(gamma: float, x: np.ndarray, part: float = 1.0) -> np.ndarray | None:
    """The origin for sums over these rows; None if float32 is not precise enough.

    It is the mean of the rows. If most numbers are 0 and float32 is precise enough without
    centring, it is 0, because centred rows would have no zeros that save work.

    Parameters
    ----------
    gamma : float
    x : ndarray
    part : float
        gamma·|x|² may be at most this part of MOST_REACH.
    """
    norms = squared_norms(x)
    largest = float(norms.max(initial=0.0))
    if not all(1.0 / MODERATE <= size <= MODERATE for size in (largest or 1.0, gamma)):
        return None
    centre = np.asarray(x.mean(axis=0), np.float64)
    if x.shape[1] <= NEAR:
        return centre
    some = x[:: max(1, len(x) // SOME)]
    few = np.count_nonzero(some) <= 0.5 * PACKED_PART * some.size
    if few and gamma * norms.max(initial=0.0) <= part * MOST_REACH:
        return np.zeros(x.shape[1])
    apart = norms - 2.0 * (x @ centre) + centre @ centre
    return centre if gamma * apart.max(initial=0.0) <= part * MOST_REACH else None


def sum_points(x: np.ndarray, origin: np.ndarray) -> DensePoints:
    """Rows as float32 points, from an origin."""
    x = x - origin if np.any(origin) else x
    if x.shape[1] <= NEAR:
        return DensePoints(x.astype(np.float32), np.zeros(len(x)), direct=True)
    return DensePoints(x.astype(np.float32), squared_norms(x))


@dataclass(frozen=True)
class RbfTerms:
    """The terms of some sums.

    Attributes
    ----------
    x : ndarray of float32, shape (terms, features)
        Near terms: rows times √scale, four features. Else rows times 2·scale; empty if packed.
    values, indices, starts : ndarray
        The same, packed; empty if not.
    own, coef : ndarray of float32, shape (terms,)
    groups : ndarray of int64, shape (terms,)
        The sum that each belongs to, ascending.
    scale : float
        gamma·log2(e).
    """

    x: np.ndarray
    values: np.ndarray
    indices: np.ndarray
    starts: np.ndarray
    own: np.ndarray
    coef: np.ndarray
    groups: np.ndarray
    scale: float

    @staticmethod
    def make(points: DensePoints, gamma: float, coef: np.ndarray, groups: np.ndarray) -> RbfTerms:
        """Terms coef·exp(−gamma·|x − z|²) of these points."""
        scale = gamma * LOG2_E
        x = points.x
        starts = np.zeros(0, np.int64)
        if points.direct:
            left = np.zeros((len(x), NEAR), np.float32)
            left[:, : x.shape[1]] = np.float32(math.sqrt(scale)) * x
        else:
            counts = np.empty(len(x), np.int64)
            loops.count_lanes(x, counts)
            most = len(x) * max(PACKED_COUNT, PACKED_PART * x.shape[1])
            if counts.sum() <= most and x.shape[1] * NARROWEST <= PANEL:
                starts = np.concatenate([[0], np.cumsum(counts)])
                left = np.zeros((0, x.shape[1]), np.float32)
            else:
                left = np.float32(2.0 * scale) * x
        size = int(starts[-1]) if len(starts) else 0
        values, indices = np.empty(size, np.float32), np.empty(size, np.int32)
        if len(starts):
            loops.pack_rows(x, np.float32(2.0 * scale), starts, values, indices)
        return RbfTerms(
            left,
            values,
            indices,
            starts,
            (scale * points.norms).astype(np.float32),
            coef.astype(np.float32),
            groups.astype(np.int64, copy=False),
            scale,
        )

    def sums(self, right: DensePoints, count: int, executor: Any) -> np.ndarray:
        """All sums at all rows of ``right``, in float64: shape (count, rows)."""
        out = np.zeros((count, len(right)))
        size = MANY if len(right) > 8 * MANY else FEW

        def chunk(k: int) -> None:
            self.add(right, k * size, min((k + 1) * size, len(right)), out)

        executor.run(chunk, -(-len(right) // size))
        return out

    def add(self, right: DensePoints, first: int, last: int, out: np.ndarray) -> None:
        """out[g, j] += sum g at row j of ``right``, first ≤ j < last."""
        if right.direct:
            root = np.float32(math.sqrt(self.scale))
            terms = (self.x, self.coef, self.groups)
            loops.add_near_32(*terms, right.x, root, WIDEST, first, last, out)
        elif len(self.starts):
            strip = max(NARROWEST, min(WIDEST, PANEL // right.x.shape[1] // 8 * 8))
            packed = (self.values, self.indices, self.starts, self.own, self.coef, self.groups)
            columns = (right.x, right.norms, self.scale, strip, first, last)
            loops.add_packed_32(*packed, *columns, out)
        else:
            self._add_products(right, first, last, out)

    def _add_products(self, right: DensePoints, first: int, last: int, out: np.ndarray) -> None:
        products = np.zeros((BLOCK_ROWS, BLOCK_COLUMNS), np.float32)
        base = np.zeros(BLOCK_COLUMNS, np.float32)
        for begin in range(first, last, BLOCK_COLUMNS):
            width = min(BLOCK_COLUMNS, last - begin)
            columns = right.x[begin : begin + width].T
            base[:width] = self.scale * right.norms[begin : begin + width]
            for top in range(0, len(self.x), BLOCK_ROWS):
                rows = slice(top, top + BLOCK_ROWS)
                block = products[: len(self.x[rows])]
                np.matmul(self.x[rows], columns, out=block[:, :width])
                terms = (self.own[rows], self.coef[rows], self.groups[rows])
                target = out[:, begin : begin + width]
                loops.add_products_32(block, *terms, base, width, target)
