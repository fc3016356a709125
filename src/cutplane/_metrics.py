"""What the metrics are computed with: checked columns and settings, gains and ties.

Every message names the parameter and what it takes.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np


def check_column(name: str, values: Any) -> np.ndarray:
    """Finite numbers in one dimension."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if column.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {column.shape}")
    if not np.all(np.isfinite(column)):
        row = int(np.argmin(np.isfinite(column)))
        raise ValueError(f"{name} must be finite, got {column[row]} in row {row}")
    return column


def check_columns(y_true: Any, y_score: Any) -> tuple[np.ndarray, np.ndarray]:
    """Targets and scores of the same rows."""
    truth, scores = check_column("y_true", y_true), check_column("y_score", y_score)
    _same_length("y_score", scores, len(truth))
    if not len(truth):
        raise ValueError("y_true is empty")
    return truth, scores


def _same_length(name: str, column: np.ndarray, rows: int) -> None:
    if len(column) != rows:
        raise ValueError(f"{name} has {len(column)} rows, y_true has {rows}")


def check_classes(y_true: Any, y_score: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are positive, and the scores."""
    truth, scores = check_columns(y_true, y_score)
    found = set(np.unique(truth).tolist())
    if not (found <= {0.0, 1.0} or found <= {-1.0, 1.0}):
        raise ValueError("y_true must hold the classes 0 and 1, or −1 and 1, and no others")
    return truth == 1.0, scores


def count_positive(positive: np.ndarray) -> int:
    """Number of positive rows, at least one."""
    count = int(np.count_nonzero(positive))
    if not count:
        raise ValueError("y_true has no positive row")
    return count


def check_weights(sample_weight: Any, rows: int) -> np.ndarray:
    """Weights ≥ 0."""
    weights = check_column("sample_weight", sample_weight)
    _same_length("sample_weight", weights, rows)
    if np.any(weights < 0.0):
        raise ValueError("sample_weight must not be negative")
    return weights


def check_k(k: Any, most: float = np.inf) -> int:
    """A number of positions."""
    if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= int(k) <= most:
        bound = "" if most == np.inf else f" and ≤ {most}, the number of rows"
        raise ValueError(f"k must be an integer ≥ 1{bound}, got {k!r}")
    return int(k)


def row_gains(truth: np.ndarray, gains: str) -> np.ndarray:
    """What a row adds to the DCG at position 1."""
    if truth.min() < 0.0:
        raise ValueError(f"y_true must not be negative, got {truth.min():g}")
    if gains == "linear":
        return truth
    if truth.max() > 1000.0:  # 2^y ends at 1024, their sum before
        raise ValueError(
            f"y_true up to {truth.max():g} is too large for gains='exponential'; use 'linear'"
        )
    return np.exp2(truth) - 1.0


def tied_means(gain: np.ndarray, query: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Sorted rows: the mean gain of the rows of the same query and score."""
    new = np.ones(len(gain), dtype=bool)
    new[1:] = (query[1:] != query[:-1]) | (scores[1:] != scores[:-1])
    first = np.flatnonzero(new)
    sizes = np.diff(first, append=len(gain))
    return np.repeat(np.add.reduceat(gain, first) / sizes, sizes)


def expected_hits(positive: np.ndarray, scores: np.ndarray, k: Any) -> float:
    """Expected number of positive rows among the k of largest score."""
    k = check_k(k, len(scores))
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    above, tied = scores > last, scores == last
    missing = k - np.count_nonzero(above)
    return float(np.count_nonzero(positive & above) + missing * np.mean(positive[tied]))
