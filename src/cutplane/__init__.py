"""Large-margin learning by cutting planes, with a certificate of optimality.

Estimators follow scikit-learn's conventions. Every fit returns a
:class:`Certificate`: the objective it reached, a lower bound on the best
possible one, and the gap between them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cluster.executor import DaskCluster
    from .cluster.workers import ClusterError
    from .data.convert import convert_dataset
    from .data.dataset import Dataset, open_dataset, write_dataset
    from .data.partitions import RowFiles
    from .data.rows import Rows
    from .data.svmlight import dump_svmlight, iter_svmlight, load_svmlight
    from .estimators.chain_tagger import ChainTagger
    from .estimators.checkpoint import Checkpoint
    from .estimators.cholesky_features import CholeskyFeatures
    from .estimators.kernel_svc import SVC
    from .estimators.kernel_svr import SVR, OneClassSVM
    from .estimators.linear_path import LinearSVCPath, linear_svc_path
    from .estimators.linear_svc import LinearSVC
    from .estimators.linear_svc_cv import LinearSVCCV
    from .estimators.linear_svr import LinearSVR
    from .estimators.measure_svc import MeasureSVC
    from .estimators.ordinal_svc import OrdinalSVC
    from .estimators.rank_svm import RankSVM
    from .estimators.sampled_svc import SampledCutSVC
    from .estimators.structured_svm import StructuredSVM
    from .models import load_model, save_model
    from .reporting.fit_report import report
    from .reporting.plots import plot_calibration, plot_convergence, plot_path
    from .result import Certificate, Iteration, SolveResult, Status

__version__ = "0.1.0"

# Importing the package takes milliseconds; scikit-learn and numba are loaded
# with the first name that needs them.
_WHERE = {
    "LinearSVC": ".estimators.linear_svc",
    "LinearSVCCV": ".estimators.linear_svc_cv",
    "LinearSVCPath": ".estimators.linear_path",
    "LinearSVR": ".estimators.linear_svr",
    "linear_svc_path": ".estimators.linear_path",
    "MeasureSVC": ".estimators.measure_svc",
    "OrdinalSVC": ".estimators.ordinal_svc",
    "OneClassSVM": ".estimators.kernel_svr",
    "RankSVM": ".estimators.rank_svm",
    "SVC": ".estimators.kernel_svc",
    "SampledCutSVC": ".estimators.sampled_svc",
    "CholeskyFeatures": ".estimators.cholesky_features",
    "SVR": ".estimators.kernel_svr",
    "ChainTagger": ".estimators.chain_tagger",
    "Checkpoint": ".estimators.checkpoint",
    "ClusterError": ".cluster.workers",
    "DaskCluster": ".cluster.executor",
    "RowFiles": ".data.partitions",
    "Rows": ".data.rows",
    "StructuredSVM": ".estimators.structured_svm",
    "Certificate": ".result",
    "Iteration": ".result",
    "SolveResult": ".result",
    "Status": ".result",
    "Dataset": ".data.dataset",
    "convert_dataset": ".data.convert",
    "open_dataset": ".data.dataset",
    "write_dataset": ".data.dataset",
    "dump_svmlight": ".data.svmlight",
    "iter_svmlight": ".data.svmlight",
    "load_svmlight": ".data.svmlight",
    "load_model": ".models",
    "save_model": ".models",
    "plot_calibration": ".reporting.plots",
    "plot_convergence": ".reporting.plots",
    "plot_path": ".reporting.plots",
    "report": ".reporting.fit_report",
}

__all__ = [
    "SVC",
    "SVR",
    "Certificate",
    "ChainTagger",
    "Checkpoint",
    "CholeskyFeatures",
    "ClusterError",
    "DaskCluster",
    "Dataset",
    "Iteration",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVCPath",
    "LinearSVR",
    "MeasureSVC",
    "OneClassSVM",
    "OrdinalSVC",
    "RankSVM",
    "RowFiles",
    "Rows",
    "SampledCutSVC",
    "SolveResult",
    "Status",
    "StructuredSVM",
    "__version__",
    "convert_dataset",
    "dump_svmlight",
    "iter_svmlight",
    "linear_svc_path",
    "load_model",
    "load_svmlight",
    "open_dataset",
    "plot_calibration",
    "plot_convergence",
    "plot_path",
    "report",
    "save_model",
    "write_dataset",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
