"""The bundle loop: cuts, the reduced problem, the step. Knows no data and no loss."""

from .loop import AdaptivePosition, BundleSolver, CutPosition, FixedPosition
from .solver import Best, IterativeSolver, Observer, StopRule

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
