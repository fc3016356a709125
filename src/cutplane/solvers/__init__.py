"""Solvers for sums of losses in memory: coordinate descent and Newton's method, and for chains."""

from typing import TYPE_CHECKING

from .._lazy import importing

if TYPE_CHECKING:
    from .chains import ChainAutoSolver, ChainSolver, can_be_visited
    from .choose import AutoSolver
    from .coordinate import CoordinateSolver
    from .newton import NewtonSolver
    from .small import SmallNewtonSolver

__getattr__ = importing(
    __name__,
    {
        "chains": "ChainAutoSolver ChainSolver can_be_visited",
        "choose": "AutoSolver",
        "coordinate": "CoordinateSolver",
        "newton": "NewtonSolver",
        "small": "SmallNewtonSolver",
    },
)

__all__ = [
    "AutoSolver",
    "ChainAutoSolver",
    "ChainSolver",
    "CoordinateSolver",
    "NewtonSolver",
    "SmallNewtonSolver",
    "can_be_visited",
]
