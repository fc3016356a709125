"""The chains benchmark: OCR letters and chunking with ChainTagger. See README.md.

python -m benchmarks.chains --section letters --data DATA --out benchmarks/results/chains
"""

from __future__ import annotations

import sys

from .command import Suite
from .sections.chains import SECTIONS

SUITE = Suite("chains", __doc__.splitlines()[0], SECTIONS, ("SVM-hmm",), resumable=("letters",))
main = SUITE.main

if __name__ == "__main__":
    sys.exit(main())
