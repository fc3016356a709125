"""Risks: functions of scores. They never see the data or the weights of the model."""

from typing import TYPE_CHECKING

from .._lazy import importing
from .base import ListwiseRisk, LossRisk, Risk, Scores, Targets

if TYPE_CHECKING:
    from .measures import TableRisk, TopRisk, best_threshold
    from .multiclass import CrammerSingerRisk, MultinomialRisk
    from .pairs import PairRisk
    from .partial_area import PartialAreaRisk
    from .rankings import RankingRisk
    from .thresholds import fit_thresholds, least_rows_for_fpr, threshold_for_fpr

__getattr__ = importing(
    __name__,
    {
        "measures": "TableRisk TopRisk best_threshold",
        "multiclass": "CrammerSingerRisk MultinomialRisk",
        "pairs": "PairRisk",
        "partial_area": "PartialAreaRisk",
        "rankings": "RankingRisk",
        "thresholds": "fit_thresholds least_rows_for_fpr threshold_for_fpr",
    },
)

__all__ = [
    "CrammerSingerRisk",
    "ListwiseRisk",
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
    "best_threshold",
    "fit_thresholds",
    "least_rows_for_fpr",
    "threshold_for_fpr",
]
