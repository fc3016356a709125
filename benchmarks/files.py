"""The files benchmark: text that is read, data that are larger than memory. See README.md.

python -m benchmarks.files --section reader --data DATA --out benchmarks/results/files
"""

from __future__ import annotations

import sys

from .command import Suite
from .readers import PEERS
from .sections.files import SECTIONS

SUITE = Suite("files", __doc__.splitlines()[0], SECTIONS, tuple(PEERS))
main = SUITE.main

if __name__ == "__main__":
    sys.exit(main())
