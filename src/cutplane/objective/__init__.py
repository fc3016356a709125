"""The objective on data. Its oracles turn a point into a cut and a line into its minimum."""

from .linear import LinearOracle, RowOracle
from .point import Cut, Line, Oracle, Point, Proof, Resumable
from .score_risk import ListwiseScoreRisk, ScoreRisk

__all__ = [
    "Cut",
    "Line",
    "LinearOracle",
    "ListwiseScoreRisk",
    "Oracle",
    "Point",
    "Proof",
    "Resumable",
    "RowOracle",
    "ScoreRisk",
]
