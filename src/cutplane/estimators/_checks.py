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


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in choices:
        options = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name} must be one of {options}, got {value!r}")
    return value


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
