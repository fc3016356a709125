"""Kernel values of parts, with units for the plain numbers below them.

    k(part, part) as given,    k(unit, part) = 0,    k(unit, unit) = 1 with itself, else 0

So plain numbers, K to a unit, are coefficients like those of parts, and their scores are these
numbers once more. Units cost no kernel value.
"""

from __future__ import annotations

import numpy as np

from ..kernels import KernelMatrix


class WithUnits(KernelMatrix):
    """A kernel's values of parts and units.

    Parameters
    ----------
    matrix : KernelMatrix
        Of all parts.
    units : int
    """

    def __init__(self, matrix: KernelMatrix, units: int) -> None:
        self._whole = self._matrix = matrix
        self._parts = matrix.columns
        self._units = units
        self._columns = np.arange(self._parts + units)
        self._own = self._columns < self._parts
        self.dtype = matrix.dtype
        self.columns = len(self._columns)

    @property
    def diagonal(self) -> np.ndarray:  # type: ignore[override]
        """k with itself of every part, then of every unit."""
        return np.concatenate([self._whole.diagonal, np.ones(self._units)])

    @property
    def amplification(self) -> float:  # type: ignore[override]
        """That of the parts."""
        return self._whole.amplification

    def values_of(self, which: np.ndarray) -> int:
        if self._whole.values is not None:  # those of a stored matrix are counted once
            return 0
        return int(np.count_nonzero(which < self._parts)) * self._matrix.columns

    def restricted(self, columns: np.ndarray) -> WithUnits:
        other = WithUnits(self._whole, self._units)
        other._columns = self._columns[columns]
        other._own = other._columns < self._parts
        other._matrix = self._whole.restricted(other._columns[other._own])
        other.columns = len(columns)
        return other

    def fill(self, which: np.ndarray, slots: np.ndarray, out: np.ndarray) -> None:
        out[slots, : self.columns] = self.combine(which, np.eye(len(which))).T

    def combine(
        self, which: np.ndarray, coef: np.ndarray, columns: np.ndarray | None = None
    ) -> np.ndarray:
        if columns is not None:
            return self.restricted(columns).combine(which, coef)
        own = which < self._parts
        out = np.zeros((self.columns, *coef.shape[1:]))
        out[self._own] = self._matrix.combine(which[own], coef[own])
        units = np.zeros((self._units, *coef.shape[1:]))
        np.add.at(units, which[~own] - self._parts, coef[~own])
        out[~self._own] = units[self._columns[~self._own] - self._parts]
        return out
