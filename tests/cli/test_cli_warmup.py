"""Compiling ahead: what the command says, and that fits after it compile nothing."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys

import pytest

from cutplane import _jit
from cutplane.cli import main, warmup

TWO_LOOPS = """
import numpy as np
from cutplane.estimators import _fit
from cutplane.losses import Hinge
from cutplane.loops import rows
for times in (1, 2):
    rows.value(Hinge(), np.zeros(3), 0.0, np.ones(3), np.ones(3))
    rows.highest(Hinge(), *np.zeros((3, 3)), np.ones(3), np.zeros(3))
"""


def few(monkeypatch):
    """Steps that compile nothing or one loop, which no test uses otherwise."""

    @_jit.jit
    def doubled(x):
        return 2 * x

    steps = (
        warmup.Step("nothing", lambda samples: samples.small, True),
        warmup.Step("doubling", lambda samples: doubled(1.5), False),
    )
    doubled.__module__ = "cutplane.loops.test"
    doubled.py_func.__module__ = "cutplane.loops.test"
    monkeypatch.setattr(warmup, "STEPS", steps)


def test_says_what_was_compiled(monkeypatch, capsys):
    few(monkeypatch)
    assert main(["warmup"]) == 0
    out = capsys.readouterr().out
    assert re.fullmatch(r"everything was compiled already \(\d.*s\)\n", out)
    with _jit.compilations() as counts:
        assert main(["warmup", "--all"]) == 0
    out = capsys.readouterr().out
    if counts.loops:  # otherwise the cache has it from an earlier run
        assert counts.loops == 1
        assert re.match(r"doubling +1 loop in \d.*s\ncompiled 1 loop in ", out)
    assert main(["warmup", "--all"]) == 0
    assert capsys.readouterr().out.startswith("everything was compiled already")


def test_a_terminal_shows_which_step_is_being_compiled(monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    few(monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["warmup"]) == 0
    assert "nothing" in sys.stderr.getvalue() and "1/1" in sys.stderr.getvalue()
    assert capsys.readouterr().out.startswith("everything was compiled already")


def test_steps_cover_the_estimators():
    titles = " ".join(step.title for step in warmup.STEPS)
    for name in (
        *("LinearSVC", "LinearSVR", "MeasureSVC", "RankSVM", "OrdinalSVC", "SVC", "SVR"),
        *("OneClassSVM", "SampledCutSVC", "CholeskyFeatures", "ChainTagger"),
    ):
        assert name in titles
    assert any(step.common for step in warmup.STEPS) and not all(s.common for s in warmup.STEPS)


@pytest.mark.slow
def test_fits_after_it_compile_nothing(tmp_path):
    """The processes are new and begin with an empty cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "cutplane", "warmup", "--all"]
    first = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert re.search(r"^compiled \d\d+ loops", first.stdout, re.MULTILINE)
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert again.stdout.startswith("everything was compiled already")
    script = (
        "import numpy as np; from cutplane import LinearSVC, MeasureSVC, _jit\n"
        "X = np.random.default_rng(0).normal(size=(50, 3)); y = X[:, 0] > 0\n"
        "with _jit.compilations() as counts:\n"
        "    LinearSVC().fit(X, y); MeasureSVC('f1').fit(X, y)\n"
        "print(counts.loops)"
    )
    fits = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert fits.stdout == "0\n"


def run(script, cache, *, terminal):
    """What a script writes to standard error, which is a terminal or a pipe."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "TERM": "xterm"}
    command = [sys.executable, "-c", script]
    if not terminal:
        return subprocess.run(command, env=environment, capture_output=True, check=True).stderr
    import pty

    master, slave = pty.openpty()
    shown = b""
    with subprocess.Popen(command, stderr=slave, env=environment) as process:
        os.close(slave)
        with contextlib.suppress(OSError):
            while chunk := os.read(master, 4096):
                shown += chunk
    os.close(master)
    assert process.returncode == 0
    return shown


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a pseudo-terminal")
def test_the_first_fit_says_once_that_it_compiles(tmp_path):
    """It says so in a terminal, with an empty cache, and only once. In a pipe it never says so."""
    piped = tmp_path / "piped"
    assert run(TWO_LOOPS, piped, terminal=False) == b""
    first = run(TWO_LOOPS, tmp_path / "seen", terminal=True)
    assert first.count(b"compiling for first use") == 1
    assert b"cutplane warmup" in first and first.count(b"\n") == 1
    assert run(TWO_LOOPS, tmp_path / "seen", terminal=True) == b""
