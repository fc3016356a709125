"""Made-up traces, and a terminal that remembers what stands on its screen."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable

import numpy as np
import pytest

from cutplane.result import Certificate, Iteration, SolveResult, Status


def make_record(number: int, primal: float, dual: float, seconds: float = 0.0) -> Iteration:
    return Iteration(number, primal, dual, primal, 1.0, number, seconds)


def make_result(primals, duals, seconds=None) -> SolveResult:
    seconds = 0.1 * np.arange(1, len(primals) + 1) if seconds is None else seconds
    trace = tuple(
        make_record(k + 1, float(p), float(d), float(s))
        for k, (p, d, s) in enumerate(zip(primals, duals, seconds, strict=True))
    )
    certificate = Certificate(float(primals[-1]), float(duals[-1])) if trace else Certificate(1, 0)
    return SolveResult(np.zeros(2), 0.0, Status.CONVERGED, certificate, len(trace), trace, {})


def make_run(count: int, optimum: float = 100.0, start: float = 1e4, rate: float = 0.2):
    """Objective and bound that approach the optimum exponentially."""
    k = np.arange(count)
    return make_result(
        optimum + (start - optimum) * np.exp(-rate * k), optimum * (1 - np.exp(-rate * k - 0.01))
    )


class Terminal(io.StringIO):
    """A stream that says it is a terminal, to stand in for stderr or stdout."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._monkeypatch = monkeypatch

    def attach(self, name: str = "stderr") -> None:
        """To be called in the test: pytest sets the streams anew after the fixtures."""
        self._monkeypatch.setattr(sys, name, self)

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """The text on the screen. It understands the control codes that rich uses for one line."""
        lines = [""]
        row, column = 0, 0
        for token in re.findall(r"\x1b\[[?\d;]*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if token == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif token == "\r":
                column = 0
            elif token.endswith("A") and token[0] == "\x1b":
                row -= int(token[2:-1] or 1)
            elif token == "\x1b[2K":
                lines[row] = ""
            elif token[0] != "\x1b":
                line = lines[row].ljust(column)
                lines[row] = line[:column] + token + line[column + len(token) :]
                column += len(token)
        return [line.rstrip() for line in lines if line.strip()]

    @property
    def cursor_hidden(self) -> bool:
        codes = re.findall(r"\x1b\[\?25([lh])", self.getvalue())
        return bool(codes) and codes[-1] == "l"

    def frames(self) -> int:
        return self.getvalue().count("\x1b[2K")


@pytest.fixture
def record() -> Callable[..., Iteration]:
    return make_record


@pytest.fixture
def result() -> Callable[..., SolveResult]:
    return make_result


@pytest.fixture
def run() -> Callable[..., SolveResult]:
    return make_run


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 120 columns."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return Terminal(monkeypatch)
