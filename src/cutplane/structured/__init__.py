"""Structured outputs: the interface for a user's own output space, and ready output spaces."""

from .conll import read_conll
from .labels import BinaryProblem, MulticlassProblem, MultilabelProblem
from .problem import Problem, Score, Scores
from .sequences import Sequences, sequences_from

__all__ = [
    "BinaryProblem",
    "MulticlassProblem",
    "MultilabelProblem",
    "Problem",
    "Score",
    "Scores",
    "Sequences",
    "read_conll",
    "sequences_from",
]
