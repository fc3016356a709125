"""The best bias for the hinge, and the balance of a cut there, from one histogram of the rows.

A row's kink is the bias y_i − s_i at which its loss begins. With the weights of both classes
and their weighted kinks summed up by bin of the kink, the risk

    R(b) = Σ_{+, kink > b} weight·(kink − b) + Σ_{−, kink < b} weight·(b − kink)

and its derivative are known at every end of a bin. The bin in which the derivative changes its
sign has the minimum, and its better end is above that no more than the tangents at both ends
say. A plane below min_b R needs coefficients that sum to zero: rows of that bin, whose losses are
no larger than it is wide, count in part. So there is no need to know the minimum to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BINS = 1024


@dataclass(frozen=True)
class Band:
    """The bin with the best bias.

    Attributes
    ----------
    bins : BiasBins
    number : int
        Of the bin.
    bias, risk : float
        Its better end, and the sum of the losses there.
    loss : float
        How far that is above the minimum at most.
    positive, negative : float
        Parts for which the rows in the bin count, by class, so that coefficients sum to zero.
    """

    bins: BiasBins
    number: int
    bias: float
    risk: float
    loss: float
    positive: float
    negative: float


@dataclass(frozen=True)
class BiasBins:
    """An interval in BINS equal bins, numbered from 1; bin 0 is below, bin BINS + 1 beyond."""

    low: float
    high: float

    @classmethod
    def around(cls, guess: float, reach: float) -> BiasBins:
        """An interval around a guess."""
        reach = max(reach, 1e-3 * abs(guess))
        return cls(guess - reach, guess + reach)

    @property
    def scale(self) -> float:
        """Bins per unit."""
        return BINS / (self.high - self.low)

    def edges(self) -> np.ndarray:
        """Where bins begin, and the end."""
        return self.low + np.arange(BINS + 1) * ((self.high - self.low) / BINS)

    def wider(self, times: float) -> BiasBins:
        """As many bins around the same middle."""
        middle, reach = 0.5 * (self.low + self.high), 0.5 * times * (self.high - self.low)
        return BiasBins(middle - reach, middle + reach)

    def inside(self, number: int) -> BiasBins:
        """As many bins over one of them, and a bit more."""
        width = (self.high - self.low) / BINS
        low = self.low + (number - 1) * width
        return BiasBins(low - 0.01 * width, low + 1.01 * width)

    def band(self, profile: np.ndarray) -> Band | None:
        """The bin with the minimum; None if it is below or beyond all.

        Parameters
        ----------
        profile : ndarray of shape (BINS + 2, 4)
            By bin: weights of + and of −, and their weighted kinks.
        """
        plus, minus, plus_kinks, minus_kinks = profile.T
        edges = self.edges()
        above, below = _from_above(plus), np.cumsum(minus)[:-1]
        slopes = below - above
        rising = np.flatnonzero(slopes >= 0.0)
        if not len(rising) or rising[0] == 0:
            return None
        number = int(rising[0])
        ends = slice(number - 1, number + 1)
        at = edges[ends]
        risks = _from_above(plus_kinks)[ends] - at * above[ends]
        risks += at * below[ends] - np.cumsum(minus_kinks)[:-1][ends]
        left, right = slopes[ends].tolist()
        meet = (risks[0] - risks[1] + right * (at[1] - at[0])) / (right - left)
        better = int(risks[1] < risks[0])
        lack = float(above[number] - below[number - 1])  # of −, beside the bin
        tied_plus, tied_minus = float(plus[number]), float(minus[number])
        return Band(
            self,
            number,
            float(at[better]),
            float(risks[better]),
            float(risks[better] - (risks[0] + left * meet)),
            *tied_parts(lack, tied_plus, tied_minus),
        )


def tied_parts(lack: float, positive: float, negative: float) -> tuple[float, float]:
    """Parts for which tied rows of both classes count, where + weighs more by ``lack``."""
    return (
        min(1.0, -lack / positive) if lack < 0.0 < positive else 0.0,
        min(1.0, lack / negative) if lack > 0.0 < negative else 0.0,
    )


def _from_above(sums: np.ndarray) -> np.ndarray:
    """Sums over all bins above each end of a bin."""
    return np.cumsum(sums[::-1])[::-1][1:]
