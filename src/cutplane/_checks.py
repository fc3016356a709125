"""Checks of parameters and input that the estimators share.

Every message names the parameter, what it got and what it takes.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

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


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """An integer in range."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name} must be an integer ≥ {at_least}, got {value!r}")
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
    from sklearn.utils.validation import _check_sample_weight

    if sample_weight is None:
        sample_weight = getattr(X, "own_weights", None)
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


def query_codes(qid: Any, rows: int) -> np.ndarray:
    """Queries as 0, 1, … in the order of their numbers; without qid all rows are one query."""
    if qid is None:
        return np.zeros(rows, dtype=np.int64)
    column = np.asarray(qid)
    if column.ndim != 1 or len(column) != rows:
        raise ValueError(f"qid must hold one number per row, {rows}; got shape {column.shape}")
    whole = np.issubdtype(column.dtype, np.integer)
    if np.issubdtype(column.dtype, np.floating):
        whole = bool(np.all(column == np.floor(column)) and np.all(np.isfinite(column)))
    if not whole or np.any(column < 0):
        bad = next((i for i, q in enumerate(column.tolist()) if not _is_query(q)), 0)
        raise ValueError(f"qid must hold integers ≥ 0, got {column[bad]!r} in row {bad}")
    return np.unique(column, return_inverse=True)[1]


def _is_query(value: Any) -> bool:
    return isinstance(value, int | float) and value >= 0 and value == value // 1


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
        raise ValueError(f"class_weight: {error}") from error
    if not np.all((factors >= 0.0) & np.isfinite(factors)):
        raise ValueError(f"class_weight must hold finite numbers ≥ 0, got {class_weight!r}")
    return factors
