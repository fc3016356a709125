"""Passes of coordinate descent over the rows of a matrix.

Rows in random order converge fastest, but each one is a cache miss. Tiles of a few
neighbouring rows in random order converge as fast as long as tiles that follow one another
come from all over the data, and neighbours are not alike. Where they are (a sample of pairs
tells), sparse rows are dealt out once, copied or, if they are few, listed so that neighbours come
from far apart: w8a at C = 1 then takes a third of the passes. Where the rows lie in one piece,
tiles are drawn from all of it; where they lie in blocks, a pass goes around the blocks many times
and takes a few random tiles of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..data import BlockedMatrix
from ..data.blocks import Block, ColumnMajorBlock, CSRBlock, RowMajorBlock, read_only
from ..loops import coordinate as loops
from ..losses import Hinge, SquaredHinge
from ..oracles import RowOracle
from .lanes import Lanes, worth_lanes

# A tile has at least so many rows, or numbers where rows are short. Tiles of 1024 rows of text
# converge visibly worse.
TILE_ROWS, MOST_TILE_ROWS = 32, 256
TILE_NUMBERS = 1024
# Few tiles in random order are hardly a random order.
LEAST_TILES = 64
# Times that a pass goes around the blocks. With 16 text data (C = 10) took 20 % more passes, and
# twice as many if sorted by class; with 4 five times as many.
ROUNDS = 64
# Rows between two looks at the clock, and whether the run has ended; or numbers, in long rows.
ROWS_PER_CALL, NUMBERS_PER_CALL = 1 << 18, 1 << 23
# Idle rows are taken out of the list when they are this part of it.
IDLE_PART = 0.05
# A row is idle if its bound holds it by this part of the largest violation in the last pass. The
# largest is an outlier: rows held by far less do not come back either, and those which do are found
# by the next certificate. With the largest itself w8a, MNIST and k-mers take two to three times as
# many visits for the same progress, with half of this part hardly fewer.
IDLE_ABOVE = 0.1
# The same for rows that are active when a certificate finds them held. With less some must come
# back (text at C = 10 takes half as many certificates again), with more idle rows are visited.
ACTIVE_ABOVE = 0.5
# The same before the first pass from a dual point of another C, where much is still to change.
AT_ONCE = 1.0
# The same where the scores at other values of C are known only, in units of the root mean square of
# the change to be expected of them.
FIRMLY = 1.0
# Value of the constant feature behind a free bias, in units of the rows' mean norm. A larger one
# makes all rows alike and the passes slow, a smaller one the bias.
BIAS_FEATURE = 0.3
# Pairs of neighbours, and of rows far apart, that are compared; they are alike if their products
# differ by this part of the rows' mean square. Data that are in no order have differences of 0.01,
# text sorted by class 0.12, w8a 0.34, covtype 0.9.
PAIRS = 256
ALIKE = 0.2
PILES = 64
# No larger copy of rows is made, and none of those which the processor's cache holds.
COPY_NUMBERS = 1 << 26
CACHED_NUMBERS = 1 << 20
# At small C, no α can move the bias far: the feature's square times C is at least this.
BIAS_REACH = 10.0


# Values, columns and starts of rows, as the loops take them.
FlatRows = tuple[np.ndarray, np.ndarray | None, np.ndarray]


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


@dataclass(frozen=True)
class Snapshot:
    """Where the passes were.

    Attributes
    ----------
    coef : ndarray, shape (rows,)
        The dual point as coefficients of the risk's sum, but for the labels' sign.
    alpha, w : ndarray
        As those of ``Passes``.
    offset : float
        What a free bias adds to the scores.
    """

    coef: np.ndarray
    alpha: np.ndarray
    w: np.ndarray
    offset: float


@dataclass(frozen=True)
class Verdict:
    """What the scores at a snapshot say of the rows: how far from optimal, and the largest."""

    violation: np.ndarray
    worst: float


class Passes:
    """The dual point and w = Σ α_i y_i x_i, and passes that improve them.

    Attributes
    ----------
    alpha : ndarray, shape (rows,)
        In the order of the passes.
    w : ndarray
        With the constant feature's weight last, if there is one or a free bias.
    visited : int
        Rows visited since the last snapshot.
    gain : float
        What the last pass has added to the dual objective.
    dual : float
        The dual objective, but for rounding and what a free bias has to do with it.

    Parameters
    ----------
    oracle : RowOracle
        With hinge or squared hinge risk.
    C : float
        Multiplies the mean risk.
    rng : numpy.random.Generator
        Draws the orders.
    squares : ndarray, optional
        ``squared_norms`` of the rows, if known.
    """

    def __init__(
        self,
        oracle: RowOracle,
        C: float,
        rng: np.random.Generator,
        squares: np.ndarray | None = None,
    ) -> None:
        risk, targets, matrix = oracle.risk, oracle.targets, oracle.matrix
        if not isinstance(getattr(risk, "loss", None), Hinge | SquaredHinge):
            raise TypeError(f"{risk!r} has no coordinate steps; the hinges have")
        self._rng = rng
        self._matrix = matrix
        self._free_bias = oracle.free_bias
        self._per_row = C / targets.total
        rows = len(matrix)
        squares = squared_norms(oracle) if squares is None else squares
        if matrix.whole is not None:
            pieces: list[tuple[Block, slice]] = [(matrix.whole, slice(0, rows))]
        else:
            pieces = [(block, matrix.slice(k)) for k, block in enumerate(matrix.blocks)]
        flat = [(flat_rows(block), part) for block, part in pieces]
        self._order: np.ndarray | None = None  # row of the matrix by row of the passes
        dealt: np.ndarray | None = None  # the order in which rows are listed
        if _in_order(matrix, targets.labels, squares):
            assert isinstance(matrix.whole, CSRBlock)
            dealt = _dealt(rows)
            if matrix.numbers > CACHED_NUMBERS:
                self._order, dealt = dealt, None
                flat = [(_gathered(matrix.whole, self._order), slice(0, rows))]
        self._labels = self._ordered(targets.labels)
        squares = self._ordered(squares)
        weights = self._ordered(self._per_row * targets.weights)
        self.alpha = np.zeros(rows)
        self.visited = 0
        self.gain = self.dual = 0.0
        hinge = isinstance(risk.loss, Hinge)
        self._upper = weights if hinge else np.where(weights > 0.0, np.inf, 0.0)
        self._ridge = np.zeros(rows)
        if not hinge:
            np.divide(0.5, weights, out=self._ridge, where=weights > 0.0)
        self._constant = oracle.constant
        if self._free_bias:
            wanted = BIAS_FEATURE**2 * float(np.mean(squares))
            self._constant = math.sqrt(max(wanted, BIAS_REACH / C))
        squares = squares + self._constant**2
        self.w = np.zeros(matrix.shape[1] + (self._constant != 0.0))
        self._bias = 0.0
        self._idle_above = np.inf
        self._equal = isinstance(matrix.whole, CSRBlock) and matrix.whole.equal
        tile_rows = TILE_NUMBERS * rows // max(1, matrix.numbers)
        tile_rows = min(max(TILE_ROWS, tile_rows), MOST_TILE_ROWS, max(1, rows // LEAST_TILES))
        per_call = NUMBERS_PER_CALL * rows // max(1, matrix.numbers)
        self._rows_per_call = min(ROWS_PER_CALL, max(per_call, tile_rows))
        self._lanes: Lanes | None = None
        if matrix.whole is not None and worth_lanes(matrix.numbers, len(self.w)):
            self._lanes = Lanes(self.w, matrix.numbers / rows, oracle.executor)
        self._parts = []
        for block, part in flat:
            counting = np.flatnonzero(weights[part] > 0.0)
            if dealt is not None:
                counting = dealt[weights[dealt] > 0.0]
            self._parts.append(
                _Part(
                    *block,
                    self._labels[part],
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

    @property
    def in_lanes(self) -> bool:
        """Whether two threads share a pass."""
        return self._lanes is not None

    def _ordered(self, by_row: np.ndarray) -> np.ndarray:
        """An array by row of the matrix in the order of the passes."""
        return by_row if self._order is None else by_row[self._order]

    def snapshot(self) -> Snapshot:
        """Where the passes are now."""
        coef = self.alpha / self._per_row
        if self._order is not None:
            by_row = np.empty_like(coef)
            by_row[self._order] = coef
            coef = by_row
        self.visited = 0
        # A free bias moves to where the passes have put it.
        offset = self._bias + (2.0 * self._constant * float(self.w[-1]) if self._free_bias else 0.0)
        return Snapshot(coef, self.alpha.copy(), self.w.copy(), offset)

    def start(self, coef: np.ndarray, w: np.ndarray) -> None:
        """Go on from a dual point as ``Snapshot.coef`` gives it, and its w."""
        np.minimum(self._ordered(coef) * self._per_row, self._upper, out=self.alpha)
        self.w[: len(w)] = w
        if self._constant:
            self.w[-1] = self._constant * float(np.einsum("i,i->", self.alpha, self._labels))
        squares = np.einsum("i,i,i->", self._ridge, self.alpha, self.alpha)
        squares += np.einsum("i,i->", self.w, self.w)
        self.dual = float(self.alpha.sum()) - 0.5 * float(squares)

    def judge(self, snapshot: Snapshot, scores: np.ndarray) -> Verdict:
        """What the scores at a snapshot's w say; the passes may go on meanwhile."""
        violation = np.empty(len(scores))
        worst = loops.violations(
            self._ordered(scores),
            snapshot.offset,
            self._labels,
            snapshot.alpha,
            self._upper,
            self._ridge,
            violation,
        )
        return Verdict(violation, worst)

    def expect(self, snapshot: Snapshot, scores: np.ndarray, expected: np.ndarray) -> None:
        """Leave out rows, before the first pass, which their bounds hold firmly at both scores."""
        violation = self.judge(snapshot, scores).violation
        np.maximum(violation, self.judge(snapshot, expected).violation, out=violation)
        firm = FIRMLY * math.sqrt(float(np.mean(np.square(expected - scores))))
        for part in self._parts:
            wanted = violation[part.first :][: len(part.idle)] >= -firm
            part.active = part.rows[wanted[part.rows]]
        self._idle_above = firm or np.inf

    def settle(
        self, verdict: Verdict, correction: np.ndarray | None, held: float | None = None
    ) -> None:
        """Take the verdict on the last snapshot to heart.

        Rows which it finds held by their bounds are not active from here on, unless they are now;
        those stay if there may have been passes since, or if they are not held firmly. ``held``
        says by how many times the largest violation rows must be held, those that are active as
        well, before the first pass. ``correction`` is what rounding has cost w. A free bias moves
        to where the last passes put it: they regularise its distance from there, a proximal point
        method.
        """
        if correction is not None:
            self.w[: len(correction)] += correction
        if self._free_bias:
            self._bias += self._constant * float(self.w[-1])
        for part in self._parts:
            violation = verdict.violation[part.first :][: len(part.idle)]
            wanted = violation >= -(held or IDLE_ABOVE) * verdict.worst
            if held is None:
                firm = ACTIVE_ABOVE * verdict.worst if self.in_lanes else np.inf
                wanted[part.active] |= violation[part.active] >= -firm
            part.active = part.rows[wanted[part.rows]]
        self._idle_above = IDLE_ABOVE * verdict.worst or np.inf

    def run(self, out_of_time: Callable[[], bool]) -> bool:
        """Visit all active rows once; False if time ran out on the way."""
        parts = self._parts
        tiles = [self._rng.permutation(-(-len(p.active) // p.tile_rows)) for p in parts]
        staying = np.zeros(len(parts), np.int64)
        worst = 0.0
        before = self.dual
        rounds = max(1, *(-(-len(p.active) // self._rows_per_call) for p in parts))
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
                order = parts[k].lay(some)
                self.visited += len(order)
                count, violation, gain = self._visit(parts[k], order)
                self.dual += gain
                staying[k] += count
                worst = max(worst, violation)
        for part, stayed in zip(parts, staying.tolist(), strict=True):
            if stayed < (1.0 - IDLE_PART) * len(part.active):
                part.active = part.active[part.idle[part.active] == 0]
        self._idle_above = IDLE_ABOVE * worst or np.inf
        self.gain = self.dual - before
        return True

    def _visit(self, part: _Part, order: np.ndarray) -> tuple[int, float, float]:
        rows = (part.values, part.indices, part.starts, self._equal)
        steps = (
            part.labels,
            part.squares,
            part.upper,
            part.ridge,
            self._bias,
            self._constant,
            self._idle_above,
        )
        if self._lanes is None or not self._lanes.worth(order):
            return loops.visit(*rows, order, *steps, self.w, part.alpha, part.idle)
        return self._lanes.visit(rows, order, steps, part.alpha, part.idle)


def squared_norms(oracle: RowOracle) -> np.ndarray:
    """|x_i|² of all rows, without the constant feature; computed once for a matrix."""
    matrix = oracle.matrix
    known = matrix.facts.get("squared norms")
    if known is not None:
        return known
    squares = np.empty(len(matrix))

    def measure(k: int) -> None:
        block, rows = matrix.blocks[k], matrix.slice(k)
        if isinstance(block, ColumnMajorBlock):
            columns = block.xt[:, block.first : block.first + block.rows]
            squares[rows] = np.einsum("ji,ji->i", columns, columns, dtype=np.float64)
        elif isinstance(block, CSRBlock) and block.equal and len(block.values):
            first = np.minimum(block.starts[:-1], len(block.values) - 1)
            values = block.values[first].astype(np.float64)
            squares[rows] = np.diff(block.starts) * values**2
        else:
            values, _, starts = flat_rows(block)
            loops.squared_norms(values, starts, 0.0, squares[rows])

    oracle.executor.run(measure, len(matrix.blocks))
    matrix.facts["squared norms"] = read_only(squares)
    return squares


def flat_rows(block: Block) -> FlatRows:
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


def _in_order(matrix: BlockedMatrix, labels: np.ndarray, squares: np.ndarray) -> bool:
    """Whether neighbouring sparse rows are more alike than others, signed by their labels."""
    block, rows = matrix.whole, len(matrix)
    if not isinstance(block, CSRBlock) or not 4 <= matrix.numbers <= COPY_NUMBERS or rows < 4:
        return False
    pairs = min(PAIRS, rows - 1)
    first = np.arange(pairs) * (rows - 1) // pairs
    means = []
    for second in (first + 1, np.roll(first, pairs // 2 + 1)):
        products = np.empty(pairs)
        row = np.zeros(matrix.shape[1])
        loops.pair_products(*_arrays(block), first, second, row, products)
        means.append(float(np.mean(products * labels[first] * labels[second])))
    return means[0] - means[1] > ALIKE * float(np.mean(squares))


def _dealt(rows: int) -> np.ndarray:
    """Rows dealt out like cards: neighbours come from PILES places of the data.

    Tiles are visited in random order, so no more chance is needed, and the copy reads a few
    places in sequence: on covtype that takes 15 ms, a random order 70.
    """
    height = -(-rows // PILES)
    order = np.arange(PILES * height).reshape(PILES, height).T.reshape(-1)
    return order[order < rows]


def _arrays(block: CSRBlock) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return block.values, block.indices, block.starts


def _gathered(block: CSRBlock, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of a block in another order, flat."""
    values, indices = np.empty_like(block.values), np.empty_like(block.indices)
    starts = np.zeros(len(order) + 1, np.int64)
    loops.gather_rows(*_arrays(block), order, values, indices, starts)
    for array in (values, indices, starts):
        array.flags.writeable = False  # as the rows where they lie: one compiled kernel
    return values, indices, starts
