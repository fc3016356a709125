"""Sessions on workers in other processes: closed, cut, interrupted; nothing is left of them."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from at_iteration import At
from cutplane import DaskCluster, LinearSVC, open_dataset
from cutplane.cluster import workers
from cutplane.cluster.workers import DirectConnection, RelayedConnection, Workers
from cutplane.result import Status

distributed = pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
HANGS = 120.0  # seconds after which something will never happen

if not (ROOT / "benchmarks" / "cluster" / "fault_runs.py").is_file():
    pytest.skip("no benchmarks folder here", allow_module_level=True)
if not hasattr(os, "fork"):
    pytest.skip("processes are forked and killed", allow_module_level=True)


@pytest.fixture(scope="module")
def processes(faults):
    with faults.ProcessCluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(processes):
    """A cluster of two workers that no test harms."""
    processes.fill_up()
    return processes


@pytest.fixture
def spoilt(cluster):
    """The same for a test that changes or loses workers: they end with it."""
    yield cluster
    for name in cluster.pids():
        cluster.kill_worker(name)


@pytest.fixture(scope="module")
def problem(faults):
    with faults.linear_problem() as problem:
        yield problem


def fit(faults, problem, cluster, **settings):
    """A fit; its workers, whether it is as without cluster, and the connections there were."""
    opened = []
    usual = Workers._connect

    async def noting(self, member):
        await usual(self, member)
        opened.append(member.connection)

    Workers._connect = noting
    try:
        with faults.crews_of_fits() as crews:
            executor = DaskCluster(cluster.client, timeout=faults.LONG_PATIENCE)
            model = problem.fit("hinge", executor=executor, **settings)
    finally:
        Workers._connect = usual
    same = faults.Outcome.of(model) == problem.outcome("hinge")
    return model, crews[0], same, opened


def _sessions(dask_worker):
    gc.collect()
    return len(dask_worker.plugins["cutplane"].sessions)


def nothing_left(cluster, opened):
    """No connection is open here, and no worker holds a session any more."""
    deadline = time.monotonic() + HANGS
    gc.collect()  # an actor that is asked has a future of its own
    while any((left := cluster.client.run(_sessions)).values()):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
    return all(c._comm.closed() for c in opened if isinstance(c, DirectConnection))


def test_sessions_end_with_the_fit(faults, problem, cluster):
    _, crew, same, opened = fit(faults, problem, cluster)
    assert same and crew.timings.losses == 0
    assert [type(connection) for connection in opened] == [DirectConnection] * 2
    assert nothing_left(cluster, opened)


@pytest.mark.parametrize("how", ["refused", pytest.param("dropped", marks=pytest.mark.slow)])
def test_workers_that_cannot_be_reached(how, faults, problem, cluster, monkeypatch, caplog):
    """Messages go through the scheduler. The bits are the same, and one message tells the user."""

    async def unreachable(*arguments, **options):
        if how == "refused":
            raise ConnectionRefusedError("made by the test")
        import asyncio

        await asyncio.sleep(options["timeout"])
        raise OSError("timed out")

    monkeypatch.setattr("distributed.comm.connect", unreachable)
    monkeypatch.setattr(workers, "CONNECT", 0.2)
    with caplog.at_level(logging.WARNING, "cutplane"):
        _, crew, same, opened = fit(faults, problem, cluster)
    assert same and crew.timings.losses == 0
    assert [type(connection) for connection in opened] == [RelayedConnection] * 2
    (record,) = [r for r in caplog.records if "cannot be reached" in r.message]
    assert "through the scheduler" in record.message
    assert nothing_left(cluster, opened)


def _cut_answers(call):
    """On a worker: the n-th answer is not sent, and the connection ends."""
    from cutplane.cluster.session import Session

    usual, calls = Session.answer, 0

    async def cutting(self, *arguments):
        nonlocal calls
        calls += 1
        answer = await usual(self, *arguments)
        if calls == call:
            raise OSError("cut by the test")
        return answer

    Session.answer = cutting


@pytest.mark.parametrize("call", [9, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 5))])
def test_a_connection_ends_in_the_middle_of_a_round(call, faults, problem, spoilt):
    """This counts as a lost worker: another worker gets the rows, and the bits are the same."""
    spoilt.client.run(_cut_answers, call, workers=[next(iter(spoilt.addresses().values()))])
    _, crew, same, opened = fit(faults, problem, spoilt)
    assert same and crew.timings.losses == 1
    assert len(opened) == 3 and nothing_left(spoilt, opened)


def test_a_worker_that_is_told_to_end_does(faults, problem, spoilt):
    """A session does not keep it, and its rows go to the other one."""
    client = spoilt.client
    name, pid = next(iter(spoilt.pids().items()))
    address = spoilt.addresses()[name]

    async def end():
        with contextlib.suppress(OSError):  # it need not find the time to answer
            await client.rpc(address).terminate(reason="the test ends it")

    at = At(4, lambda: client.sync(end))
    _, crew, same, opened = fit(faults, problem, spoilt, callback=at)
    assert same and at.done and crew.timings.losses == 1
    deadline = time.monotonic() + HANGS
    while faults._exists(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert nothing_left(spoilt, opened)


def _interrupting_gradient(call, pid):
    """On a worker, interrupt a process while it computes the n-th gradient."""
    from cutplane.cluster.rows import RowsOnWorker

    usual, calls = RowsOnWorker.gradients, 0

    def slow(rows, coef):
        nonlocal calls
        calls += 1
        if calls == call:
            os.kill(pid, signal.SIGINT)
            time.sleep(1.0)
        return usual(rows, coef)

    RowsOnWorker.gradients = slow


def test_an_interrupt_in_the_middle_of_a_round(faults, problem, spoilt):
    """The model so far, proved as soon as workers are free; then the next fit."""
    problem.outcome("hinge")
    one = next(iter(spoilt.addresses().values()))
    spoilt.client.run(_interrupting_gradient, 4, os.getpid(), workers=[one])
    model, crew, _, opened = fit(faults, problem, spoilt)
    assert model.results_[0].status is Status.INTERRUPTED and model.n_iter_ >= 1
    assert crew.timings.losses == 0
    rows = open_dataset(problem.file)
    signs = np.where(rows.y == model.classes_[1], 1.0, -1.0)
    losses = np.maximum(0.0, 1.0 - signs * model.decision_function(rows)).sum()
    objective = 0.5 * np.sum(model.coef_**2) + model.C * losses
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-9)
    assert nothing_left(spoilt, opened)
    _, crew, same, opened = fit(faults, problem, spoilt)
    assert same and crew.timings.losses == 0
    assert nothing_left(spoilt, opened)


def test_an_error_on_a_worker_ends_the_sessions(faults, problem, spoilt):
    def fail():
        from cutplane.cluster.rows import RowsOnWorker

        def raising(rows, coef):
            raise ArithmeticError("made by the test")

        RowsOnWorker.gradients = raising

    spoilt.client.run(fail)
    with faults.crews_of_fits() as crews, pytest.raises(ArithmeticError, match="made by") as caught:
        LinearSVC(solver="ocas", executor=spoilt.client).fit(open_dataset(problem.file))
    assert "raised on worker worker-" in caught.value.__notes__[0]
    assert not crews[0].members
    assert nothing_left(spoilt, [])


# -- what we rely on ----------------------------------------------------------


def test_what_we_rely_on_of_dask():
    """Besides its documented functions; tried with distributed 2024.12.0 and 2026.8.0.

    Handlers of a worker's server get the connection if their first argument is called ``comm``, and
    may use it until it ends; ``connect`` takes the client's own arguments; a worker has a thread of
    its own for actors; actors' asynchronous methods run in its event loop.
    """
    import inspect

    from distributed import Client, Worker, WorkerPlugin
    from distributed.comm import connect
    from distributed.core import Server, _expects_comm
    from distributed.protocol import pickle, to_serialize

    from cutplane.cluster.session import Service

    assert (
        inspect.iscoroutinefunction(connect) and "timeout" in inspect.signature(connect).parameters
    )
    assert _expects_comm(Service().serve) and inspect.iscoroutinefunction(Service.serve)
    assert {"plugin", "name"} <= set(inspect.signature(Worker.plugin_add).parameters)
    assert {"setup", "teardown"} <= set(dir(WorkerPlugin)) and issubclass(Service, WorkerPlugin)
    assert issubclass(Worker, Server) and callable(to_serialize)
    assert "buffer_callback" in inspect.signature(pickle.dumps).parameters
    assert "buffers" in inspect.signature(pickle.loads).parameters
    options = {
        "n_workers": 1,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": None,
    }
    with distributed.LocalCluster(**options) as local, Client(local) as client:
        (worker,) = local.workers.values()
        assert isinstance(client.connection_args, dict) and isinstance(worker.connection_args, dict)
        assert isinstance(worker.handlers, dict) and isinstance(worker.plugins, dict)
        assert worker.executors["actor"]._max_workers == 1
        assert worker.state.nthreads == 1
        assert worker.memory_manager.memory_limit is None or worker.memory_manager.memory_limit > 0
        assert client.direct_to_workers in (None, False, True)
        assert client.loop.asyncio_loop.is_running()
        known = client.sync(client.scheduler.identity)["workers"][worker.address]
        assert {"name", "nthreads"} <= set(known)
