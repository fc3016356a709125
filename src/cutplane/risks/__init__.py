"""Risks: functions of scores. They never see the data or the weights of the model."""

from .base import Risk, Scores, SmoothRisk, Targets, WholeRisk
from .hinge import HingeRisk
from .multiclass import CrammerSingerRisk
from .smooth import LogisticRisk, SquaredHingeRisk

__all__ = [
    "CrammerSingerRisk",
    "HingeRisk",
    "LogisticRisk",
    "Risk",
    "Scores",
    "SmoothRisk",
    "SquaredHingeRisk",
    "Targets",
    "WholeRisk",
]
