"""Targets that are ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

Rows = tuple[Any, ...]  # X and y, and the query of each row if there are queries


def equal_ranks(y: np.ndarray, count: int) -> np.ndarray:
    """Ranks 0, 1, … with about equally many rows each. Equal targets get the same rank."""
    edges = np.quantile(y, np.arange(1, count) / count)
    return np.searchsorted(edges, y, side="right").astype(np.int64)
