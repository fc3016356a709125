"""A network with a delay: predicted and measured time of an iteration, with one worker and two.

Hosts are network namespaces, and each cable delays every packet. The time of a round without delay
is measured between the same hosts. The model adds the delay to every round, once there and once
back. Times are medians over the rounds, because other work may slow some of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from cutplane import write_dataset

from ..files.disk import workspace
from ..report import Report, at_most
from .hosts import DaskCommands, made_hosts
from .model import GENERATED_C, generated_rows
from .net import not_possible

DELAYS = (0.0, 0.001, 0.005, 0.02)  # seconds, one way
ROWS = 20_000
OFF = 1.5  # largest factor between measured and predicted time
LIMIT = 300.0


def run(report: Report) -> None:
    """Run the section."""
    reason = not_possible()
    if reason is not None:
        report.skip(f"delays: {reason}")
        return
    rows = 1000 if report.settings.quick else ROWS
    delays = DELAYS[:2] if report.settings.quick else DELAYS
    with workspace() as folder:
        path = folder / "generated.cut"
        write_dataset(path, [generated_rows(rows)])
        for workers in (1, 2):
            base: dict[str, Any] | None = None
            for delay in delays:
                label = f"{workers} worker{'s' * (workers > 1)}, {1000 * delay:g} ms"
                with report.attempt(label):
                    one = _fit(path, GENERATED_C, workers, delay)
                    base = base or one
                    _add(report, label, workers, delay, one, base)


def _fit(path: Path, C: float, workers: int, delay: float) -> dict[str, Any]:
    with made_hosts(workers, delay) as hosts, DaskCommands(hosts, silence=30) as dask:
        process = dask.fit(path, "--times", "3", "--C", repr(C))
        try:
            text, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise TimeoutError("the fit does not end") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return json.loads(text.splitlines()[-1])


def _add(
    report: Report,
    label: str,
    workers: int,
    delay: float,
    one: dict[str, Any],
    base: dict[str, Any],
) -> None:
    per = {"measured": one["median_round_seconds"], "base": base["median_round_seconds"]}
    predicted = per["base"] + 2.0 * delay
    ratio = per["measured"] / predicted
    case = {
        "what": label,
        "workers": workers,
        "delay_seconds": delay,
        "n_iter": one["n_iter"],
        "rounds_per_iteration": one["rounds"] / one["n_iter"],
        "round_seconds": per["measured"],
        "predicted_round_seconds": predicted,
        "iteration_seconds": (one["seconds"] - one["load_seconds"]) / one["n_iter"],
        "extra_round_trips": (per["measured"] - per["base"]) / (2.0 * delay) if delay else None,
        "load_seconds": one["load_seconds"],
        "work_seconds_per_round": one["work_seconds"] / one["rounds"],
        "digest": one["digest"],
    }
    checks = [
        at_most(
            "different models, to the last bit",
            len({one["digest"], base["digest"]}),
            1,
            "certificate",
        ),
    ]
    if delay:
        claim = f"measured and predicted differ at most by a factor of {OFF:g}"
        checks.append(at_most(claim, max(ratio, 1.0 / ratio), OFF))
    report.say(
        f"{label}: {1000 * per['measured']:.1f} ms per round, predicted {1000 * predicted:.1f} ms"
    )
    report.add(case, checks, label)
