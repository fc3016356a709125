"""Oracles: turn a point into a cut and a line into its minimum. They solve no QP."""

from .base import Oracle, Refreshing, Resumable
from .linear import LinearOracle, RowOracle
from .point import Cut, Line, Point, Proof
from .surface import Surface, WholeSurface

__all__ = [
    "Cut",
    "Line",
    "LinearOracle",
    "Oracle",
    "Point",
    "Proof",
    "Refreshing",
    "Resumable",
    "RowOracle",
    "Surface",
    "WholeSurface",
]
