"""The two products of a linear model with its data: scores X·w and sums Xᵀ·coef.

A constant feature, never stored, may stand behind the others: c in every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..data import BlockedMatrix, BlockSum
from ..data.blocks import Block, CSRBlock, RowMajorBlock
from ..data.sums import SumPlan, room_for
from ..exec import Executor
from ..loops import bounded
from ..risks import Risk, Targets
from .changes import ChangedRows
from .row_passes import Passes

# Stored numbers from which on it pays to bring cuts up to date. Below, sums that cancel exactly
# should stay exactly zero.
WORTH_UPDATES = 1 << 16


class Products(Protocol):
    """Those who hold the data."""

    def scores(self, w: np.ndarray, out: Any) -> None:
        """out = X·w."""
        ...

    def bounded(self, w: np.ndarray, scores: Any, errors: Any) -> None:
        """scores = X·w, and bounds on what rounding has done to them."""
        ...

    def precise(self, w: np.ndarray, bias: float, high: Any, low: Any, errors: Any) -> None:
        """high + low = X·w + bias in twice the digits, and bounds on the rest."""
        ...

    def gradient(self, coef: Any) -> np.ndarray:
        """Xᵀ·coef, good until the next call."""
        ...

    def start_anew(self, forget: bool = False) -> None:
        """Depend on no gradient before: the next one is computed from all rows.

        With ``forget`` the scores of points do not matter any more either.
        """
        ...


class RowsElsewhere(Protocol):
    """A design matrix whose rows are not in this process."""

    shape: tuple[int, int]
    n_stored: int
    blocks: range
    part_rows: list[int]

    def products(self, shape: tuple[int, ...], constant: float, updates: bool) -> Products:
        """A problem begins: its products."""
        ...

    def passes(self, targets: Targets, risk: Risk, slices: Sequence[slice], light: bool) -> Passes:
        """The risk of the problem that has begun is a sum over rows: its passes."""
        ...


def worth_updates(blocks: int, numbers: int, shape: tuple[int, ...]) -> bool:
    """Whether to bring gradients of a shape up to date, for so many blocks and stored numbers."""
    return blocks <= room_for(shape) and numbers >= WORTH_UPDATES


class RowProducts:
    """Products with rows that are here.

    Parameters
    ----------
    matrix : BlockedMatrix
    shape : tuple of int
        Of w, the constant feature included.
    constant : float
        Value of the constant feature; 0 for none.
    executor : Executor
    updates : bool
        Whether gradients are brought up to date instead of computed anew, where that is less work.
    plan : SumPlan, optional
        If the matrix has some of the rows only.
    """

    def __init__(
        self,
        matrix: BlockedMatrix,
        shape: tuple[int, ...],
        constant: float,
        executor: Executor,
        updates: bool,
        plan: SumPlan | None = None,
    ) -> None:
        self._matrix = matrix
        self._constant = constant
        self._executor = executor
        self._sum = BlockSum(matrix, shape, plan)
        rows = (len(matrix), *shape[1:])
        self._changes = ChangedRows(matrix, rows) if updates else None

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        if not np.any(w):  # where every fit begins
            out[...] = 0.0
            return

        def part(k: int, block: Block) -> None:
            rows = out[self._matrix.slice(k)]
            block.scores(w, rows)
            if self._constant:
                rows += self._constant * w[-1]

        self._matrix.run(part, self._executor)

    def bounded(self, w: np.ndarray, scores: np.ndarray, errors: np.ndarray) -> None:
        self._bounded(w, 0.0, (scores, errors))

    def precise(
        self, w: np.ndarray, bias: float, high: np.ndarray, low: np.ndarray, errors: np.ndarray
    ) -> None:
        self._bounded(w, bias, (high, low, errors))

    def _bounded(self, w: np.ndarray, bias: float, outs: tuple[np.ndarray, ...]) -> None:
        """Scores and bounds into two arrays, or scores of twice the digits into three."""
        columns = w.reshape(len(w), -1)
        start = np.full(columns.shape[1], bias)
        if self._constant:  # the model's own intercept, which has been rounded as well
            start += self._constant * columns[-1]
            columns = columns[:-1]
        if not np.any(columns):
            for out in outs:
                out[...] = 0.0
            outs[0][...] = start if w.ndim > 1 else start[0]
            return
        tables = [out.reshape(len(self._matrix), -1) for out in outs]

        def part(k: int, block: Block) -> None:
            parts = [table[self._matrix.slice(k)] for table in tables]
            bounded_scores(block, columns, start, parts)

        self._matrix.run(part, self._executor)

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        return self.gradients(coef)[0]

    def gradients(self, coef: np.ndarray) -> np.ndarray:
        """The sums of all nodes of the plan."""
        changes = self._changes
        if changes is not None:
            changes.begin()

        def part(k: int, block: Block, partial: np.ndarray) -> None:
            rows = coef[self._matrix.slice(k)]
            if changes is None or not changes.add(k, rows, block, partial):
                partial[...] = 0.0
                block.add_gradient(rows, partial)
            if self._constant:
                partial[-1] = self._constant * rows.sum(axis=0)

        return self._sum.run(part, self._executor)

    def start_anew(self, forget: bool = False) -> None:
        if self._changes is not None:
            self._changes.start_anew()

    def sums(self) -> tuple[np.ndarray, int, np.ndarray] | None:
        """A copy of what the next gradient builds on, if it does and there was one before: the last
        coefficients, how old the sums are, and the sums of all blocks.
        """
        held = self._sum.held()
        if self._changes is None or held is None:
            return None
        return self._changes.last.copy(), self._changes.age, held.copy()

    def restore_sums(self, coef: np.ndarray, age: int, sums: np.ndarray) -> None:
        """Be as after a gradient with these coefficients, which left these sums."""
        assert self._changes is not None
        self._changes.restore(coef, age)
        self._sum.restore(sums)


def bounded_scores(
    block: Block, w: np.ndarray, start: np.ndarray, outs: Sequence[np.ndarray]
) -> None:
    """X·w + start of a block, by the loops of ``bounded``; the precise ones have 3 outputs."""
    precise = len(outs) == 3
    kernel: Any
    if isinstance(block, CSRBlock):
        kernel = bounded.precise_csr_scores if precise else bounded.csr_scores
        kernel(block.values, block.indices, block.starts, w, start, *outs)
    elif isinstance(block, RowMajorBlock):
        kernel = bounded.precise_dense_scores if precise else bounded.dense_scores
        kernel(block.x, w, start, *outs)
    else:
        kernel = bounded.precise_column_scores if precise else bounded.column_scores
        kernel(block.xt, block.first, w, start, *outs)
