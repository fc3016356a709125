"""The sections of the papers benchmark: those of the OCAS paper, then those of SVM-perf's."""

from collections.abc import Callable

from ...report import Report
from . import curves, peers, perf, scaling, selection

SECTIONS: dict[str, Callable[[Report], None]] = {
    "ocas-curves": curves.run,
    "ocas-peers": peers.run,
    "ocas-selection": selection.run,
    "ocas-scaling": scaling.run,
    "ocas-threads": scaling.run_threads,
    "perf-n": perf.run_rows,
    "perf-eps": perf.run_tolerances,
    "perf-c": perf.run_weights,
}

__all__ = ["SECTIONS"]
