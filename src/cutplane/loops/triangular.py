"""Solving with a lower triangular factor in place, for vectors too short for a library call."""

from __future__ import annotations

from .._jit import jit


@jit
def solve_lower(factor, rank, x):
    """x[:rank] = L⁻¹ x[:rank]."""
    for i in range(rank):
        s = x[i]
        for j in range(i):
            s -= factor[i, j] * x[j]
        x[i] = s / factor[i, i]


@jit
def solve_upper(factor, rank, x):
    """x[:rank] = L⁻ᵀ x[:rank]."""
    for i in range(rank - 1, -1, -1):
        s = x[i] / factor[i, i]
        x[i] = s
        for j in range(i):
            x[j] -= factor[i, j] * s
