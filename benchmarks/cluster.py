"""The cluster benchmark: workers against threads, faults, delays, the cost model. See README.md.

python -m benchmarks.cluster --section speed --data DATA --out benchmarks/results/cluster
"""

from __future__ import annotations

import sys

from .command import Suite
from .sections.cluster import SECTIONS

SUITE = Suite("cluster", __doc__.splitlines()[0], SECTIONS, ("threads",), defaults={"repeats": 3})
main = SUITE.main

if __name__ == "__main__":
    sys.exit(main())
