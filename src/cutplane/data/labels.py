"""Labels on the way to disk: numbers as float64, text as places in a list.

The distinct labels and how often they occur are counted on the way, unless there are very many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MOST_LABELS = 1 << 16  # that are counted
LARGEST_INTEGER = 2**53  # that float64 tells from the next one


class LabelWriter:
    """What the labels so far are."""

    def __init__(self) -> None:
        self._kind: str | None = None
        self._counts: dict[Any, int] | None = {}

    def encode(self, y: Any, rows: int, where: str) -> np.ndarray:
        """Labels as they are stored: float64, or int32 for text."""
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.shape != (rows,):
            raise ValueError(
                f"{where}: y must hold one label per row, {rows}; got shape {labels.shape}"
            )
        kind = _kind_of(labels)
        if kind is None:
            raise ValueError(
                f"{where}: labels must be finite numbers or text, got type {labels.dtype}"
            )
        if self._kind is not None and (kind == "text") != (self._kind == "text"):
            raise ValueError(f"{where}: labels are {kind}, those before {self._kind}")
        if self._kind != "real":
            self._kind = kind
        return self._text(labels, where) if kind == "text" else self._numbers(labels, where)

    def _numbers(self, labels: np.ndarray, where: str) -> np.ndarray:
        if labels.dtype.kind in "iu" and np.any(
            (labels > LARGEST_INTEGER) | (labels < -LARGEST_INTEGER)
        ):
            raise ValueError(f"{where}: integer labels must be within ±2⁵³")
        numbers = labels.astype(np.float64)
        if not np.all(np.isfinite(numbers)):
            bad = int(np.argmin(np.isfinite(numbers)))
            raise ValueError(
                f"{where}: label {numbers[bad]} in row {bad} of the chunk is not finite"
            )
        if self._counts is not None:
            for label, count in zip(*np.unique(numbers, return_counts=True), strict=True):
                self._counts[float(label)] = self._counts.get(float(label), 0) + int(count)
            if len(self._counts) > MOST_LABELS:
                self._counts = None
        return numbers

    def _text(self, labels: np.ndarray, where: str) -> np.ndarray:
        assert self._counts is not None
        names, places, counts = np.unique(
            labels.astype(str), return_inverse=True, return_counts=True
        )
        for name, count in zip(names.tolist(), counts.tolist(), strict=True):
            self._counts[name] = self._counts.get(name, 0) + count
        if len(self._counts) > MOST_LABELS:
            raise ValueError(f"{where}: there are more than {MOST_LABELS} different labels of text")
        order = {name: k for k, name in enumerate(self._counts)}
        return np.array([order[name] for name in names.tolist()], np.int32)[places]

    def summary(self) -> tuple[str | None, tuple[Any, ...] | None, tuple[int, ...] | None]:
        """Kind, distinct labels, and how many rows have them."""
        if self._kind is None or self._counts is None:
            return self._kind, None, None
        labels = list(self._counts)
        if self._kind != "text":
            labels.sort()
        shown = [int(label) for label in labels] if self._kind == "integer" else labels
        return self._kind, tuple(shown), tuple(self._counts[label] for label in labels)


def _kind_of(labels: np.ndarray) -> str | None:
    if labels.dtype.kind in "biu":
        return "integer"
    if labels.dtype.kind == "f":
        return "real"
    if labels.dtype.kind in "UT":
        return "text"
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
        return "text"
    return None
