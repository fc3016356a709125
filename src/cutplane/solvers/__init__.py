"""Solvers for sums of losses over rows in memory: coordinate descent and Newton's method."""

from .choose import AutoSolver
from .coordinate import CoordinateSolver
from .newton import NewtonSolver
from .small import SmallNewtonSolver

__all__ = ["AutoSolver", "CoordinateSolver", "NewtonSolver", "SmallNewtonSolver"]
