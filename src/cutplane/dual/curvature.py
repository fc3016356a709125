"""Whether a kernel of which nothing is known is positive semidefinite.

The values of few rows are factorised. Where Cholesky's method gets through on K + shift·I in
floating point, with a shift of at least c = (n + 2)·u·trace, K + (shift + c)·I is positive
semidefinite for certain (Rump 2006). Values computed in floating point are not semidefinite to
the last digit themselves, so that such a lift is all that can be proved; certificates take what it
may change off. More rows than PROVABLE are only looked at: some of them, and the pairs that the
solver met.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..kernels import NEGATIVE, KernelMatrix, has_negative_eigenvalue
from .problem import DualProblem

SAMPLE = 160  # rows on which a kernel is tested
PROVABLE = 2000  # rows whose values are factorised


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


def definiteness(known: bool | None, look: Callable[[], KernelMatrix]) -> Definiteness:
    """What is known of a kernel by its form (``known``), or by a proof on all of its rows."""
    if known is not None:
        return Definiteness("exact" if known else "withheld")
    matrix = look()
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
    if least_curvature < -NEGATIVE:
        return True
    rows = np.unique(problem.rows[beta != 0.0])
    if len(rows) < 2:
        rows = np.arange(matrix.columns)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.int64)]
    return has_negative_eigenvalue(matrix, rows)
