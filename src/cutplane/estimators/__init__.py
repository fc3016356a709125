"""Estimators in the scikit-learn API: validate, assemble, call, store."""

from ..cluster.executor import DaskCluster
from .chain_tagger import ChainTagger
from .checkpoint import Checkpoint
from .cholesky_features import CholeskyFeatures
from .kernel_svc import SVC
from .kernel_svr import SVR, OneClassSVM
from .linear_path import LinearSVCPath, linear_svc_path
from .linear_svc import LinearSVC
from .linear_svc_cv import LinearSVCCV
from .linear_svr import LinearSVR
from .measure_svc import MeasureSVC
from .ordinal_svc import OrdinalSVC
from .rank_svm import RankSVM
from .sampled_svc import SampledCutSVC
from .structured_svm import StructuredSVM

__all__ = [
    "SVC",
    "SVR",
    "ChainTagger",
    "Checkpoint",
    "CholeskyFeatures",
    "DaskCluster",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVCPath",
    "LinearSVR",
    "MeasureSVC",
    "OneClassSVM",
    "OrdinalSVC",
    "RankSVM",
    "SampledCutSVC",
    "StructuredSVM",
    "linear_svc_path",
]
