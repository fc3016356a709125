"""Rows of the kernel matrix under a budget of bytes.

All rows lie in one array of slots. When a row is needed and no slot is free, the row that was
used least recently goes. When the solver leaves columns out, the rows kept are compacted in
place and the bytes gained become new slots.
"""

from __future__ import annotations

import numpy as np

from ...kernels import KernelMatrix
from ...loops import decomposition as loops

FEWEST_ROWS = 2  # a pair cannot do with less


class RowCache:
    """The rows used last.

    Parameters
    ----------
    matrix : KernelMatrix
    budget : float
        Bytes for the rows. At least two rows are kept whatever it says.
    """

    def __init__(self, matrix: KernelMatrix, budget: float) -> None:
        self.matrix = matrix
        self._rows = len(matrix.diagonal)
        slots = int(budget // (matrix.dtype.itemsize * max(1, matrix.columns)))
        slots = min(max(slots, FEWEST_ROWS), self._rows)
        self._numbers = slots * matrix.columns
        self._flat = np.empty(0, dtype=matrix.dtype)
        self._clock = 0
        self.computed = 0  # rows, since the beginning
        self.computed_values = 0
        self.reset(matrix)

    def fetch(self, rows: np.ndarray, compute: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The slots of distinct rows, which count as used, and which of the rows were missing.

        The missing ones are computed in one block; without ``compute`` their slots are −1.
        """
        self._clock += 1
        slots = self._slot_of[rows]
        self._stamp[slots[slots >= 0]] = self._clock
        new = np.flatnonzero(slots < 0)
        if compute and len(new):
            missing = rows[new]
            taken = np.arange(len(missing))
            if len(missing) < len(self._stamp):  # least recently used, none that this fetch needs
                taken = np.sort(np.argpartition(self._stamp, len(missing) - 1)[: len(missing)])
            self._slot_of[self._row_in[taken][self._row_in[taken] >= 0]] = -1
            self._row_in[taken] = -1  # nothing is promised before the values are there
            self.matrix.fill(missing, taken, self.slots)
            self._row_in[taken] = missing
            self._slot_of[missing] = taken
            self._stamp[taken] = self._clock
            self.computed += len(missing)
            self.computed_values += len(missing) * self.matrix.columns
            slots[new] = taken
        return slots, new

    def restrict(self, matrix: KernelMatrix, keep: np.ndarray, rows: np.ndarray) -> None:
        """Keep these columns only, and of the cached rows those that may be asked for again.

        Parameters
        ----------
        matrix : KernelMatrix
            The kernel of what is left.
        keep : ndarray of int
            Columns, ascending.
        rows : ndarray of int
            Rows of the variables that are left.
        """
        if len(self._flat) == 0:  # the rows are not its own
            self.reset(matrix)
            return
        wanted = np.zeros(self._rows + 1, dtype=bool)  # the last is for empty slots
        wanted[rows] = True
        used = np.flatnonzero(wanted[self._row_in])
        held, stamps = self._row_in[used], self._stamp[used]
        loops.compact_rows(self._flat, used, self.matrix.columns, keep)
        self.reset(matrix)
        self._row_in[: len(held)] = held
        self._stamp[: len(held)] = stamps
        self._slot_of[held] = np.arange(len(held))

    def reset(self, matrix: KernelMatrix) -> None:
        """Forget all rows, for a matrix with other columns. Rows that it stores are used there."""
        self.matrix = matrix
        if matrix.values is not None:
            self._flat = np.empty(0, dtype=matrix.dtype)
            self.slots = matrix.values
            self._row_in = self._slot_of = np.arange(self._rows)
        else:
            if len(self._flat) == 0:
                self._flat = np.empty(self._numbers, dtype=matrix.dtype)
            width = matrix.columns
            count = min(len(self._flat) // max(1, width), self._rows)
            self.slots = self._flat[: count * width].reshape(count, width)
            self._row_in, self._slot_of = np.full(count, -1), np.full(self._rows, -1)
        self._stamp = np.zeros(len(self.slots), dtype=np.int64)
