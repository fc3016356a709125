"""Large-margin learning by cutting planes, with a certificate of optimality.

Estimators follow scikit-learn's conventions. Every fit returns a
:class:`Certificate`: the objective it reached, a lower bound on the best
possible one, and the gap between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import importing

if TYPE_CHECKING:
    from .cluster.executor import DaskCluster as DaskCluster
    from .cluster.workers import ClusterError as ClusterError
    from .data.convert import convert_dataset as convert_dataset
    from .data.dataset import Dataset as Dataset
    from .data.dataset import open_dataset as open_dataset
    from .data.dataset import write_dataset as write_dataset
    from .data.partitions import RowFiles as RowFiles
    from .data.rows import Rows as Rows
    from .data.svmlight import dump_svmlight as dump_svmlight
    from .data.svmlight import iter_svmlight as iter_svmlight
    from .data.svmlight import load_svmlight as load_svmlight
    from .estimators.chain_tagger import ChainTagger as ChainTagger
    from .estimators.checkpoint import Checkpoint as Checkpoint
    from .estimators.cholesky_features import CholeskyFeatures as CholeskyFeatures
    from .estimators.kernel_svc import SVC as SVC
    from .estimators.kernel_svr import SVR as SVR
    from .estimators.kernel_svr import OneClassSVM as OneClassSVM
    from .estimators.linear_path import LinearSVCPath as LinearSVCPath
    from .estimators.linear_path import linear_svc_path as linear_svc_path
    from .estimators.linear_svc import LinearSVC as LinearSVC
    from .estimators.linear_svc_cv import LinearSVCCV as LinearSVCCV
    from .estimators.linear_svr import LinearSVR as LinearSVR
    from .estimators.measure_svc import MeasureSVC as MeasureSVC
    from .estimators.ordinal_svc import OrdinalSVC as OrdinalSVC
    from .estimators.rank_svm import RankSVM as RankSVM
    from .estimators.sampled_svc import SampledCutSVC as SampledCutSVC
    from .estimators.structured_svm import StructuredSVM as StructuredSVM
    from .models import load_model as load_model
    from .models import save_model as save_model
    from .reporting.fit_report import report as report
    from .reporting.plots import plot_calibration as plot_calibration
    from .reporting.plots import plot_convergence as plot_convergence
    from .reporting.plots import plot_path as plot_path
    from .result import Certificate as Certificate
    from .result import Iteration as Iteration
    from .result import SolveResult as SolveResult
    from .result import Status as Status

__version__ = "0.1.0"

# Importing the package takes milliseconds; scikit-learn and numba are loaded
# with the first name that needs them.
__getattr__, __all__ = importing(__name__)
__all__ += ["__version__"]


def __dir__() -> list[str]:
    return sorted(__all__)
