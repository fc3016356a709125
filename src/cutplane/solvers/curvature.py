"""Newton's directions: solutions of (I + Σ bend_i·x_i x_iᵀ)·d = −g.

The constant feature or the free bias is the last entry of d; a free bias has no 1 in the matrix.

A ``Factor`` has the Cholesky factor of the matrix, which is too expensive with many features. Then
the logistic loss gets its directions from ``ConjugateGradients``, which need only products with the
rows. Once a direction has taken as much work as a factor would take, the solver uses a factor.
Losses with a ``conjugate_curvature`` need no conjugate gradients here: descent uses them, on fewer
rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from ..data.blocks import Block, ColumnMajorBlock, CSRBlock, RowMajorBlock
from ..data.sums import BlockSum
from ..exec import SerialExecutor
from ..loops import smoothed as loops
from ..objective import RowOracle
from . import constants

# Times that the matrix is brought up to date before it is computed anew.
MOST_UPDATES = 30
# A step on a loss with kinks that counts as short.
SHORT = 0.5
# Bytes of the matrix at most.
MATRIX_BYTES = 1 << 29
# A dense product of matrices, or a factor, runs so many times as fast as a loop over rows.
DENSE_SPEED = 8.0
# Numbers gathered, or products of a compiled call, at a time.
PIECE_NUMBERS, PIECE_WORK = 1 << 18, 1 << 26
# Parts of the matrix that threads compute, and products in each of them per number of its own.
MOST_PARTS, PART_WORK = 8, 16


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """<a, b>, the same bits for any number of threads."""
    return float(np.einsum("i,i->", a, b))


def row_length(oracle: RowOracle) -> float:
    """Numbers in a row, the mean over all numbers: long rows count by their length."""
    matrix = oracle.matrix
    if not isinstance(matrix.blocks[0], CSRBlock):
        return float(matrix.shape[1])
    known = matrix.facts.get("row length")
    if known is None:

        def squares(k: int, block: CSRBlock) -> float:
            lengths = np.diff(block.starts)
            return float(np.einsum("i,i->", lengths, lengths))

        known = sum(matrix.run(squares, SerialExecutor())) / max(1, matrix.n_stored)
        matrix.facts["row length"] = known
    return float(known)


def factor_cost(oracle: RowOracle) -> float:
    """Products that a matrix and its factor are expected to take; infinite for too large ones."""
    rows, features = oracle.matrix.shape
    sample = constants.SAMPLE * max(features + 1, rows / max(1.0, row_length(oracle)))
    return matrix_cost(oracle, min(rows, sample))


def matrix_cost(oracle: RowOracle, rows: float) -> float:
    """Products that a sum over so many rows and its factor take; infinite for too large ones."""
    size = oracle.matrix.shape[1] + 1
    if 8 * size * size > MATRIX_BYTES:
        return math.inf
    faster = 1.0 if isinstance(oracle.matrix.blocks[0], CSRBlock) else DENSE_SPEED
    return 0.5 * rows * row_length(oracle) ** 2 / faster + size**3 / 3.0 / DENSE_SPEED


def is_piecewise_quadratic(loss: Any) -> bool:
    """Whether bends of the loss, or of the smoothed loss, change at kinks only."""
    return loss.curvature is None or loss.conjugate_curvature is not None


def needs_no_factor(oracle: RowOracle) -> bool:
    """Whether conjugate gradients may give the directions; on disk they would read too often."""
    return oracle.matrix.whole is not None and not is_piecewise_quadratic(oracle.risk.loss)


def make_directions(
    oracle: RowOracle, out_of_time: Callable[[], bool]
) -> Factor | ConjugateGradients:
    """The way to directions to begin with."""
    most = int(min(factor_cost(oracle) / (2.0 * oracle.matrix.n_stored + 1.0), 2.0**31))
    if needs_no_factor(oracle) and most >= 1:
        return ConjugateGradients(oracle, out_of_time, most)
    return Factor(oracle)


class ConjugateGradients:
    """Directions by conjugate gradients, with the matrix's diagonal as preconditioner.

    A free bias is eliminated: with it the equation for w has centred rows, and fewer iterations do.

    Parameters
    ----------
    oracle : RowOracle
    out_of_time : callable
        Asked after every product; a direction that is not done is still one of descent.
    most : int
        Iterations that take as much work as a factor. A direction takes no more, and the next one
        comes from a factor then.
    """

    def __init__(self, oracle: RowOracle, out_of_time: Callable[[], bool], most: int) -> None:
        self._oracle = oracle
        self._out_of_time = out_of_time
        self._most, self._dear = most, False
        rows = len(oracle.matrix)
        self._ways, self._scores = np.empty(rows), np.empty(rows)
        self._products = BlockSum(oracle.matrix, (oracle.dimension,))
        self._moments = BlockSum(oracle.matrix, (2, oracle.matrix.shape[1]))

    def prepare(
        self, bends: np.ndarray, sample: bool = False, near: bool = False
    ) -> Factor | ConjugateGradients:
        """Take the bends and find the diagonal; there is no sample of rows here.

        Returns what gives the direction: this, or a factor if that is the cheaper way.
        """
        if self._dear:
            return Factor(self._oracle).prepare(bends, sample, near)
        self._bends = bends
        matrix, constant = self._oracle.matrix, self._oracle.constant

        def sums(k: int, block: Block) -> None:
            own, out = bends[matrix.slice(k)], self._moments.array(k)
            out[...] = 0.0
            if isinstance(block, RowMajorBlock):
                loops.dense_add_moments(block.x, own, *out)
                return
            if self._oracle.free_bias:
                block.add_gradient(own, out[0])
            if isinstance(block, ColumnMajorBlock):
                x = block.xt[:, block.first : block.first + block.rows]
                np.einsum("ji,ji,i->j", x, x, own, dtype=np.float64, out=out[1])
            else:
                loops.add_diagonal(*block.arrays(), own, out[1])

        self._total = float(bends.sum())
        moments = self._moments.run(sums, self._oracle.executor)[0]
        self._first, self._diagonal = moments[0].copy(), 1.0 + moments[1]
        if constant:
            self._diagonal = np.append(self._diagonal, 1.0 + constant**2 * self._total)
        return self

    def judge(self, step: float, done: bool) -> None:
        """There is no sample of rows here that could mislead."""

    def solve(self, gradient: np.ndarray, enough: float = 0.0) -> np.ndarray:
        """The direction for a gradient.

        The residual is what a full step leaves of the gradient, but for what is not quadratic, and
        half its square what it leaves of the gap. If that is ``enough`` the direction is done.
        """
        bias = 0.0
        residual = -gradient[: self._oracle.dimension]
        if self._oracle.free_bias and self._total > 0.0:
            bias = -float(gradient[-1]) / self._total
            if bias:
                residual = residual - bias * self._first
        self._scores[:] = bias
        x = np.zeros_like(residual)
        direction = residual / self._diagonal
        size = dot(residual, direction)
        little = constants.LITTLE**2 * size
        for count in range(len(gradient)):
            if size <= little or 0.5 * dot(residual, residual) <= enough or self._out_of_time():
                break
            if count == self._most:
                self._dear = True
                break
            change, mean = self._times(direction)
            bend = dot(direction, change)
            if not bend > 0.0:
                break
            x += (size / bend) * direction
            self._scores += (size / bend) * self._ways
            bias -= (size / bend) * mean
            residual = residual - (size / bend) * change
            before, size = size, dot(residual, residual / self._diagonal)
            direction = residual / self._diagonal + (size / before) * direction
        self.exact = 0.5 * dot(residual, residual) <= enough
        return np.append(x, bias) if self._oracle.free_bias else x

    def score(self, way: np.ndarray, out: np.ndarray) -> None:
        """The scores of the direction that has been found last, with its bias."""
        out[:] = self._scores

    def _times(self, direction: np.ndarray) -> tuple[np.ndarray, float]:
        """The matrix times a direction, whose bias is the best one: minus the mean of its scores.

        Returns that mean, too, in which a row counts by its bend.
        """
        matrix, constant, mean = self._oracle.matrix, self._oracle.constant, 0.0
        if self._oracle.free_bias and self._total > 0.0:
            mean = dot(self._first, direction) / self._total
        offset = constant * direction[-1] if constant else -mean

        def product(k: int, block: Block) -> None:
            rows, out = matrix.slice(k), self._products.array(k)
            bends, ways = self._bends[rows], self._ways[rows]
            out[...] = 0.0
            if isinstance(block, RowMajorBlock):
                loops.dense_add_product(block.x, direction, offset, bends, ways, out)
            else:
                block.scores(direction, ways)
                ways += offset
                block.add_gradient(bends * ways, out)
            if constant:
                out[-1] = constant * dot(bends, ways)

        return direction + self._products.run(product, self._oracle.executor)[0], mean


class Factor:
    """Directions from the Cholesky factor of the matrix.

    Parameters
    ----------
    oracle : RowOracle
        Where the loss is piecewise quadratic the bends of most rows change by the same factor from
        step to step, and the matrix is brought up to date. Elsewhere every sample is a new one.

    Attributes
    ----------
    work : float
        Products that all matrices and factors took.
    """

    def __init__(self, oracle: RowOracle) -> None:
        self._kinks = oracle.risk.loss.curvature is None
        self._steady = is_piecewise_quadratic(oracle.risk.loss)
        self._oracle = oracle
        matrix = oracle.matrix
        self._constant = 1.0 if oracle.free_bias else oracle.constant
        self._size = matrix.shape[1] + (self._constant != 0.0)
        self._length = row_length(oracle)
        affordable = len(matrix) / max(1.0, self._length)
        # With kinks there are more steps, and fewer rows have a bend.
        if not self._kinks and not isinstance(matrix.blocks[0], CSRBlock):
            affordable *= DENSE_SPEED
        self._enough = constants.SAMPLE * max(self._size, affordable)
        self._rng = np.random.default_rng(0)
        self._ranks: np.ndarray = np.empty(0, np.float32)
        self._kept: tuple[np.ndarray, np.ndarray] | None = None  # the last matrix and its bends
        self._updates = 0
        self.work = self._last_work = 0.0
        self._in_vain = 0.0  # work of short steps with samples of this size
        # The matrix, then a sum for every part but the first one. To have new ones in every step
        # takes as long as to fill them.
        self._sums: list[np.ndarray] = []

    def prepare(self, bends: np.ndarray, sample: bool = False, near: bool = False) -> Factor:
        """Factorise the matrix; with ``sample`` a sample may stand for many rows.

        ``near`` tells that the bends are the last ones but for few rows.
        """
        matrix = self._matrix(bends, sample, near)
        self._diagonal = np.einsum("ii->i", matrix).copy()
        diagonal = np.einsum("ii->i", matrix)
        free = self._oracle.free_bias
        # Where C is huge, what rounding leaves of an entry may be more than 1. It is in proportion
        # to the entry, so that features may have any units.
        diagonal *= 1.0 + np.finfo(float).eps * self._size
        diagonal[: self._size - free] += 1.0
        if free and diagonal[-1] <= 0.0:  # it moves no row
            diagonal[-1] = 1.0
        # The lower triangle of rows is the upper one of columns, which LAPACK takes as it is.
        self._factor, self._failed = scipy.linalg.lapack.dpotrf(
            matrix.T, lower=0, overwrite_a=1, clean=0
        )
        return self

    def judge(self, step: float, done: bool) -> None:
        """Learn how long a step along the last direction was, and whether only a bound is missing.

        A sample may mislead. If none of its rows has some feature, the direction is far too long in
        that feature, and only a tiny step is possible. The next sample then has twice as many rows.
        For a loss with kinks one short step says nothing, because kinks shorten steps as well. Its
        sample is doubled once short steps have taken as much work as the larger sum would take. The
        bound of the point that a step aims at takes the matrix of all rows, to which larger samples
        lead.
        """
        if self._kinks and not self.exact and step < SHORT:
            self._in_vain += self._last_work + 3.0 * self._oracle.matrix.n_stored
            misled = self._in_vain >= matrix_cost(self._oracle, 2.0 * self._enough)
        else:
            misled = not self._kinks and step < constants.LITTLE
        if done or misled:
            self._enough *= 2.0
            self._in_vain = 0.0

    def solve(self, gradient: np.ndarray, enough: float = 0.0) -> np.ndarray:
        """The direction for a gradient, exact whatever is ``enough``; zeros if there is none."""
        if self._failed:
            return -gradient / np.maximum(self._diagonal, 1.0)
        way, _ = scipy.linalg.lapack.dpotrs(self._factor, -gradient, lower=0)
        return way if np.all(np.isfinite(way)) else np.zeros_like(gradient)

    def score(self, way: np.ndarray, out: np.ndarray) -> None:
        """The scores of a direction, with its bias."""
        free = self._oracle.free_bias
        self._oracle.score(way[: len(way) - free], out)
        if free:
            out += way[-1]

    def _matrix(self, bends: np.ndarray, sample: bool, near: bool) -> np.ndarray:
        """Σ bend·x xᵀ, its lower triangle at least, from a sample of rows where they are many."""
        rows = np.flatnonzero(bends)
        self.exact = not sample or len(rows) <= 2 * self._enough
        if not self.exact:
            # Rows are drawn by their bends, which are then divided by the chance.
            chance = np.minimum(bends[rows] * (self._enough / bends.sum()), 1.0)
            if not (self._steady and len(self._ranks)):
                self._ranks = self._rng.random(len(bends), np.float32)
            drawn = self._ranks[rows] < chance
            rows, chance = rows[drawn], chance[drawn]
            drawn_bends = np.zeros_like(bends)
            drawn_bends[rows] = bends[rows] / chance
            bends = drawn_bends
        if not (sample or near):
            return self._sum(rows, bends)
        total = self._updated(rows, bends) if near or self._steady else None
        if total is None:
            self._updates = 0
            total = self._sum(rows, bends)
        if self.exact or self._steady:  # it may be brought up to date
            if self._kept is None:
                self._kept = np.empty_like(total), np.empty_like(bends)
            np.copyto(self._kept[0], total)
            np.copyto(self._kept[1], bends)
        return total

    def _updated(self, rows: np.ndarray, bends: np.ndarray) -> np.ndarray | None:
        """The last matrix times a factor, and the rows whose bends have changed otherwise.

        The factor is that of the width. None if that is no less work, or rounding adds up.
        """
        if self._kept is None or self._updates >= MOST_UPDATES:
            return None
        matrix, before = self._kept
        both = rows[before[rows] > 0.0]
        if not len(both) or 2 * len(both) < len(rows):
            return None
        factor = float(np.median(bends[both] / before[both]))
        changes = bends - factor * before
        changes[np.abs(changes) <= 1e-9 * bends] = 0.0
        changed = np.flatnonzero(changes)
        if 2 * len(changed) >= len(rows):
            return None
        self._updates += 1
        total = self._sum(changed, changes)
        total += np.multiply(matrix, factor, out=matrix)
        return total

    def _sum(self, rows: np.ndarray, bends: np.ndarray) -> np.ndarray:
        """Σ bend·x xᵀ over some rows, its lower triangle at least, good until the next call."""
        source = self._oracle.matrix
        self._last_work = matrix_cost(self._oracle, len(rows))
        self.work += self._last_work
        total = self._room(0)
        total[...] = 0.0
        if source.whole is not None:
            self._add(source.whole, rows, bends, total)
        else:

            def part(k: int, block: Block) -> None:
                first, last = source.bounds[k], source.bounds[k + 1]
                inside = rows[np.searchsorted(rows, first) : np.searchsorted(rows, last)]
                self._add(block, inside - first, bends[first:last], total)

            source.run(part, SerialExecutor())
        if isinstance(source.blocks[0], CSRBlock):
            # Columns need not be in order: what lies above the diagonal belongs below.
            total += np.triu(total, 1).T
        return total

    def _add(self, block: Block, rows: np.ndarray, bends: np.ndarray, total: np.ndarray) -> None:
        """Add what some rows of a block contribute; the parts depend on the data alone."""
        work = 0.5 * len(rows) * self._length**2
        parts = int(min(MOST_PARTS, max(1.0, work / (PART_WORK * total.size))))
        numbers = PIECE_NUMBERS / self._size
        if isinstance(block, CSRBlock):
            numbers = PIECE_WORK / max(1.0, self._length**2)
        piece = max(1, int(numbers))

        halves = [total, *map(self._room, range(1, parts))]
        together = len(rows) > 0 and rows[-1] - rows[0] + 1 == len(rows)

        def part(k: int) -> None:
            start, end = len(rows) * k // parts, len(rows) * (k + 1) // parts
            half = halves[k]
            if k > 0:
                half[...] = 0.0
            for first in range(start, end, piece):
                some: Any = rows[first : min(first + piece, end)]
                if isinstance(block, CSRBlock):
                    loops.add_squares(*block.arrays(), some, bends, self._constant, half)
                    continue
                signed = bends[some]
                for sign in (1.0, -1.0):
                    inside = sign * signed > 0.0
                    if not inside.any():
                        continue
                    own, every = some[inside], inside.all()
                    if together and every:  # no copy of these rows
                        own = slice(int(some[0]), int(some[-1]) + 1)
                    roots = np.sqrt(sign * (signed if every else signed[inside]))
                    gathered = self._gather(block, own, roots)
                    # As for the factor, the lower triangle of rows; in place.
                    scipy.linalg.blas.dsyrk(
                        sign, gathered.T, beta=1.0, c=half.T, overwrite_c=1, lower=0
                    )

        self._oracle.executor.run(part, parts)
        for half in halves[1:]:
            total += half

    def _room(self, k: int) -> np.ndarray:
        """A matrix to add up in."""
        while len(self._sums) <= k:
            self._sums.append(np.empty((self._size, self._size)))
        return self._sums[k]

    def _gather(self, block: Block, rows: np.ndarray | slice, roots: np.ndarray) -> np.ndarray:
        """Dense rows times numbers, with the constant last."""
        out = np.empty((len(roots), self._size))
        features = self._oracle.matrix.shape[1]
        if isinstance(block, ColumnMajorBlock):
            first = block.first
            if isinstance(rows, slice):
                rows = slice(first + rows.start, first + rows.stop)
            else:
                rows = first + rows
            x = block.xt[:, rows].T
        else:
            assert isinstance(block, RowMajorBlock)
            x = block.x[rows]
        np.multiply(x, roots[:, None], out=out[:, :features])
        if self._constant:
            out[:, features] = self._constant * roots
        return out
