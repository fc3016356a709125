"""Whether a kernel of which nothing is known is positive semidefinite, as far as some rows tell."""

from __future__ import annotations

import numpy as np

from ..kernels import NEGATIVE, KernelMatrix, has_negative_eigenvalue
from .problem import DualProblem

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
    return has_negative_eigenvalue(matrix, rows) or bool(least_curvature < -NEGATIVE)
