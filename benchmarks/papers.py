"""The papers benchmark: figures and tables of the OCAS and SVM-perf papers on data at hand.

python -m benchmarks.papers --section ocas-curves --data DATA --out benchmarks/results/papers
"""

from __future__ import annotations

import sys

from .command import Suite
from .engine_solvers import PEERS
from .sections.papers import SECTIONS

SUITE = Suite(
    "papers",
    __doc__.splitlines()[0],
    SECTIONS,
    tuple(PEERS),
    usual_peers=tuple(name for name in PEERS if name != "snapml"),  # two threads, as ours
    defaults={"repeats": 3, "tight_seconds": 8.0, "cpa_seconds": 8.0, "peer_seconds": 15.0},
)
main = SUITE.main

if __name__ == "__main__":
    sys.exit(main())
