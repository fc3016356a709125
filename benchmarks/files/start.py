"""Processor seconds that commands take from their start to their end, with compiled loops on disk.

The file is small, so that the start takes most of the time: a9a, or generated rows in a quick run.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from cutplane import LinearSVC, dump_svmlight, save_model

from ..report import Report, at_most
from .disk import workspace

MOST = 0.7  # a command should take at most so many seconds
COMMANDS = {
    "info of a model": "info {model}",
    "info of data": "info {data}",
    "evaluate": "evaluate {data} {model}",
    "predict": "predict {data} {model} {out}",
}


def run(report: Report) -> None:
    """Run the section."""
    data = report.load("a9a")
    if data is None:
        return
    with workspace() as folder:
        names = {key: str(folder / key) for key in ("data", "model", "out")}
        dump_svmlight(data.X.astype(np.float64), data.y, names["data"])
        save_model(LinearSVC().fit(data.X, data.y), names["model"])
        for label, command in COMMANDS.items():
            with report.attempt(label):
                words = command.format(**names).split()
                _seconds(words)  # compiles, and reads files into the page cache
                used = [_seconds(words) for _ in range(max(3, report.settings.repeats))]
                case = {"what": label, "cpu_seconds": used}
                least = min(used)
                report.add(case, [at_most(f"start of {label} in s", least, MOST)], label)


def _seconds(words: list[str]) -> float:
    before = os.times()
    script = "import sys; from cutplane.cli import main; sys.exit(main())"
    subprocess.run([sys.executable, "-c", script, *words], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )
