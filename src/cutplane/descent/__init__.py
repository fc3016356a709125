"""Descent for linear SVMs other than by cuts, and the choice, measured by the same certificate."""

from .auto import AutoSolver
from .newton import NewtonSolver
from .solver import CoordinateSolver, Expected

__all__ = ["AutoSolver", "CoordinateSolver", "Expected", "NewtonSolver"]
