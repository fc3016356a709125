"""Risks: functions of scores. They never see the data or the weights of the model."""

from .base import LossRisk, Risk, Scores, Targets, WholeRisk
from .measures import TableRisk, TopRisk, best_threshold
from .multiclass import CrammerSingerRisk, MultinomialRisk
from .pairs import PairRisk
from .partial_area import PartialAreaRisk
from .rankings import RankingRisk
from .thresholds import fit_thresholds, least_rows_for_fpr, threshold_for_fpr

__all__ = [
    "CrammerSingerRisk",
    "LossRisk",
    "MultinomialRisk",
    "PairRisk",
    "PartialAreaRisk",
    "RankingRisk",
    "Risk",
    "Scores",
    "TableRisk",
    "Targets",
    "TopRisk",
    "WholeRisk",
    "best_threshold",
    "fit_thresholds",
    "least_rows_for_fpr",
    "threshold_for_fpr",
]
