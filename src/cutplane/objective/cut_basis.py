"""The span of the cuts in a kernel's feature space, with coordinates in an orthonormal basis.

In the feature space a cut's vector is an expansion g = Σ_l φ(x_l)⊗coef_l over a few rows. coef_l is
one number, or one number per output. With G_jk = <g_j, g_k> = (LLᵀ)_jk the rows of L are the
coordinates of the cuts in an orthonormal basis of their span:

    <g_j, g_k> = <L_j, L_k>,    w = Σ_k u_k·g_k  has the coordinates  v = Lᵀu.

So bundle, step and objective work on short vectors with the usual inner product, and need not know
that the vectors stand for functions. The coordinates of a new vector are L⁻¹ times its products
with the cuts, and u = L⁻ᵀv leads back to expansions and scores.

A span grows by one coordinate per cut. ``kept`` makes a new span of some of the vectors, to forget
dropped cuts.

What rounding does to the lower bound
-------------------------------------
The lower bound of weights β ≥ 0 of the cuts is C·bᵀβ − ½C²·|Σ_j β_j g_j|². It is computed with L_j
in the place of g_j, so it is too high by at most

    ½C²·Σ_jk β_j·β_k·E_jk,    E_jk ≥ <g_j, g_k> − <L_j, L_k>,

whatever the numbers L_j are. ``errors`` holds such an E. Let u be the unit of rounding. E is the
sum of three parts:

1. A bound on the error of the computed product p_jk. Kernel values are off by a·u·√K_ii·√K_ll
   (a is ``KernelMatrix.amplification``), and |K_ii'| ≤ √K_ii·√K_i'i', because the kernel is
   positive semidefinite. The product is a sum of n_j terms of g_j times sums of n_k terms of g_k.
   With s_j = Σ_l |coef_l|·√K_ll the error is at most u·(n_j + n_k + a + r)·s_j·s_k, where r counts
   the other roundings: one in the precision of the values, in which scores are kept, and a few
   in double precision. With several outputs s_j·s_k is a sum over the outputs.
2. p_jk − <L_j, L_k>. This contains the rounding of the factor, and, for a vector that was taken
   to depend on others, all of its distance from their span. It is computed from the numbers, with
   its sign.
3. A bound on the rounding errors of the second part: u·(coordinates + 2)·(|L_j|·|L_k| + |p_jk|).

A new span of the same vectors takes <L_j, L_k> of the old span for p_jk. Then the old E takes the
place of the first part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels import KernelMatrix
from ..loops.bounded import FEW, ROUNDING
from ..loops.cut_basis import solve_lower, solve_upper
from ..loops.vectors import add_dots, combine_strips

# A squared length is computed as a difference. If it is negative by more than this part of the
# larger term, the cause is not rounding: the kernel is not positive semidefinite.
NEGATIVE = 1e-4


@dataclass(frozen=True)
class Expansion:
    """Σ_l φ(x_l)⊗coef_l.

    Attributes
    ----------
    rows : ndarray of int64, shape (terms,)
    coef : ndarray of float64, shape (terms,) or (terms, outputs)
    """

    rows: np.ndarray
    coef: np.ndarray


def combined(expansions: Sequence[Expansion], factors: np.ndarray) -> Expansion:
    """Σ_k factors[k]·expansion_k, with every row once, in order, and without rows of weight 0."""
    used = [(f, e) for f, e in zip(factors, expansions, strict=True) if f != 0.0]
    if not used:
        shape = expansions[0].coef.shape[1:] if expansions else ()
        return Expansion(np.zeros(0, np.int64), np.zeros((0, *shape)))
    rows, place = np.unique(np.concatenate([e.rows for _, e in used]), return_inverse=True)
    coef = np.zeros((len(rows), *used[0][1].coef.shape[1:]))
    np.add.at(coef, place, np.concatenate([f * e.coef for f, e in used]))
    weighty = coef != 0.0 if coef.ndim == 1 else np.any(coef != 0.0, axis=1)
    return Expansion(rows[weighty], coef[weighty])


class CutBasis:
    """Vectors with coordinates.

    A vector that depends on earlier vectors has coordinates but adds no dimension. w is a
    combination of the other vectors, and its product with the dependent one is right, too.

    Attributes
    ----------
    capacity : int
        Length of the coordinate vectors, which is also the largest number of vectors.
    expansions : list of Expansion
    errors : ndarray, shape (capacity, capacity)
        Bounds on how much products of vectors exceed products of their coordinates.
    negative : bool
        Whether a squared length was negative beyond rounding, which a positive semidefinite kernel
        cannot give.

    Parameters
    ----------
    capacity : int
    dependent : float
        A vector whose squared distance from the span, relative to its square, is at most this
        counts as dependent: the products are not precise enough to tell.
    values : KernelMatrix
        The kernel matrix from which products are computed.
    """

    def __init__(self, capacity: int, dependent: float, values: KernelMatrix) -> None:
        self.capacity = capacity
        self.dependent = dependent
        self.expansions: list[Expansion] = []
        self.errors = np.zeros((capacity, capacity))
        self.negative = False
        self._values = values
        self._sizes: list[np.ndarray] = []  # for every vector, Σ |coef|·√k(x, x) by output
        self._coordinates = np.zeros((capacity, capacity))
        self._independent: list[int] = []
        self._factor = np.zeros((capacity, capacity))

    def __len__(self) -> int:
        return len(self.expansions)

    @property
    def rank(self) -> int:
        """Coordinates in use."""
        return len(self._independent)

    def add(self, expansion: Expansion, products: np.ndarray, squared: float) -> np.ndarray:
        """Add a vector.

        Parameters
        ----------
        expansion : Expansion
        products : ndarray, shape (vectors,)
            Its products with the vectors of the basis.
        squared : float
            Its product with itself.

        Returns
        -------
        coordinates : ndarray, shape (capacity,)
        """
        values = self._values
        root = np.sqrt(np.abs(values.diagonal[expansion.rows]))
        self._sizes.append(np.atleast_1d(root @ np.abs(expansion.coef)))
        terms = np.array([e.coef.size for e in self.expansions] + [expansion.coef.size])
        coarse = float(np.finfo(values.dtype).eps / np.finfo(np.float64).eps)
        units = terms + terms[-1] + values.amplification + coarse + FEW
        errors = ROUNDING * units * (np.array(self._sizes) @ self._sizes[-1])
        return self._place(expansion, np.append(products, squared), errors)

    def _place(self, expansion: Expansion, products: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Coordinates of a vector from its products with all vectors, itself last; see ``add``."""
        count, rank, squared = len(self), len(self._independent), float(products[-1])
        line = self._coordinates[count]
        line[:rank] = products[self._independent]
        solve_lower(self._factor, rank, line)
        within = float(np.einsum("i,i->", line[:rank], line[:rank]))
        size = max(squared, within)
        self.negative |= squared - within < -NEGATIVE * size
        if squared - within > self.dependent * size:
            line[rank] = np.sqrt(squared - within)
            self._factor[rank] = line
            self._independent.append(count)
        self.expansions.append(expansion)
        placed = self._coordinates[: count + 1, : rank + 1]
        errors = errors + (products - placed @ placed[-1])
        lengths = np.sqrt(np.einsum("ij,ij->i", placed, placed))
        errors += ROUNDING * (rank + FEW) * (lengths * lengths[-1] + np.abs(products))
        self.errors[count, : count + 1] = self.errors[: count + 1, count] = errors
        return line.copy()

    def projected(self, products: np.ndarray) -> np.ndarray:
        """Coordinates of any function's projection, from its products with the vectors."""
        rank = len(self._independent)
        out = np.zeros(self.capacity)
        out[:rank] = products[self._independent]
        solve_lower(self._factor, rank, out)
        return out

    def coordinates(self, vectors: np.ndarray) -> np.ndarray:
        """Coordinates of some vectors, one row each."""
        return self._coordinates[vectors]

    def factors(self, w: np.ndarray) -> np.ndarray:
        """u with w = Σ_k u_k·g_k, from coordinates."""
        rank = len(self._independent)
        own = w[:rank].copy()
        solve_upper(self._factor, rank, own)
        u = np.zeros(len(self))
        u[self._independent] = own
        return u

    def expand(self, w: np.ndarray) -> Expansion:
        """The expansion of a point."""
        return combined(self.expansions, self.factors(w))

    def kept(self, vectors: np.ndarray, capacity: int, *points: np.ndarray) -> CutBasis:
        """A new basis of some of these vectors, and of points of the span that are no cuts."""
        other = CutBasis(capacity, self.dependent, self._values)
        other.negative = self.negative
        other._sizes = [self._sizes[k] for k in vectors] + [0.0 * self._sizes[0]] * len(points)
        coordinates = np.vstack([self.coordinates(vectors), *points])
        expansions = [self.expansions[k] for k in vectors] + [self.expand(w) for w in points]
        old = np.zeros((len(expansions), len(expansions)))
        old[: len(vectors), : len(vectors)] = self.errors[np.ix_(vectors, vectors)]
        for k, expansion in enumerate(expansions):
            products = np.einsum("ij,j->i", coordinates[: k + 1], coordinates[k])
            other._place(expansion, products, old[k, : k + 1])
        return other


