"""Low-rank approximation of a kernel: pivoted incomplete Cholesky, and projections.

The rows B = {b_1, …, b_m} are chosen from candidates, one after the other: always the row whose
φ(x) is farthest from the span of the rows before (Fine & Scheinberg 2001). Let K_BB = LLᵀ, and let
P be the projection to the span of φ(B). The features

    z(x) = L⁻¹ k_B(x)

have <z(x), z(x')> = <Pφ(x), Pφ(x')>. The projection of w = Σ_i coef_i·φ(x_i) is Σ_b c_b·φ(x_b) with
c = L⁻ᵀL⁻¹ K_B· coef, where K_B· has the kernel values of B with all rows x_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from . import KernelMatrix

# If the squared distance of a row from the span is less than this part of the largest k(x, x), the
# precision of the kernel values does not tell whether it is 0.
DEPENDENT = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
# ``projected`` takes so many candidates that their factor, (rank, candidates), has about so many
# numbers: half a gigabyte.
FACTOR_NUMBERS = 1 << 26


@dataclass(frozen=True)
class Basis:
    """Rows B, whose φ(B) span a subspace of the feature space.

    Attributes
    ----------
    rows : ndarray of int64, shape (m,)
    factor : ndarray, shape (m, m)
        L, lower triangular: LLᵀ are the kernel values of the rows.
    residual : float
        The largest squared distance of a candidate from the span.
    """

    rows: np.ndarray
    factor: np.ndarray
    residual: float


def pivoted_cholesky(
    matrix: KernelMatrix, candidates: np.ndarray, rank: int, tol: float = 0.0
) -> Basis:
    """Choose rows by pivoted incomplete Cholesky.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel values of all pairs of rows.
    candidates : ndarray of int64
        Rows to choose from.
    rank : int
        The largest number of rows to choose.
    tol : float, default=0
        Stop when all squared distances are at most this part of the largest k(x, x).
    """
    columns = matrix.restricted(candidates)
    left = np.array(matrix.diagonal[candidates], dtype=np.float64)
    enough = max(tol, DEPENDENT[matrix.dtype]) * float(np.max(left, initial=0.0))
    rank = min(rank, len(candidates))
    lines = np.zeros((rank, len(candidates)))
    chosen: list[int] = []
    for k in range(rank):
        pivot = int(np.argmax(left))
        if left[pivot] <= enough:
            break
        line = columns.rows(candidates[pivot : pivot + 1])[0].astype(np.float64)
        line -= lines[:k, pivot] @ lines[:k]
        line /= np.sqrt(left[pivot])
        lines[k] = line
        left -= line * line
        chosen.append(pivot)
        left[chosen] = 0.0  # without rounding errors
    factor = np.tril(lines[: len(chosen), chosen].T)
    return Basis(candidates[chosen], factor, float(np.max(left, initial=0.0)))


@dataclass(frozen=True)
class Projection:
    """A model projected to the span of fewer rows.

    Attributes
    ----------
    rows : ndarray of int64, shape (m,)
    coef : ndarray, shape (m, outputs)
    factor : ndarray, shape (m, m)
        L, lower triangular: LLᵀ are the kernel values of the rows.
    error : float
        The largest |w − Pw| of an output.
    """

    rows: np.ndarray
    coef: np.ndarray
    factor: np.ndarray
    error: float


def projected(matrix: KernelMatrix, rows: np.ndarray, coef: np.ndarray, most: int) -> Projection:
    """Project Σ_i coef_i·φ(x_i) to the span of at most ``most`` of the rows x_i.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel values of all pairs of rows.
    rows : ndarray of int64, shape (n,)
    coef : ndarray, shape (n, outputs)
    most : int
    """
    # The rows with the largest coefficients are the candidates.
    among = max(2 * most, FACTOR_NUMBERS // most)
    size = np.max(np.abs(coef), axis=1)
    candidates = np.sort(rows[np.argsort(-size, kind="stable")[:among]])
    basis = pivoted_cholesky(matrix, candidates, most)
    scores = matrix.combine(rows, coef, basis.rows)  # <w, φ(b)>
    half = scipy.linalg.solve_triangular(basis.factor, scores, lower=True)
    reduced = scipy.linalg.solve_triangular(basis.factor, half, lower=True, trans="T")
    # |w − Pw|² is computed as Σ_i coef_i·(w − Pw)(x_i), because |w|² − |Pw|² would cancel.
    apart = matrix.combine(rows, coef, rows) - matrix.combine(basis.rows, reduced, rows)
    squares = np.einsum("ij,ij->j", coef, apart)
    error = float(np.sqrt(np.max(np.maximum(squares, 0.0), initial=0.0)))
    return Projection(basis.rows, reduced, basis.factor, error)
