"""Lines to workers in other processes: refused, cut, interrupted; nothing is left of them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from at_iteration import At
from cutplane import DaskCluster, LinearSVC, open_dataset
from cutplane.exec import lines
from cutplane.exec.members import Member
from cutplane.exec.messages import Messages
from cutplane.exec.orders import Worker
from cutplane.result import Status

distributed = pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]

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
    """Two workers, which a test leaves as they are."""
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
    with faults.generated_problem() as problem:
        yield problem


def fit(faults, problem, cluster, **settings):
    """A fit; its crew, whether it is as without cluster, and the lines there were."""
    opened = []
    usual = Messages.connect

    def noting(self, members):
        usual(self, members)
        opened.extend(member.line for member in members)

    Messages.connect = noting
    try:
        with faults.crews_of_fits() as crews:
            executor = DaskCluster(cluster.client, timeout=20.0)
            model = problem.fit("hinge", executor=executor, **settings)
    finally:
        Messages.connect = usual
    same = faults.Outcome.of(model) == problem.outcome("hinge")
    return model, crews[0], same, opened


def _threads():
    return [t.name for t in threading.enumerate() if t.name == "cutplane-line"]


def no_threads(cluster):
    """No worker keeps a thread of a line; one that nobody called listens for a while."""
    deadline = time.monotonic() + lines.LISTEN + 2.0
    while any((left := cluster.client.run(_threads)).values()):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
    return True


def test_rounds_go_on_lines_which_end_with_the_fit(faults, problem, cluster):
    _, crew, same, opened = fit(faults, problem, cluster)
    assert same and len(opened) == 2 and None not in opened
    assert all(line.fileno() == -1 for line in opened)  # closed here
    assert no_threads(cluster)
    assert crew.timings.losses == 0


def _listen_to_nobody():
    def refuse(host):
        raise PermissionError("no port here")

    lines.listen = refuse


async def _unheard(host, port, key, silence):
    import asyncio

    await asyncio.sleep(60.0)


@pytest.mark.parametrize(
    "how",
    [
        "refused",
        pytest.param("no port", marks=pytest.mark.slow),
        pytest.param("packets are dropped", marks=pytest.mark.slow),
    ],
)
def test_without_a_line_messages_go_by_dask(how, faults, problem, cluster, monkeypatch, request):
    if how == "no port":  # at one of them, and the other one has a line
        request.getfixturevalue("spoilt")
        address = next(iter(cluster.addresses().values()))
        cluster.client.run(_listen_to_nobody, workers=[address])
    elif how == "refused":

        async def refuse(*arguments):
            raise ConnectionRefusedError

        monkeypatch.setattr(lines, "call", refuse)
    else:
        monkeypatch.setattr(lines, "call", _unheard)
        monkeypatch.setattr(lines, "CALL", 0.1)
    begin = time.monotonic()
    _, crew, same, opened = fit(faults, problem, cluster)
    assert same and crew.timings.losses == 0
    assert opened.count(None) == (1 if how == "no port" else 2)
    assert time.monotonic() - begin < 30.0


@pytest.mark.parametrize(
    "address", ["tls://10.0.0.1:7", "inproc://10.0.0.1/7/1", "ucx://10.0.0.1:7"]
)
def test_only_plain_tcp_has_lines(address):
    """Nothing is asked of such a worker; a client that were asked would fail."""
    member = Member(0, None, Worker(address, "0", 1))
    Messages(None, None, None).connect([member])
    assert member.line is None


def _cut_answers(call):
    """On a worker: the n-th answer on a line is cut in the middle."""
    usual, calls = lines._push, 0

    def cutting(end, piece, watch):
        nonlocal calls
        calls += 1
        if calls == call:
            end.send(piece[: len(piece) // 2])
            end.close()
            raise ConnectionResetError("cut by the test")
        usual(end, piece, watch)

    lines._push = cutting


@pytest.mark.parametrize("call", [9, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 5))])
def test_a_line_is_cut_in_the_middle_of_a_round(call, faults, problem, spoilt):
    """As any loss: the rows go to another worker, to the same bits."""
    spoilt.client.run(_cut_answers, call, workers=[next(iter(spoilt.addresses().values()))])
    _, crew, same, opened = fit(faults, problem, spoilt)
    assert same and crew.timings.losses == 1
    assert len(opened) == 3 and all(line.fileno() == -1 for line in opened)
    assert no_threads(spoilt)


def test_a_worker_that_is_told_to_end_does(faults, problem, spoilt):
    """Its thread does not keep it, and its rows go to the other one."""
    client = spoilt.client
    name, pid = next(iter(spoilt.pids().items()))
    address = spoilt.addresses()[name]

    async def end():
        with contextlib.suppress(OSError):  # it need not find the time to answer
            await client.rpc(address).terminate(reason="the test ends it")

    at = At(4, lambda: client.sync(end))
    _, crew, same, _ = fit(faults, problem, spoilt, callback=at)
    assert same and at.done and crew.timings.losses == 1
    deadline = time.monotonic() + 10.0
    while faults._exists(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert no_threads(spoilt)


@pytest.mark.slow
def test_a_worker_of_this_process_that_closes_is_not_asked_any_more(faults, problem):
    """Nothing ends its line but that it looks around."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=False, protocol="tcp://", **options) as local,
        distributed.Client(local) as client,
    ):
        worker = next(iter(local.workers.values()))

        at = At(4, lambda: local.sync(worker.close, nanny=False, reason="the test ends it"))
        with faults.crews_of_fits() as crews:
            model = problem.fit("hinge", executor=client, callback=at)
    assert faults.Outcome.of(model) == problem.outcome("hinge")
    assert crews[0].timings.losses == 1
    deadline = time.monotonic() + 3.0
    while _threads():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _slow_gradients(call, seconds):
    """On a worker: the n-th gradient takes its time."""
    from cutplane.oracles.holder import RowsHolder

    usual, calls = RowsHolder.gradients, 0

    def slow(self, coef):
        nonlocal calls
        calls += 1
        if calls == call:
            time.sleep(seconds)
        return usual(self, coef)

    RowsHolder.gradients = slow


