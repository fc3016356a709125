"""Decomposition for kernel machines: working set, cache, shrinking, certificate."""

from .problem import DualProblem
from .records import DualCertificate, DualIteration, DualSettings
from .solver import DualSolver
from .whole import WholeSolver

__all__ = [
    "DualCertificate",
    "DualIteration",
    "DualProblem",
    "DualSettings",
    "DualSolver",
    "WholeSolver",
]
