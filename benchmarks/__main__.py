"""Run sections of a suite: python -m benchmarks SUITE --section SECTION. See README.md."""

from __future__ import annotations

import importlib
import sys

SUITES = (
    *("engine", "regression", "measures", "kernels", "sampled", "chains", "files", "papers"),
    *("cluster", "checkouts"),
)


def main(argv: list[str]) -> int:
    """Run the command; the status of the process."""
    if not argv or argv[0] not in SUITES:
        print(f"usage: python -m benchmarks {{{','.join(SUITES)}}} --help", file=sys.stderr)
        return 2
    return importlib.import_module(f"benchmarks.{argv[0]}").SUITE.main(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
