"""Solvers for sums of losses over rows in memory: Newton's method, and what it is made of."""

from .newton import NewtonSolver
from .small import SmallNewtonSolver

__all__ = ["NewtonSolver", "SmallNewtonSolver"]
