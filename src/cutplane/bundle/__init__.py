"""The bundle loop: cuts, the reduced problem, the step. Knows no data and no loss."""

from .loop import BundleSolver, Observer, StopRule
from .step import CutPosition, FixedPosition

__all__ = ["BundleSolver", "CutPosition", "FixedPosition", "Observer", "StopRule"]
