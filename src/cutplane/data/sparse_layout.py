"""How sparse rows are best read: indices in few bits, and rows whose values are all equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .blocks import Runner

# No larger copy of indices is made without need; and none larger than the second size for many
# features, whose fits are by a few passes of descent rather than by a hundred of cutting planes.
COMPACT_BYTES = 1 << 29
FEW_PASSES_BYTES, MANY_FEATURES = 1 << 25, 4096
# Numbers that are worth a thread's while to copy.
SHARED_COPY = 1 << 20
# Rows that are looked at before all are, for whether values of a row are equal.
ROWS_AT_FIRST = 64


def compact_indices(
    indices: np.ndarray, features: int, compact: bool, runner: Runner | None
) -> np.ndarray:
    """Indices in 16 bits where they fit and a copy pays, else unsigned in 32 bits."""
    short = features <= 1 << 16
    room = COMPACT_BYTES if features <= MANY_FEATURES else FEW_PASSES_BYTES
    if indices.dtype == np.int32 and not (short and compact and 2 * len(indices) <= room):
        return indices.view(np.uint32)
    dtype = np.uint16 if short else np.uint32
    if runner is None or len(indices) < SHARED_COPY:
        return indices.astype(dtype)
    copy = np.empty(len(indices), dtype)

    def part(k: int) -> None:
        numbers = slice(k * SHARED_COPY, (k + 1) * SHARED_COPY)
        copy[numbers] = indices[numbers]

    runner.run(part, -(-len(indices) // SHARED_COPY))
    return copy


def equal_in_rows(values: np.ndarray, starts: np.ndarray, runner: Runner | None) -> bool:
    """Whether all rows have equal values, as indicators have. Others soon show that they do not."""
    rows = len(starts) - 1
    some = min(rows, ROWS_AT_FIRST)
    tasks = max(1, int(starts[-1] - starts[0]) // SHARED_COPY)
    edges = some + (rows - some) * np.arange(tasks + 1) // tasks

    def part(k: int) -> bool:
        first, last = (0, some) if k < 0 else (edges[k], edges[k + 1])
        own = values[starts[first] : starts[last]]
        changes = own[1:] != own[:-1]
        ends = starts[first:last] - starts[first]  # where others may follow
        ends = ends[(ends > 0) & (ends < len(own)) & (np.diff(ends, append=-1) != 0)]
        return np.count_nonzero(changes) == np.count_nonzero(changes[ends - 1])

    if starts[0] == starts[-1] or not part(-1):
        return False
    return all(map(part, range(tasks)) if runner is None else runner.run(part, tasks))
