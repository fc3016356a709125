"""Checks of parameters and columns, shared by estimators, readers and writers.

Every message names the parameter, what it got and what it takes.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np


def check_number(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    finite: bool = True,
) -> float:
    """A real number in range."""
    ok = isinstance(value, Real) and not isinstance(value, bool)
    if ok:
        ok = value > above and value >= at_least and (math.isfinite(value) or not finite)
    if not ok:
        bound = f" > {above:g}" if above > -math.inf else f" ≥ {at_least:g}"
        raise ValueError(f"{name} must be a {'finite ' * finite}number{bound}, got {value!r}")
    return float(value)


def check_integer(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """An integer in range."""
    ok = isinstance(value, Integral) and not isinstance(value, bool)
    if not ok or value < at_least or (at_most is not None and value > at_most):
        bound = f"≥ {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        raise ValueError(f"{name} must be an integer {bound}, got {value!r}")
    return int(value)


def plain(value: Any) -> Any:
    """A scalar of numpy as Python's own: its text is the value alone. Others as they are."""
    return value.item() if isinstance(value, np.generic) else value


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in choices:
        options = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name} must be one of {options}, got {value!r}")
    return value


def check_flag(name: str, value: Any) -> bool:
    """True or False; 1 and 0 pass for them."""
    if isinstance(value, (bool, np.bool_, Integral)) and value in (0, 1):
        return bool(value)
    raise ValueError(f"{name} must be True or False, got {value!r}")


def check_flag_or_auto(name: str, value: Any) -> bool | Literal["auto"]:
    """True, False or 'auto'."""
    if isinstance(value, bool | np.bool_ | str) and value in (True, False, "auto"):
        return "auto" if isinstance(value, str) else bool(value)
    raise ValueError(f"{name} must be True, False or 'auto', got {value!r}")


def check_n_jobs(n_jobs: Any) -> int | None:
    """None or a non-zero integer."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be None (all cores), a number of threads, or -1; got {n_jobs!r}"
        )
    return int(n_jobs)


def check_weights(sample_weight: Any, X: Any) -> np.ndarray:
    """Sample weights: finite, not negative, not all zero."""
    from sklearn.utils.validation import _check_sample_weight, _num_samples

    if sample_weight is None:
        return np.ones(_num_samples(X))
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(weights < 0):
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"sample_weight must not be negative, got {weights[row]:g} in row {row}; "
            "use 0 to leave a row out"
        )
    if not np.any(weights > 0):
        raise ValueError("sample_weight is zero for every row; at least two rows must count")
    return weights


def check_sparse(X: Any, name: str = "X") -> None:
    """Refuse a sparse matrix whose indices point outside of it; anything else passes.

    Compiled loops, scipy's own included, do not check indices, so a wrong index reads or writes
    foreign memory. scipy checks indices when it builds a matrix from rows and columns, but not when
    a caller gives it the arrays of a CSR, CSC or BSR matrix, nor when a caller changes the arrays
    afterwards.
    """
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


def check_column(
    name: str, values: Any, rows: int, *, at_least: float = -math.inf, where: str = ""
) -> np.ndarray:
    """One finite number per row; ``where`` opens the messages."""
    column = np.asarray(values)
    _check_length(name, column, rows, where)
    if column.dtype.kind not in "biuf":
        raise ValueError(f"{where}{name} must hold numbers, got type {column.dtype}")
    good = np.isfinite(column) & (column >= at_least)
    if not good.all():
        row = int(good.argmin())
        bound = "" if at_least == -math.inf else f" ≥ {at_least:g}"
        raise ValueError(
            f"{where}{name} must hold finite numbers{bound}, got {column[row]} in row {row}"
        )
    return column


def check_queries(qid: Any, rows: int, *, where: str = "") -> np.ndarray:
    """One query per row, an integer ≥ 0 of any type; ``where`` opens the messages."""
    column = np.asarray(qid)
    _check_length("qid", column, rows, where)
    good = np.zeros(rows, dtype=bool)
    if column.dtype.kind in "iuf":
        good = (column >= 0) & (column == np.floor(column)) & np.isfinite(column)
    if not good.all():
        row = int(good.argmin())
        raise ValueError(
            f"{where}qid must hold integers ≥ 0, got {plain(column[row])!r} in row {row}"
        )
    return column


def int64_queries(qid: Any, rows: int, *, where: str = "") -> np.ndarray:
    """The same as int64, for files."""
    column = check_queries(qid, rows, where=where)
    largest = 2**53 if column.dtype.kind == "f" else np.iinfo(np.int64).max
    if rows and column.max() > largest:
        raise ValueError(
            f"{where}qid holds {plain(column.max())!r}, beyond the largest integer of type "
            f"{column.dtype} that a file keeps; renumber the queries"
        )
    return column.astype(np.int64)


def _check_length(name: str, column: np.ndarray, rows: int, where: str) -> None:
    if column.shape != (rows,):
        raise ValueError(
            f"{where}{name} must hold one number per row, {rows}; got shape {column.shape}"
        )


def query_codes(qid: Any, rows: int) -> np.ndarray:
    """Queries as 0, 1, … in the order of their numbers; without qid all rows are one query."""
    if qid is None:
        return np.zeros(rows, dtype=np.int64)
    return np.unique(check_queries(qid, rows), return_inverse=True)[1]


def class_factors(
    class_weight: Any, classes: np.ndarray, encoded: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The factor on C of every class.

    'balanced' counts rows by their weights; a class without weight gets 1.
    """
    from sklearn.utils.class_weight import compute_class_weight

    if isinstance(class_weight, str) and class_weight == "balanced":
        mass = np.bincount(encoded, weights, minlength=len(classes))
        share = mass.sum() / np.count_nonzero(mass)
        return np.divide(share, mass, out=np.ones(len(classes)), where=mass > 0)
    try:
        factors = compute_class_weight(class_weight, classes=classes, y=classes[encoded])
        factors = np.asarray(factors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        known = classes.tolist()
        unknown = (
            [c for c in class_weight if c not in known] if hasattr(class_weight, "keys") else []
        )
        if unknown:
            raise ValueError(
                f"class_weight has a factor for {unknown[0]!r}, which is no class of y; the "
                f"classes are {', '.join(map(repr, known[:20]))}"
            ) from None
        raise ValueError(f"class_weight: {error}") from error
    if not np.all((factors >= 0.0) & np.isfinite(factors)):
        raise ValueError(f"class_weight must hold finite numbers ≥ 0, got {class_weight!r}")
    return factors
