"""Splice sites as the OCAS paper has them in number and shape: generated, any number of rows.

A row is a window of 141 letters, one of four indicators each: 564 columns, stored densely. One row
in thirty is positive and has most of a motif before the middle, as acceptor sites have.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

POSITIONS = 141
FEATURES = 4 * POSITIONS
POSITIVE = 1 / 30
CHUNK_ROWS = 20_000
_MOTIF = np.array([3, 3, 1, 3, 3, 3, 1, 1, 3, 3, 1, 0, 2, 2])  # TTCTTTCCTTCAGG
_KEPT = 0.6  # share of the motif's letters that a positive row has


def splice_chunks(
    rows: int, dtype: type = np.float32, seed: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Chunks of (X, y), X of type ``dtype``. A chunk does not depend on the number of rows."""
    for number, first in enumerate(range(0, rows, CHUNK_ROWS)):
        rng = np.random.default_rng((seed, number))
        yield _chunk(min(CHUNK_ROWS, rows - first), rng, dtype)


def _chunk(rows: int, rng: np.random.Generator, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    letters = rng.integers(0, 4, (CHUNK_ROWS, POSITIONS), dtype=np.uint8)[:rows]
    y = np.where(rng.random(CHUNK_ROWS) < POSITIVE, 1, -1)[:rows].astype(np.int8)
    first = POSITIONS // 2 - len(_MOTIF)
    kept = rng.random((CHUNK_ROWS, len(_MOTIF)))[:rows] < _KEPT
    places = letters[:, first : first + len(_MOTIF)]
    places[...] = np.where(kept & (y[:, None] > 0), _MOTIF, places)
    X = np.eye(4, dtype=dtype)[letters].reshape(rows, FEATURES)
    return X, y
