"""Risks: functions of scores. They never see the data or the weights of the model."""

from .base import Risk, Scores, SmoothRisk, Targets, WholeRisk
from .hinge import HingeRisk
from .measures import F1Risk, TopRisk, best_threshold
from .multiclass import CrammerSingerRisk
from .pairs import PairRisk
from .smooth import LogisticRisk, SquaredHingeRisk
from .thresholds import fit_thresholds

__all__ = [
    "CrammerSingerRisk",
    "F1Risk",
    "HingeRisk",
    "LogisticRisk",
    "PairRisk",
    "Risk",
    "Scores",
    "SmoothRisk",
    "SquaredHingeRisk",
    "Targets",
    "TopRisk",
    "WholeRisk",
    "best_threshold",
    "fit_thresholds",
]
