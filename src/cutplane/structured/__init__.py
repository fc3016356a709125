"""Structured outputs: what a user writes for a new output space, and those that come with us."""

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
