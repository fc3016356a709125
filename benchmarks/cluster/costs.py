"""What an iteration on a cluster costs: bytes read, bytes sent, rounds; and the time that follows.

With p workers of T threads, m rows, n features, z stored values, q arrays in a worker's answer (its
sums along the tree), R rounds and c active cuts, an iteration takes about

    R·(latency + round + (p − 1)·message)    messages that are small
    + p·8n·(1/down + q/up)                   w to every worker, and sums back, through one link
    + (z·value + m·row)/(p·T)                both products and the passes over scores
    + n·(p·q·add + c·cut)                    on the client: sums of sums, the small problem

Constants in names without capitals are measured here.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutplane.cluster.orders import Hold, Means, Order

_EMPTY_ROUNDS, _FULL_ROUNDS = 100, 8


@dataclass(frozen=True)
class Constants:
    """What was measured.

    Attributes
    ----------
    round, message : float
        Seconds of a round with nothing in it, on one machine; of these the client's for one
        worker, which it spends again for every further one.
    down, up : float
        Bytes per second from the client to the workers, and back.
    value, row : float
        Seconds of a thread per stored value and per row in an iteration.
    add, cut : float
        Seconds of the client per feature: for each array that is added up, for each active cut.
    """

    round: float
    message: float
    down: float
    up: float
    value: float
    row: float
    add: float
    cut: float


@dataclass(frozen=True)
class Workload:
    """A problem and a cluster.

    Attributes
    ----------
    rows, features, values : float
        Of the data; stored values.
    workers, threads : int
        And threads of each.
    arrays : float
        Sums that a worker sends back, on average.
    rounds, cuts : float
        In an iteration; active cuts.
    latency : float
        Seconds there and back.
    """

    rows: float
    features: float
    values: float
    workers: int
    threads: int
    arrays: float
    rounds: float
    cuts: float
    latency: float = 0.0


def predict(work: Workload, known: Constants) -> dict[str, float]:
    """Seconds of an iteration, by what they are spent on; bytes through the client's link."""
    p, n = work.workers, work.features
    down, up = p * 8.0 * n, p * 8.0 * n * work.arrays
    parts = {
        "rounds": work.rounds * (work.latency + known.round + (p - 1) * known.message),
        "network": down / known.down + up / known.up,
        "work": (work.values * known.value + work.rows * known.row) / (p * work.threads),
        "client": n * (p * work.arrays * known.add + work.cuts * known.cut),
    }
    return {**parts, "seconds": sum(parts.values()), "down_bytes": down, "up_bytes": up}


def answer_arrays(rows: int, blocks: int, workers: int) -> float:
    """Sums that a worker sends back on average, with equal workers: as the package shares parts."""
    from cutplane.data.sums import SumPlan, part_edges, share_parts

    edges = part_edges(blocks, rows)
    runs = share_parts(np.diff(edges).tolist(), [1] * workers)
    return statistics.mean(len(SumPlan(edges, first, last).nodes) for first, last in runs)


# -- what a message costs -------------------------------------------------------------


@dataclass(frozen=True)
class HoldNothing(Hold):
    """Stands in for the rows of a worker."""

    def make(self, means: Means) -> None:
        return None


@dataclass(frozen=True)
class Take(Order):
    """Takes an array."""

    array: np.ndarray

    def run(self, state: None) -> int:
        return len(self.array)


@dataclass(frozen=True)
class Give(Order):
    """Gives an array."""

    size: int

    def run(self, state: None) -> np.ndarray:
        return np.zeros(self.size)


def probe(client: Any, workers: int, size: int = 1 << 20) -> dict[str, float]:
    """Seconds of an empty round, and of the processor here; bytes per second down and up."""
    from cutplane.cluster.workers import Workers

    array = np.zeros(size)
    with Workers(client) as crew:
        crew.check(crew.available())
        crew.start(crew.available()[:workers], HoldNothing())

        def seconds(order: Order, times: int) -> tuple[float, float]:
            crew.round([order])
            runs, cpu = [], time.process_time()
            for _ in range(times):
                begin = time.perf_counter()
                crew.round([order])
                runs.append(time.perf_counter() - begin)
            # Of the faster ones, because others may be at work.
            return float(np.quantile(runs, 0.25)), (time.process_time() - cpu) / times

        empty, cpu = seconds(Give(0), _EMPTY_ROUNDS)
        down, _ = seconds(Take(array), _FULL_ROUNDS)
        up, _ = seconds(Give(size), _FULL_ROUNDS)
    content = float(workers * array.nbytes)
    # A link that is faster than the noise of an empty round is not resolved.
    return {
        "round": empty,
        "cpu": cpu,
        "down": content / max(down - empty, 0.05 * down),
        "up": content / max(up - empty, 0.05 * up),
    }


# -- what rows and features cost ------------------------------------------------------


def work_constants(runs: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Seconds of a thread per stored value and row, from the work of fits on different data."""
    from scipy.optimize import nnls

    known = np.array([[run["values"], run["rows"]] for run in runs], float)
    work = np.array([run["work_seconds"] * run["workers"] / run["n_iter"] for run in runs])
    scale = 1.0 / work  # it is relative errors that count
    value, row = nnls(known * scale[:, None], work * scale)[0]
    return float(value), float(row)


def add_constant(features: int = 1 << 20, arrays: int = 8) -> float:
    """Seconds per feature to add one more array to a sum."""
    from cutplane.data.sums import add_nodes

    nodes = {(k, k + 1): np.ones(features) for k in range(arrays)}
    runs = []
    for _ in range(7):
        begin = time.perf_counter()
        add_nodes(nodes, arrays)
        runs.append(time.perf_counter() - begin)
    return statistics.median(runs) / (arrays - 1) / features


def cut_constant(run: dict[str, Any]) -> float:
    """Seconds of the client per feature and active cut, from a fit with many features."""
    phases = run["phases"]
    spent = sum(phases.get(name, 0.0) for name in ("qp", "gram"))
    return spent / run["n_iter"] / run["features"] / run["cuts"]


def facts(known: Constants) -> dict[str, float]:
    """For the JSON."""
    return dataclasses.asdict(known)
