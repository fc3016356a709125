"""Whether a kernel of which nothing is known is positive semidefinite, as far as some rows tell."""

from __future__ import annotations

import numpy as np

from ..kernels import KernelMatrix
from .problem import DualProblem

NEGATIVE = 1e-6  # relative size of a negative eigenvalue that rounding does not explain
SAMPLE = 160  # rows on which a kernel is tested


def looks_indefinite(
    matrix: KernelMatrix, problem: DualProblem, beta: np.ndarray, least_curvature: float
) -> bool:
    """Test a kernel on the pairs that the solver met and on some rows that matter.

    Parameters
    ----------
    matrix : KernelMatrix
    problem : DualProblem
    beta : ndarray
        The solution: its support vectors are tested.
    least_curvature : float
        Of all pairs that were moved, relative to the diagonal.
    """
    rows = np.unique(problem.rows[beta != 0.0])
    if len(rows) < 2:
        rows = np.arange(matrix.columns)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.int64)]
    square = matrix.rows(rows, rows).astype(np.float64)
    values = np.linalg.eigvalsh(0.5 * (square + square.T))
    negative = values[0] < -NEGATIVE * np.max(np.abs(values))
    return bool(negative or least_curvature < -NEGATIVE)
