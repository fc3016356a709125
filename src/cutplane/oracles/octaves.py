"""Where a convex function along a line is least, from a histogram of its derivative's steps.

    h(k) = start + slope·k + Σ_{positions ≤ k} jumps,   slope ≥ 0, jumps ≥ 0, positions > 0.

Bins are 1/64 of an octave wide in proportion, at any size of k: the leading bits of a floating
point number say its bin. They reach 2⁸ times as far as a guess, up and down, so that one pass
over the rows brackets the zero of h nearly always. At the ends of its bin h is known; by
convexity the point between at which the chord of h is zero lies no higher above the minimum than

    width·|h(low)|·h(high) / (h(high) − h(low)).

Where that is good enough nobody has to look at the steps themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..loops.hinge import OCTAVE_SHIFT

# Octaves on either side of the guess, and bins in all.
REACH = 8
PER_OCTAVE = 1 << (52 - OCTAVE_SHIFT)
BINS = 2 * REACH * PER_OCTAVE
# Leading bits of infinity.
INFINITE = 0x7FF << (52 - OCTAVE_SHIFT)


@dataclass(frozen=True)
class Bracket:
    """Where the zero is: in [low, high), with a point that is ``loss`` above the minimum at most.

    ``k`` is not a number where the interval has no ends within the bins.
    """

    low: float
    high: float
    k: float
    loss: float


@dataclass(frozen=True)
class Octaves:
    """Bins around a guess, numbered from 1; bin 0 is below, bin BINS + 1 beyond.

    Attributes
    ----------
    first : int
        Leading bits of the number at which bin 1 begins.
    """

    first: int

    @classmethod
    def around(cls, guess: float) -> Octaves:
        """Bins around a positive number."""
        middle = int(np.float64(guess).view(np.int64)) >> OCTAVE_SHIFT
        return cls(min(max(0, middle - BINS // 2), INFINITE - BINS - 1))

    def edges(self) -> np.ndarray:
        """Where bins begin, and the end."""
        return (np.arange(self.first, self.first + BINS + 1) << OCTAVE_SHIFT).view(np.float64)

    def bracket(self, bins: np.ndarray, slope: float, start: float) -> Bracket:
        """The bin in which h becomes zero.

        Parameters
        ----------
        bins : ndarray
            Sum of the jumps in every bin.
        slope, start : float
            Of h, before any step; start < 0.
        """
        edges = self.edges()
        heights = slope * edges + (start + np.cumsum(bins[:-1]))
        above = np.flatnonzero(heights >= 0.0)
        if not len(above):
            return Bracket(float(edges[-1]), 16.0 * float(edges[-1]), np.nan, np.inf)
        number = int(above[0])
        if number == 0:
            return Bracket(0.0, float(edges[0]), np.nan, np.inf)
        low, high = float(edges[number - 1]), float(edges[number])
        below, beyond = -float(heights[number - 1]), float(heights[number])
        part = below / (below + beyond)
        return Bracket(low, high, low + part * (high - low), part * (high - low) * beyond)

    def fall(self, bins: np.ndarray, slope: float, start: float, k: float) -> float:
        """About −∫h from 0 to k, as if all steps were in the middle of their bins."""
        edges = self.edges()
        middles = np.concatenate([[0.5 * edges[0]], 0.5 * (edges[1:] + edges[:-1]), [np.inf]])
        passed = middles < k
        rises = float(np.einsum("i,i->", bins[passed], k - middles[passed]))
        return -(k * (start + 0.5 * slope * k) + rises)
