"""A Dask cluster of processes that can be killed, stopped and replaced one by one.

Scheduler and workers are processes of their own without nannies: nothing brings one back that is
killed, unless a test does. They are forked from a server that has imported everything, so that a
new worker takes part of a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import multiprocessing
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

START_SECONDS = 300.0  # a process may take so long to start on a busy machine


def _in_own_folder(run: Callable[[], Any]) -> None:
    """Run a server. It writes to a folder that is removed afterwards."""
    import dask

    _end_with_parent()
    with tempfile.TemporaryDirectory(prefix="cutplane-worker-") as folder:
        dask.config.set({"temporary_directory": folder})
        logging.disable(logging.ERROR)  # neighbours that vanish are what this is for
        # A terminal sends interrupts to all processes. Servers ignore them: their parent ends them.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        asyncio.run(run())


def _end_with_parent() -> None:
    """Let the system kill this process when its parent ends."""
    with contextlib.suppress(AttributeError, OSError):  # only Linux can do this
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def certificates(folder: Path) -> Any:
    """Make a TLS certificate with openssl for all processes; returns Dask's settings for it."""
    from distributed.security import Security

    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=cutplane", "-keyout", key, "-out", certificate]
    subprocess.run(words, check=True, capture_output=True)
    roles = {f"tls_{role}_{kind}": path for role in ("client", "scheduler", "worker")
             for kind, path in (("key", key), ("cert", certificate))}  # fmt: skip
    return Security(tls_ca_file=certificate, require_encryption=True, **roles)


def _schedule(host: str, pipe: Any, security: Any) -> None:
    async def run() -> None:
        from distributed import Scheduler

        protocol = "tcp" if security is None else "tls"
        async with Scheduler(
            host=host, port=0, dashboard_address=":0", protocol=protocol, security=security
        ) as scheduler:
            pipe.send(scheduler.address)
            await scheduler.finished()

    _in_own_folder(run)


def _work(scheduler: str, host: str, name: str, threads: int, security: Any) -> None:
    async def run() -> None:
        from distributed import Worker

        worker = Worker(
            scheduler,
            host=host,
            name=name,
            nthreads=threads,
            memory_limit=0,
            dashboard=False,
            security=security,
        )
        async with worker:
            await worker.finished()

    _in_own_folder(run)


class ProcessCluster:
    """A scheduler and workers, each a process. Use it in a ``with`` statement.

    Parameters
    ----------
    workers : int
        The number of workers in the beginning.
    threads : int
        The number of threads of each worker.
    tls : bool
        Whether connections are encrypted.

    Attributes
    ----------
    address : str
        The address of the scheduler.
    client : distributed.Client
    """

    def __init__(self, workers: int = 2, threads: int = 1, tls: bool = False) -> None:
        self._count, self._threads, self._tls = workers, threads, tls
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["distributed", "cutplane.estimators.linear_svc"])
        self._workers: dict[str, BaseProcess] = {}
        self._made = 0

    def __enter__(self) -> ProcessCluster:
        from distributed import Client

        self._folder = tempfile.TemporaryDirectory(prefix="cutplane-tls-")
        self._security = certificates(Path(self._folder.name)) if self._tls else None
        receive, send = self._context.Pipe(duplex=False)
        self._scheduler = self._context.Process(
            target=_schedule, args=("127.0.0.1", send, self._security), daemon=True
        )
        self._scheduler.start()
        try:
            if not receive.poll(START_SECONDS):
                raise TimeoutError("the scheduler does not come up")
            self.address: str = receive.recv()
            for _ in range(self._count):
                self.add_worker()
            self.client = Client(self.address, set_as_default=False, security=self._security)
            self.client.wait_for_workers(self._count, timeout=START_SECONDS)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self.client.close(timeout=2)
        self._end()

    def _end(self) -> None:
        for process in (*self._workers.values(), self._scheduler):
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGKILL)
            process.join(10)
        self._folder.cleanup()

    @property
    def tls_settings(self) -> dict[str, str]:
        """Dask's settings for a client that gets an address only."""
        if not self._tls:
            return {}
        names = {"ca-file": "ca_file", "client.cert": "client_cert", "client.key": "client_key"}
        return {
            f"distributed.comm.tls.{key}": getattr(self._security, f"tls_{name}")
            for key, name in names.items()
        }

    # -- who is there ---------------------------------------------------------

    @property
    def scheduler_pid(self) -> int:
        """The process id of the scheduler."""
        return _pid(self._scheduler)

    def pids(self) -> dict[str, int]:
        """The process ids of the living workers, by name."""
        return {name: _pid(p) for name, p in self._workers.items() if p.is_alive()}

    def add_worker(self) -> str:
        """Start another worker, which will connect; returns its name."""
        self._made += 1
        name = f"worker-{self._made:03d}"
        process = self._context.Process(
            target=_work,
            args=(self.address, "127.0.0.1", name, self._threads, self._security),
            daemon=True,
        )
        process.start()
        self._workers[name] = process
        return name

    def kill_worker(self, name: str) -> None:
        """Kill a worker, and wait until it is gone."""
        process = self._workers[name]
        os.kill(_pid(process), signal.SIGKILL)
        process.join()

    def addresses(self) -> dict[str, str]:
        """The addresses of the workers that the scheduler knows, by name."""
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        return {facts["name"]: address for address, facts in known.items()}

    def fill_up(self, count: int | None = None) -> None:
        """Start workers up to ``count``, and wait until the scheduler knows exactly these."""
        self._count = self._count if count is None else count
        for name, process in list(self._workers.items()):
            if not process.is_alive():
                process.join()
                del self._workers[name]
        while len(self._workers) < self._count:
            self.add_worker()
        deadline = time.monotonic() + START_SECONDS
        while self._known() != set(self._workers):
            if time.monotonic() > deadline:
                raise TimeoutError("the workers do not come up")
            time.sleep(0.05)

    def _known(self) -> set[str]:
        identity = self.client.sync(self.client.scheduler.identity)
        return {facts["name"] for facts in identity["workers"].values()}


def _pid(process: BaseProcess) -> int:
    assert process.pid is not None
    return process.pid


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal."""
    status = Path(f"/proc/{pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"
