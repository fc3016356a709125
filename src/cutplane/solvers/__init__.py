"""Solvers in memory: coordinate descent and Newton's method for rows, ascent for structures."""

from typing import TYPE_CHECKING

from .._lazy import importing

if TYPE_CHECKING:
    from .blocks import BlockAutoSolver, BlockSolver, can_be_visited
    from .choose import AutoSolver
    from .coordinate import CoordinateSolver
    from .newton import NewtonSolver
    from .small import SmallNewtonSolver

__getattr__ = importing(
    __name__,
    {
        "blocks": "BlockAutoSolver BlockSolver can_be_visited",
        "choose": "AutoSolver",
        "coordinate": "CoordinateSolver",
        "newton": "NewtonSolver",
        "small": "SmallNewtonSolver",
    },
)

__all__ = [
    "AutoSolver",
    "BlockAutoSolver",
    "BlockSolver",
    "CoordinateSolver",
    "NewtonSolver",
    "SmallNewtonSolver",
    "can_be_visited",
]
