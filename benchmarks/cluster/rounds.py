"""What a round costs: nothing in it, and 0.7 MB to each worker and back, on tcp and tls.

And what goes through the client when vectors are long: an order with a vector to all workers, whose
answers are added up, for 1, 2 and 4 workers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutplane.cluster.orders import Order
from cutplane.cluster.workers import Workers
from cutplane.data.sums import SumPlan

from ..report import Report, at_most
from .costs import HoldNothing
from .fit import accounting
from .processes import ProcessCluster

SHORT = 90_000  # numbers, 0.7 MB
LONG = 1_000_000
TIMES = 200
WORKERS = (1, 2, 4)


@dataclass(frozen=True)
class Exchange(Order):
    """Takes a vector, gives it back; those of all workers are added up."""

    array: np.ndarray
    summed = True

    def run(self, state: None) -> list[np.ndarray]:
        return [self.array]


def run(report: Report) -> None:
    """Run the section."""
    times = 10 if report.settings.quick else TIMES
    for tls in (False, True):
        with ProcessCluster(max(WORKERS), tls=tls) as cluster:
            _measure(report, cluster.client, "tls" if tls else "tcp", times)


def _measure(report: Report, client: Any, protocol: str, times: int) -> None:
    for count in WORKERS:
        sizes = {"empty": 0, "0.7 MB": SHORT, "8 MB": LONG}
        case: dict[str, Any] = {"protocol": protocol, "workers": count}
        for name, size in sizes.items():
            rounds = max(10, times // 10) if size == LONG else times
            case[name] = _rounds(client, count, size, rounds)
        report.say(f"{protocol}, {count} workers: {case}")
        vector = 8 * LONG
        sent = case["8 MB"]["sent_bytes"] / vector
        received = case["8 MB"]["received_bytes"] / vector
        checks = [
            at_most("vectors that the client sends in a round", sent, 1.01),
            at_most("vectors that the client gets in a round", received, 1.01),
        ]
        report.add(case, checks, f"{protocol}, {count} workers")


def _rounds(client: Any, count: int, size: int, times: int) -> dict[str, float]:
    """Seconds of the fastest round, because others may be at work; bytes through the client."""
    order = Exchange(np.ones(size))
    edges = np.arange(count + 1)
    plans = [SumPlan(edges, k, k + 1) for k in range(count)]
    with Workers(client) as workers:
        workers.check(workers.available())
        workers.vector_bytes = order.array.nbytes
        workers.start(workers.available()[:count], HoldNothing(), plans)
        workers.sum(order)
        seconds = []
        for _ in range(times):
            begin = time.perf_counter()
            total = workers.sum(order)
            seconds.append(time.perf_counter() - begin)
        if not np.all(total == count):
            raise AssertionError("a wrong sum")
        with accounting(count_bytes=True) as account:
            workers.sum(order)
    return {
        "seconds": min(seconds),
        "sent_bytes": account.sent,
        "received_bytes": account.received,
    }
