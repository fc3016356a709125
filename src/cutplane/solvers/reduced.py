"""The bundle of cuts and its reduced problem.

    min_w ½|w|² + C·max(0, max_j <a_j, w> + b_j)

through its dual, with β on the simplex and β_0 the share of the zero cut:

    max_β  C·bᵀβ − ½C²·βᵀGβ,    G_jk = <a_j, a_k>,    w = −C Σ β_j a_j.

Any feasible β gives a lower bound on the master problem. The bound is computed
from the cuts themselves, not from G, so that rounding in G cannot lift it.

The solver works on points with the geometry of the cuts. If the vectors a_j are short,
they are the points. Otherwise the points are the rows of a Cholesky factor of G, which have
one coordinate per cut but only half the digits: their error is C·|a|² times the rounding
unit. If this is too much, the solver takes the vectors after all. If they are very long, it
refines the solution instead, with gradients computed from w.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exec import Executor
from ..loops import gram_points, simplex_qp, vectors
from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as UNIT

# Rows of the arrays that vectors lie in, and columns of them that a thread works on at a time.
SLAB_ROWS = 16
CHUNK_COLUMNS = 1 << 13
# Cuts are dropped after so many solutions, see ``Bundle``.
IDLE_SOLUTIONS = 30
# Vectors up to this length cost no more than coordinates from G.
SHORT = 128
# Vectors up to this length are affordable where G is not precise enough.
AFFORDABLE = 4096
# Error of the reduced gradient, in units of the risk, above which G is not trusted with it.
GRAM_ERROR = 1e-9
MOST_REFINEMENTS = 10
# What is left of a vector that depends on others, relative to its length, is rounding.
DEPENDENT = 4e-15
# Solutions after which the solver's factor, or dropped cuts after which the
# coordinates, are computed anew so that rounding does not add up.
FACTOR_SOLUTIONS = 20
FORGOTTEN_CUTS = 100
# Arrays of a bundle with an element per cut.
_PER_CUT = ("offsets", "beta", "idle", "lengths")


@dataclass(frozen=True)
class ReducedSolution:
    """Solution of the reduced problem.

    Attributes
    ----------
    w : ndarray
        Its point, flat.
    squared_norm : float
        |w|².
    dual : float
        Its value: a lower bound on the master problem.
    """

    w: np.ndarray
    squared_norm: float
    dual: float


class VectorSpace:
    """The vectors of cuts, which all have one length.

    It gives the products of a new vector with all kept ones (a column of the Gram matrix) and
    combinations of them. Vectors lie in slabs of a few rows, so that growing copies nothing, and
    the slots of dropped vectors are used again. Long vectors are worked on in chunks of columns,
    whose partial sums are added in order.

    Attributes
    ----------
    dimension : int
        Length of the vectors.
    vectors : list of ndarray
        The kept vectors, in the bundle's order.
    """

    def __init__(self, dimension: int, executor: Executor) -> None:
        self.dimension = dimension
        self.vectors: list[np.ndarray] = []
        self._executor = executor
        self._slabs: list[np.ndarray] = []
        self._slots: list[int] = []  # of the kept vectors
        self._free: list[int] = []

    def append(self, vector: np.ndarray) -> np.ndarray:
        """Keep a vector; returns its products with all kept vectors, itself last."""
        if not self._free:
            first = len(self._slabs) * SLAB_ROWS
            self._slabs.append(np.zeros((SLAB_ROWS, self.dimension)))
            self._free = list(range(first + SLAB_ROWS - 1, first - 1, -1))
        slot = self._free.pop()
        own = self._slabs[slot // SLAB_ROWS][slot % SLAB_ROWS]
        own[:] = vector
        self._slots.append(slot)
        self.vectors.append(own)
        return self.products(vector)

    def products(self, vector: np.ndarray) -> np.ndarray:
        """Products of a vector with all kept ones."""
        in_use = np.zeros(len(self._slabs), np.int64)  # rows of each slab up to the last kept one
        slots = np.array(self._slots, np.int64)
        np.maximum.at(in_use, slots // SLAB_ROWS, slots % SLAB_ROWS + 1)

        def chunk(k: int) -> np.ndarray:
            first, last = k * CHUNK_COLUMNS, min((k + 1) * CHUNK_COLUMNS, self.dimension)
            out = np.zeros((len(self._slabs), SLAB_ROWS))
            for slab, part, used in zip(self._slabs, out, in_use, strict=True):
                vectors.add_dots(slab[:used], vector, first, last, part)
            return out.reshape(-1)

        chunks = max(1, -(-self.dimension // CHUNK_COLUMNS))
        return np.sum(self._executor.run(chunk, chunks), axis=0)[self._slots]

    def replace(self, vectors: np.ndarray) -> None:
        """Others in place of the kept ones, perhaps of another length."""
        count, self.dimension = vectors.shape
        self._slabs, self._slots, self._free = [], [], []
        for first in range(0, count, SLAB_ROWS):
            slab = np.zeros((SLAB_ROWS, self.dimension))
            slab[: min(SLAB_ROWS, count - first)] = vectors[first : first + SLAB_ROWS]
            self._slabs.append(slab)
        self._hold(list(range(count)))
        self._free = list(range(len(self._slabs) * SLAB_ROWS - 1, count - 1, -1))

    def keep(self, positions: np.ndarray) -> None:
        """Forget all vectors but those at these positions."""
        kept = [self._slots[p] for p in positions]
        self._free += sorted(set(self._slots) - set(kept), reverse=True)
        self._hold(kept)

    def _hold(self, slots: list[int]) -> None:
        """Make the vectors in these slots the kept ones."""
        self._slots = slots
        self.vectors = [self._slabs[slot // SLAB_ROWS][slot % SLAB_ROWS] for slot in slots]

    def combine(self, coef: np.ndarray) -> np.ndarray:
        """Σ_j coef[j]·vector_j."""
        by_slot = np.argsort(self._slots).tolist()
        out = np.zeros(self.dimension)

        def chunk(k: int) -> None:
            columns = slice(k * CHUNK_COLUMNS, (k + 1) * CHUNK_COLUMNS)
            for j in by_slot:
                if coef[j] != 0.0:
                    out[columns] += coef[j] * self.vectors[j][columns]

        self._executor.run(chunk, -(-self.dimension // CHUNK_COLUMNS))
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
            "vectors": list(self.vectors),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        slots, free, capacity = state["slots"], state["free"], state["slabs"] * SLAB_ROWS
        integers = all(type(slot) is int for slot in slots + free)
        if not integers or sorted(slots + free) != list(range(capacity)):
            raise ValueError("the places of the cuts do not fit together")
        if len(state["vectors"]) != len(slots):
            raise ValueError("there are not as many cuts as places")
        self._slabs = [np.zeros((SLAB_ROWS, self.dimension)) for _ in range(state["slabs"])]
        self._free = list(free)
        self._hold(list(slots))
        for own, vector in zip(self.vectors, state["vectors"], strict=True):
            fill(own, vector)

    def error(self, coef: np.ndarray) -> float:
        """By how much |Σ_j coef[j]·vector_j|² may be below the square that it stands for.

        No coefficient is negative.
        """
        return 0.0


class Bundle:
    """Cuts, their Gram matrix and the reduced problem, warm-started from solve to solve.

    Parameters
    ----------
    space : VectorSpace
    idle_solutions : int, optional
        Cuts whose weight was zero in more solutions in a row than this are dropped.
    """

    def __init__(self, space: VectorSpace, idle_solutions: int | None = None) -> None:
        self._space = space
        self._idle_solutions = IDLE_SOLUTIONS if idle_solutions is None else idle_solutions
        self._from_gram = space.dimension > SHORT
        self._count = 1  # the zero cut
        self._gram = np.zeros((32, 32))
        self._offsets = np.zeros(32)
        self._beta = np.zeros(32)
        self._beta[0] = 1.0
        self._idle = np.zeros(32, dtype=np.int64)
        self._place_all()

    def _place_all(self) -> None:
        """Make the points, and room for the solver's factor."""
        capacity = len(self._offsets)
        width = capacity if self._from_gram else self._space.dimension
        most = min(capacity, width) + 1  # points in the support, and one more
        self._points = np.zeros((capacity, width))
        self._lengths = np.zeros(capacity)
        self._basis = np.zeros((most, width))
        self._factor = np.zeros((most, most))
        self._support = np.zeros(most + 1, dtype=np.int64)
        self._work = np.zeros((2, max(most, capacity)))
        self._factored = -1  # points in the factor; −1 if there is none
        self._factor_age = 0
        self._forgotten = 0
        for j in range(1, self._count):
            self._place(j)

    def _place(self, j: int) -> None:
        """Make the point of cut j."""
        if self._from_gram:
            gram_points.embed(self._gram, self._points, j)
        else:
            self._points[j] = self._space.vectors[j - 1]
        self._lengths[j] = np.sqrt(self._gram[j, j])

    def __len__(self) -> int:
        """Cuts kept, not counting the zero cut."""
        return self._count - 1

    def add(self, a: np.ndarray, offset: float) -> None:
        """Add the cut <a, w> + offset."""
        new = self._count
        if new == len(self._offsets):  # no room: double it
            for name in ("_gram", "_offsets", "_beta", "_idle"):
                setattr(self, name, np.pad(getattr(self, name), (0, new)))
            self._place_all()
        column = self._space.append(a)
        self._gram[new, 1 : new + 1] = column
        self._gram[1 : new + 1, new] = column
        self._offsets[new] = offset
        self._beta[new] = 0.0
        self._idle[new] = 0
        self._count += 1
        self._place(new)

    def solve(self, C: float) -> ReducedSolution:
        """Solve the reduced problem for this C."""
        t = self._count
        precise = not self._from_gram or self._gram_error(C) < GRAM_ERROR
        if not precise and self._space.dimension <= AFFORDABLE:
            self._from_gram = False
            self._place_all()
            precise = True
        best = self._minimise(C, self._offsets[:t]) if precise else self._refined(C)
        self._idle[:t] = np.where(self._beta[:t] > 0.0, 0, self._idle[:t] + 1)
        return best

    @property
    def _jitter(self) -> float:
        """The largest part of |a|² by which coordinates from G are off."""
        return gram_points.JITTER * (1.0 + gram_points.JITTER_GROWTH * self._count)

    def _gram_error(self, C: float) -> float:
        """Error of the gradient from G: rounding, and the jitter where there is weight."""
        squares = self._gram.diagonal()[: self._count]
        weighted = self._beta[: self._count] * squares
        return C * float(max(np.finfo(float).eps * squares.max(), self._jitter * weighted.max()))

    def _minimise(self, C: float, offsets: np.ndarray) -> ReducedSolution:
        """Solve the problem of the points with these offsets, from the present weights.

        Returns the point of the new weights, and their bound with the cuts' own offsets.
        """
        t = self._count
        if self._factor_age == FACTOR_SOLUTIONS:
            self._factored = -1
        self._factor_age = 1 if self._factored < 0 else self._factor_age + 1
        beta = self._beta[:t]
        width, dependent = self._points.shape[1], DEPENDENT
        if self._from_gram:
            width, dependent = t, 2.0 * float(np.sqrt(self._jitter))
        problem = (self._points, self._lengths, offsets, C, width, dependent)
        factor = (self._basis, self._factor, self._support, *self._work, self._factored)
        _, _, self._factored = simplex_qp.solve(*problem, beta, np.zeros(t), *factor, 100 + 10 * t)
        beta /= beta.sum()
        w = self._space.combine(-C * beta[1:])
        squared_norm = float(np.einsum("i,i->", w, w))
        height = C * float(self._offsets[:t] @ beta)
        # What rounding may have done to w, to its square and to the sums.
        lost = (t + MANY) * UNIT * C * float(self._lengths[:t] @ beta)
        lost = lost * (np.sqrt(squared_norm) + lost)
        lost += (t + MANY) * UNIT * (abs(height) + squared_norm)
        lost += 0.5 * self._space.error(C * beta[1:])
        dual = height - 0.5 * squared_norm - float(lost)
        if not self._from_gram and self._factored >= 0:
            # The solver's own point is more precise than the one of the rounded weights,
            # which only the bound needs.
            w = -C * self._basis[self._factored]
            squared_norm = float(np.einsum("i,i->", w, w))
        return ReducedSolution(w, squared_norm, dual)

    def _refined(self, C: float) -> ReducedSolution:
        """Solve the problem of the points with gradients corrected by the vectors'."""
        t = self._count
        points = self._points[:t, :t]
        found: list[tuple[ReducedSolution, np.ndarray]] = []
        w = self._space.combine(-C * self._beta[1:t])
        gap = np.inf
        for _ in range(MOST_REFINEMENTS):
            beta = self._beta[:t]
            products = np.append(0.0, -self._space.products(w))
            gradient = products - self._offsets[:t]
            last, gap = gap, float(beta @ gradient - gradient.min())
            if found and (gap <= 0.0 or gap > 0.5 * last):
                break
            # With these offsets the points have the same gradient at β as the vectors.
            solution = self._minimise(C, C * (points @ (beta @ points)) - gradient)
            found.append((solution, self._beta[:t].copy()))
            w = solution.w
        best, beta = max(found, key=lambda pair: pair[0].dual)
        if not np.array_equal(beta, self._beta[:t]):
            self._beta[:t] = beta
            self._factored = -1
        return best

    def active(self) -> list[tuple[np.ndarray, float]]:
        """The cuts (a, offset) that carry weight in the last solution."""
        return [
            (self._space.vectors[j - 1].copy(), float(self._offsets[j]))
            for j in range(1, self._count)
            if self._beta[j] > 0.0
        ]

    @property
    def weights(self) -> np.ndarray:
        """Shares of the cuts in the last solution, in their order."""
        return self._beta[1 : self._count]

    @property
    def offsets(self) -> np.ndarray:
        """Of the cuts, in their order."""
        return self._offsets[1 : self._count]

    def replace(self, vectors: np.ndarray, offsets: np.ndarray) -> None:
        """Other vectors, perhaps in other coordinates, and offsets in place of the cuts' own."""
        self._space.replace(vectors)
        self._gram[1 : self._count, 1 : self._count] = vectors @ vectors.T
        self._offsets[1 : self._count] = offsets
        self._place_all()

    def state(self) -> dict[str, Any]:
        """All that further solutions depend on, to the last bit.

        Vectors are not copied; they stay as they are up to the next ``drop_idle`` and ``add``.
        """
        t, size = self._count, self._factored + 2  # one more row holds the solver's point
        return {
            "capacity": len(self._offsets),
            "from_gram": bool(self._from_gram),
            "gram": self._gram[:t, :t].copy(),
            "points": self._points[:t, :t].copy() if self._from_gram else None,
            **{name: getattr(self, f"_{name}")[:t].copy() for name in _PER_CUT},
            "basis": self._basis[:size].copy(),
            "factor": self._factor[:size, :size].copy(),
            "support": self._support[:size].copy(),
            "factored": int(self._factored),
            "factor_age": self._factor_age,
            "forgotten": self._forgotten,
            "space": self._space.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        t, capacity, space = len(state["offsets"]), int(state["capacity"]), state["space"]
        self._space.restore(space)
        most = max(32, 2 * (len(space["slots"]) + len(space["free"]) + 1))  # see ``add``
        if not 1 <= t <= capacity <= most or len(space["slots"]) != t - 1:
            raise ValueError("the parts of the bundle do not fit together")
        self._count, self._from_gram = t, bool(state["from_gram"])
        self._gram = np.zeros((capacity, capacity))
        fill(self._gram[:t, :t], state["gram"])
        self._offsets, self._beta = np.zeros((2, capacity))
        self._idle = np.zeros(capacity, dtype=np.int64)
        self._place_all()
        for name in _PER_CUT:
            fill(getattr(self, f"_{name}")[:t], state[name])
        if self._from_gram:
            fill(self._points[:t, :t], state["points"])
        size = len(state["basis"])
        fill(self._basis[:size], state["basis"])
        fill(self._factor[:size, :size], state["factor"])
        fill(self._support[: len(state["support"])], state["support"])
        self._factored = int(state["factored"])
        in_factor = self._support[: self._factored + 1]  # the base, and the factor's points
        if (
            not -1 <= self._factored < len(self._basis)
            or np.any((in_factor < 0) | (in_factor >= t))
            or len(np.unique(in_factor)) < self._factored + 1
        ):
            raise ValueError("the factor of the reduced problem does not fit the cuts")
        self._factor_age, self._forgotten = int(state["factor_age"]), int(state["forgotten"])

    def drop_idle(self) -> None:
        """Forget cuts that have not mattered for long; the last solution stays feasible."""
        t = self._count
        idle = self._idle[:t] > self._idle_solutions
        idle[0] = False
        if not idle.any():
            return
        kept = np.flatnonzero(~idle)
        new = len(kept)
        if self._from_gram:
            for gone, j in enumerate(np.flatnonzero(idle)[::-1]):
                gram_points.forget(
                    self._points, t - gone, j, self._basis, self._factored, *self._work
                )
            # Rows that are not in use: what enters them later must not find coordinates of
            # forgotten cuts there when new cuts bring these columns back.
            self._basis[:, new:t] = 0.0
        else:
            self._points[:new] = self._points[kept]
        self._gram[:new, :new] = self._gram[np.ix_(kept, kept)]
        for array in (self._offsets, self._beta, self._idle, self._lengths):
            array[:new] = array[kept]
        support = self._support[: self._factored + 1]  # all kept: they carry weight
        support[:] = np.searchsorted(kept, support)
        self._space.keep(kept[1:] - 1)
        self._count = new
        self._forgotten += t - new
        if self._from_gram and self._forgotten >= FORGOTTEN_CUTS:
            self._place_all()


def fill(array: np.ndarray, stored: np.ndarray) -> None:
    """Copy what was stored, if it is as it was: compiled loops rely on it."""
    if stored.shape != array.shape or stored.dtype != array.dtype or not np.isfinite(stored).all():
        raise ValueError("an array is not as it was written")
    array[...] = stored
