"""The time of a round: empty, with 0.7 MB and with 8 MB to each worker and back, on tcp and tls.

The vectors of all workers are added up. Long vectors go from worker to worker, and once through the
client. The section also measures vectors near the limit of their length in both ways. For
comparison, Dask's actors get a vector each and return it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cutplane.cluster import workers as package
from cutplane.cluster.orders import Hold, Means, Order
from cutplane.cluster.workers import Workers
from cutplane.data.sums import SumPlan

from ..report import Report, at_most
from .fit import accounting
from .processes import ProcessCluster

SIZES = {"empty": 0, "0.7 MB": 90_000, "8 MB": 1_000_000}  # numbers
VECTOR = 8 * SIZES["8 MB"]  # bytes
NEAR = (1 << 16, 1 << 17, 1 << 18)  # half the limit, the limit, and twice the limit
TIMES = 200
WORKERS = (1, 2, 4)


def hold_nothing(means: Means) -> None:
    """Takes the place of the rows of a worker."""


def exchange(state: None, array: np.ndarray) -> list[np.ndarray]:
    """Return the vector that came. The vectors of all workers are added up."""
    return [array]


class Echo:
    """A Dask actor that returns what it gets."""

    def answer(self, array: np.ndarray) -> np.ndarray:
        """Return the array."""
        return array


def run(report: Report) -> None:
    """Run the section."""
    times = 10 if report.settings.quick else TIMES
    for tls in (False, True):
        with ProcessCluster(max(WORKERS), tls=tls) as cluster:
            for count in WORKERS:
                _measure(report, cluster.client, "tls" if tls else "tcp", count, times)


def _measure(report: Report, client: Any, protocol: str, count: int, times: int) -> None:
    case: dict[str, Any] = {"protocol": protocol, "workers": count}
    case |= {name: rounds(client, count, size, times) for name, size in SIZES.items()}
    case["actors"] = {name: _actors(client, count, size, times) for name, size in SIZES.items()}
    if count > 1:
        case["near the limit"] = [
            {
                "bytes": 8 * size,
                "between_workers": rounds(client, count, size, times, limit=1)["seconds"],
                "through_client": rounds(client, count, size, times, limit=1 << 60)["seconds"],
            }
            for size in NEAR
        ]
    report.say(f"{protocol}, {count} workers: {case}")
    checks = [
        at_most(f"vectors of a round that the client {what}", case["8 MB"][key] / VECTOR, 1.01)
        for what, key in (("sends", "sent_bytes"), ("gets", "received_bytes"))
    ]
    report.add(case, checks, f"{protocol}, {count} workers")


def _fastest(function: Callable[[], Any], size: int, times: int) -> float:
    """Seconds of the fastest of several calls, because other work may slow them."""
    function()
    seconds = []
    for _ in range(max(10, times // 10) if 8 * size >= VECTOR else times):
        begin = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def rounds(
    client: Any, count: int, size: int, times: int = TIMES, limit: int = package.LONG
) -> dict[str, float]:
    """Seconds of the fastest round, and bytes through the client.

    Vectors of ``limit`` bytes or more go from worker to worker.
    """
    array = np.ones(size)
    order = Order(exchange, array, summed=True)
    edges = np.arange(count + 1)
    plans = [SumPlan(edges, k, k + 1) for k in range(count)]
    usual, package.LONG = package.LONG, limit
    try:
        with Workers(client) as workers:
            workers.checked()
            workers.vector_bytes = array.nbytes
            workers.start(workers.available()[:count], Hold(hold_nothing), plans)
            seconds = _fastest(lambda: workers.sum(order), size, times)
            with accounting(count_bytes=True) as account:
                total = workers.sum(order)
    finally:
        package.LONG = usual
    if not np.all(total == count):
        raise AssertionError("a wrong sum")
    return {
        "seconds": seconds,
        "sent_bytes": account.sent,
        "received_bytes": account.received,
    }


def _actors(client: Any, count: int, size: int, times: int) -> float:
    """Seconds of the fastest round of Dask's actors."""
    array = np.ones(size)
    addresses = list(client.scheduler_info(n_workers=-1)["workers"])[:count]
    futures = [
        client.submit(Echo, actor=True, workers=[address], pure=False) for address in addresses
    ]
    with client.as_current():
        actors = [future.result() for future in futures]

        def ask() -> None:
            for answer in [actor.answer(array) for actor in actors]:
                answer.result()

        return _fastest(ask, size, times)
