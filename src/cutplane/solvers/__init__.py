"""Solvers in memory: coordinate descent and Newton's method for rows, ascent for structures."""

from .blocks import BlockAutoSolver, BlockSolver, can_be_visited
from .choose import AutoSolver
from .coordinate import CoordinateSolver
from .newton import NewtonSolver
from .small import SmallNewtonSolver

__all__ = [
    "AutoSolver",
    "BlockAutoSolver",
    "BlockSolver",
    "CoordinateSolver",
    "NewtonSolver",
    "SmallNewtonSolver",
    "can_be_visited",
]
