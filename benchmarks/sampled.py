"""The sampled-cuts benchmark: kernels on many rows. See README.md.

python -m benchmarks.sampled --section table --data DATA --out benchmarks/results/sampled
"""

from __future__ import annotations

import sys

from .command import Suite
from .sections.sampled import SECTIONS

SUITE = Suite(
    "sampled",
    __doc__.splitlines()[0],
    SECTIONS,
    ("scikit-learn",),
    resumable=("table", "limits"),
    defaults={"peer_seconds": 120.0, "tight_seconds": 180.0},
)
main = SUITE.main

if __name__ == "__main__":
    sys.exit(main())
