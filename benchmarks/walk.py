"""The walk of a fit: how many files, functions and levels of calls it goes through.

    python -m benchmarks.walk

Counted by ``sys.setprofile`` in the main thread: Python functions of the package that a second
fit on the same data runs (the first one compiles), the files they are in, and the deepest chain of
calls inside the package. A new engineer reads that much to follow one fit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import cutplane

PACKAGE = str(Path(cutplane.__file__).parent)
ROWS, FEATURES = 3000, 20
# Before Python 3.12 these have frames of their own, but they are not functions.
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True)
class Calls:
    """What a call has run inside the package."""

    files: list[str]
    functions: list[str]
    deepest: list[str]

    @property
    def depth(self) -> int:
        return len(self.deepest)


@dataclass(frozen=True)
class Case:
    """A fit, and the largest numbers of files, functions and levels that it should take."""

    name: str
    fit: Callable[[], Any]
    files: int
    functions: int
    depth: int


def walk_of(call: Callable[[], Any]) -> Calls:
    """The walk of a call, whose result is not used."""
    seen: set[CodeType] = set()
    chain: list[CodeType] = []
    deepest: list[CodeType] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal deepest
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name in COMPREHENSIONS:
            return
        if event == "call":
            chain.append(code)
            seen.add(code)
            if len(chain) > len(deepest):
                deepest = chain.copy()
        elif event == "return":
            chain.pop()

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    files = sorted({code.co_filename[len(PACKAGE) + 1 :] for code in seen})
    return Calls(files, sorted(map(_named, seen)), list(map(_named, deepest)))


def _named(code: CodeType) -> str:
    return f"{code.co_filename[len(PACKAGE) + 1 :]}: {code.co_qualname}"


def cases() -> list[Case]:
    """The fits that are walked."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES))
    y = (X @ rng.normal(size=FEATURES) + rng.normal(size=ROWS) > 0.0).astype(int)
    sequences = np.split(X, 100), np.split(y, 100)
    one = {"n_jobs": 1}
    return [
        Case(
            "LinearSVC, ocas",
            lambda: cutplane.LinearSVC(solver="ocas", **one).fit(X, y),
            *(20, 130, 15),
        ),
        Case("MeasureSVC, F1", lambda: cutplane.MeasureSVC("f1", **one).fit(X, y), 24, 150, 16),
        Case("ChainTagger", lambda: cutplane.ChainTagger(**one).fit(*sequences), 24, 150, 16),
        Case("SVC", lambda: cutplane.SVC(**one).fit(X, y), 15, 80, 12),
    ]


def main() -> None:
    """Print the walk of every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", action="store_true", help="list the functions, too")
    parser.add_argument("--deepest", action="store_true", help="list the deepest chain of calls")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    arguments = parser.parse_args()
    print(f"{'fit':16} {'files':>10} {'functions':>12} {'depth':>9}   (most)")
    for case in cases():
        if arguments.only not in case.name:
            continue
        case.fit()
        walk = walk_of(case.fit)
        print(
            f"{case.name:16} {len(walk.files):4d} ({case.files:3d}) "
            f"{len(walk.functions):6d} ({case.functions:3d}) {walk.depth:4d} ({case.depth:2d})"
        )
        if arguments.functions:
            print("\n".join(f"    {name}" for name in walk.functions))
        if arguments.deepest:
            print("\n".join(f"    {name}" for name in walk.deepest))


if __name__ == "__main__":
    main()
