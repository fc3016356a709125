"""Vectors that go from worker to worker, over plain connections and TLS: bits, bytes, faults."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from pathlib import Path

import pytest

from cutplane import DaskCluster
from cutplane.cluster import workers
from cutplane.cluster.workers import DirectConnection, Workers

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]

if not (ROOT / "benchmarks" / "cluster" / "fault_runs.py").is_file():
    pytest.skip("no benchmarks folder here", allow_module_level=True)
if not hasattr(os, "fork"):
    pytest.skip("processes are forked and killed", allow_module_level=True)


@pytest.fixture(scope="module")
def problem(faults):
    with faults.linear_problem() as problem:  # four parts
        yield problem


def cases(usual, others):
    """Parameters, those of ``others`` for the slow tests."""
    return [*usual, *(pytest.param(*case, marks=pytest.mark.slow) for case in others)]


@pytest.fixture(scope="module")
def cluster(faults, request):
    if request.param == "tls" and shutil.which("openssl") is None:
        pytest.skip("no openssl here, which makes the certificate")
    with faults.ProcessCluster(4, tls=request.param == "tls") as cluster:
        assert cluster.address.startswith(f"{request.param}://")
        yield cluster


@pytest.fixture
def long(monkeypatch):
    """Every vector is long."""
    monkeypatch.setattr(workers, "LONG", 1)


def use(monkeypatch, count):
    """Use only ``count`` workers."""
    available = Workers.available
    monkeypatch.setattr(Workers, "available", lambda self: available(self)[:count])


def fit(faults, problem, cluster, kind="hinge"):
    with faults.crews_of_fits() as crews:
        model = problem.fit(
            kind, executor=DaskCluster(cluster.client, timeout=faults.LONG_PATIENCE)
        )
    return faults.Outcome.of(model) == problem.outcome(kind), crews[0]


@pytest.mark.parametrize(
    ("cluster", "count"),
    cases(
        [("tcp", 4), ("tls", 3)],
        [("tcp", 1), ("tcp", 2), ("tcp", 3), ("tls", 1), ("tls", 2), ("tls", 4)],
    ),
    indirect=["cluster"],
)
def test_the_same_bits_for_any_number_of_workers(
    count, faults, problem, cluster, long, monkeypatch
):
    cluster.fill_up()
    use(monkeypatch, count)
    for kind in problem.estimators:  # every loss
        same, crew = fit(faults, problem, cluster, kind)
        assert same and crew.timings.losses == 0, kind
        assert len(crew._plans) == count
    if count == 4:
        monkeypatch.setattr(workers, "LONG", 1 << 60)  # and where the client adds up
        same, crew = fit(faults, problem, cluster)
        assert same and crew.timings.losses == 0


@pytest.mark.parametrize("cluster", ["tcp"], indirect=True)
def test_each_vector_goes_through_the_client_once(faults, problem, cluster, long, monkeypatch):
    cluster.fill_up()
    asked, usual = [], DirectConnection.ask

    async def asking(self, message, computed):
        answer = await usual(self, message, computed)
        asked.append((message, answer))
        return answer

    monkeypatch.setattr(DirectConnection, "ask", asking)
    use(monkeypatch, 4)
    same, _ = fit(faults, problem, cluster)
    assert same
    with_w = [m.number for m, _ in asked if any(o.name == "move_scores" for o in m.orders or ())]
    assert len(set(with_w)) == len(with_w) > 10
    sums = [a.answers[-1] for m, a in asked if m.route is not None]
    assert len(sums) % 4 == 0 and sum(map(len, sums)) == len(sums) / 4 > 10


@pytest.mark.parametrize(
    ("cluster", "victim", "order"),
    cases(
        [("tcp", 0, "exchange"), ("tls", 1, "gradients")],
        [
            (protocol, victim, order)
            for protocol in ("tcp", "tls")
            for victim in (0, 1, 2, 3)
            for order in ("gradients", "exchange")
        ],
    ),
    indirect=["cluster"],
)
def test_a_worker_is_killed_in_the_middle_of_a_sum(order, victim, faults, problem, cluster, long):
    """With what it has computed, or while workers hand on orders and sums."""
    cluster.fill_up()
    name, pid = sorted(cluster.pids().items())[victim]
    faults.lay(cluster, name, order, 5, {pid: signal.SIGKILL})
    same, crew = fit(faults, problem, cluster)
    assert same
    assert crew.timings.losses == 1


def _unreachable():
    from cutplane.cluster import session

    async def refuse(*arguments, **options):
        raise ConnectionRefusedError("made by the test")

    session.connect = refuse


@pytest.mark.parametrize("cluster", ["tcp"], indirect=True)
def test_workers_that_cannot_reach_one_another(faults, problem, cluster, long, caplog):
    cluster.fill_up()
    cluster.client.run(_unreachable)
    with caplog.at_level(logging.WARNING, "cutplane"):
        same, crew = fit(faults, problem, cluster)
    assert same and crew.timings.losses == 0
    (record,) = [r for r in caplog.records if "go through the client" in r.message]
    assert "made by the test" in record.message
    for name in cluster.pids():
        cluster.kill_worker(name)
