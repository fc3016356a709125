"""Stochastic subgradient baselines, measured by the bundle's certificate."""

from .schedules import SGD, Pegasos, Schedule
from .solver import StochasticSolver

__all__ = ["SGD", "Pegasos", "Schedule", "StochasticSolver"]
