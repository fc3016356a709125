"""Risks: functions of scores. They never see the data or the weights of the model."""

from .base import LossRisk, Risk, Scores, Targets, WholeRisk
from .measures import F1Risk, TopRisk, best_threshold
from .multiclass import CrammerSingerRisk, MultinomialRisk
from .pairs import PairRisk
from .thresholds import fit_thresholds

__all__ = [
    "CrammerSingerRisk",
    "F1Risk",
    "LossRisk",
    "MultinomialRisk",
    "PairRisk",
    "Risk",
    "Scores",
    "Targets",
    "TopRisk",
    "WholeRisk",
    "best_threshold",
    "fit_thresholds",
]
