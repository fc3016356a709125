"""Faults in the middle of a fit, each many times: none may hang, and the model must be the same.

Every fault has a process of its own that ends itself when a run takes too long.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from ..measure import ROOT, spread
from ..report import Report, at_least, at_most
from .fault_runs import FAULTS, PATIENCE, cases
from .hosts import environment, one_cut_off

TIMES, QUICK_TIMES = 20, 1
HANGS = 300.0  # a run that takes so many seconds hangs
DOUBT = 10.0  # an error may be so many seconds late on a busy machine


def run(report: Report) -> None:
    """Run the section."""
    times = QUICK_TIMES if report.settings.quick else TIMES
    for name, problem, tls in cases():
        label = f"{problem}, {'tls' if tls else 'tcp'}: {name}"
        with report.attempt(label):
            _case(report, label, name, ["--problem", problem, *(["--tls"] if tls else [])], times)
    if not report.settings.quick:
        for loopback in (False, True):
            with report.attempt(f"hosts, loopback {loopback}"):
                _hosts(report, loopback)


def _case(report: Report, label: str, name: str, options: list[str], times: int) -> None:
    command = [sys.executable, "-m", "benchmarks.cluster.fault_runs", name, *options]
    answer = subprocess.run(
        [*command, "--times", str(times), "--seconds", str(HANGS)],
        cwd=ROOT,
        env=environment(30),
        capture_output=True,
        text=True,
        timeout=2 * times * HANGS,
    )
    runs = [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")]
    if len(runs) < times:
        print(answer.stderr, file=sys.stderr)
    errors = sorted({run["error"] for run in runs if run["error"]})
    case: dict[str, Any] = {
        "what": label,
        "description": (FAULTS[name].__doc__ or "").splitlines()[0],
        "runs": len(runs),
        "same": sum(run["same"] for run in runs),
        "losses": sum(run["losses"] for run in runs),
        "seconds": spread([run["seconds"] for run in runs]),
        "recovery_seconds": spread([run["recovery_seconds"] for run in runs]),
        "errors": errors,
    }
    checks = [
        at_least("runs that ended", len(runs), times, "certificate"),
        at_least("of these with the same bits", case["same"], times, "certificate"),
    ]
    if errors:
        case["error_seconds"] = spread([run["error_seconds"] for run in runs])
        latest = max(case["error_seconds"]["runs"])
        checks.append(at_most("the error comes in time", latest, PATIENCE + DOUBT))
    report.say(f"{label}: {case['same']} of {times} runs ended with the same model")
    report.add(case, checks, label)


def _hosts(report: Report, loopback: bool) -> None:
    facts = one_cut_off(loopback)
    label = f"one of two hosts is cut off ({facts['hosts']})"
    case = {
        "what": label,
        "description": f"{facts['cut_off']}; silence of {facts['silence_seconds']} s is loss",
        "runs": 1,
        **facts,
        "same": int(facts["same"]),
        "seconds": spread([facts["seconds"]]),
        "recovery_seconds": spread([facts["recovery_seconds"]]),
        "errors": [],
    }
    report.add(case, [at_least("the same bits", case["same"], 1, "certificate")], label)
