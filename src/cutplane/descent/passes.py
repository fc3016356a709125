"""Passes of coordinate descent over the rows of a matrix, where they lie.

Rows in random order converge fastest, but each one is a cache miss. Tiles of a few
neighbouring rows in random order converge as fast as long as tiles that follow one another
come from all over the data, so that a pass goes around all blocks many times
and takes a few random tiles of each. Nothing is copied or shuffled, and data that is sorted
by class does no harm.
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

TILE_ROWS = 32
# Times that a pass goes around the blocks. With 16 text data (C = 10) took 20 % more passes, and
# twice as many if sorted by class; with 4 five times as many.
ROUNDS = 64
# Value of the constant feature behind a free bias, in units of the rows' mean norm. A larger one
# makes all rows alike and the passes slow, a smaller one the bias.
BIAS_FEATURE = 0.3
# At small C, no α can move the bias far: the feature's square times C is at least this.
BIAS_REACH = 10.0


@dataclass
class _Part:
    """One block: its rows, flat, what the steps depend on, and which rows are active."""

    values: np.ndarray
    indices: np.ndarray | None
    starts: np.ndarray
    labels: np.ndarray
    squares: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray
    alpha: np.ndarray
    kept: np.ndarray
    active: np.ndarray


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
        risk, targets = oracle.risk, oracle.targets
        if not isinstance(risk, HingeRisk | SquaredHingeRisk):
            raise TypeError(
                f"{type(risk).__name__} has no coordinate steps; "
                "HingeRisk and SquaredHingeRisk have"
            )
        self._rng = rng
        self._free_bias = oracle.free_bias
        self._per_row = C / targets.total
        weights = self._per_row * targets.weights
        rows = len(weights)
        self.alpha = np.zeros(rows)
        squares = np.empty(rows)
        hinge = isinstance(risk, HingeRisk)
        upper = weights if hinge else np.where(weights > 0.0, np.inf, 0.0)
        ridge = np.zeros(rows)
        if not hinge:
            np.divide(0.5, weights, out=ridge, where=weights > 0.0)
        blocks = [_flat(block) for block in oracle.matrix.blocks]
        slices = [oracle.matrix.slice(k) for k in range(len(blocks))]
        for (values, _, starts), part in zip(blocks, slices, strict=True):
            loops.squared_norms(values, starts, 0.0, squares[part])
        self._constant = oracle.constant
        if self._free_bias:
            wanted = BIAS_FEATURE**2 * float(np.mean(squares))
            self._constant = math.sqrt(max(wanted, BIAS_REACH / C))
        squares += self._constant**2
        self.w = np.zeros(oracle.matrix.shape[1] + (self._constant != 0.0))
        self._bias = 0.0
        self._labels = targets.labels
        self._upper = upper
        self._products = list(zip(oracle.matrix.blocks, slices, strict=True))
        self._parts = [
            _Part(
                *block,
                targets.labels[part],
                squares[part],
                upper[part],
                ridge[part],
                self.alpha[part],
                np.empty(part.stop - part.start, np.int64),
                np.flatnonzero(weights[part] > 0.0),
            )
            for block, part in zip(blocks, slices, strict=True)
        ]
        self._all = [part.active for part in self._parts]
        self._idle_above = np.inf

    def coef(self) -> np.ndarray:
        """The dual point as coefficients of the risk's sum, but for the labels' sign."""
        return self.alpha / self._per_row

    def start(self, coef: np.ndarray) -> None:
        """Go on from a dual point as ``coef`` gives it."""
        np.minimum(coef * self._per_row, self._upper, out=self.alpha)
        signed = self.alpha * self._labels
        self.w[:] = 0.0
        for block, part in self._products:
            block.add_gradient(signed[part], self.w)
        if self._constant:
            self.w[-1] = self._constant * float(signed.sum())

    def settle(self, w: np.ndarray) -> None:
        """Take w, computed from alpha, in place of the one that rounding has changed.

        All rows are active again. A free bias moves to where the last passes put it: they
        regularise its distance from there, a proximal point method.
        """
        self.w[: len(w)] = w
        if self._free_bias:
            self._bias += self._constant * float(self.w[-1])
        for part, rows in zip(self._parts, self._all, strict=True):
            part.active = rows
        self._idle_above = np.inf

    def run(self, out_of_time: Callable[[], bool]) -> bool:
        """Visit all active rows once; False if time ran out on the way."""
        tiles = [self._rng.permutation(-(-len(p.active) // TILE_ROWS)) for p in self._parts]
        kept: list[list[np.ndarray]] = [[] for _ in self._parts]
        worst = 0.0
        rounds = min(ROUNDS, max(1, max(map(len, tiles))))
        for turn in range(rounds):
            if out_of_time():
                return False
            for k in self._rng.permutation(len(self._parts)):
                part, own = self._parts[k], tiles[k]
                some = own[len(own) * turn // rounds : len(own) * (turn + 1) // rounds]
                if not len(some):
                    continue
                places = (some[:, None] * TILE_ROWS + np.arange(TILE_ROWS)).reshape(-1)
                order = part.active[places[places < len(part.active)]]
                count, violation = self._visit(part, order)
                kept[k].append(part.kept[:count].copy())
                worst = max(worst, violation)
        for part, rows in zip(self._parts, kept, strict=True):
            if rows:
                part.active = np.sort(np.concatenate(rows))
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
            part.kept,
        )


def _flat(block: Block) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
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
