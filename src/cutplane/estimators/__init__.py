"""Estimators in the scikit-learn API: validate, assemble, call, store."""

from .chain_tagger import ChainTagger
from .checkpoint import Checkpoint
from .kernel_svc import SVC
from .kernel_svr import SVR, OneClassSVM
from .linear_svc import LinearSVC
from .measure_svc import MeasureSVC
from .ordinal_svc import OrdinalSVC
from .rank_svm import RankSVM
from .structured_svm import StructuredSVM

__all__ = [
    "SVC",
    "SVR",
    "ChainTagger",
    "Checkpoint",
    "LinearSVC",
    "MeasureSVC",
    "OneClassSVM",
    "OrdinalSVC",
    "RankSVM",
    "StructuredSVM",
]
