"""Kernel values that users give, as a matrix or by a function of theirs: what they must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

SYMMETRY = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}


def call_kernel(function: Callable[[Any, Any], Any], left: Any, right: Any) -> np.ndarray:
    """The user's function of two sets of rows, checked."""
    shape = (left.shape[0], right.shape[0])
    values = function(left, right)
    if scipy.sparse.issparse(values):
        values = values.toarray()
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"kernel: the function must return an array of numbers: {error}") from None
    if values.shape != shape:
        raise ValueError(
            f"kernel: the function got {shape[0]} and {shape[1]} rows and must return an array "
            f"of shape {shape}, got {values.shape}"
        )
    if not np.all(np.isfinite(values)):
        a, b = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"kernel: the function returned {values[a, b]} for rows {a} and {b} of its arguments"
        )
    return values


def check_precomputed(values: np.ndarray) -> None:
    """A precomputed kernel of the training data is square and symmetric."""
    rows, columns = values.shape
    if rows != columns:
        raise ValueError(
            "Precomputed matrix must be a square matrix: kernel='precomputed' takes the kernel "
            f"values of all pairs of training rows, got {rows} × {columns}"
        )
    scale = float(np.max(np.abs(values), initial=0.0))
    for first in range(0, rows, 512):
        block = values[first : first + 512]
        apart = np.abs(block - values[:, first : first + 512].T)
        if np.max(apart) > SYMMETRY[values.dtype] * scale:
            a, b = np.unravel_index(np.argmax(apart), apart.shape)
            raise ValueError(
                f"kernel='precomputed' takes a symmetric matrix, but X[{first + a}, {b}] = "
                f"{block[a, b]:g} and X[{b}, {first + a}] = {values[b, first + a]:g}"
            )
