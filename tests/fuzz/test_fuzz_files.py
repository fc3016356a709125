"""Changed files end in a clear error or a right answer, never in a signal: see ``fuzz_files``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(count: int, seed: int) -> None:
    """In a process of its own, whose end by a signal can be seen."""
    command = [
        sys.executable,
        str(Path(__file__).with_name("fuzz_files.py")),
        str(count),
        str(seed),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert done.stdout.endswith(f"{count} files, 0 faults\n")


def test_changed_files():
    run(200, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [10**6, 2 * 10**6])
def test_many_changed_files(seed):
    run(20_000, seed)
