"""The papers benchmark: figures and tables of the OCAS and SVM-perf papers on data at hand."""

from collections.abc import Callable

from ..peers import PEERS
from ..report import Report
from ..runner import Suite
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

SUITE = Suite(
    "papers",
    __doc__,
    SECTIONS,
    tuple(PEERS),
    usual_peers=tuple(name for name in PEERS if name != "snapml"),  # it takes two threads
    defaults={"repeats": 3, "tight_seconds": 8.0, "cpa_seconds": 8.0, "peer_seconds": 15.0},
)
