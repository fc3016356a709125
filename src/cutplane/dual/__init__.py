"""Decomposition for kernel machines: working set, cache, shrinking, certificate."""

from .problem import DualProblem
from .records import DualCertificate, DualIteration, DualPoint, DualSettings
from .solver import DualSolver
from .whole import WholeSolver

__all__ = [
    "DualCertificate",
    "DualIteration",
    "DualPoint",
    "DualProblem",
    "DualSettings",
    "DualSolver",
    "WholeSolver",
]
