"""What an svmlight file may contain: which indices, in which order, how large values."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from ..loops import svmlight as loops

logger = logging.getLogger("cutplane")

MOST_FEATURES = 2**31 - 1  # indices are kept in 32 bits

# The largest absolute value that rounds to a finite number of that type.
LARGEST_VALUE: dict[np.dtype, float] = {
    np.dtype(np.float64): float(np.finfo(np.float64).max),
    np.dtype(np.float32): float(np.nextafter(2.0**128 - 2.0**103, 0.0)),
}


@dataclass(frozen=True)
class Limits:
    """The limits of one file.

    Attributes
    ----------
    first : int or None
        The first index, 0 or 1; None if that is to be found out.
    n_features : int or None
    max_features : int
    ignore_unseen : bool
        Features beyond ``n_features`` are left out and counted, not an error.
    any_order : bool
        Indices need not increase within a row.
    dtype : numpy dtype
        Of the values.
    """

    first: int | None
    n_features: int | None
    max_features: int
    ignore_unseen: bool
    any_order: bool
    dtype: np.dtype

    @property
    def largest_value(self) -> float:
        return LARGEST_VALUE[self.dtype]

    def largest_index(self, features: int) -> int:
        """The last of so many features; the larger answer where the first index is unknown."""
        return features - 1 if self.first == 0 else features

    @property
    def largest_allowed(self) -> int:
        """The largest index that is not an error."""
        largest = self.largest_index(self.max_features)
        if self.n_features is None or self.ignore_unseen:
            return largest
        return min(largest, self.largest_index(self.n_features))

    @property
    def largest_kept(self) -> int:
        """The largest index that is not left out."""
        if self.n_features is None:
            return self.largest_allowed
        return min(self.largest_allowed, self.largest_index(self.n_features))

    def settings(self) -> np.ndarray:
        """For the compiled loop."""
        settings = np.empty(loops.SETTINGS, np.int64)
        settings[loops.SMALLEST] = self.first or 0
        settings[loops.LARGEST] = self.largest_allowed
        settings[loops.KEPT] = self.largest_kept
        settings[loops.ANY_ORDER] = self.any_order
        return settings


def state_first_index(name: str, lowest: int) -> int:
    """What indices are counted from, 0 or 1, by the smallest one; says so.

    Counting from 1 is the custom; 0 is worth a message that is seen without being asked for.
    """
    first = 0 if lowest == 0 else 1
    logger.log(
        logging.WARNING if first == 0 else logging.INFO,
        "%s: the smallest index is %s, so indices are counted from %d; pass zero_based=%s to "
        "say so",
        name,
        lowest if lowest < MOST_FEATURES else "missing",
        first,
        first == 0,
    )
    return first
