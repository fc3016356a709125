"""Solvers for sums of losses in memory: coordinate descent and Newton's method, and for chains."""

from .chains import ChainAutoSolver, ChainSolver, can_be_visited
from .choose import AutoSolver
from .coordinate import CoordinateSolver
from .newton import NewtonSolver
from .small import SmallNewtonSolver

__all__ = [
    "AutoSolver",
    "ChainAutoSolver",
    "ChainSolver",
    "CoordinateSolver",
    "NewtonSolver",
    "SmallNewtonSolver",
    "can_be_visited",
]
