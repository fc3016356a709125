"""Large-margin learning by cutting planes, with a certificate of optimality.

Estimators follow scikit-learn's conventions. Every fit returns a
:class:`Certificate`: the objective it reached, a lower bound on the best
possible one, and the gap between them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cluster.workers import ClusterError
    from .data.convert import convert_dataset
    from .data.dataset import Dataset, open_dataset, write_dataset
    from .data.partitions import RowFiles
    from .data.rows import Rows
    from .data.svmlight import dump_svmlight, iter_svmlight, load_svmlight
    from .estimators import (
        SVC,
        SVR,
        ChainTagger,
        Checkpoint,
        CholeskyFeatures,
        DaskCluster,
        LinearSVC,
        LinearSVCCV,
        LinearSVCPath,
        LinearSVR,
        MeasureSVC,
        OneClassSVM,
        OrdinalSVC,
        RankSVM,
        SampledCutSVC,
        StructuredSVM,
        linear_svc_path,
    )
    from .models import load_model, save_model
    from .reporting import plot_calibration, plot_convergence, plot_path, report
    from .result import Certificate, Iteration, SolveResult, Status

__version__ = "0.1.0.dev0"

# Importing the package takes milliseconds; scikit-learn and numba are loaded
# with the first name that needs them.
_WHERE = {
    "LinearSVC": ".estimators",
    "LinearSVCCV": ".estimators",
    "LinearSVCPath": ".estimators",
    "LinearSVR": ".estimators",
    "linear_svc_path": ".estimators",
    "MeasureSVC": ".estimators",
    "OrdinalSVC": ".estimators",
    "OneClassSVM": ".estimators",
    "RankSVM": ".estimators",
    "SVC": ".estimators",
    "SampledCutSVC": ".estimators",
    "CholeskyFeatures": ".estimators",
    "SVR": ".estimators",
    "ChainTagger": ".estimators",
    "Checkpoint": ".estimators",
    "ClusterError": ".cluster.workers",
    "DaskCluster": ".estimators",
    "RowFiles": ".data.partitions",
    "Rows": ".data.rows",
    "StructuredSVM": ".estimators",
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
    "plot_calibration": ".reporting",
    "plot_convergence": ".reporting",
    "plot_path": ".reporting",
    "report": ".reporting",
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
