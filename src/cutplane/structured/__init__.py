"""Structured outputs: what a user writes for a new output space, and those that come with us."""

from .multiclass import BinaryProblem, MulticlassProblem
from .multilabel import MultilabelProblem
from .problem import Problem
from .sequences import Sequences, sequences_from

__all__ = [
    "BinaryProblem",
    "MulticlassProblem",
    "MultilabelProblem",
    "Problem",
    "Sequences",
    "sequences_from",
]
