"""The bundle loop: cuts, the reduced problem, the step. Knows no data and no loss."""

from .loop import BundleSolver
from .solver import Best, IterativeSolver, Observer, StopRule
from .step import AdaptivePosition, CutPosition, FixedPosition

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
