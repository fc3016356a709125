"""Estimators in the scikit-learn API: validate, assemble, call, store."""

from .linear_svc import LinearSVC
from .measure_svc import MeasureSVC
from .ordinal_svc import OrdinalSVC
from .rank_svm import RankSVM

__all__ = ["LinearSVC", "MeasureSVC", "OrdinalSVC", "RankSVM"]
