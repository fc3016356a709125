"""What an iteration on a cluster costs: bytes read, bytes sent, rounds; and the time that follows.

With p workers of T threads, m rows, n features, z stored values, q arrays in a worker's answer (its
sums along the tree), R rounds and c active cuts, an iteration takes about

    R·(latency + round + (p − 1)·message)    messages that are small
    + 8n·(2/link + log₂p·(1 + q)/between)    w to the first worker, handed on; sums, and the total
    + (z·value + m·row)/(p·T)                both products and the passes over scores
    + n·(log₂p·q·add + c·cut)                sums of sums on the workers, the small problem here

if vectors go from worker to worker, which they do from LONG bytes on. Shorter ones all go through
the client, p·8n·(1 + q)/link, which also adds them up, p·q·n·add. Constants in names without
capitals are measured here.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutplane.cluster.workers import LONG


@dataclass(frozen=True)
class Constants:
    """Measured constants of the cost model.

    Attributes
    ----------
    round, message : float
        Seconds of an empty round with one worker, and the seconds that each further worker adds.
    link, between : float
        Bytes per second between the client and a worker, and from worker to worker.
    value, row : float
        Seconds of a thread per stored value and per row in an iteration.
    add, cut : float
        Seconds per feature and summed array, and per feature and active cut.
    """

    round: float
    message: float
    link: float
    between: float
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
        The number of workers, and of threads of each.
    arrays : float
        The average number of sums that a worker sends back.
    rounds, cuts : float
        In an iteration; active cuts.
    latency : float
        Seconds that a message and its answer take on the network.
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
    """The seconds of an iteration by their cause, and the bytes that pass through the client."""
    p, q, vector = work.workers, work.arrays, 8.0 * work.features
    if p > 1 and vector >= LONG:
        steps = math.ceil(math.log2(p))
        down = up = vector
        network = (down + up) / known.link + steps * (1.0 + q) * vector / known.between
        added = steps * q
    else:
        down, up = p * vector, p * q * vector
        network = (down + up) / known.link
        added = p * q
    parts = {
        "rounds": work.rounds * (work.latency + known.round + (p - 1) * known.message),
        "network": network,
        "work": (work.values * known.value + work.rows * known.row) / (p * work.threads),
        "client": work.features * (added * known.add + work.cuts * known.cut),
    }
    return {**parts, "seconds": sum(parts.values()), "down_bytes": down, "up_bytes": up}


def answer_arrays(rows: int, blocks: int, workers: int) -> float:
    """Sums that a worker sends back on average, with equal workers: as the package shares parts."""
    from cutplane.data.sums import SumPlan, part_edges, share_parts

    edges = part_edges(blocks, rows)
    runs = share_parts(np.diff(edges).tolist(), [1] * workers)
    return statistics.mean(len(SumPlan(edges, first, last).nodes) for first, last in runs)


# -- what a message costs -------------------------------------------------------------


def message_constants(
    empty: dict[int, float], full: dict[int, float], size: float
) -> tuple[float, float, float, float]:
    """``round``, ``message``, ``link`` and ``between``, from rounds with one and two workers.

    Parameters
    ----------
    empty, full : dict
        Seconds of a round, by the number of workers: with nothing in it, and with a long vector,
        which is handed on, added up, and comes back.
    size : float
        Bytes of that vector.
    """
    message = empty[2] - empty[1]
    # With one worker the vector goes there and back; with two it is also handed on, and a sum sent.
    # A difference below the noise of an empty round is set to that noise.
    link = 2.0 * size / max(full[1] - empty[1], 0.05 * full[1])
    between = 2.0 * size / max(full[2] - full[1] - message, 0.05 * full[2])
    return empty[1], max(message, 0.1 * empty[1]), link, between


# -- what rows and features cost ------------------------------------------------------


def work_constants(runs: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Seconds of a thread per stored value and row, from the work of fits on different data."""
    from scipy.optimize import nnls

    known = np.array([[run["values"], run["rows"]] for run in runs], float)
    work = np.array([run["work_seconds"] * run["workers"] / run["n_iter"] for run in runs])
    scale = 1.0 / work  # least squares of relative errors
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
    """The constants for the JSON file."""
    return dataclasses.asdict(known)