@contextlib.contextmanager
def interrupt_after(seconds):
    clock = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    clock.start()
    try:
        yield
    finally:
        clock.cancel()
        clock.join()


def test_an_interrupt_in_the_middle_of_a_round(faults, problem, spoilt):
    """The model so far, proved as soon as workers are free; lines are closed, and the next fit."""
    problem.outcome("hinge")
    fit(faults, problem, spoilt)  # everything is compiled
    spoilt.client.run(_slow_gradients, 4, 3.0)
    begin = time.monotonic()
    with interrupt_after(1.5):
        model, _, _, opened = fit(faults, problem, spoilt)
    assert time.monotonic() - begin < 3.0 + 4.0  # the order under way, and the proof
    assert model.results_[0].status is Status.INTERRUPTED and model.n_iter_ >= 1
    rows = open_dataset(problem.folder)
    signs = np.where(rows.y == model.classes_[1], 1.0, -1.0)
    losses = np.maximum(0.0, 1.0 - signs * model.decision_function(rows)).sum()
    objective = 0.5 * np.sum(model.coef_**2) + model.C * losses
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-9)
    assert all(line.fileno() == -1 for line in opened)
    _, crew, same, opened = fit(faults, problem, spoilt)  # waits for what is still going on
    assert same and crew.timings.losses == 0
    assert no_threads(spoilt)


def test_an_error_on_a_worker_closes_the_lines(faults, problem, spoilt, tmp_path):
    def fail():
        from cutplane.oracles.holder import RowsHolder

        def raising(self, coef):
            raise ArithmeticError("made by the test")

        RowsHolder.gradients = raising

    spoilt.client.run(fail)
    with faults.crews_of_fits() as crews, pytest.raises(ArithmeticError, match="made by") as caught:
        LinearSVC(solver="ocas", executor=spoilt.client).fit(open_dataset(problem.folder))
    assert "raised on worker worker-" in caught.value.__notes__[0]
    assert not crews[0].members
    assert no_threads(spoilt)
