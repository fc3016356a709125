"""The kinds of models that can be trained: a new estimator is one more line of ``KINDS``.

Flags of ``train`` and ``path`` choose a kind; a model file says by its estimator which kind it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Task(Enum):
    """The kind of a model's answers. It determines how they are written and measured."""

    CLASSES = "classification"
    LABELS = "multilabel"
    GRADES = "ordinal"
    RANKING = "ranking"
    VALUES = "regression"
    NOVELTY = "one-class"
    SEQUENCES = "chain"


@dataclass(frozen=True)
class Kind:
    """A kind of model."""

    name: str
    estimator: str  # its class in cutplane
    task: Task
    flags: tuple[str, ...]  # all of these together choose the kind; the default has none
    help: str  # the help for its flag, if it has one flag
    on_disk: bool = False  # whether it trains on data sets that stay on disk


# A command uses the first kind whose flags are all given. A flag that is not a parameter of the
# estimator is a switch; only one switch may be given.
KINDS = (
    Kind("ranking", "RankSVM", Task.RANKING, ("--ranking",),
         "Learn to order rows; only rows of the same query (qid:) are compared.", on_disk=True),
    Kind("ordinal", "OrdinalSVC", Task.GRADES, ("--ordinal",),
         "Predict classes that have an order, such as ratings from 1 to 5.", on_disk=True),
    Kind("chain", "ChainTagger", Task.SEQUENCES, ("--chain",),
         "Tag the tokens of sequences; the rows of one qid: are a sequence."),
    Kind("kernel-regression", "SVR", Task.VALUES, ("--regression", "--kernel"), ""),
    Kind("regression", "LinearSVR", Task.VALUES, ("--regression",),
         "Predict numbers, or quantiles of them, by linear scores; together with --kernel, by a "
         "kernel.", on_disk=True),
    Kind("one-class", "OneClassSVM", Task.NOVELTY, ("--one-class",),
         "Find rows unlike the training data, with a kernel; labels are not used."),
    Kind("sampled", "SampledCutSVC", Task.CLASSES, ("--sampled",),
         "Predict classes with a kernel, for more rows than --kernel alone can take."),
    Kind("measure", "MeasureSVC", Task.CLASSES, ("--measure",),
         "Predict two classes, trained for the measure that you report.", on_disk=True),
    Kind("kernel", "SVC", Task.CLASSES, ("--kernel",),
         "Predict classes with a kernel."),
    Kind("multilabel", "LinearSVC", Task.LABELS, ("--multilabel",),
         "Predict any number of labels per row, each by linear scores; a line begins with 1,5,7."),
    Kind("classification", "LinearSVC", Task.CLASSES, (),
         "Predict two or more classes by linear scores.", on_disk=True),
)  # fmt: skip

DEFAULT = KINDS[-1]


def chosen(arguments: Sequence[str]) -> Kind:
    """The kind that the arguments of a command ask for."""
    given = {argument.partition("=")[0] for argument in arguments}
    return next(kind for kind in KINDS if given.issuperset(kind.flags))


def kind_of(model: Any) -> Kind | None:
    """The kind of a model; None for one that the commands cannot train."""
    name, labels = type(model).__name__, getattr(model, "multilabel_", False)
    return next(
        (k for k in KINDS if k.estimator == name and (k.task is Task.LABELS) == labels), None
    )
