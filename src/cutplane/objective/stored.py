"""A kernel matrix in memory, for cuts that combine most of its rows again and again."""

from __future__ import annotations

import numpy as np

from .._blas import single_threaded_blas
from ..exec import Executor
from ..kernels import SUM_ROWS, PrecomputedMatrix

STORED_COLUMNS = 1000  # columns that a thread works on at a time


class StoredMatrix(PrecomputedMatrix):
    """All values of a symmetric matrix, combined by threads.

    Parameters
    ----------
    values : ndarray
    executor : Executor
    """

    def __init__(self, values: np.ndarray, executor: Executor) -> None:
        super().__init__(values)
        self._executor = executor

    def combine(
        self, which: np.ndarray, coef: np.ndarray, columns: np.ndarray | None = None
    ) -> np.ndarray:
        if columns is not None:
            return super().combine(which, coef, columns)
        out = np.zeros((self.columns, *coef.shape[1:]))
        factors = coef.astype(self.dtype, copy=False)

        def chunk(k: int) -> None:
            some = slice(k * STORED_COLUMNS, (k + 1) * STORED_COLUMNS)
            for first in range(0, len(which), SUM_ROWS):
                piece = slice(first, first + SUM_ROWS)
                out[some] += self._values[which[piece], some].T @ factors[piece]

        with single_threaded_blas():
            self._executor.run(chunk, -(-self.columns // STORED_COLUMNS))
        return out
