"""Passes of coordinate descent over the rows of a matrix, where they lie.

Rows in random order converge fastest, but each one is a cache miss. Tiles of a few
neighbouring rows in random order converge as fast as long as tiles that follow one another
come from all over the data. Where the rows lie in one piece, tiles are drawn from all of it;
where they lie in blocks, a pass goes around the blocks many times and takes a few
random tiles of each. Nothing is copied or shuffled, and data sorted by class does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..data.blocks import Block, ColumnMajorBlock, CSRBlock, RowMajorBlock
from ..loops import coordinate as loops
from ..oracles import RowOracle
from ..risks import HingeRisk, SquaredHingeRisk

# A tile has at least so many rows, or numbers where rows are short. Tiles of 1024 rows of text
# converge visibly worse.
TILE_ROWS, MOST_TILE_ROWS = 32, 256
TILE_NUMBERS = 1024
# Few tiles in random order are hardly a random order.
LEAST_TILES = 64
# Times that a pass goes around the blocks. With 16 text data (C = 10) took 20 % more passes, and
# twice as many if sorted by class; with 4 five times as many.
ROUNDS = 64
# Rows between two looks at the clock.
ROWS_PER_CALL = 1 << 16
# Idle rows are taken out of the list when they are this part of it.
IDLE_PART = 0.05
# Value of the constant feature behind a free bias, in units of the rows' mean norm. A larger one
# makes all rows alike and the passes slow, a smaller one the bias.
BIAS_FEATURE = 0.3
# At small C, no α can move the bias far: the feature's square times C is at least this.
BIAS_REACH = 10.0


@dataclass
class _Part:
    """Rows that lie in one piece, flat, what the steps depend on, and which rows are active."""

    values: np.ndarray
    indices: np.ndarray | None
    starts: np.ndarray
    labels: np.ndarray
    squares: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray
    alpha: np.ndarray
    idle: np.ndarray
    first: int  # row of the matrix that it begins with
    rows: np.ndarray  # all that count
    active: np.ndarray
    tile_rows: int

    def lay(self, tiles: np.ndarray) -> np.ndarray:
        """The active rows of some tiles."""
        order = np.empty(len(tiles) * self.tile_rows, np.int64)
        return order[: loops.lay_tiles(self.active, tiles, self.tile_rows, order)]


class Passes:
    """The dual point and w = Σ α_i y_i x_i, and passes that improve them.

    Attributes
    ----------
    alpha : ndarray, shape (rows,)
    w : ndarray
        With the constant feature's weight last, if there is one or a free bias.

    Parameters
    ----------
    oracle : RowOracle
        With hinge or squared hinge risk.
    C : float
        Multiplies the mean risk.
    rng : numpy.random.Generator
        Draws the orders.
    """

    def __init__(self, oracle: RowOracle, C: float, rng: np.random.Generator) -> None:
        risk, targets, matrix = oracle.risk, oracle.targets, oracle.matrix
        if not isinstance(risk, HingeRisk | SquaredHingeRisk):
            raise TypeError(
                f"{type(risk).__name__} has no coordinate steps; "
                "HingeRisk and SquaredHingeRisk have"
            )
        self._rng = rng
        self._matrix = matrix
        self._labels = targets.labels
        self._free_bias = oracle.free_bias
        self._per_row = C / targets.total
        weights = self._per_row * targets.weights
        rows = len(weights)
        self.alpha = np.zeros(rows)
        squares = squared_norms(oracle)
        hinge = isinstance(risk, HingeRisk)
        self._upper = weights if hinge else np.where(weights > 0.0, np.inf, 0.0)
        self._ridge = np.zeros(rows)
        if not hinge:
            np.divide(0.5, weights, out=self._ridge, where=weights > 0.0)
        if matrix.whole is not None:
            pieces: list[tuple[Block, slice]] = [(matrix.whole, slice(0, rows))]
        else:
            pieces = [(block, matrix.slice(k)) for k, block in enumerate(matrix.blocks)]
        flat = [(flat_rows(block), part) for block, part in pieces]
        self._constant = oracle.constant
        if self._free_bias:
            wanted = BIAS_FEATURE**2 * float(np.mean(squares))
            self._constant = math.sqrt(max(wanted, BIAS_REACH / C))
        squares += self._constant**2
        self.w = np.zeros(matrix.shape[1] + (self._constant != 0.0))
        self._bias = 0.0
        self._idle_above = np.inf
        tile_rows = TILE_NUMBERS * rows // max(1, matrix.numbers)
        tile_rows = min(max(TILE_ROWS, tile_rows), MOST_TILE_ROWS, max(1, rows // LEAST_TILES))
        self._parts = []
        for block, part in flat:
            counting = np.flatnonzero(weights[part] > 0.0)
            self._parts.append(
                _Part(
                    *block,
                    targets.labels[part],
                    squares[part],
                    self._upper[part],
                    self._ridge[part],
                    self.alpha[part],
                    idle=np.zeros(part.stop - part.start, np.uint8),
                    first=int(part.start),
                    rows=counting,
                    active=counting,
                    tile_rows=tile_rows,
                )
            )

    def coef(self) -> np.ndarray:
        """The dual point as coefficients of the risk's sum, but for the labels' sign."""
        return self.alpha / self._per_row

    def start(self, coef: np.ndarray) -> None:
        """Go on from a dual point as ``coef`` gives it."""
        np.minimum(coef * self._per_row, self._upper, out=self.alpha)
        signed = self.alpha * self._labels
        self.w[:] = 0.0
        for k, block in enumerate(self._matrix.blocks):
            block.add_gradient(signed[self._matrix.slice(k)], self.w)
        if self._constant:
            self.w[-1] = self._constant * float(signed.sum())

    def settle(self, w: np.ndarray, scores: np.ndarray) -> None:
        """Take w, computed from alpha, in place of the one that rounding has changed.

        The rows' scores at w say which of them are active from here on. A free bias moves to
        where the last passes put it: they regularise its distance from there, a proximal
        point method.
        """
        self.w[: len(w)] = w
        if self._free_bias:
            self._bias += self._constant * float(self.w[-1])
        offset = self._bias + (self._constant * float(self.w[-1]) if self._free_bias else 0.0)
        violation = np.empty(len(scores))
        worst = loops.violations(
            scores, offset, self._labels, self.alpha, self._upper, self._ridge, violation
        )
        for part in self._parts:
            part.active = part.rows[violation[part.first + part.rows] >= -worst]
        self._idle_above = worst or np.inf

    def run(self, out_of_time: Callable[[], bool]) -> bool:
        """Visit all active rows once; False if time ran out on the way."""
        parts = self._parts
        tiles = [self._rng.permutation(-(-len(p.active) // p.tile_rows)) for p in parts]
        staying = np.zeros(len(parts), np.int64)
        worst = 0.0
        rounds = max(1, *(-(-len(p.active) // ROWS_PER_CALL) for p in parts))
        if len(parts) > 1:
            rounds = min(max(ROUNDS, rounds), max(map(len, tiles)))
        for turn in range(rounds):
            if out_of_time():
                return False
            for k in self._rng.permutation(len(parts)).tolist():
                own = tiles[k]
                some = own[len(own) * turn // rounds : len(own) * (turn + 1) // rounds]
                if not len(some):
                    continue
                count, violation = self._visit(parts[k], parts[k].lay(some))
                staying[k] += count
                worst = max(worst, violation)
        for part, stayed in zip(parts, staying.tolist(), strict=True):
            if stayed < (1.0 - IDLE_PART) * len(part.active):
                part.active = part.active[part.idle[part.active] == 0]
        self._idle_above = worst or np.inf
        return True

    def _visit(self, part: _Part, order: np.ndarray) -> tuple[int, float]:
        return loops.visit(
            part.values,
            part.indices,
            part.starts,
            order,
            part.labels,
            part.squares,
            part.upper,
            part.ridge,
            self._bias,
            self._constant,
            self._idle_above,
            self.w,
            part.alpha,
            part.idle,
        )


def squared_norms(oracle: RowOracle) -> np.ndarray:
    """|x_i|² of all rows, without the constant feature."""
    matrix = oracle.matrix
    squares = np.empty(len(matrix))

    def measure(k: int) -> None:
        block, rows = matrix.blocks[k], matrix.slice(k)
        if isinstance(block, ColumnMajorBlock):
            columns = block.xt[:, block.first : block.first + block.rows]
            squares[rows] = np.einsum("ji,ji->i", columns, columns, dtype=np.float64)
        else:
            values, _, starts = flat_rows(block)
            loops.squared_norms(values, starts, 0.0, squares[rows])

    oracle.executor.run(measure, len(matrix.blocks))
    return squares


def flat_rows(block: Block) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Values, columns and starts of the rows of a block; columns of data are copied."""
    if isinstance(block, CSRBlock):
        return block.values, block.indices, block.starts
    if isinstance(block, ColumnMajorBlock):
        x = np.ascontiguousarray(block.xt[:, block.first : block.first + block.rows].T)
        x.flags.writeable = False
    else:
        assert isinstance(block, RowMajorBlock)
        x = block.x
    return x.reshape(-1), None, np.arange(len(x) + 1) * x.shape[1]
