"""The kinds of models that can be trained: one entry each, and nothing else to add a kind.

A kind is chosen by a flag of ``train`` and ``path``; a model file says by its estimator which kind
it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from .signatures import has_estimator


class Task(Enum):
    """What a model's answers are, and so how they are written and measured."""

    CLASSES = "classes"
    GRADES = "grades"
    RANKING = "ranking"
    VALUES = "values"
    NOVELTY = "novelty"
    SEQUENCES = "sequences"


@dataclass(frozen=True)
class Kind:
    """A kind of model.

    Attributes
    ----------
    name : str
    estimator : str
        Its class in ``cutplane``.
    flag : str
        That chooses it; empty for the default.
    help : str
        What the flag does.
    task : Task
    choice : str
        The parameter of which the flag takes the value, if it does.
    on_disk : bool
        Whether it trains on data sets that stay on disk.
    """

    name: str
    estimator: str
    flag: str
    help: str
    task: Task
    choice: str = ""
    on_disk: bool = False


DEFAULT = Kind(
    "classification",
    "LinearSVC",
    "",
    "two or more classes, linear (the default)",
    Task.CLASSES,
    on_disk=True,
)

# The first flag that is given decides, so those that may go with others come last.
_LISTED = (
    Kind(
        "ranking",
        "RankSVM",
        "--ranking",
        "learn an order, within queries (qid:)",
        Task.RANKING,
        on_disk=True,
    ),
    Kind(
        "ordinal",
        "OrdinalSVC",
        "--ordinal",
        "classes that have an order",
        Task.GRADES,
        on_disk=True,
    ),
    Kind("chain", "ChainTagger", "--chain", "tag sequences, the rows of a qid:", Task.SEQUENCES),
    Kind("regression", "SVR", "--regression", "predict numbers, with a kernel", Task.VALUES),
    Kind("one-class", "OneClassSVM", "--one-class", "find novelties, with a kernel", Task.NOVELTY),
    Kind(
        "sampled",
        "SampledCutSVC",
        "--sampled",
        "classes, with a kernel, for many rows: sampled cuts",
        Task.CLASSES,
    ),
    Kind(
        "measure",
        "MeasureSVC",
        "--measure",
        "two classes, trained for the measure you report",
        Task.CLASSES,
        choice="measure",
        on_disk=True,
    ),
    Kind("kernel", "SVC", "--kernel", "classes, with a kernel", Task.CLASSES, choice="kernel"),
    DEFAULT,
)

KINDS = tuple(kind for kind in _LISTED if has_estimator(kind.estimator))

# Flags that are no parameters: which kinds exclude each other.
SWITCHES = tuple(kind for kind in KINDS if kind.flag and not kind.choice)


def chosen(arguments: list[str]) -> Kind:
    """The kind that the arguments of a command ask for."""
    given = {argument.partition("=")[0] for argument in arguments}
    return next(kind for kind in KINDS if kind.flag in given or kind is DEFAULT)


def kind_of(model: Any) -> Kind | None:
    """The kind of a model; None for one that the commands cannot train."""
    name = type(model).__name__
    return next((kind for kind in KINDS if kind.estimator == name), None)
