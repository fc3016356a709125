"""Whether a kernel whose form says nothing is positive semidefinite.

Of such a kernel few rows are factorised. Let u be the unit of rounding. Where Cholesky's method
gets through on K + shift·I in floating point, with a shift of at least c = (n + 2)·u·trace, then
K + (shift + c)·I is positive semidefinite for certain (Rump 2006). Values computed in floating
point are not semidefinite to the last digit themselves, so such a lift is all that can be proved,
and certificates take off what it may change. Of kernels with more rows than PROVABLE only some rows
are tested, and the pairs that the solver met.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from . import KernelMatrix

SAMPLE = 160  # rows on which a kernel is tested
PROVABLE = 2000  # rows whose values are factorised
# A negative eigenvalue of larger relative size cannot come from rounding.
NEGATIVE = 1e-6


@dataclass(frozen=True)
class Definiteness:
    """What is known of a kernel.

    Attributes
    ----------
    kind : {'exact', 'conditional', 'withheld'}
        Of the certificates of its problems.
    lift : float
        If 'exact': K + lift·I is positive semidefinite.
    """

    kind: str
    lift: float = 0.0


def definiteness(matrix: KernelMatrix) -> Definiteness:
    """What a proof on all rows says of a kernel whose form says nothing."""
    if matrix.columns > PROVABLE:
        return Definiteness("conditional")
    values = np.array(matrix.whole(), dtype=np.float64)
    uneven = 0.5 * float(np.abs(values - values.T).sum(axis=1).max(initial=0.0))
    size = len(values)
    trace = float(np.abs(np.diagonal(values)).sum())
    needed = (size + 3.0) * float(np.finfo(np.float64).eps) * trace
    values = 0.5 * (values + values.T)
    values[np.diag_indices(size)] += 2.0 * needed
    try:
        scipy.linalg.cholesky(values, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        if has_negative_eigenvalue(matrix, np.arange(size)):
            return Definiteness("withheld")
        return Definiteness("conditional")
    return Definiteness("exact", 4.0 * needed + uneven)


def looks_indefinite(matrix: KernelMatrix, support: np.ndarray, least_curvature: float) -> bool:
    """Test a kernel on the pairs that the solver met and on some rows that matter.

    Parameters
    ----------
    matrix : KernelMatrix
    support : ndarray of int
        Rows with a part in the solution, ascending; fewer than two stand for all rows.
    least_curvature : float
        Of all pairs that were moved, relative to the diagonal.
    """
    if least_curvature < -NEGATIVE:
        return True
    rows = support if len(support) > 1 else np.arange(matrix.columns)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.int64)]
    return has_negative_eigenvalue(matrix, rows)


def has_negative_eigenvalue(matrix: KernelMatrix, rows: np.ndarray) -> bool:
    """Whether the values of some rows among themselves show that a kernel is not semidefinite."""
    square = matrix.rows(rows, rows).astype(np.float64)
    values = np.linalg.eigvalsh(0.5 * (square + square.T))
    return bool(values[0] < -NEGATIVE * np.max(np.abs(values)))
