"""The bundle loop: cuts, the reduced problem, the step. Knows no data and no loss."""

from typing import TYPE_CHECKING

from .._lazy import importing
from .solver import Best, IterativeSolver, Observer, StopRule

if TYPE_CHECKING:
    from .loop import AdaptivePosition, BundleSolver, CutPosition, FixedPosition

__getattr__ = importing(
    __name__, {"loop": "AdaptivePosition BundleSolver CutPosition FixedPosition"}
)

__all__ = [
    "AdaptivePosition",
    "Best",
    "BundleSolver",
    "CutPosition",
    "FixedPosition",
    "IterativeSolver",
    "Observer",
    "StopRule",
]
