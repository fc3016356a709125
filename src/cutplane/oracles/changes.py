"""Products Xᵀ·coef brought up to date by the rows whose coefficient has changed.

From one cut to the next the hinge's coefficients change in few rows. As long as a block's
product is kept, adding (coef − last coef) of those rows to it is all there is to do.
"""

from __future__ import annotations

import numpy as np

from ..data import BlockedMatrix
from ..data.blocks import Block
from ..loops import vectors

# Times that products are brought up to date before all are computed anew, so that rounding
# does not add up.
MOST_UPDATES = 30


class ChangedRows:
    """The coefficients behind the products of all blocks.

    Parameters
    ----------
    matrix : BlockedMatrix
    shape : tuple of int
        Of the coefficients.
    """

    def __init__(self, matrix: BlockedMatrix, shape: tuple[int, ...]) -> None:
        self._matrix = matrix
        self._last = np.zeros(shape)
        self._changes = np.empty(shape)
        self._age = MOST_UPDATES  # passes since all products were computed anew
        self.updated = np.zeros(len(matrix.blocks), dtype=bool)  # by the last pass

    def start_anew(self) -> None:
        """Have the next products computed from all rows."""
        self._age = MOST_UPDATES

    @property
    def age(self) -> int:
        """Passes since all products were computed anew."""
        return self._age

    @property
    def last(self) -> np.ndarray:
        """The coefficients of the last pass."""
        return self._last

    def restore(self, coef: np.ndarray, age: int) -> None:
        """Be as after a pass with these coefficients."""
        self._last[...] = coef
        self._age = age

    def begin(self) -> None:
        """A pass over the blocks begins."""
        self._age = 0 if self._age >= MOST_UPDATES else self._age + 1

    def add(self, k: int, coef: np.ndarray, block: Block, product: np.ndarray) -> bool:
        """Bring the product of block k up to date.

        False if it must be computed anew: too many rows have changed, or it is time to.
        """
        rows = self._matrix.slice(k)
        changes = self._changes[rows]
        changed, active = vectors.take_changes(
            coef.reshape(-1), self._last[rows].reshape(-1), changes.reshape(-1)
        )
        self.updated[k] = self._age > 0 and 2 * changed <= active
        if self.updated[k]:
            block.add_gradient(changes, product)
        return bool(self.updated[k])
