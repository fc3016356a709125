"""Decomposition for kernel machines: working set, cache, shrinking, certificate."""

from .problem import DualCertificate, DualIteration, DualPoint, DualProblem, DualSettings
from .solver import DualSolver

__all__ = [
    "DualCertificate",
    "DualIteration",
    "DualPoint",
    "DualProblem",
    "DualSettings",
    "DualSolver",
]
