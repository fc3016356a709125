"""The foundation benchmark: what the first release promises, measured. See README.md.

python -m benchmarks.foundation --section iterations --data DATA --out benchmarks/results/foundation
"""

from __future__ import annotations

import sys

from .command import Suite
from .sections import SECTIONS
from .solvers import PEERS

SUITE = Suite("foundation", __doc__.splitlines()[0], SECTIONS, tuple(PEERS))
main = SUITE.main

if __name__ == "__main__":
    sys.exit(main())
