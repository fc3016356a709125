"""Oracles: turn a point into a cut and a line into its minimum. They solve no QP."""

from .linear import Cut, LinearOracle, Point

__all__ = ["Cut", "LinearOracle", "Point"]
