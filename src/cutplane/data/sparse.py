"""Whether the arrays of a sparse matrix fit together.

Compiled loops, scipy's own included, follow indices without a look. scipy checks them when it
builds a matrix from rows and columns, but not when it is handed the arrays of a layout, nor when
they are changed afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def check_sparse(X: Any, name: str = "X") -> None:
    """Refuse a sparse matrix whose indices point outside of it; anything else passes."""
    layout = getattr(X, "format", None) if getattr(X, "ndim", 0) == 2 else None
    if layout in ("csr", "csc", "bsr"):
        sizes = [n // b for n, b in zip(X.shape, getattr(X, "blocksize", (1, 1)), strict=True)]
        lines, length = sizes if layout != "csc" else reversed(sizes)
        starts, indices = X.indptr, X.indices
        if len(starts) != lines + 1 or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
            wrong = f"indptr must hold {lines + 1} numbers that begin at 0 and never decrease"
        elif starts[-1] > min(len(indices), len(X.data)):
            wrong = (
                f"indptr ends at {starts[-1]}, but there are {len(indices)} indices and "
                f"{len(X.data)} values"
            )
        else:
            wrong = _outside("indices", indices[: starts[-1]], length)
    elif layout == "coo":
        wrong = _outside("row", X.row, X.shape[0]) or _outside("col", X.col, X.shape[1])
    else:
        return
    if wrong:
        raise ValueError(
            f"{name} is a damaged sparse matrix: {wrong}. Build it anew from its values, rows and "
            f"columns: scipy.sparse.csr_array((values, (rows, columns)), shape)"
        )


def _outside(name: str, indices: np.ndarray, length: int) -> str:
    """What is wrong with indices that must be from 0 to below ``length``; "" if nothing is."""
    if len(indices) == 0 or (indices.min() >= 0 and indices.max() < length):
        return ""
    bad = int(indices[np.argmax((indices < 0) | (indices >= length))])
    return f"{name} must be from 0 to {length - 1}, but one is {bad}"
