"""Scheduler and workers begun by Dask's own commands on several hosts, one of them cut off.

    python -m benchmarks.cluster.hosts [--loopback]

Hosts are network namespaces with cables between them, and one is cut off by pulling its cable. If
namespaces are not permitted, or with ``--loopback``, they are addresses of the loopback device, and
a host is cut off by stopping all its processes: its connections stay open, and nothing comes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .fault_runs import generated_rows
from .net import Host, Net, not_possible

PORT = 8786
ROOT = Path(__file__).resolve().parents[2]
# Seconds after which silence counts as loss: of a connection, and of a worker for the scheduler.
# Dask's own are 30 and 300, and less than 11 it does not take.
SILENCE = 12
CUT_OFF_AT = 40  # a host is cut off after so many rounds
LIMIT = 300.0


@dataclass
class Hosts:
    """The hosts where commands can run: a head and others."""

    head: Host
    others: list[Host]
    net: Net | None  # None on loopback addresses

    def command(self, host: Host, arguments: Sequence[str]) -> list[str]:
        """The command line that runs ``arguments`` on a host."""
        return list(arguments) if self.net is None else host.command(arguments)

    def cut_off(self, host: Host, processes: subprocess.Popen[Any]) -> str:
        """Cut a host off; returns how it was done."""
        if self.net is not None:
            self.net.pull_cable(host)
            return "its cable was pulled"
        os.killpg(processes.pid, signal.SIGSTOP)
        return "its processes were stopped"


@contextlib.contextmanager
def made_hosts(count: int, delay: float | None = None, loopback: bool = False) -> Iterator[Hosts]:
    """A head and ``count`` other hosts."""
    if loopback or not_possible() is not None:
        if delay is not None:
            raise OSError("a delay needs network namespaces")
        others = [Host("", f"127.0.0.{k}", "") for k in range(3, count + 3)]
        yield Hosts(Host("", "127.0.0.2", ""), others, None)
        return
    with Net(count, delay) as net:
        yield Hosts(net.head, net.hosts, net)


def environment(silence: int = SILENCE) -> dict[str, str]:
    """The environment of Dask's commands: the same cutplane, and Dask's timeouts."""
    import cutplane

    places = [str(ROOT), str(Path(cutplane.__file__).resolve().parents[1])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(places),
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": f"{silence}s",
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "30s",
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{2 * silence}s",
    }


def _dask() -> str:
    """The path of Dask's command."""
    beside = Path(sys.executable).parent / "dask"
    found = str(beside) if beside.exists() else shutil.which("dask")
    if found is None:
        raise FileNotFoundError("Dask's command is not installed")
    return found


class DaskCommands:
    """A scheduler on the head and a worker on each other host; use as a context."""

    def __init__(self, hosts: Hosts, threads: int = 1, silence: int = SILENCE) -> None:
        self._hosts, self._threads = hosts, threads
        self._environment = environment(silence)
        self._folder = tempfile.TemporaryDirectory(prefix="cutplane-hosts-")
        self.address = f"tcp://{hosts.head.address}:{PORT}"
        self.workers: list[subprocess.Popen[Any]] = []
        self._all: list[subprocess.Popen[Any]] = []

    def __enter__(self) -> DaskCommands:
        try:
            head = self._hosts.head
            self._begin(head, "scheduler", "--host", head.address, "--port", str(PORT))
            for k, host in enumerate(self._hosts.others, 1):
                options = ["--name", f"host-{k}", "--nthreads", str(self._threads)]
                options += ["--host", host.address, "--memory-limit", "0"]
                options += ["--local-directory", self._folder.name]
                self.workers.append(self._begin(host, "worker", self.address, *options))
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self, host: Host, *arguments: str) -> subprocess.Popen[Any]:
        command = [_dask(), *arguments, "--no-dashboard"]
        process = subprocess.Popen(
            self._hosts.command(host, command),
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that all its processes can be ended
        )
        self._all.append(process)
        return process

    def __exit__(self, *error: object) -> None:
        for process in self._all:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._folder.cleanup()

    def fit(self, folder: Path, *options: str) -> subprocess.Popen[str]:
        """Start a fit on the head."""
        command = [sys.executable, "-m", "benchmarks.cluster.fit", self.address, str(folder)]
        command += ["--workers", str(len(self.workers)), *options]
        return subprocess.Popen(
            self._hosts.command(self._hosts.head, command),
            env=self._environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def one_cut_off(loopback: bool = False) -> dict[str, Any]:
    """A fit on two hosts, one of them cut off in the middle, and the same fit without cluster."""
    with (
        generated_rows() as folder,
        made_hosts(2, loopback=loopback) as hosts,
        DaskCommands(hosts) as dask,
    ):
        how, moment, facts = "", 0.0, None
        process = dask.fit(folder, "--lines", "--times", "2", "--tol", "1e-4")
        try:
            begin = time.monotonic()
            assert process.stdout is not None
            for line in process.stdout:
                if line == f"round {CUT_OFF_AT}\n":
                    how = hosts.cut_off(hosts.others[1], dask.workers[1])
                    moment = time.monotonic()
                elif line.startswith("{"):
                    facts, end = json.loads(line), time.monotonic()
                if time.monotonic() - begin > LIMIT:
                    raise TimeoutError("the fit does not end")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if facts is None or not how:
            raise RuntimeError(f"the fit ended with status {process.returncode}")
        from .fit import measured

        expected = measured(*_alone(folder))
    return {
        "hosts": "loopback addresses" if hosts.net is None else "network namespaces",
        "cut_off": how,
        "silence_seconds": SILENCE,
        "seconds_after": end - moment,
        "same": facts["digest"] == expected["digest"],
        "primal": facts["primal"],
        "expected_primal": expected["primal"],
        **{name: facts[name] for name in ("seconds", "rounds", "losses", "recovery_seconds")},
    }


def _alone(folder: Path) -> tuple[Any, tuple[Any]]:
    from cutplane import LinearSVC, open_dataset

    model = LinearSVC(1.0, tol=1e-4, solver="ocas", fit_intercept=False, n_jobs=1)
    return model, (open_dataset(folder),)


def main(argv: Sequence[str] | None = None) -> int:
    """Cut a host off in the middle of a fit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster.hosts")
    parser.add_argument("--loopback", action="store_true")
    facts = one_cut_off(parser.parse_args(argv).loopback)
    print(json.dumps(facts))
    return 0 if facts["same"] and facts["losses"] else 1


if __name__ == "__main__":
    sys.exit(main())
