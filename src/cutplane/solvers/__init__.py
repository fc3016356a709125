"""Solvers for sums of losses over rows in memory: coordinate descent and Newton's method."""

from .coordinate import CoordinateSolver
from .newton import NewtonSolver
from .small import SmallNewtonSolver

__all__ = ["CoordinateSolver", "NewtonSolver", "SmallNewtonSolver"]
