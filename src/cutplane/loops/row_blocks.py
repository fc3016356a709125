"""The kept outputs of an example, as rows, and the step of the example's part of the dual point.

Output m has the row r_m = Ψ(x, z_m) − Ψ(x, y), the loss Δ_m and the share α_m. The truth is the
first output, with an empty row and loss 0. w = −c·Σ α_m·r_m, summed over all examples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import jit
from .chain_blocks import as_shares, move_shares


class Kept(NamedTuple):
    """The outputs of an example: rows in compressed form, losses, shares, products of rows."""

    starts: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    losses: np.ndarray
    shares: np.ndarray
    products: np.ndarray

    @classmethod
    def truth(cls) -> Kept:
        """The outputs of an example that has only the truth."""
        nothing = np.zeros(1)
        indices = np.zeros(0, np.int64)
        return cls(
            np.zeros(2, np.int64), indices, np.zeros(0), nothing, np.ones(1), np.zeros((1, 1))
        )

    def with_output(
        self, indices: np.ndarray, values: np.ndarray, loss: float, work: np.ndarray
    ) -> Kept:
        """Add an output, unless it is known, and drop outputs without a share.

        ``work`` is an array of zeros, as long as w.
        """
        new = np.empty(len(self.losses) + 1)  # products with all rows, and with itself
        work[indices] = values
        row_products(self.starts, self.indices, self.values, work, new[:-1])
        row_products(np.array([0, len(values)]), indices, values, work, new[-1:])
        work[indices] = 0.0
        # <r, r'> = |r|² = |r'|² only if the rows are the same. The three sums have the same
        # order of additions, so the comparison is exact.
        same = (new[:-1] == new[-1]) & (np.diagonal(self.products) == new[-1])
        if np.any(same & (self.losses == loss)):
            return self
        keep = self.shares > 0.0
        keep[0] = True
        lengths = np.diff(self.starts)
        numbers = np.repeat(keep, lengths)
        own = np.append(self.indices[numbers], indices)
        own_values = np.append(self.values[numbers], values)
        starts = np.concatenate([[0], np.cumsum(lengths[keep]), [len(own)]])
        products = np.zeros((len(starts) - 1, len(starts) - 1))
        products[:-1, :-1] = self.products[np.ix_(keep, keep)]
        products[-1] = products[:, -1] = new[np.append(keep, True)]
        losses, shares = np.append(self.losses[keep], loss), np.append(self.shares[keep], 0.0)
        return Kept(starts, own, own_values, losses, shares, products)

    def visit(self, cost: float, w: np.ndarray) -> tuple[float, float]:
        """Move shares and update w; returns the growth of the dual, and the gap before."""
        return visit(*self, cost, w)

    def move_to(self, target: np.ndarray, cost: float, w: np.ndarray) -> None:
        """Set the shares to feasible ones near ``target``, and update w."""
        as_shares(target)
        add_rows(self.starts, self.indices, self.values, cost * (self.shares - target), w)
        self.shares[...] = target

    def add_to(self, weight: float, a: np.ndarray) -> float:
        """a += weight·Σ α_m·r_m; returns Σ α_m·Δ_m. Shares that rounding made too large shrink."""
        others = float(self.shares[1:].sum())
        self.shares[1:] /= max(1.0, others)
        self.shares[0] = max(0.0, 1.0 - others)
        add_rows(self.starts, self.indices, self.values, weight * self.shares, a)
        return float(np.einsum("i,i->", self.shares, self.losses))


@jit
def row_products(starts, indices, values, w, out):
    """out = <r_m, w>."""
    for m in range(starts.shape[0] - 1):
        total = 0.0
        for p in range(starts[m], starts[m + 1]):
            total += values[p] * w[indices[p]]
        out[m] = total


@jit
def add_rows(starts, indices, values, factors, a):
    """a += Σ factors_m·r_m."""
    for m in range(starts.shape[0] - 1):
        if factors[m] != 0.0:
            for p in range(starts[m], starts[m + 1]):
                a[indices[p]] += factors[m] * values[p]


@jit
def visit(starts, indices, values, losses, shares, products, cost, w):
    """Raise the dual over the shares of an example, and bring w up to date."""
    u = np.empty(losses.shape[0])
    row_products(starts, indices, values, w, u)
    mean = 0.0
    for m in range(u.shape[0]):
        u[m] += losses[m]
        mean += shares[m] * u[m]
    gap = max(0.0, cost * (np.max(u) - mean))
    changes = shares.copy()
    grown = move_shares(u, shares, products, cost)
    if grown > 0.0:
        for m in range(u.shape[0]):
            changes[m] = cost * (changes[m] - shares[m])
        add_rows(starts, indices, values, changes, w)
    return grown, gap
