"""Workers and schedulers that are killed or stand still in the middle of a fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
HANGS = 90.0  # seconds of a run after which it will never end
TIMES = 20

if not (ROOT / "benchmarks" / "cluster_faults.py").is_file():
    pytest.skip("no benchmarks folder here", allow_module_level=True)
if not hasattr(os, "fork"):
    pytest.skip("processes are forked and killed", allow_module_level=True)

# What a fit survives, and what ends it.
SURVIVED = ("loading", "cut", "line-search", "both", "replaced", "slow")
ENDED = ("all", "command", "scheduler")


@pytest.fixture(scope="module")
def cluster(faults):
    with faults.ProcessCluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def problem(faults):
    with faults.generated_problem() as problem:
        yield problem


@pytest.mark.parametrize("name", [*SURVIVED, *ENDED])
def test_each_fault_once(name, faults, problem, request):
    with ExitStack() as stack:
        if name == "scheduler":  # nobody can use it afterwards
            cluster = stack.enter_context(faults.ProcessCluster())
        else:
            cluster = request.getfixturevalue("cluster")
            cluster.fill_up()
        record = within_time(faults.FAULTS[name], cluster, problem, 0)
    assert record.same  # to the last bit; of those that end, the fit that goes on from the file
    if name in ENDED:
        expected = "the scheduler ADDRESS does not" if name == "scheduler" else "no worker is left:"
        assert expected in record.error
        assert record.error_seconds < faults.PATIENCE + 10.0


def within_time(function, *arguments):
    """Called in a thread, so that what hangs is a failure and nothing worse."""
    runner = ThreadPoolExecutor(1)
    try:
        return runner.submit(function, *arguments).result(HANGS)
    finally:
        runner.shutdown(wait=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SURVIVED, "any-moment", *ENDED])
def test_each_fault_many_times(name):
    command = [sys.executable, "-m", "benchmarks.cluster_faults", name]
    answer = subprocess.run(
        [*command, "--times", str(TIMES), "--seconds", str(HANGS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMES * HANGS,
    )
    assert answer.returncode == 0, answer.stderr
    records = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len(records) == TIMES
    assert all(record["same"] for record in records)
    assert all((record["error"] is not None) == (name in ENDED) for record in records)
