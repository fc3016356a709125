"""Compiled code is found again, and compiled anew when a file it is made from has changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from numba import types
from numba.experimental import jitclass

import cutplane
from cutplane import _jit

SCRIPT = """
import sys
import numpy as np
from cutplane.losses import Hinge
from cutplane.loops import rows
print(rows.value(Hinge(), np.zeros(3), 0.0, np.ones(3), np.ones(3)))
print(sum(rows.value.stats.cache_hits.values()))
print("compiler" if "numba.np.linalg" in sys.modules else "no-compiler")
"""


def run(folder: Path) -> list[str]:
    command = [sys.executable, "-c", SCRIPT]
    environment = {"PYTHONPATH": str(folder), "PATH": "", "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_change_of_a_loss_is_seen_by_the_loops(tmp_path):
    package = Path(cutplane.__file__).parent
    shutil.copytree(
        package, tmp_path / "cutplane", ignore=shutil.ignore_patterns("__pycache__", "*.nb*")
    )
    assert run(tmp_path) == ["3.0", "0", "compiler"]
    # What is found is loaded without all that a compilation needs, which takes longer than that.
    assert run(tmp_path) == ["3.0", "1", "no-compiler"]
    losses = tmp_path / "cutplane" / "losses.py"
    text = losses.read_text(encoding="utf-8")
    assert "max(0.0, 1.0 - z)" in text
    losses.write_text(text.replace("max(0.0, 1.0 - z)", "max(0.0, 2.0 - z)"), encoding="utf-8")
    assert run(tmp_path) == ["6.0", "0", "compiler"]


def test_what_other_packages_compile_is_none_of_ours():
    """numba makes the constructor of a class from text: that function has no module."""

    @jitclass([("x", types.float64)])
    class Number:
        def __init__(self, x):
            self.x = x

    with _jit.compilations() as counts:
        assert Number(2.5).x == 2.5
    assert counts.loops == 0


def test_a_listener_may_come_late():
    """If it comes during a compilation, it hears only the end of that compilation."""
    late = _jit.Compilations()
    late.on_end(None)
    assert late.loops == 0
