"""The engine benchmark: time until the objective is good, against every peer. See README.md.

python -m benchmarks.engine --section covtype --data DATA --out benchmarks/results/engine
"""

from __future__ import annotations

import sys

from .command import Suite
from .engine_solvers import PEERS
from .sections.engine import SECTIONS

SUITE = Suite("engine", __doc__.splitlines()[0], SECTIONS, tuple(PEERS), resumable=("linear",))
main = SUITE.main

if __name__ == "__main__":
    sys.exit(main())
