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

__getattr__, __all__ = importing(__name__)
