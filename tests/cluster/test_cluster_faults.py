"""Workers and schedulers that are killed or stand still in the middle of a fit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
HANGS = 90.0  # seconds of a run after which it will never end
TIMES = 20

if not (ROOT / "benchmarks" / "cluster" / "fault_runs.py").is_file():
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


def command(folder, name, *, times=TIMES, seconds=HANGS):
    """Run a fault many times in a process of its own: its records, and all that it said.

    What it says goes to files: a run that hangs ends itself without its scheduler and workers,
    which would hold a pipe open for ever, and whatever was said there would be lost.
    """
    words = [sys.executable, "-m", "benchmarks.cluster.fault_runs", name]
    words += ["--times", str(times), "--seconds", str(seconds)]
    records, messages = folder / "records", folder / "messages"
    with records.open("w") as out, messages.open("w") as err:
        process = subprocess.Popen(words, cwd=ROOT, stdout=out, stderr=err, start_new_session=True)
        try:
            end = f"ended with {process.wait(times * seconds + HANGS)}"
        except subprocess.TimeoutExpired:
            end = "did not end"
        finally:
            with suppress(ProcessLookupError):  # whoever is left of it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = f"-- records --\n{records.read_text()}\n-- messages --\n{messages.read_text()}"
    story = f"{' '.join(words)} {end}\n{said}"
    assert end == "ended with 0", story
    return [json.loads(line) for line in records.read_text().splitlines()], story


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SURVIVED, "any-moment", *ENDED])
def test_each_fault_many_times(name, tmp_path):
    records, story = command(tmp_path, name)
    assert len(records) == TIMES, story
    assert all(record["same"] for record in records), story
    assert all((record["error"] is not None) == (name in ENDED) for record in records), story


def test_a_run_that_hangs_tells_what_happened(tmp_path):
    with pytest.raises(AssertionError) as raised:
        command(tmp_path, "hangs", times=1, seconds=1.0)
    assert "ended with 1" in str(raised.value)
    assert "Timeout (0:00:01" in str(raised.value)  # with a traceback of every thread
    assert "in hangs" in str(raised.value)
