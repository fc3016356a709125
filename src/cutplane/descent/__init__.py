"""Dual coordinate descent for linear SVMs, and its choice, measured by the same certificate."""

from .auto import AutoSolver
from .solver import CoordinateSolver

__all__ = ["AutoSolver", "CoordinateSolver"]
