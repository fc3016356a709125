"""Dual coordinate descent for linear SVMs, measured by the same certificate."""

from .solver import CoordinateSolver

__all__ = ["CoordinateSolver"]
