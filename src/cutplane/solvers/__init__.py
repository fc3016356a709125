"""Solvers: each minimises ½|w|² + C·risk and ends with a certificate."""

from typing import TYPE_CHECKING

from .._lazy import importing

if TYPE_CHECKING:
    from .base import Best, IterativeSolver, Observer, StopRule
    from .blocks import BlockAutoSolver, BlockSolver, can_be_visited
    from .choose import AutoSolver
    from .coordinate import CoordinateSolver
    from .cutting_plane import AdaptivePosition, BundleSolver, CutPosition, FixedPosition
    from .newton import NewtonSolver
    from .small import SmallNewtonSolver

__getattr__ = importing(
    __name__,
    {
        "base": "Best IterativeSolver Observer StopRule",
        "blocks": "BlockAutoSolver BlockSolver can_be_visited",
        "choose": "AutoSolver",
        "coordinate": "CoordinateSolver",
        "cutting_plane": "AdaptivePosition BundleSolver CutPosition FixedPosition",
        "newton": "NewtonSolver",
        "small": "SmallNewtonSolver",
    },
)

__all__ = [
    "AdaptivePosition",
    "AutoSolver",
    "Best",
    "BlockAutoSolver",
    "BlockSolver",
    "BundleSolver",
    "CoordinateSolver",
    "CutPosition",
    "FixedPosition",
    "IterativeSolver",
    "NewtonSolver",
    "Observer",
    "SmallNewtonSolver",
    "StopRule",
    "can_be_visited",
]