class ScoreTable:
    """The scores of all rows under every vector of a basis, in chunks of rows.

    Parameters
    ----------
    slices : sequence of slice
        The chunks.
    outputs : int or None
        Scores per row.
    dtype : dtype
        Type of the kernel values. Scores, which are sums of them, are kept in the same precision.
    """

    def __init__(
        self, slices: Sequence[slice], outputs: int | None, dtype: np.dtype | type = np.float64
    ) -> None:
        self._slices = slices
        self._outputs = outputs or 1
        self.count = 0
        self._blocks = [np.empty((8, (s.stop - s.start) * self._outputs), dtype) for s in slices]

    def add(self, scores: np.ndarray) -> None:
        """The scores of a new vector."""
        for k, rows in enumerate(self._slices):
            block = self._blocks[k]
            if self.count == len(block):
                size = self.count + max(8, self.count // 2)
                block = np.empty((size, block.shape[1]), block.dtype)
                block[: self.count] = self._blocks[k]
                self._blocks[k] = block
            block[self.count] = scores[rows].reshape(-1)
        self.count += 1

    def combine(self, chunk: int, factors: np.ndarray, out: np.ndarray) -> None:
        """The scores of Σ factors·vectors in a chunk."""
        block = self._blocks[chunk][: self.count]
        target = out[self._slices[chunk]].reshape(-1)
        if block.dtype == np.float64:
            np.dot(factors, block, out=target)
        else:  # also summed in float64
            combine_strips(block, factors, target)

    def products(self, expansion: Expansion) -> np.ndarray:
        """<vector_k, expansion> for every vector."""
        total = np.zeros(self.count)
        within = np.arange(self._outputs)
        for block, rows in zip(self._blocks, self._slices, strict=True):
            some = np.flatnonzero((rows.start <= expansion.rows) & (expansion.rows < rows.stop))
            if len(some):
                at = (expansion.rows[some] - rows.start)[:, None] * self._outputs + within
                scores = block[: self.count, at.reshape(-1)].astype(np.float64)
                total += scores @ expansion.coef[some].reshape(-1)
        return total

    def whole_products(self, chunk: int, coef: np.ndarray) -> np.ndarray:
        """A chunk's part of Σ_i coef_i·(score of row i) for every vector."""
        total = np.zeros(self.count)
        part = coef[self._slices[chunk]].reshape(-1)
        add_dots(self._blocks[chunk][: self.count], part, 0, len(part), total)
        return total

    def keep(self, vectors: np.ndarray) -> None:
        """Keep only these vectors, and free the memory of the others."""
        for k, block in enumerate(self._blocks):
            self._blocks[k] = block[vectors]
        self.count = len(vectors)
