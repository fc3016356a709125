"""Where w lives: the inner products and combinations that the bundle needs.

The bundle never sees how w is stored. A space keeps the cuts' vectors in
slots and offers: the products of a new vector with all kept ones (a column of
the Gram matrix), combinations, and inner products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..exec import Executor
from ..loops import vectors
from ..loops.bounded import MANY, ROUNDING

SLAB_ROWS = 16
CHUNK_COLUMNS = 1 << 13


class VectorSpace:
    """Dense vectors of one length.

    Vectors lie in slabs of a few rows, so that growing copies nothing, and the
    slots of dropped vectors are used again. Long vectors are worked on in
    chunks of columns, whose partial sums are added in order.
    """

    def __init__(self, dimension: int, executor: Executor) -> None:
        self._dimension = dimension
        self._executor = executor
        self._slabs: list[np.ndarray] = []
        self._slots: list[int] = []  # of the kept vectors, in the bundle's order
        self._free: list[int] = []

    def append(self, vector: np.ndarray) -> np.ndarray:
        """Keep a vector; returns its products with all kept vectors, itself last."""
        if not self._free:
            first = len(self._slabs) * SLAB_ROWS
            self._slabs.append(np.zeros((SLAB_ROWS, self._dimension)))
            self._free = list(range(first + SLAB_ROWS - 1, first - 1, -1))
        slot = self._free.pop()
        self._slabs[slot // SLAB_ROWS][slot % SLAB_ROWS] = vector
        self._slots.append(slot)

        return self.products(vector)

    def products(self, vector: np.ndarray) -> np.ndarray:
        """Products of a vector with all kept ones."""
        in_use = np.zeros(len(self._slabs), np.int64)  # rows of each slab up to the last kept one
        slots = np.array(self._slots, np.int64)
        np.maximum.at(in_use, slots // SLAB_ROWS, slots % SLAB_ROWS + 1)

        def chunk(k: int) -> np.ndarray:
            first, last = self._chunk(k)
            out = np.zeros((len(self._slabs), SLAB_ROWS))
            for slab, part, used in zip(self._slabs, out, in_use, strict=True):
                vectors.add_dots(slab[:used], vector, first, last, part)
            return out.reshape(-1)

        return np.sum(self._executor.run(chunk, self._chunks), axis=0)[self._slots]

    def vector(self, position: int) -> np.ndarray:
        """A kept vector."""
        slot = self._slots[position]
        return self._slabs[slot // SLAB_ROWS][slot % SLAB_ROWS]

    def replace(self, vectors: np.ndarray) -> None:
        """Others in place of the kept ones, perhaps of another length."""
        count, self._dimension = vectors.shape
        self._slabs, self._slots, self._free = [], [], []
        for first in range(0, count, SLAB_ROWS):
            slab = np.zeros((SLAB_ROWS, self._dimension))
            slab[: min(SLAB_ROWS, count - first)] = vectors[first : first + SLAB_ROWS]
            self._slabs.append(slab)
        self._slots = list(range(count))
        self._free = list(range(len(self._slabs) * SLAB_ROWS - 1, count - 1, -1))

    def keep(self, positions: np.ndarray) -> None:
        """Forget all vectors but those at these positions."""
        kept = [self._slots[p] for p in positions]
        self._free += sorted(set(self._slots) - set(kept), reverse=True)
        self._slots = kept

    def combine(self, coef: np.ndarray) -> np.ndarray:
        """Σ_j coef[j]·vector_j."""
        by_slot = np.argsort(self._slots).tolist()
        out = np.zeros(self._dimension)

        def chunk(k: int) -> None:
            part = slice(*self._chunk(k))
            for j in by_slot:
                if coef[j] != 0.0:
                    out[part] += coef[j] * self.vector(j)[part]

        self._executor.run(chunk, self._chunks)
        return out

    def state(self) -> dict[str, Any]:
        """All that is kept, and where: sums are in the order of the slots.

        The vectors are not copied. They stay as they are until vectors that are dropped after
        this have been replaced by others.
        """
        return {
            "slabs": len(self._slabs),
            "slots": list(self._slots),
            "free": list(self._free),
            "vectors": [self.vector(position) for position in range(len(self._slots))],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        slots, free, capacity = state["slots"], state["free"], state["slabs"] * SLAB_ROWS
        whole = all(type(slot) is int for slot in slots + free)
        if not whole or sorted(slots + free) != list(range(capacity)):
            raise ValueError("the places of the cuts do not fit together")
        if len(state["vectors"]) != len(slots):
            raise ValueError("there are not as many cuts as places")
        self._slabs = [np.zeros((SLAB_ROWS, self._dimension)) for _ in range(state["slabs"])]
        self._slots, self._free = list(slots), list(free)
        for position, vector in enumerate(state["vectors"]):
            if vector.shape != (self._dimension,) or not np.isfinite(vector).all():
                raise ValueError("a cut is not as it was written")
            self.vector(position)[...] = vector

    def dot(self, u: np.ndarray, v: np.ndarray) -> float:
        """<u, v>."""
        return float(np.einsum("i,i->", u.reshape(-1), v.reshape(-1)))

    def error(self, coef: np.ndarray) -> float:
        """By how much |Σ_j coef[j]·vector_j|² may be below the square that it stands for.

        No coefficient is negative.
        """
        return 0.0

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._dimension

    @property
    def _chunks(self) -> int:
        return max(1, -(-self._dimension // CHUNK_COLUMNS))

    def _chunk(self, k: int) -> tuple[int, int]:
        first = k * CHUNK_COLUMNS
        return first, min(first + CHUNK_COLUMNS, self._dimension)


class CoordinateSpace(VectorSpace):
    """Coordinates of vectors that are kept elsewhere.

    Attributes
    ----------
    numbers : ndarray of int64
        Which of the vectors there each kept one is.

    Parameters
    ----------
    dimension, executor
        As for all vectors.
    errors : callable
        Gives a matrix: by how much products of the vectors there may be above those of their
        coordinates. None if nobody wants to know.
    """

    def __init__(
        self, dimension: int, executor: Executor, errors: Callable[[], np.ndarray | None]
    ) -> None:
        super().__init__(dimension, executor)
        self.numbers = np.zeros(0, np.int64)
        self._errors = errors

    def error(self, coef: np.ndarray) -> float:
        every = self._errors()
        if every is None:
            return 0.0
        errors = every[np.ix_(self.numbers, self.numbers)]
        rounding = 2.0 * (len(coef) + MANY) * ROUNDING * float(coef @ np.abs(errors) @ coef)
        return max(0.0, float(coef @ errors @ coef)) + rounding

    def keep(self, positions: np.ndarray) -> None:
        super().keep(positions)
        self.numbers = self.numbers[positions]
