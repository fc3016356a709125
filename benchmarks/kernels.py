"""The kernels benchmark: SVC against libsvm and others, and SVM-light's tables. See README.md.

python -m benchmarks.kernels --section speed --data DATA --out benchmarks/results/kernels
"""

from __future__ import annotations

import sys

from .command import Suite
from .kernel_solvers import PEERS
from .sections.kernels import SECTIONS

SUITE = Suite(
    "kernels",
    __doc__.splitlines()[0],
    SECTIONS,
    tuple(PEERS),
    usual_peers=tuple(PEERS),
    defaults={"repeats": 3, "peer_seconds": 30.0, "tight_seconds": 30.0},
)
main = SUITE.main

if __name__ == "__main__":
    sys.exit(main())
