"""The measures benchmark: ROC area, F1, the top k, ordinal targets, ranking. See README.md.

python -m benchmarks.measures --section iterations --data DATA --out benchmarks/results/measures
"""

from __future__ import annotations

import sys

from .command import Suite
from .measure_solvers import PEERS
from .sections.measures import SECTIONS

SUITE = Suite("measures", __doc__.splitlines()[0], SECTIONS, tuple(PEERS), usual_peers=tuple(PEERS))
main = SUITE.main

if __name__ == "__main__":
    sys.exit(main())
