"""What tells one stochastic method from another, on λ/2·|w|² + R(w) with λ = 1/C.

Both take steps of length 1/(λ(t₀ + t)) along the subgradient of a row's loss and
of the regulariser.

- ``SGD`` (Bottou's svmsgd2): t₀ is tried out on a sample; no projection.
- ``Pegasos`` (Shalev-Shwartz, Singer & Srebro 2007): t₀ = 0, and every step ends
  with a projection onto a ball around 0 that holds the optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol


class Schedule(Protocol):
    """Step lengths, projection, and how long to run unless told otherwise."""

    #: Whether t₀ is chosen on a sample; 0 if not.
    calibrated: ClassVar[bool]
    #: Whether steps end on the ball.
    projected: ClassVar[bool]

    @property
    def bias_rate(self) -> float:
        """Rate of the unregularised bias, as a part of the rate of w."""

    def default_epochs(self, C: float, rows: int) -> int:
        """Passes over the data for this C (which multiplies the mean risk)."""


@dataclass(frozen=True)
class SGD:
    """Bottou's svmsgd2: 10 epochs at rate 1/(λ(t₀ + t)), with t₀ tried out on a sample.

    svmsgd2 shrinks w once every few steps to save time. Here w is kept as a
    scale times a vector, so that shrinking at every step costs nothing.

    Attributes
    ----------
    epochs : int
        Default number of passes.
    bias_rate : float
        Rate of the unregularised bias, as a part of the rate of w.
    """

    calibrated: ClassVar[bool] = True
    projected: ClassVar[bool] = False

    epochs: int = 10
    bias_rate: float = 0.3

    def default_epochs(self, C: float, rows: int) -> int:
        """Passes over the data: ``epochs``, whatever C."""
        return self.epochs


@dataclass(frozen=True)
class Pegasos:
    """Pegasos with one row per step: rate 1/(λt), projection onto a ball.

    The ball is |w|² ≤ sup_z(−z·loss'(z))/λ: radius 1/√λ for the hinge as in the
    paper, and less for the smoother losses. Rows are visited in a new random
    order every epoch instead of being drawn with replacement.

    The paper suggests 100/λ steps, which is 100·C/rows passes over the data, or
    100 passes at scikit-learn's C = 1. That many are the default, but at least
    one pass and at most ``most_epochs``.

    Attributes
    ----------
    most_epochs : int
        Cap on the default number of passes.
    bias_rate : float
        Rate of the unregularised bias, as a part of the rate of w.
    """

    calibrated: ClassVar[bool] = False
    projected: ClassVar[bool] = True

    most_epochs: int = 100
    bias_rate: float = 0.3

    def default_epochs(self, C: float, rows: int) -> int:
        """Passes over the data: 100·C/rows, between 1 and ``most_epochs``."""
        return math.ceil(min(max(100.0 * C / rows, 1.0), self.most_epochs))
