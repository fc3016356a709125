"""Workers and schedulers that are killed or stand still in the middle of a fit."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
HANGS = 600.0  # seconds of a run after which it will never end, on whatever machine
TIMES = 20

if not (ROOT / "benchmarks" / "cluster" / "fault_runs.py").is_file():
    pytest.skip("no benchmarks folder here", allow_module_level=True)
if not hasattr(os, "fork"):
    pytest.skip("processes are forked and killed", allow_module_level=True)

# What a fit survives, and what ends it.
SURVIVED = ("loading", "cut", "line-search", "both", "replaced", "slow")
ENDED = ("all", "command", "scheduler")


# Of what other problems and encrypted connections add, what is tried each time.
QUICK = [
    ("line-search", "linear", True),
    ("command", "linear", True),
    ("cut", "chains", False),
    ("both", "chains", True),
    ("cut", "measure", False),
    ("line-search", "structured", False),
]


@pytest.fixture(scope="module")
def clusters(faults):
    """Clusters without and with TLS, each begun when it is first asked for."""
    with ExitStack() as stack:
        yield cache(lambda tls: stack.enter_context(faults.ProcessCluster(tls=tls)))


@pytest.fixture(scope="module")
def problems(faults):
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(faults.PROBLEMS[name]()))


@pytest.mark.parametrize(
    ("name", "problem", "tls"), [*((name, "linear", False) for name in (*SURVIVED, *ENDED)), *QUICK]
)
def test_each_fault_once(name, problem, tls, faults, problems, clusters):
    if tls and shutil.which("openssl") is None:
        pytest.skip("no openssl here, which makes the certificate")
    with ExitStack() as stack:
        if name == "scheduler":  # nobody can use it afterwards
            cluster = stack.enter_context(faults.ProcessCluster(tls=tls))
        else:
            cluster = clusters(tls)
            cluster.fill_up()
        record = within_time(faults.FAULTS[name], cluster, problems(problem), 0)
    assert record.same  # to the last bit; of those that end, the fit that goes on from the file
    if name in ENDED:
        expected = "the scheduler ADDRESS does not" if name == "scheduler" else "no worker is left:"
        assert expected in record.error


def within_time(function, *arguments):
    """Called in a thread, so that what hangs is a failure and nothing worse."""
    runner = ThreadPoolExecutor(1)
    try:
        return runner.submit(function, *arguments).result(HANGS)
    finally:
        runner.shutdown(wait=False)


def command(folder, name, *options, times=TIMES, seconds=HANGS):
    """Run a fault many times in a process of its own: its records, and all that it said.

    What it says goes to files: a run that hangs ends itself without its scheduler and workers,
    which would hold a pipe open for ever, and whatever was said there would be lost.
    """
    words = [sys.executable, "-m", "benchmarks.cluster.fault_runs", name, *options]
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


def all_cases():
    """As the module has them, which is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        runs = importlib.import_module("benchmarks.cluster.fault_runs")
        return [case for case in runs.cases() if case[0] != "none"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "problem", "tls"), all_cases())
def test_each_fault_many_times(name, problem, tls, tmp_path):
    if tls and shutil.which("openssl") is None:
        pytest.skip("no openssl here, which makes the certificate")
    records, story = command(tmp_path, name, "--problem", problem, *(["--tls"] if tls else []))
    assert len(records) == TIMES, story
    assert all(record["same"] for record in records), story
    assert all((record["error"] is not None) == (name in ENDED) for record in records), story


def test_a_run_that_hangs_tells_what_happened(tmp_path):
    with pytest.raises(AssertionError) as raised:
        command(tmp_path, "hangs", times=1, seconds=3.0)
    assert "ended with 1" in str(raised.value)
    assert "Timeout (0:00:03" in str(raised.value)  # with a traceback of every thread
    assert "in hangs" in str(raised.value)
