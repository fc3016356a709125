"""Structured outputs: what a user writes for a new output space, and those that come with us."""

from .multiclass import BinaryProblem, MulticlassProblem
from .problem import Problem
from .sequences import Sequences, sequences_from

__all__ = ["BinaryProblem", "MulticlassProblem", "Problem", "Sequences", "sequences_from"]
