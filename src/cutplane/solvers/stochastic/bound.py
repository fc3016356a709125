"""A lower bound from what a stochastic method computes anyway.

The derivatives of the loss that the rows of an epoch used are a dual point and
so make a cut (``RowOracle.dual_cut``); so does their average over epochs,
and the epoch's last point has a cut of its own. The reduced problem over all
these cuts is the best lower bound they hold.

Measured on a9a, MNIST and covtype: an average over the second half of the
epochs is much tighter than one over all (whose first epochs are far off) or
than the last epoch alone. The epochs' own cuts bring the hinge a little more
(its average is one of their combinations, rarely the best), the points' cuts
matter with an unregularised bias and close to the optimum.
"""

from __future__ import annotations

import numpy as np

from ...objective import Cut, Point, RowOracle
from ..reduced import Bundle
from ..space import VectorSpace


class LateAverage:
    """The average over at least the last half, and at most the last three quarters or so.

    A sum is begun at every power of two, and the last but one is in use: after
    10 vectors the average is over the 4th to the 10th.
    """

    def __init__(self, size: int) -> None:
        self.count = 0
        self._used = np.zeros(size)
        self._begun = np.zeros(size)
        self._used_since = self._begun_since = 1

    def add(self, vector: np.ndarray) -> None:
        """Take in the next vector."""
        self.count += 1
        if self.count & (self.count - 1) == 0:  # a power of two
            self._used, self._begun = self._begun, self._used
            self._used_since, self._begun_since = self._begun_since, self.count
            self._begun[...] = 0.0
        self._used += vector
        self._begun += vector

    def value(self) -> np.ndarray:
        """The average."""
        return self._used / (self.count - self._used_since + 1)


class LowerBound:
    """Cuts of a run and the bound they give."""

    def __init__(self, oracle: RowOracle, C: float) -> None:
        self._oracle = oracle
        self._C = C
        self._bundle = Bundle(VectorSpace(oracle.dimension, oracle.executor))
        self._late = LateAverage(len(oracle.targets.weights))

    def __len__(self) -> int:
        """Cuts kept."""
        return len(self._bundle)

    def add(self, *cuts: Cut) -> None:
        """Add cuts."""
        for cut in cuts:
            self._bundle.add(cut.a, cut.offset)

    def add_point(self, point: Point) -> None:
        """Add the cut at a point."""
        self.add(self._oracle.cut(point))

    def add_epoch(self, coef: np.ndarray) -> None:
        """Add the cuts of an epoch's derivatives and of their late average."""
        weights = self._oracle.targets.weights
        self._late.add(coef)
        self.add(self._oracle.dual_cut(weights * coef))
        if self._late.count > 1:
            self.add(self._oracle.dual_cut(weights * self._late.value()))

    def value(self) -> float:
        """The bound: the value of the reduced problem."""
        dual = self._bundle.solve(self._C).dual
        self._bundle.drop_idle()
        return dual

    def active_cuts(self) -> tuple[Cut, ...]:
        """The cuts that support the last value."""
        return tuple(Cut(a, offset) for a, offset in self._bundle.active())
