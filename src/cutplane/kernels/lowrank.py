"""Low-rank approximation of a kernel: pivoted incomplete Cholesky, and projections.

Rows B = {b_1, …, b_m} are chosen from candidates one after the other. Each is the row whose φ(x) is
farthest from the span of the rows before (Fine & Scheinberg 2001). With K_BB = LLᵀ the features

    z(x) = L⁻¹ k_B(x)

have <z(x), z(x')> = <Pφ(x), Pφ(x')>, P the projection to the span of φ(B); and the projection of
w = Σ_i coef_i·φ(x_i) is Σ_b c_b·φ(x_b) with c = L⁻ᵀL⁻¹ K_B· coef.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from . import KernelMatrix

# A row whose squared distance from the span is less than this part of the largest k(x, x) is in
# it, as far as the values' precision tells.
DEPENDENT = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
# Numbers of the factor that is kept while pivots are chosen: half a gigabyte.
FACTOR_NUMBERS = 1 << 26


@dataclass(frozen=True)
class Basis:
    """Rows whose images span a subspace.

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
        Square.
    candidates : ndarray of int64
        Rows to choose from.
    rank : int
        How many, at most.
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
        left[chosen] = 0.0  # exactly, whatever rounding left
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


def projected(
    matrix: KernelMatrix, rows: np.ndarray, coef: np.ndarray, most: int, among: int | None = None
) -> Projection:
    """Project Σ_i coef_i·φ(x_i) to the span of at most so many of the rows.

    Parameters
    ----------
    matrix : KernelMatrix
        Square.
    rows : ndarray of int64, shape (n,)
    coef : ndarray, shape (n, outputs)
    most : int
    among : int, optional
        Rows to choose from, those of the largest coefficients; by default as memory allows.
    """
    among = among or max(2 * most, FACTOR_NUMBERS // most)
    size = np.max(np.abs(coef), axis=1)
    candidates = np.sort(rows[np.argsort(-size, kind="stable")[:among]])
    basis = pivoted_cholesky(matrix, candidates, most)
    scores = matrix.combine(rows, coef, basis.rows)  # <w, φ(b)>
    half = scipy.linalg.solve_triangular(basis.factor, scores, lower=True)
    reduced = scipy.linalg.solve_triangular(basis.factor, half, lower=True, trans="T")
    # |w − Pw|² = Σ_i coef_i·(w − Pw)(x_i): the difference itself, without the cancellation of
    # |w|² − |Pw|².
    apart = matrix.combine(rows, coef, rows) - matrix.combine(basis.rows, reduced, rows)
    squares = np.einsum("ij,ij->j", coef, apart)
    error = float(np.sqrt(np.max(np.maximum(squares, 0.0), initial=0.0)))
    return Projection(basis.rows, reduced, basis.factor, error)
